//! Lines between us and an agent's process: one JSON object per line, UTF-8, line feed at the end. Ours go to its standard input, its
//! to its standard output; its standard error is for its own logs.
//!
//! | who | line | when |
//! |---|---|---|
//! | we | `{"type": "hello", "protocol": 1, "from": "traderharness"}` | first |
//! | agent | `{"type": "hello", "protocol": 1, "name": "..."}` | once, in answer to it |
//! | we | `{"type": "request", "id": 1, "turn": {"day_index": 0, "point": "pre_market", "iteration": 0}, "model", "contract_version", "sampling", "system", "tools", "messages"}` | for each turn; tools and messages in OpenAI chat shape, all of them every time |
//! | agent | `{"type": "answer", "id": 1, "content": "...", "tool_calls": [{"name": "...", "arguments": {..}}]}`, and if it likes `reasoning`, `finish_reason`, `usage` `{"input_tokens", "output_tokens"}` | once per request |
//! | agent | `{"type": "error", "id": 1, "message": "..."}` | instead of an answer; the run stops |
//! | agent | `{"type": "log", "message": "..."}` | at any time; shown to the person and forgotten |
//! | we | `{"type": "end"}`, then the input is closed | last |
//!
//! Ids count from 1. `id` of a call may be left out. Anything else the agent writes ends the run with an error that shows it.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use traderharness_harness::model::Turn;
use traderharness_replay::{Request, Usage};

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// A line of the agent.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    Hello {
        protocol: u32,
        #[serde(default)]
        name: String,
    },
    Answer {
        id: u64,
        #[serde(default)]
        content: Option<String>,
        #[serde(default)]
        tool_calls: Vec<Call>,
        #[serde(default)]
        reasoning: Option<String>,
        #[serde(default)]
        finish_reason: Option<String>,
        #[serde(default)]
        usage: Option<Tokens>,
    },
    Error {
        id: u64,
        message: String,
    },
    Log {
        message: String,
    },
}

/// A call; `arguments` is an object or its JSON text, which is not read here.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Tokens, when the agent counts them; whatever else it reports is kept.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self { input_tokens: tokens.input_tokens, output_tokens: tokens.output_tokens, extra: tokens.extra }
    }
}

pub(super) fn hello() -> Value {
    json!({ "type": "hello", "protocol": PROTOCOL, "from": "traderharness" })
}

pub(super) fn request(id: u64, request: &Request, turn: Turn) -> Value {
    json!({
        "type": "request",
        "id": id,
        "turn": { "day_index": turn.day_index, "point": turn.point.as_str(), "iteration": turn.iteration },
        "model": request.model,
        "contract_version": request.contract_version,
        "sampling": request.sampling,
        "system": request.system,
        "tools": request.tools,
        "messages": request.messages,
    })
}

pub(super) fn end() -> Value {
    json!({ "type": "end" })
}

/// The message of an answer, as a model server would give it.
pub(super) fn message(content: Option<&str>, calls: &[Call], reasoning: Option<&str>) -> Value {
    let call = |call: &Call| json!({ "id": call.id, "function": { "name": call.name, "arguments": call.arguments } });
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({ "role": "assistant", "content": content, "tool_calls": calls, "reasoning_content": reasoning })
}
