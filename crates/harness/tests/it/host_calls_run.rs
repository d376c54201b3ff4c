//! The same through the whole way: code in a worker calls every method, and what it hands back is what the host gave.

use crate::code_bench::{Bench, Table, days, everything};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use traderharness_harness::host_calls::ToolCalls;
use traderharness_market::{DecisionPoint, Moment};
use traderharness_sandbox::lookup::MODULE;
use traderharness_sandbox::protocol::{Frozen, Limits, WorkerEnded};
use traderharness_sandbox::{Ended, Interpreter, Job, Pool};

/// The sandbox that `cargo xtask setup` makes; `None` without one.
fn pool() -> Option<&'static Pool> {
    static POOL: LazyLock<Option<Pool>> = LazyLock::new(|| {
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/sandbox");
        let interpreter = Interpreter { python: made.join("venv/bin/python"), worker: made.join(MODULE) };
        let there = |path: &PathBuf| path.exists();
        (there(&interpreter.python) && there(&interpreter.worker)).then(|| Pool::new(interpreter, 2))
    });
    let found = POOL.as_ref();
    if found.is_none() {
        println!("skipped: there is no sandbox in target/sandbox; `cargo xtask setup` makes it");
    }
    found
}

fn run(pool: &Pool, bench: &mut Bench, code: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let job = Job {
        code,
        limits: Limits { result_bytes: 8 << 20, ..Limits::default() },
        workspace: folder.path(),
        frozen: Frozen { epoch_seconds: 946_691_400, seed: 1 },
        strict: false,
    };
    let ran = bench.with_calls(|calls: &mut ToolCalls<'_>| pool.run(&job, calls).unwrap());
    match ran.ended {
        Ended::Finished(result) | Ended::Worker(WorkerEnded::Finished { result }) => result,
        other => panic!("{other:?}\n{}", ran.output),
    }
}

/// A host's table as a frame looks after its way through JSON: moments as text, whole numbers of a float column as floats.
fn records(table: &Table) -> Vec<Value> {
    let moments: Vec<&str> = table.times.as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    let text = |column: &str, value: &Value| {
        let moment = Moment(value.as_i64().unwrap());
        match column {
            "date" => moment.day().to_string(),
            _ => format!("{}T{}:00", moment.day(), moment.minute()),
        }
    };
    let row = |row: &std::collections::BTreeMap<String, Value>| {
        let cell = |name: &String| {
            let value = &row[name];
            (name.clone(), if moments.contains(&name.as_str()) { json!(text(name, value)) } else { value.clone() })
        };
        Value::Object(table.columns.iter().map(cell).collect())
    };
    table.rows.iter().map(row).collect()
}

const ALL: &str = r#"
from traderharness_api import market, portfolio, news

code = market.get_stock_list()[1]
result = {
    "market.get_kline": market.get_kline(code, days=30),
    "market.get_kline_5min": market.get_kline_5min(code),
    "market.get_all_daily": market.get_all_daily(5),
    "market.get_behavioral_features": market.get_behavioral_features(),
    "market.get_sector_stocks": market.get_sector_stocks("Tools"),
    "market.get_stock_list": market.get_stock_list(),
    "market.get_all_stocks": market.get_all_stocks(),
    "market.get_stock_price": market.get_stock_price(code),
    "market.get_market_overview": market.get_market_overview(),
    "market.get_sector_summary": market.get_sector_summary(sector="Tools"),
    "market.screen_stocks": market.screen_stocks(price_min=1, sort_by="volume"),
    "portfolio.get_positions": portfolio.get_positions(),
    "portfolio.get_cash": portfolio.get_cash(),
    "portfolio.get_total_value": portfolio.get_total_value(),
    "portfolio.get_gross_exposure_pct": portfolio.get_gross_exposure_pct(),
    "news.get_announcements": news.get_announcements(code, days=90),
    "news.get_policy_news": news.get_policy_news(),
    "news.get_news": news.get_news(days=2, keyword="chips"),
}
"#;

#[test]
fn code_gets_what_the_host_gives() {
    let Some(pool) = pool() else { return };
    for masked in [true, false] {
        let mut bench = Bench::small(everything(), masked, DecisionPoint::Open1);
        let code = bench.codes()[1].clone();
        let got = run(pool, &mut bench, ALL);
        let args = |method: &str| match method {
            "market.get_kline" => json!({ "code": code, "days": 30 }),
            "market.get_kline_5min" | "market.get_stock_price" => json!({ "code": code }),
            "market.get_all_daily" => json!({ "days": 5 }),
            "market.get_sector_stocks" | "market.get_sector_summary" => json!({ "sector": "Tools" }),
            "market.screen_stocks" => json!({ "price_min": 1, "sort_by": "volume" }),
            "news.get_announcements" => json!({ "code": code, "days": 90 }),
            "news.get_news" => json!({ "days": 2, "keyword": "chips" }),
            _ => json!({}),
        };
        assert_eq!(got.as_object().unwrap().len(), 18);
        for (method, got) in got.as_object().unwrap() {
            let answer = bench.ask(method, args(method)).unwrap();
            let expected = if answer.segment.is_some() { Value::Array(records(&Table::of(&answer))) } else { answer.value };
            assert_eq!(*got, expected, "{method} masked {masked}");
            assert!(
                method.starts_with("portfolio") || !expected.as_array().is_some_and(Vec::is_empty) || method.starts_with("news")
            );
        }
    }
}

#[test]
fn refusals_are_exceptions_that_say_what_to_do() {
    let Some(pool) = pool() else { return };
    let code = r#"
from traderharness_api import market, portfolio, news

def told(call):
    try:
        call()
    except Exception as fault:
        return f"{type(fault).__name__}: {fault}"

result = [told(call) for call in (
    lambda: market.get_all_daily(500),
    lambda: market.get_all_daily(offset=1),
    lambda: market.get_kline("600001"),
    lambda: market.get_sector_summary("Tolls"),
    lambda: market.screen_stocks(price=1),
    lambda: market.get_market_overview(),
    lambda: market.run_backtest(),
)]
"#;
    let tools = ["execute_code", "get_kline", "get_sector_summary", "screen_stocks"];
    let mut bench = Bench::small(crate::code_bench::card(&tools), true, DecisionPoint::Open1);
    let got = run(pool, &mut bench, code);
    let expected = [
        ("ValueError", "between 1 and 120"),
        ("TypeError", "accepted: days"),
        ("LookupError", "visible code"),
        ("LookupError", "Closest names: Tools"),
        ("ValueError", "accepted: price_min"),
        ("PermissionError", "get_narrative_market_overview"),
        ("AttributeError", "get_all_daily"),
    ];
    for (got, (kind, part)) in got.as_array().unwrap().iter().zip(expected) {
        let got = got.as_str().unwrap();
        assert!(got.starts_with(kind) && got.contains(part), "{got}");
    }
}

#[test]
fn frames_may_be_changed_and_kept_by_the_thousand() {
    let Some(pool) = pool() else { return };
    let code = r#"
from traderharness_api import market

codes = market.get_stock_list()
daily = market.get_all_daily(120)
daily["ma5"] = daily.groupby("stock_code").close.transform(lambda s: s.rolling(5).mean())
daily.loc[daily.volume == 0, "close"] = float("nan")
daily.at[0, "close"] = 1.0
again = market.get_all_daily(120)
kept = {i: market.get_kline(codes[i % len(codes)], 20) for i in range(1500)}
result = [len(daily), float(daily.close[0]), bool(again.close[0] != 1.0), len(kept), int(sum(len(k) for k in kept.values()))]
"#;
    let mut bench = Bench::small(everything(), true, DecisionPoint::PreMarket);
    let got = run(pool, &mut bench, code);
    let listed = bench.codes().len() as i64;
    assert_eq!((&got[1], &got[2], &got[3]), (&json!(1.0), &json!(true), &json!(1500)));
    assert_eq!(got[4], 1500 * 20, "{listed} securities: {got}");
    assert!(days().len() > 120);
}
