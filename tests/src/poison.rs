//! Replaces or takes away everything after a clock. A result that differs between two futures depends on the future, a result that
//! holds a sentinel shows it.
//!
//! Names and industries of companies stay: the datasets give them no date (`View::security`).

use traderharness_market::store::BarColumns;
use traderharness_market::{Calendar, Clock, Code, Day, Minute, Moment, StoreParts};

/// Digits no honest number of the fixtures has.
pub const SENTINELS: [f64; 2] = [987_654.25, 871_236.75];
/// Text no honest text of the fixtures has.
pub const WORD: &str = "POISONED";

/// What stands after a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Future {
    /// What the fixture has.
    AsIs,
    /// Sentinels of that number.
    Poisoned(usize),
    /// Nothing: the dataset ends at the clock.
    Cut,
    /// Nothing, and no trace of securities that have not traded yet: neither code nor company nor texts.
    CutWithoutUnlisted,
}

impl Future {
    /// All of them; the first is the one the others are compared with.
    pub const ALL: [Self; 5] = [Self::Cut, Self::Poisoned(0), Self::Poisoned(1), Self::AsIs, Self::CutWithoutUnlisted];

    /// Puts the future after `clock`.
    pub fn put(self, parts: &mut StoreParts, clock: Clock) {
        match self {
            Self::AsIs => {}
            Self::Poisoned(which) => poison(parts, clock, which),
            Self::Cut => cut(parts, clock),
            Self::CutWithoutUnlisted => {
                cut(parts, clock);
                remove_unlisted(parts);
            }
        }
    }
}

/// Replaces every row that may not be visible at `clock` by sentinel `which`.
pub fn poison(parts: &mut StoreParts, clock: Clock, which: usize) {
    let value = SENTINELS[which];
    let word = format!("{WORD}{which}");
    let (today, now) = (clock.day, clock.now());
    let until = clock.point.visible_until();
    bars(&mut parts.daily, value, |day, _| day >= today);
    bars(&mut parts.minute, value, |day, minute| {
        day > today || (day == today && until.is_none_or(|limit| minute.is_some_and(|m| m > limit)))
    });
    if let Some(index) = &mut parts.index {
        bars(index, value, |day, _| day >= today);
    }
    if let Some(v) = &mut parts.valuation {
        for i in 0..v.day.len() {
            if v.day[i] >= today {
                for column in [&mut v.pe_ttm, &mut v.pb_mrq, &mut v.ps_ttm, &mut v.turnover] {
                    column[i] = value;
                }
                v.is_st[i] = (which as u8) & 1;
            }
        }
    }
    let hidden = |at: Option<Moment>| at.is_none_or(|t| t >= now);
    for row in parts.fundamentals.iter_mut().flatten().filter(|r| hidden(r.visible_from)) {
        for field in [
            &mut row.roe,
            &mut row.net_profit_margin,
            &mut row.gross_margin,
            &mut row.net_profit,
            &mut row.eps,
            &mut row.eps_ttm,
            &mut row.revenue,
            &mut row.bvps,
            &mut row.yoy_net_profit,
            &mut row.yoy_eps,
            &mut row.yoy_equity,
            &mut row.yoy_asset,
            &mut row.yoy_pni,
        ] {
            *field = Some(value);
        }
    }
    for row in parts.segments.iter_mut().flatten().filter(|r| hidden(r.visible_from)) {
        row.name.clone_from(&word);
        row.kind.clone_from(&word);
        row.revenue = Some(value);
        row.revenue_pct = Some(value);
        row.gross_margin = Some(value);
    }
    for row in parts.announcements.iter_mut().flatten().filter(|r| r.time >= now) {
        row.title.clone_from(&word);
        row.kind.clone_from(&word);
        row.name.clone_from(&word);
    }
    for row in parts.news.iter_mut().flatten().filter(|r| r.time >= now) {
        for field in [&mut row.title, &mut row.content, &mut row.level, &mut row.tags, &mut row.stock_list] {
            field.clone_from(&word);
        }
    }
    for row in parts.ex_events.iter_mut().flatten().filter(|r| r.ex_date.is_none_or(|d| d > today)) {
        row.bonus = 1.0 + which as f64;
        row.transfer = 2.0 + which as f64;
        row.cash = value;
        row.rights = 0.0;
        row.announced = Some(today.plus(1 + which as i32));
    }
    for row in parts.ex_events.iter_mut().flatten().filter(|r| r.announced.is_some_and(|d| d > today)) {
        row.announced = Some(today.plus(3 + which as i32));
    }
    for row in parts.securities.iter_mut().flatten().filter(|r| r.listed.is_some_and(|d| d > today)) {
        row.listed = Some(today.plus(10 + 7 * which as i32));
    }
    // One future has no trading day at all, the other trades on every day of the week.
    let last = *parts.calendar.days().last().unwrap_or(&today);
    let mut days: Vec<Day> = parts.calendar.days().iter().copied().filter(|d| *d <= today).collect();
    if which == 1 {
        days.extend((1..).map(|i| today.plus(i)).take_while(|d| *d <= last));
    }
    parts.calendar = Calendar::new(days);
    parts.meta.digest = format!("{which}").repeat(64);
}

