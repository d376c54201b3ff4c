//! The structural difference of two JSON values, short enough to read in a terminal. Deterministic and bounded: long texts
//! are shown around the first differing character only, and a list of differences ends at its limit.

use crate::canonical;
use crate::request::{Message, Request, tool_name};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// Characters shown before the first differing one.
const BEFORE: usize = 32;
/// Characters shown from the first differing one on.
const AFTER: usize = 48;
/// Differences shown of one request.
const REQUEST_LIMIT: usize = 8;

/// One place where two values differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where, as `messages[5].content` or `tools[get_kline].function.description`. Empty for the whole value.
    pub path: String,
    /// How.
    #[serde(flatten)]
    pub change: Change,
}

/// How two values differ at one place. All texts are excerpts of bounded length with invisible characters escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Only the actual value has this place.
    Added {
        /// What is there.
        actual: String,
    },
    /// Only the expected value has this place.
    Removed {
        /// What was there.
        expected: String,
    },
    /// Other values, at least one of them not a text.
    Value {
        /// What was there.
        expected: String,
        /// What is there.
        actual: String,
    },
    /// Two texts.
    Text {
        /// First differing character, from 0.
        at: usize,
        /// Length of the expected text in characters.
        expected_length: usize,
        /// Length of the actual text in characters.
        actual_length: usize,
        /// The expected text around `at`.
        expected: String,
        /// The actual text around `at`.
        actual: String,
        /// Where the texts differ inside, when both are JSON: the path of the first difference in there.
        #[serde(skip_serializing_if = "Option::is_none")]
        inside: Option<String>,
    },
    /// The same members in another order.
    Order {
        /// Order of the first members that moved.
        expected: String,
        /// Their order now.
        actual: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the whole value" } else { &self.path };
        match &self.change {
            Change::Added { actual } => write!(f, "{path}: not in the recording\n    now       {actual}"),
            Change::Removed { expected } => write!(f, "{path}: missing now\n    recorded  {expected}"),
            Change::Value { expected, actual } => write!(f, "{path}:\n    recorded  {expected}\n    now       {actual}"),
            Change::Order { expected, actual } => {
                write!(f, "{path}: other order\n    recorded  {expected}\n    now       {actual}")
            }
            Change::Text { at, expected_length, actual_length, expected, actual, inside } => {
                write!(f, "{path}: from character {at} on ({expected_length} characters recorded, {actual_length} now)")?;
                if let Some(inside) = inside {
                    write!(f, ", in its JSON at {inside}")?;
                }
                write!(f, "\n    recorded  {expected}\n    now       {actual}")
            }
        }
    }
}

/// The differences of two values, at most `limit`, in canonical key order. Empty exactly when the canonical forms are
/// equal (and `limit` is not 0).
pub fn differences(expected: &Value, actual: &Value, limit: usize) -> Vec<Difference> {
    let mut found = Found { list: Vec::new(), limit };
    compare(String::new(), expected, actual, &mut found);
    found.list
}

/// The differences of two requests, at most eight: contract version, model, sampling, system prompt, then the tools by
/// name, then the first differing message.
pub fn request_differences(expected: &Request, actual: &Request) -> Vec<Difference> {
    let mut found = Found { list: Vec::new(), limit: REQUEST_LIMIT };
    compare_text("contract_version".to_owned(), &expected.contract_version, &actual.contract_version, &mut found);
    compare_text("model".to_owned(), &expected.model, &actual.model, &mut found);
    let (old, new) = (Value::Object(expected.sampling.clone()), Value::Object(actual.sampling.clone()));
    compare("sampling".to_owned(), &old, &new, &mut found);
    match (&expected.system, &actual.system) {
        (Some(old), Some(new)) => compare_text("system".to_owned(), old, new, &mut found),
        (Some(old), None) => found.push("system".to_owned(), Change::Removed { expected: excerpt(old, 0) }),
        (None, Some(new)) => found.push("system".to_owned(), Change::Added { actual: excerpt(new, 0) }),
        (None, None) => {}
    }
    compare_tools(&expected.tools, &actual.tools, &mut found);
    compare_messages(&expected.messages, &actual.messages, &mut found);
    found.list
}

struct Found {
    list: Vec<Difference>,
    limit: usize,
}

impl Found {
    fn push(&mut self, path: String, change: Change) {
        if !self.full() {
            self.list.push(Difference { path, change });
        }
    }

    fn full(&self) -> bool {
        self.list.len() >= self.limit
    }
}

fn compare(path: String, expected: &Value, actual: &Value, found: &mut Found) {
    if found.full() {
        return;
    }
    match (expected, actual) {
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).collect();
            keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            for key in keys {
                let path = member(&path, key);
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => compare(path, old, new, found),
                    (Some(old), None) => found.push(path, Change::Removed { expected: show(old) }),
                    (None, Some(new)) => found.push(path, Change::Added { actual: show(new) }),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                let path = format!("{path}[{index}]");
                match (old.get(index), new.get(index)) {
                    (Some(old), Some(new)) => compare(path, old, new, found),
                    (Some(old), None) => found.push(path, Change::Removed { expected: show(old) }),
                    (None, Some(new)) => found.push(path, Change::Added { actual: show(new) }),
                    (None, None) => {}
                }
                if found.full() {
                    return;
                }
            }
        }
        (Value::String(old), Value::String(new)) => compare_text(path, old, new, found),
        (old, new) if canonical::equal(old, new) => {}
        (old, new) => found.push(path, Change::Value { expected: show(old), actual: show(new) }),
    }
}

