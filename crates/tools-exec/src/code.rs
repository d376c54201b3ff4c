//! What `execute_code` needs of its host: somebody who runs the code elsewhere. This crate runs none itself.

use crate::Account;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use traderharness_market::View;

/// One piece of code to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRequest {
    /// Python source.
    pub code: String,
    /// Seconds after which it is stopped.
    pub timeout_seconds: u32,
}

/// What every piece of code runs under. Part of what the model reads, so the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLimits {
    /// Memory the code may use, megabytes.
    pub memory_mb: u32,
    /// All files of the workspace together, bytes.
    pub workspace_bytes: u64,
    /// Files in the workspace.
    pub workspace_files: u32,
}

/// Runs code outside this process, on nothing but what the view shows through the mask.
pub trait CodeRunner: std::fmt::Debug {
    /// What the code runs under.
    fn limits(&self) -> CodeLimits;

    /// Runs one piece of code to its end.
    fn run(&mut self, view: &View<'_>, account: &Account, request: &CodeRequest) -> CodeOutcome;
}

/// A file in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeFile {
    /// Path inside the workspace.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// What running it led to. Holds no measured value: the same code over the same data gives the same outcome, save those that
/// [`CodeOutcome::depends_on_machine`] names. Everything in it is already masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CodeOutcome {
    /// It ran to its end.
    Finished {
        /// What it printed, cut at the output limit.
        stdout: String,
        /// Bytes of output that were dropped.
        stdout_dropped: u64,
        /// Value of `result`.
        result: Value,
        /// Files it wrote or changed, by name.
        files: Vec<CodeFile>,
    },
    /// It asks for what is never allowed; nothing ran.
    Disallowed {
        /// What, and what to use instead.
        message: String,
        /// Line, from 1.
        line: Option<u32>,
    },
    /// It does not compile, raised an exception, or left a `result` without a JSON form.
    Failed {
        /// What Python says.
        message: String,
        /// What to do about it; empty where the exception says it.
        instruction: String,
        /// Exception type; `SyntaxError` for source that does not compile.
        exception: String,
        /// Traceback of the agent's frames.
        traceback: String,
        /// Line of the agent's code, from 1.
        line: Option<u32>,
        /// Column, from 1, for source that does not compile.
        column: Option<u32>,
        /// What it printed before.
        stdout: String,
    },
    /// Time ran out and the worker is gone.
    TimedOut {
        /// `trace` or `kill`.
        ended_by: String,
        /// The worker process was seen to end.
        worker_exited: bool,
        /// Traceback of the agent's frames; empty when it was killed.
        traceback: String,
        /// What it printed before.
        stdout: String,
    },
    /// Memory or the workspace quota ran out.
    OutOf {
        /// `memory` or `workspace`.
        what: String,
        /// One sentence with the limit.
        message: String,
        /// Traceback of the agent's frames; may be empty.
        traceback: String,
    },
    /// The worker process broke off, or said what no worker says: a crash inside a C library, most of the time.
    Broke {
        /// What the host saw.
        message: String,
        /// What it printed before.
        stdout: String,
    },
    /// The sandbox could not run it, through no fault of the code.
    Unavailable {
        /// What is missing and how to get it. No path of the machine.
        message: String,
    },
}

impl CodeOutcome {
    /// True where another machine could have ended otherwise: a replay takes these from the recording.
    pub const fn depends_on_machine(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::OutOf { .. } | Self::Broke { .. } | Self::Unavailable { .. })
    }

    /// True where the code ran, which uses up one call of the day.
    pub const fn is_attempt(&self) -> bool {
        !matches!(self, Self::Disallowed { .. } | Self::Unavailable { .. })
    }
}
