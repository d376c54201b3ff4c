//! [`Recorder`]: writes a cassette while the calls happen. Every line reaches the operating system before the call is
//! acknowledged; the file gets its name only when it is finished. It must never write a key, a path or the time.

use crate::Fingerprint;
use crate::canonical::{self, CANONICAL_VERSION};
use crate::cassette::{Cassette, Meta, SCHEMA_VERSION, Scheme};
use crate::error::RecordingError;
use crate::jsonl::{self, Appender, Whole};
use crate::lines::{BlobLine, CallLine, EndLine, MetaLine, StoredRequest};
use crate::request::{Message, Request, Response};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Records model calls into `FILE.partial`, which becomes `FILE` when finished.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    partial: PathBuf,
    file: Appender,
    keep_requests: bool,
    calls: usize,
    digest: Sha256,
    blobs: BTreeSet<Fingerprint>,
    previous: BTreeMap<String, Vec<Message>>,
}

impl Recorder {
    /// Starts a recording. `meta.canonical_version` is set here.
    ///
    /// # Errors
    /// [`RecordingError::PartialExists`] when `FILE.partial` is there, [`RecordingError::Io`] when it cannot be made.
    pub fn create(path: impl AsRef<Path>, meta: Meta) -> Result<Self, RecordingError> {
        let path = path.as_ref().to_owned();
        let partial = partial_path(&path);
        let file = match Appender::create(&partial) {
            Ok(file) => file,
            Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(RecordingError::PartialExists { partial });
            }
            Err(fault) => return Err(RecordingError::io("create", &partial)(fault)),
        };
        let mut recorder = Self {
            path,
            partial,
            file,
            keep_requests: true,
            calls: 0,
            digest: Sha256::new(),
            blobs: BTreeSet::new(),
            previous: BTreeMap::new(),
        };
        let meta = Meta { canonical_version: CANONICAL_VERSION, fingerprints: Scheme::Whole, ..meta };
        recorder.append(&MetaLine { schema_version: SCHEMA_VERSION, kind: "meta".to_owned(), meta })?;
        Ok(recorder)
    }

    /// Goes on with an interrupted recording of `path`: what `FILE.partial` holds up to its last whole line stays, a cut
    /// line is removed. The cassette that comes back answers the requests that were already made.
    ///
    /// # Errors
    /// As [`Cassette::read_partial`]; [`RecordingError::Io`] when there is no `FILE.partial`; [`RecordingError::Changed`] when an
    /// answer or a request in it is not what was recorded: a damaged recording is never gone on with. [`RecordingError::Io`] also while
    /// another recorder writes it.
    pub fn resume(path: impl AsRef<Path>) -> Result<(Self, Cassette), RecordingError> {
        let path = path.as_ref().to_owned();
        let partial = partial_path(&path);
        let bytes = jsonl::read(&partial)?;
        let (mut cassette, _) = Cassette::partial_from_bytes(&partial, &bytes)?;
        let mut whole = jsonl::whole(&bytes);
        // Killed between the end line and the renaming: the end line is taken off and written again.
        if let Some(end) = cassette.reopen() {
            whole = Whole { length: end.offset, ended: true, ..whole };
        }
        let file = Appender::reopen(&partial, &whole).map_err(RecordingError::io("write", &partial))?;
        let mut digest = Sha256::new();
        for line in jsonl::lines(bytes.get(..whole.length).unwrap_or_default()) {
            digest.update(line.bytes);
            digest.update(b"\n");
        }
        let mut previous = BTreeMap::new();
        for call in cassette.calls() {
            let messages: &mut Vec<Message> = previous.entry(call.scope.clone()).or_default();
            cassette.follow(call, messages)?;
            cassette.check(call, messages)?;
        }
        let recorder = Self {
            path,
            partial,
            file,
            keep_requests: true,
            calls: cassette.calls().len(),
            digest,
            blobs: cassette.blob_digests().collect(),
            previous,
        };
        Ok((recorder, cassette))
    }

    /// Leaves the requests out of the file, keeping their fingerprints. A mismatch can then not show what differs.
    #[must_use]
    pub fn without_requests(mut self) -> Self {
        self.keep_requests = false;
        self
    }

    /// Calls recorded so far.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Records one answered call of `scope`.
    ///
    /// # Errors
    /// [`RecordingError::Io`]; the call must then not be acted on, because a replay would not know of it.
    pub fn record(&mut self, scope: &str, request: &Request, response: &Response) -> Result<Fingerprint, RecordingError> {
        let output = serde_json::to_value(response)
            .map_err(|fault| RecordingError::io("write", &self.partial)(std::io::Error::other(fault)))?;
        self.write_call(scope, request, Some(output), None)
    }

    /// Records a call that got no answer, and why. A replay stops there.
    ///
    /// # Errors
    /// As [`Recorder::record`].
    pub fn record_failure(&mut self, scope: &str, request: &Request, error: &str) -> Result<Fingerprint, RecordingError> {
        self.write_call(scope, request, None, Some(error.to_owned()))
    }

    /// Writes the end line, waits for the disk and gives the file its name, replacing an older recording of that name.
    ///
    /// # Errors
    /// [`RecordingError::Io`]; `FILE.partial` then stays and can be resumed.
    pub fn finish(mut self) -> Result<PathBuf, RecordingError> {
        let end = EndLine {
            schema_version: SCHEMA_VERSION,
            kind: "end".to_owned(),
            calls: self.calls,
            lines_sha256: Fingerprint(self.digest.clone().finalize().into()),
        };
        self.append(&end)?;
        self.file.sync_all().map_err(RecordingError::io("write", &self.partial))?;
        std::fs::rename(&self.partial, &self.path).map_err(RecordingError::io("rename", &self.partial))?;
        jsonl::sync_folder(&self.path);
        Ok(self.path)
    }

    fn write_call(
        &mut self,
        scope: &str,
        request: &Request,
        output: Option<Value>,
        error: Option<String>,
    ) -> Result<Fingerprint, RecordingError> {
        let request_sha256 = request.fingerprint();
        let stored = if self.keep_requests { Some(self.store(scope, request)?) } else { None };
        let kept = stored.as_ref().map(|stored| stored.messages_kept);
        self.append(&CallLine {
            schema_version: SCHEMA_VERSION,
            step: Some(self.calls),
            kind: "llm_call".to_owned(),
            scope: scope.to_owned(),
            request_sha256,
            request: stored,
            output_sha256: output.as_ref().map(Fingerprint::of),
            output,
            error,
            source: serde_json::Map::new(),
        })?;
        self.calls += 1;
        // Only after the line is written: the next request is stored as its difference to what the file holds.
        if let Some(kept) = kept {
            let previous = self.previous.entry(scope.to_owned()).or_default();
            previous.truncate(kept);
            previous.extend(request.messages.iter().skip(kept).cloned());
        }
        Ok(request_sha256)
    }

    /// The request as its difference to the previous one of the scope; writes the blob lines it needs.
    fn store(&mut self, scope: &str, request: &Request) -> Result<StoredRequest, RecordingError> {
        let system_sha256 = match &request.system {
            None => None,
            Some(system) => Some(self.blob("system", Value::from(system.as_str()))?),
        };
        let tools_sha256 = if request.tools.is_empty() {
            None
        } else {
            let mut digests = Vec::with_capacity(request.tools.len());
            for tool in &request.tools {
                digests.push(Value::from(self.blob("tool", tool.clone())?.to_string()));
            }
            Some(self.blob("tools", Value::Array(digests))?)
        };
        let previous = self.previous.get(scope).map_or(&[][..], Vec::as_slice);
        let same = |(old, new): &(&Message, &Message)| canonical::equal(&old.0, &new.0);
        let kept = previous.iter().zip(&request.messages).take_while(same).count();
        Ok(StoredRequest {
            model: request.model.clone(),
            contract_version: request.contract_version.clone(),
            sampling: request.sampling.clone(),
            system_sha256,
            tools_sha256,
            messages_kept: kept,
            messages_added: request.messages.iter().skip(kept).cloned().collect(),
        })
    }

    fn blob(&mut self, part: &str, value: Value) -> Result<Fingerprint, RecordingError> {
        let sha256 = Fingerprint::of(&value);
        if !self.blobs.contains(&sha256) {
            let kind = "blob".to_owned();
            self.append(&BlobLine { schema_version: SCHEMA_VERSION, kind, part: part.to_owned(), sha256, value })?;
            self.blobs.insert(sha256);
        }
        Ok(sha256)
    }

    fn append(&mut self, record: &impl Serialize) -> Result<(), RecordingError> {
        let line = self.file.append(record).map_err(RecordingError::io("write", &self.partial))?;
        self.digest.update(line.as_bytes());
        self.digest.update(b"\n");
        Ok(())
    }
}

/// `FILE.partial`, where a recording is kept until it is finished.
pub fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_gone_on_with_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("day.jsonl");
        let busy = |result: Result<(Recorder, Cassette), RecordingError>| match result {
            Err(RecordingError::Io { source, .. }) => source.kind() == std::io::ErrorKind::ResourceBusy,
            _ => false,
        };
        let mut first = Recorder::create(&path, Meta::default()).unwrap();
        assert!(busy(Recorder::resume(&path)));
        first.record("main", &Request::new("m", "v5"), &Response::new(Message::assistant("a", &[]))).unwrap();
        drop(first);
        let (second, cassette) = Recorder::resume(&path).unwrap();
        assert_eq!(cassette.calls().len(), 1);
        assert!(busy(Recorder::resume(&path)));
        second.finish().unwrap();
        assert_eq!(Cassette::load(&path).unwrap().calls().len(), 1);
    }
}
