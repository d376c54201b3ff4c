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

fn leftmost_longest(spans: &mut [Span]) {
    spans.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
}

/// The spans that are replaced, in order: of overlapping ones the leftmost, then the longest. Those of `late`, which only a later day
/// explains, take what the others leave free: with them a text is the same as without them, less what they hide.
pub(super) fn chosen(mut spans: Vec<Span>, mut late: Vec<Span>) -> Vec<Span> {
    leftmost_longest(&mut spans);
    let mut free = 0;
    spans.retain(|span| {
        let fits = span.start >= free;
        free = if fits { span.end } else { free };
        fits
    });
    leftmost_longest(&mut late);
    free = 0;
    late.retain(|span| {
        let next = spans.partition_point(|s| s.end <= span.start);
        let fits = span.start >= free && spans.get(next).is_none_or(|s| s.start >= span.end);
        free = if fits { span.end } else { free };
        fits
    });
    spans.append(&mut late);
    leftmost_longest(&mut spans);
    spans
}

/// Replaces chosen spans.
pub(super) fn replace<'t>(text: &'t str, folded: &Folded<'t>, spans: &[Span]) -> Cow<'t, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for span in spans {
        out.push_str(&text[copied..folded.original(span.start)]);
        out.push_str(&span.with);
        copied = folded.original(span.end);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The longest part of `text` from its start whose visible form has at most `limit` characters and ends in no replaced part, and the
/// number of characters of the whole visible form.
pub(super) fn fitting<'t>(text: &'t str, folded: &Folded<'t>, spans: &[Span], limit: usize) -> (&'t str, usize) {
    let mut kept = None;
    let (mut copied, mut visible) = (0, 0);
    for span in spans {
        let start = folded.original(span.start);
        let plain = &text[copied..start];
        let count = plain.chars().count();
        if kept.is_none() && visible + count > limit {
            kept = Some(copied + bytes_of(plain, limit - visible));
        }
        visible += count;
        let hidden = span.with.chars().count();
        if kept.is_none() && visible + hidden > limit {
            kept = Some(start);
        }
        visible += hidden;
        copied = folded.original(span.end);
    }
    let rest = &text[copied..];
    let count = rest.chars().count();
    if kept.is_none() && visible + count > limit {
        kept = Some(copied + bytes_of(rest, limit - visible));
    }
    (kept.map_or(text, |end| &text[..end]), visible + count)
}

/// Bytes of the first `characters` of a text.
fn bytes_of(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(of: &[(usize, usize)]) -> Vec<Span> {
        of.iter().map(|(start, end)| Span { start: *start, end: *end, with: "*".into() }).collect()
    }

    #[track_caller]
    fn check(known: &[(usize, usize)], late: &[(usize, usize)], expected: &[(usize, usize)]) {
        assert_eq!(chosen(spans(known), spans(late)), spans(expected));
    }

    #[test]
    fn of_overlapping_parts_the_leftmost_then_the_longest_stays() {
        check(&[(2, 4), (0, 3), (0, 2), (3, 5)], &[], &[(0, 3), (3, 5)]);
    }

    #[test]
    fn what_only_a_later_day_explains_never_moves_what_is_known() {
        check(&[(2, 4)], &[(0, 3), (0, 2), (3, 9), (4, 6), (5, 8)], &[(0, 2), (2, 4), (4, 6)]);
        check(&[(2, 4), (6, 8)], &[(3, 7), (0, 9), (4, 6)], &[(2, 4), (4, 6), (6, 8)]);
    }
}
