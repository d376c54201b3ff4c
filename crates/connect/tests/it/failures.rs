//! What is said, and how often it is tried, when servers fail.

use crate::ask::{KEY, ask, ask_with, at_once, block, endpoint, event, request, stream, whole};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::Duration;
use traderharness_connect::testing::{Act, Reply, Server};
use traderharness_connect::{ChatCompletions, Endpoint, Limits, Secret};
use traderharness_harness::client_fault::ClientFault;

fn good() -> Reply {
    Reply::json(&whole(&json!({"role": "assistant", "content": "a"}), "stop"))
}

fn error(message: &str, code: &str) -> String {
    json!({"error": {"message": message, "type": "t", "code": code}}).to_string()
}

/// A failure that is final: one request, this kind, this text.
fn check_final(reply: Reply, kind: &str, text: &str) {
    let (answer, server) = block(ask(vec![reply], 3));
    let fault = answer.unwrap_err();
    let shown = fault.to_string().replace(&server.address().to_string(), "HOST");
    assert_eq!((fault.kind(), shown.as_str(), server.received().len()), (kind, text, 1));
}

/// A failure that is tried again and answered then.
fn check_again(reply: Reply) {
    let (answer, server) = block(ask(vec![reply, good()], 2));
    assert_eq!(answer.unwrap().message.content(), Some("a"));
    let received = server.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body, received[1].body, "the same request is asked again");
}

/// What is left after all attempts failed alike.
fn last(reply: &Reply, attempts: u32) -> (ClientFault, usize) {
    let (answer, server) = block(ask(vec![reply.clone(); 9], attempts));
    match answer.unwrap_err() {
        ClientFault::GaveUp { last, attempts } => {
            assert_eq!(attempts as usize, server.received().len());
            (*last, server.received().len())
        }
        other => panic!("{other}"),
    }
}

#[test]
fn refusals_are_final_and_say_what_the_server_said() {
    let refused = |status, body: &str| Reply::status(status, &[], body);
    check_final(refused(400, &error("bad tool", "x")), "http_status", "the model server answered 400: bad tool");
    check_final(refused(413, ""), "http_status", "the model server answered 413: Payload Too Large");
    check_final(refused(422, r#"{"detail":[{"msg":"a"},{"msg":"b"}]}"#), "http_status", "the model server answered 422: a; b");
    check_final(
        refused(401, &error("no key", "invalid_api_key")),
        "refused_key",
        "the model server refused the key (401): no key",
    );
    check_final(refused(403, r#"{"message":"not yours"}"#), "refused_key", "the model server refused the key (403): not yours");
    check_final(
        refused(404, "<html>\n <b>gone</b></html>"),
        "not_found",
        "the model server does not know this model or address (http://HOST/v1/chat/completions): <html> <b>gone</b></html>",
    );
    check_final(refused(402, &error("pay", "x")), "no_credit", "the account has no credit left (402): pay");
    check_final(refused(429, &error("over", "insufficient_quota")), "no_credit", "the account has no credit left (429): over");
    check_final(
        refused(400, &error("filtered", "content_filter")),
        "moderation",
        "the provider's moderation refused the request: filtered",
    );
}

#[test]
fn long_refusals_are_bounded() {
    let (answer, _) = block(ask(vec![Reply::status(400, &[], "股".repeat(200_000))], 1));
    assert!(answer.unwrap_err().to_string().chars().count() < 600);
}

#[test]
fn passing_failures_are_tried_again() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        check_again(Reply::status(status, &[], error("later", "x")));
    }
    check_again(Reply::status(429, &[("Retry-After", "0")], ""));
    check_again(Reply::default());
    check_again(Reply::default().then(Act::Reset));
    check_again(Reply::raw("HTTP/1.1 200 OK\r\nContent-Le"));
    check_again(Reply::json(&json!({"error": {"code": 502, "message": "upstream"}})));
    check_again(Reply::stream(format!("data: {}\n\n", json!({"error": {"code": "rate_limit_exceeded", "message": "slow"}}))));
    check_again(Reply::json(&json!({"choices": []})));
    check_again(Reply::stream("data: [DONE]\n\n"));
    check_again(Reply::status(200, &[], ""));
}

#[test]
fn an_answer_that_was_cut_is_thrown_away_and_asked_again() {
    let text = stream(
        &[
            json!({"content": "≥😀 half"}),
            json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "place_order", "arguments": "{\"q"}}]}),
        ],
        "stop",
    );
    let end = text.find("finish_reason\":\"stop").unwrap();
    let inside = text.find('≥').unwrap() + 1;
    for cut in [1, inside, end] {
        check_again(Reply::stream(&text.as_bytes()[..cut]));
        check_again(Reply::stream(&text.as_bytes()[..cut]).then(Act::Reset));
        check_again(Reply::chunked(&[&text.as_bytes()[..cut]], false));
    }
    let body = whole(&json!({"role": "assistant", "content": "a"}), "stop").to_string();
    check_again(Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), &body[..body.len() - 1])));
    let (fault, _) = last(&Reply::stream(&text.as_bytes()[..end]), 2);
    assert_eq!(fault.to_string(), format!("the answer was cut off after {end} bytes: the stream ended before the answer did"));
}

