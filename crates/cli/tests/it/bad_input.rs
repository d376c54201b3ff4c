//! Bad input: a message that names the place and says what to do, the documented exit code, nothing half-written.

use crate::command::{repo, run, shared, text};
use std::path::Path;

/// Day of the bundled recording, which hides it.
const DAY: &str = "2020-02-04";
const SCRIPT: &str = "schema: 1\ndays: []\n";

fn script(folder: &Path, body: &str) -> String {
    let path = folder.join("script.yaml");
    std::fs::write(&path, body).unwrap();
    text(&path).to_owned()
}

/// Runs with a script and a window; expects a code and words in stderr.
fn check(body: &str, extra: &[&str], code: i32, says: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path(), body);
    let record = folder.path().join("record");
    let mut args = vec!["run", "--script", &script, "--record", text(&record)];
    args.extend_from_slice(extra);
    let ran = run(&args);
    assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
    for word in says {
        assert!(ran.err.contains(word), "{args:?}: `{word}` is not in {}", ran.err);
    }
    assert!(!record.join("cassette.jsonl").exists(), "{args:?} left a cassette");
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

// engine E1.4
#[test]
fn windows_that_cannot_be_are_refused_before_anything_loads() {
    let missing = ["--data", "no-such-folder"]; // never reached
    for (start, end, says) in [
        ("2024-02-30", "2024-03-01", "`2024-02-30` is not a date"),
        ("2024-3-5", "2024-03-06", "YYYY-MM-DD"),
        ("20240305", "2024-03-06", "YYYY-MM-DD"),
        ("", "2024-03-06", "--start"),
        ("2024-03-06", "2024-03-05", "before --start"),
        ("2999-01-04", "2999-01-05", "in the future"),
    ] {
        check(SCRIPT, &[&["--start", start, "--end", end], &missing[..]].concat(), 2, &[says]);
    }
    check(SCRIPT, &["--start", "2001-01-01", "--end", "2001-01-05"], 2, &["no trading day", "hint:", "2018-06-01"]);
}

