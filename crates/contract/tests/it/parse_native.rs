//! Native calls, whole and streamed.

use serde_json::{Value, json};
use traderharness_contract::parse::{
    CallStyle, DeltaAccumulator, DiagnosticKind, STREAM_CUT, Streamed, is_cut, parse, parse_message,
};
use traderharness_contract::{ErrorCode, parse_arguments};

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn arguments(call: Value) -> String {
    parse(CallStyle::Openai, "", &[call], &[]).calls.remove(0).arguments
}

// seed A6.4
#[test]
fn every_place_a_provider_puts_name_id_and_arguments() {
    assert_eq!(arguments(json!({"function": {"name": "f", "arguments": "{\"a\":1}"}})), "{\"a\":1}");
    assert_eq!(arguments(json!({"name": "f", "arguments": {"a": 1}})), "{\"a\":1}");
    assert_eq!(arguments(json!({"name": "f", "arguments_json": "{\"a\":1}", "args": "{\"a\":2}"})), "{\"a\":1}");
    assert_eq!(arguments(json!({"function": {"name": "f", "arguments": ""}, "args": {"a": 2}})), "{\"a\":2}");
    for empty in [json!(""), json!("  "), json!(null), json!({})] {
        assert_eq!(arguments(json!({"function": {"name": "f", "arguments": empty}})), "{}");
    }
    assert_eq!(arguments(json!({"function": {"name": "f"}})), "{}");
    let other = json!({"call_id": "c9", "name": "f", "args": "{}"});
    let parsed = parse(CallStyle::Openai, "text", std::slice::from_ref(&other), &[]);
    assert_eq!((parsed.calls[0].id.as_deref(), &parsed.calls[0].raw, parsed.text.as_str()), (Some("c9"), &other, "text"));
}

// seed A6.4, complaint JR-5: what is corrupt is neither dropped nor taken for nothing
#[test]
fn a_broken_call_stays_under_its_id_and_is_refused() {
    let native =
        [call("c1", "f", "{\"a\":1}"), call("c2", "f", "{\"a\":"), call("c3", "f", "[1]"), call("c4", "f", "{\"a\":1,}")];
    let parsed = parse(CallStyle::Openai, "", &native, &[]);
    assert_eq!(parsed.calls.len(), 4);
    assert_eq!(parsed.calls.iter().map(|c| c.is_readable()).collect::<Vec<_>>(), [true, false, false, false]);
    assert_eq!(parsed.calls[1].arguments, "{\"a\":", "untouched");
    assert!(parsed.calls.iter().all(|c| !c.repaired), "a provider's JSON is whole or not");
    for value in [json!([]), json!(0), json!(false), json!([{"a": 1}])] {
        assert!(parse_arguments(&arguments(json!({"function": {"name": "f", "arguments": value}}))).is_err());
    }
    let nameless =
        parse(CallStyle::Openai, "", &[json!({"id": "c1", "function": {"name": null, "arguments": "{\"a\":1}"}})], &[]);
    assert_eq!((nameless.calls[0].name.as_str(), nameless.calls[0].is_readable()), ("", false));
    assert_eq!(nameless.diagnostics[0].kind, DiagnosticKind::NoName);
    let ignored = parse(CallStyle::Json, "{\"tool\":\"g\"}", &native, &[]);
    assert_eq!(ignored.calls.len(), 1);
    assert_eq!(ignored.diagnostics[0].kind, DiagnosticKind::NativeIgnored);
}

fn delta(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: Option<&str>) -> Value {
    let mut call = json!({"function": {}});
    if let Some(index) = index {
        call["index"] = index.into();
    }
    if let Some(id) = id {
        call["id"] = id.into();
    }
    if let Some(name) = name {
        call["function"]["name"] = name.into();
    }
    if let Some(arguments) = arguments {
        call["function"]["arguments"] = arguments.into();
    }
    json!({"tool_calls": [call]})
}

fn stream(deltas: &[Value], finish: Option<&str>) -> Streamed {
    let mut stream = DeltaAccumulator::new();
    for delta in deltas {
        stream.push_chunk(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}));
    }
    if let Some(finish) = finish {
        stream.push_chunk(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}));
    }
    stream.push_chunk(&json!({"choices": [], "usage": {"total_tokens": 3}}));
    stream.finish()
}

#[test]
fn deltas_are_put_together_by_index() {
    let answer = stream(
        &[
            json!({"role": "assistant", "content": "I ", "reasoning_content": "Let me "}),
            json!({"content": "look.", "reasoning_content": "see."}),
            delta(Some(1), Some("c2"), Some("get_"), Some("")),
            delta(Some(0), Some("c1"), Some("get_price"), Some("{\"co")),
            delta(Some(1), Some(""), Some("kline"), Some("{}")),
            delta(Some(0), None, None, Some("de\":\"SHM-000360\"}")),
        ],
        Some("tool_calls"),
    );
    assert_eq!(
        answer.message,
        json!({"role": "assistant", "content": "I look.", "reasoning_content": "Let me see.", "tool_calls": [
            call("c1", "get_price", "{\"code\":\"SHM-000360\"}"), call("c2", "get_kline", "{}")]})
    );
    let parsed = answer.parse(CallStyle::Openai, &[]);
    assert!(parsed.calls.iter().all(|c| c.is_readable() && !c.incomplete));
    assert_eq!(parsed.text, "I look.");
}

