//! The texts that wait to be searched: decoded, full-width forms folded, each with its place. Must be bounded: whoever fills it searches
//! and clears it when it is full.
//!
//! Texts stand one after another with a NUL between them, so that one search goes over all of them and nothing is found across two.

use traderharness_contract::json::pointer_segment;

/// A batch of this many bytes is searched.
pub(super) const FULL: usize = 1 << 20;

/// Bytes of a long text that are searched again with the next piece: what stands before a finding, and what it reaches over.
pub(super) const BEFORE: usize = 256;
/// Findings that begin in the last bytes of a piece are left to the next one.
pub(super) const AFTER: usize = 2048;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The key of an object.
    Key,
    /// A string of JSON.
    Value,
    /// A number of JSON whose key makes it a code or a day; found when it was read.
    Number,
    /// Text of a file.
    Text,
    /// Text of a program: numbers in it are numbers, and its placeholders are its own.
    Code,
}

/// One step of a JSON Pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Root,
    /// Where the key stands in `keys`.
    Key(u32, u32),
    Index(u64),
    /// Into a text that is JSON.
    Inside,
}

/// A text of the batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) start: u32,
    pub(super) end: u32,
    /// Findings that begin here belong to this piece; others to its neighbours.
    pub(super) owned: (u32, u32),
    pub(super) line: u64,
    pub(super) raw: u64,
    pub(super) role: Role,
    /// The container, and the step from it.
    pub(super) parent: u32,
    pub(super) step: Step,
}

/// Texts, their places, and the paths to them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
    /// Containers: their parent and the step from it. The first is the document.
    nodes: Vec<(u32, Step)>,
    keys: String,
    /// Where folding moved the text: position here, and how many bytes the artifact is ahead.
    shifts: Vec<(u32, u64)>,
    /// What was found while reading: start, end, form.
    pub(super) numbers: Vec<(u32, u32, super::Form)>,
}

/// What is kept when texts that turned out to be no JSON are taken back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    text: usize,
    tokens: usize,
    nodes: usize,
    keys: usize,
    shifts: usize,
    numbers: usize,
}

impl Mark {
    pub(super) const fn tokens(self) -> usize {
        self.tokens
    }
}

impl Batch {
    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= FULL || self.tokens.len() >= FULL / 8
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            text: self.text.len(),
            tokens: self.tokens.len(),
            nodes: self.nodes.len(),
            keys: self.keys.len(),
            shifts: self.shifts.len(),
            numbers: self.numbers.len(),
        }
    }

    pub(super) fn back_to(&mut self, mark: Mark) {
        self.text.truncate(mark.text);
        self.tokens.truncate(mark.tokens);
        self.nodes.truncate(mark.nodes);
        self.keys.truncate(mark.keys);
        self.shifts.truncate(mark.shifts);
        self.numbers.truncate(mark.numbers);
    }

    /// A container.
    pub(super) fn node(&mut self, parent: u32, step: Step) -> u32 {
        self.nodes.push((parent, step));
        (self.nodes.len() - 1) as u32
    }

    pub(super) fn key(&mut self, key: &str) -> Step {
        let start = self.keys.len() as u32;
        self.keys.push_str(key);
        Step::Key(start, self.keys.len() as u32)
    }

    /// The key that a step is; empty for any other.
    pub(super) fn key_of(&self, step: Step) -> &str {
        match step {
            Step::Key(start, end) => self.keys.get(start as usize..end as usize).unwrap_or_default(),
            _ => "",
        }
    }

    /// The key of a value, or of the list it is in.
    pub(super) fn name_of(&self, at: (u32, Step)) -> &str {
        match at.1 {
            Step::Index(_) => self.key_of(self.step_to(at.0)),
            step => self.key_of(step),
        }
    }

    /// The step that leads to a container.
    pub(super) fn step_to(&self, node: u32) -> Step {
        self.nodes.get(node as usize).map_or(Step::Root, |(_, step)| *step)
    }

    /// Empties the batch for more of the same document.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.tokens.clear();
        self.nodes.clear();
        self.keys.clear();
        self.shifts.clear();
        self.numbers.clear();
    }

    /// Adds a text; it is folded on the way. `owned` is the part of it whose findings are its own.
    pub(super) fn push(&mut self, text: &str, owned: (usize, usize), place: (u64, u64), role: Role, at: (u32, Step)) {
        let start = self.text.len();
        let mut bounds = (start + owned.0, start + owned.1.min(text.len()));
        let mut copied = 0;
        // Plain stretches go over as they are; a Chinese text has a full-width sign every few words.
        loop {
            let next = next_fold(text, copied);
            let until = next.unwrap_or(text.len());
            for (bound, own) in [(&mut bounds.0, owned.0), (&mut bounds.1, owned.1)] {
                if (copied..=until).contains(&own) {
                    *bound = self.text.len() + own - copied;
                }
            }
            self.text.push_str(text.get(copied..until).unwrap_or_default());
            let Some(c) = next.and_then(|at| text.get(at..)).and_then(|rest| rest.chars().next()) else { break };
            self.text.extend(fold(c));
            copied = until + c.len_utf8();
            self.shifts.push((self.text.len() as u32, copied as u64 - (self.text.len() - start) as u64));
        }
        if owned.1 >= text.len() {
            bounds.1 = self.text.len();
        }
        let end = self.text.len();
        self.text.push('\0');
        self.tokens.push(Token {
            start: start as u32,
            end: end as u32,
            owned: (bounds.0 as u32, bounds.1 as u32),
            line: place.0,
            raw: place.1,
            role,
            parent: at.0,
            step: at.1,
        });
    }

    /// Byte of the artifact at which `at` of a text stands.
    pub(super) fn raw(&self, token: &Token, at: usize) -> u64 {
        let known = self.shifts.partition_point(|(position, _)| (*position as usize) <= at);
        let ahead = known.checked_sub(1).and_then(|i| self.shifts.get(i)).filter(|(position, _)| *position > token.start);
        token.raw + (at as u64 - u64::from(token.start)) + ahead.map_or(0, |(_, ahead)| *ahead)
    }

    /// JSON Pointer of a text.
    pub(super) fn pointer(&self, token: &Token) -> String {
        let mut steps = vec![token.step];
        let mut node = token.parent;
        // The document is its own parent.
        while let Some((parent, step)) = self.nodes.get(node as usize).filter(|(_, step)| *step != Step::Root) {
            steps.push(*step);
            node = *parent;
        }
        let mut out = String::new();
        for step in steps.iter().rev() {
            match step {
                Step::Root => {}
                Step::Inside => out.push('#'),
                Step::Index(index) => out.push_str(&format!("/{index}")),
                Step::Key(..) => {
                    out.push('/');
                    out.push_str(&pointer_segment(self.key_of(*step)));
                }
            }
        }
        out
    }
}

