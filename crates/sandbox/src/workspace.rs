//! [`Workspace`]: the agent's files. A call works on a copy; only a successful one becomes the next version, so a call that failed or
//! was cut leaves nothing half-written, and a resumed run finds the files of the last call it kept.

use std::path::PathBuf;

/// The files of one run.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// A workspace below this folder.
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Folder of all versions.
    pub const fn root(&self) -> &PathBuf {
        &self.root
    }
}
