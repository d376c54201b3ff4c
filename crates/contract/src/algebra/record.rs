//! The two answers that hold no data: an accepted job, and a failure.

use super::JobId;
use crate::outcome::correction;
use crate::{FailureClass, ToolFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The one state an [`AcceptedJob`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum AcceptedState {
    /// Accepted and not finished.
    #[default]
    Accepted,
}

/// A call that was accepted and goes on (spec/seeds.md C4.3). Its end is a [`super::ToolResult`] or an [`ErrorRecord`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedJob {
    /// Id of the job.
    pub job_id: JobId,
    /// State of the job.
    pub state: AcceptedState,
    /// Where to ask for its state and result.
    pub status_url: String,
}

/// A call that failed (spec/seeds.md C6). There is no data member, not even an empty one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorRecord {
    /// Class of the failure.
    pub error_code: FailureClass,
    /// What happened, for this call.
    pub message: String,
    /// Whether this or a corrected call may succeed.
    pub retryable: bool,
    /// Facts of the failure: `tool`, `code` (the finer code of the contract), and what the answering door adds.
    pub details: Map<String, Value>,
    /// How to repair the call: tool, instruction, valid_arguments_example, received_arguments and the facts of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub correction: Option<Map<String, Value>>,
}

impl ErrorRecord {
    /// A failure that a door found itself, before or around the tool. `retryable` is the default of the class.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { error_code: class, message: message.into(), retryable: class.retryable(), details: Map::new(), correction: None }
    }

    /// Adds one fact to `details`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The record of a tool's failure. The finer code stays as `details.code`.
    pub fn of(failure: &ToolFailure, tool: &str, example: &Value, received: &Value) -> Self {
        let details = [("tool", Value::from(tool)), ("code", failure.code.as_str().into())];
        Self {
            error_code: failure.code.class(),
            message: failure.message.clone(),
            retryable: failure.retryable(),
            details: details.map(|(key, value)| (key.to_owned(), value)).into_iter().collect(),
            correction: Some(correction(failure, tool, example, received)),
        }
    }
}
