//! The same code gives the same bytes.

use super::{NOW, interpreter, limits};
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::protocol::Frozen;
use traderharness_sandbox::{Ended, Job, Pool};

/// Everything that would differ between runs of an ordinary Python.
const CODE: &str = "
import os, random, secrets, sys, tempfile, time, uuid, datetime, decimal
import numpy as np, pandas as pd
print({'b', 'a', 'c', 'delta', 'echo'}, {int, str, float, len, print, Exception}, frozenset(range(5)))
class A: pass
def f(): pass
print(A(), f, object(), {A(), f}.__len__(), hash('x'), hash((1, 'x')), hash(None))
print(time.time(), time.time_ns(), time.localtime(), time.strftime('%c %Z'), time.gmtime().tm_hour)
print(datetime.datetime.now(), datetime.datetime.utcnow(), datetime.date.today(), pd.Timestamp.now(), pd.Timestamp.today())
print(pd.Timestamp.now('UTC'), np.datetime64('now'), datetime.datetime.now().astimezone())
print(time.perf_counter(), time.monotonic(), time.process_time(), time.thread_time())
time.sleep(1.5)
print(time.time(), time.perf_counter() > 1001, datetime.datetime.now())
print(random.random(), random.Random().random(), random.SystemRandom().random(), secrets.token_hex(4), os.urandom(4).hex())
print(uuid.uuid4(), np.random.rand(), np.random.default_rng().random(), np.random.SeedSequence().entropy, np.random.RandomState().rand())
print(os.getpid(), os.getppid(), os.cpu_count(), os.getcwd(), os.path.abspath('x'), sys.argv, sorted(os.environ.items()))
print(pd.DataFrame({'a': np.random.normal(size=4)}).sample(frac=1))
x = np.random.default_rng(3).normal(size=(64, 64))
print(repr(float((x @ x).sum())), repr(float(np.exp(x).sum())), repr(float(np.linalg.svd(x)[1][0])), repr(float(np.sin(x).std())))
print(os.path.basename(tempfile.mkdtemp()))
os.makedirs('d/e')
for name in ('z', 'b', 'y', 'a', 'x', 'c'):
    open('d/' + name, 'w').write(name * 3)
print(os.listdir('d'), [e.name for e in os.scandir('d')], list(os.walk('.')), os.listdir(os.open('d', os.O_RDONLY)))
time.sleep(5)
for path in ('.', 'd', 'd/a', 'd/b'):
    print(os.stat(path))
print(os.path.samefile('d/a', 'd/../d/a'), os.path.samefile('d/a', 'd/b'), [e.inode() == e.stat().st_ino for e in os.scandir('d')])
print(sys.modules['platform'].platform(), os.uname(), os.times(), os.getpgrp(), os.getpgid(0), os.getuid(), os.getgroups())
print(os.sched_getaffinity(0), sys.modules['posix'].cpu_count(), os.sysconf('SC_NPROCESSORS_ONLN'), os.umask(0))
print(sys.modules['_thread'].get_native_id(), sys.executable, sys.prefix, sys.base_prefix, len(os.getcwd()))
print(id(A), np.ones(1000).__array_interface__['data'], np.empty(9).tolist(), sys.getallocatedblocks() > 0)
result = {'t': time.time(), 'path': os.path.abspath('x'), 'who': repr(A())}
";

#[test]
fn two_interpreters_give_the_same_bytes() {
    let Some(interpreter) = interpreter() else { return };
    let mut seen: Vec<(String, String)> = Vec::new();
    for _ in 0..2 {
        let pool = Pool::new(interpreter.clone(), 1);
        // Twice in each: what ran before leaves no trace.
        for _ in 0..2 {
            let folder = tempfile::tempdir().unwrap();
            let frozen = Frozen { epoch_seconds: NOW, seed: 7 };
            let job = Job { code: CODE, limits: limits(10_000), workspace: folder.path(), frozen, strict: true };
            let ran = pool.run(&job, &mut NoCalls).unwrap();
            let Ended::Finished(result) = ran.ended else { panic!("{ran:?}") };
            seen.push((ran.output, result.to_string()));
        }
    }
    println!("{}", seen[0].0);
    for other in &seen[1..] {
        assert_eq!(&seen[0], other);
    }
    assert!(seen[0].0.contains("2000-01-01 09:30:00 2000-01-01 01:30:00 2000-01-01 2000-01-01 09:30:00"), "{}", seen[0].0);
    assert!(seen[0].0.contains("946690201.5"), "{}", seen[0].0);
    assert_eq!(seen[0].1, r#"{"t":946690206.5,"path":"./x","who":"<__main__.A object at 0x0>"}"#);
}

#[test]
fn another_seed_gives_other_numbers() {
    let Some(interpreter) = interpreter() else { return };
    let pool = Pool::new(interpreter, 1);
    let folder = tempfile::tempdir().unwrap();
    let code = "import random, os, numpy as np\nresult = [random.random(), os.urandom(8).hex(), float(np.random.rand()), float(np.random.default_rng().random())]";
    let mut results = Vec::new();
    for seed in [1, 2] {
        let frozen = Frozen { epoch_seconds: NOW, seed };
        let job = Job { code, limits: limits(10_000), workspace: folder.path(), frozen, strict: true };
        let Ended::Finished(result) = pool.run(&job, &mut NoCalls).unwrap().ended else { panic!() };
        results.push(result.as_array().unwrap().clone());
    }
    for (one, other) in results[0].iter().zip(&results[1]) {
        assert_ne!(one, other);
    }
}
