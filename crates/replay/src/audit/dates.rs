//! Absolute dates (engine E8.4), found without knowing what today is. Must leave amounts, versions, digests and ids alone.
//!
//! Written apart from the mask on purpose: what one of the two does not see, the other may.

use super::Form;
use super::around::{
    alnum, amount_after, byte, decimal_before, digit, digits, free, number_word_before, skip, value, word, word_before,
};
use super::finding::FindingKind;
use super::month_day::{month_day, weekday_day};

const fn date(detail: &'static str) -> Option<Form> {
    Some(Form(FindingKind::Date, detail))
}

/// A form and where it ends.
pub(super) type Found = Option<(usize, Form)>;

pub(super) fn found(end: usize, detail: &'static str) -> Found {
    Some((end, date(detail)?))
}

const MONTHS: [&str; 12] =
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];

/// Month of an English name or its short form, in any case.
fn month(word: &[u8]) -> Option<u32> {
    if !(3..=9).contains(&word.len()) {
        return None;
    }
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let at = MONTHS.iter().position(|name| is(name) || name.get(..3).is_some_and(is) || (*name == "september" && is("sept")))?;
    Some(at as u32 + 1)
}

pub(super) const fn is_year(value: u32) -> bool {
    value >= 1980 && value <= 2069
}

/// Whether the calendar has the day.
pub(super) fn is_day(year: u32, month: u32, day: u32) -> bool {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let longest = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    day >= 1 && day <= longest
}

/// A date that begins with the digits from `at` to `end`.
pub(super) fn number(text: &[u8], at: usize, end: usize) -> Found {
    // `FY24` and its like end in a Y, whatever stands between.
    let fy = |back: usize| matches!(byte(text, at.wrapping_sub(back)), Some(b'Y' | b'y'));
    if matches!(end - at, 2 | 4)
        && (fy(1) || fy(2))
        && let Some(found) = fiscal(text, at, end)
    {
        return Some(found);
    }
    match end - at {
        4 => year_first(text, at, end),
        8 | 12 | 14 => compact(text, at, end),
        1 | 2 => short(text, at, end),
        _ => None,
    }
}

/// `20240314`, `202403141030`, `20240314T103000`.
fn compact(text: &[u8], at: usize, end: usize) -> Found {
    let (year, month, day) = (value(text, at, at + 4)?, value(text, at + 4, at + 6)?, value(text, at + 6, at + 8)?);
    let clock = end - at == 8 || (value(text, at + 8, at + 10)? < 24 && value(text, at + 10, at + 12)? < 60);
    let stamped = byte(text, end) == Some(b'T') && digit(text, end + 1);
    let decimal = matches!(byte(text, end), Some(b'.' | b',')) && digit(text, end + 1);
    let right = stamped || !alnum(text, end) && !decimal;
    let plain = !amount_after(text, end) && !number_word_before(text, at);
    (is_year(year) && is_day(year, month, day) && clock && free(text, at) && right && plain)
        .then(|| found(end, "compact_day"))
        .flatten()
}

