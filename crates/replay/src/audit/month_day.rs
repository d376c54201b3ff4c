//! A month and a day without a year, in digits: `03-14`, `3/14`. Must be told for a date by what stands beside it: a weekday, a time of day, or a
//! word for a date; two numbers alone may be a fraction, a range or a score.

use super::around::{alnum, amount_after, byte, digits, skip, value, word, word_before};
use super::dates::{Found, found, is_day};

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Whether a word is the name of a weekday or its short form.
fn is_weekday(word: &[u8]) -> bool {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let short =
        |name: &str| name.get(..3).is_some_and(is) || matches!(name, "tuesday" | "thursday") && name.get(..4).is_some_and(is);
    // `sat` and `sun` are words too.
    WEEKDAYS.iter().any(|name| is(name) || short(name) && word.first().is_some_and(u8::is_ascii_uppercase)) || is("thurs")
}

/// `03-14` and `3/14` from `at`, whose first digits end at `end`.
pub(super) fn month_day(text: &[u8], at: usize, end: usize) -> Found {
    let mark = byte(text, end).filter(|b| matches!(b, b'-' | b'/'))?;
    let stop = digits(text, end + 1);
    if !(1..=2).contains(&(stop - end - 1)) || !is_day(2024, value(text, at, end)?, value(text, end + 1, stop)?) {
        return None;
    }
    let more = matches!(byte(text, stop), Some(b'-' | b'/' | b'.' | b':' | b'_')) && alnum(text, stop + 1);
    let inside = matches!(at.checked_sub(1).and_then(|i| byte(text, i)), Some(b'-' | b'/' | b'_' | b'.' | b':'));
    if more || inside || alnum(text, stop) {
        return None;
    }
    let padded = end - at == 2 && stop - end == 3;
    let sure = weekday_before(text, at) || weekday_after(text, stop) || time_after(text, stop);
    let said = !amount_after(text, stop) && (said_before(text, at) || padded && mark == b'-' && on_before(text, at, end));
    (sure || said).then(|| found(stop, "month_day")).flatten()
}

/// Whether a text is nothing but a month and a day, both in two digits.
pub(super) fn is_month_day(text: &[u8]) -> bool {
    text.len() == 5
        && digits(text, 0) == 2
        && matches!(byte(text, 2), Some(b'-' | b'/'))
        && value(text, 0, 2).zip(value(text, 3, 5)).is_some_and(|(month, day)| is_day(2024, month, day))
}

/// `周四14日`, `14日（周四）`, `Thursday the 14th`: a day of a month that a weekday makes one of few.
pub(super) fn weekday_day(text: &[u8], at: usize, end: usize) -> Found {
    // What most numbers go on with is neither `日`, `号` nor the letters of an ordinal.
    if !matches!(byte(text, end)?, 0xe5 | 0xe6 | b's' | b'n' | b'r' | b't' | b'S' | b'N' | b'R' | b'T') {
        return None;
    }
    let day = value(text, at, end).filter(|day| (1..=31).contains(day))?;
    let rest = text.get(end..)?;
    if rest.starts_with("日".as_bytes()) || rest.starts_with("号".as_bytes()) {
        let stop = end + 3;
        return (cjk_weekday_before(text, at) || cjk_weekday_after(text, stop)).then(|| found(stop, "weekday_day")).flatten();
    }
    let ordinal = match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    };
    let stop = end + 2;
    if !rest.get(..2)?.eq_ignore_ascii_case(ordinal.as_bytes()) || alnum(text, stop) {
        return None;
    }
    let gap = at.checked_sub(1).filter(|i| byte(text, *i) == Some(b' '))?;
    let before = match word_before(text, gap) {
        word if word.eq_ignore_ascii_case(b"the") => gap.checked_sub(4)?,
        _ => gap,
    };
    weekday_before(text, before).then(|| found(stop, "weekday_day")).flatten()
}

/// Before blanks, commas and an opening bracket.
fn back(text: &[u8], mut at: usize) -> usize {
    for _ in 0..3 {
        let head = text.get(..at).unwrap_or_default();
        at -= match head.last() {
            Some(b' ' | b',' | b'(' | b'.' | b'/') => 1,
            _ if ["（", "，", "、"].iter().any(|sign| head.ends_with(sign.as_bytes())) => 3,
            _ => 0,
        };
    }
    at
}

/// After blanks, commas and an opening bracket.
fn forth(text: &[u8], mut at: usize) -> usize {
    for _ in 0..3 {
        let tail = text.get(at..).unwrap_or_default();
        at += match tail.first() {
            Some(b' ' | b',' | b'(') => 1,
            _ if ["（", "，", "、"].iter().any(|sign| tail.starts_with(sign.as_bytes())) => 3,
            _ => 0,
        };
    }
    at
}

fn weekday_before(text: &[u8], at: usize) -> bool {
    is_weekday(word_before(text, back(text, at))) || cjk_weekday_before(text, at)
}

fn weekday_after(text: &[u8], at: usize) -> bool {
    let next = forth(text, at);
    next > at && is_weekday(word(text, next)) || cjk_weekday_after(text, at)
}

const OF_WEEK: [&str; 8] = ["一", "二", "三", "四", "五", "六", "日", "天"];
const WEEK: [&str; 3] = ["周", "星期", "礼拜"];

fn cjk_weekday_before(text: &[u8], at: usize) -> bool {
    let head = text.get(..back(text, at)).unwrap_or_default();
    let Some(week) = OF_WEEK.iter().find_map(|day| head.strip_suffix(day.as_bytes())) else { return false };
    WEEK.iter().any(|name| week.ends_with(name.as_bytes()))
}

fn cjk_weekday_after(text: &[u8], at: usize) -> bool {
    let tail = text.get(forth(text, at)..).unwrap_or_default();
    let Some(day) = WEEK.iter().find_map(|name| tail.strip_prefix(name.as_bytes())) else { return false };
    OF_WEEK.iter().any(|of| day.starts_with(of.as_bytes()))
}

/// ` 09:30`
fn time_after(text: &[u8], at: usize) -> bool {
    let from = skip(text, at);
    let hour = digits(text, from);
    from > at
        && hour == from + 2
        && value(text, from, hour).is_some_and(|h| h < 24)
        && byte(text, hour) == Some(b':')
        && digits(text, hour + 1) == hour + 3
        && value(text, hour + 1, hour + 3).is_some_and(|m| m < 60)
}

/// `date: 03-14`, `日期：03-14`, `截至03-14`.
fn said_before(text: &[u8], at: usize) -> bool {
    const CJK: [&str; 9] = ["日期", "日期：", "日期为", "截至", "截止", "交易日", "时间", "时间：", "当日"];
    let head = text.get(..at).unwrap_or_default();
    let trimmed = head.strip_suffix(b" ").unwrap_or(head);
    let stop = trimmed.iter().rev().take(3).take_while(|b| matches!(b, b' ' | b':' | b'=' | b'"')).count();
    let name = word_before(trimmed, trimmed.len() - stop);
    let word = ["date", "dated", "day", "asof"].iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    word || CJK.iter().any(|word| trimmed.ends_with(word.as_bytes()))
}

/// `on 03-14`, `since 11-05`: one of the two must be padded, which no range is.
fn on_before(text: &[u8], at: usize, end: usize) -> bool {
    let padded = byte(text, at) == Some(b'0') || byte(text, end + 1) == Some(b'0');
    let blank = at.checked_sub(1).filter(|i| byte(text, *i) == Some(b' '));
    padded
        && blank.is_some_and(|i| {
            let word = word_before(text, i);
            ["on", "since", "until", "of", "by"].iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        })
}
