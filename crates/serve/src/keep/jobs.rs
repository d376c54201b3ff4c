//! Jobs: calls that go on after their answer.

use super::answers::{Outcome, forget};
use super::pack::{pack, unpack};
use super::{Keep, KeepError};
use crate::refusal::Refusal;
use rusqlite::{OptionalExtension, Transaction, params};
use traderharness_contract::FailureClass;

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// Waits for a worker.
    Accepted,
    /// A worker is at it.
    Running,
    /// It has a result.
    Succeeded,
    /// It has an error record.
    Failed,
    /// Its caller asked it to end before it did anything.
    Cancelled,
    /// The server ended before it did; it had no effect.
    Interrupted,
}

impl JobState {
    const ALL: [Self; 6] = [Self::Accepted, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled, Self::Interrupted];

    /// Wire name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A job as it is kept.
#[derive(Debug)]
pub(crate) struct JobRow {
    pub(crate) caller: String,
    pub(crate) state: JobState,
    pub(crate) outcome: Option<Outcome>,
}

/// Keeps a new job.
pub(crate) fn insert(
    t: &Transaction<'_>,
    id: &str,
    caller: &str,
    session: &str,
    capability: &str,
    key: &[u8; 32],
) -> Result<(), KeepError> {
    t.execute(
        "INSERT INTO jobs (id, caller, session, capability, key, state) VALUES (?1, ?2, ?3, ?4, ?5, 'accepted')",
        params![id, caller, session, capability, key],
    )?;
    Ok(())
}

/// Keeps how a job stands.
pub(crate) fn settle(t: &Transaction<'_>, id: &str, state: JobState, outcome: Option<&Outcome>) -> Result<(), KeepError> {
    let answer = outcome.map(pack).transpose()?;
    t.execute("UPDATE jobs SET state = ?2, answer = ?3 WHERE id = ?1", params![id, state.as_str(), answer])?;
    Ok(())
}

impl Keep {
    /// A job.
    pub(crate) fn job(&self, id: &str) -> Result<Option<JobRow>, KeepError> {
        let connection = self.lock();
        let found: Option<(String, String, Option<Vec<u8>>)> = connection
            .prepare_cached("SELECT caller, state, answer FROM jobs WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((caller, state, answer)) = found else { return Ok(None) };
        let state = JobState::ALL.into_iter().find(|s| s.as_str() == state);
        let state = state.ok_or(KeepError::Broken { what: "a job", fault: "its state is unknown".to_owned() })?;
        let outcome = answer.map(|bytes| unpack("a job", &bytes)).transpose()?;
        Ok(Some(JobRow { caller, state, outcome }))
    }

    /// Marks what ran when the process ended: such a job did nothing that was kept, and its key may be used again. Gives how many.
    pub(crate) fn interrupt_jobs(&self) -> Result<usize, KeepError> {
        let refusal = Refusal::new(
            FailureClass::DependencyUnavailable,
            503,
            "job_interrupted",
            "The server ended before the job did. Nothing of it was kept; send the call again under the same key.",
            true,
        );
        self.together(|t| {
            let mut statement =
                t.prepare("SELECT id, caller, capability, key FROM jobs WHERE state IN ('accepted', 'running')")?;
            let open = statement
                .query_map([], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, row.get::<_, Vec<u8>>(3)?))
                })?
                .collect::<Result<Vec<_>, _>>()?;
            for (id, caller, capability, key) in &open {
                settle(t, id, JobState::Interrupted, Some(&Outcome::Refused(refusal.clone())))?;
                forget(t, caller, capability, key)?;
            }
            Ok(open.len())
        })
    }
}
