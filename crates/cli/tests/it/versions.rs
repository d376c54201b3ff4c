//! Contract versions in real processes: the bundled recordings replay whoever runs them and wherever, a pack from elsewhere is recorded and
//! replayed, and what cannot be replayed is refused before the first request.

mod agents;
mod code;
mod compared;
mod masks;

use crate::command::{Ran, command, lines, ran, repo, run, text};
use std::path::{Path, PathBuf};
use traderharness_replay::{Cassette, Meta, Recorder, Response};

const DAY: &str = "2020-02-04";
const EARLY: [&str; 4] = ["v1", "v2", "v3", "v4"];
const VERSIONS: [&str; 5] = ["v1", "v2", "v3", "v4", "v5"];

fn recording(version: &str) -> PathBuf {
    repo(&format!("crates/cli/recordings/{version}.jsonl"))
}

fn calls(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().filter(|line| line.contains("\"type\":\"llm_call\"")).count()
}

fn identical(ran: &Ran, calls: usize, what: &str) {
    assert_eq!(ran.code, 0, "{what}: {}", ran.err);
    assert!(ran.out.contains(&format!("{calls} of {calls} requests identical.")), "{what}: {}", ran.out);
}

// spec/versions.md, proof; complaints RP-1, RP-7
#[test]
fn every_bundled_recording_replays_in_another_environment() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("Ordner ≥ 股票");
    std::fs::create_dir(&elsewhere).unwrap();
    let key = elsewhere.join("mask.key");
    std::fs::copy(repo("crates/cli/demo/mask.key"), &key).unwrap();
    let settings: [&[(&str, &str)]; 3] = [
        &[("TZ", "Pacific/Kiritimati"), ("LANG", "C"), ("PYTHONHASHSEED", "0")],
        &[("TZ", "America/Los_Angeles"), ("LC_ALL", "de_DE.UTF-8"), ("PYTHONHASHSEED", "4294967295"), ("RAYON_NUM_THREADS", "1")],
        &[("LC_ALL", "zh_CN.GBK"), ("USER", "nobody"), ("HOME", "/nonexistent"), ("RAYON_NUM_THREADS", "5")],
    ];
    for version in VERSIONS {
        let file = elsewhere.join(format!("{version}.jsonl"));
        std::fs::copy(recording(version), &file).unwrap();
        for environment in settings {
            let mut command = command(&["replay", text(&file), "--mask-key", text(&key), "--start", DAY, "--end", DAY]);
            let output = command.current_dir(&elsewhere).envs(environment.iter().copied()).output().unwrap();
            identical(&ran(output), calls(&file), &format!("{version}, {environment:?}"));
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn every_bundled_recording_replays_for_another_user() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let is_root = std::process::Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !is_root {
        println!("skipped: only root can become another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode: u32| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    open(folder.path(), 0o755);
    let binary = folder.path().join("traderharness");
    if std::fs::hard_link(env!("CARGO_BIN_EXE_traderharness"), &binary).is_err() {
        std::fs::copy(env!("CARGO_BIN_EXE_traderharness"), &binary).unwrap();
        open(&binary, 0o755);
    }
    let key = folder.path().join("mask.key");
    std::fs::copy(repo("crates/cli/demo/mask.key"), &key).unwrap();
    open(&key, 0o644);
    for version in VERSIONS {
        let file = folder.path().join(format!("{version}.jsonl"));
        std::fs::copy(recording(version), &file).unwrap();
        open(&file, 0o644);
        let mut command = std::process::Command::new(&binary);
        command.args(["replay", text(&file), "--mask-key", text(&key), "--start", DAY, "--end", DAY]).env_clear();
        let output = command.current_dir(folder.path()).uid(65_534).gid(65_534).output().unwrap();
        identical(&ran(output), calls(&file), version);
    }
}

/// Writes the calls of a recording under another first line.
fn under_another_head(kept: &Cassette, meta: Meta, file: &Path) {
    let mut recorder = Recorder::create(file, meta).unwrap();
    for call in kept.calls() {
        let response: Response = serde_json::from_value(call.output.clone().unwrap()).unwrap();
        recorder.record(&call.scope, &kept.request(call.step).unwrap().unwrap(), &response).unwrap();
    }
    recorder.finish().unwrap();
}

/// Records the script of a version as its recording was made.
fn record(version: &str, into: &Path, more: &[&str]) -> Ran {
    let own = |name: &str| repo(&format!("crates/cli/recordings/{name}"));
    let script = if version == "v5" { repo("crates/cli/demo/script.yaml") } else { own(&format!("{version}.yaml")) };
    let card = match version {
        "v1" | "v2" => Some(own("card.yaml")),
        "v3" => Some(own("card-plan.yaml")),
        _ => None,
    };
    let key = repo("crates/cli/demo/mask.key");
    let mut args = vec!["run", "--script", text(&script), "--mask-key", text(&key), "--start", DAY, "--end", DAY];
    args.extend(["--record", text(into), "--check-output"]);
    args.extend(card.iter().flat_map(|card| ["--card", text(card)]));
    args.extend(if version == "v3" { &["--mask-style", "opaque"][..] } else { &[] });
    args.extend(more);
    run(&args)
}

/// The command that plays a script under a card, recorded.
fn line<'a>(version: &'a str, script: &'a Path, card: &'a Path, key: &'a Path, end: &'a str, into: &'a Path) -> Vec<&'a str> {
    let mut line = vec!["run", "--contract", version, "--script", text(script), "--card", text(card), "--mask-key", text(key)];
    line.extend(["--start", DAY, "--end", end, "--record", text(into), "--check-output"]);
    line
}

fn below_the_first_line(path: &Path) -> Vec<String> {
    let all = std::fs::read_to_string(path).unwrap();
    all.lines()
        .filter(|line| !line.contains("\"type\":\"meta\"") && !line.contains("\"type\":\"end\""))
        .map(str::to_owned)
        .collect()
}

// spec/versions.md: a byte that changes fails
#[test]
fn a_day_under_each_version_comes_out_as_it_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    for version in VERSIONS {
        let into = folder.path().join(version);
        let made = record(version, &into, &["--contract", version]);
        assert_eq!(made.code, 0, "{version}: {}", made.err);
        let same = below_the_first_line(&into.join("cassette.jsonl")) == below_the_first_line(&recording(version));
        assert!(same, "recordings made under {version} would no longer replay; `cargo xtask cassettes --check` says more");
        let meta = &lines(&into.join("cassette.jsonl"))[0];
        assert_eq!(meta["contract_version"], version);
        // Those of v5 are the version's own, and its recordings do not name them.
        assert_eq!(meta["behaviour_flags"].as_array().unwrap().is_empty(), version == "v5", "{meta}");
        let style = if matches!(version, "v3" | "v5") { "opaque" } else { "permutation" };
        assert_eq!(meta["mask"]["entities"], style);
        assert_eq!(lines(&into.join("trajectory.jsonl"))[0]["contract_version"], version);
        let replayed = run(&["replay", text(&into)]);
        identical(&replayed, calls(&into.join("cassette.jsonl")), version);
        assert!(replayed.out.contains("trajectory records identical."), "{}", replayed.out);
    }
}

#[test]
fn a_pack_from_elsewhere_is_recorded_and_replayed_with_that_pack_alone() {
    let folder = tempfile::tempdir().unwrap();
    let ours = std::fs::read_to_string(repo("crates/contract/packs/v2.json")).unwrap();
    let pack = folder.path().join("pack.json");
    let foreign =
        ours.replacen("\"v2\"", "\"elsewhere-2\"", 1).replacen("You trade one stock account", "You run one stock account", 1);
    assert_ne!(foreign, ours);
    std::fs::write(&pack, &foreign).unwrap();
    let into = folder.path().join("run");
    let made = record("v2", &into, &["--pack", text(&pack)]);
    assert_eq!(made.code, 0, "{}", made.err);
    let cassette = into.join("cassette.jsonl");
    let told = std::fs::read_to_string(&cassette).unwrap();
    assert!(told.contains("You run one stock account") && told.contains("\"contract_version\":\"elsewhere-2\""));
    identical(&run(&["replay", text(&into), "--pack", text(&pack)]), calls(&cassette), "with its pack");
    let check = |args: &[&str], says: &str| {
        let ran = run(&[&["replay", text(&into)][..], args].concat());
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(says), "`{says}` is not in {}", ran.err);
    };
    check(&[], "--pack");
    let other = folder.path().join("other.json");
    std::fs::write(&other, foreign.replacen("You run", "You play", 1)).unwrap();
    check(&["--pack", text(&other)], "another pack");
    std::fs::write(&other, foreign.replacen("\"flags\"", "\"flaggs\"", 1)).unwrap();
    check(&["--pack", text(&other)], "flaggs");
    // A recording that was made without one takes none.
    let key = repo("crates/cli/demo/mask.key");
    let file = recording("v2");
    let args = ["replay", text(&file), "--mask-key", text(&key), "--start", DAY, "--end", DAY, "--pack", text(&pack)];
    let without = run(&args);
    assert_eq!((without.code, without.err.contains("without a pack")), (2, true), "{}", without.err);
}

#[test]
fn a_recording_that_is_newer_is_refused_before_its_first_request() {
    let folder = tempfile::tempdir().unwrap();
    let key = repo("crates/cli/demo/mask.key");
    let kept = Cassette::load(recording("v2")).unwrap();
    let check = |name: &str, change: &dyn Fn(&mut Meta), says: &[&str]| {
        let mut meta = kept.meta().unwrap().clone();
        change(&mut meta);
        let file = folder.path().join(name);
        under_another_head(&kept, meta, &file);
        let ran = run(&["replay", text(&file), "--mask-key", text(&key), "--start", DAY, "--end", DAY]);
        assert_eq!(ran.code, if says.is_empty() { 0 } else { 2 }, "{}", ran.err);
        for word in says {
            assert!(ran.err.contains(word), "`{word}` is not in {}", ran.err);
        }
    };
    check("same.jsonl", &|_| {}, &[]);
    check("flag.jsonl", &|meta| _ = meta.behaviour_flags.insert(900), &["flag 900 is not known", "nothing was replayed"]);
    check("version.jsonl", &|meta| meta.contract_version = "v9".to_owned(), &["`v9` is not known", "nothing was replayed"]);
}

#[test]
fn what_does_not_go_with_a_version_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let window = ["--start", DAY, "--end", DAY];
    let check = |args: &[&str], says: &str| {
        let ran = run(&[&["run"][..], &window, args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(says), "`{says}` is not in {}", ran.err);
    };
    check(&["--baseline", "random", "--contract", "v2"], "compare --contract");
    check(&["--baseline", "random", "--contract", "v6"], "v1, v2, v3, v4 and v5");
    let pack = folder.path().join("p.json");
    std::fs::write(&pack, "{}").unwrap();
    check(&["--baseline", "random", "--pack", text(&pack)], "the pack cannot be read");
    check(&["--baseline", "random", "--pack", "p.json", "--contract", "v2"], "cannot be used with");
}
