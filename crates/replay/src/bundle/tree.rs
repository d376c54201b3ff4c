//! The files of a bundle as they lie on the disk: names that cannot lead out of it, no links, nothing endless. It reads no more of a file
//! than it is told to.

use super::error::BundleError;
use crate::Fingerprint;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

/// Longest manifest.
pub(crate) const MANIFEST_BYTES: u64 = 64 << 20;
/// Longest other file.
pub const FILE_BYTES: u64 = 1 << 30;
/// Most files and folders.
const ENTRIES: usize = 20_000;
/// Deepest nesting of folders.
const DEEPEST: usize = 40;
/// Longest name of a scope.
const NAME_CHARS: usize = 200;

/// Checks the name of a scope or an agent. It becomes the name of a file, so it can be nothing else than a name.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), BundleError> {
    let refuse = |why| Err(BundleError::Name { name: name.chars().take(NAME_CHARS).collect(), what, why });
    if name.is_empty() || name.chars().count() > NAME_CHARS {
        return refuse("it has no character, or more than 200");
    }
    if !name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        return refuse("letters, digits, `_`, `-` and `.` only");
    }
    if name.starts_with('.') || name.contains("..") || name.ends_with('.') {
        return refuse("a point can neither begin nor end it, nor follow a point");
    }
    Ok(())
}

/// Checks a path inside of a bundle, as a manifest writes it.
pub(crate) fn check_path(path: &str) -> Result<(), BundleError> {
    let refuse = |why| Err(BundleError::Name { name: path.chars().take(400).collect(), what: "a file of a bundle", why });
    if path.starts_with('/') || path.contains(['\\', ':', '\0']) || path.chars().any(char::is_control) {
        return refuse("it is a path from the folder of the bundle on, with `/` between its parts");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return refuse("it leads out of the bundle, or has an empty part");
    }
    Ok(())
}

/// Checks that no name comes twice, also where capital letters do not count.
pub(crate) fn check_once<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), BundleError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.to_lowercase()) {
            return Err(BundleError::Twice { name: name.to_owned() });
        }
    }
    Ok(())
}

/// The files of a folder with their sizes, by path. Folders called `private` are left out: they are nobody's but the owner's.
pub(crate) fn files_in(root: &Path) -> Result<BTreeMap<String, u64>, BundleError> {
    let mut found = BTreeMap::new();
    let mut seen = 0;
    walk(root, root, "", 0, &mut seen, &mut found)?;
    Ok(found)
}

fn walk(
    root: &Path,
    folder: &Path,
    prefix: &str,
    depth: usize,
    seen: &mut usize,
    found: &mut BTreeMap<String, u64>,
) -> Result<(), BundleError> {
    let entries = std::fs::read_dir(folder).map_err(BundleError::io("read", folder))?;
    for entry in entries {
        let entry = entry.map_err(BundleError::io("read", folder))?;
        *seen += 1;
        if *seen > ENTRIES || depth > DEEPEST {
            return Err(BundleError::TooMany { path: root.to_owned(), limit: ENTRIES });
        }
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            return Err(BundleError::Name {
                name: entry.file_name().to_string_lossy().into_owned(),
                what: "a file of a bundle",
                why: "it is not UTF-8",
            });
        };
        let inside = format!("{prefix}{name}");
        let meta = std::fs::symlink_metadata(&path).map_err(BundleError::io("read", &path))?;
        if meta.is_symlink() {
            return Err(BundleError::Link { path });
        }
        if meta.is_dir() {
            if name != "private" {
                walk(root, &path, &format!("{inside}/"), depth + 1, seen, found)?;
            }
        } else if meta.is_file() {
            found.insert(inside, meta.len());
        } else {
            return Err(BundleError::NotAFile { path });
        }
    }
    Ok(())
}

/// Reads a file of a bundle, at most `limit` bytes, whatever its size was said to be.
pub(crate) fn read(root: &Path, file: &str, limit: u64) -> Result<Vec<u8>, BundleError> {
    let path = root.join(file);
    let meta = std::fs::symlink_metadata(&path).map_err(BundleError::io("read", &path))?;
    if meta.is_symlink() {
        return Err(BundleError::Link { path });
    }
    if !meta.is_file() {
        return Err(BundleError::NotAFile { path });
    }
    let too_large = |bytes| BundleError::TooLarge { file: file.to_owned(), bytes, limit };
    if meta.len() > limit {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(&path).map_err(BundleError::io("read", &path))?;
    opened.take(limit + 1).read_to_end(&mut bytes).map_err(BundleError::io("read", &path))?;
    if bytes.len() as u64 > limit { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

/// SHA-256 of the bytes of a file.
pub fn file_digest(bytes: &[u8]) -> Fingerprint {
    Fingerprint(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_name_and_no_way_out() {
        for good in ["holds", "leader-rotation__advisor_theme_scout", "random-1.key-2", "趋势", "a.b"] {
            assert!(check_name("a scope", good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "../a", "a/b", "a\\b", "/etc", "a\0", "a b", ".hidden", "a..b", "a.", "C:", &"a".repeat(201)] {
            assert!(matches!(check_name("a scope", bad), Err(BundleError::Name { .. })), "{bad:?}");
        }
        for bad in ["", "/a", "a//b", "a/../b", "./a", "a/.", "..", "a\\..\\b", "c:/a", "a\n"] {
            assert!(matches!(check_path(bad), Err(BundleError::Name { .. })), "{bad:?}");
        }
        assert!(check_path("runs/a/workspace/0/a file.txt").is_ok());
        assert!(matches!(check_once(["a", "b", "A"].into_iter()), Err(BundleError::Twice { .. })));
    }
}
