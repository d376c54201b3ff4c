//! What is shown of a watched security's price: the mark every valuation uses, and the change of the newest session with a reason
//! where there is none.

use crate::valuation::{self, PriceMark};
use traderharness_contract::Reason;
use traderharness_market::{NoChange, SecId, View};

/// Last visible price, or why there is none.
pub(crate) fn mark(view: &View<'_>, sec: SecId) -> Result<PriceMark, Reason> {
    valuation::mark(view, sec, None).ok_or_else(|| {
        let silent = view.daily(sec).is_empty() && view.minutes_today(sec).is_empty();
        if silent { Reason::InsufficientHistory } else { Reason::BadValue }
    })
}

/// Change of the newest session in percent, as every tool has it.
pub(crate) fn change_pct(view: &View<'_>, sec: SecId) -> Result<f64, Reason> {
    view.session_change_pct(sec).map_err(|no| match no {
        NoChange::Suspended => Reason::Suspended,
        NoChange::InsufficientHistory => Reason::InsufficientHistory,
        NoChange::BadValue => Reason::BadValue,
        NoChange::SourceMissing => Reason::SourceMissing,
    })
}