fn year_first(text: &[u8], at: usize, end: usize) -> Found {
    let year = value(text, at, end)?;
    if !is_year(year) || decimal_before(text, at) {
        return None;
    }
    let mark = byte(text, end);
    if let Some(mark @ (b'-' | b'/' | b'.' | b'_')) = mark {
        let month_end = digits(text, end + 1);
        let day_end = digits(text, month_end + 1);
        let (m, d) = (month_end - end - 1, day_end.saturating_sub(month_end + 1));
        if byte(text, month_end) == Some(mark) && (1..=2).contains(&m) && (1..=2).contains(&d) {
            let version = mark == b'.' && byte(text, day_end) == Some(b'.') && digit(text, day_end + 1);
            let real = is_day(year, value(text, end + 1, month_end)?, value(text, month_end + 1, day_end)?);
            if real && !version && !(mark == b'.' && alnum(text, at.wrapping_sub(1))) {
                return found(day_end, "iso_day");
            }
        }
    }
    if text.get(skip(text, end)..)?.starts_with("年".as_bytes()) {
        return found(after_cjk_year(text, skip(text, end) + 3), "cjk_year");
    }
    if !free(text, at) {
        return None;
    }
    let gap = end + usize::from(matches!(mark, Some(b' ' | b'-' | b'/')));
    // `2024Q1`, `2024-H1`
    if matches!(byte(text, gap), Some(b'Q' | b'q' | b'H' | b'h'))
        && matches!(byte(text, gap + 1), Some(b'1'..=b'4'))
        && !alnum(text, gap + 2)
    {
        return found(gap + 2, "quarter");
    }
    if matches!(mark, Some(b'E' | b'A' | b'F')) && !alnum(text, end + 1) {
        return found(end + 1, "year");
    }
    // `2024-W11`
    let week = end + usize::from(mark == Some(b'-'));
    if byte(text, week) == Some(b'W') && digits(text, week + 1) - week == 3 {
        return found(week + 3, "iso_week");
    }
    if let Some(mark @ (b'-' | b'/')) = mark {
        let month_end = digits(text, end + 1);
        let wide = month_end - end - 1;
        let fits = (wide == 2 || wide == 1 && mark == b'/') && (1..=12).contains(&value(text, end + 1, month_end)?);
        let more = matches!(byte(text, month_end), Some(b'-' | b'/')) && digit(text, month_end + 1);
        if fits && !more && !alnum(text, month_end) && !matches!(byte(text, at.wrapping_sub(1)), Some(b'-' | b'/')) {
            return found(month_end, "month");
        }
    }
    let next = skip(text, end);
    let word = word(text, next);
    if next > end && month(word).is_some() && word.first().is_some_and(u8::is_ascii_uppercase) {
        return found(next + word.len(), "english");
    }
    // `〔2024〕12号`
    if text.get(..at)?.ends_with("〔".as_bytes()) && text.get(end..)?.starts_with("〕".as_bytes()) {
        return found(end, "document_year");
    }
    said_year(text, at, end, year).then(|| found(end, "year")).flatten()
}

/// Whether words make a bare number a year: `in 2024`, `2024 annual report`.
fn said_year(text: &[u8], at: usize, end: usize, year: u32) -> bool {
    const BEFORE: &[&str] = &["in", "since", "during", "year", "fiscal", "fy", "early", "mid", "late", "calendar", "until", "of"];
    const AFTER: &[&str] = &["annual", "fiscal", "report", "results", "earnings", "outlook", "guidance", "interim"];
    // `of 2000` is an amount more often than a year.
    if year.is_multiple_of(50)
        || alnum(text, end)
        || amount_after(text, end)
        || matches!(byte(text, end), Some(b'.' | b',' | b':')) && digit(text, end + 1)
    {
        return false;
    }
    let one_of = |words: &[&str], word: &[u8]| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    let blank = matches!(byte(text, at.wrapping_sub(1)), Some(b' ' | b'-'));
    let before = blank && one_of(BEFORE, word_before(text, at - 1)) && !number_word_before(text, at);
    // A sum of 2024 CNY and a lot of 2024 shares end in their unit; a year ends its sentence.
    let next = skip(text, end);
    let after = next > end && one_of(AFTER, word(text, next));
    let cjk =
        ["财年", "全年", "年度", "春节"].iter().any(|w| text.get(next..).is_some_and(|rest| rest.starts_with(w.as_bytes())));
    before || after || cjk
}

