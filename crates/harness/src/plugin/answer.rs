//! What a plug-in answers, from its raw form to what the agent reads. Everything here is about text from outside: it is stripped,
//! bounded, masked and judged before it is kept, and nothing of it is obeyed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use traderharness_contract::budget::notice::bounded_text;
use traderharness_contract::json::{length, prefix};
use traderharness_contract::terminal::strip_escapes;
use traderharness_contract::{Effect, ErrorCode, Outcome, ToolFailure};

/// What came of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum PlugInAnswer {
    /// A JSON object.
    Object {
        /// The result.
        object: Map<String, Value>,
    },
    /// Plain text.
    Text {
        /// The result.
        text: String,
    },
    /// The tool says that it failed.
    Failed {
        /// What it says.
        message: String,
    },
    /// Something came that is no answer.
    Invalid {
        /// What is wrong with it.
        fault: String,
    },
    /// No answer in time.
    TimedOut {
        /// Whatever worked on the call is gone.
        worker_exited: bool,
    },
    /// The plug-in is not there or went away.
    Down {
        /// Why.
        fault: String,
        /// The call may have reached it.
        sent: bool,
    },
    /// The run was to end.
    Cancelled {
        /// The call may have reached it.
        sent: bool,
    },
    /// An earlier process of this run sent the call and did not live to keep the answer. It is not sent again.
    Unknown,
    /// The run ends here: control flow of the host, never shown to the model (spec/seeds.md A4.7). Only a plug-in in the host's own
    /// process gives it; nothing that comes over a wire is taken for it.
    Abort {
        /// Why.
        reason: String,
    },
}

/// State of the record that is kept before a call with effects goes out.
pub(crate) const SENT: &str = "sent";

/// Fields of a result that would speak for the environment; they are shown with a prefix.
const RESERVED: [&str; 5] = ["success", "error_code", "error_family", "retryable", "correction"];

/// How much a result may have.
pub(crate) struct CutResult<'a> {
    pub(crate) limit: usize,
    pub(crate) has_schema: bool,
    pub(crate) tool: &'a str,
}

impl CutResult<'_> {
    /// Strips terminal escapes, then bounds (spec/seeds.md A4.2, A4.5). `misfit` says what the output schema has against an object.
    pub(crate) fn clean(&self, answer: PlugInAnswer, misfit: impl Fn(&Value) -> Option<String>) -> PlugInAnswer {
        match answer {
            PlugInAnswer::Object { object } => {
                let mut value = Value::Object(object);
                strings(&mut value, &|text| strip_escapes(text).into_owned());
                let size = length(&value);
                if size > self.limit {
                    let fault = format!("its result has {size} characters; the host allows {}", self.limit);
                    return PlugInAnswer::Invalid { fault };
                }
                let refused = value.as_object().and_then(refusal);
                if refused.is_none()
                    && self.has_schema
                    && let Some(fault) = misfit(&value)
                {
                    return PlugInAnswer::Invalid { fault: format!("its result does not fit its output schema: {fault}") };
                }
                match (refused, value) {
                    (Some(message), _) => PlugInAnswer::Failed { message: bounded_text(&message, self.limit) },
                    (None, Value::Object(object)) => PlugInAnswer::Object { object },
                    (None, _) => PlugInAnswer::Invalid { fault: "its result is no object".into() },
                }
            }
            PlugInAnswer::Text { text } => PlugInAnswer::Text { text: bounded_text(&strip_escapes(&text), self.limit) },
            PlugInAnswer::Failed { message } => {
                PlugInAnswer::Failed { message: bounded_text(&strip_escapes(&message), self.limit) }
            }
            PlugInAnswer::Invalid { fault } => PlugInAnswer::Invalid { fault: bounded_text(&strip_escapes(&fault), 2_000) },
            PlugInAnswer::Down { fault, sent } => PlugInAnswer::Down { fault: bounded_text(&strip_escapes(&fault), 2_000), sent },
            other => other,
        }
    }

    /// What the agent is told.
    pub(crate) fn outcome(&self, answer: PlugInAnswer, effect: Effect) -> Outcome {
        let tool = self.tool;
        let doubt = |sent: bool, mut failure: ToolFailure| {
            if sent && !effect.is_read() {
                failure.instruction =
                    format!("What it did is not known. Do not repeat the call blindly. {}", failure.instruction);
                failure = failure.with("effect_committed", "unknown");
            }
            Outcome::Failed(failure)
        };
        let go_on = "Go on without this tool.";
        match answer {
            PlugInAnswer::Object { object } => Outcome::answered(Value::Object(
                object
                    .into_iter()
                    .map(|(k, v)| (if RESERVED.contains(&k.as_str()) { format!("tool_{k}") } else { k }, v))
                    .collect(),
            )),
            PlugInAnswer::Text { text } => Outcome::answered(Value::Object(Map::from_iter([
                ("status".to_owned(), "ok".into()),
                ("text".to_owned(), text.into()),
            ]))),
            PlugInAnswer::Failed { message } => {
                let says = prefix(&message, 500);
                let failure = ToolFailure::new(
                    ErrorCode::ExternalToolFailed,
                    format!("{tool} failed: {says}"),
                    "Change the arguments if the message says what is wrong with them, or go on without this tool.",
                );
                Outcome::Failed(if says.len() < message.len() { failure.with("tool_message", message) } else { failure })
            }
            PlugInAnswer::Invalid { fault } => doubt(
                true,
                ToolFailure::new(ErrorCode::ExternalToolInvalidResult, format!("{tool} gave no usable result: {fault}."), go_on),
            ),
            PlugInAnswer::TimedOut { worker_exited } => {
                let mut failure = ToolFailure::new(
                    ErrorCode::ToolTimeout,
                    format!("{tool} did not answer in time."),
                    "Ask for less, or go on without this tool.",
                );
                // An open failure would hold the phase until a tool of somebody else answers.
                failure.retryable = Some(false);
                doubt(true, failure.with("worker_exited", worker_exited))
            }
            PlugInAnswer::Down { fault, sent } => {
                let code = if sent { ErrorCode::ExternalToolFailed } else { ErrorCode::EnvironmentUnavailable };
                doubt(sent, ToolFailure::new(code, format!("{tool} is not available: {fault}."), go_on))
            }
            PlugInAnswer::Cancelled { sent } => doubt(
                sent,
                ToolFailure::new(
                    ErrorCode::ExternalToolFailed,
                    format!("{tool} was interrupted: the run is to end."),
                    "Make no further calls.",
                ),
            ),
            PlugInAnswer::Abort { reason } => Outcome::Abort { reason },
            PlugInAnswer::Unknown => doubt(
                true,
                ToolFailure::new(
                    ErrorCode::ExternalToolFailed,
                    format!(
                        "{tool} was called before the run was interrupted, and its answer was not kept; it was not called again."
                    ),
                    go_on,
                ),
            ),
        }
    }
}

