//! What comes back for the answers that servers give.

use crate::ask::{ask, block, event, seen, stream, whole};
use serde_json::{Value, json};
use traderharness_connect::testing::Reply;
use traderharness_contract::arguments::parse_arguments;
use traderharness_contract::parse::{CallStyle, STREAM_CUT, parse_message};
use traderharness_replay::Response;

fn answer(reply: Reply) -> Response {
    block(ask(vec![reply], 1)).0.unwrap()
}

/// A streamed answer of these deltas gives this message.
fn check_stream(deltas: &[Value], finish_reason: &str, expected: Value) {
    let body = stream(deltas, finish_reason) + "data: [DONE]\n\n";
    let (message, reason) = seen(block(ask(vec![Reply::stream(body)], 1)).0);
    assert_eq!((message, reason.as_str()), (expected, finish_reason));
}

/// An answer in one piece with this message gives that one.
fn check_whole(message: &Value, finish_reason: &str, expected: Value) {
    let (message, reason) = seen(block(ask(vec![Reply::json(&whole(message, finish_reason))], 1)).0);
    assert_eq!((message, reason.as_str()), (expected, finish_reason));
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn says(content: Value, calls: &[Value]) -> Value {
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}

// spec/seeds.md A6.4
#[test]
fn a_call_split_over_deltas_is_put_together() {
    let deltas = [
        json!({"role": "assistant", "content": null}),
        json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "get_", "arguments": ""}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"name": "kline", "arguments": "{\"code\":"}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"600519\"}"}}]}),
    ];
    check_stream(&deltas, "tool_calls", says(Value::Null, &[call("c1", "get_kline", "{\"code\":\"600519\"}")]));
}

#[test]
fn pieces_of_several_calls_may_be_mixed() {
    let deltas = [
        json!({"content": "Two "}),
        json!({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "b", "arguments": "{"}}, {"index": 0, "id": "c1", "function": {"name": "a"}}]}),
        json!({"content": "calls."}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}, {"index": 1, "function": {"arguments": "}"}}]}),
    ];
    check_stream(&deltas, "tool_calls", says("Two calls.".into(), &[call("c1", "a", "{}"), call("c2", "b", "{}")]));
}

#[test]
fn servers_that_number_every_call_zero_or_none_are_understood() {
    let same = |index: Value| {
        let part = |id: Value, name: Value, arguments: &str| json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]});
        [
            part("c1".into(), "a".into(), "{\"x\":1}"),
            part("c2".into(), "a".into(), "{\"x\""),
            part(Value::Null, Value::Null, ":2}"),
        ]
    };
    for index in [json!(0), Value::Null] {
        check_stream(
            &same(index),
            "tool_calls",
            says(Value::Null, &[call("c1", "a", "{\"x\":1}"), call("c2", "a", "{\"x\":2}")]),
        );
    }
}

#[test]
fn a_name_repeated_with_every_piece_is_one_name() {
    let part =
        |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "a", "arguments": arguments}}]});
    check_stream(&[part("{"), part("}")], "tool_calls", says(Value::Null, &[call("c1", "a", "{}")]));
}

#[test]
fn calls_without_an_id_get_one_that_follows_from_the_turn() {
    let message = json!({"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "a", "arguments": "{}"}}, {"id": "", "function": {"name": "b", "arguments": "{}"}},
        {"id": "x", "function": {"name": "c", "arguments": "{}"}}, {"id": "x", "function": {"name": "d", "arguments": "{}"}}]});
    let calls = [
        call("pre_market-4-1", "a", "{}"),
        call("pre_market-4-2", "b", "{}"),
        call("x", "c", "{}"),
        call("pre_market-4-4", "d", "{}"),
    ];
    check_whole(&message, "tool_calls", says(Value::Null, &calls));
}

#[test]
fn arguments_are_found_where_servers_put_them_and_stay_as_they_are() {
    let message = json!({"role": "assistant", "tool_calls": [
        {"id": "1", "function": {"name": "a", "arguments": {"股": [1, null]}}},
        {"id": "2", "name": "b", "arguments": "{\"x\": 1 }"},
        {"call_id": "3", "function": {"name": "c", "arguments": ""}, "args": {"y": 2}},
        {"id": 4, "function": {"name": null, "arguments": "{\"a\":"}, "extra_content": {"signature": "s"}}]});
    let mut last = call("4", "", "{\"a\":");
    last["extra_content"] = json!({"signature": "s"});
    let calls = [call("1", "a", "{\"股\":[1,null]}"), call("2", "b", "{\"x\": 1 }"), call("3", "c", "{\"y\":2}"), last];
    check_whole(&message, "stop", says(Value::Null, &calls));
}

