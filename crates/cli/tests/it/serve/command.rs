//! Options, the token, and the configuration.

use super::Server;
use crate::command::{run, text};
use std::path::Path;

/// Runs `serve` with options that are refused.
fn check(args: &[&str], code: i32, says: &[&str]) {
    let ran = run(&[&["serve"], args].concat());
    assert_eq!(ran.code, code, "{args:?}: {}{}", ran.out, ran.err);
    for word in says {
        assert!(ran.err.contains(word), "{args:?}: `{word}` is not in {}", ran.err);
    }
}

#[test]
fn no_address_is_opened_to_others_without_a_configuration() {
    let day = ["--start", "2020-02-04", "--print-token"];
    check(&[&["--http", "0.0.0.0:0"][..], &day].concat(), 2, &["other machines", "--config"]);
    check(&[&["--http", "0.0.0.0:0", "--allow-host", "a.example"][..], &day].concat(), 2, &["tokens of its own"]);
    check(&[&["--http", "127.0.0.1:0", "--allow-host", "a/b"][..], &day].concat(), 2, &["not a host name"]);
    check(&["--http", "127.0.0.1:0", "--start", "2020-02-04"], 2, &["token", "--keep"]);
    check(&["--http", "127.0.0.1:0", "--print-token"], 2, &["--start"]);
    check(&["--http", "127.0.0.1:0", "--print-token", "--start", "2020-02-31"], 2, &["--start"]);
    check(&["--http", "localhost", "--start", "2020-02-04"], 2, &["--http"]);
    check(&["--start", "2020-02-04"], 2, &["--http"]);
    check(&["--http", "127.0.0.1:0", "--config", "/nowhere/x.yaml"], 3, &["x.yaml"]);
}

#[test]
fn a_taken_port_is_told_before_anything_is_loaded() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check(&["--http", &address, "--start", "2020-02-04", "--print-token"], 3, &["cannot be served on", "port 0"]);
}

#[test]
fn the_token_is_drawn_once_and_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("desk");
    let server = Server::start(&keep, &[]);
    let file = keep.join("private/token");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), server.token);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&file), mode(file.parent().unwrap()), mode(&keep)], [0o600, 0o700, 0o700]);
    }
    let token = server.token.clone();
    assert_eq!(server.end(), Some(0), "SIGTERM closes it in order");
    assert_eq!(Server::start(&keep, &[]).token, token);
    for entry in walk(folder.path()) {
        let bytes = std::fs::read(&entry).unwrap();
        let there = bytes.windows(token.len()).any(|window| window == token.as_bytes());
        assert_eq!(there, entry == file, "{}", entry.display());
    }
}

/// Every file under a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn a_configuration_is_checked_with_every_fault_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.yaml");
    let drawn = run(&["serve", "token", "--json"]);
    let drawn: serde_json::Value = serde_json::from_str(&drawn.out).unwrap();
    let digest = drawn["token_sha256"].as_str().unwrap();
    let good = format!(
        "callers:\n  - id: desk\n    token_sha256: {digest}\n    grants: ['*']\n    data_rights: ['*']\nprofiles:\n  - name: day\n    start: 2020-02-04\n"
    );
    std::fs::write(&file, &good).unwrap();
    let ran = run(&["serve", "check", text(&file)]);
    assert_eq!((ran.code, ran.out.trim()), (0, format!("{}: good", file.display()).as_str()), "{}", ran.err);
    std::fs::write(&file, good.replace("id: desk", "id: 'a b'").replace("2020-02-04", "soon")).unwrap();
    let ran = run(&["serve", "check", text(&file)]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("callers") && ran.out.contains("start"), "{}", ran.out);
    let schema = run(&["serve", "schema"]);
    assert!(serde_json::from_str::<serde_json::Value>(&schema.out).unwrap()["properties"]["callers"].is_object());
}

