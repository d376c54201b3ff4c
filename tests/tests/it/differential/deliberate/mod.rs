//! The one list of deliberate differences from the Python implementation.
//!
//! An entry covers a difference only when it names the tool and the field and its check holds; a check looks at the values and,
//! wherever the dataset can tell, works out the right one again. Ids are those of `spec/tools.md` T1-T5 (`b01`, `T3-...`) and
//! `spec/engine.md` (`E2.8`). `docs/differences.md` explains each id to users.

mod account;
mod breadth;
mod calls;
mod company;
mod conditions;
mod memory;
mod orders;
mod quotes;
mod screens;
mod texts;

use super::diff::{Diff, Kind};
use super::oracle::Oracle;
use super::play::Played;
use serde_json::Value;

/// A difference that is meant.
#[derive(Debug)]
pub(super) struct Entry {
    /// Id of the spec's table, or spec item with a word.
    pub(super) id: &'static str,
    /// Tools it may touch.
    pub(super) tools: &'static [&'static str],
    /// Fields it may touch, list items left open; `x.*` = everything under `x`.
    pub(super) fields: &'static [&'static str],
    /// How ours is right, with the source.
    pub(super) reason: &'static str,
    /// Whether it covers this very difference.
    pub(super) covers: fn(&Case<'_>, &Diff) -> bool,
}

/// A record and what is known around it.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) played: &'a Played,
    pub(super) oracle: &'a Oracle,
}

impl Case<'_> {
    /// Their field at the top.
    pub(super) fn theirs(&self, key: &str) -> &Value {
        &self.played.theirs[key]
    }

    /// Our field at the top.
    pub(super) fn ours(&self, key: &str) -> &Value {
        &self.played.ours[key]
    }

    /// Code the call is about.
    pub(super) fn code(&self) -> &str {
        self.played.args["stock_code"].as_str().unwrap_or_default()
    }

    /// Today as the tools show it.
    pub(super) fn today(&self) -> String {
        if self.played.masked { "D+0".to_owned() } else { self.played.clock.day.to_string() }
    }
}

impl Entry {
    pub(super) fn explains(&self, case: &Case<'_>, diff: &Diff) -> bool {
        let field = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => diff.field.starts_with(start) || diff.field == start.trim_end_matches(['.', '[', ']']),
            None => diff.field == pattern,
        };
        self.tools.iter().any(|t| *t == case.played.tool) && self.fields.iter().any(|p| field(p)) && (self.covers)(case, diff)
    }
}

/// The entries by subject, in the order in which they are tried.
pub(super) const SECTIONS: [(&str, &[Entry]); 10] = [
    ("Calls and failures", calls::ENTRIES),
    ("Bars and quotes", quotes::ENTRIES),
    ("Breadth and sectors", breadth::ENTRIES),
    ("Screens", screens::ENTRIES),
    ("Companies", company::ENTRIES),
    ("News and announcements", texts::ENTRIES),
    ("Account and watchlist", account::ENTRIES),
    ("Orders, plans and decision cards", orders::ENTRIES),
    ("Conditional orders", conditions::ENTRIES),
    ("Memory", memory::ENTRIES),
];

/// Every entry, in the order in which they are tried.
pub(super) fn entries() -> Vec<&'static Entry> {
    SECTIONS.iter().flat_map(|(_, entries)| *entries).collect()
}

/// An outcome difference of these codes (`success` for none).
pub(super) fn outcome(diff: &Diff, theirs: &str, ours: &str) -> bool {
    diff.kind == Kind::Outcome && diff.theirs == theirs && diff.ours == ours
}

/// Difference of two numbers, ours less theirs.
pub(super) fn gap(diff: &Diff) -> Option<f64> {
    Some(diff.ours.as_f64()? - diff.theirs.as_f64()?)
}

pub(super) fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// Code that the innermost row of a difference is about.
pub(super) fn row_code(diff: &Diff) -> &str {
    ["stock_code", "code"].iter().find_map(|k| diff.their_row[*k].as_str()).unwrap_or_default()
}
