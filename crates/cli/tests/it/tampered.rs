//! Recordings that somebody changed, and files that are no files: each is told, with what to do, or is provably nothing that anybody reads.

use crate::command::{Ran, command, ran, repo, run, text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const DAY: &str = "2020-02-04";

fn day(folder: &Path, name: &str) -> PathBuf {
    let record = folder.join(name);
    let (script, key) = (repo("crates/cli/demo/script.yaml"), repo("crates/cli/demo/mask.key"));
    let line = ["run", "--script", text(&script), "--mask-key", text(&key), "--start", DAY, "--end", DAY];
    let ran = run(&[&line[..], &["--record", text(&record)]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    record
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[track_caller]
fn refused(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    for word in says {
        assert!(ran.err.contains(word) || ran.out.contains(word), "`{word}` is not in {}{}", ran.out, ran.err);
    }
}

/// Two numbers that follow from a seed: which line, and which byte of it.
fn drawn(seed: u64) -> (usize, usize) {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bf0_3635;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 16) as usize
    };
    next();
    (next(), next())
}

/// A file with a line dropped, doubled, moved, emptied, cut or changed by one byte.
fn changed(whole: &str, seed: u64) -> Vec<u8> {
    let (a, b) = drawn(seed);
    let mut lines: Vec<Vec<u8>> = whole.lines().map(|line| line.as_bytes().to_vec()).collect();
    let at = a % lines.len();
    let byte = b % lines[at].len();
    match seed % 6 {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let to = (at + 1 + b % (lines.len() - 1).max(1)) % lines.len();
            lines.swap(at, to);
        }
        3 => lines[at].truncate(byte),
        4 => lines[at][byte] = if lines[at][byte] == b'7' { b'8' } else { b'7' },
        _ => lines[at].insert(byte, 0xff),
    }
    let mut out = lines.join(&b'\n');
    out.push(b'\n');
    out
}

// spec/engine.md E13: what was changed is never replayed as if it had not been.
#[test]
fn no_change_of_a_line_passes_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let record = day(folder.path(), "day");
    let mut tried = 0;
    for file in ["cassette.jsonl", "trajectory.jsonl", "result.json", "summary.json"] {
        let path = record.join(file);
        let whole = read(&path);
        for seed in 0..6 {
            let bytes = changed(&whole, seed);
            // Blanks between the parts of a document say nothing.
            let same = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok() == serde_json::from_str(&whole).ok();
            if bytes == whole.as_bytes() || file.ends_with(".json") && same(&bytes) {
                continue;
            }
            tried += 1;
            std::fs::write(&path, bytes).unwrap();
            let replayed = run(&["replay", text(&record)]);
            assert!([1, 2].contains(&replayed.code), "{file}, seed {seed}: {} {}", replayed.code, replayed.err);
            assert!(
                replayed.err.contains("hint: ") || replayed.err.contains("record it again"),
                "{file}, seed {seed}: {}",
                replayed.err
            );
            assert!(!replayed.err.contains("panicked"), "{file}, seed {seed}: {}", replayed.err);
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert!(tried >= 18, "only {tried} changes were tried");
    assert_eq!(run(&["replay", text(&record)]).code, 0);
}

#[test]
fn counts_and_long_texts_of_a_run_are_held_or_shown_whole() {
    let folder = tempfile::tempdir().unwrap();
    let record = day(folder.path(), "day");
    let summary = record.join("summary.json");
    let whole = read(&summary);
    std::fs::write(&summary, whole.replacen("\"fills\": 1", "\"fills\": 2", 1)).unwrap();
    refused(&run(&["replay", text(&record)]), 1, &["summary.json` is not what the run gives", "hint: "]);
    std::fs::write(&summary, whole).unwrap();
    // A result may say anything; a table of it has no widest column.
    let path = record.join("result.json");
    let mut result: Value = serde_json::from_str(&read(&path)).unwrap();
    result["card"]["id"] = "x".repeat(70_000).into();
    result["cost"] = json!({ "amount": null, "reason": "y".repeat(70_000) });
    std::fs::write(&path, result.to_string()).unwrap();
    let told = run(&["report", text(&record)]);
    assert!(!told.err.contains("panicked") && told.code < 3, "{}", told.err);
    result["days"] = "z".repeat(70_000).into();
    std::fs::write(&path, result.to_string()).unwrap();
    let told = run(&["report", text(&record)]);
    refused(&told, 2, &["is no result of a run", "more bytes)", "hint: "]);
    assert!(told.err.len() < 12_000, "{} bytes", told.err.len());
    std::fs::write(&path, b"{\"schema\": \xff}").unwrap();
    refused(&run(&["report", text(&record)]), 2, &["result.json", "UTF-8"]);
}

#[test]
fn a_trajectory_of_another_run_gives_no_rewards() {
    let folder = tempfile::tempdir().unwrap();
    let record = day(folder.path(), "day");
    let trajectory = record.join("trajectory.jsonl");
    let whole = read(&trajectory);
    let asked = whole.lines().find(|line| line.contains("\"request_sha256\":\"")).unwrap();
    let digest = asked.split("\"request_sha256\":\"").nth(1).unwrap().get(..64).unwrap();
    std::fs::write(&trajectory, whole.replacen(digest, &"0".repeat(64), 1)).unwrap();
    let out = folder.path().join("rows.jsonl");
    refused(&run(&["export", "rl", text(&record), "--out", text(&out)]), 1, &["is not of its recording", "request 0", "hint: "]);
    assert!(!out.exists());
    refused(&run(&["report", text(&record)]), 1, &["it is not of the cassette beside it: request 0"]);
    // One that ends early is of its recording all the same, and is told to be one that ends early.
    let half: String = whole.lines().take(40).map(|line| format!("{line}\n")).collect();
    std::fs::write(&trajectory, half).unwrap();
    let told = run(&["export", "rl", text(&record), "--out", text(&out)]);
    assert!(told.code == 0 && told.out.contains("did not come to its end"), "{}{}", told.out, told.err);
}

#[test]
fn a_trajectory_that_nobody_here_reads_is_bad_input_to_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let (record, out) = (day(folder.path(), "day"), folder.path().join("rows.jsonl"));
    let (trajectory, record) = (record.join("trajectory.jsonl"), text(&record));
    let check = |says: &str| {
        for command in [&["replay", record][..], &["report", record], &["export", "rl", record, "--out", text(&out)]] {
            refused(&run(command), 2, &[says]);
        }
    };
    let whole = read(&trajectory);
    let newer = whole.replacen("\"schema_version\":1,", "\"schema_version\":99,", 1);
    assert!(newer != whole, "the first record has another schema");
    std::fs::write(&trajectory, newer).unwrap();
    check("99");
    #[cfg(unix)]
    {
        // A size on paper alone costs no disk here.
        std::fs::File::create(&trajectory).unwrap().set_len(traderharness_replay::RECORDING_BYTES + 1).unwrap();
        check("at most 4294967296 are read");
    }
}

#[test]
fn what_a_bundle_says_of_an_agent_is_what_its_recording_says() {
    let folder = tempfile::tempdir().unwrap();
    let (record, out) = (day(folder.path(), "day"), folder.path().join("bundle"));
    assert_eq!(run(&["bundle", text(&record), "--out", text(&out)]).code, 0);
    let path = out.join("manifest.json");
    let whole: Value = serde_json::from_str(&read(&path)).unwrap();
    for (place, value, says) in [
        ("/agents/0/cash", json!(9.0), "the cash"),
        ("/agents/0/style", json!("json"), "the style of calls"),
        ("/agents/0/seed_id", json!("0000"), "the id of the mask key"),
        ("/agents/0/window_id", json!("0000"), "the id of the window"),
        ("/agents/0/window", json!({"start": DAY, "end": DAY}), "the window"),
        ("/agents/0/card/name", json!("another"), "the card"),
        ("/agents/0/model", json!("another"), "the model"),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(place).unwrap() = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        refused(&run(&["bundle", "--check", text(&out)]), 1, &[says, "hint: "]);
    }
}

#[cfg(unix)]
#[test]
fn links_and_pipes_of_a_run_folder_are_not_handed_on_and_nobody_waits_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.txt");
    std::fs::write(&secret, "nobody's business").unwrap();
    for file in ["cassette.jsonl", "trajectory.jsonl", "result.json", "summary.json"] {
        let record = day(folder.path(), file);
        std::fs::remove_file(record.join(file)).unwrap();
        std::os::unix::fs::symlink(&secret, record.join(file)).unwrap();
        let out = folder.path().join("bundle");
        refused(&run(&["bundle", text(&record), "--out", text(&out)]), 2, &[file, "no plain file", "hint: "]);
        assert!(!out.exists());
        std::fs::remove_file(record.join(file)).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(record.join(file)).status().unwrap().success());
        // Each of these ends: a pipe that nobody writes to is not opened.
        let rows = folder.path().join(format!("{file}.rows.jsonl"));
        for line in [
            vec!["audit", text(&record)],
            vec!["export", "rl", text(&record), "--out", text(&rows)],
            vec!["export", "rl", text(&record.join(file)), "--out", text(&rows)],
            vec!["bundle", "--check", text(&record)],
        ] {
            let ended = ran(command(&line).output().unwrap());
            assert!(!ended.err.contains("panicked"), "{line:?}: {}", ended.err);
        }
    }
}

