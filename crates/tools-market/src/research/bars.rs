//! `market_bars`, the capability `market.bars` (spec/seeds.md C5): finished daily bars of one security over a window, with what of the
//! window is covered. Never a quote, never the unfinished bar of the current session.

use super::series::{Adjustment, Applied, Bar, BarCoverage, Found, Gap};
use super::snapshot::{Snapshot, snapshot};
use super::window::SHOWN_DAY;
use crate::number::{Gaps, Seen};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use traderharness_contract::budget::{Cursor, CursorScope, ListRequest};
use traderharness_contract::{AsOf, DayField, Effect, ErrorCode, Group, Policy, Repeat, StockCode, Tool, ToolFailure, ToolSpec};
use traderharness_market::View;

/// The tool.
#[derive(Debug)]
pub struct MarketBars;

/// Length of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub(super) enum Interval {
    /// One session.
    #[default]
    #[serde(rename = "1d")]
    Session,
}

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Complete code of the security as shown in this run.
    #[serde(rename = "instrumentId")]
    #[schemars(length(min = 6))]
    instrument_id: StockCode,
    /// First day wanted, inclusive, as days are shown in this run: YYYY-MM-DD, or a label such as D-21 where dates are hidden. Only
    /// together with end; both replace the default window of the last 252 finished sessions.
    #[serde(default)]
    #[schemars(regex(pattern = SHOWN_DAY))]
    start: Option<String>,
    /// Last day wanted, inclusive, not after today. Only together with start.
    #[serde(default)]
    #[schemars(regex(pattern = SHOWN_DAY))]
    end: Option<String>,
    /// Length of a bar: 1d, one session, is the only one. Default 1d.
    #[serde(default)]
    interval: Interval,
    /// split_only: bonus and transfer shares removed. total_return: also cash dividends, reinvested at the reference price of their
    /// ex-date, and rights. none: prices as traded. Default split_only.
    #[serde(default)]
    adjustment: Adjustment,
    /// Bars of a page, 1 to 252, default 50; fewer come when they would be too long.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 252))]
    limit: usize,
    /// next_cursor of the page before, with otherwise equal arguments at the same decision point.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    cursor: Option<String>,
}

/// Every security of this market is traded in it.
const CURRENCY: &str = "CNY";

fn default_limit() -> usize {
    50
}

/// Bars of a window.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Code of the security.
    #[serde(rename = "instrumentId")]
    instrument_id: StockCode,
    /// As of when the answer is true.
    as_of: AsOf,
    /// Length of a bar.
    interval: Interval,
    /// Currency of prices and amounts: that of the instrument.
    currency: String,
    /// Convention of the prices.
    adjustment: Applied,
    /// What of the window is there.
    coverage: BarCoverage,
    /// Name of the bars of the whole window, for computations over them.
    snapshot: Snapshot,
    /// One page of the bars of the window, oldest first.
    #[schemars(extend("x-order" = "oldest_first"))]
    bars: Vec<Row>,
    /// Bars of the whole window.
    total: usize,
    /// Bars of the window before this page.
    offset: usize,
    /// Bars of this page.
    returned: usize,
    /// Cursor of the next page; null after the last one.
    next_cursor: Option<String>,
    /// What limits the bars.
    warnings: Vec<String>,
    /// What is missing and why; not empty exactly when the window is covered in part.
    missing_reasons: Vec<Gap>,
}

/// One bar.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// Session.
    session: DayField,
    /// Open, CNY.
    open: Option<f64>,
    /// High, CNY.
    high: Option<f64>,
    /// Low, CNY.
    low: Option<f64>,
    /// Close, CNY.
    close: Option<f64>,
    /// Volume, shares; 0 when nothing was traded, null when it is not known.
    volume: Option<i64>,
    /// Amount, CNY, never adjusted.
    amount: Option<f64>,
}

/// The scope of the cursors of a query, in visible terms.
fn query(code: &str, args: &Args) -> Value {
    json!([code, args.start, args.end, args.adjustment])
}

