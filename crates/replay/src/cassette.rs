//! [`Cassette`]: a recording of model calls, read from JSON Lines (engine E13.3).
//!
//! | line | holds |
//! |---|---|
//! | `meta`, first | schema and canonical version, contract version, model, masks, dataset, flags: [`Meta`] |
//! | `blob` | a part that many requests share (system prompt, one tool, the list of tools), once, under its digest |
//! | `llm_call` | step, scope, request fingerprint, the request, the output |
//! | `end`, last | number of calls and the digest of all lines before it; only a finished recording has it |
//!
//! A request is stored as its difference to the previous request of the same scope: how many messages stay, and the
//! messages that follow. So a day's file grows with the conversation, not with its square.
//!
//! A file without a meta line is a recording of the Python implementation (schema 1): its fingerprints cover messages and
//! tools only, see [`Scheme`].

use crate::error::RecordingError;
use crate::jsonl::{self, Line, Place};
use crate::lines::{BlobLine, CallLine, EndLine, MetaLine, StoredRequest};
use crate::reference::PyValue;
use crate::request::{Message, Request, Response};
use crate::{Fingerprint, canonical};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Schema of the lines written here. 1 is the shape of the Python implementation.
pub const SCHEMA_VERSION: u32 = 2;
/// Fields of a call line that both schemas have; the step is not among them, since schema 1 numbers as it likes.
const OF_A_CALL: [&str; 6] = ["schema_version", "type", "scope", "request_sha256", "output", "error"];
/// Scope of a run with one agent.
pub const DEFAULT_SCOPE: &str = "main";

/// What a recording is of. Holds no wall clock, no machine, no path and no key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Contract version of the run, e.g. `v5`.
    pub contract_version: String,
    /// Version of the canonical form under the fingerprints. Set by the recorder.
    pub canonical_version: u32,
    /// Model name.
    pub model: String,
    /// Entity and date masks of the run; `None` when nothing was masked.
    #[serde(default)]
    pub mask: Option<Mask>,
    /// Dataset the tools read.
    #[serde(default)]
    pub dataset: Option<Dataset>,
    /// True when the dataset was generated. Never left out.
    pub synthetic: bool,
    /// Numbers of the behaviour flags the run used (spec/versions.md).
    #[serde(default)]
    pub behaviour_flags: BTreeSet<u32>,
    /// What the host needs to set up the same run again (dates, card, cash ...), and anything else worth knowing.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// What the fingerprints cover; other than the whole request only in a recording of the Python implementation that was rewritten in
    /// this schema ([`crate::migrate`]). Such a recording has canonical version 0.
    #[serde(default, skip_serializing_if = "Scheme::is_whole")]
    pub fingerprints: Scheme,
}

/// Masks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mask {
    /// Style of the entity mask: `opaque`, `permutation`; `None` when codes are shown.
    pub entities: Option<String>,
    /// Whether dates are masked.
    pub dates: bool,
    /// Digest of the mask's seed; the seed itself is not written.
    pub seed_sha256: Option<Fingerprint>,
}

/// Dataset of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dataset {
    /// Its name, not its path.
    pub name: String,
    /// Digest of its content, as the loader computed it.
    pub sha256: Option<Fingerprint>,
}

/// What the fingerprints of a recording cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// The whole request, in our canonical form.
    #[default]
    #[serde(rename = "whole_request")]
    Whole,
    /// Messages and tools, in the JSON text of the Python implementation.
    #[serde(rename = "messages_and_tools")]
    Reference,
}

impl Scheme {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }

    /// The fingerprint of `request`.
    pub fn fingerprint(self, request: &Request) -> Fingerprint {
        match self {
            Self::Whole => request.fingerprint(),
            Self::Reference => crate::reference::fingerprint(request),
        }
    }
}

/// Where reading an unfinished recording stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The line that was being written.
    pub place: Place,
    /// Bytes of it.
    pub bytes: usize,
}

