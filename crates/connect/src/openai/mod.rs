//! The chat completions format of OpenAI and of the many servers that speak it. What it sends is the request as it is fingerprinted;
//! only the two fields of streaming are added, and fields that mean nothing without tools are left out where there are none.

mod assembly;
mod naming;
mod reader;
pub(crate) mod refusal;

use crate::wire::{AnswerReader, WireFormat};
use assembly::Assembly;
pub(crate) use naming::Naming;
use reader::ChatReader;
use serde_json::{Map, Value, json};
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::Turn;
use traderharness_replay::{Request, Response};

/// Fields of a request that are not sampling parameters.
const OWN_FIELDS: [&str; 5] = ["model", "messages", "tools", "stream", "stream_options"];

/// Parameters that servers refuse when no tools are offered.
const WITH_TOOLS_ONLY: [&str; 2] = ["tool_choice", "parallel_tool_calls"];

/// `POST .../chat/completions`.
#[derive(Debug, Clone)]
pub struct ChatCompletions {
    /// Ask for the answer in pieces. A server that answers in one piece all the same is understood, and the other way round.
    pub stream: bool,
    /// Ask for the token counts of a streamed answer (`stream_options.include_usage`). A few servers refuse the field.
    pub stream_usage: bool,
    /// Put the model's thoughts into its message (`reasoning_content`), so that later requests hold them. Some servers ask for it when
    /// a thinking model calls tools; others refuse it. The record keeps them either way.
    pub keep_reasoning: bool,
}

impl Default for ChatCompletions {
    fn default() -> Self {
        Self { stream: true, stream_usage: true, keep_reasoning: false }
    }
}

impl WireFormat for ChatCompletions {
    fn path(&self) -> &'static str {
        "chat/completions"
    }

    fn body(&self, request: &Request) -> Result<Map<String, Value>, ClientFault> {
        let unsendable = |what: String| ClientFault::Unsendable { what };
        if let Some(field) = OWN_FIELDS.iter().find(|field| request.sampling.contains_key(**field)) {
            return Err(unsendable(format!("`{field}` is no sampling parameter; it is set from the run itself")));
        }
        if request.sampling.get("n").is_some_and(|n| n.as_u64() != Some(1)) {
            return Err(unsendable("`n` must be 1: one answer is read".to_owned()));
        }
        let system = request.system.iter().map(|text| json!({ "role": "system", "content": text }));
        let messages: Vec<Value> = system.chain(request.messages.iter().map(|message| message.0.clone())).collect();
        if messages.is_empty() {
            return Err(unsendable("it has no messages".to_owned()));
        }
        let mut body = Map::new();
        body.insert("model".to_owned(), request.model.as_str().into());
        body.insert("messages".to_owned(), messages.into());
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), request.tools.clone().into());
        }
        for (name, value) in &request.sampling {
            if !(request.tools.is_empty() && WITH_TOOLS_ONLY.contains(&name.as_str())) {
                body.insert(name.clone(), value.clone());
            }
        }
        body.insert("stream".to_owned(), self.stream.into());
        if self.stream && self.stream_usage {
            body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
        }
        Ok(body)
    }

    fn reader(&self, request: &Request, turn: Turn) -> Box<dyn AnswerReader> {
        Box::new(ChatReader::new(Assembly::new(Naming::new(request, turn), self.keep_reasoning)))
    }
}

/// The response for a message in one piece, with the ids of its calls settled.
pub(crate) fn response_of(
    message: &Value,
    finish_reason: Option<&str>,
    request: &Request,
    turn: Turn,
) -> Result<Response, ClientFault> {
    let mut assembly = Assembly::new(Naming::new(request, turn), false);
    assembly.take(&json!({ "choices": [{ "message": message, "finish_reason": finish_reason }] }))?;
    let response = assembly.finish();
    // Without a reason, it follows from the message.
    let finish_reason = finish_reason.map_or_else(|| Response::new(response.message.clone()).finish_reason, str::to_owned);
    Ok(Response { finish_reason, ..response })
}
