//! Names with something between their characters: `贵 州 茅 台`, `贵·州·茅·台`, `贵州 茅台`. Must leave names alone that words only happen to make
//! beside each other.

use super::around::{alnum, byte};

/// Characters put together at a time.
const MOST: usize = 64;
/// Characters that are put together again with the ones after them: longer than a name is.
const AGAIN: usize = 16;
/// Longest gap, in separators.
const GAP: usize = 3;

/// A stretch of text without what stands between its characters.
#[derive(Debug, Default)]
pub(super) struct Squeezed {
    pub(super) text: String,
    /// For each character: where it stands here, and where it begins and ends in the text.
    places: Vec<(usize, usize, usize)>,
}

impl Squeezed {
    /// Where the characters from `start` to `end` stand in the text, when together they are a name that somebody took apart.
    pub(super) fn apart(&self, text: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
        let from = self.places.partition_point(|(at, ..)| *at < start);
        let to = self.places.partition_point(|(at, ..)| *at < end);
        let part = self.places.get(from..to)?;
        let (first, last) = (part.first()?, part.last()?);
        let gaps = part.windows(2).filter(|pair| pair[0].2 != pair[1].1).count();
        let lines = text.get(first.1..last.2)?.contains(&b'\n');
        let spelled = gaps + 1 == part.len();
        let fits = match part.len() {
            0 | 1 => false,
            // Two words may end and begin with the two characters: they must stand alone.
            2 => spelled && !lines && !touched(text, first.1, last.2),
            3 => spelled,
            _ => gaps > 0 && (spelled || !lines),
        };
        fits.then_some((first.1, last.2))
    }
}

/// Whether something stands beside without a gap.
fn touched(text: &[u8], from: usize, to: usize) -> bool {
    let before = from.checked_sub(1).is_some_and(|at| alnum(text, at) || byte(text, at).is_some_and(|b| b >= 0x80));
    // What is wide and no separator is a character of a word.
    before && separator(text, from.saturating_sub(3)).is_none() && separator(text, from.saturating_sub(2)).is_none()
        || alnum(text, to)
        || is_cjk(text, to)
}

/// Whether a character of three bytes that names are written in begins at `at`.
fn is_cjk(text: &[u8], at: usize) -> bool {
    match byte(text, at) {
        Some(0xe4..=0xe9) => true,
        // From U+3400.
        Some(0xe3) => byte(text, at + 1).is_some_and(|b| b >= 0x90),
        _ => false,
    }
}

/// End of the separator at `at`.
fn separator(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at..).unwrap_or_default() {
        [b' ' | b'\t' | b'-' | b'_' | b'.' | b'/' | b'|' | b'*' | b'+' | b'~' | b'\\' | b'\n' | b'\r', ..] => Some(at + 1),
        // Middle dots and bullets, and the blanks of typesetters.
        [0xc2, 0xb7, ..] => Some(at + 2),
        [0xe2, 0x80, 0x80..=0x8a | 0xa2 | 0xa7, ..] | [0xe3, 0x80, 0x80, ..] | [0xe3, 0x83, 0xbb, ..] => Some(at + 3),
        _ => None,
    }
}

/// End of the gap at `at`, when it is one.
fn gap(text: &[u8], at: usize) -> Option<usize> {
    let mut end = separator(text, at)?;
    for _ in 1..GAP {
        end = separator(text, end).unwrap_or(end);
    }
    Some(end)
}

/// Every stretch of characters with gaps between them.
pub(super) fn stretches(text: &str, mut on: impl FnMut(&Squeezed)) {
    let bytes = text.as_bytes();
    let mut squeezed = Squeezed::default();
    let mut at = 0;
    while let Some(next) = wide(bytes, at) {
        at = next;
        if !is_cjk(bytes, at) {
            at += 1;
            continue;
        }
        at += 3;
        // Nearly every character is followed by the next one.
        while matches!(byte(bytes, at), Some(0xe4..=0xe9)) {
            at += 3;
        }
        if gap(bytes, at).is_some_and(|end| is_cjk(bytes, end)) {
            let from = begin(bytes, at - 3);
            let end = squeeze(text, from, &mut squeezed);
            on(&squeezed);
            // The last characters may begin a name that goes on; whatever comes, this goes forward.
            let again = squeezed.places.len().saturating_sub(AGAIN);
            let more = squeezed.places.get(again).filter(|_| squeezed.places.len() == MOST).map(|(_, from, _)| *from);
            at = more.unwrap_or(end).max(at);
        }
    }
}

