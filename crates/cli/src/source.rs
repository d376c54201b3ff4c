//! Opens the dataset a command works on, with progress on a terminal.

use crate::fault::{Class, Fault};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use traderharness_ingest::{Dataset, IngestError, LoadOptions, Progress};

/// Opens a dataset, or the bundled pack.
pub(crate) fn open(path: Option<&Path>, quiet: bool) -> Result<Dataset, Fault> {
    let Some(path) = path else { return traderharness_ingest::bundled().map_err(fault) };
    let bar = spinner(quiet, format!("loading {}", path.display()));
    let dataset = traderharness_ingest::load(path, &LoadOptions::default(), &on(&bar));
    bar.finish_and_clear();
    dataset.map_err(fault)
}

/// Shows what ingest reports on a bar.
pub(crate) fn on(bar: &ProgressBar) -> impl Fn(Progress) + Sync + '_ {
    |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(progress.stage);
    }
}

/// A dataset fault with its class and hint.
pub(crate) fn fault(error: IngestError) -> Fault {
    let hint = error.hint();
    let class = if matches!(error, IngestError::Setting { .. }) { Class::Input } else { Class::Environment };
    Fault::new(class, error).hint(hint)
}

/// A spinner on stderr; hidden when quiet or not on a terminal.
pub(crate) fn spinner(quiet: bool, message: String) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}

/// A bar on stderr; hidden when quiet or not on a terminal.
pub(crate) fn bar(quiet: bool, length: u64, message: String) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {eta}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_message(message).with_style(style)
}
