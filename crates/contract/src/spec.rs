//! The plain data a tool publishes. No handler, no schema, no market types.

use crate::ErrorCode;
use serde::Serialize;

/// Catalog group of a tool (seed 000, tool inventory).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the groups of seed 000")]
pub enum Group {
    Market,
    Narrative,
    Screening,
    Fundamentals,
    Text,
    Portfolio,
    Execution,
    Watchlist,
    Memory,
    Sandbox,
    Control,
    /// Plug-in tools that the host added; none is in the catalog.
    External,
}

/// What a call may change (seed 002, effect classes). The host declares it; a remote description never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Fetches evidence. May run in parallel with other reads.
    Read,
    /// Makes a derived artifact, changes no state of the account.
    Compute,
    /// Changes stored state of the session (clock, watchlist, memory).
    Mutation,
    /// Passes the execution boundary: orders.
    Financial,
}

impl Effect {
    /// True when calls of this class may run beside each other (engine E10.3).
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::Compute)
    }
}

/// What happens when the same call comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Runs again; the answer depends only on the clock and the account.
    Free,
    /// An equal call in the same assistant message runs once; the second is answered `duplicate_call` (complaint OR-14).
    OncePerMessage,
    /// An equal call runs once in a run: armed when it is admitted, answered as skipped once it succeeded, and refused while nobody
    /// knows what it did (spec/seeds.md B7). A call that failed without an effect may come again. Equal means the same
    /// `idempotency_key`, or the same arguments where there is none.
    OncePerRun,
}

/// One tool, as data.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    /// Wire name, e.g. `get_kline`.
    pub name: &'static str,
    /// Catalog group.
    pub group: Group,
    /// Effect class; mandatory, there is no default that could fail open.
    pub effect: Effect,
    /// Repeat rule.
    pub repeat: Repeat,
    /// First paragraph of the description sent to the model.
    pub description: &'static str,
    /// Further statements of the description: ordering, ties, units, conventions. One sentence each.
    pub notes: &'static [&'static str],
    /// A valid arguments object as JSON text.
    pub example: &'static str,
    /// One sentence: what a success holds.
    pub result_summary: &'static str,
    /// Codes this tool's handler may give beyond the common ones of the dispatch path.
    pub errors: &'static [ErrorCode],
    /// True when a card must name the tool to get it (engine E9).
    pub opt_in: bool,
}
