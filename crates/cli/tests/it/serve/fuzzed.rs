//! Schemathesis against a served process: it makes requests from the published document, good and bad, and looks for answers that the
//! document does not describe. Slow, and needs a package from the Python index: part of `cargo xtask test --deep`.

use super::Server;
use crate::command::repo;
use crate::sandbox::is_set_up;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned, so that a new check of it is a change that somebody makes.
const PACKAGE: &str = "schemathesis==4.32.5";

/// Its program, in an environment under the target folder; `None`, with a line that says so, where it cannot be had.
fn schemathesis() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_traderharness")).ancestors().nth(2).unwrap();
    let venv = target.join("venvs/schemathesis");
    let program = venv.join("bin/schemathesis");
    let works = || Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !works() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).status().is_ok_and(|status| status.success());
        let pip = || Command::new(venv.join("bin/pip")).args(["install", "--quiet", PACKAGE]).status();
        if !made || !pip().is_ok_and(|status| status.success()) || !works() {
            println!("skipped: {PACKAGE} cannot be installed here");
            return None;
        }
    }
    Some(program)
}

#[test]
fn schemathesis_finds_nothing() {
    if std::env::var_os("TRADERHARNESS_DEEP").is_none() {
        println!("skipped: a slow suite (cargo xtask test --deep)");
        return;
    }
    // Without a sandbox `execute_code` answers 503, which the tool takes for a defect of the server.
    if !is_set_up() {
        return;
    }
    let Some(program) = schemathesis() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("keep"), &["--mask", "none", "--check-output"]);
    // What is valid by its schema can still name a security that does not exist, or come at the wrong time: these are answers too.
    std::fs::write(
        folder.path().join("schemathesis.toml"),
        "[checks]\npositive_data_acceptance.expected-statuses = [\"2xx\", \"401\", \"403\", \"404\", \"409\", \"422\", \"429\", \"503\"]\n",
    )
    .unwrap();
    let examples = std::env::var("TRADERHARNESS_SCHEMATHESIS_EXAMPLES").unwrap_or_else(|_| "30".to_owned());
    let output = Command::new(program)
        .current_dir(folder.path())
        .args(["--config-file", "schemathesis.toml", "run"])
        .arg(repo("docs/openapi.json").canonicalize().unwrap())
        .args(["--url", &server.url, "-H", &format!("Authorization: Bearer {}", server.token)])
        .args(["--checks", "all", "--max-examples", &examples, "--seed", "1", "--suppress-health-check", "all"])
        .args(["--warnings", "off", "--max-time", "75"])
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.end(), Some(0));
}
