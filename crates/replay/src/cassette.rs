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

mod meta;
mod reading;
mod verify;

pub use meta::{Dataset, Mask, Meta, Scheme};
pub(crate) use reading::version;

use crate::Fingerprint;
use crate::error::RecordingError;
use crate::jsonl::Place;
use crate::lines::{EndLine, StoredRequest};
use crate::request::{Message, Request, Response};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Schema of the lines written here. 1 is the shape of the Python implementation.
pub const SCHEMA_VERSION: u32 = 2;
/// Scope of a run with one agent.
pub const DEFAULT_SCOPE: &str = "main";
/// Behind the name of an agent: the scope of its executor in a committee.
pub(crate) const EXECUTOR: &str = "__executor";
/// Behind the name of an agent and before a role: the scope of an advisor.
pub(crate) const ADVISOR: &str = "__advisor_";

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
