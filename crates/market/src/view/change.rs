//! Changes over sessions: one function for every tool (engine E2.7, E2.8). A change that cannot be known has a reason, never a number.

use super::{Bars, View};
use crate::money::Price;
use crate::{PriceBasis, Rounding, SecId, rules};

/// Why there is no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoChange {
    /// The security did not trade on the previous trading day of the market.
    Suspended,
    /// Fewer bars than the change needs.
    InsufficientHistory,
    /// A close or an ex-event figure is missing or no usable number.
    BadValue,
}

impl NoChange {
    /// Wire name of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::InsufficientHistory => "insufficient_history",
            Self::BadValue => "bad_value",
        }
    }
}

/// A relative change of closes; 0.1 = +10 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change(pub f64);

impl Change {
    /// How multi-session changes treat ex-events, for outputs (engine E2.8).
    pub const ADJUSTMENT: &'static str = "closes are total-return adjusted for ex-events up to now; an ex-day compares with the exchange's adjusted reference price";

    /// Change over `sessions` bars of these columns as they are: `close[-1] / close[-1 - sessions] - 1`.
    ///
    /// # Errors
    /// [`NoChange::InsufficientHistory`], [`NoChange::BadValue`]; a suspension needs a clock, see [`View::change`].
    pub fn over(bars: &Bars<'_>, sessions: usize) -> Result<Self, NoChange> {
        let last = bars.len().checked_sub(1).ok_or(NoChange::InsufficientHistory)?;
        let base = last.checked_sub(sessions).ok_or(NoChange::InsufficientHistory)?;
        Self::between(bars.close[base], bars.close[last])
    }

    fn between(base: f64, last: f64) -> Result<Self, NoChange> {
        let ratio = last / base - 1.0;
        // A close is a price: NaN, zero, a negative or an infinite one is a defect of the row.
        (base > 0.0 && last > 0.0 && base.is_finite() && ratio.is_finite()).then_some(Self(ratio)).ok_or(NoChange::BadValue)
    }

    /// In percent, not rounded.
    pub fn percent(self) -> f64 {
        self.0 * 100.0
    }
}

impl View<'_> {
    /// True when the last daily bar is not of the previous trading day of the market (engine E2.7).
    pub fn was_suspended_yesterday(&self, sec: SecId) -> bool {
        self.daily(sec).day.last().copied() != self.previous_day()
    }

    /// Total-return adjusted change over `sessions` daily bars up to yesterday.
    ///
    /// # Errors
    /// [`NoChange`].
    pub fn change(&self, sec: SecId, sessions: usize) -> Result<Change, NoChange> {
        let bars = self.daily(sec);
        if bars.is_empty() {
            return Err(NoChange::InsufficientHistory);
        }
        if bars.day.last().copied() != self.previous_day() {
            return Err(NoChange::Suspended);
        }
        let base = (bars.len() - 1).checked_sub(sessions).ok_or(NoChange::InsufficientHistory)?;
        let factor = self.factor(sec, &bars, base).ok_or(NoChange::BadValue)?;
        Change::between(bars.close[base] * factor, bars.close[bars.len() - 1])
    }

    /// The newest `n` daily closes in terms of the newest one: earlier closes are multiplied by reference / close of each later
    /// ex-date up to now. NaN = missing. Without ex-events, and for forward-adjusted datasets, the closes as they are.
    pub fn adjusted_closes(&self, sec: SecId, n: usize) -> Vec<f64> {
        let bars = self.daily(sec).tail(n);
        let mut closes = bars.close.to_vec();
        if !self.may_adjust(sec) {
            return closes;
        }
        let mut factor = Some(1.0);
        for i in (0..bars.len()).rev() {
            if i + 1 < bars.len() {
                factor = factor.and_then(|f| Some(f * self.step(sec, &bars, i)?));
            }
            closes[i] = factor.map_or(f64::NAN, |f| closes[i] * f);
        }
        closes
    }

    /// Change over `sessions` of every security of the universe, by [`SecId`].
    pub fn changes(&self, sessions: usize) -> Vec<Result<Change, NoChange>> {
        (0..self.universe_len() as u32).map(|i| self.change(SecId(i), sessions)).collect()
    }

    /// Newest daily close of every security, by [`SecId`]; `None` = no bar or no finite close in it.
    pub fn last_closes(&self) -> Vec<Option<f64>> {
        let close = |i| self.daily(SecId(i)).close.last().copied().filter(|c| c.is_finite());
        (0..self.universe_len() as u32).map(close).collect()
    }

    fn may_adjust(&self, sec: SecId) -> bool {
        self.price_basis() == PriceBasis::Raw && self.past_ex_events(sec).next().is_some()
    }

    /// Product of the adjustment steps from bar `base` to the last bar.
    fn factor(&self, sec: SecId, bars: &Bars<'_>, base: usize) -> Option<f64> {
        if !self.may_adjust(sec) {
            return Some(1.0);
        }
        (base..bars.len() - 1).try_fold(1.0, |product, i| Some(product * self.step(sec, bars, i)?))
    }

    /// Reference / close over the ex-dates after bar `i` up to bar `i + 1`; 1 without any.
    fn step(&self, sec: SecId, bars: &Bars<'_>, i: usize) -> Option<f64> {
        let within = (bars.day[i], bars.day[i + 1]);
        let mut events = self.past_ex_events(sec).filter(|e| e.ex_date.is_some_and(|d| d > within.0 && d <= within.1)).peekable();
        if events.peek().is_none() {
            return Some(1.0);
        }
        // A bar without a close hands its place to the close before it.
        let before = bars.close[..=i].iter().rev().find(|c| c.is_finite() && **c > 0.0)?;
        let close = Price::from_f64_tick(*before, Rounding::HalfEven)?;
        let reference = rules::ex_reference(close, events).ok()?;
        Some(reference.to_f64() / close.to_f64())
    }
}
