//! What v1-v4 do otherwise than v5, as pure functions. Each asks the flags, never the version's name.
//!
//! The order of a call: [`known`], [`arguments`], then [`coerce`] (both without `StrictArguments`), the checks, unmasking and the handler; then
//! masking, and only behind the mask [`payload`] and [`echo`]: they take fields out of the places where the mask looks for them. Last
//! [`render`] and [`model_text`].
//!
//! This module must never run a tool, never decide that arguments are valid, and never panic on any JSON.

mod code;
mod coerce;
mod double;
mod payload;
mod text;

pub use coerce::coerce;
pub use double::double_text;
pub use payload::{RunDay, arguments, echo, payload};
pub use text::{READ_LIMIT, TRUNCATED, model_text, text};

use super::{Behaviour, Behaviours, PackTool};
use crate::{Envelope, Outcome, ToolFailure};
use serde_json::{Map, Value};

/// Tools whose failures are order errors: with `OrderErrorCodes` they carry `error_code`.
const ORDER_TOOLS: [&str; 2] = ["place_order", "manage_conditional_order"];

/// Tools whose failures carry no correction under `EarlyPayloads`.
const MEMORY_TOOLS: [&str; 3] = ["remember", "search_memory", "get_memory"];

/// Fields that came with v5 and count where an early agent guesses them. Frozen with the packs: a name that v5 gains later was nothing
/// under v1-v4 and stays nothing, or a recording that sent it would no longer replay.
const YOUNGER: [&str; 18] = [
    "abandon_error_codes",
    "adjustment",
    "amount_min",
    "content_limit",
    "cursor",
    "decision_card",
    "detail",
    "end_offset",
    "exclude_limit_up",
    "exclude_st",
    "expires_in_trading_days",
    "fields",
    "idempotency_key",
    "keyword",
    "max_results",
    "periods",
    "since",
    "timeout_seconds",
];

/// The arguments without the fields that the version knew nothing of: those that its pack does not offer and that did not come with v5.
/// Anything but an object stays.
pub fn known(tool: &PackTool, mut args: Value) -> Value {
    if let Some(fields) = args.as_object_mut() {
        let offered = tool.parameters.get("properties").and_then(Value::as_object);
        fields.retain(|name, _| offered.is_some_and(|offered| offered.contains_key(name)) || YOUNGER.contains(&name.as_str()));
    }
    args
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

/// The result object of a call.
///
/// | outcome | without flags | with |
/// |---|---|---|
/// | answered | the bare payload | `SuccessField`: `success: true` first |
/// | failed, blocked | read tools `{error}`; tools that change something `{success: false, error}` | `OrderErrorCodes`: `error_code` after `error` for `place_order` and `manage_conditional_order`; `FailureEnvelope`: the envelope of v5 |
/// | failed, of `execute_code` | as above | `PlainCode`, where `FailureEnvelope` is not: `{stdout, error}`, `stdout` where something was printed |
/// | job | `{job_id, state, status_url}` | `SuccessField`: `success: true` first |
/// | skipped | `{skipped: true, reason}` | `SuccessField`: `success: true` first |
/// | abort | as a failure, with `aborted: true` behind it | `FailureEnvelope`: as in v5 |
///
/// Whether a call succeeded is told by the outcome: not every one of these shapes has `success`.
pub fn render(outcome: &Outcome, call: &Call<'_>, flags: &Behaviours) -> Value {
    let success = |map: Map<String, Value>| {
        let mut out = Map::with_capacity(map.len() + 1);
        if flags.has(Behaviour::SuccessField) {
            out.insert("success".into(), true.into());
            out.extend(map.into_iter().filter(|(name, _)| name != "success"));
        } else {
            out = map;
        }
        Value::Object(out)
    };
    match outcome {
        Outcome::Complete(payload) | Outcome::Partial(payload) => success(payload.clone()),
        Outcome::Job { job_id, status_url } => success(Map::from_iter([
            ("job_id".to_owned(), job_id.as_str().into()),
            ("state".to_owned(), "accepted".into()),
            ("status_url".to_owned(), status_url.as_str().into()),
        ])),
        Outcome::Skipped { reason } => {
            success(Map::from_iter([("skipped".to_owned(), true.into()), ("reason".to_owned(), reason.as_str().into())]))
        }
        Outcome::Failed(_) | Outcome::Blocked(_) | Outcome::Abort { .. } if flags.has(Behaviour::FailureEnvelope) => {
            let mut value = Envelope::render(outcome, call.tool, call.example, call.received).0;
            if flags.has(Behaviour::EarlyPayloads)
                && MEMORY_TOOLS.contains(&call.tool)
                && let Some(map) = value.as_object_mut()
            {
                map.shift_remove("correction");
            }
            value
        }
        Outcome::Failed(failure) | Outcome::Blocked(failure) if call.tool == code::TOOL && flags.has(Behaviour::PlainCode) => {
            Value::Object(code::failed(failure))
        }
        Outcome::Failed(failure) | Outcome::Blocked(failure) => {
            let mut map = failed(&failure.message, call);
            order_code(&mut map, failure, call, flags);
            Value::Object(map)
        }
        Outcome::Abort { reason } => {
            let mut map = failed(reason, call);
            map.insert("aborted".into(), true.into());
            Value::Object(map)
        }
    }
}

fn failed(message: &str, call: &Call<'_>) -> Map<String, Value> {
    let mut map = Map::new();
    if !call.read_only {
        map.insert("success".into(), false.into());
    }
    map.insert("error".into(), message.into());
    map
}

fn order_code(map: &mut Map<String, Value>, failure: &ToolFailure, call: &Call<'_>, flags: &Behaviours) {
    if flags.has(Behaviour::OrderErrorCodes) && ORDER_TOOLS.contains(&call.tool) {
        map.insert("error_code".into(), failure.code.as_str().into());
    }
}
