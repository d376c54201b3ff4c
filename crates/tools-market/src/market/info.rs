//! `get_stock_info`: what a security is: company, industry, board, trading rules of today.

use super::price::no_band;
use crate::features::top_level;
use crate::number::{Gaps, Seen};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{
    AsOf, CompanyName, DayField, Effect, ErrorCode, Group, Missing, Reason, Repeat, StockCode, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::rules::{TICK, lot_rule};
use traderharness_market::{Band, Board};

/// The tool.
#[derive(Debug)]
pub(crate) struct GetStockInfo;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Complete code of the security as shown in this run.
    #[schemars(length(min = 6))]
    stock_code: StockCode,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Code of the security.
    stock_code: StockCode,
    /// As of when the answer is true.
    as_of: AsOf,
    /// Company name.
    name: Option<CompanyName>,
    /// Whole industry label of the dataset, levels joined by `-`.
    industry: Option<String>,
    /// Top level of the industry label; the name that the sector tools take.
    sector: Option<String>,
    /// Deeper levels of the industry label, broadest first.
    sub_sectors: Vec<String>,
    /// Listing segment: main, ChiNext, STAR or BSE.
    market: String,
    /// Board: SH main, SZ main, ChiNext, STAR or BSE.
    board: String,
    /// Smallest buy, shares.
    lot_min: i64,
    /// Step of buys above the smallest, shares.
    lot_step: i64,
    /// Price step, CNY.
    tick: f64,
    /// Width of today's price band, percent; null when there is no limit today or it is not known.
    band_pct: Option<f64>,
    /// Rule that sets today's band or lifts it.
    band_rule: Option<String>,
    /// True for ST and *ST securities, by the newest visible flag.
    is_st: Option<bool>,
    /// First trading day, when the dataset has it.
    listed: Option<DayField>,
    /// True when this security was already asked for today; the answer is whole all the same.
    repeated: bool,
    /// Why fields are null.
    missing_reasons: Vec<Missing>,
}

impl Tool for GetStockInfo {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_stock_info",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Company, industry, board and today's trading rules of one security.",
        notes: &["Prices in CNY, quantities in shares, the band in percent.", "A repeated call returns the whole answer again."],
        example: r#"{"stock_code": "SHM-000360"}"#,
        result_summary: "Name, industry with its levels, board, lot, tick, band, ST flag and listing day.",
        errors: &[ErrorCode::UnknownSecurity],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = ctx.view;
        let sec = lookup::find(&view, &args.stock_code)?;
        let board = view.board(sec).ok_or_else(|| {
            ToolFailure::new(
                ErrorCode::SecurityDataUnavailable,
                "The board of this security is not known.",
                "Choose another security.",
            )
        })?;
        let mut gaps = Gaps::default();
        let company = view.security(sec);
        let name = gaps.keep("name", written(company.map(|c| c.name.as_str())));
        let industry = gaps.keep("industry", written(company.map(|c| c.industry.as_str())));
        let sector = gaps.keep("sector", industry.and_then(top_level).ok_or(Reason::SourceMissing));
        let levels = industry.into_iter().flat_map(|label| label.split('-').skip(1)).map(str::trim).filter(|l| !l.is_empty());
        let (band_pct, band_rule) = match view.band(sec) {
            Ok(Band::Limits { basis_points, rule, .. }) => (Some(f64::from(basis_points) / 100.0), Some(rule.to_owned())),
            Ok(Band::None { rule }) => (None, Some(rule.to_owned())),
            Err(fault) => {
                gaps.note("band_pct", no_band(fault));
                gaps.note("band_rule", no_band(fault));
                (None, None)
            }
        };
        // A listing day after today would be a look ahead, whatever the table says.
        let listed = company.and_then(|c| c.listed).filter(|day| *day <= view.today());
        let lot = lot_rule(board);
        Ok(Output {
            stock_code: lookup::code(&view, sec),
            as_of: lookup::as_of(&view),
            name: name.map(Into::into),
            industry: industry.map(ToOwned::to_owned),
            sector: sector.map(ToOwned::to_owned),
            sub_sectors: levels.map(ToOwned::to_owned).collect(),
            market: segment(board).to_owned(),
            board: board.as_str().to_owned(),
            lot_min: lot.min.0,
            lot_step: lot.step.0,
            tick: TICK.to_f64(),
            band_pct,
            band_rule,
            is_st: gaps.keep("is_st", view.is_st(sec).ok_or(Reason::SourceMissing)),
            listed: gaps.keep("listed", listed.ok_or(Reason::SourceMissing)).map(Into::into),
            repeated: !ctx.state.at(&view).today.described.insert(sec),
            missing_reasons: gaps.done(),
        })
    }
}

/// A text of the table that says something.
fn written(value: Option<&str>) -> Seen<&str> {
    value.map(str::trim).filter(|t| !t.is_empty()).ok_or(Reason::SourceMissing)
}

const fn segment(board: Board) -> &'static str {
    match board {
        Board::ShMain | Board::SzMain => "main",
        Board::ChiNext => "ChiNext",
        Board::Star => "STAR",
        Board::Bse => "BSE",
    }
}
