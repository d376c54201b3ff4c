//! How this run's prices are made comparable across ex-dates, and why a change is not known, in the words of a result. The computation
//! itself is the market's: `traderharness_market::view::ExDates` (engine E2.8).

use crate::number::Seen;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use traderharness_contract::Reason;
use traderharness_market::view::{Adjust, ExDates, NoChange};
use traderharness_market::{Bars, PriceBasis, View};

/// How price changes across ex-dates are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeBasis {
    /// Prices are as traded; a change over an ex-date is measured from the exchange's adjusted reference price of that date.
    ExchangeReference,
    /// The dataset's prices are forward-adjusted already; nothing is adjusted again.
    DatasetForwardAdjusted,
    /// The dataset has no table of ex-events; changes over an ex-date contain the mechanical price drop.
    NoExEventTable,
}

/// How this run's changes are computed.
pub(crate) fn change_basis(view: &View<'_>) -> ChangeBasis {
    match view.price_basis() {
        PriceBasis::ForwardAdjusted => ChangeBasis::DatasetForwardAdjusted,
        PriceBasis::Raw if view.has_ex_events() => ChangeBasis::ExchangeReference,
        PriceBasis::Raw => ChangeBasis::NoExEventTable,
    }
}

/// Why the market has no change, as a reason of a result.
pub(crate) fn reason(no: NoChange) -> Reason {
    match no {
        NoChange::Suspended => Reason::Suspended,
        NoChange::InsufficientHistory => Reason::InsufficientHistory,
        NoChange::BadValue => Reason::BadValue,
        NoChange::SourceMissing => Reason::SourceMissing,
    }
}

/// The volumes of these bars in shares of the newest one: an older volume grows with every bonus and transfer issue since.
pub(crate) fn volumes<'b>(bars: &Bars<'b>, ex: ExDates<'_>) -> Seen<Cow<'b, [f64]>> {
    let (Some(first), Some(last)) = (bars.day.first(), bars.day.last()) else { return Ok(Cow::Borrowed(bars.volume)) };
    if ex.between(*first, *last).next().is_none() {
        return Ok(Cow::Borrowed(bars.volume));
    }
    let factors = ex.factors(bars, *last, Adjust::Split);
    let scaled = bars.volume.iter().zip(factors).map(|(volume, factor)| Ok(volume * factor.map_err(reason)?.shares));
    scaled.collect::<Seen<_>>().map(Cow::Owned)
}
