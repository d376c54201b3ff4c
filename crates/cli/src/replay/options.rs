//! Options of `traderharness replay`.

use crate::interpreter::InterpreterOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// Run folder or cassette file.
    #[arg(value_name = "CASSETTE")]
    pub(crate) cassette: PathBuf,
    /// Dataset, when it is not where the run found it.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Pack the run was made with, when it was made with one.
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<PathBuf>,
    /// Mask key file, when it is not in the run folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) mask_key: Option<PathBuf>,
    /// First day of the run, when the recording hides its dates and its private/ folder is not there.
    #[arg(long, value_name = "DATE", requires = "end")]
    pub(crate) start: Option<String>,
    /// Last day of the run.
    #[arg(long, value_name = "DATE", requires = "start")]
    pub(crate) end: Option<String>,
    /// Take what the agent's code came to from the recording; without it the code runs again, where there is a Python for it.
    #[arg(long)]
    pub(crate) recorded_code: bool,
    #[command(flatten)]
    pub(crate) interpreter: InterpreterOptions,
    /// Show the day while it replays.
    #[arg(long)]
    pub(crate) show: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
