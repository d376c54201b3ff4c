//! The envelopes of the other seeds as pure renderers of [`Outcome`] (spec/seeds.md D1).
//!
//! | outcome | v5 envelope | [`tool_call_result`] | [`status_object`] | [`tool_result`] |
//! |---|---|---|---|---|
//! | complete | `success: true` | `ok: true` | `status: "ok"` | `status: "complete"` |
//! | partial | `success: true` with `missing_reasons` | `ok: true` | `status: "ok"` | `status: "partial"` |
//! | job | `success: true`, `state` | `ok: true` | `status: "accepted"` | accepted job |
//! | failed | `success: false` | `ok: false` | `status: "error"` | error record |
//! | skipped | `success: true`, `skipped` | `ok: true` | `skipped: true` | not a result: `None` |
//! | blocked | `success: false` | `ok: false` | `status: "blocked"` | error record |
//! | abort | `aborted` | `None` | `None` | `None` |
//!
//! An abort ends the run and is never shown to a model as a failure (A4.7). No clock is read here: times are handed in.

use crate::budget::notice::bounded_text;
use crate::json::text;
use crate::outcome::correction;
use crate::{Outcome, ToolFailure};
use serde_json::{Map, Value, json};

/// Characters of a tool call result's text (spec/seeds.md A4.5).
pub const TEXT_LIMIT: usize = 65_536;

/// When a call ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Start, seconds; of whichever clock the caller's contract names.
    pub timestamp: f64,
    /// Duration in seconds.
    pub execution_time: f64,
}

/// SRHarness `ToolCallResult {ok, result, result_str, meta_data}` (spec/seeds.md A4). `None` for an abort.
///
/// The text of a failure is two lines: the tool, then code and message, indented. `result` keeps everything; only the text is
/// bounded.
pub fn tool_call_result(outcome: &Outcome, tool: &str, timing: Timing, limit: usize) -> Option<Value> {
    let (ok, result, words) = match outcome {
        Outcome::Complete(payload) | Outcome::Partial(payload) => {
            let result = Value::Object(payload.clone());
            let words = text(&result);
            (true, result, words)
        }
        Outcome::Job { .. } | Outcome::Skipped { .. } => {
            let result = status_object(outcome, tool)?;
            let words = text(&result);
            (true, result, words)
        }
        Outcome::Failed(failure) | Outcome::Blocked(failure) => {
            let words = format!("Tool {tool} failed\n  {}: {}", failure.code, failure.message);
            (false, json!({"error": words}), words)
        }
        Outcome::Abort { .. } => return None,
    };
    let meta = json!({"timestamp": timing.timestamp, "execution_time": timing.execution_time, "tool": tool});
    Some(json!({"ok": ok, "result": result, "result_str": bounded_text(&words, limit), "meta_data": meta}))
}

/// Vibe-Trading `{status: "ok" | "error" | ...}` (spec/seeds.md B4, B7). `None` for an abort.
pub fn status_object(outcome: &Outcome, tool: &str) -> Option<Value> {
    let failed = |status: &str, failure: &ToolFailure| {
        json!({
            "status": status,
            "tool": tool,
            "error": failure.message,
            "error_code": failure.code.as_str(),
            "retryable": failure.retryable(),
        })
    };
    Some(match outcome {
        Outcome::Complete(payload) | Outcome::Partial(payload) => {
            let mut map = Map::from_iter([("status".to_owned(), Value::from("ok"))]);
            // Only the envelope says how the call went, so a payload's own status must not replace it (B4.2).
            map.extend(payload.iter().filter(|(k, _)| *k != "status").map(|(k, v)| (k.clone(), v.clone())));
            Value::Object(map)
        }
        Outcome::Job { job_id, status_url } => {
            json!({"status": "accepted", "job_id": job_id, "state": "accepted", "status_url": status_url})
        }
        Outcome::Failed(failure) => failed("error", failure),
        Outcome::Blocked(failure) => failed("blocked", failure),
        Outcome::Skipped { reason } => json!({"skipped": true, "reason": reason}),
        Outcome::Abort { .. } => return None,
    })
}

/// What a tool result of seed 002 states about its call beyond the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Invocation<'a> {
    /// Invocation id, `inv_...`.
    pub id: &'a str,
    /// Tool.
    pub tool: &'a str,
    /// First session asked for, if the query named one.
    pub requested_start: Option<&'a str>,
    /// Last session asked for, if the query named one.
    pub requested_end: Option<&'a str>,
    /// Tables the answer was made from.
    pub source_refs: &'a [&'a str],
    /// A valid arguments object, for the correction of a failure.
    pub example: Option<&'a Value>,
    /// What the caller sent, for the correction of a failure.
    pub received: Option<&'a Value>,
}

/// Payload fields that seed 002 keeps apart from the data (C4.6).
const CHANNELS: &[&str] = &["as_of", "missing_reasons", "warnings", "next_cursor", "evidence"];

/// Seed 002: `ToolResult`, `AcceptedJob` or the error record (spec/seeds.md C4, C6). `None` for a skip, which is no result,
/// and for an abort.
pub fn tool_result(outcome: &Outcome, invocation: &Invocation<'_>) -> Option<Value> {
    match outcome {
        Outcome::Complete(payload) | Outcome::Partial(payload) => {
            let data: Map<String, Value> =
                payload.iter().filter(|(k, _)| !CHANNELS.contains(&k.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect();
            let take = |key: &str, none: Value| payload.get(key).cloned().unwrap_or(none);
            let evidence = payload.get("evidence").cloned().unwrap_or_else(|| evidence_of(&data, invocation.tool));
            Some(json!({
                "schema_version": "1.0",
                "invocation_id": invocation.id,
                "tool": invocation.tool,
                "status": if matches!(outcome, Outcome::Partial(_)) { "partial" } else { "complete" },
                "data": data,
                "evidence": evidence,
                "coverage": {
                    "requested_start": invocation.requested_start,
                    "requested_end": invocation.requested_end,
                    "as_of": take("as_of", Value::Null),
                    "source_refs": invocation.source_refs,
                    "missing_reasons": take("missing_reasons", json!([])),
                    "revision_history": "not_applicable",
                },
                "warnings": take("warnings", json!([])),
                "next_cursor": take("next_cursor", Value::Null),
            }))
        }
        Outcome::Job { job_id, status_url } => Some(json!({"job_id": job_id, "state": "accepted", "status_url": status_url})),
        Outcome::Failed(failure) | Outcome::Blocked(failure) => Some(json!({
            "error_code": failure.code.class().as_str(),
            "message": failure.message,
            "retryable": failure.retryable(),
            "details": {"tool": invocation.tool, "code": failure.code.as_str()},
            "correction": correction(
                failure,
                invocation.tool,
                invocation.example.unwrap_or(&Value::Null),
                invocation.received.unwrap_or(&Value::Null),
            ),
        })),
        Outcome::Skipped { .. } | Outcome::Abort { .. } => None,
    }
}

/// References to the evidence ids in a payload, in order of appearance, each once.
fn evidence_of(data: &Map<String, Value>, tool: &str) -> Value {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(id) = map.get("evidence_id").and_then(Value::as_str)
                    && !found.iter().any(|f| f == id)
                {
                    found.push(id.to_owned());
                }
                map.values().for_each(|v| walk(v, found));
            }
            Value::Array(items) => items.iter().for_each(|v| walk(v, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(&Value::Object(data.clone()), &mut found);
    // An evidence id is built from the content, so it is its own revision.
    found.iter().map(|id| json!({"id": id, "revision": id, "source_ref": tool})).collect()
}
