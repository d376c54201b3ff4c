//! Bundles: made, read back, and everything that can be wrong with one.

use crate::cassette::{day, folder, meta};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use traderharness_replay::bundle::{self, Bundle, BundleError, Draft, DraftAgent};
use traderharness_replay::reference::ForeignBundle;
use traderharness_replay::{Cassette, Recorder, RecordingError, Replay};

fn agent(name: &str) -> DraftAgent {
    DraftAgent {
        name: name.to_owned(),
        window: None,
        window_id: "w".into(),
        cash: 1_000_000.0,
        seed_id: "s".into(),
        style: "openai".into(),
        card: json!({"id": "card"}),
    }
}

/// A recording whose scopes ask in turn.
fn recording(path: &Path, scopes: &[&str]) -> Cassette {
    let mut recorder = Recorder::create(path, meta()).unwrap();
    for (step, (request, response)) in day(5).iter().enumerate() {
        for scope in scopes.iter().take(1 + step % scopes.len()) {
            recorder.record(scope, request, response).unwrap();
        }
    }
    recorder.finish().unwrap();
    Cassette::load(path).unwrap()
}

fn made(folder: &Path) -> PathBuf {
    let out = folder.join("bundle");
    let mut draft = Draft::new("0.1.0");
    draft.agent(agent("alone"), &recording(&folder.join("a.jsonl"), &["main"])).unwrap();
    let scopes = ["c__executor", "c__advisor_bull", "c__advisor_bear"];
    draft.agent(agent("group"), &recording(&folder.join("b.jsonl"), &scopes)).unwrap();
    draft.file("runs/alone/result.json".into(), b"{}".to_vec()).unwrap();
    draft.private("runs/alone/private/run.json".into(), b"{\"key\":1}".to_vec()).unwrap();
    draft.left_out("stopped", "it stopped before its end");
    draft.write(&out).unwrap();
    out
}

#[test]
fn the_parts_together_are_the_recording_to_the_byte() {
    let (_keep, path) = folder();
    for scopes in [&["main"][..], &["c__executor", "c__advisor_bull", "c__advisor_bear"]] {
        let cassette = recording(&path, scopes);
        let parts = bundle::split(&cassette).unwrap();
        assert_eq!(parts.parts.len(), scopes.len());
        assert_eq!(parts.joined, std::fs::read(&path).unwrap());
        for part in &parts.parts {
            let alone = Cassette::from_bytes("part", &part.bytes).unwrap();
            alone.verify().unwrap();
            assert_eq!(alone.scopes(), [part.scope.as_str()]);
        }
    }
    // A run that asked nothing is a recording too.
    let (_keep, path) = folder();
    Recorder::create(&path, meta()).unwrap().finish().unwrap();
    let parts = bundle::split(&Cassette::load(&path).unwrap()).unwrap();
    assert_eq!((parts.parts.len(), parts.joined), (1, std::fs::read(&path).unwrap()));
}

#[test]
fn a_bundle_holds_every_scope_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let out = made(folder.path());
    let bundle = Bundle::open(&out).unwrap();
    let manifest = bundle.manifest();
    let scopes: Vec<(&str, &str, &str)> = manifest
        .agents
        .iter()
        .flat_map(|agent| &agent.scopes)
        .map(|scope| (scope.scope.as_str(), scope.recorded_as.as_str(), scope.file.as_str()))
        .collect();
    assert_eq!(
        scopes,
        [
            ("alone", "main", "agents/alone.jsonl"),
            ("group__executor", "c__executor", "agents/group__executor.jsonl"),
            ("group__advisor_bull", "c__advisor_bull", "agents/group__advisor_bull.jsonl"),
            ("group__advisor_bear", "c__advisor_bear", "agents/group__advisor_bear.jsonl"),
        ]
    );
    assert_eq!(manifest.left_out[0].agent, "stopped");
    for (agent, file) in [("alone", "a.jsonl"), ("group", "b.jsonl")] {
        assert_eq!(bundle.cassette_bytes(agent).unwrap(), std::fs::read(folder.path().join(file)).unwrap());
    }
    let mut replay = Replay::new(bundle.cassette("group").unwrap().clone());
    for (step, (request, response)) in day(5).iter().enumerate() {
        for scope in ["c__executor", "c__advisor_bull", "c__advisor_bear"].iter().take(1 + step % 3) {
            assert_eq!(&replay.next(scope, request).unwrap(), response);
        }
    }
    replay.finish().unwrap();
    // The manifest names nothing private, and nothing is left beside the bundle.
    let text = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(!text.contains("private") && !text.contains(folder.path().to_str().unwrap()));
    let mut names: Vec<String> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["a.jsonl", "b.jsonl", "bundle"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &str| std::fs::metadata(out.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("runs/alone/private"), mode("runs/alone/private/run.json")), (0o700, 0o600));
    }
}

