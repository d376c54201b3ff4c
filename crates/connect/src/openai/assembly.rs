//! [`Assembly`]: one answer out of the pieces it came in. Names and arguments are put together, never read: a call that was cut stays
//! cut, and nothing is completed, repaired or dropped (spec/seeds.md A6.4, complaints JR-1, JR-2).

use super::Naming;
use serde_json::{Map, Value, json};
use traderharness_contract::arguments::parse_arguments;
use traderharness_contract::parse::{STREAM_CUT, is_cut};
use traderharness_harness::client_fault::ClientFault;
use traderharness_replay::{Message, Response, TokenRecord, Usage};

/// Calls of one answer. More is a server gone wrong.
const MOST_CALLS: usize = 512;

/// Where servers put arguments, the usual place first (spec/seeds.md A6.4).
const ARGUMENT_FIELDS: [&str; 3] = ["arguments", "arguments_json", "args"];

/// An answer that is being put together.
#[derive(Debug)]
pub(super) struct Assembly {
    naming: Naming,
    keep_reasoning: bool,
    content: Option<String>,
    reasoning: String,
    refusal: String,
    calls: Vec<Slot>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    tokens: TokenRecord,
    served: Map<String, Value>,
    /// A choice came, however empty.
    answered: bool,
}

/// One call that is being put together.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
    /// What else the provider put there and wants back (signatures of thoughts, for example).
    extra: Map<String, Value>,
}

impl Assembly {
    pub(super) fn new(naming: Naming, keep_reasoning: bool) -> Self {
        Self {
            naming,
            keep_reasoning,
            content: None,
            reasoning: String::new(),
            refusal: String::new(),
            calls: Vec::new(),
            finish_reason: None,
            usage: None,
            tokens: TokenRecord::default(),
            served: Map::new(),
            answered: false,
        }
    }

    /// The server said that the answer is whole and not why it stopped. That is only believed of calls that are whole themselves: without
    /// a reason, empty arguments may be the beginning of some.
    pub(super) fn end_without_reason(&mut self) {
        if self.finish_reason.is_none() {
            let whole = |slot: &Slot| slot.arguments.trim_start().starts_with('{') && parse_arguments(&slot.arguments).is_ok();
            let reason = match self.calls.as_slice() {
                [] => "stop",
                calls if calls.iter().all(whole) => "tool_calls",
                _ => STREAM_CUT,
            };
            self.finish_reason = Some(reason.to_owned());
        }
    }

    /// Whether the server said why it stopped: nothing but counts comes after that.
    pub(super) fn is_stopped(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// Whether a choice came.
    pub(super) fn is_answered(&self) -> bool {
        self.answered
    }

    /// Takes one object of a stream, or the one object of a whole answer.
    pub(super) fn take(&mut self, object: &Value) -> Result<(), ClientFault> {
        for field in ["id", "model", "system_fingerprint", "provider"] {
            if let Some(text) = object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()) {
                self.served.insert(field.to_owned(), text.into());
            }
        }
        if let Some(usage) = object.get("usage").and_then(usage) {
            self.usage = Some(usage);
        }
        if let Some(ids) = object.get("prompt_token_ids").and_then(ids) {
            self.tokens.prompt_ids = Some(ids);
        }
        let choices = object.get("choices").and_then(Value::as_array);
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let Some(choice) = choices.into_iter().flatten().find(first) else { return Ok(()) };
        self.answered = true;
        match (choice.get("delta").filter(|delta| delta.is_object()), choice.get("message")) {
            (Some(delta), _) => self.piece(delta)?,
            (None, Some(message)) => self.whole(message)?,
            (None, None) => {}
        }
        if let Some(usage) = choice.get("usage").and_then(usage) {
            self.usage = Some(usage);
        }
        self.take_tokens(choice);
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(())
    }

    /// Takes a piece of a streamed message.
    fn piece(&mut self, delta: &Value) -> Result<(), ClientFault> {
        self.take_texts(delta);
        for call in list(delta, "tool_calls") {
            self.call_piece(call)?;
        }
        if let Some(call) = delta.get("function_call").filter(|call| call.is_object()) {
            self.call_piece(&json!({ "index": 0, "function": call }))?;
        }
        Ok(())
    }

