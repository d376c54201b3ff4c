//! Recorded runs as rows to train on: supervised ([`sft`]) and by reward ([`rl`]).
//!
//! A row holds what a model was sent and what it answered, as recorded: nothing is tokenised, reworded or made up. Must be given the
//! recording and, where there is one, the trajectory; it opens no file. Rows come in the order of the recording, one after another,
//! so memory holds one recording and one row.
//!
//! Rows hold whatever the recording holds. Whoever writes them sends each through [`redacted`] and searches the result with the
//! [audit](crate::audit) before anybody gets it.

mod error;
mod facts;
mod rl;
mod scrub;
mod sft;
mod timeline;

pub use error::ExportError;
pub use facts::Facts;
pub use rl::{Action, Observation, RlRow, ToolError, rl, rl_schema};
pub use scrub::redacted;
pub use sft::{Per, SftMetadata, SftRow, sft, sft_schema};

use crate::cassette::{Call, Cassette};
use crate::request::{Message, Request, Response};
use crate::trajectory::Entry;
use std::collections::BTreeMap;
use timeline::Timeline;

/// Schema of the rows written here.
pub const EXPORT_SCHEMA_VERSION: u32 = 1;

/// The published schema of a row: every field is always there, and no other.
fn schema_of<T: schemars::JsonSchema>(title: &str, description: &str) -> serde_json::Value {
    let generator = schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    if let serde_json::Value::Object(fields) = &mut schema {
        fields.insert("title".to_owned(), title.into());
        fields.insert("description".to_owned(), description.into());
    }
    schema
}

/// A run to export.
#[derive(Debug)]
pub struct Recorded<'a> {
    run: String,
    cassette: &'a Cassette,
    facts: Facts,
    timeline: Timeline,
}

impl<'a> Recorded<'a> {
    /// A run under the name that its rows carry, with its trajectory; an empty one where it is not kept: days, decision points and
    /// rewards are then not known.
    pub fn new(run: impl Into<String>, cassette: &'a Cassette, entries: &[Entry]) -> Self {
        Self { run: run.into(), cassette, facts: Facts::of(cassette), timeline: Timeline::of(entries) }
    }

    /// What its rows say of the run.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether the run came to its end.
    pub fn is_complete(&self) -> bool {
        if self.timeline.known { self.timeline.completed } else { self.cassette.is_sealed() }
    }

    /// Goes through the calls with their whole requests and answers.
    fn each<E: From<ExportError>>(&self, mut on: impl FnMut(Asked<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut scopes: BTreeMap<&str, Vec<Message>> = BTreeMap::new();
        for call in self.cassette.calls() {
            let stored = Cassette::stored(call).ok_or(ExportError::NoRequest { step: call.step })?;
            let messages = scopes.entry(call.scope.as_str()).or_default();
            let kept = stored.messages_kept;
            let before = messages.len();
            self.cassette.follow(call, messages).map_err(ExportError::from)?;
            let response = match &call.output {
                Some(output) if !output.is_null() => {
                    let bad = |what| ExportError::BadOutput { step: call.step, what };
                    Some(self.cassette.response(output).map_err(bad)?)
                }
                _ => None,
            };
            on(Asked { recorded: self, call, messages, kept, before, response })?;
        }
        Ok(())
    }
}

/// One call while it is looked at.
struct Asked<'r> {
    recorded: &'r Recorded<'r>,
    call: &'r Call,
    messages: &'r [Message],
    /// Messages that the scope's previous request began with too.
    kept: usize,
    /// Messages of that request.
    before: usize,
    /// `None` when the call failed.
    response: Option<Response>,
}

impl Asked<'_> {
    fn request(&self) -> Result<Request, ExportError> {
        let request = self.recorded.cassette.assemble(self.call, self.messages)?;
        request.ok_or(ExportError::NoRequest { step: self.call.step })
    }
}
