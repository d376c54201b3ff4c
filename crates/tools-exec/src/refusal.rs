//! [`Refusal`]: why an order was not filled, one variant per failure code, each holding what would be accepted.
//!
//! Messages and corrections never hold a security code: failures are not masked by field kind (engine E8.5).

use crate::decision_card::{CardRefusal, DecisionCard, LOCKED_FIELDS, PLAN_FIELDS};
use crate::gate::GateRefusal;
use crate::ledger::LedgerError;
use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_market::rules::BandFault;
use traderharness_market::{Cash, Minute, Price, Shares};

/// Why an order was refused. Nothing of the account has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what each is; fields are the accepted values")]
#[non_exhaustive]
pub enum Refusal {
    #[error("Orders are not accepted before the open.")]
    OrderUnavailableInPhase,
    #[error("No security of this code is in this run.")]
    UnknownSecurity,
    #[error("A buy of {asked} shares is not accepted: a buy here is at least {min} shares in steps of {step}, at most {max}.")]
    BuyLot { asked: i64, min: i64, step: i64, max: i64 },
    #[error("A sell of {asked} shares is above the largest order of {max} shares, or below zero.")]
    SellSize { asked: i64, max: i64 },
    #[error("A sell of {asked} shares is not accepted: {rule}. {sellable} shares are sellable.")]
    SellLot { asked: i64, sellable: i64, rule: &'static str, accepted: Vec<i64> },
    #[error("The security has no bar today: it is suspended, or has not traded yet.")]
    Suspended,
    #[error("The security has no usable bar that ended in ({after}, {until}], so there is no fill price at this decision point.")]
    NoBarInWindow { after: Minute, until: Minute },
    #[error("The bar that ended at {bar_end} has {left} shares left for this account (bar volume {volume}).")]
    NoLiquidity { bar_end: Minute, volume: Shares, left: Shares, max_quantity: Shares },
    #[error("No order can be priced: {fault}.")]
    PriceReferenceMissing { fault: BandFault },
    #[error("The price {price} is at or above the upper limit {up}; buys are refused there.")]
    LimitUpLocked { price: Price, up: Price, down: Price },
    #[error("The price {price} is at or below the lower limit {down}; sells are refused there.")]
    LimitDownLocked { price: Price, up: Price, down: Price },
    #[error("The security has already been traded today; the next order is accepted on the next trading day.")]
    AlreadyTradedToday { sellable: Shares },
    #[error("The security is not held.")]
    PositionNotHeld,
    #[error("All {total} shares were bought today; they can be sold from the next trading day.")]
    TPlusOneLocked { total: Shares },
    #[error("A sell of {asked} shares is above the sellable {sellable} (held {total}, bought today {frozen}).")]
    InsufficientSellable { asked: Shares, sellable: Shares, total: Shares, frozen: Shares },
    #[error(
        "The order needs {needs} CNY with fees and the usable cash is {has} CNY; at most {max_quantity} shares are accepted."
    )]
    InsufficientCash { needs: Cash, has: Cash, max_quantity: Shares },
    #[error("This card may not open positions in ST securities.")]
    StForbidden,
    #[error("{held} positions are held and this card allows {max}; a new position needs a free place.")]
    PositionCountLimit { held: usize, max: u32 },
    #[error(
        "The position would be {} % of total assets and this card allows {} %; at most {max_quantity} shares are accepted.",
        Percent(*.weight), Percent(*.cap)
    )]
    PositionWeightLimit { weight: u64, cap: u64, max_quantity: Shares },
    #[error("Opening a position on this card needs plan fields that are missing or blank: {}.", .fields.join(", "))]
    PlanMissing { fields: Vec<&'static str> },
    #[error("`{field}` is not a usable level; accepted: {accepted}. The fill price is {price}.")]
    PlanLevelInvalid { field: &'static str, accepted: String, price: Price },
    #[error("The fill price {price} is below the confirmation level {level}: by its own terms the plan is not confirmed.")]
    NotConfirmed { level: Price, price: Price },
    #[error(
        "The plan holds for at least {minimum} sessions and {held} have passed; before that, a sell needs a price at or below the \
         original stop {stop} (the price is {price})."
    )]
    MinimumHolding { minimum: u32, held: u32, stop: Price, price: Price },
    #[error("Below the original stop before the minimum holding time only all {sellable} sellable shares may be sold.")]
    MinimumHoldingPartial { sellable: Shares },
    #[error("{0}")]
    Card(CardRefusal),
    #[error("This card may open positions with place_order only, so the condition cannot.")]
    ConditionCannotOpen,
    #[error("The idempotency key was used before with another order; nothing was traded now.")]
    IdempotencyConflict,
    #[error("{0}")]
    Gate(GateRefusal),
    #[error("The clock is behind the account's newest day.")]
    ClockBehindAccount,
    #[error("The ledger refused the fill: {0}.")]
    Ledger(#[from] LedgerError),
}

