//! Fees of a fill.

use super::Side;
use super::table::{RuleKind, find};
use crate::money::div_round;
use crate::{Board, Cash, Day, Rounding};

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

/// The rates behind [`fees`], in millionths of the amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeeRates {
    /// Commission, both sides.
    pub commission: i64,
    /// Smallest commission of a fill.
    pub min_commission: Cash,
    /// Stamp duty on sells.
    pub stamp_duty: i64,
    /// Transfer fee, both sides.
    pub transfer: i64,
}

/// Rates of a schedule for a board on a day.
pub fn fee_rates(schedule: FeeSchedule, board: Board, day: Day) -> FeeRates {
    let (commission, min_commission) = find(board, day, |kind| match kind {
        RuleKind::Commission { per_million, min_fen } => Some((per_million, Cash(min_fen))),
        _ => None,
    })
    .map_or((250, Cash(500)), |(rates, _)| rates);
    let (stamp_duty, transfer) = match schedule {
        FeeSchedule::Reference => (1_000, 0),
        FeeSchedule::Dated => (
            find(board, day, |kind| if let RuleKind::StampDuty { per_million } = kind { Some(per_million) } else { None })
                .map_or(1_000, |(rate, _)| rate),
            find(board, day, |kind| if let RuleKind::TransferFee { per_million } = kind { Some(per_million) } else { None })
                .map_or(0, |(rate, _)| rate),
        ),
    };
    FeeRates { commission, min_commission, stamp_duty, transfer }
}

/// Fees of a fill of `amount`, each rounded half-up to fen (engine E3.8).
pub fn fees(schedule: FeeSchedule, side: Side, board: Board, day: Day, amount: Cash) -> Fees {
    let rates = fee_rates(schedule, board, day);
    let part =
        |per_million: i64| Cash(div_round(i128::from(amount.0) * i128::from(per_million), 1_000_000, Rounding::HalfUp) as i64);
    Fees {
        commission: part(rates.commission).max(rates.min_commission),
        stamp_duty: if side == Side::Sell { part(rates.stamp_duty) } else { Cash(0) },
        transfer: part(rates.transfer),
    }
}
