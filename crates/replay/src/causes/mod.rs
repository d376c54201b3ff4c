//! Why two recorded runs differ: both recordings are walked in step, and every difference is listed under its cause, with its place and
//! both values. What follows from an earlier difference is counted and never listed as a cause, so that sampling, drift of a provider,
//! other data, other settings and faults of this program cannot be taken for one another.
//!
//! | module | holds |
//! |---|---|
//! | `settings` | what the two runs were set up with |
//! | `track` | the conversations of a recording, call by call |
//! | `spots` | where in the run a call was made, and what had been done until then |
//! | `walk` | the calls of both, scope by scope, in step |
//! | `parts` | what of a request is compared by itself, and the lines that are shown of it |
//! | `found` | the list of causes: bounded, each once, redacted |
//! | `effect` | what each day came to in both |
//!
//! It must never guess: where the state of the two runs may already be another one, a difference is a consequence. Nothing that is
//! given out has not passed a [`Redactor`], and codes and days stay as the recordings hold them.

mod effect;
mod found;
mod parts;
mod settings;
mod spots;
mod track;
mod walk;

pub use effect::{DayBeside, DaySide, Effect, Final};

use crate::cassette::Cassette;
use crate::error::RecordingError;
use crate::redact::Redactor;
use crate::trajectory::Entry;
use found::Found;
use serde::Serialize;
use serde_json::Value;

/// The tool that runs code of the agent.
const CODE: &str = "execute_code";

/// One of two recorded runs.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Its recording.
    pub cassette: &'a Cassette,
    /// Its trajectory; `None` where only the recording is there, and then days, decision points and effects are not known.
    pub trajectory: Option<&'a [Entry]>,
}

/// What a difference comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The runs were set up otherwise: model, sampling, contract, flags, mask, cash, window, card, words of the prompt.
    Settings,
    /// The dataset is another one, or a tool gave another result for the same call in the same state because it is.
    Data,
    /// Other tools were offered.
    ToolsOffered,
    /// The same request was answered otherwise, or by another build of the model.
    Model,
    /// The machine, a server or a process of somebody else: code, plug-ins, time limits, a call without an answer.
    Environment,
    /// The same call in the same state on the same data under the same settings had another result: a fault of this program.
    Fault,
}

impl Kind {
    /// As a heading.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Data => "data",
            Self::ToolsOffered => "tools offered",
            Self::Model => "model answer",
            Self::Environment => "environment",
            Self::Fault => "fault of this program",
        }
    }
}

/// Where a difference is. What does not apply or is not known is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Who asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Day of the run, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<u32>,
    /// Decision point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
    /// Number of the request in its scope, from 0, in the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<usize>,
    /// Number of the message in the request, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// The tool whose result, description or outcome it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The field, as `card.persona`, `sampling.temperature`, `message.content`, `bars[3].close`.
    pub field: String,
}

/// A difference that follows from no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// What it comes from.
    pub kind: Kind,
    /// Where it is, and where it first is when it is in several places.
    pub place: Place,
    /// What stands there in the first run, around the first character that differs; `None` when nothing does.
    pub a: Option<String>,
    /// The same of the second run.
    pub b: Option<String>,
    /// What stands around it, line by line: `- ` of the first run, `+ ` of the second. Empty where both values say it all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// What is known of its reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Places that differ in this way.
    pub times: usize,
}

/// How far the calls of one scope go together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Walked {
    /// Who asked.
    pub scope: String,
    /// Requests of the first and of the second run.
    pub requests: (usize, usize),
    /// Pairs of requests that asked the same conversation.
    pub together: usize,
    /// Of these, pairs whose whole requests have one digest.
    pub same_digest: usize,
    /// Requests of the first and of the second run that differ because of something before them.
    pub following: (usize, usize),
    /// Answers that differ after a difference of the request that is listed: another model, other words, other tools.
    pub answers: usize,
    /// Results and briefs that differ where the runs had come together again but what was done until then is not the same.
    pub states: usize,
    /// How often the two came back to the same request after they had parted.
    pub came_back: usize,
    /// Number of the first request, in the first run, before or in which they part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parted_at: Option<usize>,
}

impl Walked {
    /// Everything that is counted and not listed.
    pub const fn consequences(&self) -> usize {
        self.following.0 + self.following.1 + self.answers + self.states
    }
}

/// What two runs have in common and what not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Nothing differs that a run can be told apart by: settings, data, requests, answers, records.
    pub identical: bool,
    /// The causes, by kind and then in the order of the run; at most as many as were asked for.
    pub causes: Vec<Cause>,
    /// Further causes that are not listed.
    pub more_causes: usize,
    /// What follows from the causes, counted.
    pub consequences: usize,
    /// The same, scope by scope; empty when the conversations were not compared.
    pub scopes: Vec<Walked>,
    /// What a reader has to know to read this rightly.
    pub notes: Vec<String>,
    /// What each day came to; `None` without both trajectories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// Compares two recorded runs; lists at most `limit` causes.
///
/// # Errors
/// [`RecordingError`] when a recording cannot be put together again. Recordings whose digests cover different things
/// ([`crate::cassette::Scheme`]) give a comparison without conversations and a note.
pub fn compare(a: Run<'_>, b: Run<'_>, redactor: &Redactor, limit: usize) -> Result<Comparison, RecordingError> {
    let mut found = Found::new(redactor, limit);
    let mut notes = Vec::new();
    let differ = settings::compare(a.cassette, b.cassette, &mut found, &mut notes);
    let scopes = if differ.mask || a.cassette.scheme() != b.cassette.scheme() {
        Vec::new()
    } else {
        walk::walk(a, b, &differ, &mut found, &mut notes)?
    };
    let effect = a.trajectory.zip(b.trajectory).map(|(a, b)| effect::effect(a, b, !differ.mask, redactor));
    if effect.is_none() {
        let which = match (a.trajectory, b.trajectory) {
            (None, None) => "neither run has",
            (None, _) => "the first run lacks",
            _ => "the second run lacks",
        };
        notes.push(format!("{which} a readable trajectory, so orders, fills and total assets are not compared"));
    }
    let consequences = scopes.iter().map(Walked::consequences).sum();
    let (causes, more_causes) = found.take();
    let parted = effect.as_ref().is_some_and(|effect| effect.parted_on.is_some());
    let identical = causes.is_empty() && more_causes == 0 && consequences == 0 && !parted;
    Ok(Comparison { identical, causes, more_causes, consequences, scopes, notes, effect })
}

/// A value without what nobody may see.
fn clean(redactor: &Redactor, value: &Value) -> Value {
    redactor.value(value, crate::redact::Sink::Result)
}
