//! Copies and removes folders that hostile code wrote: no link is followed, nothing but regular files and folders is taken, and depth,
//! count and bytes are bounded.

use super::WorkspaceError;
use crate::watch::DEPTH;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmodat, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a workspace may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// All files together, bytes.
    pub bytes: u64,
    /// Files and folders.
    pub files: u64,
}

/// A file that a call wrote or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Path inside the workspace.
    pub name: String,
    /// Size, bytes.
    pub bytes: u64,
}

/// A file that was copied.
#[derive(Debug)]
pub(super) struct Copied {
    path: PathBuf,
    bytes: u64,
}

fn folder(path: &Path) -> io::Result<Dir> {
    Dir::open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(Into::into)
}

/// Names in a folder, in the order of their bytes.
fn names(dir: &mut Dir) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in dir.iter() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn kind_at(dir: &Dir, name: &CStr) -> nix::Result<SFlag> {
    let stat = fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    Ok(SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT)
}

/// What becomes of the times of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    /// They stay as they are.
    Kept,
    /// Every file gets this second since 1970.
    All(i64),
    /// A copy is as new as it is.
    New,
}

/// Copies a folder that this crate wrote.
pub(super) fn copy(from: &Path, to: &Path, bounds: &Bounds, times: Times) -> Result<(), WorkspaceError> {
    copy_listing(from, to, bounds, times).map(drop)
}

fn moment(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Copies what may stay of a folder into one that is not there yet, and lists the files.
pub(super) fn copy_listing(from: &Path, to: &Path, bounds: &Bounds, times: Times) -> Result<Vec<Copied>, WorkspaceError> {
    let mut copy = Copying { bounds, times, bytes: 0, files: 0, listing: Vec::new() };
    super::make(to)?;
    copy.level(&mut folder(from)?, to, Path::new(""), 0)?;
    Ok(copy.listing)
}

struct Copying<'b> {
    bounds: &'b Bounds,
    times: Times,
    bytes: u64,
    files: u64,
    listing: Vec<Copied>,
}

impl Copying<'_> {
    fn level(&mut self, dir: &mut Dir, to: &Path, inside: &Path, depth: usize) -> Result<(), WorkspaceError> {
        for name in names(dir)? {
            let kind = kind_at(dir, &name).map_err(io::Error::from)?;
            if kind != SFlag::S_IFREG && kind != SFlag::S_IFDIR {
                continue;
            }
            self.files += 1;
            self.within()?;
            let (target, path) = (to.join(OsStr::from_bytes(name.to_bytes())), inside.join(OsStr::from_bytes(name.to_bytes())));
            if kind == SFlag::S_IFDIR {
                if depth >= DEPTH {
                    continue;
                }
                let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let Some(mut below) = opened(Dir::openat(&*dir, name.as_c_str(), flags, Mode::empty()))? else { continue };
                super::make(&target)?;
                self.level(&mut below, &target, &path, depth + 1)?;
            } else {
                // A file that became a pipe meanwhile must not hold us up.
                let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
                let Some(file) = opened(openat(&*dir, name.as_c_str(), flags, Mode::empty()))? else { continue };
                let stat = fstat(file.as_fd()).map_err(io::Error::from)?;
                if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT != SFlag::S_IFREG {
                    continue;
                }
                let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target)?;
                // One byte more than there is room for tells that it is too much, whatever the size says by now.
                let room = self.bounds.bytes.saturating_sub(self.bytes).saturating_add(1);
                let bytes = io::copy(&mut File::from(file).take(room), &mut out)?;
                self.bytes += bytes;
                self.within()?;
                match self.times {
                    Times::Kept => out.set_modified(moment(stat.st_mtime))?,
                    Times::All(seconds) => out.set_modified(moment(seconds))?,
                    Times::New => {}
                }
                self.listing.push(Copied { path, bytes });
            }
        }
        Ok(())
    }

    fn within(&self) -> Result<(), WorkspaceError> {
        if self.bytes > self.bounds.bytes || self.files > self.bounds.files {
            return Err(WorkspaceError::OverQuota { bytes: self.bytes, files: self.files });
        }
        Ok(())
    }
}

