//! Writes calls that were recorded before as a cassette in memory: a scope of a recording, several scopes as one again, an older schema in
//! this one. It must change nothing of a call but its number, and it makes no digest of a request: those were taken when it was asked.

use crate::Fingerprint;
use crate::cassette::{Call, Cassette, Meta, SCHEMA_VERSION};
use crate::error::RecordingError;
use crate::lines::{BlobLine, CallLine, EndLine, MetaLine};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// A cassette that is being written.
#[derive(Debug)]
pub(crate) struct Rewriter {
    text: Vec<u8>,
    digest: Sha256,
    written: BTreeSet<Fingerprint>,
    calls: usize,
}

impl Rewriter {
    pub(crate) fn new(meta: &Meta) -> Result<Self, RecordingError> {
        let mut rewriter = Self { text: Vec::new(), digest: Sha256::new(), written: BTreeSet::new(), calls: 0 };
        rewriter.append(&MetaLine { schema_version: SCHEMA_VERSION, kind: "meta".to_owned(), meta: meta.clone() })?;
        Ok(rewriter)
    }

    /// Appends a call of `from`, with the parts that its request needs, under `scope`.
    pub(crate) fn call(&mut self, from: &Cassette, call: &Call, scope: &str) -> Result<(), RecordingError> {
        let stored = Cassette::stored(call);
        if let Some(stored) = stored {
            if let Some(sha256) = &stored.system_sha256 {
                self.part(from, "system", sha256)?;
            }
            if let Some(sha256) = &stored.tools_sha256 {
                let list = from.part(sha256).and_then(Value::as_array).cloned().unwrap_or_default();
                for tool in list.iter().filter_map(Value::as_str).filter_map(|text| text.parse().ok()) {
                    self.part(from, "tool", &tool)?;
                }
                self.part(from, "tools", sha256)?;
            }
        }
        let line = CallLine {
            schema_version: SCHEMA_VERSION,
            step: Some(self.calls),
            kind: "llm_call".to_owned(),
            scope: scope.to_owned(),
            request_sha256: call.request_sha256,
            request: stored.cloned(),
            output_sha256: Cassette::stated_output(call).or_else(|| call.output.as_ref().map(Fingerprint::of)),
            output: call.output.clone(),
            error: call.error.clone(),
            source: call.source.clone(),
        };
        self.append(&line)?;
        self.calls += 1;
        Ok(())
    }

    /// The finished cassette.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, RecordingError> {
        let lines_sha256 = Fingerprint(self.digest.clone().finalize().into());
        let end = EndLine { schema_version: SCHEMA_VERSION, kind: "end".to_owned(), calls: self.calls, lines_sha256 };
        self.append(&end)?;
        Ok(self.text)
    }

    fn part(&mut self, from: &Cassette, part: &str, sha256: &Fingerprint) -> Result<(), RecordingError> {
        // A part that is not there is found when the request is put together.
        let Some(value) = from.part(sha256).filter(|_| !self.written.contains(sha256)) else { return Ok(()) };
        let (kind, part) = ("blob".to_owned(), part.to_owned());
        self.append(&BlobLine { schema_version: SCHEMA_VERSION, kind, part, sha256: *sha256, value: value.clone() })?;
        self.written.insert(*sha256);
        Ok(())
    }

    fn append(&mut self, record: &impl Serialize) -> Result<(), RecordingError> {
        let fault = |fault: serde_json::Error| RecordingError::Io {
            action: "write",
            path: "a rewritten recording".into(),
            source: std::io::Error::other(fault),
        };
        let line = serde_json::to_string(record).map_err(fault)?;
        for bytes in [line.as_bytes(), b"\n"] {
            self.digest.update(bytes);
            self.text.extend_from_slice(bytes);
        }
        Ok(())
    }
}

/// The first call in which two recordings are not the same, by what a replay and a reader of them look at; `None` when there is none.
pub(crate) fn first_other(a: &[&Call], b: &[&Call]) -> Option<usize> {
    let same = |(a, b): (&&Call, &&Call)| {
        a.scope == b.scope
            && a.request_sha256 == b.request_sha256
            && a.output == b.output
            && a.error == b.error
            && a.source == b.source
            && Cassette::stored(a) == Cassette::stored(b)
    };
    let differs = a.iter().zip(b).position(|pair| !same(pair));
    differs.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len())))
}
