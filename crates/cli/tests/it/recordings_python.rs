//! Recordings of the Python implementation: read, told, rewritten, and held against a run that is set up for them.

use crate::command::{Ran, run, text};
use crate::recordings::{refused, small};
use serde_json::{Value, json};

/// A recording as the Python implementation writes one.
fn python(calls: usize, more: &str) -> String {
    let line = |step: usize| {
        format!(
            "{{\"schema_version\": 1, \"step\": {step}, \"type\": \"llm_call\", \"request_sha256\": \"{:064x}\", \"output\": {{\"role\": \"assistant\", \"content\": \"好 {step}\"{more}}}}}\n",
            step + 1
        )
    };
    let meta =
        "{\"type\": \"meta\", \"schema_version\": 1, \"prompt_contract_version\": \"v2\", \"entity_mask_style\": \"opaque\"}\n";
    meta.to_owned() + &(0..calls).map(line).collect::<String>()
}

#[test]
fn an_old_recording_is_rewritten_or_nothing_is() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.jsonl"), folder.path().join("new.jsonl"));
    let migrate = |content: &str| {
        std::fs::write(&old, content).unwrap();
        run(&["migrate", text(&old), "--out", text(&new)])
    };
    let nothing = |ran: &Ran, code: i32, says: &[&str]| {
        refused(ran, code, says);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the old recording is there");
    };
    nothing(&migrate(&python(2, ", \"p\": NaN")), 2, &["line 2", "NaN", "nothing was written"]);
    nothing(&migrate(&python(2, ", \"p\": 123456789012345678901")), 2, &["without loss"]);
    nothing(&migrate(&python(2, "").replace("\"schema_version\": 1", "\"schema_version\": 3")), 2, &["version 3", "upgrade"]);
    nothing(&migrate(&python(2, "")[..150]), 2, &["line 2"]);
    nothing(&migrate(""), 2, &["empty"]);
    let (keep, _) = small();
    let same = migrate(&std::fs::read_to_string(keep.path().join("day/cassette.jsonl")).unwrap());
    assert_eq!((same.code, same.out.contains("nothing to do")), (0, true), "{}", same.err);
    assert!(!new.exists());
    let ran = migrate(&python(3, ", \"p\": 1e-05"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("3 call(s) of schema 1 rewritten in schema 2"), "{}", ran.out);
    let written = std::fs::read(&new).unwrap();
    refused(&run(&["migrate", text(&old), "--out", text(&new)]), 2, &["never written over"]);
    assert_eq!(std::fs::read(&new).unwrap(), written);
    assert!(run(&["migrate", text(&new), "--out", text(&folder.path().join("x"))]).out.contains("nothing to do"));
    assert_eq!(run(&["bundle", "--check", text(&new)]).code, 0);
    refused(&run(&["migrate", "no-such-file", "--out", text(&new)]), 3, &["no-such-file"]);
}

// engine E13.3
#[test]
fn recordings_of_the_python_implementation_are_told_and_not_passed_off_as_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.jsonl");
    std::fs::write(&file, python(3, "").replacen("\"content\": \"好 1\"", "\"content\": NaN", 1)).unwrap();
    let told = run(&["replay", text(&file)]);
    refused(&told, 2, &["nothing was compared", "docs/recordings.md"]);
    for says in [
        "contract v2, entity mask opaque",
        "main: 3 request(s), 2 with a readable answer; request 1 has none",
        "NaN",
        "messages and tools only",
        "Missing for a replay",
    ] {
        assert!(told.out.contains(says), "`{says}` is not in {}", told.out);
    }
    let checked = run(&["bundle", "--check", "--json", text(&file)]);
    let value: Value = serde_json::from_str(&checked.out).unwrap();
    assert_eq!(value["recordings"][0]["digests_cover"], json!(["messages", "tools"]));
    // A bundle of it: scopes by file name, no meta lines.
    let old = folder.path().join("bundle");
    std::fs::create_dir_all(old.join("agents")).unwrap();
    let manifest = json!({"schema_version": 2, "start_date": "2024-03-14", "end_date": "2024-03-14", "initial_cash": 1e6, "mask_entities": true, "entity_mask_seed": 0,
        "prompt_contract_version": "v4", "agents": [{"id": "council", "model": "m", "card_snapshot": {"id": "council"}, "cassette": "agents/council__executor.jsonl"}]});
    std::fs::write(old.join("manifest.json"), manifest.to_string()).unwrap();
    let calls: String = python(2, "").lines().skip(1).map(|line| format!("{line}\n")).collect();
    for scope in ["council__executor", "council__advisor_bull"] {
        std::fs::write(old.join(format!("agents/{scope}.jsonl")), &calls).unwrap();
    }
    let told = run(&["replay", text(&old)]);
    refused(&told, 2, &["nothing was compared"]);
    assert!(
        told.out.contains("council__advisor_bull: 2 request(s)") && told.out.contains("start_date: \"2024-03-14\""),
        "{}",
        told.out
    );
    let new = folder.path().join("new.jsonl");
    let ran = run(&["migrate", text(&old), "--out", text(&new)]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(run(&["bundle", "--check", text(&new)]).out.contains("council__executor: 2 request(s), 2 with a readable answer"));
    std::fs::remove_file(old.join("agents/council__executor.jsonl")).unwrap();
    refused(&run(&["replay", text(&old)]), 2, &["which is not in"]);
    std::fs::write(old.join("manifest.json"), manifest.to_string().replace("\"schema_version\":2", "\"schema_version\":5"))
        .unwrap();
    refused(&run(&["replay", text(&old)]), 2, &["schema_version is 5"]);
}

