//! The tables as sealed columns: visible codes, days as the run shows them, numbers as the tools give them.
//!
//! While dates are hidden, `date` is the number of calendar days from today, and `datetime` the wall time on 2000-01-01 (engine E8.1);
//! otherwise both are seconds since 1970, which the answer's `times` names.

use super::cache::{Key, Table};
use super::{ToolCalls, fault};
use serde_json::json;
use std::sync::Arc;
use traderharness_market::{Day, SecId, View};
use traderharness_sandbox::segment::SegmentError;
use traderharness_sandbox::{HostAnswer, HostFault, Segment, SegmentBuilder};
use traderharness_tools_market::tables::{self, BarTable, SectorTable};

/// Sessions of `get_all_daily`.
const ALL_DAILY: std::ops::RangeInclusive<i64> = 1..=120;

/// The day of every `datetime` while dates are hidden.
const HIDDEN_DAY: Day = Day(10_957);

/// Columns of a table whose values are moments.
fn times(view: &View<'_>, names: &[&str]) -> serde_json::Value {
    let hidden = view.mask().config().dates;
    let shown: Vec<&str> = names.iter().copied().filter(|name| !hidden || *name != "date").collect();
    json!({ "times": shown })
}

/// Days as the run shows them.
fn dates(view: &View<'_>, days: &[Day]) -> Vec<i64> {
    let today = view.today();
    if view.mask().config().dates {
        days.iter().map(|day| i64::from(day.days_since(today))).collect()
    } else {
        days.iter().map(|day| i64::from(day.0) * 86_400).collect()
    }
}

fn codes<'v>(view: &View<'v>, securities: &[SecId]) -> Vec<&'v str> {
    securities.iter().map(|sec| view.mask().code(*sec)).collect()
}

fn bars(out: &mut SegmentBuilder, bars: BarTable) {
    out.f64("open", bars.open).f64("high", bars.high).f64("low", bars.low).f64("close", bars.close);
    out.f64("volume", bars.volume).f64("amount", bars.amount);
}

/// Daily bars of one security.
pub(super) fn kline(view: &View<'_>, sec: SecId, days: usize) -> Result<HostAnswer, HostFault> {
    let table = tables::daily(view, &[sec], days, false);
    let mut out = SegmentBuilder::new(table.len());
    out.i64("date", dates(view, &table.day));
    bars(&mut out, table);
    answer(out.build().map(Arc::new), times(view, &["date"]))
}

/// Today's 5-minute bars of one security.
pub(super) fn five_minutes(view: &View<'_>, sec: SecId) -> Result<HostAnswer, HostFault> {
    let table = tables::five_minutes(view, sec);
    let mut out = SegmentBuilder::new(table.len());
    let day = |day: &Day| if view.mask().config().dates { HIDDEN_DAY } else { *day };
    let ends = table.day.iter().zip(&table.end).map(|(d, end)| day(d).at(*end).0).collect();
    out.i64("date", dates(view, &table.day)).i64("datetime", ends);
    bars(&mut out, table);
    answer(out.build().map(Arc::new), times(view, &["date", "datetime"]))
}

/// Members of a sector.
pub(super) fn sector(view: &View<'_>, table: SectorTable) -> Result<HostAnswer, HostFault> {
    let rows = table.securities.len();
    let mut out = SegmentBuilder::new(rows);
    out.text("stock_code", &codes(view, &table.securities), (0..rows as i32).collect());
    out.f64("close", table.close).f64("change_pct", table.change_pct);
    answer(out.build().map(Arc::new), times(view, &[]))
}

fn all_daily(view: &View<'_>, days: usize) -> Result<Segment, SegmentError> {
    let listed = |sec: &SecId| !view.daily(*sec).is_empty();
    let securities: Vec<SecId> = view.mask().in_visible_order().iter().copied().filter(listed).collect();
    let mut table = tables::daily(view, &securities, days, true);
    let mut out = SegmentBuilder::new(table.len());
    let (security, change) = (std::mem::take(&mut table.security), std::mem::take(&mut table.change_pct));
    out.i64("date", dates(view, &table.day));
    bars(&mut out, table);
    out.text("stock_code", &codes(view, &securities), security).f64("change_pct", change);
    out.build()
}

fn answer(segment: Result<Arc<Segment>, SegmentError>, value: serde_json::Value) -> Result<HostAnswer, HostFault> {
    match segment {
        Ok(segment) => Ok(HostAnswer { value, segment: Some(segment) }),
        Err(_) => Err(fault::environment("the host has no memory or descriptor left for a table".to_owned())),
    }
}

impl ToolCalls<'_> {
    /// Daily bars of every security; one table for all sessions of the day.
    pub(super) fn all_daily(&self, days: i64) -> Result<HostAnswer, HostFault> {
        if !ALL_DAILY.contains(&days) {
            let (least, most) = ALL_DAILY.into_inner();
            return Err(fault::value(format!("market.get_all_daily: `days` must be between {least} and {most}")));
        }
        let (view, days) = (&self.view, days as usize);
        let segment = self.segments.get(Key::of(view, Table::AllDaily(days)), || all_daily(view, days));
        answer(segment, times(view, &["date"]))
    }

    /// Behavioural features; one table for all sessions of the day.
    pub(super) fn behavioral(&mut self) -> Result<HostAnswer, HostFault> {
        let (view, state) = (&self.view, &mut *self.state);
        let segment = self.segments.get(Key::of(view, Table::Behavioral), || {
            let table = tables::behavioral(view, state);
            let rows = table.securities.len();
            let mut out = SegmentBuilder::new(rows);
            out.text("stock_code", &codes(view, &table.securities), (0..rows as i32).collect());
            for (name, values) in table.numbers {
                out.f64(name, values);
            }
            out.i64("observations", table.observations);
            for (name, values) in table.flags {
                out.bool(name, values);
            }
            out.build()
        });
        answer(segment, times(view, &[]))
    }
}
