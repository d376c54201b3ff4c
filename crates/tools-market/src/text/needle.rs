//! Literal search: a [`Needle`] finds itself in a text whatever the letter case or the width of the characters.
//!
//! Never a pattern language: every character of the needle stands for itself. Nothing is allocated per searched text.

use memchr::memmem::Finder;
use memchr::{memchr2_iter, memchr3_iter};
use std::ops::Range;

/// A folded literal, prepared once per call.
#[derive(Debug)]
pub(super) struct Needle {
    folded: Vec<char>,
    scan: Scan,
    /// The match may not touch a further digit: for codes, so that 600519 is not found inside 1600519.
    alone: bool,
}

/// How candidate positions are found.
#[derive(Debug)]
enum Scan {
    /// The longest run of characters that have one spelling: its bytes, and where it is in the needle.
    Run { finder: Box<Finder<'static>>, chars: Range<usize> },
    /// First bytes of the spellings of the first character, which is ASCII: half width in both cases, and full width.
    Lead { lower: u8, upper: u8 },
    /// Every character position.
    Every,
}

/// First byte of every full-width form U+FF01..U+FF5E.
const FULL_WIDTH_LEAD: u8 = 0xEF;

/// One character in the form that is compared: full-width forms as ASCII, the ideographic space as a space, lower case. A character
/// whose lower case is several characters, or ASCII although it is not, stays as it is: then [`Scan`] knows every spelling.
fn fold(c: char) -> char {
    let narrow = match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '\u{3000}' => ' ',
        other => other,
    };
    if narrow.is_ascii() {
        return narrow.to_ascii_lowercase();
    }
    let mut lower = narrow.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) if !one.is_ascii() => one,
        _ => narrow,
    }
}

/// True when only the character itself folds to it: no ASCII (it has a full-width form), no letter with two cases.
fn has_one_spelling(c: char) -> bool {
    !c.is_ascii() && !c.is_lowercase() && !c.is_uppercase() && c.to_lowercase().eq([c]) && c.to_uppercase().eq([c])
}

impl Needle {
    /// The needle of a text; `None` when it holds no letter, digit or ideograph to search for.
    pub(super) fn new(text: &str) -> Option<Self> {
        let folded: Vec<char> = text.trim().chars().map(fold).collect();
        let searchable = folded.iter().any(|c| c.is_alphanumeric());
        searchable.then(|| Self { scan: Scan::of(&folded), folded, alone: false })
    }

    /// A code: found only where no further digit touches it.
    pub(super) fn of_code(code: &str) -> Option<Self> {
        Self::new(code).map(|needle| Self { alone: true, ..needle })
    }

    /// The needle in the form that is compared.
    pub(super) fn folded(&self) -> &[char] {
        &self.folded
    }

    /// True when the text holds the needle.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        match &self.scan {
            Scan::Run { finder, chars } => finder.find_iter(bytes).any(|at| self.fits(text, at, chars)),
            Scan::Lead { lower, upper } if lower == upper => {
                memchr2_iter(*lower, FULL_WIDTH_LEAD, bytes).any(|at| self.fits(text, at, &(0..0)))
            }
            Scan::Lead { lower, upper } => {
                memchr3_iter(*lower, *upper, FULL_WIDTH_LEAD, bytes).any(|at| self.fits(text, at, &(0..0)))
            }
            Scan::Every => text.char_indices().any(|(at, _)| self.fits(text, at, &(0..0))),
        }
    }

    /// True when the needle lies in `text` with its characters `known`, already seen, from byte `at` on.
    fn fits(&self, text: &str, at: usize, known: &Range<usize>) -> bool {
        let width: usize = self.folded[known.clone()].iter().map(|c| c.len_utf8()).sum();
        let (Some(head), Some(tail)) = (text.get(..at), text.get(at + width..)) else { return false };
        let mut before = head.chars().rev().map(fold);
        let mut after = tail.chars().map(fold);
        let here = self.folded[..known.start].iter().rev().all(|c| before.next() == Some(*c))
            && self.folded[known.end..].iter().all(|c| after.next() == Some(*c));
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        here && !(self.alone && (digit(before.next()) || digit(after.next())))
    }
}

impl Scan {
    fn of(folded: &[char]) -> Self {
        let mut longest = 0..0;
        let mut start = 0;
        for at in 0..=folded.len() {
            if folded.get(at).is_some_and(|c| has_one_spelling(*c)) {
                continue;
            }
            if at - start > longest.len() {
                longest = start..at;
            }
            start = at + 1;
        }
        if !longest.is_empty() {
            let run: String = folded[longest.clone()].iter().collect();
            return Self::Run { finder: Box::new(Finder::new(run.as_bytes()).into_owned()), chars: longest };
        }
        match folded.first() {
            Some(c) if c.is_ascii() => Self::Lead { lower: *c as u8, upper: (*c as u8).to_ascii_uppercase() },
            _ => Self::Every,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(needle: &str, text: &str, found: bool) {
        assert_eq!(Needle::new(needle).is_some_and(|n| n.is_in(text)), found, "{needle:?} in {text:?}");
    }

    #[test]
    fn finds_whatever_case_and_width() {
        for (needle, text) in [
            ("ai", "The AI chip"),
            ("AI", "new ai model"),
            ("ＡＩ", "on Ai"),
            ("ai", "about ＡＩ"),
            ("5g", "the ５Ｇ network"),
            ("芯片", "国产芯片突破"),
            ("AI芯片", "首款ａｉ芯片"),
            ("芯片ETF", "今日芯片etf大涨"),
            ("a b", "x A\u{3000}B y"),
            ("Élan", "an éLAN"),
            ("100%", "gross margin １００％"),
            ("  chip ", "a chip"),
        ] {
            check(needle, text, true);
        }
    }

    // Issue 3: a regex-looking keyword is literal.
    #[test]
    fn a_regex_looking_needle_is_literal() {
        check("a.c", "abc", false);
        check("a.c", "xa.cx", true);
        check("(a|b)+", "ab", false);
        check("[0-9]x", "7x", false);
        check("\\d5", "15", false);
    }

    // spec/tools.md b41
    #[test]
    fn punctuation_alone_is_no_needle() {
        for text in ["", " ", ".*", "。，", "--", "\u{3000}", "%"] {
            assert!(Needle::new(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_code_stands_alone() {
        let code = Needle::of_code("600519").unwrap();
        for (text, found) in
            [("(600519)", true), ("sh600519", true), ("1600519", false), ("6005190", false), ("６００５１９股", true)]
        {
            assert_eq!(code.is_in(text), found, "{text}");
        }
        // A refused place does not hide a later one.
        assert!(code.is_in("16005190 600519"));
    }

    proptest! {
        #[test]
        fn agrees_with_a_naive_search(needle in "[aAｂB芯片é1%k\u{212A}]{1,4}", text in "[aAｂBb芯片éÉ1１%kK\u{212A}，]{0,24}") {
            let folded = |s: &str| s.chars().map(fold).collect::<String>();
            if let Some(found) = Needle::new(&needle).map(|n| n.is_in(&text)) {
                prop_assert_eq!(found, folded(&text).contains(&folded(&needle)));
            }
        }
    }
}
