//! `screen_stocks`: stocks that pass filters on the previous session, ordered by one number.

use crate::adjust::{ChangeBasis, change_basis};
use crate::features::{Facts, Limit, Stock};
use crate::market::overview::nothing_to_compare;
use crate::number::{Gaps, PERCENT, PRICE, Seen};
use crate::sectors::{self, descending};
use crate::{MarketCtx, MarketTools, lookup, page};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use traderharness_contract::{AsOf, DayField, Effect, ErrorCode, Group, Missing, Repeat, StockCode, Tool, ToolFailure, ToolSpec};
use traderharness_market::View;

/// The tool.
#[derive(Debug)]
pub(crate) struct ScreenStocks;

/// What orders the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SortBy {
    #[serde(rename = "change_1d")]
    Change1d,
    #[serde(rename = "change_5d")]
    Change5d,
    #[serde(rename = "change_20d")]
    Change20d,
    Volume,
    Amount,
}

/// One sector name or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Names {
    One(String),
    Many(Vec<String>),
}

fn names_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["string", "array"],
        "minLength": 1,
        "maxLength": 60,
        "items": { "type": "string", "minLength": 1, "maxLength": 60 },
        "minItems": 1,
        "maxItems": 30,
    })
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Lowest close, CNY, included; 0 or more. Default: no bound.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    price_min: Option<f64>,
    /// Highest close, CNY, included; above 0 and not below price_min. Default: no bound.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    price_max: Option<f64>,
    /// Lowest change over the previous session, percent, included. Default: no bound.
    #[serde(default)]
    change_pct_min: Option<f64>,
    /// Highest change over the previous session, percent, included; not below change_pct_min. Default: no bound.
    #[serde(default)]
    change_pct_max: Option<f64>,
    /// Lowest volume of the previous session, shares, included; integer, 0 or more. Default: no bound.
    #[serde(default)]
    #[schemars(range(min = 0))]
    volume_min: Option<u64>,
    /// Lowest amount of the previous session, CNY, included; 0 or more. Default: no bound.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    amount_min: Option<f64>,
    /// Sector name or list of up to 30 sector names, each exact or a prefix that only one sector has. Default: all sectors.
    #[serde(default)]
    #[schemars(schema_with = "names_schema")]
    industry: Option<Names>,
    /// True leaves out securities whose newest flag is ST or *ST. Default false.
    #[serde(default)]
    exclude_st: bool,
    /// True leaves out securities that closed at their upper price limit. Default false.
    #[serde(default)]
    exclude_limit_up: bool,
    /// Number that orders the result, largest first. Default change_5d.
    #[serde(default = "default_sort")]
    sort_by: SortBy,
    /// Stocks of one answer, 1 to 30. Default 10.
    #[serde(default = "default_results")]
    #[schemars(range(min = 1, max = 30))]
    max_results: u32,
    /// next_cursor of the previous answer, with otherwise equal arguments at the same decision point. Default: the first page.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    cursor: Option<String>,
}

fn default_sort() -> SortBy {
    SortBy::Change5d
}
fn default_results() -> u32 {
    10
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// The session that the filters look at: the previous trading day.
    session: DayField,
    /// One page of the stocks that pass, largest sort number first.
    stocks: Vec<Row>,
    /// Stocks that pass.
    total_matched: usize,
    /// Stocks in this page.
    returned: usize,
    /// True when this page holds all that pass.
    complete: bool,
    /// Cursor of the next page; null after the last one.
    next_cursor: Option<String>,
    /// Stocks listed now, before any filter.
    universe: usize,
    /// What each filter removed, in the order they were applied; each counts only what the ones before left.
    removed: Vec<Removed>,
    /// Why no stock passes: the filter that removed the last ones; null when some pass.
    empty_reason: Option<String>,
    /// How changes across ex-dates are computed.
    adjustment: ChangeBasis,
    /// Why numbers are null.
    missing_reasons: Vec<Missing>,
}

/// One stock.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Row {
    /// Code of the security.
    code: StockCode,
    /// Close, CNY.
    close: Option<f64>,
    /// Change over 1 session, percent.
    change_1d_pct: Option<f64>,
    /// Change over 5 sessions, percent.
    change_5d_pct: Option<f64>,
    /// Change over 20 sessions, percent.
    change_20d_pct: Option<f64>,
    /// Volume of the session, shares.
    volume: Option<i64>,
    /// Amount of the session, CNY.
    amount: Option<f64>,
}

/// One filter.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Removed {
    /// Filter: suspended, no_sort_value, or the argument.
    filter: String,
    /// Stocks it removed.
    count: usize,
}

impl Tool for ScreenStocks {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "screen_stocks",
        group: Group::Screening,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Stocks that pass price, change, volume, amount and sector filters on the previous session.",
        notes: &[
            "Ordered by the sort number before rounding, largest first; ties by visible code.",
            "Bounds are included and compared before rounding. A stock without a bar on the session, or without the sort number, never passes.",
            "Changes over N sessions compare the close with the close N sessions of the stock earlier, in percent (2 decimals).",
            "Prices in CNY (2 decimals), volume in shares, amount in CNY.",
        ],
        example: r#"{"price_min": 5, "price_max": 50, "change_pct_min": 1, "sort_by": "change_5d", "max_results": 10}"#,
        result_summary: "Up to max_results stocks with close, changes, volume and amount; the number that pass; what each filter removed.",
        errors: &[ErrorCode::InvalidFilterRange, ErrorCode::SectorNotFound, ErrorCode::DataUnavailable, ErrorCode::InvalidCursor],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = ctx.view;
        if let Some(known) = ctx.state.at(&view).tick.screen.get(&args) {
            return Ok(known);
        }
        check_ranges(&args)?;
        let facts = ctx.state.facts(&view);
        let output = screen(&view, &facts, &args)?;
        ctx.state.tick.screen.put(args, &output);
        Ok(output)
    }
}

