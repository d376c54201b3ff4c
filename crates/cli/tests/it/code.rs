//! Runs whose agent runs code: recorded, replayed elsewhere, killed and resumed, with and without a Python (complaint RP-1).

use crate::command::{command, lines, ran, repo, run, text};
use crate::sandbox::is_set_up;
use std::path::{Path, PathBuf};

const SCRIPT: &str = r#"schema: 1
days:
  - pre_market:
      - calls:
          - tool: execute_code
            args:
              code: |
                from traderharness_api import market
                import datetime, os, random, time
                print({"alpha", "beta", "gamma"}, hash("x"), id is not None, os.getcwd(), datetime.datetime.now(), time.time(), random.random())
                open("notes.txt", "a").write("one\n")
                result = {"names": set(market.get_stock_list()[:5]), "sum": market.get_all_daily(5).close.sum()}
          - tool: execute_code
            args: {code: "open('notes.txt', 'w').write('never kept')\nwhile True: pass", timeout_seconds: 1}
          - tool: execute_code
            args: {code: "result = open('notes.txt').read()"}
      - calls: [{tool: complete_phase, args: {decision: ready, summary: look}}]
  - pre_market:
      - calls: [{tool: execute_code, args: {code: "open('notes.txt', 'a').write('two'); result = open('notes.txt').read()"}}]
      - calls: [{tool: complete_phase, args: {decision: ready, summary: look}}]
"#;

fn script(folder: &Path) -> PathBuf {
    let path = folder.join("script.yaml");
    std::fs::write(&path, SCRIPT).unwrap();
    path
}

fn args<'a>(script: &'a Path, key: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--script", text(script), "--mask-key", text(key), "--start", "2019-11-05", "--end", "2019-11-06"];
    args.extend(more);
    args
}

fn outcomes(record: &Path) -> Vec<serde_json::Value> {
    let records = lines(&record.join("trajectory.jsonl")).into_iter();
    records.filter(|record| record["type"] == "external").map(|record| record["outcome"].clone()).collect()
}

// complaint RP-1
#[test]
fn code_gives_the_same_bytes_in_another_process_under_another_environment() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let record = folder.path().join("run");
    let made = run(&args(&script, &key, &["--record", text(&record)]));
    assert_eq!(made.code, 0, "{}{}", made.out, made.err);
    let kept = outcomes(&record);
    let how: Vec<&str> = kept.iter().filter_map(|outcome| outcome["outcome"].as_str()).collect();
    assert_eq!(how, ["finished", "timed_out", "finished", "finished"]);
    assert_eq!(kept[2]["result"], "one\n", "a call that was stopped leaves no file");
    assert_eq!(kept[3]["result"], "one\ntwo", "files stay for the next day");
    assert!(kept[0]["stdout"].as_str().unwrap().contains("2000-01-01 09:30:00"), "{}", kept[0]);

    let other = tempfile::tempdir().unwrap();
    for env in [
        vec![("TZ", "America/New_York"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "tr_TR.UTF-8"), ("PYTHONHASHSEED", "7")],
        vec![("TZ", "Asia/Tokyo"), ("PYTHONHASHSEED", "random"), ("OMP_NUM_THREADS", "7"), ("HOME", "/nonexistent")],
    ] {
        let mut command = command(&["replay", text(&record)]);
        let replayed = ran(command.envs(env).current_dir(other.path()).output().unwrap());
        assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
        assert!(
            replayed.out.contains("3 code outcome(s) identical when run again, 1 taken from the recording."),
            "{}",
            replayed.out
        );
    }
    let recorded = run(&["replay", text(&record), "--recorded-code", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&recorded.out).unwrap();
    assert_eq!(said["code"], serde_json::json!({ "run_again": 0, "from_recording": 4, "no_interpreter": null }));
    // A recording outlives the Python it was made with.
    let mut command = command(&["replay", text(&record)]);
    let without = ran(command.env("TRADERHARNESS_PYTHON", "/no/python").output().unwrap());
    assert_eq!(without.code, 0, "{}{}", without.out, without.err);
    assert!(without.out.contains("4 code outcome(s) were taken from the recording"), "{}", without.out);
    assert!(without.out.contains("/no/python"), "{}", without.out);
}

