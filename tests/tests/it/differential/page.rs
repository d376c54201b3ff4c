//! `docs/differences.md`: the list of deliberate differences for people who come from the Python implementation. It is written from
//! the list, so the two cannot say different things.

use super::deliberate::{Entry, SECTIONS};
use std::collections::BTreeSet;
use std::path::PathBuf;

const HEAD: &str = "\
# Differences from the Python implementation

For people who know the tools of the Python implementation (contract v5) and compare results. Every recorded call of it that we have
(1,868 on a synthetic market, 700 on real bars of July 2025) is replayed against ours by the test `differential`; a value is either
equal or covered by one row below, and a row covers nothing without a check of the value. *Theirs* is the Python implementation.

Ids: `b01` to `b42` are faults found in theirs; `T1`, `T3`, `T5` are rules for every result, additions and budgets of our tools;
`E2.7` and the like are rules of the environment (clock, orders, masking, phases); `NU-4` is a complaint of users. A word after an id
names one of several differences with the same cause. Fields are those of a successful result; `outcome` is success or the failure code,
`correction` the repair record of a failure.

This page is written from the list in `tests/tests/it/differential/deliberate`. After a change of the list write it again with
`UPDATE_DIFFERENCES=1 cargo nextest run -p traderharness-tests differences_page`.
";

fn tools(entry: &Entry) -> String {
    match entry.tools.len() {
        0..=4 => entry.tools.iter().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", "),
        n => format!("{n} tools"),
    }
}

fn fields(entry: &Entry) -> String {
    // A field of a list item and of a single answer are one field to a reader.
    let names: BTreeSet<&str> = entry.fields.iter().map(|f| f.trim_end_matches(['*', '.', '[', ']'])).collect();
    let names: Vec<String> = names.into_iter().filter(|n| !n.is_empty()).map(|n| format!("`{n}`")).collect();
    match names.len() {
        0 => "all".to_owned(),
        1..=4 => names.join(", "),
        n => format!("{}, {} more", names[..3].join(", "), n - 3),
    }
}

fn render() -> String {
    let mut page = HEAD.to_owned();
    for (title, entries) in SECTIONS {
        page += &format!("\n## {title}\n\n| id | tools | fields | ours, and why |\n|---|---|---|---|\n");
        for entry in entries {
            page += &format!("| `{}` | {} | {} | {} |\n", entry.id, tools(entry), fields(entry), entry.reason);
        }
    }
    page
}

#[test]
fn differences_page() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/differences.md");
    let page = render();
    if std::env::var_os("UPDATE_DIFFERENCES").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/differences.md is stale; its first lines say how to write it again");
}

#[test]
fn ids_of_differences_are_unique() {
    let mut seen = BTreeSet::new();
    for entry in SECTIONS.iter().flat_map(|(_, entries)| *entries) {
        assert!(seen.insert(entry.id), "`{}` stands twice", entry.id);
        assert!(!entry.tools.is_empty() && !entry.fields.is_empty() && !entry.reason.contains('|'), "`{}`", entry.id);
    }
}
