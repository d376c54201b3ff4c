//! Ex-dates along the bars of one security: references, factors of adjusted bars, ex-dates in a range. Computed only from events
//! whose ex-date is not after the clock; what one event does is `rules::ExTerms` (engine E2.8, E6).

use super::{Bars, NoChange, View};
use crate::money::Price;
use crate::rules::{ExDays, ExReference, ex_reference};
use crate::store::ExEvent;
use crate::{Day, PriceBasis, Rounding, SecId};

/// Which adjustment of past bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adjust {
    /// Share splits only (bonus and transfer).
    Split,
    /// Everything that moves the exchange's reference price.
    TotalReturn,
}

/// What an older bar is multiplied with to compare it with a newer one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// For prices.
    pub price: f64,
    /// For share counts: how many shares one old share became.
    pub shares: f64,
}

impl Factor {
    /// Nothing changed in between.
    pub const ONE: Self = Self { price: 1.0, shares: 1.0 };

    fn then(self, other: Self) -> Self {
        Self { price: self.price * other.price, shares: self.shares * other.shares }
    }
}

/// The past ex-events of one security that count in a run: none when the dataset's prices are adjusted already.
#[derive(Debug, Clone, Copy)]
pub struct ExDates<'a> {
    events: &'a [ExEvent],
}

/// A close as a price on the tick; `None` for one that is missing or not above zero.
pub(super) fn usable(close: f64) -> Option<Price> {
    Price::from_f64_tick(close, Rounding::HalfEven).filter(|p| p.0 > 0)
}

impl<'a> ExDates<'a> {
    /// True when nothing past needs an adjustment.
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Events with an ex-date in `(after, until]`, oldest first.
    fn within(&self, after: Day, until: Day) -> &'a [ExEvent] {
        let start = self.events.partition_point(|e| e.ex_date <= Some(after));
        let end = self.events.partition_point(|e| e.ex_date <= Some(until));
        &self.events[start..end.max(start)]
    }

    /// Ex-dates in `(after, until]`, oldest first, each once.
    pub fn between(&self, after: Day, until: Day) -> impl DoubleEndedIterator<Item = Day> + use<'a> {
        self.within(after, until).chunk_by(|a, b| a.ex_date == b.ex_date).filter_map(|day| day.first()?.ex_date)
    }

    /// The exchange's reference for a bar of `day`, given the close of the bar before it: the close itself unless an ex-date lies
    /// between the two.
    ///
    /// # Errors
    /// [`NoChange::BadValue`] when the close or an event between has no usable number.
    pub fn reference(&self, close: f64, closed: Day, day: Day) -> Result<Price, NoChange> {
        self.reference_of(usable(close).ok_or(NoChange::BadValue)?, closed, day).certain().ok_or(NoChange::BadValue)
    }

    /// The same of a close that is a price already, with the word whether something was left out.
    pub(super) fn reference_of(&self, close: Price, closed: Day, day: Day) -> ExReference {
        ex_reference(close, self.within(closed, day))
    }

    /// The factor of bar `i` against the time right after `until`.
    fn step(&self, bars: &Bars<'_>, i: usize, until: Day, how: Adjust) -> Result<Factor, NoChange> {
        let events = self.within(bars.day[i], until);
        if events.is_empty() {
            return Ok(Factor::ONE);
        }
        let ExDays { days, faulty } = ExDays::of(events);
        if !faulty.is_empty() {
            return Err(NoChange::BadValue);
        }
        let shares = days.iter().map(|(_, terms)| terms.share_factor()).product();
        match how {
            Adjust::Split => Ok(Factor { price: 1.0 / shares, shares }),
            Adjust::TotalReturn => {
                // A bar without a close hands its place to the close before it.
                let close = bars.close[..=i].iter().rev().find_map(|c| usable(*c)).ok_or(NoChange::BadValue)?;
                let reference = ex_reference(close, events).certain().ok_or(NoChange::BadValue)?;
                Ok(Factor { price: reference.to_f64() / close.to_f64(), shares })
            }
        }
    }

    /// Last bars before the ex-dates in `(first bar, now]`, newest first, each with the day its step ends on.
    fn edges<'s>(&self, bars: &'s Bars<'_>, now: Day) -> impl Iterator<Item = (usize, Day)> + use<'s, 'a> {
        let first = bars.day.first().copied().unwrap_or(now);
        let mut last = None;
        let before = move |ex: Day| bars.day.partition_point(|d| *d < ex) - 1;
        let edges = self.between(first, now).rev().map(before).filter(move |edge| last.replace(*edge) != Some(*edge));
        edges.map(move |edge| (edge, bars.day.get(edge + 1).copied().unwrap_or(now)))
    }

    /// Factors of every bar, to compare it with a price of `now`. An event whose effect cannot be computed makes the factors of all
    /// older bars unknown.
    pub fn factors(&self, bars: &Bars<'_>, now: Day, how: Adjust) -> Vec<Result<Factor, NoChange>> {
        let mut out = vec![Ok(Factor::ONE); bars.len()];
        let mut factor = Ok(Factor::ONE);
        let mut end = bars.len();
        // Factors change only at the last bar before an ex-date.
        for (edge, until) in self.edges(bars, now) {
            out[edge + 1..end].fill(factor);
            factor = factor.and_then(|f: Factor| Ok(f.then(self.step(bars, edge, until, how)?)));
            end = edge + 1;
        }
        out[..end].fill(factor);
        out
    }

    /// The factor of the first of these bars, to compare it with the last.
    ///
    /// # Errors
    /// [`NoChange::BadValue`] when the effect of an event between cannot be computed.
    pub fn factor(&self, bars: &Bars<'_>, how: Adjust) -> Result<Factor, NoChange> {
        let Some(last) = bars.day.last() else { return Ok(Factor::ONE) };
        self.edges(bars, *last).try_fold(Factor::ONE, |f, (edge, until)| Ok(f.then(self.step(bars, edge, until, how)?)))
    }
}

impl<'a> View<'a> {
    /// The ex-events that move the prices of this dataset.
    pub fn ex_dates(&self, sec: SecId) -> ExDates<'a> {
        let events = match self.price_basis() {
            PriceBasis::Raw => self.ex_events(sec),
            PriceBasis::ForwardAdjusted => &[],
        };
        // Sorted by ex-date, plans without one first.
        let first = events.partition_point(|e| e.ex_date.is_none());
        let until = events.partition_point(|e| e.ex_date <= Some(self.clock.day));
        ExDates { events: &events[first..until.max(first)] }
    }

    /// What the ex-dates in `(after, today]` do to a holder and to prices. An ex-date that would leave nothing of the last close
    /// before it is faulty, for the account as for the band.
    pub fn ex_days(&self, sec: SecId, after: Day) -> ExDays {
        let dates = self.ex_dates(sec);
        let mut out = ExDays::of(dates.within(after, self.clock.day));
        let days = std::mem::take(&mut out.days);
        for (day, terms) in days {
            // Ex-dates since that close, before this one, have moved it already.
            let before = self.close_before(sec, day).map(|(closed, close)| dates.reference_of(close, closed, day.plus(-1)).price);
            match before {
                Some(close) if terms.reference(close).is_none() => out.leave_out(day),
                _ => out.days.push((day, terms)),
            }
        }
        out
    }

    /// Last usable daily close before `day`, which is not after today, and its day.
    pub fn close_before(&self, sec: SecId, day: Day) -> Option<(Day, Price)> {
        let bars = self.daily(sec);
        let end = bars.day.partition_point(|d| *d < day);
        (0..end).rev().find_map(|i| Some((bars.day[i], usable(bars.close[i])?)))
    }
}