#[test]
fn scripts_and_cards_name_their_fault() {
    let window = ["--start", "2020-02-04", "--end", "2020-02-04"];
    check("schema: 1\ndays: [", &window, 2, &["script", "YAML or JSON"]);
    check("schema: 9\ndays: []", &window, 2, &["schema 9", "upgrade"]);
    check("schema: 1\ndays: [{lunch: []}]", &window, 2, &["`lunch`"]);
    check("schema: 1\ndays: [{open_1: [{say: $999999}]}]", &window, 2, &["$999999"]);
    check("schema: 4294967297\ndays: []", &window, 2, &["schema 4294967297", "upgrade"]);
    // Half of a script is never lost in silence.
    check("schema: 1\ndays: [{open_1: [], open_1: [{say: lost}]}]", &window, 2, &["script", "duplicate"]);
    check(r#"{"schema":1,"days":[{}],"days":[]}"#, &window, 2, &["script", "duplicate"]);
    // Takes half a minute in the YAML reader.
    let deep = format!("{{\"schema\":1,\"days\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    check(&deep, &window, 2, &["nested deeper"]);
    let folder = tempfile::tempdir().unwrap();
    let card = folder.path().join("card.yaml");
    for (body, says) in [
        ("id: a\nno_such: 1\n", "no_such"),
        ("id: 'a b'\n", "`id`"),
        ("allowed_tools: [zzz, aaa]\n", "aaa, zzz"),
        ("- 1\n", "card"),
    ] {
        std::fs::write(&card, body).unwrap();
        check(SCRIPT, &[&window[..], &["--card", text(&card)]].concat(), 2, &[says]);
    }
    check(SCRIPT, &[&window[..], &["--card", "no-such-card.yaml"]].concat(), 3, &["no-such-card.yaml", "hint:"]);
    check("schema: 1\notherwise: stop\ndays: [{}]", &window, 4, &["did not answer", "no turn left"]);
}

#[test]
fn datasets_that_cannot_be_read_say_where_and_what_to_do() {
    let window = ["--start", "2020-02-04", "--end", "2020-02-04"];
    check(SCRIPT, &[&window[..], &["--data", "no-such-folder"]].concat(), 3, &["no-such-folder", "hint:"]);
    let folder = tempfile::tempdir().unwrap();
    check(SCRIPT, &[&window[..], &["--data", text(folder.path())]].concat(), 3, &["daily.parquet", "hint:"]);
    let pack = repo("crates/ingest/packs/real-zvt");
    let whole = std::fs::read(pack.join("daily.parquet")).unwrap();
    for keep in [0, 3, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(folder.path().join("daily.parquet"), &whole[..keep]).unwrap();
        check(SCRIPT, &[&window[..], &["--data", text(folder.path())]].concat(), 3, &["daily.parquet"]);
    }
    std::fs::copy(pack.join("securities.parquet"), folder.path().join("daily.parquet")).unwrap();
    check(SCRIPT, &[&window[..], &["--data", text(folder.path())]].concat(), 3, &["daily.parquet", "column"]);
}

#[test]
fn recordings_that_cannot_be_replayed_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::fs::read_to_string(repo("crates/cli/recordings/v5.jsonl")).unwrap();
    let key = repo("crates/cli/demo/mask.key");
    let file = folder.path().join("c.jsonl");
    let check = |body: &str, code: i32, says: &[&str]| {
        std::fs::write(&file, body).unwrap();
        let ran = run(&["replay", text(&file), "--mask-key", text(&key), "--start", DAY, "--end", DAY]);
        assert_eq!(ran.code, code, "{}", ran.err);
        for word in says {
            assert!(ran.err.contains(word), "`{word}` is not in {}", ran.err);
        }
    };
    check("", 2, &["c.jsonl"]);
    check("not json\n", 2, &["line 1"]);
    let mut lines: Vec<&str> = kept.lines().collect();
    lines[3] = "{\"type\": \"llm_call\", \"step\"";
    check(&format!("{}\n", lines.join("\n")), 2, &["line 4"]);
    check(&kept.replacen("\"schema_version\":2", "\"schema_version\":99", 1), 2, &["99"]);
    // A changed word in an answer changes the next request: the replay stops there and shows the place (complaint RP-3).
    let changed = kept.replacen("\"content\":\"Now the candidate's history.\"", "\"content\":\"Now the candidate's past.\"", 1);
    assert_ne!(changed, kept);
    check(&changed, 1, &["request 2", "messages["]);
    // A changed word in a kept question changes no fingerprint, but the file is no longer what was recorded.
    let changed = kept.replacen("New trading day", "Old trading day", 1);
    assert_ne!(changed, kept);
    check(&changed, 1, &["c.jsonl"]);
    // Fewer answers than questions.
    let cut: Vec<&str> = kept.lines().filter(|l| !l.contains("\"type\":\"end\"") && !l.contains("\"step\":12")).collect();
    check(&format!("{}\n", cut.join("\n")), 1, &["12"]);
    std::fs::write(&file, &kept).unwrap();
    let unmasked = run(&["replay", text(&file), "--start", DAY, "--end", DAY]);
    assert_eq!(unmasked.code, 2);
    assert!(unmasked.err.contains("--mask-key"), "{}", unmasked.err);
    let unknown_window = run(&["replay", text(&file), "--mask-key", text(&key)]);
    assert_eq!((unknown_window.code, unknown_window.err.contains("--start")), (2, true), "{}", unknown_window.err);
    let wrong_window = run(&["replay", text(&file), "--mask-key", text(&key), "--start", DAY, "--end", "2020-02-05"]);
    assert_eq!((wrong_window.code, wrong_window.err.contains("another window")), (2, true), "{}", wrong_window.err);
    let other_key = folder.path().join("other.key");
    std::fs::write(&other_key, "0".repeat(64)).unwrap();
    let wrong = run(&["replay", text(&file), "--mask-key", text(&other_key), "--start", DAY, "--end", DAY]);
    assert_eq!((wrong.code, wrong.err.contains("key")), (2, true), "{}", wrong.err);
    assert_eq!(run(&["replay", "no-such-run"]).code, 3);
    let endless = run(&["replay", "/dev/zero"]);
    assert_eq!((endless.code, endless.err.contains("regular file")), (3, true), "{}", endless.err);
    assert_eq!(run(&["data", "generate", "--out", text(&folder.path().join("m")), "--stocks", "0"]).code, 2);
}

#[test]
fn another_dataset_is_reported_before_the_first_request() {
    let Some(data) = shared("data/real-tdx") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.jsonl");
    std::fs::copy(repo("crates/cli/recordings/v5.jsonl"), &file).unwrap();
    let key = repo("crates/cli/demo/mask.key");
    let ran = run(&["replay", text(&file), "--mask-key", text(&key), "--start", DAY, "--end", DAY, "--data", text(&data)]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("recording was made on dataset"), "{}", ran.err);
}

#[test]
fn a_path_without_anything_is_the_environment_and_no_faulty_dataset() {
    let ran = run(&["data", "check", "no-such-folder"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert!(ran.err.contains("no dataset at `no-such-folder`") && ran.err.contains("hint:"), "{}", ran.err);
}

#[test]
fn a_session_over_no_trading_day_is_bad_input_and_leaves_nothing_that_refuses_the_next_try() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("day");
    for _ in 0..2 {
        let ran = run(&["mcp", "--start", "2020-02-08", "--end", "2020-02-09", "--record", text(&record)]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("no trading day") && ran.err.contains("hint:"), "{}", ran.err);
        assert_eq!(std::fs::read_dir(&record).unwrap().count(), 0);
    }
}

#[test]
fn a_folder_that_no_server_kept_is_named_by_what_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("house.sqlite"), "no database").unwrap();
    for command in [&["serve", "--http", "127.0.0.1:0", "--start", DAY][..], &["serve", "prune"]] {
        let ran = run(&[command, &["--keep", text(folder.path())]].concat());
        assert_eq!(ran.code, 3, "{}", ran.err);
        assert!(ran.err.contains(text(folder.path())) && ran.err.contains("name another folder"), "{}", ran.err);
    }
}

#[test]
fn a_folder_with_something_in_it_is_never_recorded_over() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path(), SCRIPT);
    let ran = run(&["run", "--script", &script, "--start", "2020-02-04", "--end", "2020-02-04", "--record", text(folder.path())]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is not empty"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn an_input_without_an_end_and_an_output_without_room_are_said() {
    let window = ["--start", "2020-02-04", "--end", "2020-02-04"];
    let endless = run(&[&["run", "--script", "/dev/zero"][..], &window[..]].concat());
    assert_eq!(endless.code, 2, "{}", endless.err);
    assert!(endless.err.contains("longer than"), "{}", endless.err);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = crate::command::command(&["tools", "--json"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}
