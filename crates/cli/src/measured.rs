//! What was measured of the machine while a run was played: time, processor and memory of the agent's code, waits for the model; and the
//! limits the process had. It is
//! written beside the run as `measured.json`, and nothing of it reaches a record or a result.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use traderharness_connect::Progress;
use traderharness_harness::run::{Budgets, DayRecord, Observer};
use traderharness_harness::{CallReport, Session};
use traderharness_replay::Response;

/// Counts of a model's client, which tells them from wherever it waits.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    attempts: AtomicU64,
    retries: AtomicU64,
    paused_ms: AtomicU64,
}

impl Waits {
    /// Counts one moment of a request.
    pub(crate) fn note(&self, progress: &Progress<'_>) {
        match progress {
            Progress::Asking { .. } => _ = self.attempts.fetch_add(1, Ordering::Relaxed),
            Progress::Waiting { pause, .. } => {
                self.retries.fetch_add(1, Ordering::Relaxed);
                self.paused_ms.fetch_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// Measures a run and hands everything on.
pub(crate) struct Measured<'o> {
    inner: &'o mut dyn Observer,
    begun: Instant,
    waits: Arc<Waits>,
    code_runs: u64,
    wall: f64,
    cpu: f64,
    memory: u64,
}

impl<'o> Measured<'o> {
    pub(crate) fn new(inner: &'o mut dyn Observer, waits: Arc<Waits>) -> Self {
        Self { inner, begun: Instant::now(), waits, code_runs: 0, wall: 0.0, cpu: 0.0, memory: 0 }
    }

    /// What was measured, of this process: a run that was resumed begins to measure again.
    pub(crate) fn report(&self, budgets: &Budgets) -> Value {
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        json!({
            "seconds": seconds(self.begun.elapsed()),
            "budgets": budgets,
            "sandbox": {
                "code_runs": self.code_runs,
                "wall_seconds": self.wall,
                "processor_seconds": self.cpu,
                "peak_memory_bytes": self.memory,
            },
            "model": {
                "attempts": load(&self.waits.attempts),
                "retries": load(&self.waits.retries),
                "seconds_between_attempts": seconds(Duration::from_millis(load(&self.waits.paused_ms))),
            },
        })
    }
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000.0).round() / 1_000.0
}

impl Observer for Measured<'_> {
    fn day(&mut self, session: &Session) {
        self.inner.day(session);
    }

    fn point(&mut self, session: &Session, text: &str) {
        self.inner.point(session, text);
    }

    fn answer(&mut self, session: &Session, response: &Response) {
        self.inner.answer(session, response);
    }

    fn call(&mut self, session: &Session, report: &CallReport) {
        if let Some(usage) = &report.usage {
            self.code_runs += 1;
            self.wall += usage.wall;
            self.cpu += usage.cpu;
            self.memory = self.memory.max(usage.memory);
        }
        self.inner.call(session, report);
    }

    fn day_end(&mut self, session: &Session, record: &DayRecord) {
        self.inner.day_end(session, record);
    }
}
