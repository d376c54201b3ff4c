//! Options of `traderharness serve`.

use crate::args::MaskChoice;
use crate::interpreter::InterpreterOptions;
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serve trading sessions over HTTP.
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(crate) struct ServeOptions {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    /// Address to serve HTTP on, `127.0.0.1:8750`; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", required = true)]
    pub(crate) http: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) desk: DeskOptions,
    /// Name by which clients may ask for this server, beside the loopback ones; needed where other machines reach the address.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Print the drawn token, in place of the path of its file.
    #[arg(long, conflicts_with = "config")]
    pub(crate) print_token: bool,
    /// Write one JSON line per answered request to stderr.
    #[arg(long)]
    pub(crate) access_log: bool,
    /// Print where it serves as one JSON line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What sessions are made of, for every door.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeskOptions {
    /// Configuration of the server, YAML or JSON: callers, grants, profiles, limits. Without it one caller may do everything.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["card", "start", "end", "mask"])]
    pub(crate) config: Option<PathBuf>,
    /// Folder of everything that survives the process: sessions, answers under their keys, the token. Without it nothing does.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Dataset, a directory or a cache file, as PATH or NAME=PATH; may be repeated. Without it the bundled real pack is used.
    #[arg(long, value_name = "[NAME=]PATH")]
    pub(crate) data: Vec<String>,
    /// Card of the agent, YAML or JSON. Without it the built-in card is used.
    #[arg(long, value_name = "FILE")]
    pub(crate) card: Option<PathBuf>,
    /// First day of a session, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) start: Option<String>,
    /// Last day of a session; the first when left out.
    #[arg(long, value_name = "DATE", requires = "start")]
    pub(crate) end: Option<String>,
    /// What is hidden from the agent.
    #[arg(long, value_enum, default_value = "all")]
    pub(crate) mask: MaskChoice,
    /// Check every result against its output schema.
    #[arg(long)]
    pub(crate) check_output: bool,
    #[command(flatten)]
    pub(crate) interpreter: InterpreterOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Check a server configuration: every faulty field with its path.
    Check(CheckOptions),
    /// Print the JSON Schema of a server configuration.
    Schema,
    /// Draw a token, and print it with its digest for the configuration.
    Token(TokenOptions),
    /// Write the run folder of a session that a keep folder holds and that has ended, for `report`, `replay` and all that reads a run. For
    /// a folder that no server has open; the other options are those of its server.
    Record(Box<RecordOptions>),
    /// Remove from a keep folder what is kept longer than so many days: sessions that ended, with their records, answers and files, and
    /// lines of the audit log, which are moved to its audit.jsonl. A server does so by itself; this is for a folder that none serves.
    Prune(PruneOptions),
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Configuration, YAML or JSON.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenOptions {
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    /// Session, `ses_...`.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Folder that it is written to; a new one.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: PathBuf,
    /// Whose session it is; needed where the configuration has several callers.
    #[arg(long, value_name = "ID", requires = "config")]
    pub(crate) caller: Option<String>,
    #[command(flatten)]
    pub(crate) desk: DeskOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PruneOptions {
    /// Folder of a server that does not run.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: PathBuf,
    /// Days after its end that a session stays.
    #[arg(long, value_name = "DAYS", default_value_t = traderharness_serve::config::KeepLimits::default().days,
        value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(crate) older_than: u32,
    /// Change nothing; say what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the counts as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
