//! Cards: who an agent is, what it may do, and the limits of its account (engine E9).
//!
//! A card is data that a person writes. Everything wrong with one is found when it is read, never during a day.

mod committee;
mod foreign;
mod read;

pub use committee::{Advisor, Committee, Meeting, Memo};
pub use foreign::{Became, ConvertError, Converted, Refused, Told};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::document::sentences;
use traderharness_contract::{Issue, Policy};
use traderharness_market::{Cash, FeeSchedule};
use traderharness_tools_exec::CardLimits;

/// Tools every card has, whatever it lists (engine E9).
pub const PROTECTED: [&str; 4] = ["get_portfolio", "get_position", "place_order", "finish_day"];

/// Fee schedule of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CardFees {
    /// Stamp duty and transfer fee by date.
    #[default]
    Dated,
    /// The Python implementation's flat schedule, for comparisons.
    Reference,
}

/// Whose files the workspace of `execute_code` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CardWorkspace {
    /// The run's own: every run starts without files.
    #[default]
    Run,
    /// Those of a folder that runs share: a run starts with what the last finished run left there, which may know a later market.
    Shared,
}

/// An agent's card. JSON and YAML have the same fields; unknown ones are errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Card {
    /// Stable id: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub id: String,
    /// Display name.
    pub name: String,
    /// One or two sentences for people.
    pub description: String,
    /// Text that goes into the system prompt.
    pub persona: String,
    /// Free tags.
    pub strategy_tags: Vec<String>,
    /// Free text, e.g. `balanced`.
    pub risk_profile: String,
    /// Free text, e.g. `5-20 sessions`.
    pub holding_period: String,
    /// Tool names offered beside the protected ones; empty = all that are not opt-in.
    pub allowed_tools: Vec<String>,
    /// Model name as the provider spells it.
    pub model: String,
    /// Cash at the start, CNY, at most two decimals.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1e12))]
    pub initial_cash: f64,
    /// Positions held at most.
    #[schemars(range(min = 1))]
    pub max_positions: u32,
    /// Share of total assets one position may have after a buy, percent, at most two decimals.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 100))]
    pub max_position_pct: f64,
    /// Model turns before the open.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_pre_iterations: u32,
    /// Model turns per window decision point.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_window_iterations: u32,
    /// Opening buys need a structured plan (engine E11.1).
    pub require_structured_plan: bool,
    /// Opening buys need a decision card (engine E11.2).
    pub require_decision_card: bool,
    /// The clock moves only on `complete_phase` / `finish_day` (engine E1.2).
    pub require_phase_completion: bool,
    /// Trading days a planned position is held at least; 0 = off.
    pub minimum_holding_days: u32,
    /// Trading days between research days; 0 = every day.
    pub research_interval_days: u32,
    /// `execute_code` only before the open.
    pub sandbox_pre_market_only: bool,
    /// `execute_code` calls per day; 0 = no limit.
    pub sandbox_max_calls_per_day: u32,
    /// Seconds that code of `execute_code` may run at most, 1 to 60.
    #[schemars(range(min = 1, max = 60))]
    pub sandbox_timeout_seconds: u32,
    /// Memory that code of `execute_code` may use, megabytes, 64 to 16384.
    #[schemars(range(min = 64, max = 16_384))]
    pub sandbox_memory_mb: u32,
    /// Whose files the workspace of `execute_code` holds.
    pub workspace: CardWorkspace,
    /// Trading days a watchlist entry lives; 0 = no limit.
    pub watchlist_ttl_days: u32,
    /// Active memory records at most; 0 = no limit.
    pub max_active_memories: u32,
    /// New memory records per day; 0 = no limit.
    pub max_daily_memories: u32,
    /// Estimated tokens of conversation that a request shows before older messages are replaced by notes of the model; 0 = no limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub context_tokens: u32,
    /// Fee schedule.
    pub fees: CardFees,
    /// Share of a bar's volume that may fill, percent, at most two decimals; 0 = off.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub participation_pct: f64,
    /// One fill per security and day.
    pub one_fill_per_day: bool,
    /// Opening buys of ST securities are refused.
    pub forbid_st: bool,
    /// Advisors who read for the agent; left out, it decides alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committee: Option<Committee>,
}

