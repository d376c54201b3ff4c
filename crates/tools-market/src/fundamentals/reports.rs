//! `get_fundamentals`: the published reports of a company, newest period first.

use super::{figure, known, no_table, nothing_visible, percent};
use crate::number::{Gaps, PERCENT, PRICE, RATIO, Seen};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use traderharness_contract::{
    AsOf, DayField, Effect, ErrorCode, Group, Missing, Reason, Repeat, StockCode, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::View;
use traderharness_market::store::FundamentalRow;

/// Reports returned when `periods` is not given: one year of quarters.
const DEFAULT_PERIODS: u8 = 4;

/// Arguments of `get_fundamentals`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Security, as a complete code exactly as a tool of this run showed it.
    #[schemars(length(min = 6))]
    stock_code: StockCode,
    /// Number of report periods to return, newest first. Integer, 1 to 8. Default 4.
    #[serde(default)]
    #[schemars(range(min = 1, max = 8), extend("default" = DEFAULT_PERIODS))]
    periods: Option<u8>,
}

/// Published reports of one security.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// The security.
    stock_code: StockCode,
    /// Reports, newest report period first, one per period: the last version published so far.
    reports: Vec<Report>,
    /// Number of report periods visible for this security.
    total: usize,
    /// Number of reports returned.
    returned: usize,
    /// True when every visible period is returned.
    complete: bool,
    /// Unit of each number field: `percent`, `CNY` or `CNY_per_share`.
    units: BTreeMap<&'static str, &'static str>,
    /// Numbers that are null, and why.
    missing_reasons: Vec<Missing>,
}

/// One report.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Id to cite this report by.
    evidence_id: String,
    /// Last day of the report period; null when the dataset does not say.
    report_period: Option<DayField>,
    /// Day of publication.
    published: Option<DayField>,
    /// True when an earlier version of this period was published before.
    restated: bool,
    /// Return on equity, percent.
    roe: Option<f64>,
    /// Net profit divided by revenue, percent.
    net_profit_margin: Option<f64>,
    /// Gross profit divided by revenue, percent.
    gross_margin: Option<f64>,
    /// Net profit of the period, CNY.
    net_profit: Option<f64>,
    /// Revenue of the period, CNY.
    revenue: Option<f64>,
    /// Earnings per share of the period, CNY per share.
    eps: Option<f64>,
    /// Earnings per share of the last four quarters, CNY per share.
    eps_ttm: Option<f64>,
    /// Book value per share, CNY per share.
    bvps: Option<f64>,
    /// Net profit against the same period a year before, percent change.
    yoy_net_profit: Option<f64>,
    /// Earnings per share against the same period a year before, percent change.
    yoy_eps: Option<f64>,
    /// Equity against the same date a year before, percent change.
    yoy_equity: Option<f64>,
    /// Assets against the same date a year before, percent change.
    yoy_asset: Option<f64>,
    /// Net profit of the parent's shareholders against the same period a year before, percent change.
    yoy_pni: Option<f64>,
}

type Read = fn(&FundamentalRow) -> Seen<f64>;

/// Every number of a report: field, unit, decimals, where it comes from. The one list behind the numbers and their units.
const FIGURES: [(&str, &str, u32, Read); 13] = [
    ("roe", "percent", PERCENT, |r| percent(r.roe)),
    ("net_profit_margin", "percent", PERCENT, |r| percent(r.net_profit_margin)),
    ("gross_margin", "percent", PERCENT, |r| percent(r.gross_margin)),
    ("net_profit", "CNY", PRICE, |r| known(r.net_profit)),
    ("revenue", "CNY", PRICE, |r| known(r.revenue)),
    ("eps", "CNY_per_share", RATIO, |r| known(r.eps)),
    ("eps_ttm", "CNY_per_share", RATIO, |r| known(r.eps_ttm)),
    ("bvps", "CNY_per_share", RATIO, |r| known(r.bvps)),
    ("yoy_net_profit", "percent", PERCENT, |r| percent(r.yoy_net_profit)),
    ("yoy_eps", "percent", PERCENT, |r| percent(r.yoy_eps)),
    ("yoy_equity", "percent", PERCENT, |r| percent(r.yoy_equity)),
    ("yoy_asset", "percent", PERCENT, |r| percent(r.yoy_asset)),
    ("yoy_pni", "percent", PERCENT, |r| percent(r.yoy_pni)),
];

/// The tool.
#[derive(Debug)]
pub(crate) struct GetFundamentals;

