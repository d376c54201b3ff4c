//! `get_valuation`: multiples, turnover and ST flag of the last day before today, and where they stand in their own history.

use super::{no_table, nothing_visible};
use crate::adjust::reason;
use crate::number::{Gaps, PERCENT, RATIO, Seen};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use traderharness_contract::{
    AsOf, DayField, Effect, ErrorCode, Group, Missing, Reason, Repeat, StockCode, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::view::{Figure, ValuationRows};

/// Observations a percentile needs: about one year of sessions.
const PERCENTILE_DAYS: usize = 250;
/// Rows of the turnover average.
const TURNOVER_DAYS: usize = 5;

/// Arguments of `get_valuation`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Security, as a complete code exactly as a tool of this run showed it.
    #[schemars(length(min = 6))]
    stock_code: StockCode,
}

/// Valuation of one security.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// The security.
    stock_code: StockCode,
    /// Day of the row: the last one before today on which the source has one. Older than the previous trading day when the
    /// security was suspended.
    date: DayField,
    /// Price divided by earnings per share of the last four quarters, ratio; negative for a loss.
    pe_ttm: Option<f64>,
    /// Price divided by book value per share of the newest report, ratio.
    pb_mrq: Option<f64>,
    /// Price divided by revenue per share of the last four quarters, ratio.
    ps_ttm: Option<f64>,
    /// Shares traded that day divided by free shares, percent.
    turnover_pct: Option<f64>,
    /// Mean of `turnover_pct` over the last 5 rows, percent.
    avg_turnover_5d_pct: Option<f64>,
    /// Share of the visible history with a `pe_ttm` at or below today's, percent, 0 to 100. A loss ranks below every profit.
    pe_ttm_percentile: Option<f64>,
    /// Share of the visible history with a `pb_mrq` at or below today's, percent, 0 to 100.
    pb_mrq_percentile: Option<f64>,
    /// Share of the visible history with a `ps_ttm` at or below today's, percent, 0 to 100.
    ps_ttm_percentile: Option<f64>,
    /// Rows visible for this security; each percentile needs 250 values.
    history_days: usize,
    /// True while the security is under ST or *ST treatment; null when unknown.
    is_st: Option<bool>,
    /// Unit of each number field: `ratio`, `percent` or `rows`.
    units: BTreeMap<&'static str, &'static str>,
    /// Values that are null, and why.
    missing_reasons: Vec<Missing>,
}

const UNITS: [(&str, &str); 9] = [
    ("pe_ttm", "ratio"),
    ("pb_mrq", "ratio"),
    ("ps_ttm", "ratio"),
    ("turnover_pct", "percent"),
    ("avg_turnover_5d_pct", "percent"),
    ("pe_ttm_percentile", "percent"),
    ("pb_mrq_percentile", "percent"),
    ("ps_ttm_percentile", "percent"),
    ("history_days", "rows"),
];

/// The tool.
#[derive(Debug)]
pub(crate) struct GetValuation;

impl Tool for GetValuation {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_valuation",
        group: Group::Fundamentals,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Returns price multiples (earnings, book, sales), turnover and the ST flag of one security on the last day \
                      before today, and the percentile of each multiple in the security's own visible history.",
        notes: &[
            "`date` is the day of the row; today's own row is never visible.",
            "Multiples are ratios with 3 decimals, turnover and percentiles are percent with 2 decimals, half-even.",
            "A percentile counts the visible rows whose multiple is at or below the current one and needs at least 250 of them; a loss (negative `pe_ttm`) ranks below every profit, so a low percentile is cheap only while earnings are positive.",
        ],
        example: r#"{"stock_code": "SHM-000360"}"#,
        result_summary: "The multiples of `date`; a null value is explained in `missing_reasons`.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::DataUnavailable, ErrorCode::SecurityDataUnavailable],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        let sec = lookup::find(view, &args.stock_code)?;
        let rows = view.valuation(sec).ok_or_else(|| no_table("valuation table"))?;
        let last = rows.last().ok_or_else(|| nothing_visible("valuation"))?;
        let mut gaps = Gaps::default();
        let seen = |figure| rows.figure(rows.len() - 1, figure).map_err(reason);
        let turnover = seen(Figure::Turnover).and_then(not_negative);
        let output = Output {
            as_of: lookup::as_of(view),
            stock_code: lookup::code(view, sec),
            date: last.day.into(),
            pe_ttm: gaps.number("pe_ttm", seen(Figure::PeTtm), RATIO),
            pb_mrq: gaps.number("pb_mrq", seen(Figure::PbMrq), RATIO),
            ps_ttm: gaps.number("ps_ttm", seen(Figure::PsTtm), RATIO),
            turnover_pct: gaps.number("turnover_pct", turnover, PERCENT),
            avg_turnover_5d_pct: gaps.number("avg_turnover_5d_pct", mean_turnover(&rows), PERCENT),
            pe_ttm_percentile: gaps.number("pe_ttm_percentile", percentile(&rows, Figure::PeTtm), PERCENT),
            pb_mrq_percentile: gaps.number("pb_mrq_percentile", percentile(&rows, Figure::PbMrq), PERCENT),
            ps_ttm_percentile: gaps.number("ps_ttm_percentile", percentile(&rows, Figure::PsTtm), PERCENT),
            history_days: rows.len(),
            is_st: gaps.keep("is_st", last.is_st.ok_or(Reason::SourceMissing)),
            units: UNITS.into_iter().collect(),
            missing_reasons: Vec::new(),
        };
        Ok(Output { missing_reasons: gaps.done(), ..output })
    }
}

fn not_negative(value: f64) -> Seen<f64> {
    if value >= 0.0 { Ok(value) } else { Err(Reason::BadValue) }
}

/// Mean turnover of the last five rows; a hole in one of them is a hole in the mean, not a smaller mean.
fn mean_turnover(rows: &ValuationRows<'_>) -> Seen<f64> {
    let first = rows.len().checked_sub(TURNOVER_DAYS).ok_or(Reason::InsufficientHistory)?;
    let mut sum = 0.0;
    for i in first..rows.len() {
        sum += rows.figure(i, Figure::Turnover).map_err(reason).and_then(not_negative)?;
    }
    Ok(sum / TURNOVER_DAYS as f64)
}

/// Share of the visible values that are at or below the newest one, percent.
fn percentile(rows: &ValuationRows<'_>, figure: Figure) -> Seen<f64> {
    let newest = rows.len().checked_sub(1).ok_or(Reason::InsufficientHistory)?;
    let current = rows.figure(newest, figure).map_err(reason)?;
    let (mut known, mut below) = (0_usize, 0_usize);
    for i in 0..rows.len() {
        if let Ok(value) = rows.figure(i, figure) {
            known += 1;
            below += usize::from(value <= current);
        }
    }
    if known >= PERCENTILE_DAYS { Ok(below as f64 * 100.0 / known as f64) } else { Err(Reason::InsufficientHistory) }
}
