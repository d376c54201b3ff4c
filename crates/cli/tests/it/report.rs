//! `traderharness report`: results again, side by side, and held against their recordings.

use crate::command::{repo, run, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn scripted(folder: &Path, name: &str) -> PathBuf {
    let record = folder.join(name);
    let (script, key) = (repo("crates/cli/demo/script.yaml"), repo("crates/cli/demo/mask.key"));
    let line = ["run", "--script", text(&script), "--mask-key", text(&key), "--start", "2020-02-04", "--end", "2020-02-04"];
    let ran = run(&[&line[..], &["--record", text(&record)]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    record
}

/// The schema of result.json, field by field, and what a person reads of it.
#[test]
fn the_result_of_the_demo_day_is_reviewed_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let record = scripted(folder.path(), "demo");
    let result: Value = serde_json::from_str(&std::fs::read_to_string(record.join("result.json")).unwrap()).unwrap();
    insta::assert_json_snapshot!(result);
    let report = run(&["report", text(&record)]);
    assert_eq!(report.code, 0, "{}", report.err);
    insta::assert_snapshot!(report.out);
    let measured: Value = serde_json::from_str(&std::fs::read_to_string(record.join("measured.json")).unwrap()).unwrap();
    for part in ["seconds", "budgets", "sandbox", "model"] {
        assert!(measured.get(part).is_some(), "{measured}");
    }
}

#[test]
fn several_runs_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (scripted(folder.path(), "one"), scripted(folder.path(), "two"));
    let report = run(&["report", text(&one), text(&two)]);
    assert_eq!(report.code, 0, "{}", report.err);
    let head: Vec<&str> = report.out.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["one", "two"]);
    assert!(report.out.contains("annual return"), "{}", report.out);
    let machine: Value = serde_json::from_str(&run(&["report", text(&one), text(&two), "--json"]).out).unwrap();
    assert_eq!(machine["runs"][1]["result"]["status"], "completed");
    assert_eq!(machine["runs"][1]["computed_again"], true);
}

#[test]
fn a_result_that_was_changed_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    let record = scripted(folder.path(), "changed");
    let path = record.join("result.json");
    let kept = std::fs::read_to_string(&path).unwrap();
    let result: Value = serde_json::from_str(&kept).unwrap();
    for (place, value, says) in [
        ("/metrics/total_return_pct", Value::from(12.5), "metrics"),
        ("/days/0/equity", Value::from(2_000_000.0), "days"),
        ("/trades/0/quantity", Value::from(1), "trades"),
        ("/requests", Value::from(1), "requests"),
        ("/final_equity", Value::from(2_000_000.0), "final_equity"),
        ("/initial_cash", Value::from(2_000_000.0), "initial_cash"),
        ("/model", Value::from("another"), "model"),
        ("/status", Value::from("aborted"), "status"),
        ("/dataset/name", Value::from("another"), "dataset"),
        // Nothing of these is in the recording; a replay over the data still finds them.
        ("/trades/0/realised", Value::from(9.0), ""),
        ("/metrics/missing_reasons/0/reason", Value::from("no reason"), ""),
    ] {
        let mut changed = result.clone();
        *changed.pointer_mut(place).unwrap() = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        let replayed = run(&["replay", text(&record)]);
        assert_eq!((replayed.code, replayed.err.contains("is not what the run gives")), (1, true), "{place}: {}", replayed.err);
        if says.is_empty() {
            continue;
        }
        let report = run(&["report", text(&record)]);
        assert_eq!(report.code, 1, "{place}: {}", report.out);
        assert!(report.out.contains("The recording says otherwise") && report.out.contains(says), "{place}: {}", report.out);
    }
    std::fs::write(&path, &kept).unwrap();
    assert!(run(&["replay", text(&record)]).out.contains("The result file is what the run gives."));
    // A run without a result file is computed from its recording as far as that goes.
    std::fs::remove_file(&path).unwrap();
    let report = run(&["report", text(&record), "--json"]);
    assert_eq!(report.code, 0, "{}", report.err);
    let again: Value = serde_json::from_str(&report.out).unwrap();
    let again = &again["runs"][0]["result"];
    assert_eq!((&again["status"], &again["days"]), (&"completed".into(), &result["days"]));
    assert_eq!(again["metrics"]["total_return_pct"], result["metrics"]["total_return_pct"]);
    // Its end is told by the last record alone.
    let trajectory = record.join("trajectory.jsonl");
    let records = std::fs::read_to_string(&trajectory).unwrap();
    std::fs::write(&trajectory, records.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n").unwrap();
    let again: Value = serde_json::from_str(&run(&["report", text(&record), "--json"]).out).unwrap();
    assert_eq!(again["runs"][0]["result"]["status"], "unfinished");
}

