//! A real sandbox for tests, where `cargo xtask setup` made one. Tests that need it skip with a line where it did not.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use traderharness_harness::Session;
use traderharness_harness::sandbox::{RunsJobs, Sandbox};
use traderharness_sandbox::lookup::MODULE;
use traderharness_sandbox::{Interpreter, Pool, Workspace};

/// The pool of this test process; `None` where there is no Python for it.
pub fn pool() -> Option<Arc<Pool>> {
    static POOL: OnceLock<Option<Arc<Pool>>> = OnceLock::new();
    let make = || {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/sandbox");
        let interpreter = Interpreter { python: place.join("venv/bin/python"), worker: place.join(MODULE) };
        (interpreter.python.exists() && interpreter.worker.exists()).then(|| Arc::new(Pool::new(interpreter, 2)))
    };
    POOL.get_or_init(make).clone()
}

/// Files of a session's code; they go with this value.
#[derive(Debug)]
pub struct Files(tempfile::TempDir);

impl Files {
    /// An empty place.
    ///
    /// # Panics
    /// When the system gives no temporary folder.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Gives a session the sandbox over these files.
    pub fn give(&self, session: Session, pool: &Arc<Pool>) -> Session {
        let jobs: Arc<dyn RunsJobs> = Arc::<Pool>::clone(pool);
        session.with_sandbox(Sandbox::new(jobs, Workspace::new(self.0.path().join("files")), false))
    }
}

impl Default for Files {
    fn default() -> Self {
        Self::new()
    }
}
