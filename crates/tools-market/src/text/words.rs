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
        Ok(Self { needle, hiding: (config.dates || config.entities).then_some(*view) })
    }

    /// True when the agent would see the word in this text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let Some(view) = &self.hiding else { return self.needle.is_in(text) };
        // Labels that replace names, codes and dates are ASCII. A word without ASCII lies between them, so it is in the real text too
        // and most texts need not be masked to be ruled out.
        (self.needle.has_ascii() || self.needle.is_in(text)) && self.needle.is_in(&view.mask().text(text, view.today()))
    }
}
