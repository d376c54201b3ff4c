//! `traderharness compare`: several agents over one clock, each with its own account and recording.

use crate::command::{repo, run, text};
use serde_json::Value;
use std::path::Path;

const SPEC: &str = "start: 2019-11-05
end: 2019-11-08
mask_key: mask.key
entrants:
  - {name: abstains, script: nothing.yaml}
  - {name: stops, script: short.yaml}
  - {name: holds, baseline: buy-and-hold, card: card.yaml}
";

fn spec(folder: &Path) -> String {
    let write = |name: &str, body: &str| std::fs::write(folder.join(name), body).unwrap();
    write("spec.yaml", SPEC);
    write("nothing.yaml", "schema: 1\ndays: []\n");
    write("short.yaml", "schema: 1\notherwise: stop\ndays:\n  - pre_market:\n      - calls: [{tool: get_portfolio, args: {}}]\n");
    write("card.yaml", "id: small\nname: Small\ninitial_cash: 500000\n");
    std::fs::copy(repo("crates/cli/demo/mask.key"), folder.join("mask.key")).unwrap();
    text(&folder.join("spec.yaml")).to_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn agents_are_compared_to_the_same_bytes_and_one_that_stops_holds_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path());
    let go = |name: &str| {
        let record = folder.path().join(name);
        let ran = run(&["compare", &spec, "--record", text(&record)]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        (ran, record)
    };
    let (ran, one) = go("one");
    let (_, two) = go("two");
    for agent in ["abstains", "holds", "buy-and-hold", "moving-average", "random-1", "random-2", "random-3"] {
        for file in ["cassette.jsonl", "trajectory.jsonl", "result.json", "summary.json"] {
            let read = |record: &Path| std::fs::read(record.join(agent).join(file)).unwrap();
            assert!(read(&one) == read(&two), "{agent}/{file} differs");
        }
    }
    assert!(std::fs::read(one.join("compare.json")).unwrap() == std::fs::read(two.join("compare.json")).unwrap());
    // One clock: the others end a day before anybody begins the next.
    let days: Vec<&str> = ran.err.lines().filter(|l| l.starts_with("day ")).map(|l| l.split("  ").next().unwrap()).collect();
    assert_eq!(days.len(), 7 * 4, "{}", ran.err);
    assert!(days.is_sorted(), "{days:?}");
    let value = json(&one.join("compare.json"));
    let of = |name: &str| value["entrants"].as_array().unwrap().iter().find(|e| e["name"] == name).unwrap().clone();
    assert!(of("stops")["results"][0]["fault"].as_str().unwrap().contains("model"), "{}", of("stops"));
    assert_eq!(of("abstains")["total_return_pct"], 0.0);
    assert_eq!(of("holds")["results"][0]["result"]["initial_cash"], 500_000.0);
    assert_eq!(value["ranking"]["enough"], false);
    assert!(ran.out.contains("Not enough to rank: 20 days"), "{}", ran.out);
    assert!(!one.join("stops/cassette.jsonl").exists() && one.join("stops/result.json").exists());
    // Each agent's recording is a run like any other.
    assert_eq!(run(&["replay", text(&one.join("holds"))]).code, 0);
    let report = run(&["report", text(&one.join("holds")), text(&one.join("abstains"))]);
    assert_eq!(report.code, 0, "{}", report.out);
    // A masked comparison names no real day.
    let public = std::fs::read_to_string(one.join("compare.json")).unwrap() + &ran.out;
    assert!(!public.contains("2019"), "{public}");
}

