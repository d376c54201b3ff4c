//! The conversations of a recording, call by call: one digest per conversation, so that two runs are compared without holding every request.

use crate::cassette::{Call, Cassette};
use crate::error::RecordingError;
use crate::{Fingerprint, Message};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// One call.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) call: &'a Call,
    /// Digest of the conversation without the instructions above it.
    pub(super) talk: Fingerprint,
    /// Digest of what stands around it: contract, model, sampling, instructions, tools.
    pub(super) around: Fingerprint,
}

/// The calls of a recording, by scope.
#[derive(Debug)]
pub(super) struct Track<'a> {
    pub(super) cassette: &'a Cassette,
    pub(super) scopes: BTreeMap<&'a str, Vec<Asked<'a>>>,
}

impl<'a> Track<'a> {
    /// # Errors
    /// [`RecordingError::Broken`] when a request keeps more messages than there are.
    pub(super) fn of(cassette: &'a Cassette) -> Result<Self, RecordingError> {
        let mut open: BTreeMap<&str, Vec<(bool, Fingerprint)>> = BTreeMap::new();
        let mut scopes: BTreeMap<&str, Vec<Asked<'_>>> = BTreeMap::new();
        for call in cassette.calls() {
            let messages = open.entry(&call.scope).or_default();
            scopes.entry(&call.scope).or_default().push(asked(cassette, call, messages)?);
        }
        Ok(Self { cassette, scopes })
    }

    /// Gives scopes the names that another recording has for them: a scope of a committee is named after the card, and two cards may have
    /// committees of the same roles.
    pub(super) fn named_as(&mut self, other: &Track<'a>) {
        let alone = |of: &Self, than: &Self| {
            let names = of.scopes.keys().copied().filter(|name| !than.scopes.contains_key(name));
            let mut roles: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            names.for_each(|name| roles.entry(role(name)).or_default().push(name));
            roles
        };
        let (here, there) = (alone(self, other), alone(other, self));
        for (role, names) in here {
            if let ([name], Some([theirs])) = (&names[..], there.get(role).map(Vec::as_slice))
                && let Some(calls) = self.scopes.remove(name)
            {
                self.scopes.insert(theirs, calls);
            }
        }
    }

    /// The calls of a scope.
    pub(super) fn calls(&self, scope: &str) -> &[Asked<'a>] {
        self.scopes.get(scope).map_or(&[], Vec::as_slice)
    }
}

/// What a scope is of its agent: the agent itself, its executor, an advisor.
fn role(scope: &str) -> &str {
    scope.find("__").and_then(|at| scope.get(at..)).unwrap_or_default()
}

fn asked<'a>(
    cassette: &'a Cassette,
    call: &'a Call,
    messages: &mut Vec<(bool, Fingerprint)>,
) -> Result<Asked<'a>, RecordingError> {
    let Some(stored) = Cassette::stored(call) else {
        // Nothing but the digest of the whole is known.
        return Ok(Asked { call, talk: call.request_sha256, around: Fingerprint([0; 32]) });
    };
    if stored.messages_kept > messages.len() {
        let what = format!("keeps {} messages of {}", stored.messages_kept, messages.len());
        return Err(RecordingError::broken(cassette.path(), call.place, what));
    }
    messages.truncate(stored.messages_kept);
    messages.extend(stored.messages_added.iter().map(|message| (message.role() == "system", Fingerprint::of(&message.0))));
    let above = messages.iter().take_while(|(system, _)| *system).count();
    let (system, talk) = messages.split_at(above);
    let apart = stored.system_sha256.iter().copied();
    let system = digest(system.iter().map(|(_, print)| *print).chain(apart));
    let plain = json!([stored.contract_version, stored.model, stored.sampling]);
    let around = digest([Fingerprint::of(&plain), system].into_iter().chain(stored.tools_sha256));
    Ok(Asked { call, talk: digest(talk.iter().map(|(_, print)| *print)), around })
}

fn digest(parts: impl Iterator<Item = Fingerprint>) -> Fingerprint {
    let mut sha256 = Sha256::new();
    parts.for_each(|part| sha256.update(part.0));
    Fingerprint(sha256.finalize().into())
}

/// What a model answered, or why it did not.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Said { message: Message, rest: Map<String, Value> },
    Failed(String),
}

impl Answer {
    pub(super) fn of(cassette: &Cassette, call: &Call) -> Self {
        let Some(output) = call.output.as_ref().filter(|output| !output.is_null()) else {
            return Self::Failed(call.error.clone().unwrap_or_else(|| "no answer was recorded".to_owned()));
        };
        let Ok(response) = cassette.response(output) else {
            return Self::Said { message: Message(output.clone()), rest: Map::new() };
        };
        let mut rest = serde_json::to_value(&response).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default();
        rest.remove("message");
        // They name an answer and its moment: no two answers have the same.
        if let Some(Value::Object(served)) = rest.get_mut("served") {
            served.remove("id");
            served.remove("created");
            if served.is_empty() {
                rest.remove("served");
            }
        }
        Self::Said { message: response.message, rest }
    }
}

/// What is known of the reason for another answer to the same request.
pub(super) fn reason(a: &Map<String, Value>, b: &Map<String, Value>, sampling: Option<&Map<String, Value>>) -> String {
    let of = |rest: &Map<String, Value>, name: &str| {
        let value = rest.get("served").and_then(|served| served.get(name)).and_then(Value::as_str);
        value.map(|text| text.chars().take(80).collect::<String>())
    };
    let changed = ["model", "system_fingerprint"].into_iter().find(|name| of(a, name) != of(b, name));
    if let Some(name) = changed {
        let side = |rest: &Map<String, Value>| of(rest, name).unwrap_or_else(|| "not told".to_owned());
        return format!("the same request, answered by another build of the provider: {name} {} and {}", side(a), side(b));
    }
    match sampling.and_then(|sampling| sampling.get("temperature")).and_then(Value::as_f64) {
        Some(0.0) => "the same request at temperature 0: the model or its provider is not deterministic".to_owned(),
        Some(temperature) => format!("the same request, sampled at temperature {temperature}"),
        None => "the same request, for which no temperature was asked".to_owned(),
    }
}
