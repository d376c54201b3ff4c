//! The causes that were found: each once with the number of places, at most as many as are wanted, and redacted before they are cut.

use super::{Cause, Kind, Place, clean};
use crate::diff::{Change, Difference, differences};
use crate::redact::Redactor;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most ways of differing that are remembered; each further place then counts as a way of its own.
const KEPT_APART: usize = 10_000;

/// What one difference is told apart by.
type Way = (Kind, String, Option<String>, Option<String>);

fn way(kind: Kind, both: &Both) -> Way {
    (kind, both.field.clone(), both.a.clone(), both.b.clone())
}

/// The causes so far.
pub(super) struct Found<'r> {
    redactor: &'r Redactor,
    limit: usize,
    causes: Vec<Cause>,
    more: usize,
    /// Where a way of differing is in the list; `None` when it was found and is not listed.
    ways: BTreeMap<Way, Option<usize>>,
}

/// Two values that differ, as they are shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Both {
    pub(super) field: String,
    pub(super) a: Option<String>,
    pub(super) b: Option<String>,
}

impl<'r> Found<'r> {
    pub(super) fn new(redactor: &'r Redactor, limit: usize) -> Self {
        Self { redactor, limit, causes: Vec::new(), more: 0, ways: BTreeMap::new() }
    }

    /// Notes a cause; one that differs in a way that is known already is another place of that.
    pub(super) fn push(&mut self, kind: Kind, place: Place, both: Both, why: impl Into<String>) {
        self.push_lines(kind, place, both, why, Vec::new());
    }

    /// As [`Found::push`], with what stands around.
    pub(super) fn push_lines(&mut self, kind: Kind, place: Place, both: Both, why: impl Into<String>, lines: Vec<String>) {
        self.add(way(kind, &both), place, both, why.into(), lines);
    }

    /// As [`Found::push`], where all values of a field are one way of differing: counts that differ in every answer.
    pub(super) fn push_field(&mut self, kind: Kind, place: Place, both: Both, why: impl Into<String>) {
        self.add((kind, both.field.clone(), None, None), place, both, why.into(), Vec::new());
    }

    /// Notes that a way of differing that was noted before is at another place.
    pub(super) fn again(&mut self, kind: Kind, both: &Both) {
        self.count(&way(kind, both));
    }

    /// Counts one more place of a way of differing; tells whether that is known.
    fn count(&mut self, way: &Way) -> bool {
        let Some(listed) = self.ways.get(way) else { return false };
        if let Some(cause) = listed.and_then(|at| self.causes.get_mut(at)) {
            cause.times += 1;
        }
        true
    }

    fn add(&mut self, way: Way, place: Place, both: Both, why: String, lines: Vec<String>) {
        if self.count(&way) {
            return;
        }
        let listed = self.causes.len() < self.limit;
        let kind = way.0;
        if self.ways.len() < KEPT_APART {
            self.ways.insert(way, listed.then_some(self.causes.len()));
        }
        if !listed {
            self.more += 1;
            return;
        }
        let Both { field, a, b } = both;
        self.causes.push(Cause { kind, place: Place { field, ..place }, a, b, lines, why, times: 1 });
    }

    /// The differences of two values as they may be shown, at most `most`. Values that differ only in what must not be seen differ as a
    /// whole, without a value.
    pub(super) fn between(&self, a: &Value, b: &Value, most: usize) -> Vec<Both> {
        let shown = differences(&clean(self.redactor, a), &clean(self.redactor, b), most);
        let hidden = || vec![Both { field: String::new(), a: None, b: None }];
        if shown.is_empty() { hidden() } else { shown.into_iter().map(Both::of).collect() }
    }

    /// The first difference of two texts; inside of them when both are JSON.
    pub(super) fn between_texts(&self, a: &str, b: &str) -> Both {
        let inside = |text: &str| serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array());
        let pair = inside(a).zip(inside(b)).filter(|(a, b)| !crate::canonical::equal(a, b));
        let (a, b) = pair.unwrap_or_else(|| (a.into(), b.into()));
        self.between(&a, &b, 1).pop().unwrap_or_default()
    }

    /// A value as it may be shown.
    pub(super) fn clean(&self, value: &Value) -> Value {
        clean(self.redactor, value)
    }

    /// Whether a cause of a kind was found.
    pub(super) fn has(&self, kind: Kind) -> bool {
        self.ways.keys().any(|way| way.0 == kind)
    }

    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.causes.is_empty() && self.more == 0
    }

    /// Whether a field of a kind is listed already.
    pub(super) fn has_field(&self, kind: Kind, field: &str) -> bool {
        self.ways.keys().any(|way| way.0 == kind && way.1 == field)
    }

    /// The causes, by kind, and the number of those that are not listed.
    pub(super) fn take(self) -> (Vec<Cause>, usize) {
        let mut causes = self.causes;
        causes.sort_by_key(|cause| cause.kind);
        (causes, self.more)
    }
}

impl Both {
    pub(super) fn of(difference: Difference) -> Self {
        let (a, b) = match difference.change {
            Change::Added { actual } => (None, Some(actual)),
            Change::Removed { expected } => (Some(expected), None),
            Change::Value { expected, actual } | Change::Order { expected, actual } | Change::Text { expected, actual, .. } => {
                (Some(expected), Some(actual))
            }
        };
        Self { field: difference.path, a, b }
    }

    /// The same under a field around it.
    pub(super) fn within(self, outer: &str) -> Self {
        let field = match self.field.as_str() {
            "" => outer.to_owned(),
            inner if inner.starts_with('[') => format!("{outer}{inner}"),
            inner => format!("{outer}.{inner}"),
        };
        Self { field, ..self }
    }
}
