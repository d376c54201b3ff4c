//! `get_narrative_news`: news up to now as evidence, two different searches a day.

use super::budget::Budget;
use crate::text::cut::Cut;
use crate::text::items::EmptyReason;
use crate::text::news::Story;
use crate::text::search::{NewsMatches, NewsQuery, search};
use crate::text::window::{Since, as_of};
use crate::{MarketCtx, MarketTools, lookup, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{
    AsOf, Effect, ErrorCode, FreeText, Group, Repeat, StockCode, TimeField, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::View;
use traderharness_market::store::NewsItem;

/// Characters of a title, of tags and of linked securities that are shown.
const SHORT_LIMIT: usize = 200;

/// The tool.
#[derive(Debug)]
pub(crate) struct GetNarrativeNews;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Calendar days to look back before today; today up to now is always included. Integer, 1 to 3. Default 3.
    #[serde(default = "default_days")]
    #[schemars(range(min = 1, max = 3))]
    days: u8,
    /// last_decision_point lists only what appeared since the previous decision point and replaces days. Default: not set.
    #[serde(default)]
    since: Option<Since>,
    /// Literal text to find in title or content; letter case and full-width forms do not matter. 1 to 100 characters. Default: no filter.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    keyword: Option<String>,
    /// Sector name to find literally in title or content. With keyword too, an item passes with either of them. 1 to 100 characters.
    /// Default: no filter.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    sector: Option<String>,
    /// Only items that name this security in title, content, tags or linked securities. A complete code as shown in this run.
    /// Default: no filter.
    #[serde(default)]
    #[schemars(length(min = 6))]
    stock_code: Option<StockCode>,
    /// True keeps only items of level A or B, or with tags or linked securities. Default false.
    #[serde(default)]
    market_relevant_only: bool,
    /// Items per answer. Integer, 1 to 30. Default 15. A different number is no different search.
    #[serde(default = "default_results")]
    #[schemars(range(min = 1, max = 30))]
    max_results: u8,
    /// Characters of each content to return. Integer, 50 to 3000. Default 300. A different number is no different search.
    #[serde(default = "default_content")]
    #[schemars(range(min = 50, max = 3000))]
    content_limit: u16,
    /// next_cursor of the previous answer, to go on with older items of the same search at the same decision point; free.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    cursor: Option<String>,
}

fn default_days() -> u8 {
    3
}
fn default_results() -> u8 {
    15
}
fn default_content() -> u16 {
    300
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// Start of the window, included.
    from: TimeField,
    /// End of the window, excluded: now.
    until: TimeField,
    /// Items, newest first.
    news: Vec<Linked>,
    /// Items in the window that the filters let pass.
    total: usize,
    /// Items returned here.
    returned: usize,
    /// True when this answer holds all of them.
    complete: bool,
    /// Cursor of the next, older items; null when there are none.
    next_cursor: Option<String>,
    /// The word that was searched for, as it was sent: keyword, else sector, else `all`.
    // A word of the agent, so never masked: its alias would tell which security it names (engine E8.5).
    filter: String,
    /// In how many of total a searched word is in each field; null when nothing was searched for.
    matches: Option<NewsMatches>,
    /// Why the list is empty; null when it is not.
    empty_reason: Option<EmptyReason>,
    /// Which items can be here.
    as_of_rule: String,
    /// The day's budget of different searches.
    budget: Budget,
    /// True when this search was already made today; it is made again up to now, and is free.
    repeated: bool,
}

/// One news item with what the source links it to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Linked {
    #[serde(flatten)]
    story: Story,
    /// Tags of the source, at most 200 characters; empty when there are none.
    tags: FreeText,
    /// Securities the source links to the item, at most 200 characters; empty when there are none.
    linked_stocks: FreeText,
}

impl Tool for GetNarrativeNews {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_narrative_news",
        group: Group::Narrative,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "News that appeared before now with evidence ids, tags and linked securities, for citing in a decision.",
        notes: &[
            "Two different searches a day; only a successful new one counts. Repeating one, or reading its next pages, is free.",
            "Order: newest first; items of the same second by descending evidence_id.",
            "An item passes when it holds keyword or sector (if any is given) and names stock_code (if given).",
            "keyword and sector are literal text, never a pattern, and are looked for in title and content as this run shows them.",
            "Content above content_limit characters is cut; content_characters and content_cut say so.",
        ],
        example: r#"{"days": 3, "keyword": "chip", "market_relevant_only": true}"#,
        result_summary: "News with evidence_id and total, the day's budget; an empty list has empty_reason.",
        errors: &[
            ErrorCode::UnknownSecurity,
            ErrorCode::DataUnavailable,
            ErrorCode::DailyToolBudgetExhausted,
            ErrorCode::InvalidCursor,
        ],
        opt_in: true,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = ctx.view;
        let stock = args.stock_code.as_ref().map(|code| lookup::find(&view, code)).transpose()?;
        let (keyword, sector) = (args.keyword.as_deref().map(str::trim), args.sector.as_deref().map(str::trim));
        let question = question(&args, keyword, sector, stock.map(|sec| view.mask().code(sec)));
        ctx.state.at(&view).today.searches.admit(&question)?;
        let query = NewsQuery {
            days: args.days,
            since: args.since,
            keyword,
            sector,
            stock,
            market_relevant_only: args.market_relevant_only,
        };
        let found = search(&view, &query)?;
        let scope = format!("get_narrative_news\n{question}\n{}", args.max_results);
        let page = page::page(&view, &scope, args.cursor.as_deref(), found.items, usize::from(args.max_results))?;
        let news: Vec<Linked> = page.records.iter().map(|row| linked(&view, row, usize::from(args.content_limit))).collect();
        // Nothing can fail from here on: the question is answered and counts.
        let repeated = ctx.state.today.searches.count(question);
        Ok(Output {
            as_of: as_of(&view),
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
            as_of_rule: "publication time strictly before now".to_owned(),
            budget: ctx.state.today.searches.budget(),
            repeated,
        })
    }
}

/// The search in visible terms. How many items and characters are shown does not make it another one.
fn question(args: &Args, keyword: Option<&str>, sector: Option<&str>, alias: Option<&str>) -> String {
    let mut out = match args.since {
        Some(_) => "since last_decision_point".to_owned(),
        None => format!("days {}", args.days),
    };
    for (name, value) in [("keyword", keyword), ("sector", sector), ("stock_code", alias)] {
        if let Some(value) = value {
            out.push_str(&format!(", {name} {value}"));
        }
    }
    if args.market_relevant_only {
        out.push_str(", market_relevant_only");
    }
    out
}

fn linked(view: &View<'_>, row: &NewsItem, limit: usize) -> Linked {
    Linked {
        story: Story::of(view, row, limit),
        tags: Cut::at(view, &row.tags, SHORT_LIMIT).text,
        linked_stocks: Cut::at(view, &row.stock_list, SHORT_LIMIT).text,
    }
}
