//! What ordinary code gets back.

use super::{limits, pool, raised, run, run_in, value};
use serde_json::json;
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::protocol::{Limits, WorkerEnded};
use traderharness_sandbox::{Ended, Interpreter, Job, Pool, PoolError, probe};

#[test]
fn ordinary_code_works_as_in_any_python() {
    let Some(pool) = pool() else { return };
    let checks = [
        ("result = 1", json!(1)),
        ("x = 1", json!(null)),
        ("", json!(null)),
        ("result = {'a': [1, 2.5, None, True, 'x']}", json!({"a": [1, 2.5, null, true, "x"]})),
        ("import numpy as np\nresult = float(np.ones((3, 3)).sum())", json!(9.0)),
        ("import sys\nresult = 1\nsys.exit()\nresult = 2", json!(1)),
        ("result = 3\nexit(0)", json!(3)),
        ("result = __name__ == '__main__'", json!(true)),
        (
            "import io, contextlib\nt = io.StringIO()\nwith contextlib.redirect_stdout(t):\n    help(len)\nresult = 'number of items' in t.getvalue()",
            json!(true),
        ),
        // Classes of the code can be pickled, as in a script.
        ("import pickle\nclass A:\n    x = 5\nresult = pickle.loads(pickle.dumps(A())).x", json!(5)),
        // Files: the workspace is the current folder.
        ("open('a.txt', 'w').write('hi')\nresult = open('a.txt').read()", json!("hi")),
        (
            "from pathlib import Path\nPath('d').mkdir()\nPath('d/x').touch()\nresult = [str(p) for p in Path('.').rglob('*')]",
            json!(["d", "d/x"]),
        ),
        (
            "import os, shutil\nopen('a', 'w').write('x')\nos.rename('a', 'b')\nshutil.copyfile('b', 'c')\nresult = sorted(os.listdir())",
            json!(["b", "c"]),
        ),
        (
            "import os, shutil\nos.mkdir('d')\nopen('d/a', 'w').write('x')\nshutil.copy('d/a', 'd/b')\nshutil.copy2('d/a', 'd/c')\nshutil.copytree('d', 'e')\nos.chmod('e', 0o700)\nresult = os.listdir('e')",
            json!(["a", "b", "c"]),
        ),
        ("import tempfile\nwith tempfile.NamedTemporaryFile() as f:\n    f.write(b'x')\n    result = f.tell()", json!(1)),
        (
            "import pandas as pd\npd.DataFrame({'a': [1]}).to_csv('x.csv', index=False)\nresult = int(pd.read_csv('x.csv')['a'].sum())",
            json!(1),
        ),
        (
            "import pandas as pd\npd.DataFrame({'a': [1]}).to_pickle('x.pkl.gz')\nresult = int(pd.read_pickle('x.pkl.gz')['a'].sum())",
            json!(1),
        ),
        ("import numpy as np\nnp.save('x.npy', np.arange(4))\nresult = int(np.load('x.npy', mmap_mode='r').sum())", json!(6)),
        (
            "import sqlite3\nc = sqlite3.connect('x.db')\nc.execute('create table t (a)')\nc.execute('insert into t values (4)')\nc.commit()\nresult = c.execute('select a from t').fetchone()[0]",
            json!(4),
        ),
        ("import zoneinfo, datetime\nresult = datetime.datetime.now(zoneinfo.ZoneInfo('America/New_York')).hour", json!(20)),
        (
            "import json, re, math, statistics, collections, itertools, functools, decimal\nresult = statistics.median([1, 2, 9])",
            json!(2),
        ),
        ("import inspect\ndef f(a, b=2): pass\nresult = inspect.getsource(f)", json!("def f(a, b=2): pass\n")),
        ("def f(n):\n    return 1 if n == 0 else n * f(n - 1)\nresult = f(20)", json!(2_432_902_008_176_640_000i64)),
        ("from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nresult = A(2).x", json!(2)),
    ];
    for (code, expected) in checks {
        assert_eq!(value(&pool, code), expected, "{code}");
    }
}

