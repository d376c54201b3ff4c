//! `get_market_overview`: breadth, limits and sector ranking of the previous session.

use crate::adjust::{ChangeBasis, change_basis};
use crate::features::{Facts, Limit};
use crate::number::{Gaps, PERCENT, rounded};
use crate::sectors::{breadth, descending, ranked};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{AsOf, DayField, Effect, ErrorCode, Group, Missing, Reason, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub(crate) struct GetMarketOverview;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// The session that all numbers describe: the previous trading day.
    session: DayField,
    /// Stocks that rose or fell; flat, suspended and unknown ones are counted apart.
    total_stocks: usize,
    /// Stocks that rose.
    up_count: usize,
    /// Stocks that fell.
    down_count: usize,
    /// Stocks that traded and closed unchanged.
    flat_count: usize,
    /// Listed stocks without a bar on the session.
    suspended_count: usize,
    /// Stocks that traded but have no change: first session or an unusable close.
    unknown_count: usize,
    /// Stocks that closed at their upper price limit.
    limit_up_count: usize,
    /// Stocks that closed at their lower price limit.
    limit_down_count: usize,
    /// Median change of all stocks with a change, percent.
    median_change_pct: Option<f64>,
    /// Volume of the stocks that rose, shares.
    up_volume: Option<i64>,
    /// Volume of the stocks that fell, shares.
    down_volume: Option<i64>,
    /// Sectors with at least 3 members that have a change.
    total_sectors: usize,
    /// Sectors with fewer; they are not ranked.
    small_sectors: usize,
    /// The first five sectors by mean change.
    top_sectors: Vec<SectorChange>,
    /// The last five sectors of the same descending list, the weakest last.
    bottom_sectors: Vec<SectorChange>,
    /// How changes across ex-dates are computed.
    adjustment: ChangeBasis,
    /// Why numbers are null.
    missing_reasons: Vec<Missing>,
}

/// One sector.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SectorChange {
    /// Sector name.
    sector: String,
    /// Mean change of its members, one vote each, percent.
    avg_change_pct: Option<f64>,
    /// Members with a change.
    stock_count: usize,
}

/// No session before today has two closes of any stock.
pub(crate) fn nothing_to_compare() -> ToolFailure {
    ToolFailure::new(
        ErrorCode::DataUnavailable,
        "No stock has two sessions before today, so there is no change to report.",
        "Use get_stock_price for single securities; an overview exists from the third session of the dataset on.",
    )
}

impl Tool for GetMarketOverview {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_market_overview",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Breadth, limit counts and sector ranking of the previous session over all listed stocks.",
        notes: &[
            "Sectors are ordered by mean change, descending, before rounding; ties by name.",
            "Changes in percent (2 decimals), volume in shares.",
            "A stock without a bar on the session is suspended and counts nowhere else.",
        ],
        example: "{}",
        result_summary: "Counts of rising, falling, flat, suspended and limit stocks, median change, volumes, top and bottom sectors.",
        errors: &[ErrorCode::DataUnavailable],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, _args: Args) -> Result<Output, ToolFailure> {
        let view = ctx.view;
        if let Some(known) = ctx.state.at(&view).tick.overview.get(&()) {
            return Ok(known);
        }
        let facts = ctx.state.facts(&view);
        let breadth = breadth(facts.stocks.iter());
        let session = facts.session.filter(|_| breadth.up + breadth.down + breadth.flat > 0).ok_or_else(nothing_to_compare)?;
        let mut gaps = Gaps::default();
        let (mut sectors, small_sectors) = ranked(&facts);
        sectors.sort_by(|a, b| descending(a.1.change[0], b.1.change[0]).then(a.0.cmp(&b.0)));
        let row = |(i, tally): &(usize, crate::sectors::Tally)| SectorChange {
            sector: facts.sectors[*i].name.clone(),
            avg_change_pct: rounded(tally.change[0], PERCENT),
            stock_count: tally.count,
        };
        let (up_volume, down_volume) = volumes(&facts);
        let limit = |which: Limit| facts.stocks.iter().filter(|s| s.limit == which).count();
        if !facts.has_sectors {
            gaps.note("top_sectors", Reason::SourceMissing);
        }
        let output = Output {
            as_of: lookup::as_of(&view),
            session: session.into(),
            total_stocks: breadth.up + breadth.down,
            up_count: breadth.up,
            down_count: breadth.down,
            flat_count: breadth.flat,
            suspended_count: breadth.suspended,
            unknown_count: breadth.unknown,
            limit_up_count: limit(Limit::Up),
            limit_down_count: limit(Limit::Down),
            median_change_pct: gaps.number("median_change_pct", median(&facts).ok_or(Reason::InsufficientHistory), PERCENT),
            up_volume: gaps.whole("up_volume", up_volume),
            down_volume: gaps.whole("down_volume", down_volume),
            total_sectors: sectors.len(),
            small_sectors,
            top_sectors: sectors.iter().take(5).map(row).collect(),
            bottom_sectors: sectors.iter().skip(sectors.len().saturating_sub(5)).map(row).collect(),
            adjustment: change_basis(&view),
            missing_reasons: gaps.done(),
        };
        ctx.state.tick.overview.put((), &output);
        Ok(output)
    }
}

/// Volume of risers and of fallers. Some sources leave the volume of single rows out; one hole leaves the sum unknown.
fn volumes(facts: &Facts) -> (crate::number::Seen<f64>, crate::number::Seen<f64>) {
    let sum = |sign: f64| {
        let side = facts.stocks.iter().filter(|s| s.change[0].is_ok_and(|c| c * sign > crate::sectors::FLAT));
        side.map(|s| s.volume).try_fold(0.0, |sum, v| v.map(|v| sum + v))
    };
    (sum(1.0), sum(-1.0))
}

fn median(facts: &Facts) -> Option<f64> {
    let mut changes: Vec<f64> = facts.stocks.iter().filter_map(|s| s.change[0].ok()).collect();
    changes.sort_by(f64::total_cmp);
    let half = changes.len() / 2;
    let upper = *changes.get(half)?;
    Some(if changes.len() % 2 == 1 { upper } else { (changes[half - 1] + upper) / 2.0 })
}