#[test]
fn an_outcome_that_was_changed_stops_the_replay_and_is_shown() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let record = folder.path().join("run");
    assert_eq!(run(&args(&script, &key, &["--record", text(&record)])).code, 0);
    let path = record.join("trajectory.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let changed = whole.replacen(r#""result":"one\n","files""#, r#""result":"once\n","files""#, 1);
    assert_ne!(whole, changed);
    std::fs::write(&path, changed).unwrap();
    let replayed = run(&["replay", text(&record)]);
    assert_eq!(replayed.code, 1, "{}{}", replayed.out, replayed.err);
    for said in ["execute_code", "does not end as it was recorded", "result", "once"] {
        assert!(replayed.err.contains(said), "{said}: {}", replayed.err);
    }
}

// DESIGN rule 8
#[test]
fn a_killed_run_with_code_goes_on_and_ends_with_the_same_bytes() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let whole = folder.path().join("whole");
    assert_eq!(run(&args(&script, &key, &["--record", text(&whole)])).code, 0);
    let read = |record: &Path| {
        ["trajectory.jsonl", "cassette.jsonl", "summary.json"].map(|file| std::fs::read(record.join(file)).unwrap_or_default())
    };
    let expected = read(&whole);
    for (round, after) in [1, 2, 3, 4].into_iter().enumerate() {
        let record = folder.path().join(format!("killed-{round}"));
        let line = args(&script, &key, &["--record", text(&record)]);
        let mut child = command(&line).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        // Killed when a version of the files, or an outcome, is there.
        let reached = || {
            let trajectory = std::fs::read_to_string(record.join("trajectory.jsonl")).unwrap_or_default();
            trajectory.matches("\"type\":\"external\"").count() >= after || record.join(format!("workspace/{after}")).is_dir()
        };
        while !reached() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !record.join("cassette.jsonl").exists() {
            let mut line = args(&script, &key, &["--record", text(&record)]);
            line.push("--resume");
            let resumed = run(&line);
            assert_eq!(resumed.code, 0, "{}{}", resumed.out, resumed.err);
        }
        assert!(read(&record) == expected, "killed after {after}: other bytes than the whole run");
    }
}

#[test]
fn without_a_python_a_run_goes_on_and_says_why_code_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let record = folder.path().join("run");
    let mut line = args(&script, &key, &["--record", text(&record)]);
    line.extend(["--python", "/no/python"]);
    let made = run(&line);
    assert_eq!(made.code, 0, "{}{}", made.out, made.err);
    assert!(made.out.contains("environment_unavailable") && made.out.contains("note: ") && made.out.contains("/no/python"));
    let trajectory = std::fs::read_to_string(record.join("trajectory.jsonl")).unwrap();
    assert!(!trajectory.contains("/no/python"), "no path of the machine is in a record");
    // What the machine could not do is part of the recording, wherever it is replayed.
    let replayed = run(&["replay", text(&record)]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);

    line.truncate(line.len() - 4);
    line.extend(["--python", "/no/python", "--strict-sandbox"]);
    let refused = run(&line);
    assert_eq!(refused.code, 3, "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("traderharness doctor"), "{}", refused.err);
}

#[test]
fn runs_share_files_only_where_the_card_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let card = folder.path().join("card.yaml");
    std::fs::write(&card, "id: sharing\nworkspace: shared\nrequire_phase_completion: true\n").unwrap();
    let shared = folder.path().join("shared");
    let refused = run(&args(&script, &key, &["--workspace", text(&shared)]));
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("workspace: shared"), "{}", refused.err);
    let refused = run(&args(&script, &key, &["--card", text(&card)]));
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("--workspace DIR"), "{}", refused.err);
    if !is_set_up() {
        return;
    }
    let mut expected = String::new();
    for round in 0..2 {
        let record = folder.path().join(format!("run-{round}"));
        let made = run(&args(&script, &key, &["--card", text(&card), "--workspace", text(&shared), "--record", text(&record)]));
        assert_eq!(made.code, 0, "{}{}", made.out, made.err);
        expected.push_str("one\ntwo");
        assert_eq!(std::fs::read_to_string(shared.join("notes.txt")).unwrap(), expected, "round {round}");
    }
    for round in 0..2 {
        let record = folder.path().join(format!("run-{round}"));
        let replayed = run(&["replay", text(&record)]);
        assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    }
    assert_eq!(std::fs::read_to_string(shared.join("notes.txt")).unwrap(), expected, "a replay changes no file");
}
