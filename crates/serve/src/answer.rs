//! What a tool came to, as a caller gets it: the `ToolResult` envelope (spec/seeds.md C4), or a refusal of C6. Every envelope is checked
//! before it leaves; one that says more than it can prove is an error of ours and is never sent.

use crate::cursors;
use crate::manifest::Capability;
use crate::refusal::Refusal;
use serde_json::{Value, json};
use traderharness_contract::algebra::{self, InvocationId, ToolResult};
use traderharness_contract::budget::{RESULT_LIMIT, fit_json_keeping};
use traderharness_contract::json::{length, text};
use traderharness_contract::render::{self, Invocation};
use traderharness_contract::{Definition, ErrorCode, FailureClass, Outcome};
use traderharness_harness::{CallReport, Session};
use traderharness_tools_market::research::{self, MarketBars};

/// What the words that system prompt and tools have for results are called over the doors. For the model, wherever it is told how to work.
pub(crate) const WORDS: &str = "A result whose `status` is `complete` or `partial` is one with `success` true, and its `data` is what \
    the tool found; in a failure `message` is the `error`, and `details.code` the `error_code`, which is also what `abandon_error_codes` \
    takes.";

/// What a call is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The envelope.
    pub(crate) body: Value,
    /// What a model reads, when the whole envelope is longer than a model may read.
    pub(crate) text: Option<String>,
}

/// What is known of the call beside its report.
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a InvocationId,
    /// Tool, by the name the caller used.
    pub(crate) name: &'a str,
    pub(crate) capability: &'a Capability,
    /// The clock when the call was admitted, in its visible form.
    pub(crate) at: &'a str,
    pub(crate) definition: Option<&'a Definition>,
    /// The session as the call found it; `None` when the clock has moved since.
    pub(crate) session: Option<&'a Session>,
    /// Id of the session.
    pub(crate) session_id: &'a str,
}

/// Renders a report.
///
/// # Errors
/// The failure of the tool, or a defect of ours.
pub(crate) fn answer(report: &CallReport, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    if !report.envelope.is_success() {
        return Err(refusal(report));
    }
    let mut payload = report.envelope.0.as_object().cloned().unwrap_or_default();
    payload.shift_remove("success");
    if payload.get("skipped") == Some(&Value::Bool(true)) {
        let reason = payload.get("reason").and_then(Value::as_str).unwrap_or("An equal call was made before.");
        return Err(Refusal::new(FailureClass::IdempotencyConflict, 409, "skipped", reason, false));
    }
    // A changed spelling of the arguments is no part of the data.
    let notes = payload.shift_remove("normalised");
    // What a strict client would refuse is never sent (spec/seeds.md C9).
    let payload = match asked.definition {
        None => payload,
        Some(definition) => match Value::Object(payload) {
            whole if definition.validate_output(&whole).is_err() => return Err(defect("the result does not fit its schema")),
            Value::Object(payload) => payload,
            _ => return Err(defect("the result is no object")),
        },
    };
    let mut payload = payload;
    if let Some(Value::Array(notes)) = notes {
        let told = notes.iter().map(|note| {
            let word = |key: &str| note.get(key).and_then(Value::as_str).unwrap_or_default();
            Value::from(format!("argument {}: {}", word("path"), word("change")))
        });
        let warnings = payload.entry("warnings").or_insert_with(|| json!([]));
        if let Some(list) = warnings.as_array_mut() {
            list.extend(told);
        }
    }
    let sources: Vec<&str> = asked.capability.sources.iter().map(String::as_str).collect();
    let outcome = Outcome::answered(Value::Object(payload));
    let invocation = Invocation {
        source_refs: &source_order(&report.tool, &sources),
        revision_history: research::revision_history(&report.tool),
        received: Some(&report.received),
        ..Invocation::new(asked.id, asked.name, asked.at)
    };
    let Some(algebra::Answer::Result(result)) = render::answer(&outcome, &invocation) else {
        return Err(defect("the answer is no result"));
    };
    if let Err(violations) = algebra::check(&result, asked.at) {
        let words: Vec<String> = violations.iter().take(3).map(ToString::to_string).collect();
        return Err(defect(&words.join("; ")));
    }
    let next_cursor = result.next_cursor.as_ref().map(|cursor| cursors::bind(asked.session_id, cursor));
    let result = shortened(ToolResult { next_cursor, ..result }, report, asked);
    let body = serde_json::to_value(&result).map_err(|fault| defect(&fault.to_string()))?;
    let text = within_limit(&body, &result.data, asked.definition);
    Ok(Answer { body, text })
}

/// The first source of a tool is that of its records with an evidence id, so the order is the tool's.
fn source_order<'s>(tool: &str, sorted: &[&'s str]) -> Vec<&'s str> {
    let named = research::sources(tool);
    let mut order: Vec<&str> = sorted.to_vec();
    order.sort_by_key(|source| named.iter().position(|n| n == source).unwrap_or(usize::MAX));
    order
}

