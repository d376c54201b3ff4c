//! What `execute_code` gave under v1-v4 (`PlainCode`): what the code printed and its `result`; of a failure what was printed and why it ended.
//!
//! This file must never pass on a field by default: it takes what it names, so that a field which v5 gains later is nothing here.

use super::text::TRUNCATED;
use crate::json::{characters, prefix};
use crate::{ErrorCode, ToolFailure};
use serde_json::{Map, Value};

/// The tool.
pub(super) const TOOL: &str = "execute_code";

/// Characters of what the code printed that are kept; [`TRUNCATED`] follows what was cut.
const PRINTED: usize = 5_000;

/// Stands for the output of code that printed nothing and left no result.
const NOTHING: &str = "(no output)";

/// `stdout` where something was printed, `result` where it is not null.
pub(super) fn payload(payload: &mut Map<String, Value>) {
    let cut = payload.get("notices").and_then(Value::as_array).is_some_and(|notices| !notices.is_empty());
    let printed = match payload.shift_remove("stdout") {
        Some(Value::String(printed)) => kept(&printed, cut),
        _ => String::new(),
    };
    let result = payload.shift_remove("result").filter(|result| !result.is_null());
    payload.clear();
    if !printed.is_empty() || result.is_none() {
        let shown = if printed.is_empty() { NOTHING.to_owned() } else { printed };
        payload.insert("stdout".into(), shown.into());
    }
    if let Some(result) = result {
        payload.insert("result".into(), result);
    }
}

fn kept(printed: &str, cut: bool) -> String {
    let shown = prefix(printed, PRINTED);
    let mark = if cut || characters(printed) > PRINTED { TRUNCATED } else { "" };
    format!("{shown}{mark}")
}

/// `stdout` where something was printed before the end, and `error`: the traceback of code that raised, what Python says of source that
/// does not compile or of a `result` without a JSON form, and the reason in every other case.
pub(super) fn failed(failure: &ToolFailure) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(printed) = fact(failure, "stdout") {
        out.insert("stdout".into(), printed.into());
    }
    out.insert("error".into(), reason(failure).into());
    out
}

fn fact<'a>(failure: &'a ToolFailure, name: &str) -> Option<&'a str> {
    failure.correction.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn reason(failure: &ToolFailure) -> String {
    if failure.code == ErrorCode::SandboxExecutionFailed {
        if let Some(traceback) = fact(failure, "traceback") {
            return traceback.to_owned();
        }
        if let Some(exception) = fact(failure, "exception") {
            let mut told = exception.to_owned();
            if let Some(message) = fact(failure, "exception_message") {
                told = format!("{told}: {message}");
            }
            let number = |name: &str| failure.correction.get(name).and_then(Value::as_u64);
            match (number("line"), number("column")) {
                (Some(line), Some(column)) => told = format!("{told} (line {line}, column {column})"),
                (Some(line), None) => told = format!("{told} (line {line})"),
                _ => {}
            }
            return [Some(told.as_str()), fact(failure, "hint")].into_iter().flatten().collect::<Vec<_>>().join("\n");
        }
    }
    // What the sandbox found is the half of the reason that the agent can act on.
    let more = ["disallowed", "found", "exception_message", "traceback"].into_iter().filter_map(|name| fact(failure, name));
    std::iter::once(failure.message.as_str()).chain(more).collect::<Vec<_>>().join("\n")
}
