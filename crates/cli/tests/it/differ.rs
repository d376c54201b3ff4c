//! Why two recorded runs differ, cause by cause: runs of real servers, changed data, cards and tools, and everything that cannot be compared.

use crate::command::{Ran, command, ran, repo, run, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use traderharness_connect::testing::ScriptedModel;
use traderharness_ingest::rows::{Column, ColumnKind, RowLimits, RowWriter, Rows};

const WINDOW: [&str; 4] = ["--start", "2020-02-04", "--end", "2020-02-05"];

fn key() -> PathBuf {
    repo("crates/cli/demo/mask.key")
}

/// The first turns of a model; its third answer asks for so many results.
fn turns(results: u32) -> Value {
    json!([
        {"say": "First the account.", "calls": [{"tool": "get_portfolio"}]},
        {"say": "Then the market.", "calls": [{"tool": "get_market_overview"}]},
        {"say": "", "calls": [{"tool": "screen_behavioral_cycle", "args": {"max_results": results}}]},
    ])
}

/// Plays a model at temperature 0 that answers `turns`, and gives the run folder.
fn live(folder: &Path, name: &str, turns: Value, more: &[&str]) -> PathBuf {
    let record = folder.join(name);
    let model = ScriptedModel::start(turns).unwrap();
    let made = play(&model.url(), &record, more);
    assert_eq!(made.code, 0, "{name}: {}", made.err);
    record
}

fn play(url: &str, record: &Path, more: &[&str]) -> Ran {
    let who = ["run", "--model", "model-1", "--base-url", url, "--sampling", r#"{"temperature": 0}"#];
    let key = key();
    let masked = ["--mask-key", text(&key), "--record", text(record)];
    ran(command(&[&who[..], &WINDOW, &masked, more].concat()).output().unwrap())
}

/// Plays the bundled script.
fn scripted(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let (record, script) = (folder.join(name), repo("crates/cli/demo/script.yaml"));
    let made = run(&[&["run", "--script", text(&script), "--record", text(&record)], &WINDOW[..], more].concat());
    assert_eq!(made.code, 0, "{name}: {}", made.err);
    record
}

/// Exit code and JSON of a comparison.
fn diff(a: &Path, b: &Path, more: &[&str]) -> (i32, Value) {
    let told = run(&[&["diff", text(a), text(b), "--json"], more].concat());
    let value = serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("{}{}", told.out, told.err));
    (told.code, value)
}

/// Kind and field of every cause of the first pair.
fn causes(told: &Value) -> Vec<(String, String)> {
    let list = told["pairs"][0]["comparison"]["causes"].as_array().unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    list.iter().map(|cause| (word(&cause["kind"]), word(&cause["place"]["field"]))).collect()
}

fn same(a: &Path, b: &Path) {
    let (code, told) = diff(a, b, &[]);
    assert_eq!((code, &told["identical"], causes(&told)), (0, &json!(true), vec![]), "{told}");
}

/// Every file of a run by its path in it, but what was measured of the machine.
fn artifacts(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.file_name().unwrap() != "measured.json" {
                found.insert(entry.strip_prefix(folder).unwrap().to_path_buf(), std::fs::read(&entry).unwrap());
            }
        }
    }
    found
}

