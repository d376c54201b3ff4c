//! Phase control: what `complete_phase` and `finish_day` may see and what they ask for. The harness moves the clock, not the tools.

use serde::Serialize;
use traderharness_contract::ErrorCode;

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
}