impl Default for Card {
    fn default() -> Self {
        Self {
            id: "default".into(),
            name: "Default".into(),
            description: String::new(),
            persona: String::new(),
            strategy_tags: Vec::new(),
            risk_profile: String::new(),
            holding_period: String::new(),
            allowed_tools: Vec::new(),
            model: "scripted".into(),
            initial_cash: 1_000_000.0,
            max_positions: 4,
            max_position_pct: 25.0,
            max_pre_iterations: 10,
            max_window_iterations: 3,
            require_structured_plan: false,
            require_decision_card: false,
            require_phase_completion: false,
            minimum_holding_days: 0,
            research_interval_days: 0,
            sandbox_pre_market_only: false,
            sandbox_max_calls_per_day: 0,
            sandbox_timeout_seconds: 60,
            sandbox_memory_mb: 1_024,
            workspace: CardWorkspace::Run,
            watchlist_ttl_days: 0,
            max_active_memories: 0,
            max_daily_memories: 0,
            context_tokens: 0,
            fees: CardFees::Dated,
            participation_pct: 0.0,
            one_fill_per_day: true,
            forbid_st: true,
            committee: None,
        }
    }
}

/// A limit that is off stands in no recording, as in those made before there was one.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(limit: &u32) -> bool {
    *limit == 0
}

/// A card that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// The text is not a card.
    #[error("the card cannot be read: {fault}")]
    Syntax {
        /// What and where.
        fault: String,
    },
    /// Fields that the schema refuses.
    #[error("the card is faulty: {}", sentences(.issues))]
    Fields {
        /// Every fault, with its path.
        issues: Vec<Issue>,
    },
    /// A field is out of range.
    #[error("card field `{field}` is {found}; it must be {accepted}")]
    Field {
        /// Field.
        field: &'static str,
        /// What was given.
        found: String,
        /// What is accepted.
        accepted: &'static str,
    },
    /// Tools that do not exist.
    #[error("card `allowed_tools` names unknown tools: {}", .names.join(", "))]
    UnknownTools {
        /// Sorted names.
        names: Vec<String>,
    },
    /// An advisor's tools that do not exist.
    #[error("advisor `{role}` of the card names unknown tools: {}", .names.join(", "))]
    UnknownAdvisorTools {
        /// Advisor.
        role: String,
        /// Sorted names.
        names: Vec<String>,
    },
    /// An advisor's tools that change something.
    #[error("advisor `{role}` of the card names tools that change something, and advisors only read: {}", .names.join(", "))]
    ActingAdvisor {
        /// Advisor.
        role: String,
        /// Sorted names.
        names: Vec<String>,
    },
    /// The schema of cards, a defect of this program.
    #[error("a card cannot be checked: {fault}")]
    Defect {
        /// What is wrong.
        fault: String,
    },
}

impl Card {
    /// The card used when none is given: every default tool, phase protocol on.
    pub fn builtin() -> Self {
        Self {
            id: "builtin".into(),
            name: "Built-in".into(),
            description: "All default tools, the phase protocol, no plan or decision card.".into(),
            require_phase_completion: true,
            ..Self::default()
        }
    }

