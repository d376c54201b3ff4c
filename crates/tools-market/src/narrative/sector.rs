//! `get_narrative_sector_summary`: one sector over 1, 5 and 20 sessions with its gainers, losers and leaders.

use super::budget::Budget;
use crate::adjust::{ChangeBasis, change_basis};
use crate::features::{Facts, Stock};
use crate::market::overview::nothing_to_compare;
use crate::market::sector::sub_sector;
use crate::number::{Gaps, PERCENT, PRICE, RATIO};
use crate::sectors::{self, breadth, descending, tally};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{
    AsOf, DayField, Effect, ErrorCode, Group, Missing, Reason, Repeat, StockCode, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::View;

/// The tool.
#[derive(Debug)]
pub(crate) struct GetNarrativeSectorSummary;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Sector name as the overviews show it, or a prefix that only one sector has; 1 to 60 characters.
    #[schemars(length(min = 1, max = 60))]
    sector: String,
    /// next_cursor of a sector_not_found failure, to read on in the list of sector names. Not needed otherwise.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    cursor: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// The session that all horizons end with: the previous trading day.
    session: DayField,
    /// Whole name of the sector.
    sector: String,
    /// Members with a change over 1 session.
    stock_count: usize,
    /// Members without a bar on the session; they are in no other number.
    suspended_count: usize,
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
    /// The five strongest members over 1 session, strongest first.
    top_gainers: Vec<Member>,
    /// The five weakest members over 1 session, weakest last; empty when there are at most five members.
    top_losers: Vec<Member>,
    /// The five members that lead by leader_ranking_rule.
    leaders: Vec<Member>,
    /// How leaders are ordered.
    leader_ranking_rule: String,
    /// The day's budget of different sectors.
    budget: Budget,
    /// True when this sector was already asked for today; the answer is whole and free.
    repeated: bool,
    /// How changes across ex-dates are computed.
    adjustment: ChangeBasis,
    /// Why numbers are null.
    missing_reasons: Vec<Missing>,
}

/// A stock of the sector.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Member {
    /// Code of the security.
    code: StockCode,
    /// Industry level below the sector; null when the label has none.
    sub_sector: Option<String>,
    /// Close of the session, CNY.
    close: Option<f64>,
    /// Equal to change_1d_pct.
    change_pct: Option<f64>,
    /// Change over 1 session, percent.
    change_1d_pct: Option<f64>,
    /// Change over 5 sessions, percent.
    change_5d_pct: Option<f64>,
    /// Change over 20 sessions, percent.
    change_20d_pct: Option<f64>,
    /// Mean volume of 5 sessions to that of 20.
    volume_5_to_20: Option<f64>,
    /// Amount of the session, million CNY.
    amount_1d_million: Option<f64>,
    /// Mean amount of 5 sessions, million CNY.
    amount_5d_avg_million: Option<f64>,
    /// Mean amount of 20 sessions, million CNY.
    amount_20d_avg_million: Option<f64>,
    /// Close against the highest high of 20 sessions, percent.
    distance_from_20d_high_pct: Option<f64>,
}

fn member(view: &View<'_>, stock: &Stock, at: &str, gaps: &mut Gaps) -> Member {
    let mut number = |field: &str, value, places| gaps.number(&format!("{at}.{field}"), value, places);
    let million = |amount: crate::number::Seen<f64>| amount.map(|a| a / 1e6);
    Member {
        code: lookup::code(view, stock.sec),
        sub_sector: sub_sector(view, stock),
        close: number("close", stock.close, PRICE),
        change_pct: number("change_pct", stock.change[0], PERCENT),
        change_1d_pct: number("change_1d_pct", stock.change[0], PERCENT),
        change_5d_pct: number("change_5d_pct", stock.change[1], PERCENT),
        change_20d_pct: number("change_20d_pct", stock.change[2], PERCENT),
        volume_5_to_20: number("volume_5_to_20", stock.volume_5_to_20, RATIO),
        amount_1d_million: number("amount_1d_million", million(stock.amount), 2),
        amount_5d_avg_million: number("amount_5d_avg_million", million(stock.amount_mean[0]), 2),
        amount_20d_avg_million: number("amount_20d_avg_million", million(stock.amount_mean[1]), 2),
        distance_from_20d_high_pct: number("distance_from_20d_high_pct", stock.from_high_20, PERCENT),
    }
}

