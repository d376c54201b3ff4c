//! What every failure must be, whichever tool gives it and however the call was wrong.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use traderharness_contract::budget::RESULT_LIMIT;
use traderharness_contract::{Definition, ErrorCode, ErrorFamily, FieldKind, Policy, Repeat};
use traderharness_harness::toolbox::definitions;
use traderharness_harness::{CallReport, Session};
use traderharness_market::Code;

/// A call and what came of it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) sent: Value,
    pub(crate) report: CallReport,
}

/// Codes whose failures say themselves whether a smaller order, or another order id, helps.
const SAYS_ITSELF: [ErrorCode; 5] = [
    ErrorCode::NoLiquidity,
    ErrorCode::InsufficientCash,
    ErrorCode::PositionWeightLimit,
    ErrorCode::MinimumHolding,
    ErrorCode::ConditionalOrderStateConflict,
];

/// Definitions under both policies of the codes, by name.
static DEFINITIONS: LazyLock<[BTreeMap<&'static str, Definition>; 2]> = LazyLock::new(|| {
    [false, true].map(|masked_codes| {
        let policy = Policy { masked_codes, ..Policy::default() };
        definitions(&policy).into_iter().map(|d| (d.spec.name, d)).collect()
    })
});

pub(crate) fn definition(tool: &str, masked: bool) -> Option<&'static Definition> {
    DEFINITIONS[usize::from(masked)].get(tool)
}

/// Every tool, in the order of names.
pub(crate) fn tools() -> impl Iterator<Item = &'static Definition> {
    DEFINITIONS[0].values()
}

/// True when an argument of the tool is a code.
pub(crate) fn takes_a_code(definition: &Definition) -> bool {
    let mut probe = serde_json::json!({ "stock_code": "600036" });
    let mut found = false;
    definition.input_plan.rewrite(&mut probe, &mut |kind, _| {
        found |= kind == FieldKind::Code;
        None
    });
    found
}

/// Codes that the way of a call gives before any handler runs.
pub(crate) fn common(definition: &Definition) -> Vec<ErrorCode> {
    let mut codes = vec![ErrorCode::InvalidToolArguments, ErrorCode::InvalidToolArgumentsJson, ErrorCode::ToolUnavailableInPhase];
    if takes_a_code(definition) {
        codes.extend([ErrorCode::UnknownSecurity, ErrorCode::AmbiguousMaskedStockCode]);
    }
    if definition.spec.repeat == Repeat::OncePerMessage {
        codes.push(ErrorCode::DuplicateCall);
    }
    codes
}

