//! [`rerun`]: a session played again from its records alone, over the same data: for whoever has a recording of it and not the house that
//! kept it. What the session did comes from the calls among its records, and every record must come out as it was kept; what answered
//! from outside is taken from them, and nothing outside is asked.

use super::play::Play;
use super::restore::is_notice;
use super::world::{World, WorldFault};
use crate::config::Profile;
use std::sync::Arc;
use traderharness_harness::run::{RunStatus, RunSummary, Spending};
use traderharness_harness::{CancelToken, Sandbox, SessionError};
use traderharness_market::{Cash, Store};
use traderharness_replay::Record;
use traderharness_tools_exec::Fill;

/// `stop_code` of a session that its caller closed before its window ended.
const CLOSED: &str = "session_closed";

/// Why a session does not come out as its records have it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RerunFault {
    /// Card, window or dataset make no session.
    #[error(transparent)]
    World(#[from] WorldFault),
    /// An operation that was done cannot be done again.
    #[error("the call of record {record} cannot be made again")]
    Session {
        /// Number of the record in the trajectory.
        record: usize,
        /// What the session said.
        source: SessionError,
    },
    /// The session gives another record.
    #[error("record {record} of the trajectory is not what the session gives: kept {kept}, now {now}")]
    Diverged {
        /// Number of the record in the trajectory.
        record: usize,
        /// The record that was kept, cut short; `nothing` at its end.
        kept: String,
        /// The record that came now.
        now: String,
    },
    /// A record that no session gives where it stands.
    #[error("record {record} of the trajectory belongs to no call")]
    Unexpected {
        /// Number of the record in the trajectory.
        record: usize,
    },
    /// The session had not ended when its records end.
    #[error("the trajectory ends before its session does, after {records} records")]
    Unfinished {
        /// Records that there are.
        records: usize,
    },
}

/// What a session came to that was played again.
#[derive(Debug)]
pub struct Rerun {
    /// Days, calls, assets. No model was asked, so nothing was spent.
    pub summary: RunSummary,
    /// Cash at the start.
    pub initial: Cash,
    /// Fills with real codes and days.
    pub fills: Vec<Fill>,
}

/// Plays a session again that ended. `records` are those of its trajectory, the first of them its `run_start`, which is not compared: it
/// names the recording. `key` is the session's own.
///
/// # Errors
/// [`RerunFault`] at the first record that differs.
pub fn rerun(
    profile: &Profile,
    store: Arc<Store>,
    key: &[u8],
    sandbox: Option<Sandbox>,
    records: &[Record],
) -> Result<Rerun, RerunFault> {
    let world = Arc::new(World::of(profile, store, false)?);
    let again = |record| move |source| RerunFault::Session { record, source };
    let mut play = Play::start(world, key, sandbox).map_err(again(0))?;
    let mut kept = Kept { records, at: 1 };
    kept.hold(play.tape().take().into_iter().skip(1))?;
    while let Some(next) = kept.next() {
        let record = kept.at;
        if play.is_finished() {
            return Err(RerunFault::Unexpected { record });
        }
        play.tape().lay_in(kept.of_this_call());
        match next {
            Record::ToolCall { scope: None, tool, arguments, .. } => {
                let arguments = serde_json::from_str(arguments).map_err(|_| RerunFault::Unexpected { record })?;
                play.call(tool, &arguments, CancelToken::new()).map_err(again(record))?;
            }
            Record::Completion { .. } => drop(play.step().map_err(again(record))?),
            Record::RunEnd { .. } => play.end("closed").map_err(again(record))?,
            _ => return Err(RerunFault::Unexpected { record }),
        }
        kept.hold(play.tape().take().into_iter())?;
    }
    let closed = match records.iter().rev().find(|record| !is_notice(record)) {
        Some(Record::RunEnd { status, .. }) => status == "closed",
        _ => return Err(RerunFault::Unfinished { records: records.len() }),
    };
    let account = play.session().account();
    let (initial, last) = (account.initial_cash, account.equity(&play.session().view()));
    let summary = RunSummary {
        status: if closed { RunStatus::Cancelled } else { RunStatus::Completed },
        stop_code: closed.then_some(CLOSED),
        initial_cash: initial.to_f64(),
        final_equity: last.to_f64(),
        return_pct: RunSummary::percent(initial, last),
        requests: 0,
        calls: play.all_counts(),
        advice: None,
        spending: Spending::default(),
        days: play.days().to_vec(),
    };
    Ok(Rerun { summary, initial, fills: account.fills().to_vec() })
}

/// Records of a trajectory, as far as they came out again.
struct Kept<'r> {
    records: &'r [Record],
    at: usize,
}

impl<'r> Kept<'r> {
    /// The next record of the session, without going on.
    fn next(&mut self) -> Option<&'r Record> {
        while self.records.get(self.at).is_some_and(is_notice) {
            self.at += 1;
        }
        self.records.get(self.at)
    }

    /// Records from here to the next call.
    fn of_this_call(&self) -> &'r [Record] {
        let rest = self.records.get(self.at..).unwrap_or_default();
        let calls = rest.iter().skip(1).position(|record| matches!(record, Record::ToolCall { scope: None, .. }));
        rest.get(..calls.map_or(rest.len(), |calls| calls + 1)).unwrap_or_default()
    }

    fn hold(&mut self, now: impl Iterator<Item = Record>) -> Result<(), RerunFault> {
        for now in now.filter(|record| !is_notice(record)) {
            let kept = self.next();
            if kept != Some(&now) {
                let kept = kept.map_or_else(|| "nothing".to_owned(), shown);
                return Err(RerunFault::Diverged { record: self.at, kept, now: shown(&now) });
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A record, cut to what fits a line.
fn shown(record: &Record) -> String {
    serde_json::to_string(record).unwrap_or_default().chars().take(200).collect()
}
