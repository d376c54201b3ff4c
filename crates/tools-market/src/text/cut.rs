//! Long texts cut at field level: the answer says how long the text was and that it was cut (complaint TR-9).
//!
//! Masking happens on the way out, after the cut. A cut inside a company name, a code or a date would leave a half that no mask
//! knows, so a masked run cuts before it.

use traderharness_contract::FreeText;
use traderharness_market::View;

/// Characters after a cut that a name, code or date may reach over.
const REACH: usize = 64;

/// A text that fits its field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) text: FreeText,
    /// Characters of the whole text.
    pub(crate) characters: usize,
    pub(crate) cut: bool,
}

impl Cut {
    /// The first `limit` characters of `text` at most.
    pub(crate) fn at(view: &View<'_>, text: &str, limit: usize) -> Self {
        // A character is at least one byte: most texts need no count to be known as short.
        if text.len() <= limit || text.chars().nth(limit).is_none() {
            return Self { text: text.into(), characters: text.chars().count(), cut: false };
        }
        Self { text: prefix(view, text, limit).into(), characters: text.chars().count(), cut: true }
    }
}

fn first(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(at, _)| &text[..at])
}

fn prefix<'t>(view: &View<'_>, text: &'t str, limit: usize) -> &'t str {
    let config = view.mask().config();
    if !config.dates && !config.entities {
        return first(text, limit);
    }
    let mask = |part: &str| view.mask().text(part, view.today()).into_owned();
    let whole = mask(first(text, limit + REACH));
    // Nothing hidden lies over the cut when the mask gives the part the same form alone and in its text.
    (limit.saturating_sub(REACH)..=limit).rev().map(|n| first(text, n)).find(|part| whole.starts_with(&mask(part))).unwrap_or("")
}
