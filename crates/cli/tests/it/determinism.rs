//! The same recording replays under another time zone, locale, working directory and hash seed (complaints RP-1, RP-7, WN-1).

use crate::command::{command, ran, repo, run, text};

#[test]
fn a_recording_replays_in_another_environment() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("Lauf ≥ 股票 🚀");
    let script = repo("crates/cli/demo/script.yaml");
    let made =
        run(&["run", "--script", text(&script), "--start", "2020-02-04", "--end", "2020-02-04", "--record", text(&record)]);
    assert_eq!(made.code, 0, "{}", made.err);
    let elsewhere = tempfile::tempdir().unwrap();
    let settings: [&[(&str, &str)]; 4] = [
        &[("TZ", "Pacific/Kiritimati"), ("LANG", "C")],
        &[("TZ", "America/Los_Angeles"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "de_DE.UTF-8")],
        &[("LC_ALL", "zh_CN.GBK"), ("PYTHONHASHSEED", "123"), ("RUST_BACKTRACE", "1")],
        &[("RAYON_NUM_THREADS", "1"), ("USER", "nobody"), ("HOME", "/nonexistent")],
    ];
    for environment in settings {
        let output =
            command(&["replay", text(&record)]).current_dir(elsewhere.path()).envs(environment.iter().copied()).output().unwrap();
        let ran = ran(output);
        assert_eq!(ran.code, 0, "{environment:?}: {}", ran.err);
        assert!(ran.out.contains("13 of 13 requests identical."), "{environment:?}: {}", ran.out);
    }
}

#[test]
fn two_recordings_with_one_key_are_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let script = repo("crates/cli/demo/script.yaml");
    let key = repo("crates/cli/demo/mask.key");
    let bytes = |name: &str, threads: &str| {
        let record = folder.path().join(name);
        let output = command(&[
            "run",
            "--script",
            text(&script),
            "--start",
            "2020-02-04",
            "--end",
            "2020-02-04",
            "--mask-key",
            text(&key),
            "--record",
            text(&record),
        ])
        .env("RAYON_NUM_THREADS", threads)
        .output()
        .unwrap();
        assert!(output.status.success());
        ["cassette.jsonl", "trajectory.jsonl", "summary.json"].map(|file| std::fs::read(record.join(file)).unwrap())
    };
    assert_eq!(bytes("a", "1"), bytes("b", "7"));
}

// DESIGN rule 8: what was written stays valid up to the last whole line after a kill
#[test]
fn a_run_that_stops_keeps_a_valid_trajectory_and_no_finished_cassette() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("s.yaml");
    std::fs::write(
        &script,
        "schema: 1\notherwise: stop\ndays:\n  - pre_market:\n      - calls: [{tool: get_portfolio, args: {}}]\n",
    )
    .unwrap();
    let record = folder.path().join("run");
    let made =
        run(&["run", "--script", text(&script), "--start", "2020-02-04", "--end", "2020-02-04", "--record", text(&record)]);
    assert_eq!(made.code, 4, "{}", made.err);
    assert!(!record.join("cassette.jsonl").exists());
    let recovered = traderharness_replay::trajectory::read(record.join("trajectory.jsonl")).unwrap();
    assert!(recovered.cut.is_none());
    let kept: Vec<&traderharness_replay::Record> = recovered.entries.iter().map(|e| &e.record).collect();
    let [.., traderharness_replay::Record::Error { code, .. }, traderharness_replay::Record::RunEnd { status, .. }] = kept[..]
    else {
        panic!("{:?}", kept.last())
    };
    assert_eq!((code.as_str(), status.as_str()), ("model_failed", "failed"));
}

// complaint RP-6: one recording comes to one result, however often and wherever it is played
#[test]
fn replays_of_one_recording_come_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let script = repo("crates/cli/demo/script.yaml");
    let record = folder.path().join("run");
    let made =
        run(&["run", "--script", text(&script), "--start", "2020-02-04", "--end", "2020-02-04", "--record", text(&record)]);
    assert_eq!(made.code, 0, "{}", made.err);
    let twice = |what: &[&str]| {
        let [first, second] = [("UTC", "1"), ("Asia/Shanghai", "5")].map(|(zone, threads)| {
            let ran = ran(command(what).env("TZ", zone).env("RAYON_NUM_THREADS", threads).output().unwrap());
            assert_eq!(ran.code, 0, "{what:?}: {}", ran.err);
            ran.out
        });
        assert!(first.len() > 500, "{what:?}: {first}");
        assert_eq!(first, second, "{what:?}");
    };
    twice(&["replay", text(&record), "--json"]);
    twice(&["rescore", text(&record), "--json"]);
    twice(&["report", text(&record), "--json"]);
    let exports = ["a", "b"].map(|name| {
        let out = folder.path().join(format!("{name}.jsonl"));
        let made = run(&["export", "rl", text(&record), "--out", text(&out)]);
        assert_eq!(made.code, 0, "{}", made.err);
        std::fs::read(out).unwrap()
    });
    assert!(exports[0] == exports[1] && !exports[0].is_empty());
}
