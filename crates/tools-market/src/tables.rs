//! Whole tables for code that an agent runs elsewhere: the values the tools show, as columns instead of pages.
//!
//! Every number is rounded as the tool of the same purpose rounds it; NaN stands for each null. Codes and days are real: who hands a table
//! out masks them. Nothing here is kept: one pass over the view, one table.

use crate::MarketState;
use crate::features::Stock;
use crate::market::kline::change_from_before;
use crate::number::{PERCENT, PRICE, Seen, rounded, seen_price, seen_size};
use crate::screening::behavior::Behavior;
use crate::sectors::{self, descending};
use serde_json::{Value, json};
use traderharness_contract::ToolFailure;
use traderharness_market::{Bars, Day, Minute, SecId, View};

/// As [`rounded`], NaN for null. Nearly every number of a market is far from a tie; those are rounded without leaving the loop over a
/// column, and the others by the one function that knows ties.
#[inline]
fn number(value: Seen<f64>, places: u32) -> f64 {
    let Ok(value) = value else { return f64::NAN };
    let scale = if places == 2 { 100.0 } else { 10_f64.powi(places as i32) };
    let scaled = value * scale;
    if scaled.abs() < CERTAIN {
        let nearest = (scaled + 0.5_f64.copysign(scaled)) as i64 as f64;
        if (scaled - nearest).abs() < 0.49 {
            return nearest / scale;
        }
    }
    rounded(Ok(value), places).unwrap_or(f64::NAN)
}

/// Below this a product is off by far less than the distance to a tie that is kept.
const CERTAIN: f64 = 1e12;

/// Shares as the tools count them: the fraction dropped.
fn whole(value: Seen<f64>) -> f64 {
    value.ok().filter(|v| *v < 9.0e15).map_or(f64::NAN, f64::trunc)
}

/// The bars of one security or of many, one below the other.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "columns as in a bar: prices and amounts in CNY, volumes in shares, changes in percent")]
pub struct BarTable {
    /// Position of each row's security among those that were asked for.
    pub security: Vec<i32>,
    pub day: Vec<Day>,
    /// End of each bar; empty for daily bars.
    pub end: Vec<Minute>,
    pub open: Vec<f64>,
    pub high: Vec<f64>,
    pub low: Vec<f64>,
    pub close: Vec<f64>,
    pub volume: Vec<f64>,
    pub amount: Vec<f64>,
    /// Change from the bar before; empty unless asked for.
    pub change_pct: Vec<f64>,
}

impl BarTable {
    fn reserve(&mut self, rows: usize) {
        self.security.reserve(rows);
        self.day.reserve(rows);
        for column in [&mut self.open, &mut self.high, &mut self.low, &mut self.close, &mut self.volume, &mut self.amount] {
            column.reserve(rows);
        }
    }

    fn push(&mut self, security: usize, bars: &Bars<'_>) {
        self.security.resize(self.security.len() + bars.len(), security as i32);
        self.day.extend_from_slice(bars.day);
        self.end.extend_from_slice(bars.minute);
        let price = |column: &mut Vec<f64>, raw: &[f64]| column.extend(raw.iter().map(|v| number(seen_price(*v), PRICE)));
        price(&mut self.open, bars.open);
        price(&mut self.high, bars.high);
        price(&mut self.low, bars.low);
        price(&mut self.close, bars.close);
        self.volume.extend(bars.volume.iter().map(|v| whole(seen_size(*v))));
        self.amount.extend(bars.amount.iter().map(|v| number(seen_size(*v), 2)));
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.day.len()
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.day.is_empty()
    }
}

/// The newest `days` daily bars of each security, in the order of `securities`, oldest first inside; as `get_kline` shows them without
/// an adjustment.
pub fn daily(view: &View<'_>, securities: &[SecId], days: usize, with_change: bool) -> BarTable {
    let mut out = BarTable::default();
    out.reserve(securities.len() * days);
    for (i, sec) in securities.iter().enumerate() {
        let bars = view.daily(*sec);
        let start = bars.len().saturating_sub(days);
        out.push(i, &bars.slice(start..bars.len()));
        if with_change {
            let ex = view.ex_dates(*sec);
            out.change_pct.extend((start..bars.len()).map(|row| number(change_from_before(&bars, ex, row), PERCENT)));
        }
    }
    out
}

/// Today's 5-minute bars of a security up to the clock.
pub fn five_minutes(view: &View<'_>, sec: SecId) -> BarTable {
    let mut out = BarTable::default();
    out.push(0, &view.minutes_today(sec));
    out
}

