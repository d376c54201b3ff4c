//! Texts that are written in another way inside of a text: as base64, as hexadecimal digits, or with escapes. Must be bounded: each
//! byte of the artifact looked into once, and a word that says nothing left alone after a few of its bytes.

use super::around::byte;
use crate::redact::forms;

/// Shortest run of base64 or hexadecimal digits that is looked into.
const SHORTEST: usize = 16;
/// Fewest bytes of text that a run must say.
const FEWEST: usize = 8;
/// Shortest line of wrapped base64: writers wrap at 60, 64 or 76.
const WRAPPED: usize = 60;
/// Bytes of a run that tell whether it is text.
const TASTE: usize = 12;
/// Bytes that one run of escapes is followed back and forth.
const ESCAPED: (usize, usize) = (64, 4096);

/// What a run of characters says.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) text: String,
    /// Characters of the run that stand before the text.
    skipped: usize,
    /// Characters for `bytes` bytes of the text.
    chars: usize,
    bytes: usize,
    /// Lines of the run: place in it, and place in the artifact's text.
    lines: Vec<(usize, usize)>,
}

impl Decoded {
    /// Where a part of the text stands as it is written.
    pub(super) fn place(&self, start: usize, end: usize) -> (usize, usize) {
        let first = self.skipped + start * self.chars / self.bytes;
        let last = self.skipped + (end * self.chars).div_ceil(self.bytes);
        (self.outside(first), self.outside(last.saturating_sub(1)) + 1)
    }

    fn outside(&self, at: usize) -> usize {
        let line = self.lines.partition_point(|(inside, _)| *inside <= at).saturating_sub(1);
        self.lines.get(line).map_or(at, |(inside, outside)| outside + at - inside)
    }
}

const fn is_sign(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_')
}

/// Bytes that base64 is written in.
const SIGN: [bool; 256] = {
    let mut signs = [false; 256];
    let mut b = 0;
    while b < 256 {
        signs[b] = is_sign(b as u8);
        b += 1;
    }
    signs
};

fn sign(bytes: &[u8], at: usize) -> bool {
    byte(bytes, at).is_some_and(|b| SIGN.get(b as usize).copied().unwrap_or_default())
}

/// Every run of base64 or hexadecimal digits that says a text.
pub(super) fn runs(bytes: &[u8], mut on: impl FnMut(Decoded)) {
    // A run of sixteen covers one of every sixteen places.
    let (mut at, mut free) = (SHORTEST - 1, 0);
    while at < bytes.len() {
        if !sign(bytes, at) {
            at += SHORTEST;
            continue;
        }
        let from = at - bytes.get(free..at).unwrap_or_default().iter().rev().take_while(|b| SIGN[**b as usize]).count();
        let mut to = stretch(bytes, at);
        if to - from >= SHORTEST {
            let mut lines = vec![(0, from)];
            let mut run = std::borrow::Cow::Borrowed(bytes.get(from..to).unwrap_or_default());
            // Lines of one length but the last.
            let wide = run.len();
            while wide >= WRAPPED
                && let Some(next) = line_end(bytes, to).filter(|next| sign(bytes, *next))
            {
                let end = stretch(bytes, next);
                lines.push((run.len(), next));
                run.to_mut().extend_from_slice(bytes.get(next..end).unwrap_or_default());
                to = end;
                if end - next != wide {
                    break;
                }
            }
            hexadecimal(&run, &lines).into_iter().for_each(&mut on);
            base64(&run, &lines, &mut on);
        }
        free = to;
        at = to + SHORTEST;
    }
}

fn stretch(bytes: &[u8], at: usize) -> usize {
    at + bytes.get(at..).unwrap_or_default().iter().take_while(|b| SIGN[**b as usize]).count()
}

fn line_end(bytes: &[u8], at: usize) -> Option<usize> {
    let at = at + usize::from(byte(bytes, at) == Some(b'\r'));
    (byte(bytes, at) == Some(b'\n')).then_some(at + 1)
}

fn base64(run: &[u8], lines: &[(usize, usize)], on: &mut impl FnMut(Decoded)) {
    // Where a run begins before what is encoded, or was cut, its first sign is not the first of four.
    for skipped in 0..4 {
        let signs = run.get(skipped..).unwrap_or_default();
        if !is_text(&forms::base64_decode(signs.get(..TASTE).unwrap_or(signs))) {
            continue;
        }
        if let Some(text) = text(forms::base64_decode(signs)) {
            on(Decoded { text, skipped, chars: 4, bytes: 3, lines: lines.to_vec() });
        }
    }
}

