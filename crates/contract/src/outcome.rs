//! [`Outcome`], the one result algebra, and its renderer for contract v5, the [`Envelope`].

use crate::budget::{self, Fitted, OldestFirst};
use crate::{ErrorFamily, Note, ToolFailure};
use serde_json::{Map, Value, json};

/// How a call ended. The envelopes of the four seeds are pure renderers of this (spec/seeds.md D1).
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The payload covers what was asked.
    Complete(Map<String, Value>),
    /// The payload has named holes (`missing_reasons` is in it).
    Partial(Map<String, Value>),
    /// Accepted, still running.
    Job {
        /// Job id.
        job_id: String,
        /// Where to ask for the state.
        status_url: String,
    },
    /// The call failed.
    Failed(ToolFailure),
    /// Not run because an equal call already was.
    Skipped {
        /// Why.
        reason: String,
    },
    /// Stopped by a gate in front of the market.
    Blocked(ToolFailure),
    /// The run ends; never shown to the model as a failure.
    Abort {
        /// Why.
        reason: String,
    },
}

impl Outcome {
    /// The outcome of a handler that answered: [`Outcome::Partial`] exactly when `missing_reasons` names a hole
    /// (spec/seeds.md C4.5). Paging alone does not make an answer partial. A result that is no object is put under `result`.
    pub fn answered(output: Value) -> Self {
        let payload = match output {
            Value::Object(map) => map,
            other => Map::from_iter([("result".to_owned(), other)]),
        };
        let holes = payload.get("missing_reasons").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if holes { Self::Partial(payload) } else { Self::Complete(payload) }
    }

    /// The failure, of a call that failed or was blocked.
    pub const fn failure(&self) -> Option<&ToolFailure> {
        match self {
            Self::Failed(failure) | Self::Blocked(failure) => Some(failure),
            _ => None,
        }
    }

    /// The payload of an answer.
    pub const fn payload(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Complete(payload) | Self::Partial(payload) => Some(payload),
            _ => None,
        }
    }
}

/// What the model reads for one call, contract v5. Keys are in a fixed order: `success` first, then the payload's fields in the
/// order of its type, or `error`, `error_code`, `error_family`, `code_family_legacy`, `retryable`, `correction`.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope(pub Value);

impl Envelope {
    /// Renders an outcome. `tool`, `example` and `received` fill the correction of a failure; `received` is what the agent
    /// sent, before normal form and unmasking. A payload cannot overwrite `success`, and a failure's facts cannot overwrite
    /// the four fields that every correction has.
    pub fn render(outcome: &Outcome, tool: &str, example: &Value, received: &Value) -> Self {
        Self(match outcome {
            Outcome::Complete(payload) | Outcome::Partial(payload) => {
                let mut map = Map::with_capacity(payload.len() + 1);
                map.insert("success".into(), true.into());
                map.extend(payload.iter().filter(|(k, _)| *k != "success").map(|(k, v)| (k.clone(), v.clone())));
                Value::Object(map)
            }
            Outcome::Job { job_id, status_url } => {
                json!({"success": true, "job_id": job_id, "state": "accepted", "status_url": status_url})
            }
            Outcome::Failed(failure) | Outcome::Blocked(failure) => failed(failure, tool, example, received),
            Outcome::Skipped { reason } => json!({"success": true, "skipped": true, "reason": reason}),
            Outcome::Abort { reason } => json!({"success": false, "aborted": true, "reason": reason}),
        })
    }

    /// Adds what was changed in the spelling of the arguments as `normalised`; nothing when nothing was.
    #[must_use]
    pub fn with_notes(mut self, notes: &[Note]) -> Self {
        if !notes.is_empty()
            && let Some(map) = self.0.as_object_mut()
        {
            let list = notes.iter().map(|note| json!({"path": note.path, "change": note.change}));
            map.insert("normalised".into(), list.collect());
        }
        self
    }

    /// The text the model gets, within `limit` characters.
    pub fn fit(&self, limit: usize, oldest_first: &OldestFirst) -> Fitted {
        budget::fit_json_keeping(&self.0, limit, oldest_first)
    }

    /// True when the call succeeded.
    pub fn is_success(&self) -> bool {
        self.0.get("success") == Some(&Value::Bool(true))
    }

    /// Wire name of the failure code, if it is a failure.
    pub fn error_code(&self) -> Option<&str> {
        self.0.get("error_code").and_then(Value::as_str)
    }

    /// True for a failure that stays pending in the phase.
    pub fn is_retryable_failure(&self) -> bool {
        !self.is_success() && self.0.get("retryable") == Some(&Value::Bool(true))
    }
}

/// The `correction` of a failure: tool, instruction, a valid example, what was received, then the failure's own facts.
pub fn correction(failure: &ToolFailure, tool: &str, example: &Value, received: &Value) -> Map<String, Value> {
    let mut correction = Map::new();
    correction.insert("tool".into(), tool.into());
    correction.insert("instruction".into(), failure.instruction.as_str().into());
    correction.insert("valid_arguments_example".into(), example.clone());
    correction.insert("received_arguments".into(), received.clone());
    for (key, fact) in &failure.correction {
        correction.entry(key.clone()).or_insert_with(|| fact.clone());
    }
    correction
}

fn failed(failure: &ToolFailure, tool: &str, example: &Value, received: &Value) -> Value {
    let mut map = Map::new();
    map.insert("success".into(), false.into());
    map.insert("error".into(), failure.message.as_str().into());
    map.insert("error_code".into(), failure.code.as_str().into());
    map.insert(
        "error_family".into(),
        match failure.code.family() {
            ErrorFamily::Arguments => "arguments",
            ErrorFamily::Refused => "refused",
            ErrorFamily::Environment => "environment",
        }
        .into(),
    );
    if !failure.code.legacy().is_empty() {
        map.insert("code_family_legacy".into(), failure.code.legacy().into());
    }
    map.insert("retryable".into(), failure.retryable().into());
    map.insert("correction".into(), correction(failure, tool, example, received).into());
    Value::Object(map)
}
