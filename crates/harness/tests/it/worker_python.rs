//! The Python of the worker that needs no worker: tables, the API, the JSON form of results.

use std::path::Path;
use std::process::Command;

#[test]
fn the_modules_that_code_imports_pass_their_own_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/sandbox/venv/bin/python");
    if !python.exists() {
        println!("skipped: there is no {}; `cargo xtask setup` makes it", python.display());
        return;
    }
    let tests = root.join("crates/sandbox-worker/python/tests");
    let ran = Command::new(python)
        .args(["-B", "-W", "ignore", "-m", "unittest", "discover", "-s", "."])
        .current_dir(tests)
        .env_clear()
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("\nOK"), "{said}");
}
