//! What is shown of a watched security's price: the mark every valuation uses, and the change of the newest session with a reason
//! where there is none.

use crate::tools::shown;
use crate::valuation::{self, MarkSource, PriceMark};
use traderharness_contract::Reason;
use traderharness_market::{PriceBasis, SecId, View, rules};

/// Last visible price, or why there is none.
pub(crate) fn mark(view: &View<'_>, sec: SecId) -> Result<PriceMark, Reason> {
    valuation::mark(view, sec, None).ok_or_else(|| {
        let silent = view.daily(sec).is_empty() && view.minutes_today(sec).is_empty();
        if silent { Reason::InsufficientHistory } else { Reason::BadValue }
    })
}

/// Change of the newest session in percent, two decimals: today up to now inside a window, the previous trading day before the open.
/// From the last usable close before it, moved over ex-dates as the exchange does (engine E2.7, E2.8).
pub(crate) fn change_pct(view: &View<'_>, sec: SecId, mark: &PriceMark) -> Result<f64, Reason> {
    let daily = view.daily(sec);
    let day = mark.time.map(|(day, _)| day).ok_or(Reason::BadValue)?;
    let (newest, has_bar) = if view.clock().point.visible_until().is_some() {
        (Some(view.today()), !view.minutes_today(sec).is_empty())
    } else {
        (view.previous_day(), view.previous_day().is_some() && daily.day.last().copied() == view.previous_day())
    };
    if Some(day) != newest {
        // A bar is there but has no usable close, or there is none.
        return Err(if has_bar { Reason::BadValue } else { Reason::Suspended });
    }
    let close_at = |i: usize| Some((daily.day[i], valuation::usable_price(daily.close[i])?));
    // On the morning of an ex-date the mark is already moved; the change of yesterday is between yesterday's own prices.
    let to = match mark.source {
        MarkSource::FiveMinuteClose => mark.price,
        _ => (0..daily.len()).rev().find_map(close_at).ok_or(Reason::BadValue)?.1,
    };
    let before = daily.day.partition_point(|d| *d < day);
    let (from_day, from) = (0..before).rev().find_map(close_at).ok_or(Reason::InsufficientHistory)?;
    let from = match view.price_basis() {
        PriceBasis::ForwardAdjusted => from,
        PriceBasis::Raw => {
            let between = view.past_ex_events(sec).filter(|e| e.ex_date.is_some_and(|d| d > from_day && d <= day));
            rules::ex_reference(from, between).map_err(|_| Reason::BadValue)?
        }
    };
    shown::percent(to.0 - from.0, from.0).ok_or(Reason::BadValue)
}
