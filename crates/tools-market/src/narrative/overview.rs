//! `get_narrative_market_overview`: sectors over 1, 5 and 20 sessions, and which of them turn.

use crate::adjust::{ChangeBasis, change_basis};
use crate::features::Facts;
use crate::market::overview::nothing_to_compare;
use crate::number::{Gaps, PERCENT};
use crate::sectors::{MIN_MEMBERS, Tally, ascending, breadth, descending, ranked};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use traderharness_contract::{AsOf, DayField, Effect, ErrorCode, Group, Missing, Reason, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub(crate) struct GetNarrativeMarketOverview;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// The session that all horizons end with: the previous trading day.
    session: DayField,
    /// Stocks that rose or fell on the session; flat and suspended ones are counted apart.
    total_stocks: usize,
    /// Stocks that rose.
    up_count: usize,
    /// Stocks that fell.
    down_count: usize,
    /// Stocks that traded and closed unchanged.
    flat_count: usize,
    /// Listed stocks without a bar on the session.
    suspended_count: usize,
    /// Sectors with at least 3 members that have a change.
    total_sectors: usize,
    /// Sectors with fewer; they are not ranked.
    small_sectors: usize,
    /// How top_sectors and bottom_sectors are ordered.
    ranking_rule: String,
    /// Which sectors are rotation candidates, and their order.
    rotation_candidate_rule: String,
    /// The five strongest sectors.
    top_sectors: Vec<SectorRow>,
    /// The five weakest sectors, weakest first.
    bottom_sectors: Vec<SectorRow>,
    /// Up to five sectors that turn up after a weak month.
    rotation_candidates: Vec<SectorRow>,
    /// How changes across ex-dates are computed.
    adjustment: ChangeBasis,
    /// Why numbers are null.
    missing_reasons: Vec<Missing>,
}

/// One sector over three horizons. Means give every member with a change one vote.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SectorRow {
    /// Sector name.
    sector: String,
    /// Members with a change over 1 session.
    stock_count: usize,
    /// Equal to change_1d_pct.
    avg_change_pct: Option<f64>,
    /// Mean change over 1 session, percent.
    change_1d_pct: Option<f64>,
    /// Mean change over 5 sessions, percent.
    change_5d_pct: Option<f64>,
    /// Mean change over 20 sessions, percent.
    change_20d_pct: Option<f64>,
    /// Share of members that rose over 1 session, percent.
    up_ratio_1d_pct: Option<f64>,
    /// Share of members that rose over 5 sessions, percent.
    up_ratio_5d_pct: Option<f64>,
    /// Share of members that rose over 20 sessions, percent.
    up_ratio_20d_pct: Option<f64>,
}

/// A sector row; holes are noted under `at`.
fn row(name: &str, tally: &Tally, at: &str, gaps: &mut Gaps) -> SectorRow {
    let mut number = |field: &str, value| gaps.number(&format!("{at}.{field}"), value, PERCENT);
    SectorRow {
        sector: name.to_owned(),
        stock_count: tally.count,
        avg_change_pct: number("avg_change_pct", tally.change[0]),
        change_1d_pct: number("change_1d_pct", tally.change[0]),
        change_5d_pct: number("change_5d_pct", tally.change[1]),
        change_20d_pct: number("change_20d_pct", tally.change[2]),
        up_ratio_1d_pct: number("up_ratio_1d_pct", tally.up_ratio[0]),
        up_ratio_5d_pct: number("up_ratio_5d_pct", tally.up_ratio[1]),
        up_ratio_20d_pct: number("up_ratio_20d_pct", tally.up_ratio[2]),
    }
}

type Ranked = (usize, Tally);

fn strongest(a: &Ranked, b: &Ranked) -> Ordering {
    descending(a.1.change[1], b.1.change[1])
        .then(descending(a.1.change[2], b.1.change[2]))
        .then(descending(a.1.up_ratio[1], b.1.up_ratio[1]))
        .then(descending(a.1.change[0], b.1.change[0]))
        .then(a.0.cmp(&b.0))
}

fn weakest(a: &Ranked, b: &Ranked) -> Ordering {
    ascending(a.1.change[2], b.1.change[2])
        .then(ascending(a.1.change[1], b.1.change[1]))
        .then(ascending(a.1.change[0], b.1.change[0]))
        .then(a.0.cmp(&b.0))
}

