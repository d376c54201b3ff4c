//! Memory.

use super::{Entry, Kind};
use crate::differential::play::rows;
use serde_json::Value;

pub(super) const ENTRIES: &[Entry] = &[Entry {
    id: "b34",
    tools: &["search_memory", "get_memory", "remember"],
    fields: &["memories[]", "count"],
    reason: "Records of the environment have ids of their own and are not shown to memory tools.",
    covers: |case, diff| {
        let environment = |m: &Value| m["source"] == "environment";
        let hidden = rows(&case.played.theirs, "memories").iter().filter(|m| environment(m)).count();
        match diff.kind {
            Kind::Absent => environment(&diff.theirs),
            _ => super::gap(diff).is_some_and(|g| g == -(hidden as f64)) && hidden > 0,
        }
    },
}];
