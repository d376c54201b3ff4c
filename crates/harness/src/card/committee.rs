//! The committee of a card: advisors who read and one executor who alone may act.
//!
//! An advisor has a persona and read tools. It never has a tool that changes anything, whatever its list says: such a list is refused
//! when the card is read. What advisors write reaches the executor as one memo, a text like any other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_market::DecisionPoint;

/// Advisors a committee may have.
const MOST_ADVISORS: usize = 8;

/// A decision point at which a committee meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are those of the decision points (engine E1)")]
pub enum Meeting {
    PreMarket,
    #[serde(rename = "open_1")]
    Open1,
    #[serde(rename = "open_2")]
    Open2,
    #[serde(rename = "close_1")]
    Close1,
    #[serde(rename = "close_2")]
    Close2,
}

impl Meeting {
    /// The decision point.
    pub const fn point(self) -> DecisionPoint {
        match self {
            Self::PreMarket => DecisionPoint::PreMarket,
            Self::Open1 => DecisionPoint::Open1,
            Self::Open2 => DecisionPoint::Open2,
            Self::Close1 => DecisionPoint::Close1,
            Self::Close2 => DecisionPoint::Close2,
        }
    }
}

/// One advisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advisor {
    /// Name of the part it plays, one of a kind in its committee: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]+$"), length(max = 40))]
    pub role: String,
    /// Text of its system prompt: what it looks at and how it argues.
    #[schemars(length(min = 1))]
    pub persona: String,
    /// Tools it may call; each must only read. Empty or left out: every read tool that the card offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Model turns it has per meeting.
    #[serde(default = "turns")]
    #[schemars(range(min = 1, max = 50))]
    pub max_iterations: u32,
    /// Model name as the provider spells it; left out, that of the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

const fn turns() -> u32 {
    4
}

/// When advisors are heard, and how much of it the executor reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memo {
    /// Decision points the committee meets at, before the executor's first turn there.
    #[schemars(length(min = 1, max = 5))]
    pub at: Vec<Meeting>,
    /// Characters of each advisor's statement that the executor reads.
    #[schemars(range(min = 100, max = 20_000))]
    pub max_characters: usize,
}

impl Default for Memo {
    fn default() -> Self {
        Self { at: vec![Meeting::PreMarket], max_characters: 1_500 }
    }
}

/// Advisors in the order in which their statements stand in the memo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Committee {
    /// Advisors, 1 to 8.
    #[schemars(length(min = 1, max = 8))]
    pub advisors: Vec<Advisor>,
    /// The memo.
    #[serde(default)]
    pub memo: Memo,
}

impl Committee {
    /// What the schema cannot say, and what it says for a committee that was not read from a file.
    pub(super) fn fault(&self) -> Option<(&'static str, String, &'static str)> {
        if self.advisors.is_empty() || self.advisors.len() > MOST_ADVISORS {
            return Some(("committee.advisors", self.advisors.len().to_string(), "a list of 1 to 8 advisors"));
        }
        for (n, advisor) in self.advisors.iter().enumerate() {
            let role = &advisor.role;
            if !super::is_id(role) || role.len() > 40 {
                return Some(("committee.advisors.role", format!("`{role}`"), "1 to 40 letters, digits, `_` and `-`"));
            }
            if self.advisors[..n].iter().any(|other| other.role == *role) {
                return Some(("committee.advisors.role", format!("`{role}` twice"), "one of a kind"));
            }
            if advisor.persona.trim().is_empty() {
                return Some(("committee.advisors.persona", "empty".into(), "a text"));
            }
            if !(1..=50).contains(&advisor.max_iterations) {
                return Some(("committee.advisors.max_iterations", advisor.max_iterations.to_string(), "between 1 and 50"));
            }
        }
        let mut at = self.memo.at.clone();
        at.sort();
        at.dedup();
        if at.is_empty() || at.len() != self.memo.at.len() {
            return Some(("committee.memo.at", format!("{:?}", self.memo.at), "at least one decision point, each once"));
        }
        if !(100..=20_000).contains(&self.memo.max_characters) {
            return Some(("committee.memo.max_characters", self.memo.max_characters.to_string(), "between 100 and 20000"));
        }
        None
    }
}
