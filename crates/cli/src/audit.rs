//! `traderharness audit`: searches files, folders and recorded runs for what a masked run must not tell and no artifact may hold.
//! Must never skip anything without saying so: what cannot be read is a finding.

use crate::args::AuditOptions;
use crate::fault::{Class, Fault, Outcome};
use crate::manifest::Private;
use crate::report::print;
use crate::run::pretty;
use crate::source;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traderharness_market::{Mask, MaskConfig, MaskStyle, Store};
use traderharness_replay::audit::{Auditor, DatePolicy, FindingKind, Findings, Kind, NameKind, Rules, whole_file};

/// Deepest nesting of folders.
const DEEPEST: usize = 64;
/// Longest first line of a recording, and longest private file, that is read for what the audit must know.
const HEAD_BYTES: u64 = 16 << 20;

pub(crate) fn audit(options: &AuditOptions) -> Outcome {
    let mut report = Report::default();
    let mut known: Vec<(Option<PathBuf>, Known)> = vec![];
    for artifact in &options.artifacts {
        // The argument itself may be a link: whoever names it means what it leads to.
        let meta = std::fs::metadata(artifact).map_err(|e| {
            Fault::new(Class::Environment, e).context(format!("`{}` cannot be read", artifact.display())).hint("check the path")
        })?;
        let run = Run::of(artifact);
        let data = options.data.clone().or_else(|| run.private.as_ref().and_then(|private| private.data.clone()));
        if !known.iter().any(|(path, _)| *path == data) {
            known.push((data.clone(), Known::of(&source::open(data.as_deref(), options.json)?.store)));
        }
        let Some((_, facts)) = known.iter().find(|(path, _)| *path == data) else { continue };
        let auditor = Auditor::new(&rules(facts, &run, data.as_deref(), artifact, options));
        let mut walk = Walk { auditor: &auditor, private: options.private, report: &mut report };
        if let Some((name, digest)) =
            run.dataset.as_ref().filter(|(_, digest)| !options.allow_entities && *digest != facts.digest)
        {
            let hint =
                if options.data.is_some() { "leave --data out or pass that dataset" } else { "pass that dataset with --data" };
            let why = format!("the run was recorded over `{name}` ({digest}), whose names and codes are not known here; {hint}");
            walk.report.found.add(
                || whole_file(&shown(artifact), FindingKind::NotScanned, "other_dataset", &why),
                FindingKind::NotScanned,
                u64::MAX,
            );
        }
        if meta.is_dir() { walk.folder(artifact, 0) } else { walk.file(artifact, &meta) }
    }
    let clean = report.found.is_clean();
    print(&if options.json { pretty(&report.json(&known, options)) } else { report.text(options) });
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::from(Class::Finding as u8) })
}

/// What the audit must know of a recorded run.
#[derive(Debug, Default)]
struct Run {
    private: Option<Private>,
    /// Name and digest of the dataset.
    dataset: Option<(String, String)>,
    /// The model's id may hold the day of its release.
    model: Option<String>,
}

impl Run {
    /// The run that an artifact is, or is a file of.
    fn of(artifact: &Path) -> Self {
        let folder = if artifact.is_dir() { artifact } else { artifact.parent().unwrap_or(Path::new(".")) };
        let cassette = if artifact.is_dir() { folder.join("cassette.jsonl") } else { artifact.to_path_buf() };
        let head = [cassette, folder.join("cassette.jsonl"), folder.join("trajectory.jsonl")].iter().find_map(|path| head(path));
        let field = |name: &str| head.as_ref().and_then(|head| head.get(name));
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let dataset = field("dataset").and_then(|of| Some((text(of.get("name"))?, text(of.get("sha256"))?)));
        let mut private = String::new();
        let read = File::open(folder.join("private").join("run.json"))
            .and_then(|file| file.take(HEAD_BYTES).read_to_string(&mut private));
        Self { private: read.ok().and_then(|_| serde_json::from_str(&private).ok()), dataset, model: text(field("model")) }
    }
}

