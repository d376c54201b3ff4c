//! Dated market rules (engine E4): price bands, lots, fees. Stub: the API is fixed, the bodies follow.

use crate::{Board, Cash, Day, Price, Rounding, Shares, money::div_round};

/// Side of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the field's own names")]
pub enum Side {
    Buy,
    Sell,
}

/// Price band of one security on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Band {
    /// Limits, inclusive: a trade at the limit is possible, beyond is not.
    Limits {
        /// Upper limit.
        up: Price,
        /// Lower limit.
        down: Price,
        /// Band in basis points: 1,000 = 10 %.
        basis_points: u32,
        /// Rule that set it.
        rule: &'static str,
    },
    /// No limit today (first days of a registration-system listing).
    None {
        /// Rule that lifted it.
        rule: &'static str,
    },
}

/// What decides a band.
#[derive(Debug, Clone, Copy)]
pub struct BandInput {
    /// Board.
    pub board: Board,
    /// Trading day.
    pub day: Day,
    /// ST or *ST flag visible now.
    pub st: bool,
    /// 1 = first trading day; `None` when the listing date is not known or long past.
    pub sessions_since_listing: Option<u32>,
    /// Previous close adjusted for ex-rights of today.
    pub reference: Price,
}

/// Band of the day.
pub fn band(input: BandInput) -> Band {
    let basis_points: u32 = match input.board {
        Board::Star | Board::ChiNext => 2_000,
        Board::Bse => 3_000,
        Board::ShMain | Board::SzMain => {
            if input.st {
                500
            } else {
                1_000
            }
        }
    };
    let limit = |factor: i64| {
        Price(div_round(i128::from(input.reference.0) * i128::from(factor), 10_000 * 100, Rounding::HalfUp) as i64 * 100)
    };
    Band::Limits {
        up: limit(10_000 + i64::from(basis_points)),
        down: limit(10_000 - i64::from(basis_points)),
        basis_points,
        rule: "board",
    }
}

/// Which fees apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeeSchedule {
    /// By date (engine E4).
    #[default]
    Dated,
    /// The Python implementation's flat schedule: stamp duty 0.1 %, no transfer fee; for comparisons.
    Reference,
}

/// Fees of one fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fees {
    /// Commission, both sides.
    pub commission: Cash,
    /// Stamp duty, sells.
    pub stamp_duty: Cash,
    /// Transfer fee, both sides.
    pub transfer: Cash,
}

impl Fees {
    /// Sum.
    pub const fn total(self) -> Cash {
        Cash(self.commission.0 + self.stamp_duty.0 + self.transfer.0)
    }
}

/// Fees of a fill of `amount` (rounded half-up to fen each).
pub fn fees(schedule: FeeSchedule, side: Side, board: Board, day: Day, amount: Cash) -> Fees {
    let _ = (schedule, board, day);
    let rate =
        |per_million: i64| Cash(div_round(i128::from(amount.0) * i128::from(per_million), 1_000_000, Rounding::HalfUp) as i64);
    Fees {
        commission: Cash(rate(250).0.max(500)),
        stamp_duty: if side == Side::Sell { rate(1_000) } else { Cash(0) },
        transfer: Cash(0),
    }
}

/// Buy quantities a board accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LotRule {
    /// Smallest buy.
    pub min: Shares,
    /// Step above the smallest.
    pub step: Shares,
}

/// Lot rule of a board.
pub const fn lot_rule(board: Board) -> LotRule {
    match board {
        Board::Star => LotRule { min: Shares(200), step: Shares(1) },
        Board::Bse => LotRule { min: Shares(100), step: Shares(1) },
        Board::ShMain | Board::SzMain | Board::ChiNext => LotRule { min: Shares(100), step: Shares(100) },
    }
}
