//! The size budget of what a model reads: the one place that knows how long a result may be and how it is made to fit.
//!
//! Order of preference (spec/seeds.md D2): a tool pages its records ([`paging`]); what is still too long is compacted here and
//! stays valid JSON ([`fit_json`]); plain text gets a notice ([`notice`]). Nothing here ever returns more than the limit, and
//! no cut falls inside a Unicode scalar value.
//!
//! What is never cut while the limit physically allows it: how the call ended, why, how to repair it, and what the numbers
//! cover. See [`COVERAGE`] for the fields and their priority.

pub mod cursor;
pub mod document;
pub mod notice;
pub mod paging;

pub use cursor::{Cursor, CursorFault, CursorScope};
pub use document::{DocumentFault, DocumentPage, Span, fit_document};
pub use notice::truncate_text;
pub use paging::{LIST_ROOM, ListPage, ListRequest, Page, PageOrder, PageRequest, Paging, fit_records};

use crate::json::{characters, length, pointer_segment, prefix, text};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Characters a tool result may have, contract v5. Main loop, doors, pagers and tools all read this constant (spec/seeds.md B8.1).
pub const RESULT_LIMIT: usize = 10_000;

/// Compaction steps of contract v5: list items kept per array, characters kept per string (spec/versions.md).
pub const STEPS: [(usize, usize); 4] = [(8, 240), (5, 160), (3, 100), (1, 60)];

/// Top-level fields that say how a call ended and what its numbers cover. They stay whole while the rest is compacted; when
/// even that does not fit they are compacted by the same steps; in the minimal object they are kept in this order of priority.
pub const COVERAGE: &[&str] = &[
    "success",
    "error_code",
    "retryable",
    "error",
    "status",
    "state",
    "job_id",
    "status_url",
    "skipped",
    "aborted",
    "reason",
    "as_of",
    "complete",
    "next_cursor",
    "total",
    "returned",
    "offset",
    "next_offset",
    "empty_reason",
    "correction",
    "missing_reasons",
    "coverage",
    "warnings",
    "paging",
    "budget",
    "repeated",
    "normalised",
    "error_family",
    "code_family_legacy",
];

/// How a value was made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FitStep {
    /// It fits as it is.
    Whole,
    /// Lists and strings outside the coverage fields were cut at this step of [`STEPS`].
    Compacted(usize),
    /// The coverage fields had to be cut too, at this step of [`STEPS`].
    CoverageCompacted(usize),
    /// Only coverage fields are left, as many as fit.
    Minimal,
}

/// A JSON text within its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    /// Valid JSON of at most the limit; empty only for a limit of 0, where no JSON fits.
    pub text: String,
    /// True when something was left out. The text then has a `_truncation` record if there was room for one.
    pub truncated: bool,
    /// Characters of the whole value in the v5 style.
    pub original_characters: usize,
    /// How it was made to fit.
    pub step: FitStep,
}

/// Arrays whose rows run from oldest to newest: a cut keeps their last items instead of the first, so that the newest rows do
/// not vanish (spec/seeds.md B9.6). Compiled from `x-order: "oldest_first"` of the output schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldestFirst(BTreeSet<String>);

impl OldestFirst {
    /// Paths are JSON pointers with `*` for every array index, e.g. `/groups/*/bars`.
    pub fn new<S: Into<String>>(paths: impl IntoIterator<Item = S>) -> Self {
        Self(paths.into_iter().map(Into::into).collect())
    }

    /// Reads the paths out of an output schema that still has its private keywords.
    pub fn compile(schema: &Value) -> Self {
        let mut found = BTreeSet::new();
        collect_oldest_first(schema, "", &mut found);
        Self(found)
    }

    /// True when the array at `path` runs from oldest to newest.
    pub fn contains(&self, path: &str) -> bool {
        self.0.contains(path)
    }
}

fn collect_oldest_first(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(node) = schema.as_object() else { return };
    if node.get("x-order").and_then(Value::as_str) == Some("oldest_first") {
        found.insert(path.to_owned());
    }
    for (name, sub) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        collect_oldest_first(sub, &format!("{path}/{}", pointer_segment(name)), found);
    }
    if let Some(items) = node.get("items") {
        collect_oldest_first(items, &format!("{path}/*"), found);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for branch in node.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect_oldest_first(branch, path, found);
        }
    }
}

