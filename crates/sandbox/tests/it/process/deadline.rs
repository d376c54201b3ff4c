//! Every kind of endless code ends in time.

use super::{descriptors, limits, pool, run_in};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::{Ended, EndedBy, Pool};

const DEADLINE: u64 = 300;

/// Code, and who is to end it; `None` where either may, or the memory runs out first.
const ENDLESS: &[(&str, Option<EndedBy>)] = &[
    ("while True: pass", Some(EndedBy::Trace)),
    ("while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass", Some(EndedBy::Trace)),
    ("def f():\n    try:\n        while True: pass\n    finally:\n        f()\nf()", Some(EndedBy::Trace)),
    ("def f():\n    try:\n        while True: pass\n    finally:\n        while True: pass\nf()", Some(EndedBy::Trace)),
    (
        "def g():\n    while True:\n        try:\n            yield 1\n        except BaseException:\n            pass\n        finally:\n            pass\nfor _ in g(): pass",
        Some(EndedBy::Trace),
    ),
    ("import itertools\nx = 0\nfor _ in itertools.count():\n    x += 1", Some(EndedBy::Trace)),
    ("import itertools\nsum(0 for _ in itertools.count())", Some(EndedBy::Trace)),
    ("import itertools\n[x for x in itertools.count() if x < 0]", Some(EndedBy::Trace)),
    ("class A:\n    def __del__(self):\n        while True: pass\nwhile True:\n    A()", None),
    (
        "class A:\n    def __del__(self):\n        try:\n            while True: pass\n        finally:\n            self.a = A()\nA()\nwhile True: pass",
        Some(EndedBy::Trace),
    ),
    (
        "def again(f):\n    def g(*a):\n        while True:\n            try: f(*a)\n            except BaseException: continue\n    return g\n@again\n@again\ndef f():\n    raise ValueError\nf()",
        Some(EndedBy::Trace),
    ),
    (
        "import sys\nsys.setrecursionlimit(10**6)\ndef f(n):\n    while True:\n        try: return f(n + 1)\n        except BaseException: pass\nf(0)",
        None,
    ),
    ("class A:\n    def __str__(self):\n        while True: pass\nraise ValueError(A())", Some(EndedBy::Trace)),
    (
        "class A(dict):\n    def items(self):\n        while True: pass\n    def __iter__(self):\n        while True: pass\nresult = A(a=1)\nwhile True: pass",
        Some(EndedBy::Trace),
    ),
    (
        "class M(type):\n    def __instancecheck__(self, other):\n        while True: pass\nclass E(Exception, metaclass=M): pass\nwhile True:\n    try: raise ValueError\n    except BaseException: isinstance(1, E)",
        Some(EndedBy::Trace),
    ),
    ("import pandas as pd\ns = pd.Series(range(1000))\nwhile True:\n    s.apply(lambda x: x + 1)", Some(EndedBy::Trace)),
    ("import time\ntime.sleep(100)", Some(EndedBy::Trace)),
    ("import time\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass", Some(EndedBy::Trace)),
    ("import gc\ndef loop(*_):\n    while True: pass\ngc.callbacks.append(loop)\ngc.collect()", None),
    ("import sys\nsys.setswitchinterval(1e9)\nwhile True: pass", Some(EndedBy::Trace)),
    ("import os\nos.read(3, 1)\nwhile True: pass", None),
    // C code. Some of it looks for signals, most does not.
    ("10**10**8", None),
    ("x = 1\nfor _ in range(10**9):\n    x = x << 10**8 >> 10**8", None),
    ("sum(range(10**12))", Some(EndedBy::Kill)),
    ("import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')", None),
    ("import itertools\nlist(zip(itertools.repeat(1, 10**12), ()))\nmax(itertools.repeat(1))", Some(EndedBy::Kill)),
    ("import collections, itertools\ncollections.deque(itertools.repeat(1), maxlen=0)", Some(EndedBy::Kill)),
    ("import numpy as np\na = np.ones((2000, 2000))\nwhile True:\n    a @ a", None),
];

#[test]
fn endless_code_ends_in_time() {
    let Some(pool) = pool() else { return };
    pool.warm().unwrap();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((code, by)) = ENDLESS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(&pool, code, *by);
                }
            });
        }
    });
}

