//! The first difference of two requests, as a person reads it.

use crate::canonical::any_json;
use crate::cassette::day;
use proptest::prelude::*;
use serde_json::json;
use traderharness_replay::explain::explain;
use traderharness_replay::{Message, Request, ToolCall};

fn request() -> Request {
    day(4).pop().unwrap().0
}

/// What is shown of a change.
fn shown(change: impl Fn(&mut Request)) -> String {
    let mut changed = request();
    change(&mut changed);
    explain(&request(), &changed).map_or_else(|| "none".to_owned(), |explanation| explanation.text())
}

#[test]
fn equal_requests_have_no_difference() {
    assert_eq!(shown(|_| {}), "none");
}

#[test]
fn each_kind_of_difference_is_shown_with_its_place() {
    let long = |price: &str| {
        let bars: Vec<_> = (0..40).map(|n| json!({"day": n, "close": if n == 23 { price } else { "10.00" }})).collect();
        json!({"success": true, "bars": bars}).to_string()
    };
    let prose = |word: &str| {
        format!("{}The {word} closed higher. {}", "A quiet morning in the market. ".repeat(9), "Nothing else moved. ".repeat(9))
    };
    let base = |content: String| {
        let mut request = request();
        let call = ToolCall::new("x1", "get_kline", "{}");
        request.messages.push(Message::assistant("", &[call]));
        request.messages.push(Message::tool("x1", content));
        request
    };
    let pair = |a: Request, b: Request| explain(&a, &b).unwrap().text();
    let mut out = vec![
        ("a tool result", pair(base(long("11.02")), base(long("11.03")))),
        ("prose", pair(base(prose("bank")), base(prose("broker")))),
        ("the same JSON with other spaces", pair(base(r#"{"a": 1}"#.into()), base(r#"{"a":1}"#.into()))),
        ("Chinese prose", pair(base("今日大盘高开，".repeat(30) + "银行走强"), base("今日大盘高开，".repeat(30) + "券商走强"))),
    ];
    out.push(("system", shown(|r| r.system = Some("You trade A-shares.\nNothing else.".into()))));
    out.push(("a description", shown(|r| r.tools[0]["function"]["description"] = json!("Does another thing."))));
    out.push(("a bound", shown(|r| r.tools[1]["function"]["parameters"]["properties"]["days"]["minimum"] = json!(1))));
    out.push(("a tool less", shown(|r| drop(r.tools.remove(0)))));
    out.push(("other order of tools", shown(|r| r.tools.swap(0, 1))));
    out.push(("sampling", shown(|r| drop(r.sampling.insert("temperature".into(), json!(0.7))))));
    out.push(("a line end", pair(base("one\ntwo".into()), base("one\ntwo\r\n".into()))));
    out.push(("an odd key", shown(|r| r.tools[0]["function"]["a b"] = json!(""))));
    out.push(("a message more", shown(|r| r.messages.push(Message::user("One more.")))));
    out.push(("a message less", shown(|r| drop(r.messages.pop()))));
    let text: Vec<String> = out.iter().map(|(name, text)| format!("## {name}\n{text}\n")).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn an_endless_difference_is_bounded() {
    let text = |seed: usize| (0..20_000).map(|n| format!("line {}\n", n * seed)).collect::<String>();
    let with = |content: String| {
        let mut request = request();
        request.messages.push(Message::user(content));
        request
    };
    let explanation = explain(&with(text(2)), &with(text(3))).unwrap();
    assert!(explanation.lines.len() <= 121, "{}", explanation.lines.len());
    assert!(explanation.lines.last().unwrap().contains("not shown"));
    let one_line = explain(&with("x".repeat(3_000_000)), &with("y".repeat(3_000_000))).unwrap();
    assert!(one_line.text().len() < 2_000);
}

proptest! {
    #[test]
    fn a_difference_is_explained_exactly_when_there_is_one(a in any_json(), b in any_json()) {
        let with = |value: &serde_json::Value| {
            let mut request = request();
            request.messages.push(Message(json!({"role": "user", "content": value})));
            request
        };
        let explanation = explain(&with(&a), &with(&b));
        prop_assert_eq!(explanation.is_some(), with(&a).fingerprint() != with(&b).fingerprint());
        if let Some(explanation) = explanation {
            prop_assert!(!explanation.lines.is_empty(), "{:?}", explanation);
        }
    }
}
