//! What one pass over the market computes for every stock before one day: changes, volumes, sectors, breadth. The whole-market tools only
//! read this; a second pass on the same day never happens, and nothing is kept across days.

use crate::adjust::{reason, volumes};
use crate::number::{Seen, change_pct, seen_price, seen_size};
use std::collections::BTreeMap;
use traderharness_contract::Reason;
use traderharness_market::rules::{BandInput, band};
use traderharness_market::view::{Adjust, Change, ExDates};
use traderharness_market::{Band, Bars, Day, Price, Rounding, SecId, View};

/// Horizons of changes, in sessions.
pub(crate) const HORIZONS: [usize; 3] = [1, 5, 20];

/// One stock before one day. Numbers are unrounded.
#[derive(Debug, Clone)]
pub(crate) struct Stock {
    pub(crate) sec: SecId,
    /// Tie key: position among the visible codes.
    pub(crate) rank: u32,
    /// Index into [`Facts::sectors`]; `None` without an industry label.
    pub(crate) sector: Option<usize>,
    /// True when there is a bar of the previous session.
    pub(crate) traded: bool,
    /// Visible daily bars.
    pub(crate) bars: usize,
    /// Close of the previous session, CNY.
    pub(crate) close: Seen<f64>,
    /// Volume of the previous session, shares.
    pub(crate) volume: Seen<f64>,
    /// Amount of the previous session, CNY.
    pub(crate) amount: Seen<f64>,
    /// Change over 1, 5 and 20 sessions to the previous session, percent.
    pub(crate) change: [Seen<f64>; 3],
    /// Mean volume of 5 sessions to that of 20.
    pub(crate) volume_5_to_20: Seen<f64>,
    /// Mean amount of 5 and of 20 sessions, CNY.
    pub(crate) amount_mean: [Seen<f64>; 2],
    /// Close to the highest high of 20 sessions, percent.
    pub(crate) from_high_20: Seen<f64>,
    /// Where the previous session closed in its band.
    pub(crate) limit: Limit,
    /// ST flag visible now.
    pub(crate) st: Option<bool>,
}

/// Where a close is in the price band of its day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Inside,
    Up,
    Down,
}

/// A top-level industry.
#[derive(Debug, Clone)]
pub(crate) struct Sector {
    /// Top level of the industry label.
    pub(crate) name: String,
    /// Positions in [`Facts::stocks`] of all its listed stocks.
    pub(crate) members: Vec<usize>,
}

/// The market before one day.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Listed stocks in the internal order; whatever is shown is ordered by value and then by [`Stock::rank`].
    pub(crate) stocks: Vec<Stock>,
    /// Sectors in the order of names.
    pub(crate) sectors: Vec<Sector>,
    /// The previous session; `None` on the first day of the dataset.
    pub(crate) session: Option<Day>,
    /// True when the dataset has a table of companies, so that sectors can be known.
    pub(crate) has_sectors: bool,
}

/// Top level of an industry label.
pub(crate) fn top_level(label: &str) -> Option<&str> {
    label.split('-').next().map(str::trim).filter(|top| !top.is_empty())
}

impl Facts {
    /// One pass over the visible market.
    pub(crate) fn of(view: &View<'_>) -> Self {
        let session = view.previous_day();
        let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut labels: Vec<Option<&str>> = Vec::with_capacity(view.universe_len());
        let mut has_sectors = false;
        let mut stocks: Vec<Stock> = Vec::with_capacity(view.universe_len());
        // Only rows before today count, so that the facts are the same at every decision point of the day: a stock whose first bar is
        // of today comes in tomorrow.
        for (i, sec) in view.securities().filter(|sec| !view.daily(*sec).is_empty()).enumerate() {
            let company = view.security(sec);
            has_sectors |= company.is_some();
            let label = company.and_then(|c| top_level(&c.industry));
            labels.push(label);
            if let Some(name) = label {
                names.entry(name).or_default().push(i);
            }
            stocks.push(stock(view, sec, view.mask().rank(sec), session));
        }
        let index: BTreeMap<&str, usize> = names.keys().enumerate().map(|(i, name)| (*name, i)).collect();
        for (stock, label) in stocks.iter_mut().zip(labels) {
            stock.sector = label.and_then(|name| index.get(name).copied());
        }
        let sectors = names.into_iter().map(|(name, members)| Sector { name: name.to_owned(), members }).collect();
        Self { stocks, sectors, session, has_sectors }
    }
}

