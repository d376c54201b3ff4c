//! Band and band reference of a security at the clock: gathers from the store what `rules` needs. Never answers "no limit" for "not known".

use super::View;
use crate::money::Price;
use crate::rules::{self, Band, BandFault, BandInput, RuleKind};
use crate::{Day, SecId};

impl View<'_> {
    /// Previous close, adjusted for ex-rights when the dataset's prices are as traded. Bars without a usable close are passed over;
    /// ex-events between that close and today count, so a security that resumes after an ex-date has the right reference.
    ///
    /// An event with an unusable figure is left out, as the account leaves it out: see [`View::ex_days`] for which.
    ///
    /// # Errors
    /// [`BandFault::NoPreviousClose`].
    pub fn reference_close(&self, sec: SecId) -> Result<Price, BandFault> {
        let (day, close) = self.close_before(sec, self.clock.day).ok_or(BandFault::NoPreviousClose)?;
        Ok(self.ex_dates(sec).reference_of(close, day, self.clock.day).price)
    }

    /// First trading day: from the company table, else the first visible bar when it is later than the start of the dataset.
    ///
    /// The second is a guess that can be wrong for a security that was suspended when the dataset starts; a dataset with a
    /// `listed` column does not need it.
    pub fn listed_on(&self, sec: SecId) -> Option<Day> {
        if let Some(day) = self.security(sec).and_then(|s| s.listed) {
            return (day <= self.clock.day).then_some(day);
        }
        let start = *self.store.parts.calendar.days().first()?;
        let first = self.daily(sec).day.first().or_else(|| self.minutes_before_today(sec).day.first()).copied();
        first.or_else(|| self.minutes_today(sec).day.first().copied()).filter(|day| *day > start)
    }

    /// Sessions of the market since the listing, today included: 1 on the listing day. `None` when the listing is not known or lies
    /// before the dataset, so that the sessions between cannot be counted.
    pub fn sessions_since_listing(&self, sec: SecId) -> Option<u32> {
        let listed = self.listed_on(sec)?;
        let calendar = &self.store.parts.calendar;
        (listed >= *calendar.days().first()?).then_some(())?;
        let sessions = calendar.count_before(self.clock.day) - calendar.count_before(listed) + 1;
        u32::try_from(sessions).ok()
    }

    /// Price band of today. An unknown ST flag counts as not ST, as the dataset then names no such security.
    ///
    /// # Errors
    /// [`BandFault`]: a band that cannot be known is a fault, never "no limit".
    pub fn band(&self, sec: SecId) -> Result<Band, BandFault> {
        let board = self.board(sec).ok_or(BandFault::UnknownBoard)?;
        let day = self.clock.day;
        let mut sessions_since_listing = self.sessions_since_listing(sec);
        if let Some(row) = rules::free_days(board, day, sessions_since_listing) {
            // A security that listed under the rule before keeps that rule's first days.
            if self.listed_on(sec) >= row.from {
                return Ok(Band::None { rule: row.rule });
            }
            sessions_since_listing = None;
        }
        if sessions_since_listing == Some(1)
            && rules::RULES.iter().any(|r| matches!(r.kind, RuleKind::FirstDay { .. }) && r.holds(board, day))
        {
            return Err(BandFault::NoIssuePrice);
        }
        let reference = self.reference_close(sec)?;
        Ok(rules::band(BandInput { board, day, st: self.is_st(sec) == Some(true), sessions_since_listing, reference }))
    }
}
