//! `get_portfolio`: cash, total assets and every position at the last visible prices.

use super::shown::{self, LimitsShown, PositionShown};
use crate::{ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{AsOf, Effect, Group, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct GetPortfolio;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {}

/// The account at this decision point.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Usable cash, CNY: what an order may spend. Equal to `usable_cash`.
    pub cash: f64,
    /// Usable cash, CNY; proceeds of today's sales are in it.
    pub usable_cash: f64,
    /// Cash that could leave the account today, CNY; proceeds of today's sales join it on the next trading day.
    pub withdrawable_cash: f64,
    /// Cash and all positions, CNY.
    pub total_value: f64,
    /// Value of all positions, CNY.
    pub market_value: f64,
    /// Value of all positions in percent of total assets.
    pub exposure_pct: Option<f64>,
    /// Change of total assets since the start of the run, percent.
    pub return_pct: Option<f64>,
    /// Total assets less the cash of the start, CNY: after all fees paid so far, with dividends.
    pub pnl: f64,
    /// The same without the fees paid so far, CNY.
    pub pnl_gross: f64,
    /// Profit and loss of all sales so far, after the fees of both sides, CNY.
    pub realised_pnl: f64,
    /// All fees paid so far, CNY.
    pub fees_paid: f64,
    /// Gross cash dividends received so far, CNY.
    pub dividends: f64,
    /// Positions in the order in which they were opened.
    pub positions: Vec<PositionShown>,
    /// Number of positions.
    pub position_count: usize,
    /// Phase whose prices these are: pre_market, open_window or close_window.
    pub valuation_phase: String,
    /// Fills of today.
    pub trades_today: usize,
    /// Limits a buy meets.
    pub limits: LimitsShown,
    /// How average cost and profit are counted, in words.
    pub conventions: String,
    /// As of when this is true.
    pub as_of: AsOf,
}

/// The convention sentence of account results.
pub(crate) const CONVENTIONS: &str = "avg_cost excludes fees; pnl is after the fees paid, pnl_gross is before them; \
     pnl_pct is pnl_gross over cost; prices are the last visible ones, a suspended security keeps its last close.";

impl Tool for GetPortfolio {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "get_portfolio",
        group: Group::Portfolio,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Shows the account: cash, total assets, and every position at the last price visible at this decision point.",
        notes: &[
            "Positions come in the order in which they were opened.",
            "Amounts and prices in CNY, quantities in shares, percentages in percent.",
            "Shares bought today are frozen until the next trading day; sale proceeds can be spent at once and withdrawn the next day.",
            "Average cost excludes fees; pnl is after the fees paid and pnl_gross before them.",
        ],
        example: "{}",
        result_summary: "Cash (usable and withdrawable), total assets, return, and each position with cost, price, price source, sellable \
             quantity and profit.",
        errors: &[],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, _: Args) -> Result<Output, ToolFailure> {
        let (view, account) = (&ctx.view, &*ctx.account);
        let valuation = account.valuation(view);
        let ledger = account.ledger();
        let change = valuation.total.0 - account.initial_cash.0;
        let positions = shown::positions(view, account, &valuation);
        Ok(Output {
            cash: shown::cash(ledger.cash()),
            usable_cash: shown::cash(ledger.cash()),
            withdrawable_cash: shown::cash(ledger.withdrawable()),
            total_value: shown::cash(valuation.total),
            market_value: shown::cash(valuation.market_value()),
            exposure_pct: shown::percent(valuation.market_value().0, valuation.total.0),
            return_pct: shown::percent(change, account.initial_cash.0),
            pnl: traderharness_market::Cash(change).to_f64(),
            pnl_gross: traderharness_market::Cash(change + ledger.fees_paid().0).to_f64(),
            realised_pnl: shown::cash(ledger.realised()),
            fees_paid: shown::cash(ledger.fees_paid()),
            dividends: shown::cash(ledger.dividends()),
            position_count: positions.len(),
            positions,
            valuation_phase: view.clock().point.phase().as_str().to_owned(),
            trades_today: account.fills_on(view.today()).count(),
            limits: LimitsShown::of(ctx.limits),
            conventions: CONVENTIONS.to_owned(),
            as_of: shown::as_of(view),
        })
    }
}
