//! Workspace tasks: set-up, demo, the test suite and the rules of the house.
//!
//! This program links nothing of the house, so that it starts while a crate does not compile; what needs the house's own types is
//! in `xtask/linked` and runs as a command of its own. It never changes a source file, except `catalog`, which says what it wrote.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its terminal")]

mod cassettes;
mod finding;
mod layers;
mod sandbox;
mod setup;
mod steps;
mod suite;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Tasks of the workspace. Start here: `cargo xtask demo`, then `cargo xtask test`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Checks the tools that the other tasks need, adds missing Rust components and makes the Python environment of the code sandbox.
    Setup,
    /// Builds the `traderharness` command and runs its demo.
    Demo {
        /// Passed on to `traderharness demo`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Runs every test of the workspace, doctests included.
    Test {
        /// Also runs the slow suites (sets TRADERHARNESS_DEEP=1).
        #[arg(long)]
        deep: bool,
        /// Only tests whose name has this in it; leaves out the doctests.
        filter: Option<String>,
    },
    /// Checks the dependency table, the manifests and the house rules.
    Layers {
        /// Prints the findings as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Checks the house rules that no linter knows; part of `layers`.
    Tidy {
        /// Prints the findings as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Writes docs/catalog from the contracts of the tools; with --check only says whether it is current.
    Catalog {
        /// Changes nothing; fails when a page is stale.
        #[arg(long)]
        check: bool,
    },
    /// Makes the bundled recordings, one for each contract version; with --check only says which are stale.
    Cassettes {
        /// Changes nothing; fails when a recording is stale.
        #[arg(long)]
        check: bool,
        /// Replaces the frozen recordings of v1 to v4, too: recordings made under them elsewhere are given up.
        #[arg(long, conflicts_with = "check")]
        refreeze: bool,
    },
    /// Audits the contracts: definitions, catalog parity, generated pages, snapshots.
    Audit,
    /// Measures the rows of the design page in a release build.
    Bench {
        /// Prints the rows as JSON.
        #[arg(long)]
        json: bool,
        /// Only rows whose name has this in it.
        filter: Option<String>,
    },
    /// Serves a generated market in a release build and sends it requests at a fixed rate: latencies, errors, memory.
    Load {
        /// Passed on: --sessions N, --rate N, --seconds N, --requests N, --tool NAME, --json.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Runs what the continuous integration runs: `.ci/run`.
    Ci,
}

fn main() -> ExitCode {
    match run(Command::parse().task) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("error: {fault:#}");
            ExitCode::from(3)
        }
    }
}

/// Exit codes: 0 all well, 1 a finding or a failed step, 2 usage (clap), 3 the environment.
fn run(task: Task) -> anyhow::Result<ExitCode> {
    let root = steps::workspace_root();
    match task {
        Task::Setup => setup::run(&root),
        Task::Demo { args } => {
            let command = command(&root)?;
            steps::Step::new(command, &root).args(["demo"]).args(args).code()
        }
        Task::Test { deep, filter } => suite::run(&root, deep, filter.as_deref()),
        Task::Layers { json } => finding::report("layers", layers::check(&root)?, json),
        Task::Tidy { json } => finding::report("tidy", tidy::check(&root)?, json),
        Task::Catalog { check } => linked(&root, false, "catalog").flag("--check", check).code(),
        Task::Cassettes { check, refreeze } => cassettes::run(&root, check, refreeze),
        Task::Audit => linked(&root, false, "audit").code(),
        Task::Bench { json, filter } => {
            command(&root)?; // one row times the whole command
            linked(&root, true, "bench").flag("--json", json).args(filter).code()
        }
        Task::Load { args } => {
            command(&root)?; // the served process
            linked(&root, true, "load").args(args).code()
        }
        Task::Ci => steps::Step::new("bash", &root).args([".ci/run"]).code(),
    }
}

/// Builds the command and the sandbox in release and returns the command's executable.
fn command(root: &std::path::Path) -> anyhow::Result<std::path::PathBuf> {
    let (sandbox, command) = sandbox::prepare(root, sandbox::Build::Release)?;
    sandbox.announce()?;
    command.ok_or_else(|| anyhow::anyhow!("cargo built no `traderharness`"))
}

/// A task of `xtask/linked`.
fn linked(root: &std::path::Path, release: bool, task: &str) -> steps::Step {
    let cargo = steps::cargo(root).args(["run", "--quiet", "--locked", "--package", "xtask-linked"]);
    cargo.flag("--release", release).args(["--", task])
}
