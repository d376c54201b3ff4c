//! Dates that begin with a word or a CJK numeral: `March 14, 2024`, `Q1 2024`, `FY2024`, `二〇二四年`, `周四（3月14日）`.

use super::super::around::{after, digits_end, skip_blanks, unit_follows, word_at, word_before};
use super::super::dates::{half_label, month_label, nearest_month_year, quarter_label, year_label};
use super::{Found, Scan, cjk_digit, month_word, ordinal_word, weekday_word};

impl Scan<'_> {
    pub(super) fn word(&self, at: usize, end: usize) -> Option<Found> {
        if !self.free_left(at) {
            return None;
        }
        let word = &self.text[at..end];
        if let Some(month) = month_word(word) {
            return self.month_word_first(at, word, month, end);
        }
        if weekday_word(word) {
            let next = self.eat_any(end, &[".,", ",", ".", ""]).map(|n| skip_blanks(self.text, n))?;
            let stop = digits_end(self.text, next);
            let inner = word_at(self.text, next);
            return if stop > next {
                self.number(next, stop)
            } else {
                month_word(inner).and_then(|m| self.month_word_first(next, inner, m, next + inner.len()))
            };
        }
        let upper = word.to_ascii_uppercase();
        match upper.as_str() {
            "Q" | "H" => {
                let stop = digits_end(self.text, end);
                let n = self.value(end, stop).filter(|_| stop == end + 1)?;
                let (year, stop) = self.loose_year(stop)?;
                match (upper.as_str(), n) {
                    ("Q", 1..=4) => Some((stop, quarter_label(year, n as i8, self.today))),
                    ("H", 1..=2) => Some((stop, half_label(year, n as i8, self.today))),
                    _ => None,
                }
            }
            "FY" | "CY" => {
                let start = self.eat_any(end, &[" ", "'", "-"]).unwrap_or(end);
                let stop = digits_end(self.text, start);
                let value = self.value(start, stop)?;
                let year = match stop - start {
                    4 => self.year(value)?,
                    2 if start == end || self.rest(end).starts_with('\'') => 2000 + value as i16,
                    _ => return None,
                };
                let letter = after(self.text, stop).is_some_and(|c| matches!(c, 'E' | 'A' | 'F')) && self.no_alnum(stop + 1);
                (letter || self.no_alnum(stop)).then(|| (stop, year_label(year, self.today)))
            }
            _ => self.ordinal_period(word, end),
        }
    }

    /// `first quarter of 2024`, `second half 2024`.
    pub(super) fn ordinal_period(&self, word: &str, end: usize) -> Option<Found> {
        let n = ordinal_word(word)?;
        let at = skip_blanks(self.text, self.eat(end, "-").unwrap_or(end));
        let period = word_at(self.text, at);
        let year_at = at + period.len();
        let start = self.eat_any(year_at, &[" of fiscal ", " of ", ", ", " "])?;
        let stop = digits_end(self.text, start);
        let year = self.year(self.value(start, stop).filter(|_| stop - start == 4)?)?;
        if !self.no_alnum(stop) {
            return None;
        }
        match (period.to_ascii_lowercase().as_str(), n) {
            ("quarter", _) => Some((stop, quarter_label(year, n, self.today))),
            ("half", 1..=2) => Some((stop, half_label(year, n, self.today))),
            _ => None,
        }
    }

    /// `March 14, 2024`, `March 14`, `March 2024`, `Mar-24`, `in March`.
    pub(super) fn month_word_first(&self, at: usize, word: &str, month: i8, end: usize) -> Option<Found> {
        let capital = word.starts_with(|c: char| c.is_ascii_uppercase());
        let dotted = self.eat(end, ".").filter(|_| word.len() <= 4).unwrap_or(end);
        let next = self.eat_any(dotted, &[" of ", ", ", " '", " ’", " ", "-", "/", "'"]).unwrap_or(dotted);
        let stop = digits_end(self.text, next);
        let digits = stop - next;
        let value = self.value(next, stop);
        if digits == 4
            && next > end
            && let Some(year) = value.and_then(|v| self.year(v))
            && self.no_alnum(stop)
            && !unit_follows(self.text, stop)
        {
            return Some((stop, month_label(year, month, self.today)));
        }
        if digits == 2 && capital && self.text[dotted..next].contains(['-', '\'', '’', '/']) && self.no_alnum(stop) {
            return Some((stop, month_label(2000 + value? as i16, month, self.today)));
        }
        // `March 14,000 troops` and `May 30 percent` name no day.
        let grouped = self.rest(stop).starts_with([',', '.']) && !self.no_digit(stop + 1);
        if (1..=2).contains(&digits) && next > end && !grouped {
            let day = value?;
            let mut day_end = self.ordinal_end(stop);
            let mut last = None;
            if let Some(second) = self.eat_any(day_end, &["-", "–", " to ", " - "])
                && let second_end = digits_end(self.text, second)
                && (1..=2).contains(&(second_end - second))
            {
                last = Some(self.value(second, second_end)?);
                day_end = self.ordinal_end(second_end);
            }
            if let Some((year, year_end)) = self.year_after_day(day_end) {
                return self.english_day(Some(year), month, day, last, year_end);
            }
            if capital && self.no_alnum(day_end) && !unit_follows(self.text, day_end) {
                return self.english_day(None, month, day, last, day_end);
            }
            return None;
        }
        let head = self.text[..at].trim_end_matches([' ', '-']);
        let said = [
            "in", "since", "by", "from", "until", "till", "through", "during", "early", "mid", "late", "of", "to", "before",
            "after",
        ];
        let named = capital && (word.len() != 3 || word == "May");
        let leading = head.len() < at && said.iter().any(|w| w.eq_ignore_ascii_case(word_before(head, head.len())));
        (named && leading && self.no_alnum(end))
            .then(|| (end, month_label(nearest_month_year(month, self.today), month, self.today)))
    }

    pub(super) fn cjk_number_end(&self, at: usize) -> usize {
        let run = self.rest(at).chars().take(8).take_while(|c| cjk_digit(*c).is_some() || matches!(c, '十' | '廿'));
        at + run.map(char::len_utf8).sum::<usize>()
    }

    /// Value of a CJK number up to 31, written with tens (`十四`, `二十一`).
    pub(super) fn cjk_value(&self, at: usize, end: usize) -> Option<i32> {
        let chars: Vec<char> = self.text[at..end].chars().collect();
        match chars[..] {
            ['十'] => Some(10),
            [c] => cjk_digit(c),
            ['十', c] => Some(10 + cjk_digit(c)?),
            ['廿', c] => Some(20 + cjk_digit(c)?),
            [c, '十'] => Some(cjk_digit(c)? * 10),
            [c, '十', d] => Some(cjk_digit(c)? * 10 + cjk_digit(d)?),
            _ => None,
        }
        .filter(|v| *v <= 31)
    }

    /// `二〇二四年三月十四日`, `三月十四日`.
    pub(super) fn cjk_number(&self, at: usize, end: usize) -> Option<Found> {
        if let Some(next) = self.eat(end, "年") {
            let mut year = 0;
            let mut digits = 0;
            for c in self.text[at..end].chars() {
                year = year * 10 + cjk_digit(c)?;
                digits += 1;
            }
            let year = (digits == 4).then(|| self.year(year)).flatten()?;
            return self.after_cjk_year(year, next);
        }
        let next = self.eat(end, "月")?;
        self.month_without_year(self.cjk_value(at, end)?, next)
    }

    /// End of `星期四`, `周四`, `礼拜四` at `at`.
    pub(super) fn cjk_weekday(&self, at: usize) -> Option<usize> {
        let stop = self.eat_any(at, &["星期", "周", "礼拜"])?;
        self.eat_any(stop, &["一", "二", "三", "四", "五", "六", "日", "天"])
    }

    /// `星期四，3月14日`, `周四（3月14日）`: the weekday goes with the date.
    pub(super) fn cjk_weekday_then_date(&self, at: usize) -> Option<Found> {
        let stop = self.cjk_weekday(at)?;
        let next = self.eat_any(stop, &["，", ", ", ",", " ", "（", "("]).unwrap_or(stop);
        let end = digits_end(self.text, next);
        let (end, label) = if end > next {
            self.number(next, end)?
        } else {
            let end = self.cjk_number_end(next);
            if end == next {
                return None;
            }
            self.cjk_number(next, end)?
        };
        let bracketed = self.text[stop..next].ends_with(['（', '(']);
        Some((if bracketed { self.eat_any(end, &["）", ")"])? } else { end }, label))
    }
}
