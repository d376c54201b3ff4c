//! Days and moments as a run shows them, `2024-06-26`, `2024-06-26 15:00`, `D-1`, `D-1 15:00`, so that they can be compared. No calendar
//! is known here: an absolute and a relative label have no order.

use std::cmp::Ordering;

/// A day or moment of one run in its visible form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MomentLabel {
    day: Day,
    /// Minute of the day; `None` for a day as a whole.
    minute: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    /// Calendar days from today.
    Relative(i32),
    /// Year, month and day of month in one number that orders as they do.
    Absolute(u32),
}

/// Two labels that have no order, or a text that is no label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LabelFault {
    /// Not a visible day or moment.
    #[error("it is no day or moment: `YYYY-MM-DD`, `D-3`, or one of these with ` HH:MM`")]
    Malformed,
    /// One is relative to today and the other is not.
    #[error("one is an absolute date and the other is relative to today")]
    Mixed,
}

impl MomentLabel {
    /// Reads a label.
    ///
    /// # Errors
    /// [`LabelFault::Malformed`].
    pub fn parse(text: &str) -> Result<Self, LabelFault> {
        Self::read(text).ok_or(LabelFault::Malformed)
    }

    fn read(text: &str) -> Option<Self> {
        let (day, time) = match text.split_once([' ', 'T']) {
            Some((day, time)) => (day, Some(time)),
            None => (text, None),
        };
        let number = |part: &str, digits: std::ops::RangeInclusive<usize>| -> Option<u32> {
            (digits.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse().ok()).flatten()
        };
        let day = match day.strip_prefix('D') {
            Some(rest) => {
                let days = i32::try_from(number(rest.get(1..)?, 1..=5)?).ok()?;
                match rest.as_bytes().first()? {
                    b'+' => Day::Relative(days),
                    b'-' => Day::Relative(-days),
                    _ => return None,
                }
            }
            None => {
                let mut parts = day.split('-');
                let (y, m, d) = (number(parts.next()?, 4..=4)?, number(parts.next()?, 2..=2)?, number(parts.next()?, 2..=2)?);
                let real = parts.next().is_none() && (1..=12).contains(&m) && (1..=31).contains(&d);
                real.then_some(Day::Absolute(y * 10_000 + m * 100 + d))?
            }
        };
        let minute = match time {
            None => None,
            Some(time) => {
                let (hour, rest) = time.split_once(':')?;
                let minute = rest.split(':').next()?;
                let (hour, minute) = (number(hour, 2..=2)?, number(minute, 2..=2)?);
                Some((hour < 24 && minute < 60).then_some(hour * 60 + minute)? as u16)
            }
        };
        Some(Self { day, minute })
    }

    /// Whether `self` is before `other`. A day as a whole and a moment of that day are equal: neither is known to be first.
    ///
    /// # Errors
    /// [`LabelFault::Mixed`] when only one of them is relative to today.
    pub fn order(self, other: Self) -> Result<Ordering, LabelFault> {
        let days = match (self.day, other.day) {
            (Day::Relative(a), Day::Relative(b)) => a.cmp(&b),
            (Day::Absolute(a), Day::Absolute(b)) => a.cmp(&b),
            _ => return Err(LabelFault::Mixed),
        };
        Ok(days.then(match (self.minute, other.minute) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => Ordering::Equal,
        }))
    }
}
