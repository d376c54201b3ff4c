//! Asking a test server with the client under test.

use serde_json::{Value, json};
use std::time::Duration;
use traderharness_connect::testing::{Reply, Server};
use traderharness_connect::{ChatCompletions, Endpoint, OpenAiClient, RetryPolicy, Secret};
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::{ModelClient, ModelError, Turn};
use traderharness_market::DecisionPoint;
use traderharness_replay::{Message, Request, Response};

pub(crate) const KEY: &str = "sk-planted/key+with=signs_0123456789";

pub(crate) fn turn() -> Turn {
    Turn { day_index: 2, point: DecisionPoint::PreMarket, iteration: 3 }
}

pub(crate) fn request() -> Request {
    let mut request = Request::new("model-1", "v5");
    request.messages = vec![Message::system("You trade."), Message::user("≥ 3% 股票 😀")];
    request
}

/// Attempts without waiting.
pub(crate) fn at_once(attempts: u32) -> RetryPolicy {
    RetryPolicy { attempts, first_pause: Duration::ZERO, ..RetryPolicy::default() }
}

pub(crate) fn endpoint(server: &Server) -> Endpoint {
    Endpoint::new(server.url(), Some(Secret::new(KEY)))
}

pub(crate) async fn ask_with(
    wire: ChatCompletions,
    endpoint: Endpoint,
    retry: RetryPolicy,
    request: &Request,
) -> Result<Response, ClientFault> {
    let mut client = OpenAiClient::new(wire, endpoint, retry).unwrap();
    match client.complete(request, turn()).await {
        Ok(response) => Ok(response),
        Err(ModelError::Client(fault)) => Err(fault),
        Err(other) => panic!("not a client's fault: {other}"),
    }
}

/// One request to a server with these replies.
pub(crate) async fn ask(replies: Vec<Reply>, attempts: u32) -> (Result<Response, ClientFault>, Server) {
    let server = Server::replies(replies).unwrap();
    let answer = ask_with(ChatCompletions::default(), endpoint(&server), at_once(attempts), &request()).await;
    (answer, server)
}

/// The same from a test without a runtime.
pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// An event of a stream.
pub(crate) fn event(choice: &Value) -> String {
    format!("data: {}\n\n", json!({"id": "a1", "model": "model-1-0301", "choices": [choice]}))
}

/// Events of deltas of the first choice and of the finish reason; no `[DONE]`.
pub(crate) fn stream(deltas: &[Value], finish_reason: &str) -> String {
    let mut text: String =
        deltas.iter().map(|delta| event(&json!({"index": 0, "delta": delta, "finish_reason": null}))).collect();
    text.push_str(&event(&json!({"index": 0, "delta": {}, "finish_reason": finish_reason})));
    text
}

pub(crate) fn whole(message: &Value, finish_reason: &str) -> Value {
    json!({"id": "a1", "model": "model-1-0301", "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})
}

/// What a test looks at: the message and why it ended.
pub(crate) fn seen(answer: Result<Response, ClientFault>) -> (Value, String) {
    let response = answer.unwrap();
    (response.message.0, response.finish_reason)
}
