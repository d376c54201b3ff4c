//! Price bands and the band reference of an ex-date.

use super::table::{RuleKind, RuleRow, find};
use crate::money::div_round;
use crate::{Board, Day, Price, Rounding};

/// Price band of one security on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Band {
    /// Limits, inclusive: a trade at the limit is possible, beyond is not.
    Limits {
        /// Upper limit.
        up: Price,
        /// Lower limit.
        down: Price,
        /// Band in basis points: 1,000 = 10 %. On a listing day with unequal sides, the upper one.
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

/// Why a security has no band. Never read as "no limit" (issue 4 point 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BandFault {
    /// No earlier close: first visible day, and no rule lifts the band.
    #[error("no previous close, so the price band of today is unknown")]
    NoPreviousClose,
    /// Listing day under the 44 % / 36 % rule: its reference is the issue price, which the dataset does not have.
    #[error("the band of a listing day refers to the issue price, which the dataset does not have")]
    NoIssuePrice,
    /// The code is of no known board.
    #[error("the code is of no known board, so no price band is defined")]
    UnknownBoard,
}

impl BandFault {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoPreviousClose => "no_previous_close",
            Self::NoIssuePrice => "no_issue_price",
            Self::UnknownBoard => "unknown_board",
        }
    }
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
    /// Previous close adjusted for ex-rights of today; on a listing day the issue price.
    pub reference: Price,
}

/// The rule that lifts the band in this session of a listing, if one does. The rules hold for securities listed since their first day.
pub fn free_days(board: Board, day: Day, sessions_since_listing: Option<u32>) -> Option<&'static RuleRow> {
    let session = sessions_since_listing.filter(|s| *s >= 1)?;
    let (sessions, row) = find(board, day, |kind| match kind {
        RuleKind::FreeSessions { sessions } => Some(sessions),
        _ => None,
    })?;
    (session <= sessions).then_some(row)
}

/// Band of the day. Limits are the reference times (1 +- band), rounded half-up to 0.01 in integers.
pub fn band(input: BandInput) -> Band {
    let BandInput { board, day, st, sessions_since_listing, reference } = input;
    if let Some(row) = free_days(board, day, sessions_since_listing) {
        return Band::None { rule: row.rule };
    }
    let limit = |basis_points: i64| {
        let scaled = i128::from(reference.0) * i128::from(10_000 + basis_points);
        Price(div_round(scaled, 10_000 * 100, Rounding::HalfUp) as i64 * 100)
    };
    if sessions_since_listing == Some(1)
        && let Some(((up, down), row)) = first_day(board, day)
    {
        return Band::Limits { up: limit(i64::from(up)), down: limit(-i64::from(down)), basis_points: up, rule: row.rule };
    }
    let usual = |kind| if let RuleKind::Band { basis_points } = kind { Some(basis_points) } else { None };
    let special = |kind| if let RuleKind::StBand { basis_points } = kind { Some(basis_points) } else { None };
    let found = st.then(|| find(board, day, special)).flatten().or_else(|| find(board, day, usual));
    // Days before a board's first row happen in invented data only; the board's own band holds there.
    let (basis_points, rule) = found.map_or_else(
        || match board {
            Board::Star => (2_000, "star_20pct"),
            _ => (1_000, "main_10pct"),
        },
        |(basis_points, row)| (basis_points, row.rule),
    );
    let width = i64::from(basis_points);
    Band::Limits { up: limit(width), down: limit(-width), basis_points, rule }
}

/// The listing-day rule that refers to the issue price, if it holds.
pub(crate) fn first_day(board: Board, day: Day) -> Option<((u32, u32), &'static RuleRow)> {
    find(board, day, |kind| if let RuleKind::FirstDay { up, down } = kind { Some((up, down)) } else { None })
}
