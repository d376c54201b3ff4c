//! Counts since the process started. Names of classes only, never of callers.

use crate::reply::Metrics;
use std::sync::atomic::{AtomicU64, Ordering};
use traderharness_contract::{Effect, FailureClass};

const EFFECTS: [(Effect, &str); 4] =
    [(Effect::Read, "read"), (Effect::Compute, "compute"), (Effect::Mutation, "mutation"), (Effect::Financial, "financial")];

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Counts {
    calls: [AtomicU64; 4],
    refusals: [AtomicU64; FailureClass::ALL.len()],
    replayed: AtomicU64,
    units: AtomicU64,
}

impl Counts {
    pub(super) fn called(&self, effect: Effect, units: u64) {
        if let Some(place) = EFFECTS.iter().position(|(e, _)| *e == effect) {
            self.calls[place].fetch_add(1, Ordering::Relaxed);
        }
        self.units.fetch_add(units, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, class: FailureClass) {
        if let Some(count) = FailureClass::ALL.iter().position(|c| *c == class).and_then(|place| self.refusals.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn replayed(&self) {
        self.replayed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn metrics(&self) -> Metrics {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Metrics {
            calls: EFFECTS.iter().zip(&self.calls).map(|((_, name), count)| ((*name).to_owned(), read(count))).collect(),
            refusals: FailureClass::ALL
                .iter()
                .zip(&self.refusals)
                .map(|(class, count)| (class.as_str().to_owned(), read(count)))
                .collect(),
            replayed: read(&self.replayed),
            units: read(&self.units),
            ..Metrics::default()
        }
    }
}
