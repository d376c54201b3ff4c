//! The pool as a whole: jobs beside each other, interpreters that die.

use super::{children_of, descriptors, frozen, interpreter, limits, pool, run, run_in, soon, value};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::{Ended, HostAnswer, HostCalls, HostFault, Job, Pool, PoolError, Ran};

#[test]
fn jobs_of_many_threads_share_a_pool() {
    let Some(pool) = pool() else { return };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..3 {
                    let code = format!("open('x', 'x').write('{thread}')\nresult = [{thread}, {round}, open('x').read()]");
                    assert_eq!(value(pool, &code), json!([thread, round, thread.to_string()]));
                }
            });
        }
    });
}

#[test]
fn an_interpreter_that_dies_takes_its_jobs_along_and_is_replaced() {
    let Some(pool) = pool() else { return };
    assert_eq!(value(&pool, "result = 1"), json!(1));
    let template = pool.template_pid().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        let running =
            scope.spawn(|| run_in(&pool, folder.path(), "open('on', 'w')\nwhile True: pass", limits(20_000), &mut NoCalls));
        soon("the start of the job", || folder.path().join("on").exists());
        kill(Pid::from_raw(template as i32), Signal::SIGKILL).unwrap();
        let ran = running.join().unwrap();
        assert!(matches!(ran.ended, Ended::Died { .. }), "{ran:?}");
        assert!(ran.worker_exited, "{ran:?}");
    });
    assert_eq!(value(&pool, "result = 2"), json!(2));
    assert_ne!(pool.template_pid(), Some(template));
}

/// Answers nothing, and waits for the code until the flag is set.
struct Waits<'a>(&'a AtomicBool);

impl HostCalls for Waits<'_> {
    fn call(&mut self, method: &str, args: &Map<String, Value>) -> Result<HostAnswer, HostFault> {
        NoCalls.call(method, args)
    }
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

fn run_while_waited_for(pool: &Pool, workspace: &Path, code: &str, gone: &AtomicBool) -> Result<Ran, PoolError> {
    let job = Job { code, limits: limits(60_000), workspace, frozen: frozen(), strict: true };
    pool.run(&job, &mut Waits(gone))
}

#[test]
fn code_that_nobody_waits_for_any_more_is_ended_at_once() {
    let Some(pool) = pool() else { return };
    let template = || pool.template_pid().map_or_else(Vec::new, children_of);
    assert_eq!(value(&pool, "result = 1"), json!(1));
    for endless in [
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "sum(range(10**12))",
        "import numpy as np\na = np.ones((2000, 2000))\nwhile True:\n    a @ a",
    ] {
        let (folder, gone) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let code = format!("open('on', 'w').close()\n{endless}");
        std::thread::scope(|scope| {
            let running = scope.spawn(|| run_while_waited_for(&pool, folder.path(), &code, &gone));
            soon("the start of the job", || folder.path().join("on").exists());
            assert_eq!(template().len(), 1, "{endless}");
            gone.store(true, Ordering::Release);
            let told = Instant::now();
            let ended = running.join().unwrap();
            assert!(matches!(ended, Err(PoolError::Cancelled)), "{endless}: {ended:?}");
            assert!(told.elapsed() < Duration::from_secs(5), "{endless}: {:?}", told.elapsed());
        });
        assert_eq!(template(), Vec::<u32>::new(), "{endless}: its process is gone");
    }
    assert_eq!(value(&pool, "result = 2"), json!(2));
}

#[test]
fn a_job_that_nobody_waits_for_takes_no_place_and_one_that_ended_is_answered() {
    let Some(interpreter) = interpreter() else { return };
    let pool = Pool::new(interpreter, 1);
    let (folder, gone) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    for workspace in [&first, &second] {
        std::fs::create_dir(workspace).unwrap();
    }
    std::thread::scope(|scope| {
        let code = "import os\nopen('on', 'w').close()\nwhile not os.path.exists('go'): pass\nresult = 1";
        let running = scope.spawn(|| run_in(&pool, &first, code, limits(60_000), &mut NoCalls));
        soon("the start of the job", || first.join("on").exists());
        let waiting = scope.spawn(|| run_while_waited_for(&pool, &second, "open('on', 'w').close()", &gone));
        gone.store(true, Ordering::Release);
        assert!(matches!(waiting.join().unwrap(), Err(PoolError::Cancelled)));
        assert!(!second.join("on").exists());
        std::fs::write(first.join("go"), "").unwrap();
        assert_eq!(running.join().unwrap().ended, Ended::Finished(json!(1)));
    });
    assert_eq!(value(&pool, "result = 2"), json!(2), "its place is free");
}

#[test]
fn a_pool_that_goes_leaves_no_process_and_no_descriptor() {
    let Some(pool) = pool() else { return };
    let before = descriptors();
    assert_eq!(value(&pool, "result = 1"), json!(1));
    assert_eq!(children_of(std::process::id()).len(), 1);
    drop(pool);
    assert_eq!(children_of(std::process::id()), Vec::<u32>::new());
    assert_eq!(descriptors(), before);
}

#[test]
fn nothing_of_the_code_runs_after_its_end() {
    let Some(pool) = pool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let code = "import atexit, weakref, os
def late(*_): open('late', 'w')
atexit.register(late)
class A:
    def __del__(self): late()
a = A()
a.me = a
b = A()
weakref.finalize(a, late)
result = 1";
    let ran = run_in(&pool, folder.path(), code, limits(5_000), &mut NoCalls);
    assert_eq!(ran.ended, Ended::Finished(json!(1)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn one_job_sees_nothing_of_another() {
    let Some(pool) = pool() else { return };
    run(
        &pool,
        "import builtins, sys, numpy, math, random\nbuiltins.leak = numpy.leak = math.pi = 4\nsys.modules['leak'] = math\nrandom.seed(0)",
    );
    let code = "import builtins, sys, numpy, math\nresult = [hasattr(builtins, 'leak'), hasattr(numpy, 'leak'), math.pi == 4, 'leak' in sys.modules]";
    assert_eq!(value(&pool, code), json!([false, false, false, false]));
}
