//! [`Tape`]: the journal of a hosted session. It holds the records of one operation until they are kept in one transaction with the
//! answer; nobody is answered before. While a session is made again it gives back what answered from outside.

use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use traderharness_harness::session::Journal;
use traderharness_replay::{Record, RecordingError};

#[derive(Debug, Default)]
struct Reels {
    /// Records of the operation so far.
    fresh: Vec<Record>,
    /// Kept records of what answered from outside, of an operation that is done again.
    outside: VecDeque<Record>,
}

/// A journal whose records its other holder takes. Copies share one tape.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tape(Arc<Mutex<Reels>>);

impl Tape {
    fn lock(&self) -> MutexGuard<'_, Reels> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the records since the last time.
    pub(crate) fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.lock().fresh)
    }

    /// Lays in what answered from outside when the next operation was done first; what was laid in before is gone.
    pub(crate) fn lay_in(&self, kept: &[Record]) {
        self.lock().outside = kept.iter().filter(|r| matches!(r, Record::External { .. })).cloned().collect();
    }
}

impl Journal for Tape {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        let mut reels = self.lock();
        // An outside answer was used up when it is recorded again.
        if let Record::External { .. } = &record
            && reels.outside.front() == Some(&record)
        {
            reels.outside.pop_front();
        }
        reels.fresh.push(record);
        Ok(())
    }

    fn kept_external(&mut self, asked: &str, by: &str) -> Option<Value> {
        self.lock().outside.iter().find_map(|record| match record {
            Record::External { call_id, tool, outcome } if call_id == asked && tool == by => Some(outcome.clone()),
            _ => None,
        })
    }
}
