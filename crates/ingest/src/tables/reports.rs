//! Reports and their segments, with the moment from which each row is visible.

use super::{Brought, Opened, by_number, by_numbers};
use crate::civil;
use crate::error::IngestError;
use crate::load::LoadOptions;
use crate::report::FaultKind;
use crate::source::Source;
use traderharness_market::Code;
use traderharness_market::store::{FundamentalRow, SegmentRow};

/// `fundamentals.parquet`.
pub(crate) fn fundamentals(
    source: &Source,
    universe: &[Code],
    options: &LoadOptions,
) -> Result<Brought<Vec<FundamentalRow>>, IngestError> {
    let mut open = Opened::new(source, "fundamentals.parquet", options)?;
    let codes = open.codes()?;
    let published = open.dates(&["pub_date"])?;
    let periods = open.dates(&["stat_date"])?;
    const NUMBERS: [&str; 13] = [
        "roe",
        "net_profit_margin",
        "gross_margin",
        "net_profit",
        "eps",
        "eps_ttm",
        "revenue",
        "bvps",
        "yoy_net_profit",
        "yoy_eps",
        "yoy_equity",
        "yoy_asset",
        "yoy_pni",
    ];
    let mut columns = Vec::with_capacity(NUMBERS.len());
    for name in NUMBERS {
        columns.push(open.optional(&[name])?);
    }
    let mut rows = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let Some(code) = code else { continue };
        let visible_from = open.visible_from(code, published[row], periods[row], FaultKind::UnpublishedReport);
        let number = |i: usize| columns[i][row];
        rows.push(FundamentalRow {
            code,
            visible_from,
            published: civil::day(published[row]),
            period: civil::day(periods[row]),
            roe: number(0),
            net_profit_margin: number(1),
            gross_margin: number(2),
            net_profit: number(3),
            eps: number(4),
            eps_ttm: number(5),
            revenue: number(6),
            bvps: number(7),
            yoy_net_profit: number(8),
            yoy_eps: number(9),
            yoy_equity: number(10),
            yoy_asset: number(11),
            yoy_pni: number(12),
        });
    }
    open.outside(rows.iter().map(|r| r.code), universe);
    let order = |a: &FundamentalRow, b: &FundamentalRow| {
        (a.code, a.visible_from, a.period)
            .cmp(&(b.code, b.visible_from, b.period))
            .then_with(|| by_numbers(report_numbers(a), report_numbers(b)))
    };
    let same_key = |a: &FundamentalRow, b: &FundamentalRow| {
        a.visible_from.is_some() && a.period.is_some() && (a.code, a.visible_from, a.period) == (b.code, b.visible_from, b.period)
    };
    let mut table = open.close(rows, order, same_key, |r| Some(r.code), |r| r.published);
    for (i, name) in NUMBERS.iter().enumerate() {
        let nulls = table.rows.iter().filter(|r| report_numbers(r)[i].is_none()).count() as u64;
        if nulls > 0 {
            table.report.nulls.insert((*name).to_owned(), nulls);
        }
    }
    Ok(table)
}

const fn report_numbers(r: &FundamentalRow) -> [Option<f64>; 13] {
    [
        r.roe,
        r.net_profit_margin,
        r.gross_margin,
        r.net_profit,
        r.eps,
        r.eps_ttm,
        r.revenue,
        r.bvps,
        r.yoy_net_profit,
        r.yoy_eps,
        r.yoy_equity,
        r.yoy_asset,
        r.yoy_pni,
    ]
}

/// `business_segments.parquet`. Inside one publication: by period, kind, revenue from large to small, name.
pub(crate) fn segments(
    source: &Source,
    universe: &[Code],
    options: &LoadOptions,
) -> Result<Brought<Vec<SegmentRow>>, IngestError> {
    let mut open = Opened::new(source, "business_segments.parquet", options)?;
    let codes = open.codes()?;
    let published = open.dates(&["pub_date"])?;
    let periods = open.dates(&["report_date"])?;
    let kinds = open.clean_texts(&["segment_type"], false)?;
    if !open.file.has(&["segment_name"]) {
        open.file.texts(&["segment_name"])?; // the error names the column
    }
    let names = open.clean_texts(&["segment_name"], false)?;
    let revenue = open.optional(&["revenue"])?;
    let share = open.optional(&["revenue_pct"])?;
    let margin = open.optional(&["gross_margin"])?;
    let mut rows = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let Some(code) = code else { continue };
        let visible_from = open.visible_from(code, published[row], periods[row], FaultKind::UnpublishedSegment);
        rows.push(SegmentRow {
            code,
            visible_from,
            published: civil::day(published[row]),
            report_date: civil::day(periods[row]),
            kind: kinds[row].clone(),
            name: names[row].clone(),
            revenue: revenue[row],
            revenue_pct: share[row],
            gross_margin: margin[row],
        });
    }
    open.outside(rows.iter().map(|r| r.code), universe);
    let order = |a: &SegmentRow, b: &SegmentRow| {
        (a.code, a.visible_from, a.report_date, &a.kind)
            .cmp(&(b.code, b.visible_from, b.report_date, &b.kind))
            .then_with(|| by_number(b.revenue, a.revenue))
            .then_with(|| a.name.cmp(&b.name))
            .then_with(|| by_numbers([a.revenue_pct, a.gross_margin], [b.revenue_pct, b.gross_margin]))
    };
    Ok(open.close(rows, order, |_, _| false, |r| Some(r.code), |r| r.published))
}
