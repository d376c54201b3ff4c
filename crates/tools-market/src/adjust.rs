//! Ex-rights along the bars of one security: references, factors of adjusted bars, ex-dates in a range. Computed only from events whose
//! ex-date is not after the clock; the rule itself is `traderharness_market::rules::ex_reference` (engine E2.8).

use crate::number::{Seen, seen_price};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use traderharness_contract::Reason;
use traderharness_market::rules::ex_reference;
use traderharness_market::store::ExEvent;
use traderharness_market::view::NoChange;
use traderharness_market::{Bars, Day, Price, PriceBasis, Rounding, SecId, View};

/// How price changes across ex-dates are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeBasis {
    /// Prices are as traded; a change over an ex-date is measured from the exchange's adjusted reference price of that date.
    ExchangeReference,
    /// The dataset's prices are forward-adjusted already; nothing is adjusted again.
    DatasetForwardAdjusted,
    /// The dataset has no table of ex-events; changes over an ex-date contain the mechanical price drop.
    NoExEventTable,
}

/// How this run's changes are computed.
pub(crate) fn change_basis(view: &View<'_>) -> ChangeBasis {
    match view.price_basis() {
        PriceBasis::ForwardAdjusted => ChangeBasis::DatasetForwardAdjusted,
        PriceBasis::Raw if view.has_ex_events() => ChangeBasis::ExchangeReference,
        PriceBasis::Raw => ChangeBasis::NoExEventTable,
    }
}

/// Why the market has no change, as a reason of a result.
pub(crate) fn reason(no: NoChange) -> Reason {
    match no {
        NoChange::Suspended => Reason::Suspended,
        NoChange::InsufficientHistory => Reason::InsufficientHistory,
        NoChange::BadValue => Reason::BadValue,
    }
}

/// The past ex-events of one security, ready to walk along its bars.
#[derive(Debug, Clone)]
pub(crate) struct ExDates<'a> {
    events: Vec<&'a ExEvent>,
}

/// Which adjustment of past bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adjust {
    /// Share splits only (bonus and transfer).
    Split,
    /// Everything that moves the exchange's reference price.
    TotalReturn,
}

/// What an older bar is multiplied with to compare it with a newer one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Factor {
    /// For prices.
    pub(crate) price: f64,
    /// For share counts: how many shares one old share became.
    pub(crate) shares: f64,
}

const ONE: Factor = Factor { price: 1.0, shares: 1.0 };

impl<'a> ExDates<'a> {
    /// The events that count in this run: none when the dataset's prices are adjusted already.
    pub(crate) fn of(view: &View<'a>, sec: SecId) -> Self {
        let events = match view.price_basis() {
            PriceBasis::Raw => view.past_ex_events(sec).collect(),
            PriceBasis::ForwardAdjusted => Vec::new(),
        };
        Self { events }
    }

    /// True when nothing past needs an adjustment.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn within(&self, after: Day, until: Day) -> impl Iterator<Item = &'a ExEvent> + '_ {
        self.events.iter().copied().filter(move |e| e.ex_date.is_some_and(|d| d > after && d <= until))
    }

    /// Ex-dates in `(after, until]`, oldest first, each once.
    pub(crate) fn between(&self, after: Day, until: Day) -> impl Iterator<Item = Day> + '_ {
        let mut last = None;
        self.within(after, until).filter_map(|e| e.ex_date).filter(move |day| last.replace(*day) != Some(*day))
    }

    /// The exchange's reference for a bar of `day`, given the close of the bar before it: the close itself unless an ex-date lies
    /// between the two.
    pub(crate) fn reference(&self, close: f64, closed: Day, day: Day) -> Seen<Price> {
        let close = Price::from_f64_tick(seen_price(close)?, Rounding::HalfEven).ok_or(Reason::BadValue)?;
        ex_reference(close, self.within(closed, day)).map_err(|_| Reason::BadValue)
    }

    /// The factor of bar `i` against the time right after `until`.
    fn step(&self, bars: &Bars<'_>, i: usize, until: Day, how: Adjust) -> Seen<Factor> {
        let closed = bars.day[i];
        let mut shares = 1.0;
        let mut any = false;
        for event in self.within(closed, until) {
            let usable = [event.bonus, event.transfer].iter().all(|v| v.is_finite() && *v >= 0.0);
            if !usable {
                return Err(Reason::BadValue);
            }
            shares += (event.bonus + event.transfer) / 10.0;
            any = true;
        }
        match how {
            _ if !any => Ok(ONE),
            Adjust::Split => Ok(Factor { price: 1.0 / shares, shares }),
            Adjust::TotalReturn => {
                // A bar without a close hands its place to the close before it.
                let close = bars.close[..=i].iter().rev().find_map(|c| seen_price(*c).ok()).ok_or(Reason::BadValue)?;
                let price = Price::from_f64_tick(close, Rounding::HalfEven).filter(|p| p.0 > 0).ok_or(Reason::BadValue)?;
                let reference = self.reference(close, closed, until)?;
                Ok(Factor { price: reference.to_f64() / price.to_f64(), shares })
            }
        }
    }

    /// Factors of every bar, to compare it with a price of `now`. An event whose effect cannot be computed makes the factors of all
    /// older bars unknown.
    pub(crate) fn factors(&self, bars: &Bars<'_>, now: Day, how: Adjust) -> Vec<Seen<Factor>> {
        let mut out = vec![Ok(ONE); bars.len()];
        if self.is_empty() {
            return out;
        }
        // Factors change only at the last bar before an ex-date.
        let mut edges: Vec<usize> = match bars.day.first() {
            Some(first) => self.between(*first, now).map(|ex| bars.day.partition_point(|d| *d < ex) - 1).collect(),
            None => return out,
        };
        edges.dedup();
        let mut factor: Seen<Factor> = Ok(ONE);
        let mut end = bars.len();
        for edge in edges.into_iter().rev() {
            out[edge + 1..end].fill(factor);
            let step = self.step(bars, edge, bars.day.get(edge + 1).copied().unwrap_or(now), how);
            factor = factor.and_then(|f| step.map(|s| Factor { price: f.price * s.price, shares: f.shares * s.shares }));
            end = edge + 1;
        }
        out[..end].fill(factor);
        out
    }

    /// The volumes of these bars in shares of the newest one: an older volume grows with every bonus and transfer issue since.
    pub(crate) fn volumes<'b>(&self, bars: &Bars<'b>) -> Seen<Cow<'b, [f64]>> {
        let (Some(first), Some(last)) = (bars.day.first(), bars.day.last()) else { return Ok(Cow::Borrowed(bars.volume)) };
        if self.within(*first, *last).next().is_none() {
            return Ok(Cow::Borrowed(bars.volume));
        }
        let factors = self.factors(bars, *last, Adjust::Split);
        bars.volume.iter().zip(factors).map(|(volume, factor)| Ok(volume * factor?.shares)).collect::<Seen<_>>().map(Cow::Owned)
    }

    /// Change in percent from bar `i - 1` to bar `i`, over the ex-dates between the two.
    pub(crate) fn change(&self, bars: &Bars<'_>, i: usize) -> Seen<f64> {
        let before = i.checked_sub(1).ok_or(Reason::InsufficientHistory)?;
        let base = seen_price(bars.close[before])?;
        let base = if self.within(bars.day[before], bars.day[i]).next().is_some() {
            self.reference(base, bars.day[before], bars.day[i])?.to_f64()
        } else {
            base
        };
        crate::number::change_pct(seen_price(bars.close[i]), Ok(base))
    }
}
