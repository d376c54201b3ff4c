//! A bundle in the hands of somebody else: what it says is missing is what its replay takes.

use crate::command::{repo, run, text};
use std::path::Path;

const DAY: &str = "2020-02-04";

fn recorded(folder: &Path, name: &str) -> String {
    let record = folder.join(name);
    let script = repo("crates/cli/demo/script.yaml");
    let ran = run(&["run", "--script", text(&script), "--start", DAY, "--end", DAY, "--record", text(&record), "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    text(&record).to_owned()
}

// The file that the hint names is the file that --mask-key takes, and it brings the days too.
#[test]
fn the_command_that_a_bundle_prints_replays_it() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path(), "run");
    let out = folder.path().join("bundle");
    let made = run(&["bundle", &record, "--out", text(&out)]);
    assert_eq!(made.code, 0, "{}", made.err);
    let line = made.out.lines().find_map(|line| line.split_once("Check it with: traderharness ")).map(|(_, line)| line);
    let line: Vec<&str> = line.unwrap_or_default().split(' ').collect();
    assert!(line.contains(&"--mask-key"), "{}", made.out);
    let replayed = run(&line);
    assert_eq!(replayed.code, 0, "{line:?}: {}", replayed.err);
    let scored = run(&["rescore", line[1], line[2], line[3]]);
    assert_eq!(scored.code, 0, "{}", scored.err);
    // The key alone does not tell the days.
    let key = folder.path().join("key");
    let private: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(line[3]).unwrap()).unwrap();
    std::fs::write(&key, private["mask_key"].as_str().unwrap()).unwrap();
    let days = run(&["replay", line[1], "--mask-key", text(&key)]);
    assert!(days.code == 2 && days.err.contains("--start and --end"), "{}", days.err);
    let replayed = run(&["replay", line[1], "--mask-key", text(&key), "--start", DAY, "--end", DAY]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
}

// Two key files that name other days leave the days to be said: nobody knows whose they are.
#[test]
fn a_file_that_is_no_key_is_named_and_days_are_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path(), "run");
    let out = folder.path().join("bundle");
    assert_eq!(run(&["bundle", &record, "--out", text(&out)]).code, 0);
    let kept = std::fs::read_to_string(Path::new(&record).join("private/run.json")).unwrap();
    let check = |content: &str, words: &[&str]| {
        let file = folder.path().join("file");
        std::fs::write(&file, content).unwrap();
        let replayed = run(&["replay", text(&out), "--mask-key", text(&file)]);
        assert_eq!(replayed.code, 2, "{}", replayed.err);
        assert!(words.iter().all(|word| replayed.err.contains(word)), "{words:?}: {}", replayed.err);
    };
    check("0123", &["file`", "64 hex digits", "private/run.json"]);
    check("{\"mask_key\": 7}", &["file`", "64 hex digits", "private/run.json"]);
    check("{\"mask_key\": \"zz\"}", &["64 hex digits"]);
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    std::fs::write(&one, &kept).unwrap();
    std::fs::write(&other, kept.replace(DAY, "2020-02-05")).unwrap();
    let replayed = run(&["replay", text(&out), "--mask-key", text(&one), "--mask-key", text(&other)]);
    assert!(replayed.code == 2 && replayed.err.contains("--start and --end"), "{}", replayed.err);
}

#[test]
fn a_report_without_a_result_file_counts_the_calls_of_the_trajectory() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path(), "run");
    let calls = || {
        let report = run(&["report", &record, "--json"]);
        assert_eq!(report.code, 0, "{}", report.err);
        serde_json::from_str::<serde_json::Value>(&report.out).unwrap()["runs"][0]["result"]["calls"].clone()
    };
    let told = calls();
    assert!(told["refused"].as_u64() > Some(0) && told["bad_arguments"].as_u64() > Some(0), "{told}");
    std::fs::remove_file(Path::new(&record).join("result.json")).unwrap();
    assert_eq!(calls(), told);
}
