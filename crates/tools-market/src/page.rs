//! Lists in pages of whole records. A cursor belongs to one query at one clock and says nothing about hidden codes or dates.

use serde_json::Value;
use traderharness_contract::ToolFailure;
use traderharness_contract::budget::{Cursor, CursorFault, CursorScope};
use traderharness_market::View;

/// One page of a list, as the fields every list result has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) total: usize,
    pub(crate) complete: bool,
    pub(crate) next_cursor: Option<String>,
}

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
) -> Result<Page<T>, ToolFailure> {
    let total = rows.len();
    let tool = query.split([' ', '\n']).next().unwrap_or_default();
    // Neither a date nor a session's number: a masked agent could test guesses of them against the check digits.
    let clock = view.clock_digest();
    let scope = || CursorScope::new(tool, &Value::String(query.to_owned()), &clock);
    let start = match cursor {
        None => 0,
        Some(text) => Cursor::decode(text, &scope())
            .and_then(|c| usize::try_from(c.offset).ok().filter(|at| *at > 0 && *at < total).ok_or(CursorFault::Malformed))
            .map_err(|fault| fault.failure(tool))?,
    };
    let rows: Vec<T> = rows.into_iter().skip(start).take(size.max(1)).collect();
    let end = start + rows.len();
    let next_cursor = (end < total).then(|| Cursor { offset: end as u64 }.encode(&scope()));
    Ok(Page { rows, total, complete: start == 0 && end == total, next_cursor })
}
