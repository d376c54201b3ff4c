//! Behaviour of real processes. One at a time: they need the machine's cores for their deadlines.

mod behaviour;
mod calls;
mod deadline;
mod determinism;
mod escapes;
mod host;
mod life;

use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::lookup::{Asked, find};
use traderharness_sandbox::protocol::{Frozen, Limits, WorkerEnded};
use traderharness_sandbox::{Ended, HostCalls, Interpreter, Job, Pool, Ran};

/// 2000-01-01 09:30 at the exchange.
const NOW: i64 = 946_690_200;

/// The interpreter that `cargo xtask setup` made; without one the test has nothing to run.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn interpreter() -> Option<Interpreter> {
    match find(&Asked::default()) {
        Ok(found) => Some(found.interpreter),
        Err(error) => {
            println!("skipped: {error}; `cargo xtask setup` makes it");
            None
        }
    }
}

fn pool() -> Option<Pool> {
    interpreter().map(|interpreter| Pool::new(interpreter, 2))
}

fn limits(deadline_ms: u64) -> Limits {
    Limits { deadline_ms, memory_bytes: 256 << 20, ..Limits::default() }
}

fn frozen() -> Frozen {
    Frozen { epoch_seconds: NOW, seed: 7 }
}

/// Runs code in a workspace.
fn run_in(pool: &Pool, workspace: &Path, code: &str, limits: Limits, calls: &mut dyn HostCalls) -> Ran {
    let job = Job { code, limits, workspace, frozen: frozen(), strict: true };
    pool.run(&job, calls).unwrap()
}

/// Runs code with the usual limits in a workspace of its own.
fn run(pool: &Pool, code: &str) -> Ran {
    let workspace = tempfile::tempdir().unwrap();
    let ran = run_in(pool, workspace.path(), code, limits(10_000), &mut NoCalls);
    assert!(ran.worker_exited, "{code}: {ran:?}");
    ran
}

/// The value that code gives.
fn value(pool: &Pool, code: &str) -> Value {
    match run(pool, code).ended {
        Ended::Finished(value) => value,
        other => panic!("{code}: {other:?}"),
    }
}

/// Exception and message of code that raises.
fn raised(ran: &Ran) -> Option<(String, String)> {
    match &ran.ended {
        Ended::Worker(WorkerEnded::Raised { exception, message, .. }) => Some((exception.clone(), message.clone())),
        _ => None,
    }
}

/// Waits for something that happens by itself soon.
fn soon(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < Duration::from_secs(5), "{what} did not happen");
        std::thread::yield_now();
    }
}

/// Descriptors that this process has open.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Processes whose parent is this one.
fn children_of(parent: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let state = fields.next().unwrap_or_default();
        if state != "Z" && fields.next() == Some(&parent.to_string()) {
            children.push(pid);
        }
    }
    children
}
