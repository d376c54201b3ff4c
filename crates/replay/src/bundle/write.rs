//! Makes a bundle: everything is put into a folder beside the wanted one, read back and checked as any reader would, and only then gets
//! its name. It overwrites nothing and leaves nothing half-made.

use super::beside::Beside;
use super::error::BundleError;
use super::split::{Parts, split};
use super::tree::{check_name, check_path, file_digest};
use super::{Agent, BUNDLE_SCHEMA_VERSION, Bundle, FORMAT, File, LeftOut, MANIFEST, Manifest, Scope, check_names, scope_file};
use crate::cassette::{ADVISOR, Cassette, Dataset, EXECUTOR};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

/// Facts of an agent that its recording has for its host alone.
#[derive(Debug, Clone)]
pub struct DraftAgent {
    /// Name in the bundle.
    pub name: String,
    /// First and last day, when they are not hidden.
    pub window: Option<Value>,
    /// Digest of the window.
    pub window_id: String,
    /// Cash at the start, CNY.
    pub cash: f64,
    /// Id of the mask key.
    pub seed_id: String,
    /// How the model wrote its calls.
    pub style: String,
    /// The card.
    pub card: Value,
}

/// A bundle that is being made.
#[derive(Debug)]
pub struct Draft {
    tool_version: String,
    dataset: Option<(Dataset, bool)>,
    agents: Vec<Agent>,
    files: Vec<(String, Vec<u8>)>,
    private: Vec<(String, Vec<u8>)>,
    left_out: Vec<LeftOut>,
}

