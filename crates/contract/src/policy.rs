//! What a card asks of the contract: the switches that refine schemas and admission.

use serde::{Deserialize, Serialize};

/// Card switches that change what a tool's schema demands. Everything else about a card lives in the harness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Opening buys need plan fields (engine E11.1).
    pub require_structured_plan: bool,
    /// Opening buys need a decision card (engine E11.2).
    pub require_decision_card: bool,
    /// Codes are aliases such as `SHM-000360`; examples show aliases. Schemas put no pattern on codes: a bare suffix must get past
    /// validation to be answered with its candidates (spec/tools.md b08).
    pub masked_codes: bool,
}