// complaint RP-6
#[test]
fn two_runs_from_one_cassette_write_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let first = live(folder.path(), "first", turns(3), &[]);
    let recorded = std::fs::read_to_string(first.join("cassette.jsonl")).unwrap();
    // The recording as a run leaves it that was killed before its last line; nobody answers at the address any more.
    let without_end = recorded.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    let again = |name: &str, begun: bool| {
        let record = folder.path().join(name);
        std::fs::create_dir(&record).unwrap();
        std::fs::write(traderharness_replay::partial_path(&record.join("cassette.jsonl")), &without_end).unwrap();
        if begun {
            // Killed before the first record was whole.
            std::fs::write(record.join("trajectory.jsonl"), "").unwrap();
        }
        let made = play("http://127.0.0.1:1", &record, &["--resume"]);
        assert_eq!(made.code, 0, "{}", made.err);
        record
    };
    let (second, third) = (again("second", false), again("third", true));
    let kept = artifacts(&first);
    let names: Vec<_> = kept.keys().map(|path| path.to_str().unwrap()).collect();
    for due in ["cassette.jsonl", "private/run.json", "result.json", "summary.json", "trajectory.jsonl"] {
        assert!(names.contains(&due), "{due} is not in {names:?}");
    }
    for other in [&second, &third] {
        let found = artifacts(other);
        assert_eq!(found.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>());
        for (path, bytes) in &kept {
            // Where the model was is no part of what it came to, but of how the run was begun.
            assert!(found[path] == *bytes || path.ends_with("private/run.json"), "{} differs", path.display());
        }
    }
    assert!(artifacts(&second) == artifacts(&third), "two runs from one cassette");
    same(&second, &third);
    same(&first, &second);
    // The same path twice is said to be that.
    let told = run(&["diff", text(&first), text(&first)]);
    assert!(told.code == 0 && told.out.contains("one and the same recording"), "{}", told.out);
}

// complaint RP-6
#[test]
fn another_answer_of_a_live_model_is_one_cause_and_what_follows_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (live(folder.path(), "a", turns(3), &[]), live(folder.path(), "b", turns(4), &[]));
    let (code, told) = diff(&a, &b, &[]);
    let one = &told["pairs"][0]["comparison"];
    assert_eq!((code, one["causes"].as_array().unwrap().len()), (1, 1), "{told}");
    let cause = &one["causes"][0];
    let place = json!({"scope": "main", "day": 1, "point": "pre_market", "request": 2, "field": "message.tool_calls[0].function.arguments"});
    assert_eq!((&cause["kind"], &cause["place"], &cause["times"]), (&json!("model"), &place, &json!(1)));
    assert!(cause["a"].as_str().unwrap().ends_with(":3}") && cause["b"].as_str().unwrap().ends_with(":4}"), "{cause}");
    assert!(cause["why"].as_str().unwrap().contains("temperature 0"), "{cause}");
    let scope = &one["scopes"][0];
    let requests = scope["requests"].as_array().unwrap();
    // All that was asked of the day after that answer follows from it; the next day begins with the same request again.
    assert!(one["consequences"].as_u64().unwrap() > 4 && scope["came_back"] == 1, "{scope}");
    let (asked, together) = (requests[0].as_u64().unwrap(), scope["together"].as_u64().unwrap());
    assert_eq!(together + scope["following"][0].as_u64().unwrap(), asked, "{scope}");
    assert_eq!(one["effect"]["parted_on"], Value::Null);
    let text = run(&["diff", text(&a), text(&b)]);
    assert!(text.out.contains("1 cause(s)\n\nmodel answer\n  main, day 1, pre_market, request 2, message."), "{}", text.out);
    // Both ways round the same is found.
    assert_eq!(causes(&diff(&b, &a, &[]).1), causes(&told));
}

/// The bundled market with the volume of one daily bar changed by one share.
fn one_bar_changed(folder: &Path) -> PathBuf {
    let (pack, out) = (repo("crates/ingest/packs/real-zvt"), folder.join("market"));
    let mut open = vec![(pack.clone(), out.clone())];
    while let Some((from, to)) = open.pop() {
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(&from).unwrap().map(Result::unwrap) {
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if from.is_dir() { open.push((from, to)) } else { assert!(std::fs::copy(from, to).unwrap() > 0) }
        }
    }
    let mut rows = Rows::open(pack.join("daily.parquet"), RowLimits::default()).unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next_row().unwrap() {
        all.push(row);
    }
    let kind = |value: &Value| match value {
        Value::String(_) => ColumnKind::Text,
        Value::Bool(_) => ColumnKind::Flag,
        _ => ColumnKind::Float,
    };
    let columns: Vec<Column> = all[0].as_object().unwrap().iter().map(|(name, value)| Column::new(name, kind(value))).collect();
    let held = |row: &Value| row.to_string();
    let before = all.iter().rposition(|row| held(row).contains("000338") && held(row).contains("2020-02-03")).unwrap();
    let volume = all[before]["volume"].as_f64().unwrap();
    all[before]["volume"] = (volume + 100.0).into();
    let mut writer = RowWriter::new(Vec::new(), &columns).unwrap();
    all.iter().for_each(|row| writer.push(row).unwrap());
    std::fs::write(out.join("daily.parquet"), writer.finish().unwrap()).unwrap();
    out
}

