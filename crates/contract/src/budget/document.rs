//! Paging of one long text by characters: the pages put together are the text, to the character (spec/seeds.md B10).

use crate::json::{characters, length, prefix, text};
use serde_json::Value;

/// Where a page is in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Characters of the whole text.
    pub total: usize,
    /// Characters before this page.
    pub offset: usize,
    /// Characters of this page.
    pub returned: usize,
    /// Offset of the next page; `None` when this is the last.
    pub next_offset: Option<usize>,
}

/// One page of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentPage {
    /// The answer as `build` made it.
    pub envelope: Value,
    /// Its text, within the limit.
    pub text: String,
    /// Where the page is.
    pub span: Span,
}

/// Why there is no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DocumentFault {
    /// The offset is not inside the text.
    #[error("offset {offset} is past the end of a text of {total} characters")]
    PastEnd {
        /// Offset asked for.
        offset: usize,
        /// Characters of the text.
        total: usize,
    },
    /// The limit has no room for the envelope and one character of the text.
    #[error("a limit of {limit} characters has no room for the answer")]
    NoRoom {
        /// Limit.
        limit: usize,
    },
}

/// The longest page of `document` from `offset` on whose answer has at most `limit` characters. `build` makes the answer out of
/// a page and its place; it is called several times and must depend on its arguments only. Newlines and quotes cost two
/// characters in JSON, so dense text gives shorter pages.
///
/// # Errors
/// [`DocumentFault`]. A page never comes empty from a text that is not, so that reading always ends.
pub fn fit_document(
    document: &str,
    offset: usize,
    limit: usize,
    build: impl Fn(&str, &Span) -> Value,
) -> Result<DocumentPage, DocumentFault> {
    let total = characters(document);
    if offset >= total && total > 0 {
        return Err(DocumentFault::PastEnd { offset, total });
    }
    let rest = &document[prefix(document, offset).len()..];
    let remaining = total.saturating_sub(offset);
    let attempt = |count: usize| {
        let end = offset + count;
        let span = Span { total, offset, returned: count, next_offset: (end < total).then_some(end) };
        let envelope = build(prefix(rest, count), &span);
        (length(&envelope) <= limit).then(|| DocumentPage { text: text(&envelope), envelope, span })
    };
    if let Some(page) = attempt(remaining) {
        return Ok(page);
    }
    // A page of more characters than the limit cannot fit, whatever it holds.
    let (mut low, mut high, mut best) = (0, remaining.min(limit.saturating_add(1)), None);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match attempt(middle) {
            Some(page) => {
                best = Some(page);
                low = middle;
            }
            None => high = middle,
        }
    }
    best.ok_or(DocumentFault::NoRoom { limit })
}
