//! Long texts cut at field level: the answer says how long the text was and that it was cut (complaint TR-9).
//!
//! Masking happens on the way out, after the cut, but length and limit are those of what the agent sees: the characters of a hidden
//! name or date must not be counted out to it. A masked run ends a part before a name, code or date that does not fit whole.

use traderharness_contract::FreeText;
use traderharness_market::View;

/// A text that fits its field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) text: FreeText,
    /// Characters of the whole text, as this run shows it.
    pub(crate) characters: usize,
    pub(crate) cut: bool,
}

impl Cut {
    /// The first `limit` characters of `text` at most, counted as this run shows them.
    pub(crate) fn at(view: &View<'_>, text: &str, limit: usize) -> Self {
        let (part, characters) = view.mask().beginning(text, view.today(), limit);
        Self { text: part.into(), characters, cut: part.len() < text.len() }
    }
}
