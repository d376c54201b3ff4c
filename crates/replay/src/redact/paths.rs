//! Internal roots in texts (spec/seeds.md B14.1). Must leave a path alone that only begins with the letters of a root.

use super::REDACTED_ROOT;
use aho_corasick::{AhoCorasick, MatchKind};

/// Folders that are hidden, longest first, in both slash styles and as JSON and Python spell them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roots {
    search: Option<AhoCorasick>,
}

/// The spellings of a root.
pub(crate) fn spellings(root: &str) -> Vec<String> {
    let trimmed = root.trim().trim_end_matches(['/', '\\']);
    let plain = trimmed.replace("\\\\", "\\").replace('\\', "/");
    // A root without a folder name would hide every path, and the word that stands for roots must not be hidden again.
    let named = plain.split('/').filter(|part| !part.is_empty() && !part.ends_with(':')).count();
    if named == 0 || !plain.contains('/') || plain.contains(REDACTED_ROOT) {
        return vec![];
    }
    vec![plain.replace('/', "\\\\"), plain.replace('/', "\\/"), plain.replace('/', "\\"), plain]
}

impl Roots {
    pub(crate) fn new<T: AsRef<str>>(roots: impl IntoIterator<Item = T>) -> Self {
        let mut all: Vec<String> = roots.into_iter().flat_map(|root| spellings(root.as_ref())).collect();
        all.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        all.dedup();
        // Overlapping: where the longest root fails its boundary, a shorter one may still stand.
        let search = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&all).ok();
        Self { search: search.filter(|_| !all.is_empty()) }
    }

    /// Where roots stand, in order, none overlapping another.
    pub(crate) fn find(&self, text: &str) -> Vec<(usize, usize)> {
        let Some(search) = &self.search else { return vec![] };
        let mut found: Vec<(usize, usize)> = search
            .find_overlapping_iter(text)
            .map(|m| (m.start(), m.end()))
            .filter(|(start, end)| stands(text.as_bytes(), *start, *end))
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let mut free = 0;
        found.retain(|(start, end)| {
            let fits = *start >= free;
            free = if fits { *end } else { free };
            fits
        });
        found
    }

    /// A text with its roots replaced; `None` when it holds none.
    pub(super) fn scrub(&self, text: &str) -> Option<String> {
        let found = self.find(text);
        if found.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for (start, end) in found {
            out.push_str(text.get(copied..start).unwrap_or_default());
            out.push_str(REDACTED_ROOT);
            copied = end;
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        Some(out)
    }
}

/// Whether a root ends where its last folder name ends and begins where a path begins: `/Users/me.` ends a sentence,
/// `/Users/me.bak`, `/Users/metest` and `backup/Users/me` are something else.
pub(crate) fn stands(bytes: &[u8], start: usize, end: usize) -> bool {
    let part = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-') || *b >= 0x80);
    let before = start.checked_sub(1).is_some_and(|at| bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_'));
    // What follows a root that is gone already is its tail.
    let tail = bytes.get(..start).is_some_and(|head| head.ends_with(REDACTED_ROOT.as_bytes()));
    let dotted = bytes.get(end) == Some(&b'.') && part(end + 1);
    // A name goes on after a letter of another script too, but not after the full stop or quote of one.
    let wide = bytes.get(end).is_some_and(|b| *b >= 0x80) && !punctuation(bytes.get(end..).unwrap_or_default());
    let ascii = bytes.get(end).is_some_and(|b| *b < 0x80) && part(end);
    !before && !tail && !ascii && !wide && !dotted
}

/// Punctuation of CJK text: U+3000 to U+303F and the full-width signs.
fn punctuation(bytes: &[u8]) -> bool {
    matches!(bytes, [0xe3, 0x80, ..] | [0xef, 0xbc, 0x81..=0x8f, ..] | [0xef, 0xbc, 0x9a..=0xa0, ..] | [0xe2, 0x80, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let roots = Roots::new(["/Users/me", "/Users/me/work", "C:\\Users\\me\\", "/", "C:\\", ""]);
        let once = roots.scrub(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(once, expected);
        assert_eq!(roots.scrub(&once), None, "a second pass changes nothing");
    }

    // spec/seeds.md B14.1
    #[test]
    fn roots_go_and_tails_stay() {
        check("/Users/me/x", "<redacted>/x");
        check("/Users/me/work/x and /Users/me/works/x", "<redacted>/x and <redacted>/works/x");
        check("/Users/metest/x", "/Users/metest/x");
        check("in /Users/me.", "in <redacted>.");
        check("/Users/me.bak/x", "/Users/me.bak/x");
        check("/Users/me-2/x", "/Users/me-2/x");
        check("file:///Users/me/x", "file://<redacted>/x");
        check("在/Users/me/x。/Users/me。", "在<redacted>/x。<redacted>。");
        check("backup/Users/me/x", "backup/Users/me/x");
        check("/Users/me", "<redacted>");
    }

    #[test]
    fn both_slashes_and_escaped_ones() {
        check("C:\\Users\\me\\x C:/Users/me/x", "<redacted>\\x <redacted>/x");
        check(r#"{"p":"C:\\Users\\me\\x","q":"\/Users\/me\/x"}"#, r#"{"p":"<redacted>\\x","q":"<redacted>\/x"}"#);
        check("C:\\Users\\", "C:\\Users\\");
    }
}
