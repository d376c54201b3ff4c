//! Six-digit codes (engine E8.3). Must leave every number alone that cannot be told for a code.

use super::around::{alnum, amount_after, byte, digit, digits, is_number_word, number_word_before, value, word, word_before};
use super::finding::FindingKind;
use super::{Auditor, Form};
use std::collections::BTreeMap;

/// An exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exchange {
    /// Shanghai.
    Sh,
    /// Shenzhen.
    Sz,
    /// Beijing.
    Bj,
}

impl Exchange {
    /// The exchange of a six-digit code of a share, by its first digits; `None` for indices and funds.
    pub fn of(code: &str) -> Option<Self> {
        match code.as_bytes() {
            [b'6', b'0' | b'8', ..] => Some(Self::Sh),
            [b'0', b'0', ..] | [b'3', b'0', ..] => Some(Self::Sz),
            [b'4' | b'8', ..] | [b'9', b'2', ..] => Some(Self::Bj),
            _ => None,
        }
    }

    /// `SH`, `XSHG`, `SS` and the like.
    fn mark(word: &[u8]) -> Option<Self> {
        let is = |marks: &[&str]| marks.iter().any(|mark| word.eq_ignore_ascii_case(mark.as_bytes()));
        if is(&["sh", "xshg", "ss", "sse", "shse"]) {
            Some(Self::Sh)
        } else if is(&["sz", "xshe", "szse"]) {
            Some(Self::Sz)
        } else if is(&["bj", "xbse", "bse"]) {
            Some(Self::Bj)
        } else {
            None
        }
    }
}

/// Codes that are real.
pub(super) type Universe = BTreeMap<u32, Option<Exchange>>;

/// Whether the six digits from `at` to `end` are a code: which form, and where it begins and ends with its exchange.
pub(super) fn six(text: &[u8], at: usize, end: usize, rules: &Auditor, program: bool) -> Option<(usize, usize, Form)> {
    let digits_ = text.get(at..end).and_then(|d| std::str::from_utf8(d).ok())?;
    let number = value(text, at, end)?;
    let (left, before) = mark_before(text, at);
    let (right, after) = mark_after(text, end);
    if let Some(mark) = before.or(after) {
        let real = match rules.universe.get(&number) {
            Some(_) if rules.permuted => false,
            Some(exchange) => exchange.or_else(|| Exchange::of(digits_)) == Some(mark),
            // The code of a company that the dataset does not have; `000001.SH` is an index.
            None => Exchange::of(digits_) == Some(mark),
        };
        let (from, to) = (if before.is_some() { left } else { at }, if after.is_some() { right } else { end });
        return real.then_some((from, to, Form(FindingKind::Code, "with_exchange")));
    }
    let known = !rules.permuted && rules.universe.contains_key(&number);
    let quoted = matches!((byte(text, at.wrapping_sub(1)), byte(text, end)), (Some(b'"' | b'\''), Some(b'"' | b'\'')));
    (known && (!program || quoted) && alone(text, at, end)).then_some((at, end, Form(FindingKind::Code, "alone")))
}

/// Not part of a longer word, number, amount or id.
fn alone(text: &[u8], at: usize, end: usize) -> bool {
    let before = at.checked_sub(1).and_then(|i| byte(text, i));
    let left = match before {
        None => true,
        Some(b) if b.is_ascii_alphanumeric() => false,
        Some(b'_' | b'#' | b'$' | b'+' | b'@' | b'&') => false,
        Some(b'.' | b':') => !digit(text, at.wrapping_sub(2)),
        // Codes in a list.
        Some(b',') => !digit(text, at.wrapping_sub(2)) || six_before(text, at - 1),
        // In a path or an address, but not behind the name of an id.
        Some(b'/') if byte(text, at.wrapping_sub(2)).is_some_and(|b| b.is_ascii_alphabetic()) => {
            !std::str::from_utf8(word_before(text, at - 1)).is_ok_and(is_number_word)
        }
        Some(b'-' | b'/') => !alnum(text, at.wrapping_sub(2)) || six_before(text, at - 1),
        Some(_) => {
            !["¥", "￥", "€", "£", "−", "№"].iter().any(|sign| text.get(..at).is_some_and(|h| h.ends_with(sign.as_bytes())))
        }
    };
    let right = match byte(text, end) {
        None => true,
        Some(b) if b.is_ascii_alphanumeric() => false,
        Some(b'_' | b'%') => false,
        Some(b'.' | b':') => !digit(text, end + 1),
        Some(b',') => !digit(text, end + 1) || six_after(text, end + 1),
        Some(b'/') if byte(text, end + 1).is_some_and(|b| b.is_ascii_alphabetic()) => true,
        Some(b'-' | b'/') => !alnum(text, end + 1) || six_after(text, end + 1),
        Some(_) => true,
    };
    left && right && !amount_after(text, end) && !number_word_before(text, at)
}

fn six_before(text: &[u8], at: usize) -> bool {
    word_before(text, at).len() == 6 && (1..=6).all(|back| digit(text, at.wrapping_sub(back)))
}

fn six_after(text: &[u8], at: usize) -> bool {
    digits(text, at) - at == 6 && !alnum(text, at + 6)
}

/// `SH600519`, `sh.600519`.
fn mark_before(text: &[u8], at: usize) -> (usize, Option<Exchange>) {
    let stop = match byte(text, at.wrapping_sub(1)) {
        Some(b'.' | b':' | b'-' | b'_') => at - 1,
        _ => at,
    };
    let word = word_before(text, stop);
    let from = stop - word.len();
    let inside = matches!(byte(text, from.wrapping_sub(1)), Some(b'-' | b'_'));
    (from, (!inside).then(|| Exchange::mark(word)).flatten())
}

/// `600519.SH`, `600519.XSHG`, `600519 CH`.
fn mark_after(text: &[u8], end: usize) -> (usize, Option<Exchange>) {
    let start = match byte(text, end) {
        Some(b'.' | b':' | b'-' | b'_' | b' ') => end + 1,
        _ => end,
    };
    let name = word(text, start);
    let stop = start + name.len();
    let whole = !alnum(text, stop) && !alnum(text, end.wrapping_sub(7));
    if byte(text, end) == Some(b' ') && !matches!(name, b"SH" | b"SZ" | b"BJ" | b"CH") {
        return (end, None);
    }
    let digits = text.get(end.saturating_sub(6)..end).and_then(|d| std::str::from_utf8(d).ok()).unwrap_or_default();
    let mark = if name == b"CH" { Exchange::of(digits) } else { Exchange::mark(name) };
    (stop, mark.filter(|_| whole))
}
