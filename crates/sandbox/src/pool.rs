//! [`Pool`]: one warmed interpreter, forked for every job.

use crate::protocol::{Frozen, Limits};
use crate::{HostCalls, Ran};
use std::path::{Path, PathBuf};

/// The Python to use and the worker module it loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Python 3.10 or newer with numpy and pandas.
    pub python: PathBuf,
    /// The worker's extension module.
    pub worker: PathBuf,
}

/// One piece of code to run.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// Python source.
    pub code: &'a str,
    /// Limits.
    pub limits: Limits,
    /// Folder the code may write to; the caller owns and cleans it.
    pub workspace: &'a Path,
    /// Clock and seed.
    pub frozen: Frozen,
    /// Refuse to run unless every layer of confinement is on.
    pub strict: bool,
}

/// Why a job could not be run at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The interpreter could not be started or warmed.
    #[error("the Python of the sandbox did not start: {what}")]
    NotStarted {
        /// What went wrong, for a person.
        what: String,
    },
}

/// Runs jobs; shared by sessions, any number at a time up to its limit.
#[derive(Debug)]
pub struct Pool {
    interpreter: Interpreter,
}

impl Pool {
    /// A pool over an interpreter. Nothing is started before the first job.
    pub const fn new(interpreter: Interpreter, _parallel: usize) -> Self {
        Self { interpreter }
    }

    /// The interpreter.
    pub const fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    /// Runs one job to its end and sees its process gone.
    ///
    /// # Errors
    /// [`PoolError`] when nothing was run.
    pub fn run(&self, _job: &Job<'_>, _calls: &mut dyn HostCalls) -> Result<Ran, PoolError> {
        Err(PoolError::NotStarted { what: "not there yet".to_owned() })
    }
}