    /// Takes a message in one piece.
    fn whole(&mut self, message: &Value) -> Result<(), ClientFault> {
        if self.content.is_some() || !self.calls.is_empty() {
            // Some servers repeat the whole message at the end of a stream.
            return Ok(());
        }
        self.take_texts(message);
        for call in list(message, "tool_calls") {
            let slot = self.open(None)?;
            slot.add(call);
        }
        if let Some(call) = message.get("function_call").filter(|call| call.is_object() && self.calls.is_empty()) {
            self.open(None)?.add(&json!({ "function": call }));
        }
        Ok(())
    }

    fn take_texts(&mut self, message: &Value) {
        let mut thought = Vec::new();
        match message.get("content") {
            Some(Value::String(text)) => self.content.get_or_insert_default().push_str(text),
            // Content in parts: texts are the answer, thoughts are not.
            Some(Value::Array(parts)) => {
                for part in parts {
                    match part.get("type").and_then(Value::as_str) {
                        Some("thinking" | "reasoning") => thought.push(part_text(part)),
                        _ => self.content.get_or_insert_default().push_str(&part_text(part)),
                    }
                }
            }
            _ => {}
        }
        let text = |name: &str| message.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        // Servers that send both names send the same text twice.
        match text("reasoning_content").or_else(|| text("reasoning")) {
            Some(text) => self.reasoning.push_str(text),
            None => thought.extend(list(message, "reasoning_details").map(part_text)),
        }
        self.reasoning.extend(thought);
        self.refusal.push_str(text("refusal").unwrap_or_default());
    }

    fn call_piece(&mut self, call: &Value) -> Result<(), ClientFault> {
        let index = call.get("index").and_then(Value::as_u64);
        let id = id(call);
        let named = name(call).is_some_and(|name| !name.is_empty());
        let known = match (index, &id) {
            (Some(index), _) => self.calls.iter().rposition(|slot| slot.index == Some(index)),
            (None, Some(id)) => self.calls.iter().rposition(|slot| slot.id.as_ref() == Some(id)),
            (None, None) if named => None,
            (None, None) => self.calls.len().checked_sub(1),
        };
        let slot = match known.and_then(|at| self.calls.get_mut(at)) {
            // Servers that write index 0 for every call tell them apart by a new id and a name.
            Some(slot) if !(named && id.is_some() && slot.id.is_some() && slot.id != id) => slot,
            _ => self.open(index)?,
        };
        slot.add(call);
        Ok(())
    }

    fn open(&mut self, index: Option<u64>) -> Result<&mut Slot, ClientFault> {
        if self.calls.len() >= MOST_CALLS {
            return Err(ClientFault::Malformed { what: format!("it holds more than {MOST_CALLS} tool calls") });
        }
        self.calls.push(Slot { index, ..Slot::default() });
        let last = self.calls.last_mut();
        last.ok_or_else(|| ClientFault::Malformed { what: "it holds no tool call".to_owned() })
    }

    fn take_tokens(&mut self, choice: &Value) {
        if let Some(ids) = choice.get("token_ids").and_then(ids) {
            self.tokens.ids.get_or_insert_default().extend(ids);
        }
        if let Some(ids) = choice.get("prompt_token_ids").and_then(ids) {
            self.tokens.prompt_ids = Some(ids);
        }
        if let Some(entries) = choice.pointer("/logprobs/content").and_then(Value::as_array) {
            self.tokens.logprobs.get_or_insert_default().extend(entries.iter().cloned());
        }
    }

