//! The closed table of failure codes. The wire name is the contract: never rename, only add.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who can do something about a failure. Reports count the three apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorFamily {
    /// The call is wrong; the model can repair it.
    Arguments,
    /// The call is well formed; the market, the account or a policy said no.
    Refused,
    /// Dataset, sandbox or host cannot serve the call.
    Environment,
}

/// The coarse failure classes of seed 002 (spec/seeds.md C6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(inline)]
pub enum FailureClass {
    /// Schema or units wrong; the caller corrects the call.
    InvalidInput,
    /// The environment, a policy or the market does not permit this operation.
    Forbidden,
    /// Not offered here, or not covered.
    UnsupportedCapability,
    /// Supported in general, but the data it needs is not there.
    InsufficientEvidence,
    /// A part of the environment is down.
    DependencyUnavailable,
    /// The caller speaks another schema revision of the tool than the one that is served. No [`ErrorCode`] has this class: doors that pin
    /// revisions answer it themselves.
    ToolRevisionConflict,
    /// Same key or same call, other content.
    IdempotencyConflict,
    /// A budget is used up.
    BudgetExhausted,
}

impl FailureClass {
    /// Every class, in the order of spec/seeds.md C6.
    pub const ALL: &'static [Self] = &[
        Self::InvalidInput,
        Self::Forbidden,
        Self::UnsupportedCapability,
        Self::InsufficientEvidence,
        Self::DependencyUnavailable,
        Self::ToolRevisionConflict,
        Self::IdempotencyConflict,
        Self::BudgetExhausted,
    ];

    /// HTTP status of a failure of this class that no [`ErrorCode`] stands behind (spec/seeds.md C6); a code has its own.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidInput | Self::UnsupportedCapability | Self::InsufficientEvidence => 422,
            Self::Forbidden => 403,
            Self::DependencyUnavailable => 503,
            Self::ToolRevisionConflict | Self::IdempotencyConflict => 409,
            Self::BudgetExhausted => 429,
        }
    }

    /// Whether the same call may succeed later or after a correction, where no [`ErrorCode`] says it.
    pub const fn retryable(self) -> bool {
        match self {
            Self::InvalidInput | Self::DependencyUnavailable | Self::ToolRevisionConflict | Self::BudgetExhausted => true,
            Self::Forbidden | Self::UnsupportedCapability | Self::InsufficientEvidence | Self::IdempotencyConflict => false,
        }
    }

    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "INVALID_INPUT",
            Self::Forbidden => "FORBIDDEN",
            Self::UnsupportedCapability => "UNSUPPORTED_CAPABILITY",
            Self::InsufficientEvidence => "INSUFFICIENT_EVIDENCE",
            Self::DependencyUnavailable => "DEPENDENCY_UNAVAILABLE",
            Self::ToolRevisionConflict => "TOOL_REVISION_CONFLICT",
            Self::IdempotencyConflict => "IDEMPOTENCY_CONFLICT",
            Self::BudgetExhausted => "BUDGET_EXHAUSTED",
        }
    }
}

macro_rules! codes {
    ($($variant:ident $wire:literal $family:ident $retry:literal $http:literal $legacy:literal $doc:literal;)*) => {
        /// Stable failure codes of the contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $(#[doc = $doc] #[serde(rename = $wire)] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in catalog order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Wire name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)* }
            }
            /// Code family.
            pub const fn family(self) -> ErrorFamily {
                match self { $(Self::$variant => ErrorFamily::$family,)* }
            }
            /// Whether a repaired call may succeed inside the same phase, unless the failure says otherwise.
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => $retry,)* }
            }
            /// HTTP status class of the failure (seed 002).
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$variant => $http,)* }
            }
            /// The coarser code the Python implementation gives for the same situation; empty when it has none.
            /// Readers of old reports find it in failures as `code_family_legacy`.
            pub const fn legacy(self) -> &'static str {
                match self { $(Self::$variant => $legacy,)* }
            }
            /// What the code means, one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

