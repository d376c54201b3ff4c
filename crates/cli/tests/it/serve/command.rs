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