#[test]
fn an_answer_that_came_whole_is_not_asked_for_again() {
    let text = stream(&[json!({"content": "a"})], "stop");
    let answer = whole(&json!({"role": "assistant", "content": "a"}), "stop").to_string();
    for reply in [
        // The finish reason was the last word; counts and [DONE] are lost.
        Reply::stream(text.as_str()).then(Act::Reset),
        Reply::chunked(&[text.as_bytes()], false),
        Reply::stream(text.clone() + "data: {\"error\":{\"code\":500,\"message\":\"late\"}}\n\n"),
        Reply::stream(text.clone() + "data: {bro"),
        Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len() + 5)),
        // [DONE] ends it although the connection stays open.
        Reply::stream(text + "data: [DONE]\n\n").then(Act::Hold),
    ] {
        let (answer, server) = block(ask(vec![reply.clone()], 3));
        assert_eq!(answer.unwrap().message.content(), Some("a"), "{reply:?}");
        assert_eq!(server.received().len(), 1);
    }
}

// spec/seeds.md B12.4
#[test]
fn nonsense_is_tried_once_more_only() {
    let check = |reply: Reply, text: &str| {
        let (fault, requests) = last(&reply, 5);
        assert_eq!((fault.to_string().as_str(), requests), (text, 2));
    };
    check(
        Reply::status(200, &[], "{\"choices\": [}"),
        "the answer cannot be read: it is not JSON (expected value at line 1 column 14): {\"choices\": [}",
    );
    check(
        Reply::status(200, &[], "<html>hello</html>"),
        "the answer cannot be read: it is not JSON (expected value at line 1 column 1): <html>hello</html>",
    );
    check(Reply::json(&json!({"hello": 1})), "the answer cannot be read: it has no `choices`: {\"hello\":1}");
    check(Reply::status(200, &[], "hello"), "the answer cannot be read: it is neither JSON nor a stream of events");
    check(
        Reply::stream(event(&json!({"index": 0, "delta": {"content": "a"}})) + "data: {\"choices\"\n\n"),
        "the answer cannot be read: event 2 is not JSON (EOF while parsing an object at line 1 column 10): {\"choices\"",
    );
    check(Reply::stream("data: 7\n\n"), "the answer cannot be read: event 1 is no JSON object: 7");
    check(Reply::json(&json!({"choices": []})), "the answer holds no message: `choices` is empty");
    check(Reply::json(&json!({"error": "odd"})), "the model server answered 200: odd");
}

#[test]
fn attempts_are_bounded() {
    let (fault, requests) = last(&Reply::status(500, &[], ""), 4);
    assert_eq!((fault.kind(), requests), ("http_status", 4));
}

#[test]
fn redirects_are_not_followed_and_the_key_stays_here() {
    let other = Server::replies([good()]).unwrap();
    let to = format!("{}/elsewhere?key=abc", other.url());
    for status in [301, 302, 307, 308] {
        let (answer, _) = block(ask(vec![Reply::status(status, &[("Location", &to)], "")], 3));
        let fault = answer.unwrap_err();
        assert_eq!(fault, ClientFault::Redirected { status, location: format!("{}/elsewhere", other.url()) });
    }
    assert_eq!(other.received(), []);
}

#[test]
fn too_long_answers_end_early() {
    let server = Server::replies([Reply::stream("data: ").then(Act::Repeat(vec![b'a'; 4096], Duration::ZERO))]).unwrap();
    let mut endpoint = endpoint(&server);
    endpoint.limits.answer_bytes = 10_000;
    let answer = block(ask_with(ChatCompletions::default(), endpoint, at_once(3), &request()));
    assert_eq!(answer.unwrap_err(), ClientFault::TooLong { limit: 10_000 });
}

