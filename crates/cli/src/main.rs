//! The `traderharness` command. It reads arguments, opens files, shows progress and prints. It holds no
//! rule of a market or a contract: those live in the crates below it.
//!
//! Exit codes: 0 done, 1 a check found something (a replay that differs, a faulty dataset), 2 bad input (arguments, card, script),
//! 3 the environment (missing or unreadable files, a full disk), 4 a run that stopped before its end.

mod agent;
mod args;
mod audit;
mod bundle;
mod cards;
mod code;
mod compare;
mod contract;
mod data;
mod demo;
mod diff;
mod doctor;
mod export;
mod fault;
mod figures;
mod gate;
mod interpreter;
mod limits;
mod manifest;
mod mcp;
mod measured;
mod memory;
mod migrate;
mod plugins;
mod probe;
mod progress;
mod replay;
mod report;
mod reports;
mod rescore;
mod result;
mod run;
mod sandbox;
mod serve;
mod source;
mod tools;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    // Every command that prints a result takes --json; its failures are then for a machine too.
    let json = std::env::args_os().any(|arg| arg == "--json");
    let outcome = match args.command {
        args::Command::Demo(options) => demo::demo(&options),
        args::Command::Run(options) => run::run(&options),
        args::Command::Replay(options) => replay::replay(&options),
        args::Command::Compare(options) => compare::compare(&options),
        args::Command::Probe(options) => probe::run(&options),
        args::Command::Report(options) => reports::report(&options),
        args::Command::Diff(options) => diff::diff(&options),
        args::Command::Rescore(options) => rescore::rescore(&options),
        args::Command::Bundle(options) => bundle::bundle(&options),
        args::Command::Migrate(options) => migrate::migrate(&options),
        args::Command::Audit(options) => audit::audit(&options),
        args::Command::Export(options) => export::export(&options),
        args::Command::Tools(options) => tools::tools(&options),
        args::Command::Data(options) => data::data(&options),
        args::Command::Gate(options) => gate::gate(&options),
        args::Command::Cards(options) => cards::cards(&options),
        args::Command::Sandbox(options) => sandbox::sandbox(&options),
        args::Command::Serve(options) => serve::serve(&options),
        args::Command::Mcp(options) => mcp::mcp(&options),
        args::Command::Doctor(options) => doctor::doctor(&options),
    };
    match outcome {
        Ok(code) => report::lost_output().map_or(code, |fault| fault.report(json)),
        Err(fault) => fault.report(json),
    }
}
