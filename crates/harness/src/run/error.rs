//! [`RunError`]: what stops a run, with a stable code and the status the run ends under.

use super::budget::{BudgetExhausted, BudgetKind};
use super::record::RunStatus;
use crate::model::ModelError;
use crate::session::SessionError;
use serde_json::{Value, json};
use traderharness_market::Day;
use traderharness_tools_exec::PendingError;

/// What stops a run. Records kept so far stay valid, and a run that was cancelled or used up a budget can be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The session stopped.
    #[error(transparent)]
    Session(SessionError),
    /// The model could not answer.
    #[error("{}", unanswered(*step, source))]
    Model {
        /// Request, from 0.
        step: u64,
        /// Why.
        #[source]
        source: ModelError,
    },
    /// The model answered twice in a row with neither a word nor a call (spec/seeds.md B12.4), under the phase protocol.
    #[error("the model answered request {step} with nothing, again after it was told so")]
    EmptyAnswers {
        /// Request of the second empty answer, from 0.
        step: u64,
    },
    /// A phase was not completed within its extension turns (engine E10.5). The day fails closed.
    #[error("{phase}{} was not completed within its turns (phase_completion_protocol_exhausted); open: {}", .sub_window.map(|s| format!("/{s}")).unwrap_or_default(), pairs(.pending))]
    PhaseProtocol {
        /// Phase.
        phase: &'static str,
        /// Sub-window.
        sub_window: Option<&'static str>,
        /// Open corrections.
        pending: Vec<PendingError>,
    },
    /// There is no trading day to run.
    #[error("the dataset has no trading day from {start} to {end}")]
    NoTradingDay {
        /// First day asked for.
        start: Day,
        /// Last day asked for.
        end: Day,
    },
    /// Somebody asked the run to end (engine E10.9).
    #[error("the run was cancelled")]
    Cancelled,
    /// A budget is used up (engine E10.11).
    #[error(transparent)]
    Budget(#[from] BudgetExhausted),
    /// A limit is set that nothing measures, so it would limit nothing.
    #[error("the run has a budget of {} that cannot be measured: {}", .which.as_str(), missing_measure(.which))]
    BudgetUnmeasured {
        /// Which.
        which: BudgetKind,
    },
    /// The conversation could not be kept before a part of it left the view.
    #[error("the conversation could not be kept before it was compacted: {fault}")]
    Transcript {
        /// Why.
        fault: String,
    },
    /// A tool ended the run (spec/seeds.md A4.7).
    #[error("`{tool}` ended the run: {reason}")]
    Aborted {
        /// Tool.
        tool: String,
        /// Why.
        reason: String,
    },
}

const fn missing_measure(which: &BudgetKind) -> &'static str {
    match which {
        BudgetKind::Cost => "no prices are given",
        _ => "no stopwatch is given",
    }
}

fn pairs(pending: &[PendingError]) -> String {
    if pending.is_empty() {
        return "nothing".into();
    }
    pending.iter().map(|p| format!("{}={}", p.tool, p.code)).collect::<Vec<_>>().join(", ")
}

impl From<SessionError> for RunError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Aborted { tool, reason } => Self::Aborted { tool, reason },
            SessionError::Interrupted { .. } => Self::Cancelled,
            other => Self::Session(other),
        }
    }
}

impl RunError {
    /// Stable code for records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Session(_) => "session_stopped",
            Self::Model { source: ModelError::Recording(_), .. } => "recording_failed",
            Self::Model { .. } => "model_failed",
            Self::EmptyAnswers { .. } => "empty_answers",
            Self::PhaseProtocol { .. } => "phase_completion_protocol_exhausted",
            Self::NoTradingDay { .. } => "no_trading_day",
            Self::Cancelled => "cancelled",
            Self::Budget(_) => "budget_exhausted",
            Self::BudgetUnmeasured { .. } => "budget_unmeasured",
            Self::Transcript { .. } => "transcript_not_kept",
            Self::Aborted { .. } => "aborted",
        }
    }

    /// The status a run ends under.
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Cancelled => RunStatus::Cancelled,
            Self::Budget(_) => RunStatus::BudgetExhausted,
            Self::Aborted { .. } => RunStatus::Aborted,
            _ => RunStatus::Failed,
        }
    }

    /// Facts for the stop record. Wall time is a fact of the machine, so a record has its limit and never what was measured.
    pub(crate) fn detail(&self) -> Value {
        match self {
            Self::Budget(b) if b.which == BudgetKind::WallTime => json!({ "which": b.which, "limit": b.limit }),
            Self::Budget(b) => json!({ "which": b.which, "limit": b.limit, "used": b.used }),
            Self::BudgetUnmeasured { which } => json!({ "which": which }),
            Self::Aborted { tool, reason } => json!({ "tool": tool, "reason": reason }),
            Self::EmptyAnswers { step } => json!({ "step": step }),
            _ => Value::Null,
        }
    }

    /// The sentence for the stop record; as the error says it, but without what was measured.
    pub(crate) fn recorded_message(&self) -> String {
        match self {
            Self::Budget(b) if b.which == BudgetKind::WallTime => {
                format!("the run's budget of {} {} is used up", b.limit, b.which.unit())
            }
            other => other.to_string(),
        }
    }
}

/// An answer that cannot be kept is no fault of the model's.
fn unanswered(step: u64, source: &ModelError) -> String {
    match source {
        ModelError::Recording(_) => format!("the answer to request {step} cannot be kept"),
        _ => format!("the model did not answer request {step}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traderharness_replay::RecordingError;

    #[test]
    fn a_full_disk_is_not_blamed_on_the_model() {
        let full = RecordingError::Diverged { what: "no space left".to_owned() };
        let error = RunError::Model { step: 4, source: full.into() };
        assert_eq!((error.code(), error.to_string().as_str()), ("recording_failed", "the answer to request 4 cannot be kept"));
    }
}
