//! How a job ended, as the host knows it.

use crate::protocol::{Layers, WorkerEnded};
use serde_json::Value;

/// Who ended a job that ran out of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The trace inside the worker, at the deadline.
    Trace,
    /// The host, which killed the worker's process group.
    Kill,
}

/// How a job ended. What the worker said is believed only where it concerns itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// It ran to its end; the JSON value of `result`.
    Finished(Value),
    /// As the worker said, for everything that is the code's own fault.
    Worker(WorkerEnded),
    /// Time ran out.
    TimedOut {
        /// Who ended it.
        by: EndedBy,
        /// Traceback of the agent's frames; empty when it was killed.
        traceback: String,
    },
    /// Memory ran out: a `MemoryError`, or the kernel killed it.
    Memory {
        /// Traceback of the agent's frames; may be empty.
        traceback: String,
    },
    /// The workspace grew past its quota.
    OverQuota {
        /// Bytes found.
        bytes: u64,
        /// Files found.
        files: u64,
        /// There is a folder that cannot be looked into: nested too deeply, or not to be listed.
        closed: bool,
    },
    /// The worker died, by this signal or exit code.
    Died {
        /// What the host saw.
        what: String,
    },
    /// The worker sent what no worker sends; it was killed.
    Hostile {
        /// What it sent.
        what: String,
    },
}

/// What a job used. Measured, so it never goes into what a model reads or a recording holds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Seconds from start to end, host calls left out.
    pub wall: f64,
    /// Processor seconds.
    pub cpu: f64,
    /// Highest resident memory, bytes.
    pub memory: u64,
}

/// A job that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// What it printed, cut at the limit.
    pub output: String,
    /// Bytes of output that were dropped.
    pub output_dropped: u64,
    /// What it used.
    pub usage: Usage,
    /// Layers of confinement that held.
    pub layers: Layers,
    /// The host saw the process end.
    pub worker_exited: bool,
    /// Host calls it made.
    pub calls: u32,
}
