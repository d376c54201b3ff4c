//! Lists in pages of whole records. A cursor belongs to one query at one clock and says nothing about hidden codes or dates.

use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_market::View;

/// One page of a list, as the fields every list result has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) total: usize,
    pub(crate) complete: bool,
    pub(crate) next_cursor: Option<String>,
}

/// The page of `rows` that starts where `cursor` says, at most `size` records. `query` identifies the question in VISIBLE terms (alias,
/// not code): it goes into the cursor's check digits.
///
/// # Errors
/// [`ErrorCode::InvalidCursor`] for a cursor of another query or clock, or none of ours.
pub(crate) fn page<T>(
    view: &View<'_>,
    query: &str,
    cursor: Option<&str>,
    rows: Vec<T>,
    size: usize,
) -> Result<Page<T>, ToolFailure> {
    let total = rows.len();
    let start = match cursor {
        None => 0,
        Some(text) => read(view, query, text).filter(|at| *at > 0 && *at < total).ok_or_else(invalid)?,
    };
    let rows: Vec<T> = rows.into_iter().skip(start).take(size.max(1)).collect();
    let end = start + rows.len();
    let next_cursor = (end < total).then(|| write(view, query, end));
    Ok(Page { rows, total, complete: start == 0 && end == total, next_cursor })
}

fn invalid() -> ToolFailure {
    ToolFailure::new(
        ErrorCode::InvalidCursor,
        "This cursor does not belong to this query at this decision point.",
        "Ask again without cursor, then follow next_cursor with otherwise equal arguments before the clock moves.",
    )
}

/// FNV-1a. Only has to tell queries and clocks apart; holds nothing secret.
fn digits(view: &View<'_>, query: &str) -> u32 {
    let session = view.past_days().len();
    let point = view.clock().point.as_str();
    let text = format!("{query}\n{session}\n{point}");
    text.bytes().fold(0x811c_9dc5, |hash: u32, b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

fn write(view: &View<'_>, query: &str, at: usize) -> String {
    format!("c{at}-{:08x}", digits(view, query))
}

fn read(view: &View<'_>, query: &str, text: &str) -> Option<usize> {
    let (at, check) = text.strip_prefix('c')?.split_once('-')?;
    let at: usize = at.parse().ok()?;
    (write(view, query, at) == format!("c{at}-{check}")).then_some(at)
}
