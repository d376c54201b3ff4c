//! Account tools and the one order path: ledger, matching, portfolio, execution and control.
//!
//! Handlers see the market only through a [`traderharness_market::View`]; this crate opens no file and reads no clock of the host.
//! Money is exact integers; float arithmetic is denied in the ledger and the matching.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use traderharness_contract::{Family, Handler};
use traderharness_market::View;

pub mod account;
pub mod code;
pub mod conditional;
pub mod control;
pub mod corporate;
pub mod decision_card;
pub mod evidence;
pub mod gate;
pub mod ledger;
pub mod matching;
pub mod memory;
pub mod order;
pub mod plan;
pub mod refusal;
pub mod tools;
pub mod valuation;
pub mod watchlist;

pub use account::{Account, CardLimits};
pub use code::{CodeFile, CodeLimits, CodeOutcome, CodeRequest, CodeRunner};
pub use conditional::{ConditionOutcome, evaluate};
pub use control::{Completion, Control, PendingError};
pub use gate::OrderGate;
pub use matching::Matching;
pub use memory::Memory;
pub use order::{Fill, Order, Origin};
pub use refusal::Refusal;
pub use valuation::Valuation;
pub use watchlist::Watchlist;

/// The family of account tools.
#[derive(Debug)]
pub struct ExecTools;

impl Family for ExecTools {
    type Ctx<'a> = ExecCtx<'a>;
}

/// What an account tool may use for one call.
#[derive(Debug)]
pub struct ExecCtx<'a> {
    /// The market at the clock.
    pub view: View<'a>,
    /// The account: ledger, fills, orders. Only [`Matching`] and the trading day change it.
    pub account: &'a mut Account,
    /// Limits of the card.
    pub limits: &'a CardLimits,
    /// The order gate of a session that has one; every order goes through it.
    pub gate: Option<&'a mut OrderGate>,
    /// Phase control: open failures, and the completion this call asks for.
    pub control: &'a mut Control,
    /// Who runs code, in a session that has a sandbox.
    pub code: Option<&'a mut dyn CodeRunner>,
}

/// The tools, in catalog order.
pub fn tools() -> Vec<Handler<ExecTools>> {
    vec![
        Handler::of::<tools::get_portfolio::GetPortfolio>(),
        Handler::of::<tools::get_position::GetPosition>(),
        Handler::of::<tools::place_order::PlaceOrder>(),
        Handler::of::<tools::manage_conditional_order::ManageConditionalOrder>(),
        Handler::of::<tools::list_conditional_orders::ListConditionalOrders>(),
        Handler::of::<watchlist::add_watchlist::AddWatchlist>(),
        Handler::of::<watchlist::remove_watchlist::RemoveWatchlist>(),
        Handler::of::<watchlist::get_watchlist::GetWatchlist>(),
        Handler::of::<memory::remember::Remember>(),
        Handler::of::<memory::search_memory::SearchMemory>(),
        Handler::of::<memory::get_memory::GetMemory>(),
        Handler::of::<tools::execute_code::ExecuteCode>(),
        Handler::of::<tools::complete_phase::CompletePhase>(),
        Handler::of::<tools::finish_day::FinishDay>(),
    ]
}
