//! Numbers worked out a second time, straight from the rows of a dataset, to tell which side is right. Shares no code with the
//! tools, the view or the order path.

use std::collections::BTreeMap;
use std::ops::Range;
use traderharness_market::store::ExEvent;
use traderharness_market::{Clock, Day, DecisionPoint, StoreParts};

/// A dataset as plain rows.
#[derive(Debug)]
pub(super) struct Oracle {
    pub(super) parts: StoreParts,
    index: BTreeMap<String, usize>,
    /// Ex-events by code.
    events: BTreeMap<String, Vec<ExEvent>>,
}

/// Last minute of the day that is public at a decision point (engine E1.1), minutes since midnight.
fn visible(point: DecisionPoint) -> Option<u16> {
    match point {
        DecisionPoint::PreMarket => None,
        DecisionPoint::Open1 => Some(9 * 60 + 50),
        DecisionPoint::Open2 => Some(10 * 60),
        DecisionPoint::Close1 => Some(14 * 60 + 50),
        DecisionPoint::Close2 => Some(15 * 60),
    }
}

impl Oracle {
    pub(super) fn new(parts: StoreParts) -> Self {
        let index = parts.codes.iter().enumerate().map(|(i, c)| (c.to_string(), i)).collect();
        let mut events: BTreeMap<String, Vec<ExEvent>> = BTreeMap::new();
        for event in parts.ex_events.iter().flatten() {
            events.entry(event.code.to_string()).or_default().push(event.clone());
        }
        Self { parts, index, events }
    }

    pub(super) fn knows(&self, code: &str) -> bool {
        self.index.contains_key(code)
    }

    pub(super) fn codes(&self) -> impl Iterator<Item = &str> {
        self.index.keys().map(String::as_str)
    }

    /// Rows of a security before a day.
    fn rows(&self, code: &str, before: Day) -> Range<usize> {
        let Some(i) = self.index.get(code) else { return 0..0 };
        let (from, to) = (self.parts.daily_offsets[*i] as usize, self.parts.daily_offsets[i + 1] as usize);
        from..from + self.parts.daily.day[from..to].partition_point(|d| *d < before)
    }

    pub(super) fn sessions(&self, code: &str, before: Day) -> usize {
        self.rows(code, before).len()
    }

    /// Daily closes before a day, oldest first.
    pub(super) fn closes(&self, code: &str, before: Day) -> &[f64] {
        &self.parts.daily.close[self.rows(code, before)]
    }

    /// Trading day of the market before `day`.
    pub(super) fn yesterday(&self, day: Day) -> Option<Day> {
        let days = self.parts.calendar.days();
        days.partition_point(|d| *d < day).checked_sub(1).map(|i| days[i])
    }

    /// No bar on the last trading day (engine E2.1, E2.7).
    pub(super) fn was_suspended(&self, code: &str, today: Day) -> bool {
        let rows = self.rows(code, today);
        self.parts.daily.day[rows].last().copied() != self.yesterday(today)
    }

    pub(super) fn suspended_count(&self, today: Day) -> usize {
        self.codes().filter(|c| self.sessions(c, today) > 0 && self.was_suspended(c, today)).count()
    }

    /// 5-minute bars of today that are public: end minute and close.
    fn bars(&self, code: &str, clock: Clock) -> Vec<(u16, f64)> {
        let (Some(i), Some(until)) = (self.index.get(code), visible(clock.point)) else { return vec![] };
        let minute = &self.parts.minute;
        let (from, to) = (self.parts.minute_offsets[*i] as usize, self.parts.minute_offsets[i + 1] as usize);
        let start = from + minute.day[from..to].partition_point(|d| *d < clock.day);
        (start..to)
            .take_while(|r| minute.day[*r] == clock.day)
            .filter(|r| minute.minute[*r].0 <= until)
            .map(|r| (minute.minute[r].0, minute.close[r]))
            .collect()
    }

    /// Open, high, low, close and volume of today so far.
    pub(super) fn today_so_far(&self, code: &str, clock: Clock) -> Option<[f64; 5]> {
        let (i, until) = (self.index.get(code)?, visible(clock.point)?);
        let m = &self.parts.minute;
        let rows: Vec<usize> = (self.parts.minute_offsets[*i] as usize..self.parts.minute_offsets[i + 1] as usize)
            .filter(|r| m.day[*r] == clock.day && m.minute[*r].0 <= until)
            .collect();
        let (first, last) = (*rows.first()?, *rows.last()?);
        let high = rows.iter().map(|r| m.high[*r]).fold(f64::MIN, f64::max);
        let low = rows.iter().map(|r| m.low[*r]).fold(f64::MAX, f64::min);
        Some([m.open[first], high, low, m.close[last], rows.iter().map(|r| m.volume[*r]).sum()])
    }