#[test]
fn nobody_there_is_unreachable() {
    // A loopback address of this test alone: on the usual one another test's server could take the port meanwhile.
    let free = TcpListener::bind("127.0.0.77:0").unwrap().local_addr().unwrap();
    let endpoint = Endpoint::new(format!("http://{free}/v1"), Some(Secret::new(KEY)));
    let fault = block(ask_with(ChatCompletions::default(), endpoint, at_once(2), &request())).unwrap_err();
    assert_eq!(fault.hint(), Some("check the base URL and that the server runs"));
    let ClientFault::GaveUp { attempts: 2, last } = fault else { panic!("{fault}") };
    assert_eq!(last.kind(), "unreachable");
    assert!(last.to_string().contains(&free.to_string()), "{last}");
}

#[test]
fn a_plain_server_behind_https_is_unreachable() {
    let server = Server::replies([good(), good()]).unwrap();
    let endpoint = Endpoint::new(server.url().replace("http://", "https://"), Some(Secret::new(KEY)));
    let fault = block(ask_with(ChatCompletions::default(), endpoint, at_once(1), &request())).unwrap_err();
    let ClientFault::GaveUp { last, .. } = fault else { panic!("{fault}") };
    assert_eq!(last.kind(), "unreachable");
}

/// Silence of this kind is given up on with this text.
fn check_silence(reply: Reply, limits: Limits, text: &str) {
    let server = Server::replies([reply]).unwrap();
    let mut endpoint = endpoint(&server);
    endpoint.limits = limits;
    let fault = block(ask_with(ChatCompletions::default(), endpoint, at_once(1), &request())).unwrap_err();
    let ClientFault::GaveUp { attempts: 1, last } = fault else { panic!("{fault}") };
    assert_eq!(last.to_string(), text);
}

#[test]
fn silence_is_given_up_on_wherever_it_begins() {
    let short = Duration::from_millis(40);
    let first = Limits { first_byte: short, ..Limits::default() };
    let next = Limits { next_byte: short, ..Limits::default() };
    let all = Limits { whole: short, ..Limits::default() };
    let begun = Reply::stream(event(&json!({"index": 0, "delta": {"content": "a"}})));
    check_silence(Reply::default().then(Act::Hold), first.clone(), "no first byte within 40 ms");
    check_silence(Reply::raw("HTTP/1.1 200 OK\r\n").then(Act::Hold), first, "no first byte within 40 ms");
    check_silence(begun.clone().then(Act::Hold), next, "no next byte within 40 ms");
    // Keep-alives are bytes, but no answer.
    check_silence(begun.then(Act::Repeat(b": wait\n\n".to_vec(), Duration::from_millis(5))), all, "no whole answer within 40 ms");
}

#[test]
fn a_slow_drip_is_no_silence() {
    let body = stream(&[json!({"content": "≥"})], "stop") + "data: [DONE]\n\n";
    let reply = Reply::stream("").then(Act::Drip(body.into_bytes(), Duration::from_micros(50)));
    let (answer, _) = block(ask(vec![reply], 1));
    assert_eq!(answer.unwrap().message.content(), Some("≥"));
}

#[test]
fn requests_that_set_what_is_not_theirs_are_not_sent() {
    for (field, value) in [("stream", json!(true)), ("messages", json!([])), ("model", json!("x")), ("n", json!(2))] {
        let server = Server::replies([good()]).unwrap();
        let mut request = request();
        request.sampling.insert(field.to_owned(), value);
        let fault = block(ask_with(ChatCompletions::default(), endpoint(&server), at_once(1), &request)).unwrap_err();
        assert_eq!((fault.kind(), server.received().len()), ("unsendable", 0), "{fault}");
    }
    let mut empty = request();
    empty.messages = Vec::new();
    let server = Server::replies([good()]).unwrap();
    let fault = block(ask_with(ChatCompletions::default(), endpoint(&server), at_once(1), &empty)).unwrap_err();
    assert_eq!(fault.to_string(), "the request cannot be sent: it has no messages");
}

#[test]
fn a_body_that_says_nothing_about_the_answer_is_not_taken_for_one() {
    let body: Value = json!(["a"]);
    let (answer, _) = block(ask(vec![Reply::json(&body)], 1));
    let fault = answer.unwrap_err();
    assert!(fault.to_string().contains("it has no `choices`"), "{fault}");
}
