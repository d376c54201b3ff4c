//! What the account is worth at a clock: cash and shares at the last visible price (engine E7.1). Reads a view, changes nothing.
#![deny(clippy::float_arithmetic)]

use crate::corporate;
use crate::ledger::Ledger;
use traderharness_market::{Cash, Code, Day, Minute, Price, PriceSource, Rounding, SecId, Shares, View};

/// Where a position's price came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkSource {
    /// Close of today's last visible 5-minute bar.
    FiveMinuteClose,
    /// Last daily close before today; a suspended security keeps it (spec/tools.md b15).
    DailyClose,
    /// Last daily close, moved by the ex-events since then: no bar has traded ex-right yet.
    ExRightDailyClose,
    /// Average cost: the dataset has no usable price.
    AverageCost,
}

impl MarkSource {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FiveMinuteClose => "current_visible_5min_close",
            Self::DailyClose => "previous_daily_close",
            Self::ExRightDailyClose => "previous_daily_close_ex_right",
            Self::AverageCost => "average_cost_fallback",
        }
    }
}

/// A price with where and when it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceMark {
    /// Price.
    pub price: Price,
    /// Source.
    pub source: MarkSource,
    /// Day and end minute of the bar; `None` for average cost.
    pub time: Option<(Day, Minute)>,
}

/// A position and what it is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Security.
    pub code: Code,
    /// Shares held.
    pub shares: Shares,
    /// Price.
    pub mark: PriceMark,
    /// `price x shares`.
    pub value: Cash,
}

/// The account at a clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Valuation {
    /// Usable cash.
    pub cash: Cash,
    /// Positions in the order in which they were opened.
    pub positions: Vec<Marked>,
    /// Cash and all positions.
    pub total: Cash,
}

impl Valuation {
    /// Value of all positions.
    pub const fn market_value(&self) -> Cash {
        Cash(self.total.0 - self.cash.0)
    }

    /// The position in a security.
    pub fn position(&self, code: Code) -> Option<&Marked> {
        self.positions.iter().find(|p| p.code == code)
    }
}

/// Values a ledger with what is visible, or, with `until`, with the bars of today that ended by then.
pub(crate) fn value(ledger: &Ledger, view: &View<'_>, until: Option<Minute>) -> Valuation {
    let mut total = ledger.cash();
    let positions = ledger
        .positions()
        .iter()
        .map(|held| {
            let mark = view.find(held.code).and_then(|sec| mark(view, sec, until)).unwrap_or(PriceMark {
                price: held.average_cost(),
                source: MarkSource::AverageCost,
                time: None,
            });
            // A holding without any price is worth exactly what was paid, not its rounded average.
            let value =
                if mark.source == MarkSource::AverageCost { held.cost } else { crate::matching::amount(mark.price, held.total) };
            total.0 = total.0.saturating_add(value.0);
            Marked { code: held.code, shares: held.total, mark, value }
        })
        .collect();
    Valuation { cash: ledger.cash(), positions, total }
}

/// Last visible price of a security; with `until`, only bars of today that ended by then count.
pub(crate) fn mark(view: &View<'_>, sec: SecId, until: Option<Minute>) -> Option<PriceMark> {
    let bars = view.minutes_today(sec);
    let cut = until.map_or(bars.len(), |m| bars.minute.partition_point(|end| *end <= m));
    let of_today = (0..cut).rev().find_map(|i| Some((usable_price(bars.close[i])?, bars.minute[i])));
    if let Some((price, end)) = of_today {
        return Some(PriceMark { price, source: MarkSource::FiveMinuteClose, time: Some((view.today(), end)) });
    }
    let last = match view.mark(sec)? {
        // Bars after `until` are not what was known then; go back to the daily close.
        m if m.source == PriceSource::VisibleFiveMinuteClose => {
            let daily = view.daily(sec);
            (0..daily.len()).rev().find_map(|i| Some((usable_price(daily.close[i])?, daily.day[i])))?
        }
        m => (m.price, m.day),
    };
    let (price, day) = last;
    let adjusted = corporate::ex_price(view, sec, price, day);
    let source = if adjusted == price { MarkSource::DailyClose } else { MarkSource::ExRightDailyClose };
    Some(PriceMark { price: adjusted, source, time: Some((day, Minute::at(15, 0))) })
}

/// A close as a price on the tick; `None` when missing, not above zero, or above ten million CNY, which no share has ever cost and
/// no amount could then be exact.
pub(crate) fn usable_price(close: f64) -> Option<Price> {
    Price::from_f64_tick(close, Rounding::HalfEven).filter(|p| p.0 > 0 && p.0 <= 10_000_000 * Price::SCALE)
}
