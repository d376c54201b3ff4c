//! The maps of the Python implementation through the command: the recorded ones come out, a run behind them replays, and a recording in
//! that implementation's shape is held against a run that is set up with its seed.

use super::under_another_head;
use crate::command::{lines, repo, run, shared, text};
use crate::recordings_python::as_python;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use traderharness_replay::Cassette;

const DAY: [&str; 4] = ["--start", "2020-02-04", "--end", "2020-02-04"];

// spec/peer.md 0.4
#[test]
fn the_maps_of_the_python_implementation_come_out_of_a_run() {
    let (Some(data), Some(maps)) = (shared("data/peer/dataset"), shared("data/peer/vectors/entity_maps.json")) else { return };
    let maps: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&std::fs::read_to_string(maps).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (style, own) in [("opaque", "reference-opaque"), ("permutation", "reference-permutation")] {
        let map = &maps[&format!("{style}_seed42")];
        assert_eq!(map.len(), 120);
        // A script names real codes; what was sent is what the run shows of them.
        let asked: Vec<Value> = map
            .keys()
            .map(|code| json!({ "tool": "get_kline", "args": { "stock_code": format!("${code}"), "days": 2 } }))
            .collect();
        let turns: Vec<Value> = asked.chunks(30).map(|calls| json!({ "calls": calls })).collect();
        let script = folder.path().join(format!("{style}.json"));
        std::fs::write(&script, json!({ "schema": 1, "days": [{ "pre_market": turns }] }).to_string()).unwrap();
        let into = folder.path().join(style);
        let ran = run(&[
            "run",
            "--script",
            text(&script),
            "--data",
            text(&data),
            "--start",
            "2024-06-28",
            "--end",
            "2024-06-28",
            "--mask-style",
            own,
            "--mask-seed",
            "42",
            "--record",
            text(&into),
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains("finds it by trying seeds"), "{}", ran.err);
        let trajectory = lines(&into.join("trajectory.jsonl"));
        let sent: Vec<String> = trajectory
            .iter()
            .filter(|record| record["type"] == "tool_call" && record["tool"] == "get_kline")
            .map(|record| {
                let args: Value = serde_json::from_str(record["arguments"].as_str().unwrap()).unwrap();
                args["stock_code"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(sent, map.values().cloned().collect::<Vec<_>>(), "{style}");
        let meta = &lines(&into.join("cassette.jsonl"))[0];
        let manifest = &meta["extra"]["manifest"];
        assert_eq!((&meta["mask"]["entities"], &manifest["mask_seed"]), (&style.into(), &42.into()));
        assert_eq!(manifest["mask_style"], own.replace('-', "_"));
        let replayed = run(&["replay", text(&into)]);
        assert_eq!(replayed.code, 0, "{}", replayed.err);
        assert!(replayed.out.contains("requests identical."), "{}", replayed.out);
    }
}

/// A day of the bundled pack under a version, hidden by a map of the Python implementation and by no key.
fn recorded(version: &str, style: &str, seed: &str, into: &Path) {
    let (script, card) = (repo("crates/cli/recordings/v2.yaml"), repo("crates/cli/recordings/card.yaml"));
    let key = into.with_extension("key");
    std::fs::write(&key, "0".repeat(64)).unwrap();
    let line = ["run", "--script", text(&script), "--card", text(&card), "--contract", version, "--mask-key", text(&key)];
    let more = ["--mask-style", style, "--mask-seed", seed, "--record", text(into)];
    let ran = run(&[&line[..], &DAY, &more].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
}

// engine E13.3: a recording in the other shape, masked, is held against a run by its seed
#[test]
fn a_masked_recording_of_the_python_implementation_is_held_against_a_run_by_its_seed() {
    let folder = tempfile::tempdir().unwrap();
    for (version, style, shape) in [("v2", "reference-permutation", "permutation"), ("v4", "reference-opaque", "opaque")] {
        let into = folder.path().join(version);
        recorded(version, style, "-7", &into);
        let ours = Cassette::load(into.join("cassette.jsonl")).unwrap();
        let (old, card) = (folder.path().join(format!("{version}.jsonl")), folder.path().join("card.json"));
        std::fs::write(&card, ours.meta().unwrap().extra["manifest"]["card"].to_string()).unwrap();
        let meta = json!({ "type": "meta", "schema_version": 1, "prompt_contract_version": version, "entity_mask_style": shape });
        std::fs::write(&old, format!("{meta}\n{}", as_python(&ours, "main", None))).unwrap();
        let line = ["replay", text(&old), "--card", text(&card), "--mask", "all", "--mask-seed"];
        let ran = run(&[&line[..], &["-7"], &DAY].concat());
        assert_eq!(ran.code, 0, "{version}: {}{}", ran.out, ran.err);
        let count = ours.calls().len();
        assert!(ran.out.contains(&format!("{count} of {count} requests identical.")), "{}", ran.out);
        // The map of another seed shows other codes; of a handful of codes, not that of every other seed.
        let others = ["1", "2", "3", "4"].map(|seed| run(&[&line[..], &[seed], &DAY].concat()).code);
        assert!(others.contains(&1) && others.iter().all(|code| *code < 2), "{version}: {others:?}");
    }
}

#[test]
fn a_seed_goes_with_a_map_of_the_python_implementation_and_with_nothing_else() {
    let refused = |args: &[&str], says: &str| {
        let ran = run(&[&["run", "--baseline", "random"][..], &DAY, args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(says), "`{says}` is not in {}", ran.err);
    };
    refused(&["--mask-style", "reference-opaque"], "--mask-seed");
    refused(&["--mask-style", "reference-permutation"], "--mask-seed");
    refused(&["--mask-style", "opaque", "--mask-seed", "1"], "--mask-key");
    refused(&["--mask-seed", "1"], "--mask-style");
    // What is not hidden has no map, and nobody is warned of one.
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("open");
    let more = ["--mask", "dates", "--mask-style", "reference-opaque", "--mask-seed", "1", "--record", text(&into)];
    let ran = run(&[&["run", "--baseline", "random"][..], &DAY, &more].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!ran.err.contains("seeds"), "{}", ran.err);
    let meta = &lines(&into.join("cassette.jsonl"))[0];
    assert!(meta["extra"]["manifest"].get("mask_seed").is_none() && meta["extra"]["manifest"].get("mask_style").is_none());
}

#[test]
fn a_recording_without_its_seed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("run");
    recorded("v2", "reference-permutation", "7", &into);
    let cassette = into.join("cassette.jsonl");
    let kept = Cassette::load(&cassette).unwrap();
    let mut meta = kept.meta().unwrap().clone();
    meta.extra["manifest"].as_object_mut().unwrap().remove("mask_seed");
    let file = folder.path().join("c.jsonl");
    under_another_head(&kept, meta, &file);
    let key = into.with_extension("key");
    let ran = run(&[&["replay", text(&file), "--mask-key", text(&key)][..], &DAY].concat());
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("holds no seed"), "{}", ran.err);
}
