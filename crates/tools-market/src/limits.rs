//! Today's price band of a security, as the quote and the screens show it.

use crate::adjust::ExDates;
use crate::number::{Seen, seen_price};
use traderharness_contract::Reason;
use traderharness_market::rules::{BandInput, band};
use traderharness_market::{Band, Price, Rounding, SecId, View};

/// The band of today and the reference it is computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Today {
    /// Last close before today, moved over an ex-date of today, CNY.
    pub(crate) reference: f64,
    /// The band.
    pub(crate) band: Band,
}

/// Today's band; no reference, no band.
pub(crate) fn today(view: &View<'_>, sec: SecId) -> Seen<Today> {
    let daily = view.daily(sec);
    let last = (0..daily.len()).rev().find(|i| seen_price(daily.close[*i]).is_ok()).ok_or(Reason::InsufficientHistory)?;
    let reference = ExDates::of(view, sec).reference(daily.close[last], daily.day[last], view.today())?;
    let board = view.board(sec).ok_or(Reason::SourceMissing)?;
    let price = Price::from_f64_tick(reference, Rounding::HalfEven).ok_or(Reason::BadValue)?;
    let input = BandInput {
        board,
        day: view.today(),
        st: view.is_st(sec).unwrap_or(false),
        sessions_since_listing: None,
        reference: price,
    };
    Ok(Today { reference, band: band(input) })
}