impl Tool for GetFundamentals {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_fundamentals",
        group: Group::Fundamentals,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Returns the published financial reports of one security: profitability, earnings per share, revenue, profit \
                      and year-on-year growth, with report period and publication day.",
        notes: &[
            "Order: newest report period first; of one period only the last version published so far is shown, and `restated` says that there was an earlier one.",
            "A report is visible from its publication on; one that carries only a publication day counts as published after that day's close, so it is visible from the next trading day.",
            "Ratios and growth are percent (12.3 means 12.3 %), amounts CNY, per-share figures CNY per share; rounding is half-even: percent and amounts 2 decimals, per-share figures 3.",
            "Amounts are cumulative from the start of the fiscal year to the report period, as companies publish them.",
        ],
        example: r#"{"stock_code": "SHM-000360", "periods": 4}"#,
        result_summary: "`reports` holds up to `periods` reports; a null number is explained in `missing_reasons`.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::DataUnavailable, ErrorCode::SecurityDataUnavailable],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        let sec = lookup::find(view, &args.stock_code)?;
        let rows = view.fundamentals(sec).ok_or_else(|| no_table("table of financial reports"))?;
        let periods = newest_periods(rows);
        if periods.is_empty() {
            return Err(nothing_visible("financial report"));
        }
        let mut gaps = Gaps::default();
        let wanted = usize::from(args.periods.unwrap_or(DEFAULT_PERIODS));
        let reports: Vec<Report> =
            periods.iter().take(wanted).enumerate().map(|(i, period)| report(view, i, *period, &mut gaps)).collect();
        Ok(Output {
            as_of: lookup::as_of(view),
            stock_code: lookup::code(view, sec),
            total: periods.len(),
            returned: reports.len(),
            complete: reports.len() == periods.len(),
            reports,
            units: FIGURES.iter().map(|(field, unit, ..)| (*field, *unit)).collect(),
            missing_reasons: gaps.done(),
        })
    }
}

/// The last published row of each period and whether an earlier one exists; newest period first. A row without a period stands
/// for itself at its publication day.
fn newest_periods(rows: &[FundamentalRow]) -> Vec<(&FundamentalRow, bool)> {
    // Rows come oldest publication first; a stable sort keeps that order inside a period.
    let mut sorted: Vec<&FundamentalRow> = rows.iter().collect();
    sorted.sort_by_key(|r| r.period.or(r.published));
    let mut out: Vec<(&FundamentalRow, bool)> = Vec::with_capacity(sorted.len());
    for row in sorted {
        match out.last_mut() {
            Some(last) if last.0.period.is_some() && last.0.period == row.period => *last = (row, true),
            _ => out.push((row, false)),
        }
    }
    out.reverse();
    out
}

fn report(view: &View<'_>, at: usize, (row, restated): (&FundamentalRow, bool), gaps: &mut Gaps) -> Report {
    if row.period.is_none() {
        gaps.note(&format!("reports[{at}].report_period"), Reason::SourceMissing);
    }
    let numbers = FIGURES.map(|(field, _, places, read)| figure(gaps, || format!("reports[{at}].{field}"), read(row), places));
    let [
        roe,
        net_profit_margin,
        gross_margin,
        net_profit,
        revenue,
        eps,
        eps_ttm,
        bvps,
        yoy_net_profit,
        yoy_eps,
        yoy_equity,
        yoy_asset,
        yoy_pni,
    ] = numbers;
    Report {
        evidence_id: evidence_id(view, row),
        report_period: row.period.map(Into::into),
        published: row.published.map(Into::into),
        restated,
        roe,
        net_profit_margin,
        gross_margin,
        net_profit,
        revenue,
        eps,
        eps_ttm,
        bvps,
        yoy_net_profit,
        yoy_eps,
        yoy_equity,
        yoy_asset,
        yoy_pni,
    }
}

/// Built from the content as the dataset has it, so that rounding rules may change without renaming evidence.
fn evidence_id(view: &View<'_>, row: &FundamentalRow) -> String {
    let day = |d: Option<traderharness_market::Day>| d.map_or_else(String::new, |d| d.to_string());
    let numbers = [
        row.roe,
        row.net_profit_margin,
        row.gross_margin,
        row.net_profit,
        row.revenue,
        row.eps,
        row.eps_ttm,
        row.bvps,
        row.yoy_net_profit,
        row.yoy_eps,
        row.yoy_equity,
        row.yoy_asset,
        row.yoy_pni,
    ];
    let figures = numbers.map(|n| n.map_or_else(String::new, |n| n.to_string())).join(" ");
    let digest = view.mask().evidence_digest(&["report", row.code.as_str(), &day(row.period), &day(row.published), &figures]);
    format!("fin-{digest}")
}
