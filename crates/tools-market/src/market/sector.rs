//! `get_sector_summary`: what the stocks of one sector did on the previous session.

use super::overview::nothing_to_compare;
use crate::adjust::{ChangeBasis, change_basis};
use crate::features::Stock;
use crate::number::{Gaps, PERCENT, PRICE, rounded};
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
pub(crate) struct GetSectorSummary;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Sector name as the overview shows it, or a prefix that only one sector has; 1 to 60 characters.
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
    /// The session that all numbers describe: the previous trading day.
    session: DayField,
    /// Whole name of the sector.
    sector: String,
    /// Mean change of the members, one vote each, percent.
    avg_change_pct: Option<f64>,
    /// Members with a change.
    stock_count: usize,
    /// Members that rose.
    up_count: usize,
    /// Members that fell.
    down_count: usize,
    /// Members that traded and closed unchanged.
    flat_count: usize,
    /// Members without a bar on the session; they are in no other number.
    suspended_count: usize,
    /// The five strongest members, strongest first.
    top_gainers: Vec<Member>,
    /// The five weakest members, weakest last; empty when there are at most five members.
    top_losers: Vec<Member>,
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
    /// Change over the session, percent.
    change_pct: Option<f64>,
}

/// Industry level below the top one.
pub(crate) fn sub_sector(view: &View<'_>, stock: &Stock) -> Option<String> {
    let label = view.security(stock.sec)?.industry.as_str();
    label.split('-').nth(1).map(str::trim).filter(|level| !level.is_empty()).map(ToOwned::to_owned)
}

impl Tool for GetSectorSummary {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_sector_summary",
        group: Group::Screening,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Breadth, mean change and the strongest and weakest stocks of one sector on the previous session.",
        notes: &[
            "A sector is the top level of the industry label; get_market_overview and get_stock_info show the names.",
            "Members are ordered by change, descending, before rounding; ties by visible code.",
            "Prices in CNY (2 decimals), changes in percent (2 decimals).",
        ],
        example: r#"{"sector": "Banking"}"#,
        result_summary: "Mean change, counts, up to five gainers and five losers.",
        errors: &[ErrorCode::SectorNotFound, ErrorCode::DataUnavailable, ErrorCode::InvalidCursor],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = ctx.view;
        if let Some(known) = ctx.state.at(&view).tick.sector.get(&args) {
            return Ok(known);
        }
        let facts = ctx.state.facts(&view);
        let found = sectors::find(&view, &facts, &args.sector, args.cursor.as_deref())?;
        let session = facts.session.ok_or_else(nothing_to_compare)?;
        let members = || facts.sectors[found].members.iter().map(|i| &facts.stocks[*i]);
        let tally = tally(members());
        let breadth = breadth(members());
        let mut ranked: Vec<&Stock> = members().filter(|s| s.change[0].is_ok()).collect();
        ranked.sort_by(|a, b| descending(a.change[0], b.change[0]).then(a.rank.cmp(&b.rank)));
        let row = |stock: &&Stock| Member {
            code: lookup::code(&view, stock.sec),
            sub_sector: sub_sector(&view, stock),
            close: rounded(stock.close, PRICE),
            change_pct: rounded(stock.change[0], PERCENT),
        };
        let mut gaps = Gaps::default();
        let mean = if tally.count == 0 && breadth.suspended > 0 { Err(Reason::Suspended) } else { tally.change[0] };
        let output = Output {
            as_of: lookup::as_of(&view),
            session: session.into(),
            sector: facts.sectors[found].name.clone(),
            avg_change_pct: gaps.number("avg_change_pct", mean, PERCENT),
            stock_count: tally.count,
            up_count: breadth.up,
            down_count: breadth.down,
            flat_count: breadth.flat,
            suspended_count: breadth.suspended,
            top_gainers: ranked.iter().take(5).map(row).collect(),
            top_losers: if ranked.len() > 5 { ranked[ranked.len() - 5..].iter().map(row).collect() } else { vec![] },
            adjustment: change_basis(&view),
            missing_reasons: gaps.done(),
        };
        ctx.state.tick.sector.put(args, &output);
        Ok(output)
    }
}
