//! Servers and agents that mean harm: numbers that no clock reaches, answers without an end, values of variables said back.

use crate::ask::{KEY, ask, ask_with, at_once, block, endpoint, event, request, turn, whole};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use traderharness_connect::plugin::Launch;
use traderharness_connect::testing::{Act, Reply, Server};
use traderharness_connect::{ChatCompletions, Endpoint, Limits, PipeClient, PipeLimits, RetryPolicy};
use traderharness_contract::parse::{CallStyle, parse_message};
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::ModelClient;

/// The kind of the last failure after one attempt.
fn kind(reply: Reply, limits: Limits) -> &'static str {
    let server = Server::replies([reply]).unwrap();
    let endpoint = Endpoint { limits, ..endpoint(&server) };
    match block(ask_with(ChatCompletions::default(), endpoint, at_once(1), &request())).unwrap_err() {
        ClientFault::GaveUp { last, .. } => last.kind(),
        other => other.kind(),
    }
}

fn soon() -> Limits {
    let short = Duration::from_millis(300);
    Limits { first_byte: short, next_byte: short, whole: Duration::from_millis(600), ..Limits::default() }
}

#[test]
fn a_pause_of_any_length_is_no_crash() {
    for (name, value) in [("Retry-After", u64::MAX), ("Retry-After-Ms", u64::MAX), ("Retry-After", u64::MAX / 1_000)] {
        let limited = Reply::status(429, &[(name, &value.to_string())], "");
        let (answer, server) = block(ask(vec![limited], 3));
        assert!(matches!(answer.unwrap_err(), ClientFault::GaveUp { attempts: 1, .. }), "{name}: {value}");
        assert_eq!(server.received().len(), 1);
    }
}

#[test]
fn limits_that_no_clock_reaches_are_limits_that_never_end() {
    let whole = Reply::json(&whole(&json!({"role": "assistant", "content": "a"}), "stop"));
    let server = Server::replies([whole]).unwrap();
    let ever = Duration::MAX;
    let limits = Limits { first_byte: ever, next_byte: ever, whole: ever, ..Limits::default() };
    let retry = RetryPolicy { give_up_after: ever, ..RetryPolicy::default() };
    let endpoint = Endpoint { limits, ..endpoint(&server) };
    let answer = block(ask_with(ChatCompletions::default(), endpoint, retry, &request()));
    assert_eq!(answer.unwrap().message.content(), Some("a"));
}

#[test]
fn answers_without_an_end_end_at_a_limit() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let forever = |bytes: &[u8]| Act::Repeat(bytes.to_vec(), Duration::ZERO);
    let after_head = |act: Act| Reply::raw(*head).then(act);
    // One byte after the other, each in time.
    assert_eq!(kind(after_head(Act::Repeat(b":".to_vec(), Duration::from_millis(20))), soon()), "timeout");
    let small = Limits { answer_bytes: 1 << 20, ..Limits::default() };
    assert_eq!(kind(after_head(forever(&[b'a'; 4096])), small.clone()), "answer_too_long");
    assert_eq!(kind(after_head(forever(b": ping\n\n")), small.clone()), "answer_too_long");
    assert_eq!(kind(after_head(forever(b"data: {\n")), small), "answer_too_long");
    // Headers, and a status line, without an end.
    for start in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 "] {
        let kind = kind(Reply::raw(start).then(forever(b"X-Header: of many of its kind\r\n")), soon());
        assert!(["cut_answer", "timeout"].contains(&kind), "{start}: {kind}");
    }
}

#[test]
fn much_white_space_takes_little_time() {
    let before = Instant::now();
    let space = Reply::stream(vec![b' '; 16 << 20]);
    let (answer, _) = block(ask(vec![space], 1));
    assert!(matches!(answer.unwrap_err(), ClientFault::GaveUp { last, .. } if last.kind() == "empty_answer"));
    assert!(before.elapsed() < Duration::from_secs(8), "{:?}", before.elapsed());
}

#[test]
fn bodies_that_are_no_answer_are_malformed() {
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0x56, 0x4a, 0x0a, 0x00];
    let zipped = Reply::status(200, &[("Content-Encoding", "gzip"), ("Content-Type", "application/json")], gzip);
    assert_eq!(kind(zipped, soon()), "malformed_answer");
    assert_eq!(kind(Reply::status(200, &[], "<html><b>Sign in</b></html>"), soon()), "malformed_answer");
    let usage = "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 1, \"completion_tokens\": 0}}\n\ndata: [DONE]\n\n";
    assert_eq!(kind(Reply::stream(usage), soon()), "empty_answer");
}

