//! What hostile code can do to its host without a way out: fill its disk, its memory and its records, and run without being counted.

use super::{limits, pool, run, run_in};
use serde_json::{Map, Value, json};
use std::fs;
use std::sync::Arc;
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::protocol::{Limits, MAX_CALL, MAX_DEPTH, WorkerEnded};
use traderharness_sandbox::{Ended, HostAnswer, HostCalls, HostFault, Segment, SegmentBuilder};

/// Sends a frame that the worker's own code did not make. `BODY` is Python that gives its bytes.
const FORGE: &str = "
import os, struct, json
def forge(body):
    body = struct.pack('<I', len(body)) + body
    while body:
        body = body[os.write(3, body[:65536]):]
";

fn forged(body: &str) -> Ended {
    let Some(pool) = pool() else { return Ended::Hostile { what: "a frame".to_owned() } };
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(&pool, folder.path(), &format!("{FORGE}forge({body})\nwhile True: pass"), limits(3_000), &mut NoCalls);
    assert!(ran.worker_exited && ran.usage.wall < 3.0, "{ran:?}");
    ran.ended
}

#[test]
fn frames_are_bounded_in_length_and_depth() {
    let bounded = |body: &str| match forged(body) {
        Ended::Hostile { what } => {
            assert!(what.contains("a frame") || what.contains("a call of") || what.contains("levels"), "{what}");
        }
        other => panic!("{body}: {other:?}"),
    };
    // A few bytes of text become many of memory, so what is too long is not even parsed.
    bounded(r#"b'{"type":"ended","ended":{"how":"finished","result":[' + b'0,' * (3 << 20) + b'0]}}'"#);
    bounded(&format!(r#"b'{{"type":"call","id":1,"method":"x","args":{{"a":[' + b'0,' * {} + b'0]}}}}'"#, MAX_CALL / 2));
    // A recording nests a result deeper than the frame does, and must still be readable.
    bounded(&format!(
        r#"b'{{"type":"ended","ended":{{"how":"finished","result":' + b'[' * {0} + b']' * {0} + b'}}}}'"#,
        MAX_DEPTH + 1
    ));
    // The worker's own word for it.
    let Some(pool) = pool() else { return };
    let code = "import numpy as np\nx = 1\nfor _ in range(4):\n    a = np.empty((1,) * 30, dtype=object)\n    a[(0,) * 30] = x\n    x = a\nresult = x";
    let ran = run(&pool, code);
    assert!(matches!(ran.ended, Ended::Worker(WorkerEnded::Unserialisable { .. })), "{ran:?}");
    // Arguments too.
    let code = format!("import traderharness_api as api\napi.market.get_stock_price('x' * {MAX_CALL})");
    assert!(matches!(run(&pool, &code).ended, Ended::Worker(WorkerEnded::Raised { exception, .. }) if exception == "ValueError"));
}

#[test]
fn code_that_runs_cannot_say_that_nothing_ran() {
    for ended in [
        json!({"how": "disallowed", "what": "x", "line": null}),
        json!({"how": "syntax", "message": "x", "line": 1, "column": 1}),
    ] {
        let body = format!("json.dumps({{'type': 'ended', 'ended': json.loads('{ended}')}}).encode()");
        assert!(matches!(forged(&body), Ended::Hostile { .. }), "{body}");
    }
    assert!(matches!(forged("b'{\"type\":\"running\"}'"), Ended::Hostile { .. }));
    let Some(pool) = pool() else { return };
    let ran = run(&pool, "import sys\nraise sys.modules['traderharness_guard'].Disallowed('what was found out', '')");
    assert!(matches!(ran.ended, Ended::Worker(WorkerEnded::Raised { .. })), "{ran:?}");
}

/// The host notices that a workspace grows too large, and soon.
fn over_quota(code: &str) {
    let Some(pool) = pool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(&pool, folder.path(), code, Limits { workspace_bytes: 1 << 20, ..limits(20_000) }, &mut Long);
    assert!(matches!(ran.ended, Ended::OverQuota { .. }), "{code}: {ran:?}");
    assert!(ran.worker_exited && ran.usage.wall < 5.0, "{ran:?}");
}

/// Answers with more than a socket holds.
struct Long;

impl HostCalls for Long {
    fn call(&mut self, _: &str, _: &Map<String, Value>) -> Result<HostAnswer, HostFault> {
        Ok(HostAnswer { value: json!("x".repeat(2 << 20)), segment: None })
    }
}

#[test]
fn no_folder_hides_files_from_the_quota() {
    const FILL: &str =
        "n = 0\nwhile True:\n    open(f'f{n % 100}', 'wb').write(bytes(1 << 18))\n    n += 1\n    while n > 60: pass\n";
    // Longer than any path may be.
    over_quota(&format!("import os\nfor _ in range(18):\n    os.mkdir('d' * 250)\n    os.chdir('d' * 250)\n{FILL}"));
    // Deeper than what is kept, with short names.
    over_quota(&format!("import os\nfor _ in range(17):\n    os.mkdir('d')\n    os.chdir('d')\n{FILL}"));
    over_quota(&format!("import os\nos.mkdir('d', 0o300)\nos.chdir('d')\n{FILL}"));
    // At the depth that is kept all is well.
    let Some(pool) = pool() else { return };
    let code = "import os\nfor _ in range(16):\n    os.mkdir('d')\n    os.chdir('d')\nopen('f', 'w').write('x')\nresult = 1";
    assert_eq!(run(&pool, code).ended, Ended::Finished(json!(1)));
}

#[test]
fn the_quota_holds_while_the_code_lets_an_answer_wait() {
    let fill = "n = 0\nwhile True:\n    open(f'f{n % 100}', 'wb').write(bytes(1 << 18))\n    n += 1\n    while n > 60: pass\n";
    let call = "forge(json.dumps({'type': 'call', 'id': 1, 'method': 'x', 'args': {}}).encode())";
    over_quota(&format!("{FORGE}{call}\n{fill}"));
}

/// A table for every call.
#[derive(Default)]
struct Tables(Vec<Arc<Segment>>, usize);

impl HostCalls for Tables {
    fn call(&mut self, _: &str, args: &Map<String, Value>) -> Result<HostAnswer, HostFault> {
        self.1 += 1;
        let again = args.get("days").and_then(Value::as_u64).unwrap_or_default() as usize;
        while self.0.len() <= again {
            let mut table = SegmentBuilder::new(1 << 20);
            table.f64("close", vec![1.0; 1 << 20]);
            self.0.push(Arc::new(table.build().unwrap()));
        }
        Ok(HostAnswer { value: Value::Null, segment: self.0.get(again).cloned() })
    }
}

#[test]
fn tables_that_one_run_holds_are_bounded_together() {
    let Some(pool) = pool() else { return };
    let folder = tempfile::tempdir().unwrap();
    // Descriptors that are not even mapped count for nothing in the memory of the process.
    let code = "
import traderharness_api as api
kept = []
for days in range(14):
    try:
        kept.append(api._host_call('market.get_all_daily', '{\"days\": %d}' % days)[1])
    except Exception as error:
        break
result = [sum(fd >= 0 for fd in kept), len(kept)]";
    let bounds = Limits { memory_bytes: 100 << 20, ..limits(10_000) };
    let ran = run_in(&pool, folder.path(), code, bounds, &mut Tables::default());
    let Ended::Finished(result) = &ran.ended else { panic!("{ran:?}") };
    assert!(result[0].as_u64().is_some_and(|held| (8..=12).contains(&held)), "{result}");
    // The same table as often as one likes.
    let code = "
from traderharness_api import market
result = sum(len(market.get_all_daily(1)) for _ in range(40))";
    let ran = run_in(&pool, folder.path(), code, bounds, &mut Tables::default());
    assert_eq!(ran.ended, Ended::Finished(json!(40 << 20)));
    let code = "
from traderharness_api import market
for days in range(1, 40): market.get_all_daily(days)";
    let ran = run_in(&pool, folder.path(), code, bounds, &mut Tables::default());
    let (exception, message) = super::raised(&ran).unwrap();
    assert_eq!(exception, "RuntimeError");
    assert!(message.contains("100 MB together"), "{message}");
}

#[test]
fn memory_that_ends_in_the_middle_of_our_own_code_is_told_as_such() {
    let Some(pool) = pool() else { return };
    let code = "
import traderharness_api as api
args = '{\"code\": \"' + 'x' * 200_000 + '\"}'
kept = []
size = 1 << 20
while size >= 64:
    try:
        while True: kept.append(bytearray(size))
    except MemoryError:
        size >>= 1
api._host_call('market.get_stock_price', args)";
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(&pool, folder.path(), code, Limits { memory_bytes: 128 << 20, ..limits(10_000) }, &mut Long);
    assert!(matches!(ran.ended, Ended::Memory { .. }), "{ran:?}");
}

#[test]
fn the_folder_of_a_call_tells_nothing_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = traderharness_sandbox::Workspace::new(folder.path().join("crash-of-2015-06-15"));
    let bounds = traderharness_sandbox::workspace::Bounds { bytes: 1_000, files: 10 };
    let stage = workspace.stage(1, 0, &bounds).unwrap();
    assert!(!stage.path().starts_with(folder.path()), "{:?}", stage.path());
    let path = stage.path().to_path_buf();
    fs::write(path.join("a"), "1").unwrap();
    drop(stage);
    assert!(!path.exists() && !path.parent().unwrap().exists());
    // After a kill the next call removes it.
    let stage = workspace.stage(2, 0, &bounds).unwrap();
    let path = stage.path().to_path_buf();
    fs::write(path.join("a"), "1").unwrap();
    std::mem::forget(stage);
    drop(workspace.stage(2, 0, &bounds).unwrap());
    assert!(!path.exists() && !path.parent().unwrap().exists());
}
