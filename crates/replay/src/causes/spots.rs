//! Where in a run a call was made, and a digest of all that had been done until then: two runs are in the same state where these are the same.

use crate::Fingerprint;
use crate::cassette::ADVISOR;
use crate::trajectory::{Entry, Record};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The moment of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    /// Day of the run, from 1.
    pub(super) day: u32,
    /// Decision point.
    pub(super) point: String,
    /// Digest of every call of a tool, order, fill and word of an advisor before it.
    pub(super) done: Fingerprint,
}

/// All moments of a run, and the tools that somebody outside answered for.
#[derive(Debug, Default)]
pub(super) struct Spots {
    at: BTreeMap<usize, Spot>,
    pub(super) outside: BTreeSet<String>,
    /// How the run ended; `None` when it did not.
    pub(super) ended: Option<String>,
}

impl Spots {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut spots = Self::default();
        let (mut day, mut point, mut done) = (0, String::new(), Sha256::new());
        for entry in entries {
            let what = match &entry.record {
                // The words of an advisor go to another one.
                Record::ModelResponse { scope, response, .. } if scope.contains(ADVISOR) => json!([scope, response.message]),
                Record::ModelFailure { scope, error, .. } => json!([scope, error]),
                Record::ToolCall { scope, tool, arguments, .. } => json!([scope, tool, arguments]),
                Record::Order { event } | Record::Fill { event } => json!(["event", event]),
                other => {
                    spots.note(other, (&mut day, &mut point), &done);
                    continue;
                }
            };
            done.update(Fingerprint::of(&what).0);
        }
        spots
    }

    fn note(&mut self, record: &Record, (day, point): (&mut u32, &mut String), done: &Sha256) {
        match record {
            Record::DayStart { day_index, .. } => *day = *day_index,
            Record::DecisionPoint { point: name, .. } => point.clone_from(name),
            Record::ModelRequest { step, .. } => {
                let done = Fingerprint(done.clone().finalize().into());
                self.at.insert(*step, Spot { day: *day, point: point.clone(), done });
            }
            Record::External { tool, .. } => drop(self.outside.insert(tool.clone())),
            Record::RunEnd { status, .. } => self.ended = Some(status.clone()),
            _ => {}
        }
    }

    /// The moment of the request `step` of the file.
    pub(super) fn at(&self, step: usize) -> Option<&Spot> {
        self.at.get(&step)
    }
}
