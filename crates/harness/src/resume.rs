//! Going on with a run that was killed: it is played again from its first day, the recorded answers stand in for the model, every
//! record that is already kept must come out the same, and only what is new is written. So nothing is lost and no order is placed twice:
//! the account is rebuilt by the same calls that built it.

use crate::model::{ModelClient, ModelError, Turn};
use crate::session::Journal;
use async_trait::async_trait;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use traderharness_replay::cassette::DEFAULT_SCOPE;
use traderharness_replay::trajectory::Entry;
use traderharness_replay::{Player, Record, Recorder, RecordingError, Request, Response, Trajectory};

/// A trajectory that already holds the first part of the run.
#[derive(Debug)]
pub struct ResumingJournal {
    kept: VecDeque<Record>,
    trajectory: Trajectory,
    diverged: bool,
}

impl ResumingJournal {
    /// A journal over an interrupted trajectory and what it holds.
    pub fn new(trajectory: Trajectory, entries: Vec<Entry>) -> Self {
        Self { kept: of_the_run(entries), trajectory, diverged: false }
    }
}

impl Journal for ResumingJournal {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        match self.kept.pop_front() {
            None if !self.diverged => Journal::append(&mut self.trajectory, record),
            Some(kept) if kept == record => Ok(()),
            // Once the run has left its record, nothing more of it may be written.
            _ => {
                self.diverged = true;
                Err(diverged(&record))
            }
        }
    }
}

/// Holds a run against the whole trajectory that was kept of it; writes nothing. Copies share what is left.
#[derive(Debug, Clone, Default)]
pub struct CheckingJournal {
    kept: Arc<Mutex<VecDeque<Record>>>,
}

impl CheckingJournal {
    /// A journal that expects these records.
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { kept: Arc::new(Mutex::new(of_the_run(entries))) }
    }

    /// How many records have not come yet.
    pub fn left(&self) -> usize {
        self.kept.lock().map_or(0, |kept| kept.len())
    }
}

impl Journal for CheckingJournal {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        let kept = self.kept.lock().ok().and_then(|mut kept| kept.pop_front());
        if kept.as_ref() == Some(&record) { Ok(()) } else { Err(diverged(&record)) }
    }
}

/// What a run gives again: its set-up stands in the file itself, and the reason a run stopped for is not part of it.
fn of_the_run(entries: Vec<Entry>) -> VecDeque<Record> {
    let records = entries.into_iter().map(|e| e.record);
    records.filter(|r| !matches!(r, Record::RunStart(_) | Record::Error { .. })).collect()
}

fn diverged(record: &Record) -> RecordingError {
    RecordingError::Diverged { what: format!("the run now gives {record:?}").chars().take(300).collect() }
}

/// The client that records: answers from the interrupted recording as far as there is one, then from the model, whose answers are
/// recorded before they are used.
#[derive(Debug)]
pub struct ResumingClient<C> {
    player: Option<Player>,
    inner: C,
    recorder: Recorder,
}

impl<C> ResumingClient<C> {
    /// A client over what [`Recorder::resume`] gave back; `None` for a run that starts.
    pub const fn new(player: Option<Player>, inner: C, recorder: Recorder) -> Self {
        Self { player, inner, recorder }
    }

    /// The recorder, to finish the file.
    pub fn into_recorder(self) -> Recorder {
        self.recorder
    }
}

#[async_trait]
impl<C: ModelClient> ModelClient for ResumingClient<C> {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        if let Some(player) = self.player.as_mut().filter(|p| p.played() < p.total()) {
            return Ok(player.next(request)?);
        }
        let response = self.inner.complete(request, turn).await?;
        self.recorder.record(DEFAULT_SCOPE, request, &response)?;
        Ok(response)
    }
}
