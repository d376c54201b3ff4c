//! [`SessionError`]: what stops a session, as against a call that failed.

use crate::CardError;
use serde_json::Value;
use traderharness_market::{Day, DecisionPoint};
use traderharness_replay::RecordingError;
use traderharness_sandbox::WorkspaceError;
use traderharness_tools_exec::ledger::LedgerError;

/// What stops a session. A failed call is not among these: it is an envelope.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The day is not a trading day of the dataset.
    #[error("{day} is not a trading day of this dataset")]
    NotATradingDay {
        /// Day asked for.
        day: Day,
    },
    /// Days go forward only.
    #[error("{day} is not after {current}, the day the session is on; a clock never moves back")]
    BackInTime {
        /// Day asked for.
        day: Day,
        /// Current day.
        current: Day,
    },
    /// Nothing can be called before the first day is opened.
    #[error("the session has no day yet; open one with start_day")]
    NotStarted,
    /// The day is over.
    #[error("the day is over at {point}; start the next one")]
    DayOver {
        /// Last decision point.
        point: DecisionPoint,
    },
    /// A record could not be kept; nothing may be acknowledged any more.
    #[error("the record of this session cannot be kept")]
    Journal(#[from] RecordingError),
    /// What the agent remembers could not be kept; nothing may be acknowledged any more.
    #[error("the memory of this session cannot be kept")]
    Memory(#[source] std::io::Error),
    /// The agent's files could not be kept, or those of an earlier call are gone; code would see other files than it left.
    #[error("the files of the code of this session cannot be kept")]
    Workspace(#[from] WorkspaceError),
    /// An account-changing handler broke off; the account is no longer trusted.
    #[error("defect: `{tool}` broke off while changing the account: {fault}")]
    Defect {
        /// Tool.
        tool: String,
        /// Panic text.
        fault: String,
    },
    /// The ledger does not add up.
    #[error("defect: the ledger refused a change or does not add up")]
    Ledger(#[from] LedgerError),
    /// A defect came earlier; nothing is done on this account any more.
    #[error("the session stopped at a defect before, and its account is not trusted any more")]
    Stopped,
    /// A tool ended the run. This is control flow, not a failure of the call, and nobody tells the model (spec/seeds.md A4.7).
    #[error("`{tool}` ended the run: {reason}")]
    Aborted {
        /// Tool.
        tool: String,
        /// Why.
        reason: String,
    },
    /// The run was asked to end while a tool outside or code was at work, which was given up; what it came to is not part of the run.
    #[error("`{tool}` was interrupted because the run was asked to end")]
    Interrupted {
        /// Id of the call.
        call_id: String,
        /// Tool.
        tool: String,
        /// Whether the tool did what it was asked to do.
        effect_committed: Committed,
    },
    /// The card was not checked, or was changed since.
    #[error("the card of the session cannot be used")]
    Card(#[from] CardError),
}

/// Whether something was done outside the account (spec/seeds.md A4.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It was.
    Yes,
    /// It was not.
    No,
    /// Nobody knows; it must not be asked for again before somebody has looked.
    Unknown,
}

impl Committed {
    /// As it stands in records: `true`, `false` or `"unknown"`.
    pub fn as_value(self) -> Value {
        match self {
            Self::Yes => true.into(),
            Self::No => false.into(),
            Self::Unknown => "unknown".into(),
        }
    }
}
