//! [`Meta`]: what a recording is of. The first line of a recording; it never holds a wall clock, a machine, a path or a key.

use crate::Fingerprint;
use crate::request::Request;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What a recording is of. Holds no wall clock, no machine, no path and no key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Contract version of the run, e.g. `v5`.
    pub contract_version: String,
    /// Version of the canonical form under the fingerprints. Set by the recorder.
    pub canonical_version: u32,
    /// Model name.
    pub model: String,
    /// Entity and date masks of the run; `None` when nothing was masked.
    #[serde(default)]
    pub mask: Option<Mask>,
    /// Dataset the tools read.
    #[serde(default)]
    pub dataset: Option<Dataset>,
    /// True when the dataset was generated. Never left out.
    pub synthetic: bool,
    /// Numbers of the behaviour flags the run used (spec/versions.md).
    #[serde(default)]
    pub behaviour_flags: BTreeSet<u32>,
    /// What the host needs to set up the same run again (dates, card, cash ...), and anything else worth knowing.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// What the fingerprints cover; other than the whole request only in a recording of the Python implementation that was rewritten in
    /// this schema ([`crate::migrate`]). Such a recording has canonical version 0.
    #[serde(default, skip_serializing_if = "Scheme::is_whole")]
    pub fingerprints: Scheme,
}

/// Masks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mask {
    /// Style of the entity mask: `opaque`, `permutation`; `None` when codes are shown.
    pub entities: Option<String>,
    /// Whether dates are masked.
    pub dates: bool,
    /// Digest of the mask's seed; the seed itself is not written.
    pub seed_sha256: Option<Fingerprint>,
}

/// Dataset of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dataset {
    /// Its name, not its path.
    pub name: String,
    /// Digest of its content, as the loader computed it.
    pub sha256: Option<Fingerprint>,
}

/// What the fingerprints of a recording cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// The whole request, in our canonical form.
    #[default]
    #[serde(rename = "whole_request")]
    Whole,
    /// Messages and tools, in the JSON text of the Python implementation.
    #[serde(rename = "messages_and_tools")]
    Reference,
}

impl Scheme {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }

    /// The fingerprint of `request`.
    pub fn fingerprint(self, request: &Request) -> Fingerprint {
        match self {
            Self::Whole => request.fingerprint(),
            Self::Reference => crate::reference::fingerprint(request),
        }
    }
}

/// The meta line of the Python implementation; all its fields stay readable in `extra`.
pub(super) fn reference_meta(value: &Value) -> Meta {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let entities = text("entity_mask_style");
    Meta {
        contract_version: text("prompt_contract_version").unwrap_or_default(),
        fingerprints: Scheme::Reference,
        mask: entities.map(|style| Mask { entities: Some(style), ..Mask::default() }),
        extra: value.as_object().cloned().unwrap_or_default(),
        ..Meta::default()
    }
}
