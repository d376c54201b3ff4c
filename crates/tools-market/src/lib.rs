//! Read tools: market, narrative, screening, fundamentals, text.
//!
//! Handlers see the market only through a [`traderharness_market::View`]; this crate opens no file, reads no clock of the host,
//! knows no account. One tool is one file: arguments, output, spec, handler, tests.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use traderharness_contract::{Family, Handler};
use traderharness_market::View;

/// The family of read tools.
#[derive(Debug)]
pub struct MarketTools;

impl Family for MarketTools {
    type Ctx<'a> = MarketCtx<'a>;
}

/// What a read tool may use for one call.
#[derive(Debug)]
pub struct MarketCtx<'a> {
    /// The market at the clock.
    pub view: View<'a>,
    /// What the session keeps for read tools between calls: whole-market results of this clock, daily query budgets.
    pub state: &'a mut MarketState,
}

/// State of a session's read tools. Holds nothing that the view would not show at its clock.
#[derive(Debug, Default)]
pub struct MarketState {}

/// The tools, in catalog order.
pub fn tools() -> Vec<Handler<MarketTools>> {
    vec![]
}
