//! What can go wrong with recordings. Every error names the place and says what to do.

use crate::Fingerprint;
use crate::diff::Difference;
use crate::jsonl::Place;
use std::path::{Path, PathBuf};

/// A recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried: `read`, `write` ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
    /// The file is longer than any that is read.
    #[error("{} has {bytes} bytes; at most {limit} are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size; of a file that grows, what was read of it.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The file holds no line at all.
    #[error("{} is empty; record it again", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A line cannot be understood.
    #[error("{}, {place}: {what}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where.
        place: Place,
        /// What is wrong with the line.
        what: String,
    },
    /// The file was written by a later version of this program.
    #[error(
        "{}, {place}: {part} is version {found} and this program reads up to {known}; upgrade traderharness to read it",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Where.
        place: Place,
        /// What has the version: `schema_version`, `canonical_version`.
        part: &'static str,
        /// Version in the file.
        found: u64,
        /// Newest version known here.
        known: u64,
    },
    /// An unfinished recording of the same name is there; it is never overwritten.
    #[error(
        "{} exists: a recording was interrupted or is running; resume it, or delete that file to start again",
        partial.display()
    )]
    PartialExists {
        /// The unfinished file.
        partial: PathBuf,
    },
    /// A run that is played again left its own record.
    #[error("the kept record and the run disagree: {what}; the record, the data, the card or the program changed")]
    Diverged {
        /// What came instead.
        what: String,
    },
    /// The content does not have the digest that the file states for it.
    #[error("{}, {place}: {part} does not have its recorded digest {expected}; the file was changed after it was recorded", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Where.
        place: Place,
        /// What was changed.
        part: String,
        /// The digest the file states.
        expected: Fingerprint,
    },
}

impl RecordingError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn broken(path: &Path, place: Place, what: impl Into<String>) -> Self {
        Self::Broken { path: path.to_owned(), place, what: what.into() }
    }
}

/// A replay cannot go on. It never continues with another answer and never asks a model.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The request is not the recorded one.
    #[error("request {index} (counted from 0, {total} recorded) in scope {scope}, {place}, is not the recorded one\n  recorded {expected}\n  now      {actual}{}", describe(differences.as_deref()))]
    Mismatch {
        /// Number of the request in its scope, from 0.
        index: usize,
        /// Requests recorded in the scope.
        total: usize,
        /// Scope.
        scope: String,
        /// Line of the recorded call.
        place: Place,
        /// Recorded fingerprint.
        expected: Fingerprint,
        /// Fingerprint of the request made now.
        actual: Fingerprint,
        /// What differs; `None` when the recording does not hold its requests. Empty when the recorded request was changed
        /// in the file so that it no longer has the recorded fingerprint.
        differences: Option<Vec<Difference>>,
    },
    /// A request came after the last recorded one.
    #[error(
        "the recording has {total} requests in scope {scope} and all are used; one more was made{}",
        if *sealed { "" } else { "; the recording has no end line, so it was cut or never finished" }
    )]
    Exhausted {
        /// Number of the request, from 0.
        index: usize,
        /// Requests recorded in the scope.
        total: usize,
        /// Scope.
        scope: String,
        /// Whether the recording ends with the end line of a finished one.
        sealed: bool,
    },
    /// The run ended before the recording did.
    #[error(
        "the run ended after {played} requests in scope {scope}; {unused} recorded responses were not used, the first at {place}"
    )]
    Unused {
        /// Requests that were answered.
        played: usize,
        /// Recorded responses left.
        unused: usize,
        /// Scope.
        scope: String,
        /// Line of the first unused call.
        place: Place,
    },
    /// The recorded call has no answer.
    #[error("request {index} in scope {scope}, {place}, was recorded without an output{}", reason(error.as_deref()))]
    NoOutput {
        /// Number of the request, from 0.
        index: usize,
        /// Scope.
        scope: String,
        /// Line of the call.
        place: Place,
        /// Why the call failed when it was recorded.
        error: Option<String>,
    },
    /// The recorded answer cannot be understood.
    #[error("request {index} in scope {scope}, {place}, has an output that is not an assistant answer: {what}")]
    BadOutput {
        /// Number of the request, from 0.
        index: usize,
        /// Scope.
        scope: String,
        /// Line of the call.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// The recording has no such scope, or several and none was chosen.
    #[error("the recording has no scope {scope:?}; it has {}", known.join(", "))]
    UnknownScope {
        /// Scope asked for.
        scope: String,
        /// Scopes of the recording.
        known: Vec<String>,
    },
}

fn describe(differences: Option<&[Difference]>) -> String {
    match differences {
        None => "\n  the recording does not hold its requests, so what differs cannot be shown".to_owned(),
        Some([]) => "\n  the request stored in the recording equals the one made now, so the file was changed by hand".to_owned(),
        Some(list) => list.iter().map(|difference| format!("\n  {}", difference.to_string().replace('\n', "\n  "))).collect(),
    }
}

fn reason(error: Option<&str>) -> String {
    error.map(|error| format!(": {error}")).unwrap_or_default()
}
