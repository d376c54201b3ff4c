//! The list behind both announcement tools.

use super::cut::Cut;
use super::items::{EmptyReason, Item, newest_first};
use super::window::{Since, Window, as_of};
use super::words::Word;
use crate::fundamentals::no_table;
use crate::{lookup, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{AsOf, FreeText, StockCode, TimeField, ToolFailure};
use traderharness_market::View;
use traderharness_market::store::Announcement;

const DEFAULT_DAYS: u8 = 30;
const DEFAULT_RESULTS: u8 = 20;
/// Characters of a title that are shown. Longer ones are bodies put into the title column.
const TITLE_LIMIT: usize = 300;

/// Arguments of the announcement tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Security, as a complete code exactly as a tool of this run showed it.
    #[schemars(length(min = 6))]
    stock_code: StockCode,
    /// Calendar days to look back before today; today up to now is always included. Integer, 1 to 90. Default 30.
    #[serde(default)]
    #[schemars(range(min = 1, max = 90), extend("default" = DEFAULT_DAYS))]
    days: Option<u8>,
    /// `last_decision_point` lists only what appeared since the previous decision point and replaces `days`. Default: not set.
    #[serde(default)]
    since: Option<Since>,
    /// Literal text to find in title or type; letter case and full-width forms do not matter. 1 to 100 characters. Default: no filter.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    keyword: Option<String>,
    /// Items per answer. Integer, 1 to 50. Default 20.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50), extend("default" = DEFAULT_RESULTS))]
    max_results: Option<u8>,
    /// `next_cursor` of the previous answer, to go on with older items of the same query at the same decision point.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    cursor: Option<String>,
}

/// Announcements of one security.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// The security.
    stock_code: StockCode,
    /// Start of the window, included.
    from: TimeField,
    /// End of the window, excluded: now.
    until: TimeField,
    /// Announcements, newest first.
    announcements: Vec<Filing>,
    /// Number of announcements in the window that the filter lets pass.
    total: usize,
    /// Number returned here.
    returned: usize,
    /// True when this answer holds all of them.
    complete: bool,
    /// Cursor of the next, older items; null when there are none.
    next_cursor: Option<String>,
    /// In how many of `total` the keyword is in each field; null without a keyword.
    matches: Option<Matches>,
    /// Why the list is empty; null when it is not.
    empty_reason: Option<EmptyReason>,
}

/// Announcements with the keyword, per field.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Matches {
    /// In the title.
    title: usize,
    /// In the type.
    r#type: usize,
}

/// One announcement.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Filing {
    /// Id to cite this announcement by.
    evidence_id: String,
    /// Time of publication.
    time: TimeField,
    /// True when the source gives only a day: the time is then 15:00 of that day, after the close.
    date_only: bool,
    /// Title, at most 300 characters.
    title: FreeText,
    /// Characters of the whole title.
    title_characters: usize,
    /// True when the title was cut.
    title_cut: bool,
    /// Kind of announcement, in the words of the source.
    r#type: FreeText,
}

/// Lists the announcements for `tool`.
pub(super) fn list(view: &View<'_>, tool: &str, args: &Args) -> Result<Output, ToolFailure> {
    let sec = lookup::find(view, &args.stock_code)?;
    let rows = view.announcements(sec).ok_or_else(|| no_table("table of announcements"))?;
    let word = args.keyword.as_deref().map(|text| Word::new(view, "keyword", text)).transpose()?;
    let days = args.days.unwrap_or(DEFAULT_DAYS);
    let window = Window::of(view, days, args.since);
    let in_window = window.of_rows(rows, |r| r.time);

    let mut matches = Matches { title: 0, r#type: 0 };
    let mut found: Vec<&Announcement> = Vec::with_capacity(in_window.len());
    for row in in_window {
        if let Some(word) = &word {
            let (title, kind) = (word.is_in(&row.title), word.is_in(&row.kind));
            matches.title += usize::from(title);
            matches.r#type += usize::from(kind);
            if !title && !kind {
                continue;
            }
        }
        found.push(row);
    }
    newest_first(view, &mut found);

    let empty_reason = EmptyReason::of(found.len(), in_window.len(), rows.len());
    let query = format!("{tool}\n{}\n{days}\n{:?}\n{:?}", view.mask().code(sec), args.since, args.keyword);
    let size = usize::from(args.max_results.unwrap_or(DEFAULT_RESULTS));
    let page = page::page(view, &query, args.cursor.as_deref(), found, size)?;
    let announcements: Vec<Filing> = page.records.iter().map(|row| filing(view, row)).collect();
    Ok(Output {
        as_of: as_of(view),
        stock_code: lookup::code(view, sec),
        from: window.from.into(),
        until: window.until.into(),
        total: page.total,
        returned: announcements.len(),
        announcements,
        complete: page.complete,
        next_cursor: page.next_cursor,
        matches: word.map(|_| matches),
        empty_reason,
    })
}

fn filing(view: &View<'_>, row: &Announcement) -> Filing {
    let title = Cut::at(view, &row.title, TITLE_LIMIT);
    Filing {
        evidence_id: row.evidence_id(view),
        time: row.time.into(),
        date_only: row.date_only,
        title: title.text,
        title_characters: title.characters,
        title_cut: title.cut,
        r#type: Cut::at(view, &row.kind, TITLE_LIMIT).text,
    }
}
