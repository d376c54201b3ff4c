//! `traderharness export`: recorded runs as rows to train on. Must write nothing that the leak audit has not seen, unless it was told
//! to, and the file is there as a whole or not at all.

mod out;
mod source;

use crate::audit::{self, Allowed, Datasets, Runs, secrets_here};
use crate::fault::{Class, Fault, Outcome};
use crate::report::print;
use crate::run::pretty;
use clap::{Args, Subcommand, ValueEnum};
use out::{Draft, Format, Table};
use serde_json::json;
use source::Tape;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use traderharness_replay::audit::{Auditor, Finding, FindingKind, Findings, Kind, Rules};
use traderharness_replay::export::{self, ExportError, Facts, Recorded};
use traderharness_replay::redact::Redactor;

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(Debug, Subcommand)]
enum ExportCommand {
    /// Conversations in OpenAI chat shape with their tools, for supervised training.
    Sft(SftOptions),
    /// One row per model call with observation, action and reward, for training by reward.
    Rl(RlOptions),
    /// Print the JSON Schema of a row.
    Schema(SchemaOptions),
}

#[derive(Debug, Args)]
struct SftOptions {
    #[command(flatten)]
    common: CommonOptions,
    /// What a row is: one answer with all that was sent for it, or the conversation of one day.
    #[arg(long, value_enum, default_value_t = Per::Turn)]
    per: Per,
}

