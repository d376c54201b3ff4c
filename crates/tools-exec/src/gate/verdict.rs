//! The mandate's own checks of one order: pure integers in, a [`Verdict`] out (spec/seeds.md B16.2). The first failure wins, and what
//! is not known fails.
#![deny(clippy::float_arithmetic)]

use super::mandate::{Instrument, Mandate};
use serde_json::{Value, json};
use traderharness_market::{Board, Cash, Code, Price, Rounding, Shares, Side};

/// An order as the mandate sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intent {
    /// Security.
    pub symbol: Code,
    /// Side.
    pub side: Side,
    /// Shares; 0 = not given.
    pub quantity: Shares,
    /// Amount; 0 = not given.
    pub notional: Cash,
    /// Worst price the order may fill at, when it has one.
    pub limit: Option<Price>,
}

/// What is known about the security and the account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Board of the security.
    pub board: Option<Board>,
    /// Whether it is under special treatment; `None` = not known.
    pub st: Option<bool>,
    /// Last price; `None` = the order cannot be priced.
    pub quote: Option<Price>,
    /// Signed value of each position; `None` = cannot be valued.
    pub positions: Vec<(Code, Option<Cash>)>,
    /// Orders filled today; `None` = the counter cannot be read.
    pub trades_today: Option<u32>,
    /// Market value of the security.
    pub market_cap: Option<Cash>,
    /// Mean of close times volume over 45 calendar days.
    pub avg_daily_turnover: Option<Cash>,
}

/// A cap or floor of a mandate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by their wire names below")]
pub enum Limit {
    MaxOrderNotional,
    MaxTotalExposure,
    MaxLeverage,
    MaxTradesPerDay,
    AccountFunding,
    MinMarketCap,
    MinAvgDailyTurnover,
}

impl Limit {
    /// Name of the mandate's field.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxOrderNotional => "max_order_notional_cny",
            Self::MaxTotalExposure => "max_total_exposure_cny",
            Self::MaxLeverage => "max_leverage",
            Self::MaxTradesPerDay => "max_trades_per_day",
            Self::AccountFunding => "account_funding_cny",
            Self::MinMarketCap => "min_market_cap_cny",
            Self::MinAvgDailyTurnover => "min_avg_daily_turnover_cny",
        }
    }

    /// `quantitative` caps wait for the owner; a `universe` floor says the security is not one of the mandate's.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::MinMarketCap | Self::MinAvgDailyTurnover => "universe",
            _ => "quantitative",
        }
    }

    /// A value in this limit's unit as text: CNY, a ratio, or a count.
    pub fn text(self, value: i64) -> String {
        match self {
            Self::MaxTradesPerDay => value.to_string(),
            Self::MaxLeverage => Price(value).to_string(), // ten-thousandths, as a price has them
            _ => Cash(value).to_string(),
        }
    }

    fn json(self, value: i64) -> Value {
        match self {
            Self::MaxTradesPerDay => json!(value),
            Self::MaxLeverage => json!(Price(value).to_f64()),
            _ => json!(Cash(value).to_f64()),
        }
    }
}

/// A limit that an order would break. Values are in fen, ten-thousandths for leverage, a count for trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breach {
    /// Which.
    pub limit: Limit,
    /// Its value.
    pub limit_value: i64,
    /// What the order would come to.
    pub attempted_value: i64,
}

impl Breach {
    /// How far the order lies beyond the limit, always above zero.
    pub const fn overage(&self) -> i64 {
        self.attempted_value.abs_diff(self.limit_value) as i64
    }

    /// What would help, one sentence.
    pub fn proposed_action(&self) -> String {
        let limit = self.limit;
        let (name, attempted) = (limit.as_str(), limit.text(self.attempted_value));
        match limit {
            Limit::MaxTradesPerDay => "Wait for the next trading day, or ask the owner for more trades per day.".to_owned(),
            Limit::MinMarketCap | Limit::MinAvgDailyTurnover => "Choose a security above the floor.".to_owned(),
            _ => format!(
                "Send an order that keeps `{name}` at or below {}, or ask the owner to raise it to at least {attempted}.",
                limit.text(self.limit_value)
            ),
        }
    }

    /// As a failure or a record shows it: CNY, ratio or count.
    pub fn shown(&self) -> Value {
        let limit = self.limit;
        json!({
            "limit": limit.as_str(),
            "limit_value": limit.json(self.limit_value),
            "attempted_value": limit.json(self.attempted_value),
            "overage": limit.json(self.overage()),
            "kind": limit.kind(),
            "proposed_action": self.proposed_action(),
        })
    }
}

/// Why an order is structurally not the mandate's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Structural {
    #[error("The order is no intent the gate can read: a size below zero, or of nothing.")]
    Intent,
    #[error("The mandate excludes this security.")]
    Excluded,
    #[error("The mandate does not allow this kind of instrument.")]
    Instrument,
    #[error("Whether the security is under special treatment is not known, and the mandate allows only one of the two.")]
    InstrumentUnknown,
    #[error("The mandate does not allow this board.")]
    AssetClass,
    #[error("The order cannot be priced: the security has no price of today and no daily close of the last 10 days.")]
    Unpriceable,
    #[error("The exposure cannot be known: a position that is held has no price.")]
    ExposureUnknown,
    #[error("The counter of today's trades cannot be read.")]
    CounterUnreadable,
    #[error("The mandate has a floor on the market value, and the market value is not known.")]
    MarketCapUnknown,
    #[error("The mandate has a floor on the daily turnover, and the turnover is not known.")]
    TurnoverUnknown,
}

