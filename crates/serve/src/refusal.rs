//! [`Refusal`]: why something was not done, in the words and numbers of spec/seeds.md C6. It never carries a stack trace, a path of the
//! machine, a token, or a fact of another caller.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use traderharness_contract::FailureClass;

/// Why a call, a session or a job was not served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Class of C6; its wire name is the `error_code` of the record.
    pub class: FailureClass,
    /// HTTP status.
    pub status: u16,
    /// Finer stable code: one of the contract's ([`traderharness_contract::ErrorCode`]) or of this crate. `details.code` of the record.
    pub code: String,
    /// One sentence for the caller.
    pub message: String,
    /// Whether the same call may succeed later or after correction.
    pub retryable: bool,
    /// Facts; an object.
    pub details: Value,
    /// How to repair the call: tool, instruction, a valid example, what was received.
    pub correction: Option<Value>,
    /// Seconds to wait, for the `Retry-After` header.
    pub retry_after: Option<u32>,
    /// Whether it was given before, under the same key. Said of an answer and never kept with it.
    #[serde(skip)]
    pub replayed: bool,
}

impl Refusal {
    /// A refusal without facts.
    pub fn new(class: FailureClass, status: u16, code: &str, message: impl Into<String>, retryable: bool) -> Self {
        Self {
            class,
            status,
            code: code.to_owned(),
            message: message.into(),
            retryable,
            details: Value::Object(Map::new()),
            correction: None,
            retry_after: None,
            replayed: false,
        }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Some(map) = self.details.as_object_mut() {
            map.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Says after how many seconds to try again.
    #[must_use]
    pub const fn after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The error record: `{error_code, message, retryable, details, correction?}`; `details.code` is the finer code.
    pub fn record(&self) -> Value {
        let mut details = Map::from_iter([("code".to_owned(), Value::from(self.code.as_str()))]);
        if let Value::Object(facts) = &self.details {
            details.extend(facts.iter().filter(|(key, _)| *key != "code").map(|(k, v)| (k.clone(), v.clone())));
        }
        let mut record = json!({
            "error_code": self.class.as_str(),
            "message": self.message,
            "retryable": self.retryable,
            "details": details,
        });
        if let (Some(correction), Some(map)) = (&self.correction, record.as_object_mut()) {
            map.insert("correction".into(), correction.clone());
        }
        record
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.class.as_str(), self.message)
    }
}

impl std::error::Error for Refusal {}

/// A defect of ours, without a word about what it is.
pub(crate) fn broken() -> Refusal {
    let message = "The server has a defect. Repeat the request under the same idempotency key.";
    Refusal::new(FailureClass::DependencyUnavailable, 500, "internal", message, true)
}
