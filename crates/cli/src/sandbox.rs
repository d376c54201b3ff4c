//! `traderharness sandbox run`: a Python file through the same door as an agent's `execute_code` call, for whoever writes code for an
//! agent or wants to know why one failed. Nothing here runs code or decides what it may see: the session does.
//!
//! Exit codes: 0 the call succeeded, 1 it failed, 2 bad input, 3 the sandbox or a file is not there.

use crate::args::{SandboxCommand, SandboxOptions, SandboxRunOptions};
use crate::fault::{Class, Fault, Outcome};
use crate::manifest::{Manifest, new_key, read_key};
use crate::report::print;
use crate::run::{pretty, read_card};
use crate::source;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use traderharness_harness::sandbox::Sandbox;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{CallReport, Card, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_market::{Day, DecisionPoint, Mask, MaskConfig, MaskStyle, Store};
use traderharness_sandbox::lookup::Found;
use traderharness_sandbox::{Pool, Workspace, WorkspaceError};

/// The tool that agents run code with.
const TOOL: &str = "execute_code";
/// Most of a file that is read: far more than the tool takes, so that its own message on the length is the one that is shown.
const FILE_BYTES: u64 = 1 << 20;

pub(crate) fn sandbox(options: &SandboxOptions) -> Outcome {
    match &options.command {
        SandboxCommand::Run(options) => run(options),
    }
}

fn run(options: &SandboxRunOptions) -> Outcome {
    let point = point(&options.point)?;
    let day = options.date.as_deref().map(date).transpose()?;
    let code = read_code(&options.file)?;
    let card = options.card.as_deref().map_or_else(|| Ok(Card::builtin()), read_card)?;
    let key = match &options.mask_key {
        Some(path) => read_key(path)?,
        None => new_key()?,
    };
    let found = options.interpreter.find()?;
    let files = Files::open(options.workspace.as_deref())?;
    let store = Arc::new(source::open(options.data.as_deref(), options.json)?.store);
    let day = trading_day(&store, day)?;
    let mut session =
        session(options, store, card, key, (day, point))?.with_sandbox(files.sandbox(found, options.strict_sandbox)?);
    let mut args = json!({ "code": code });
    if let Some(seconds) = options.timeout {
        args["timeout_seconds"] = seconds.into();
    }
    let report = session.call(TOOL, RawArguments::Value(args)).map_err(|e| Fault::new(Class::Environment, e))?;
    let version = session.sandbox().map_or(0, Sandbox::version);
    files.keep(version)?;
    show(&report, (day, point), options.json);
    Ok(if report.envelope.is_success() {
        ExitCode::SUCCESS
    } else if report.envelope.error_code() == Some("environment_unavailable") {
        ExitCode::from(Class::Environment as u8)
    } else {
        ExitCode::from(Class::Finding as u8)
    })
}

fn point(text: &str) -> Result<DecisionPoint, Fault> {
    DecisionPoint::parse(text).ok_or_else(|| {
        let points = DecisionPoint::ALL.map(DecisionPoint::as_str).join(", ");
        Fault::text(Class::Input, format!("--point {text} is no decision point")).hint(format!("points: {points}"))
    })
}

fn date(text: &str) -> Result<Day, Fault> {
    Day::parse(text).map_err(|e| Fault::new(Class::Input, e).context("--date is not a date"))
}

/// The day asked for, or the last one.
fn trading_day(store: &Store, asked: Option<Day>) -> Result<Day, Fault> {
    let days = store.calendar().days();
    let Some(asked) = asked else {
        return days.last().copied().ok_or_else(|| Fault::text(Class::Environment, "the dataset has no trading day"));
    };
    if store.calendar().contains(asked) {
        return Ok(asked);
    }
    let after = days.partition_point(|day| *day < asked);
    let near: Vec<String> = [after.checked_sub(1), Some(after)]
        .into_iter()
        .flatten()
        .filter_map(|at| days.get(at))
        .map(ToString::to_string)
        .collect();
    let range = days.first().zip(days.last()).map_or_else(String::new, |(first, last)| format!("; it has {first} to {last}"));
    Err(Fault::text(Class::Input, format!("--date {asked} is not a trading day of the dataset"))
        .hint(format!("trading days beside it: {}{range}", near.join(" and "))))
}

/// The code, from a file or the standard input.
fn read_code(file: &Path) -> Result<String, Fault> {
    let shown = if file == Path::new("-") { "standard input".to_owned() } else { format!("`{}`", file.display()) };
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|e| {
        Fault::new(Class::Environment, e).context(format!("the code in {shown} cannot be read")).hint("check the path")
    })?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(Fault::text(Class::Input, format!("the code in {shown} is longer than {} MiB", FILE_BYTES >> 20))
            .hint("execute_code takes at most 20,000 characters"));
    }
    String::from_utf8(bytes).map_err(|fault| {
        let valid = fault.utf8_error().valid_up_to();
        let line = fault.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
        Fault::text(Class::Input, format!("the code in {shown} is not UTF-8: byte {} in line {line}", valid + 1))
            .hint("an agent's code is text; save the file as UTF-8")
    })
}

