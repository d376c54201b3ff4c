//! [`Pool`]: one warmed interpreter, forked for every job.

use crate::protocol::{Found, Frozen, Limits};
use crate::supervise::{Attempt, supervise};
use crate::template::Template;
use crate::{HostCalls, Ran};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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

/// Why a job came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The interpreter could not be started or warmed.
    #[error("the Python of the sandbox did not start: {what}")]
    NotStarted {
        /// What went wrong, for a person.
        what: String,
    },
    /// No worker could be started for the job.
    #[error("no worker process could be started: {what}")]
    NotForked {
        /// What went wrong, for a person.
        what: String,
    },
    /// Nobody waited for the job any more ([`HostCalls::is_cancelled`]). It was not begun, or its process was killed and seen gone.
    #[error("the job was cancelled")]
    Cancelled,
}

/// Why an interpreter is refused whose clock follows the machine's.
const CLOCK: &str =
    "its clock cannot be frozen: the worker module cannot be loaded ahead of its C library; use another build of Python";
/// Longest pause between two attempts to start an interpreter that does not start.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Time between two looks whether anybody still waits for a job that has no place yet.
const LOOK: Duration = Duration::from_millis(100);

/// Runs jobs; shared by sessions, any number at a time up to its limit.
#[derive(Debug)]
pub struct Pool {
    interpreter: Interpreter,
    parallel: usize,
    running: Mutex<usize>,
    freed: Condvar,
    template: Mutex<Slot>,
}

/// The template, if there is one, and how starting it went lately.
#[derive(Debug, Default)]
struct Slot {
    template: Option<Arc<Template>>,
    failures: u32,
    failed: Option<(Instant, String)>,
}

impl Pool {
    /// A pool over an interpreter that runs at most so many jobs at a time (at least one). Nothing is started before the first job.
    pub fn new(interpreter: Interpreter, parallel: usize) -> Self {
        Self {
            interpreter,
            parallel: parallel.max(1),
            running: Mutex::new(0),
            freed: Condvar::new(),
            template: Mutex::new(Slot::default()),
        }
    }

    /// The interpreter.
    pub const fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    /// Process of the template, when one runs.
    pub fn template_pid(&self) -> Option<u32> {
        lock(&self.template).template.as_ref().map(|template| template.pid())
    }

    /// Starts the interpreter, if it does not run yet, and tells what it found around itself.
    ///
    /// # Errors
    /// [`PoolError::NotStarted`].
    pub fn warm(&self) -> Result<Found, PoolError> {
        Ok(self.template()?.found().clone())
    }

    /// Runs one job to its end and sees its process gone. Waits for a free place first. Callable from any number of threads.
    ///
    /// # Errors
    /// [`PoolError`] when nothing was run, or when the job was cancelled.
    pub fn run(&self, job: &Job<'_>, calls: &mut dyn HostCalls) -> Result<Ran, PoolError> {
        let _place = self.place(calls)?;
        // A template that died since the last job, or dies now before it forked, is replaced once.
        for _ in 0..2 {
            let template = self.template()?;
            match supervise(&template, job, calls)? {
                Attempt::Ran(ran) => return Ok(*ran),
                Attempt::TemplateGone => {}
            }
        }
        Err(PoolError::NotForked { what: "the interpreter ended twice before it started a worker".to_owned() })
    }

    /// A template that lives, started if need be. After a failed start it is tried again only after a pause that grows; until then the
    /// same error is given at once.
    fn template(&self) -> Result<Arc<Template>, PoolError> {
        let mut slot = lock(&self.template);
        if let Some(template) = &slot.template {
            if template.lives() {
                return Ok(Arc::clone(template));
            }
            slot.template = None;
        }
        let pause = LONGEST_PAUSE.min(Duration::from_millis(100) * 2u32.saturating_pow(slot.failures.min(10)));
        if let Some((at, what)) = &slot.failed
            && at.elapsed() < pause
        {
            return Err(PoolError::NotStarted { what: what.clone() });
        }
        let started = Template::start(&self.interpreter).and_then(|template| {
            // What the code prints would depend on when it runs.
            if template.found().frozen_clock { Ok(template) } else { Err(CLOCK.to_owned()) }
        });
        match started {
            Ok(template) => {
                let template = Arc::new(template);
                *slot = Slot { template: Some(Arc::clone(&template)), failures: 0, failed: None };
                Ok(template)
            }
            Err(what) => {
                slot.failures = slot.failures.saturating_add(1);
                slot.failed = Some((Instant::now(), what.clone()));
                Err(PoolError::NotStarted { what })
            }
        }
    }

    /// Waits for a free place as long as somebody waits for the job.
    fn place(&self, calls: &dyn HostCalls) -> Result<Place<'_>, PoolError> {
        let mut running = lock(&self.running);
        loop {
            if calls.is_cancelled() {
                return Err(PoolError::Cancelled);
            }
            if *running < self.parallel {
                *running += 1;
                return Ok(Place { pool: self });
            }
            running = self.freed.wait_timeout(running, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A place among the running jobs, given back on drop.
struct Place<'a> {
    pool: &'a Pool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *lock(&self.pool.running) -= 1;
        self.pool.freed.notify_one();
    }
}

/// What is behind these locks is whole even when a thread panicked with one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
