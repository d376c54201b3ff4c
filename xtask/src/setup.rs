//! What must be on a machine before the other tasks run. Adds Rust components through rustup and makes the Python environment of the
//! code sandbox in the target folder; installs nothing else.

use crate::sandbox::{self, Build, Sandbox};
use crate::steps::{self, Step};
use std::path::Path;
use std::process::ExitCode;

/// True when `cargo nextest` answers.
pub(crate) fn has_nextest(root: &Path) -> bool {
    steps::cargo(root).args(["nextest", "--version"]).read().is_ok()
}

/// Checks every tool and says what each is for. Exit code 3 when one is missing that the tasks cannot do without; a code sandbox that
/// cannot be set up is told and is an error only where `CI` is set.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let mut missing = 0;
    let mut line = |name: &str, state: Result<String, &str>| match state {
        Ok(version) => println!("  ok       {name:<14} {version}"),
        Err(advice) => {
            missing += 1;
            println!("  missing  {name:<14} {advice}");
        }
    };
    println!("set-up:");
    line("cargo", version(steps::cargo(root)).ok_or("install a Rust toolchain, see rustup.rs"));
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        line(component, component_version(root, component, subcommand).ok_or("add it: rustup component add rustfmt clippy"));
    }
    line("git", version(Step::new("git", root)).ok_or("the house rules are checked on the files that git knows"));
    optional(
        "cargo-nextest",
        has_nextest(root).then(|| "one process per test".to_owned()),
        "`cargo test` runs the tests instead",
    );
    steps::cargo(root).args(["fetch", "--locked", "--quiet"]).succeed()?;
    println!("  ok       dependencies   fetched as locked");
    let (sandbox, _) = sandbox::prepare(root, Build::Dev)?;
    if let Sandbox::Ready { what } = &sandbox {
        println!("  ok       code sandbox   {what}");
    }
    sandbox.announce()?;
    Ok(if missing == 0 { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn optional(name: &str, found: Option<String>, without: &str) {
    match found {
        Some(version) => println!("  ok       {name:<14} {version}"),
        None => println!("  absent   {name:<14} {without}"),
    }
}

fn version(step: Step) -> Option<String> {
    let text = step.args(["--version"]).read().ok()?;
    text.lines().next().map(str::to_owned)
}

/// Version of a Rust component; asks rustup for it once when it is not there.
fn component_version(root: &Path, component: &str, subcommand: &str) -> Option<String> {
    let ask = || version(steps::cargo(root).args([subcommand]));
    ask().or_else(|| {
        Step::new("rustup", root).args(["component", "add", component]).read().ok()?;
        ask()
    })
}
