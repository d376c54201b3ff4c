//! Command line of `traderharness`.

use crate::agent::AgentOptions;
use crate::contract::ContractOptions;
use crate::interpreter::InterpreterOptions;
use crate::limits::LimitOptions;
use crate::probe::ProbeOptions;
use crate::replay::ReplayOptions;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// A trading environment for LLM agents that cannot leak the future.
#[derive(Debug, Parser)]
#[command(
    name = "traderharness",
    version,
    after_help = "Exit codes: 0 done, 1 a check found something, 2 bad input, 3 environment, 4 a run that stopped.\nStart with: traderharness demo"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay the bundled one-day recording over the bundled real data and show the day.
    Demo(DemoOptions),
    /// Run an agent over trading days: a model, a program of yours, a rule-based baseline or a script.
    Run(RunOptions),
    /// Replay a recording and check that every request is identical.
    Replay(ReplayOptions),
    /// Play several agents over the same days, each with an account of its own, beside rule-based baselines.
    Compare(CompareOptions),
    /// Measure what masking is for: play masked and unmasked, and ask the model to name firms and month.
    Probe(Box<ProbeOptions>),
    /// Show results of recorded runs, side by side, and hold them against their recordings.
    Report(ReportOptions),
    /// Say why two recorded runs differ: settings, data, tools, the model, the machine or a fault, and what came of it.
    Diff(crate::diff::DiffOptions),
    /// Compute figures, result and leak audit of a recording again, without a model, and hold them against what was stored.
    Rescore(Box<crate::rescore::RescoreOptions>),
    /// Put recorded runs into one folder that can be handed on and replayed, or look at a recording without playing it.
    Bundle(crate::bundle::BundleOptions),
    /// Rewrite a recording of an older schema in the schema of today, proven to be the same.
    Migrate(crate::migrate::MigrateOptions),
    /// Search artifacts for what must not be in them: real names, codes and dates, keys, host paths, unfilled placeholders.
    Audit(AuditOptions),
    /// Write recorded runs as rows to train on: conversations, or steps with rewards; masked and searched for leaks first.
    Export(crate::export::ExportOptions),
    /// Show the contract of all tools, or of one.
    Tools(ToolsOptions),
    /// Look at, make or check datasets.
    Data(DataOptions),
    /// Look at the audit log of an order gate.
    Gate(GateOptions),
    /// Check card files, or show the schema they follow.
    Cards(CardsOptions),
    /// Run Python the way an agent's code runs.
    Sandbox(SandboxOptions),
    /// Serve trading sessions to agents of your own, over HTTP and MCP.
    Serve(crate::serve::ServeOptions),
    /// Serve one MCP client over standard input and output: Claude Code, Codex, any other.
    Mcp(Box<crate::mcp::McpOptions>),
    /// Say whether agent code can run here, how well it is confined, and how to get what is missing.
    Doctor(DoctorOptions),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DemoOptions {
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CardsOptions {
    #[command(subcommand)]
    pub(crate) command: CardsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CardsCommand {
    /// Check cards: every faulty field with its path, and tools that do not exist.
    Check(CardsCheckOptions),
    /// Make a card of one of the Python implementation, and say what became of each field.
    Convert(crate::cards::ConvertOptions),
    /// Print the JSON Schema of a card.
    Schema,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CardsCheckOptions {
    /// Card files, YAML or JSON.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a run hides from the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MaskChoice {
    /// Dates, codes and names.
    All,
    /// Dates only.
    Dates,
    /// Codes and names only.
    Entities,
    /// Nothing.
    None,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunOptions {
    /// Dataset: a directory in the documented layout or a cache file. Without it the bundled real pack is used.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// First day, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) start: String,
    /// Last day, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) end: String,
    /// Card of the agent, YAML or JSON. Without it the built-in card is used.
    #[arg(long, visible_alias = "agent", value_name = "FILE")]
    pub(crate) card: Option<PathBuf>,
    /// Manifest of plug-in tools, YAML or JSON: programs and MCP servers whose tools the agent gets beside ours.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Offer plug-in tools that change something outside of the run too.
    #[arg(long, requires = "tools")]
    pub(crate) allow_effects: bool,
    /// Keep cassette, trajectory, summary and result in this new folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Go on with the killed or stopped run in the --record folder; give the other options as they were, limits as you like.
    #[arg(long, requires = "record")]
    pub(crate) resume: bool,
    /// Mandate of an order gate, YAML or JSON: every order goes through the gate (docs/gate.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) gate: Option<PathBuf>,
    /// Folder of the gate's HALT files, counter and audit log. Without it private/gate of the run folder.
    #[arg(long, value_name = "DIR", requires = "gate")]
    pub(crate) gate_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) contract: ContractOptions,
    /// What is hidden from the agent.
    #[arg(long, value_enum, default_value = "all")]
    pub(crate) mask: MaskChoice,
    /// File with the mask key of an earlier run (64 hex digits, or private/run.json of a run); without it a new secret is drawn.
    #[arg(long, value_name = "FILE")]
    pub(crate) mask_key: Option<PathBuf>,
    /// Check every result against its output schema.
    #[arg(long)]
    pub(crate) check_output: bool,
    /// Folder of files that runs share, for cards that say `workspace: shared`.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Refuse the run where the kernel lacks a layer that confines the agent's code.
    #[arg(long)]
    pub(crate) strict_sandbox: bool,
    #[command(flatten)]
    pub(crate) interpreter: InterpreterOptions,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) agent: AgentOptions,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompareOptions {
    /// What is compared, YAML or JSON (docs/running.md); options given here win over it.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: Option<PathBuf>,
    /// Card of an agent; may come several times. All are played by what --script, --baseline, --base-url or --pipe names.
    #[arg(long, visible_alias = "agent", value_name = "FILE")]
    pub(crate) card: Vec<PathBuf>,
    /// First day, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) start: Option<String>,
    /// Last day, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) end: Option<String>,
    /// Dataset: a directory in the documented layout or a cache file. Without it the bundled real pack is used.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// New folder: each agent is recorded in a folder of its own in it, and compare.json beside them.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: PathBuf,
    /// What is hidden from the agents [default: all].
    #[arg(long, value_enum)]
    pub(crate) mask: Option<MaskChoice>,
    /// File with the mask key (64 hex digits, or private/run.json of a run); without it a new secret is drawn.
    #[arg(long, value_name = "FILE")]
    pub(crate) mask_key: Option<PathBuf>,
    /// Play everything under so many mask keys, made from the first one [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) seeds: Option<u32>,
    /// Leave out buy-and-hold, moving-average and random.
    #[arg(long)]
    pub(crate) no_baselines: bool,
    #[command(flatten)]
    pub(crate) contract: ContractOptions,
    #[command(flatten)]
    pub(crate) interpreter: InterpreterOptions,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) agent: AgentOptions,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReportOptions {
    /// Run folders.
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AuditOptions {
    /// Files, folders, run folders and bundles. JSON, JSONL, HTML, text, Parquet and .zst of these are searched; anything else is
    /// reported as not scanned.
    #[arg(required = true, value_name = "ARTIFACT")]
    pub(crate) artifacts: Vec<PathBuf>,
    /// Dataset whose names and codes are looked for. Without it that of the run folder, else the bundled real pack.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Absolute dates are no finding: the run did not hide them.
    #[arg(long)]
    pub(crate) allow_dates: bool,
    /// Names and codes are no finding: the run did not hide them.
    #[arg(long)]
    pub(crate) allow_entities: bool,
    /// Search private/ folders too.
    #[arg(long)]
    pub(crate) private: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ToolsOptions {
    /// Tool to show; all are listed without it.
    pub(crate) name: Option<String>,
    /// Card under which contracts are shown: what it demands of orders stands in their schemas.
    #[arg(long, value_name = "FILE")]
    pub(crate) card: Option<PathBuf>,
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GateOptions {
    #[command(subcommand)]
    pub(crate) command: GateCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GateCommand {
    /// Check every hash of an audit log; exit code 1 when it is broken, with the first break.
    Verify {
        /// Audit log, audit.jsonl of a channel.
        audit: PathBuf,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DataOptions {
    #[command(subcommand)]
    pub(crate) command: DataCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Tables, ranges and faults of a dataset; of the bundled pack without a path.
    Info {
        /// Dataset directory or cache file.
        path: Option<PathBuf>,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check a dataset; exit code 1 when it has errors.
    Check {
        /// Dataset directory or cache file.
        path: PathBuf,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a synthetic market: every table, market rules inside, labelled synthetic.
    Generate {
        /// New folder to write.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Number of stocks.
        #[arg(long, default_value_t = 300)]
        stocks: u32,
        /// Trading days.
        #[arg(long, default_value_t = 250)]
        days: u32,
        /// Last days that have 5-minute bars.
        #[arg(long, default_value_t = 5)]
        minute_days: u32,
        /// Seed; the same seed writes the same market.
        #[arg(long, default_value_t = 7)]
        seed: u64,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a dataset as one cache file that loads many times faster; pass it to --data.
    Cache {
        /// Dataset directory.
        path: PathBuf,
        /// Cache file to write.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SandboxOptions {
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Run a file exactly as an agent's execute_code call would and show the answer; exit code 1 when the call failed.
    Run(SandboxRunOptions),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SandboxRunOptions {
    /// Python file; `-` reads it from the standard input.
    pub(crate) file: PathBuf,
    /// Seconds after which the code is stopped, 1 to 60; the card may set less.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(crate) timeout: Option<u32>,
    /// Dataset: a directory in the documented layout or a cache file. Without it the bundled real pack is used.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Day of the clock, YYYY-MM-DD; without it the last trading day of the dataset.
    #[arg(long, value_name = "DATE")]
    pub(crate) date: Option<String>,
    /// Decision point of the clock: pre_market, open_1, open_2, close_1 or close_2.
    #[arg(long, value_name = "POINT", default_value = "open_1")]
    pub(crate) point: String,
    /// Card of the agent, YAML or JSON. Without it the built-in card is used.
    #[arg(long, value_name = "FILE")]
    pub(crate) card: Option<PathBuf>,
    /// What is hidden from the code, as from an agent.
    #[arg(long, value_enum, default_value = "all")]
    pub(crate) mask: MaskChoice,
    /// File with a mask key (64 hex digits, or private/run.json of a run), for the same codes as in an earlier run; without it a new secret is drawn.
    #[arg(long, value_name = "FILE")]
    pub(crate) mask_key: Option<PathBuf>,
    /// Folder whose files the code finds and where those that it writes are kept, if the call succeeds. Without it none are kept.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Refuse to run where the kernel lacks a layer of confinement.
    #[arg(long)]
    pub(crate) strict_sandbox: bool,
    #[command(flatten)]
    pub(crate) interpreter: InterpreterOptions,
    /// Print the envelope as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorOptions {
    #[command(flatten)]
    pub(crate) interpreter: InterpreterOptions,
    /// A layer of confinement that the kernel lacks is a finding too (exit code 1).
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
