//! The test suite as one command. Never writes a snapshot and never needs the network once the dependencies are fetched.

use crate::sandbox::{self, Build};
use crate::{setup, steps};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the tests, then the doctests, and ends with one line that says so.
pub(crate) fn run(root: &Path, deep: bool, filter: Option<&str>) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let nextest = setup::has_nextest(root);
    if !nextest {
        println!("cargo-nextest is not installed: running the same tests with `cargo test`");
    }
    // Before any test: one must never run against the worker of an earlier build.
    sandbox::prepare(root, Build::Dev)?.0.announce()?;
    let mut parts = vec![tests(root, nextest, filter)];
    if filter.is_none() {
        parts.push(steps::cargo(root).args(["test", "--doc", "--workspace", "--locked", "--quiet"]));
    }
    for part in parts {
        // The environment was made from the Python that this names; the tests use the environment.
        let part = part.without("TRADERHARNESS_PYTHON").without("TRADERHARNESS_WORKER");
        let part = if deep { part.env("TRADERHARNESS_DEEP", "1") } else { part };
        println!("$ {}", part.shown());
        part.env("INSTA_UPDATE", "no").succeed()?;
    }
    let what = match (filter, deep) {
        (Some(filter), _) => format!("the tests named like `{filter}` pass; doctests left out"),
        (None, true) => "all tests and doctests pass, slow suites included".to_owned(),
        (None, false) => "all tests and doctests pass; `--deep` adds the slow suites".to_owned(),
    };
    println!("cargo xtask test: {what} ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn tests(root: &Path, nextest: bool, filter: Option<&str>) -> steps::Step {
    let cargo = steps::cargo(root);
    if nextest {
        let ci = std::env::var_os("CI").is_some();
        cargo.args(["nextest", "run", "--workspace", "--locked", "--profile", if ci { "ci" } else { "default" }]).args(filter)
    } else {
        cargo.args(["test", "--workspace", "--locked", "--lib", "--bins", "--tests"]).args(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(nextest: bool, filter: Option<&str>, expected_end: &str) {
        let step = tests(Path::new("."), nextest, filter);
        assert!(step.shown().ends_with(expected_end), "{}", step.shown());
    }

    #[test]
    fn both_runners_get_the_workspace_and_the_filter() {
        check(false, None, " test --workspace --locked --lib --bins --tests");
        check(false, Some("mask"), " --tests mask");
        check(true, Some("mask"), " mask");
    }
}