/// Code of a failure that meets the promise, or the sentence that says which part of it is broken.
pub(crate) fn failure(session: &Session, tool: &str, answer: &Answer) -> ErrorCode {
    let report = &answer.report;
    let told = |what: &str| format!("{tool}({}): {what}: {}", answer.sent, report.text);
    let envelope = &report.envelope.0;
    assert_eq!(envelope["success"], false, "{}", told("no failure"));
    let name = envelope["error_code"].as_str().unwrap_or_default();
    let code: ErrorCode = name.parse().unwrap_or_else(|_| panic!("{}", told("the code is not in the table")));
    assert_ne!(code, ErrorCode::Internal, "{}", told("a defect of the environment"));
    assert_eq!(report.code, Some(code), "{}", told("report and envelope name two codes"));
    let family = match code.family() {
        ErrorFamily::Arguments => "arguments",
        ErrorFamily::Refused => "refused",
        ErrorFamily::Environment => "environment",
    };
    assert_eq!(envelope["error_family"], family, "{}", told("family"));
    let retryable = envelope["retryable"].as_bool().unwrap_or_else(|| panic!("{}", told("retryable is no boolean")));
    if !SAYS_ITSELF.contains(&code) {
        assert_eq!(retryable, code.retryable(), "{}", told("retryable is not that of the table"));
    }
    let legacy = envelope.get("code_family_legacy").and_then(Value::as_str).unwrap_or_default();
    assert_eq!(legacy, code.legacy(), "{}", told("legacy code"));
    sentence(&envelope["error"], &told("the error"));

    let correction = envelope["correction"].as_object().unwrap_or_else(|| panic!("{}", told("no correction")));
    assert_eq!(correction["tool"], tool, "{}", told("the correction names another tool"));
    sentence(&correction["instruction"], &told("the instruction"));
    assert_eq!(correction["received_arguments"], answer.sent, "{}", told("received arguments are not what was sent"));
    for needed in ["required_tool", "required_tool_if_uncertain"] {
        if let Some(other) = correction.get(needed) {
            assert!(definition(other.as_str().unwrap_or_default(), false).is_some(), "{}", told("a tool that does not exist"));
        }
    }
    let masked = session.mask().config().entities;
    match definition(tool, masked) {
        Some(known) => {
            let listed = known.spec.errors.contains(&code) || common(known).contains(&code);
            assert!(listed, "{}", told("the tool does not list this code"));
            example_fits(session, tool, &correction["valid_arguments_example"], &told);
        }
        None => assert_eq!(code, ErrorCode::UnknownTool, "{}", told("no such tool")),
    }
    reads_strict(&report.text, &told);
    let read: Value = serde_json::from_str(&report.text).unwrap_or_default();
    for key in ["success", "error_code", "error_family", "retryable"] {
        assert_eq!(read[key], envelope[key], "{}", told("what is read lost a part of the failure"));
    }
    for key in ["tool", "instruction", "valid_arguments_example"] {
        assert_eq!(read["correction"][key], correction[key], "{}", told("what is read lost a part of the correction"));
    }
    if masked {
        hides_codes(session, envelope, &told);
    }
    code
}

/// The example validates in this session, and that of either form of codes under its own policy.
fn example_fits(session: &Session, tool: &str, example: &Value, told: &dyn Fn(&str) -> String) {
    if let Some(bound) = session.offered().find(|t| t.bound.spec().name == tool) {
        let checked = bound.definition.validate(example);
        assert!(checked.is_ok(), "{}", told(&format!("the valid example is not valid: {checked:?}")));
    }
    for masked in [false, true] {
        let known = definition(tool, masked).expect("a tool of the catalog");
        for example in [known.example(), example] {
            let checked = known.validate(example);
            assert!(checked.is_ok(), "{}", told(&format!("masked {masked}: {example} is not valid: {checked:?}")));
        }
    }
}

fn sentence(value: &Value, told: &str) {
    let text = value.as_str().unwrap_or_default();
    let begins = text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == '`')
        || text.split(' ').next().is_some_and(|word| definition(word.trim_matches('`'), false).is_some() || word.contains('_'));
    assert!(begins && text.ends_with(['.', '!']) && text.len() > 10, "{told} is no sentence");
}

/// Strict JSON within the size that one answer may have. `NaN` and infinities are no JSON.
pub(crate) fn reads_strict(text: &str, told: &dyn Fn(&str) -> String) {
    assert!(text.chars().count() <= RESULT_LIMIT, "{}", told("longer than an answer may be"));
    let read: Result<Map<String, Value>, _> = serde_json::from_str(text);
    assert!(read.is_ok(), "{}", told("no JSON object"));
}

/// Nothing that the environment says holds a real code. What the agent sent comes back as it is.
fn hides_codes(session: &Session, envelope: &Value, told: &dyn Fn(&str) -> String) {
    let mut said = envelope.clone();
    if let Some(correction) = said["correction"].as_object_mut() {
        correction.retain(|key, _| !key.starts_with("received") && !key.starts_with("retry_"));
    }
    let text = said.to_string();
    let bytes = text.as_bytes();
    for sec in session.mask().in_visible_order() {
        let code: Code = session.view().code(*sec);
        for (at, _) in text.match_indices(code.as_str()) {
            let alone = at == 0 || !(bytes[at - 1] == b'-' || bytes[at - 1].is_ascii_digit());
            assert!(!alone, "{}", told(&format!("shows the real code {code}")));
        }
    }
}
