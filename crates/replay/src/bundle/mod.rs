//! Bundles: one or several recorded runs as a folder that can be handed on. `manifest.json` says what is in it; every scope (the agent, its
//! executor, each advisor) has a cassette of its own in `agents/`; what else was kept of a run lies in `runs/AGENT/`.
//!
//! | file | holds |
//! |---|---|
//! | `manifest.json` | [`Manifest`]: what was played over what, and size and digest of every other file |
//! | `agents/SCOPE.jsonl` | one [`Cassette`] with the calls of one scope |
//! | `runs/AGENT/...` | trajectory, result, summary, first files of the agent's code |
//! | `compare.json` | what a comparison came to |
//! | `runs/AGENT/private/` | only where the owner keeps it: mask key and window. The manifest never names it |
//!
//! Nothing of a bundle is used before all of it was checked: names that lead nowhere else, no links, no file too much or too few, sizes
//! and digests as stated, every cassette whole. It is written under another name and renamed, so it is there as a whole or not at all.

mod beside;
mod error;
mod split;
mod tree;
mod write;

pub use beside::remove_leftovers;
pub use error::BundleError;
pub use split::{Part, Parts, split};
pub use tree::{FILE_BYTES, file_digest};
pub(crate) use tree::{MANIFEST_BYTES, check_name, check_once, check_path, files_in, read};
pub use write::{Draft, DraftAgent};

use crate::Fingerprint;
use crate::cassette::{ADVISOR, Cassette, Dataset, EXECUTOR, Mask, Meta};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Schema of the manifest written here.
pub const BUNDLE_SCHEMA_VERSION: u32 = 1;
/// What `format` says in a manifest of ours.
pub const FORMAT: &str = "traderharness.bundle";
/// Style of calls of a recording that names none.
const NATIVE_STYLE: &str = "openai";
/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";

/// What is in a bundle. Holds no key, no path of a machine and no time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Always [`FORMAT`].
    pub format: String,
    /// [`BUNDLE_SCHEMA_VERSION`] of its writer.
    pub schema_version: u32,
    /// Version of the program that made the bundle.
    pub tool_version: String,
    /// Dataset that every run in it was over.
    pub dataset: Dataset,
    /// True when the dataset was generated.
    pub synthetic: bool,
    /// The agents, in the order in which they were named.
    pub agents: Vec<Agent>,
    /// All other files, by path.
    pub files: Vec<File>,
    /// Runs that are not in it, with the reason: those that stopped before their end have no whole recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name in the bundle.
    pub name: String,
    /// Model it was played by.
    pub model: String,
    /// Contract version of the run.
    pub contract_version: String,
    /// Behaviour flags of the run.
    pub behaviour_flags: BTreeSet<u32>,
    /// First and last day asked for; null when the run hides its dates.
    pub window: Option<Value>,
    /// Digest of the window.
    pub window_id: String,
    /// Cash at the start, CNY.
    pub cash: f64,
    /// What was hidden; null when nothing was.
    pub mask: Option<Mask>,
    /// Id of the mask key. The key itself is in no manifest.
    pub seed_id: String,
    /// How the model wrote its calls.
    pub style: String,
    /// The card as it was played.
    pub card: Value,
    /// Scopes, in the order of their first calls.
    pub scopes: Vec<Scope>,
    /// Who asked in turn: number of the scope, and how many calls in a row.
    pub order: Vec<(usize, usize)>,
    /// Digest of the scopes' recordings as one file, in the order in which they were made.
    pub recording_sha256: Fingerprint,
}

/// The recording of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// `AGENT`, `AGENT__executor` or `AGENT__advisor_ROLE`; unique in the bundle.
    pub scope: String,
    /// How its calls name it.
    pub recorded_as: String,
    /// `agents/SCOPE.jsonl`.
    pub file: String,
    /// Digest of the file.
    pub sha256: Fingerprint,
    /// Bytes of the file.
    pub bytes: u64,
    /// Calls in it.
    pub calls: usize,
}

/// Another file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path from the folder of the bundle on, with `/`.
    pub file: String,
    /// Its digest.
    pub sha256: Fingerprint,
    /// Its size.
    pub bytes: u64,
}

/// A run that is not in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Its name.
    pub agent: String,
    /// Why.
    pub why: String,
}

/// A bundle, checked as a whole.
#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
    manifest: Manifest,
    recordings: BTreeMap<String, Recording>,
}

/// The recordings of an agent.
#[derive(Debug)]
struct Recording {
    cassette: Cassette,
    bytes: Vec<u8>,
}

impl Bundle {
    /// Whether a folder claims to be a bundle of ours: it has a manifest, and not one of the Python implementation. One that cannot be
    /// read counts, so that opening it says why.
    pub fn is_bundle(path: &Path) -> bool {
        if std::fs::symlink_metadata(path.join(MANIFEST)).is_err() {
            return false;
        }
        let Ok(bytes) = read(path, MANIFEST, MANIFEST_BYTES) else { return true };
        serde_json::from_slice::<Value>(&bytes).map_or(true, |value| value.get("format").is_some())
    }