    /// The answer.
    pub(super) fn finish(mut self) -> Response {
        // Pieces of different calls may come mixed; their numbers say the order. Calls without a number stay where they came.
        if self.calls.iter().all(|slot| slot.index.is_some()) {
            self.calls.sort_by_key(|slot| slot.index);
        }
        // No text is no proof that there are no arguments: what stands there instead is the beginning of an object, which no gate takes.
        let cut = self.finish_reason.as_deref().is_some_and(is_cut);
        let calls: Vec<Value> = self
            .calls
            .into_iter()
            .enumerate()
            .map(|(at, mut slot)| {
                if cut && slot.arguments.trim().is_empty() {
                    slot.arguments = "{".to_owned();
                }
                let mut call = Map::new();
                call.insert("id".to_owned(), self.naming.name(at, slot.id).into());
                call.insert("type".to_owned(), "function".into());
                call.insert("function".to_owned(), json!({ "name": slot.name, "arguments": slot.arguments }));
                call.extend(slot.extra);
                call.into()
            })
            .collect();
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let content = self.content.unwrap_or_default();
        let silent = content.is_empty() && !calls.is_empty();
        message.insert("content".to_owned(), if silent { Value::Null } else { content.into() });
        if !self.refusal.is_empty() {
            message.insert("refusal".to_owned(), self.refusal.into());
        }
        if self.keep_reasoning && !self.reasoning.is_empty() {
            message.insert("reasoning_content".to_owned(), self.reasoning.as_str().into());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        let mut response = Response::new(Message(message.into()));
        response.finish_reason = self.finish_reason.unwrap_or_default();
        response.usage = self.usage;
        response.reasoning = (!self.reasoning.is_empty()).then_some(self.reasoning);
        response.tokens = (self.tokens != TokenRecord::default()).then_some(self.tokens);
        response.served = self.served;
        response
    }
}

impl Slot {
    fn add(&mut self, call: &Value) {
        if self.id.is_none() {
            self.id = id(call);
        }
        if let Some(name) = name(call) {
            // Some servers repeat the whole name with every piece.
            if self.name != name {
                self.name.push_str(name);
            }
        }
        if let Some(arguments) = arguments(call) {
            self.arguments.push_str(&arguments);
        }
        let known = ["id", "call_id", "index", "type", "function", "name"];
        for (field, value) in call.as_object().into_iter().flatten() {
            let ours = known.contains(&field.as_str()) || ARGUMENT_FIELDS.contains(&field.as_str());
            if !ours && !value.is_null() {
                self.extra.insert(field.clone(), value.clone());
            }
        }
    }
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Text of a part of a content list; parts inside of parts are joined.
fn part_text(part: &Value) -> String {
    match part {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part_text).collect(),
        Value::Object(part) => {
            ["text", "thinking", "summary"].iter().find_map(|name| part.get(*name)).map_or_else(String::new, part_text)
        }
        _ => String::new(),
    }
}

fn id(call: &Value) -> Option<String> {
    let text = |name: &str| match call.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    text("id").or_else(|| text("call_id"))
}

fn name(call: &Value) -> Option<&str> {
    let inner = call.get("function").and_then(|function| function.get("name")).and_then(Value::as_str);
    inner.or_else(|| call.get("name").and_then(Value::as_str))
}

/// The first arguments that are not empty; JSON that came as a value is given as its text.
fn arguments(call: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        other => Some(other.to_string()),
    };
    let inner = call.get("function").and_then(|function| function.get("arguments")).and_then(text);
    inner.or_else(|| ARGUMENT_FIELDS.iter().find_map(|field| call.get(*field).and_then(text)))
}

/// Token counts; `None` unless both directions are there as whole numbers. All else the provider reports is kept as it came.
fn usage(value: &Value) -> Option<Usage> {
    let fields = value.as_object()?;
    let count = |names: [&str; 2]| names.iter().find_map(|name| fields.get(*name)).and_then(Value::as_u64);
    let (input_tokens, output_tokens) =
        (count(["prompt_tokens", "input_tokens"])?, count(["completion_tokens", "output_tokens"])?);
    let own = ["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"];
    let extra = fields.iter().filter(|(name, value)| !own.contains(&name.as_str()) && !value.is_null());
    Some(Usage { input_tokens, output_tokens, extra: extra.map(|(name, value)| (name.clone(), value.clone())).collect() })
}

fn ids(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}
