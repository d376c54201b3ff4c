//! What a handler returns when it cannot answer: a code it chose, a sentence, and how to repair the call.

use crate::ErrorCode;
use serde_json::{Map, Value};

/// A failure the model is meant to read. Defects of ours are [`ErrorCode::Internal`], never dressed as the model's error.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure {
    /// Stable code.
    pub code: ErrorCode,
    /// What happened, for this call. One or two sentences.
    pub message: String,
    /// How to repair the call in the same phase, or what to do instead.
    pub instruction: String,
    /// Overrides the code's default.
    pub retryable: Option<bool>,
    /// Facts that go into `correction`: accepted values, candidates, `retry_arguments` ...
    pub correction: Map<String, Value>,
    /// Keys of `correction` that give the agent its own words back. They are not masked: masking what an agent wrote would tell it
    /// which of its guesses are real names, codes or days.
    pub own_words: Vec<&'static str>,
}

impl ToolFailure {
    /// A failure with the code's default `retryable` and no extra facts.
    pub fn new(code: ErrorCode, message: impl Into<String>, instruction: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            instruction: instruction.into(),
            retryable: None,
            correction: Map::new(),
            own_words: vec![],
        }
    }

    /// Adds one fact to `correction`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.correction.insert(key.to_owned(), value.into());
        self
    }

    /// Adds facts to `correction`.
    #[must_use]
    pub fn with_facts(mut self, facts: Map<String, Value>) -> Self {
        self.correction.extend(facts);
        self
    }

    /// Adds one fact to `correction` that holds words of the agent; see [`ToolFailure::own_words`].
    #[must_use]
    pub fn with_own_words(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.own_words.push(key);
        self.with(key, value)
    }

    /// Whether a repaired call may succeed in this phase.
    pub fn retryable(&self) -> bool {
        self.retryable.unwrap_or_else(|| self.code.retryable())
    }
}
