//! Phase control: what `complete_phase` and `finish_day` may see and what they ask for. The harness moves the clock, not the tools.

use serde::Serialize;
use traderharness_contract::{ErrorCode, ToolFailure};

/// A retryable failure that is still open in the phase (engine E10.4).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PendingError {
    /// Tool that failed.
    pub tool: String,
    /// Its code.
    pub code: ErrorCode,
}

/// A completion that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// True for `finish_day`.
    pub finishes_day: bool,
    /// `ready`, `trade_complete`, `no_trade` or `monitor`; empty for `finish_day`.
    pub decision: String,
    /// The agent's summary.
    pub summary: String,
    /// The agent's focus for the next phase; may be empty.
    pub next_focus: String,
    /// Codes the agent gives up on.
    pub abandoned: Vec<ErrorCode>,
}

/// State of the current phase, handed in by the harness for each call.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// Open retryable failures, in the order they came.
    pub pending: Vec<PendingError>,
    /// Set by a completion tool on success; taken by the harness.
    pub requested: Option<Completion>,
    /// `finish_day` ends the day wherever it is called, as in the first contract versions; else in close_2 only.
    pub finish_anywhere: bool,
}

impl Control {
    /// Checks that nothing retryable is left open, except what `abandon` names (engine E10.4). Returns the codes given up.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidToolArguments`] for a word that is no code; [`ErrorCode::CompletionBlocked`] with the open pairs.
    pub(crate) fn settle(&self, tool: &str, abandon: &[String]) -> Result<Vec<ErrorCode>, ToolFailure> {
        let mut codes: Vec<ErrorCode> = Vec::new();
        let mut unknown: Vec<usize> = Vec::new();
        for (i, text) in abandon.iter().enumerate() {
            match text.parse::<ErrorCode>() {
                Ok(code) if !codes.contains(&code) => codes.push(code),
                Ok(_) => {}
                Err(_) => unknown.push(i),
            }
        }
        let open_codes = || -> Vec<&'static str> {
            let mut codes: Vec<_> = self.pending.iter().map(|p| p.code.as_str()).collect();
            codes.sort_unstable();
            codes.dedup();
            codes
        };
        if !unknown.is_empty() {
            let places: Vec<_> = unknown.iter().map(|i| format!("/abandon_error_codes/{i}")).collect();
            return Err(ToolFailure::new(
                ErrorCode::InvalidToolArguments,
                format!("These entries are not error codes of this environment: {}.", places.join(", ")),
                "List only codes that a failure of this decision point carried in `error_code`.",
            )
            .with("not_codes", places)
            .with("open_codes", open_codes()));
        }
        let open: Vec<&PendingError> = self.pending.iter().filter(|p| !codes.contains(&p.code)).collect();
        if open.is_empty() {
            return Ok(codes);
        }
        let mut pairs: Vec<String> = Vec::new();
        for pending in &open {
            // The name of a tool that does not exist is a word of the agent. It is not said back here, where facts are masked: a code or
            // a company in it would come back as its alias (engine E8.5).
            let tool = if pending.code == ErrorCode::UnknownTool { "no such tool" } else { pending.tool.as_str() };
            let pair = format!("{tool}={}", pending.code);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        let mut left: Vec<&str> = Vec::new();
        for pending in &open {
            if !left.contains(&pending.code.as_str()) {
                left.push(pending.code.as_str());
            }
        }
        let all: Vec<&str> = codes.iter().map(|c| c.as_str()).chain(left.iter().copied()).collect();
        Err(ToolFailure::new(
            ErrorCode::CompletionBlocked,
            format!("Retryable failures are still open: {}.", pairs.join(", ")),
            format!(
                "Either repair each failed call until it succeeds, then call {tool} again; or call {tool} again with every code in \
                 `abandon_error_codes` and say in `summary` why it is given up."
            ),
        )
        .with("open_failures", pairs)
        .with("ways_out", vec!["repair_the_failed_calls", "abandon_error_codes"])
        .with("abandon_error_codes", all))
    }
}

/// Blank words are not accepted.
pub(crate) fn words(field: &str, text: &str) -> Result<(), ToolFailure> {
    if text.trim().is_empty() {
        return Err(ToolFailure::new(
            ErrorCode::InvalidToolArguments,
            format!("`{field}` holds only blanks."),
            format!("Send the call again with words in `{field}`."),
        ));
    }
    Ok(())
}
