//! [`StyledClient`]: lets a model without calls of its own write them as text. Towards the loop it looks like any other client; towards
//! the model there are no tools, only a description of them, the model's own words, and results as text.
//!
//! The inner client gets the request as it is sent, so a client that records belongs inside: `StyledClient<ResumingClient<..>>`. The
//! translation follows from the request alone and keeps no state, so a recorded run is played again through the same style.

use crate::openai::Naming;
use async_trait::async_trait;
use serde_json::{Value, json};
use traderharness_contract::parse::{Answered, CallStyle, describe, parse, parse_message, place, results, write_call};
use traderharness_harness::model::{Asked, ModelClient, ModelError, Turn};
use traderharness_replay::{Message, Request, Response, ToolCall};

/// Parameters that mean nothing to a model that is offered no tools.
const NATIVE_ONLY: [&str; 2] = ["tool_choice", "parallel_tool_calls"];

/// A client whose model calls tools in a style.
#[derive(Debug)]
pub struct StyledClient<C> {
    inner: C,
    style: CallStyle,
}

impl<C> StyledClient<C> {
    /// A client over one that talks to the model. With [`CallStyle::Openai`] it changes nothing.
    pub const fn new(inner: C, style: CallStyle) -> Self {
        Self { inner, style }
    }

    /// The client inside, to finish a recording.
    pub fn into_inner(self) -> C {
        self.inner
    }
}

/// The request as a model of this style gets it.
pub fn as_sent(style: CallStyle, request: &Request) -> Request {
    if style == CallStyle::Openai {
        return request.clone();
    }
    let mut sent = Request::new(&request.model, &request.contract_version);
    sent.sampling = request.sampling.clone();
    sent.sampling.retain(|name, _| !NATIVE_ONLY.contains(&name.as_str()));
    sent.system = request.system.clone();
    let mut messages = conversation(style, request);
    if let Some(prompt) = describe(style, &request.tools) {
        match &mut sent.system {
            Some(system) if !system.contains(&prompt) => *system = format!("{system}\n\n{prompt}"),
            Some(_) => {}
            None => place(&prompt, &mut messages),
        }
    }
    sent.messages = messages.into_iter().map(Message).collect();
    sent
}

/// The answer as the loop reads it: the model's words as they are, and the calls in them as calls.
fn as_read(style: CallStyle, mut response: Response, request: &Request, turn: Turn) -> Response {
    let parsed = parse_message(style, &response.message.0, &response.finish_reason, &request.tools);
    let mut naming = Naming::new(request, turn);
    let named = |(index, call): (usize, traderharness_contract::parse::ParsedCall)| {
        ToolCall::new(naming.name(index, call.id), call.name, call.arguments)
    };
    let calls: Vec<ToolCall> = parsed.calls.into_iter().enumerate().map(named).collect();
    let words = response.message.content().unwrap_or_default().to_owned();
    response.message = Message::assistant(words, &calls);
    response
}

/// The messages without anything native in them.
fn conversation(style: CallStyle, request: &Request) -> Vec<Value> {
    let mut out = Vec::new();
    let mut pending: Vec<ToolCall> = Vec::new();
    let mut answers: Vec<(ToolCall, String)> = Vec::new();
    let mut notice = None;
    for message in &request.messages {
        if message.role() == "tool" {
            let id = message.tool_call_id().unwrap_or_default();
            let at = pending.iter().position(|call| call.id == id);
            let call = at.map_or_else(|| ToolCall::new(id, "unknown", ""), |at| pending.remove(at));
            answers.push((call, message.content().unwrap_or_default().to_owned()));
            continue;
        }
        flush(style, &mut answers, &mut notice, &mut out);
        if message.role() != "assistant" {
            out.push(message.0.clone());
            continue;
        }
        pending = message.tool_calls();
        let words = message.content().unwrap_or_default();
        notice = parse(style, words, &[], &request.tools).notice();
        let said = if words.trim().is_empty() { written(style, &pending) } else { words.to_owned() };
        out.push(json!({ "role": "assistant", "content": said }));
    }
    flush(style, &mut answers, &mut notice, &mut out);
    out
}

/// Results of the last answer, and what in it was not taken as a call.
fn flush(style: CallStyle, answers: &mut Vec<(ToolCall, String)>, notice: &mut Option<String>, out: &mut Vec<Value>) {
    let answered: Vec<Answered<'_>> = answers
        .iter()
        .map(|(call, text)| Answered { id: &call.id, name: &call.name, arguments: &call.arguments, text })
        .collect();
    out.extend(results(style, &answered));
    answers.clear();
    out.extend(notice.take().map(|text| json!({ "role": "user", "content": text })));
}

/// Calls of a message without words, as a model of this style would have written them.
fn written(style: CallStyle, calls: &[ToolCall]) -> String {
    let text = |call: &ToolCall| match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(arguments)) => write_call(style, &call.name, &arguments),
        _ => call.arguments.clone(),
    };
    calls.iter().map(text).collect::<Vec<_>>().join("\n")
}

#[async_trait]
impl<C: ModelClient> ModelClient for StyledClient<C> {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        if self.style == CallStyle::Openai {
            return self.inner.complete(request, turn).await;
        }
        let response = self.inner.complete(&as_sent(self.style, request), turn).await?;
        Ok(as_read(self.style, response, request, turn))
    }

    async fn complete_in(&mut self, scope: &str, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        if self.style == CallStyle::Openai {
            return self.inner.complete_in(scope, request, turn).await;
        }
        let response = self.inner.complete_in(scope, &as_sent(self.style, request), turn).await?;
        Ok(as_read(self.style, response, request, turn))
    }

    async fn complete_all(&mut self, asked: &[Asked<'_>]) -> Vec<Result<Response, ModelError>> {
        if self.style == CallStyle::Openai {
            return self.inner.complete_all(asked).await;
        }
        let sent: Vec<Request> = asked.iter().map(|one| as_sent(self.style, one.request)).collect();
        let inner: Vec<Asked<'_>> = asked.iter().zip(&sent).map(|(one, request)| Asked { request, ..*one }).collect();
        let answers = self.inner.complete_all(&inner).await;
        let read =
            |(one, answer): (&Asked<'_>, Result<Response, ModelError>)| Ok(as_read(self.style, answer?, one.request, one.turn));
        asked.iter().zip(answers).map(read).collect()
    }
}