#[derive(Debug, Args)]
struct RlOptions {
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
struct SchemaOptions {
    /// Which rows.
    #[arg(value_enum)]
    of: Table,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Per {
    Turn,
    Day,
}

#[derive(Debug, Args)]
struct CommonOptions {
    /// Run folders, folders that `compare --record` wrote, bundles, cassettes.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// File to write: .jsonl or .parquet. One that is there is never overwritten.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Dataset whose names and codes no row may hold. Without it that of each run folder, else the bundled real pack.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Export runs too that showed dates, codes or names: a model trained on them knows the future of the window.
    #[arg(long)]
    allow_unmasked: bool,
    /// Do not search the rows for leaks. Credentials are taken out all the same.
    #[arg(long)]
    skip_audit: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn export(options: &ExportOptions) -> Outcome {
    match &options.command {
        ExportCommand::Sft(options) => {
            let per = match options.per {
                Per::Turn => export::Per::Turn,
                Per::Day => export::Per::Day,
            };
            write(&options.common, Table::Sft, per)
        }
        ExportCommand::Rl(options) => write(&options.common, Table::Rl, export::Per::default()),
        ExportCommand::Schema(options) => {
            print(pretty(&options.of.schema()).trim_end());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A run that was written, and where its rows stand.
struct Written {
    name: String,
    bytes: std::ops::Range<u64>,
    first_row: u64,
    facts: Facts,
    data: Option<PathBuf>,
    known: Runs,
}

fn write(options: &CommonOptions, table: Table, per: export::Per) -> Outcome {
    let format = Format::of(&options.out)?;
    let tapes = source::tapes(&options.runs)?;
    let mut draft = Draft::beside(&options.out)?;
    let bar = crate::source::bar(options.json, tapes.len() as u64, "exporting".to_owned());
    let mut written: Vec<Written> = vec![];
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let (mut redacted, mut incomplete) = (0_u64, vec![]);
    for tape in &tapes {
        let run = rows(tape, options, table, per, &mut draft, &mut seen, &mut redacted, &mut incomplete)?;
        written.push(run);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let rows = draft.rows;
    if rows == 0 {
        return Err(Fault::text(Class::Input, "the runs hold no answer of a model; there is nothing to export")
            .hint("export what `run` or `compare` recorded; of a session over MCP nobody here knows what the model was sent"));
    }
    if !options.skip_audit {
        let found = search(&mut draft, &written, options)?;
        if !found.is_clean() {
            refuse(&found, options);
            return Ok(ExitCode::from(Class::Finding as u8));
        }
    }
    let bytes = draft.finish(&options.out, format, table)?;
    let told = json!({
        "file": options.out.display().to_string(),
        "format": format.name(),
        "table": table.name(),
        "rows": rows,
        "runs": written.len(),
        "bytes": bytes,
        "audited": !options.skip_audit,
        "redacted_rows": redacted,
        "incomplete_runs": incomplete,
    });
    if options.json {
        print(pretty(&told).trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{rows} row(s) of {} run(s) in {}, {bytes} bytes.", written.len(), options.out.display());
    text.push_str(if options.skip_audit { " They were not searched for leaks." } else { " The leak audit found nothing." });
    if redacted > 0 {
        let _ = write!(
            text,
            "\n{redacted} row(s) held what looked like a credential; it was taken out, and `redacted` is true there."
        );
    }
    for run in incomplete {
        let _ = write!(text, "\n{run} did not come to its end: its last rows are `truncated`, its return is null.");
    }
    print(&text);
    Ok(ExitCode::SUCCESS)
}

/// Writes the rows of one run.
#[expect(clippy::too_many_arguments, reason = "the counts of one export, each with its own owner")]
fn rows(
    tape: &Tape,
    options: &CommonOptions,
    table: Table,
    per: export::Per,
    draft: &mut Draft,
    seen: &mut BTreeMap<String, u64>,
    redacted: &mut u64,
    incomplete: &mut Vec<String>,
) -> Result<Written, Fault> {
    let loaded = tape.load()?;
    // The same recording twice is two episodes.
    let count = seen.entry(loaded.id.clone()).and_modify(|count| *count += 1).or_insert(1);
    let id = if *count == 1 { loaded.id.clone() } else { format!("{}-{count}", loaded.id) };
    let recorded = Recorded::new(id, &loaded.cassette, &loaded.entries);
    let facts = recorded.facts().clone();
    if !facts.is_masked() && !options.allow_unmasked {
        let shows = match (facts.masked_dates, facts.mask_style.is_some()) {
            (true, _) => "codes and names",
            (_, true) => "dates",
            _ => "dates, codes and names",
        };
        let message = format!("the run in `{}` showed {shows}", tape.name);
        return Err(
            Fault::text(Class::Input, message).hint("record it with --mask all, or pass --allow-unmasked to export it as it is")
        );
    }
    if !recorded.is_complete() {
        incomplete.push(tape.name.clone());
    }
    let known = Runs::of(&tape.folder);
    let redactor = Redactor::new().with_secrets(known.keys.iter().cloned().chain(secrets_here()));
    let (start, first_row) = (draft.bytes, draft.rows);
    let mut put = |row: serde_json::Result<serde_json::Value>| -> Result<(), Stop> {
        let row = row.map_err(|e| Fault::new(Class::Environment, e))?;
        let (row, changed) = export::redacted(row, &redactor);
        *redacted += u64::from(changed);
        Ok(draft.push(&row)?)
    };
    let done = match table {
        Table::Sft => export::sft(&recorded, per, |row| put(serde_json::to_value(row))),
        Table::Rl => export::rl(&recorded, |row| put(serde_json::to_value(row))),
    };
    match done {
        Ok(()) => {}
        Err(Stop::Fault(fault)) => return Err(fault),
        Err(Stop::Export(error)) => {
            let class = if matches!(error, ExportError::Recording(_)) { Class::Finding } else { Class::Input };
            let hint = match &error {
                ExportError::NoTimeline => "pass the whole run folder, or export with --per turn",
                ExportError::NoRequest { .. } => "only recordings that keep their requests can be exported",
                _ => "look at the recording with: traderharness replay RUN --show",
            };
            return Err(Fault::new(class, error).context(format!("`{}` cannot be exported", tape.name)).hint(hint));
        }
    }
    let data = options.data.clone().or_else(|| known.data.clone());
    Ok(Written { name: tape.name.clone(), bytes: start..draft.bytes, first_row, facts, data, known })
}

/// Why the rows of a run end early.
enum Stop {
    Fault(Fault),
    Export(ExportError),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<ExportError> for Stop {
    fn from(error: ExportError) -> Self {
        Self::Export(error)
    }
}

/// Searches every row as the run it is of must be searched. Runs that ask for the same are searched alike, so that many runs over one
/// dataset cost one set of rules.
fn search(draft: &mut Draft, written: &[Written], options: &CommonOptions) -> Result<Findings, Fault> {
    let mut datasets = Datasets::default();
    let mut all = Findings::default();
    type Alike = (Option<PathBuf>, Allowed, bool);
    let mut groups: BTreeMap<Alike, Vec<&Written>> = BTreeMap::new();
    for run in written {
        let allowed = Allowed { dates: !run.facts.masked_dates, entities: run.facts.mask_style.is_none() };
        let permuted = run.facts.mask_style.as_deref() == Some("permutation");
        groups.entry((run.data.clone(), allowed, permuted)).or_default().push(run);
    }
    let bar = crate::source::bar(options.json, written.len() as u64, "searching".to_owned());
    for ((data, allowed, permuted), runs) in groups {
        let known = datasets.of(data.as_deref(), options.json)?;
        let mut together = Runs::default();
        for run in &runs {
            together.keys.extend(run.known.keys.iter().cloned());
            together.models.insert(run.facts.model.clone());
        }
        let folders = runs.iter().map(|run| PathBuf::from(&run.name)).chain(data.clone());
        let folders: BTreeSet<PathBuf> = folders.collect();
        let rules = Rules { permuted, ..known.rules(&together, allowed, folders) };
        let auditor = Auditor::new(&rules);
        for run in runs {
            let facts = &run.facts;
            let other = facts.dataset_sha256.as_ref().is_none_or(|digest| *digest != known.digest);
            if other && !allowed.entities {
                let digest = facts.dataset_sha256.as_deref().unwrap_or("no digest");
                let finding = audit::not_known(&run.name, &facts.dataset, digest, options.data.is_some());
                all.add(|| finding, FindingKind::NotScanned, u64::MAX);
            }
            let mut found = auditor.scan(&run.name, draft.part(run.bytes.clone())?, Kind::Jsonl);
            found.findings.iter_mut().for_each(|finding| in_rows(finding, run.first_row));
            all.append(found);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(all)
}

/// Lines of the draft are rows of the export.
fn in_rows(finding: &mut Finding, first: u64) {
    if finding.line > 0 {
        finding.row = Some(first + finding.line);
        (finding.line, finding.offset) = (0, 0);
    }
}

/// Says what was found; nothing was written.
fn refuse(found: &Findings, options: &CommonOptions) {
    let why = "Nothing was written: rows hold what they must not. Mend the runs, or pass --skip-audit to write them as they are.";
    if options.json {
        let told = json!({ "written": false, "totals": found.totals, "findings": found.findings, "hint": why });
        return print(pretty(&told).trim_end());
    }
    print(&format!("{}Found: {}.\n{why}", audit::lines(found), audit::totals(found)));
}
