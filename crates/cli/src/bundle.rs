//! `traderharness bundle`: recorded runs as one folder that can be handed on, and a look at any recording without playing it.

use crate::fault::{Class, Fault, Outcome};
use crate::manifest::Manifest;
use crate::replay::{Foreign, manifest};
use crate::report::{print, tell};
use crate::reports::read_result;
use crate::run::{RunFolder, pretty};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traderharness_harness::card::CardWorkspace;
use traderharness_replay::bundle::{self, Bundle, BundleError, Draft, DraftAgent};
use traderharness_replay::cassette::Scheme;
use traderharness_replay::reference::ForeignBundle;
use traderharness_replay::{Cassette, RecordingError, Replay, read_up_to};

/// Most files of one run that are taken from a folder of it.
const MOST_FILES: usize = 5_000;

#[derive(Debug, Args)]
pub(crate) struct BundleOptions {
    /// Run folders, or folders that `compare --record` wrote. With --check any recording: a run folder, a cassette, a bundle.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// New folder to write.
    #[arg(long, value_name = "DIR", required_unless_present = "check", conflicts_with = "check")]
    out: Option<PathBuf>,
    /// Say what the recordings hold and check every digest; make nothing.
    #[arg(long)]
    check: bool,
    /// Put the private folders of the runs in, too: mask keys, real windows, gates. Never hand such a bundle on.
    #[arg(long, conflicts_with = "check")]
    private: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn bundle(options: &BundleOptions) -> Outcome {
    match &options.out {
        Some(out) => make(options, out),
        None => check(options),
    }
}

/// A fault of a bundle with its class: what was changed is a finding, what never was a bundle is bad input.
pub(crate) fn fault(error: BundleError, path: &Path) -> Fault {
    let class = match &error {
        BundleError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => Class::Input,
        BundleError::Io { .. } => Class::Environment,
        BundleError::Recording(error) => class(error, Class::Input),
        BundleError::Size { .. } | BundleError::Digest { .. } | BundleError::Disagrees { .. } => Class::Finding,
        _ => Class::Input,
    };
    let hint = match &error {
        BundleError::Newer { .. } => None,
        BundleError::Recording(error) if !matches!(error, RecordingError::Changed { .. }) => advice(error),
        BundleError::Twice { .. } => Some("give the run folders other names"),
        BundleError::NoManifest { .. } => Some("pass a folder that `traderharness bundle --out` made"),
        BundleError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => {
            Some("name a new folder for --out")
        }
        BundleError::Io { .. } => None,
        BundleError::Link { .. } | BundleError::NotAFile { .. } | BundleError::Unnamed { .. } => Some(
            "a bundle holds the files that its manifest names and nothing else; remove it, or take the bundle from where it was made",
        ),
        _ => Some("take the bundle from where it was made; nothing of it was used"),
    };
    let fault = Fault::new(class, error).context(format!("bundle `{}`", path.display()));
    match hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

/// What to do about a recording that cannot be used; `None` where its error says that already.
const fn advice(error: &RecordingError) -> Option<&'static str> {
    match error {
        RecordingError::Io { .. }
        | RecordingError::Empty { .. }
        | RecordingError::Newer { .. }
        | RecordingError::TooLarge { .. }
        | RecordingError::PartialExists { .. } => None,
        RecordingError::Broken { .. } | RecordingError::Changed { .. } => {
            Some("take the file as the run wrote it, from a copy or a bundle, or record the run again")
        }
        RecordingError::Diverged { .. } => Some("put back what the run was made with, or record it again"),
    }
}

/// Class of a recording that cannot be used: what was changed is a finding, what this program does not read is bad input. A command to which
/// a recording that nobody can read is a finding too says so with `damaged`.
pub(crate) const fn class(error: &RecordingError, damaged: Class) -> Class {
    match error {
        RecordingError::Io { .. } => Class::Environment,
        RecordingError::Newer { .. } | RecordingError::TooLarge { .. } | RecordingError::PartialExists { .. } => Class::Input,
        RecordingError::Changed { .. } | RecordingError::Diverged { .. } => Class::Finding,
        RecordingError::Broken { .. } | RecordingError::Empty { .. } => damaged,
    }
}

/// A recording that cannot be used, with its class and what to do about it.
pub(crate) fn recording(error: RecordingError, damaged: Class) -> Fault {
    let (class, hint) = (class(&error, damaged), advice(&error));
    let fault = Fault::new(class, error);
    if let Some(hint) = hint { fault.hint(hint) } else { fault }
}

/// What a bundle holds, in lines.
pub(crate) fn listed(bundle: &Bundle) -> String {
    let manifest = bundle.manifest();
    let digest = manifest.dataset.sha256.map_or_else(|| "no digest".to_owned(), |digest| digest.to_string());
    let synthetic = if manifest.synthetic { ", SYNTHETIC" } else { "" };
    let mut out =
        format!("A bundle of traderharness {} over {} ({digest}{synthetic}).", manifest.tool_version, manifest.dataset.name);
    for agent in &manifest.agents {
        let mask = match &agent.mask {
            None => "nothing hidden".to_owned(),
            Some(mask) => {
                let entities = mask.entities.as_ref().map(|style| format!("codes hidden ({style})"));
                let dates = mask.dates.then(|| "dates hidden".to_owned());
                entities.into_iter().chain(dates).collect::<Vec<_>>().join(", ")
            }
        };
        let (contract, model) = (&agent.contract_version, &agent.model);
        let _ = write!(out, "\n  {}: model {model}, contract {contract}, cash {:.2}, {mask}", agent.name, agent.cash);
        for scope in &agent.scopes {
            let _ = write!(out, "\n    {} {} request(s)", scope.file, scope.calls);
        }
    }
    for left in &manifest.left_out {
        let _ = write!(out, "\n  {} is not in it: {}", left.agent, left.why);
    }
    out
}

fn check(options: &BundleOptions) -> Outcome {
    let mut values = Vec::new();
    for path in &options.runs {
        let (text, value) = look(path)?;
        if !options.json {
            print(&format!("{}\n{text}", path.display()));
        }
        values.push(value);
    }
    if options.json {
        print(&pretty(&json!({ "recordings": values })));
    }
    Ok(ExitCode::SUCCESS)
}

/// A recording as text and as JSON, after every digest in it was checked.
fn look(path: &Path) -> Result<(String, Value), Fault> {
    if path.is_dir() && Bundle::is_bundle(path) {
        let bundle = Bundle::open(path).map_err(|e| fault(e, path))?;
        return Ok((
            format!("{}\nEvery file has its digest.", listed(&bundle)),
            json!({ "kind": "bundle", "manifest": bundle.manifest() }),
        ));
    }
    if path.is_dir() && ForeignBundle::is_bundle(path) {
        let foreign = Foreign::bundle(&ForeignBundle::open(path).map_err(|e| fault(e, path))?);
        return Ok((foreign.text(), foreign.machine()));
    }
    if let Some(fault) = RunFolder::no_run(path) {
        return Err(fault);
    }
    let file = if path.is_dir() { RunFolder::of(path).cassette() } else { path.to_path_buf() };
    let named = |e| of_file(e, &file);
    let cassette = Cassette::load(&file).map_err(named)?;
    if cassette.scheme() == Scheme::Reference {
        let foreign = Foreign::cassette(&cassette);
        return Ok((foreign.text(), foreign.machine()));
    }
    cassette.verify().map_err(named)?;
    let meta = cassette.meta().cloned().unwrap_or_default();
    let mut scopes: BTreeMap<&str, usize> = BTreeMap::new();
    for call in cassette.calls() {
        *scopes.entry(&call.scope).or_default() += 1;
    }
    let mut text = format!("A recording of model {}, contract {}.", meta.model, meta.contract_version);
    for (scope, calls) in &scopes {
        let _ = write!(text, "\n  {scope}: {calls} request(s)");
    }
    text.push_str("\nEvery request has its digest, and no line was changed since the recording was finished.");
    let value = json!({ "kind": "cassette", "model": meta.model, "contract_version": meta.contract_version, "scopes": scopes });
    Ok((text, value))
}

/// A cassette file that cannot be used.
fn of_file(error: RecordingError, file: &Path) -> Fault {
    recording(error, Class::Input).context(format!("cassette `{}`", file.display()))
}

/// A run that is to be bundled.
struct Run {
    name: String,
    folder: RunFolder,
    /// It was found in a folder of several; one that stopped is then left out and not refused.
    among: bool,
}

/// The runs of an argument: itself, or those in it, named as a comparison names them.
fn runs_of(path: &Path) -> Result<Vec<Run>, Fault> {
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if RunFolder::of(path).is_run() && path.is_dir() {
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        return Ok(vec![Run { name: last(&whole), folder: RunFolder::of(path), among: false }]);
    }
    let found = RunFolder::runs_in(path);
    if found.is_empty() {
        let not_there = || {
            Fault::text(Class::Input, format!("there is no run in `{}`", path.display()))
                .hint("pass folders that `run --record` or `compare --record` wrote")
        };
        return Err(RunFolder::no_run(path).unwrap_or_else(not_there));
    }
    let run = |found: PathBuf| {
        // Under several keys an agent has a run in each of `key-1`, `key-2` ...
        let key = found.parent().filter(|parent| *parent != path).map(last);
        let name = key.map_or_else(|| last(&found), |key| format!("{}.{key}", last(&found)));
        Run { name, folder: RunFolder { path: found }, among: true }
    };
    Ok(found.into_iter().map(run).collect())
}

fn make(options: &BundleOptions, out: &Path) -> Outcome {
    let mut draft = Draft::new(env!("CARGO_PKG_VERSION"));
    let mut notes = Vec::new();
    let mut bundled = 0;
    let mut needs_private = false;
    let mut missing = Missing::default();
    for path in &options.runs {
        for run in runs_of(path)? {
            if let Some(why) = unfinished(&run.folder) {
                if !run.among {
                    let what = format!("the run in `{}` {why}, so there is nothing whole to bundle", run.folder.path.display());
                    return Err(Fault::text(Class::Input, what).hint("finish it with its command and --resume"));
                }
                notes.push(format!("{} is left out: it {why}", run.name));
                draft.left_out(run.name, why);
                continue;
            }
            let manifest = add(&mut draft, &run, options.private, out)?;
            if !options.private {
                missing.add(&run.folder, manifest.is_masked());
            }
            needs_private |= manifest.is_masked() || manifest.gated;
            bundled += 1;
        }
    }
    if bundled == 0 {
        return Err(Fault::text(Class::Input, "no run came to its end, so there is nothing to bundle"));
    }
    // What several comparisons came to cannot stand under one name.
    let mut comparisons: Vec<PathBuf> = Vec::new();
    for file in options.runs.iter().map(|path| path.join("compare.json")) {
        if own(&file)? {
            comparisons.push(file);
        }
    }
    match &comparisons[..] {
        [] => {}
        [one] => draft.file("compare.json".to_owned(), bytes(one)?).map_err(|e| fault(e, out))?,
        several => notes.push(format!("none of the {} compare.json is put in: a bundle has one", several.len())),
    }
    let leftovers = bundle::remove_leftovers(out).into_iter();
    notes.extend(leftovers.map(|left| format!("`{}` is removed: a bundle that was killed left it", left.display())));
    let bundle = draft.write(out).map_err(|e| fault(e, out))?;
    if options.json {
        print(&pretty(&json!({ "bundle": out.display().to_string(), "manifest": bundle.manifest(), "notes": notes })));
        return Ok(ExitCode::SUCCESS);
    }
    notes.iter().for_each(|note| tell(&format!("note: {note}")));
    print(&listed(&bundle));
    let further = missing.options();
    print(&format!("Written to {0}. Check it with: traderharness replay {0}{further}", out.display()));
    match (options.private, needs_private) {
        (true, _) => print("It holds mask keys and windows in private/ folders: remove those before you hand it on."),
        (false, true) => {
            print(
                "Mask keys and windows are not in it. Whoever replays it needs the private/run.json of a run for --mask-key, or its key, --start and --end.",
            );
        }
        (false, false) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// What a bundle without private folders leaves to be named, as options of the replay that checks it.
#[derive(Debug, Default)]
struct Missing {
    data: Option<PathBuf>,
    /// Keys, and the file of a run that has each.
    keys: BTreeMap<String, PathBuf>,
}

impl Missing {
    /// Notes a run. One without private facts is bundled all the same; nothing can be named for it.
    fn add(&mut self, folder: &RunFolder, masked: bool) {
        let Ok(Some(private)) = folder.read_private() else { return };
        self.data = self.data.take().or(private.data);
        if masked {
            self.keys.entry(private.mask_key).or_insert_with(|| folder.path.join("private").join("run.json"));
        }
    }

    fn options(&self) -> String {
        let data = self.data.iter().map(|path| format!(" --data {}", path.display()));
        data.chain(self.keys.values().map(|path| format!(" --mask-key {}", path.display()))).collect()
    }
}

/// Why a run has no whole recording.
fn unfinished(folder: &RunFolder) -> Option<String> {
    if folder.cassette().is_file() {
        return None;
    }
    let ended = read_result(folder).ok().flatten();
    Some(match ended {
        Some(result) => format!("stopped before its end ({})", result.stop_code.unwrap_or(result.status)),
        None => "stopped before its end".to_owned(),
    })
}

fn add(draft: &mut Draft, run: &Run, private: bool, out: &Path) -> Result<Manifest, Fault> {
    let folder = &run.folder;
    let named = |fault: Fault| fault.context(format!("the run in `{}`", folder.path.display()));
    own(&folder.cassette())?;
    let cassette = Cassette::load(folder.cassette()).map_err(|e| of_file(e, &folder.cassette()))?;
    cassette.verify().map_err(|e| of_file(e, &folder.cassette()))?;
    let manifest = manifest(&Replay::new(cassette.clone())).map_err(named)?;
    // As it was recorded: the manifest of a bundle says what the recording says.
    let recorded = cassette.meta().and_then(|meta| meta.extra.get("manifest")).and_then(|manifest| manifest.get("card"));
    let card = recorded.cloned().unwrap_or_default();
    let style = serde_json::to_value(manifest.style).ok().and_then(|style| style.as_str().map(str::to_owned)).unwrap_or_default();
    let agent = DraftAgent {
        name: run.name.clone(),
        window: manifest.window.as_ref().map(|window| json!(window)),
        window_id: manifest.window_id.clone(),
        cash: manifest.card.initial_cash,
        seed_id: manifest.entity_mask_seed.clone(),
        style,
        card,
    };
    draft.agent(agent, &cassette).map_err(|e| named(fault(e, out)))?;
    let inside = |name: &str| format!("runs/{}/{name}", run.name);
    let mut put = |name: &str, path: &Path| -> Result<(), Fault> {
        if own(path)? { draft.file(inside(name), bytes(path)?).map_err(|e| named(fault(e, out))) } else { Ok(()) }
    };
    put("trajectory.jsonl", &folder.trajectory())?;
    put("summary.json", &folder.summary())?;
    put("result.json", &folder.result())?;
    // The files that code began with, where it began with any.
    if manifest.card.workspace == CardWorkspace::Shared {
        for (name, path) in files_in(&folder.workspace().join("0"))? {
            put(&format!("workspace/0/{name}"), &path)?;
        }
    }
    if private {
        for (name, path) in files_in(&folder.path.join("private"))? {
            draft.private(inside(&format!("private/{name}")), bytes(&path)?).map_err(|e| named(fault(e, out)))?;
        }
    }
    Ok(manifest)
}

/// Whether a file of a run is there. One that is a link, a pipe or a folder is refused: what it leads to is not the run's, and a bundle
/// is handed on.
fn own(path: &Path) -> Result<bool, Fault> {
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Fault::new(Class::Environment, e).context(format!("`{}` cannot be read", path.display()))),
        Ok(meta) if meta.is_file() => Ok(true),
        Ok(_) => Err(no_plain_file(path)),
    }
}

fn no_plain_file(path: &Path) -> Fault {
    Fault::text(Class::Input, format!("`{}` is no plain file, so it cannot be put into a bundle", path.display()))
        .hint("put the file itself there, as the run wrote it")
}

fn bytes(path: &Path) -> Result<Vec<u8>, Fault> {
    read_up_to(path, bundle::FILE_BYTES)
        .map_err(|e| recording(e, Class::Input).context(format!("`{}` cannot be put into a bundle", path.display())))
}

/// The plain files of a folder of a run, by their path in it. A link is refused: what it leads to is not the run's.
fn files_in(folder: &Path) -> Result<Vec<(String, PathBuf)>, Fault> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), folder.to_path_buf())];
    while let Some((prefix, folder)) = open.pop() {
        if !folder.is_dir() {
            continue;
        }
        let fault =
            |e: std::io::Error| Fault::new(Class::Environment, e).context(format!("`{}` cannot be read", folder.display()));
        for entry in std::fs::read_dir(&folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(fault)?;
            if kind.is_dir() {
                open.push((format!("{name}/"), entry.path()));
            } else if kind.is_file() {
                found.push((name, entry.path()));
            } else {
                return Err(no_plain_file(&entry.path()));
            }
            if found.len() > MOST_FILES {
                return Err(Fault::text(Class::Input, format!("`{}` holds more files than a bundle takes", folder.display())));
            }
        }
    }
    found.sort();
    Ok(found)
}