/// The calls that would run of a streamed answer.
fn runs(deltas: &[Value], finish_reason: &str) -> Vec<String> {
    let (answer, _) = block(ask(vec![Reply::stream(crate::ask::stream(deltas, finish_reason))], 1));
    let response = answer.unwrap();
    let parsed = parse_message(CallStyle::Openai, &response.message.0, &response.finish_reason, &[]);
    parsed.calls.iter().filter(|call| call.is_readable()).map(|call| format!("{}{}", call.name, call.arguments)).collect()
}

#[test]
fn calls_that_come_mixed_are_never_run_together() {
    let piece = |index: u64, id: &str, name: Option<&str>, arguments: &str| json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]});
    let mixed = [
        piece(0, "a", Some("f"), ""),
        piece(1, "b", Some("g"), "{\"x\""),
        piece(2, "c", Some("h"), ""),
        piece(1, "", None, ": 1}"),
        piece(0, "", None, "{\"y\": "),
        piece(2, "", None, "{}"),
        piece(0, "", None, "2}"),
    ];
    assert_eq!(runs(&mixed, "tool_calls"), ["f{\"y\": 2}", "g{\"x\": 1}", "h{}"]);
    assert_eq!(runs(&mixed, "length"), ["f{\"y\": 2}", "g{\"x\": 1}"]);
    // Another id with every piece of one call.
    let switching = [piece(0, "a", Some("f"), "{\"x\""), piece(0, "b", None, ": 1"), piece(0, "c", None, "}")];
    assert_eq!(runs(&switching, "tool_calls"), ["f{\"x\": 1}"]);
    // With the name as well nobody knows what belongs together: nothing runs.
    let named = [piece(0, "a", Some("f"), "{\"x\""), piece(0, "b", Some("f"), ": 1"), piece(0, "c", Some("f"), "}")];
    assert_eq!(runs(&named, "tool_calls"), [] as [String; 0]);
    assert_eq!(runs(&[piece(0, "a", Some("f"), "{\"x\": [1, 2")], "length"), [] as [String; 0]);
    assert_eq!(runs(&[piece(0, "a", Some("f"), "{\"x\": 1}")], "length"), [] as [String; 0]);
}

#[test]
fn a_redirect_to_another_host_takes_no_key_along() {
    let other = Server::replies([Reply::json(&whole(&json!({"role": "assistant", "content": "a"}), "stop"))]).unwrap();
    let to = format!("{}/chat/completions?key={KEY}", other.url());
    for status in [301, 302, 303, 307, 308] {
        let (answer, _) = block(ask(vec![Reply::status(status, &[("Location", &to)], "")], 2));
        let fault = answer.unwrap_err().to_string();
        assert!(!fault.contains("planted"), "{fault}");
    }
    assert!(other.received().is_empty());
}

#[test]
fn a_broken_stream_says_nothing_of_the_key() {
    let cut =
        event(&json!({"index": 0, "delta": {"content": KEY}})) + "data: {\"error\": {\"message\": \"bad " + KEY + "\"}}\n\n";
    let (answer, _) = block(ask(vec![Reply::stream(cut)], 1));
    let fault = answer.unwrap_err().to_string();
    assert!(fault.contains("bad [redacted]") && !fault.contains("planted"), "{fault}");
}

// What an agent answers is recorded: the values that were handed to it are none of the record's business.
#[test]
fn an_agent_that_says_its_variables_back_is_recorded_without_them() {
    const SECRET: &str = "planted-agent-secret-0123456789";
    let environment = |name: &str| if name == "AGENT_KEY" { Some(SECRET.to_owned()) } else { std::env::var(name).ok() };
    let script = r#"read -r hello; echo '{"type":"hello","protocol":1}'; read -r line
        echo "{\"type\":\"answer\",\"id\":1,\"content\":\"my key is $AGENT_KEY.\",\"reasoning\":\"$AGENT_KEY\",\"finish_reason\":\"tool_calls\",\"tool_calls\":[{\"id\":\"$AGENT_KEY\",\"name\":\"f\",\"arguments\":{\"$AGENT_KEY\":\"$AGENT_KEY\"}}],\"usage\":{\"input_tokens\":1,\"output_tokens\":1,\"x\":\"$AGENT_KEY\"}}"; read -r rest"#;
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let launch = Launch::new(argv, &["AGENT_KEY".to_owned()], None, &environment).unwrap();
    let response = block(async {
        let mut client = PipeClient::start(launch, PipeLimits::default()).await.unwrap();
        client.complete(&request(), turn()).await.unwrap()
    });
    assert_eq!(response.message.content(), Some("my key is [redacted]."));
    let shown = format!("{response:?}");
    assert!(!shown.contains("planted") && shown.contains("[redacted]"), "{shown}");
}
