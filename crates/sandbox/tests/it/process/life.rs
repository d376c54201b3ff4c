//! The pool as a whole: jobs beside each other, interpreters that die.

use super::{children_of, descriptors, limits, pool, run, run_in, soon, value};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use traderharness_sandbox::Ended;
use traderharness_sandbox::host::NoCalls;

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
