//! Runs behind an order gate: files as an owner handles them, replay, a killed run, and what is refused before anything starts.

use crate::command::{Ran, command, ran, repo, run, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

const MANDATE: &str = "examples/gate/mandate.yaml";

/// Buys and sells one security on four days; what is refused is given up.
fn script(folder: &Path) -> PathBuf {
    let day = |action: &str, quantity: u32| {
        format!(
            r#"  - open_1:
      - calls: [{{tool: place_order, args: {{action: {action}, stock_code: $000338, quantity: {quantity}, reasoning: test}}}}]
      - calls: [{{tool: complete_phase, args: {{decision: monitor, summary: done}}}}]
"#
        )
    };
    // 30,000 shares cost more than the 250,000 CNY of the mandate's order cap.
    let days = [day("buy", 1_000), day("buy", 30_000), day("sell", 0), day("buy", 500)];
    let path = folder.join("script.yaml");
    std::fs::write(&path, format!("schema: 1\ndays:\n{}", days.concat())).unwrap();
    path
}

fn args<'a>(script: &'a Path, mandate: &'a Path, record: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--script", text(script), "--gate", text(mandate), "--record", text(record), "--json"];
    args.extend(["--start", "2019-11-05", "--end", "2019-11-08", "--mask", "none"]);
    args.extend(more);
    args
}

/// A folder with a script, the example mandate, and the place of a run.
fn setup() -> (tempfile::TempDir, PathBuf, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (script, record) = (script(folder.path()), folder.path().join("run"));
    (folder, script, repo(MANDATE), record)
}

fn fills(ran: &Ran) -> u64 {
    assert_eq!(ran.code, 0, "{}", ran.err);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    summary["summary"]["days"].as_array().unwrap().iter().map(|d| d["fills"].as_u64().unwrap()).sum()
}

fn kinds(audit: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(audit).unwrap();
    let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["payload"]["kind"].as_str().unwrap().to_owned();
    log.lines().map(kind).collect()
}

