//! Lists in pages of whole records. A cursor belongs to one query at one clock and says nothing about hidden codes or dates.

use serde_json::Value;
use traderharness_contract::ToolFailure;
use traderharness_contract::budget::{ListPage, ListRequest};
use traderharness_market::View;

/// The page of `rows` that starts where `cursor` says, at most `size` records. `query` starts with the tool's name and identifies the
/// question in VISIBLE terms (alias, not code): it goes into the cursor's check digits. `complete` is true when the page holds all.
///
/// # Errors
/// `invalid_cursor` for a cursor of another query or clock, or none of ours.
pub(crate) fn page<T>(
    view: &View<'_>,
    query: &str,
    cursor: Option<&str>,
    rows: Vec<T>,
    size: usize,
) -> Result<ListPage<T>, ToolFailure> {
    let tool = query.split([' ', '\n']).next().unwrap_or_default();
    // Neither a date nor a session's number: a masked agent could test guesses of them against the check digits.
    let clock = view.clock_digest();
    ListRequest { tool, query: Value::String(query.to_owned()), clock: &clock, cursor, max_records: size }.page(rows)
}
