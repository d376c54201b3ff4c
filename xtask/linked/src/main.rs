//! Workspace tasks that link the house: catalog, audit and bench. Started by `cargo xtask`; knows no data of its own and never
//! changes a file outside `docs` and `target`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its terminal")]

mod audit;
mod bench;
mod catalog;
mod load;
mod names;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Writes docs/catalog from the contracts of the tools, docs/rules.md from the rule table, and the schemas of cards and manifests.
    Catalog {
        /// Changes nothing; fails when a page is stale.
        #[arg(long)]
        check: bool,
    },
    /// Audits the contracts.
    Audit,
    /// Measures the rows of the design page.
    Bench {
        /// Prints the rows as JSON.
        #[arg(long)]
        json: bool,
        /// Only rows whose name has this in it.
        filter: Option<String>,
    },
    /// Sends requests to a served process at a fixed rate.
    Load(load::Plan),
    /// Prints the number of one probe; started by `bench` for what needs a process of its own.
    #[command(hide = true)]
    BenchProbe {
        /// Name of the probe.
        name: String,
        /// Dataset that `bench` made.
        dataset: PathBuf,
    },
}

fn main() -> ExitCode {
    let root = workspace_root();
    let code = match Command::parse().task {
        Task::Catalog { check } => catalog::run(&root, check),
        Task::Audit => audit::run(&root),
        Task::Bench { json, filter } => bench::run(&root, json, filter.as_deref()),
        Task::Load(plan) => load::command().and_then(|command| load::run(&command, &plan)),
        Task::BenchProbe { name, dataset } => bench::probe(&name, &dataset),
    };
    code.unwrap_or_else(|fault| {
        eprintln!("error: {fault:#}");
        ExitCode::from(3)
    })
}

/// Root of the workspace, two folders up from this package.
fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}
