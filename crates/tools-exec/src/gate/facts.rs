//! What the gate can know about an order: prices and values at the moment the order would fill, and nothing after it.
#![deny(clippy::float_arithmetic)]

use super::verdict::Facts;
use crate::account::Account;
use crate::order::{Order, Origin};
use crate::valuation::{self, MarkSource, usable_price};
use traderharness_market::money::decimal;
use traderharness_market::{Cash, Price, Rounding, SecId, Shares, View};

/// Calendar days over which the turnover is averaged.
const TURNOVER_DAYS: i32 = 45;

/// Calendar days after which a daily close no longer prices an order.
const STALE_DAYS: i32 = 10;

pub(super) fn of(order: &Order, view: &View<'_>, account: &Account, trades_today: Option<u32>) -> Facts {
    let sec = view.find(order.security).filter(|sec| view.is_listed(*sec));
    let until = match &order.origin {
        Origin::Agent => None,
        Origin::Condition { bar_end, .. } => Some(*bar_end),
    };
    let quote = sec.and_then(|sec| quote(order, view, sec));
    let positions = valuation::value(&account.ledger, view, until)
        .positions
        .into_iter()
        .map(|p| {
            let value = match quote {
                // The order and the position it changes are valued at one price, so that selling all of it leaves nothing.
                Some(price) if p.code == order.security => Some(crate::matching::amount(price, p.shares)),
                // What was paid is not what it is worth.
                _ => (p.mark.source != MarkSource::AverageCost).then_some(p.value),
            };
            (p.code, value)
        })
        .collect();
    Facts {
        board: sec.and_then(|sec| view.board(sec)),
        st: sec.and_then(|sec| view.is_st(sec)),
        quote,
        positions,
        trades_today,
        market_cap: None,
        avg_daily_turnover: sec.and_then(|sec| turnover(view, sec)),
    }
}

/// The close of the bar the order would fill at; without one the last visible close of today, else a daily close that is not stale.
fn quote(order: &Order, view: &View<'_>, sec: SecId) -> Option<Price> {
    let (bar, until) = match &order.origin {
        Origin::Agent => (view.window_bar(sec), None),
        Origin::Condition { bar_end, .. } => {
            let bars = view.minutes_today(sec);
            (bars.minute.binary_search(bar_end).ok().and_then(|i| bars.get(i)), Some(*bar_end))
        }
    };
    if let Some(price) = bar.and_then(|b| b.close).and_then(usable_price) {
        return Some(price);
    }
    let mark = valuation::mark(view, sec, until)?;
    let (day, _) = mark.time?;
    (view.today().days_since(day) <= STALE_DAYS).then_some(mark.price)
}

/// Mean of close times volume of the daily bars of the last 45 calendar days; days that lack either do not count.
fn turnover(view: &View<'_>, sec: SecId) -> Option<Cash> {
    let daily = view.daily(sec);
    let first = view.today().plus(-TURNOVER_DAYS);
    let (mut sum, mut count) = (0_i128, 0_i128);
    for i in daily.day.partition_point(|d| *d < first)..daily.len() {
        let Some(price) = usable_price(daily.close[i]) else { continue };
        let Some(shares) = decimal(daily.volume[i], 0, Rounding::Down).filter(|n| *n >= 0) else { continue };
        sum += i128::from(price.times(Shares(shares), Rounding::HalfUp).0);
        count += 1;
    }
    (count > 0).then(|| Cash(i64::try_from(sum / count).unwrap_or(i64::MAX)))
}
