//! Civil time of the exchange: [`Day`], [`Minute`], [`Moment`]. No time zone: China has had one offset since 1991 and the data is exchange time.

use jiff::civil::Date;
use std::fmt;

/// A civil day, stored as days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Day(pub i32);

/// The text is not a day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a date; write it as YYYY-MM-DD, for example 2024-03-05")]
pub struct DayError {
    /// What was given.
    pub text: String,
}

const EPOCH: Date = Date::constant(1970, 1, 1);

impl Day {
    /// Day of a year, month and day of month; `None` when there is no such day.
    pub fn from_ymd(year: i16, month: i8, day: i8) -> Option<Self> {
        Date::new(year, month, day).ok().map(Self::from_date)
    }

    /// Days since the epoch of a date that exists, for constants. Counts from March so that a leap day ends its year.
    pub(crate) const fn of_civil(year: i32, month: i32, day: i32) -> Self {
        let shifted = if month <= 2 { year - 1 } else { year };
        let era = shifted.div_euclid(400);
        let year_of_era = shifted.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        // 719,468 days lie between 0000-03-01 and 1970-01-01.
        Self(era * 146_097 + day_of_era - 719_468)
    }

    fn from_date(date: Date) -> Self {
        Self(date.since(EPOCH).map_or(0, |span| span.get_days()))
    }

    fn date(self) -> Date {
        // `Span::days` panics outside its range; a day no calendar has reads as the epoch.
        jiff::Span::new().try_days(self.0).and_then(|span| EPOCH.checked_add(span)).unwrap_or(EPOCH)
    }

    /// Parses exactly `YYYY-MM-DD` (engine E1.4: `2024-3-5` and `2024-02-30` are errors).
    ///
    /// # Errors
    /// [`DayError`] when the text has another form or names no day.
    pub fn parse(text: &str) -> Result<Self, DayError> {
        let fault = || DayError { text: text.to_owned() };
        let bytes = text.as_bytes();
        let shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(i, b)| if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() });
        if !shaped {
            return Err(fault());
        }
        let number = |range: std::ops::Range<usize>| text[range].parse::<i16>().ok();
        let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else { return Err(fault()) };
        Self::from_ymd(year, month as i8, day as i8).ok_or_else(fault)
    }

    /// Year, month, day of month.
    pub fn ymd(self) -> (i16, i8, i8) {
        let date = self.date();
        (date.year(), date.month(), date.day())
    }

    /// Saturdays and Sundays.
    pub const fn is_weekend(self) -> bool {
        // Day 0 was a Thursday.
        matches!(self.0.rem_euclid(7), 2 | 3)
    }

    /// Calendar days from `earlier` to this day; negative when `earlier` is later.
    pub const fn days_since(self, earlier: Self) -> i32 {
        self.0 - earlier.0
    }

    /// The day `days` calendar days later.
    #[must_use]
    pub const fn plus(self, days: i32) -> Self {
        Self(self.0 + days)
    }

    /// The moment at `minute` of this day.
    pub const fn at(self, minute: Minute) -> Moment {
        Moment(self.0 as i64 * 86_400 + minute.0 as i64 * 60)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (y, m, d) = self.ymd();
        write!(f, "{y:04}-{m:02}-{d:02}")
    }
}

/// Minute of the day, 0..1440. Bars are labelled with their END minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Minute(pub u16);

impl Minute {
    /// Minute of `hour`:`minute`.
    pub const fn at(hour: u16, minute: u16) -> Self {
        Self(hour * 60 + minute)
    }
}

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// A second of exchange time, as seconds since 1970-01-01 00:00 exchange time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Moment(pub i64);

impl Moment {
    /// Civil day.
    pub const fn day(self) -> Day {
        Day(self.0.div_euclid(86_400) as i32)
    }
    /// Minute of the day, seconds dropped.
    pub const fn minute(self) -> Minute {
        Minute((self.0.rem_euclid(86_400) / 60) as u16)
    }
}

impl fmt::Display for Moment {
    /// `YYYY-MM-DD HH:MM`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.day(), self.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_only_whole_real_days() {
        assert_eq!(Day::parse("2024-02-29").unwrap().to_string(), "2024-02-29");
        assert_eq!(Day::parse("1970-01-01").unwrap(), Day(0));
        assert_eq!(Day::parse("2025-07-14").unwrap(), Day(20_283));
        for bad in ["2024-02-30", "2024-3-5", "2024-13-01", "", "20240305", "2024-03-05 ", "２０２４-03-05", "2024-0３-5"] {
            assert!(Day::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn weekends_are_saturdays_and_sundays() {
        let weekends = |from: &str| (0..7).filter(|n| Day::parse(from).unwrap().plus(*n).is_weekend()).collect::<Vec<_>>();
        // Both from a Monday, on both sides of 1970.
        assert_eq!(weekends("2024-03-04"), [5, 6]);
        assert_eq!(weekends("1969-12-22"), [5, 6]);
    }

    #[test]
    fn moments_split_into_day_and_minute() {
        let m = Day::parse("2024-06-26").unwrap().at(Minute::at(15, 40));
        assert_eq!(m.to_string(), "2024-06-26 15:40");
        assert_eq!((m.day(), m.minute()), (Day::parse("2024-06-26").unwrap(), Minute(940)));
    }
}
