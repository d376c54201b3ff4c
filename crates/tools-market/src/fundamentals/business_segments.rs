//! `get_business_segments`: what a company earns its revenue with, from its last report that says so.

use super::{figure, known, no_table, nothing_visible, percent};
use crate::number::{Gaps, PERCENT, PRICE};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{
    AsOf, DayField, Effect, ErrorCode, FreeText, Group, Missing, Reason, Repeat, StockCode, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::store::SegmentRow;
use traderharness_market::{Day, View};

/// Arguments of `get_business_segments`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Security, as a complete code exactly as a tool of this run showed it.
    #[schemars(length(min = 6))]
    stock_code: StockCode,
}

/// Revenue by segment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// The security.
    stock_code: StockCode,
    /// Id to cite this breakdown by.
    evidence_id: String,
    /// Last day of the report period the segments are of; null when the dataset does not say.
    report_date: Option<DayField>,
    /// Day of publication.
    published: Option<DayField>,
    /// Segments by type, inside a type the largest share first. Each `type` is a breakdown of the same revenue: add up inside one
    /// type only.
    segments: Vec<Segment>,
    /// Number of segments.
    total: usize,
    /// Number of segments returned; always all.
    returned: usize,
    /// Always true.
    complete: bool,
    /// Numbers that are null, and why.
    missing_reasons: Vec<Missing>,
}

/// One segment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Segment {
    /// Breakdown the segment belongs to (by product, by region, by industry), in the words of the source.
    r#type: FreeText,
    /// Name of the segment, in the words of the source.
    name: FreeText,
    /// Revenue of the segment, in 100 million CNY.
    revenue_100m_cny: Option<f64>,
    /// Share of the revenue of the company, percent.
    revenue_pct: Option<f64>,
    /// Gross profit divided by revenue of the segment, percent.
    gross_margin: Option<f64>,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct GetBusinessSegments;

impl Tool for GetBusinessSegments {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_business_segments",
        group: Group::Fundamentals,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Returns how the revenue of one security's company splits by product, region and industry, from its newest \
                      published report that has such a split.",
        notes: &[
            "Order: by type, then share of revenue from large to small (unknown last), then revenue, then name. Every `type` splits the same revenue, so add segments only inside one type.",
            "`revenue_pct` and `gross_margin` are percent (12.3 means 12.3 %), `revenue_100m_cny` is in 100 million CNY; 2 decimals, half-even.",
            "A report is visible from its publication on; one that carries only a publication day, from the next trading day.",
        ],
        example: r#"{"stock_code": "SHM-000360"}"#,
        result_summary: "`segments` lists the split; `report_date` says of which period it is.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::DataUnavailable, ErrorCode::SecurityDataUnavailable],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        let sec = lookup::find(view, &args.stock_code)?;
        let visible = view.segments(sec).ok_or_else(|| no_table("table of business segments"))?;
        let rows = newest_report(visible);
        let Some(first) = rows.first() else { return Err(nothing_visible("split by business segment")) };
        let mut gaps = Gaps::default();
        if first.report_date.is_none() {
            gaps.note("report_date", Reason::SourceMissing);
        }
        let segments: Vec<Segment> = rows
            .iter()
            .enumerate()
            .map(|(i, row)| {
                let mut number =
                    |field: &str, value, places| figure(&mut gaps, || format!("segments[{i}].{field}"), value, places);
                Segment {
                    r#type: row.kind.as_str().into(),
                    name: row.name.as_str().into(),
                    revenue_100m_cny: number("revenue_100m_cny", known(row.revenue).map(|cny| cny / 1e8), PRICE),
                    revenue_pct: number("revenue_pct", percent(row.revenue_pct), PERCENT),
                    gross_margin: number("gross_margin", percent(row.gross_margin), PERCENT),
                }
            })
            .collect();
        Ok(Output {
            as_of: lookup::as_of(view),
            stock_code: lookup::code(view, sec),
            evidence_id: evidence_id(view, &rows),
            report_date: first.report_date.map(Into::into),
            published: first.published.map(Into::into),
            total: segments.len(),
            returned: segments.len(),
            complete: true,
            segments,
            missing_reasons: gaps.done(),
        })
    }
}

/// Rows of the newest report date; when it was published more than once, those of the last publication. In an order of their own: the
/// order of rows in a file changes with whoever wrote it (spec/tools.md b18).
fn newest_report(visible: &[SegmentRow]) -> Vec<&SegmentRow> {
    let newest = visible.iter().map(|r| r.report_date).max();
    let of_report = || visible.iter().filter(|r| Some(r.report_date) == newest);
    let published = of_report().map(|r| r.visible_from).max();
    let mut rows: Vec<&SegmentRow> = of_report().filter(|r| Some(r.visible_from) == published).collect();
    let large_first = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    };
    rows.sort_by(|a, b| {
        (a.kind.cmp(&b.kind))
            .then_with(|| large_first(a.revenue_pct, b.revenue_pct))
            .then_with(|| large_first(a.revenue, b.revenue))
            .then_with(|| a.name.cmp(&b.name))
    });
    rows
}

fn evidence_id(view: &View<'_>, rows: &[&SegmentRow]) -> String {
    let number = |n: Option<f64>| n.map_or_else(String::new, |n| n.to_string());
    let day = |d: Option<Day>| d.map_or_else(String::new, |d| d.to_string());
    let mut lines: Vec<[String; 6]> = rows
        .iter()
        .map(|row| {
            let figures = [row.revenue, row.revenue_pct, row.gross_margin].map(number).join(" ");
            [row.code.to_string(), day(row.report_date), day(row.published), row.kind.clone(), row.name.clone(), figures]
        })
        .collect();
    // The order of rows in a file is not part of the evidence.
    lines.sort_unstable();
    let parts: Vec<&str> = std::iter::once("segments").chain(lines.iter().flatten().map(String::as_str)).collect();
    format!("seg-{}", view.mask().evidence_digest(&parts))
}
