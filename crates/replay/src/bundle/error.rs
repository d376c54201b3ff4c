//! What can be wrong with a bundle. All of it is found before anything of the bundle is used, and each error names the file.

use crate::Fingerprint;
use crate::error::RecordingError;
use std::path::PathBuf;

/// A bundle cannot be read or made.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
    /// There is no manifest.
    #[error("{} has no manifest.json, so it is no bundle", path.display())]
    NoManifest {
        /// The folder.
        path: PathBuf,
    },
    /// The manifest cannot be understood.
    #[error("{}: {what}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The manifest was written by a later version.
    #[error("{}: schema_version is {found} and this program reads up to {known}; upgrade traderharness to read it", path.display())]
    Newer {
        /// The manifest.
        path: PathBuf,
        /// Version in it.
        found: u64,
        /// Newest version known here.
        known: u64,
    },
    /// A name that could lead out of the bundle, or that no bundle of ours has.
    #[error("{name:?} is no name of {what}: {why}")]
    Name {
        /// The name.
        name: String,
        /// What it should be the name of.
        what: &'static str,
        /// Why it is none.
        why: &'static str,
    },
    /// Two things have one name, at least on some machines.
    #[error("{name:?} stands in the bundle twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A link: what it leads to is no part of the bundle.
    #[error("{} is a link; a bundle holds plain files only", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Neither a file nor a folder.
    #[error("{} is no plain file", path.display())]
    NotAFile {
        /// It.
        path: PathBuf,
    },
    /// The manifest names a file that is not there.
    #[error("the manifest names {file}, which is not in {}", path.display())]
    Missing {
        /// The bundle.
        path: PathBuf,
        /// The file in it.
        file: String,
    },
    /// A file that the manifest does not name.
    #[error("{file} in {} is not named by the manifest", path.display())]
    Unnamed {
        /// The bundle.
        path: PathBuf,
        /// The file in it.
        file: String,
    },
    /// More than is read.
    #[error("{file} has {bytes} bytes; at most {limit} are read")]
    TooLarge {
        /// The file.
        file: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// More files than a bundle has.
    #[error("{} holds more than {limit} files or folders nested too deep", path.display())]
    TooMany {
        /// The bundle.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// A file has another size than the manifest states.
    #[error("{file} has {actual} bytes, the manifest states {expected}; it was cut or changed after the bundle was made")]
    Size {
        /// The file.
        file: String,
        /// Bytes the manifest states.
        expected: u64,
        /// Bytes of the file.
        actual: u64,
    },
    /// A file is not what the manifest states.
    #[error("{file} is not the file of the manifest\n  stated  {expected}\n  here    {actual}")]
    Digest {
        /// The file.
        file: String,
        /// Digest the manifest states.
        expected: Fingerprint,
        /// Digest of the file.
        actual: Fingerprint,
    },
    /// Manifest and recording say different things.
    #[error("{file}: {what} is {recorded} there and {stated} in the manifest")]
    Disagrees {
        /// The file.
        file: String,
        /// What differs.
        what: &'static str,
        /// What the manifest says.
        stated: String,
        /// What the recording says.
        recorded: String,
    },
    /// A recording in it cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

impl BundleError {
    pub(crate) fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
