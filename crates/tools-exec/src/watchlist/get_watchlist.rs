//! `get_watchlist`: the watched securities at the last visible prices.

use super::{WatchEntry, quote};
use crate::tools::shown;
use crate::{Account, ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::budget::ListRequest;
use traderharness_contract::{
    AsOf, Effect, ErrorCode, Group, Missing, Reason, Repeat, StockCode, TimeField, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::View;

/// The tool.
#[derive(Debug)]
pub struct GetWatchlist;

/// Which part of a long list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// next_cursor of the previous page; left out for the first one. It is good at the same decision point while the list is unchanged.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub cursor: Option<String>,
}

/// One watched security.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EntryShown {
    /// Code of the security.
    pub stock_code: StockCode,
    /// Why it is watched, as you wrote it; may be empty.
    pub reason: String,
    /// Trading days it stays after today; 0 = today is its last day unless it is held. Null when the card sets no limit.
    pub expires_in_trading_days: Option<u32>,
    /// True when shares of it are held; a held security is not dropped.
    pub held: bool,
    /// Last visible price, CNY, as in get_position.
    pub price: Option<f64>,
    /// The same as price, CNY.
    pub close: Option<f64>,
    /// current_visible_5min_close, previous_daily_close, or previous_daily_close_ex_right (moved over an ex-date no bar has traded yet).
    pub price_source: Option<String>,
    /// End of the bar the price is from.
    pub price_time: Option<TimeField>,
    /// Change of the newest session in percent, from the close before it moved over ex-dates: today up to now inside a window, the
    /// previous trading day before the open. Null for a security that did not trade in it.
    pub change_pct: Option<f64>,
}

/// The watchlist.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Watched securities, first added first.
    pub watchlist: Vec<EntryShown>,
    /// Number of watched securities, on all pages.
    pub count: usize,
    /// Number of entries on this page.
    pub returned: usize,
    /// True when this page holds them all.
    pub complete: bool,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Why the list is empty; null when it is not.
    pub empty_reason: Option<String>,
    /// Why numbers are null; a row of this page is named as `watchlist[2].change_pct`.
    pub missing_reasons: Vec<Missing>,
    /// As of when this is true.
    pub as_of: AsOf,
}

impl Tool for GetWatchlist {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "get_watchlist",
        group: Group::Watchlist,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Shows the watched securities with their reasons and last visible prices.",
        notes: &[
            "Entries come in the order in which they were first added, on every day.",
            "Prices in CNY, changes in percent, both with two decimals.",
            "A list too long for one answer comes in pages: ask again with cursor set to next_cursor.",
        ],
        example: "{}",
        result_summary: "Each watched security with reason, days left, price, price source and time, and change.",
        errors: &[ErrorCode::InvalidCursor],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let (view, account) = (&ctx.view, &*ctx.account);
        let entries = account.watchlist.entries();
        let clock = view.clock_digest();
        let request = ListRequest {
            tool: Self::SPEC.name,
            // A cursor belongs to one list. Nothing in it tells a hidden code or day.
            query: entries.iter().map(|e| view.find(e.code).map_or("", |sec| view.mask().code(sec))).collect(),
            clock: &clock,
            cursor: args.cursor.as_deref(),
            max_records: usize::MAX,
        };
        let page = request.page_that_fits(entries, |entry| {
            let mut gaps = Vec::new();
            (shown_entry(view, account, entry, &mut gaps), gaps)
        })?;
        let mut missing_reasons = Vec::new();
        let mut watchlist = Vec::new();
        for (row, (shown, gaps)) in page.records.into_iter().enumerate() {
            let missing = |(field, reason)| Missing { field: format!("watchlist[{row}].{field}"), reason };
            missing_reasons.extend(gaps.into_iter().map(missing));
            watchlist.push(shown);
        }
        Ok(Output {
            count: page.total,
            returned: watchlist.len(),
            complete: page.complete,
            next_cursor: page.next_cursor,
            empty_reason: entries.is_empty().then(|| "nothing is watched; add_watchlist adds a security".to_owned()),
            watchlist,
            missing_reasons,
            as_of: shown::as_of(view),
        })
    }
}

fn shown_entry(view: &View<'_>, account: &Account, entry: &WatchEntry, gaps: &mut Vec<(&'static str, Reason)>) -> EntryShown {
    let found = view.find(entry.code);
    let mark = found.ok_or(Reason::SourceMissing).and_then(|sec| Ok((sec, quote::mark(view, sec)?)));
    let change_pct = match &mark {
        Ok((sec, _)) => quote::change_pct(view, *sec).map_err(|reason| gaps.push(("change_pct", reason))).ok(),
        Err(reason) => {
            gaps.extend(["price", "close", "price_source", "price_time", "change_pct"].map(|field| (field, *reason)));
            None
        }
    };
    let mark = mark.ok().map(|(_, mark)| mark);
    let price = mark.map(|m| shown::price(m.price));
    EntryShown {
        stock_code: entry.code.into(),
        reason: entry.reason.clone(),
        expires_in_trading_days: entry.days_left(view),
        held: account.ledger.position(entry.code).is_some(),
        price,
        close: price,
        price_source: mark.map(|m| m.source.as_str().to_owned()),
        price_time: mark.and_then(|m| m.time).map(|(day, minute)| day.at(minute).into()),
        change_pct,
    }
}