impl Structural {
    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "intent_invalid",
            Self::Excluded => "symbol_excluded",
            Self::Instrument => "instrument_not_allowed",
            Self::InstrumentUnknown => "instrument_unknown",
            Self::AssetClass => "asset_class_not_allowed",
            Self::Unpriceable => "unpriceable",
            Self::ExposureUnknown => "exposure_unknown",
            Self::CounterUnreadable => "counter_unreadable",
            Self::MarketCapUnknown => "market_cap_unknown",
            Self::TurnoverUnknown => "turnover_unknown",
        }
    }
}

/// What the mandate says to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may go.
    Allow {
        /// Amount it was sized at.
        notional: Cash,
        /// Gross exposure after it.
        exposure: Cash,
    },
    /// It is not what the mandate is for.
    Deny(Structural),
    /// It breaks a limit.
    Breach(Breach),
}

/// Checks an order against a mandate.
pub fn check(mandate: &Mandate, intent: &Intent, facts: &Facts) -> Verdict {
    match verdict(mandate, intent, facts) {
        Ok((notional, exposure)) => Verdict::Allow { notional, exposure },
        Err(verdict) => verdict,
    }
}

fn verdict(mandate: &Mandate, intent: &Intent, facts: &Facts) -> Result<(Cash, Cash), Verdict> {
    let (caps, universe) = (&mandate.hard_caps, &mandate.universe);
    let deny = |reason| Err(Verdict::Deny(reason));
    let above = |limit, limit_value, attempted_value| {
        if attempted_value > limit_value {
            return Err(Verdict::Breach(Breach { limit, limit_value, attempted_value }));
        }
        Ok(())
    };
    if intent.quantity.0 < 0 || intent.notional.0 < 0 || (intent.quantity.0 == 0 && intent.notional.0 == 0) {
        return deny(Structural::Intent);
    }
    if universe.exclude_symbols.contains(&intent.symbol) {
        return deny(Structural::Excluded);
    }
    let allowed = |instrument| caps.allowed_instruments.contains(&instrument);
    match facts.st {
        Some(st) if !allowed(if st { Instrument::StStock } else { Instrument::Stock }) => return deny(Structural::Instrument),
        None if !(allowed(Instrument::Stock) && allowed(Instrument::StStock)) => return deny(Structural::InstrumentUnknown),
        _ => {}
    }
    if !facts.board.is_some_and(|board| universe.asset_classes.contains(&board)) {
        return deny(Structural::AssetClass);
    }
    let Some(notional) = notional(intent, facts.quote) else { return deny(Structural::Unpriceable) };
    above(Limit::MaxOrderNotional, caps.max_order_notional.0, notional.0)?;

    let Some((before, after)) = exposure(intent, notional, facts) else { return deny(Structural::ExposureUnknown) };
    // An order that takes risk away is never held back for the risk that is left.
    if after > before {
        above(Limit::MaxTotalExposure, caps.max_total_exposure.0, capped(after))?;
        // exposure / funding > leverage, without a division that could round the breach away
        let (exposure, funding) = (after, i128::from(caps.account_funding.0));
        let leverage = i128::from(caps.max_leverage);
        if funding <= 0 || exposure * 10_000 > leverage * funding {
            let attempted = if funding <= 0 { i128::MAX } else { (exposure * 10_000 + funding - 1) / funding };
            above(Limit::MaxLeverage, caps.max_leverage, capped(attempted))?;
        }
    }
    let Some(trades) = facts.trades_today else { return deny(Structural::CounterUnreadable) };
    above(Limit::MaxTradesPerDay, i64::from(caps.max_trades_per_day), i64::from(trades) + 1)?;
    if intent.side == Side::Buy {
        above(Limit::AccountFunding, caps.account_funding.0, notional.0)?;
    }
    let floors = [
        (universe.min_market_cap, facts.market_cap, Limit::MinMarketCap, Structural::MarketCapUnknown),
        (universe.min_avg_daily_turnover, facts.avg_daily_turnover, Limit::MinAvgDailyTurnover, Structural::TurnoverUnknown),
    ];
    for (floor, value, limit, unknown) in floors {
        let Some(floor) = floor else { continue };
        let Some(value) = value else { return deny(unknown) };
        if value < floor {
            return Err(Verdict::Breach(Breach { limit, limit_value: floor.0, attempted_value: value.0 }));
        }
    }
    Ok((notional, Cash(capped(after))))
}

/// What an order is sized at: the larger of its own amount and its shares at the worse of quote and limit. A sell fills at the quote
/// or better than its limit, so only a buy is sized at its limit. `None` when it cannot be priced.
fn notional(intent: &Intent, quote: Option<Price>) -> Option<Cash> {
    if intent.quantity.0 == 0 {
        return Some(intent.notional);
    }
    let quote = quote.filter(|p| p.0 > 0)?;
    let price = match (intent.side, intent.limit) {
        (Side::Buy, Some(limit)) => quote.max(limit),
        _ => quote,
    };
    Some(price.times(intent.quantity, Rounding::HalfUp).max(intent.notional))
}

fn capped(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Gross exposure in fen before and after the order, which is applied to its own symbol; `None` when a position has no value.
fn exposure(intent: &Intent, notional: Cash, facts: &Facts) -> Option<(i128, i128)> {
    let (mut others, mut own) = (0_i128, 0_i128);
    for (symbol, value) in &facts.positions {
        let value = i128::from((*value)?.0);
        if *symbol == intent.symbol { own += value } else { others += value.abs() }
    }
    let signed = i128::from(notional.0);
    let after = own + if intent.side == Side::Buy { signed } else { -signed };
    Some((others + own.abs(), others + after.abs()))
}
