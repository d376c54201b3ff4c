//! A model server for agent programs that bring a loop of their own: it plays a list of tool calls, one per request, in the two dialects
//! such programs speak (Anthropic's messages, OpenAI's responses), and keeps what the model was shown. It decides nothing.

use serde_json::{Value, json};
use traderharness_connect::testing::{Received, Reply, Server};

/// What the model says when no call is left.
pub(super) const LAST_WORDS: &str = "The day is over.";

/// A call the model makes: the tool as our door names it, and its arguments.
pub(super) type Call = (&'static str, Value);

/// What came back to the model for a call.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) tool: String,
    /// Whether the program marked it as a failure; OpenAI's dialect has no such mark.
    pub(super) failed: Option<bool>,
    pub(super) text: String,
}

/// A running server.
pub(super) struct Scripted(Server);

impl Scripted {
    /// Plays `calls` on the tools of the MCP server that the program knows as `name`.
    pub(super) fn start(name: &'static str, calls: Vec<Call>) -> Self {
        let answer = move |received: &Received| {
            let body = received.json();
            match received.path.split('?').next() {
                Some("/v1/messages") => messages(name, &calls, &body),
                Some("/v1/responses") => responses(name, &calls, &body),
                _ => Reply::json(&json!({ "data": [], "input_tokens": 1 })),
            }
        };
        Self(Server::start(answer).unwrap())
    }

    /// Address without a path.
    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.0.address())
    }

    /// Requests for a turn, in their order. What a program asks beside its conversation brings no tools along.
    fn turns(&self) -> Vec<Value> {
        let bodies = self.0.received().into_iter().map(|received| received.json());
        bodies.filter(|body| body["tools"].as_array().is_some_and(|tools| !tools.is_empty())).collect()
    }

    /// The first request as text: what the model knows before it does anything.
    pub(super) fn first(&self) -> String {
        self.turns().first().map(Value::to_string).unwrap_or_default()
    }

    /// Names of the tools that the first request brought, as the program gave them; those of a namespace stand behind its name.
    pub(super) fn tools(&self) -> Vec<String> {
        let turns = self.turns();
        let tools = turns.first().and_then(|body| body["tools"].as_array()).into_iter().flatten();
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        tools
            .flat_map(|tool| match tool["tools"].as_array() {
                Some(inner) => inner.iter().map(|t| format!("{}__{}", name(tool), name(t))).collect(),
                None => vec![name(tool)],
            })
            .collect()
    }

    /// What came back for every call, in their order.
    pub(super) fn told(&self) -> Vec<Told> {
        let turns = self.turns();
        let Some(last) = turns.last() else { return Vec::new() };
        let (calls, results) = conversation(last);
        let told = |result: &Value, id: &str| {
            let call = calls.iter().find(|call| call[id] == result[id] || call["id"] == result[id]);
            let content = result.get("content").or_else(|| result.get("output")).unwrap_or(&Value::Null);
            Told {
                tool: call.and_then(|call| call["name"].as_str()).unwrap_or_default().to_owned(),
                failed: last.get("messages").map(|_| result["is_error"] == true),
                text: text(content),
            }
        };
        let id = if last.get("messages").is_some() { "tool_use_id" } else { "call_id" };
        results.iter().map(|result| told(result, id)).collect()
    }
}

/// Text of a result: a string, or blocks of text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// Calls and results of a conversation so far.
fn conversation(body: &Value) -> (Vec<Value>, Vec<Value>) {
    let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
    let items: Vec<Value> = match body["messages"].as_array() {
        Some(messages) => messages.iter().flat_map(blocks).collect(),
        None => body["input"].as_array().cloned().unwrap_or_default(),
    };
    let of = |kinds: [&str; 2]| {
        items.iter().filter(|item| kinds.iter().any(|kind| item["type"] == *kind)).cloned().collect::<Vec<Value>>()
    };
    (of(["tool_use", "function_call"]), of(["tool_result", "function_call_output"]))
}

fn stream(events: &[Value]) -> Reply {
    let lines = events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()));
    Reply::stream(lines.collect::<String>())
}

fn messages(server: &str, calls: &[Call], body: &Value) -> Reply {
    let at = conversation(body).1.len();
    // A request without tools is a chore of the program, such as a title.
    let call = calls.get(at).filter(|_| body["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let (block, delta, stop) = match call {
        Some((tool, arguments)) => (
            json!({"type": "tool_use", "id": format!("toolu_{at:04}"), "name": format!("mcp__{server}__{tool}"), "input": {}}),
            json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
            "tool_use",
        ),
        None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": LAST_WORDS}), "end_turn"),
    };
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let message = json!({"id": format!("msg_{at}"), "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    stream(&[
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ])
}

fn responses(server: &str, calls: &[Call], body: &Value) -> Reply {
    let at = conversation(body).1.len();
    let item = match calls.get(at) {
        Some((tool, arguments)) => json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"),
            "namespace": format!("mcp__{server}"), "name": tool, "arguments": arguments.to_string(), "status": "completed"}),
        None => json!({"type": "message", "id": "msg_0", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": LAST_WORDS, "annotations": []}]}),
    };
    let id = format!("resp_{at}");
    let usage = json!({"input_tokens": 10, "output_tokens": 1, "total_tokens": 11});
    stream(&[
        json!({"type": "response.created", "response": {"id": id}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "usage": usage}}),
    ])
}