/// Serialises `value` within `limit` characters.
///
/// In order: the value as it is; [`STEPS`] on everything but [`COVERAGE`]; [`STEPS`] on the coverage fields too; the minimal
/// object of coverage fields. A shortened text carries `_truncation {truncated, original_characters,
/// list_items_kept_per_array, lists_cut, instruction}`; a shortened string says at its end how much of it is shown. A value
/// that is no object is put under `value`, so that there is a place for the record.
///
/// For limits too small for the minimal object the text is the first of these that fits: the outcome with
/// `{"truncated": true}`, that record alone, `{"success": false}` of a failure, `{}`, `0`, and nothing at limit 0.
pub fn fit_json(value: &Value, limit: usize) -> Fitted {
    fit_json_keeping(value, limit, &OldestFirst::default())
}

/// [`fit_json`] for a value with lists that run from oldest to newest.
pub fn fit_json_keeping(value: &Value, limit: usize, oldest_first: &OldestFirst) -> Fitted {
    let whole = text(value);
    let original_characters = characters(&whole);
    if original_characters <= limit {
        return Fitted { text: whole, truncated: false, original_characters, step: FitStep::Whole };
    }
    drop(whole);
    let wrapped;
    let root = match value {
        Value::Object(map) => map,
        other => {
            wrapped = Map::from_iter([("value".to_owned(), other.clone())]);
            &wrapped
        }
    };
    let last = STEPS.len() - 1;
    let attempts = (0..STEPS.len())
        .map(|i| (FitStep::Compacted(i), STEPS[i], None))
        .chain((0..STEPS.len()).map(|i| (FitStep::CoverageCompacted(i), STEPS[last], Some(STEPS[i]))));
    // Every attempt carries the record of the cut; without room for that there is no need to try.
    let room = length(&json!({"_truncation": truncation(original_characters, 0, &[])})) <= limit;
    for (step, data, coverage) in attempts.filter(|_| room) {
        let mut cut = Compaction { oldest_first, lists: Vec::new() };
        let mut map = cut.root(root, data, coverage);
        for with_lists in [true, false] {
            let lists = if with_lists { cut.lists.as_slice() } else { &[] };
            if with_lists && lists.is_empty() {
                continue;
            }
            map.insert("_truncation".into(), truncation(original_characters, data.0, lists));
            let candidate = Value::Object(std::mem::take(&mut map));
            if length(&candidate) <= limit {
                return Fitted { text: text(&candidate), truncated: true, original_characters, step };
            }
            if let Value::Object(back) = candidate {
                map = back;
            }
        }
    }
    Fitted { text: minimal(root, original_characters, limit), truncated: true, original_characters, step: FitStep::Minimal }
}

/// A list that was cut: where, how many items it had, and which end is shown.
struct CutList {
    path: String,
    total: usize,
    newest: bool,
}

struct Compaction<'a> {
    oldest_first: &'a OldestFirst,
    lists: Vec<CutList>,
}

impl Compaction<'_> {
    fn root(&mut self, root: &Map<String, Value>, data: (usize, usize), coverage: Option<(usize, usize)>) -> Map<String, Value> {
        let mut out = Map::with_capacity(root.len() + 1);
        for (name, value) in root {
            let path = format!("/{}", pointer_segment(name));
            let kept = match (COVERAGE.contains(&name.as_str()), coverage) {
                _ if name == "_truncation" => continue,
                (false, _) => self.value(value, &path, data),
                (true, Some(step)) => self.value(value, &path, step),
                // What the agent sent is known to it; the rest of the correction is not.
                (true, None) if name == "correction" => self.correction(value, &path, data),
                (true, None) => value.clone(),
            };
            out.insert(name.clone(), kept);
        }
        out
    }

    fn correction(&mut self, value: &Value, path: &str, data: (usize, usize)) -> Value {
        let Some(map) = value.as_object() else { return value.clone() };
        let kept = map.iter().map(|(name, item)| {
            let item =
                if name == "received_arguments" { self.value(item, &format!("{path}/{name}"), data) } else { item.clone() };
            (name.clone(), item)
        });
        Value::Object(kept.collect())
    }

    fn value(&mut self, value: &Value, path: &str, step: (usize, usize)) -> Value {
        match value {
            Value::String(s) => Value::String(cut_string(s, step.1)),
            Value::Array(items) => {
                let newest = self.oldest_first.contains(path);
                let start = if newest { items.len().saturating_sub(step.0) } else { 0 };
                if items.len() > step.0 {
                    let path = path.to_owned();
                    if !self.lists.iter().any(|l| l.path == path) {
                        self.lists.push(CutList { path, total: items.len(), newest });
                    }
                }
                let inside = format!("{path}/*");
                Value::Array(items.iter().skip(start).take(step.0).map(|item| self.value(item, &inside, step)).collect())
            }
            Value::Object(map) => Value::Object(
                map.iter().map(|(k, v)| (k.clone(), self.value(v, &format!("{path}/{}", pointer_segment(k)), step))).collect(),
            ),
            other => other.clone(),
        }
    }
}

