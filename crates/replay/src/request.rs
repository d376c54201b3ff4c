//! What goes to a model and what comes back. The parts stay JSON values, because the exact bytes are the product: nothing a
//! provider sent is dropped, nothing is added.

use crate::Fingerprint;
use crate::canonical::{CANONICAL_VERSION, Canonical, Hashing, Sink, write_object, write_string, write_value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One message in OpenAI chat shape: `role`, `content`, and where they apply `name`, `tool_calls`, `tool_call_id`.
/// Unknown fields (a provider's reasoning text, for example) are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message(pub Value);

impl Message {
    /// Instructions that stand above the conversation.
    pub fn system(content: impl Into<String>) -> Self {
        Self(json!({"role": "system", "content": content.into()}))
    }

    /// What the environment says to the model.
    pub fn user(content: impl Into<String>) -> Self {
        Self(json!({"role": "user", "content": content.into()}))
    }

    /// What the model said. With calls and an empty text, `content` is null, as providers send it.
    pub fn assistant(content: impl Into<String>, calls: &[ToolCall]) -> Self {
        let content = content.into();
        if calls.is_empty() {
            return Self(json!({"role": "assistant", "content": content}));
        }
        let content = if content.is_empty() { Value::Null } else { content.into() };
        Self(json!({
            "role": "assistant",
            "content": content,
            "tool_calls": calls.iter().map(ToolCall::to_value).collect::<Vec<_>>(),
        }))
    }

    /// The result of one tool call, under the id of that call.
    pub fn tool(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self(json!({"role": "tool", "tool_call_id": call_id.into(), "content": content.into()}))
    }

    /// Same message with a `name`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Value::Object(map) = &mut self.0 {
            map.insert("name".to_owned(), name.into().into());
        }
        self
    }

    /// `role`; empty when there is none.
    pub fn role(&self) -> &str {
        self.text("role").unwrap_or_default()
    }

    /// `content` when it is a text.
    pub fn content(&self) -> Option<&str> {
        self.text("content")
    }

    /// `tool_call_id` of a tool message.
    pub fn tool_call_id(&self) -> Option<&str> {
        self.text("tool_call_id")
    }

    /// The calls of an assistant message, in order, with their arguments as the model wrote them. A call without an id or
    /// name has an empty one; arguments that came as an object are given as its JSON text.
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        let calls = self.0.get("tool_calls").and_then(Value::as_array);
        calls.into_iter().flatten().map(ToolCall::from_value).collect()
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }
}

impl From<Message> for Value {
    fn from(message: Message) -> Self {
        message.0
    }
}

/// One call in an assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Id the result is sent back under.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Arguments as the model wrote them: JSON text, not checked.
    pub arguments: String,
}

impl ToolCall {
    /// A call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    fn to_value(&self) -> Value {
        json!({"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}})
    }

    fn from_value(value: &Value) -> Self {
        let text = |value: Option<&Value>| match value {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let function = value.get("function");
        Self {
            id: text(value.get("id")),
            name: text(function.and_then(|f| f.get("name"))),
            arguments: text(function.and_then(|f| f.get("arguments"))),
        }
    }
}

/// A tool as it is offered to the model, in OpenAI chat shape.
pub fn function_tool(name: &str, description: &str, parameters: &Value) -> Value {
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
}

/// Name of an offered tool; `None` when the value has no name where one belongs.
pub(crate) fn tool_name(tool: &Value) -> Option<&str> {
    tool.get("function").unwrap_or(tool).get("name").and_then(Value::as_str)
}

/// Everything a model is asked with. What is not in here cannot be part of the fingerprint, so everything a provider is
/// sent belongs in here; keys and addresses never do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Model name as the provider knows it.
    pub model: String,
    /// Contract version the tools and messages follow, e.g. `v5`.
    pub contract_version: String,
    /// Sampling parameters and all further parameters of the call (`temperature`, `tool_choice`, `response_format` ...).
    pub sampling: Map<String, Value>,
    /// System prompt, for providers that take it apart from the messages. `None` when it is one of `messages`.
    pub system: Option<String>,
    /// Tools offered, in order.
    pub tools: Vec<Value>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
}

impl Request {
    /// A request without sampling parameters, tools and messages.
    pub fn new(model: impl Into<String>, contract_version: impl Into<String>) -> Self {
        Self { model: model.into(), contract_version: contract_version.into(), ..Self::default() }
    }

