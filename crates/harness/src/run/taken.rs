//! The calls of an answer, as the loop takes them: in normal form, none of them invented and none run that may not be whole
//! ([`traderharness_contract::parse`]). What was received stays in the records as it came; the conversation differs from it only where
//! a call has no id that its result could be given under.

use crate::model::Turn;
use serde_json::Value;
use traderharness_contract::parse::{CallStyle, parse_message};
use traderharness_replay::{Message, Response, ToolCall};

/// What the loop makes of an answer.
#[derive(Debug)]
pub(super) struct Taken {
    /// The answer as it stands in the conversation.
    pub(super) said: Message,
    /// Its calls, in order. The arguments of a call that was cut are such that they are refused.
    pub(super) calls: Vec<ToolCall>,
    /// Its words, without thinking and without calls.
    pub(super) words: String,
}

/// Takes the calls of the answer to a request that offered `tools`.
pub(super) fn taken(response: &Response, tools: &[Value], turn: Turn) -> Taken {
    let parsed = parse_message(CallStyle::Openai, &response.message.0, &response.finish_reason, tools);
    let mut ids: Vec<String> = parsed.calls.iter().filter_map(|call| call.id.clone()).collect();
    let mut nameless = false;
    let mut calls = Vec::with_capacity(parsed.calls.len());
    for (index, call) in parsed.calls.into_iter().enumerate() {
        let id = call.id.unwrap_or_else(|| {
            nameless = true;
            let own = format!("{}-{}-{}", turn.point, turn.iteration + 1, index + 1);
            let id = if ids.contains(&own) { format!("{own}-own-{}", ids.len()) } else { own };
            ids.push(id.clone());
            id
        });
        calls.push(ToolCall::new(id, call.name, call.arguments));
    }
    let said = if nameless { with_ids(&response.message, &calls) } else { response.message.clone() };
    Taken { said, calls, words: parsed.text }
}

/// The message with its calls under their ids, also those that were written in another form.
fn with_ids(message: &Message, calls: &[ToolCall]) -> Message {
    let mut said = message.clone();
    let Value::Object(fields) = &mut said.0 else { return said };
    let Some(Value::Array(ours)) = Message::assistant("", calls).0.get("tool_calls").cloned() else { return said };
    match fields.get_mut("tool_calls") {
        Some(Value::Array(theirs)) if theirs.len() == ours.len() => {
            for ((theirs, ours), call) in theirs.iter_mut().zip(ours).zip(calls) {
                match theirs {
                    Value::Object(entry) => {
                        entry.insert("id".to_owned(), call.id.as_str().into());
                    }
                    other => *other = ours,
                }
            }
        }
        _ => {
            fields.remove("function_call");
            fields.insert("tool_calls".to_owned(), ours.into());
        }
    }
    said
}
