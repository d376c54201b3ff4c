//! What code reads when it gets no answer: one sentence or two, as an exception of the kind that fits.

use super::methods::Method;
use crate::masking::ViewMask;
use serde_json::Value;
use traderharness_contract::definition::Issue;
use traderharness_contract::{ErrorCode, ErrorFamily, FieldKind, Masker, ToolFailure};
use traderharness_market::View;
use traderharness_sandbox::{HostFault, HostFaultKind};

pub(super) fn value(message: String) -> HostFault {
    HostFault { kind: HostFaultKind::Value, message }
}

pub(super) fn environment(message: String) -> HostFault {
    HostFault { kind: HostFaultKind::Environment, message }
}

/// Arguments that do not fit, in the words of the method.
pub(super) fn arguments(method: &Method, issues: &[Issue]) -> HostFault {
    let words: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
    value(format!("{}: {}", method.name, words.join(". ")).replace("`stock_code`", "`code`"))
}

const fn kind(code: ErrorCode) -> HostFaultKind {
    match code {
        ErrorCode::UnknownSecurity
        | ErrorCode::AmbiguousMaskedStockCode
        | ErrorCode::SectorNotFound
        | ErrorCode::SecurityDataUnavailable => HostFaultKind::Lookup,
        _ if matches!(code.family(), ErrorFamily::Arguments) => HostFaultKind::Value,
        _ => HostFaultKind::Environment,
    }
}

/// A failure of a tool as code reads it. `view` masks what a handler said; before a handler ran, a failure holds words of the agent and
/// visible codes only, and masking those would tell which of its words is a code or a name (engine E8.5).
pub(super) fn failure(method: &Method, failure: &ToolFailure, view: Option<&View<'_>>) -> HostFault {
    let list = |key: &str| {
        let items = failure.correction.get(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    };
    // Instructions of a tool speak of its correction record; code has none, so what it would read there is said here.
    let advice = match failure.code {
        ErrorCode::SectorNotFound => match list("closest") {
            closest if closest.is_empty() => "Use a sector name that get_market_overview gives.".to_owned(),
            closest => format!("Closest names: {closest}."),
        },
        ErrorCode::AmbiguousMaskedStockCode => format!("Complete codes that it may be: {}.", list("candidate_aliases")),
        _ => failure.instruction.clone(),
    };
    let text = |text: &str| match view {
        Some(view) => ViewMask(*view).mask(FieldKind::Text, text).into_owned(),
        None => text.to_owned(),
    };
    let message = format!("{}: {} {}", method.name, text(&failure.message), text(&advice));
    HostFault { kind: kind(failure.code), message: message.trim_end().to_owned() }
}
