//! `traderharness audit`: searches files, folders, bundles and recorded runs for what a masked run must not tell and no artifact may
//! hold. Must never skip anything without saying so: what cannot be read is a finding.

mod known;
mod runs;
mod walk;

pub(crate) use known::{Allowed, Datasets, secrets_here};
pub(crate) use runs::Runs;

use crate::args::AuditOptions;
use crate::fault::{Class, Fault, Outcome};
use crate::report::print;
use crate::run::pretty;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use traderharness_replay::audit::{Finding, FindingKind, Findings, whole_file};
use walk::{Seen, Walk};

pub(crate) fn audit(options: &AuditOptions) -> Outcome {
    let Looked { clean, told } = look(options)?;
    print(&told);
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::from(Class::Finding as u8) })
}

/// What an audit came to.
pub(crate) struct Looked {
    pub(crate) clean: bool,
    /// The report, as text or as JSON.
    pub(crate) told: String,
}

/// Searches without printing.
pub(crate) fn look(options: &AuditOptions) -> Result<Looked, Fault> {
    let mut seen = Seen::default();
    let mut datasets = Datasets::default();
    let allowed = Allowed { dates: options.allow_dates, entities: options.allow_entities };
    for artifact in &options.artifacts {
        // The argument itself may be a link: whoever names it means what it leads to.
        let meta = std::fs::metadata(artifact).map_err(|e| {
            Fault::new(Class::Environment, e).context(format!("`{}` cannot be read", artifact.display())).hint("check the path")
        })?;
        let runs = Runs::of(artifact);
        let data = options.data.clone().or_else(|| runs.data.clone());
        let known = datasets.of(data.as_deref(), options.json)?;
        let digest = known.digest.clone();
        let rules = known.rules(&runs, allowed, data.iter().cloned().chain([artifact.clone()]));
        let mut walk = Walk::new(&rules, runs.all_permuted(), options.private, &mut seen);
        for (name, other) in runs.datasets.iter().filter(|(_, of)| !allowed.entities && *of != digest) {
            walk.missed(artifact, "other_dataset", &other_dataset(name, other, options.data.is_some()));
        }
        if meta.is_dir() { walk.folder(artifact, 0) } else { walk.file(artifact, &meta) }
    }
    let clean = seen.found.is_clean();
    let told = if options.json { pretty(&report(&seen, &datasets, options)) } else { text(&seen, options) };
    Ok(Looked { clean, told })
}

/// Why a run over a dataset that is not known here was not searched for its names.
pub(crate) fn other_dataset(name: &str, digest: &str, data_given: bool) -> String {
    let hint = if data_given { "leave --data out or pass that dataset" } else { "pass that dataset with --data" };
    format!("the run was recorded over `{name}` ({digest}), whose names and codes are not known here; {hint}")
}

/// A run over a dataset that is not known here.
pub(crate) fn not_known(file: &str, name: &str, digest: &str, data_given: bool) -> Finding {
    whole_file(file, FindingKind::NotScanned, "other_dataset", &other_dataset(name, digest, data_given))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn report(seen: &Seen, datasets: &Datasets, options: &AuditOptions) -> Value {
    let datasets: Vec<Value> = datasets
        .all()
        .map(
            |known| json!({ "name": known.name, "digest": known.digest, "names": known.names.len(), "codes": known.codes.len() }),
        )
        .collect();
    json!({
        "schema_version": 1,
        "clean": seen.found.is_clean(),
        "files": seen.files,
        "bytes": seen.found.bytes,
        "totals": seen.found.totals,
        "findings": seen.found.findings,
        "private_left_out": seen.private,
        "rules": {
            "datasets": datasets,
            "dates": !options.allow_dates,
            "entities": !options.allow_entities,
            "codes_not_told_apart": seen.permuted,
        },
    })
}

/// A line for each finding.
pub(crate) fn lines(found: &Findings) -> String {
    let mut out = String::new();
    for finding in &found.findings {
        let place = match (&finding.pointer, finding.row, &finding.column) {
            (pointer, Some(row), column) => {
                let inside = pointer.as_deref().map(|pointer| format!(" {pointer}")).unwrap_or_default();
                let column = column.as_deref().map(|column| format!(", column {column}")).unwrap_or_default();
                format!("{}: row {row}{column}{inside}", finding.file)
            }
            _ if finding.line == 0 => finding.file.clone(),
            (Some(pointer), ..) => format!("{}:{} {pointer}", finding.file, finding.line),
            (None, ..) => format!("{}:{} byte {}", finding.file, finding.line, finding.offset),
        };
        let _ = writeln!(out, "{place}: {} ({}): {}", finding.kind.name(), finding.detail, finding.excerpt);
    }
    out
}

/// How many of each kind, in words.
pub(crate) fn totals(found: &Findings) -> String {
    let totals: Vec<String> = found.totals.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let listed = found.findings.len() as u64;
    let all: u64 = found.totals.values().sum();
    let more = if all > listed { format!(" ({} not listed)", all - listed) } else { String::new() };
    format!("{}{more}", totals.join(", "))
}

fn text(seen: &Seen, options: &AuditOptions) -> String {
    let mut out = lines(&seen.found);
    for path in &seen.private {
        let _ = writeln!(out, "{path}: private, left out; search it with --private");
    }
    let allowed = match (options.allow_dates, options.allow_entities) {
        (false, false) => "",
        (true, false) => " Dates were allowed.",
        (false, true) => " Names and codes were allowed.",
        (true, true) => " Dates, names and codes were allowed.",
    };
    let permuted = if seen.permuted && !options.allow_entities {
        " Where the mask exchanges codes with each other, a code of the dataset cannot be told from a masked one."
    } else {
        ""
    };
    let (files, bytes) = (seen.files, seen.found.bytes);
    if seen.found.is_clean() {
        let _ = write!(out, "Nothing found in {files} file(s), {bytes} bytes.{allowed}{permuted}");
    } else {
        let _ = write!(out, "Found in {files} file(s), {bytes} bytes: {}.{allowed}{permuted}", totals(&seen.found));
        // Most findings of a first search are what an unmasked run shows by itself.
        let found = |kinds: &[&str]| kinds.iter().any(|kind| seen.found.totals.iter().any(|(name, _)| name == kind));
        let mut shown = Vec::new();
        if found(&["date"]) && !options.allow_dates {
            shown.push("--allow-dates");
        }
        if found(&["code", "name"]) && !options.allow_entities {
            shown.push("--allow-entities");
        }
        if !shown.is_empty() {
            let _ =
                write!(out, "\nA run that did not hide them shows them by itself: {} takes them as no finding.", shown.join(" "));
        }
    }
    out
}
