//! Dates that begin with a year: `2024-03-14`, `2024年3月14日`, `2024Q1`, `20240314`. Must leave a bare number alone.

use super::super::around::{after, before, digits_end, number_word_before, skip_blanks, unit_follows, word_at, word_before};
use super::super::dates::{day_label, half_label, month_label, quarter_label, year_label};
use super::{CJK_YEAR_AFTER, Found, RANGE_MARKS, Scan, YEAR_WORDS_AFTER, YEAR_WORDS_BEFORE, month_word};
use crate::Day;

impl Scan<'_> {
    pub(super) fn four(&self, at: usize, end: usize) -> Option<Found> {
        let year = self.year(self.value(at, end)?)?;
        // Inside `1.2024` or `12024` nothing is a year; after a letter only a whole date is.
        let decimal =
            matches!(before(self.text, at), Some('.' | ',')) && before(self.text, at - 1).is_some_and(|c| c.is_ascii_digit());
        if decimal {
            return None;
        }
        if let Some(found) = self.separated(year, end) {
            return Some(found);
        }
        if let Some(next) = self.eat(skip_blanks(self.text, end), "年") {
            return self.after_cjk_year(year, next);
        }
        if !self.free_left(at) {
            // `FY2024` is handled at its letters; `E2024` is an id.
            return self.event_year(at, year, end);
        }
        self.quarter_after_year(year, end)
            .or_else(|| self.year_then_month_word(year, end))
            .or_else(|| self.iso_week(year, end))
            .or_else(|| self.year_month(year, end))
            .or_else(|| self.year_span(at, year, end))
            .or_else(|| self.document_number(at, year, end))
            .or_else(|| self.bare_year(at, year, end))
    }

    /// `2024-03-14`, `2024/3/14`, `2024.3.14` and what follows.
    pub(super) fn separated(&self, year: i16, end: usize) -> Option<Found> {
        let mark = after(self.text, end).filter(|c| matches!(c, '-' | '/' | '.'))?;
        let month_end = digits_end(self.text, end + 1);
        if !(1..=2).contains(&(month_end - end - 1)) || after(self.text, month_end) != Some(mark) {
            return None;
        }
        let day_end = digits_end(self.text, month_end + 1);
        if !(1..=2).contains(&(day_end - month_end - 1)) {
            return None;
        }
        // `2024.3.14.5` is a version.
        if mark == '.' && self.rest(day_end).starts_with('.') && !self.no_digit(day_end + 1) {
            return None;
        }
        let day = self.of(year, self.value(end + 1, month_end)?, self.value(month_end + 1, day_end)?)?;
        Some(self.day_and_time(day, day_end))
    }

    /// `2024-03`, `2024/03`; with a dot it is a number.
    pub(super) fn year_month(&self, year: i16, end: usize) -> Option<Found> {
        let mark = after(self.text, end).filter(|c| matches!(c, '-' | '/'))?;
        let month_end = digits_end(self.text, end + 1);
        let digits = month_end - end - 1;
        let fits = digits == 2 || (digits == 1 && mark == '/');
        let free =
            self.no_alnum(month_end) && !matches!(after(self.text, month_end), Some('-' | '/') if !self.no_digit(month_end + 1));
        (fits && free).then(|| Some((month_end, self.month_of(year, self.value(end + 1, month_end)?)?))).flatten()
    }

    /// `2024-W11`, `2024W11-4`.
    pub(super) fn iso_week(&self, year: i16, end: usize) -> Option<Found> {
        let at = self.eat_any(end, &["-W", "W"])?;
        let week_end = digits_end(self.text, at);
        if week_end - at != 2 {
            return None;
        }
        let week = i8::try_from(self.value(at, week_end)?).ok()?;
        let monday = jiff::civil::ISOWeekDate::new(year, week, jiff::civil::Weekday::Monday).ok()?.date();
        let monday = Day::from_ymd(monday.year(), monday.month(), monday.day())?;
        let day_end = self.eat(week_end, "-").map(|d| (d, digits_end(self.text, d))).filter(|(d, e)| e - d == 1);
        if let Some((d, e)) = day_end
            && let Some(weekday @ 1..=7) = self.value(d, e)
        {
            return Some((e, day_label(monday.plus(weekday - 1), self.today)));
        }
        self.no_alnum(week_end).then(|| (week_end, day_label(monday, self.today)))
    }

    /// After `2024年`: month and day, quarter, half, or the year alone.
    pub(super) fn after_cjk_year(&self, year: i16, at: usize) -> Option<Found> {
        let next = skip_blanks(self.text, at);
        if let Some((month, month_end)) = self.small(next) {
            if let Some(after_month) = self.eat(skip_blanks(self.text, month_end), "月") {
                if let Some(found) = self.day_after_month(year, month, after_month) {
                    return Some(found);
                }
                return Some((self.eat(after_month, "份").unwrap_or(after_month), self.month_of(year, month)?));
            }
            // `2024年1-3月`
            if let Some(second) = self.eat_any(month_end, RANGE_MARKS)
                && let Some((last, last_end)) = self.small(second)
                && let Some(stop) = self.eat(last_end, "月")
            {
                return Some((stop, format!("{} to {}", self.month_of(year, month)?, self.month_of(year, last)?)));
            }
        }
        if let Some((quarter, stop)) = self.cjk_quarter(next) {
            return Some((stop, quarter_label(year, quarter, self.today)));
        }
        for (mark, half) in [("上半年", 1), ("下半年", 2)] {
            if let Some(stop) = self.eat(next, mark) {
                return Some((stop, half_label(year, half, self.today)));
            }
        }
        Some((at, format!("{}年", year_label(year, self.today))))
    }

    /// `一季度`, `第1季度`, `Q1`, and the head of `一季报`.
    pub(super) fn cjk_quarter(&self, at: usize) -> Option<(i8, usize)> {
        if let Some(stop) = self.eat_any(at, &["Q", "q"]) {
            let end = digits_end(self.text, stop);
            let quarter = self.value(stop, end).filter(|q| end - stop == 1 && (1..=4).contains(q))?;
            return Some((quarter as i8, end));
        }
        let start = self.eat(at, "第").unwrap_or(at);
        let (quarter, end) = self.small(start)?;
        let stop = self.eat(end, "季")?;
        (1..=4).contains(&quarter).then(|| (quarter as i8, self.eat(stop, "度").unwrap_or(stop)))
    }

    /// The day after `3月`, with a range (`14日至16日`, `14日至4月2日`) and a time.
    pub(super) fn day_after_month(&self, year: i16, month: i32, at: usize) -> Option<Found> {
        let (day, stop) = self.cjk_day(at)?;
        let first = self.of(year, month, day)?;
        if let Some(second) = self.eat_any(stop, RANGE_MARKS) {
            let joined = |label: String, end: usize| (end, format!("{} to {label}", day_label(first, self.today)));
            if let Some((last, end)) = self.cjk_day(second)
                && let Some(last) = self.of(year, month, last)
            {
                return Some(joined(day_label(last, self.today), end));
            }
            if let Some((last_month, month_end)) = self.small(second)
                && let Some(month_stop) = self.eat(month_end, "月")
                && let Some((last, end)) = self.cjk_day(month_stop)
                && let Some(last) = self.of(if last_month < month { year.saturating_add(1) } else { year }, last_month, last)
            {
                return Some(joined(day_label(last, self.today), end));
            }
        }
        Some(self.day_and_time(first, stop))
    }

    pub(super) fn cjk_day(&self, at: usize) -> Option<(i32, usize)> {
        let (day, end) = self.small(skip_blanks(self.text, at))?;
        self.eat_any(skip_blanks(self.text, end), &["日", "号"]).map(|stop| (day, stop))
    }

    /// `2024Q1`, `2024 Q1`, `2024-Q1`, `2024H1`, `2024E`.
    pub(super) fn quarter_after_year(&self, year: i16, end: usize) -> Option<Found> {
        let at = match after(self.text, end) {
            Some(' ' | '-' | '/') => end + 1,
            _ => end,
        };
        let letter = after(self.text, at)?.to_ascii_uppercase();
        if !letter.is_ascii_uppercase() {
            return None;
        }
        let number_end = digits_end(self.text, at + 1);
        if number_end == at + 2 && self.no_alnum(number_end) {
            let n = self.value(at + 1, number_end)? as i8;
            return match (letter, n) {
                ('Q', 1..=4) => Some((number_end, quarter_label(year, n, self.today))),
                ('H', 1..=2) => Some((number_end, half_label(year, n, self.today))),
                _ => None,
            };
        }
        // `2024E`, `2024A`: estimate and actual of a year.
        (at == end && matches!(letter, 'E' | 'A' | 'F') && self.no_alnum(at + 1)).then(|| (end, year_label(year, self.today)))
    }

    /// `2024 March`, `2024 Mar 14`.
    pub(super) fn year_then_month_word(&self, year: i16, end: usize) -> Option<Found> {
        let at = skip_blanks(self.text, end);
        let word = word_at(self.text, at);
        let month = month_word(word).filter(|_| at > end && word.starts_with(|c: char| c.is_ascii_uppercase()))?;
        let stop = at + word.len();
        let day_at = skip_blanks(self.text, stop);
        let day_end = digits_end(self.text, day_at);
        if day_at > stop
            && (1..=2).contains(&(day_end - day_at))
            && let Some(day) = self.of(year, month.into(), self.value(day_at, day_end)?)
        {
            return Some(self.day_and_time(day, self.ordinal_end(day_end)));
        }
        Some((stop, month_label(year, month, self.today)))
    }

    /// `2024-2025`, `2024/25`, `2024—2026年`.
    pub(super) fn year_span(&self, at: usize, year: i16, end: usize) -> Option<Found> {
        let second = self.eat_any(end, &["-", "/", "—", "–", "~", "至", "到"])?;
        let stop = digits_end(self.text, second);
        let last = match stop - second {
            4 => self.year(self.value(second, stop)?)?,
            2 if self.rest(end).starts_with('/') => year / 100 * 100 + self.value(second, stop)? as i16,
            _ => return None,
        };
        let (y, far) = (i32::from(self.today.ymd().0), i32::from(last) - i32::from(year));
        let near = |value: i16| (i32::from(value) - y).abs() <= 20;
        let plain = !matches!(before(self.text, at), Some('-' | '/')) && self.no_alnum(stop) && !unit_follows(self.text, stop);
        (plain && (1..=20).contains(&far) && near(year) && near(last))
            .then(|| (stop, format!("{} to {}", year_label(year, self.today), year_label(last, self.today))))
    }

    /// The year of a document: `〔2024〕123号`, `编号：2024-015`.
    pub(super) fn document_number(&self, at: usize, year: i16, end: usize) -> Option<Found> {
        let bracketed = matches!(before(self.text, at), Some('〔' | '[' | '［' | '【' | '(' | '（'))
            && matches!(after(self.text, end), Some('〕' | ']' | '］' | '】' | ')' | '）'));
        if bracketed {
            let close = end + after(self.text, end).map_or(0, char::len_utf8);
            let serial = skip_blanks(self.text, self.eat(close, "第").unwrap_or(close));
            let serial_end = digits_end(self.text, serial);
            let numbered = serial_end > serial && self.eat(skip_blanks(self.text, serial_end), "号").is_some();
            if numbered || before(self.text, at) == Some('〔') {
                return Some((end, year_label(year, self.today)));
            }
            return None;
        }
        let serial = self.eat(end, "-")?;
        let digits = digits_end(self.text, serial) - serial;
        let head = self.text[..at].trim_end_matches([' ', ':', '：']);
        let announced = ["编号", "公告", "临", "文号"].iter().any(|w| head.ends_with(w));
        (announced && (2..=4).contains(&digits)).then(|| (end, year_label(year, self.today)))
    }

    /// `WAIC2025`: an abbreviation of three capital letters or more, and a year that is about now. With fewer letters it is an id.
    pub(super) fn event_year(&self, at: usize, year: i16, end: usize) -> Option<Found> {
        let name = &self.text[..at];
        let letters = name.bytes().rev().take_while(u8::is_ascii_uppercase).count();
        let whole = !name[..at - letters].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        let alone =
            self.no_alnum(end) && !matches!(after(self.text, end), Some('-' | '_' | '/' | '.') if !self.no_alnum(end + 1));
        (letters >= 3 && whole && alone && self.about_now(year) && !unit_follows(self.text, end))
            .then(|| (end, year_label(year, self.today)))
    }

    /// Last year, this or the next, with one more on each side.
    fn about_now(&self, year: i16) -> bool {
        (i32::from(year) - i32::from(self.today.ymd().0)).abs() <= 2
    }

    /// `in 2024`, `2024 annual report`, `2024全年`.
    pub(super) fn bare_year(&self, at: usize, year: i16, end: usize) -> Option<Found> {
        let near = (i32::from(year) - i32::from(self.today.ymd().0)).abs() <= 30;
        let open = matches!(after(self.text, end), Some('%' | '％' | '.' | ',') if !self.no_digit(end + 1) || matches!(after(self.text, end), Some('%' | '％')));
        if !near || !self.no_alnum(end) || open || unit_follows(self.text, end) {
            return None;
        }
        let head = self.text[..at].trim_end_matches([' ', '-', '\'', '’']);
        let said_before = head.len() < at && {
            let word = word_before(head, head.len());
            YEAR_WORDS_BEFORE.iter().any(|w| w.eq_ignore_ascii_case(word)) || month_word(word).is_some()
        };
        let next = skip_blanks(self.text, end);
        let word = word_at(self.text, self.eat(next, "-").unwrap_or(next));
        let said_after = next > end && YEAR_WORDS_AFTER.iter().any(|w| w.eq_ignore_ascii_case(word));
        let cjk_after = self.eat_any(next, CJK_YEAR_AFTER).is_some();
        // A number that could be last year, this or the next, in front of a CJK word (`2025世界运动会`) or behind a name (`IMO 2025`).
        let now = self.about_now(year);
        // `“2025”字样`: in quotes a number that could be a year is one.
        let quoted = now
            && matches!(
                (before(self.text, at), after(self.text, end)),
                (Some('“'), Some('”')) | (Some('‘'), Some('’')) | (Some('"'), Some('"')) | (Some('「'), Some('」'))
            );
        let in_words = now && after(self.text, end).is_some_and(|c| matches!(c, '\u{4e00}'..='\u{9fff}'));
        let name = word_before(head, head.len());
        let named = now
            && self.text[head.len()..at] == *" "
            && name.len() > 1
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|b| b.is_ascii_alphabetic());
        (said_before || said_after || cjk_after || in_words || named || quoted).then(|| (end, year_label(year, self.today)))
    }

    /// `20240314`, `202403141030`, `20240314103000`, `20240314T103000Z`.
    pub(super) fn compact(&self, at: usize, end: usize) -> Option<Found> {
        let year = self.year(self.value(at, at + 4)?).filter(|y| *y >= 1950)?;
        let day = self.of(year, self.value(at + 4, at + 6)?, self.value(at + 6, at + 8)?)?;
        let left = match before(self.text, at) {
            Some(c) if c.is_ascii_alphanumeric() => false,
            Some('$' | '¥' | '￥' | '€' | '£' | '#' | '+') => false,
            Some('.' | ',') => !before(self.text, at - 1).is_some_and(|c| c.is_ascii_digit()),
            _ => true,
        };
        let stamped = self.eat(end, "T").filter(|t| end - at == 8 && !self.no_digit(*t));
        let right = stamped.is_some()
            || (self.no_alnum(end) && !matches!(after(self.text, end), Some('.' | ',') if !self.no_digit(end + 1)));
        if !left || !right || unit_follows(self.text, end) || number_word_before(self.text, at) {
            return None;
        }
        let clock = |from: usize, to: usize| -> Option<(i32, i32)> {
            let (hour, minute) = (self.value(from, from + 2)?, self.value(from + 2, from + 4)?);
            let second = if to - from == 6 { self.value(from + 4, from + 6)? } else { 0 };
            (hour < 24 && minute < 60 && second < 60 && (to - from == 4 || to - from == 6)).then_some((hour, minute))
        };
        if end - at > 8 {
            let (hour, minute) = clock(at + 8, end)?;
            return Some(self.zoned(day, hour, minute, end));
        }
        if let Some(from) = stamped
            && let Some((hour, minute)) = clock(from, digits_end(self.text, from))
        {
            return Some(self.zoned(day, hour, minute, digits_end(self.text, from)));
        }
        Some(self.day_and_time(day, end))
    }
}