    /// The fingerprint: SHA-256 over the canonical form of the whole request and the version of that form.
    pub fn fingerprint(&self) -> Fingerprint {
        // The canonical form of `fingerprint_body`, written without a copy of the conversation; the keys are in its order.
        let mut out = Hashing::new();
        out.put(&format!("{{\"canonical_version\":{CANONICAL_VERSION},\"contract_version\":"));
        write_string(&self.contract_version, &mut out);
        out.put(",\"messages\":");
        write_list(self.messages.iter().map(|message| &message.0), &mut out);
        out.put(",\"model\":");
        write_string(&self.model, &mut out);
        out.put(",\"sampling\":");
        write_object(&self.sampling, &Canonical, &mut out);
        out.put(",\"system\":");
        match &self.system {
            Some(system) => write_string(system, &mut out),
            None => out.put("null"),
        }
        out.put(",\"tools\":");
        write_list(self.tools.iter(), &mut out);
        out.put("}");
        out.finish()
    }

    /// The value the fingerprint is taken over: all six fields, always present, and `canonical_version`.
    pub fn fingerprint_body(&self) -> Value {
        json!({
            "canonical_version": CANONICAL_VERSION,
            "contract_version": self.contract_version,
            "messages": self.messages,
            "model": self.model,
            "sampling": self.sampling,
            "system": self.system,
            "tools": self.tools,
        })
    }
}

fn write_list<'a>(items: impl Iterator<Item = &'a Value>, out: &mut Hashing) {
    out.put("[");
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.put(",");
        }
        write_value(item, &Canonical, out);
    }
    out.put("]");
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The assistant message, as received.
    pub message: Message,
    /// Why the model stopped: `stop`, `tool_calls`, `length` ...
    #[serde(default)]
    pub finish_reason: String,
    /// Tokens, when the provider told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the model thought before it answered, when the provider shows it apart from the answer. It is kept for the record and
    /// is no part of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tokens of the request and of the answer, when the server gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenRecord>,
    /// What the provider says of itself: the model that answered, `system_fingerprint`, the id of the answer.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub served: Map<String, Value>,
}

/// Tokens as the server counted them, for training on exactly what was sampled. No text is tokenised here: what the server does not
/// give is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenRecord {
    /// Token ids of the whole prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_ids: Option<Vec<u64>>,
    /// Token ids of the answer, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<u64>>,
    /// One entry per token of the answer as the provider writes it: `token`, `logprob` (natural logarithm), `bytes`, `top_logprobs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<Value>>,
}

impl Response {
    /// An answer without usage; the finish reason follows from the message.
    pub fn new(message: Message) -> Self {
        let finish_reason = if message.tool_calls().is_empty() { "stop" } else { "tool_calls" };
        Self { message, finish_reason: finish_reason.to_owned(), usage: None, reasoning: None, tokens: None, served: Map::new() }
    }
}

/// Tokens of one call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// What else the provider reports (cached tokens, reasoning tokens ...).
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Usage {
    /// Tokens of the request that the provider had in its cache; `None` when it does not tell.
    pub fn cached_tokens(&self) -> Option<u64> {
        const NAMES: [&str; 5] = [
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cache_read_input_tokens",
            "/cached_tokens",
        ];
        self.first(&NAMES)
    }

    /// Tokens of the answer that were thought and not said; `None` when the provider does not tell.
    pub fn reasoning_tokens(&self) -> Option<u64> {
        const NAMES: [&str; 3] =
            ["/completion_tokens_details/reasoning_tokens", "/output_tokens_details/reasoning_tokens", "/reasoning_tokens"];
        self.first(&NAMES)
    }

    fn first(&self, pointers: &[&str]) -> Option<u64> {
        let at = |pointer: &str| {
            let mut path = pointer.split('/').skip(1);
            let start = self.extra.get(path.next()?)?;
            path.try_fold(start, |value, name| value.get(name))?.as_u64()
        };
        pointers.iter().find_map(|pointer| at(pointer))
    }
}