#[test]
fn one_changed_bar_is_found_in_the_first_result_that_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let market = one_bar_changed(folder.path());
    let pack = repo("crates/ingest/packs/real-zvt");
    let plain = ["--mask", "none"];
    let a = scripted(folder.path(), "a", &[&["--data", text(&pack)], &plain[..]].concat());
    let b = scripted(folder.path(), "b", &[&["--data", text(&market)], &plain[..]].concat());
    let (code, told) = diff(&a, &b, &[]);
    let found = causes(&told);
    assert_eq!(code, 1);
    assert!(found.iter().all(|(kind, _)| kind == "data"), "{found:?}");
    let all = told["pairs"][0]["comparison"]["causes"].as_array().unwrap();
    let result = all.iter().find(|cause| cause["place"]["tool"].is_string()).unwrap_or_else(|| panic!("{told}"));
    assert!(result["place"]["field"].as_str().unwrap().contains("volume"), "{result}");
    assert_eq!((&result["place"]["day"], &result["place"]["point"]), (&json!(1), &json!("pre_market")));
    assert!(found.iter().any(|(_, field)| field == "dataset.sha256"), "{found:?}");
}

/// A card in a file.
fn card(folder: &Path, name: &str, more: Value) -> PathBuf {
    let mut card = json!({"id": "held", "name": "Held", "persona": "You are careful and patient."});
    card.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = folder.join(format!("{name}.json"));
    std::fs::write(&path, card.to_string()).unwrap();
    path
}

#[test]
fn another_word_of_a_card_and_other_tools_are_causes_of_their_own_kind() {
    let folder = tempfile::tempdir().unwrap();
    let record = |name: &str, more: Value| {
        let (card, key) = (card(folder.path(), name, more), key());
        scripted(folder.path(), name, &["--agent", text(&card), "--mask-key", text(&key)])
    };
    let first = record("first", json!({}));
    // Another word in the prompt, and the agent acts as before: the word is the only cause, where it stands and where it is asked.
    let word = record("word", json!({"persona": "You are careful and hasty."}));
    let (code, told) = diff(&first, &word, &[]);
    let due = |fields: &[(&str, &str)]| -> Vec<(String, String)> {
        fields.iter().map(|(kind, field)| ((*kind).to_owned(), (*field).to_owned())).collect()
    };
    assert_eq!((code, causes(&told)), (1, due(&[("settings", "card.persona"), ("settings", "prompt")])), "{told}");
    let one = &told["pairs"][0]["comparison"];
    let prompt = &one["causes"][1];
    assert_eq!((&prompt["place"]["message"], &prompt["times"]), (&json!(0), &one["scopes"][0]["together"]));
    assert!(prompt["b"].as_str().unwrap().contains("hasty"), "{prompt}");
    assert_eq!((&one["consequences"], &one["effect"]["parted_on"]), (&json!(0), &Value::Null));
    // A tool that is not offered.
    let all = run(&["tools", "--json"]);
    let names: Vec<String> = serde_json::from_str::<Vec<Value>>(&all.out)
        .unwrap()
        .iter()
        .filter(|tool| tool["opt_in"] != true && tool["name"] != "get_news")
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    let fewer = record("fewer", json!({"allowed_tools": names}));
    let (code, told) = diff(&first, &fewer, &["--limit", "60"]);
    let kinds: Vec<String> = causes(&told).into_iter().map(|(kind, _)| kind).collect();
    assert!(code == 1 && kinds.contains(&"settings".to_owned()) && kinds.contains(&"tools_offered".to_owned()), "{told}");
    assert!(kinds.iter().all(|kind| kind == "settings" || kind == "tools_offered"), "{kinds:?}");
    // Listed causes end at the limit, and the rest is counted.
    let (_, told) = diff(&first, &fewer, &["--limit", "1"]);
    let one = &told["pairs"][0]["comparison"];
    assert_eq!((one["causes"].as_array().unwrap().len(), one["more_causes"].as_u64().unwrap() > 0), (1, true));
}

