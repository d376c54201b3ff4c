//! Replaces everything after a clock. Two poisons with different values: a result that differs between them depends on the future,
//! a result that holds a sentinel shows it.

use traderharness_market::store::BarColumns;
use traderharness_market::{Clock, Day, Moment, StoreParts};

/// Digits no honest number of the fixtures has.
pub const SENTINELS: [f64; 2] = [987_654.25, 871_236.75];
/// Text no honest text of the fixtures has.
pub const WORD: &str = "POISONED";

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
    }
}

fn bars(columns: &mut BarColumns, value: f64, hidden: impl Fn(Day, Option<traderharness_market::Minute>) -> bool) {
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
