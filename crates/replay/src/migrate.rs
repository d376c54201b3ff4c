//! Rewrites a recording of schema 1 in the schema of today, losing nothing: what was written is read back and held against the old file,
//! call by call, before anybody gets it. It opens no file and changes no digest of a request.

use crate::Cassette;
use crate::cassette::{Call, Meta, SCHEMA_VERSION, Scheme};
use crate::error::RecordingError;
use crate::jsonl;
use crate::reference::{ForeignBundle, NoJson, PyValue};
use crate::rewrite::{Rewriter, first_other};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What became of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Migration {
    /// It has the schema of today already.
    Nothing {
        /// That schema.
        schema: u32,
    },
    /// The recording in the schema of today.
    Rewritten {
        /// The file.
        bytes: Vec<u8>,
        /// Calls in it.
        calls: usize,
        /// Schema it had.
        from: u32,
    },
}

/// A recording cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// It cannot be read, or was written by a later version.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// It holds a value that the schema of today cannot hold.
    #[error("{}, line {line}: it holds {what}, so it cannot be rewritten without loss; nothing was written", path.display())]
    Lossy {
        /// The recording.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The value.
        what: NoJson,
    },
    /// The rewritten recording is not the old one. A defect of this program, and nothing was written.
    #[error("{}: call {call} of the rewritten recording is not that of the old one; nothing was written", path.display())]
    Differs {
        /// The recording.
        path: PathBuf,
        /// The call, from 0.
        call: usize,
    },
}

/// Rewrites a cassette; `name` stands for it in errors.
///
/// # Errors
/// [`MigrateError`]; a recording of a newer schema is [`RecordingError::Newer`].
pub fn cassette(name: &Path, bytes: &[u8]) -> Result<Migration, MigrateError> {
    let old = Cassette::from_bytes(name, bytes)?;
    if old.schema() == SCHEMA_VERSION {
        return Ok(Migration::Nothing { schema: SCHEMA_VERSION });
    }
    representable(name, bytes)?;
    let meta = old.meta().cloned();
    let mut calls: Vec<(&Cassette, &Call, &str)> = Vec::new();
    calls.extend(old.calls().iter().map(|call| (&old, call, call.scope.as_str())));
    let note = json!({ "schema_version": 1, "meta_line": meta.is_some() });
    let meta = Meta { fingerprints: Scheme::Reference, ..meta.unwrap_or_default() };
    rewrite(name, meta, note, &calls)
}

/// Rewrites all scopes of a bundle of the Python implementation as one cassette, scope after scope by name.
///
/// # Errors
/// As [`cassette`].
pub fn foreign(bundle: &ForeignBundle) -> Result<Migration, MigrateError> {
    for scope in bundle.scopes() {
        let path = bundle.path().join(&scope.file);
        representable(&path, &jsonl::read(&path)?)?;
    }
    let mut calls: Vec<(&Cassette, &Call, &str)> = Vec::new();
    for scope in bundle.scopes() {
        calls.extend(scope.cassette.calls().iter().map(|call| (&scope.cassette, call, scope.name.as_str())));
    }
    rewrite(bundle.path(), bundle.meta(), json!({ "bundle": true }), &calls)
}

fn rewrite(name: &Path, mut meta: Meta, note: Value, calls: &[(&Cassette, &Call, &str)]) -> Result<Migration, MigrateError> {
    let told = std::mem::take(&mut meta.extra);
    meta.extra = Map::from_iter([("migrated_from".to_owned(), note), ("meta".to_owned(), Value::Object(told))]);
    let mut rewriter = Rewriter::new(&meta)?;
    for (from, call, scope) in calls {
        rewriter.call(from, call, scope)?;
    }
    let bytes = rewriter.finish()?;
    // The proof: read back as any reader would.
    let new = Cassette::from_bytes(name, &bytes)?;
    new.verify()?;
    let renamed: Vec<Call> = calls.iter().map(|(_, call, scope)| call.renamed(scope)).collect();
    if let Some(call) = first_other(&renamed.iter().collect::<Vec<_>>(), &new.calls().iter().collect::<Vec<_>>()) {
        return Err(MigrateError::Differs { path: name.to_owned(), call });
    }
    if new.meta() != Some(&meta) || new.scheme() != Scheme::Reference || !new.is_sealed() {
        return Err(MigrateError::Differs { path: name.to_owned(), call: 0 });
    }
    Ok(Migration::Rewritten { bytes, calls: calls.len(), from: 1 })
}

/// Checks that every line has a JSON value that holds all of it: a reader of JSON would round a long integer without a word.
fn representable(path: &Path, bytes: &[u8]) -> Result<(), MigrateError> {
    for line in jsonl::lines(bytes) {
        let broken = |what: String| RecordingError::broken(path, line.place, what);
        let text = std::str::from_utf8(line.bytes).map_err(|fault| broken(fault.to_string()))?;
        let value = PyValue::parse(text).map_err(|fault| broken(fault.to_string()))?;
        value.to_json().map_err(|what| MigrateError::Lossy { path: path.to_owned(), line: line.place.line, what })?;
    }
    Ok(())
}