fn stock(view: &View<'_>, sec: SecId, rank: u32, session: Option<Day>) -> Stock {
    let daily = view.daily(sec);
    let n = daily.len();
    let traded = n > 0 && session == Some(daily.day[n - 1]);
    let absent = if n == 0 { Reason::NotListed } else { Reason::Suspended };
    let mut out = Stock {
        sec,
        rank,
        sector: None,
        traded,
        bars: n,
        close: Err(absent),
        volume: Err(absent),
        amount: Err(absent),
        change: [Err(absent); 3],
        volume_5_to_20: Err(absent),
        amount_mean: [Err(absent); 2],
        from_high_20: Err(absent),
        limit: Limit::Inside,
        st: view.is_st(sec),
    };
    if !traded {
        return out;
    }
    let last = n - 1;
    let ex = view.ex_dates(sec);
    out.close = seen_price(daily.close[last]);
    out.volume = seen_size(daily.volume[last]);
    out.amount = seen_size(daily.amount[last]);
    for (slot, sessions) in out.change.iter_mut().zip(HORIZONS) {
        *slot = view.change(sec, sessions).map(Change::percent).map_err(reason);
    }
    out.volume_5_to_20 = volumes(&daily.tail(20), ex).and_then(|volume| volume_5_to_20(&volume));
    out.amount_mean = [mean(daily.amount, 5), mean(daily.amount, 20)];
    out.from_high_20 = out.close.and_then(|close| change_pct(Ok(close), high(&daily, ex, 20)));
    out.limit = limit(view, sec, &daily, ex, out.change[0], out.st);
    out
}

/// `a / b`; a zero base has no ratio.
pub(crate) fn ratio(a: f64, b: f64) -> Seen<f64> {
    if b > 0.0 { Ok(a / b) } else { Err(Reason::BadValue) }
}

/// Mean volume of the newest 5 sessions to that of 20. The volumes are in shares of the newest session, see [`volumes`]:
/// what was traded before a bonus issue counts fewer shares for the same part of the company.
pub(crate) fn volume_5_to_20(volume: &[f64]) -> Seen<f64> {
    mean(volume, 5).and_then(|five| ratio(five, mean(volume, 20)?))
}

/// Mean of the newest `n` sizes.
fn mean(column: &[f64], n: usize) -> Seen<f64> {
    let start = column.len().checked_sub(n).ok_or(Reason::InsufficientHistory)?;
    let sum = column[start..].iter().try_fold(0.0, |sum, v| seen_size(*v).map(|v| sum + v))?;
    Ok(sum / n as f64)
}

/// Highest high of the newest `n` bars, made comparable with the newest one.
fn high(daily: &Bars<'_>, ex: ExDates<'_>, n: usize) -> Seen<f64> {
    let start = daily.len().checked_sub(n).ok_or(Reason::InsufficientHistory)?;
    let bars = daily.slice(start..daily.len());
    let last = bars.day[n - 1];
    let mut best: f64 = 0.0;
    if ex.between(bars.day[0], last).next().is_none() {
        for v in bars.high {
            best = best.max(seen_price(*v)?);
        }
        return Ok(best);
    }
    for (v, factor) in bars.high.iter().zip(ex.factors(&bars, last, Adjust::TotalReturn)) {
        best = best.max(seen_price(*v)? * factor.map_err(reason)?.price);
    }
    Ok(best)
}

/// Whether the newest bar closed at its limit. Only computed for changes that can reach the narrowest band (5 %).
fn limit(view: &View<'_>, sec: SecId, daily: &Bars<'_>, ex: ExDates<'_>, change: Seen<f64>, st: Option<bool>) -> Limit {
    let last = daily.len() - 1;
    if !change.is_ok_and(|c| c.abs() > 4.0) {
        return Limit::Inside;
    }
    let reference = ex.reference(daily.close[last - 1], daily.day[last - 1], daily.day[last]).ok();
    let price = |v: f64| Price::from_f64_tick(v, Rounding::HalfEven);
    let (Some(board), Some(reference), Some(close)) = (view.board(sec), reference, price(daily.close[last])) else {
        return Limit::Inside;
    };
    let input = BandInput {
        board,
        day: daily.day[last],
        st: st.unwrap_or(false),
        // The market counts for today; the newest bar is one session earlier.
        sessions_since_listing: view.sessions_since_listing(sec).map(|n| n.saturating_sub(1)).filter(|n| *n > 0),
        reference,
    };
    match band(input) {
        Band::Limits { up, .. } if close >= up => Limit::Up,
        Band::Limits { down, .. } if close <= down => Limit::Down,
        Band::Limits { .. } | Band::None { .. } => Limit::Inside,
    }
}