fn hexadecimal(run: &[u8], lines: &[(usize, usize)]) -> Option<Decoded> {
    // `0x` and a letter that ends another word stand before the digits.
    let skipped = run.iter().rposition(|b| !b.is_ascii_hexdigit()).map_or(0, |at| at + 1);
    let digits = run.get(skipped..).filter(|digits| digits.len() >= SHORTEST)?;
    let decode = |digits: &[u8]| -> Vec<u8> {
        digits.chunks_exact(2).filter_map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
    };
    if !is_text(&decode(digits.get(..TASTE)?)) {
        return None;
    }
    Some(Decoded { text: text(decode(digits))?, skipped, chars: 2, bytes: 1, lines: lines.to_vec() })
}

fn nibble(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).map(|value| value as u8)
}

/// Whether bytes begin as a text does: no control characters, and nothing that is no UTF-8 but a character that is not there whole.
fn is_text(bytes: &[u8]) -> bool {
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => {
            bytes.get(..e.valid_up_to()).map(std::str::from_utf8).and_then(Result::ok).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !whole.is_empty() && !whole.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// The text at the beginning of bytes, if it is long enough to be one.
fn text(mut bytes: Vec<u8>) -> Option<String> {
    if let Err(e) = std::str::from_utf8(&bytes) {
        bytes.truncate(e.valid_up_to());
    }
    String::from_utf8(bytes).ok().filter(|text| text.len() >= FEWEST)
}

/// The word with escapes around the one at `at`: where it begins and ends, and what it says. Escapes are `%E8`, `%u8d35`, `\u8d35`,
/// `\u{8d35}`, `\xe8`, `\350` and `&#36149;`, behind any number of backslashes.
pub(super) fn escaped(text: &str, at: usize) -> Option<(usize, usize, String)> {
    let bytes = text.as_bytes();
    escape(bytes, at)?;
    let of = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b':');
    let from = at - bytes.get(..at)?.iter().rev().take(ESCAPED.0).take_while(|b| of(b)).count();
    let mut out = bytes.get(from..at)?.to_vec();
    let mut to = at;
    while to < bytes.len().min(at + ESCAPED.1) {
        let (unit, next) = match escape(bytes, to) {
            Some(found) => found,
            None => match byte(bytes, to).filter(|b| of(b) || *b >= 0x80) {
                Some(b) => (Unit::Byte(b), to + 1),
                None => break,
            },
        };
        match unit {
            Unit::Byte(b) => out.push(b),
            Unit::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        to = next;
    }
    // Bytes of a character that was cut, or that is none, do not hide the others.
    Some((from, text.ceil_char_boundary(to), String::from_utf8_lossy(&out).into_owned()))
}

/// What an escape stands for.
enum Unit {
    Byte(u8),
    Char(char),
}

/// The escape at `at`, and where it ends.
fn escape(bytes: &[u8], at: usize) -> Option<(Unit, usize)> {
    let number = |from: usize, len: usize, radix: u32| {
        let digits = std::str::from_utf8(bytes.get(from..from + len)?).ok().filter(|d| !d.starts_with('+'))?;
        u32::from_str_radix(digits, radix).ok()
    };
    let character = |code: u32| Unit::Char(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    let run =
        |from: usize, of: fn(&u8) -> bool| bytes.get(from..).map_or(0, |rest| rest.iter().take(8).take_while(|b| of(b)).count());
    match byte(bytes, at)? {
        b'%' if matches!(byte(bytes, at + 1), Some(b'u' | b'U')) => Some((character(number(at + 2, 4, 16)?), at + 6)),
        b'%' => {
            // Encoded once more, `%25E8` is `%E8`.
            let again = bytes.get(at + 1..)?.chunks_exact(2).take(8).take_while(|pair| *pair == b"25").count();
            let from = at + 1 + 2 * again;
            let (from, value) =
                number(from, 2, 16).map(|value| (from, value)).or_else(|| Some((at + 1, number(at + 1, 2, 16)?)))?;
            Some((Unit::Byte(value as u8), from + 2))
        }
        b'&' if byte(bytes, at + 1) == Some(b'#') => {
            let hex = matches!(byte(bytes, at + 2), Some(b'x' | b'X'));
            let (start, radix) = if hex { (at + 3, 16) } else { (at + 2, 10) };
            let len = run(start, u8::is_ascii_hexdigit);
            let end = start + len + usize::from(byte(bytes, start + len) == Some(b';'));
            Some((character(number(start, len, radix)?), end))
        }
        b'\\' => {
            let slashes = run(at, |b| *b == b'\\');
            let mark = at + slashes;
            match byte(bytes, mark)? {
                b'u' | b'U' if byte(bytes, mark + 1) == Some(b'{') => {
                    let len = run(mark + 2, u8::is_ascii_hexdigit);
                    let code = number(mark + 2, len, 16)?;
                    (byte(bytes, mark + 2 + len) == Some(b'}')).then_some((character(code), mark + 3 + len))
                }
                b'U' if number(mark + 1, 8, 16).is_some_and(|code| code < 0x11_0000) => {
                    Some((character(number(mark + 1, 8, 16)?), mark + 9))
                }
                b'u' | b'U' => Some((character(number(mark + 1, 4, 16)?), mark + 5)),
                b'x' | b'X' => Some((Unit::Byte(number(mark + 1, 2, 16)? as u8), mark + 3)),
                b'2' | b'3' => Some((Unit::Byte(u8::try_from(number(mark, 3, 8)?).ok()?), mark + 3)),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_runs(text: &str, expected: &[&str]) {
        let mut found = vec![];
        runs(text.as_bytes(), |decoded| found.push(decoded.text));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn runs_that_say_a_text_are_decoded() {
        check_runs("data:text/plain;base64,6LS15bee6IyF5Y+w", &["贵州茅台"]);
        check_runs("x=6LS15bee6IyF5Y-w&y", &["贵州茅台"]);
        check_runs("e8b4b5e5b79ee88c85e58fb0", &["贵州茅台"]);
        check_runs("0xE8B4B5E5B79EE88C85E58FB0", &["贵州茅台"]);
        check_runs("conditional_order_events /usr/share/dict/american-english", &[]);
        check_runs("e774c8c1fa254ffb81ebf4b67027eefd844740427f3f4f9cc18c63c8cdc030d8", &[]);
        // Wrapped at 60, a character across the border.
        let wrapped = "54ix5LqGMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMOi0teW3\nnuiMheWPsA==";
        check_runs(wrapped, &["爱了0000000000000000000000000000000000贵州茅台"]);
    }

    #[test]
    fn a_place_in_a_text_is_found_where_it_is_written() {
        let text = "see eCB4IHgg6LS15bee6IyF5Y+w now";
        let mut places = vec![];
        runs(text.as_bytes(), |decoded| {
            let at = decoded.text.find('贵').unwrap();
            places.push(decoded.place(at, decoded.text.len()));
        });
        assert_eq!(places.iter().map(|(a, b)| &text[*a..*b]).collect::<Vec<_>>(), ["6LS15bee6IyF5Y+w"]);
    }

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let at = text.find(['%', '\\', '&']).unwrap();
        assert_eq!(escaped(text, at).map(|(_, _, said)| said).as_deref(), expected, "{text}");
    }

    #[test]
    fn escapes_of_every_kind_are_read() {
        check("q=%E8%B4%B5%e5%b7%9e&x", Some("q=贵州"));
        check("%25E8%25B4%25B5 %", Some("贵"));
        check("%2525e8%2525b4%2525b5", Some("贵"));
        check("100%25 of", Some("100%"));
        check("%u8d35%u5dde", Some("贵州"));
        check(r"\u8d35\u5dde, x", Some("贵州"));
        check(r"\\\\u8d35\\\\u5DDE", Some("贵州"));
        check(r"\u{8d35}\u{5dde}", Some("贵州"));
        check(r"\U00008d35\U00005dde", Some("贵州"));
        check(r"b'\xe8\xb4\xb5'", Some("贵"));
        check(r"\350\264\265/x", Some("贵/x"));
        check("&#36149;&#x5dde;", Some("贵州"));
        check("100% of", None);
        check(r"C:\users\uncle", None);
        check("&#;", None);
        check(r"\ud83d\ude00", Some("\u{fffd}\u{fffd}"));
    }

    proptest! {
        #[test]
        fn any_text_ends_on_its_characters(text in "[%\\\\ux&#;{}0-9a-f贵 \\-]{0,60}") {
            for (at, _) in text.match_indices(['%', '\\', '&']) {
                if let Some((from, to, _)) = escaped(&text, at) {
                    prop_assert!(from <= at && at < to && text.get(from..to).is_some());
                }
            }
        }

        #[test]
        fn places_stay_inside_of_the_run(text in "[A-Za-z0-9+/\n]{0,200}") {
            runs(text.as_bytes(), |decoded| {
                let (from, to) = decoded.place(0, decoded.text.len());
                assert!(from < to && to <= text.len(), "{from} {to} of {}", text.len());
            });
        }
    }
}