fn session(
    options: &SandboxRunOptions,
    store: Arc<Store>,
    card: Card,
    key: Vec<u8>,
    (day, point): (Day, DecisionPoint),
) -> Result<Session, Fault> {
    let (dates, entities) = Manifest::hides(options.mask);
    let mask = Arc::new(Mask::new(&store, MaskConfig { dates, entities, style: MaskStyle::Opaque, key }));
    let toolbox = Toolbox::new(&card, entities).map_err(|e| Fault::new(Class::Input, e))?;
    let config = SessionConfig { store, mask, card: Arc::new(card), toolbox: Arc::new(toolbox), check_output: false };
    let stopped = |e: traderharness_harness::session::SessionError| Fault::new(Class::Stopped, e);
    let mut session = Session::new(config, day, Box::new(NoJournal)).map_err(|e| Fault::new(Class::Input, e))?;
    session.start_day(day).map_err(stopped)?;
    while session.clock().point != point {
        session.advance().map_err(stopped)?;
    }
    Ok(session)
}

/// Where the code's files are: versions in a folder of the system's, and the person's own folder if one is named.
struct Files {
    versions: tempfile::TempDir,
    kept: Option<PathBuf>,
}

impl Files {
    fn open(kept: Option<&Path>) -> Result<Self, Fault> {
        let fault = |e: std::io::Error| Fault::new(Class::Environment, e).context("no temporary folder can be made");
        let versions = tempfile::tempdir().map_err(fault)?;
        let kept = kept.map(own_folder).transpose()?;
        Ok(Self { versions, kept })
    }

    fn workspace(&self) -> Workspace {
        Workspace::new(self.versions.path().join("workspace"))
    }

    fn sandbox(&self, found: Found, strict: bool) -> Result<Sandbox, Fault> {
        let sandbox = Sandbox::new(Arc::new(Pool::new(found.interpreter, 1)), self.workspace(), strict);
        if let Some(kept) = &self.kept {
            let bounds = Sandbox::bounds(sandbox.limits());
            sandbox.workspace().start_with(kept, &bounds).map_err(|e| unkept(e, kept))?;
        }
        Ok(sandbox)
    }

    /// Gives the person what the call left; a call that failed left nothing new.
    fn keep(&self, version: u64) -> Result<(), Fault> {
        let Some(kept) = self.kept.as_ref().filter(|_| version > 0) else { return Ok(()) };
        let bounds = Sandbox::bounds(&traderharness_sandbox::protocol::Limits::default());
        self.workspace().publish(version, kept, &bounds).map_err(|e| unkept(e, kept))
    }
}

fn unkept(error: WorkspaceError, folder: &Path) -> Fault {
    let class = if matches!(error, WorkspaceError::OverQuota { .. }) { Class::Input } else { Class::Environment };
    Fault::new(class, error)
        .context(format!("--workspace `{}`", folder.display()))
        .hint("a workspace holds at most 256 files of 32 MiB together; name a folder of its own")
}