/// The features behind `screen_behavioral_cycle`, one row per security in visible order.
#[derive(Debug)]
pub struct BehaviorTable {
    /// Security of each row.
    pub securities: Vec<SecId>,
    /// Name and values of each number.
    pub numbers: Vec<(&'static str, Vec<f64>)>,
    /// Usable sessions.
    pub observations: Vec<i64>,
    /// Name and values of each flag.
    pub flags: Vec<(&'static str, Vec<bool>)>,
}

type Number = fn(&Behavior) -> Option<f64>;
type Flag = fn(&Behavior) -> bool;

const NUMBERS: [(&str, Number); 16] = [
    ("last_close", |b| Some(b.last_close)),
    ("last_low", |b| Some(b.last_low)),
    ("range_position_60", |b| b.range_position_60),
    ("drawdown_120_pct", |b| b.drawdown_120_pct),
    ("change_20_pct", |b| b.change_20_pct),
    ("atr_20_pct", |b| b.atr_20_pct),
    ("atr_5_to_20", |b| b.atr_5_to_20),
    ("volume_5_to_20", |b| b.volume_5_to_20),
    ("up_down_volume_ratio", |b| b.up_down_volume_ratio),
    ("clv_5", |b| b.clv_5),
    ("clv_last", |b| b.clv_last),
    ("obv_flow_20", |b| b.obv_flow_20),
    ("breakout_20d_pct", |b| b.breakout_20d_pct),
    ("support_20", |b| Some(b.support_20)),
    ("resistance_20", |b| Some(b.resistance_20)),
    ("earlier_resistance", |b| Some(b.earlier_resistance)),
];

const FLAGS: [(&str, Flag); 5] = [
    ("touched_support", |b| b.touched_support),
    ("recently_broke_out", |b| b.recently_broke_out),
    ("extended_20d", |b| b.extended_20d),
    ("distribution_risk", |b| b.distribution_risk),
    ("zero_volume_baseline", |b| b.zero_volume_baseline),
];

/// Behavioural features of the market before today; computed on the day's first question, for tool and table together.
pub fn behavioral(view: &View<'_>, state: &mut MarketState) -> BehaviorTable {
    let behaviors = state.behaviors(view);
    let mut rows: Vec<&Behavior> = behaviors.rows.iter().collect();
    rows.sort_unstable_by_key(|b| b.rank);
    BehaviorTable {
        securities: rows.iter().map(|b| b.sec).collect(),
        numbers: NUMBERS.map(|(name, read)| (name, rows.iter().map(|b| read(b).unwrap_or(f64::NAN)).collect())).into(),
        observations: rows.iter().map(|b| b.observations as i64).collect(),
        flags: FLAGS.map(|(name, read)| (name, rows.iter().map(|b| read(b)).collect())).into(),
    }
}

/// The members of a sector that traded on the previous session.
#[derive(Debug)]
pub struct SectorTable {
    /// Whole name of the sector.
    pub sector: String,
    /// Members, in the order of `get_sector_summary`: strongest first, ties by visible code, unknown changes last.
    pub securities: Vec<SecId>,
    /// Close of the session, CNY.
    pub close: Vec<f64>,
    /// Change over the session, percent.
    pub change_pct: Vec<f64>,
}

/// All members of a sector, by its name or a prefix that only one sector has.
///
/// # Errors
/// As `get_sector_summary`.
pub fn sector(view: &View<'_>, state: &mut MarketState, asked: &str) -> Result<SectorTable, ToolFailure> {
    let facts = state.facts(view);
    let found = &facts.sectors[sectors::find(view, &facts, asked, None)?];
    let mut rows: Vec<&Stock> = found.members.iter().map(|i| &facts.stocks[*i]).filter(|s| s.traded).collect();
    rows.sort_by(|a, b| descending(a.change[0], b.change[0]).then(a.rank.cmp(&b.rank)));
    Ok(SectorTable {
        sector: found.name.clone(),
        securities: rows.iter().map(|s| s.sec).collect(),
        close: rows.iter().map(|s| number(s.close, PRICE)).collect(),
        change_pct: rows.iter().map(|s| number(s.change[0], PERCENT)).collect(),
    })
}

/// News of the last `days` calendar days and today that speak of government, regulators or policy, newest first: `{"news": [...]}`, with
/// items as `get_news` gives them. Not masked yet.
///
/// # Errors
/// The dataset has no news; see `get_news`.
pub fn policy_news(view: &View<'_>, days: u8) -> Result<Value, ToolFailure> {
    let stories = crate::text::policy::stories(view, days)?;
    let stories: Result<Vec<Value>, _> = stories.iter().map(serde_json::to_value).collect();
    // A story is strings, numbers and truth values: it always has a JSON form.
    Ok(json!({ "news": stories.unwrap_or_default() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use traderharness_contract::Reason;

    #[test]
    fn numbers_of_columns_are_rounded_as_those_of_results() {
        let mut values =
            vec![0.0, -0.0, 0.005, 0.015, 2.345, 2.355, -0.004, -0.005, 1e11, 1e15, 1e300, f64::MAX, 99_999.995, -12.5];
        // Ties, their neighbours, and numbers of every size.
        for i in 0..20_000_i64 {
            let tie = i as f64 / 200.0;
            values.extend([tie, tie.next_up(), tie.next_down(), -tie, tie * 1234.567, tie * 1e7, tie + 1e-9]);
        }
        for value in values {
            for places in [2, 3, 4] {
                let (fast, slow) = (number(Ok(value), places), rounded(Ok(value), places).unwrap_or(f64::NAN));
                assert!(fast.to_bits() == slow.to_bits(), "{value:?} {places}: {fast:?} {slow:?}");
            }
        }
        assert!(number(Err(Reason::Suspended), 2).is_nan());
    }
}