/// Kind of a refusal after which the harness offers a controlled correction turn (engine E10.8).
const CORRECTION: &str = "decision_card_correction";

/// What a correction may change, and the fields it may not; `open` ones are exempt.
fn correction_scope(open: &[&str]) -> [(&'static str, Value); 2] {
    let locked: Vec<_> = LOCKED_FIELDS.into_iter().filter(|field| !open.contains(field)).collect();
    [("scope", json!("format_and_evidence_only")), ("semantic_fields_must_not_change", json!(locked))]
}

/// Basis points as percent with two decimals.
struct Percent(u64);

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl Refusal {
    /// Failure code.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::OrderUnavailableInPhase => ErrorCode::OrderUnavailableInPhase,
            Self::UnknownSecurity => ErrorCode::UnknownSecurity,
            Self::BuyLot { .. } | Self::SellSize { .. } | Self::SellLot { .. } => ErrorCode::InvalidLot,
            Self::Suspended => ErrorCode::Suspended,
            Self::NoBarInWindow { .. } => ErrorCode::NoBarInWindow,
            Self::NoLiquidity { .. } => ErrorCode::NoLiquidity,
            Self::PriceReferenceMissing { .. } => ErrorCode::PriceReferenceMissing,
            Self::LimitUpLocked { .. } => ErrorCode::LimitUpLocked,
            Self::LimitDownLocked { .. } => ErrorCode::LimitDownLocked,
            Self::AlreadyTradedToday { .. } => ErrorCode::AlreadyTradedToday,
            Self::PositionNotHeld => ErrorCode::PositionNotHeld,
            Self::TPlusOneLocked { .. } => ErrorCode::TPlusOneLocked,
            Self::InsufficientSellable { .. } => ErrorCode::InsufficientSellable,
            Self::InsufficientCash { .. } => ErrorCode::InsufficientCash,
            Self::StForbidden => ErrorCode::StForbidden,
            Self::PositionCountLimit { .. } => ErrorCode::PositionCountLimit,
            Self::PositionWeightLimit { .. } => ErrorCode::PositionWeightLimit,
            Self::PlanMissing { .. } => ErrorCode::StructuredPlanMissingFields,
            Self::PlanLevelInvalid { .. } => ErrorCode::PlanLevelInvalid,
            Self::NotConfirmed { .. } => ErrorCode::DecisionCardSemanticRejection,
            Self::MinimumHolding { .. } | Self::MinimumHoldingPartial { .. } => ErrorCode::MinimumHolding,
            Self::Card(card) => match card {
                CardRefusal::MissingFields { .. } => ErrorCode::DecisionCardMissingFields,
                CardRefusal::Semantic { .. } => ErrorCode::DecisionCardSemanticRejection,
                CardRefusal::UnseenEvidence { .. } => ErrorCode::DecisionCardUnseenEvidence,
                CardRefusal::MissingTools { .. } => ErrorCode::DecisionCardMissingToolEvidence,
                CardRefusal::Ungrounded => ErrorCode::DecisionCardUngroundedBusinessFit,
                CardRefusal::MissingAnnouncement => ErrorCode::DecisionCardMissingAnnouncementEvidence,
            },
            Self::ConditionCannotOpen => ErrorCode::ConditionalOrderCannotOpenPosition,
            Self::IdempotencyConflict => ErrorCode::IdempotencyConflict,
            Self::Gate(gate) => gate.code(),
            Self::ClockBehindAccount | Self::Ledger(_) => ErrorCode::Internal,
        }
    }

    /// Largest quantity that would be accepted now, where the refusal is about size; 0 when none would.
    pub const fn max_quantity(&self) -> Option<Shares> {
        match self {
            Self::NoLiquidity { max_quantity, .. }
            | Self::InsufficientCash { max_quantity, .. }
            | Self::PositionWeightLimit { max_quantity, .. } => Some(*max_quantity),
            Self::InsufficientSellable { sellable, .. } | Self::MinimumHoldingPartial { sellable } => Some(*sellable),
            _ => None,
        }
    }

    fn instruction(&self) -> String {
        match self {
            Self::OrderUnavailableInPhase => {
                "Prepare now and place the order in open_1, open_2, close_1 or close_2. A conditional order may be created now."
            }
            Self::UnknownSecurity => "Use a code exactly as another tool of this run showed it.",
            Self::BuyLot { .. } => "Send the buy again with an accepted quantity.",
            Self::SellSize { .. } => "Send a quantity of at least 1 and not above the maximum, or 0 for all sellable shares.",
            Self::SellLot { .. } => "Send the sell again with an accepted quantity, or 0 for all sellable shares.",
            Self::Suspended => "Leave this security alone today; choose another one or go on.",
            Self::NoBarInWindow { .. } => "Try again at a later decision point, or choose another security.",
            Self::NoLiquidity { left, .. } if left.0 == 0 => "Try again at the next decision point, when a new bar is visible.",
            Self::NoLiquidity { .. } => "Send the order again with at most `max_quantity` shares.",
            Self::PriceReferenceMissing { .. } => "The band of this security cannot be known today; choose another security.",
            Self::LimitUpLocked { .. } => {
                "Do not chase it here; try a later decision point or another security. Sells are accepted."
            }
            Self::LimitDownLocked { .. } => "Try a later decision point. Buys are accepted.",
            Self::AlreadyTradedToday { .. } => {
                "Go on with another security; this one can be traded again on the next trading day."
            }
            Self::PositionNotHeld => "Call get_portfolio to see what is held.",
            Self::TPlusOneLocked { .. } => "Sell on the next trading day; a conditional order can do it.",
            Self::InsufficientSellable { .. } => "Send the sell again with at most `sellable`, or 0 for all of it.",
            Self::InsufficientCash { max_quantity, .. } | Self::PositionWeightLimit { max_quantity, .. }
                if max_quantity.0 == 0 =>
            {
                "No quantity of this security is accepted now; free cash or assets first, or choose another one."
            }
            Self::InsufficientCash { .. } | Self::PositionWeightLimit { .. } => {
                "Send the buy again with at most `max_quantity` shares."
            }
            Self::StForbidden => "Choose a security that is not ST. ST shares already held can be added to or sold.",
            Self::PositionCountLimit { .. } => "Close a position first (get_portfolio lists them), or add to one that is held.",
            Self::PlanMissing { .. } => {
                "Send the same order again with the missing fields at its top level, beside `decision_card`."
            }
            Self::PlanLevelInvalid { .. } => "Send the same order again with an accepted level.",
            Self::NotConfirmed { .. } => "Do not lower the level to fit the price; wait until the price confirms, or leave it.",
            Self::MinimumHolding { .. } => "Keep the position; the protective stop stays in force.",
            Self::MinimumHoldingPartial { .. } => "Send the sell again with quantity 0.",
            Self::Card(card) => match card {
                CardRefusal::MissingFields { .. } => "Fill the named fields and send the same order again; change nothing else.",
                CardRefusal::Semantic { .. } => {
                    "Do not rewrite the card to pass; leave this security, or trade when its facts differ."
                }
                CardRefusal::UnseenEvidence { .. } => {
                    "Cite ids exactly as a text tool returned them in this run, or fetch the text first."
                }
                CardRefusal::MissingTools { .. } => "Call the named tools for this security, then send the same order again.",
                CardRefusal::Ungrounded => {
                    "State the basis you have (`industry_proxy` or `announcement`), or name a segment that is there."
                }
                CardRefusal::MissingAnnouncement => {
                    "Call get_announcement_evidence for this security, then send the same order again."
                }
            },
            Self::ConditionCannotOpen => "Open the position with place_order and its plan.",
            Self::IdempotencyConflict => "Check get_portfolio for what was traded; use a new key for a new order.",
            Self::Gate(gate) => return gate.instruction(),
            Self::ClockBehindAccount | Self::Ledger(_) => "This is a defect of the environment; go on without this order.",
        }
        .to_owned()
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let yuan = |p: &Price| json!(p.to_f64());
        match self {
            Self::BuyLot { asked, min, step, max } => {
                let mut facts = vec![("min_quantity", json!(min)), ("step", json!(step)), ("max_quantity", json!(max))];
                let below = asked.saturating_sub(*min).div_euclid(*step).saturating_mul(*step).saturating_add(*min).min(*max);
                if below >= *min {
                    facts.push(("nearest_quantity_below", json!(below)));
                }
                facts
            }
            Self::SellSize { max, .. } => vec![("max_quantity", json!(max))],
            Self::SellLot { sellable, accepted, .. } => {
                vec![("sellable", json!(sellable)), ("accepted_quantities", json!(accepted))]
            }
            Self::NoBarInWindow { after, until } => {
                vec![("interval", json!({"after": after.to_string(), "until": until.to_string()}))]
            }
            Self::NoLiquidity { bar_end, volume, left, max_quantity } => vec![
                ("bar_end", json!(bar_end.to_string())),
                ("bar_volume", json!(volume.0)),
                ("liquidity_left", json!(left.0)),
                ("max_quantity", json!(max_quantity.0)),
            ],
            Self::LimitUpLocked { price, up, down } | Self::LimitDownLocked { price, up, down } => {
                vec![("price", yuan(price)), ("band", json!({"limit_up": up.to_f64(), "limit_down": down.to_f64()}))]
            }
            Self::AlreadyTradedToday { sellable } => vec![("sellable", json!(sellable.0))],
            Self::PositionNotHeld => vec![("required_tool", json!("get_portfolio"))],
            Self::PriceReferenceMissing { fault } => vec![("fault", json!(fault.as_str()))],
            Self::TPlusOneLocked { total } => {
                vec![("sellable", json!(0)), ("frozen", json!(total.0)), ("sellable_in_trading_days", json!(1))]
            }
            Self::InsufficientSellable { sellable, total, frozen, .. } => {
                vec![("sellable", json!(sellable.0)), ("total", json!(total.0)), ("frozen", json!(frozen.0))]
            }
            Self::InsufficientCash { needs, has, max_quantity } => vec![
                ("needs", json!(needs.to_f64())),
                ("usable_cash", json!(has.to_f64())),
                ("max_quantity", json!(max_quantity.0)),
            ],
            Self::PositionCountLimit { held, max } => {
                vec![("max_positions", json!(max)), ("held_positions", json!(held)), ("required_tool", json!("get_portfolio"))]
            }
            Self::PositionWeightLimit { weight, cap, max_quantity } => vec![
                ("weight_pct", json!(*weight as f64 / 100.0)),
                ("max_position_pct", json!(*cap as f64 / 100.0)),
                ("max_quantity", json!(max_quantity.0)),
            ],
            Self::Gate(gate) => gate.facts(),
            Self::PlanMissing { fields } => {
                let mut facts = vec![
                    ("place_at_order_top_level", json!(fields)),
                    ("decision_card_must_not_contain", json!(PLAN_FIELDS)),
                    ("retry_kind", json!(CORRECTION)),
                ];
                facts.extend(correction_scope(&[]));
                facts
            }
            Self::PlanLevelInvalid { field, price, .. } => vec![("field", json!(field)), ("price", yuan(price))],
            Self::NotConfirmed { level, price } => vec![("confirmation_level", yuan(level)), ("price", yuan(price))],
            Self::MinimumHolding { minimum, held, stop, price } => vec![
                ("minimum_holding_days", json!(minimum)),
                ("held_sessions", json!(held)),
                ("original_structural_stop", yuan(stop)),
                ("price", yuan(price)),
            ],
            Self::MinimumHoldingPartial { sellable } => vec![("sellable", json!(sellable.0)), ("accepted_quantity", json!(0))],
            Self::Card(card) => {
                let mut facts = match card {
                    CardRefusal::MissingFields { fields } => {
                        vec![("missing_fields", json!(fields)), ("allowed_decision_card_fields", json!(DecisionCard::FIELDS))]
                    }
                    CardRefusal::Semantic { field, accepted, .. } => vec![("field", json!(field)), ("accepted", json!(accepted))],
                    CardRefusal::UnseenEvidence { invalid, available } => {
                        vec![("invalid_evidence_ids", json!(invalid)), ("available_evidence_ids", json!(available))]
                    }
                    CardRefusal::MissingTools { tools } => vec![("missing_tools", json!(tools))],
                    CardRefusal::Ungrounded => vec![("field", json!("business_fit_basis"))],
                    CardRefusal::MissingAnnouncement => vec![("missing_tools", json!(["get_announcement_evidence"]))],
                };
                // A field that was blank has no meaning yet that a correction could change.
                let blank: &[&str] = if let CardRefusal::MissingFields { fields } = card { fields } else { &[] };
                facts.extend(correction_scope(blank));
                if self.code().retryable() {
                    facts.push(("retry_kind", json!(CORRECTION)));
                }
                facts
            }
            _ => vec![],
        }
    }

    /// Whether an equal or repaired order may succeed in this phase, where the code's default does not say it.
    fn retryable(&self) -> Option<bool> {
        match self {
            Self::NoLiquidity { left, max_quantity, .. } => Some(left.0 > 0 && max_quantity.0 > 0),
            Self::InsufficientCash { max_quantity, .. } | Self::PositionWeightLimit { max_quantity, .. } => {
                Some(max_quantity.0 > 0)
            }
            Self::MinimumHoldingPartial { .. } => Some(true),
            _ => None,
        }
    }
}

impl From<CardRefusal> for Refusal {
    fn from(card: CardRefusal) -> Self {
        Self::Card(card)
    }
}

impl From<Refusal> for ToolFailure {
    fn from(refusal: Refusal) -> Self {
        let mut failure = Self::new(refusal.code(), refusal.to_string(), refusal.instruction());
        failure.retryable = refusal.retryable();
        for (key, value) in refusal.facts() {
            // Ids that were never shown are words of the agent.
            failure = if key == "invalid_evidence_ids" { failure.with_own_words(key, value) } else { failure.with(key, value) };
        }
        failure
    }
}
