//! What a run and its days come to: counts, day records, the summary. Plain values that are written as they are; no rule lives here.

use super::budget::Spending;
use crate::Session;
use crate::dispatch::CallReport;
use serde::Serialize;
use traderharness_contract::{ErrorCode, ErrorFamily};
use traderharness_market::money::round_f64;
use traderharness_market::{Cash, Day};

/// Calls by how they ended. The three failure families are counted apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallCounts {
    /// Calls that succeeded.
    pub succeeded: u64,
    /// The model's call was wrong.
    pub bad_arguments: u64,
    /// The market, the account or a policy refused.
    pub refused: u64,
    /// The environment could not serve.
    pub environment: u64,
}

impl CallCounts {
    /// Counts one call.
    pub fn count(&mut self, report: &CallReport) {
        match report.code.map(ErrorCode::family) {
            None => self.succeeded += 1,
            Some(ErrorFamily::Arguments) => self.bad_arguments += 1,
            Some(ErrorFamily::Refused) => self.refused += 1,
            Some(ErrorFamily::Environment) => self.environment += 1,
        }
    }

    /// Adds the counts of another part.
    pub fn add(&mut self, other: &Self) {
        self.succeeded += other.succeeded;
        self.bad_arguments += other.bad_arguments;
        self.refused += other.refused;
        self.environment += other.environment;
    }

    /// All calls.
    pub const fn total(&self) -> u64 {
        self.succeeded + self.bad_arguments + self.refused + self.environment
    }
}

/// What a committee did, apart from its agent. Nothing of it is a call of the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Model requests of advisors; they are among the requests of the run.
    pub requests: u64,
    /// Statements that were not made.
    pub absences: u64,
    /// Calls of advisors.
    pub calls: CallCounts,
}

/// `finish_day` never succeeded (engine E10.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinishFailure {
    /// Code of the last attempt.
    pub error_code: ErrorCode,
    /// Attempts made.
    pub attempts: u32,
}

/// What one day came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DayRecord {
    /// 0 for the first day.
    pub day_index: u32,
    /// Real day, for private records; public ones carry labels only.
    #[serde(skip)]
    pub day: Day,
    /// Total assets at 15:00, CNY.
    pub equity: f64,
    /// Usable cash at 15:00, CNY.
    pub cash: f64,
    /// Positions at 15:00.
    pub positions: usize,
    /// Fills of the day.
    pub fills: usize,
    /// Model requests of the day.
    pub requests: u64,
    /// Calls of the day.
    pub calls: CallCounts,
    /// What the committee did; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// The agent's summary of the day.
    pub summary: String,
    /// Set when the day ended without `finish_day`.
    #[serde(rename = "_finish_day_protocol_failure", skip_serializing_if = "Option::is_none")]
    pub finish_failure: Option<FinishFailure>,
}

impl DayRecord {
    /// What a session's account came to on the day that was closed; requests, calls, summary and what went wrong are the driver's to say.
    pub fn of(session: &Session) -> Self {
        let day = session.clock().day;
        let account = session.account();
        let worth = account.valuation(&session.view());
        Self {
            day_index: session.day_index(),
            day,
            equity: worth.total.to_f64(),
            cash: worth.cash.to_f64(),
            positions: worth.positions.len(),
            fills: account.fills_on(day).count(),
            requests: 0,
            calls: CallCounts::default(),
            advice: None,
            summary: String::new(),
            finish_failure: None,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Every day was played.
    Completed,
    /// Somebody asked it to stop ([`crate::CancelToken`]).
    Cancelled,
    /// A limit of [`super::Budgets`] was reached.
    BudgetExhausted,
    /// A tool ended the run ([`traderharness_contract::Outcome::Abort`]).
    Aborted,
    /// Something failed: the model, a protocol, a record.
    Failed,
}

impl RunStatus {
    /// Whether the run stopped where it may go on when it is resumed.
    pub const fn can_go_on(self) -> bool {
        !matches!(self, Self::Completed | Self::Aborted)
    }

    /// Wire name, as it stands in the `run_end` record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::BudgetExhausted => "budget_exhausted",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}

/// What a run came to. A run that stopped has one too, of what was done until then.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// How it ended.
    pub status: RunStatus,
    /// Stable code of why it stopped; absent for a completed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_code: Option<&'static str>,
    /// Days that ended, in order.
    pub days: Vec<DayRecord>,
    /// Cash at the start, CNY.
    pub initial_cash: f64,
    /// Total assets at the end, or when the run stopped, CNY.
    pub final_equity: f64,
    /// Return on the initial cash, percent.
    pub return_pct: f64,
    /// Model requests, those of an unfinished day too.
    pub requests: u64,
    /// Calls, those of an unfinished day too.
    pub calls: CallCounts,
    /// What the committee did, on an unfinished day too; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// Tokens and cost.
    pub spending: Spending,
}

impl RunSummary {
    /// What total assets `last` are more or less than `initial`, percent with two decimals; 0 where there is no such figure.
    pub fn percent(initial: Cash, last: Cash) -> f64 {
        round_f64((last.0 - initial.0) as f64 * 100.0 / initial.0 as f64, 2).unwrap_or_default()
    }
}