    /// Reads a bundle and checks all of it.
    ///
    /// # Errors
    /// [`BundleError`], for the first thing that is wrong.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let manifest = read_manifest(path)?;
        check_names(&manifest)?;
        let found = files_in(path)?;
        let scopes = manifest.agents.iter().flat_map(|agent| &agent.scopes);
        let stated: BTreeMap<&str, (u64, Fingerprint)> = scopes
            .map(|scope| (scope.file.as_str(), (scope.bytes, scope.sha256)))
            .chain(manifest.files.iter().map(|file| (file.file.as_str(), (file.bytes, file.sha256))))
            .collect();
        if let Some(file) = stated.keys().find(|file| !found.contains_key(**file)) {
            return Err(BundleError::Missing { path: path.to_owned(), file: (*file).to_owned() });
        }
        if let Some(file) = found.keys().find(|file| *file != MANIFEST && !stated.contains_key(file.as_str())) {
            return Err(BundleError::Unnamed { path: path.to_owned(), file: file.clone() });
        }
        // All sizes before the first file is read: a small manifest must not make anybody read for an hour.
        for (file, (expected, _)) in &stated {
            let actual = found.get(*file).copied().unwrap_or_default();
            if actual > FILE_BYTES {
                return Err(BundleError::TooLarge { file: (*file).to_owned(), bytes: actual, limit: FILE_BYTES });
            }
            if actual != *expected {
                return Err(BundleError::Size { file: (*file).to_owned(), expected: *expected, actual });
            }
        }
        for file in &manifest.files {
            checked(path, &file.file, file.sha256)?;
        }
        let mut recordings = BTreeMap::new();
        for agent in &manifest.agents {
            recordings.insert(agent.name.clone(), recording(path, &manifest, agent)?);
        }
        Ok(Self { path: path.to_owned(), manifest, recordings })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The recordings of an agent as one, in the order in which they were made.
    pub fn cassette(&self, agent: &str) -> Option<&Cassette> {
        self.recordings.get(agent).map(|recording| &recording.cassette)
    }

    /// The same as the bytes of a cassette file.
    pub fn cassette_bytes(&self, agent: &str) -> Option<&[u8]> {
        self.recordings.get(agent).map(|recording| recording.bytes.as_slice())
    }

    /// The folder with what else was kept of an agent's run.
    pub fn run(&self, agent: &str) -> PathBuf {
        self.path.join("runs").join(agent)
    }
}

fn read_manifest(path: &Path) -> Result<Manifest, BundleError> {
    let file = path.join(MANIFEST);
    if std::fs::symlink_metadata(&file).is_err() {
        return Err(BundleError::NoManifest { path: path.to_owned() });
    }
    let bytes = read(path, MANIFEST, MANIFEST_BYTES)?;
    let wrong = |what: String| BundleError::Manifest { path: file.clone(), what };
    let value: Value = serde_json::from_slice(&bytes).map_err(|fault| wrong(format!("not JSON: {fault}")))?;
    if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(wrong(format!("`format` is not {FORMAT:?}")));
    }
    // Before anything else: what a later version means by the other fields is not known here.
    let version = value.get("schema_version").and_then(Value::as_u64);
    let version = version.ok_or_else(|| wrong("`schema_version` is not a number".to_owned()))?;
    if version > u64::from(BUNDLE_SCHEMA_VERSION) {
        return Err(BundleError::Newer { path: file, found: version, known: BUNDLE_SCHEMA_VERSION.into() });
    }
    serde_json::from_value(value).map_err(|fault| wrong(fault.to_string()))
}

fn check_names(manifest: &Manifest) -> Result<(), BundleError> {
    let scopes = || manifest.agents.iter().flat_map(|agent| &agent.scopes);
    for agent in &manifest.agents {
        check_name("an agent", &agent.name)?;
        for scope in &agent.scopes {
            check_name("a scope", &scope.scope)?;
            if !is_scope_of(&scope.scope, &agent.name) {
                let (name, why) = (scope.scope.clone(), "it is not that of its agent, the executor or an advisor of it");
                return Err(BundleError::Name { name, what: "a scope", why });
            }
            check_path(&scope.file)?;
            if scope.file != scope_file(&scope.scope) {
                let (name, why) = (scope.file.clone(), "the recording of a scope is agents/SCOPE.jsonl");
                return Err(BundleError::Name { name, what: "a file of a bundle", why });
            }
        }
    }
    for file in &manifest.files {
        check_path(&file.file)?;
        let of_a_run = manifest.agents.iter().any(|agent| {
            let rest = file.file.strip_prefix("runs/").and_then(|rest| rest.strip_prefix(agent.name.as_str()));
            rest.is_some_and(|rest| rest.starts_with('/') && !rest.split('/').any(|part| part == "private"))
        });
        if !of_a_run && file.file != "compare.json" {
            let (name, why) = (file.file.clone(), "beside the recordings there are compare.json and files in runs/AGENT/");
            return Err(BundleError::Name { name, what: "a file of a bundle", why });
        }
    }
    check_once(manifest.agents.iter().map(|agent| agent.name.as_str()))?;
    check_once(scopes().map(|scope| scope.scope.as_str()))?;
    check_once(manifest.files.iter().map(|file| file.file.as_str()))
}