/// One or two digits first: `3月14日`, `14 March 2024`, `3/14/2024`, `1Q24`.
fn short(text: &[u8], at: usize, end: usize) -> Found {
    // Most numbers end in what no date goes on with.
    let next = byte(text, end)?;
    let lead = matches!(byte(text, at.wrapping_sub(1)), Some(b'Q' | b'q' | b'H'));
    if lead && end == at + 1 && !alnum(text, at.wrapping_sub(2)) {
        return quarter_first(text, at, end);
    }
    if !(next >= 0x80 || next.is_ascii_alphabetic() || matches!(next, b'-' | b'/' | b'.' | b' ' | b'\t')) || !free(text, at) {
        return None;
    }
    let first = value(text, at, end)?;
    if let Some(mark @ (b'-' | b'/' | b'.')) = byte(text, end) {
        let second = digits(text, end + 1);
        let year_end = digits(text, second + 1);
        if (1..=2).contains(&(second - end - 1)) && byte(text, second) == Some(mark) && year_end.saturating_sub(second + 1) == 4 {
            let (year, other) = (value(text, second + 1, year_end)?, value(text, end + 1, second)?);
            let real = is_year(year) && (is_day(year, first, other) || is_day(year, other, first));
            if real && byte(text, at.wrapping_sub(1)) != Some(mark) {
                return found(year_end, "day_month_year");
            }
        }
    }
    if let Some(found) = month_day(text, at, end).or_else(|| weekday_day(text, at, end)) {
        return Some(found);
    }
    let next = skip(text, end);
    let rest = text.get(next..)?;
    if rest.starts_with("月".as_bytes()) {
        return cjk_month(text, first, next + 3);
    }
    // `24年3月`, `24年一季度`
    if end - at == 2 && rest.starts_with("年".as_bytes()) {
        let part = skip(text, next + 3);
        let stop = digits(text, part);
        let month = (1..=2).contains(&(stop - part)) && text.get(stop..)?.starts_with("月".as_bytes());
        let quarter = ["一季", "二季", "三季", "四季", "第", "上半年", "下半年"]
            .iter()
            .any(|w| text.get(part..).is_some_and(|r| r.starts_with(w.as_bytes())));
        return (month || quarter).then(|| found(after_cjk_year(text, next + 3), "cjk_year")).flatten();
    }
    // `1Q24`, `2H 2024`, `24Q1`
    if matches!(byte(text, end), Some(b'Q' | b'q' | b'H')) {
        let wide = matches!(byte(text, end), Some(b'Q' | b'q'));
        if end - at == 1
            && (1..=if wide { 4 } else { 2 }).contains(&first)
            && let Some(stop) = loose_year(text, end + 1)
        {
            return found(stop, "quarter");
        }
        let one = matches!(byte(text, end + 1), Some(b'1'..=b'4')) && !alnum(text, end + 2);
        if end - at == 2 && one && (10..=40).contains(&first) {
            return found(end + 2, "quarter");
        }
    }
    day_word(text, first, end)
}

/// `Q1 2024`, `H1'24`: the digit after the letter.
fn quarter_first(text: &[u8], at: usize, end: usize) -> Found {
    let most = if byte(text, at.wrapping_sub(1)) == Some(b'H') { b'2' } else { b'4' };
    let fits = byte(text, at).is_some_and(|b| (b'1'..=most).contains(&b));
    let stop = loose_year(text, end).filter(|_| fits)?;
    found(stop, "quarter")
}

/// `FY2024`, `FY'24`: the digits after the letters.
fn fiscal(text: &[u8], at: usize, end: usize) -> Found {
    let gap = usize::from(matches!(byte(text, at.wrapping_sub(1)), Some(b' ' | b'\'' | b'-')));
    let name = word_before(text, at - gap);
    let fits = match end - at {
        4 => is_year(value(text, at, end)?),
        _ => gap == 0 || byte(text, at - 1) == Some(b'\''),
    };
    let letter = matches!(byte(text, end), Some(b'E' | b'A' | b'F')) && !alnum(text, end + 1);
    (fits && matches!(name, b"FY" | b"CY" | b"fy") && (letter || !alnum(text, end))).then(|| found(end, "year")).flatten()
}

/// `14 March 2024`, `14th of March`, `14-Mar-24`.
fn day_word(text: &[u8], day: u32, end: usize) -> Found {
    let ordinal =
        ["st", "nd", "rd", "th"].iter().any(|s| text.get(end..end + 2).is_some_and(|w| w.eq_ignore_ascii_case(s.as_bytes())));
    let at = end + if ordinal { 2 } else { 0 };
    let from = [&b" of "[..], b" ", b"-", b""].into_iter().find(|s| text.get(at..).is_some_and(|rest| rest.starts_with(s)))?;
    let start = at + from.len();
    let name = word(text, start);
    let month = month(name)?;
    let stop = start + name.len();
    let capital = name.first().is_some_and(u8::is_ascii_uppercase);
    // `14Mar2024`
    let tight = Some(digits(text, stop))
        .filter(|end| *end == stop + 4 && from.is_empty() && value(text, stop, *end).is_some_and(is_year));
    let year = year_after(text, stop).or(tight);
    let whole = !alnum(text, stop);
    (day <= 31 && is_day(2024, month, day) && (year.is_some() || capital && whole && (name.len() > 3 || !from.is_empty())))
        .then(|| found(year.unwrap_or(stop), "english"))
        .flatten()
}