// complaints SB-1, SB-2
fn check(pool: &Pool, code: &str, expected: Option<EndedBy>) {
    let folder = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let ran = run_in(pool, folder.path(), code, limits(DEADLINE), &mut NoCalls);
    let took = started.elapsed();
    assert!(ran.worker_exited, "{code}: {ran:?}");
    assert!(took < Duration::from_millis(DEADLINE + 1_500), "{code}: {took:?} {ran:?}");
    if let Some(expected) = expected {
        let Ended::TimedOut { by, traceback } = &ran.ended else { panic!("{code}: {ran:?}") };
        assert_eq!(*by, expected, "{code}");
        assert_eq!(traceback.contains("File \"<agent>\", line "), expected == EndedBy::Trace, "{code}: {traceback}");
    }
}

#[test]
fn the_traceback_of_a_timeout_names_the_line() {
    let Some(pool) = pool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let code = "def wait():\n    while True:\n        pass\n\nprint('on')\nwait()\n";
    let ran = run_in(&pool, folder.path(), code, limits(100), &mut NoCalls);
    let Ended::TimedOut { by: EndedBy::Trace, traceback } = ran.ended else { panic!("{ran:?}") };
    assert!(traceback.starts_with("Traceback (most recent call last):\n  File \"<agent>\", line 6, in <module>\n    wait()\n"));
    assert!(traceback.contains("in wait\n"), "{traceback}");
    assert_eq!(ran.output, "on\n");
}

#[test]
fn the_code_cannot_take_the_deadline_away() {
    let Some(pool) = pool() else { return };
    for code in [
        "import sys\nsys.settrace(None)",
        "import sys\nsys.setprofile(lambda *a: None)",
        "import sys\nsys.addaudithook(print)",
        "import sys\ns = sys.modules['signal']\ns.signal(s.SIGALRM, s.SIG_IGN)",
        "import sys\ns = sys.modules['signal']\ns.setitimer(s.ITIMER_REAL, 0)",
        "import sys\ns = sys.modules['signal']\ns.alarm(0)",
        "import sys\ns = sys.modules['signal']\ns.pthread_sigmask(s.SIG_BLOCK, [s.SIGALRM])",
        "import sys\ns = sys.modules['signal']\ns.sigwait([s.SIGALRM])",
        "import sys\nimport os\nos.fork()",
        "import os\nos.kill(os.getpid(), 9)",
        "import sys, gc\n[o for o in gc.get_objects() if getattr(o, '__name__', '') == 'setitimer'][0](0, 0)",
        "import sys\nsys._getframe().f_trace_opcodes = False\nsys._getframe().f_trace = None",
        "import sys\nsys.call_tracing(lambda: 1, ())",
        "import builtins\nfor name in ('TimeoutError', 'BaseException', 'Exception', 'exec', 'compile'):\n    delattr(builtins, name)",
        "import sys\nsys.modules.clear()",
        "import sys\nsys.excepthook = sys.unraisablehook = sys.displayhook = None",
    ] {
        let whole = format!("try:\n{}\nexcept BaseException as e:\n    print(type(e))\nwhile True: pass", indented(code));
        check(&pool, &whole, Some(EndedBy::Trace));
    }
}

fn indented(code: &str) -> String {
    code.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn timeouts_in_a_row_leave_nothing_behind() {
    let Some(pool) = pool() else { return };
    let rounds = if std::env::var_os("TRADERHARNESS_DEEP").is_some() { 200 } else { 20 };
    let round = |index: usize| {
        let code = if index % 10 == 9 { "10**10**8" } else { "while True: pass" };
        let folder = tempfile::tempdir().unwrap();
        let ran = run_in(&pool, folder.path(), code, limits(30), &mut NoCalls);
        assert!(matches!(ran.ended, Ended::TimedOut { .. }) && ran.worker_exited, "{ran:?}");
    };
    (0..3).for_each(round);
    let template = pool.template_pid().unwrap();
    let before = (descriptors(), descriptors_of(template), memory(template));
    (0..rounds).for_each(round);
    let after = (descriptors(), descriptors_of(template), memory(template));
    assert_eq!((before.0, before.1), (after.0, after.1));
    assert!(after.2 <= before.2 + 512, "{before:?} {after:?} kB");
    assert_eq!(super::children_of(template), Vec::<u32>::new());
}

fn descriptors_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Resident memory, kB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
