//! The search behind every tool and method that lists news.
//!
//! `keyword` and `sector` are words the agent sent: they are looked for in what the agent may see. A security was named by its visible
//! code: its real code and names are looked for in the real text, and under a mask that hides them an item counts only where the mask
//! writes that visible code. A name that is also an everyday word stays in the text as it is; an item found by it would tell the name.

use super::items::{EmptyReason, newest_first};
use super::needle::Needle;
use super::window::{Since, Window};
use super::words::Word;
use crate::fundamentals::no_table;
use schemars::JsonSchema;
use serde::Serialize;
use traderharness_contract::ToolFailure;
use traderharness_market::store::NewsItem;
use traderharness_market::{SecId, View};

/// What to list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NewsQuery<'q> {
    /// Calendar days before today.
    pub(crate) days: u8,
    /// Replaces `days` by the previous decision point.
    pub(crate) since: Option<Since>,
    /// Literal text of title or content.
    pub(crate) keyword: Option<&'q str>,
    /// As `keyword`; an item passes with either of the two.
    pub(crate) sector: Option<&'q str>,
    /// Only items that name this security.
    pub(crate) stock: Option<SecId>,
    /// Only items of level A or B, or with tags or linked securities.
    pub(crate) market_relevant_only: bool,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct NewsFound<'a> {
    /// Items in list order, newest first.
    pub(crate) items: Vec<&'a NewsItem>,
    /// Where the searched words were; `None` when nothing was searched for.
    pub(crate) matches: Option<NewsMatches>,
    /// Why there is no item.
    pub(crate) empty_reason: Option<EmptyReason>,
    /// The window that was looked at.
    pub(crate) window: Window,
}

/// In how many of the found items a searched word (keyword, sector, code or name of the security) is in each field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NewsMatches {
    /// Items with it in the title.
    pub(crate) title: usize,
    /// Items with it in the content, the part that was cut off included.
    pub(crate) content: usize,
    /// Items whose tags name the security.
    pub(crate) tags: usize,
    /// Items whose linked securities hold the security.
    pub(crate) linked: usize,
}

/// Spellings of one security: its code, its names.
#[derive(Debug)]
struct Spellings<'v> {
    needles: Vec<Needle>,
    /// The view whose mask hides codes and names, and the visible code; `None` when they are not hidden.
    hiding: Option<(View<'v>, &'v str)>,
}

impl<'v> Spellings<'v> {
    fn of(view: &View<'v>, sec: SecId) -> Self {
        let code = view.code(sec);
        let company = view.security(sec);
        let given =
            company.into_iter().flat_map(|c| std::iter::once(c.name.as_str()).chain(c.aliases.iter().map(String::as_str)));
        let printed = view.announcements(sec).unwrap_or_default().iter().map(|a| a.name.as_str());
        // One character names no company; it would find half of all texts.
        let mut names: Vec<&str> = given.chain(printed).map(str::trim).filter(|n| n.chars().nth(1).is_some()).collect();
        names.sort_unstable();
        names.dedup();
        let needles = Needle::of_code(code.as_str()).into_iter().chain(names.into_iter().filter_map(Needle::new)).collect();
        let mask = view.mask();
        Self { needles, hiding: mask.config().entities.then(|| (*view, mask.code(sec))) }
    }

    fn are_in(&self, text: &str) -> bool {
        let found = !text.is_empty() && self.needles.iter().any(|needle| needle.is_in(text));
        found && self.hiding.is_none_or(|(view, alias)| view.mask().text(text, view.today()).contains(alias))
    }
}

/// Finds news.
///
/// # Errors
/// No such table; a keyword or sector without anything to search for.
pub(crate) fn search<'a>(view: &View<'a>, query: &NewsQuery<'_>) -> Result<NewsFound<'a>, ToolFailure> {
    let rows = view.news().ok_or_else(|| no_table("table of news"))?;
    let word = |field, text: Option<&str>| text.map(|text| Word::new(view, field, text)).transpose();
    let words: Vec<Word<'_>> = word("keyword", query.keyword)?.into_iter().chain(word("sector", query.sector)?).collect();
    let spellings = query.stock.map(|sec| Spellings::of(view, sec));
    let window = Window::of(view, query.days, query.since);
    let in_window = window.of_rows(rows, |r| r.time);

    let mut matches = NewsMatches::default();
    let mut items: Vec<&NewsItem> = Vec::new();
    for row in in_window {
        if query.market_relevant_only && !is_market_relevant(row) {
            continue;
        }
        let mut fields = [false; 4];
        if let Some(spellings) = &spellings {
            fields = [&row.title, &row.content, &row.tags, &row.stock_list].map(|text| spellings.are_in(text));
            if fields == [false; 4] {
                continue;
            }
        }
        if !words.is_empty() {
            let [title, content] = [&row.title, &row.content].map(|text| words.iter().any(|word| word.is_in(text)));
            if !title && !content {
                continue;
            }
            fields[0] |= title;
            fields[1] |= content;
        }
        let [title, content, tags, linked] = fields.map(usize::from);
        matches.title += title;
        matches.content += content;
        matches.tags += tags;
        matches.linked += linked;
        items.push(row);
    }
    newest_first(view, &mut items);
    let searched = !words.is_empty() || spellings.is_some();
    Ok(NewsFound {
        empty_reason: EmptyReason::of(items.len(), in_window.len(), rows.len()),
        items,
        matches: searched.then_some(matches),
        window,
    })
}

/// Level A or B, or tagged, or linked to a security.
fn is_market_relevant(row: &NewsItem) -> bool {
    let empty = |list: &str| matches!(list.trim(), "" | "[]" | "null");
    matches!(row.level.trim(), "A" | "B") || !empty(&row.stock_list) || !empty(&row.tags)
}