/// The year after a day or a month: ` 2024`, `, 2024`, `-24`.
fn year_after(text: &[u8], at: usize) -> Option<usize> {
    let gap = [&b", "[..], b" of ", b". ", b" '", b" ", b",", b"-", b"/", b"'"]
        .into_iter()
        .find(|s| text.get(at..).is_some_and(|r| r.starts_with(s)))?;
    let start = at + gap.len();
    let stop = digits(text, start);
    let fits = match stop - start {
        4 => is_year(value(text, start, stop)?),
        2 => matches!(gap.last(), Some(b'-' | b'/' | b'\'')),
        _ => false,
    };
    (fits && !alnum(text, stop) && !amount_after(text, stop)).then_some(stop)
}

/// A year of two or four digits after a quarter.
fn loose_year(text: &[u8], at: usize) -> Option<usize> {
    let gap = [&b" of "[..], b" FY", b" '", b", ", b" ", b"'", b"-", b"/", b"FY"]
        .into_iter()
        .find(|s| text.get(at..).is_some_and(|r| r.starts_with(s)));
    let start = at + gap.map_or(0, |gap| gap.len());
    let stop = digits(text, start);
    let tight = gap.is_none_or(|gap| gap.last() != Some(&b' '));
    let fits = match stop - start {
        4 => is_year(value(text, start, stop)?),
        2 => tight && (10..=40).contains(&value(text, start, stop)?),
        _ => false,
    };
    let letter = matches!(byte(text, stop), Some(b'E' | b'A' | b'F')) && !alnum(text, stop + 1);
    (fits && (letter || !alnum(text, stop))).then_some(stop)
}

/// A date that begins with the month from `at`.
pub(super) fn english(text: &[u8], at: usize) -> Found {
    if !free(text, at) {
        return None;
    }
    let name = word(text, at);
    let end = at + name.len();
    let month = month(name)?;
    let capital = name.first().is_some_and(u8::is_ascii_uppercase);
    let dotted = end + usize::from(name.len() <= 4 && byte(text, end) == Some(b'.'));
    if let Some(stop) = year_after(text, dotted).filter(|stop| capital || stop - dotted > 3) {
        return found(stop, "english");
    }
    let start = skip(text, dotted);
    let stop = digits(text, start);
    let grouped = matches!(byte(text, stop), Some(b',' | b'.')) && digit(text, stop + 1);
    if start == end || !(1..=2).contains(&(stop - start)) || grouped || !is_day(2024, month, value(text, start, stop)?) {
        return None;
    }
    let ordinal =
        ["st", "nd", "rd", "th"].iter().any(|s| text.get(stop..stop + 2).is_some_and(|w| w.eq_ignore_ascii_case(s.as_bytes())));
    let stop = stop + if ordinal { 2 } else { 0 };
    if let Some(year) = year_after(text, stop) {
        return found(year, "english");
    }
    // `may 30` is no date, `May 30 percent` neither.
    (capital && !alnum(text, stop) && !amount_after(text, stop)).then(|| found(stop, "english")).flatten()
}

/// End of the month and day after `2024年`, which are of one date with it.
fn after_cjk_year(text: &[u8], at: usize) -> usize {
    let start = skip(text, at);
    let stop = digits(text, start);
    let month =
        if (1..=2).contains(&(stop - start)) { value(text, start, stop).map(|m| (m, stop)) } else { cjk_small(text, start) };
    let Some((month, stop)) = month else { return at };
    let next = skip(text, stop);
    if !text.get(next..).is_some_and(|rest| rest.starts_with("月".as_bytes())) {
        return at;
    }
    cjk_month(text, month, next + 3).map_or(at, |(end, _)| end)
}

