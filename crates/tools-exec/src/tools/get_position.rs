//! `get_position`: one held security in full.

use super::get_portfolio::CONVENTIONS;
use super::shown::{self, PositionShown};
use crate::{ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{AsOf, Effect, ErrorCode, Group, Repeat, StockCode, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct GetPosition;

/// Which position.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Complete code of the held security, exactly as another tool of this run showed it.
    #[schemars(length(min = 6))]
    pub stock_code: StockCode,
}

/// One position at this decision point.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The position.
    #[serde(flatten)]
    pub position: PositionShown,
    /// Shares that may be sold now. Equal to `sellable`.
    pub sellable_quantity: i64,
    /// True when today's one fill of this security is used up, so that no further order is accepted today.
    pub traded_today: bool,
    /// How average cost and profit are counted, in words.
    pub conventions: String,
    /// As of when this is true.
    pub as_of: AsOf,
}

impl Tool for GetPosition {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "get_position",
        group: Group::Portfolio,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Shows one held security: quantity, what may be sold now, cost, last visible price, profit, and its plan.",
        notes: &[
            "Amounts and prices in CNY, quantities in shares, percentages in percent.",
            "Shares bought today are frozen until the next trading day.",
            "Average cost excludes fees; pnl is after the fees paid and pnl_gross before them.",
        ],
        example: r#"{"stock_code": "600036"}"#,
        result_summary: "The position with cost, price, price source and time, sellable and frozen shares, profit and plan.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::PositionNotHeld],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        let code = shown::code(view, &args.stock_code)?;
        let valuation = ctx.account.valuation(view);
        let index = ctx.account.ledger().positions().iter().position(|p| p.code == code).ok_or_else(shown::not_held)?;
        let position = shown::positions(view, ctx.account, &valuation).into_iter().nth(index).ok_or_else(shown::not_held)?;
        Ok(Output {
            sellable_quantity: position.sellable,
            traded_today: ctx.limits.once_per_day && ctx.account.traded_today(code, view.today()),
            position,
            conventions: CONVENTIONS.to_owned(),
            as_of: shown::as_of(view),
        })
    }
}
