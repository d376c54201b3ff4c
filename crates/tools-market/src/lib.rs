//! Read tools: market, narrative, screening, fundamentals, text.
//!
//! Handlers see the market only through a [`traderharness_market::View`]; this crate opens no file, reads no clock of the host,
//! knows no account. One tool is one file: arguments, output, spec, handler, tests.
//!
//! | module | holds |
//! |---|---|
//! | `lookup` | the security of an argument, as-of of a result |
//! | `number` | rounding, null with a reason |
//! | `adjust` | ex-dates: references, adjusted bars, changes |
//! | `features` | what one pass over the market computes for every stock |
//! | `page` | lists in pages, cursors |
//! | `sectors` | finding a sector, means and breadth of stocks |
//! | `state` | what a session keeps between calls of one clock or day |
//! | [`research`] | capabilities of the doors beside the catalog: `market.bars`, `technical.compute` |
//! | [`tables`] | whole tables for code that an agent runs |
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod adjust;
mod features;
mod fundamentals;
mod lookup;
mod market;
mod narrative;
mod number;
mod page;
pub mod research;
mod screening;
mod sectors;
mod state;
pub mod tables;
mod text;

pub use state::MarketState;

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

/// The tools, in catalog order.
pub fn tools() -> Vec<Handler<MarketTools>> {
    vec![
        // Market.
        Handler::of::<market::kline::GetKline>(),
        Handler::of::<market::price::GetStockPrice>(),
        Handler::of::<market::info::GetStockInfo>(),
        Handler::of::<market::overview::GetMarketOverview>(),
        // Narrative.
        Handler::of::<narrative::overview::GetNarrativeMarketOverview>(),
        Handler::of::<narrative::sector::GetNarrativeSectorSummary>(),
        Handler::of::<narrative::news::GetNarrativeNews>(),
        // Screening.
        Handler::of::<screening::stocks::ScreenStocks>(),
        Handler::of::<screening::cycle::ScreenBehavioralCycle>(),
        Handler::of::<market::sector::GetSectorSummary>(),
        // Fundamentals.
        Handler::of::<fundamentals::GetFundamentals>(),
        Handler::of::<fundamentals::GetBusinessSegments>(),
        Handler::of::<fundamentals::GetValuation>(),
        // Text.
        Handler::of::<text::GetAnnouncements>(),
        Handler::of::<text::GetAnnouncementEvidence>(),
        Handler::of::<text::GetNews>(),
    ]
}