/// After `3月`: a day, or the month alone.
fn cjk_month(text: &[u8], month: u32, at: usize) -> Found {
    if !(1..=12).contains(&month) {
        return None;
    }
    let start = skip(text, at);
    let stop = digits(text, start);
    let day = if stop > start { value(text, start, stop).map(|day| (day, stop)) } else { cjk_small(text, start) };
    if let Some((day, stop)) = day
        && let Some(rest) = text.get(skip(text, stop)..)
        && (rest.starts_with("日".as_bytes()) || rest.starts_with("号".as_bytes()))
        && is_day(2024, month, day)
    {
        return found(skip(text, stop) + 3, "cjk_day");
    }
    // `3月期` is a term.
    let term = ["期", "龄", "薪", "均", "线"].iter().any(|w| text.get(at..).is_some_and(|rest| rest.starts_with(w.as_bytes())));
    (!term).then(|| found(at, "cjk_month")).flatten()
}

/// `二〇二四年`, `三月十四日`: a CJK numeral at `at`.
pub(super) fn cjk(text: &[u8], at: usize) -> Found {
    let mut end = at;
    let (mut year, mut count) = (0, 0);
    while let Some(digit) = cjk_digit(text, end)
        && count < 5
    {
        year = year * 10 + digit;
        count += 1;
        end += 3;
    }
    if count == 4 && is_year(year) && text.get(end..)?.starts_with("年".as_bytes()) {
        return found(after_cjk_year(text, end + 3), "cjk_year");
    }
    let (month, stop) = cjk_small(text, at)?;
    // `十三月`, and the `三` of `二十三`: only whole numbers.
    let inside = at >= 3 && (cjk_digit(text, at - 3).is_some() || text.get(at - 3..at) == Some("十".as_bytes()));
    if inside || !text.get(stop..)?.starts_with("月".as_bytes()) || !(1..=12).contains(&month) {
        return None;
    }
    let (day, stop) = cjk_small(text, stop + 3)?;
    let rest = text.get(stop..)?;
    ((rest.starts_with("日".as_bytes()) || rest.starts_with("号".as_bytes())) && is_day(2024, month, day))
        .then(|| found(stop + 3, "cjk_day"))
        .flatten()
}

/// Whether a CJK numeral stands at `at`. Asked for a third of all CJK characters.
pub(super) fn is_numeral(text: &[u8], at: usize) -> bool {
    matches!(
        text.get(at..).unwrap_or_default(),
        [0xe4, 0xb8, 0x80 | 0x83 | 0x89, ..]
            | [0xe4, 0xba, 0x8c | 0x94, ..]
            | [0xe4, 0xb9, 0x9d, ..]
            | [0xe5, 0x9b, 0x9b, ..]
            | [0xe5, 0x85, 0xab | 0xad, ..]
            | [0xe5, 0x8d, 0x81, ..]
            | [0xe3, 0x80, 0x87, ..]
            | [0xe9, 0x9b, 0xb6, ..]
            | [0xe2, 0x97, 0x8b, ..]
    )
}

fn cjk_digit(text: &[u8], at: usize) -> Option<u32> {
    let all = ["〇", "一", "二", "三", "四", "五", "六", "七", "八", "九", "零", "○"];
    let bytes = text.get(at..at + 3)?;
    all.iter().position(|c| c.as_bytes() == bytes).map(|i| if i > 9 { 0 } else { i as u32 })
}

/// A CJK number up to 31: value and end.
fn cjk_small(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let ten = |at: usize| text.get(at..at + 3) == Some("十".as_bytes());
    let (head, mut end) = match cjk_digit(text, at) {
        Some(digit) => (digit, at + 3),
        None if ten(at) => (1, at),
        None => return None,
    };
    if !ten(end) {
        return (end > at).then_some((head, end));
    }
    end += 3;
    Some(match cjk_digit(text, end) {
        Some(digit) => (head * 10 + digit, end + 3),
        None => (head * 10, end),
    })
}
