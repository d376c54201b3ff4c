//! The rule table: the only place where a rate, a percentage or an effective date is written.

use crate::{Board, Day};

/// What a row sets. Rates in millionths of the amount, bands in basis points, sizes in shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// Daily price band, +- basis points of the reference.
    Band {
        /// Basis points: 1,000 = 10 %.
        basis_points: u32,
    },
    /// Band of ST and *ST securities.
    StBand {
        /// Basis points.
        basis_points: u32,
    },
    /// No band in the first sessions of an initial listing.
    FreeSessions {
        /// Number of sessions, the listing day included.
        sessions: u32,
    },
    /// Band of the listing day against the issue price.
    FirstDay {
        /// Basis points up.
        up: u32,
        /// Basis points down.
        down: u32,
    },
    /// Buy quantities of one order.
    BuyLot {
        /// Smallest buy.
        min: i64,
        /// Step above it.
        step: i64,
    },
    /// Largest limit order.
    MaxOrder {
        /// Shares.
        shares: i64,
    },
    /// Smallest price step, in 1/10,000 CNY.
    Tick {
        /// Units.
        units: i64,
    },
    /// Stamp duty on sells.
    StampDuty {
        /// Millionths.
        per_million: i64,
    },
    /// Transfer fee, both sides.
    TransferFee {
        /// Millionths.
        per_million: i64,
    },
    /// Commission, both sides.
    Commission {
        /// Millionths.
        per_million: i64,
        /// Smallest commission in fen.
        min_fen: i64,
    },
}

impl RuleKind {
    /// Name of the rule; rows of one name, board and different dates replace each other.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Band { .. } => "price band",
            Self::StBand { .. } => "price band, ST and *ST",
            Self::FreeSessions { .. } => "no band after listing",
            Self::FirstDay { .. } => "band of the listing day",
            Self::BuyLot { .. } => "buy lot",
            Self::MaxOrder { .. } => "largest limit order",
            Self::Tick { .. } => "tick",
            Self::StampDuty { .. } => "stamp duty (sell)",
            Self::TransferFee { .. } => "transfer fee (both sides)",
            Self::Commission { .. } => "commission (both sides)",
        }
    }

    /// The value as a person reads it.
    pub fn value(self) -> String {
        let percent = |per_million: i64| format!("{} %", per_million as f64 / 10_000.0);
        match self {
            Self::Band { basis_points } | Self::StBand { basis_points } => format!("+-{} %", basis_points / 100),
            Self::FreeSessions { sessions } => format!("{sessions} sessions"),
            Self::FirstDay { up, down } => format!("+{} % / -{} % of the issue price", up / 100, down / 100),
            Self::BuyLot { min, step } => format!("at least {min}, then by {step}"),
            Self::MaxOrder { shares } => format!("{shares} shares"),
            Self::Tick { units } => format!("{} CNY", units as f64 / 10_000.0),
            Self::StampDuty { per_million } | Self::TransferFee { per_million } => percent(per_million),
            Self::Commission { per_million, min_fen } => {
                format!("{}, at least {:.2} CNY", percent(per_million), min_fen as f64 / 100.0)
            }
        }
    }
}

/// A dated rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleRow {
    /// What it sets.
    pub kind: RuleKind,
    /// Boards it holds for.
    pub boards: &'static [Board],
    /// First day it holds; `None` = as far back as any dataset here goes.
    pub from: Option<Day>,
    /// Last day it holds; `None` = still holds.
    pub until: Option<Day>,
    /// Title and date of the published text.
    pub source: &'static str,
    /// Short name shown with a refusal.
    pub rule: &'static str,
}

impl RuleRow {
    /// True when the row holds for this board on this day.
    pub fn holds(&self, board: Board, day: Day) -> bool {
        self.boards.contains(&board) && self.from.is_none_or(|d| d <= day) && self.until.is_none_or(|d| day <= d)
    }
}

use Board::{Bse, ChiNext, ShMain, Star, SzMain};

const MAIN: &[Board] = &[ShMain, SzMain];
const SH_SZ: &[Board] = &[ShMain, SzMain, ChiNext, Star];

/// A date of a row; a test reads each back.
const fn on(year: i32, month: i32, day: i32) -> Option<Day> {
    Some(Day::of_civil(year, month, day))
}

const fn row(
    kind: RuleKind,
    boards: &'static [Board],
    from: Option<Day>,
    until: Option<Day>,
    rule: &'static str,
    source: &'static str,
) -> RuleRow {
    RuleRow { kind, boards, from, until, source, rule }
}