#[test]
fn the_old_function_call_is_a_call() {
    let function = json!({"name": "a", "arguments": "{\"x\":1}"});
    let expected = says(Value::Null, &[call("pre_market-4-1", "a", "{\"x\":1}")]);
    check_whole(&json!({"role": "assistant", "content": null, "function_call": function}), "function_call", expected.clone());
    let deltas = [json!({"function_call": {"name": "a", "arguments": "{\"x\""}}), json!({"function_call": {"arguments": ":1}"}})];
    check_stream(&deltas, "function_call", expected);
}

#[test]
fn thoughts_are_kept_apart_from_the_answer() {
    let thinks = |deltas: &[Value], reasoning: &str| {
        let response = answer(Reply::stream(stream(deltas, "stop") + "data: [DONE]\n\n"));
        assert_eq!(response.reasoning.as_deref(), Some(reasoning));
        assert_eq!(response.message.0, json!({"role": "assistant", "content": "I hold."}));
    };
    thinks(
        &[json!({"reasoning_content": "Hm, "}), json!({"reasoning_content": "sell?"}), json!({"content": "I hold."})],
        "Hm, sell?",
    );
    thinks(&[json!({"reasoning": "Hm", "reasoning_content": "Hm"}), json!({"content": "I hold."})], "Hm");
    thinks(&[json!({"reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]}), json!({"content": "I hold."})], "Hm");
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, {"type": "text", "text": "I hold."}]);
    thinks(&[json!({"content": parts})], "Hm");
}

// complaint JR-1, JR-2
#[test]
fn a_call_cut_by_the_length_limit_is_marked_at_every_place() {
    let arguments = "{\"code\":\"SHM-000360\",\"quantity\":1000}";
    for end in 0..=arguments.len() {
        let message = json!({"role": "assistant", "tool_calls": [call("1", "a", "{}"), call("2", "b", &arguments[..end])]});
        let response = answer(Reply::json(&whole(&message, "length")));
        let calls = parse_message(CallStyle::Openai, &response.message.0, &response.finish_reason, &[]).calls;
        assert!(calls[1].incomplete, "cut after {end}");
        assert!(!calls[1].is_readable() && !calls[0].incomplete);
        // Nothing is completed, and no arguments at all are not taken for empty ones.
        let kept = if end == 0 { "{" } else { &arguments[..end] };
        assert_eq!(response.message.tool_calls()[1].arguments, kept);
        assert_eq!(parse_arguments(kept).is_ok(), end == arguments.len());
    }
}

// complaint JR-1
#[test]
fn a_stream_that_says_it_is_whole_and_not_why_is_believed_of_whole_calls_only() {
    let check = |deltas: &[Value], reason: &str| {
        let text: String = deltas.iter().map(|delta| event(&json!({"index": 0, "delta": delta}))).collect();
        assert_eq!(answer(Reply::stream(text + "data: [DONE]\n\n")).finish_reason, reason);
    };
    let calls =
        |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "n", "arguments": arguments}}]});
    check(&[json!({"content": "a"})], "stop");
    check(&[calls("{\"a\":1}")], "tool_calls");
    check(&[calls("{\"a\":")], STREAM_CUT);
    check(&[calls("")], STREAM_CUT);
}

// spec/seeds.md B12.4: the loop decides what an empty answer means.
#[test]
fn an_empty_message_is_an_answer() {
    let empty = json!({"role": "assistant", "content": ""});
    check_whole(&json!({"role": "assistant", "content": null}), "stop", empty.clone());
    check_stream(&[json!({"role": "assistant"})], "content_filter", empty);
}

#[test]
fn usage_is_none_unless_it_is_whole() {
    let check = |usage: Value, expected: Option<(u64, u64)>| {
        let mut body = whole(&json!({"role": "assistant", "content": "a"}), "stop");
        body["usage"] = usage.clone();
        let response = answer(Reply::json(&body));
        assert_eq!(response.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), expected, "{usage}");
    };
    check(json!({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}), Some((5, 7)));
    check(json!({"input_tokens": 5, "output_tokens": 0}), Some((5, 0)));
    check(json!({"prompt_tokens": 5}), None);
    check(json!({"prompt_tokens": 5, "completion_tokens": -1}), None);
    check(json!({"prompt_tokens": 5.5, "completion_tokens": 1}), None);
    check(json!("none"), None);
    check(Value::Null, None);
}

