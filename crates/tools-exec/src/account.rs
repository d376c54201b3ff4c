//! The account of one session (stub).

use traderharness_market::{Cash, FeeSchedule};

/// Limits a card sets for orders (engine E9).
#[derive(Debug, Clone, PartialEq)]
pub struct CardLimits {
    /// Positions held at most.
    pub max_positions: u32,
    /// Share of total assets one position may have after a buy, in basis points (2,500 = 25 %).
    pub max_position_basis_points: u32,
    /// Fee schedule.
    pub fees: FeeSchedule,
    /// Share of a bar's volume that may fill, in basis points; `None` = off.
    pub participation_basis_points: Option<u32>,
    /// One fill per security and day.
    pub once_per_day: bool,
    /// Opening buys of ST securities are refused.
    pub forbid_st: bool,
}

impl Default for CardLimits {
    fn default() -> Self {
        Self {
            max_positions: 4,
            max_position_basis_points: 2_500,
            fees: FeeSchedule::Dated,
            participation_basis_points: None,
            once_per_day: true,
            forbid_st: true,
        }
    }
}

/// The account of one session.
#[derive(Debug, Clone)]
pub struct Account {
    /// Cash at the start of the run.
    pub initial_cash: Cash,
}

impl Account {
    /// An account with cash and no position.
    pub fn new(initial_cash: Cash) -> Self {
        Self { initial_cash }
    }
}