/// All rules, by kind, then board, then date.
pub const RULES: &[RuleRow] = &[
    // Price bands.
    row(
        RuleKind::Band { basis_points: 1_000 },
        MAIN,
        on(1996, 12, 16),
        None,
        "main_10pct",
        "SSE and SZSE notices on price limits for stocks and funds, effective 1996-12-16; kept by the SSE and SZSE Trading Rules (2023 revisions)",
    ),
    row(
        RuleKind::StBand { basis_points: 500 },
        MAIN,
        on(1998, 4, 22),
        None,
        "st_5pct",
        "SSE and SZSE Listing Rules and Trading Rules: risk-warned stocks of the main boards trade within 5 %; special treatment began on 1998-04-22",
    ),
    row(
        RuleKind::Band { basis_points: 1_000 },
        &[ChiNext],
        None,
        on(2020, 8, 23),
        "chinext_10pct",
        "SZSE Trading Rules before the ChiNext reform: 10 % for all Shenzhen stocks",
    ),
    row(
        RuleKind::StBand { basis_points: 500 },
        &[ChiNext],
        None,
        on(2020, 8, 23),
        "chinext_st_5pct",
        "SZSE Trading Rules before the ChiNext reform: 5 % for risk-warned stocks",
    ),
    row(
        RuleKind::Band { basis_points: 2_000 },
        &[ChiNext],
        on(2020, 8, 24),
        None,
        "chinext_20pct",
        "SZSE Special Provisions on ChiNext Trading, in force with the first registration-based listings on 2020-08-24; 20 % for all ChiNext stocks, risk-warned ones included",
    ),
    row(
        RuleKind::Band { basis_points: 2_000 },
        &[Star],
        on(2019, 7, 22),
        None,
        "star_20pct",
        "SSE Special Provisions on STAR Market Trading (2019-03-01), first trading day 2019-07-22; 20 %, risk-warned stocks included",
    ),
    row(
        RuleKind::Band { basis_points: 3_000 },
        &[Bse],
        None,
        None,
        "bse_30pct",
        "BSE Trading Rules (trial), effective 2021-11-15; the NEEQ selected tier before it had the same 30 %",
    ),
    // Listing days.
    row(
        RuleKind::FreeSessions { sessions: 5 },
        &[Star],
        on(2019, 7, 22),
        None,
        "star_first_5_sessions",
        "SSE Special Provisions on STAR Market Trading (2019-03-01): no price limit in the first five trading days of an IPO",
    ),
    row(
        RuleKind::FreeSessions { sessions: 5 },
        &[ChiNext],
        on(2020, 8, 24),
        None,
        "chinext_first_5_sessions",
        "SZSE Special Provisions on ChiNext Trading, from 2020-08-24: no price limit in the first five trading days of an IPO",
    ),
    row(
        RuleKind::FreeSessions { sessions: 5 },
        MAIN,
        on(2023, 4, 10),
        None,
        "main_first_5_sessions",
        "SSE and SZSE Trading Rules (2023 revisions), in force with the first registration-based main-board listings on 2023-04-10",
    ),
    row(
        RuleKind::FreeSessions { sessions: 1 },
        &[Bse],
        on(2021, 11, 15),
        None,
        "bse_first_session",
        "BSE Trading Rules (trial), effective 2021-11-15: no price limit on the first day of a public listing",
    ),
    row(
        RuleKind::FirstDay { up: 4_400, down: 3_600 },
        MAIN,
        on(2014, 1, 1),
        on(2023, 4, 9),
        "main_first_day_44_36",
        "SSE and SZSE notices of 2013-12-13 on trading supervision at the start of a listing: 144 % and 64 % of the issue price; ended by the 2023 Trading Rules",
    ),
    row(
        RuleKind::FirstDay { up: 4_400, down: 3_600 },
        &[ChiNext],
        on(2014, 1, 1),
        on(2020, 8, 23),
        "chinext_first_day_44_36",
        "SZSE notice of 2013-12-13 on trading supervision at the start of a listing; ended for ChiNext by the 2020 Special Provisions",
    ),
    // Order sizes.
    row(
        RuleKind::BuyLot { min: 100, step: 100 },
        &[ShMain, SzMain, ChiNext],
        None,
        None,
        "lot_100",
        "SSE and SZSE Trading Rules: buys in multiples of 100; a remainder below 100 is sold in one order",
    ),
    row(
        RuleKind::BuyLot { min: 200, step: 1 },
        &[Star],
        None,
        None,
        "star_lot_200_1",
        "SSE Special Provisions on STAR Market Trading (2019-03-01): at least 200 shares, then by 1; a remainder below 200 is sold in one order",
    ),
    row(
        RuleKind::BuyLot { min: 100, step: 1 },
        &[Bse],
        None,
        None,
        "bse_lot_100_1",
        "BSE Trading Rules (trial), effective 2021-11-15: at least 100 shares, then by 1; a remainder below 100 is sold in one order",
    ),
    row(
        RuleKind::MaxOrder { shares: 1_000_000 },
        MAIN,
        None,
        None,
        "max_1000000",
        "SSE and SZSE Trading Rules: one order of stocks at most 1,000,000 shares",
    ),
    row(
        RuleKind::MaxOrder { shares: 1_000_000 },
        &[ChiNext],
        None,
        on(2020, 8, 23),
        "chinext_max_1000000",
        "SZSE Trading Rules before the ChiNext reform: one order at most 1,000,000 shares",
    ),
    row(
        RuleKind::MaxOrder { shares: 300_000 },
        &[ChiNext],
        on(2020, 8, 24),
        None,
        "chinext_max_300000",
        "SZSE Special Provisions on ChiNext Trading, from 2020-08-24: one limit order at most 300,000 shares",
    ),
    row(
        RuleKind::MaxOrder { shares: 100_000 },
        &[Star],
        None,
        None,
        "star_max_100000",
        "SSE Special Provisions on STAR Market Trading (2019-03-01): one limit order at most 100,000 shares",
    ),
    row(
        RuleKind::MaxOrder { shares: 1_000_000 },
        &[Bse],
        None,
        None,
        "bse_max_1000000",
        "BSE Trading Rules (trial), effective 2021-11-15: one order at most 1,000,000 shares",
    ),
    row(
        RuleKind::Tick { units: 100 },
        &Board::ALL,
        None,
        None,
        "tick_0.01",
        "SSE, SZSE and BSE Trading Rules: A shares move by 0.01 CNY",
    ),
    // Fees.
    row(
        RuleKind::StampDuty { per_million: 1_000 },
        &Board::ALL,
        None,
        on(2023, 8, 27),
        "stamp_0.1pct",
        "Ministry of Finance and State Taxation Administration: 0.1 %, levied on the seller only since 2008-09-19",
    ),
    row(
        RuleKind::StampDuty { per_million: 500 },
        &Board::ALL,
        on(2023, 8, 28),
        None,
        "stamp_0.05pct",
        "Ministry of Finance and State Taxation Administration, Announcement 2023 No. 39: stamp duty on securities trades halved from 2023-08-28",
    ),
    row(
        RuleKind::TransferFee { per_million: 20 },
        SH_SZ,
        on(2015, 8, 1),
        on(2022, 4, 28),
        "transfer_0.002pct",
        "ChinaClear notice on transfer fees of A shares, effective 2015-08-01: 0.002 % of the amount on both sides",
    ),
    row(
        RuleKind::TransferFee { per_million: 25 },
        &[Bse],
        on(2015, 8, 1),
        on(2022, 4, 28),
        "bse_transfer_0.0025pct",
        "ChinaClear fee schedule for the NEEQ and the BSE before the notice of 2022-04-28: 0.0025 % of the amount on both sides",
    ),
    row(
        RuleKind::TransferFee { per_million: 10 },
        &Board::ALL,
        on(2022, 4, 29),
        None,
        "transfer_0.001pct",
        "ChinaClear notice of 2022-04-28: 0.001 % of the amount on both sides on all three exchanges from 2022-04-29",
    ),
    row(
        RuleKind::Commission { per_million: 250, min_fen: 500 },
        &Board::ALL,
        None,
        None,
        "commission_0.025pct_min_5",
        "Setting of the environment, not a rule of an exchange: a common retail rate, far below the legal ceiling of 0.3 %",
    ),
];

/// All rules, for printing.
pub fn table() -> Vec<RuleRow> {
    RULES.to_vec()
}

/// The row of a kind that holds for a board on a day.
pub(super) fn find<T>(board: Board, day: Day, pick: impl Fn(RuleKind) -> Option<T>) -> Option<(T, &'static RuleRow)> {
    RULES.iter().find_map(|row| pick(row.kind).filter(|_| row.holds(board, day)).map(|value| (value, row)))
}
