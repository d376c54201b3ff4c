//! [`ScriptedModel`]: a model server that speaks chat completions and plays a list of turns, one per new request. A request that came
//! before gets the answer it got before, so a run may retry, be killed and go on.

use super::reply::{Reply, completion, events};
use super::server::{Received, Server};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use traderharness_replay::{Fingerprint, Message, ToolCall};

/// What the model says and calls in one turn.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Turn {
    say: String,
    calls: Vec<Call>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    #[serde(default)]
    args: Value,
}

/// A running model server.
#[derive(Debug)]
pub struct ScriptedModel {
    server: Server,
}

impl ScriptedModel {
    /// Starts a server that plays `turns`: a list of `{say, calls: [{tool, args}]}`. After the last one it ends each decision point:
    /// it calls `complete_phase` where that is offered, else `finish_day`, else it only says so. It answers in pieces when asked to.
    ///
    /// # Errors
    /// When the turns are no such list, or no port can be had.
    pub fn start(turns: Value) -> io::Result<Self> {
        let turns: Vec<Turn> = serde_json::from_value(turns)?;
        let mut seen: Vec<Fingerprint> = Vec::new();
        let server = Server::start(move |received| {
            let body = received.json();
            let print = Fingerprint::of(&body);
            let at = seen.iter().position(|known| *known == print).unwrap_or(seen.len());
            if at == seen.len() {
                seen.push(print);
            }
            answer(received, &body, turns.get(at).cloned().unwrap_or_else(|| otherwise(&body)), at)
        })?;
        Ok(Self { server })
    }

    /// Base URL.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// What came so far, repeated requests too.
    pub fn received(&self) -> Vec<Received> {
        self.server.received()
    }
}

fn answer(received: &Received, body: &Value, turn: Turn, at: usize) -> Reply {
    if !received.path.ends_with("/chat/completions") {
        return Reply::status(404, &[], json!({"error": {"message": "no such address"}}).to_string());
    }
    let calls: Vec<ToolCall> = turn
        .calls
        .iter()
        .enumerate()
        .map(|(n, call)| {
            let arguments = if call.args.is_null() { json!({}) } else { call.args.clone() };
            ToolCall::new(format!("call-{}-{}", at + 1, n + 1), &call.tool, arguments.to_string())
        })
        .collect();
    let message = Message::assistant(turn.say, &calls).0;
    let finish_reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let (input, output) = (received.body.len() / 4, message.to_string().len() / 4);
    let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    if body.get("stream") == Some(&Value::Bool(true)) {
        return Reply::stream(events(&message, finish_reason, &usage));
    }
    Reply::json(&completion(&message, finish_reason, &usage))
}

fn otherwise(body: &Value) -> Turn {
    let tools = body.get("tools").and_then(Value::as_array);
    let names = || tools.into_iter().flatten().filter_map(|tool| tool.pointer("/function/name").and_then(Value::as_str));
    let call = |tool: &str, args: Value| Turn { say: String::new(), calls: vec![Call { tool: tool.to_owned(), args }] };
    if names().any(|name| name == "complete_phase") {
        return call("complete_phase", json!({"decision": "monitor", "summary": "No further action."}));
    }
    if names().any(|name| name == "finish_day") {
        return call("finish_day", json!({"summary": "No further action."}));
    }
    Turn { say: "No further action.".to_owned(), calls: Vec::new() }
}
