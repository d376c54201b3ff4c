//! What is done with recordings: bundles, partial and explained replays, figures again. All of it in real processes, also everything that
//! must be refused.

use crate::command::{Ran, repo, run, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const DAY: &str = "2020-02-04";

fn key() -> PathBuf {
    repo("crates/cli/demo/mask.key")
}

/// A recorded day with a committee.
fn committee(folder: &Path) -> PathBuf {
    let (script, card) = (repo("examples/cards/scripts/leader-rotation.yaml"), repo("examples/cards/leader-rotation.json"));
    let record = folder.join("council");
    let line = ["run", "--script", text(&script), "--card", text(&card), "--start", DAY, "--end", DAY];
    let ran = run(&[&line[..], &["--mask-key", text(&key()), "--record", text(&record)]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    record
}

/// Several agents over two days; one of them stops.
fn compared(folder: &Path, more: &[&str]) -> PathBuf {
    let write = |name: &str, body: &str| std::fs::write(folder.join(name), body).unwrap();
    write(
        "spec.yaml",
        "start: 2019-11-05\nend: 2019-11-06\nbaselines: false\nentrants:\n  - {name: abstains, script: nothing.yaml}\n  - {name: stops, script: short.yaml}\n  - {name: holds, baseline: buy-and-hold}\n",
    );
    write("nothing.yaml", "schema: 1\ndays: []\n");
    write("short.yaml", "schema: 1\notherwise: stop\ndays:\n  - pre_market:\n      - calls: [{tool: get_portfolio, args: {}}]\n");
    let (spec, record) = (folder.join("spec.yaml"), folder.join("compared"));
    let ran = run(&[&["compare", text(&spec), "--mask-key", text(&key()), "--record", text(&record)], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    record
}

fn bundle(runs: &[&Path], out: &Path, more: &[&str]) -> Ran {
    let runs: Vec<&str> = runs.iter().map(|run| text(run)).collect();
    run(&[&["bundle", "--out", text(out)], &runs[..], more].concat())
}

fn with_key<'a>(path: &'a str, key: &'a str, day: (&'a str, &'a str)) -> Vec<&'a str> {
    vec!["replay", path, "--mask-key", key, "--start", day.0, "--end", day.1]
}

/// Every file under a folder with its bytes.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(snapshot(&entry.path()));
        } else {
            found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
        }
    }
    found
}

pub(crate) fn refused(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    for word in says {
        assert!(ran.err.contains(word), "`{word}` is not in {}", ran.err);
    }
}

#[test]
fn a_committee_is_bundled_by_scope_and_replays_without_its_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    let record = committee(folder.path());
    let out = folder.path().join("bundle");
    let ran = bundle(&[&record], &out, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("agents/council__advisor_skeptic.jsonl 2 request(s)"), "{}", ran.out);
    std::fs::remove_dir_all(&record).unwrap();
    let key = key();
    let replayed = run(&with_key(text(&out), text(&key), (DAY, DAY)));
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    assert!(replayed.out.contains("council: 13 of 13 requests identical."), "{}", replayed.out);
    assert!(replayed.out.contains("trajectory records identical. The result file is what the run gives."), "{}", replayed.out);
    // Neither the key nor the day is anywhere in it, and nothing of it is a machine's.
    let hex = std::fs::read_to_string(&key).unwrap();
    for (path, bytes) in snapshot(&out) {
        let content = String::from_utf8(bytes).unwrap();
        for secret in [hex.trim(), DAY, "private", text(folder.path())] {
            assert!(!content.contains(secret), "{secret} is in {}", path.display());
        }
    }
    refused(&run(&["replay", text(&out)]), 2, &["--start and --end"]);
    refused(&run(&["replay", text(&out), "--start", DAY, "--end", DAY]), 2, &["--mask-key"]);
    let other = folder.path().join("other.key");
    std::fs::write(&other, "0".repeat(64)).unwrap();
    refused(&run(&with_key(text(&out), text(&other), (DAY, DAY))), 2, &["mask key has id"]);
    refused(&run(&with_key(text(&out), text(&key), (DAY, "2020-02-05"))), 2, &["another window"]);
    // The manifest is the map of the bundle.
    let manifest: Value = serde_json::from_slice(&std::fs::read(out.join("manifest.json")).unwrap()).unwrap();
    let agent = &manifest["agents"][0];
    assert_eq!((&agent["window"], &agent["cash"], &agent["contract_version"]), (&Value::Null, &1_000_000.0.into(), &"v5".into()));
    assert_eq!(agent["card"]["id"], "leader-rotation");
    assert_eq!(agent["mask"], json!({"entities": "opaque", "dates": true, "seed_sha256": null}));
    assert_eq!(agent["scopes"].as_array().unwrap().len(), 4);
    assert!(manifest["dataset"]["sha256"].is_string() && manifest["tool_version"].is_string());
}

#[test]
fn a_comparison_is_bundled_and_every_agent_and_what_it_came_to_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let record = compared(folder.path(), &["--mask", "none"]);
    let out = folder.path().join("bundle");
    let ran = bundle(&[&record], &out, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("stops is not in it: stopped before its end"), "{}", ran.out);
    // Nothing was hidden, so nothing is missing.
    let replayed = run(&["replay", text(&out)]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    for says in ["abstains: ", "holds: ", "of 2 agent(s).", "The results in compare.json are what the runs give.", "total return"]
    {
        assert!(replayed.out.contains(says), "`{says}` is not in {}", replayed.out);
    }
    let alone = run(&["replay", text(&out), "--agent", "holds", "--json"]);
    let value: Value = serde_json::from_str(&alone.out).unwrap();
    assert_eq!((value["agents"].as_array().unwrap().len(), &value["agents"][0]["agent"]), (1, &"holds".into()));
    refused(&run(&["replay", text(&out), "--agent", "nobody"]), 2, &["no agent `nobody`", "abstains, holds"]);
    // A comparison that says otherwise than its runs, with a manifest that was changed to fit.
    let path = out.join("compare.json");
    let changed = std::fs::read_to_string(&path).unwrap().replacen("\"requests\": ", "\"requests\": 9", 1);
    std::fs::write(&path, &changed).unwrap();
    refused(&run(&["replay", text(&out)]), 1, &["compare.json has", "the manifest states"]);
    let manifest = out.join("manifest.json");
    let mut value: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    for file in value["files"].as_array_mut().unwrap() {
        if file["file"] == "compare.json" {
            file["bytes"] = changed.len().into();
            file["sha256"] = sha256(changed.as_bytes()).into();
        }
    }
    std::fs::write(&manifest, value.to_string()).unwrap();
    refused(&run(&["replay", text(&out)]), 1, &["compare.json is not what the runs give"]);
}

fn sha256(bytes: &[u8]) -> String {
    traderharness_replay::bundle::file_digest(bytes).to_string()
}

#[test]
fn runs_under_several_keys_find_theirs_among_those_given() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("keys");
    let line = ["compare", "--baseline", "buy-and-hold", "--no-baselines", "--seeds", "2", "--record", text(&record)];
    assert_eq!(run(&[&line[..], &["--start", "2019-11-05", "--end", "2019-11-05"]].concat()).code, 0);
    let out = folder.path().join("bundle");
    assert_eq!(bundle(&[&record], &out, &["--private"]).code, 0);
    // With its private folders a bundle needs nothing more.
    assert_eq!(run(&["replay", text(&out)]).code, 0);
    let mut keys = Vec::new();
    for n in ["2", "1"] {
        let private = out.join(format!("runs/builtin.key-{n}/private"));
        let kept: Value = serde_json::from_slice(&std::fs::read(private.join("run.json")).unwrap()).unwrap();
        let path = folder.path().join(format!("{n}.key"));
        std::fs::write(&path, kept["mask_key"].as_str().unwrap()).unwrap();
        keys.push(path);
        std::fs::remove_dir_all(private).unwrap();
    }
    let line = ["replay", text(&out), "--start", "2019-11-05", "--end", "2019-11-05", "--mask-key", text(&keys[0])];
    refused(&run(&line), 2, &["builtin.key-1", "mask key has id"]);
    let ran = run(&[&line[..], &["--mask-key", text(&keys[1])]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// A bundle of one unmasked day without anything of a model.
pub(crate) fn small() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (record, out) = (folder.path().join("day"), folder.path().join("bundle"));
    let line = ["run", "--baseline", "buy-and-hold", "--mask", "none", "--start", "2019-11-05", "--end", "2019-11-05"];
    assert_eq!(run(&[&line[..], &["--record", text(&record)]].concat()).code, 0);
    assert_eq!(bundle(&[&record], &out, &[]).code, 0);
    (folder, out)
}

#[test]
fn a_bundle_is_checked_before_the_first_request() {
    let (_keep, out) = small();
    let kept = snapshot(&out);
    let restore = || {
        std::fs::remove_dir_all(&out).unwrap();
        for (path, bytes) in &kept {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    };
    let check = |change: &dyn Fn(), code: i32, says: &[&str]| {
        change();
        for command in [&["replay", text(&out)][..], &["bundle", "--check", text(&out)]] {
            refused(&run(command), code, says);
        }
        restore();
    };
    let edit = |file: &str, from: &str, to: &str| {
        let path = out.join(file);
        let before = std::fs::read_to_string(&path).unwrap();
        let after = before.replacen(from, to, 1);
        assert!(before != after, "the edit of {file} changed nothing");
        std::fs::write(path, after).unwrap();
    };
    check(&|| edit("manifest.json", "\"schema_version\": 1", "\"schema_version\": 7"), 2, &["schema_version is 7", "upgrade"]);
    check(&|| std::fs::write(out.join("manifest.json"), "{").unwrap(), 2, &["manifest.json", "not JSON"]);
    check(&|| edit("manifest.json", "\"synthetic\"", "\"flags\": [], \"synthetic\""), 2, &["unknown field `flags`"]);
    check(&|| std::fs::remove_file(out.join("agents/day.jsonl")).unwrap(), 2, &["names agents/day.jsonl, which is not in"]);
    check(&|| std::fs::write(out.join("agents/more.jsonl"), "").unwrap(), 2, &["agents/more.jsonl", "not named"]);
    check(&|| edit("agents/day.jsonl", "nothing more to do", "nothing to do"), 1, &["agents/day.jsonl has", "states"]);
    check(&|| edit("agents/day.jsonl", "assistant", "assistent"), 1, &["is not the file of the manifest", "stated", "here"]);
    check(&|| edit("manifest.json", "agents/day.jsonl", "../day/cassette.jsonl"), 2, &["is no name of a file of a bundle"]);
    #[cfg(unix)]
    check(
        &|| {
            std::fs::remove_file(out.join("agents/day.jsonl")).unwrap();
            std::os::unix::fs::symlink("../../day/cassette.jsonl", out.join("agents/day.jsonl")).unwrap();
        },
        2,
        &["is a link"],
    );
    // Another dataset is told with both digests, and nothing is replayed.
    let other = out.with_file_name("market");
    let made = run(&["data", "generate", "--out", text(&other), "--stocks", "20", "--days", "30"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let ran = run(&["replay", text(&out), "--data", text(&other)]);
    refused(&ran, 1, &["was made on dataset", "expected", "here", "nothing was replayed"]);
    assert_eq!(run(&["replay", text(&out)]).code, 0);
}

#[test]
fn what_cannot_be_bundled_is_refused_and_nothing_is_written() {
    let (keep, out) = small();
    let day = keep.path().join("day");
    let before = snapshot(keep.path());
    refused(&bundle(&[&day], &out, &[]), 2, &["never written over", "hint: name a new folder"]);
    let new = keep.path().join("new");
    refused(&bundle(&[&day, &day], &new, &[]), 2, &["twice"]);
    refused(&bundle(&[&keep.path().join("nothing")], &new, &[]), 3, &["cannot be read"]);
    let spaced = keep.path().join("a b");
    std::fs::rename(&day, &spaced).unwrap();
    refused(&bundle(&[&spaced], &new, &[]), 2, &["is no name of an agent"]);
    std::fs::rename(&spaced, &day).unwrap();
    assert!(snapshot(keep.path()) == before, "something was written or changed");
    // A damaged recording is not handed on.
    let path = day.join("cassette.jsonl");
    let text_of = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text_of.replacen("trading day", "trading bay", 1)).unwrap();
    refused(&bundle(&[&day], &new, &[]), 1, &["changed after it was recorded"]);
    std::fs::rename(&path, day.join("cassette.jsonl.partial")).unwrap();
    refused(&bundle(&[&day], &new, &[]), 2, &["stopped before its end", "--resume"]);
    assert!(!new.exists());
    refused(&run(&["bundle", text(&day)]), 2, &["--out"]);
}

#[test]
fn a_replay_until_a_request_says_how_far_it_looked() {
    let folder = tempfile::tempdir().unwrap();
    let record = committee(folder.path());
    // Also inside of a meeting, whose members are asked together.
    for until in ["1", "2", "5", "9"] {
        let ran = run(&["replay", text(&record), "--until", until]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let says = format!("{until} of {until} requests identical; stopped there of 13, as --until says.");
        assert!(ran.out.contains(&says), "{}", ran.out);
    }
    let value: Value = serde_json::from_str(&run(&["replay", text(&record), "--until", "4", "--json"]).out).unwrap();
    assert_eq!((&value["identical"], &value["requests"], &value["until"]), (&4.into(), &13.into(), &4.into()));
    assert!(run(&["replay", text(&record), "--until", "13"]).out.contains("13 of 13 requests identical."));
    refused(&run(&["replay", text(&record), "--until", "0"]), 2, &["0"]);
    // What differs after it is not looked at, what differs before it is found.
    let path = record.join("cassette.jsonl");
    let kept = std::fs::read_to_string(&path).unwrap();
    let last = kept.rfind("\"request_sha256\":\"").unwrap() + 18;
    let mut changed = kept.clone();
    changed.replace_range(last..last + 4, "0000");
    std::fs::write(&path, changed).unwrap();
    assert_eq!(run(&["replay", text(&record), "--until", "12"]).code, 0);
    refused(&run(&["replay", text(&record), "--until", "13"]), 1, &["is not the recorded one"]);
}

#[test]
fn the_first_difference_is_explained_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let record = committee(folder.path());
    let path = record.join("cassette.jsonl");
    let kept = std::fs::read_to_string(&path).unwrap();
    // An answer that was changed: the trajectory notices first, the explanation goes on to the request.
    let answer = "\"output\":{\"message\":{\"role\":\"assistant\",\"content\":\"It follows and does not lead";
    let changed = kept.replacen(answer, &answer.replace("does not lead", "leads"), 1);
    assert!(changed != kept);
    std::fs::write(&path, &changed).unwrap();
    let plain = run(&["replay", text(&record)]);
    refused(&plain, 1, &["disagree", "--explain"]);
    let ran = run(&["replay", text(&record), "--explain"]);
    refused(&ran, 1, &["is not the recorded one"]);
    for says in ["first difference: messages[", "(role assistant)", "- It follows and does not lead", "+ It follows and leads"] {
        assert!(ran.out.contains(says), "`{says}` is not in {}", ran.out);
    }
    let machine = run(&["replay", text(&record), "--explain", "--json"]);
    let value: Value = serde_json::from_str(&machine.out).unwrap();
    assert_eq!(value["explanation"]["first_difference"]["role"], "assistant");
    let error: Value = serde_json::from_str(&machine.err).unwrap();
    assert_eq!(error["exit_code"], 1);
    // A recording that was edited where no request looks is told apart from a run that differs.
    let moved = folder.path().join("alone.jsonl");
    let other = kept.replacen("\"description\":\"", "\"description\":\"Changed. ", 1);
    assert_ne!(other, kept);
    std::fs::write(&moved, &other).unwrap();
    let line = with_key(text(&moved), text(&key()), (DAY, DAY)).iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let ran = run(&[&line[..], &["--explain"]].concat());
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("was changed after it was recorded") && ran.err.contains("hint: "), "{}", ran.err);
}

// engine E13.2
#[test]
fn exhausted_unused_and_unanswered_are_three_errors() {
    let (keep, _) = small();
    let kept = std::fs::read_to_string(keep.path().join("day/cassette.jsonl")).unwrap();
    let file = keep.path().join("c.jsonl");
    let ends = |lines: &[&str], says: &[&str]| {
        std::fs::write(&file, format!("{}\n", lines.join("\n"))).unwrap();
        refused(&run(&["replay", text(&file)]), 1, says);
    };
    let lines: Vec<&str> = kept.lines().filter(|line| !line.contains("\"type\":\"end\"")).collect();
    let last = lines.len() - 1;
    ends(&lines[..last], &["all are used; one more was made", "the run goes on where the recording ends"]);
    // One more answer than the run asks for.
    let step = lines.iter().filter(|line| line.contains("\"type\":\"llm_call\"")).count();
    let more = lines[last].replacen(&format!("\"step\":{}", step - 1), &format!("\"step\":{step}"), 1);
    let mut longer = lines.clone();
    longer.push(&more);
    // A file without its end line is found before that: seal it again.
    let body = format!("{}\n", longer.join("\n"));
    let end = format!(
        "{{\"schema_version\":2,\"type\":\"end\",\"calls\":{},\"lines_sha256\":\"{}\"}}",
        step + 1,
        sha256(body.as_bytes())
    );
    longer.push(&end);
    ends(&longer, &["recorded responses were not used", "ends before its recording does"]);
    let mut value: Value = serde_json::from_str(lines[last]).unwrap();
    value.as_object_mut().unwrap().remove("output");
    value["error"] = "timeout".into();
    let unanswered = value.to_string();
    let mut without = lines[..last].to_vec();
    without.push(&unanswered);
    ends(&without, &["recorded without an output: timeout", &format!("--until {}", step - 1)]);
}

#[test]
fn a_recording_is_scored_again_without_being_touched() {
    let (keep, out) = small();
    let day = keep.path().join("day");
    let before = snapshot(keep.path());
    for path in [&day, &out] {
        let ran = run(&["rescore", text(path)]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("the stored result is what the recording gives."), "{}", ran.out);
        assert!(ran.out.contains("Leak audit: "), "{}", ran.out);
        assert_eq!(run(&["rescore", text(path), "--trajectory", "--no-audit"]).code, 0);
    }
    assert!(snapshot(keep.path()) == before, "scoring wrote something");
    let value: Value = serde_json::from_str(&run(&["rescore", text(&day), "--json"]).out).unwrap();
    assert_eq!((&value["identical"], &value["runs"][0]["result"]["status"]), (&true.into(), &"completed".into()));
    assert_eq!(value["audit"]["clean"], true);
    // A result that says otherwise, and a recording with a key in it.
    let path = day.join("result.json");
    let mut result: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    result["metrics"]["total_return_pct"] = json!(12.5);
    std::fs::write(&path, result.to_string()).unwrap();
    let ran = run(&["rescore", text(&day), "--no-audit"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("metrics.total_return_pct") && ran.out.contains("12.5"), "{}", ran.out);
    let ran = run(&["rescore", text(&day), "--no-audit", "--trajectory"]);
    assert_eq!((ran.code, ran.out.contains("metrics")), (1, true), "{}", ran.out);
    std::fs::remove_file(&path).unwrap();
    let ran = run(&["rescore", text(&day), "--no-audit", "--json"]);
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &value["runs"][0]["stored"]), (0, &false.into()));
    assert!(!path.exists());
    std::fs::write(day.join("notes.txt"), "api key sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD\n").unwrap();
    assert_eq!(run(&["rescore", text(&day)]).code, 1, "the audit finds it");
    refused(&run(&["rescore", text(&day.join("cassette.jsonl"))]), 2, &["is a file"]);
    refused(&run(&["rescore", "no-such-run"]), 3, &["no-such-run"]);
}

#[test]
fn a_behaviour_that_is_not_known_here_is_refused_before_the_first_request() {
    let (keep, _) = small();
    let kept = std::fs::read_to_string(keep.path().join("day/cassette.jsonl")).unwrap();
    let file = keep.path().join("c.jsonl");
    let changed = kept.replacen("\"behaviour_flags\":[]", "\"behaviour_flags\":[400]", 1);
    assert!(changed != kept);
    std::fs::write(&file, changed).unwrap();
    refused(&run(&["replay", text(&file)]), 2, &["400"]);
}
