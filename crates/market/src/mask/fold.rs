//! Full-width forms folded to ASCII with a way back to the positions of the original text.

use std::borrow::Cow;

/// A text in which full-width letters, digits and signs are ASCII.
#[derive(Debug)]
pub(super) struct Folded<'t> {
    pub(super) text: Cow<'t, str>,
    /// Original byte position of every folded byte, plus the end; empty when nothing was folded.
    origin: Vec<u32>,
}

/// ASCII form of a full-width sign, letter or digit.
fn half_width(c: char) -> Option<char> {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        _ => None,
    }
}

/// Whether a typographic hyphen, dash or minus at `at` parts the numbers of a date: one to four digits before it, one or two after it.
/// Elsewhere it stays: `3–5` reads the same either way, and what stands beside a code is another matter.
fn parts_a_date(text: &str, at: usize, c: char) -> bool {
    if !is_dash(c) {
        return false;
    }
    let digit = |c: &char| c.is_ascii_digit() || ('\u{ff10}'..='\u{ff19}').contains(c);
    let before = text[..at].chars().rev().take(5).take_while(digit).count();
    let after = text[at + c.len_utf8()..].chars().take(3).take_while(digit).count();
    (1..=4).contains(&before) && (1..=2).contains(&after)
}

const fn is_dash(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2013}' | '\u{2212}')
}

/// Full-width punctuation alone (colons, commas, brackets of ordinary Chinese text) needs no folding; letters, digits and the
/// separators of dates do.
fn needs_folding(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(step) = bytes[at..].iter().position(|b| *b == 0xef) {
        at += step;
        if let [_, second, third, ..] = bytes[at..] {
            let wanted = match second {
                // * - . / 0..9 and A..Z
                0xbc => third == 0x8a || (0x8d..=0x99).contains(&third) || (0xa1..=0xba).contains(&third),
                0xbd => (0x81..=0x9a).contains(&third),
                _ => false,
            };
            if wanted {
                return true;
            }
        }
        at += 1;
    }
    // Both of these characters begin with this byte; most texts have none of it.
    bytes.contains(&0xe2) && text.char_indices().any(|(at, c)| parts_a_date(text, at, c))
}

impl<'t> Folded<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        if !needs_folding(text) {
            return Self { text: Cow::Borrowed(text), origin: vec![] };
        }
        let mut folded = String::with_capacity(text.len());
        let mut origin = Vec::with_capacity(text.len() + 1);
        for (at, c) in text.char_indices() {
            let c = if parts_a_date(text, at, c) { '-' } else { half_width(c).unwrap_or(c) };
            folded.push(c);
            origin.extend(std::iter::repeat_n(at as u32, c.len_utf8()));
        }
        origin.push(text.len() as u32);
        Self { text: Cow::Owned(folded), origin }
    }

    /// Position in the original text of a character boundary of the folded one.
    pub(super) fn original(&self, at: usize) -> usize {
        self.origin.get(at).map_or(at, |o| *o as usize)
    }
}

/// A name as it is looked up: full-width forms folded, spaces (which short names are padded with) removed.
pub(super) fn name_key(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).map(|c| half_width(c).unwrap_or(c)).collect()
}

/// A name with full-width forms folded and its inner blanks kept.
pub(super) fn folded_name(name: &str) -> String {
    name.trim().chars().map(|c| half_width(c).unwrap_or(c)).collect()
}