    /// Close of the 5-minute bar that ended then.
    pub(super) fn bar_close(&self, code: &str, day: Day, end: &str) -> Option<f64> {
        let clock = Clock { day, point: DecisionPoint::Close2 };
        self.bars(code, clock).into_iter().find(|b| format!("{:02}:{:02}", b.0 / 60, b.0 % 60) == end).map(|b| b.1)
    }

    /// Close of the last public bar of today.
    pub(super) fn intraday(&self, code: &str, clock: Clock) -> Option<f64> {
        self.bars(code, clock).last().map(|b| b.1)
    }

    /// Close of the last bar inside the decision point's own interval: the fill price (engine E1.1, E3.2).
    pub(super) fn fill_price(&self, code: &str, clock: Clock) -> Option<f64> {
        let from = match clock.point {
            DecisionPoint::PreMarket => return None,
            DecisionPoint::Open1 => 9 * 60 + 30,
            DecisionPoint::Open2 => 9 * 60 + 50,
            DecisionPoint::Close1 => 14 * 60 + 30,
            DecisionPoint::Close2 => 14 * 60 + 50,
        };
        self.bars(code, clock).last().filter(|b| b.0 > from).map(|b| b.1)
    }

    /// The close of the bar that ends the whole window, which the recorded implementation shows in `open_1` and `close_1` (b01).
    pub(super) fn end_of_window(&self, code: &str, clock: Clock) -> Option<f64> {
        let point = match clock.point {
            DecisionPoint::PreMarket => return None,
            DecisionPoint::Open1 | DecisionPoint::Open2 => DecisionPoint::Open2,
            DecisionPoint::Close1 | DecisionPoint::Close2 => DecisionPoint::Close2,
        };
        let from = if point == DecisionPoint::Open2 { 9 * 60 + 30 } else { 14 * 60 + 30 };
        self.bars(code, Clock { day: clock.day, point }).last().filter(|b| b.0 > from).map(|b| b.1)
    }

    /// What one share is worth on the morning of `day` for each CNY of the close before, from the ex-events of that day (exchange
    /// formula: (close - cash + rights price x rights) / (1 + bonus + transfer + rights), rounded to the tick).
    fn ex_factor(&self, code: &str, day: Day, close: f64) -> f64 {
        let events = self.events.get(code).into_iter().flatten().filter(|e| e.ex_date == Some(day));
        let mut price = close;
        let mut any = false;
        for e in events {
            any = true;
            price = (price - e.cash / 10.0 + e.rights_price * e.rights / 10.0) / (1.0 + (e.bonus + e.transfer + e.rights) / 10.0);
        }
        if any { (price * 100.0).round() / 100.0 / close } else { 1.0 }
    }

    /// Any ex-event with an ex-date in (from, to].
    pub(super) fn has_ex_event(&self, code: &str, from: Day, to: Day) -> bool {
        self.events.get(code).into_iter().flatten().any(|e| e.ex_date.is_some_and(|d| d > from && d <= to))
    }

    /// Last close before today, moved over an ex-date of today.
    pub(super) fn reference(&self, code: &str, today: Day) -> Option<f64> {
        let rows = self.rows(code, today);
        let close = *self.parts.daily.close[rows.clone()].last()?;
        let day = *self.parts.daily.day[rows].last()?;
        let events = self.events.get(code).into_iter().flatten().filter_map(|e| e.ex_date).filter(|d| *d > day && *d <= today);
        Some(events.fold(close, |price, d| price * self.ex_factor(code, d, price)))
    }

    /// What a holding is valued at: last public bar of today, else the last close moved over ex-dates (engine E7.1).
    pub(super) fn mark(&self, code: &str, clock: Clock) -> Option<f64> {
        self.intraday(code, clock).or_else(|| self.reference(code, clock.day))
    }

    /// Change over `n` sessions in percent, ex-dates moved out (engine E2.8); `None` when suspended yesterday or too young.
    pub(super) fn change(&self, code: &str, today: Day, n: usize) -> Option<f64> {
        if self.was_suspended(code, today) {
            return None;
        }
        let rows = self.rows(code, today);
        let base = rows.end.checked_sub(n + 1).filter(|b| *b >= rows.start)?;
        let mut growth = 1.0;
        for r in base + 1..rows.end {
            let before = self.parts.daily.close[r - 1];
            growth *= self.parts.daily.close[r] / (before * self.ex_factor(code, self.parts.daily.day[r], before));
        }
        Some((growth - 1.0) * 100.0)
    }

