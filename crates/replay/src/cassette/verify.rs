//! Whether a recording is what was recorded: digests of its parts, requests, answers and lines. Reading alone does not look at them.

use super::{Call, Cassette, Scheme};
use crate::Fingerprint;
use crate::error::RecordingError;
use crate::jsonl::Place;
use crate::request::Message;
use std::collections::BTreeMap;

impl Cassette {
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
            if !self.has_digest(call, messages)? {
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
        if self.has_digest(call, messages)? { Ok(()) } else { Err(changed("the request", call.request_sha256)) }
    }

    /// Whether the request of a call, whose messages are known, has its digest; one that is not kept has.
    fn has_digest(&self, call: &Call, messages: &[Message]) -> Result<bool, RecordingError> {
        let request = self.assemble(call, messages)?;
        Ok(request.is_none_or(|request| self.scheme().fingerprint(&request) == call.request_sha256))
    }
}
