//! What lies in a workspace. The walk is the host's and runs while the code may still write: it follows no link, forgives what vanishes
//! under it, and stops at the first excess.

use crate::protocol::Limits;
use std::path::Path;

/// Bytes and entries (files, folders, whatever else) below a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occupied {
    /// Length of all files.
    pub bytes: u64,
    /// Entries.
    pub files: u64,
}

impl Occupied {
    /// Counts until everything is seen or a limit is passed.
    pub fn below(folder: &Path, limits: &Limits) -> Self {
        let mut occupied = Self::default();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(meta) = entry.metadata() else { continue };
                occupied.files += 1;
                if meta.is_dir() {
                    folders.push(entry.path());
                } else {
                    occupied.bytes = occupied.bytes.saturating_add(meta.len());
                }
                if occupied.exceeds(limits) {
                    return occupied;
                }
            }
        }
        occupied
    }

    /// Whether the quota is passed.
    pub const fn exceeds(&self, limits: &Limits) -> bool {
        self.bytes > limits.workspace_bytes || self.files > limits.workspace_files as u64
    }
}
