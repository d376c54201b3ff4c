//! Calls from the code to the host.

use super::{limits, pool, raised, run_in};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use traderharness_sandbox::protocol::MAX_CALLS;
use traderharness_sandbox::{Ended, HostAnswer, HostCalls, HostFault, HostFaultKind, Segment, SegmentBuilder};

/// Answers prices, slowly if asked to.
struct Prices {
    slow: Duration,
    asked: Vec<(String, Value)>,
    table: Option<Arc<Segment>>,
}

impl HostCalls for Prices {
    fn call(&mut self, method: &str, args: &Map<String, Value>) -> Result<HostAnswer, HostFault> {
        self.asked.push((method.to_owned(), Value::Object(args.clone())));
        std::thread::sleep(self.slow);
        let fault = |kind| Err(HostFault { kind, message: "told why".to_owned() });
        match args.get("code").and_then(Value::as_str) {
            Some("permission") => fault(HostFaultKind::Permission),
            Some("value") => fault(HostFaultKind::Value),
            Some("lookup") => fault(HostFaultKind::Lookup),
            Some("environment") => fault(HostFaultKind::Environment),
            Some("table") => Ok(HostAnswer { value: Value::Null, segment: self.table.clone() }),
            Some("long") => Ok(HostAnswer { value: json!("x".repeat(3 << 20)), segment: None }),
            _ => Ok(HostAnswer { value: json!(12.5), segment: None }),
        }
    }
}

fn prices() -> Prices {
    Prices { slow: Duration::ZERO, asked: Vec::new(), table: None }
}

const IMPORT: &str = "from traderharness_api import market\nask = market.get_stock_price\n";

#[test]
fn a_call_is_answered_by_the_host() {
    let Some(pool) = pool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut host = prices();
    let code = format!("{IMPORT}print('first')\nresult = [ask('S1'), ask('S2'), len(ask('long'))]");
    let ran = run_in(&pool, folder.path(), &code, limits(5_000), &mut host);
    assert_eq!(ran.ended, Ended::Finished(json!([12.5, 12.5, 3 << 20])));
    assert_eq!((ran.calls, ran.output.as_str()), (3, "first\n"));
    assert_eq!(host.asked.first(), Some(&("market.get_stock_price".to_owned(), json!({"code": "S1"}))));
}

#[test]
fn a_fault_is_the_exception_of_its_kind() {
    let Some(pool) = pool() else { return };
    for (kind, exception) in
        [("permission", "PermissionError"), ("value", "ValueError"), ("lookup", "LookupError"), ("environment", "RuntimeError")]
    {
        let folder = tempfile::tempdir().unwrap();
        let ran = run_in(&pool, folder.path(), &format!("{IMPORT}ask('{kind}')"), limits(5_000), &mut prices());
        assert_eq!(raised(&ran), Some((exception.to_owned(), "told why".to_owned())), "{ran:?}");
    }
}

#[test]
fn time_of_the_host_is_not_the_codes() {
    let Some(pool) = pool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut host = Prices { slow: Duration::from_millis(100), ..prices() };
    let code = format!("{IMPORT}result = [ask('S1') for _ in range(5)]");
    let ran = run_in(&pool, folder.path(), &code, limits(300), &mut host);
    assert!(matches!(ran.ended, Ended::Finished(_)), "{ran:?}");
    assert!(ran.usage.wall < 0.4);
    // Its own time still runs out, after the calls as before.
    let ran = run_in(&pool, folder.path(), &format!("{code}\nwhile True: pass"), limits(300), &mut host);
    assert!(matches!(&ran.ended, Ended::TimedOut { traceback, .. } if traceback.contains("line 4")), "{ran:?}");
}

#[test]
fn calls_have_a_number_they_end_at() {
    let Some(pool) = pool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let code =
        format!("{IMPORT}n = 0\ntry:\n    while True:\n        ask('S1')\n        n += 1\nexcept RuntimeError:\n    result = n");
    let ran = run_in(&pool, folder.path(), &code, limits(10_000), &mut prices());
    assert_eq!((ran.ended, ran.calls), (Ended::Finished(json!(MAX_CALLS)), MAX_CALLS));
}

#[test]
fn a_table_comes_as_a_descriptor_and_cannot_be_changed_for_others() {
    let Some(pool) = pool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let rows = 108_000;
    let mut builder = SegmentBuilder::new(rows);
    builder.text("code", &["S1", "S2"], (0..rows as i32).map(|row| row % 2).collect());
    builder.f64("close", (0..rows).map(|row| row as f64 / 4.0).collect());
    let table = Arc::new(builder.build().unwrap());
    let mut host = Prices { table: Some(Arc::clone(&table)), ..prices() };
    let code = format!(
        "{IMPORT}a = ask('table')\na['close'] += 1\nb = ask('table')\nb.iloc[0, 1] = 9.0\nc = ask('table')\n\
         result = [len(c), float(a['close'].iloc[4]), float(c['close'].iloc[4]), float(c['close'].iloc[0]), c['code'].iloc[3]]"
    );
    let ran = run_in(&pool, folder.path(), &code, limits(5_000), &mut host);
    assert_eq!(ran.ended, Ended::Finished(json!([rows, 2.0, 1.0, 0.0, "S2"])));
    // A table that is let go gives its descriptor back.
    let code = format!("{IMPORT}for _ in range(100):\n    table = ask('table')\nresult = len(table)");
    let ran = run_in(&pool, folder.path(), &code, limits(5_000), &mut host);
    assert_eq!(ran.ended, Ended::Finished(json!(rows)), "{}", ran.usage.wall);
}
