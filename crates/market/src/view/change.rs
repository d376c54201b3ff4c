//! Changes over sessions: one function for every tool (engine E2.7, E2.8). A change that cannot be known has a reason, never a number.

use super::{Adjust, View};
use crate::money::{Price, div_round};
use crate::{Day, Rounding, SecId};

/// Why there is no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoChange {
    /// The security did not trade on the session the change would be of.
    Suspended,
    /// Fewer bars than the change needs.
    InsufficientHistory,
    /// A close or an ex-event figure is missing or no usable number.
    BadValue,
    /// The dataset has no bars that could tell.
    SourceMissing,
}

impl NoChange {
    /// Wire name of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::InsufficientHistory => "insufficient_history",
            Self::BadValue => "bad_value",
            Self::SourceMissing => "source_missing",
        }
    }
}

/// A relative change of closes; 0.1 = +10 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change(pub f64);

impl Change {
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

/// `to / from - 1` in percent, exact, half-even to two decimals. `from` is above zero.
fn percent(from: Price, to: Price) -> f64 {
    div_round(i128::from(to.0 - from.0) * 10_000, i128::from(from.0), Rounding::HalfEven) as f64 / 100.0
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
        let last = bars.len() - 1;
        let base = last.checked_sub(sessions).ok_or(NoChange::InsufficientHistory)?;
        let factor = self.ex_dates(sec).factor(&bars.slice(base..bars.len()), Adjust::TotalReturn)?;
        Change::between(bars.close[base] * factor.price, bars.close[last])
    }

    /// Change in percent, two decimals, of the newest session: today up to now inside a window, the previous trading day before the
    /// open (engine E2.7). From the last usable close before it, moved over ex-dates as the exchange does (engine E2.8).
    ///
    /// # Errors
    /// [`NoChange`], also for a security that is held at an older price.
    pub fn session_change_pct(&self, sec: SecId) -> Result<f64, NoChange> {
        let mark = self.mark(sec).ok_or(NoChange::BadValue)?;
        let in_window = self.clock.point.visible_until().is_some();
        let newest = if in_window { Some(self.today()) } else { self.previous_day() };
        if Some(mark.day) != newest {
            let has_bar = if in_window { !self.minutes_today(sec).is_empty() } else { !self.was_suspended_yesterday(sec) };
            return Err(match self.suspended_today(sec) {
                _ if has_bar => NoChange::BadValue, // there is a bar, but it has no usable close
                None if in_window => NoChange::SourceMissing,
                _ => NoChange::Suspended,
            });
        }
        Ok(percent(self.reference_before(sec, mark.day)?, mark.price))
    }

    /// The exchange's reference price of `day`, which is not after today: the last usable close before it, moved over ex-dates.
    ///
    /// # Errors
    /// [`NoChange::InsufficientHistory`] without a close, [`NoChange::BadValue`] for an event without usable figures.
    pub fn reference_before(&self, sec: SecId, day: Day) -> Result<Price, NoChange> {
        let (closed, close) = self.close_before(sec, day).ok_or(NoChange::InsufficientHistory)?;
        self.ex_dates(sec).reference_of(close, closed, day).certain().ok_or(NoChange::BadValue)
    }
}