#[test]
fn a_run_that_stopped_within_a_day_has_the_assets_of_that_moment() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let script = repo("crates/cli/demo/script.yaml");
    let days = ["--start", "2020-02-04", "--end", "2020-02-05", "--mask", "none", "--max-calls", "12"];
    let stopped = run(&[&["run", "--script", text(&script), "--record", text(&record)], &days[..]].concat());
    assert_eq!(stopped.code, 4, "{}", stopped.err);
    let report = run(&["report", text(&record), "--json"]);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["runs"][0]["differences"], serde_json::json!([]));
    let result = &report["runs"][0]["result"];
    assert!(result["final_equity"] != result["initial_cash"] && result["days"] == serde_json::json!([]), "{result}");
}

#[test]
fn what_is_no_run_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let empty = run(&["report", text(folder.path())]);
    assert_eq!((empty.code, empty.err.contains("no run")), (2, true), "{}", empty.err);
    std::fs::write(folder.path().join("result.json"), "{}").unwrap();
    let broken = run(&["report", text(folder.path())]);
    assert_eq!((broken.code, broken.err.contains("no result of a run")), (2, true), "{}", broken.err);
    assert_eq!(run(&["report"]).code, 2);
}

#[test]
fn a_damaged_or_missing_cassette_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    let record = scripted(folder.path(), "run");
    let path = record.join("cassette.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let report = || run(&["report", text(&record)]);
    assert!(report().out.contains("The cassette is whole: 13 request(s)"), "{}", report().out);
    let without_end = whole.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    let changed = whole.replacen("15000", "16000", 1);
    for (what, body) in [("end", &without_end[..]), ("line", &changed[..]), ("half", &whole[..whole.len() / 2]), ("empty", "")] {
        assert_ne!(body, whole);
        std::fs::write(&path, body).unwrap();
        let found = report();
        assert_eq!((found.code, found.out.contains("damaged or gone")), (1, true), "{what}: {} {}", found.out, found.err);
    }
    std::fs::remove_file(&path).unwrap();
    let gone = report();
    assert_eq!((gone.code, gone.out.contains("is not there")), (1, true), "{}", gone.out);
    let machine: Value = serde_json::from_str(&run(&["report", text(&record), "--json"]).out).unwrap();
    assert_eq!(machine["runs"][0]["cassette"]["state"], "lost");
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(report().code, 0);
    let trajectory = record.join("trajectory.jsonl");
    let kept = std::fs::read_to_string(&trajectory).unwrap();
    std::fs::write(&trajectory, &kept[..kept.len() - 9]).unwrap();
    let cut = report();
    assert_eq!((cut.code, cut.out.contains("middle of a record")), (1, true), "{} {}", cut.out, cut.err);
}

#[test]
fn the_folder_of_a_comparison_is_all_of_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("keys");
    let line = ["compare", "--baseline", "buy-and-hold", "--no-baselines", "--seeds", "2", "--record", text(&record)];
    let compared = run(&[&line[..], &["--start", "2019-11-05", "--end", "2019-11-05"]].concat());
    assert_eq!(compared.code, 0, "{}", compared.err);
    // A rule has no tokens, here as in the report.
    let tokens = compared.out.lines().find(|line| line.starts_with("builtin")).unwrap();
    assert_eq!(tokens.matches("n/a").count(), 3, "{}", compared.out);
    let report = run(&["report", text(&record), "--json"]);
    assert_eq!(report.code, 0, "{}", report.err);
    let runs: Value = serde_json::from_str(&report.out).unwrap();
    let names: Vec<&str> = runs["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(names, ["key-1/builtin", "key-2/builtin"]);
    let replayed = run(&["replay", text(&record)]);
    assert_eq!((replayed.code, replayed.err.contains("pass one of")), (2, true), "{}", replayed.err);
    assert!(replayed.err.contains("key-2/builtin"), "{}", replayed.err);
}

#[test]
fn what_is_no_run_has_one_exit_code_wherever_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["report", "replay"] {
        let (empty, missing) = (run(&[command, text(folder.path())]), run(&[command, "no-such-run"]));
        assert_eq!((empty.code, empty.err.contains("there is no run in")), (2, true), "{command}: {}", empty.err);
        assert_eq!((missing.code, missing.err.contains("no-such-run")), (3, true), "{command}: {}", missing.err);
    }
}
