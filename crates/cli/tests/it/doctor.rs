//! `traderharness doctor` on machines that have the sandbox, lack it, or have another one.

use crate::command::{Ran, ran, run, text};
use crate::sandbox::{elsewhere, is_set_up};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// State of each check by name.
fn states(ran: &Ran) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}{}", ran.out, ran.err));
    let word = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    report["checks"].as_array().unwrap().iter().map(|check| (word(check, "name"), word(check, "state"))).collect()
}

fn check(ran: &Ran, name: &str, state: &str) {
    let states = states(ran);
    assert!(states.contains(&(name.to_owned(), state.to_owned())), "{name} is not {state}: {states:?}");
}

/// A program that answers every question with this text.
fn answering(folder: &Path, answer: &str) -> String {
    let path = folder.join("python");
    std::fs::write(&path, format!("#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    text(&path).to_owned()
}

#[test]
fn a_machine_that_was_set_up_has_everything_at_its_pin() {
    if !is_set_up() {
        return;
    }
    let machine = run(&["doctor", "--json"]);
    assert_eq!(machine.code, 0, "{}{}", machine.out, machine.err);
    for name in ["interpreter", "numpy", "pandas", "python-dateutil", "pytz", "six", "tzdata", "module", "start", "result = 1"] {
        check(&machine, name, "ok");
    }
    for name in ["landlock", "seccomp", "rlimits", "no_new_privs", "sealed memory", "deadline trace", "frozen clock"] {
        assert!(states(&machine).iter().any(|(n, _)| n == name), "{name} is not looked at");
    }
    let person = run(&["doctor"]);
    assert_eq!(person.code, 0, "{}", person.err);
    assert!(person.out.contains("Agent code can run, ") && person.out.contains("(workspace)"), "{}", person.out);

    // A missing layer is a finding only when it is asked to be.
    let is_weak = states(&machine).iter().any(|(_, state)| state == "weak");
    assert_eq!(run(&["doctor", "--strict"]).code, i32::from(is_weak));
}

#[test]
fn a_machine_without_the_sandbox_hears_the_command_that_makes_it() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let person = ran(elsewhere(folder.path()).arg("doctor").output().unwrap());
    assert_eq!(person.code, 1, "{}", person.out);
    for says in ["missing  lookup", "lib/traderharness/venv/bin/python", "fix: run `cargo xtask setup`", "TRADERHARNESS_PYTHON"] {
        assert!(person.out.contains(says), "`{says}` is not in {}", person.out);
    }
    let machine = ran(elsewhere(folder.path()).args(["doctor", "--json"]).output().unwrap());
    assert_eq!(machine.code, 1);
    let report: Value = serde_json::from_str(&machine.out).unwrap();
    assert_eq!((&report["ok"], &report["python"]), (&Value::Bool(false), &Value::Null));
}

#[test]
fn what_is_no_python_or_an_old_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("traderharness_worker.so");
    std::fs::write(&worker, "no library").unwrap();
    let look = |python: &str| run(&["doctor", "--json", "--python", python, "--worker", text(&worker)]);

    let nothing = look("/bin/true");
    assert_eq!(nothing.code, 1);
    check(&nothing, "interpreter", "missing");
    assert!(nothing.out.contains("answers as no Python does"), "{}", nothing.out);

    let old = answering(
        folder.path(),
        r#"{"version": [3, 9, 18], "implementation": "cpython", "packages": {"numpy": "1.26.4", "pandas": null}, "protocol": 1}"#,
    );
    let old = look(&old);
    assert_eq!(old.code, 1);
    check(&old, "interpreter", "missing");
    check(&old, "numpy", "weak");
    check(&old, "pandas", "missing");
    assert!(old.out.contains("1.26.4, pinned is 2.2.6"), "{}", old.out);
    check(&old, "start", "missing");

    let named = run(&["doctor", "--python", "no-such-python"]);
    assert_eq!(named.code, 1);
    assert!(named.out.contains("--python names `no-such-python`, which is no file"), "{}", named.out);
}

#[test]
fn a_worker_of_other_sources_is_found() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("traderharness_worker.so");
    std::fs::write(&broken, "no library").unwrap();
    let ran = run(&["doctor", "--json", "--worker", text(&broken)]);
    assert_eq!(ran.code, 1);
    check(&ran, "module", "missing");

    // A module of that name in another language of the same loader: it loads, and has neither version nor protocol.
    let other = folder.path().join("traderharness_worker.py");
    std::fs::write(&other, "__version__ = '0.0.1'\nPROTOCOL = 1\n").unwrap();
    let ran = run(&["doctor", "--worker", text(&other)]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("0.0.1") && ran.out.contains("not built from the sources of this command"), "{}", ran.out);
}
