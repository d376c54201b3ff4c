//! Moments of exchange time as the tables write them: seconds since 1970-01-01 00:00 on the exchange's wall clock.
//!
//! A value that names no plausible moment is [`BAD`], never a guess.

use traderharness_market::{Day, Minute, Moment};

/// Seconds since 1970-01-01 00:00 exchange time.
pub(crate) type Seconds = i64;

/// No value.
pub(crate) const NULL: Seconds = i64::MIN;
/// A value that names no moment between 1980 and 2199.
pub(crate) const BAD: Seconds = i64::MIN + 1;
/// Seconds of a day.
pub(crate) const DAY: i64 = 86_400;
/// Exchange time is UTC+8 all year.
pub(crate) const EXCHANGE_OFFSET: i64 = 8 * 3_600;

/// 1980-01-01; the exchanges opened in 1990, older filings exist.
const FIRST: Seconds = 3_652 * DAY;
/// 2200-01-01.
const END: Seconds = 84_006 * DAY;

/// The value itself when it is plausible, else [`BAD`].
pub(crate) const fn checked(seconds: Seconds) -> Seconds {
    if seconds >= FIRST && seconds < END { seconds } else { BAD }
}

/// Day of a value; `None` for [`NULL`] and [`BAD`].
pub(crate) fn day(seconds: Seconds) -> Option<Day> {
    (seconds > BAD).then(|| Moment(seconds).day())
}

/// When a row of this publication time becomes visible: a bare date counts as 15:00 of that day (engine E2.4). `None` = never.
pub(crate) fn visible_from(seconds: Seconds) -> Option<Moment> {
    let day = day(seconds)?;
    Some(if is_date_only(seconds) { day.at(Minute::at(15, 0)) } else { Moment(seconds) })
}

/// True when the time of day is exactly midnight, which is how sources write a bare date.
pub(crate) const fn is_date_only(seconds: Seconds) -> bool {
    seconds.rem_euclid(DAY) == 0
}

/// Saturdays and Sundays; the exchanges have never traded on one.
pub(crate) const fn is_weekend(day: Day) -> bool {
    matches!((day.0 + 4).rem_euclid(7), 0 | 6)
}

/// Reads `2024-03-05`, `20240305`, `2024-03-05 15:40`, `2024-03-05T15:40:12.5`; blank text is [`NULL`], anything else [`BAD`].
pub(crate) fn parse(text: &str) -> Seconds {
    let text = text.trim();
    if text.is_empty() || text == "NaT" || text == "None" || text == "nan" {
        return NULL;
    }
    let bytes = text.as_bytes();
    if bytes.len() == 8 && bytes.iter().all(u8::is_ascii_digit) {
        let iso = format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]);
        return Day::parse(&iso).map_or(BAD, |d| checked(i64::from(d.0) * DAY));
    }
    let Some((date, rest)) = text.split_at_checked(10) else { return BAD };
    let Ok(day) = Day::parse(date) else { return BAD };
    let midnight = i64::from(day.0) * DAY;
    if rest.is_empty() {
        return checked(midnight);
    }
    match rest.strip_prefix([' ', 'T']).and_then(clock) {
        Some(seconds) => checked(midnight + seconds),
        None => BAD,
    }
}

fn clock(text: &str) -> Option<i64> {
    let whole = text.split_once('.').map_or(Some(text), |(whole, fraction)| {
        (!fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit())).then_some(whole)
    })?;
    let mut parts = whole.split(':');
    let mut part = |below: i64| {
        let digits = parts.next()?;
        let fits = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| digits.parse::<i64>().ok()).flatten().filter(|n| *n < below)
    };
    let (hour, minute) = (part(24)?, part(60)?);
    let second = if whole.len() > 5 { part(60)? } else { 0 };
    parts.next().is_none().then_some(hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_forms_sources_write() {
        let at = |text: &str| Moment(parse(text)).to_string();
        assert_eq!(at("2024-03-05"), "2024-03-05 00:00");
        assert_eq!(at("20240305"), "2024-03-05 00:00");
        assert_eq!(at(" 2024-03-05 15:40 "), "2024-03-05 15:40");
        assert_eq!(at("2024-03-05T15:40:12.250"), "2024-03-05 15:40");
        for empty in ["", "  ", "NaT", "None", "nan"] {
            assert_eq!(parse(empty), NULL, "{empty:?}");
        }
        for bad in [
            "2024-02-30",
            "2024-3-5",
            "0001-01-01",
            "2024-03-05 24:00",
            "2024-03-05 1:00",
            "2024-03-05x",
            "2024-03-05 15:40:",
            "２０２４",
        ] {
            assert_eq!(parse(bad), BAD, "{bad:?}");
        }
    }

    // engine E2.4
    #[test]
    fn a_bare_date_counts_as_the_close_and_a_time_as_itself() {
        let shown = |text: &str| visible_from(parse(text)).map(|m| m.to_string());
        assert_eq!(shown("2024-06-26").as_deref(), Some("2024-06-26 15:00"));
        assert_eq!(shown("2024-06-26 00:00:00").as_deref(), Some("2024-06-26 15:00"));
        assert_eq!(shown("2024-06-26 08:12").as_deref(), Some("2024-06-26 08:12"));
        assert_eq!(shown(""), None);
        assert_eq!(shown("unknown"), None);
    }

    #[test]
    fn weekends_are_saturday_and_sunday() {
        let weekend = |text: &str| is_weekend(Day::parse(text).unwrap());
        assert_eq!(["2024-06-28", "2024-06-29", "2024-06-30", "2024-07-01"].map(weekend), [false, true, true, false]);
    }

    #[test]
    fn the_bounds_are_the_days_they_say() {
        assert_eq!(Moment(FIRST).day().to_string(), "1980-01-01");
        assert_eq!(Moment(END).day().to_string(), "2200-01-01");
    }
}