/// What a result says about its own failure, if it says so (spec/seeds.md B4.2). Only the outermost object counts.
fn refusal(object: &Map<String, Value>) -> Option<String> {
    let status = object.get("status").and_then(Value::as_str).map(|s| s.trim().to_lowercase());
    let bad = status.is_some_and(|s| matches!(s.as_str(), "error" | "failed" | "failure" | "cancelled" | "canceled"));
    let denied = ["ok", "success"].iter().any(|key| object.get(*key) == Some(&Value::Bool(false)));
    (bad || denied).then(|| {
        let said = ["error", "message", "detail", "reason"].iter().find_map(|key| match object.get(*key)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::Object(inner) => inner.get("message").and_then(Value::as_str).map(str::to_owned),
            _ => None,
        });
        said.unwrap_or_else(|| traderharness_contract::json::text(&Value::Object(object.clone())))
    })
}

/// Rewrites every string of a value, keys too. A key that would collide with another gets a number.
pub(crate) fn strings(value: &mut Value, f: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = f(text),
        Value::Array(items) => items.iter_mut().for_each(|item| strings(item, f)),
        Value::Object(map) => {
            let mut renamed = Map::with_capacity(map.len());
            for (key, mut item) in std::mem::take(map) {
                strings(&mut item, f);
                let wanted = f(&key);
                let mut key = wanted.clone();
                let mut n = 2;
                while renamed.contains_key(&key) {
                    key = format!("{wanted}_{n}");
                    n += 1;
                }
                renamed.insert(key, item);
            }
            *map = renamed;
        }
        _ => {}
    }
}

impl PlugInAnswer {
    /// Rewrites every text of the answer.
    pub(crate) fn map_texts(mut self, f: &dyn Fn(&str) -> String) -> Self {
        match &mut self {
            Self::Object { object } => {
                let mut value = Value::Object(std::mem::take(object));
                strings(&mut value, f);
                if let Value::Object(map) = value {
                    *object = map;
                }
            }
            Self::Text { text } => *text = f(text),
            Self::Failed { message } => *message = f(message),
            Self::Invalid { fault } | Self::Down { fault, .. } => *fault = f(fault),
            Self::Abort { reason } => *reason = f(reason),
            Self::TimedOut { .. } | Self::Cancelled { .. } | Self::Unknown => {}
        }
        self
    }
}
