//! Contract versions: v5 is code, v1-v4 are frozen data and flags (spec/versions.md). Recordings made under a version replay under it;
//! nothing is ever added to v1-v4.
//!
//! This module must never make a byte of an earlier version depend on what v5 becomes.

mod behaviour;
pub mod legacy;
mod pack;
mod sections;

pub use behaviour::{Behaviour, Behaviours, UnknownBehaviour};
pub use pack::{MAX_BYTES, Pack, PackError, PackTool};
pub use sections::Section;

use serde::{Deserialize, Serialize};

/// The tools of the contract, by name. Frozen: a pack may offer these and no others.
pub const TOOL_NAMES: [&str; 30] = [
    "get_kline",
    "get_stock_price",
    "get_stock_info",
    "get_market_overview",
    "get_narrative_market_overview",
    "get_narrative_sector_summary",
    "get_narrative_news",
    "screen_stocks",
    "screen_behavioral_cycle",
    "get_sector_summary",
    "get_fundamentals",
    "get_business_segments",
    "get_valuation",
    "get_announcements",
    "get_announcement_evidence",
    "get_news",
    "get_portfolio",
    "get_position",
    "place_order",
    "manage_conditional_order",
    "list_conditional_orders",
    "add_watchlist",
    "remove_watchlist",
    "get_watchlist",
    "remember",
    "search_memory",
    "get_memory",
    "execute_code",
    "complete_phase",
    "finish_day",
];

/// A contract version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// First version.
    V1,
    /// Decisions are recorded.
    V2,
    /// Decision cards.
    V3,
    /// Phase protocol.
    V4,
    /// Strict schemas, repairable failures; the default of new runs.
    #[default]
    V5,
}

/// A version that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("contract version `{0}` is not known; there are v1, v2, v3, v4 and v5")]
pub struct UnknownVersion(pub String);

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Self; 5] = [Self::V1, Self::V2, Self::V3, Self::V4, Self::V5];

    /// `v1` to `v5`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::V4 => "v4",
            Self::V5 => "v5",
        }
    }

    /// The flags of the version.
    pub fn behaviours(self) -> Behaviours {
        use Behaviour as B;
        const EARLY: [Behaviour; 4] = [B::EarlyPayloads, B::ReadsFirst, B::PermutationByDefault, B::PlainCode];
        let own: &[Behaviour] = match self {
            Self::V1 => &[B::FinishDayAtEveryPoint, B::HorizonLine],
            Self::V2 => &[B::DecisionRecordingSection, B::FinishDayAtEveryPoint, B::HorizonLine],
            Self::V3 => {
                &[B::DecisionRecordingSection, B::DecisionCardSection, B::OptInTools, B::FiveStepMorning, B::OrderErrorCodes]
            }
            Self::V4 => &[
                B::DecisionRecordingSection,
                B::DecisionCardSection,
                B::DecisionCardEntrySetup,
                B::OptInTools,
                B::CompletePhaseTool,
                B::FiveStepMorning,
                B::FiveStepMorningWithoutProtocol,
                B::OrderErrorCodes,
            ],
            Self::V5 => &[
                B::DecisionRecordingSection,
                B::DecisionCardSection,
                B::DecisionCardEntrySetup,
                B::RepairSection,
                B::OptInTools,
                B::CompletePhaseTool,
                B::FiveStepMorning,
                B::FiveStepMorningWithoutProtocol,
                B::StrictArguments,
                B::SuccessField,
                B::OrderErrorCodes,
                B::FailureEnvelope,
                B::ValidJsonBudget,
            ],
        };
        let early: &[Behaviour] = if self == Self::V5 { &[] } else { &EARLY };
        Behaviours::of(&[own, early].concat())
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|version| version.as_str() == text).ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}
