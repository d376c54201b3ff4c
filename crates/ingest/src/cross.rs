//! Faults that only show when tables are held against each other: the calendar, and 5-minute bars against daily bars.

use crate::bars::BarTable;
use crate::report::{FaultKind, Faults};
use traderharness_market::{Calendar, Day};

/// Bars of a whole day.
const BARS_A_DAY: usize = 48;
const HALF_TICK: f64 = 0.005 + 1e-9;

/// Trading days (engine E1.3): every day with an index bar or a daily bar of any security, from the first to the last day that has
/// bars of securities at all. Index history outside that span adds no trading day, because nothing could be traded on it.
pub(crate) fn calendar(
    daily: &BarTable,
    minute: Option<&BarTable>,
    index: Option<&BarTable>,
    daily_faults: &mut Faults,
    minute_faults: &mut Faults,
) -> Calendar {
    let sorted = |days: &[Day]| {
        let mut days = days.to_vec();
        days.sort_unstable();
        days.dedup();
        days
    };
    let daily_days = sorted(&daily.columns.day);
    let minute_days = minute.map(|m| sorted(&m.columns.day)).unwrap_or_default();
    let (Some(first), Some(last)) =
        (daily_days.iter().chain(&minute_days).min().copied(), daily_days.iter().chain(&minute_days).max().copied())
    else {
        return Calendar::default();
    };
    let index_days: Vec<Day> = index.map(|i| i.columns.day.clone()).unwrap_or_default();
    if let (Some(from), Some(to)) = (index_days.first(), index_days.last()) {
        for day in daily_days.iter().filter(|d| *d >= from && *d <= to && index_days.binary_search(d).is_err()) {
            daily_faults.at(FaultKind::DayWithoutIndex, (0, day.0, 0));
        }
    }
    let covered: Vec<Day> = index_days.into_iter().filter(|d| *d >= first && *d <= last).collect();
    for day in covered.iter().filter(|d| daily_days.binary_search(d).is_err()) {
        daily_faults.at(FaultKind::IndexDayWithoutBars, (0, day.0, 0));
    }
    let calendar = Calendar::new(covered.into_iter().chain(daily_days).collect());
    for day in minute_days.iter().filter(|d| !calendar.contains(**d)) {
        minute_faults.at(FaultKind::MinuteDayOutsideCalendar, (0, day.0, 0));
    }
    calendar
}

/// Holds the 5-minute bars of each security and day against its daily bar. Both tables are cleaned and share their codes.
pub(crate) fn minutes_against_daily(daily: &BarTable, minute: &BarTable, faults: &mut Faults) {
    for (i, code) in daily.codes.iter().enumerate() {
        let daily_rows = daily.offsets[i] as usize..daily.offsets[i + 1] as usize;
        let end = minute.offsets[i + 1] as usize;
        let mut start = minute.offsets[i] as usize;
        while start < end {
            let day = minute.columns.day[start];
            let stop = start + minute.columns.day[start..end].partition_point(|d| *d == day);
            if stop - start < BARS_A_DAY {
                faults.at(FaultKind::PartialMinuteDay, (*code, day.0, 0));
            }
            if let Ok(at) = daily.columns.day[daily_rows.clone()].binary_search(&day) {
                let row = daily_rows.start + at;
                let (prices, volume) = compare(daily, row, minute, start..stop);
                if prices {
                    faults.at(FaultKind::MinuteDailyPriceDiffers, (*code, day.0, 0));
                }
                if volume {
                    faults.at(FaultKind::MinuteDailyVolumeDiffers, (*code, day.0, 0));
                }
            }
            start = stop;
        }
    }
}

/// Whether prices, and whether volume, differ.
fn compare(daily: &BarTable, row: usize, minute: &BarTable, rows: std::ops::Range<usize>) -> (bool, bool) {
    let m = &minute.columns;
    // NaN takes no part: `f64::max` and `f64::min` pass it over, and a comparison with it is false.
    let open = m.open[rows.start];
    let close = m.close[rows.end - 1];
    let high = m.high[rows.clone()].iter().fold(f64::NAN, |a, b| a.max(*b));
    let low = m.low[rows.clone()].iter().fold(f64::NAN, |a, b| a.min(*b));
    let volume: f64 = m.volume[rows].iter().filter(|v| v.is_finite()).sum();
    let d = &daily.columns;
    let differs = [(open, d.open[row]), (high, d.high[row]), (low, d.low[row]), (close, d.close[row])]
        .iter()
        .any(|(a, b)| (a - b).abs() > HALF_TICK);
    (differs, (volume - d.volume[row]).abs() > 0.01 * d.volume[row])
}