#[test]
fn an_agent_in_company_writes_what_it_writes_alone() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path());
    let (together, alone) = (folder.path().join("together"), folder.path().join("alone"));
    assert_eq!(run(&["compare", &spec, "--no-baselines", "--record", text(&together)]).code, 0);
    let key = repo("crates/cli/demo/mask.key");
    let card = folder.path().join("card.yaml");
    let line = ["run", "--baseline", "buy-and-hold", "--card", text(&card), "--mask-key", text(&key)];
    let ran = run(&[&line[..], &["--start", "2019-11-05", "--end", "2019-11-08", "--record", text(&alone)]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    for file in ["cassette.jsonl", "trajectory.jsonl", "result.json"] {
        assert!(std::fs::read(alone.join(file)).unwrap() == std::fs::read(together.join("holds").join(file)).unwrap(), "{file}");
    }
}

#[test]
fn several_keys_play_under_several_masks() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("keys");
    let window = ["--start", "2019-11-05", "--end", "2019-11-06"];
    let line = ["compare", "--baseline", "buy-and-hold", "--no-baselines", "--seeds", "3", "--json", "--record", text(&record)];
    let ran = run(&[&line[..], &window[..]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    let results = value["entrants"][0]["results"].as_array().unwrap().clone();
    let keys: std::collections::BTreeSet<&str> =
        results.iter().map(|r| r["result"]["masked"]["key_id"].as_str().unwrap()).collect();
    assert_eq!((results.len(), keys.len()), (3, 3));
    assert!(record.join("key-3/builtin/cassette.jsonl").exists());
}

#[test]
fn agents_that_differ_beyond_chance_are_ranked_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("ranked");
    std::fs::write(folder.path().join("nothing.yaml"), "schema: 1\ndays: []\n").unwrap();
    let script = folder.path().join("nothing.yaml");
    let window = ["--start", "2019-11-05", "--end", "2019-12-10"];
    let ran = run(&[&["compare", "--script", text(&script), "--record", text(&record)][..], &window[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let value = json(&record.join("compare.json"));
    let pairs = value["ranking"]["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 15);
    for pair in pairs {
        let (low, high) = (pair["interval_pct"][0].as_f64().unwrap(), pair["interval_pct"][1].as_f64().unwrap());
        let mean = pair["mean_pct"].as_f64().unwrap();
        assert!(low <= high && pair["days"] == 26, "{pair}");
        let verdict = pair["verdict"].as_str().unwrap();
        assert_eq!(verdict.starts_with("not enough"), low <= 0.0 && high >= 0.0, "{pair}");
        assert!(verdict.starts_with("not enough") || (mean > 0.0) == (verdict == "a is better"), "{pair}");
    }
    assert!(ran.out.contains("ot enough to rank"), "{}", ran.out);
}

/// What a comparison that cannot be says.
fn check(body: &str, more: &[&str], code: i32, says: &str) {
    let folder = tempfile::tempdir().unwrap();
    spec(folder.path());
    let (path, record) = (folder.path().join("other.yaml"), folder.path().join("record"));
    std::fs::write(&path, body).unwrap();
    let ran = run(&[&["compare", text(&path), "--record", text(&record)][..], more].concat());
    assert_eq!((ran.code, ran.err.contains(says)), (code, true), "{body}: {}", ran.err);
    assert!(!record.exists(), "nothing is half-made");
}

#[test]
fn comparisons_that_cannot_be_are_refused_before_anything_is_run() {
    let days = "start: 2019-11-05\nend: 2019-11-06\n";
    check("entrants: []", &[], 2, "no start day");
    check(&format!("{days}entrant: []"), &[], 2, "unknown field `entrant`");
    check(&format!("{days}entrants: [{{scrpt: nothing.yaml}}]"), &[], 2, "entrants[0]");
    check(&format!("{days}entrants: [{{name: a}}]"), &[], 2, "nobody is named who plays");
    check(&format!("{days}entrants: [{{name: a b, script: nothing.yaml}}]"), &[], 2, "`a b` is no name");
    check(&format!("{days}entrants: [{{name: ../up, script: nothing.yaml}}]"), &[], 2, "is no name");
    check(&format!("{days}entrants: [{{name: Random-1, script: nothing.yaml}}]"), &[], 2, "two agents are called");
    check(&format!("{days}baselines: false"), &[], 2, "nobody takes part");
    check(&format!("{days}seeds: 0"), &[], 2, "`seeds` is 0");
    check(&format!("{days}mask: some"), &[], 2, "`mask: some`");
    check(
        &format!("{days}entrants: [{{name: a, base_url: \"http://127.0.0.1:9\", model: m, key_env: NOT_THERE}}]"),
        &[],
        2,
        "NOT_THERE",
    );
    check(days, &["--max-cost", "1"], 2, "no agent has any");
    check("start: 2001-01-01\nend: 2001-01-05\n", &[], 2, "no trading day");
}

#[test]
fn a_window_beyond_the_data_is_said_and_hidden_dates_stay_hidden() {
    let folder = tempfile::tempdir().unwrap();
    for (mask, in_file) in [("all", false), ("none", true)] {
        let record = folder.path().join(mask);
        let line = ["compare", "--baseline", "buy-and-hold", "--no-baselines", "--mask", mask, "--record", text(&record)];
        let ran = run(&[&line[..], &["--start", "2020-06-16", "--end", "2025-01-01"]].concat());
        assert_eq!((ran.code, ran.err.contains("note: the data ends 2020-06-16; 1 day(s) are played")), (0, true), "{}", ran.err);
        let value = json(&record.join("compare.json"));
        assert_eq!((value.get("window_note").is_some(), value.to_string().contains("2020-06-16")), (in_file, in_file), "{value}");
    }
}
