//! Structured plans (engine E11.1): asked for when a position is opened, frozen at the fill, held against later sells.
#![deny(clippy::float_arithmetic)]

use crate::decision_card::DecisionCard;
use crate::refusal::Refusal;
use crate::valuation::usable_price;
use serde_json::Value;
use std::collections::BTreeMap;
use traderharness_market::money::decimal;
use traderharness_market::{Day, Price, Rounding};

/// What an opening buy says about its plan. Fields are as the agent sent them; blank and missing are told apart later.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanRequest {
    /// Behaviour the trade bets on.
    pub behavior_hypothesis: Option<String>,
    /// Price that confirms the idea, CNY.
    pub confirmation_level: Option<f64>,
    /// Price that proves it wrong, CNY.
    pub original_structural_stop: Option<f64>,
    /// When to leave.
    pub exit_condition: Option<String>,
    /// Sessions it should take.
    pub expected_holding_days: Option<u32>,
    /// Decision card.
    pub decision_card: Option<Box<DecisionCard>>,
}

/// The plan of a position, frozen at the fill. Levels move only with ex-dates; the protective stop only up.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Behaviour the trade bets on.
    pub behavior_hypothesis: String,
    /// Price that confirmed the idea.
    pub confirmation_level: Price,
    /// Price that proves it wrong.
    pub original_structural_stop: Price,
    /// When to leave.
    pub exit_condition: String,
    /// Sessions it should take.
    pub expected_holding_days: u32,
    /// Sessions before which it may only be sold below the stop.
    pub minimum_holding_days: u32,
    /// Price of the opening fill.
    pub entry_price: Price,
    /// Day of the opening fill.
    pub entry_day: Day,
    /// Decision card it was opened with.
    pub decision_card: Option<Box<DecisionCard>>,
    /// Results on the security at that moment, by tool, unmasked.
    pub evidence: BTreeMap<String, Value>,
    /// Protective stop created with it.
    pub protective_order_id: Option<String>,
}

/// Plan levels as exact prices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Levels {
    pub(crate) confirmation: Price,
    pub(crate) stop: Price,
}

impl PlanRequest {
    /// Names of the plan fields that are missing or blank, in order.
    pub fn missing(&self) -> Vec<&'static str> {
        let blank = |text: &Option<String>| text.as_deref().is_none_or(|t| t.trim().is_empty());
        [
            ("behavior_hypothesis", blank(&self.behavior_hypothesis)),
            ("confirmation_level", self.confirmation_level.is_none()),
            ("original_structural_stop", self.original_structural_stop.is_none()),
            ("exit_condition", blank(&self.exit_condition)),
            ("expected_holding_days", self.expected_holding_days.is_none()),
        ]
        .into_iter()
        .filter_map(|(name, missing)| missing.then_some(name))
        .collect()
    }

    /// Checks the levels against the fill price (engine E11.1).
    pub(crate) fn levels(&self, price: Price) -> Result<Levels, Refusal> {
        let level = |field: &'static str, value: Option<f64>| {
            value.and_then(on_tick).ok_or(Refusal::PlanLevelInvalid {
                field,
                accepted: "a price above zero on the tick of 0.01 CNY".to_owned(),
                price,
            })
        };
        let confirmation = level("confirmation_level", self.confirmation_level)?;
        let stop = level("original_structural_stop", self.original_structural_stop)?;
        if stop >= price {
            return Err(Refusal::PlanLevelInvalid {
                field: "original_structural_stop",
                accepted: format!("above 0 and below the fill price {price}"),
                price,
            });
        }
        if price < confirmation {
            return Err(Refusal::NotConfirmed { level: confirmation, price });
        }
        Ok(Levels { confirmation, stop })
    }
}

/// A price that is on the tick and above zero.
pub(crate) fn on_tick(value: f64) -> Option<Price> {
    let price = usable_price(value)?;
    (decimal(value, 8, Rounding::HalfEven)? == price.0.checked_mul(10_000)?).then_some(price)
}
