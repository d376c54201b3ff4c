//! Dates that begin with a day, a month number or a quarter: `14 March 2024`, `3月14日`, `3/14/2024`, `1Q24`.

use super::super::around::{after, before, digits_end, skip_blanks, unit_follows, word_at};
use super::super::dates::{day_label, half_label, month_label, nearest, nearest_month_year, quarter_label};
use super::{DAY_HEADS, DAY_TAILS, DURATION_HEADS, DURATION_TAILS, Found, RANGE_MARKS, SOME_DAY, Scan, month_word};
use crate::Day;

impl Scan<'_> {
    pub(super) fn short(&self, at: usize, end: usize) -> Option<Found> {
        let value = self.value(at, end)?;
        if let Some(found) = self.numeric_end_year(at, end) {
            return Some(found);
        }
        if !self.free_left(at) {
            return None;
        }
        let gap = skip_blanks(self.text, end);
        if let Some(next) = self.eat(gap, "月") {
            return self.month_without_year(value, next);
        }
        if let Some(next) = self.eat(end, "日") {
            return self.day_of_some_month(at, value, next);
        }
        if end - at == 2
            && let Some(next) = self.eat(end, "年")
        {
            // `24年3月`, `24年一季度`; `24年` alone is a duration.
            let year = self.year(2000 + value)?;
            let (stop, label) = self.after_cjk_year(year, next)?;
            return (stop > next).then_some((stop, label));
        }
        if let Some(second) = self.eat_any(end, RANGE_MARKS)
            && let Some((last, last_end)) = self.small(second)
            && let Some(stop) = self.eat(last_end, "月")
            && (1..=12).contains(&value)
            && (1..=12).contains(&last)
            && self.cjk_day(stop).is_none()
        {
            let year = nearest_month_year(last as i8, self.today);
            let first_year = if value > last { year - 1 } else { year };
            return Some((stop, format!("{} to {}", self.month_of(first_year, value)?, self.month_of(year, last)?)));
        }
        if let Some(second) = self.eat_any(end, RANGE_MARKS)
            && let Some((last, stop)) = self.cjk_day(second)
            && self.rest(stop).starts_with(|c: char| !c.is_ascii_alphanumeric())
            && value < last
            && self.day_of_some_month(at, last, stop).is_some()
        {
            // `22至23日分赴`
            return Some((stop, format!("{SOME_DAY} to {SOME_DAY}")));
        }
        self.quarter_then_year(at, value, end).or_else(|| self.day_then_month_word(value, end))
    }

    /// `17日晚`, `本月13日`, `17日至18日凌晨`: a day of the month as news tell it. `14日均线` and `连续3日` are durations.
    pub(super) fn day_of_some_month(&self, at: usize, day: i32, next: usize) -> Option<Found> {
        let head = &self.text[..at];
        if !(1..=31).contains(&day) || DURATION_HEADS.iter().any(|h| head.ends_with(h)) {
            return None;
        }
        let stop = self.weekday_after(next);
        // The second day of a range is told by its first.
        if let Some(second) = self.eat_any(stop, RANGE_MARKS)
            && let Some((last, end)) = self.cjk_day(second)
            && (1..=31).contains(&last)
            && self.eat_any(end, DURATION_TAILS).is_none()
        {
            return Some((end, format!("{SOME_DAY} to {SOME_DAY}")));
        }
        // `...。26日，俄军` begins a sentence.
        let begins = head.chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '。' | '；' | '！' | '？' | '】'));
        let told = (begins && self.eat_any(stop, &["，", ","]).is_some())
            || stop > next
            || self.eat_any(stop, DAY_TAILS).is_some()
            || DAY_HEADS.iter().any(|h| head.ends_with(h));
        told.then(|| (stop, SOME_DAY.to_owned()))
    }

    /// `3月14日`, `3月份`, `3月`: the nearest one.
    pub(super) fn month_without_year(&self, month: i32, at: usize) -> Option<Found> {
        let number = i8::try_from(month).ok().filter(|m| (1..=12).contains(m))?;
        if let Some((day, _)) = self.cjk_day(at) {
            let first = nearest(number, i8::try_from(day).ok()?, self.today)?;
            return self.day_after_month(first.ymd().0, month, at);
        }
        // `3月期` is a term of three months.
        if self.eat_any(at, &["期", "龄", "薪", "均", "线"]).is_some() {
            return None;
        }
        let year = nearest_month_year(number, self.today);
        Some((self.eat(at, "份").unwrap_or(at), month_label(year, number, self.today)))
    }

    /// `3/14/2024`, `14.03.2024`, `14-03-2024`.
    pub(super) fn numeric_end_year(&self, at: usize, end: usize) -> Option<Found> {
        let mark = after(self.text, end).filter(|c| matches!(c, '-' | '/' | '.'))?;
        let second = digits_end(self.text, end + 1);
        if !(1..=2).contains(&(second - end - 1)) || after(self.text, second) != Some(mark) {
            return None;
        }
        let year_end = digits_end(self.text, second + 1);
        if year_end - second - 1 != 4
            || before(self.text, at) == Some(mark)
            || before(self.text, at).is_some_and(|c| c.is_ascii_digit())
        {
            return None;
        }
        let year = self.year(self.value(second + 1, year_end)?)?;
        let (a, b) = (self.value(at, end)?, self.value(end + 1, second)?);
        // With slashes the month is usually first, otherwise the day; the other order when that gives no day.
        let (first, other) = if mark == '/' { ((a, b), (b, a)) } else { ((b, a), (a, b)) };
        let day = self.of(year, first.0, first.1).or_else(|| self.of(year, other.0, other.1))?;
        Some(self.day_and_time(day, year_end))
    }

    /// `1Q24`, `1Q 2024`, `2H24`, and `24Q1`, `24H1`.
    pub(super) fn quarter_then_year(&self, at: usize, value: i32, end: usize) -> Option<Found> {
        let letter = after(self.text, end)?.to_ascii_uppercase();
        if !matches!(letter, 'Q' | 'H') {
            return None;
        }
        let label = |year: i16, n: i32| match (letter, n) {
            ('Q', 1..=4) => Some(quarter_label(year, n as i8, self.today)),
            ('H', 1..=2) => Some(half_label(year, n as i8, self.today)),
            _ => None,
        };
        if end - at == 1 {
            let (year, stop) = self.loose_year(end + 1)?;
            return Some((stop, label(year, value)?));
        }
        let stop = digits_end(self.text, end + 1);
        let n = self.value(end + 1, stop)?;
        (stop == end + 2 && self.no_alnum(stop)).then(|| Some((stop, label(self.year(2000 + value)?, n)?))).flatten()
    }

    /// A year of two or four digits after a quarter: `24`, `'24`, ` 2024`, ` of 2024`, ` FY24`.
    pub(super) fn loose_year(&self, at: usize) -> Option<(i16, usize)> {
        let mut start = self.eat_any(at, &[" of ", ", ", " FY", " '", " ’", " ", "'", "’", "-", "/", "FY", "CY"]).unwrap_or(at);
        start = self.eat(start, "FY").unwrap_or(start);
        let end = digits_end(self.text, start);
        let value = self.value(start, end)?;
        // Two digits after a blank may be anything: `Q1 24 shops`.
        let near = self.text[at..start].contains(['\'', '’', '-', '/', 'Y']) || start == at;
        let year = match end - start {
            4 => self.year(value)?,
            2 if near => 2000 + value as i16,
            _ => return None,
        };
        let letter = after(self.text, end).is_some_and(|c| matches!(c, 'E' | 'A' | 'F')) && self.no_alnum(end + 1);
        (letter || self.no_alnum(end)).then_some((year, end))
    }

    /// `14 March 2024`, `14th of March`, `14-Mar-2024`, `14-16 March 2024`.
    pub(super) fn day_then_month_word(&self, day: i32, end: usize) -> Option<Found> {
        let mut at = self.ordinal_end(end);
        let mut last = None;
        if let Some(second) = self.eat_any(at, &["-", "–", " to ", " - "])
            && let stop = digits_end(self.text, second)
            && (1..=2).contains(&(stop - second))
        {
            last = Some(self.value(second, stop)?);
            at = self.ordinal_end(stop);
        }
        let word_at_ = self.eat_any(at, &[" of ", "-", " ", ""])?;
        let word = word_at(self.text, word_at_);
        let month = month_word(word)?;
        let capital = word.starts_with(|c: char| c.is_ascii_uppercase());
        let stop = word_at_ + word.len();
        let stop = self.eat(stop, ".").filter(|_| word.len() <= 4).unwrap_or(stop);
        let (year, stop) = match self.year_after_day(stop) {
            Some((year, stop)) => (Some(year), stop),
            None if capital && self.no_alnum(word_at_ + word.len()) => (None, word_at_ + word.len()),
            None => return None,
        };
        self.english_day(year, month, day, last, stop)
    }

    /// `2024`, `, 2024`, `-2024`, `-24` after day and month.
    pub(super) fn year_after_day(&self, at: usize) -> Option<(i16, usize)> {
        let start = self.eat_any(at, &[", ", " of ", " '", " ", ",", "-", "/"])?;
        let end = digits_end(self.text, start);
        let short = end - start == 2 && matches!(after(self.text, at), Some('-' | '/')) || self.text[at..start].ends_with('\'');
        let value = self.value(start, end)?;
        let year = match end - start {
            4 => self.year(value)?,
            2 if short => 2000 + value as i16,
            _ => return None,
        };
        (self.no_alnum(end) && !unit_follows(self.text, end)).then_some((year, end))
    }

    pub(super) fn english_day(&self, year: Option<i16>, month: i8, day: i32, last: Option<i32>, stop: usize) -> Option<Found> {
        let number = i8::try_from(day).ok()?;
        let first = match year {
            Some(year) => Day::from_ymd(year, month, number)?,
            None => nearest(month, number, self.today)?,
        };
        match last.and_then(|last| self.of(first.ymd().0, month.into(), last)) {
            Some(last) => Some((stop, format!("{} to {}", day_label(first, self.today), day_label(last, self.today)))),
            None if last.is_some() => None,
            None => Some(self.day_and_time(first, stop)),
        }
    }

    pub(super) fn ordinal_end(&self, at: usize) -> usize {
        self.eat_any(at, &["st", "nd", "rd", "th"]).filter(|end| self.no_alnum(*end)).unwrap_or(at)
    }
}