    /// Checks every field's range. Tool names are checked by [`crate::Toolbox::new`], which knows them.
    ///
    /// # Errors
    /// [`CardError::Field`] naming the first faulty field.
    pub fn check(&self) -> Result<(), CardError> {
        let field =
            |field, found: &dyn std::fmt::Display, accepted| Err(CardError::Field { field, found: found.to_string(), accepted });
        if !is_id(&self.id) {
            return field("id", &format!("`{}`", self.id), "letters, digits, `_` and `-`");
        }
        if self.cash().is_none() {
            return field("initial_cash", &self.initial_cash, "an amount above 0 and below 1e12 CNY with at most two decimals");
        }
        // Limits are kept in basis points; a finer share would be rounded to another one than the card says.
        let whole = |pct: f64| (pct * 100.0 - (pct * 100.0).round()).abs() < 1e-6;
        if !(self.max_position_pct > 0.0 && self.max_position_pct <= 100.0 && whole(self.max_position_pct)) {
            return field("max_position_pct", &self.max_position_pct, "above 0 and at most 100, with at most two decimals");
        }
        if !(self.participation_pct >= 0.0 && self.participation_pct <= 100.0 && whole(self.participation_pct)) {
            return field("participation_pct", &self.participation_pct, "between 0 and 100, with at most two decimals");
        }
        for (name, value) in
            [("max_pre_iterations", self.max_pre_iterations), ("max_window_iterations", self.max_window_iterations)]
        {
            if value == 0 || value > 1_000 {
                return field(name, &value, "between 1 and 1000");
            }
        }
        // A field that nothing obeys yet is refused, so that no card believes in it.
        if self.research_interval_days != 0 {
            return field("research_interval_days", &self.research_interval_days, "0: this version has no research days");
        }
        if !(1..=60).contains(&self.sandbox_timeout_seconds) {
            return field("sandbox_timeout_seconds", &self.sandbox_timeout_seconds, "between 1 and 60");
        }
        if !(64..=16_384).contains(&self.sandbox_memory_mb) {
            return field("sandbox_memory_mb", &self.sandbox_memory_mb, "between 64 and 16384");
        }
        if self.max_positions == 0 {
            return field("max_positions", &self.max_positions, "at least 1");
        }
        if let Some((name, found, accepted)) = self.committee.as_ref().and_then(Committee::fault) {
            return field(name, &found, accepted);
        }
        Ok(())
    }

    /// Cash at the start; `None` when the field is not a usable amount.
    pub fn cash(&self) -> Option<Cash> {
        let fen = traderharness_market::money::decimal(self.initial_cash, 2, traderharness_market::Rounding::HalfEven)?;
        let exact = (self.initial_cash * 100.0 - fen as f64).abs() < 1e-3;
        (exact && fen > 0 && self.initial_cash < 1e12).then_some(Cash(fen))
    }

    /// Contract switches of the card.
    pub fn policy(&self, masked_codes: bool) -> Policy {
        Policy {
            require_structured_plan: self.require_structured_plan,
            require_decision_card: self.require_decision_card,
            masked_codes,
        }
    }

    /// Order limits of the card.
    pub fn limits(&self) -> CardLimits {
        let basis_points = |pct: f64| (pct * 100.0).round() as u32;
        CardLimits {
            max_positions: self.max_positions,
            max_position_basis_points: basis_points(self.max_position_pct),
            fees: match self.fees {
                CardFees::Dated => FeeSchedule::Dated,
                CardFees::Reference => FeeSchedule::Reference,
            },
            participation_basis_points: (self.participation_pct > 0.0).then(|| basis_points(self.participation_pct)),
            once_per_day: self.one_fill_per_day,
            forbid_st: self.forbid_st,
            require_structured_plan: self.require_structured_plan,
            require_decision_card: self.require_decision_card,
            minimum_holding_days: self.minimum_holding_days,
            watchlist_ttl_days: self.watchlist_ttl_days,
            max_active_memories: self.max_active_memories,
            max_daily_memories: self.max_daily_memories,
            sandbox_pre_market_only: self.sandbox_pre_market_only,
            sandbox_max_calls_per_day: self.sandbox_max_calls_per_day,
            sandbox_timeout_seconds: self.sandbox_timeout_seconds,
        }
    }
}

/// Letters, digits, `_` and `-`, at least one.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