/// Whether a scope is that of an agent, of its executor or of an advisor of it.
pub(crate) fn is_scope_of(scope: &str, agent: &str) -> bool {
    let rest = scope.strip_prefix(agent);
    rest.is_some_and(|rest| rest.is_empty() || rest == EXECUTOR || rest.starts_with(ADVISOR))
}

/// Where the recording of a scope lies.
pub(crate) fn scope_file(scope: &str) -> String {
    format!("agents/{scope}.jsonl")
}

fn checked(path: &Path, file: &str, expected: Fingerprint) -> Result<Vec<u8>, BundleError> {
    let bytes = read(path, file, FILE_BYTES)?;
    let actual = file_digest(&bytes);
    if actual == expected { Ok(bytes) } else { Err(BundleError::Digest { file: file.to_owned(), expected, actual }) }
}

fn recording(path: &Path, manifest: &Manifest, agent: &Agent) -> Result<Recording, BundleError> {
    let mut parts = Vec::new();
    let mut meta: Option<Meta> = None;
    for scope in &agent.scopes {
        let bytes = checked(path, &scope.file, scope.sha256)?;
        let cassette = Cassette::from_bytes(path.join(&scope.file), &bytes)?;
        cassette.verify()?;
        let disagrees = |what, stated: String, recorded: String| {
            Err(BundleError::Disagrees { file: scope.file.clone(), what, stated, recorded })
        };
        let calls = cassette.calls().len();
        if calls != scope.calls {
            return disagrees("the number of calls", scope.calls.to_string(), calls.to_string());
        }
        if let Some(call) = cassette.calls().iter().find(|call| call.scope != scope.recorded_as) {
            return disagrees("the scope of a call", scope.recorded_as.clone(), call.scope.clone());
        }
        let own = cassette.meta().cloned().unwrap_or_default();
        let named = |dataset: &Dataset| match &dataset.sha256 {
            Some(digest) => format!("{} ({digest})", dataset.name),
            None => dataset.name.clone(),
        };
        let dataset = own.dataset.clone().unwrap_or_default();
        let pairs = [
            ("the contract version", agent.contract_version.clone(), own.contract_version.clone()),
            ("the behaviour flags", format!("{:?}", agent.behaviour_flags), format!("{:?}", own.behaviour_flags)),
            ("the model", agent.model.clone(), own.model.clone()),
            ("the mask", format!("{:?}", agent.mask), format!("{:?}", own.mask)),
            ("the dataset", named(&manifest.dataset), named(&dataset)),
            ("synthetic data", manifest.synthetic.to_string(), own.synthetic.to_string()),
        ];
        if let Some((what, stated, recorded)) = pairs.into_iter().find(|(_, stated, recorded)| stated != recorded) {
            return disagrees(what, stated, recorded);
        }
        if meta.as_ref().is_some_and(|meta| *meta != own) {
            return disagrees("the first line", "that of the other scopes".to_owned(), "another one".to_owned());
        }
        meta = Some(own);
        parts.push(cassette);
    }
    told(agent, &meta.clone().unwrap_or_default())?;
    let name = path.join(format!("agents ({})", agent.name));
    let (bytes, cassette) = split::joined(&name, &meta.unwrap_or_default(), &parts, &agent.order)?;
    let actual = file_digest(&bytes);
    if actual != agent.recording_sha256 {
        let file = format!("the recording of {}", agent.name);
        return Err(BundleError::Digest { file, expected: agent.recording_sha256, actual });
    }
    Ok(Recording { cassette, bytes })
}

/// What a manifest says of an agent for readers of it alone is what the recording's host wrote into the recording.
fn told(agent: &Agent, meta: &Meta) -> Result<(), BundleError> {
    let Some(run) = meta.extra.get("manifest").and_then(Value::as_object) else { return Ok(()) };
    let held = |name: &str| run.get(name).cloned().unwrap_or_default();
    let text = |name: &str, otherwise: &str| held(name).as_str().unwrap_or(otherwise).to_owned();
    let shown = |value: &Value| value.to_string().chars().take(200).collect::<String>();
    let cash = held("card").get("initial_cash").cloned().unwrap_or_default();
    let window = agent.window.clone().unwrap_or_default();
    let pairs = [
        ("the window", window, held("window")),
        ("the id of the window", agent.window_id.clone().into(), text("window_id", "").into()),
        ("the id of the mask key", agent.seed_id.clone().into(), text("entity_mask_seed", "").into()),
        ("the style of calls", agent.style.clone().into(), text("style", NATIVE_STYLE).into()),
        ("the cash", Value::from(agent.cash), cash.as_f64().map(Value::from).unwrap_or_default()),
        ("the card", agent.card.clone(), held("card")),
    ];
    match pairs.into_iter().find(|(_, stated, recorded)| stated != recorded) {
        None => Ok(()),
        Some((what, stated, recorded)) => Err(BundleError::Disagrees {
            file: format!("the recording of {}", agent.name),
            what,
            stated: shown(&stated),
            recorded: shown(&recorded),
        }),
    }
}
