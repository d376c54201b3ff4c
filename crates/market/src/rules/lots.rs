//! Quantities of one order.

use super::table::{RuleKind, find};
use crate::{Board, Day, Price, Shares};

/// Smallest price step of A shares.
pub const TICK: Price = Price(100);

/// Buy quantities a board accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LotRule {
    /// Smallest buy.
    pub min: Shares,
    /// Step above the smallest.
    pub step: Shares,
}

impl LotRule {
    /// True for a buy quantity the board accepts.
    pub const fn accepts_buy(self, quantity: Shares) -> bool {
        quantity.0 >= self.min.0 && (quantity.0 - self.min.0) % self.step.0 == 0
    }

    /// The largest accepted buy quantity not above `quantity`; zero when it is below the smallest.
    pub const fn round_down(self, quantity: Shares) -> Shares {
        if quantity.0 < self.min.0 { Shares(0) } else { Shares(quantity.0 - (quantity.0 - self.min.0) % self.step.0) }
    }
}

/// Lot rule of a board. It has not changed since the boards that exist today opened.
pub const fn lot_rule(board: Board) -> LotRule {
    match board {
        Board::Star => LotRule { min: Shares(200), step: Shares(1) },
        Board::Bse => LotRule { min: Shares(100), step: Shares(1) },
        Board::ShMain | Board::SzMain | Board::ChiNext => LotRule { min: Shares(100), step: Shares(100) },
    }
}

/// Largest limit order of a board on a day.
pub fn max_order(board: Board, day: Day) -> Shares {
    let size = find(board, day, |kind| match kind {
        RuleKind::MaxOrder { shares } => Some(shares),
        _ => None,
    });
    Shares(size.map_or(1_000_000, |(shares, _)| shares))
}