impl Draft {
    /// An empty bundle of a program version.
    pub fn new(tool_version: impl Into<String>) -> Self {
        Self {
            tool_version: tool_version.into(),
            dataset: None,
            agents: Vec::new(),
            files: Vec::new(),
            private: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Adds an agent with its recording.
    ///
    /// # Errors
    /// [`BundleError::Name`] for a name that is none, [`BundleError::Disagrees`] for a recording over another dataset than those before,
    /// [`BundleError::Recording`] for one that is not whole.
    pub fn agent(&mut self, agent: DraftAgent, cassette: &Cassette) -> Result<(), BundleError> {
        check_name("an agent", &agent.name)?;
        let meta = cassette.meta().cloned().unwrap_or_default();
        let dataset = meta.dataset.clone().unwrap_or_default();
        match &self.dataset {
            Some((known, synthetic)) if *known != dataset || *synthetic != meta.synthetic => {
                return Err(BundleError::Disagrees {
                    file: format!("the recording of {}", agent.name),
                    what: "the dataset",
                    stated: format!("{} ({})", known.name, shown(known)),
                    recorded: format!("{} ({})", dataset.name, shown(&dataset)),
                });
            }
            Some(_) => {}
            None => self.dataset = Some((dataset, meta.synthetic)),
        }
        let Parts { parts, order, joined } = split(cassette)?;
        let mut scopes = Vec::new();
        for part in parts {
            // The scopes of a card are named after the card; in a bundle they are named after the agent, of which several may have one card.
            let scope = match part.scope.rsplit_once(ADVISOR) {
                Some((_, role)) => format!("{}{ADVISOR}{role}", agent.name),
                None if part.scope.ends_with(EXECUTOR) => format!("{}{EXECUTOR}", agent.name),
                None => agent.name.clone(),
            };
            check_name("a scope", &scope)?;
            let file = scope_file(&scope);
            scopes.push(Scope {
                scope,
                recorded_as: part.scope,
                file: file.clone(),
                sha256: file_digest(&part.bytes),
                bytes: part.bytes.len() as u64,
                calls: part.calls,
            });
            self.files.push((file, part.bytes));
        }
        let DraftAgent { name, window, window_id, cash, seed_id, style, card } = agent;
        self.agents.push(Agent {
            name,
            model: meta.model,
            contract_version: meta.contract_version,
            behaviour_flags: meta.behaviour_flags,
            window,
            window_id,
            cash,
            mask: meta.mask,
            seed_id,
            style,
            card,
            scopes,
            order,
            recording_sha256: file_digest(&joined),
        });
        Ok(())
    }

    /// Adds another file, at `path` from the folder of the bundle on.
    ///
    /// # Errors
    /// [`BundleError::Name`].
    pub fn file(&mut self, path: String, bytes: Vec<u8>) -> Result<(), BundleError> {
        check_path(&path)?;
        self.files.push((path, bytes));
        Ok(())
    }

    /// Adds a file that only its owner can read and no manifest names; `path` leads into a folder called `private`.
    ///
    /// # Errors
    /// [`BundleError::Name`].
    pub fn private(&mut self, path: String, bytes: Vec<u8>) -> Result<(), BundleError> {
        check_path(&path)?;
        if !path.split('/').rev().skip(1).any(|part| part == "private") {
            return Err(BundleError::Name { name: path, what: "a private file", why: "it is in no private folder" });
        }
        self.private.push((path, bytes));
        Ok(())
    }

    /// Notes a run that is not in the bundle.
    pub fn left_out(&mut self, agent: impl Into<String>, why: impl Into<String>) {
        self.left_out.push(LeftOut { agent: agent.into(), why: why.into() });
    }

    /// Writes the bundle into the new folder `out` and gives it as it was read back.
    ///
    /// # Errors
    /// [`BundleError`]; nothing is left then. [`BundleError::Io`] when `out` exists.
    pub fn write(self, out: &Path) -> Result<Bundle, BundleError> {
        let exists = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it exists; a bundle is never written over anything");
        if std::fs::symlink_metadata(out).is_ok() {
            return Err(BundleError::io("make", out)(exists));
        }
        let manifest = self.manifest();
        check_names(&manifest)?;
        let beside = Beside::make(out)?;
        self.put(&manifest, &beside.path)?;
        let bundle = Bundle::open(&beside.path)?;
        // A folder that appeared meanwhile is not replaced: renaming onto one that is not empty fails.
        std::fs::rename(&beside.path, out).map_err(BundleError::io("make", out))?;
        crate::jsonl::sync_folder(out);
        Ok(Bundle { path: out.to_owned(), ..bundle })
    }

    fn manifest(&self) -> Manifest {
        let (dataset, synthetic) = self.dataset.clone().unwrap_or_default();
        let recordings: Vec<&str> = self.agents.iter().flat_map(|a| &a.scopes).map(|scope| scope.file.as_str()).collect();
        let others = self.files.iter().filter(|(file, _)| !recordings.contains(&file.as_str()));
        let mut files: Vec<File> = others
            .map(|(file, bytes)| File { file: file.clone(), sha256: file_digest(bytes), bytes: bytes.len() as u64 })
            .collect();
        files.sort_by(|a, b| a.file.cmp(&b.file));
        Manifest {
            format: FORMAT.to_owned(),
            schema_version: BUNDLE_SCHEMA_VERSION,
            tool_version: self.tool_version.clone(),
            dataset,
            synthetic,
            agents: self.agents.clone(),
            files,
            left_out: self.left_out.clone(),
        }
    }

    fn put(&self, manifest: &Manifest, folder: &Path) -> Result<(), BundleError> {
        let mut text = serde_json::to_vec_pretty(manifest).map_err(std::io::Error::other);
        if let Ok(text) = &mut text {
            text.push(b'\n');
        }
        write(folder, MANIFEST, &text.map_err(BundleError::io("write", folder))?, false)?;
        for (file, bytes) in &self.files {
            write(folder, file, bytes, false)?;
        }
        for (file, bytes) in &self.private {
            write(folder, file, bytes, true)?;
        }
        Ok(())
    }
}

fn shown(dataset: &Dataset) -> String {
    dataset.sha256.map_or_else(|| "no digest".to_owned(), |digest| digest.to_string())
}

fn write(root: &Path, file: &str, bytes: &[u8], private: bool) -> Result<(), BundleError> {
    let path = root.join(file);
    let folder = path.parent().unwrap_or(root);
    std::fs::create_dir_all(folder).map_err(BundleError::io("make", folder))?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if private {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        options.mode(0o600);
        let closed = folder.ancestors().find(|part| part.file_name().is_some_and(|name| name == "private"));
        if let Some(closed) = closed {
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(closed, mode).map_err(BundleError::io("make", closed))?;
        }
    }
    #[cfg(not(unix))]
    let _ = private;
    let mut opened = options.open(&path).map_err(BundleError::io("write", &path))?;
    opened.write_all(bytes).and_then(|()| opened.sync_all()).map_err(BundleError::io("write", &path))
}
