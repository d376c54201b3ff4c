//! What every row says of its run. Must hold nothing that is private: no key, no window of a masked run, no path.

use crate::cassette::Cassette;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What a run was, as far as a row may tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Facts {
    /// Contract version of the tools and prompts, such as `v5`.
    pub contract_version: String,
    /// Name of the dataset; empty when the recording does not tell.
    pub dataset: String,
    /// SHA-256 of the dataset's content, 64 hexadecimal digits.
    pub dataset_sha256: Option<String>,
    /// True when the dataset was generated: its companies and prices do not exist.
    pub synthetic: bool,
    /// Model, as the run named it.
    pub model: String,
    /// Whether dates were hidden from the agent.
    pub masked_dates: bool,
    /// How codes and names were hidden: `opaque`, `permutation`; null when they were shown.
    pub mask_style: Option<String>,
    /// Id of the mask key, which tells runs under one mask from others. It is not the key.
    pub mask_id: Option<String>,
}

impl Facts {
    /// The facts in a recording's first line.
    pub fn of(cassette: &Cassette) -> Self {
        let Some(meta) = cassette.meta() else { return Self::default() };
        let dataset = meta.dataset.clone().unwrap_or_default();
        let mask = meta.mask.clone().unwrap_or_default();
        let id = meta.extra.get("manifest").and_then(|manifest| manifest.get("entity_mask_seed")).and_then(Value::as_str);
        Self {
            contract_version: meta.contract_version.clone(),
            dataset: dataset.name,
            dataset_sha256: dataset.sha256.map(|digest| digest.to_string()),
            synthetic: meta.synthetic,
            model: meta.model.clone(),
            masked_dates: mask.dates,
            mask_style: mask.entities,
            mask_id: id.filter(|id| !id.is_empty() && meta.mask.is_some()).map(str::to_owned),
        }
    }

    /// Whether dates, codes and names were hidden.
    pub const fn is_masked(&self) -> bool {
        self.masked_dates && self.mask_style.is_some()
    }
}
