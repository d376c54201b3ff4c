//! The loop: days, decision points, model turns, the close fallback (engine E10).
//!
//! The loop owns no rule of the market and no rule of a tool; it asks the model, hands each call to [`Session::call_as`], and moves the
//! clock when a phase was completed or its turns are used up. It is built on the public functions of [`Session`] alone, so a host can
//! write its own: [`own_loop`] is one.
//!
//! | file | holds |
//! |---|---|
//! | `driver` | days and decision points |
//! | `turn` | one request and the calls of its answer |
//! | `taken` | the calls of an answer, in normal form |
//! | `committee` | what advisors say before the agent's first turn |
//! | `rounds` | what a series of answers says about the agent: errors only, nothing at all, the same again |
//! | `shrink` | compaction of what a request shows |
//! | [`budget`] | limits of a run, tokens and cost |
//! | [`error`] | what stops a run |
//! | [`record`] | day records and the summary |

pub mod budget;
mod committee;
mod driver;
pub mod error;
#[doc = include_str!("own_loop.md")]
pub mod own_loop {}
pub mod record;
mod rounds;
mod shrink;
mod taken;
mod turn;

pub use budget::{BudgetExhausted, BudgetKind, Budgets, Prices, Spending, Stopwatch};
pub use error::RunError;
pub use record::{Advice, CallCounts, DayRecord, FinishFailure, RunStatus, RunSummary};

use crate::context::ContextPolicy;
use crate::dispatch::CallReport;
use crate::model::{ModelClient, ModelError};
use crate::{CancelToken, Session};
use driver::Loop;
use serde_json::{Map, Value};
use std::sync::Arc;
use traderharness_contract::version::Version;
use traderharness_market::Day;
use traderharness_replay::{Record, Response};

/// Contract version of new runs; a session says under which it is ([`Session::contract`]).
pub const CONTRACT_VERSION: &str = Version::V5.as_str();

/// What a run is played with, beside session, model and days.
#[derive(Debug, Clone, Default)]
pub struct RunSettings {
    /// Model name.
    pub model: String,
    /// Sampling parameters of every request.
    pub sampling: Map<String, Value>,
    /// Limits of the run. They are no part of a recording: a run that stopped at one can be resumed with a larger one.
    pub budgets: Budgets,
    /// What tokens cost.
    pub prices: Option<Prices>,
    /// Measures [`Budgets::max_wall_millis`].
    pub stopwatch: Option<Arc<dyn Stopwatch>>,
    /// Ends the run when it is set.
    pub cancel: CancelToken,
    /// When and how the conversation that a request shows is shrunk; as the card says when absent. Request bytes depend on it, so a
    /// replay needs the same.
    pub context: Option<ContextPolicy>,
}

/// Hears what happens, for a terminal or a log. Default methods do nothing.
pub trait Observer: Send {
    /// A day starts.
    fn day(&mut self, _session: &Session) {}
    /// A decision point opens.
    fn point(&mut self, _session: &Session, _text: &str) {}
    /// The model answered.
    fn answer(&mut self, _session: &Session, _response: &Response) {}
    /// A call was answered.
    fn call(&mut self, _session: &Session, _report: &CallReport) {}
    /// An advisor's call was answered.
    fn advisor_call(&mut self, _session: &Session, _role: &str, _report: &CallReport) {}
    /// An advisor made its statement, or none.
    fn advisor(&mut self, _session: &Session, _role: &str, _said: Result<&str, &str>) {}
    /// The model of an advisor did not answer.
    fn advisor_failed(&mut self, _session: &Session, _role: &str, _error: &ModelError) {}
    /// A day ended.
    fn day_end(&mut self, _session: &Session, _record: &DayRecord) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;
impl Observer for Silent {}

/// What became of a run: the summary of what was done, and why it stopped if it did.
#[derive(Debug)]
pub struct Outcome {
    /// Everything until the end or the stop.
    pub summary: RunSummary,
    /// Why it stopped before its last day ended.
    pub stopped: Option<RunError>,
}

/// Runs a session over days to their end.
///
/// # Errors
/// [`RunError`]; the journal holds everything up to that point. [`play`] gives the summary of a run that stopped too.
pub async fn run(
    session: &mut Session,
    client: &mut dyn ModelClient,
    days: &[Day],
    settings: &RunSettings,
    observer: &mut dyn Observer,
) -> Result<RunSummary, RunError> {
    let outcome = play(session, client, days, settings, observer).await;
    outcome.stopped.map_or(Ok(outcome.summary), Err)
}

/// Runs a session over days, to their end or to what stops it. The last records are then `error` with the reason and `run_end` with
/// the status and the totals; a resumed run passes over both.
pub async fn play(
    session: &mut Session,
    client: &mut dyn ModelClient,
    days: &[Day],
    settings: &RunSettings,
    observer: &mut dyn Observer,
) -> Outcome {
    session.set_cancel(settings.cancel.clone());
    let mut driver = Loop::new(session, client, settings, observer, days.len());
    let mut records = Vec::with_capacity(days.len());
    let mut stopped = driver.check_settings().err();
    for day in days {
        if stopped.is_some() {
            break;
        }
        match driver.day(*day).await {
            Ok(record) => records.push(record),
            Err(error) => stopped = Some(error),
        }
    }
    let facts = driver.stop_facts();
    let summary = driver.summary(records, stopped.as_ref());
    let status = summary.status.as_str().to_owned();
    let totals = serde_json::to_value(&summary).unwrap_or_default();
    if let Some(error) = &stopped {
        let message = match session.masked(error.recorded_message().into()) {
            Value::String(message) => message,
            other => other.to_string(),
        };
        let mut detail = error.detail();
        if let Some(facts) = facts {
            let mut map = detail.as_object().cloned().unwrap_or_default();
            map.extend(facts);
            detail = Value::Object(map);
        }
        // If even the reason cannot be kept, the first error still is the answer.
        let kept = session.append(Record::Error { code: error.code().to_owned(), message, detail });
        if kept.is_ok() {
            let _ = session.append(Record::RunEnd { status, totals });
        }
    } else if let Err(error) = session.append(Record::RunEnd { status, totals }) {
        stopped = Some(error.into());
    }
    Outcome { summary, stopped }
}