#[test]
fn a_gated_run_is_audited_verified_and_replayed() {
    let (_folder, script, mandate, record) = setup();
    let made = run(&args(&script, &mandate, &record, &[]));
    assert_eq!(fills(&made), 3, "the order above the cap was held back");
    let audit = record.join("private/gate/paper/audit.jsonl");
    let expected = [
        "mandate_loaded",
        "order_intent",
        "order_placed",
        "breach",
        "order_intent",
        "order_placed",
        "order_intent",
        "order_placed",
    ];
    assert_eq!(kinds(&audit), expected);
    let counter = std::fs::read_to_string(record.join("private/gate/paper/trades.json")).unwrap();
    assert_eq!(counter, r#"{"schema_version":1,"days":{"2019-11-05":1,"2019-11-07":1,"2019-11-08":1}}"#);
    for public in ["cassette.jsonl", "summary.json"] {
        let body = std::fs::read_to_string(record.join(public)).unwrap();
        assert!(!body.contains("consent_token") && !body.contains("exclude_symbols"), "the mandate is private: {public}");
    }

    let whole = run(&["gate", "verify", text(&audit)]);
    assert_eq!(whole.code, 0, "{}", whole.err);
    assert!(whole.out.contains("8 records of 1 session(s)"), "{}", whole.out);
    let replayed = run(&["replay", text(&record)]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);

    // A run folder that was moved replays from where it is now.
    let moved = record.with_file_name("moved");
    std::fs::rename(&record, &moved).unwrap();
    assert_eq!(run(&["replay", text(&moved)]).code, 0);

    // One digit of one record.
    let audit = moved.join("private/gate/paper/audit.jsonl");
    let log = std::fs::read_to_string(&audit).unwrap();
    std::fs::write(&audit, log.replacen("\"shares\":1000", "\"shares\":1001", 1)).unwrap();
    let broken = run(&["gate", "verify", text(&audit)]);
    assert_eq!(broken.code, 1, "{}", broken.out);
    assert!(broken.err.contains("line 3: the record is not what its hash was taken of"), "{}", broken.err);
    let as_json = run(&["gate", "verify", text(&audit), "--json"]);
    assert_eq!((as_json.code, serde_json::from_str::<Value>(&as_json.out).unwrap()["line"].clone()), (1, 3.into()));
    assert_eq!(run(&["replay", text(&moved)]).code, 1, "a replay does not build on a broken log");
    std::fs::remove_dir_all(moved.join("private/gate")).unwrap();
    assert_eq!(run(&["replay", text(&moved)]).code, 3);
}

#[test]
fn a_halt_file_stops_a_run_and_the_replay_needs_no_halt_file() {
    for halt in ["HALT", "paper/HALT"] {
        let (folder, script, mandate, record) = setup();
        let dir = folder.path().join("gate");
        std::fs::create_dir_all(dir.join("paper")).unwrap();
        std::fs::write(dir.join(halt), "").unwrap();
        let made = run(&args(&script, &mandate, &record, &["--gate-dir", text(&dir)]));
        assert_eq!(fills(&made), 0, "{halt}");
        let cassette = std::fs::read_to_string(record.join("cassette.jsonl")).unwrap();
        assert!(!cassette.contains(r#""name":"place_order","description""#), "a halted session does not list the order tool");
        std::fs::remove_file(dir.join(halt)).unwrap();
        let replayed = run(&["replay", text(&record)]);
        assert_eq!(replayed.code, 0, "{halt}: {}", replayed.err);
    }
}

#[test]
fn what_cannot_be_read_stops_orders_or_the_run() {
    // A folder in place of the counter: the gate denies, the run goes on.
    let (folder, script, mandate, record) = setup();
    let dir = folder.path().join("gate");
    std::fs::create_dir_all(dir.join("paper/trades.json")).unwrap();
    let made = run(&args(&script, &mandate, &record, &["--gate-dir", text(&dir)]));
    assert_eq!(fills(&made), 0);
    let trajectory = std::fs::read_to_string(record.join("trajectory.jsonl")).unwrap();
    assert!(trajectory.contains("counter_unreadable"), "the refusal says why");
    // A log that is not whole, and a folder in place of it: no run starts.
    for (name, code, words) in [("torn", 1, "the last record is not whole"), ("folder", 3, "audit.jsonl")] {
        let dir = folder.path().join(name);
        std::fs::create_dir_all(dir.join("paper")).unwrap();
        let audit = dir.join("paper/audit.jsonl");
        if name == "torn" {
            std::fs::write(&audit, "{").unwrap();
        } else {
            std::fs::create_dir(&audit).unwrap();
        }
        let record = folder.path().join(format!("run-{name}"));
        let refused = run(&args(&script, &mandate, &record, &["--gate-dir", text(&dir)]));
        assert_eq!(refused.code, code, "{name}: {}", refused.err);
        assert!(refused.err.contains(words), "{name}: {}", refused.err);
        assert!(!record.join("trajectory.jsonl").exists());
    }
    assert_eq!(run(&["gate", "verify", text(&folder.path().join("nowhere"))]).code, 3);
}

#[test]
fn an_expired_mandate_allows_nothing() {
    let (folder, script, _, record) = setup();
    let mandate = folder.path().join("mandate.yaml");
    let example = std::fs::read_to_string(repo(MANDATE)).unwrap();
    std::fs::write(&mandate, example.replace("\"2020-03-01\"", "\"2019-11-06 09:50\"")).unwrap();
    assert_eq!(fills(&run(&args(&script, &mandate, &record, &[]))), 1, "the consent ends with the second day's first order");
    let trajectory = std::fs::read_to_string(record.join("trajectory.jsonl")).unwrap();
    assert!(trajectory.contains("mandate_expired"));
}

#[test]
fn a_faulty_mandate_is_refused_before_anything_starts() {
    let (folder, script, _, record) = setup();
    let mandate = folder.path().join("mandate.yaml");
    let example = std::fs::read_to_string(repo(MANDATE)).unwrap();
    for (from, to, words) in [
        ("account_funding_cny: 1000000", "account_funding_cny: .nan", "hard_caps.account_funding_cny"),
        ("account_funding_cny: 1000000", "account_funding_cny: .inf", "hard_caps.account_funding_cny"),
        ("max_order_notional_cny: 250000", "max_order_notional_cny: -1", "hard_caps.max_order_notional_cny"),
        ("max_total_exposure_cny: 900000", "max_total_exposure_cny: 1e999", "hard_caps.max_total_exposure_cny"),
        ("[sh_main, sz_main]", "[]", "universe.asset_classes"),
        ("schema_version: 1", "schema_version: 2", "schema_version"),
        ("max_leverage: 1", "max_leverage: 1\n  max_leverage: 100", "max_leverage"),
        ("flatten_on_halt: false", "flatten: true", "flatten"),
        ("channel: paper", "channel: ../paper", "channel"),
    ] {
        assert!(example.contains(from), "{from}");
        std::fs::write(&mandate, example.replacen(from, to, 1)).unwrap();
        let refused = run(&args(&script, &mandate, &record, &[]));
        assert_eq!(refused.code, 2, "{to}: {}", refused.err);
        assert!(refused.err.contains(words), "{to}: {}", refused.err);
        std::fs::remove_dir_all(&record).unwrap();
    }
    let mandate = repo(MANDATE);
    let nowhere =
        run(&["run", "--script", text(&script), "--start", "2019-11-05", "--end", "2019-11-05", "--gate", text(&mandate)]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.err);
    assert!(nowhere.err.contains("--gate-dir"), "{}", nowhere.err);
}

// complaint OR-13: killed between an effect and its record, the run goes on to the same log, without a second trade
#[test]
fn a_killed_gated_run_goes_on_with_the_same_audit_log() {
    let (folder, script, mandate, whole) = setup();
    let key = repo("crates/cli/demo/mask.key");
    fills(&run(&args(&script, &mandate, &whole, &["--mask-key", text(&key)])));
    let files = ["cassette.jsonl", "trajectory.jsonl", "private/gate/paper/audit.jsonl", "private/gate/paper/trades.json"];
    let bytes = |run: &Path| files.map(|file| std::fs::read(run.join(file)).unwrap());
    let expected = bytes(&whole);
    for lines in [1, 2, 3, 5, 7] {
        let record = folder.path().join(format!("killed-{lines}"));
        let mut child = command(&args(&script, &mandate, &record, &["--mask-key", text(&key)]));
        let mut child = child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let audit = record.join(files[2]);
        let written = || std::fs::read(&audit).map_or(0, |log| log.iter().filter(|b| **b == b'\n').count());
        while written() < lines && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !record.join("cassette.jsonl").exists() {
            let resumed =
                ran(command(&args(&script, &mandate, &record, &["--mask-key", text(&key), "--resume"])).output().unwrap());
            assert_eq!(resumed.code, 0, "killed after {lines}: {}", resumed.err);
        }
        for (name, (found, expected)) in files.iter().zip(bytes(&record).iter().zip(&expected)) {
            assert!(found == expected, "{name}, killed after {lines} records: {}", String::from_utf8_lossy(found));
        }
    }
}
