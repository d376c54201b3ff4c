//! `get_news`: market news up to now.

use super::cut::Cut;
use super::items::{EmptyReason, Item};
use super::search::{NewsMatches, NewsQuery, search};
use super::window::{Since, as_of};
use crate::{MarketCtx, MarketTools, lookup, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{
    AsOf, Effect, ErrorCode, FreeText, Group, Repeat, StockCode, TimeField, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::View;
use traderharness_market::store::NewsItem;

const DEFAULT_DAYS: u8 = 3;
const DEFAULT_RESULTS: u8 = 15;
const DEFAULT_CONTENT: u16 = 300;
/// Characters of a title that are shown.
const TITLE_LIMIT: usize = 200;

/// Arguments of `get_news`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Calendar days to look back before today; today up to now is always included. Integer, 1 to 3. Default 3.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3), extend("default" = DEFAULT_DAYS))]
    days: Option<u8>,
    /// `last_decision_point` lists only what appeared since the previous decision point and replaces `days`. Default: not set.
    #[serde(default)]
    since: Option<Since>,
    /// Literal text to find in title or content; letter case and full-width forms do not matter. 1 to 100 characters. Default: no filter.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    keyword: Option<String>,
    /// Sector name to find literally in title or content, such as a top-level name of get_market_overview. With `keyword` too, an
    /// item passes with either of them. 1 to 100 characters. Default: no filter.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    sector: Option<String>,
    /// Only items that name this security by code or company name, in title, content, tags or linked securities. A complete code
    /// exactly as a tool of this run showed it. Default: no filter.
    #[serde(default)]
    #[schemars(length(min = 6))]
    stock_code: Option<StockCode>,
    /// Items per answer. Integer, 1 to 30. Default 15.
    #[serde(default)]
    #[schemars(range(min = 1, max = 30), extend("default" = DEFAULT_RESULTS))]
    max_results: Option<u8>,
    /// Characters of each content to return. Integer, 50 to 3000. Default 300.
    #[serde(default)]
    #[schemars(range(min = 50, max = 3000), extend("default" = DEFAULT_CONTENT))]
    content_limit: Option<u16>,
    /// `next_cursor` of the previous answer, to go on with older items of the same query at the same decision point.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    cursor: Option<String>,
}

/// News items.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// Start of the window, included.
    from: TimeField,
    /// End of the window, excluded: now.
    until: TimeField,
    /// Items, newest first.
    news: Vec<Story>,
    /// Number of items in the window that the filters let pass.
    total: usize,
    /// Number returned here.
    returned: usize,
    /// True when this answer holds all of them.
    complete: bool,
    /// Cursor of the next, older items; null when there are none.
    next_cursor: Option<String>,
    /// The word that was searched for, as it was sent: keyword, else sector, else `all`.
    // A word of the agent, so never masked: its alias would tell which security it names (engine E8.5).
    filter: String,
    /// In how many of `total` a searched word (keyword, sector, code or name of the security) is in each field; null when nothing
    /// was searched for.
    matches: Option<NewsMatches>,
    /// Why the list is empty; null when it is not.
    empty_reason: Option<EmptyReason>,
}

/// One news item.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Story {
    /// Id to cite this item by.
    evidence_id: String,
    /// Time of publication.
    time: TimeField,
    /// Title, at most 200 characters; empty when the source has none.
    title: FreeText,
    /// Content, at most `content_limit` characters.
    content: FreeText,
    /// Characters of the whole content.
    content_characters: usize,
    /// True when title or content was cut.
    content_cut: bool,
    /// Weight the source gives the item: A (highest), B, C; empty when unknown.
    level: String,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct GetNews;

impl Tool for GetNews {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_news",
        group: Group::Text,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Lists market news that appeared before now, all of it or what fits a keyword, a sector or a security.",
        notes: &[
            "Order: newest first; items of the same second by descending evidence_id.",
            "The window is `days` calendar days before today plus today up to now; with `since` it starts at the previous decision point.",
            "An item passes when it holds `keyword` or `sector` (if any is given) and names `stock_code` (if given).",
            "`keyword` and `sector` are literal text, never a pattern, and are looked for in title and content as this run shows them.",
            "Content above `content_limit` characters is cut; `content_characters` and `content_cut` say so.",
        ],
        example: r#"{"days": 3, "keyword": "chip", "max_results": 15}"#,
        result_summary: "`news` with `total`; `next_cursor` leads to older items; an empty list has `empty_reason`.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::DataUnavailable, ErrorCode::InvalidCursor],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        let stock = args.stock_code.as_ref().map(|code| lookup::find(view, code)).transpose()?;
        let days = args.days.unwrap_or(DEFAULT_DAYS);
        let (keyword, sector) = (args.keyword.as_deref(), args.sector.as_deref());
        let found = search(view, &NewsQuery { days, since: args.since, keyword, sector, stock, market_relevant_only: false })?;
        let alias = stock.map(|sec| view.mask().code(sec));
        let query = format!("{}\n{days}\n{:?}\n{keyword:?}\n{sector:?}\n{alias:?}", Self::SPEC.name, args.since);
        let size = usize::from(args.max_results.unwrap_or(DEFAULT_RESULTS));
        let page = page::page(view, &query, args.cursor.as_deref(), found.items, size)?;
        let limit = usize::from(args.content_limit.unwrap_or(DEFAULT_CONTENT));
        let news: Vec<Story> = page.records.iter().map(|row| Story::of(view, row, limit)).collect();
        Ok(Output {
            as_of: as_of(view),
            from: found.window.from.into(),
            until: found.window.until.into(),
            total: page.total,
            returned: news.len(),
            news,
            complete: page.complete,
            next_cursor: page.next_cursor,
            filter: keyword.or(sector).unwrap_or("all").into(),
            matches: found.matches,
            empty_reason: found.empty_reason,
        })
    }
}

impl Story {
    /// The item as it is shown, its content cut to `limit` characters.
    pub(crate) fn of(view: &View<'_>, row: &NewsItem, limit: usize) -> Self {
        let (title, content) = (Cut::at(view, &row.title, TITLE_LIMIT), Cut::at(view, &row.content, limit));
        Self {
            evidence_id: row.evidence_id(view),
            time: row.time.into(),
            title: title.text,
            content: content.text,
            content_characters: content.characters,
            content_cut: title.cut || content.cut,
            level: row.level.clone(),
        }
    }
}
