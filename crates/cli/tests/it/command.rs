//! Runs the binary in a clean environment.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Exit code, stdout, stderr.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_traderharness"));
    command.args(args).env_clear().env("PATH", "/usr/bin:/bin");
    command
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

pub(crate) fn run(args: &[&str]) -> Ran {
    ran(command(args).output().expect("the binary starts"))
}

/// A file of the repository.
pub(crate) fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The read-only reference data beside the project; `None`, with a line that says so, where it is absent.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let found = repo("../shared").join(path);
    if !found.exists() {
        println!("skipped: ../shared/{path} is not here");
        return None;
    }
    Some(found)
}

/// The values of a JSONL file.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}
