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

use crate::algebra::check::cited;
use crate::algebra::{
    AcceptedJob, AcceptedState, Answer, CHANNELS, Coverage, ErrorRecord, EvidenceRef, InvocationId, JobId, ResultStatus,
    RevisionHistory, SchemaVersion, ToolResult,
};
use crate::budget::notice::bounded_text;
use crate::json::text;
use crate::{FailureClass, Outcome, ToolFailure};
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

/// What an answer of the result algebra states about its call beyond the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Invocation<'a> {
    /// Id of the invocation.
    pub id: &'a InvocationId,
    /// Tool, by the name the caller used.
    pub tool: &'a str,
    /// The session's clock in its visible form, `D+0 10:30`: as of when a payload is true that does not say it itself.
    pub as_of: &'a str,
    /// First day asked for; without it `start` of the arguments, or what the payload's `coverage` says.
    pub requested_start: Option<&'a str>,
    /// Last day asked for, likewise.
    pub requested_end: Option<&'a str>,
    /// Sources the answer was made from. Records of the payload with an `evidence_id` are of the first one.
    pub source_refs: &'a [&'a str],
    /// Which state of the sources was read; without it the moment of `as_of`, since a source is what of it was visible then.
    pub revision: Option<&'a str>,
    /// Whether the sources hold their earlier revisions.
    pub revision_history: RevisionHistory,
    /// A valid arguments object, for the correction of a failure.
    pub example: Option<&'a Value>,
    /// What the caller sent: the requested range, and the correction of a failure.
    pub received: Option<&'a Value>,
}

impl<'a> Invocation<'a> {
    /// An invocation of `tool` at the clock `as_of`; the rest is nothing until it is set.
    pub const fn new(id: &'a InvocationId, tool: &'a str, as_of: &'a str) -> Self {
        Self {
            id,
            tool,
            as_of,
            requested_start: None,
            requested_end: None,
            source_refs: &[],
            revision: None,
            revision_history: RevisionHistory::NotApplicable,
            example: None,
            received: None,
        }
    }

    fn requested(&self, given: Option<&str>, name: &str, payload: &Map<String, Value>) -> Option<String> {
        let sent = || self.received?.get(name)?.as_str();
        let resolved = || payload.get("coverage")?.get(format!("requested_{name}"))?.as_str();
        given.or_else(sent).or_else(resolved).map(str::to_owned)
    }
}

/// [`answer`] as JSON: `ToolResult`, `AcceptedJob` or the error record (spec/seeds.md C4, C6). `None` for a skip and an abort.
pub fn tool_result(outcome: &Outcome, invocation: &Invocation<'_>) -> Option<Value> {
    answer(outcome, invocation).map(|answer| answer.to_value())
}

/// The outcome in the result algebra. `None` for a skip, which is no result, and for an abort.
///
/// A job whose id is no `job_` id is a defect of its host and is answered as a dependency that failed.
pub fn answer(outcome: &Outcome, invocation: &Invocation<'_>) -> Option<Answer> {
    match outcome {
        Outcome::Complete(payload) => Some(Answer::Result(result(payload, ResultStatus::Complete, invocation))),
        Outcome::Partial(payload) => Some(Answer::Result(result(payload, ResultStatus::Partial, invocation))),
        Outcome::Job { job_id, status_url } => Some(match JobId::parse(job_id) {
            Ok(job_id) => {
                Answer::Accepted(AcceptedJob { job_id, state: AcceptedState::Accepted, status_url: status_url.clone() })
            }
            Err(_) => Answer::Error(
                ErrorRecord::new(FailureClass::DependencyUnavailable, "The job was accepted without a usable id.")
                    .with("tool", invocation.tool),
            ),
        }),
        Outcome::Failed(failure) | Outcome::Blocked(failure) => Some(Answer::Error(ErrorRecord::of(
            failure,
            invocation.tool,
            invocation.example.unwrap_or(&Value::Null),
            invocation.received.unwrap_or(&Value::Null),
        ))),
        Outcome::Skipped { .. } | Outcome::Abort { .. } => None,
    }
}