/// The next character from `from` that is folded: a full-width form, or one that nobody sees.
fn next_fold(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(step) = bytes.get(at..).and_then(|rest| memchr::memchr3(0xef, 0xe2, 0xc2, rest)) {
        at += step;
        match bytes.get(at..).unwrap_or_default() {
            [0xef, 0xb8, 0x80..=0x8f, ..]
            | [0xef, 0xbb..=0xbd, ..]
            | [0xe2, 0x80, 0x8b..=0x93 | 0xaa..=0xae, ..]
            | [0xe2, 0x88, 0x92, ..]
            | [0xe2, 0x81, 0xa0..=0xaf, ..]
            | [0xc2, 0xad | 0xa0, ..] => {
                return Some(at);
            }
            _ => at += 1,
        }
    }
    None
}

/// The plain form of a character; `None` for one that nobody sees and that would split a name in two.
pub(super) fn fold(c: char) -> Option<char> {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ad}' => None,
        '\u{a0}' => Some(' '),
        // Hyphens, the figure dash, the en dash and the minus sign, with which models write dates.
        '\u{2010}'..='\u{2013}' | '\u{2212}' => Some('-'),
        _ => Some(c),
    }
}

/// Bytes at the end that begin a character which is not there whole yet.
pub(super) fn partial(bytes: &[u8]) -> usize {
    let cut = (1..=3.min(bytes.len())).find(|back| bytes.get(bytes.len() - back).is_some_and(|b| *b >= 0xc0));
    let length = |first: u8| match first {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    };
    cut.filter(|back| bytes.get(bytes.len() - back).is_some_and(|first| length(*first) > *back)).unwrap_or(0)
}

/// Bytes as text; what is no UTF-8 becomes the sign for it. Whole texts, which nearly all are, are checked in long steps.
pub(super) fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), std::borrow::Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Bytes are looked at, characters are folded: no character may be known to one of the two alone.
    #[test]
    fn every_character_that_is_folded_is_found_by_its_bytes() {
        let folded: Vec<char> = ('\0'..=char::MAX).filter(|c| fold(*c) != Some(*c)).collect();
        assert!(folded.len() > 100, "{}", folded.len());
        for c in folded {
            assert_eq!(next_fold(&format!("x{c}"), 0), Some(1), "{c:?}");
        }
    }
}