#[test]
fn runs_under_other_masks_are_told_apart_and_not_compared_field_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let key = key();
    let a = scripted(folder.path(), "a", &["--mask-key", text(&key)]);
    for (name, more) in [("drawn", &[][..]), ("bare", &["--mask", "none"][..])] {
        let b = scripted(folder.path(), name, more);
        let (code, told) = diff(&a, &b, &[]);
        let one = &told["pairs"][0]["comparison"];
        assert_eq!((code, &one["scopes"]), (1, &json!([])), "{name}");
        assert!(causes(&told).iter().all(|(kind, _)| kind == "settings"), "{name}: {told}");
        assert!(one["notes"].to_string().contains("the masks are not the same"), "{name}");
        // Money has no mask; a code has one, and no code of either run is put beside one of the other.
        assert_eq!((&one["effect"]["parted_on"], &one["effect"]["days"][0]["a"]["fills"]), (&Value::Null, &json!([])), "{name}");
        assert!(one["effect"]["a"]["return_pct"].is_number() && one["effect"]["a"] == one["effect"]["b"], "{name}");
    }
    let text = run(&["diff", text(&a), text(&folder.path().join("drawn"))]).out;
    let hex = std::fs::read_to_string(&key).unwrap();
    assert!(!text.contains("000338") && !text.contains("2020-02") && !text.contains(hex.trim()), "{text}");
}

#[test]
fn every_kind_of_recording_is_read_and_runs_are_paired_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let spec = "start: 2019-11-05\nend: 2019-11-06\nbaselines: false\nentrants:\n  - {name: abstains, script: nothing.yaml}\n  - {name: repeats, script: nothing.yaml}\n  - {name: holds, baseline: buy-and-hold}\n";
    std::fs::write(path("spec.yaml"), spec).unwrap();
    std::fs::write(path("nothing.yaml"), "schema: 1\ndays: []\n").unwrap();
    let (file, key) = (path("spec.yaml"), key());
    let ran = run(&["compare", text(&file), "--mask-key", text(&key), "--record", text(&path("compared"))]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let hint = format!("traderharness diff {0}/abstains {0}/repeats", text(&path("compared")));
    assert!(ran.out.contains(&hint), "two runs of one card are pointed to why they differ: {}", ran.out);
    let bundled = run(&["bundle", text(&path("compared")), "--out", text(&path("bundle"))]);
    assert_eq!(bundled.code, 0, "{}", bundled.err);
    let (code, told) = diff(&path("compared"), &path("bundle"), &[]);
    assert_eq!((code, told["pairs"].as_array().unwrap().len()), (0, 3), "{told}");
    same(&path("compared/holds/cassette.jsonl"), &path("compared/holds"));
    same(&path("compared/abstains"), &path("compared/repeats"));
    // A run that one side does not have is a difference.
    std::fs::remove_dir_all(path("compared/holds")).unwrap();
    let (code, told) = diff(&path("compared"), &path("bundle"), &[]);
    assert_eq!((code, &told["only_in_b"], &told["identical"]), (1, &json!(["holds"]), &json!(false)));
    // One against several has no pair by itself.
    let told = run(&["diff", text(&path("bundle")), text(&path("bundle/agents/holds.jsonl"))]);
    assert!(told.code == 2 && told.err.contains("name one run of each"), "{}", told.err);
}

/// A recording that cannot be compared: exit code, and what is said.
fn refused(a: &Path, b: &Path, code: i32, says: &str) {
    for (a, b) in [(a, b), (b, a)] {
        let told = run(&["diff", text(a), text(b)]);
        assert_eq!(told.code, code, "{}{}", told.out, told.err);
        assert!(told.err.contains(says) && !told.err.contains("panicked"), "`{says}` is not in {}", told.err);
    }
}

