//! What a server receives.

use crate::ask::{KEY, ask_with, at_once, block, endpoint, request, whole};
use serde_json::{Value, json};
use traderharness_connect::testing::{Received, Reply, Server};
use traderharness_connect::{ChatCompletions, Secret, SetupError};
use traderharness_connect::{Endpoint, OpenAiClient, RetryPolicy};
use traderharness_replay::request::function_tool;
use traderharness_replay::{Message, Request};

fn good() -> Reply {
    Reply::json(&whole(&json!({"role": "assistant", "content": "a"}), "stop"))
}

fn sent(wire: ChatCompletions, request: &Request) -> Received {
    let server = Server::replies([good()]).unwrap();
    block(ask_with(wire, endpoint(&server), at_once(1), request)).unwrap();
    server.received().remove(0)
}

#[test]
fn the_body_is_the_request_and_nothing_else() {
    let mut request = request();
    request.tools = vec![function_tool("a", "≥", &json!({"type": "object"}))];
    request.messages.push(Message::tool("c1", "{\"股票\": \"😀\"}"));
    request.sampling = json!({"temperature": 0.1, "tool_choice": "auto", "parallel_tool_calls": true, "seed": 7, "top_p": null})
        .as_object()
        .unwrap()
        .clone();
    let received = sent(ChatCompletions { stream: false, ..ChatCompletions::default() }, &request);
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/v1/chat/completions"));
    let expected = json!({"model": "model-1", "messages": request.messages, "tools": request.tools, "temperature": 0.1,
        "tool_choice": "auto", "parallel_tool_calls": true, "seed": 7, "top_p": null, "stream": false});
    assert_eq!(received.json(), expected);
    assert!(String::from_utf8(received.body).unwrap().contains("≥ 3% 股票 😀"), "texts are sent as UTF-8");
}

#[test]
fn a_system_prompt_apart_comes_first() {
    let mut request = request();
    request.messages.remove(0);
    request.system = Some("You trade.".to_owned());
    assert_eq!(
        sent(ChatCompletions::default(), &request).json()["messages"][0],
        json!({"role": "system", "content": "You trade."})
    );
}

#[test]
fn streaming_adds_its_two_fields() {
    let body = |wire| sent(wire, &request()).json();
    let fields = |body: &Value| (body.get("stream").cloned(), body.get("stream_options").cloned());
    assert_eq!(fields(&body(ChatCompletions::default())), (Some(json!(true)), Some(json!({"include_usage": true}))));
    let bare = ChatCompletions { stream_usage: false, ..ChatCompletions::default() };
    assert_eq!(fields(&body(bare)), (Some(json!(true)), None));
}

// spec/seeds.md B12.1
#[test]
fn without_tools_nothing_is_said_about_choosing_them() {
    let mut request = request();
    request.sampling = json!({"tool_choice": "auto", "parallel_tool_calls": true, "temperature": 0}).as_object().unwrap().clone();
    let body = sent(ChatCompletions::default(), &request).json();
    let names: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["model", "messages", "temperature", "stream", "stream_options"]);
}

#[test]
fn headers_are_sent_and_never_shown() {
    let server = Server::replies([good()]).unwrap();
    let mut endpoint = endpoint(&server);
    endpoint.organization = Some("org-1".to_owned());
    endpoint.headers = vec![("api-key".to_owned(), Secret::new("another-planted-secret-1"))];
    let shown = format!("{endpoint:?}");
    assert!(!shown.contains(KEY) && !shown.contains("another-planted"), "{shown}");
    block(ask_with(ChatCompletions::default(), endpoint, at_once(1), &request())).unwrap();
    let received = server.received().remove(0);
    assert_eq!(received.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(received.header("openai-organization"), Some("org-1"));
    assert_eq!(received.header("api-key"), Some("another-planted-secret-1"));
    assert_eq!(received.header("content-type"), Some("application/json"));
}

#[test]
fn what_cannot_be_used_is_said_before_anything_is_sent() {
    let check = |change: fn(&mut Endpoint), text: &str| {
        let mut endpoint = Endpoint::new("https://example.com/v1", Some(Secret::new(KEY)));
        change(&mut endpoint);
        let error: SetupError = OpenAiClient::new(ChatCompletions::default(), endpoint, RetryPolicy::default()).unwrap_err();
        assert_eq!(error.to_string(), text);
    };
    check(|e| e.key = Some(Secret::new(" \n")), "the key is empty");
    check(|e| e.key = Some(Secret::new("a\nb")), "the key holds characters that no header may hold");
    check(|e| e.headers = vec![("a b".to_owned(), Secret::new("x"))], "the header `a b` cannot be sent");
    check(|e| e.proxy = Some("::".to_owned()), "the proxy URL cannot be used");
    check(
        |e| e.base_url = "example.com".to_owned(),
        "`example....` is no base URL: it must be a whole URL, e.g. https://host/v1",
    );
}

#[test]
fn a_proxy_is_used_when_named() {
    let proxy = Server::replies([good()]).unwrap();
    let mut endpoint = Endpoint::new("http://model.invalid/v1", None);
    endpoint.proxy = Some(format!("http://{}", proxy.address()));
    block(ask_with(ChatCompletions::default(), endpoint, at_once(1), &request())).unwrap();
    let received = proxy.received().remove(0);
    assert_eq!(received.path, "http://model.invalid/v1/chat/completions");
    assert_eq!(received.header("authorization"), None);
}