fn compare_text(path: String, expected: &str, actual: &str, found: &mut Found) {
    if expected == actual || found.full() {
        return;
    }
    let at = expected.chars().zip(actual.chars()).take_while(|(a, b)| a == b).count();
    let change = Change::Text {
        at,
        expected_length: expected.chars().count(),
        actual_length: actual.chars().count(),
        expected: excerpt(expected, at),
        actual: excerpt(actual, at),
        inside: inside_json(expected, actual),
    };
    found.push(path, change);
}

/// Where two JSON texts differ as values. `None` when one is not a JSON object or array, or only the spelling differs.
fn inside_json(expected: &str, actual: &str) -> Option<String> {
    let parse = |text: &str| {
        let structured = text.starts_with(['{', '[']);
        structured.then(|| serde_json::from_str::<Value>(text).ok()).flatten()
    };
    let first = differences(&parse(expected)?, &parse(actual)?, 1).pop()?;
    Some(if first.path.is_empty() { "the top".to_owned() } else { first.path })
}

fn compare_tools(expected: &[Value], actual: &[Value], found: &mut Found) {
    let (Some(old), Some(new)) = (names(expected), names(actual)) else {
        // Without one name per tool only the positions can be compared.
        return compare("tools".to_owned(), &expected.to_vec().into(), &actual.to_vec().into(), found);
    };
    for (name, tool) in old.iter().zip(expected) {
        let path = format!("tools[{name}]");
        match new.iter().position(|other| other == name).and_then(|index| actual.get(index)) {
            Some(other) => compare(path, tool, other, found),
            None => found.push(path, Change::Removed { expected: show(tool) }),
        }
    }
    for (name, tool) in new.iter().zip(actual).filter(|(name, _)| !old.contains(name)) {
        found.push(format!("tools[{name}]"), Change::Added { actual: show(tool) });
    }
    let kept_old: Vec<&str> = old.iter().copied().filter(|name| new.contains(name)).collect();
    let kept_new: Vec<&str> = new.iter().copied().filter(|name| old.contains(name)).collect();
    if kept_old != kept_new {
        let from = kept_old.iter().zip(&kept_new).take_while(|(a, b)| a == b).count();
        let list = |names: &[&str]| excerpt(&names.iter().skip(from).copied().collect::<Vec<_>>().join(", "), 0);
        found.push("tools".to_owned(), Change::Order { expected: list(&kept_old), actual: list(&kept_new) });
    }
}

/// The tools' names, when every tool has one and no two are alike.
fn names(tools: &[Value]) -> Option<Vec<&str>> {
    let names: Vec<&str> = tools.iter().map(tool_name).collect::<Option<_>>()?;
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    (distinct.len() == names.len()).then_some(names)
}

fn compare_messages(expected: &[Message], actual: &[Message], found: &mut Found) {
    let differs = |index: &usize| match (expected.get(*index), actual.get(*index)) {
        (Some(old), Some(new)) => !canonical::equal(&old.0, &new.0),
        _ => true,
    };
    let Some(index) = (0..expected.len().max(actual.len())).find(differs) else { return };
    let path = format!("messages[{index}]");
    match (expected.get(index), actual.get(index)) {
        (Some(old), Some(new)) => compare(path, &old.0, &new.0, found),
        (Some(old), None) => found.push(path, Change::Removed { expected: show(&old.0) }),
        (None, Some(new)) => found.push(path, Change::Added { actual: show(&new.0) }),
        (None, None) => {}
    }
    if expected.len() != actual.len() {
        let count = |count: usize| format!("{count} messages");
        let change = Change::Value { expected: count(expected.len()), actual: count(actual.len()) };
        found.push("messages".to_owned(), change);
    }
}

/// The path of a member of an object; a key that is no plain word stands in quotes.
pub(crate) fn member(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$' || c == '-');
    match (plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[\"{}\"]", excerpt(key, 0)),
    }
}

/// A value as bounded text.
fn show(value: &Value) -> String {
    excerpt(&canonical::to_string(value), 0)
}

/// The text around its character `at`; cuts are marked with `…` and always fall between whole characters.
fn excerpt(text: &str, at: usize) -> String {
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let from = at.saturating_sub(BEFORE);
    let mut rest = text.chars().skip(from);
    let mut out = String::new();
    if from > 0 {
        out.push('…');
    }
    for c in rest.by_ref().take(at - from + AFTER) {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    if rest.next().is_some() {
        out.push('…');
    }
    if text.chars().count() <= at {
        out.push_str("(end of text)");
    }
    out
}