#[test]
fn deltas_of_servers_with_habits_of_their_own() {
    // Without indices, in one piece each.
    let bare = [
        delta(None, Some("a"), Some("f"), Some("{}")),
        delta(None, Some("b"), Some("g"), Some("{\"x\":")),
        delta(None, None, None, Some("1}")),
    ];
    let parsed = stream(&bare, Some("stop")).parse(CallStyle::Openai, &[]);
    assert_eq!(
        parsed.calls.iter().map(|c| (c.name.as_str(), c.arguments.as_str())).collect::<Vec<_>>(),
        [("f", "{}"), ("g", "{\"x\":1}")]
    );
    // Two calls under one index are two calls.
    let same = [delta(Some(0), Some("a"), Some("f"), Some("{}")), delta(Some(0), Some("b"), Some("f"), Some("{}"))];
    assert_eq!(stream(&same, Some("stop")).parse(CallStyle::Openai, &[]).calls.len(), 2);
    // The id is the first that is not empty, even when each delta has another one.
    let ids = [
        delta(Some(0), Some(""), Some("f"), None),
        delta(Some(0), Some("a"), None, Some("{")),
        delta(Some(0), Some("b"), None, Some("}")),
    ];
    let parsed = stream(&ids, Some("stop")).parse(CallStyle::Openai, &[]);
    assert_eq!((parsed.calls.len(), parsed.calls[0].id.as_deref(), parsed.calls[0].arguments.as_str()), (1, Some("a"), "{}"));
    // Arguments as an object; garbage in every place.
    let object = json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": {"a": 1}}}, 3, null, {"index": -1}]});
    let parsed = stream(&[json!(null), json!([]), json!({"content": 3, "tool_calls": "x"}), object], Some("stop"))
        .parse(CallStyle::Openai, &[]);
    assert_eq!(parsed.calls[0].arguments, "{\"a\":1}");
}

// complaints JR-1, JR-2
#[test]
fn a_stream_that_is_cut_runs_nothing() {
    let deltas = [
        delta(Some(0), Some("c1"), Some("place_order"), Some("{\"code\":\"SHM-000360\",")),
        delta(Some(0), None, None, Some("\"quantity\":100")),
        delta(Some(0), None, None, Some("0}")),
        delta(Some(1), Some("c2"), Some("get_portfolio"), None),
    ];
    for cut in 0..=deltas.len() {
        let answer = stream(&deltas[..cut], None);
        assert_eq!(answer.finish_reason, STREAM_CUT);
        for call in answer.parse(CallStyle::Openai, &[]).calls {
            assert!(call.incomplete && !call.is_readable(), "after {cut} deltas: {call:?}");
            let failure = parse_arguments(&call.arguments).unwrap_err().failure(&call.name);
            assert_eq!((failure.code, &failure.correction["fault"]), (ErrorCode::InvalidToolArgumentsJson, &json!("incomplete")));
        }
    }
    let whole = stream(&deltas, Some("tool_calls")).parse(CallStyle::Openai, &[]);
    assert_eq!(whole.calls.iter().map(|c| c.is_readable()).collect::<Vec<_>>(), [true, true]);
    // A length limit: the provider began the second call, so the first is whole; of the second nobody knows.
    let long = stream(&deltas, Some("length")).parse(CallStyle::Openai, &[]);
    assert_eq!(long.calls.iter().map(|c| c.incomplete).collect::<Vec<_>>(), [false, true]);
    let open = stream(&deltas[..2], Some("length")).parse(CallStyle::Openai, &[]);
    assert!(open.calls[0].incomplete && !open.calls[0].is_readable());
}

#[test]
fn a_cut_answer_in_a_text_style_runs_nothing() {
    let message = json!({"role": "assistant", "content": "Action: f(a=1)\nAction: g({})\nAction: h()\nAnd th"});
    let cut = parse_message(CallStyle::Text, &message, "length", &[]);
    assert_eq!(cut.calls.iter().map(|c| (c.incomplete, c.is_readable())).collect::<Vec<_>>(), [(true, false); 3]);
    assert_eq!(parse_message(CallStyle::Text, &message, "stop", &[]).calls.iter().filter(|c| c.is_readable()).count(), 3);
    for reason in ["length", "MAX_TOKENS", "content_filter", STREAM_CUT] {
        assert!(is_cut(reason), "{reason}");
    }
    for reason in ["", "stop", "tool_calls", "function_call", "end_turn"] {
        assert!(!is_cut(reason), "{reason}");
    }
    let parts = json!({"content": [{"type": "text", "text": "Action: "}, {"type": "text", "text": "f()"}]});
    assert_eq!(parse_message(CallStyle::Text, &parts, "stop", &[]).calls.len(), 1);
    let older = json!({"content": null, "function_call": {"name": "f", "arguments": "{}"}});
    assert_eq!(parse_message(CallStyle::Openai, &older, "function_call", &[]).calls.len(), 1);
}
