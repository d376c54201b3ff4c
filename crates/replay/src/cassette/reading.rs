//! Reading a recording line by line. Every line is understood or named with its place; nothing is skipped.

use super::meta::reference_meta;
use super::{Call, Cassette, Cut, SCHEMA_VERSION, Scheme};
use crate::error::RecordingError;
use crate::jsonl::{self, Line, Place};
use crate::lines::{BlobLine, CallLine, MetaLine};
use crate::reference::PyValue;
use crate::{Fingerprint, canonical};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// Fields of a call line that both schemas have; the step is not among them, since schema 1 numbers as it likes.
const OF_A_CALL: [&str; 6] = ["schema_version", "type", "scope", "request_sha256", "output", "error"];

impl Cassette {
    /// Reads a finished recording.
    ///
    /// # Errors
    /// See [`RecordingError`]; a line that cannot be understood is an error wherever it is, also at the end.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        whole(path.as_ref(), Self::read_partial(&path)?)
    }

    /// Reads a finished recording that is already in memory; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`Cassette::load`].
    pub fn from_bytes(name: impl AsRef<Path>, bytes: &[u8]) -> Result<Self, RecordingError> {
        whole(name.as_ref(), Self::partial_from_bytes(&name, bytes)?)
    }

    /// Reads a recording that may have been killed while it was written, up to its last whole line.
    ///
    /// # Errors
    /// As [`Cassette::load`], but a last line that was cut is reported instead.
    pub fn read_partial(path: impl AsRef<Path>) -> Result<(Self, Option<Cut>), RecordingError> {
        let path = path.as_ref();
        let mut reading = Reading::new(path);
        // Line by line: beside the calls no second copy of a long recording is held.
        jsonl::read_lines(path, |line| reading.take(line))?;
        reading.finish()
    }

    /// As [`Cassette::read_partial`], of a recording that is already in memory; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`Cassette::read_partial`].
    pub fn partial_from_bytes(name: impl AsRef<Path>, bytes: &[u8]) -> Result<(Self, Option<Cut>), RecordingError> {
        let mut reading = Reading::new(name.as_ref());
        for line in jsonl::lines(bytes) {
            reading.take(&line)?;
        }
        reading.finish()
    }
}

/// State of reading one file.
struct Reading<'a> {
    path: &'a Path,
    seen: usize,
    digest: Sha256,
    cassette: Cassette,
    cut: Option<Cut>,
}

impl<'a> Reading<'a> {
    fn new(path: &'a Path) -> Self {
        let cassette = Cassette {
            path: path.to_owned(),
            schema: 1,
            meta: None,
            calls: Vec::new(),
            blobs: BTreeMap::new(),
            end: None,
            lines_sha256: Fingerprint([0; 32]),
        };
        Self { path, seen: 0, digest: Sha256::new(), cassette, cut: None }
    }

    /// Takes a line as it stands in the file. One that cannot be understood is an error, unless it is the last one and lacks its end.
    fn take(&mut self, line: &Line<'_>) -> Result<(), RecordingError> {
        match line.object() {
            Ok(value) => self.line(line, value),
            Err(_) if !line.ended => {
                self.cut = Some(Cut { place: line.place, bytes: line.bytes.len() });
                Ok(())
            }
            Err(what) => match self.foreign(line) {
                Some(value) => self.line(line, value),
                None => Err(RecordingError::broken(self.path, line.place, what)),
            },
        }
    }

    fn line(&mut self, line: &Line<'_>, value: Value) -> Result<(), RecordingError> {
        let place = line.place;
        let broken = |what: String| RecordingError::broken(self.path, place, what);
        let schema = version(self.path, place, &value, "schema_version", SCHEMA_VERSION)?.unwrap_or(1);
        if self.cassette.end.is_some() {
            return Err(broken("follows the end line; two recordings may have been joined".to_owned()));
        }
        let first = self.seen == 0;
        self.seen += 1;
        if first {
            self.cassette.schema = schema;
        }
        match value.get("type").and_then(Value::as_str).unwrap_or_default() {
            "meta" if !first => return Err(broken("a second meta line; two recordings may have been joined".to_owned())),
            "meta" if schema < SCHEMA_VERSION => self.cassette.meta = Some(reference_meta(&value)),
            "meta" => {
                version(self.path, place, &value, "canonical_version", canonical::CANONICAL_VERSION)?;
                let meta = parse::<MetaLine>(self.path, place, value)?.meta;
                if (meta.canonical_version == 0) != (meta.fingerprints == Scheme::Reference) {
                    return Err(broken("the meta line has no canonical_version".to_owned()));
                }
                self.cassette.meta = Some(meta);
            }
            _ if first && schema >= SCHEMA_VERSION => {
                return Err(broken("the first line is not the meta line; lines are missing before it".to_owned()));
            }
            "blob" => {
                let blob = parse::<BlobLine>(self.path, place, value)?;
                self.cassette.blobs.insert(blob.sha256, (place, blob.value));
            }
            "llm_call" => self.call(place, value)?,
            "end" => {
                self.cassette.lines_sha256 = Fingerprint(self.digest.clone().finalize().into());
                self.cassette.end = Some((place, parse(self.path, place, value)?));
            }
            other => return Err(broken(format!("unknown type {other:?}; meta, blob, llm_call and end are known"))),
        }
        self.digest.update(line.bytes);
        self.digest.update(b"\n");
        Ok(())
    }