fn check_ranges(args: &Args) -> Result<(), ToolFailure> {
    let ranges = [
        ("price_min", args.price_min, "price_max", args.price_max),
        ("change_pct_min", args.change_pct_min, "change_pct_max", args.change_pct_max),
    ];
    for (low_name, low, high_name, high) in ranges {
        if let (Some(low), Some(high)) = (low, high)
            && low > high
        {
            return Err(ToolFailure::new(
                ErrorCode::InvalidFilterRange,
                format!("{low_name} is above {high_name}, so no stock can pass."),
                format!("Send {low_name} not above {high_name}, or leave one of them out."),
            )
            .with(low_name, low)
            .with(high_name, high));
        }
    }
    Ok(())
}

fn sort_value(stock: &Stock, by: SortBy) -> Seen<f64> {
    match by {
        SortBy::Change1d => stock.change[0],
        SortBy::Change5d => stock.change[1],
        SortBy::Change20d => stock.change[2],
        SortBy::Volume => stock.volume,
        SortBy::Amount => stock.amount,
    }
}

fn screen(view: &View<'_>, facts: &Facts, args: &Args) -> Result<Output, ToolFailure> {
    let session = facts.session.filter(|_| facts.stocks.iter().any(|s| s.bars > 0)).ok_or_else(nothing_to_compare)?;
    let wanted = match &args.industry {
        None => None,
        Some(Names::One(name)) => Some(vec![sectors::find(view, facts, name, None)?]),
        Some(Names::Many(names)) => {
            Some(names.iter().map(|name| sectors::find(view, facts, name, None)).collect::<Result<Vec<_>, _>>()?)
        }
    };
    let mut left: Vec<&Stock> = facts.stocks.iter().filter(|s| s.bars > 0).collect();
    let universe = left.len();
    let mut removed: Vec<Removed> = Vec::new();
    let mut filter = |name: &str, active: bool, keep: &dyn Fn(&Stock) -> bool| {
        if !active {
            return;
        }
        let before = left.len();
        left.retain(|s| keep(s));
        removed.push(Removed { filter: name.to_owned(), count: before - left.len() });
    };
    // A missing number passes no bound.
    let at_least = |value: Seen<f64>, bound: Option<f64>| bound.is_none_or(|b| value.is_ok_and(|v| v >= b));
    let at_most = |value: Seen<f64>, bound: Option<f64>| bound.is_none_or(|b| value.is_ok_and(|v| v <= b));
    filter("suspended", true, &|s| s.traded);
    filter("no_sort_value", true, &|s| s.close.is_ok() && sort_value(s, args.sort_by).is_ok());
    filter("price_min", args.price_min.is_some(), &|s| at_least(s.close, args.price_min));
    filter("price_max", args.price_max.is_some(), &|s| at_most(s.close, args.price_max));
    filter("change_pct_min", args.change_pct_min.is_some(), &|s| at_least(s.change[0], args.change_pct_min));
    filter("change_pct_max", args.change_pct_max.is_some(), &|s| at_most(s.change[0], args.change_pct_max));
    filter("volume_min", args.volume_min.is_some(), &|s| at_least(s.volume, args.volume_min.map(|v| v as f64)));
    filter("amount_min", args.amount_min.is_some(), &|s| at_least(s.amount, args.amount_min));
    filter("industry", wanted.is_some(), &|s| wanted.as_ref().is_none_or(|w| s.sector.is_some_and(|i| w.contains(&i))));
    filter("exclude_st", args.exclude_st, &|s| s.st != Some(true));
    filter("exclude_limit_up", args.exclude_limit_up, &|s| s.limit != Limit::Up);
    left.sort_by(|a, b| descending(sort_value(a, args.sort_by), sort_value(b, args.sort_by)).then(a.rank.cmp(&b.rank)));

    let empty_reason = left.is_empty().then(|| {
        let last = removed.iter().rev().find(|r| r.count > 0);
        last.map_or("no_stock_listed".to_owned(), |r| format!("removed_by_{}", r.filter))
    });
    // The page position is no part of the question.
    let query = format!("screen_stocks {:?}", Args { cursor: None, ..args.clone() });
    let page = page::page(view, &query, args.cursor.as_deref(), left, args.max_results as usize)?;
    let mut gaps = Gaps::default();
    let rows: Vec<Row> = page.records.iter().enumerate().map(|(i, s)| row(view, s, i, &mut gaps)).collect();
    Ok(Output {
        as_of: lookup::as_of(view),
        session: session.into(),
        returned: rows.len(),
        stocks: rows,
        total_matched: page.total,
        complete: page.complete,
        next_cursor: page.next_cursor,
        universe,
        removed,
        empty_reason,
        adjustment: change_basis(view),
        missing_reasons: gaps.done(),
    })
}

fn row(view: &View<'_>, stock: &Stock, i: usize, gaps: &mut Gaps) -> Row {
    let name = |field: &str| format!("stocks[{i}].{field}");
    Row {
        code: lookup::code(view, stock.sec),
        close: gaps.number(&name("close"), stock.close, PRICE),
        change_1d_pct: gaps.number(&name("change_1d_pct"), stock.change[0], PERCENT),
        change_5d_pct: gaps.number(&name("change_5d_pct"), stock.change[1], PERCENT),
        change_20d_pct: gaps.number(&name("change_20d_pct"), stock.change[2], PERCENT),
        volume: gaps.whole(&name("volume"), stock.volume),
        amount: gaps.number(&name("amount"), stock.amount, 2),
    }
}