#[test]
fn a_folder_that_nobody_serves_is_pruned_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("desk");
    let server = Server::start(&keep, &[]);
    let prune = |more: &[&str]| run(&[&["serve", "prune", "--keep", text(&keep)], more].concat());
    let busy = prune(&[]);
    assert_eq!(busy.code, 3);
    assert!(busy.err.contains("another process") && busy.err.contains("stop the server"), "{}", busy.err);
    let ask = |path: &str, key: &str| server.post(path, key)["session_id"].as_str().unwrap().to_owned();
    let ended = ask("/v1/sessions", "first");
    ask(&format!("/v1/sessions/{ended}/close"), "close");
    ask("/v1/sessions", "second");
    assert_eq!(server.end(), Some(0));
    let files = keep.join("workspaces").join(&ended);
    std::fs::create_dir_all(&files).unwrap();

    let young = prune(&[]);
    assert_eq!((young.code, young.out.contains("removed: 0 sessions")), (0, true), "{}{}", young.out, young.err);
    let aged = "UPDATE sessions SET ended = ended - 10 * 86400";
    rusqlite::Connection::open(keep.join("house.sqlite")).unwrap().execute_batch(aged).unwrap();
    let shown = prune(&["--older-than", "9", "--dry-run"]);
    assert!(shown.out.contains("would remove: 1 sessions") && files.exists(), "{}", shown.out);
    let pruned: serde_json::Value = serde_json::from_str(&prune(&["--older-than", "9", "--json"]).out).unwrap();
    assert_eq!((&pruned["pruned"]["sessions"], &pruned["pruned"]["answers"]), (&1.into(), &2.into()), "{pruned}");
    assert!(!files.exists(), "files of agents go with their session");
    assert_eq!(prune(&["--older-than", "0"]).code, 2);
    assert_eq!(run(&["serve", "prune", "--keep", text(&folder.path().join("none"))]).code, 3);
    assert!(!folder.path().join("none").exists());
}

// What was played over a door of a server is a run like any other once it has ended.
#[test]
fn a_session_that_a_server_kept_is_recorded_as_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("desk");
    let server = Server::start(&keep, &["--mask", "none"]);
    let make = |key: &str| server.post("/v1/sessions", key)["session_id"].as_str().unwrap().to_owned();
    let (played, closed, open) = (make("a"), make("b"), make("c"));
    for point in 0..5 {
        server.post(&format!("/v1/sessions/{played}/step"), &format!("step-{point}"));
    }
    server.post(&format!("/v1/sessions/{closed}/step"), "one");
    assert_eq!(server.post(&format!("/v1/sessions/{closed}/close"), "close")["state"], "closed");
    let record = |session: &str, start: &str, name: &str| {
        let into = folder.path().join(name);
        let set_up = ["--keep", text(&keep), "--start", start, "--mask", "none"];
        run(&[&["serve", "record", session, "--record", text(&into)], &set_up[..]].concat())
    };
    let busy = record(&played, "2020-02-04", "busy");
    assert!(busy.code == 3 && busy.err.contains("stop the server"), "{}", busy.err);
    assert_eq!(server.end(), Some(0));
    for (session, name, status) in [(&played, "played", "completed"), (&closed, "closed", "cancelled")] {
        let ran = record(session, "2020-02-04", name);
        assert!(ran.code == 0 && ran.err.contains("Recorded in") && !ran.err.contains("warning"), "{}", ran.err);
        let into = folder.path().join(name);
        let report = run(&["report", text(&into), "--json"]);
        assert_eq!(report.code, 0, "{}{}", report.out, report.err);
        let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
        assert_eq!(report["runs"][0]["result"]["status"], status);
        let replayed = run(&["replay", text(&into)]);
        assert!(replayed.code == 0 && replayed.out.contains("trajectory records identical"), "{}{}", replayed.out, replayed.err);
    }
    let refused = |ran: crate::command::Ran, code: i32, words: &str| {
        assert_eq!(ran.code, code, "{}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
    };
    refused(record(&open, "2020-02-04", "open"), 2, "the session is open");
    refused(record("ses_nothing", "2020-02-04", "none"), 3, "no session of this id");
    refused(record(&played, "2020-02-05", "other"), 2, "made of another");
    assert!(!folder.path().join("other").exists(), "a refused recording leaves no folder");
    refused(record(&played, "2020-02-04", "played"), 2, "is not empty");
}