/// The first line of a recording.
fn head(path: &Path) -> Option<Value> {
    if path.extension().is_none_or(|ending| ending != "jsonl") {
        return None;
    }
    let mut line = String::new();
    std::io::BufReader::new(File::open(path).ok()?.take(HEAD_BYTES)).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// Names and codes of a dataset.
struct Known {
    name: String,
    digest: String,
    names: Vec<(String, NameKind)>,
    codes: Vec<String>,
}

impl Known {
    fn of(store: &Store) -> Self {
        let config = MaskConfig { dates: false, entities: true, style: MaskStyle::Opaque, key: vec![0; 32] };
        let mask = Mask::new(store, config);
        let today = store.calendar().days().last().copied();
        // The mask leaves a name that is an everyday word alone in running text, and so must the audit.
        let kind = |name: &str, kind| {
            let everyday = today.is_some_and(|day| {
                let sentence = format!("的{name}的");
                name.chars().all(|c| !c.is_ascii()) && mask.text(&sentence, day.plus(1)) == sentence
            });
            if everyday { NameKind::Everyday } else { kind }
        };
        let mut names = vec![];
        for security in store.securities().unwrap_or_default() {
            names.push((security.name.clone(), kind(&security.name, NameKind::Company)));
            names.extend(security.aliases.iter().map(|alias| {
                let latin = alias.is_ascii();
                (alias.clone(), if latin { NameKind::English } else { kind(alias, NameKind::Alias) })
            }));
        }
        let meta = store.meta();
        let codes = store.codes().iter().map(ToString::to_string).collect();
        Self { name: meta.name.clone(), digest: meta.digest.clone(), names, codes }
    }
}

fn rules(known: &Known, run: &Run, data: Option<&Path>, artifact: &Path, options: &AuditOptions) -> Rules {
    let mut rules =
        Rules { dates: if options.allow_dates { DatePolicy::Allowed } else { DatePolicy::Forbidden }, ..Rules::default() };
    if !options.allow_entities {
        rules.names.clone_from(&known.names);
        rules.codes = known.codes.iter().map(|code| (code.clone(), None)).collect();
    }
    // What the mask writes itself; the day stands in every moment that code in the sandbox gets.
    rules.allowed.extend(["another company", "another code", "2000-01-01"].map(str::to_owned));
    rules.allowed.extend(run.model.clone());
    rules.secrets.extend(run.private.as_ref().map(|private| private.mask_key.clone()));
    // Keys of this environment are the ones that could have got into an artifact of it.
    let key = |name: &str| ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"].iter().any(|end| name.ends_with(end));
    rules.secrets.extend(std::env::vars().filter(|(name, value)| key(name) && value.len() >= 12).map(|(_, value)| value));
    let absolute = |path: &Path| std::fs::canonicalize(path).ok();
    let homes = ["HOME", "USERPROFILE"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let folders = homes.chain(std::env::current_dir().ok()).chain(data.and_then(absolute)).chain(absolute(artifact));
    rules.paths = folders.filter_map(|path| path.to_str().map(str::to_owned)).collect();
    rules
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// What was found in all artifacts.
#[derive(Debug, Default)]
struct Report {
    found: Findings,
    files: u64,
    /// Private folders that were left out.
    private: Vec<String>,
}

/// Goes through an artifact, in the order of names.
struct Walk<'a> {
    auditor: &'a Auditor,
    private: bool,
    report: &'a mut Report,
}

impl Walk<'_> {
    fn missed(&mut self, path: &Path, detail: &str, why: &str) {
        let finding = || whole_file(&shown(path), FindingKind::NotScanned, detail, why);
        self.report.found.add(finding, FindingKind::NotScanned, u64::MAX);
    }

    fn folder(&mut self, path: &Path, depth: usize) {
        if depth > DEEPEST {
            return self.missed(path, "too_deep", "folders are nested too deep");
        }
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries = match entries {
            Ok(entries) => entries.into_iter().map(|entry| entry.path()).collect::<Vec<_>>(),
            Err(e) => return self.missed(path, "unreadable", &e.to_string()),
        };
        entries.sort();
        for entry in entries {
            match std::fs::symlink_metadata(&entry) {
                Err(e) => self.missed(&entry, "unreadable", &e.to_string()),
                Ok(meta) if meta.is_symlink() => self.missed(&entry, "link", "a link, which is not followed"),
                Ok(meta) if meta.is_dir() => {
                    if entry.file_name().is_some_and(|name| name == "private") && !self.private {
                        self.report.private.push(shown(&entry));
                    } else {
                        self.folder(&entry, depth + 1);
                    }
                }
                Ok(meta) => self.file(&entry, &meta),
            }
        }
    }

    fn file(&mut self, path: &Path, meta: &std::fs::Metadata) {
        if !meta.is_file() {
            return self.missed(path, "no_file", "neither a file nor a folder");
        }
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(e) => return self.missed(path, "unreadable", &e.to_string()),
        };
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let kind = match Kind::of(&ending) {
            Some(kind) => kind,
            None => {
                let mut start = Vec::new();
                if let Err(e) = file.by_ref().take(4096).read_to_end(&mut start) {
                    return self.missed(path, "unreadable", &e.to_string());
                }
                let text = match std::str::from_utf8(&start) {
                    Ok(_) => true,
                    Err(e) => e.error_len().is_none() && e.valid_up_to() > 0,
                };
                if !text || start.contains(&0) {
                    let what = if ending.is_empty() { "binary" } else { &ending };
                    return self.missed(path, what, "not text; nothing here reads it");
                }
                self.scan(path, start.as_slice().chain(file), Kind::Text);
                return;
            }
        };
        self.scan(path, file, kind);
    }

    fn scan(&mut self, path: &Path, reader: impl std::io::Read, kind: Kind) {
        self.report.files += 1;
        self.report.found.append(self.auditor.scan(&shown(path), reader, kind));
    }
}

