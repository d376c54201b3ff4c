//! [`Reply`]: what a test server does with one connection, step by step, down to the single byte.

use serde_json::{Value, json};
use std::time::Duration;

/// One step of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Writes bytes in one go.
    Send(Vec<u8>),
    /// Writes every byte on its own, with a pause after each.
    Drip(Vec<u8>, Duration),
    /// Writes the same bytes with a pause after each time until the client goes.
    Repeat(Vec<u8>, Duration),
    /// Says nothing more until the client goes.
    Hold,
    /// Breaks the connection with a reset.
    Reset,
}

/// What the server does after it has read a request. After the last step the connection is closed in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply(pub Vec<Act>);

impl Reply {
    /// Raw bytes, status line and all.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self(vec![Act::Send(bytes.into())])
    }

    /// A whole response with its length.
    pub fn status(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = head(status, headers);
        bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
        bytes.extend_from_slice(body);
        Self::raw(bytes)
    }

    /// Status 200 and a JSON body.
    pub fn json(body: &Value) -> Self {
        Self::status(200, &[("Content-Type", "application/json")], body.to_string())
    }

    /// The beginning of a streamed answer: headers without a length, so that the end of the connection ends it.
    pub fn stream(body: impl Into<Vec<u8>>) -> Self {
        let mut bytes = head(200, &[("Content-Type", "text/event-stream")]);
        bytes.extend(b"\r\n");
        bytes.extend(body.into());
        Self::raw(bytes)
    }

    /// The same with the chunks of chunked encoding as they are given; `end` writes the last chunk.
    pub fn chunked(chunks: &[&[u8]], end: bool) -> Self {
        let mut bytes = head(200, &[("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]);
        bytes.extend(b"\r\n");
        for chunk in chunks {
            bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend(b"\r\n");
        }
        if end {
            bytes.extend(b"0\r\n\r\n");
        }
        Self::raw(bytes)
    }

    /// One more step.
    #[must_use]
    pub fn then(mut self, act: Act) -> Self {
        self.0.push(act);
        self
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Test\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.into_bytes()
}

/// An answer of chat completions in one piece.
pub(super) fn completion(message: &Value, finish_reason: &str, usage: &Value) -> Value {
    json!({"id": "answer", "object": "chat.completion", "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], "usage": usage})
}

/// The events of the same answer, its texts cut into short pieces.
pub(super) fn events(message: &Value, finish_reason: &str, usage: &Value) -> String {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let text = message.get("content").and_then(Value::as_str).unwrap_or_default();
    deltas.extend(pieces(text).map(|piece| json!({ "content": piece })));
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for (index, call) in calls.into_iter().flatten().enumerate() {
        let function = call.get("function").cloned().unwrap_or_default();
        let arguments = function.get("arguments").and_then(Value::as_str).unwrap_or_default();
        deltas.push(json!({"tool_calls": [{"index": index, "id": call.get("id"), "type": "function",
            "function": {"name": function.get("name"), "arguments": ""}}]}));
        deltas.extend(pieces(arguments).map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
    }
    let event = |choices: Value, usage: &Value| {
        let object =
            json!({"id": "answer", "object": "chat.completion.chunk", "model": "scripted", "choices": choices, "usage": usage});
        format!("data: {object}\n\n")
    };
    let mut text = String::from(": scripted\n\n");
    text.extend(
        deltas.into_iter().map(|delta| event(json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null)),
    );
    text.push_str(&event(json!([{"index": 0, "delta": {}, "finish_reason": finish_reason}]), &Value::Null));
    text.push_str(&event(json!([]), usage));
    text.push_str("data: [DONE]\n\n");
    text
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(7).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}