codes! {
    // Arguments: the model can repair the call.
    UnknownTool "unknown_tool" Arguments true 404 "" "No tool of this name is in the catalog.";
    ToolUnavailableInPhase "tool_unavailable_in_phase" Arguments true 422 "" "The tool exists but is not offered at this decision point or on this card.";
    InvalidToolArgumentsJson "invalid_tool_arguments_json" Arguments true 400 "" "The arguments are not one complete JSON object.";
    InvalidToolArguments "invalid_tool_arguments" Arguments true 422 "" "The arguments do not fit the tool's input schema.";
    AmbiguousMaskedStockCode "ambiguous_masked_stock_code" Arguments true 422 "" "A bare suffix or partial alias was sent where a complete visible code is needed.";
    UnknownSecurity "unknown_security" Arguments true 422 "security_data_unavailable" "The code is not a visible code of this run.";
    InvalidFilterRange "invalid_filter_range" Arguments true 422 "" "A lower bound is above its upper bound.";
    SectorNotFound "sector_not_found" Arguments true 422 "" "No sector of this name is in this run.";
    InvalidCursor "invalid_cursor" Arguments true 422 "" "The paging cursor is not of this query and clock.";
    InvalidLot "invalid_lot" Arguments true 422 "tool_rejected" "The quantity is not a multiple the board accepts.";
    PlanLevelInvalid "plan_level_invalid" Arguments true 422 "tool_rejected" "A level of the structured plan contradicts the price or another level.";
    StructuredPlanMissingFields "structured_plan_missing_fields" Arguments true 422 "" "An opening buy of this card needs plan fields that are missing or blank.";
    DecisionCardMissingFields "decision_card_missing_fields" Arguments true 422 "" "The decision card lacks fields or has blank ones.";
    DecisionCardUnseenEvidence "decision_card_unseen_evidence" Arguments true 422 "" "The decision card cites an evidence id that no tool returned in this run.";
    DecisionCardMissingToolEvidence "decision_card_missing_tool_evidence" Arguments true 422 "" "The decision card needs tool results on this security that were not fetched.";
    DecisionCardUngroundedBusinessFit "decision_card_ungrounded_business_fit" Arguments true 422 "" "The stated business fit is not grounded in a named segment.";
    DecisionCardMissingAnnouncementEvidence "decision_card_missing_announcement_evidence" Arguments true 422 "" "The stated business fit needs announcement evidence.";
    MemoryNotFound "memory_not_found" Arguments true 404 "" "No memory record of this id is visible.";
    MemoryRequiresSupersedes "memory_requires_supersedes" Arguments true 409 "" "An active record of the same type and tag exists and must be superseded.";
    ActiveMemoryLimitReached "active_memory_limit_reached" Arguments true 409 "" "The card's limit of active memory records is reached.";
    ConditionalOrderStateConflict "conditional_order_state_conflict" Arguments true 409 "" "The conditional order is unknown, not active, or would not change.";
    CompletionBlocked "completion_blocked" Arguments true 409 "tool_rejected" "A completion call came while retryable failures are open.";
    SandboxDisallowedCode "sandbox_disallowed_code" Arguments true 422 "" "The code asks for something the sandbox never allows.";
    SandboxExecutionFailed "sandbox_execution_failed" Arguments true 422 "" "The code raised an exception.";
    FinishDayNotCalled "finish_day_not_called" Arguments true 422 "" "The day ended without a finish_day call.";
    DuplicateCall "duplicate_call" Arguments false 409 "" "An equal account-changing call was already made in this assistant message.";
    IdempotencyConflict "idempotency_conflict" Arguments false 409 "" "The idempotency key was used before with other arguments.";

    // Refused: the market, the account or a policy said no.
    OrderUnavailableInPhase "order_unavailable_in_phase" Refused false 422 "" "Orders are not accepted at this decision point.";
    Suspended "suspended" Refused false 422 "market_execution_blocked" "The security has no visible bar today.";
    NoBarInWindow "no_bar_in_window" Refused false 422 "market_execution_blocked" "The security has no bar inside the current trading interval.";
    NoLiquidity "no_liquidity" Refused false 422 "market_execution_blocked" "The fill bar has no volume left.";
    LimitUpLocked "limit_up_locked" Refused false 422 "market_execution_blocked" "The price is at or above the upper limit; buys are refused.";
    LimitDownLocked "limit_down_locked" Refused false 422 "market_execution_blocked" "The price is at or below the lower limit; sells are refused.";
    PriceReferenceMissing "price_reference_missing" Refused false 422 "market_execution_blocked" "The band reference (previous close) is missing, so no order can be priced.";
    AlreadyTradedToday "already_traded_today" Refused false 422 "order_temporarily_ineligible" "The security has already been traded today.";
    TPlusOneLocked "t_plus_one_locked" Refused false 422 "order_temporarily_ineligible" "The shares were bought today and can be sold from the next trading day.";
    InsufficientSellable "insufficient_sellable" Refused true 422 "tool_rejected" "The sell is larger than the sellable quantity.";
    InsufficientCash "insufficient_cash" Refused true 422 "tool_rejected" "The cost including fees is above the usable cash.";
    PositionNotHeld "position_not_held" Refused false 422 "" "The security is not held.";
    PositionCountLimit "position_count_limit" Refused true 422 "portfolio_risk_limit" "The card's number of positions is reached.";
    PositionWeightLimit "position_weight_limit" Refused true 422 "tool_rejected" "The position would exceed the card's share of total assets.";
    StForbidden "st_forbidden" Refused false 422 "security_ineligible" "The card forbids opening positions in ST securities.";
    MinimumHolding "minimum_holding" Refused false 422 "tool_rejected" "The minimum holding time of the plan has not passed.";
    DecisionCardSemanticRejection "decision_card_semantic_rejection" Refused false 422 "" "The decision card's own statements do not support the trade.";
    DecisionCardCorrectionChangedSemantics "decision_card_correction_changed_semantics" Refused false 422 "" "A correction changed locked fields of the decision card.";
    DecisionCardCorrectionRetryLimit "decision_card_correction_retry_limit" Refused false 422 "" "The corrections allowed for decision cards are used up.";
    ConditionalOrderCannotOpenPosition "conditional_order_cannot_open_position" Refused false 422 "" "This card may not open positions by conditional order.";
    OrderGateHalted "order_gate_halted" Refused false 422 "" "The order gate is halted: its kill switch is set or unreadable, or a decision could not be recorded.";
    OrderGateDenied "order_gate_denied" Refused false 422 "" "The owner's mandate is not for this order.";
    OrderGateReauthorization "order_gate_reauthorization" Refused false 422 "" "The order breaks a cap of the owner's mandate, or the consent has ended; only the owner can change that.";
    OrderOutcomeUnknown "order_outcome_unknown" Refused false 422 "" "An order was sent and what became of it is not known; nothing is sent that could double it.";
    WatchlistEntryNotFound "watchlist_entry_not_found" Refused false 404 "" "The security is not on the watchlist.";
    DailyToolBudgetExhausted "daily_tool_budget_exhausted" Refused false 429 "" "The tool's daily number of different queries is used up.";
    DailyMemoryLimitReached "daily_memory_limit_reached" Refused false 429 "" "The card's daily number of memory records is reached.";
    SandboxDailyLimitReached "sandbox_daily_limit_reached" Refused false 429 "" "The card's daily number of sandbox calls is used up.";
    PhaseCompletionProtocolExhausted "phase_completion_protocol_exhausted" Refused false 422 "" "The phase was not completed within its extension turns; the day ends.";

    // Environment: dataset, sandbox or host.
    DataUnavailable "data_unavailable" Environment false 422 "" "The dataset has no such table or no such rows.";
    SecurityDataUnavailable "security_data_unavailable" Environment false 422 "" "The security has no visible data of this kind.";
    UnsupportedAdjustment "unsupported_adjustment" Environment false 422 "" "The dataset's prices cannot be given in this adjustment.";
    InsufficientEvidence "insufficient_evidence" Environment false 422 "" "There are fewer usable observations than the computation needs.";
    EnvironmentUnavailable "environment_unavailable" Environment false 503 "" "A part of the environment is not available in this run.";
    SandboxTimeout "sandbox_timeout" Environment true 422 "" "The code did not end before its deadline.";
    SandboxMemoryExceeded "sandbox_memory_exceeded" Environment true 422 "" "The code asked for more memory than its limit.";
    SandboxWorkspaceExceeded "sandbox_workspace_exceeded" Environment true 422 "" "The files of the code grew past the workspace's quota; what the call wrote was discarded.";
    ToolTimeout "tool_timeout" Environment true 503 "" "The tool did not answer in time.";
    ExternalToolFailed "external_tool_failed" Environment false 502 "" "A plug-in tool says that it failed, or it died or was interrupted during the call.";
    ExternalToolInvalidResult "external_tool_invalid_result" Environment false 502 "" "A plug-in tool answered with something that is no result of it.";
    Internal "internal" Environment false 500 "tool_execution_failed" "A defect of the environment, recorded for its authors; not an error of the call.";
}

