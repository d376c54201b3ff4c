//! What follows a day: weekday, time, half of the day, zone. Must turn every zone into exchange time.

use super::super::around::{after, digits_end, skip_blanks, word_at};
use super::super::dates::{day_label, moment_label};
use super::{Found, Scan, weekday_word};
use crate::{Day, Moment};

impl Scan<'_> {
    /// The weekday and the time that belong to a day which ends at `at`.
    pub(super) fn day_and_time(&self, day: Day, at: usize) -> Found {
        let at = self.weekday_after(at);
        let gap = match after(self.text, at) {
            Some('T' | 't') if !self.no_digit(at + 1) => at + 1,
            Some(' ' | '\t') => {
                let next = skip_blanks(self.text, at);
                self.eat(next, "at ").unwrap_or(next)
            }
            _ => at,
        };
        let hour_end = digits_end(self.text, gap);
        let minute_at = self.eat_any(hour_end, &[":", "："]);
        if let Some(minute_at) = minute_at.filter(|_| (1..=2).contains(&(hour_end - gap)))
            && let minute_end = digits_end(self.text, minute_at)
            && minute_end - minute_at == 2
            && let (Some(hour), Some(minute)) = (self.value(gap, hour_end), self.value(minute_at, minute_end))
            && hour < 24
            && minute < 60
        {
            let mut end = minute_end;
            if let Some(second) = self.eat_any(end, &[":", "："]).filter(|s| digits_end(self.text, *s) - s == 2) {
                end = digits_end(self.text, second);
                if let Some(fraction) = self.eat_any(end, &[".", ","]).filter(|f| !self.no_digit(*f)) {
                    end = digits_end(self.text, fraction);
                }
            }
            return self.zoned(day, hour, minute, end);
        }
        (at, day_label(day, self.today))
    }

    pub(super) fn weekday_after(&self, at: usize) -> usize {
        let next = skip_blanks(self.text, at);
        let open = self.eat_any(next, &["（", "(", "，", ", "]);
        let start = open.unwrap_or(next);
        let bracket = open.is_some_and(|o| self.text[next..o].starts_with(['（', '(']));
        let stop = self.cjk_weekday(start).or_else(|| {
            let word = word_at(self.text, start);
            (start > at && weekday_word(word)).then(|| start + word.len())
        });
        match stop {
            Some(stop) if bracket => self.eat_any(stop, &["）", ")"]).unwrap_or(at),
            Some(stop) => stop,
            None => at,
        }
    }

    /// Half of the day and time zone after a time; the label is exchange time (UTC+8).
    pub(super) fn zoned(&self, day: Day, hour: i32, minute: i32, at: usize) -> Found {
        let mut end = at;
        let mut hour = hour;
        let next = skip_blanks(self.text, end);
        if let Some(stop) = self.eat_any(next, &["a.m.", "p.m.", "AM", "PM", "am", "pm"]).filter(|s| self.no_alnum(*s)) {
            let afternoon = self.rest(next).starts_with(['p', 'P']);
            hour = hour % 12 + if afternoon { 12 } else { 0 };
            end = stop;
        }
        let mut shift = 0;
        if let Some((minutes, stop)) = self.zone(end) {
            shift = 480 - minutes;
            end = stop;
        }
        let moment = Moment(i64::from(day.0) * 86_400 + i64::from(hour) * 3_600 + i64::from(minute + shift) * 60);
        (end, moment_label(moment, self.today))
    }

    /// Minutes east of UTC of a zone at `at`.
    pub(super) fn zone(&self, at: usize) -> Option<(i32, usize)> {
        if let Some(stop) = self.eat_any(at, &["Z", "z"]).filter(|s| self.no_alnum(*s)) {
            return Some((0, stop));
        }
        let next = skip_blanks(self.text, at);
        if let Some(found) = self.offset(next) {
            return Some(found);
        }
        let open = self.eat_any(next, &["(", "（"]).unwrap_or(next);
        let close = |at: usize| if open > next { self.eat_any(at, &[")", "）"]) } else { Some(at) };
        if let Some(stop) = self.eat_any(open, &["北京时间", "Beijing time", "Beijing Time", "China Standard Time"]) {
            return Some((480, close(stop)?));
        }
        const ZONES: &[(&str, i32)] = &[
            ("UTC", 0),
            ("GMT", 0),
            ("CST", 480),
            ("BJT", 480),
            ("HKT", 480),
            ("SGT", 480),
            ("JST", 540),
            ("KST", 540),
            ("EST", -300),
            ("EDT", -240),
            ("ET", -300),
            ("PST", -480),
            ("PDT", -420),
            ("BST", 60),
            ("CET", 60),
            ("CEST", 120),
        ];
        let word = word_at(self.text, open);
        let (_, minutes) = ZONES.iter().find(|(name, _)| *name == word)?;
        let stop = open + word.len();
        if *minutes == 0
            && let Some((offset, end)) = self.offset(stop)
        {
            return Some((offset, close(end)?));
        }
        Some((*minutes, close(stop)?))
    }

    /// `+08:00`, `+0800`, `-5`.
    pub(super) fn offset(&self, at: usize) -> Option<(i32, usize)> {
        let sign = match after(self.text, at)? {
            '+' => 1,
            '-' | '\u{2212}' => -1,
            _ => return None,
        };
        let start = at + after(self.text, at)?.len_utf8();
        let end = digits_end(self.text, start);
        let value = self.value(start, end)?;
        let (hours, minutes, end) = match end - start {
            4 => (value / 100, value % 100, end),
            1 | 2 => match self.eat(end, ":").filter(|m| digits_end(self.text, *m) - m == 2) {
                Some(m) => (value, self.value(m, m + 2)?, m + 2),
                None => (value, 0, end),
            },
            _ => return None,
        };
        (hours <= 14 && minutes < 60 && self.no_alnum(end)).then_some((sign * (hours * 60 + minutes), end))
    }
}