/// A recording of ours in the shape of the Python implementation: what it would hold if it had sent the same messages and tools.
pub(crate) fn as_python(cassette: &traderharness_replay::Cassette, scope: &str, meta: Option<&str>) -> String {
    let meta = meta
        .map(|version| format!("{{\"type\": \"meta\", \"schema_version\": 1, \"prompt_contract_version\": \"{version}\"}}\n"));
    let mut out = meta.unwrap_or_default();
    for (step, call) in cassette.calls().iter().filter(|call| call.scope == scope).enumerate() {
        let request = cassette.request(call.step).unwrap().unwrap();
        let sha = traderharness_replay::reference::fingerprint(&request);
        let message = &call.output.as_ref().unwrap()["message"];
        out.push_str(&format!(
            "{}\n",
            json!({"schema_version": 1, "step": step, "type": "llm_call", "request_sha256": sha, "output": message})
        ));
    }
    out
}

// engine E13.3
#[test]
fn a_recording_of_the_python_implementation_is_held_against_a_run_that_is_set_up_for_it() {
    let (keep, _) = small();
    let ours = traderharness_replay::Cassette::load(keep.path().join("day/cassette.jsonl")).unwrap();
    let (old, card) = (keep.path().join("old.jsonl"), keep.path().join("card.json"));
    let manifest = &ours.meta().unwrap().extra["manifest"];
    std::fs::write(&card, manifest["card"].to_string()).unwrap();
    std::fs::write(&old, as_python(&ours, "main", Some("v5"))).unwrap();
    let days = ["--start", "2019-11-05", "--end", "2019-11-05"];
    let line = ["replay", text(&old), "--card", text(&card), "--mask", "none"];
    let ran = run(&[&line[..], &days].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("8 of 8 requests identical.") && ran.out.contains("messages and tools only"), "{}", ran.out);
    refused(&run(&line), 2, &["--start and --end"]);
    refused(&run(&[&line[..4], &days].concat()), 2, &["--mask-seed"]);
    // Rewritten it is still the same recording.
    let new = keep.path().join("new.jsonl");
    assert_eq!(run(&["migrate", text(&old), "--out", text(&new)]).code, 0);
    let line = ["replay", text(&new), "--card", text(&card), "--mask", "none"];
    let ran = run(&[&line[..], &days].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    // A run that is set up otherwise differs at its first request, and no request of the recording can be shown.
    let ran = run(&[
        "replay",
        text(&old),
        "--card",
        text(&card),
        "--mask",
        "all",
        "--mask-seed",
        "7",
        days[0],
        days[1],
        days[2],
        days[3],
        "--explain",
    ]);
    refused(&ran, 1, &["request 0", "is not the recorded one", "only its digest is recorded"]);
    let ran = run(&["replay", text(&keep.path().join("day")), "--card", text(&card)]);
    refused(&ran, 2, &["this one holds its card"]);
    // The same as a bundle, whose manifest tells days and masks.
    let bundle = keep.path().join("python");
    std::fs::create_dir_all(bundle.join("agents")).unwrap();
    std::fs::write(bundle.join("agents/holder.jsonl"), as_python(&ours, "main", None)).unwrap();
    let told = json!({"schema_version": 2, "start_date": "2019-11-05", "end_date": "2019-11-05", "prompt_contract_version": "v5",
        "agents": [{"id": "holder", "model": "m", "cassette": "agents/holder.jsonl"}]});
    std::fs::write(bundle.join("manifest.json"), told.to_string()).unwrap();
    let ran = run(&["replay", text(&bundle), "--card", text(&card), "--mask", "none", "--json"]);
    let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
    assert_eq!((ran.code, &value["identical"], &value["requests"]), (0, &8.into(), &8.into()), "{}", ran.err);
    refused(&run(&["replay", text(&bundle), "--agent", "other", "--card", text(&card)]), 2, &["holder"]);
}

// engine E13.3
#[test]
fn a_bundle_of_the_python_implementation_is_played_with_the_card_it_holds_whole() {
    let keep = tempfile::tempdir().unwrap();
    let (record, file) = (keep.path().join("day"), keep.path().join("card.json"));
    let converted = traderharness_harness::Card::of_python(&json!({"id": "holder", "require_phase_completion": true})).unwrap();
    let card = serde_json::to_value(&converted.card).unwrap();
    std::fs::write(&file, card.to_string()).unwrap();
    let line = [
        "run",
        "--baseline",
        "buy-and-hold",
        "--card",
        text(&file),
        "--mask",
        "none",
        "--start",
        "2019-11-05",
        "--end",
        "2019-11-05",
    ];
    let ran = run(&[&line[..], &["--record", text(&record)]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ours = traderharness_replay::Cassette::load(record.join("cassette.jsonl")).unwrap();
    let played = &ours.meta().unwrap().extra["manifest"]["card"];
    assert_eq!(played["fees"], "reference");
    // What a saved card has: every field that was told of, under its name.
    let mut snapshot = json!({});
    for told in converted.told.iter().filter(|told| told.pointer != "/fees") {
        let name = told.pointer.trim_start_matches('/');
        snapshot[name] = played[name].clone();
    }
    let bundle = keep.path().join("python");
    std::fs::create_dir_all(bundle.join("agents")).unwrap();
    std::fs::write(bundle.join("agents/holder.jsonl"), as_python(&ours, "main", None)).unwrap();
    let replay = |snapshot: &Value, cash: f64, more: &[&str]| {
        let told = json!({"schema_version": 2, "start_date": "2019-11-05", "end_date": "2019-11-05", "prompt_contract_version": "v5",
            "mask_entities": false, "mask_dates": false, "initial_cash": cash,
            "agents": [{"id": "holder", "model": "m", "cassette": "agents/holder.jsonl", "card_snapshot": snapshot}]});
        std::fs::write(bundle.join("manifest.json"), told.to_string()).unwrap();
        run(&[&["replay", text(&bundle)], more].concat())
    };
    let ran = replay(&snapshot, 1e6, &[]);
    assert_eq!((ran.code, ran.out.contains(" requests identical.")), (0, true), "{}{}", ran.out, ran.err);
    // A mask that is asked for wins over the manifest, and needs its seed.
    refused(&replay(&snapshot, 1e6, &["--mask", "all"]), 2, &["--mask-seed"]);
    let incomplete = |snapshot: &Value, cash: f64, says: &str| {
        let ran = replay(snapshot, cash, &[]);
        refused(&ran, 2, &["nothing was compared"]);
        assert!(ran.out.contains("the card of holder") && ran.out.contains(says), "`{says}` is not in {}", ran.out);
    };
    incomplete(&snapshot, 5e5, "the manifest says 500000");
    for (name, value) in [("persona", None), ("research_interval_days", Some(json!(5)))] {
        let mut other = snapshot.clone();
        match value {
            Some(value) => other[name] = value,
            None => drop(other.as_object_mut().unwrap().remove(name)),
        }
        incomplete(&other, 1e6, &format!("/{name}"));
    }
    incomplete(&json!({"id": 7}), 1e6, "a number, not a text");
    incomplete(&Value::Null, 1e6, "no `card_snapshot`");
    // With a card of the person the snapshot is not asked.
    assert_eq!(replay(&Value::Null, 5e5, &["--card", text(&file)]).code, 0);
    for option in [&["--mask", "none"][..], &["--mask-seed", "3"]] {
        refused(&run(&[&["replay", text(&record)], option].concat()), 2, &[option[0], "this one holds its masks"]);
    }
}