    /// Plain change of the recorded implementation: over `n` of the security's own rows, however old, in percent.
    pub(super) fn plain_change(&self, code: &str, today: Day, n: usize) -> Option<f64> {
        let closes = self.closes(code, today);
        let base = closes.len().checked_sub(n + 1)?;
        Some((closes[closes.len() - 1] / closes[base] - 1.0) * 100.0)
    }

    /// An ex-date inside the last `n` sessions of a security.
    pub(super) fn ex_within(&self, code: &str, today: Day, n: usize) -> bool {
        let rows = self.rows(code, today);
        let base = rows.end.saturating_sub(n + 1).max(rows.start);
        rows.len() > 1 && self.has_ex_event(code, self.parts.daily.day[base], self.parts.daily.day[rows.end - 1])
    }

    /// The daily bars alone.
    pub(super) fn bars_only(&self) -> StoreParts {
        StoreParts {
            codes: self.parts.codes.clone(),
            daily_offsets: self.parts.daily_offsets.clone(),
            daily: self.parts.daily.clone(),
            minute_offsets: vec![0; self.parts.codes.len() + 1],
            calendar: self.parts.calendar.clone(),
            meta: self.parts.meta.clone(),
            ..StoreParts::default()
        }
    }

    /// The daily bars with the prices before each ex-date up to the day before `today` moved over it.
    pub(super) fn adjusted(&self, today: Day) -> StoreParts {
        let mut parts = self.bars_only();
        for (code, i) in &self.index {
            let rows = self.parts.daily_offsets[*i] as usize..self.parts.daily_offsets[i + 1] as usize;
            for r in rows.clone().skip(1).filter(|r| self.parts.daily.day[*r] < today) {
                let factor = self.ex_factor(code, self.parts.daily.day[r], self.parts.daily.close[r - 1]);
                if factor != 1.0 {
                    let bars = &mut parts.daily;
                    for column in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.close] {
                        column[rows.start..r].iter_mut().for_each(|price| *price *= factor);
                    }
                    // New shares come for old ones, so older volumes are counted in today's shares.
                    let day = self.parts.daily.day[r];
                    let events = self.events.get(code).into_iter().flatten().filter(|e| e.ex_date == Some(day));
                    let shares: f64 = events.map(|e| 1.0 + (e.bonus + e.transfer) / 10.0).product();
                    bars.volume[rows.start..r].iter_mut().for_each(|volume| *volume *= shares);
                }
            }
        }
        parts
    }

    /// Members of a top-level sector.
    pub(super) fn sector(&self, name: &str) -> Vec<String> {
        let all = self.parts.securities.iter().flatten();
        let inside = all.filter(|s| s.industry.split('-').next() == Some(name)).map(|s| s.code.to_string());
        inside.filter(|c| self.knows(c)).collect()
    }

    /// Mean change of a sector over `n` sessions, percent, and the share of rising members, percent.
    pub(super) fn sector_change(&self, name: &str, today: Day, n: usize) -> Option<(f64, f64)> {
        let changes: Vec<f64> = self.sector(name).iter().filter_map(|c| self.change(c, today, n)).collect();
        let count = changes.len() as f64;
        let up = changes.iter().filter(|c| **c > 0.0).count() as f64;
        (count > 0.0).then(|| (changes.iter().sum::<f64>() / count, up / count * 100.0))
    }

    /// Risk flag of a valuation row before today.
    pub(super) fn is_st(&self, code: &str, today: Day) -> bool {
        let (Some(i), Some(v)) = (self.index.get(code), &self.parts.valuation) else { return false };
        let rows = v.offsets[*i] as usize..v.offsets[i + 1] as usize;
        rows.rev().find(|r| v.day[*r] < today).is_some_and(|r| v.is_st[r] == 1)
    }
}

/// Whether `shown` is `exact` rounded to `places`.
pub(super) fn rounds_to(shown: &serde_json::Value, exact: f64, places: i32) -> bool {
    let half = 0.5 * 10_f64.powi(-places);
    shown.as_f64().is_some_and(|s| (s - exact).abs() <= half + 1e-9 * exact.abs().max(1.0))
}
