//! Bundles of the Python implementation: `manifest.json` and `agents/SCOPE.jsonl` without meta lines. Its manifest states no digests, so
//! only names, shapes and numbers can be checked; whether a request is the recorded one shows when it is made.

use crate::bundle::{
    BundleError, FILE_BYTES, MANIFEST, MANIFEST_BYTES, check_name, check_once, check_path, files_in, is_scope_of, read,
};
use crate::cassette::{Cassette, EXECUTOR, Meta, Scheme};
use crate::rewrite::Rewriter;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Newest manifest that is known here.
const MANIFEST_SCHEMA: u64 = 2;
/// Contract version of a manifest that names none.
const FIRST_VERSION: &str = "v1";

/// A bundle of the Python implementation.
#[derive(Debug)]
pub struct ForeignBundle {
    path: PathBuf,
    manifest: Map<String, Value>,
    agents: Vec<ForeignAgent>,
    scopes: Vec<ForeignScope>,
}

/// An agent as its manifest has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignAgent {
    /// Its id; scopes begin with it.
    pub id: String,
    /// Model.
    pub model: String,
    /// The card as it was played, when the manifest has it.
    pub card: Option<Value>,
}

/// The recording of a scope.
#[derive(Debug)]
pub struct ForeignScope {
    /// `AGENT`, `AGENT__executor` or `AGENT__advisor_ROLE`.
    pub name: String,
    /// File in the bundle.
    pub file: String,
    /// Its calls.
    pub cassette: Cassette,
}

impl ForeignBundle {
    /// Whether a folder looks like a bundle of the Python implementation.
    pub fn is_bundle(path: &Path) -> bool {
        let Ok(bytes) = read(path, MANIFEST, MANIFEST_BYTES) else { return false };
        path.join("agents").is_dir() && serde_json::from_slice::<Value>(&bytes).is_ok_and(|value| value.get("format").is_none())
    }

    /// Reads a bundle and checks its names and shapes.
    ///
    /// # Errors
    /// [`BundleError`], for the first thing that is wrong.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let file = path.join(MANIFEST);
        if std::fs::symlink_metadata(&file).is_err() {
            return Err(BundleError::NoManifest { path: path.to_owned() });
        }
        let wrong = |what: String| BundleError::Manifest { path: file.clone(), what };
        let bytes = read(path, MANIFEST, MANIFEST_BYTES)?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|fault| wrong(format!("not JSON: {fault}")))?;
        let Value::Object(manifest) = value else { return Err(wrong("not an object".to_owned())) };
        let version = manifest.get("schema_version").map_or(Some(MANIFEST_SCHEMA), Value::as_u64);
        let version = version.ok_or_else(|| wrong("`schema_version` is not a number".to_owned()))?;
        if version > MANIFEST_SCHEMA {
            return Err(BundleError::Newer { path: file, found: version, known: MANIFEST_SCHEMA });
        }
        let listed = manifest.get("agents").and_then(Value::as_array).ok_or_else(|| wrong("`agents` is no list".to_owned()))?;
        let mut agents = Vec::new();
        let mut named = Vec::new();
        for (index, agent) in listed.iter().enumerate() {
            let text = |field: &str| agent.get(field).and_then(Value::as_str).map(str::to_owned);
            let id = text("id").ok_or_else(|| wrong(format!("`agents[{index}].id` is no text")))?;
            check_name("an agent", &id)?;
            if let Some(cassette) = text("cassette").filter(|cassette| !cassette.is_empty()) {
                check_path(&cassette)?;
                named.push(if cassette.contains('/') { cassette } else { format!("agents/{cassette}") });
            }
            let card = agent.get("card_snapshot").filter(|card| !card.is_null()).cloned();
            agents.push(ForeignAgent { id, model: text("model").unwrap_or_default(), card });
        }
        check_once(agents.iter().map(|agent| agent.id.as_str()))?;
        let found = files_in(path)?;
        let recordings: Vec<&String> = found.keys().filter(|file| file.starts_with("agents/")).collect();
        if let Some(file) = named.iter().find(|file| !found.contains_key(*file)) {
            return Err(BundleError::Missing { path: path.to_owned(), file: file.clone() });
        }
        let mut scopes = Vec::new();
        for file in recordings {
            let name = file.strip_prefix("agents/").and_then(|name| name.strip_suffix(".jsonl")).unwrap_or_default();
            if name.contains('/') || !agents.iter().any(|agent| is_scope_of(name, &agent.id)) {
                return Err(BundleError::Unnamed { path: path.to_owned(), file: file.clone() });
            }
            check_name("a scope", name)?;
            let cassette = Cassette::from_bytes(path.join(file), &read(path, file, FILE_BYTES)?)?;
            if cassette.scheme() == Scheme::Whole {
                return Err(wrong(format!("{file} is a recording of this program; its manifest should be one too")));
            }
            scopes.push(ForeignScope { name: name.to_owned(), file: file.clone(), cassette });
        }
        check_once(scopes.iter().map(|scope| scope.name.as_str()))?;
        // Either the agent alone, or its executor.
        let has = |name: &str| scopes.iter().any(|scope| scope.name == name);
        if let Some(agent) = agents.iter().find(|agent| !has(&agent.id) && !has(&format!("{}{EXECUTOR}", agent.id))) {
            return Err(BundleError::Missing { path: path.to_owned(), file: format!("agents/{}.jsonl", agent.id) });
        }
        Ok(Self { path: path.to_owned(), manifest, agents, scopes })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest as it stands in the file.
    pub fn manifest(&self) -> &Map<String, Value> {
        &self.manifest
    }

    /// Contract version of all its runs.
    pub fn contract_version(&self) -> &str {
        self.manifest.get("prompt_contract_version").and_then(Value::as_str).unwrap_or(FIRST_VERSION)
    }

    /// The agents, as the manifest lists them.
    pub fn agents(&self) -> &[ForeignAgent] {
        &self.agents
    }

    /// First line of a recording that is made of its scopes.
    pub(crate) fn meta(&self) -> Meta {
        Meta {
            contract_version: self.contract_version().to_owned(),
            fingerprints: Scheme::Reference,
            extra: self.manifest.clone(),
            ..Meta::default()
        }
    }

    /// The scopes of one agent as one recording, under their names.
    ///
    /// # Errors
    /// As [`crate::migrate::foreign`], which rewrites them.
    pub fn cassette(&self, agent: &str) -> Result<Cassette, BundleError> {
        let mut rewriter = Rewriter::new(&self.meta())?;
        for scope in self.scopes.iter().filter(|scope| is_scope_of(&scope.name, agent)) {
            for call in scope.cassette.calls() {
                rewriter.call(&scope.cassette, call, &scope.name)?;
            }
        }
        Ok(Cassette::from_bytes(self.path.join("agents"), &rewriter.finish()?)?)
    }

    /// The recordings, by name.
    pub fn scopes(&self) -> &[ForeignScope] {
        &self.scopes
    }
}
