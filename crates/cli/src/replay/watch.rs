//! Stands between a run and the recording that answers it: ends the replay after a number of requests, and explains the first request
//! that is not the recorded one. It answers nothing itself.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use traderharness_harness::model::{Asked, ModelClient, ModelError, ReplayClient, Turn};
use traderharness_harness::resume::CheckingJournal;
use traderharness_harness::session::Journal;
use traderharness_replay::explain::{Explanation, explain};
use traderharness_replay::{Cassette, Record, RecordingError, Replay, ReplayError, Request, Response};

/// How far a replay goes and what it shows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Watch {
    /// Requests to answer.
    pub(crate) until: Option<u64>,
    /// Explain the first difference.
    pub(crate) explain: bool,
}

/// The first request that was not answered, or was not to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Requests that were the recorded ones.
    pub(crate) answered: u64,
    /// The end that was asked for is reached.
    pub(crate) reached: bool,
    /// What was wrong with the first request that got no answer.
    pub(crate) wrong: Option<Wrong>,
}

/// Why a request got no answer.
#[derive(Debug, Clone)]
pub(crate) enum Wrong {
    /// It is not the recorded one.
    Other(Box<Explained>),
    /// All recorded ones are used.
    Exhausted,
    /// It was recorded without an answer; so many of its scope came before.
    NoOutput(usize),
    /// Anything else.
    Unclear,
}

/// A difference and where it is in the recording.
#[derive(Debug, Clone)]
pub(crate) struct Explained {
    scope: String,
    index: usize,
    line: usize,
    explanation: Result<Explanation, &'static str>,
}

impl Explained {
    pub(crate) fn text(&self) -> String {
        let place = format!("request {} (counted from 0) of scope {}, line {}", self.index, self.scope, self.line);
        match &self.explanation {
            Ok(explanation) => format!("{place}\n{}", explanation.text()),
            Err(why) => format!("{place}\n{why}"),
        }
    }

    pub(crate) fn machine(&self) -> Value {
        let (difference, reason) = match &self.explanation {
            Ok(explanation) => (json!(explanation), Value::Null),
            Err(why) => (Value::Null, (*why).into()),
        };
        json!({ "scope": self.scope, "request": self.index, "line": self.line, "first_difference": difference, "reason": reason })
    }
}

/// The client of a replay.
#[derive(Debug)]
pub(crate) struct Watched {
    inner: ReplayClient,
    cassette: Arc<Cassette>,
    watch: Watch,
    pub(crate) seen: Seen,
}

impl Watched {
    pub(crate) fn new(replay: Replay, watch: Watch) -> Self {
        Self { cassette: replay.shared(), inner: ReplayClient::new(replay), watch, seen: Seen::default() }
    }

    pub(crate) fn into_player(self) -> Replay {
        self.inner.into_player()
    }

    /// Whether one more request may be answered.
    fn may(&mut self) -> Result<(), ModelError> {
        match self.watch.until {
            Some(until) if self.seen.answered >= until => {
                self.seen.reached = true;
                let total = usize::try_from(until).unwrap_or(usize::MAX);
                let scope = "the part that was to be replayed".to_owned();
                Err(ReplayError::Exhausted { index: total, total, scope, sealed: true }.into())
            }
            _ => Ok(()),
        }
    }

    fn note<T>(&mut self, request: &Request, answer: &Result<T, ModelError>) {
        match answer {
            // A recorded failure of an advisor is one of its requests, too.
            Ok(_) | Err(ModelError::Unanswered { .. }) => self.seen.answered += 1,
            Err(_) if self.seen.wrong.is_some() || self.seen.reached => {}
            Err(ModelError::Replay(error)) => self.seen.wrong = Some(self.wrong(error, request)),
            Err(_) => self.seen.wrong = Some(Wrong::Unclear),
        }
    }

    fn wrong(&self, error: &ReplayError, request: &Request) -> Wrong {
        match error {
            ReplayError::Mismatch { index, scope, place, .. } => {
                let call = self.cassette.calls().iter().filter(|call| call.scope == *scope).nth(*index);
                let recorded = call.map(|call| self.cassette.request(call.step));
                let explanation = match recorded {
                    Some(Ok(Some(recorded))) => explain(&recorded, request)
                        .ok_or("the request stored in the recording equals the one made now, so the file was changed by hand"),
                    Some(Ok(None)) => Err("the recording holds digests of its requests only, so what differs cannot be shown"),
                    _ => Err("the recorded request cannot be put together from the file"),
                };
                Wrong::Other(Box::new(Explained { scope: scope.clone(), index: *index, line: place.line, explanation }))
            }
            ReplayError::Exhausted { .. } => Wrong::Exhausted,
            ReplayError::NoOutput { index, .. } => Wrong::NoOutput(*index),
            _ => Wrong::Unclear,
        }
    }
}

#[async_trait]
impl ModelClient for Watched {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        self.may()?;
        let answer = self.inner.complete(request, turn).await;
        self.note(request, &answer);
        answer
    }

    async fn complete_in(&mut self, scope: &str, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        self.may()?;
        let answer = self.inner.complete_in(scope, request, turn).await;
        self.note(request, &answer);
        answer
    }

    async fn complete_all(&mut self, asked: &[Asked<'_>]) -> Vec<Result<Response, ModelError>> {
        let mut answers = Vec::with_capacity(asked.len());
        for one in asked {
            if let Err(end) = self.may() {
                answers.push(Err(end));
                continue;
            }
            // One by one, so that the end can fall between them; a recording does not care.
            let one_of = [Asked { scope: one.scope, request: one.request, turn: one.turn }];
            let answer = self.inner.complete_all(&one_of).await.pop();
            let answer = answer.unwrap_or_else(|| Err(ModelError::Unanswered { why: "nothing".to_owned() }));
            self.note(one.request, &answer);
            answers.push(answer);
        }
        answers
    }
}

/// A journal that notes the first record that is not the kept one and lets the run go on, so that it comes to the request in which that
/// shows.
#[derive(Debug, Clone)]
pub(crate) struct Noting {
    inner: CheckingJournal,
    first: Arc<Mutex<Option<RecordingError>>>,
}

impl Noting {
    pub(crate) fn new(inner: CheckingJournal) -> Self {
        Self { inner, first: Arc::default() }
    }

    /// The first record that was not the kept one.
    pub(crate) fn diverged(&self) -> Option<RecordingError> {
        self.first.lock().ok().and_then(|mut first| first.take())
    }
}

impl Journal for Noting {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        match self.inner.append(record) {
            Err(error @ RecordingError::Diverged { .. }) => {
                if let Ok(mut first) = self.first.lock() {
                    first.get_or_insert(error);
                }
                Ok(())
            }
            other => other,
        }
    }

    fn kept_external(&mut self, call_id: &str, tool: &str) -> Option<Value> {
        self.inner.kept_external(call_id, tool)
    }
}