impl Tool for GetNarrativeSectorSummary {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_narrative_sector_summary",
        group: Group::Narrative,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "One sector over 1, 5 and 20 sessions up to the previous one: means, breadth, gainers, losers and leaders.",
        notes: &[
            "Two different sectors a day; only a successful new sector counts, a repeated one is free and answered in full.",
            "Gainers and losers are ordered by change over 1 session, descending; leaders by leader_ranking_rule; before rounding, ties by \
             visible code, a missing number last.",
            "Prices in CNY, amounts in million CNY, changes and ratios in percent (2 decimals).",
        ],
        example: r#"{"sector": "Banking"}"#,
        result_summary: "Means and up ratios of three horizons, up to five gainers, losers and leaders, the day's budget.",
        errors: &[
            ErrorCode::SectorNotFound,
            ErrorCode::DailyToolBudgetExhausted,
            ErrorCode::DataUnavailable,
            ErrorCode::InvalidCursor,
        ],
        opt_in: true,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = ctx.view;
        let facts = ctx.state.facts(&view);
        let found = sectors::find(&view, &facts, &args.sector, args.cursor.as_deref())?;
        let name = &facts.sectors[found].name;
        ctx.state.today.sectors.admit(name)?;
        // The memo holds the answer without what belongs to the call: budget and repeated.
        let mut output = match ctx.state.tick.narrative_sector.get(&found) {
            Some(known) => known,
            None => {
                let new = summarise(&view, &facts, found)?;
                ctx.state.tick.narrative_sector.put(found, &new);
                new
            }
        };
        output.repeated = ctx.state.today.sectors.count(name.clone());
        output.budget = ctx.state.today.sectors.budget();
        Ok(output)
    }
}

fn summarise(view: &View<'_>, facts: &Facts, found: usize) -> Result<Output, ToolFailure> {
    let session = facts.session.ok_or_else(nothing_to_compare)?;
    let members = || facts.sectors[found].members.iter().map(|i| &facts.stocks[*i]);
    let (tally, breadth) = (tally(members()), breadth(members()));
    let mut ranked: Vec<&Stock> = members().filter(|s| s.change[0].is_ok()).collect();
    let mut gaps = Gaps::default();
    let mean = |h: usize| if tally.count == 0 && breadth.suspended > 0 { Err(Reason::Suspended) } else { tally.change[h] };
    let share = |h: usize| if tally.count == 0 && breadth.suspended > 0 { Err(Reason::Suspended) } else { tally.up_ratio[h] };
    let rows = |stocks: &[&Stock], list: &str, gaps: &mut Gaps| -> Vec<Member> {
        stocks.iter().enumerate().map(|(i, s)| member(view, s, &format!("{list}[{i}]"), gaps)).collect()
    };
    let mut numbers = Gaps::default();
    let mut percent = |field: &str, value| numbers.number(field, value, PERCENT);
    ranked.sort_by(|a, b| descending(a.change[0], b.change[0]).then(a.rank.cmp(&b.rank)));
    let top_gainers = rows(&ranked[..ranked.len().min(5)], "top_gainers", &mut gaps);
    let top_losers = if ranked.len() > 5 { rows(&ranked[ranked.len() - 5..], "top_losers", &mut gaps) } else { vec![] };
    ranked.sort_by(|a, b| {
        descending(a.change[1], b.change[1])
            .then(descending(a.change[2], b.change[2]))
            .then(descending(a.change[0], b.change[0]))
            .then(descending(a.volume_5_to_20, b.volume_5_to_20))
            .then(a.rank.cmp(&b.rank))
    });
    let leaders = rows(&ranked[..ranked.len().min(5)], "leaders", &mut gaps);
    Ok(Output {
        as_of: lookup::as_of(view),
        session: session.into(),
        sector: facts.sectors[found].name.clone(),
        stock_count: tally.count,
        suspended_count: breadth.suspended,
        avg_change_pct: percent("avg_change_pct", mean(0)),
        change_1d_pct: percent("change_1d_pct", mean(0)),
        change_5d_pct: percent("change_5d_pct", mean(1)),
        change_20d_pct: percent("change_20d_pct", mean(2)),
        up_ratio_1d_pct: percent("up_ratio_1d_pct", share(0)),
        up_ratio_5d_pct: percent("up_ratio_5d_pct", share(1)),
        up_ratio_20d_pct: percent("up_ratio_20d_pct", share(2)),
        top_gainers,
        top_losers,
        leaders,
        leader_ranking_rule: "change_5d_pct, then change_20d_pct, change_1d_pct, volume_5_to_20, all descending.".to_owned(),
        budget: super::budget::Asked::default().budget(),
        repeated: false,
        adjustment: change_basis(view),
        missing_reasons: numbers.done().into_iter().chain(gaps.done()).collect(),
    })
}
