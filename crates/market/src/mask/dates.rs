//! Labels of days and moments relative to today. Must never print an absolute date when dates are masked.

use crate::{Day, Minute, Moment};
use std::fmt::Write as _;

/// `D+0`, `D-21`, `D+3`: calendar days from `today` (engine E8.1).
pub(super) fn day_label(day: Day, today: Day) -> String {
    format!("D{:+}", day.days_since(today))
}

/// `D-6 10:30`; seconds are dropped.
pub(super) fn moment_label(moment: Moment, today: Day) -> String {
    let mut label = day_label(moment.day(), today);
    let _ = write!(label, " {}", moment.minute());
    label
}

/// Reads `D-21`, `D+0`, also in lower case. No other form, and nothing more than ten thousand days away.
pub(super) fn parse_day_label(text: &str, today: Day) -> Option<Day> {
    let rest = text.strip_prefix(['D', 'd'])?;
    let (sign, digits) = match rest.as_bytes().first()? {
        b'+' => (1, &rest[1..]),
        b'-' => (-1, &rest[1..]),
        _ => return None,
    };
    let plain = (1..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let days: i32 = plain.then(|| digits.parse().ok()).flatten()?;
    (days <= 99_999).then(|| today.plus(sign * days))
}

/// Reads `D-6 10:30`.
pub(super) fn parse_moment_label(text: &str, today: Day) -> Option<Moment> {
    let (day, time) = text.split_once(' ')?;
    Some(parse_day_label(day, today)?.at(parse_minute(time)?))
}

/// Reads `HH:MM`.
pub(super) fn parse_minute(text: &str) -> Option<Minute> {
    let (hour, minute) = text.split_once(':')?;
    let two =
        |part: &str| (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<u16>().ok()).flatten();
    let (hour, minute) = (two(hour)?, two(minute)?);
    (hour < 24 && minute < 60).then(|| Minute::at(hour, minute))
}

/// `M+0`, `M-4`: calendar months from today's month.
pub(super) fn month_label(year: i16, month: i8, today: Day) -> String {
    let (y, m, _) = today.ymd();
    format!("M{:+}", (i32::from(year) - i32::from(y)) * 12 + i32::from(month) - i32::from(m))
}

/// `Q+0`, `Q-2`: calendar quarters from today's quarter. `quarter` is 1 to 4.
pub(super) fn quarter_label(year: i16, quarter: i8, today: Day) -> String {
    let (y, m, _) = today.ymd();
    format!("Q{:+}", (i32::from(year) - i32::from(y)) * 4 + i32::from(quarter) - i32::from((m - 1) / 3 + 1))
}

/// `H+0`, `H-1`: half years from today's half. `half` is 1 or 2.
pub(super) fn half_label(year: i16, half: i8, today: Day) -> String {
    let (y, m, _) = today.ymd();
    format!("H{:+}", (i32::from(year) - i32::from(y)) * 2 + i32::from(half) - i32::from((m - 1) / 6 + 1))
}

/// `Y+0`, `Y-1`: calendar years from today's year.
pub(super) fn year_label(year: i16, today: Day) -> String {
    format!("Y{:+}", i32::from(year) - i32::from(today.ymd().0))
}

/// The day of this month and day of month that lies nearest to `today`; the earlier one when two are equally near.
pub(super) fn nearest(month: i8, day: i8, today: Day) -> Option<Day> {
    let year = today.ymd().0;
    // 29 February may be four years away (eight around 1900 and 2100).
    (year.saturating_sub(8)..=year.saturating_add(8))
        .filter_map(|y| Day::from_ymd(y, month, day))
        .min_by_key(|d| (d.days_since(today).abs(), *d))
}

/// The year in which this month lies nearest to today's month; the earlier one when two are equally near.
pub(super) fn nearest_month_year(month: i8, today: Day) -> i16 {
    let (y, m, _) = today.ymd();
    let ahead = (i32::from(month) - i32::from(m)).rem_euclid(12);
    let shift = if ahead < 6 { ahead } else { ahead - 12 };
    ((i32::from(y) * 12 + i32::from(m) - 1 + shift).div_euclid(12)) as i16
}
