//! The page of one tool, with what card switches make of it.

use super::Entry;
use traderharness_contract::{Definition, review};

pub(crate) use traderharness_contract::review::{cell, effect, family};

/// Renders the page, without preamble.
pub(crate) fn render(entry: &Entry) -> String {
    let switched: Vec<(&str, &Definition)> = entry.switched.iter().map(|(name, definition)| (*name, definition)).collect();
    review::page_with(&entry.definition, &switched)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_page_has_every_part_of_the_contract() {
        let page = render(&sample::entry());
        for part in [
            "# get_sample\n\nReturns a sample. It is of no use.\n\n- Rows are ordered by day.\n",
            "| Market | read | runs again | only to cards that name it |",
            "| `code` | string | ",
            " | yes | Complete visible code. |",
            "| `days` | integer | 1 to 250 | 60 |  | Sessions to return. |",
            "Rows \\| columns to keep.",
            "| `filters[].min` | number |  |  | yes | Lower bound, CNY. |",
            "### With `require_structured_plan`",
            "\"required\": [\n        \"reason\"",
            "{\n  \"code\": \"000001\"\n}",
            "| `price` | number or null |",
            "| `unknown_security` | arguments | yes |",
        ] {
            assert!(page.contains(part), "lacks {part:?}:\n{page}");
        }
        assert!(!page.contains("\n\n\n"), "no double empty line:\n{page}");
    }
}
