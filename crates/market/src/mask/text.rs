//! Puts the spans of names, codes and dates together: one pass, leftmost-longest, nothing else of the text touched.

use super::fold::Folded;
use std::borrow::Cow;

/// A part of the folded text and what stands there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) with: String,
}

/// Replaces the spans; of overlapping ones the leftmost, then the longest stays.
pub(super) fn replace<'t>(text: &'t str, folded: &Folded<'t>, mut spans: Vec<Span>) -> Cow<'t, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut free) = (0, 0);
    for span in spans {
        if span.start < free {
            continue;
        }
        out.push_str(&text[copied..folded.original(span.start)]);
        out.push_str(&span.with);
        free = span.end;
        copied = folded.original(span.end);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}
