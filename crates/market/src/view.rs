//! [`View`]: the market bound to a clock and a mask. The only way rows leave a [`Store`]; every slice ends at the clock.

use crate::money::Price;
use crate::store::{Announcement, BarColumns, ExEvent, FundamentalRow, NewsItem, Security, SegmentRow};
use crate::{Board, Clock, Code, Day, DecisionPoint, Mask, Minute, Moment, PriceBasis, Rounding, SecId, Store};
use std::ops::Range;

mod band;
mod change;
mod ex_dates;
mod valuation;

pub use change::{Change, NoChange};
pub use ex_dates::{Adjust, ExDates, Factor};
pub use valuation::{Figure, Valuation, ValuationRows};

/// One bar. `None` = missing or not a finite number in the dataset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// Trading day.
    pub day: Day,
    /// End minute; `None` for a daily bar.
    pub end: Option<Minute>,
    /// Open, CNY.
    pub open: Option<f64>,
    /// High, CNY.
    pub high: Option<f64>,
    /// Low, CNY.
    pub low: Option<f64>,
    /// Close, CNY.
    pub close: Option<f64>,
    /// Volume, shares.
    pub volume: Option<f64>,
    /// Amount, CNY.
    pub amount: Option<f64>,
}

/// A run of bars of one security, oldest first, all visible. Raw columns use NaN for missing; they are for computing, and a
/// result must pass through `Option` before it leaves a tool.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "columns as in BarColumns")]
pub struct Bars<'a> {
    pub day: &'a [Day],
    /// Empty for daily bars.
    pub minute: &'a [Minute],
    pub open: &'a [f64],
    pub high: &'a [f64],
    pub low: &'a [f64],
    pub close: &'a [f64],
    pub volume: &'a [f64],
    pub amount: &'a [f64],
}

impl<'a> Bars<'a> {
    fn of(columns: &'a BarColumns, rows: Range<usize>) -> Self {
        Self {
            day: &columns.day[rows.clone()],
            minute: if columns.minute.is_empty() { &[] } else { &columns.minute[rows.clone()] },
            open: &columns.open[rows.clone()],
            high: &columns.high[rows.clone()],
            low: &columns.low[rows.clone()],
            close: &columns.close[rows.clone()],
            volume: &columns.volume[rows.clone()],
            amount: &columns.amount[rows],
        }
    }

    /// Number of bars.
    pub fn len(&self) -> usize {
        self.day.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.day.is_empty()
    }

    /// Bar `i`, oldest first.
    pub fn get(&self, i: usize) -> Option<Bar> {
        let finite = |column: &[f64]| column[i].is_finite().then_some(column[i]);
        (i < self.len()).then(|| Bar {
            day: self.day[i],
            end: self.minute.get(i).copied(),
            open: finite(self.open),
            high: finite(self.high),
            low: finite(self.low),
            close: finite(self.close),
            volume: finite(self.volume),
            amount: finite(self.amount),
        })
    }

    /// The newest bar.
    pub fn last(&self) -> Option<Bar> {
        self.len().checked_sub(1).and_then(|i| self.get(i))
    }

    /// The newest `n` bars.
    #[must_use]
    pub fn tail(&self, n: usize) -> Self {
        self.slice(self.len().saturating_sub(n)..self.len())
    }

    /// The bars of an index range inside the run.
    #[must_use]
    pub fn slice(&self, rows: Range<usize>) -> Self {
        Self {
            day: &self.day[rows.clone()],
            minute: if self.minute.is_empty() { &[] } else { &self.minute[rows.clone()] },
            open: &self.open[rows.clone()],
            high: &self.high[rows.clone()],
            low: &self.low[rows.clone()],
            close: &self.close[rows.clone()],
            volume: &self.volume[rows.clone()],
            amount: &self.amount[rows],
        }
    }

    /// The bars, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Bar> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

/// Where a price came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceSource {
    /// Last visible 5-minute bar of today.
    VisibleFiveMinuteClose,
    /// Last daily close before today.
    PreviousDailyClose,
}

impl PriceSource {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::VisibleFiveMinuteClose => "current_visible_5min_close",
            Self::PreviousDailyClose => "previous_daily_close",
        }
    }
}

/// The last visible price of a security.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Price on the tick.
    pub price: Price,
    /// Where it came from.
    pub source: PriceSource,
    /// Day of the bar.
    pub day: Day,
    /// End minute of the bar: 15:00 for a daily close.
    pub minute: Minute,
}

