//! What lies in a workspace. The walk is the host's and runs while the code may still write: it follows no link, forgives what vanishes
//! under it, and stops at the first excess. It goes from folder to folder by descriptor, so that no path is too long for it, and what it
//! cannot see is an excess: folders deeper than a workspace keeps, and folders that cannot be listed.

use crate::protocol::Limits;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, SFlag, fstatat};
use std::ffi::CString;
use std::path::Path;

/// Levels of folders below the workspace that are kept.
pub const DEPTH: usize = 16;

/// Bytes and entries (files, folders, whatever else) below a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occupied {
    /// Length of all files.
    pub bytes: u64,
    /// Entries.
    pub files: u64,
    /// There is a folder that cannot be looked into.
    pub closed: bool,
}

impl Occupied {
    /// Counts until everything is seen or a limit is passed.
    pub fn below(folder: &Path, limits: &Limits) -> Self {
        let mut occupied = Self::default();
        match Dir::open(folder, FLAGS, Mode::empty()) {
            Ok(mut dir) => occupied.level(&mut dir, limits, 0),
            Err(error) => occupied.unseen(error),
        }
        occupied
    }

    fn level(&mut self, dir: &mut Dir, limits: &Limits, depth: usize) {
        let most = limits.workspace_files as usize + 3;
        let names: Vec<CString> = dir.iter().flatten().take(most).map(|entry| entry.file_name().to_owned()).collect();
        for name in names {
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = fstatat(&*dir, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
            self.files += 1;
            if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT != SFlag::S_IFDIR {
                self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
            } else if depth >= DEPTH {
                self.closed = true;
            } else {
                match Dir::openat(&*dir, name.as_c_str(), FLAGS, Mode::empty()) {
                    Ok(mut below) => self.level(&mut below, limits, depth + 1),
                    Err(error) => self.unseen(error),
                }
            }
            if self.exceeds(limits) {
                return;
            }
        }
    }

    /// What is gone or became something else is seen the next time; so is what the host had no descriptor for.
    fn unseen(&mut self, error: Errno) {
        self.closed |= matches!(error, Errno::EACCES | Errno::EPERM);
    }

    /// Whether the quota is passed.
    pub const fn exceeds(&self, limits: &Limits) -> bool {
        self.closed || self.bytes > limits.workspace_bytes || self.files > limits.workspace_files as u64
    }
}

const FLAGS: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