impl Report {
    fn json(&self, known: &[(Option<PathBuf>, Known)], options: &AuditOptions) -> Value {
        let datasets: Vec<Value> = known
            .iter()
            .map(|(_, known)| json!({ "name": known.name, "digest": known.digest, "names": known.names.len(), "codes": known.codes.len() }))
            .collect();
        json!({
            "schema_version": 1,
            "clean": self.found.is_clean(),
            "files": self.files,
            "bytes": self.found.bytes,
            "totals": self.found.totals,
            "findings": self.found.findings,
            "private_left_out": self.private,
            "rules": { "datasets": datasets, "dates": !options.allow_dates, "entities": !options.allow_entities },
        })
    }

    fn text(&self, options: &AuditOptions) -> String {
        let mut out = String::new();
        for finding in &self.found.findings {
            let place = match (&finding.pointer, finding.line) {
                (_, 0) => finding.file.clone(),
                (Some(pointer), line) => format!("{}:{line} {pointer}", finding.file),
                (None, line) => format!("{}:{line} byte {}", finding.file, finding.offset),
            };
            let _ = writeln!(out, "{place}: {} ({}): {}", finding.kind.name(), finding.detail, finding.excerpt);
        }
        for path in &self.private {
            let _ = writeln!(out, "{path}: private, left out; search it with --private");
        }
        let allowed = match (options.allow_dates, options.allow_entities) {
            (false, false) => "",
            (true, false) => " Dates were allowed.",
            (false, true) => " Names and codes were allowed.",
            (true, true) => " Dates, names and codes were allowed.",
        };
        let (files, bytes) = (self.files, self.found.bytes);
        if self.found.is_clean() {
            let _ = write!(out, "Nothing found in {files} file(s), {bytes} bytes.{allowed}");
            return out;
        }
        let totals: Vec<String> = self.found.totals.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let listed = self.found.findings.len() as u64;
        let all: u64 = self.found.totals.values().sum();
        let more = if all > listed { format!(" ({} not listed)", all - listed) } else { String::new() };
        let _ = write!(out, "Found in {files} file(s), {bytes} bytes: {}{more}.{allowed}", totals.join(", "));
        out
    }
}
