//! Options of `traderharness replay`.

use crate::args::MaskChoice;
use crate::fault::{Class, Fault};
use crate::interpreter::InterpreterOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// Run folder, cassette file or bundle.
    #[arg(value_name = "RECORDING")]
    pub(crate) cassette: PathBuf,
    #[command(flatten)]
    pub(crate) set_up: SetUpOptions,
    /// Stop after so many requests of each run; what comes after them is not looked at.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) until: Option<u64>,
    /// Where a request differs, show the first difference with context.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Of a bundle, replay this agent alone.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) foreign: ForeignOptions,
    /// Show the day while it replays.
    #[arg(long)]
    pub(crate) show: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a recording of the Python implementation needs and does not hold.
#[derive(Debug, Clone, Args)]
pub(crate) struct ForeignOptions {
    /// Card of the run, for a recording of the Python implementation that does not hold it whole; --start, --end and mostly --pack have
    /// to be given too.
    #[arg(long, value_name = "FILE")]
    pub(crate) card: Option<PathBuf>,
    /// What that run hid; without it what its bundle says, else all.
    #[arg(long, value_enum)]
    pub(crate) mask: Option<MaskChoice>,
    /// Seed of its entity mask.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) mask_seed: Option<i64>,
}

impl ForeignOptions {
    /// Refuses these options for a recording of this program, which would not obey them.
    ///
    /// # Errors
    /// Naming the option.
    pub(crate) fn not_for_ours(&self) -> Result<(), Fault> {
        let (option, held) = match self {
            Self { card: Some(_), .. } => ("--card", "card"),
            Self { mask: Some(_), .. } => ("--mask", "masks"),
            Self { mask_seed: Some(_), .. } => ("--mask-seed", "masks"),
            _ => return Ok(()),
        };
        let what = format!("{option} is for recordings of the Python implementation; this one holds its {held}");
        Err(Fault::text(Class::Input, what))
    }
}

/// What a recording needs to be played again and does not hold.
#[derive(Debug, Clone, Args)]
pub(crate) struct SetUpOptions {
    /// Dataset, when it is not where the run found it.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Pack the run was made with, when it was made with one.
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<PathBuf>,
    /// Mask key, when it is not beside the recording: the private/run.json of the run, or a file with its 64 hex digits. May come several
    /// times for a bundle of runs with several keys.
    #[arg(long, value_name = "FILE")]
    pub(crate) mask_key: Vec<PathBuf>,
    /// First day of the run, when the recording hides its dates and neither its private/ folder nor the run.json of it is given.
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
}