/// A page of bars whose envelope is too long for a model: fewer bars and a cursor (spec/seeds.md C4.8), which counts as its caller gets it.
fn shortened(result: ToolResult, report: &CallReport, asked: &Asked<'_>) -> ToolResult {
    let Some(session) = asked.session.filter(|_| report.tool == "market_bars") else { return result };
    let offset = result.data.get("offset").and_then(Value::as_u64).unwrap_or(0) as usize;
    let view = session.view();
    let next = |kept: usize| {
        MarketBars::cursor(&view, &report.received, offset + kept).map(|cursor| cursors::bind(asked.session_id, &cursor))
    };
    match algebra::fit(result.clone(), RESULT_LIMIT, Some("bars"), next) {
        Ok(fit) => fit.result,
        Err(_) => result,
    }
}

/// The text that a model reads in place of an envelope that is too long: the same envelope with compacted data, which says so itself.
/// Coverage, warnings and evidence are never cut.
fn within_limit(body: &Value, data: &Value, definition: Option<&Definition>) -> Option<String> {
    let characters = length(body);
    if characters <= RESULT_LIMIT {
        return None;
    }
    let around = characters.saturating_sub(length(data));
    // What must stay may be long itself; a model still gets some of the data.
    let room = RESULT_LIMIT.saturating_sub(around).max(1_000);
    let fitted = match definition {
        Some(definition) => fit_json_keeping(data, room, &definition.oldest_first),
        None => traderharness_contract::budget::fit_json(data, room),
    };
    let mut short = body.clone();
    let data = serde_json::from_str(&fitted.text).unwrap_or(Value::String(fitted.text));
    short.as_object_mut()?.insert("data".into(), data);
    Some(text(&short))
}

/// A failure of a tool in the words of C6.
pub(crate) fn refusal(report: &CallReport) -> Refusal {
    let map = report.envelope.0.as_object();
    let code = report.code.unwrap_or(ErrorCode::Internal);
    let word = |key: &str| map.and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or_default();
    let retryable = map.and_then(|m| m.get("retryable")).and_then(Value::as_bool).unwrap_or_else(|| code.retryable());
    let mut refusal = Refusal::new(code.class(), code.http_status(), code.as_str(), word("error"), retryable)
        .with("tool", report.tool.as_str());
    refusal.correction = map.and_then(|m| m.get("correction")).cloned();
    refusal
}

/// A fault of ours. `details.fault` says what it was, in words that hold no data of a session and no path of the machine.
pub(crate) fn defect(what: &str) -> Refusal {
    Refusal::new(
        FailureClass::DependencyUnavailable,
        500,
        "internal",
        "A defect of the server kept the answer back; it is not an error of the call.",
        false,
    )
    .with("fault", what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Catalog;
    use traderharness_contract::Envelope;

    /// What a payload of `get_portfolio` is answered at D+0 09:30.
    fn answered(payload: Value) -> Result<Value, Refusal> {
        let catalog = Catalog::standard().unwrap();
        let id = InvocationId::new("abc").unwrap();
        let report = CallReport {
            call: 1,
            tool: "get_portfolio".to_owned(),
            received: json!({}),
            envelope: Envelope(payload),
            text: String::new(),
            truncated: false,
            code: None,
            effect: None,
            notes: vec![],
            usage: None,
            host_note: None,
        };
        let asked = Asked {
            id: &id,
            name: "get_portfolio",
            capability: catalog.find("get_portfolio").unwrap(),
            at: "D+0 09:30",
            definition: None,
            session: None,
            session_id: "ses_a",
        };
        answer(&report, &asked).map(|answer| answer.body)
    }

    // spec/seeds.md C9, C4.5, C10.1, C10.2: data that is fine in an envelope that is not is a fault of ours and never sent
    #[test]
    fn an_envelope_that_says_more_than_it_can_prove_is_never_sent() {
        let sound = json!({"success": true, "as_of": {"day": "D+0", "time": "09:30"}, "cash": 1.5});
        assert_eq!(answered(sound.clone()).unwrap()["coverage"]["as_of"], "D+0 09:30");
        let check = |field: &str, value: Value, fault: &str| {
            let mut payload = sound.clone();
            payload[field] = value;
            let refusal = answered(payload).unwrap_err();
            assert_eq!((refusal.status, refusal.code.as_str()), (500, "internal"), "{refusal:?}");
            let record = refusal.record();
            assert!(record.get("data").is_none() && record["details"]["fault"].as_str().unwrap().contains(fault), "{record}");
        };
        check("as_of", json!({"day": "D+1", "time": "09:30"}), "after the moment the call was admitted");
        check("as_of", json!("today"), "coverage.as_of");
        check("cash", json!("NaN"), "/cash is not a finite number");
        check("cash", json!(1_u64 << 60), "2^53");
    }
}
