//! The structural difference: names the place, stays short, and is empty exactly for equal values.

use crate::canonical::any_json;
use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_replay::canonical;
use traderharness_replay::diff::{Change, differences, request_differences};
use traderharness_replay::request::function_tool;
use traderharness_replay::{Message, Request};

fn check(expected: &Value, actual: &Value, rendered: &[&str]) {
    let found: Vec<String> = differences(expected, actual, 10).iter().map(ToString::to_string).collect();
    assert_eq!(found, rendered);
}

#[test]
fn places_are_named() {
    check(&json!({"a": 1.0, "b": [1, 2]}), &json!({"b": [1, 2], "a": 1}), &[]);
    check(&json!({"a": {"b c": 1}}), &json!({"a": {"b c": 2}}), &["a[\"b c\"]:\n    recorded  1\n    now       2"]);
    check(&json!([1, 2]), &json!([1]), &["[1]: missing now\n    recorded  2"]);
    check(&json!({}), &json!({"x": [null]}), &["x: not in the recording\n    now       [null]"]);
    check(&json!(1), &json!("1"), &["the whole value:\n    recorded  1\n    now       \"1\""]);
    check(
        &json!({"content": "close 10.25"}),
        &json!({"content": "close 10.26"}),
        &["content: from character 10 on (11 characters recorded, 11 now)\n    recorded  close 10.25\n    now       close 10.26"],
    );
    check(
        &json!("股票"),
        &json!("股票\u{200b}"),
        &[
            "the whole value: from character 2 on (2 characters recorded, 3 now)\n    recorded  股票(end of text)\n    now       股票\\u{200b}",
        ],
    );
    check(
        &json!("cash"),
        &json!(""),
        &["the whole value: from character 0 on (4 characters recorded, 0 now)\n    recorded  cash\n    now       (empty)"],
    );
    check(
        &json!(r#"{"bars":[{"close":1},{"close":2}]}"#),
        &json!(r#"{"bars":[{"close":1},{"close":3}]}"#),
        &["the whole value: from character 30 on (34 characters recorded, 34 now), in its JSON at bars[1].close\n    \
           recorded  {\"bars\":[{\"close\":1},{\"close\":2}]}\n    now       {\"bars\":[{\"close\":1},{\"close\":3}]}"],
    );
}

#[test]
fn excerpts_cut_between_whole_characters_at_every_offset() {
    // complaint TR-8
    let text: String = "🚀𠮷".repeat(100);
    for at in 0..200 {
        let mut changed: Vec<char> = text.chars().collect();
        changed[at] = 'x';
        let found = differences(&text.as_str().into(), &changed.into_iter().collect::<String>().into(), 1);
        let Change::Text { at: place, expected, actual, .. } = &found[0].change else { panic!("{found:?}") };
        assert_eq!(*place, at);
        assert!(expected.chars().all(|c| "🚀𠮷…".contains(c)), "{expected}");
        assert_eq!(actual.matches('x').count(), 1);
        assert!(actual.chars().count() <= 82);
    }
}

#[test]
fn tools_are_compared_by_name() {
    let tool = |name: &str, text: &str| function_tool(name, text, &json!({"type": "object"}));
    let mut old = Request::new("m", "v5");
    old.tools = vec![tool("a", "A"), tool("b", "B"), tool("c", "C")];
    let mut new = old.clone();
    new.tools = vec![tool("c", "C"), tool("a", "A!"), tool("d", "D")];
    let found = request_differences(&old, &new);
    let paths: Vec<&str> = found.iter().map(|difference| difference.path.as_str()).collect();
    assert_eq!(paths, ["tools[a].function.description", "tools[b]", "tools[d]", "tools"]);
    assert_eq!(found[3].change, Change::Order { expected: "a, c".into(), actual: "c, a".into() });
}

#[test]
fn only_the_first_differing_message_is_shown() {
    let mut old = Request::new("m", "v5");
    old.messages = (0..50).map(|n| Message::user(format!("message {n}"))).collect();
    let mut new = old.clone();
    new.messages.remove(10);
    let paths: Vec<String> = request_differences(&old, &new).into_iter().map(|difference| difference.path).collect();
    assert_eq!(paths, ["messages[10].content", "messages"]);
}

proptest! {
    #[test]
    fn there_is_a_difference_exactly_when_the_forms_differ(a in any_json(), b in any_json()) {
        prop_assert_eq!(differences(&a, &b, 3).is_empty(), canonical::equal(&a, &b));
        prop_assert!(differences(&a, &a.clone(), 3).is_empty());
    }

    #[test]
    fn a_list_is_bounded(a in any_json(), b in any_json(), limit in 0usize..5) {
        let found = differences(&a, &b, limit);
        prop_assert!(found.len() <= limit);
        let shown = found.iter().map(|difference| match &difference.change {
            Change::Text { expected, actual, .. } | Change::Value { expected, actual } => expected.len().max(actual.len()),
            _ => 0,
        });
        // 80 characters, each at most ten bytes when escaped, and the marks.
        prop_assert!(shown.max().unwrap_or(0) <= 80 * 10 + 20);
    }
}
