//! A search word over what the agent may see.
//!
//! Under a mask the word is looked for in the masked text, never in the real one: otherwise a real name, code or date that finds an
//! item would tell which alias or label stands for it (engine E8.5, spec/tools.md b07).

use super::needle::Needle;
use serde_json::json;
use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_market::View;

/// A word that was sent as the argument `field`.
#[derive(Debug)]
pub(super) struct Word<'v> {
    needle: Needle,
    /// The view whose mask changes texts; `None` when nothing is hidden.
    hiding: Option<View<'v>>,
    /// The word may lie on a label that a mask writes, where the real text does not hold it.
    of_label: bool,
}

impl<'v> Word<'v> {
    /// The word of an argument.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidToolArguments`] when nothing in it can be searched for (spec/tools.md b41).
    pub(super) fn new(view: &View<'v>, field: &str, text: &str) -> Result<Self, ToolFailure> {
        let needle = Needle::new(text).ok_or_else(|| {
            let message = "holds no letter, digit or ideograph to search for";
            ToolFailure::new(
                ErrorCode::InvalidToolArguments,
                format!("`{field}` {message}."),
                format!("Send `{field}` with at least one letter, digit or ideograph, or leave it out to list without it."),
            )
            .with("issues", json!([{ "path": format!("/{field}"), "message": message }]))
        })?;
        let config = view.mask().config();
        let of_label = looks_like_label(&needle.folded().iter().collect::<String>());
        Ok(Self { needle, hiding: (config.dates || config.entities).then_some(*view), of_label })
    }

    /// True when the agent would see the word in this text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let Some(view) = &self.hiding else { return self.needle.is_in(text) };
        // A word that is no part of a label lies between labels, so the real text holds it too, and most texts are ruled out without
        // masking them. What decides is always the masked text.
        (self.of_label || self.needle.is_in(text)) && self.needle.is_in(&view.mask().text(text, view.today()))
    }
}

/// Words of the labels that a mask writes, folded (see `market::mask`): names and codes.
const LABEL_WORDS: [&str; 8] = ["company ", "another company", "another code", "shm-", "szm-", "gem-", "star-", "bse-"];

/// True when the word may be a label, a part of one, or run into one by two characters or more: `shm-000360`, `d-3`, `000360`,
/// `company`. A mistake here only makes a search for a scrap of a label find nothing.
fn looks_like_label(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let signed = word.contains(['-', '+', ':']) && digits > 0;
    let touches = |label: &&str| {
        let runs_in = |at: usize| at + 2 <= word.len() && label.starts_with(&word[at..]);
        let runs_out = |at: usize| at >= 2 && label.ends_with(&word[..at]);
        label.contains(word) || word.contains(label.trim_end()) || word.char_indices().any(|(at, _)| runs_in(at) || runs_out(at))
    };
    signed || digits == word.len() || LABEL_WORDS.iter().any(touches)
}

#[cfg(test)]
mod tests {
    use super::looks_like_label;

    #[test]
    fn words_of_labels_are_told_from_words_of_texts() {
        for word in [
            "shm-000360",
            "000360",
            "d-3",
            "d-6 10:30",
            "company",
            "company shm",
            "another",
            "company上涨",
            "pany",
            "涨star",
            "y-1",
        ] {
            assert!(looks_like_label(word), "{word}");
        }
        for word in ["ai", "5g", "芯片", "ai芯片", "2024年", "央行", "chips", "etf"] {
            assert!(!looks_like_label(word), "{word}");
        }
    }
}