/// Ends the dataset at `clock`. Securities that have not traded keep their place in the universe and in the table of companies.
fn cut(parts: &mut StoreParts, clock: Clock) {
    let (today, now, until) = (clock.day, clock.now(), clock.point.visible_until());
    keep_bars(&mut parts.daily, &mut parts.daily_offsets, |day, _| day < today);
    keep_bars(&mut parts.minute, &mut parts.minute_offsets, |day, minute| {
        day < today || (day == today && until.is_some_and(|limit| minute.is_some_and(|m| m <= limit)))
    });
    if let Some(index) = &mut parts.index {
        keep_bars(index, &mut vec![0, index.day.len() as u32], |day, _| day < today);
    }
    if let Some(v) = &mut parts.valuation {
        let keep: Vec<bool> = v.day.iter().map(|day| *day < today).collect();
        retain(&mut v.day, &keep);
        for column in [&mut v.pe_ttm, &mut v.pb_mrq, &mut v.ps_ttm, &mut v.turnover] {
            retain(column, &keep);
        }
        retain(&mut v.is_st, &keep);
        v.offsets = moved(&v.offsets, &keep);
    }
    let seen = |at: Option<Moment>| at.is_some_and(|t| t < now);
    parts.fundamentals.iter_mut().for_each(|t| t.retain(|r| seen(r.visible_from)));
    parts.segments.iter_mut().for_each(|t| t.retain(|r| seen(r.visible_from)));
    parts.announcements.iter_mut().for_each(|t| t.retain(|r| r.time < now));
    parts.news.iter_mut().for_each(|t| t.retain(|r| r.time < now));
    parts.ex_events.iter_mut().for_each(|t| t.retain(|r| r.ex_date.is_some_and(|d| d <= today)));
    for row in parts.securities.iter_mut().flatten() {
        row.listed = row.listed.filter(|day| *day <= today);
    }
    parts.calendar = Calendar::new(parts.calendar.days().iter().copied().filter(|d| *d <= today).collect());
    parts.meta.digest = "c".repeat(64);
}

/// Takes away every security without a bar.
fn remove_unlisted(parts: &mut StoreParts) {
    let has = |offsets: &[u32], i: usize| offsets[i] < offsets[i + 1];
    let traded: Vec<bool> =
        (0..parts.codes.len()).map(|i| has(&parts.daily_offsets, i) || has(&parts.minute_offsets, i)).collect();
    let gone: Vec<Code> = parts.codes.iter().zip(&traded).filter(|(_, traded)| !**traded).map(|(code, _)| *code).collect();
    let fewer = |offsets: &mut Vec<u32>| {
        let mut i = 0;
        offsets.retain(|_| {
            i += 1;
            i == 1 || traded[i - 2]
        });
    };
    // Securities without bars have valuation rows of their listing day at most, and those are cut.
    fewer(&mut parts.daily_offsets);
    fewer(&mut parts.minute_offsets);
    parts.valuation.iter_mut().for_each(|v| fewer(&mut v.offsets));
    parts.codes.retain(|code| !gone.contains(code));
    parts.securities.iter_mut().for_each(|t| t.retain(|r| !gone.contains(&r.code)));
    parts.fundamentals.iter_mut().for_each(|t| t.retain(|r| !gone.contains(&r.code)));
    parts.segments.iter_mut().for_each(|t| t.retain(|r| !gone.contains(&r.code)));
    parts.announcements.iter_mut().for_each(|t| t.retain(|r| !gone.contains(&r.code)));
    parts.ex_events.iter_mut().for_each(|t| t.retain(|r| !gone.contains(&r.code)));
}

fn retain<T>(column: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    column.retain(|_| keep.next().is_some_and(|k| *k));
}

/// Offsets after the rows that are not kept are gone.
fn moved(offsets: &[u32], keep: &[bool]) -> Vec<u32> {
    offsets.iter().map(|at| keep[..*at as usize].iter().filter(|k| **k).count() as u32).collect()
}

fn keep_bars(columns: &mut BarColumns, offsets: &mut Vec<u32>, seen: impl Fn(Day, Option<Minute>) -> bool) {
    let keep: Vec<bool> = (0..columns.day.len()).map(|i| seen(columns.day[i], columns.minute.get(i).copied())).collect();
    retain(&mut columns.day, &keep);
    if !columns.minute.is_empty() {
        retain(&mut columns.minute, &keep);
    }
    for column in
        [&mut columns.open, &mut columns.high, &mut columns.low, &mut columns.close, &mut columns.volume, &mut columns.amount]
    {
        retain(column, &keep);
    }
    *offsets = moved(offsets, &keep);
}

fn bars(columns: &mut BarColumns, value: f64, hidden: impl Fn(Day, Option<Minute>) -> bool) {
    for i in 0..columns.day.len() {
        if hidden(columns.day[i], columns.minute.get(i).copied()) {
            for column in [
                &mut columns.open,
                &mut columns.high,
                &mut columns.low,
                &mut columns.close,
                &mut columns.volume,
                &mut columns.amount,
            ] {
                column[i] = value;
            }
        }
    }
}

/// Whether a text shows a sentinel.
pub fn shows_poison(text: &str) -> bool {
    text.contains(WORD) || SENTINELS.iter().any(|s| text.contains(&format!("{}", s.trunc() as i64)))
}