/// The folder as a whole path. It is replaced as a whole when a call succeeds, so it must hold nothing that the copy leaves out.
fn own_folder(folder: &Path) -> Result<PathBuf, Fault> {
    let fault = |e: std::io::Error| Fault::new(Class::Environment, e).context(format!("--workspace `{}`", folder.display()));
    std::fs::create_dir_all(folder).map_err(fault)?;
    let folder = folder.canonicalize().map_err(fault)?;
    let mut waiting = vec![folder.clone()];
    let mut seen = 0;
    while let Some(inside) = waiting.pop() {
        for entry in std::fs::read_dir(&inside).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let kind = entry.file_type().map_err(fault)?;
            seen += 1;
            if kind.is_dir() {
                waiting.push(entry.path());
            }
            if seen > 1_000 || !(kind.is_dir() || kind.is_file()) {
                let what = if seen > 1_000 {
                    "it holds more than 1,000 entries".to_owned()
                } else {
                    format!("`{}` is a link or no file", entry.path().display())
                };
                return Err(Fault::text(Class::Input, format!("--workspace `{}` is no workspace: {what}", folder.display()))
                    .hint("name a new folder, or one that only this command writes to"));
            }
        }
    }
    Ok(folder)
}

/// The answer on stdout; clock and what was used on stderr, since they are not part of what an agent reads.
#[expect(clippy::print_stderr, reason = "what is not part of the answer")]
fn show(report: &CallReport, (day, point): (Day, DecisionPoint), machine: bool) {
    let usage = report.usage.map(|usage| (usage.wall, usage.cpu, usage.memory));
    if machine {
        print(&pretty(&report.envelope.0));
        let usage = usage.map(|(wall, cpu, memory)| json!({ "wall_seconds": wall, "cpu_seconds": cpu, "memory_bytes": memory }));
        eprintln!("{}", json!({ "day": day.to_string(), "point": point.as_str(), "usage": usage, "note": report.host_note }));
        return;
    }
    let text = harmless(&human(&report.envelope.0));
    if !text.is_empty() {
        print(&text);
    }
    if let Some(note) = &report.host_note {
        eprintln!("note: {note}");
    }
    let used = usage.map_or_else(String::new, |(wall, cpu, memory)| {
        format!(": {:.1} ms, processor {:.1} ms, {:.1} MiB", 1e3 * wall, 1e3 * cpu, memory as f64 / f64::from(1 << 20))
    });
    eprintln!("[{day} {}{used}]", point.as_str());
}

/// What code printed, with what a terminal would take for an order shown instead of sent.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !matches!(c, '\n' | '\t') {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// An envelope for a person: what was printed, then the result or what went wrong and how to go on.
fn human(envelope: &Value) -> String {
    let text = |pointer: &str| envelope.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut shown = String::new();
    if envelope["success"] == true {
        if let Some(printed) = text("/stdout") {
            let _ = writeln!(shown, "{}", printed.trim_end_matches('\n'));
        }
        if !envelope["result"].is_null() {
            let _ = writeln!(shown, "result = {}", pretty(&envelope["result"]));
        }
        for file in envelope["files"].as_array().into_iter().flatten() {
            let _ = writeln!(shown, "file {} ({} bytes)", file["name"].as_str().unwrap_or_default(), file["bytes"]);
        }
        for notice in envelope["notices"].as_array().into_iter().flatten() {
            let _ = writeln!(shown, "notice: {}", notice["message"].as_str().unwrap_or_default());
        }
        return shown.trim_end_matches('\n').to_owned();
    }
    if let Some(printed) = text("/correction/stdout") {
        let _ = writeln!(shown, "{}", printed.trim_end_matches('\n'));
    }
    if let Some(traceback) = text("/correction/traceback") {
        let _ = writeln!(shown, "{}", traceback.trim_end_matches('\n'));
    } else if let Some(exception) = text("/correction/exception") {
        let _ = writeln!(shown, "{exception}: {}", text("/correction/exception_message").unwrap_or_default());
    }
    let _ = writeln!(shown, "{}: {}", text("/error_code").unwrap_or("failed"), text("/error").unwrap_or_default());
    for key in ["disallowed", "found", "hint", "fix_for_the_host"] {
        if let Some(fact) = text(&format!("/correction/{key}")) {
            let _ = writeln!(shown, "  {key}: {fact}");
        }
    }
    for issue in envelope["correction"]["issues"].as_array().into_iter().flatten() {
        let _ = writeln!(
            shown,
            "  {}: {}",
            issue["path"].as_str().unwrap_or_default(),
            issue["message"].as_str().unwrap_or_default()
        );
    }
    if let Some(instruction) = text("/correction/instruction") {
        let _ = writeln!(shown, "  {instruction}");
    }
    shown.trim_end_matches('\n').to_owned()
}