#[test]
fn usage_of_a_stream_comes_after_its_last_choice() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2}});
    let tail = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [], "usage": usage}));
    let usage = answer(Reply::stream(stream(&[json!({"content": "a"})], "stop") + &tail)).usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (9, 4));
    assert_eq!((usage.cached_tokens(), usage.reasoning_tokens()), (Some(3), Some(2)));
}

#[test]
fn token_ids_and_logprobs_are_kept_as_the_server_gives_them() {
    let logprob = |token: &str, value: f64| json!({"token": token, "logprob": value, "bytes": [97], "top_logprobs": []});
    let first = json!({"prompt_token_ids": [1, 2], "choices": [{"index": 0, "delta": {"content": "a"}, "token_ids": [7],
        "logprobs": {"content": [logprob("a", -0.1)]}}]});
    let second = json!({"choices": [{"index": 0, "delta": {"content": "b"}, "token_ids": [8, 9],
        "logprobs": {"content": [logprob("b", -2.5e-7)]}, "finish_reason": "stop"}]});
    let tokens = answer(Reply::stream(format!("data: {first}\n\ndata: {second}\n\ndata: [DONE]\n\n"))).tokens.unwrap();
    assert_eq!((tokens.prompt_ids, tokens.ids), (Some(vec![1, 2]), Some(vec![7, 8, 9])));
    assert_eq!(tokens.logprobs, Some(vec![logprob("a", -0.1), logprob("b", -2.5e-7)]));
}

#[test]
fn streams_are_read_whatever_their_lines_look_like() {
    let expected = json!({"role": "assistant", "content": "≥😀股"});
    let deltas = [json!({"content": "≥😀"}), json!({"content": "股"})];
    let plain = stream(&deltas, "stop");
    let pretty =
        "data: {\"choices\":\ndata: [{\"index\":0,\"delta\":{\"content\":\"≥😀股\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n"
            .to_owned();
    for body in [
        plain.clone() + "data: [DONE]\n\n",
        plain.replace('\n', "\r\n") + "data: [DONE]",
        plain.replace('\n', "\r"),
        format!("\u{feff}: keep-alive\n\n{}: keep-alive\n\n", plain.replace("data: ", "event: x\nid: 1\nretry: 10\ndata:")),
        pretty,
        // Choices of other indexes and unknown fields are no part of the answer.
        plain.replace("\"choices\":[", "\"service_tier\":1,\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}},"),
    ] {
        assert_eq!(answer(Reply::stream(body.clone())).message.0, expected, "{body:?}");
    }
}

#[test]
fn the_form_is_told_by_the_bytes_and_not_by_the_content_type() {
    let expected = json!({"role": "assistant", "content": "a"});
    let events = stream(&[json!({"content": "a"})], "stop") + "data: [DONE]\n\n";
    let json = format!(" \r\n{}", whole(&expected, "stop"));
    for (kind, body) in
        [("application/json", &events), ("text/html", &events), ("text/event-stream", &json), ("text/plain", &json)]
    {
        assert_eq!(answer(Reply::status(200, &[("Content-Type", kind)], body)).message.0, expected, "{kind}");
    }
}

#[test]
fn chunks_may_end_inside_of_an_event_and_of_a_character() {
    let body = stream(&[json!({"content": "≥😀股票"})], "stop") + "data: [DONE]\n\n";
    let pieces: Vec<&[u8]> = body.as_bytes().chunks(3).collect();
    assert_eq!(answer(Reply::chunked(&pieces, true)).message.content(), Some("≥😀股票"));
}

#[test]
fn a_repeated_whole_message_at_the_end_of_a_stream_is_not_added() {
    let body = stream(&[json!({"content": "a"})], "stop")
        .replace("\"delta\":{},", "\"message\":{\"role\":\"assistant\",\"content\":\"a\"},");
    assert_eq!(answer(Reply::stream(body)).message.content(), Some("a"));
}

#[test]
fn a_refusal_and_what_the_provider_says_of_itself_are_kept() {
    let mut body = whole(&json!({"role": "assistant", "content": null, "refusal": "No."}), "stop");
    body["system_fingerprint"] = "fp".into();
    let response = answer(Reply::json(&body));
    assert_eq!(response.message.0, json!({"role": "assistant", "content": "", "refusal": "No."}));
    assert_eq!(Value::from(response.served), json!({"id": "a1", "model": "model-1-0301", "system_fingerprint": "fp"}));
}