/// The first `limit` characters of a string and a mark that says so; the string itself when the mark would not make it shorter.
pub(crate) fn cut_string(s: &str, limit: usize) -> String {
    let total = characters(s);
    if total <= limit {
        return s.to_owned();
    }
    let mark = format!("… [cut: {limit} of {total} characters]");
    if limit + characters(&mark) >= total {
        return s.to_owned();
    }
    format!("{}{mark}", prefix(s, limit))
}

fn truncation(original: usize, items: usize, lists: &[CutList]) -> Value {
    let mut record = Map::new();
    record.insert("truncated".into(), true.into());
    record.insert("original_characters".into(), original.into());
    record.insert("list_items_kept_per_array".into(), items.into());
    if !lists.is_empty() {
        let shown = lists
            .iter()
            .take(8)
            .map(|l| json!({"path": l.path, "total": l.total, "kept": if l.newest { "last" } else { "first" }}));
        record.insert("lists_cut".into(), shown.collect());
    }
    record.insert(
        "instruction".into(),
        "Only a part is shown; do not treat it as complete. Ask for less: fewer rows or fields, a narrower filter, or the next page.".into(),
    );
    Value::Object(record)
}

/// Coverage fields in their order of priority, each whole, else compacted, else left out, within `limit`.
fn minimal(root: &Map<String, Value>, original: usize, limit: usize) -> String {
    let short = json!({"truncated": true});
    let records = [truncation(original, 0, &[]), json!({"truncated": true, "original_characters": original}), short.clone()];
    for record in records {
        let mut map = Map::new();
        for name in ["success", "error_code", "retryable"] {
            if let Some(value) = root.get(name) {
                map.insert(name.into(), cut_value(value, 1, 60));
            }
        }
        map.insert("_truncation".into(), record);
        let base = Value::Object(map);
        let used = length(&base);
        if let Value::Object(map) = base
            && used <= limit
        {
            return fill(root, map, limit - used);
        }
    }
    let success = root.get("success").filter(|v| v.is_boolean()).cloned();
    let mut ladder = Vec::new();
    if let Some(success) = &success {
        ladder.push(json!({"success": success, "_truncation": short}));
    }
    ladder.push(json!({"_truncation": short}));
    if success == Some(Value::Bool(false)) {
        ladder.push(json!({"success": false}));
    }
    ladder.push(json!({}));
    ladder.push(json!(0));
    ladder.iter().find(|value| length(value) <= limit).map(text).unwrap_or_default()
}

/// Adds coverage fields to `base` while there is room, in their order of priority.
fn fill(root: &Map<String, Value>, mut base: Map<String, Value>, mut room: usize) -> String {
    for name in COVERAGE.iter().copied().filter(|name| root.contains_key(*name)) {
        let value = &root[name];
        // A field costs its name in quotes, its value, and four characters of separators.
        let (held, frame) = match base.get(name) {
            Some(old) => (length(old), 0),
            None => (0, characters(name) + 6),
        };
        for form in [value.clone(), cut_value(value, 3, 100), cut_value(value, 1, 60), cut_value(value, 0, 16)] {
            let cost = length(&form) + frame;
            if cost <= room + held {
                room = room + held - cost;
                base.insert(name.to_owned(), form);
                break;
            }
        }
    }
    // Priority order, the record of the cut last.
    let order = COVERAGE.iter().copied().chain(["_truncation"]);
    let sorted = order.filter_map(|name| base.get(name).map(|value| (name.to_owned(), value.clone())));
    text(&Value::Object(sorted.collect()))
}

fn cut_value(value: &Value, items: usize, chars: usize) -> Value {
    Compaction { oldest_first: &OldestFirst::default(), lists: Vec::new() }.value(value, "", (items, chars))
}
