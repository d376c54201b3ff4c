//! Going on with a run that was killed: it is played again from its first day, the recorded answers stand in for the model, every
//! record that is already kept must come out the same, and only what is new is written. So nothing is lost and no order is placed twice:
//! the account is rebuilt by the same calls that built it.

use crate::model::{Asked, ModelClient, ModelError, Turn};
use crate::run::RunStatus;
use crate::sandbox;
use crate::session::Journal;
use async_trait::async_trait;
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use traderharness_replay::cassette::DEFAULT_SCOPE;
use traderharness_replay::trajectory::Entry;
use traderharness_replay::{Record, Recorder, RecordingError, Replay, Request, Response, Trajectory};
use traderharness_tools_exec::CodeOutcome;

/// Differences shown of an outcome.
const DIFFERENCES: usize = 6;

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
        if matches!(record, Record::Notice { .. }) && !self.kept.is_empty() {
            return Ok(());
        }
        match self.kept.pop_front() {
            None if !self.diverged => Journal::append(&mut self.trajectory, record),
            Some(kept) if kept == record => Ok(()),
            // Once the run has left its record, nothing more of it may be written.
            kept => {
                self.diverged = true;
                Err(diverged(kept.as_ref(), &record))
            }
        }
    }

    fn kept_external(&mut self, call_id: &str, tool: &str) -> Option<Value> {
        front(&self.kept, call_id, tool)
    }
}

/// What answered this call from outside, when its record comes before the model is asked again: calls that are asked together ask for
/// all their answers before the first of them is settled.
fn front(kept: &VecDeque<Record>, asked: &str, by: &str) -> Option<Value> {
    let of_the_message = |r: &&Record| !matches!(r, Record::ModelRequest { .. } | Record::DecisionPoint { .. });
    kept.iter().take_while(of_the_message).find_map(|record| match record {
        Record::External { call_id, tool, outcome } if call_id == asked && tool == by => Some(outcome.clone()),
        _ => None,
    })
}

/// Holds a run against the whole trajectory that was kept of it; writes nothing. Copies share what is left.
#[derive(Debug, Clone, Default)]
pub struct CheckingJournal {
    kept: Arc<Mutex<VecDeque<Record>>>,
    runs_code: bool,
    from_recording: Arc<AtomicU64>,
}

impl CheckingJournal {
    /// A journal that expects these records.
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { kept: Arc::new(Mutex::new(of_the_run(entries))), ..Self::default() }
    }

    /// Gives the recorded outcome of code only where another machine could have ended otherwise ([`CodeOutcome::depends_on_machine`]);
    /// all other code runs again, and its outcome must be the recorded one. Tools of plug-ins are never asked again.
    #[must_use]
    pub fn running_code(mut self) -> Self {
        self.runs_code = true;
        self
    }

    /// Code that was not run again: its outcome came from the recording.
    pub fn code_from_recording(&self) -> u64 {
        self.from_recording.load(Ordering::Relaxed)
    }

    /// How many records have not come yet.
    pub fn left(&self) -> usize {
        self.kept.lock().map_or(0, |kept| kept.len())
    }
}

impl Journal for CheckingJournal {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        if matches!(record, Record::Notice { .. }) {
            return Ok(());
        }
        let kept = self.kept.lock().ok().and_then(|mut kept| kept.pop_front());
        if kept.as_ref() == Some(&record) { Ok(()) } else { Err(diverged(kept.as_ref(), &record)) }
    }

    fn kept_external(&mut self, call_id: &str, tool: &str) -> Option<Value> {
        let outcome = self.kept.lock().ok().and_then(|kept| front(&kept, call_id, tool))?;
        if tool == sandbox::TOOL {
            let again = |outcome: &CodeOutcome| self.runs_code && !outcome.depends_on_machine();
            if CodeOutcome::deserialize(&outcome).is_ok_and(|outcome| again(&outcome)) {
                return None;
            }
            self.from_recording.fetch_add(1, Ordering::Relaxed);
        }
        Some(outcome)
    }
}

/// What a run gives again: its set-up stands in the file itself, the machine is another one, and that it stopped, and why, is no part
/// of it.
fn of_the_run(entries: Vec<Entry>) -> VecDeque<Record> {
    let about_the_process = |r: &Record| match r {
        Record::RunStart(_) | Record::Notice { .. } | Record::Error { .. } => true,
        Record::RunEnd { status, .. } => status != RunStatus::Completed.as_str(),
        _ => false,
    };
    entries.into_iter().map(|e| e.record).filter(|r| !about_the_process(r)).collect()
}

fn diverged(kept: Option<&Record>, record: &Record) -> RecordingError {
    let what = match (kept, record) {
        (Some(Record::External { call_id, tool, outcome }), Record::External { outcome: now, .. }) => {
            format!("{tool}, call {call_id}, does not end as it was recorded:{}\n", told(outcome, now))
        }
        (Some(kept), record) => {
            let (kept, now) = (as_json(kept), as_json(record));
            let (was, is) = (kind(&kept), kind(&now));
            if was == is {
                format!("a record of type {is} is not the recorded one:{}\n", told(&kept, &now))
            } else {
                format!("the run now gives a record of type {is} where the recording has one of type {was}")
            }
        }
        (None, record) => format!("the run now gives a record of type {} where the recording has ended", kind(&as_json(record))),
    };
    RecordingError::Diverged { what }
}

