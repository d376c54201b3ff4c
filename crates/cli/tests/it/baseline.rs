//! Rule-based baselines over real bars: the same bytes twice, and figures that an independent computation gives too.

use crate::command::{run, shared, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use traderharness_ingest::{LoadOptions, bundled, load};
use traderharness_market::{Clock, Code, Day, DecisionPoint, Mask, MaskConfig, Store, View};

const FILES: [&str; 5] = ["cassette.jsonl", "trajectory.jsonl", "summary.json", "result.json", "private/memory.jsonl"];

/// Plays a rule and gives its folder.
fn played(folder: &Path, name: &str, rule: &str, data: Option<&Path>, window: (&str, &str), mask: &str) -> PathBuf {
    let record = folder.join(name);
    let key = crate::command::repo("crates/cli/demo/mask.key");
    let mut line = vec!["run", "--baseline", rule, "--start", window.0, "--end", window.1, "--record", text(&record)];
    line.extend_from_slice(&["--mask", mask, "--mask-key", text(&key), "--json"]);
    line.extend(data.into_iter().flat_map(|data| ["--data", text(data)]));
    let ran = run(&line);
    assert_eq!(ran.code, 0, "{rule}: {}", ran.err);
    assert_eq!(ran.err, "", "{rule} with --json says nothing but its result");
    record
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn near(what: &str, got: f64, expected: f64, within: f64) {
    assert!((got - expected).abs() <= within, "{what}: {got} in the result, {expected} computed");
}

/// Everything that follows from fills and closes, computed anew.
fn recompute(result: &Value, store: &Store) {
    let mask = Mask::new(store, MaskConfig::default());
    let metrics = &result["metrics"];
    let (mut cash, mut fees) = (number(result, "initial_cash"), 0.0);
    let (mut held, mut traded): (BTreeMap<String, f64>, f64) = (BTreeMap::new(), 0.0);
    let mut trades = result["trades"].as_array().unwrap().iter().peekable();
    let mut assets = vec![cash];
    for row in result["days"].as_array().unwrap() {
        let day = Day::parse(row["date"].as_str().unwrap()).unwrap();
        while let Some(trade) = trades.next_if(|trade| trade["day"] == row["day"]) {
            let (shares, amount, fee) = (number(trade, "quantity"), number(trade, "amount"), number(trade, "fees"));
            near("amount", amount, shares * number(trade, "price"), 0.005);
            let sign = if trade["side"] == "buy" { 1.0 } else { -1.0 };
            *held.entry(trade["stock_code"].as_str().unwrap().to_owned()).or_default() += sign * shares;
            cash -= sign * amount + fee;
            fees += fee;
            traded += amount;
        }
        let end = View::new(store, Clock { day, point: DecisionPoint::Close2 }, &mask);
        let evening = View::new(store, Clock { day: Day(day.0 + 1), point: DecisionPoint::PreMarket }, &mask);
        let worth = |(code, shares): (&String, &f64)| {
            let sec = evening.find(Code::parse(code).unwrap()).unwrap();
            // The last bar of the day, where the dataset has it: daily closes of adjusted data are rounded another way.
            let minutes = end.minutes_today(sec);
            let bars = if minutes.is_empty() { evening.daily(sec) } else { minutes };
            shares * bars.close.iter().rev().find(|close| close.is_finite()).unwrap()
        };
        let total = cash + held.iter().map(worth).sum::<f64>();
        near("assets", number(row, "equity"), total, 0.02);
        near("cash", number(row, "cash"), cash, 0.02);
        assert_eq!(row["positions"].as_u64().unwrap() as usize, held.values().filter(|shares| **shares > 0.0).count());
        assets.push(total);
    }
    assert!(trades.next().is_none(), "a fill belongs to no day");
    let days = assets.len() - 1;
    let returns: Vec<f64> = assets.windows(2).map(|w| w[1] / w[0] - 1.0).collect();
    let mean = returns.iter().sum::<f64>() / days as f64;
    let deviation = (returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (days - 1) as f64).sqrt();
    let down = (returns.iter().map(|r| r.min(0.0).powi(2)).sum::<f64>() / days as f64).sqrt();
    let growth = assets[days] / assets[0];
    let fall = (1..=days).map(|n| 1.0 - assets[n] / assets[..=n].iter().copied().fold(0.0, f64::max)).fold(0.0, f64::max);
    near("total return", number(metrics, "total_return_pct"), (growth - 1.0) * 100.0, 0.006);
    near("annual return", number(metrics, "annual_return_pct"), (growth.powf(252.0 / days as f64) - 1.0) * 100.0, 0.006);
    if metrics["sharpe"].is_null() {
        assert_eq!(deviation, 0.0);
    } else {
        near("sharpe", number(metrics, "sharpe"), mean / deviation * 252_f64.sqrt(), 0.002);
        near("sortino", number(metrics, "sortino"), mean / down * 252_f64.sqrt(), 0.002);
    }
    near("drawdown", number(metrics, "max_drawdown_pct"), fall * 100.0, 0.006);
    if fall > 0.0 {
        near("calmar", number(metrics, "calmar"), (growth.powf(252.0 / days as f64) - 1.0) / fall, 0.002);
    }
    near("fees", number(metrics, "fees"), fees, 0.01);
    near(
        "turnover",
        number(metrics, "turnover_pct"),
        traded / 2.0 / (assets[1..].iter().sum::<f64>() / days as f64) * 100.0,
        0.006,
    );
    let (mut streak, mut longest) = (0, 0);
    for r in &returns {
        streak = if *r < 0.0 { streak + 1 } else { 0 };
        longest = longest.max(streak);
    }
    assert_eq!(metrics["longest_losing_streak"], longest);
    // Every figure that is null says why, and no other one does.
    let nulls = metrics.as_object().unwrap().values().filter(|v| v.is_null()).count();
    assert_eq!(metrics["missing_reasons"].as_array().unwrap().len(), nulls, "{metrics}");
}

/// A rule plays twice to the same bytes, its figures are those that `recompute` gives, and it replays.
fn check(rule: &str, data: Option<&Path>, store: &Store, window: (&str, &str), trades: usize) {
    let folder = tempfile::tempdir().unwrap();
    let one = played(folder.path(), "one", rule, data, window, "none");
    let two = played(folder.path(), "two", rule, data, window, "none");
    for file in FILES {
        assert!(std::fs::read(one.join(file)).unwrap() == std::fs::read(two.join(file)).unwrap(), "{rule}: {file}");
    }
    let result = json(&one.join("result.json"));
    let made = result["trades"].as_array().unwrap().len();
    assert!(made >= trades, "{rule}: {made} trades");
    recompute(&result, store);
    let replayed = run(&["replay", text(&one)]);
    assert_eq!(replayed.code, 0, "{rule}: {}", replayed.err);
    let report = run(&["report", text(&one)]);
    assert_eq!(report.code, 0, "{rule}: {}{}", report.out, report.err);
    assert!(report.out.contains("Computed again from the trajectory: the same."), "{}", report.out);
}

fn check_bundled(rule: &str, trades: usize) {
    check(rule, None, &bundled().unwrap().store, ("2019-11-05", "2019-12-10"), trades);
}

fn check_real(rule: &str, trades: usize) {
    let Some(data) = shared("data/real-2025") else { return };
    let store = load(&data, &LoadOptions::default(), &|_| {}).unwrap().store;
    check(rule, Some(&data), &store, ("2025-07-14", "2025-08-15"), trades);
}

#[test]
fn buy_and_hold_over_the_bundled_bars() {
    check_bundled("buy-and-hold", 1);
}

#[test]
fn the_moving_average_over_the_bundled_bars() {
    check_bundled("moving-average", 1);
}

#[test]
fn chance_over_the_bundled_bars() {
    check_bundled("random:3", 1);
}

#[test]
fn buy_and_hold_over_a_real_market_holds_what_can_be_traded() {
    check_real("buy-and-hold", 3);
}

#[test]
fn the_moving_average_over_a_real_market() {
    check_real("moving-average", 5);
}

#[test]
fn chance_over_a_real_market() {
    check_real("random:3", 5);
}

// complaint LA-8: a public report of a masked run names no real day and no real code
#[test]
fn the_result_of_a_masked_run_names_no_real_day_and_no_real_code() {
    let folder = tempfile::tempdir().unwrap();
    let masked = played(folder.path(), "masked", "buy-and-hold", None, ("2019-11-05", "2019-11-20"), "all");
    let report = run(&["report", text(&masked)]).out + &run(&["report", text(&masked), "--json"]).out;
    let files = ["result.json", "summary.json", "measured.json"].map(|f| std::fs::read_to_string(masked.join(f)).unwrap());
    assert!(files[0].contains("SZM-"), "{}", files[0]);
    for text in files.iter().chain([&report]) {
        for real in ["2019", "11-05", "000338", "600000", "000001.SZ"] {
            assert!(!text.contains(real), "{real} is in {text}");
        }
    }
    assert_eq!(json(&masked.join("result.json"))["window"], Value::Null);
}