impl ErrorCode {
    /// The class seed 002 puts the failure in. [`FailureClass::ToolRevisionConflict`] has no code here: doors that pin revisions
    /// answer it themselves. A refusal by market or account is a refusal of the operation, hence forbidden.
    pub const fn class(self) -> FailureClass {
        match self {
            Self::UnknownTool | Self::ToolUnavailableInPhase | Self::UnsupportedAdjustment => FailureClass::UnsupportedCapability,
            Self::DuplicateCall | Self::IdempotencyConflict => FailureClass::IdempotencyConflict,
            Self::DailyToolBudgetExhausted | Self::DailyMemoryLimitReached | Self::SandboxDailyLimitReached => {
                FailureClass::BudgetExhausted
            }
            Self::DataUnavailable | Self::SecurityDataUnavailable | Self::InsufficientEvidence => {
                FailureClass::InsufficientEvidence
            }
            _ => match self.family() {
                ErrorFamily::Arguments => FailureClass::InvalidInput,
                ErrorFamily::Refused => FailureClass::Forbidden,
                ErrorFamily::Environment => FailureClass::DependencyUnavailable,
            },
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a known code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an error code of this contract")]
pub struct UnknownCode(pub String);

impl std::str::FromStr for ErrorCode {
    type Err = UnknownCode;
    fn from_str(s: &str) -> Result<Self, UnknownCode> {
        Self::ALL.iter().copied().find(|c| c.as_str() == s).ok_or_else(|| UnknownCode(s.to_owned()))
    }
}