fn as_json(record: &Record) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}

fn kind(record: &Value) -> &str {
    record.get("type").and_then(Value::as_str).unwrap_or("unknown")
}

/// The first differences, one in a line.
fn told(recorded: &Value, now: &Value) -> String {
    traderharness_replay::diff::differences(recorded, now, DIFFERENCES)
        .iter()
        .map(|difference| format!("\n  {}", difference.to_string().replace('\n', "\n  ")))
        .collect()
}

/// The client that records: answers from the interrupted recording as far as there is one, then from the model, whose answers are
/// recorded before they are used. Each scope goes on where its own recording ends.
#[derive(Debug)]
pub struct ResumingClient<C> {
    replay: Option<Replay>,
    inner: C,
    recorder: Recorder,
}

impl<C> ResumingClient<C> {
    /// A client over what [`Recorder::resume`] gave back; `None` for a run that starts.
    pub const fn new(replay: Option<Replay>, inner: C, recorder: Recorder) -> Self {
        Self { replay, inner, recorder }
    }

    /// The model's client and the recorder, to end the one and finish the file of the other.
    pub fn into_parts(self) -> (C, Recorder) {
        (self.inner, self.recorder)
    }

    /// The recorder, to finish the file.
    pub fn into_recorder(self) -> Recorder {
        self.recorder
    }

    fn recorded(&mut self, scope: &str) -> Option<&mut Replay> {
        self.replay.as_mut().filter(|replay| replay.left(scope) > 0)
    }

    /// Records how a request of several ended. The silence of one is a fact of the run, which went on; another error stops the run and is
    /// asked for again.
    fn keep(&mut self, asked: &Asked<'_>, ended: Result<Response, ModelError>) -> Result<Response, ModelError> {
        match &ended {
            Ok(response) => drop(self.recorder.record(asked.scope, asked.request, response)?),
            Err(error) => {
                if let Some(why) = error.silence() {
                    self.recorder.record_failure(asked.scope, asked.request, &why)?;
                }
            }
        }
        ended
    }
}

#[async_trait]
impl<C: ModelClient> ModelClient for ResumingClient<C> {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        self.complete_in(DEFAULT_SCOPE, request, turn).await
    }

    async fn complete_in(&mut self, scope: &str, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        if let Some(replay) = self.recorded(scope) {
            return Ok(replay.next(scope, request)?);
        }
        let response = self.inner.complete_in(scope, request, turn).await?;
        self.recorder.record(scope, request, &response)?;
        Ok(response)
    }

    /// What is recorded is not asked again; the rest is asked at once and recorded in the order it was asked in, so that the recording
    /// does not tell who was ready first.
    async fn complete_all(&mut self, asked: &[Asked<'_>]) -> Vec<Result<Response, ModelError>> {
        let mut ended = Vec::with_capacity(asked.len());
        let mut rest = Vec::new();
        for one in asked {
            let kept = self.recorded(one.scope).map(|replay| match replay.next_or_failure(one.scope, one.request) {
                Ok(answer) => answer.map_err(|why| ModelError::Unanswered { why }),
                Err(fault) => Err(fault.into()),
            });
            if kept.is_none() {
                rest.push(*one);
            }
            ended.push(kept);
        }
        // A recording that does not fit stops the run before anything more is asked.
        let misfit = ended.iter().flatten().any(|kept| matches!(kept, Err(error) if error.silence().is_none()));
        let answers = if rest.is_empty() || misfit { Vec::new() } else { self.inner.complete_all(&rest).await };
        let mut answers = answers.into_iter();
        let mut settled = Vec::with_capacity(asked.len());
        let mut lost = misfit;
        for (one, kept) in asked.iter().zip(ended) {
            settled.push(match kept {
                Some(kept) => kept,
                // Behind a record that could not be kept none follows.
                None if lost => Err(RecordingError::Diverged { what: "an earlier answer could not be kept".to_owned() }.into()),
                None => {
                    let silent = || Err(ModelError::Unanswered { why: "nothing".to_owned() });
                    let kept = self.keep(one, answers.next().unwrap_or_else(silent));
                    lost = matches!(kept, Err(ModelError::Recording(_)));
                    kept
                }
            });
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kept: Option<&Record>, now: &Record, expected: &str) {
        let text = diverged(kept, now).to_string();
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("{ "), "the names of the program's own types are for nobody: {text}");
    }

    #[test]
    fn a_run_that_leaves_its_record_says_where_in_the_words_of_the_file() {
        let point = |name: &str| Record::DecisionPoint { point: name.to_owned(), time: "09:50".to_owned(), equity: None };
        let brief = Record::Brief { role: "user".to_owned(), text: "hello".to_owned() };
        check(None, &brief, "gives a record of type brief where the recording has ended");
        check(Some(&brief), &point("open_1"), "a record of type decision_point where the recording has one of type brief");
        check(Some(&point("open_1")), &point("open_2"), "open_2");
    }
}