#[test]
fn what_cannot_be_trusted_is_refused_before_anything_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let key = key();
    let good = scripted(folder.path(), "good", &["--mask-key", text(&key)]);
    let cassette = std::fs::read_to_string(good.join("cassette.jsonl")).unwrap();
    let file = |name: &str, body: &str| {
        std::fs::write(path(name), body).unwrap();
        path(name)
    };
    refused(&good, &path("nowhere"), 3, "cannot be read");
    std::fs::create_dir(path("empty")).unwrap();
    refused(&good, &path("empty"), 2, "there is no run in");
    refused(&good, &file("nothing.jsonl", ""), 2, "nothing.jsonl");
    refused(&good, &file("prose.jsonl", "a letter\n"), 2, "prose.jsonl");
    refused(&good, &file("cut.jsonl", &cassette[..cassette.len() / 2]), 2, "cut.jsonl");
    refused(&good, &file("other.jsonl", &cassette.replacen("First the account", "First the amount", 1)), 2, "other.jsonl");
    refused(&good, &file("newer.jsonl", &cassette.replacen("\"schema_version\":2", "\"schema_version\":9", 1)), 2, "9");
    // A trajectory that is of another run.
    let mixed = path("mixed");
    std::fs::create_dir(&mixed).unwrap();
    std::fs::copy(good.join("cassette.jsonl"), mixed.join("cassette.jsonl")).unwrap();
    let told = std::fs::read_to_string(good.join("trajectory.jsonl")).unwrap();
    std::fs::write(mixed.join("trajectory.jsonl"), told.replacen("First the account", "First the amount", 1)).unwrap();
    refused(&good, &mixed, 2, "is not of the cassette beside it");
}

#[test]
fn a_run_that_a_limit_ended_differs_because_of_its_surroundings() {
    let folder = tempfile::tempdir().unwrap();
    let key = key();
    let whole = scripted(folder.path(), "whole", &["--mask-key", text(&key)]);
    let (stopped, script) = (folder.path().join("stopped"), repo("crates/cli/demo/script.yaml"));
    let line = ["run", "--script", text(&script), "--mask-key", text(&key), "--record", text(&stopped), "--max-requests", "5"];
    assert_eq!(run(&[&line[..], &WINDOW].concat()).code, 4);
    let (code, told) = diff(&whole, &stopped, &[]);
    assert_eq!((code, causes(&told)), (1, vec![("environment".to_owned(), "status".to_owned())]), "{told}");
    let one = &told["pairs"][0]["comparison"];
    assert!(one["notes"].to_string().contains("did not come to its end; its 5 request(s)"), "{}", one["notes"]);
    assert_eq!((&one["scopes"][0]["together"], &one["causes"][0]["place"]["request"]), (&json!(5), &json!(5)));
    assert_eq!(one["effect"]["parted_on"], 1);
}

#[cfg(unix)]
#[test]
fn what_a_killed_bundle_left_is_removed_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let key = key();
    let good = scripted(folder.path(), "good", &["--mask-key", text(&key)]);
    let out = folder.path().join("out");
    // Many files, each of which is waited for, so that the process is killed while it writes.
    let many = good.join("private").join("many");
    std::fs::create_dir(&many).unwrap();
    (0..3_000).for_each(|n| std::fs::write(many.join(n.to_string()), "x").unwrap());
    let left = || {
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".out.")).collect::<Vec<_>>()
    };
    let quiet = std::process::Stdio::null;
    let line = ["bundle", text(&good), "--private", "--out", text(&out)];
    let mut child = command(&line).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    while left().is_empty() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let leftovers = left();
    assert!(leftovers.len() == 1 && !out.exists(), "{leftovers:?}");
    std::fs::remove_dir_all(&many).unwrap();
    let made = run(&line);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.err.contains(&leftovers[0]) && made.err.contains("is removed"), "{}", made.err);
    assert_eq!((left(), out.is_dir()), (vec![], true));
}