impl MarketBars {
    /// The cursor that goes on after the first `position` bars of the window, for a door that had to shorten a page
    /// ([`traderharness_contract::algebra::fit`]): `position` is the page's `offset` and the bars kept of it. `sent` are the arguments as
    /// the caller sent them, with the visible code. `None` when they are not arguments of this tool.
    pub fn cursor(view: &View<'_>, sent: &Value, position: usize) -> Option<String> {
        let args: Args = serde_json::from_value(sent.clone()).ok()?;
        let scope = CursorScope::new(Self::SPEC.name, &query(args.instrument_id.as_str(), &args), &view.clock_digest());
        Some(Cursor { offset: position as u64 }.encode(&scope))
    }
}

/// `start` and `end` only as a pair.
pub(super) fn pair(schema: &mut Value) {
    if let Some(map) = schema.as_object_mut() {
        map.insert("dependentRequired".to_owned(), json!({"start": ["end"], "end": ["start"]}));
    }
}

impl Tool for MarketBars {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "market_bars",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Finished daily bars of one security over a window of sessions, with what of the window is covered.",
        notes: &[
            "Without start and end the window is the last 252 finished sessions of the market; the current session is never part of it.",
            "Bars are ordered by session, oldest first, in pages; prices in CNY, volume in shares, amount in CNY.",
            "The newest bar is as traded; older ones are made comparable with it by the adjustment, from ex-dates up to that session.",
            "A session on which the security has no bar is listed in coverage.missing; days on which the market is closed are no sessions.",
            "A missing number is null and has its reason in missing_reasons; 0 was observed.",
        ],
        example: r#"{"instrumentId": "SHM-000360", "adjustment": "total_return"}"#,
        result_summary: "One page of `bars` with `coverage`, the `adjustment` applied and the `snapshot` of the whole window.",
        errors: &[
            ErrorCode::UnknownSecurity,
            ErrorCode::InvalidFilterRange,
            ErrorCode::UnsupportedAdjustment,
            ErrorCode::SecurityDataUnavailable,
            ErrorCode::DataUnavailable,
            ErrorCode::InvalidCursor,
        ],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        let Found { sec, series, .. } = Found::of(view, &args.instrument_id, (&args.start, &args.end), args.adjustment)?;
        let request = ListRequest {
            tool: Self::SPEC.name,
            query: query(view.mask().code(sec), &args),
            clock: &view.clock_digest(),
            cursor: args.cursor.as_deref(),
            max_records: args.limit,
        };
        let rows: Vec<usize> = (0..series.bars.len()).collect();
        let mut first = None;
        let page = request.page_that_fits(&rows, |i| {
            first.get_or_insert(*i);
            row(&series.bars[*i], &mut Gaps::default(), "")
        })?;
        let (offset, returned) = (first.unwrap_or(0), page.records.len());
        let mut holes = Gaps::default();
        for (at, i) in (offset..offset + returned).enumerate() {
            row(&series.bars[i], &mut holes, &format!("bars[{at}]"));
        }
        let mut missing_reasons = series.gaps;
        missing_reasons.extend(holes.done().into_iter().map(|m| Gap { field: m.field, reason: m.reason.into() }));
        Ok(Output {
            instrument_id: lookup::code(view, sec),
            as_of: lookup::as_of(view),
            interval: args.interval,
            currency: CURRENCY.to_owned(),
            snapshot: snapshot(view, &series.bars, &series.adjustment),
            adjustment: series.adjustment,
            coverage: series.coverage,
            total: page.total,
            offset,
            returned,
            next_cursor: page.next_cursor,
            bars: page.records,
            warnings: series.warnings,
            missing_reasons,
        })
    }

    fn refine(schema: &mut Value, _: &Policy) {
        pair(schema);
    }
}

fn row(bar: &Bar, gaps: &mut Gaps, name: &str) -> Row {
    // Numbers are rounded already.
    let mut keep = |field: &str, value: Seen<f64>| gaps.keep(&format!("{name}.{field}"), value);
    let (open, high, low) = (keep("open", bar.open), keep("high", bar.high), keep("low", bar.low));
    let (close, amount) = (keep("close", bar.close), keep("amount", bar.amount));
    let volume = gaps.keep(&format!("{name}.volume"), bar.volume);
    Row { session: bar.day.into(), open, high, low, close, volume, amount }
}
