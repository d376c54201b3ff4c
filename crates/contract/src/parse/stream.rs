//! Putting a streamed answer together. Nothing is parsed before the stream has ended, and a stream that ends without a finish reason
//! runs nothing (complaints JR-1, JR-2).

use super::{CallStyle, Parsed, STREAM_CUT, parse_message};
use serde_json::{Map, Value, json};

/// Collects the deltas of one answer in OpenAI chat shape.
#[derive(Debug, Clone, Default)]
pub struct DeltaAccumulator {
    content: String,
    /// Fields that providers add, such as `reasoning_content`.
    extras: Map<String, Value>,
    calls: Vec<Building>,
    finish: Option<String>,
}

#[derive(Debug, Clone, Default)]
struct Building {
    index: u64,
    id: String,
    kind: String,
    name: String,
    arguments: String,
}

/// A streamed answer that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Streamed {
    /// The assistant message as it would have come in one piece. Calls hold what was received of them.
    pub message: Value,
    /// The provider's finish reason; [`STREAM_CUT`] when the stream ended without one.
    pub finish_reason: String,
}

impl Streamed {
    /// The calls of the answer; those of a cut answer are incomplete and never run.
    pub fn parse(&self, style: CallStyle, tools: &[Value]) -> Parsed {
        parse_message(style, &self.message, &self.finish_reason, tools)
    }
}

impl DeltaAccumulator {
    /// Nothing received yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a whole `chat.completion.chunk`: the delta and the finish reason of its choice 0. A chunk without choices (usage, keep-alive)
    /// changes nothing.
    pub fn push_chunk(&mut self, chunk: &Value) {
        let choices = chunk.get("choices").and_then(Value::as_array);
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or_default() == 0;
        if let Some(choice) = choices.into_iter().flatten().find(first) {
            let finish = choice.get("finish_reason").and_then(Value::as_str);
            self.push(choice.get("delta").unwrap_or(&Value::Null), finish);
        }
    }

    /// Takes one delta and, with the last one, the finish reason.
    pub fn push(&mut self, delta: &Value, finish_reason: Option<&str>) {
        if let Value::Object(fields) = delta {
            for (name, value) in fields {
                match name.as_str() {
                    "role" | "tool_calls" => {}
                    "content" => self.content.push_str(value.as_str().unwrap_or_default()),
                    _ => self.push_extra(name, value),
                }
            }
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.push_call(call);
        }
        if let Some(reason) = finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(reason.to_owned());
        }
    }

    /// A field that a provider adds: texts and lists grow, of anything else the last one stays.
    fn push_extra(&mut self, name: &str, value: &Value) {
        match (self.extras.get_mut(name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(held)), Value::String(text)) => held.push_str(text),
            (Some(Value::Array(held)), Value::Array(items)) => held.extend(items.iter().cloned()),
            _ => {
                self.extras.insert(name.to_owned(), value.clone());
            }
        }
    }

    fn push_call(&mut self, delta: &Value) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let function = delta.get("function");
        let id = text(delta.get("id"));
        let name = text(function.and_then(|f| f.get("name")));
        let place = self.place(delta.get("index").and_then(Value::as_u64), &id, &name);
        let Some(call) = self.calls.get_mut(place) else { return };
        if call.id.is_empty() {
            call.id = id;
        }
        if call.kind.is_empty() {
            call.kind = text(delta.get("type"));
        }
        call.name.push_str(&name);
        match function.and_then(|f| f.get("arguments")) {
            Some(Value::String(text)) => call.arguments.push_str(text),
            None | Some(Value::Null) => {}
            // Some servers send the object itself.
            Some(other) => call.arguments.push_str(&other.to_string()),
        }
    }

    /// The call a delta belongs to: the last one of its index, or without an index the last one at all. A delta that names a tool under
    /// another id begins a new call even under a used index: two calls are never run together into one.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let other = |call: &Building| !id.is_empty() && !call.id.is_empty() && call.id != id && !name.is_empty();
        let found = match index {
            Some(index) => self.calls.iter().rposition(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id || call.id.is_empty()),
        };
        if let Some(place) = found.filter(|place| !self.calls.get(*place).is_some_and(other)) {
            return place;
        }
        let next = self.calls.iter().map(|call| call.index.saturating_add(1)).max().unwrap_or_default();
        self.calls.push(Building { index: index.unwrap_or(next), ..Building::default() });
        self.calls.len() - 1
    }

    /// The answer, now that the stream has ended.
    pub fn finish(mut self) -> Streamed {
        self.calls.sort_by_key(|call| call.index);
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let content = if self.content.is_empty() && !self.calls.is_empty() { Value::Null } else { self.content.into() };
        message.insert("content".to_owned(), content);
        message.append(&mut self.extras);
        if !self.calls.is_empty() {
            let calls = self.calls.into_iter().map(|call| {
                let kind = if call.kind.is_empty() { "function" } else { &call.kind };
                json!({"id": call.id, "type": kind, "function": {"name": call.name, "arguments": call.arguments}})
            });
            message.insert("tool_calls".to_owned(), calls.collect());
        }
        Streamed { message: Value::Object(message), finish_reason: self.finish.unwrap_or_else(|| STREAM_CUT.to_owned()) }
    }
}
