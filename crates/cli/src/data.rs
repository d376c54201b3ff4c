//! `traderharness data`: info, check, generate, cache.

use crate::args::{DataCommand, DataOptions};
use crate::fault::Outcome;
use crate::report::print;
use crate::run::pretty;
use crate::source;
use std::path::Path;
use std::process::ExitCode;
use traderharness_ingest::{DatasetReport, LoadOptions, Severity};

pub(crate) fn data(options: &DataOptions) -> Outcome {
    match &options.command {
        DataCommand::Info { path, json } => {
            let dataset = source::open(path.as_deref(), *json)?;
            show(&dataset.report, *json);
            Ok(ExitCode::SUCCESS)
        }
        DataCommand::Check { path, json } => check(path, *json),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn show(report: &DatasetReport, json: bool) {
    print(&if json { pretty(&serde_json::to_value(report).unwrap_or_default()) } else { report.to_string() });
}

fn check(path: &Path, json: bool) -> Outcome {
    let spinner = source::spinner(json, format!("checking {}", path.display()));
    let report = traderharness_ingest::check(path, &LoadOptions::default(), &source::on(&spinner));
    spinner.finish_and_clear();
    show(&report, json);
    Ok(if report.worst() == Some(Severity::Error) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