/// One recorded call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Number of the call in the file, from 0.
    pub step: usize,
    /// Who asked: the agent, its executor, an advisor.
    pub scope: String,
    /// Fingerprint of the request.
    pub request_sha256: Fingerprint,
    /// The answer; `None` when the call failed.
    pub output: Option<Value>,
    output_sha256: Option<Fingerprint>,
    /// Why the call failed.
    pub error: Option<String>,
    /// Line in the file.
    pub place: Place,
    /// What a line of schema 1 holds that this schema has no field for; the number that its writer gave the step is `step`.
    pub source: Map<String, Value>,
    request: Option<StoredRequest>,
}

impl Call {
    /// The same call under another scope.
    pub(crate) fn renamed(&self, scope: &str) -> Self {
        Self { scope: scope.to_owned(), ..self.clone() }
    }
}

/// A recording in memory.
#[derive(Debug, Clone)]
pub struct Cassette {
    path: PathBuf,
    schema: u32,
    meta: Option<Meta>,
    calls: Vec<Call>,
    blobs: BTreeMap<Fingerprint, (Place, Value)>,
    end: Option<(Place, EndLine)>,
    lines_sha256: Fingerprint,
}

impl Cassette {
    /// Reads a finished recording.
    ///
    /// # Errors
    /// See [`RecordingError`]; a line that cannot be understood is an error wherever it is, also at the end.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        let path = path.as_ref();
        let bytes = jsonl::read(path)?;
        Self::from_bytes(path, &bytes)
    }

    /// Reads a finished recording that is already in memory; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`Cassette::load`].
    pub fn from_bytes(name: impl AsRef<Path>, bytes: &[u8]) -> Result<Self, RecordingError> {
        let path = name.as_ref();
        let (cassette, cut) = Self::partial_from_bytes(path, bytes)?;
        match cut {
            None => Ok(cassette),
            Some(cut) => {
                let what =
                    "the last line was cut while it was written; the calls before it can be read as an unfinished recording";
                Err(RecordingError::broken(path, cut.place, what))
            }
        }
    }

    /// Reads a recording that may have been killed while it was written, up to its last whole line.
    ///
    /// # Errors
    /// As [`Cassette::load`], but a last line that was cut is reported instead.
    pub fn read_partial(path: impl AsRef<Path>) -> Result<(Self, Option<Cut>), RecordingError> {
        let path = path.as_ref();
        Self::partial_from_bytes(path, &jsonl::read(path)?)
    }

    /// As [`Cassette::read_partial`], of a recording that is already in memory; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`Cassette::read_partial`].
    pub fn partial_from_bytes(name: impl AsRef<Path>, bytes: &[u8]) -> Result<(Self, Option<Cut>), RecordingError> {
        let path = name.as_ref();
        let mut reading = Reading::new(path);
        let mut cut = None;
        for line in jsonl::lines(bytes) {
            match line.object() {
                Ok(value) => reading.line(&line, value)?,
                Err(what) if line.ended => match reading.foreign(&line) {
                    Some(value) => reading.line(&line, value)?,
                    None => return Err(RecordingError::broken(path, line.place, what)),
                },
                Err(_) if !line.ended => cut = Some(Cut { place: line.place, bytes: line.bytes.len() }),
                Err(what) => return Err(RecordingError::broken(path, line.place, what)),
            }
        }
        match (reading.finish(), cut) {
            (Err(RecordingError::Empty { .. }), Some(cut)) => {
                Err(RecordingError::broken(path, cut.place, "its only line was cut while it was written; record it again"))
            }
            (read, cut) => Ok((read?, cut)),
        }
    }

    /// The meta line; `None` for a recording of the Python implementation without one.
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// What stands for the file in errors.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Schema of the file: that of its first line.
    pub fn schema(&self) -> u32 {
        self.schema
    }

    /// What the fingerprints cover.
    pub fn scheme(&self) -> Scheme {
        self.meta.as_ref().map_or(Scheme::Reference, |meta| meta.fingerprints)
    }

    /// The calls, in the order they were recorded.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The scopes, in order of their first call.
    pub fn scopes(&self) -> Vec<&str> {
        let mut scopes: Vec<&str> = Vec::new();
        for call in &self.calls {
            if !scopes.contains(&call.scope.as_str()) {
                scopes.push(&call.scope);
            }
        }
        scopes
    }

    /// True when the recording was finished and no call is missing at its end.
    pub fn is_sealed(&self) -> bool {
        self.end.as_ref().is_some_and(|(_, end)| end.calls == self.calls.len())
    }

    /// The whole request of call `step`; `None` when the recording holds no requests or no such call.
    ///
    /// # Errors
    /// [`RecordingError::Broken`] when the file lacks a part the request is made of.
    pub fn request(&self, step: usize) -> Result<Option<Request>, RecordingError> {
        let Some(wanted) = self.calls.get(step) else { return Ok(None) };
        let mut messages = Vec::new();
        for call in self.calls.iter().take(step + 1).filter(|call| call.scope == wanted.scope) {
            self.follow(call, &mut messages)?;
        }
        self.assemble(wanted, &messages)
    }

    /// Takes the messages from those of the scope's previous request to those of `call`.
    pub(crate) fn follow(&self, call: &Call, messages: &mut Vec<Message>) -> Result<(), RecordingError> {
        let Some(stored) = &call.request else { return Ok(()) };
        if stored.messages_kept > messages.len() {
            let what = format!("keeps {} messages of {}", stored.messages_kept, messages.len());
            return Err(RecordingError::broken(&self.path, call.place, what));
        }
        messages.truncate(stored.messages_kept);
        messages.extend(stored.messages_added.iter().cloned());
        Ok(())
    }

    /// The request of `call`, whose messages are known.
    pub(crate) fn assemble(&self, call: &Call, messages: &[Message]) -> Result<Option<Request>, RecordingError> {
        let Some(stored) = &call.request else { return Ok(None) };
        let broken = |what: String| RecordingError::broken(&self.path, call.place, what);
        let blob = |sha256: &Fingerprint| match self.blobs.get(sha256) {
            Some((_, value)) => Ok(value),
            None => Err(broken(format!("no blob line has the digest {sha256}"))),
        };
        let system = match &stored.system_sha256 {
            None => None,
            Some(sha256) => blob(sha256)?.as_str().map(str::to_owned),
        };
        let mut tools = Vec::new();
        if let Some(sha256) = &stored.tools_sha256 {
            for item in blob(sha256)?.as_array().into_iter().flatten() {
                let sha256 = item.as_str().unwrap_or_default().parse();
                let sha256 = sha256.map_err(|fault: crate::NotAFingerprint| broken(format!("in its list of tools: {fault}")))?;
                tools.push(blob(&sha256)?.clone());
            }
        }
        let StoredRequest { model, contract_version, sampling, .. } = stored.clone();
        Ok(Some(Request { model, contract_version, sampling, system, tools, messages: messages.to_vec() }))
    }

    /// Checks what replaying does not need: that every stored part and request has its digest and that no line was changed
    /// since the recording was finished.
    ///
    /// # Errors
    /// [`RecordingError::Changed`] for the first part that does not have its digest, [`RecordingError::Broken`] for a
    /// missing one or for a missing end line.
    pub fn verify(&self) -> Result<(), RecordingError> {
        let changed = |place: Place, part: String, expected: Fingerprint| {
            Err(RecordingError::Changed { path: self.path.clone(), place, part, expected })
        };
        for (sha256, (place, value)) in &self.blobs {
            if Fingerprint::of(value) != *sha256 {
                return changed(*place, "the stored part".to_owned(), *sha256);
            }
        }
        let mut scopes: BTreeMap<&str, Vec<Message>> = BTreeMap::new();
        for call in &self.calls {
            let messages = scopes.entry(&call.scope).or_default();
            self.follow(call, messages)?;
            if let Some(request) = self.assemble(call, messages)?
                && self.scheme().fingerprint(&request) != call.request_sha256
            {
                return changed(call.place, format!("request {}", call.step), call.request_sha256);
            }
        }
        match &self.end {
            Some((place, end)) if end.lines_sha256 != self.lines_sha256 => {
                changed(*place, "a line before the end".to_owned(), end.lines_sha256)
            }
            Some((place, end)) if end.calls != self.calls.len() => {
                let what = format!("the end line counts {} calls, the file has {}", end.calls, self.calls.len());
                Err(RecordingError::broken(&self.path, *place, what))
            }
            None if self.scheme() == Scheme::Whole => {
                let place = self.calls.last().map_or(Place { line: 1, offset: 0 }, |call| call.place);
                Err(RecordingError::broken(&self.path, place, "no end line follows: the recording was cut or never finished"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the answer and the request of a call, whose messages are known, are what was recorded.
    pub(crate) fn check(&self, call: &Call, messages: &[Message]) -> Result<(), RecordingError> {
        let changed = |part: &str, expected: Fingerprint| RecordingError::Changed {
            path: self.path.clone(),
            place: call.place,
            part: part.to_owned(),
            expected,
        };
        if let (Some(expected), Some(output)) = (call.output_sha256, &call.output)
            && Fingerprint::of(output) != expected
        {
            return Err(changed("the output", expected));
        }
        match self.assemble(call, messages)? {
            Some(request) if self.scheme().fingerprint(&request) != call.request_sha256 => {
                Err(changed("the request", call.request_sha256))
            }
            _ => Ok(()),
        }
    }

    /// Forgets the end line, because more calls are going to follow; gives its place.
    pub(crate) fn reopen(&mut self) -> Option<Place> {
        self.end.take().map(|(place, _)| place)
    }

    /// The request of a call as the file holds it.
    pub(crate) fn stored(call: &Call) -> Option<&StoredRequest> {
        call.request.as_ref()
    }

    /// The digest that the file states for the answer of a call.
    pub(crate) fn stated_output(call: &Call) -> Option<Fingerprint> {
        call.output_sha256
    }

    /// A part that requests share.
    pub(crate) fn part(&self, sha256: &Fingerprint) -> Option<&Value> {
        self.blobs.get(sha256).map(|(_, value)| value)
    }

    /// Parts written as blob lines, by digest.
    pub(crate) fn blob_digests(&self) -> impl Iterator<Item = Fingerprint> {
        self.blobs.keys().copied()
    }

    /// The answer of a call as a response.
    pub(crate) fn response(&self, output: &Value) -> Result<Response, String> {
        // The Python implementation stores the assistant message itself.
        if self.scheme() == Scheme::Reference && output.is_object() && output.get("message").is_none() {
            return Ok(Response::new(Message(output.clone())));
        }
        let response = Response::deserialize(output).map_err(|fault| fault.to_string())?;
        if response.message.0.is_object() { Ok(response) } else { Err("`message` is not an object".to_owned()) }
    }
}

/// State of reading one file.
struct Reading<'a> {
    path: &'a Path,
    seen: usize,
    digest: Sha256,
    cassette: Cassette,
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
        Self { path, seen: 0, digest: Sha256::new(), cassette }
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

    fn finish(self) -> Result<Cassette, RecordingError> {
        if self.seen == 0 { Err(RecordingError::Empty { path: self.path.to_owned() }) } else { Ok(self.cassette) }
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

/// The meta line of the Python implementation; all its fields stay readable in `extra`.
fn reference_meta(value: &Value) -> Meta {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let entities = text("entity_mask_style");
    Meta {
        contract_version: text("prompt_contract_version").unwrap_or_default(),
        fingerprints: Scheme::Reference,
        mask: entities.map(|style| Mask { entities: Some(style), ..Mask::default() }),
        extra: value.as_object().cloned().unwrap_or_default(),
        ..Meta::default()
    }
}
