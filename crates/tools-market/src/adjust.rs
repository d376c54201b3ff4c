//! Ex-rights: what a close is worth on the other side of an ex-date. One rule for every change, adjusted bar and quote, computed only
//! from events whose ex-date is not after the clock (engine E2.8).

use crate::number::{Seen, seen_price};
use schemars::JsonSchema;
use serde::Serialize;
use traderharness_contract::Reason;
use traderharness_market::store::ExEvent;
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

/// New shares per old share and cash flows of all events of one ex-date, per share.
#[derive(Debug, Clone, Copy, Default)]
struct Terms {
    bonus: f64,
    rights: f64,
    rights_cost: f64,
    cash: f64,
}

impl Terms {
    fn add(&mut self, event: &ExEvent) {
        let share = |per_ten: f64| if per_ten.is_finite() && per_ten > 0.0 { per_ten / 10.0 } else { 0.0 };
        self.bonus += share(event.bonus) + share(event.transfer);
        self.cash += share(event.cash);
        // A rights issue without a price cannot be valued; it is left out.
        if event.rights_price.is_finite() && event.rights_price > 0.0 {
            self.rights += share(event.rights);
            self.rights_cost += share(event.rights) * event.rights_price;
        }
    }

    /// Ex-rights reference price on the tick: (close - cash + rights price x rights) / (1 + bonus + transfer + rights), half-up
    /// (Shanghai and Shenzhen trading rules, section on ex-rights and ex-dividend). `None` when the terms leave nothing.
    fn reference(self, close: f64) -> Option<f64> {
        let exact = (close - self.cash + self.rights_cost) / (1.0 + self.bonus + self.rights);
        // One more rounding at 6 decimals takes the noise of the float division off the tie.
        let exact = traderharness_market::money::round_f64(exact, 6)?;
        Price::from_f64_tick(exact, Rounding::HalfUp).map(Price::to_f64).filter(|p| *p > 0.0)
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

impl<'a> ExDates<'a> {
    /// The events that count in this run: none when the dataset's prices are adjusted already.
    pub(crate) fn of(view: &View<'a>, sec: SecId) -> Self {
        let events = match view.price_basis() {
            PriceBasis::Raw => view.past_ex_events(sec).collect(),
            PriceBasis::ForwardAdjusted => Vec::new(),
        };
        Self { events }
    }

    /// Ex-dates in `(after, until]`, oldest first.
    pub(crate) fn between(&self, after: Day, until: Day) -> impl Iterator<Item = Day> + '_ {
        let mut last = None;
        self.events.iter().filter_map(|e| e.ex_date).filter(move |d| {
            let new = *d > after && *d <= until && last != Some(*d);
            last = Some(*d);
            new
        })
    }

    fn terms(&self, after: Day, until: Day) -> Option<Terms> {
        let mut found = None;
        for event in self.events.iter().filter(|e| e.ex_date.is_some_and(|d| d > after && d <= until)) {
            found.get_or_insert_with(Terms::default).add(event);
        }
        found
    }

    /// The exchange's reference for a bar of `day`, given the close of the bar before it: the close itself unless an ex-date lies
    /// between the two.
    pub(crate) fn reference(&self, close: f64, closed: Day, day: Day) -> Seen<f64> {
        let close = seen_price(close)?;
        match self.terms(closed, day) {
            None => Ok(close),
            Some(terms) => terms.reference(close).ok_or(Reason::BadValue),
        }
    }

    /// What one share price before the gap between two neighbouring bars is multiplied with to compare with prices after it, and
    /// how many shares one old share became.
    fn step(&self, close: f64, closed: Day, day: Day, how: Adjust) -> Seen<(f64, f64)> {
        let Some(terms) = self.terms(closed, day) else { return Ok((1.0, 1.0)) };
        let shares = 1.0 + terms.bonus;
        match how {
            Adjust::Split => Ok((1.0 / shares, shares)),
            Adjust::TotalReturn => {
                let close = seen_price(close)?;
                terms.reference(close).map(|r| (r / close, shares)).ok_or(Reason::BadValue)
            }
        }
    }

    /// Price and share factors of every bar, to compare it with a price of `now`. An event whose effect cannot be computed makes the
    /// factors of all older bars unknown.
    pub(crate) fn factors(&self, bars: &Bars<'_>, now: Day, how: Adjust) -> Vec<Seen<(f64, f64)>> {
        let mut out = vec![Ok((1.0, 1.0)); bars.len()];
        let mut factor: Seen<(f64, f64)> = Ok((1.0, 1.0));
        let mut next = now;
        for i in (0..bars.len()).rev() {
            if !self.events.is_empty() {
                let step = self.step(bars.close[i], bars.day[i], next, how);
                factor = factor.and_then(|(p, s)| step.map(|(dp, ds)| (p * dp, s * ds)));
            }
            out[i] = factor;
            next = bars.day[i];
        }
        out
    }

    /// Change in percent from bar `from` to bar `to` (`from < to`), over the ex-dates between the two.
    pub(crate) fn change(&self, bars: &Bars<'_>, from: usize, to: usize) -> Seen<f64> {
        let start = seen_price(bars.close[from])?;
        let end = seen_price(bars.close[to])?;
        let mut factor = 1.0;
        if !self.events.is_empty() && self.terms(bars.day[from], bars.day[to]).is_some() {
            for i in from..to {
                factor *= self.step(bars.close[i], bars.day[i], bars.day[i + 1], Adjust::TotalReturn)?.0;
            }
        }
        crate::number::change_pct(Ok(end), Ok(start * factor))
    }
}
