//! [`Workspace`]: the agent's files. A call works on a copy; only a successful one becomes the next version, so a call that failed or
//! was cut leaves nothing half-written, and a resumed run finds the files of the last call it kept.
//!
//! A version has the number of the call that made it; 0 is what the run started with. The version before the last one stays until the
//! next call starts: a run that is killed between a commit and its record goes back to it.

mod tree;

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use tree::Times;
pub use tree::{Bounds, Changed};

/// Folder a call works in, in one of the system's for temporary files; beside the versions a file that says where it is.
const STAGE: &str = "stage";
/// How names of folders for temporary files begin.
const PREFIX: &str = "traderharness-";
/// A version that is not whole yet.
const NEXT: &str = "next";

/// Why there is no workspace for a call, or no next version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The system refused.
    #[error("the workspace of the sandbox cannot be kept")]
    Io(#[from] io::Error),
    /// The version to go on from is gone.
    #[error("version {version} of the sandbox's workspace is not there any more; the run cannot go on with its files")]
    Lost {
        /// Version.
        version: u64,
    },
    /// The files are more than they may be.
    #[error("{bytes} bytes in {files} files are more than the workspace holds")]
    OverQuota {
        /// Bytes found, at least.
        bytes: u64,
        /// Files found, at least.
        files: u64,
    },
}

/// The files of one run.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// A workspace below this folder, which is made when it is needed.
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Folder of all versions.
    pub const fn root(&self) -> &PathBuf {
        &self.root
    }

    fn version(&self, number: u64) -> PathBuf {
        self.root.join(number.to_string())
    }

    /// Makes what `folder` holds the files that the run starts with. A folder that is not there holds nothing.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn start_with(&self, folder: &Path, bounds: &Bounds) -> Result<(), WorkspaceError> {
        make(&self.root)?;
        self.clear(&[])?;
        let next = self.root.join(NEXT);
        if folder.is_dir() {
            tree::copy(folder, &next, bounds, Times::All(0))?;
        } else {
            make(&next)?;
        }
        Ok(fs::rename(next, self.version(0))?)
    }

    /// Puts the files of a version in place of those of `folder`: readers find the old files or the new ones.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn publish(&self, version: u64, folder: &Path, bounds: &Bounds) -> Result<(), WorkspaceError> {
        let from = self.version(version);
        if !from.is_dir() {
            return if version == 0 { Ok(()) } else { Err(WorkspaceError::Lost { version }) };
        }
        let beside = |what: &str| {
            let mut name = folder.file_name().unwrap_or_default().to_os_string();
            name.push(what);
            folder.with_file_name(name)
        };
        let (new, old) = (beside(".new"), beside(".old"));
        tree::remove(&new)?;
        tree::copy(&from, &new, bounds, Times::New)?;
        tree::remove(&old)?;
        if folder.is_dir() {
            fs::rename(folder, &old)?;
        }
        fs::rename(&new, folder)?;
        Ok(tree::remove(&old)?)
    }

    /// A copy of the files of version `base` for call `number` to work on. Every other version is given up, later ones too: they
    /// belong to calls that a killed run did not keep. Version 0 stays for replays.
    ///
    /// # Errors
    /// [`WorkspaceError::Lost`] when `base` is not there, [`WorkspaceError::Io`].
    pub fn stage(&self, number: u64, base: u64, bounds: &Bounds) -> Result<Stage<'_>, WorkspaceError> {
        make(&self.root)?;
        let from = Some(self.version(base)).filter(|path| path.is_dir());
        if from.is_none() && base > 0 {
            return Err(WorkspaceError::Lost { version: base });
        }
        self.clear_stage()?;
        self.clear(&[base, 0])?;
        // The code can read the path of its folder. It is none of the run's, whose name may tell of days or of an experiment. A worker
        // does not start in our working folder.
        let outside = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let path = std::path::absolute(outside.path().join(STAGE))?;
        fs::write(self.root.join(STAGE), path.as_os_str().as_encoded_bytes())?;
        match &from {
            Some(from) => tree::copy(from, &path, bounds, Times::Kept)?,
            None => make(&path)?,
        }
        Ok(Stage { workspace: self, number, from, path, _outside: outside })
    }

    /// Removes the folder of a call that was killed.
    fn clear_stage(&self) -> io::Result<()> {
        let Ok(path) = fs::read(self.root.join(STAGE)) else { return Ok(()) };
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        let outside = path
            .parent()
            .filter(|folder| folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes())));
        match outside {
            Some(outside) if path.ends_with(STAGE) => tree::remove(outside),
            _ => Ok(()),
        }
    }

    /// Removes everything but these versions.
    fn clear(&self, keep: &[u64]) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if number.is_none_or(|number: u64| !keep.contains(&number)) {
                tree::remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// A folder only its owner can look into.
fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The files of one call while it runs. Dropped without a commit, they are gone.
#[derive(Debug)]
pub struct Stage<'a> {
    workspace: &'a Workspace,
    number: u64,
    from: Option<PathBuf>,
    path: PathBuf,
    /// Removed after the files.
    _outside: tempfile::TempDir,
}

impl Stage<'_> {
    /// The folder the code may write to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the files the version of this call, whole or not at all, and names those that were written or changed, by name. These get
    /// `moment`, seconds since 1970, as their time: the clock of the run, which later calls see and every run has alike. The process that
    /// wrote them must have ended. Only regular files and folders are taken over, as new files: no link, no pipe, no descriptor that
    /// somebody kept open leads into a version.
    ///
    /// # Errors
    /// [`WorkspaceError::OverQuota`], [`WorkspaceError::Io`].
    pub fn commit(self, bounds: &Bounds, moment: i64) -> Result<Vec<Changed>, WorkspaceError> {
        let next = self.workspace.root.join(NEXT);
        tree::remove(&next)?;
        let files = tree::copy_listing(&self.path, &next, bounds, Times::New)?;
        let version = self.workspace.version(self.number);
        tree::remove(&version)?;
        let changed = tree::changed(files, &next, self.from.as_deref(), moment)?;
        fs::rename(&next, &version)?;
        Ok(changed)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // What cannot be removed now is removed before the next call.
        if tree::remove(&self.path).is_ok() {
            let _ = fs::remove_file(self.workspace.root.join(STAGE));
        }
    }
}