#[test]
fn broken_code_is_told_where_and_why() {
    let Some(pool) = pool() else { return };
    let syntax = |code: &str| match run(&pool, code).ended {
        Ended::Worker(WorkerEnded::Syntax { message, line, column }) => (message, line, column),
        other => panic!("{code}: {other:?}"),
    };
    assert_eq!(syntax("x = 1\nif x\n    y"), ("expected ':'".to_owned(), Some(2), Some(5)));
    assert!(syntax("x = '\0'").0.contains("null bytes"));
    assert!(syntax(&"(".repeat(5_000)).0.contains("too many nested parentheses"));
    assert!(syntax(&format!("x = {}1", "-".repeat(200_000))).0.contains("nested too deeply"));
    let text = "def f(x):\n    return 1 / x\n\ntry:\n    f(0)\nexcept ZeroDivisionError as error:\n    raise ValueError('no price') from error\n";
    let Ended::Worker(WorkerEnded::Raised { exception, message, traceback }) = run(&pool, text).ended else { panic!() };
    assert_eq!((exception.as_str(), message.as_str()), ("ValueError", "no price"));
    assert_eq!(
        traceback,
        "Traceback (most recent call last):\n  File \"<agent>\", line 5, in <module>\n    f(0)\n  File \"<agent>\", line 2, in f\n    \
         return 1 / x\nZeroDivisionError: division by zero\n\nThe above exception was the direct cause of the following exception:\n\n\
         Traceback (most recent call last):\n  File \"<agent>\", line 7, in <module>\n    raise ValueError('no price') from error\n\
         ValueError: no price"
    );
    // Frames of libraries are left out, and a recursion is shortened.
    let ran = run(&pool, "import pandas as pd\npd.DataFrame({'a': [1]})['b']");
    let Ended::Worker(WorkerEnded::Raised { exception, traceback, .. }) = ran.ended else { panic!() };
    assert_eq!(exception, "KeyError");
    assert!(!traceback.contains("site-packages") && traceback.contains("line 2, in <module>"), "{traceback}");
    let ran = run(&pool, "def f(n):\n    return f(n + 1)\nf(0)");
    let Ended::Worker(WorkerEnded::Raised { exception, traceback, .. }) = ran.ended else { panic!() };
    assert_eq!(exception, "RecursionError");
    assert!(traceback.contains(" more\n") && traceback.len() < 2_000, "{traceback}");
    assert_eq!(raised(&run(&pool, "import sys\nsys.exit('no data')")), Some(("SystemExit".to_owned(), "no data".to_owned())));
    let Ended::Worker(WorkerEnded::Unserialisable { path, type_name, hint }) = run(&pool, "result = {'a': [1, object()]}").ended
    else {
        panic!()
    };
    assert_eq!((path.as_str(), type_name.as_str()), ("result['a'][1]", "object"));
    assert!(!hint.is_empty());
}

#[test]
fn imports_that_are_never_allowed_are_named_with_their_line() {
    let Some(pool) = pool() else { return };
    let disallowed = |code: &str| match run(&pool, code).ended {
        Ended::Worker(WorkerEnded::Disallowed { what, line }) => (what, line),
        other => panic!("{code}: {other:?}"),
    };
    for (code, name, line) in [
        ("import backtrader as bt", "backtrader", 1),
        ("x = 1\nfrom zipline.api import order", "zipline", 2),
        // complaint SB-6: deep inside a function that is never called.
        ("def f():\n    def g():\n        import subprocess", "subprocess", 3),
        ("from urllib import request", "urllib.request", 1),
        ("import os\nimport threading", "threading", 2),
        ("import akshare", "akshare", 1),
    ] {
        let (what, found) = disallowed(code);
        assert!(
            what.starts_with(&format!("`{name}` cannot be imported: ")) && what.contains("available: numpy, pandas"),
            "{what}"
        );
        assert_eq!(found, Some(line), "{code}");
    }
    // What is found out only while it runs is an exception of the code: it ran, and that counts.
    for (code, name, line) in [
        ("name = 'sub' + 'process'\n__import__(name)", "subprocess", 2),
        ("exec('import ctypes')", "ctypes", 1),
        ("import pandas as pd\npd.read_csv('https://example.com/x.csv')", "urllib.request", 2),
    ] {
        let Ended::Worker(WorkerEnded::Raised { exception, message, traceback }) = run(&pool, code).ended else {
            panic!("{code}")
        };
        assert_eq!(exception, "ImportError");
        assert!(message.starts_with(&format!("`{name}` cannot be imported: ")), "{message}");
        assert!(traceback.contains(&format!("line {line}, in <module>")), "{traceback}");
    }
    // Caught, it is an ordinary ImportError.
    assert_eq!(
        value(&pool, "try:\n    __import__('socket')\nexcept ImportError:\n    result = 'none'"),
        serde_json::json!("none")
    );
}

