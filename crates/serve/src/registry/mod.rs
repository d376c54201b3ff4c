//! The research registry (spec/seeds.md C8): frozen configurations that results of this program stand on, each with its parameters, the
//! schema of what it takes, the revisions it depends on, and a digest of all of that. Made of the tables of the program itself, so an
//! entry cannot say anything else than what runs. Listing or choosing an entry runs nothing and tunes nothing; an edit is a new revision,
//! and a test holds the digests of those that were published.

mod entries;

use crate::caller::hex;
use crate::manifest::Catalog;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use traderharness_contract::json::{canonical, text};

/// Revision of every entry of this program so far.
pub(crate) const REVISION: &str = "1.0";

/// What an entry configures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A number computed from the market.
    Feature,
    /// What decides.
    Strategy,
    /// What a strategy is measured against: one of our own, with everything it ran under.
    Baseline,
    /// How orders become fills.
    ExecutionModel,
    /// How past prices are made comparable across splits.
    SplitPolicy,
    /// What trading costs.
    CostModel,
    /// Which days are played over which data.
    ScenarioSet,
    /// The market as a whole.
    Benchmark,
}

impl Kind {
    /// Every kind, in the order of the seed.
    pub const ALL: [Self; 8] = [
        Self::Feature,
        Self::Strategy,
        Self::Baseline,
        Self::ExecutionModel,
        Self::SplitPolicy,
        Self::CostModel,
        Self::ScenarioSet,
        Self::Benchmark,
    ];

    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Feature => "feature",
            Self::Strategy => "strategy",
            Self::Baseline => "baseline",
            Self::ExecutionModel => "execution_model",
            Self::SplitPolicy => "split_policy",
            Self::CostModel => "cost_model",
            Self::ScenarioSet => "scenario_set",
            Self::Benchmark => "benchmark",
        }
    }
}

/// A frozen configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegistryEntry {
    /// What it configures.
    pub kind: Kind,
    /// Name inside its kind.
    pub name: String,
    /// Revision; another content has another one.
    pub revision: String,
    /// One sentence.
    pub description: String,
    /// What is fixed.
    pub parameters: Value,
    /// Schema of what it takes beside that.
    pub input_schema: Value,
    /// Revisions it stands on: capabilities by their name, entries as `kind/name`.
    pub dependency_revisions: Value,
    /// SHA-256, hex, over the canonical JSON of kind, parameters, input_schema and dependency_revisions.
    pub digest: String,
}

impl RegistryEntry {
    pub(crate) fn new(kind: Kind, name: &str, description: &str, parameters: Value) -> Self {
        let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        Self {
            kind,
            name: name.to_owned(),
            revision: REVISION.to_owned(),
            description: description.to_owned(),
            parameters,
            input_schema: nothing,
            dependency_revisions: json!({}),
            digest: String::new(),
        }
    }

    pub(crate) fn takes(mut self, schema: Value) -> Self {
        self.input_schema = schema;
        self
    }

    pub(crate) fn on<'d>(mut self, dependencies: impl IntoIterator<Item = (&'d str, &'d str)>) -> Self {
        self.dependency_revisions =
            Value::Object(dependencies.into_iter().map(|(name, revision)| (name.to_owned(), revision.into())).collect());
        self
    }

    fn sealed(mut self) -> Self {
        let content = canonical(&json!({
            "kind": self.kind,
            "parameters": self.parameters,
            "input_schema": self.input_schema,
            "dependency_revisions": self.dependency_revisions,
        }));
        self.digest = hex(&Sha256::digest(text(&content).as_bytes()));
        self
    }
}

/// Every entry, sorted by kind, name and revision.
pub fn entries(catalog: &Catalog) -> Vec<RegistryEntry> {
    let mut all: Vec<RegistryEntry> = entries::all(catalog).into_iter().map(RegistryEntry::sealed).collect();
    let key = |e: &RegistryEntry| (e.kind.as_str(), e.name.clone(), e.revision.clone());
    all.sort_by_key(key);
    all
}

/// The listing, made once: two reads are the same bytes.
pub(crate) fn listing(catalog: &Catalog) -> Value {
    json!({ "schema_version": "1.0", "entries": entries(catalog) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    // spec/seeds.md C8
    #[test]
    fn a_changed_parameter_is_another_digest() {
        let entry = |rate: u32| RegistryEntry::new(Kind::CostModel, "a", "A test.", json!({ "rate": rate, "min": 5 })).sealed();
        assert_ne!(entry(1).digest, entry(2).digest);
        let turned = RegistryEntry::new(Kind::CostModel, "a", "Other words.", json!({ "min": 5, "rate": 1 })).sealed();
        assert_eq!(entry(1).digest, turned.digest, "neither the order of fields nor the words count");
    }

    #[test]
    fn every_kind_is_there_and_every_dependency_resolves() {
        let catalog = Catalog::standard().unwrap();
        let all = entries(&catalog);
        let kinds: BTreeSet<Kind> = all.iter().map(|e| e.kind).collect();
        assert_eq!(kinds.len(), Kind::ALL.len());
        let names: BTreeSet<(String, &str)> =
            all.iter().map(|e| (format!("{}/{}", e.kind.as_str(), e.name), e.revision.as_str())).collect();
        assert_eq!(names.len(), all.len(), "an entry is there once");
        for entry in &all {
            jsonschema::draft202012::new(&entry.input_schema).unwrap();
            for (name, revision) in entry.dependency_revisions.as_object().unwrap() {
                let revision = revision.as_str().unwrap();
                let known =
                    names.contains(&(name.clone(), revision)) || catalog.find(name).is_some_and(|c| c.revision == revision);
                assert!(known, "{} depends on {name} {revision}", entry.name);
            }
        }
        assert_eq!(text(&listing(&catalog)), text(&listing(&Catalog::standard().unwrap())));
    }
}
