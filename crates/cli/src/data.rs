//! `traderharness data`: info, check, generate, cache.

use crate::args::{DataCommand, DataOptions};
use crate::fault::Outcome;
use crate::report::print;
use crate::run::pretty;
use crate::source;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use traderharness_ingest::{DatasetReport, GenerateConfig, IngestError, LoadOptions, Severity};

pub(crate) fn data(options: &DataOptions) -> Outcome {
    match &options.command {
        DataCommand::Info { path, json } => {
            let dataset = source::open(path.as_deref(), *json)?;
            show(&dataset.report, *json);
            Ok(ExitCode::SUCCESS)
        }
        DataCommand::Check { path, json } => check(path, *json),
        DataCommand::Generate { out, stocks, days, minute_days, seed, json } => {
            let config = GenerateConfig {
                stocks: *stocks,
                days: *days,
                minute_days: *minute_days,
                seed: *seed,
                ..GenerateConfig::default()
            };
            generate(out, &config, *json)
        }
        DataCommand::Cache { path, out, json } => cache(path, out, *json),
    }
}

fn show(report: &DatasetReport, json: bool) {
    print(&if json { pretty(&serde_json::to_value(report).unwrap_or_default()) } else { report.to_string() });
}

fn check(path: &Path, json: bool) -> Outcome {
    // A path without anything is no dataset with a fault.
    if !path.exists() {
        return Err(source::fault(IngestError::NotFound { path: path.to_path_buf() }));
    }
    let spinner = source::spinner(json, format!("checking {}", path.display()));
    let report = traderharness_ingest::check(path, &LoadOptions::default(), &source::on(&spinner));
    spinner.finish_and_clear();
    show(&report, json);
    Ok(if report.worst() == Some(Severity::Error) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn generate(out: &Path, config: &GenerateConfig, json: bool) -> Outcome {
    let bar = source::bar(json, u64::from(config.stocks), "generating".to_owned());
    let outcome = traderharness_ingest::generate(config, out, &source::on(&bar));
    bar.finish_and_clear();
    let made = outcome.map_err(source::fault)?;
    if json {
        print(&pretty(&json!({
            "path": out, "name": made.name, "synthetic": true, "first": made.first.to_string(), "last": made.last.to_string(),
            "tradable_from": made.tradable_from.map(|day| day.to_string()), "daily_rows": made.daily_rows,
        })));
    } else {
        let tradable = match made.tradable_from {
            Some(day) => format!("Days that can be traded, with 5-minute bars: --start {day} --end {}.", made.last),
            None => "No day has 5-minute bars, so nothing can be traded.".to_owned(),
        };
        print(&format!(
            "Wrote {} ({} to {}, {} daily bars). It is SYNTHETIC and says so in every artifact.\n{}\nUse it with: --data {}",
            made.name,
            made.first,
            made.last,
            made.daily_rows,
            tradable,
            out.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn cache(path: &Path, out: &Path, json: bool) -> Outcome {
    let bar = source::bar(json, 1, format!("caching {}", path.display()));
    let outcome = traderharness_ingest::build_cache(path, out, &LoadOptions::default(), &source::on(&bar));
    bar.finish_and_clear();
    let report = outcome.map_err(source::fault)?;
    if json {
        print(&pretty(&json!({ "path": out, "digest": report.digest })));
    } else {
        print(&format!("Wrote {0}. Use it with: --data {0}", out.display()));
    }
    Ok(ExitCode::SUCCESS)
}