#[test]
fn output_is_streamed_and_cut_at_its_limit() {
    let Some(pool) = pool() else { return };
    let ran = run(&pool, "import sys\nprint('a', 1)\nprint('b', file=sys.stderr)\nsys.stdout.write('c')");
    assert_eq!((ran.output.as_str(), ran.output_dropped), ("a 1\nb\nc", 0));
    let folder = tempfile::tempdir().unwrap();
    let small = Limits { output_bytes: 10, ..limits(10_000) };
    let ran = run_in(&pool, folder.path(), "for i in range(1000):\n    print('äöü')\nresult = 1", small, &mut NoCalls);
    assert_eq!(ran.ended, Ended::Finished(serde_json::json!(1)));
    assert_eq!((ran.output.as_str(), ran.output.len() as u64 + ran.output_dropped), ("äöü\nä", 7_000));
    let ran = run(&pool, "print('\\ud800')\nprint('x' * 100)\nraise ValueError('\\ud800')");
    assert_eq!(ran.output, format!("\\ud800\n{}\n", "x".repeat(100)));
    // What was printed before the kill is there.
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(&pool, folder.path(), "print('before')\n10**10**8", limits(200), &mut NoCalls);
    assert!(matches!(ran.ended, Ended::TimedOut { .. }), "{ran:?}");
    assert_eq!(ran.output, "before\n");
    // A warning shows the line of the code and no path of this machine.
    let ran = run(&pool, "import numpy as np\nnp.array([1.0]) / np.array([0.0])");
    assert_eq!(ran.output, "line 2: RuntimeWarning: divide by zero encountered in divide\n");
    let ran =
        run(&pool, "import traceback, pandas as pd\ntry:\n    pd.Series([1])['x']\nexcept KeyError:\n    traceback.print_exc()");
    assert!(
        ran.output.contains("<python>/pandas/core/series.py") && ran.output.contains("pd.Series([1])['x']"),
        "{}",
        ran.output
    );
}

#[test]
fn memory_and_workspace_have_bounds() {
    let Some(pool) = pool() else { return };
    for code in [
        "a = 'a' * 10**10",
        "import numpy as np\nnp.ones(10**9)",
        "x = []\nwhile True:\n    x.append(bytearray(1 << 20))",
        "sorted(range(10**9))",
        "d = {}\nfor i in range(10**9):\n    d[i] = str(i) * 10",
        "x = [0]\nwhile True:\n    x += x",
    ] {
        let ran = run(&pool, code);
        assert!(matches!(ran.ended, Ended::Memory { .. }), "{code}: {ran:?}");
    }
    let Ended::Memory { traceback } = run(&pool, "def f():\n    return 'a' * 10**10\nf()").ended else { panic!() };
    assert!(traceback.contains("line 2, in f"), "{traceback}");
    let folder = tempfile::tempdir().unwrap();
    let bounds = Limits { file_bytes: 1 << 20, workspace_bytes: 4 << 20, workspace_files: 20, ..limits(10_000) };
    let ran = run_in(&pool, folder.path(), "open('x', 'wb').write(bytes(2 << 20))", bounds, &mut NoCalls);
    assert_eq!(raised(&ran).map(|(exception, _)| exception), Some("OSError".to_owned()), "{ran:?}");
    // Seen while it runs, and seen at the end.
    for (code, most) in [
        ("n = 0\nwhile True:\n    open(f'x{n % 15}', 'ab').write(bytes(900_000))\n    n += 1\n    while n > 14: pass", 15),
        ("for n in range(100):\n    open(f'x{n}', 'w')", 21),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let ran = run_in(&pool, folder.path(), code, bounds, &mut NoCalls);
        let Ended::OverQuota { bytes, files, .. } = ran.ended else { panic!("{ran:?}") };
        assert!((bytes > 4 << 20 || files > 20) && files <= most, "{bytes} {files}");
        assert!(ran.worker_exited && ran.usage.wall < 5.0);
    }
}

#[test]
fn the_probe_tells_what_is_there() {
    let Some(interpreter) = super::interpreter() else { return };
    let found = probe(&interpreter).unwrap();
    assert!(found.found.python.starts_with("3.") && !found.found.numpy.is_empty() && !found.found.pandas.is_empty());
    assert!(found.found.frozen_clock && found.found.deadline_trace, "{found:?}");
    let broken = Interpreter { python: "/bin/false".into(), ..interpreter.clone() };
    let PoolError::NotStarted { what } = probe(&broken).unwrap_err() else { panic!() };
    assert_eq!(what, "it ended at once and said nothing");
    let broken = Interpreter { worker: "/bin/true".into(), ..interpreter.clone() };
    let PoolError::NotStarted { what } = probe(&broken).unwrap_err() else { panic!() };
    assert!(!what.is_empty());
    // A workspace that is not there is the caller's mistake, told before anything runs.
    let pool = Pool::new(interpreter.clone(), 1);
    let job = Job { code: "1", limits: limits(100), workspace: "/no/workspace".as_ref(), frozen: super::frozen(), strict: true };
    assert!(pool.run(&job, &mut NoCalls).unwrap_err().to_string().contains("workspace /no/workspace: "));
    // A start that failed is not tried again at once.
    let pool = Pool::new(Interpreter { python: "/no/python".into(), ..interpreter }, 1);
    assert!(pool.warm().is_err() && pool.warm().unwrap_err().to_string().contains("/no/python"));
}
