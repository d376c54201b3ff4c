//! Open failures of a phase, completion rules, and what is offered at a decision point (engine E10.2-E10.6).

use crate::Card;
use std::collections::BTreeMap;
use traderharness_contract::{Envelope, ErrorCode};
use traderharness_market::DecisionPoint;
use traderharness_tools_exec::{Completion, PendingError};

/// Tools that end a phase or the day.
pub const COMPLETION_TOOLS: [&str; 2] = ["complete_phase", "finish_day"];

/// Extension turns the phase protocol adds for repair and completion (engine E10.2).
pub const EXTENSION_TURNS: u32 = 8;

/// Attempts the close fallback gives for `finish_day` (engine E10.6).
pub const FINISH_ATTEMPTS: u32 = 3;

/// Rounds of only errors that end a phase of a card without the protocol (engine E10.7).
pub const ERROR_ROUNDS: u32 = 3;

/// Model turns a card has at a decision point, with the extension turns of the phase protocol (engine E10.2) where that is on
/// ([`crate::Session::has_protocol`]: it needs more than the card).
pub fn turns(card: &Card, point: DecisionPoint, protocol: bool) -> u32 {
    let own = if point == DecisionPoint::PreMarket { card.max_pre_iterations } else { card.max_window_iterations };
    if protocol { own + EXTENSION_TURNS } else { own }
}

/// The turn before which the agent is told to come to an end: floor(0.8 N) of N, when that lies strictly between the first and the last
/// (spec/seeds.md B12.2).
pub const fn wrap_up_turn(turns: u32) -> Option<u32> {
    // In u64, so that no number of turns is too large for the product.
    let turn = (turns as u64 * 4 / 5) as u32;
    if turn > 1 && turn < turns { Some(turn) } else { None }
}

/// The tool that ends the phase of a decision point.
pub fn completion_tool(point: DecisionPoint) -> &'static str {
    if point == DecisionPoint::Close2 { "finish_day" } else { "complete_phase" }
}

/// Whether a tool may be called at a decision point at all.
pub fn is_offered(tool: &str, point: DecisionPoint) -> bool {
    match tool {
        "finish_day" => point == DecisionPoint::Close2,
        "complete_phase" => point != DecisionPoint::Close2,
        _ => true,
    }
}

/// What is open in the current phase.
#[derive(Debug, Clone, Default)]
pub struct PhaseState {
    pending: Vec<PendingError>,
    /// Failed calls of the phase by tool and arguments text, to say when a wrong call is repeated (complaint AR-6).
    repeats: BTreeMap<(String, String), u32>,
    /// Set once a completion was accepted.
    pub completed: Option<Completion>,
}

impl PhaseState {
    /// Open retryable failures, in the order they came.
    pub fn pending(&self) -> &[PendingError] {
        &self.pending
    }

    /// Open failures a completion tool must see: its own earlier refusals do not block it.
    pub(crate) fn blocking(&self) -> Vec<PendingError> {
        self.pending.iter().filter(|p| !COMPLETION_TOOLS.contains(&p.tool.as_str())).cloned().collect()
    }

    /// Books the result of a call (engine E10.4).
    pub(crate) fn book(&mut self, tool: &str, envelope: &Envelope, code: Option<ErrorCode>) {
        if envelope.is_success() {
            self.pending.retain(|p| p.tool != tool);
        } else if envelope.is_retryable_failure()
            && let Some(code) = code
        {
            let entry = PendingError { tool: tool.to_owned(), code };
            if !self.pending.contains(&entry) {
                self.pending.push(entry);
            }
        }
    }

    /// Counts a failed call; returns how often exactly this call has failed in the phase.
    pub(crate) fn count_failure(&mut self, tool: &str, arguments: &str) -> u32 {
        let count = self.repeats.entry((tool.to_owned(), arguments.to_owned())).or_default();
        *count += 1;
        *count
    }
}