fn turns(tally: &Tally) -> bool {
    tally.change[2].is_ok_and(|c| c <= 0.0)
        && tally.change[1].is_ok_and(|c| c > 0.0)
        && tally.change[0].is_ok_and(|c| c > 0.0)
        && tally.up_ratio[0].is_ok_and(|r| r >= 50.0)
}

fn most_turned(a: &Ranked, b: &Ranked) -> Ordering {
    descending(a.1.up_ratio[0], b.1.up_ratio[0])
        .then(descending(a.1.change[1], b.1.change[1]))
        .then(descending(a.1.change[0], b.1.change[0]))
        .then(a.0.cmp(&b.0))
}

impl Tool for GetNarrativeMarketOverview {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_narrative_market_overview",
        group: Group::Narrative,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Breadth of the previous session and sectors over 1, 5 and 20 sessions, with candidates for a rotation.",
        notes: &[
            "ranking_rule and rotation_candidate_rule in the result state the orders; they compare before rounding, ties by sector name, \
             a missing number comes last.",
            "Changes and ratios in percent (2 decimals).",
            "A rotation candidate is a price pattern; look for a cause in news or announcements before acting on it.",
        ],
        example: "{}",
        result_summary: "Counts, five strongest and five weakest sectors, up to five rotation candidates.",
        errors: &[ErrorCode::DataUnavailable],
        opt_in: true,
    };

    fn call(ctx: &mut MarketCtx<'_>, _args: Args) -> Result<Output, ToolFailure> {
        let view = ctx.view;
        if let Some(known) = ctx.state.at(&view).tick.narrative_overview.get(&()) {
            return Ok(known);
        }
        let facts = ctx.state.facts(&view);
        let breadth = breadth(facts.stocks.iter());
        let session = facts.session.filter(|_| breadth.up + breadth.down + breadth.flat > 0).ok_or_else(nothing_to_compare)?;
        let mut gaps = Gaps::default();
        if !facts.has_sectors {
            gaps.note("top_sectors", Reason::SourceMissing);
        }
        let (mut sectors, small_sectors) = ranked(&facts);
        let total_sectors = sectors.len();
        sectors.sort_by(strongest);
        let top_sectors = rows(&facts, sectors.iter(), "top_sectors", &mut gaps);
        sectors.sort_by(weakest);
        let bottom_sectors = rows(&facts, sectors.iter(), "bottom_sectors", &mut gaps);
        sectors.retain(|(_, tally)| turns(tally));
        sectors.sort_by(most_turned);
        let rotation_candidates = rows(&facts, sectors.iter(), "rotation_candidates", &mut gaps);
        let output = Output {
            as_of: lookup::as_of(&view),
            session: session.into(),
            total_stocks: breadth.up + breadth.down,
            up_count: breadth.up,
            down_count: breadth.down,
            flat_count: breadth.flat,
            suspended_count: breadth.suspended,
            total_sectors,
            small_sectors,
            ranking_rule: format!(
                "Sectors with at least {MIN_MEMBERS} members. Top: change_5d_pct, then change_20d_pct, up_ratio_5d_pct, \
                 change_1d_pct, all descending. Bottom: change_20d_pct, then change_5d_pct, change_1d_pct, all ascending."
            ),
            rotation_candidate_rule:
                "change_20d_pct <= 0, change_5d_pct > 0, change_1d_pct > 0 and up_ratio_1d_pct >= 50; ordered \
                                      by up_ratio_1d_pct, then change_5d_pct, change_1d_pct, all descending."
                    .to_owned(),
            top_sectors,
            bottom_sectors,
            rotation_candidates,
            adjustment: change_basis(&view),
            missing_reasons: gaps.done(),
        };
        ctx.state.tick.narrative_overview.put((), &output);
        Ok(output)
    }
}

fn rows<'r>(facts: &Facts, ranked: impl Iterator<Item = &'r Ranked>, list: &str, gaps: &mut Gaps) -> Vec<SectorRow> {
    let first = ranked.take(5).enumerate();
    first.map(|(i, (at, tally))| row(&facts.sectors[*at].name, tally, &format!("{list}[{i}]"), gaps)).collect()
}