/// Changes a bundle; expects what opening it says.
fn check(change: impl Fn(&Path), expected: impl Fn(&BundleError) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let out = made(folder.path());
    change(&out);
    let error = Bundle::open(&out).expect_err("something is wrong with it");
    assert!(expected(&error), "{error:?}");
}

fn edit(out: &Path, change: impl Fn(&mut Value)) {
    let path = out.join("manifest.json");
    let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let before = value.clone();
    change(&mut value);
    assert_ne!(before, value, "the edit changed nothing");
    std::fs::write(&path, value.to_string()).unwrap();
}

#[test]
fn everything_is_checked_before_a_bundle_is_used() {
    let set =
        |pointer: &'static str, to: Value| move |out: &Path| edit(out, |value| *value.pointer_mut(pointer).unwrap() = to.clone());
    check(set("/schema_version", json!(99)), |e| matches!(e, BundleError::Newer { found: 99, known: 1, .. }));
    check(set("/format", json!("other")), |e| matches!(e, BundleError::Manifest { .. }));
    check(|out| edit(out, |v| v["new_field"] = json!(1)), |e| e.to_string().contains("unknown field `new_field`"));
    check(|out| std::fs::write(out.join("manifest.json"), "{").unwrap(), |e| matches!(e, BundleError::Manifest { .. }));
    check(|out| std::fs::remove_file(out.join("manifest.json")).unwrap(), |e| matches!(e, BundleError::NoManifest { .. }));
    check(
        |out| std::fs::remove_file(out.join("agents/group__advisor_bull.jsonl")).unwrap(),
        |e| matches!(e, BundleError::Missing { file, .. } if file == "agents/group__advisor_bull.jsonl"),
    );
    check(|out| std::fs::write(out.join("agents/more.jsonl"), "").unwrap(), |e| matches!(e, BundleError::Unnamed { .. }));
    check(|out| std::fs::write(out.join("runs/alone/x"), "").unwrap(), |e| matches!(e, BundleError::Unnamed { .. }));
    // A changed character, a cut line, a file that grew.
    let tamper = |file: &'static str, change: fn(String) -> String| {
        move |out: &Path| {
            let path = out.join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, change(text)).unwrap();
        }
    };
    let other_word = |text: String| text.replacen("step 1", "step 7", 1);
    check(
        tamper("agents/alone.jsonl", other_word),
        |e| matches!(e, BundleError::Digest { file, .. } if file == "agents/alone.jsonl"),
    );
    check(tamper("runs/alone/result.json", |_| "[]".into()), |e| matches!(e, BundleError::Digest { .. }));
    check(tamper("agents/alone.jsonl", |text| text[..text.len() / 2].into()), |e| matches!(e, BundleError::Size { .. }));
    check(tamper("runs/alone/result.json", |text| text + " "), |e| matches!(e, BundleError::Size { expected: 2, actual: 3, .. }));
    // A manifest that was changed to fit still cannot say what the recording does not.
    check(set("/agents/0/scopes/0/calls", json!(1)), |e| matches!(e, BundleError::Disagrees { .. }));
    check(set("/agents/0/model", json!("another")), |e| matches!(e, BundleError::Disagrees { what: "the model", .. }));
    check(set("/agents/0/contract_version", json!("v9")), |e| matches!(e, BundleError::Disagrees { .. }));
    check(set("/dataset/sha256", json!("0".repeat(64))), |e| matches!(e, BundleError::Disagrees { what: "the dataset", .. }));
    check(set("/agents/1/order", json!([[0, 99]])), |e| matches!(e, BundleError::Manifest { .. }));
    check(set("/agents/1/order/0", json!([0, usize::MAX])), |e| matches!(e, BundleError::Manifest { .. }));
    check(set("/agents/1/recording_sha256", json!("0".repeat(64))), |e| matches!(e, BundleError::Digest { .. }));
    // Names that lead elsewhere or stand twice.
    for name in ["../up", "/etc/passwd", "a/b", "..", "C:x", "a\\b"] {
        check(set("/agents/0/name", json!(name)), |e| matches!(e, BundleError::Name { .. }));
        check(set("/agents/0/scopes/0/scope", json!(name)), |e| matches!(e, BundleError::Name { .. }));
        check(set("/agents/0/scopes/0/file", json!(name)), |e| matches!(e, BundleError::Name { .. }));
        check(set("/files/0/file", json!(name)), |e| matches!(e, BundleError::Name { .. }));
    }
    check(set("/files/0/file", json!("runs/alone/private/run.json")), |e| matches!(e, BundleError::Name { .. }));
    check(set("/agents/1/scopes/2/scope", json!("group__advisor_bull")), |e| {
        matches!(e, BundleError::Name { .. } | BundleError::Twice { .. })
    });
    let twice = |out: &Path| edit(out, |v| v["files"] = json!([v["files"][0], v["files"][0]]));
    check(twice, |e| matches!(e, BundleError::Twice { .. }));
    check(
        |out| edit(out, |v| v["agents"] = json!([v["agents"][0], v["agents"][1], v["agents"][0]])),
        |e| matches!(e, BundleError::Twice { name } if name == "alone"),
    );
}