fn result(payload: &Map<String, Value>, status: ResultStatus, invocation: &Invocation<'_>) -> ToolResult {
    let data = payload.iter().filter(|(k, _)| !CHANNELS.contains(&k.as_str())).map(|(k, v)| (k.clone(), v.clone()));
    let data = Value::Object(data.collect());
    let texts = |key: &str, of: fn(&Value) -> String| -> Vec<String> {
        payload.get(key).and_then(Value::as_array).into_iter().flatten().map(of).collect()
    };
    let as_of = payload.get("as_of").and_then(moment).unwrap_or_else(|| invocation.as_of.to_owned());
    let mut source_refs: Vec<String> = Vec::new();
    for source in invocation.source_refs {
        if !source_refs.iter().any(|s| s == source) {
            source_refs.push((*source).to_owned());
        }
    }
    let evidence = evidence_of(payload, &data, &as_of, &mut source_refs, invocation);
    ToolResult {
        schema_version: SchemaVersion::V1,
        invocation_id: invocation.id.clone(),
        tool: invocation.tool.to_owned(),
        status,
        evidence,
        coverage: Coverage {
            requested_start: invocation.requested(invocation.requested_start, "start", payload),
            requested_end: invocation.requested(invocation.requested_end, "end", payload),
            as_of,
            source_refs,
            missing_reasons: texts("missing_reasons", hole),
            revision_history: invocation.revision_history,
        },
        warnings: texts("warnings", plain),
        next_cursor: payload.get("next_cursor").and_then(Value::as_str).map(str::to_owned),
        data,
    }
}

/// `day time` of an as-of record; a text is taken as it is.
fn moment(as_of: &Value) -> Option<String> {
    if let Some(text) = as_of.as_str() {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    Some(format!("{} {}", as_of.get("day")?.as_str()?, as_of.get("time")?.as_str()?))
}

/// `field: reason` of a missing number.
fn hole(missing: &Value) -> String {
    match (missing.get("field").and_then(Value::as_str), missing.get("reason").and_then(Value::as_str)) {
        (Some(field), Some(reason)) => format!("{field}: {reason}"),
        _ => plain(missing),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| text(value), str::to_owned)
}

/// Evidence of an answer: each source as of the clock, then each record with an evidence id, in order of appearance, each once.
fn evidence_of(
    payload: &Map<String, Value>,
    data: &Value,
    as_of: &str,
    source_refs: &mut Vec<String>,
    invocation: &Invocation<'_>,
) -> Vec<EvidenceRef> {
    let revision = invocation.revision.map_or_else(|| format!("as_of {as_of}"), str::to_owned);
    let mut records: Vec<EvidenceRef> = Vec::new();
    let stated = payload.get("evidence").and_then(|list| serde_json::from_value::<Vec<EvidenceRef>>(list.clone()).ok());
    for item in stated.into_iter().flatten() {
        if !source_refs.contains(&item.source_ref) {
            source_refs.push(item.source_ref.clone());
        }
        if !records.iter().any(|r| r.id == item.id) {
            records.push(item);
        }
    }
    let mut ids: Vec<String> = Vec::new();
    cited(data, "", &mut |_, id| ids.push(id.to_owned()));
    if !ids.is_empty() && source_refs.is_empty() {
        source_refs.push(invocation.tool.to_owned());
    }
    let source_ref = source_refs.first().cloned().unwrap_or_default();
    for id in ids {
        if !records.iter().any(|r| r.id == id) {
            // An evidence id is built from the content, so it is its own revision.
            records.push(EvidenceRef { revision: id.clone(), id, source_ref: source_ref.clone() });
        }
    }
    let sources = source_refs.iter().map(|source| EvidenceRef {
        id: format!("src_{source}"),
        revision: revision.clone(),
        source_ref: source.clone(),
    });
    sources.chain(records).collect()
}