#[test]
fn a_recording_of_one_cut_line_is_not_told_to_be_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    std::fs::write(&path, "{\"schema_version\":2,\"ty").unwrap();
    refused(&run(&["replay", text(&path)]), 2, &["its only line was cut"]);
    std::fs::write(&path, "").unwrap();
    refused(&run(&["replay", text(&path)]), 2, &["is empty"]);
}

// What the audit of an export lets pass, the audit of the file lets pass, and rows of other runs hide nothing behind it.
#[test]
fn rows_of_permuted_runs_are_searched_as_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("v2");
    let (script, key) = (repo("crates/cli/recordings/v2.yaml"), repo("crates/cli/demo/mask.key"));
    let line = ["run", "--contract", "v2", "--script", text(&script), "--mask-key", text(&key), "--start", DAY, "--end", DAY];
    let card = repo("crates/cli/recordings/card.yaml");
    assert_eq!(run(&[&line[..], &["--card", text(&card), "--record", text(&record)]].concat()).code, 0);
    let opaque = day(folder.path(), "day");
    for (table, ending) in [("sft", "jsonl"), ("rl", "jsonl"), ("sft", "parquet"), ("rl", "parquet")] {
        let out = folder.path().join(format!("{table}.{ending}"));
        assert_eq!(run(&["export", table, text(&record), "--out", text(&out)]).code, 0);
        let told = run(&["audit", text(&out)]);
        assert_eq!(told.code, 0, "{table}.{ending}: {}", told.out);
    }
    let rows = read(&folder.path().join("sft.jsonl"));
    let mixed = folder.path().join("mixed.jsonl");
    assert_eq!(run(&["export", "sft", text(&opaque), "--out", text(&mixed)]).code, 0);
    std::fs::write(&mixed, rows + &read(&mixed)).unwrap();
    assert_eq!(run(&["audit", text(&mixed)]).code, 1);
}

// complaint LA-8
#[test]
fn dates_with_typographic_dashes_keys_of_more_issuers_and_passwords_in_addresses_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("said.txt");
    for (said, kind) in [
        ("on 2020\u{2011}02\u{2011}04", "date"),
        ("on 2020\u{2013}02\u{2013}04", "date"),
        ("on 2020\u{2212}02\u{2212}04", "date"),
        ("AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "secret"),
        ("see https://user:hunter2pass@example.com/x", "secret"),
    ] {
        std::fs::write(&path, said).unwrap();
        let told: Value = serde_json::from_str(&run(&["audit", text(&path), "--json"]).out).unwrap();
        assert_eq!(told["totals"], json!({ kind: 1 }), "{said}: {told:#}");
    }
    for clean in ["gains of 3\u{2013}5 %", "https://example.com:8443/a@b", "bars 1\u{2011}20 of 240"] {
        std::fs::write(&path, clean).unwrap();
        assert_eq!(run(&["audit", text(&path)]).code, 0, "{clean}");
    }
}