/// The next byte that is not ASCII.
fn wide(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let high = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        if high != 0 {
            return Some(at + high.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?.iter().position(|b| *b >= 0x80)?;
    Some(at + rest)
}

/// Where the word that `at` ends begins, and the letters before it, as far as a name goes back.
fn begin(bytes: &[u8], at: usize) -> usize {
    let mut from = at;
    for _ in 0..AGAIN {
        let back = from.saturating_sub(3);
        if from >= 3 && is_cjk(bytes, back) {
            from = back;
        } else if from >= 1 && alnum(bytes, from - 1) {
            from -= 1;
        } else if from >= 2 && alnum(bytes, from - 2) && separator(bytes, from - 1) == Some(from) {
            // `T C L 科 技`
            from -= 2;
        } else {
            break;
        }
    }
    from
}

/// Puts the characters from `at` together; gives where the last one ends.
fn squeeze(text: &str, mut at: usize, out: &mut Squeezed) -> usize {
    let bytes = text.as_bytes();
    out.text.clear();
    out.places.clear();
    let mut end = at;
    while out.places.len() < MOST {
        let len = if is_cjk(bytes, at) {
            3
        } else if alnum(bytes, at) {
            1
        } else {
            match gap(bytes, at).filter(|next| is_cjk(bytes, *next) || alnum(bytes, *next)) {
                Some(next) if !out.places.is_empty() => {
                    at = next;
                    continue;
                }
                _ => break,
            }
        };
        let Some(character) = text.get(at..at + len) else { break };
        out.places.push((out.text.len(), at, at + len));
        out.text.push_str(character);
        at += len;
        end = at;
    }
    end
}

/// Where six digits that stand one by one end, and the number they are: `6 0 0 5 1 9`, `6-0-0-5-1-9`. `at` is the first of them.
pub(super) fn six_digits(bytes: &[u8], at: usize) -> Option<(usize, u32)> {
    let mark = byte(bytes, at + 1).filter(|b| matches!(b, b' ' | b'-' | b'_' | b'.' | b'/' | b'|' | b'*'))?;
    let lone = |at: usize| byte(bytes, at).filter(u8::is_ascii_digit).map(|b| u32::from(b - b'0'));
    let mut number = lone(at)?;
    let mut seen = 1_u16 << number;
    for n in 1..6 {
        let digit = lone(at + 2 * n).filter(|_| byte(bytes, at + 2 * n - 1) == Some(mark))?;
        number = number * 10 + digit;
        seen |= 1 << digit;
    }
    let end = at + 11;
    let before = at.checked_sub(1).and_then(|i| byte(bytes, i));
    // Part of a longer row of digits, as matrices and lists of flags are.
    let row = alnum(bytes, end)
        || byte(bytes, end) == Some(mark) && alnum(bytes, end + 1)
        || before.is_some_and(|b| b.is_ascii_alphanumeric())
        || before == Some(mark) && at >= 2 && lone(at - 2).is_some();
    (!row && seen.count_ones() > 2).then_some((end, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, name: &str, expected: Option<&str>) {
        let mut found = vec![];
        stretches(text, |squeezed| {
            for (at, name) in squeezed.text.match_indices(name) {
                found.extend(squeezed.apart(text.as_bytes(), at, at + name.len()));
            }
        });
        assert_eq!(found.first().map(|(from, to)| &text[*from..*to]), expected, "{text}");
    }

    #[test]
    fn names_that_were_taken_apart_are_put_together() {
        check("买入贵 州 茅 台吧", "贵州茅台", Some("贵 州 茅 台"));
        check("贵·州·茅·台", "贵州茅台", Some("贵·州·茅·台"));
        check("贵　州　茅　台", "贵州茅台", Some("贵　州　茅　台"));
        check("贵州 茅台", "贵州茅台", Some("贵州 茅台"));
        check("贵\n州\n茅\n台", "贵州茅台", Some("贵\n州\n茅\n台"));
        check("中国\n平安是", "中国平安", None);
        check("贵州茅台 上涨", "贵州茅台", None);
        check("持有 万 科 股票", "万科", Some("万 科"));
        check("一万 科技公司", "万科", None);
        check("万 科技", "万科", None);
        check("T C L 科 技", "TCL科技", Some("T C L 科 技"));
        let long = format!("{}贵 州 茅 台", "字 ".repeat(200));
        check(&long, "贵州茅台", Some("贵 州 茅 台"));
    }

    #[test]
    fn digits_one_by_one_are_a_number() {
        assert_eq!(six_digits(b"6 0 0 5 1 9", 0), Some((11, 600_519)));
        assert_eq!(six_digits(b"(6-0-0-5-1-9)", 1), Some((12, 600_519)));
        for text in ["6 0 0 5 1 9 3", "6 0 0 5-1 9", "0 0 0 0 0 1", "6 0 0 5 1 99", "6 0 0 5 1"] {
            assert_eq!(six_digits(text.as_bytes(), 0), None, "{text}");
        }
        assert_eq!(six_digits(b"3 6 0 0 5 1 9", 2), None);
    }

    proptest! {
        #[test]
        fn any_text_ends_and_places_are_characters(text in "[贵州茅台万科a1 ·\\-　、é\n]{0,300}") {
            stretches(&text, |squeezed| {
                for (at, from, to) in &squeezed.places {
                    assert!(text.get(*from..*to) == squeezed.text.get(*at..*at + to - from));
                }
            });
        }
    }
}
