//! Recorded runs on real bars.

use crate::command::{repo, run, shared, text};
use serde_json::Value;

#[test]
fn a_recorded_run_replays_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let script = repo("crates/cli/demo/script.yaml");
    for mask in ["all", "dates", "entities", "none"] {
        let record = record.with_extension(mask);
        let ran = run(&[
            "run",
            "--script",
            text(&script),
            "--start",
            "2020-02-04",
            "--end",
            "2020-02-04",
            "--mask",
            mask,
            "--record",
            text(&record),
            "--check-output",
            "--json",
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let summary: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(summary["summary"]["calls"]["environment"], 0, "{summary}");
        let cassette = std::fs::read_to_string(record.join("cassette.jsonl")).unwrap();
        let key = std::fs::read_to_string(record.join("private/run.json")).unwrap();
        let key: Value = serde_json::from_str(&key).unwrap();
        let trajectory = std::fs::read_to_string(record.join("trajectory.jsonl")).unwrap();
        // complaint LA-8: what is hidden from the agent is not in the recording either
        if ["all", "dates"].contains(&mask) {
            assert!(!cassette.contains("2020") && !trajectory.contains("2020"), "{mask}: a real date is in the recording");
        }
        if ["all", "entities"].contains(&mask) {
            assert!(!cassette.contains("000338") && !trajectory.contains("000338"), "{mask}: a real code is in the recording");
        }
        assert!(!cassette.contains(key["mask_key"].as_str().unwrap()), "the mask key is in the recording");
        let replayed = run(&["replay", text(&record)]);
        assert_eq!(replayed.code, 0, "{mask}: {}", replayed.err);
        assert!(replayed.out.contains("13 of 13 requests identical."), "{}", replayed.out);
        assert!(replayed.out.contains("trajectory records identical."), "{}", replayed.out);
        // A record of the trajectory that the run does not give is a finding.
        let changed = trajectory.replacen("\"quantity\":15000", "\"quantity\":16000", 1);
        assert_ne!(changed, trajectory);
        std::fs::write(record.join("trajectory.jsonl"), changed).unwrap();
        let altered = run(&["replay", text(&record)]);
        assert_eq!((altered.code, altered.err.contains("disagree")), (1, true), "{}", altered.err);
    }
}

// The acceptance window: three real days, a buy refused at a real upper limit.
#[test]
fn three_real_days_run_and_a_real_upper_limit_refuses_a_buy() {
    let Some(data) = shared("data/real-2025") else { return };
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let script = repo("examples/scripts/three-days.yaml");
    let ran = run(&[
        "run",
        "--script",
        text(&script),
        "--data",
        text(&data),
        "--start",
        "2025-07-14",
        "--end",
        "2025-07-16",
        "--record",
        text(&record),
        "--check-output",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("limit_up_locked"), "{}", ran.out);
    assert!(ran.out.contains("3 day(s)"), "{}", ran.out);
    let replayed = run(&["replay", text(&record)]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
}

// DESIGN rule 10: invented data is named in every artifact, and so is what a dataset lacks
#[test]
fn every_artifact_says_what_its_data_is() {
    let folder = tempfile::tempdir().unwrap();
    let market = folder.path().join("market");
    let made = run(&["data", "generate", "--out", text(&market), "--stocks", "30", "--days", "40", "--minute-days", "2"]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.out.contains("SYNTHETIC"), "{}", made.out);
    std::fs::remove_file(market.join("valuation.parquet")).unwrap();
    let script = folder.path().join("script.yaml");
    std::fs::write(&script, "schema: 1\ndays: [{}]\n").unwrap();
    let record = folder.path().join("run");
    let day = ["--start", "2024-06-28", "--end", "2024-06-28"];
    let line = ["run", "--script", text(&script), "--data", text(&market), "--record", text(&record)];
    let ran = run(&[&line[..], &day[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    for note in ["SYNTHETIC", "Not in this dataset: valuation", "no security is known to be ST"] {
        assert!(ran.out.contains(note), "{note}: {}", ran.out);
    }
    for file in ["cassette.jsonl", "trajectory.jsonl", "summary.json"] {
        let head: String = std::fs::read_to_string(record.join(file)).unwrap().replace(' ', "");
        assert!(head.contains("\"synthetic\":true"), "{file}");
    }
    assert!(run(&["replay", text(&record)]).out.contains("SYNTHETIC"));
}

/// Runs over a window that begins before the data or ends after it; gives stdout as JSON, stderr and the record folder's public files.
fn beyond(mask: &str, window: [&str; 2], folder: &std::path::Path) -> (Value, String, String) {
    let script = folder.join("script.yaml");
    std::fs::write(&script, "schema: 1\ndays: []\n").unwrap();
    let record = folder.join(mask);
    let line = ["run", "--script", text(&script), "--mask", mask, "--record", text(&record), "--json"];
    let ran = run(&[&line[..], &["--start", window[0], "--end", window[1]]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let files = ["cassette.jsonl", "trajectory.jsonl", "result.json", "summary.json"];
    let files = files.map(|file| std::fs::read_to_string(record.join(file)).unwrap()).concat();
    (serde_json::from_str(&ran.out).unwrap(), ran.err, files)
}

#[test]
fn a_window_beyond_the_data_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (value, err, _) = beyond("none", ["2020-06-15", "2025-01-01"], folder.path());
    assert_eq!((&value["window_note"], err.as_str()), (&"the data ends 2020-06-16; 2 day(s) are played".into(), ""));
    // Hidden dates: the person is told, and no file is.
    let (value, err, files) = beyond("all", ["2020-06-15", "2025-01-01"], folder.path());
    assert_eq!((value.get("window_note"), err.contains("the data ends 2020-06-16")), (None, true), "{err}");
    assert!(!files.contains("2020-06"), "a real day is in the record");
    let (value, err, _) = beyond("entities", ["2010-01-04", "2018-06-01"], folder.path());
    assert_eq!(
        (value["window_note"].as_str().unwrap_or_default().split(';').next(), err.as_str()),
        (Some("the data begins 2018-06-01"), "")
    );
    let (value, err, _) = beyond("dates", ["2020-06-15", "2020-06-16"], folder.path());
    assert_eq!((value.get("window_note"), err.as_str()), (None, ""));
}

#[test]
fn a_run_that_stopped_on_its_first_day_says_why_and_shows_no_empty_table() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.yaml");
    std::fs::write(&script, "schema: 1\notherwise: stop\ndays: [{}]\n").unwrap();
    let record = folder.path().join("run");
    let line = ["run", "--script", text(&script), "--record", text(&record), "--start", "2020-02-04", "--end", "2020-02-04"];
    let ran = run(&line);
    assert_eq!((ran.code, ran.out.contains("failed: model_failed"), ran.out.contains("n/a")), (4, true, false), "{}", ran.out);
    // The same script stops at the same place again.
    assert!(!ran.err.contains("--resume"), "{}", ran.err);
    let replayed = run(&["replay", text(&record)]);
    assert_eq!((replayed.code, replayed.err.contains("stopped before its end")), (2, true), "{}", replayed.err);
    assert!(replayed.err.contains("--resume"), "{}", replayed.err);
    let report = run(&["report", text(&record)]);
    assert_eq!((report.code, report.out.contains("did not come to its end")), (0, true), "{}", report.out);
}
