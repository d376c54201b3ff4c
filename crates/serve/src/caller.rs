//! [`Caller`]: who calls, and what they are entitled to. Tokens are kept as digests only.

use std::collections::{BTreeMap, BTreeSet};

/// One who may call. Made from the configuration; nothing a tool returns can change it (spec/seeds.md C1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Id.
    pub id: String,
    /// Scopes: dotted capability names, `group.*`, `trade`, or `*`.
    pub grants: BTreeSet<String>,
    /// Source tables the caller may see, or `*`.
    pub data_rights: BTreeSet<String>,
    /// Agent revisions: id to pinned capability revisions.
    pub agent_revisions: BTreeMap<String, BTreeMap<String, String>>,
    /// Agent revision of calls that name none.
    pub default_revision: Option<String>,
    /// Profile of sessions that name none.
    pub profile: String,
}

impl Caller {
    /// Whether the caller holds a scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        let group = scope.split_once('.').map(|(group, _)| format!("{group}.*"));
        self.grants.contains("*") || self.grants.contains(scope) || group.is_some_and(|group| self.grants.contains(&group))
    }

    /// Whether the caller may see a source.
    pub fn has_right(&self, source: &str) -> bool {
        self.data_rights.contains("*") || self.data_rights.contains(source)
    }
}
