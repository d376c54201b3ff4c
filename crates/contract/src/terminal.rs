//! Texts of other programs as plain text: terminal escape sequences are taken out before a text is measured, kept or shown.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// `text` without terminal escapes: CSI and OSC sequences (hyperlinks too), other strings that a terminal swallows, escapes of one
/// character, and the one-character forms of C1 (spec/seeds.md A4.2). A sequence that never ends takes the rest of the text with it only
/// up to the line's end. NUL goes too; every other character stays.
pub fn strip_escapes(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_introducer) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next_if(|n| !n.is_control() && n.is_ascii()) {
                Some('[') => control_sequence(&mut rest),
                Some(']' | 'P' | 'X' | '^' | '_') => string_sequence(&mut rest),
                // Character set selection and kin: intermediates, then one final character.
                Some(' '..='/') => {
                    while rest.next_if(|n| matches!(n, ' '..='/')).is_some() {}
                    rest.next_if(|n| matches!(n, '0'..='~'));
                }
                _ => {}
            },
            '\u{9b}' => control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => string_sequence(&mut rest),
            c if is_introducer(c) => {}
            c => kept.push(c),
        }
    }
    Cow::Owned(kept)
}

/// Characters that stand for nothing a reader sees: escape, NUL, C1 controls (next line, U+0085, is white space and stays).
const fn is_introducer(c: char) -> bool {
    matches!(c, '\u{1b}' | '\0' | '\u{80}'..='\u{84}' | '\u{86}'..='\u{9f}')
}

/// Parameters and intermediates, then one final character.
fn control_sequence(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    rest.next_if(|c| matches!(c, '@'..='~'));
}

/// Everything up to the terminator: BEL, ST, or the end of the line.
fn string_sequence(rest: &mut Peekable<Chars<'_>>) {
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        match c {
            '\u{07}' | '\u{9c}' => return,
            '\u{1b}' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::strip_escapes;
    use crate::budget::notice::bounded_text;
    use proptest::prelude::*;

    fn check(text: &str, plain: &str) {
        assert_eq!(strip_escapes(text), plain, "{text:?}");
    }

    // spec/seeds.md A4.2
    #[test]
    fn escapes_are_gone_before_a_text_is_measured() {
        let text = "\x1b[31mred\x1b[0m \x1b]8;;https://example.com\x07link\x1b]8;;\x07";
        check(text, "red link");
        assert_eq!(bounded_text(&strip_escapes(text), 8), "red link");
        check("a\u{9b}1;31mb", "ab");
        check("\x1b(B\x1b=x\x1bcy", "xy");
        check("\x1b]0;title\x1b\\text", "text");
        check("\x1b]never ends\nnext line", "\nnext line");
        check("\x1b[999", "");
        check("cut \x1b", "cut ");
        check("a\tb\r\nc", "a\tb\r\nc");
        check("6\0x", "6x");
        check("中文 [31m stays", "中文 [31m stays");
    }

    proptest! {
        #[test]
        fn nothing_but_escapes_is_lost_and_nothing_is_left_to_strip(text in "[a-z\\x1b\\[\\]0-9;m\\x07\\\\\u{9b}]{0,40}") {
            let once = strip_escapes(&text).into_owned();
            let left = once.contains(['\x1b', '\u{9b}']);
            prop_assert!(!left);
            prop_assert_eq!(strip_escapes(&once), once.as_str());
        }
    }
}
