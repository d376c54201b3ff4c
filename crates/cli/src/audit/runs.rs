//! What the audit must know of the recorded runs in an artifact: where their datasets lay, the keys of their masks, the ids of their
//! models, and how codes were hidden.

use crate::manifest::Private;
use crate::run::RunFolder;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use traderharness_ingest::rows::{RowLimits, Rows};
use traderharness_replay::bundle::MANIFEST;

/// Longest first line of a recording, and longest private file or manifest, that is read for what the audit must know.
const HEAD_BYTES: u64 = 16 << 20;

/// The runs that an artifact is, holds, or is a file of.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// Where the first one's dataset lay.
    pub(crate) data: Option<PathBuf>,
    /// Keys of their masks.
    pub(crate) keys: BTreeSet<String>,
    /// Names and digests of their datasets.
    pub(crate) datasets: BTreeSet<(String, String)>,
    /// A model's id may hold the day of its release.
    pub(crate) models: BTreeSet<String>,
    /// How codes were hidden in each of them; empty for codes that were shown.
    styles: BTreeSet<String>,
}

impl Runs {
    /// The runs of an artifact.
    pub(crate) fn of(artifact: &Path) -> Self {
        let mut runs = Self::default();
        if !artifact.is_dir() {
            let folder = artifact.parent().unwrap_or(Path::new("."));
            // A file of a run; one of a bundle lies a folder deeper.
            runs.recording(artifact);
            runs.folder(folder);
            if folder.file_name().is_some_and(|name| name == "agents") {
                runs.bundle(folder.parent().unwrap_or(Path::new(".")));
            }
            return runs;
        }
        runs.folder(artifact);
        runs.bundle(artifact);
        for folder in RunFolder::runs_in(artifact) {
            runs.folder(&folder);
        }
        runs
    }

    /// Whether the codes of all of them are masked by other codes of the dataset.
    pub(crate) fn all_permuted(&self) -> bool {
        self.styles.len() == 1 && self.styles.contains("permutation")
    }

    fn folder(&mut self, folder: &Path) {
        for name in ["cassette.jsonl", "cassette.jsonl.partial", "trajectory.jsonl"] {
            self.recording(&folder.join(name));
        }
        let private =
            json(&folder.join("private").join("run.json")).and_then(|value| serde_json::from_value::<Private>(value).ok());
        if let Some(private) = private {
            self.data = self.data.take().or(private.data);
            self.keys.insert(private.mask_key);
        }
    }

    fn recording(&mut self, path: &Path) {
        let Some(head) = head(path) else { return };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let dataset = head.get("dataset");
        let name = text(dataset.and_then(|of| of.get("name")));
        self.datasets.extend(name.zip(text(dataset.and_then(|of| of.get("sha256")))));
        self.models.extend(text(head.get("model")));
        if head.get("type").and_then(Value::as_str) == Some("meta") {
            self.styles.insert(style(&head).unwrap_or_default().to_owned());
        }
    }

    /// A bundle says of each agent what a recording says of its run.
    fn bundle(&mut self, folder: &Path) {
        let Some(manifest) = json(&folder.join(MANIFEST)) else { return };
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(dataset) = manifest.get("dataset") {
            self.datasets.extend(text(dataset, "name").zip(text(dataset, "sha256")));
        }
        for agent in manifest.get("agents").and_then(Value::as_array).into_iter().flatten() {
            self.models.extend(text(agent, "model"));
            self.styles.insert(style(agent).unwrap_or_default().to_owned());
            if let Some(name) = text(agent, "name").filter(|name| !name.contains(['/', '\\']) && !name.starts_with('.')) {
                self.folder(&folder.join("runs").join(name));
            }
        }
    }
}

/// What every row of an export says of its run, in one of two places.
#[derive(Deserialize)]
struct Row {
    mask_style: Option<String>,
    metadata: Option<Value>,
}

impl Row {
    fn is_permuted(&self) -> bool {
        let told = self.mask_style.clone().or_else(|| match self.metadata.as_ref()? {
            // A column of JSON text in Parquet.
            Value::String(text) => serde_json::from_str::<Self>(text).ok()?.mask_style,
            metadata => metadata.get("mask_style")?.as_str().map(str::to_owned),
        });
        told.as_deref() == Some("permutation")
    }
}

/// Whether a file holds rows of an export and each of them is of a run whose codes mask each other. Rows of other runs among them make it
/// a file like any other: there a code is a finding.
fn rows_are_permuted(path: &Path) -> bool {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl") => plain(path).is_some_and(|file| {
            let mut lines = std::io::BufReader::new(file);
            let (mut line, mut any) = (Vec::new(), false);
            loop {
                line.clear();
                match lines.by_ref().take(HEAD_BYTES).read_until(b'\n', &mut line) {
                    Ok(0) => return any,
                    Ok(_) if serde_json::from_slice(&line).is_ok_and(|row: Row| row.is_permuted()) => any = true,
                    _ => return false,
                }
            }
        }),
        Some("parquet") => Rows::open(path, RowLimits::default()).is_ok_and(|rows| {
            let told = rows.columns().iter().any(|name| ["mask_style", "metadata"].contains(name));
            let mut any = false;
            told && rows.into_iter().all(|row| {
                any = true;
                row.is_ok_and(|row| serde_json::from_value(row).is_ok_and(|row: Row| row.is_permuted()))
            }) && any
        }),
        _ => false,
    }
}

/// How a file says that its codes are hidden; `None` when it says nothing of it.
pub(crate) fn style_of(path: &Path) -> Option<String> {
    if rows_are_permuted(path) {
        return Some("permutation".to_owned());
    }
    let head = head(path)?;
    (head.get("type").and_then(Value::as_str) == Some("meta")).then(|| style(&head).unwrap_or_default().to_owned())
}

fn style(of: &Value) -> Option<&str> {
    of.get("mask")?.get("entities")?.as_str()
}

/// Opens a plain file. What this looks for lies beside artifacts by chance: opening a pipe would wait for somebody who writes.
fn plain(path: &Path) -> Option<File> {
    std::fs::metadata(path).ok()?.is_file().then(|| File::open(path).ok()).flatten()
}

fn json(path: &Path) -> Option<Value> {
    let mut text = String::new();
    plain(path)?.take(HEAD_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The first line of a recording.
fn head(path: &Path) -> Option<Value> {
    if path.extension().is_none_or(|ending| ending != "jsonl" && ending != "partial") {
        return None;
    }
    let mut line = String::new();
    std::io::BufReader::new(plain(path)?.take(HEAD_BYTES)).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}
