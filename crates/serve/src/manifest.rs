//! [`Capability`]: the manifest of one thing that can be called (spec/seeds.md C1). Declared by the host; no text of a tool or a remote
//! server can add or change one.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use traderharness_contract::Effect;

/// The manifest of a capability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capability {
    /// Dotted domain name, `market.get_kline`.
    pub name: String,
    /// Plain tool name, `get_kline`; absent for a capability that is a dependency only.
    pub tool: Option<String>,
    /// Schema revision that is served.
    pub revision: String,
    /// Scopes a caller needs for it, sorted.
    pub scopes: Vec<String>,
    /// Effect class.
    pub effect: Effect,
    /// First paragraph of its description.
    pub description: String,
    /// Schema of `input`, under the default card.
    #[serde(rename = "inputSchema")]
    pub input_schema: Value,
    /// Schema of the result's `data`.
    #[serde(rename = "outputSchema")]
    pub output_schema: Value,
    /// Schema of the whole result envelope.
    #[serde(rename = "envelopeSchema")]
    pub envelope_schema: Value,
    /// Capabilities it needs directly, sorted.
    pub depends_on: Vec<String>,
    /// Everything it needs, directly or through another: D*, sorted.
    pub closure: Vec<String>,
    /// Source tables its answers are made from, sorted.
    pub sources: Vec<String>,
    /// A valid `input`.
    pub example: Value,
    /// False when the configuration switched it off: it is never admitted.
    pub enabled: bool,
}

impl Capability {
    /// Scopes of the capability and of everything it needs are looked up by name in this set.
    pub fn needs(&self) -> BTreeSet<&str> {
        self.closure.iter().map(String::as_str).chain([self.name.as_str()]).collect()
    }
}
