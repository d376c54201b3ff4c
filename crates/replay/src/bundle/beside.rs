//! The folder in which a bundle is made, beside the one that is wanted: `.NAME.PID.partial`. It goes when it was not renamed; what a killed
//! process left is found by its lock, which the system lets go with the process. It must never remove a folder that somebody still writes.

use super::error::BundleError;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Last part of its name.
const END: &str = ".partial";
/// How often a folder is made that somebody else takes for a leftover in the moment before it is locked.
const TRIES: usize = 8;

/// A folder beside the wanted one.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) path: PathBuf,
    /// Held until the folder is renamed or gone.
    _lock: Option<File>,
}

impl Beside {
    pub(super) fn make(out: &Path) -> Result<Self, BundleError> {
        let (parent, begin) = named(out);
        let path = parent.join(format!("{begin}{}{END}", std::process::id()));
        std::fs::create_dir_all(&parent).map_err(BundleError::io("make", &parent))?;
        for _ in 0..TRIES {
            std::fs::create_dir(&path).map_err(BundleError::io("make", &path))?;
            let lock = lock(&path);
            if path.is_dir() {
                return Ok(Self { path, _lock: lock });
            }
        }
        let busy = std::io::Error::new(std::io::ErrorKind::ResourceBusy, "another process removes it each time");
        Err(BundleError::io("make", &path)(busy))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Gone already when it was renamed.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes what killed processes left of bundles that were to be `out`; gives the folders that are gone, by name. One that cannot be removed
/// stays: it is in nobody's way.
pub fn remove_leftovers(out: &Path) -> Vec<PathBuf> {
    let (parent, begin) = named(out);
    let is_ours = |name: &str| {
        let process = name.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(END));
        process.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let Ok(entries) = std::fs::read_dir(&parent) else { return Vec::new() };
    let found = entries.filter_map(Result::ok).filter(|entry| {
        // A link leads to what is not ours.
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name().to_str().is_some_and(is_ours)
    });
    let mut gone: Vec<PathBuf> = found.map(|entry| entry.path()).filter(|path| remove_left(path)).collect();
    gone.sort();
    gone
}

/// Its folder, and how its name begins.
fn named(out: &Path) -> (PathBuf, String) {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    (parent.to_path_buf(), format!(".{}.", out.file_name().unwrap_or_default().to_string_lossy()))
}

/// Locks a folder. Where a folder has no locks nothing is ever taken for a leftover.
fn lock(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Removes a folder that nobody holds any more, and holds it until it is gone.
fn remove_left(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok() && std::fs::remove_dir_all(path).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these names are removed as leftovers of a bundle `out`.
    fn check(names: &[&str], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let gone = remove_leftovers(&folder.path().join("out"));
        let gone: Vec<_> = gone.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(gone, expected);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), names.len() - expected.len());
    }

    #[test]
    fn only_folders_that_this_bundle_would_make_are_leftovers() {
        check(&[".out.17.partial", ".out.1234567.partial"], &[".out.1234567.partial", ".out.17.partial"]);
        check(
            &[
                "out",
                ".out.partial",
                ".out..partial",
                ".out.1x.partial",
                ".other.17.partial",
                ".out.17.partial.d",
                "out.17.partial",
            ],
            &[],
        );
    }

    #[test]
    fn a_folder_that_is_being_written_is_no_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let beside = Beside::make(&out).unwrap();
        assert!(remove_leftovers(&out).is_empty());
        assert!(beside.path.is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_under_such_a_name_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("mine");
        std::fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join(".out.17.partial")).unwrap();
        assert!(remove_leftovers(&folder.path().join("out")).is_empty());
        assert!(target.is_dir());
    }
}