    fn call(&mut self, place: Place, value: Value) -> Result<(), RecordingError> {
        let mut kept = match &value {
            Value::Object(fields) if fields.get("schema_version").is_none_or(|v| v.as_u64() < Some(2)) => fields.clone(),
            _ => Map::new(),
        };
        kept.retain(|name, _| !OF_A_CALL.contains(&name.as_str()));
        let CallLine { step, scope, request_sha256, request, output, output_sha256, error, schema_version, source, .. } =
            parse(self.path, place, value)?;
        let expected = self.cassette.calls.len();
        let source = if kept.is_empty() { source } else { kept };
        // Files of the Python implementation number their steps as they like.
        if schema_version >= SCHEMA_VERSION && step != Some(expected) {
            let found = step.map_or_else(|| "no step".to_owned(), |step| format!("step {step}"));
            let what = format!("{found} where step {expected} is due: a call is missing, doubled or moved");
            return Err(RecordingError::broken(self.path, place, what));
        }
        let step = expected;
        self.cassette.calls.push(Call { step, scope, request_sha256, output, output_sha256, error, place, source, request });
        Ok(())
    }

    /// A line that Python writes and JSON does not have, of a recording of the Python implementation. Its answer cannot be held here, so
    /// it becomes a call without one, which says why; all other calls stay as they are.
    fn foreign(&self, line: &Line<'_>) -> Option<Value> {
        if self.cassette.scheme() != Scheme::Reference {
            return None;
        }
        let PyValue::Dict(fields) = PyValue::parse(std::str::from_utf8(line.bytes).ok()?).ok()? else { return None };
        let mut value = Map::new();
        for (name, field) in fields {
            let name = String::from_utf8(name).ok()?;
            match field.to_json() {
                Ok(field) => drop(value.insert(name, field)),
                Err(what) if name == "output" => {
                    value.insert("output".to_owned(), Value::Null);
                    value.insert("error".to_owned(), format!("the recorded answer holds {what}").into());
                }
                Err(_) => return None,
            }
        }
        let schema = value.get("schema_version").map_or(Some(1), Value::as_u64);
        let ours = schema != Some(1) || value.get("type") != Some(&"llm_call".into());
        (!ours).then_some(Value::Object(value))
    }

    fn finish(self) -> Result<(Cassette, Option<Cut>), RecordingError> {
        match self.cut {
            _ if self.seen > 0 => Ok((self.cassette, self.cut)),
            Some(cut) => {
                let what = "its only line was cut while it was written; record it again";
                Err(RecordingError::broken(self.path, cut.place, what))
            }
            None => Err(RecordingError::Empty { path: self.path.to_owned() }),
        }
    }
}

/// A recording whose last line was not cut.
fn whole(path: &Path, (cassette, cut): (Cassette, Option<Cut>)) -> Result<Cassette, RecordingError> {
    match cut {
        None => Ok(cassette),
        Some(cut) => {
            let what = "the last line was cut while it was written; the calls before it can be read as an unfinished recording";
            Err(RecordingError::broken(path, cut.place, what))
        }
    }
}

fn parse<T: DeserializeOwned>(path: &Path, place: Place, value: Value) -> Result<T, RecordingError> {
    serde_json::from_value(value).map_err(|fault| RecordingError::broken(path, place, fault.to_string()))
}

/// Reads a version number and refuses one that is newer than `known`, before anything else of the line is looked at.
pub(crate) fn version(
    path: &Path,
    place: Place,
    value: &Value,
    part: &'static str,
    known: u32,
) -> Result<Option<u32>, RecordingError> {
    let found = match value.get(part) {
        None | Some(Value::Null) => return Ok(None),
        Some(found) => found.as_u64().ok_or_else(|| RecordingError::broken(path, place, format!("{part} is not a number")))?,
    };
    match u32::try_from(found) {
        Ok(version) if version <= known => Ok(Some(version)),
        _ => Err(RecordingError::Newer { path: path.to_owned(), place, part, found, known: known.into() }),
    }
}
