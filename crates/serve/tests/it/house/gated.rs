//! A sandbox whose code waits at a gate, and gives its own length.

use serde_json::json;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use traderharness_harness::sandbox::{RunsJobs, Sandbox};
use traderharness_sandbox::protocol::Layers;
use traderharness_sandbox::{Ended, HostCalls, Job, PoolError, Ran, Usage, Workspace};
use traderharness_serve::house::OpensSandbox;

/// Code that says when it started and ends when it is told to, or when nobody waits for it.
#[derive(Debug)]
struct Gated {
    started: Mutex<Sender<()>>,
    go: Mutex<Receiver<()>>,
}

impl RunsJobs for Gated {
    fn run(&self, job: &Job<'_>, calls: &mut dyn HostCalls) -> Result<Ran, PoolError> {
        self.started.lock().unwrap().send(()).unwrap();
        // Given back between two looks, for the code of other sessions.
        let go = || self.go.lock().unwrap().recv_timeout(Duration::from_millis(5));
        loop {
            match go() {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) if calls.is_cancelled() => return Err(PoolError::Cancelled),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("the gate is gone"),
            }
        }
        Ok(Ran {
            ended: Ended::Finished(json!(job.code.len())),
            output: String::new(),
            output_dropped: 0,
            usage: Usage::default(),
            layers: Layers::default(),
            worker_exited: true,
            calls: 0,
        })
    }
}

/// Hears of code that started, and lets it end.
pub(crate) struct Gate {
    pub(crate) started: Receiver<()>,
    pub(crate) go: Sender<()>,
}

/// Sandboxes behind one gate, with the files of their agents in a folder.
pub(crate) fn gated(files: &Path) -> (OpensSandbox, Gate) {
    let (start, started) = channel();
    let (go, gone) = channel();
    let jobs: Arc<dyn RunsJobs> = Arc::new(Gated { started: Mutex::new(start), go: Mutex::new(gone) });
    let root = files.to_owned();
    let opens: OpensSandbox = Arc::new(move |id, _| Ok(Sandbox::new(Arc::clone(&jobs), Workspace::new(root.join(id)), false)));
    (opens, Gate { started, go })
}