#[cfg(unix)]
#[test]
fn links_devices_and_endless_files_are_refused() {
    use std::os::unix::fs::symlink;
    let link = |file: &'static str, to: &'static str| {
        move |out: &Path| {
            let path = out.join(file);
            let _ = std::fs::remove_file(&path);
            symlink(to, &path).unwrap();
        }
    };
    check(link("agents/alone.jsonl", "../../a.jsonl"), |e| matches!(e, BundleError::Link { .. }));
    check(link("manifest.json", "/dev/zero"), |e| matches!(e, BundleError::Link { .. }));
    check(link("runs/more", "/"), |e| matches!(e, BundleError::Link { .. }));
    // A size on paper alone costs no disk here, and must cost no memory there.
    let sparse = |out: &Path| {
        let length = bundle::FILE_BYTES + 1;
        std::fs::OpenOptions::new().write(true).open(out.join("agents/alone.jsonl")).unwrap().set_len(length).unwrap();
        edit(out, |v| v["agents"][0]["scopes"][0]["bytes"] = json!(length));
    };
    check(sparse, |e| matches!(e, BundleError::TooLarge { .. }));
}

#[test]
fn a_bundle_is_there_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let out = made(folder.path());
    let before = std::fs::read(out.join("manifest.json")).unwrap();
    // Nothing is written over.
    let mut draft = Draft::new("0.1.0");
    draft.agent(agent("alone"), &Cassette::load(folder.path().join("a.jsonl")).unwrap()).unwrap();
    assert!(matches!(draft.write(&out), Err(BundleError::Io { action: "make", .. })));
    assert_eq!(std::fs::read(out.join("manifest.json")).unwrap(), before);
    // Two files of one name are found when the bundle is read back; nothing is left of it.
    let mut draft = Draft::new("0.1.0");
    draft.agent(agent("alone"), &Cassette::load(folder.path().join("a.jsonl")).unwrap()).unwrap();
    draft.file("runs/other/result.json".into(), Vec::new()).unwrap();
    let new = folder.path().join("new");
    assert!(matches!(draft.write(&new), Err(BundleError::Name { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing half-made is left");
    // A damaged recording is not handed on, nor one over another dataset.
    let text = std::fs::read_to_string(folder.path().join("a.jsonl")).unwrap();
    let changed = Cassette::from_bytes("a", text.replacen("step 1", "step 7", 1).as_bytes()).unwrap();
    let mut draft = Draft::new("0.1.0");
    let error = draft.agent(agent("alone"), &changed).unwrap_err();
    assert!(matches!(error, BundleError::Recording(RecordingError::Changed { .. })), "{error}");
    let other = text.replacen("real-pack", "other-pack", 1);
    let end = other.rfind("{\"schema_version\":2,\"type\":\"end\"").unwrap();
    let sealed = {
        use sha2::Digest as _;
        let digest: String = sha2::Sha256::digest(&other.as_bytes()[..end]).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}{{\"schema_version\":2,\"type\":\"end\",\"calls\":5,\"lines_sha256\":\"{digest}\"}}\n", &other[..end])
    };
    draft.agent(agent("alone"), &Cassette::load(folder.path().join("a.jsonl")).unwrap()).unwrap();
    let error = draft.agent(agent("other"), &Cassette::from_bytes("o", sealed.as_bytes()).unwrap()).unwrap_err();
    assert!(matches!(error, BundleError::Disagrees { what: "the dataset", .. }), "{error}");
    for name in ["../up", "", "a b"] {
        assert!(matches!(draft.agent(agent(name), &changed), Err(BundleError::Name { .. })));
    }
}

/// A hand-made bundle as the Python implementation writes one.
fn foreign() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let agents = folder.path().join("agents");
    std::fs::create_dir(&agents).unwrap();
    let manifest = json!({
        "schema_version": 2, "start_date": "2024-03-14", "end_date": "2024-03-15", "initial_cash": 1000000.0, "mask_entities": true,
        "entity_mask_seed": 7, "prompt_contract_version": "v4", "traderharness_version": "0.1",
        "agents": [
            {"id": "plain", "name": "Plain", "model": "m", "card_snapshot": {"id": "plain"}, "cassette": "agents/plain.jsonl"},
            {"id": "council", "name": "", "model": "m", "card_snapshot": null, "cassette": "agents/council__executor.jsonl"},
        ],
    });
    std::fs::write(folder.path().join("manifest.json"), manifest.to_string()).unwrap();
    for (scope, calls) in [("plain", 2), ("council__executor", 1), ("council__advisor_bull", 3)] {
        let line = |step: usize| {
            let sha = format!("{:064x}", step + 1);
            format!(
                "{{\"schema_version\": 1, \"step\": {step}, \"type\": \"llm_call\", \"request_sha256\": \"{sha}\", \"output\": {{\"role\": \"assistant\", \"content\": \"好 {step}\", \"_usage\": {{\"prompt_tokens\": 5}}}}}}\n"
            )
        };
        std::fs::write(agents.join(format!("{scope}.jsonl")), (0..calls).map(line).collect::<String>()).unwrap();
    }
    folder
}

// engine E13.3
#[test]
fn a_bundle_of_the_python_implementation_is_read_and_checked() {
    let folder = foreign();
    assert!(ForeignBundle::is_bundle(folder.path()) && !Bundle::is_bundle(folder.path()));
    let bundle = ForeignBundle::open(folder.path()).unwrap();
    assert_eq!(bundle.contract_version(), "v4");
    let scopes: Vec<(&str, usize)> = bundle.scopes().iter().map(|s| (s.name.as_str(), s.cassette.calls().len())).collect();
    assert_eq!(scopes, [("council__advisor_bull", 3), ("council__executor", 1), ("plain", 2)]);
    assert_eq!(bundle.agents()[0].card, Some(json!({"id": "plain"})));
    let check = |change: &dyn Fn(&Path), expected: &dyn Fn(&BundleError) -> bool| {
        let folder = foreign();
        change(folder.path());
        let error = ForeignBundle::open(folder.path()).expect_err("something is wrong");
        assert!(expected(&error), "{error:?}");
    };
    check(&|p| std::fs::remove_file(p.join("agents/plain.jsonl")).unwrap(), &|e| matches!(e, BundleError::Missing { .. }));
    check(&|p| std::fs::write(p.join("agents/other.jsonl"), "").unwrap(), &|e| matches!(e, BundleError::Unnamed { .. }));
    check(&|p| edit(p, |v| v["schema_version"] = json!(3)), &|e| matches!(e, BundleError::Newer { found: 3, known: 2, .. }));
    check(&|p| edit(p, |v| v["agents"][0]["id"] = json!("../up")), &|e| matches!(e, BundleError::Name { .. }));
    check(&|p| edit(p, |v| v["agents"][0]["cassette"] = json!("../../x.jsonl")), &|e| matches!(e, BundleError::Name { .. }));
    check(&|p| edit(p, |v| v["agents"][1]["id"] = json!("Plain")), &|e| matches!(e, BundleError::Twice { .. }));
    check(&|p| std::fs::write(p.join("agents/plain.jsonl"), "{").unwrap(), &|e| matches!(e, BundleError::Recording(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // However scopes take turns, and whatever failed among them.
    #[test]
    fn any_recording_comes_back_from_its_parts(turns in prop::collection::vec((0_usize..4, 0_usize..6, any::<bool>()), 0..12)) {
        let (_keep, path) = folder();
        let day = day(6);
        let mut recorder = Recorder::create(&path, meta()).unwrap();
        for (scope, step, fails) in turns {
            let scope = ["a", "a__executor", "a__advisor_b", "c"][scope];
            let (request, response) = &day[step];
            if fails {
                recorder.record_failure(scope, request, "timeout").unwrap();
            } else {
                recorder.record(scope, request, response).unwrap();
            }
        }
        recorder.finish().unwrap();
        let parts = bundle::split(&Cassette::load(&path).unwrap()).unwrap();
        prop_assert_eq!(parts.joined, std::fs::read(&path).unwrap());
    }
}