/// `None` for what was made unreadable, is gone, or is a link by now: it is not taken over.
fn opened<T>(result: nix::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::EACCES | Errno::ELOOP | Errno::ENOENT | Errno::ENOTDIR | Errno::ENXIO) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Which of these files of `now` are not in `before`, or not with these bytes. They are given this second since 1970 as their time, and
/// the others the time that they had.
pub(super) fn changed(files: Vec<Copied>, now: &Path, before: Option<&Path>, seconds: i64) -> io::Result<Vec<Changed>> {
    let mut changed = Vec::new();
    for file in files {
        let same = match before {
            Some(before) => same(&now.join(&file.path), &before.join(&file.path), file.bytes)?,
            None => false,
        };
        let time = match before.filter(|_| same) {
            Some(before) => fs::symlink_metadata(before.join(&file.path))?.modified()?,
            None => moment(seconds),
        };
        File::options().write(true).open(now.join(&file.path))?.set_modified(time)?;
        if !same {
            changed.push(Changed { name: file.path.to_string_lossy().into_owned(), bytes: file.bytes });
        }
    }
    changed.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(changed)
}

fn same(now: &Path, before: &Path, bytes: u64) -> io::Result<bool> {
    match fs::symlink_metadata(before) {
        Ok(meta) if meta.is_file() && meta.len() == bytes => {}
        Ok(_) => return Ok(false),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(false),
        Err(e) => return Err(e),
    }
    let (mut now, mut before) = (File::open(now)?, File::open(before)?);
    let (mut one, mut two) = ([0_u8; 16 << 10], [0_u8; 16 << 10]);
    loop {
        let read = now.read(&mut one)?;
        if read == 0 {
            return Ok(true);
        }
        before.read_exact(&mut two[..read])?;
        if one[..read] != two[..read] {
            return Ok(false);
        }
    }
}

/// Removes whatever is at the path and below, also folders whose permissions were taken away. Nothing there is fine.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    if !meta.is_dir() {
        return fs::remove_file(path);
    }
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    empty(&mut folder(path)?)?;
    fs::remove_dir(path)
}

/// Folders can be nested deeper than any path is long, and than our stack is: each level is moved up before it is entered.
fn empty(top: &mut Dir) -> io::Result<()> {
    let mut moved = 0_u64;
    loop {
        let level = names(top)?;
        if level.is_empty() {
            return Ok(());
        }
        for name in level {
            if kind_at(top, &name)? != SFlag::S_IFDIR {
                unlinkat(&*top, name.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
                continue;
            }
            fchmodat(&*top, name.as_c_str(), Mode::S_IRWXU, FchmodatFlags::FollowSymlink)?;
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let mut below = Dir::openat(&*top, name.as_c_str(), flags, Mode::empty())?;
            for inner in names(&mut below)? {
                if kind_at(&below, &inner)? == SFlag::S_IFDIR {
                    // A folder can be moved only with the right to write its own `..`.
                    fchmodat(&below, inner.as_c_str(), Mode::S_IRWXU, FchmodatFlags::FollowSymlink)?;
                    moved += 1;
                    let up = CString::new(format!(".moved-{moved}")).map_err(io::Error::other)?;
                    match nix::fcntl::renameat(&below, inner.as_c_str(), &*top, up.as_c_str()) {
                        // A name that the code had taken already: the next round finds another one.
                        Ok(()) | Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOTDIR) => {}
                        Err(e) => return Err(e.into()),
                    }
                } else {
                    unlinkat(&below, inner.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
                }
            }
            match unlinkat(&*top, name.as_c_str(), UnlinkatFlags::RemoveDir) {
                Ok(()) | Err(Errno::ENOTEMPTY | Errno::EEXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}
