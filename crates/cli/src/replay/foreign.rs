//! Recordings of the Python implementation: what they hold, and why they cannot be played here as they are. Nothing is guessed.

use super::strange;
use crate::fault::{Class, Fault, Outcome};
use crate::report::print;
use crate::run::pretty;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr as _;
use traderharness_contract::version::Version;
use traderharness_replay::Cassette;
use traderharness_replay::reference::ForeignBundle;

/// What a recording of the Python implementation holds.
#[derive(Debug)]
pub(crate) struct Foreign {
    kind: &'static str,
    version: String,
    mask: Option<String>,
    scopes: Vec<ScopeHeld>,
    /// What a bundle's manifest says of its runs.
    told: Value,
    /// Cards that a bundle does not hold whole, and why.
    cards: Vec<String>,
}

#[derive(Debug)]
struct ScopeHeld {
    name: String,
    calls: usize,
    /// Calls with an answer that can be read.
    answers: usize,
    /// The first call without one, and why.
    without: Option<(usize, String)>,
}

impl ScopeHeld {
    fn of(name: &str, cassette: &Cassette) -> Self {
        let of_scope: Vec<_> =
            cassette.calls().iter().filter(|call| call.scope == name || cassette.scopes().len() == 1).collect();
        let without = of_scope.iter().enumerate().find(|(_, call)| call.output.as_ref().is_none_or(|o| !o.is_object()));
        Self {
            name: name.to_owned(),
            calls: of_scope.len(),
            answers: of_scope.iter().filter(|call| call.output.as_ref().is_some_and(Value::is_object)).count(),
            without: without.map(|(n, call)| (n, call.error.clone().unwrap_or_else(|| "the line has no `output`".to_owned()))),
        }
    }
}

impl Foreign {
    /// A single file.
    pub(crate) fn cassette(cassette: &Cassette) -> Self {
        let meta = cassette.meta();
        Self {
            kind: "cassette",
            // Files of the first version have no meta line.
            version: meta.map(|meta| meta.contract_version.clone()).filter(|v| !v.is_empty()).unwrap_or_else(|| "v1".to_owned()),
            mask: meta.and_then(|meta| meta.mask.as_ref()).and_then(|mask| mask.entities.clone()),
            scopes: cassette.scopes().into_iter().map(|scope| ScopeHeld::of(scope, cassette)).collect(),
            told: Value::Null,
            cards: Vec::new(),
        }
    }

    /// A bundle.
    pub(crate) fn bundle(bundle: &ForeignBundle) -> Self {
        let manifest = bundle.manifest();
        let told = ["start_date", "end_date", "initial_cash", "mask_entities", "entity_mask_seed", "traderharness_version"];
        let told: serde_json::Map<String, Value> =
            told.iter().filter_map(|name| Some(((*name).to_owned(), manifest.get(*name)?.clone()))).collect();
        let style = manifest.get("entity_mask_style").and_then(Value::as_str);
        Self {
            kind: "bundle",
            version: bundle.contract_version().to_owned(),
            mask: style.map(str::to_owned),
            scopes: bundle.scopes().iter().map(|scope| ScopeHeld::of(&scope.name, &scope.cassette)).collect(),
            told: told.into(),
            cards: bundle
                .agents()
                .iter()
                .filter_map(|agent| Some(format!("the card of {}: {}", agent.id, strange::held(agent, manifest).err()?)))
                .collect(),
        }
    }

    /// Contract version, and style of the entity mask.
    pub(crate) fn names(&self) -> (&str, Option<&str>) {
        (&self.version, self.mask.as_deref())
    }

    /// What a replay would need and the recording does not have.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.kind == "cassette" {
            missing.push("the window, the card and the cash of the run: a single file holds none of them".to_owned());
        }
        missing.extend(self.cards.iter().cloned());
        missing.push(format!(
            "the texts and tool descriptions of its contract {}: they are not those of this program, so every digest differs",
            self.version
        ));
        if self.kind == "cassette" {
            missing.push("the seed of its entity mask".to_owned());
        }
        missing.push("the dataset it was made on, and its digest".to_owned());
        missing
    }

    pub(crate) fn text(&self) -> String {
        let mut out = format!("A {} of the Python implementation, contract {}", self.kind, self.version);
        if let Some(mask) = &self.mask {
            let _ = write!(out, ", entity mask {mask}");
        }
        out.push('.');
        if Version::from_str(&self.version).is_err() {
            let _ = write!(out, "\n  That contract version is not known here.");
        }
        for scope in &self.scopes {
            let _ = write!(out, "\n  {}: {} request(s), {} with a readable answer", scope.name, scope.calls, scope.answers);
            if let Some((index, why)) = &scope.without {
                let _ = write!(out, "; request {index} has none: {why}");
            }
        }
        if let Value::Object(told) = &self.told {
            for (name, value) in told {
                let _ = write!(out, "\n  {name}: {value}");
            }
        }
        out.push_str(
            "\nIts digests cover messages and tools only: model, sampling and contract of a request are not checked by them.\nThe requests themselves are not in it, so a difference could not be shown.\nMissing for a replay:",
        );
        for missing in self.missing() {
            let _ = write!(out, "\n  - {missing}");
        }
        out
    }

    pub(crate) fn machine(&self) -> Value {
        let scopes: Vec<Value> = self
            .scopes
            .iter()
            .map(|scope| {
                let without = scope.without.as_ref().map(|(index, why)| json!({ "request": index, "reason": why }));
                json!({ "scope": scope.name, "requests": scope.calls, "answers": scope.answers, "first_without_answer": without })
            })
            .collect();
        json!({
            "made_by": "python", "kind": self.kind, "contract_version": self.version, "entity_mask_style": self.mask,
            "digests_cover": ["messages", "tools"], "scopes": scopes, "manifest": self.told, "missing_for_replay": self.missing(),
        })
    }
}

/// Says what such a recording holds; it is not replayed, which is no success of a command that was to replay it.
pub(crate) fn told(foreign: &Foreign, path: &Path, json: bool) -> Outcome {
    print(&if json { pretty(&foreign.machine()) } else { foreign.text() });
    Err(Fault::text(
        Class::Input,
        format!(
            "`{}` was made by the Python implementation and cannot be replayed from what it holds; nothing was compared",
            path.display()
        ),
    )
    .hint(
        "with --agent, --card, --start and --end, --mask-seed and --pack a run is set up and held against it: docs/recordings.md",
    ))
}