/// The market as it may be seen at one clock.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    store: &'a Store,
    clock: Clock,
    mask: &'a Mask,
    /// Position of the clock's day in the calendar; `None` when it is no trading day.
    day_index: Option<usize>,
}

impl<'a> View<'a> {
    /// Binds a store to a clock and a mask. Cheap: no allocation.
    pub fn new(store: &'a Store, clock: Clock, mask: &'a Mask) -> Self {
        Self { store, clock, mask, day_index: store.parts.calendar.index_of(clock.day) }
    }

    /// Tells the store behind this view from every other of the process, for what is kept between views. It says nothing of the data
    /// and differs between runs, so it may never reach an output.
    pub const fn store_id(&self) -> u64 {
        self.store.id
    }

    /// The clock.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The current trading day.
    pub const fn today(&self) -> Day {
        self.clock.day
    }

    /// The mask of the run. Only the dispatcher and orderings use it; handlers return real values.
    pub const fn mask(&self) -> &'a Mask {
        self.mask
    }

    /// The previous trading day of the market ("yesterday" everywhere, engine E2.7).
    pub fn previous_day(&self) -> Option<Day> {
        self.store.parts.calendar.previous(self.clock.day)
    }

    /// Now of the previous decision point: before the open 15:00 of the previous trading day, so that Monday looks back to Friday
    /// (spec/tools.md b26). `None` before the open of a dataset's first day.
    pub fn previous_now(&self) -> Option<Moment> {
        let previous = match self.clock.point.previous() {
            Some(point) => Clock { point, ..self.clock },
            None => Clock { day: self.previous_day()?, point: DecisionPoint::Close2 },
        };
        Some(previous.now())
    }

    /// The trading day `sessions` before today; 1 = yesterday. Never a later one.
    pub fn sessions_ago(&self, sessions: usize) -> Option<Day> {
        let before = self.store.parts.calendar.count_before(self.clock.day);
        before.checked_sub(sessions.max(1)).map(|i| self.store.parts.calendar.days()[i])
    }

    /// Trading days strictly before today, oldest first.
    pub fn past_days(&self) -> &'a [Day] {
        let calendar = &self.store.parts.calendar;
        &calendar.days()[..calendar.count_before(self.clock.day)]
    }

    /// Securities of the universe with at least one visible daily bar or a visible bar today, in code order.
    pub fn securities(&self) -> impl Iterator<Item = SecId> + 'a {
        let view = *self;
        (0..self.store.len() as u32).map(SecId).filter(move |sec| view.is_listed(*sec))
    }

    /// True when the security has a visible bar at all.
    pub fn is_listed(&self, sec: SecId) -> bool {
        self.daily_cut(sec) > 0 || !self.minutes_today(sec).is_empty()
    }

    /// Number of securities in the universe, listed yet or not.
    pub fn universe_len(&self) -> usize {
        self.store.len()
    }

    /// Security of a real code.
    pub fn find(&self, code: Code) -> Option<SecId> {
        self.store.find(code)
    }

    /// Real code.
    pub fn code(&self, sec: SecId) -> Code {
        self.store.parts.codes[sec.0 as usize]
    }

    /// Board; unknown prefixes never enter a store.
    pub fn board(&self, sec: SecId) -> Option<Board> {
        self.code(sec).board()
    }

    /// Company row, when the dataset has one and its listing day is not after today: a listing that is still to come is the future,
    /// whatever the caller does with the row.
    ///
    /// Known limit: the datasets give names, aliases and industries no date. They are those of the day the dataset was made, so a name
    /// may already be the one after a later renaming, and may carry an `ST` mark set later. [`View::is_st`] is dated; where a rule
    /// depends on ST it must be asked, never the name.
    pub fn security(&self, sec: SecId) -> Option<&'a Security> {
        let table = self.store.parts.securities.as_deref()?;
        let code = self.code(sec);
        let row = table.binary_search_by(|s| s.code.cmp(&code)).ok().map(|i| &table[i])?;
        row.listed.is_none_or(|day| day <= self.clock.day).then_some(row)
    }

    fn daily_cut(&self, sec: SecId) -> usize {
        match self.day_index {
            Some(d) => self.store.cuts[d * self.store.len() + sec.0 as usize] as usize,
            None => {
                let rows = self.daily_rows(sec);
                self.store.parts.daily.day[rows].partition_point(|d| *d < self.clock.day)
            }
        }
    }

    fn daily_rows(&self, sec: SecId) -> Range<usize> {
        let offsets = &self.store.parts.daily_offsets;
        offsets[sec.0 as usize] as usize..offsets[sec.0 as usize + 1] as usize
    }

    /// Daily bars strictly before today (engine E2.1).
    pub fn daily(&self, sec: SecId) -> Bars<'a> {
        let start = self.daily_rows(sec).start;
        Bars::of(&self.store.parts.daily, start..start + self.daily_cut(sec))
    }

    /// 5-minute bars of today that have ended (engine E2.2); empty in pre_market.
    pub fn minutes_today(&self, sec: SecId) -> Bars<'a> {
        let columns = &self.store.parts.minute;
        let Some(until) = self.clock.point.visible_until() else { return Bars::of(columns, 0..0) };
        let offsets = &self.store.parts.minute_offsets;
        let rows = offsets[sec.0 as usize] as usize..offsets[sec.0 as usize + 1] as usize;
        let start = rows.start + columns.day[rows.clone()].partition_point(|d| *d < self.clock.day);
        let end = start + columns.day[start..rows.end].partition_point(|d| *d == self.clock.day);
        let end = start + columns.minute[start..end].partition_point(|m| *m <= until);
        Bars::of(columns, start..end)
    }

    /// 5-minute bars of earlier days, oldest first.
    pub fn minutes_before_today(&self, sec: SecId) -> Bars<'a> {
        let columns = &self.store.parts.minute;
        let offsets = &self.store.parts.minute_offsets;
        let rows = offsets[sec.0 as usize] as usize..offsets[sec.0 as usize + 1] as usize;
        let end = rows.start + columns.day[rows.clone()].partition_point(|d| *d < self.clock.day);
        Bars::of(columns, rows.start..end)
    }

    /// The bar an order placed here fills at: the last visible one inside the current trading interval (engine E3.2).
    pub fn window_bar(&self, sec: SecId) -> Option<Bar> {
        let (after, until) = self.clock.point.interval()?;
        self.minutes_today(sec).last().filter(|bar| bar.end.is_some_and(|end| end > after && end <= until))
    }

    /// Whether the security is suspended today: it has no visible bar although the market has traded. `None` when that cannot be told:
    /// before the open, on a day for which the dataset has no 5-minute bars yet, and for a security whose 5-minute bars the dataset
    /// lacks (it traded on the last covered day, and has no bar of it). A hole in the data is no suspension (DESIGN rule 10).
    pub fn suspended_today(&self, sec: SecId) -> Option<bool> {
        let until = self.clock.point.visible_until()?;
        if !self.minutes_today(sec).is_empty() {
            return Some(false);
        }
        let days = &self.store.minute_days;
        let at = days.partition_point(|(day, _)| *day < self.clock.day);
        let opened = days.get(at).is_some_and(|(day, first)| *day == self.clock.day && *first <= until);
        let covered = at.checked_sub(1).is_none_or(|i| {
            let day = days[i].0;
            let traded = self.daily(sec).day.binary_search(&day).is_ok();
            !traded || self.minutes_before_today(sec).day.binary_search(&day).is_ok()
        });
        (opened && covered).then_some(true)
    }

    /// True when the security is known to be suspended today, see [`View::suspended_today`].
    pub fn is_suspended_today(&self, sec: SecId) -> bool {
        self.suspended_today(sec) == Some(true)
    }

    /// Last visible price: today's last visible 5-minute close, else the last daily close (engine E7.1). Bars without a finite
    /// close are passed over.
    pub fn mark(&self, sec: SecId) -> Option<Mark> {
        let today = self.minutes_today(sec);
        let pick = |bars: Bars<'a>, source: PriceSource| {
            (0..bars.len()).rev().find_map(|i| {
                let price = Price::from_f64_tick(bars.close[i], Rounding::HalfEven).filter(|p| p.0 > 0)?;
                Some(Mark { price, source, day: bars.day[i], minute: bars.minute.get(i).copied().unwrap_or(Minute::at(15, 0)) })
            })
        };
        pick(today, PriceSource::VisibleFiveMinuteClose).or_else(|| pick(self.daily(sec), PriceSource::PreviousDailyClose))
    }

    /// Ex-events of the security that take effect on `day`, for days up to today.
    pub fn ex_events_on(&self, sec: SecId, day: Day) -> impl Iterator<Item = &'a ExEvent> + 'a {
        let visible = day <= self.clock.day;
        self.ex_events(sec).iter().filter(move |e| visible && e.ex_date == Some(day))
    }

    /// All ex-events of the security with ex-date up to today, oldest first.
    pub fn past_ex_events(&self, sec: SecId) -> impl Iterator<Item = &'a ExEvent> + 'a {
        let today = self.clock.day;
        self.ex_events(sec).iter().filter(move |e| e.ex_date.is_some_and(|d| d <= today))
    }

    /// True when the dataset has a table of ex-events, even an empty one.
    pub fn has_ex_events(&self) -> bool {
        self.store.parts.ex_events.is_some()
    }

    fn ex_events(&self, sec: SecId) -> &'a [ExEvent] {
        let rows = self.store.ex_by_sec[sec.0 as usize].clone();
        self.store.parts.ex_events.as_ref().map_or(&[], |t| &t[rows.start as usize..rows.end as usize])
    }

    /// How the dataset's prices relate to what was traded.
    pub fn price_basis(&self) -> PriceBasis {
        self.store.parts.meta.prices
    }

    /// Valuation rows strictly before today (engine E2.5), oldest first; `None` when the dataset has no such table.
    pub fn valuation(&self, sec: SecId) -> Option<ValuationRows<'a>> {
        let table = self.store.parts.valuation.as_ref()?;
        let start = table.offsets[sec.0 as usize] as usize;
        let all = &table.day[start..table.offsets[sec.0 as usize + 1] as usize];
        Some(ValuationRows { table, start, len: all.partition_point(|d| *d < self.clock.day) })
    }

    /// ST flag visible now; `None` when unknown.
    pub fn is_st(&self, sec: SecId) -> Option<bool> {
        self.valuation(sec)?.last()?.is_st
    }

    /// Reports published before now (engine E2.4), oldest publication first; `None` when the dataset has no such table.
    pub fn fundamentals(&self, sec: SecId) -> Option<&'a [FundamentalRow]> {
        let rows = self.store.fundamentals_by_sec[sec.0 as usize].clone();
        let rows = &self.store.parts.fundamentals.as_ref()?[rows.start as usize..rows.end as usize];
        let now = self.clock.now();
        // Never-visible rows (no publication date) sort first as `None`.
        let first = rows.partition_point(|r| r.visible_from.is_none());
        let until = rows.partition_point(|r| r.visible_from.is_none_or(|t| t < now));
        Some(&rows[first..until.max(first)])
    }

    /// Segment rows published before now, oldest publication first; `None` when the dataset has no such table.
    pub fn segments(&self, sec: SecId) -> Option<&'a [SegmentRow]> {
        let rows = self.store.segments_by_sec[sec.0 as usize].clone();
        let rows = &self.store.parts.segments.as_ref()?[rows.start as usize..rows.end as usize];
        let now = self.clock.now();
        let first = rows.partition_point(|r| r.visible_from.is_none());
        let until = rows.partition_point(|r| r.visible_from.is_none_or(|t| t < now));
        Some(&rows[first..until.max(first)])
    }

    /// Announcements of the security before now (engine E2.3), oldest first; `None` when the dataset has no such table.
    pub fn announcements(&self, sec: SecId) -> Option<&'a [Announcement]> {
        let rows = self.store.announcements_by_sec[sec.0 as usize].clone();
        let rows = &self.store.parts.announcements.as_ref()?[rows.start as usize..rows.end as usize];
        let now = self.clock.now();
        Some(&rows[..rows.partition_point(|r| r.time < now)])
    }

    /// News before now (engine E2.3), oldest first; `None` when the dataset has no such table.
    pub fn news(&self) -> Option<&'a [NewsItem]> {
        let rows = self.store.parts.news.as_deref()?;
        let now = self.clock.now();
        Some(&rows[..rows.partition_point(|r| r.time < now)])
    }

    /// Benchmark bars strictly before today; `None` when the dataset has none.
    pub fn index(&self) -> Option<Bars<'a>> {
        let columns = self.store.parts.index.as_ref()?;
        let end = columns.day.partition_point(|d| *d < self.clock.day);
        Some(Bars::of(columns, 0..end))
    }
}
