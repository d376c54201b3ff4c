//! Company figures: reports, revenue segments, valuation. One tool is one file.
//!
//! Every row comes from a view, which shows a report from its publication on (engine E2.4) and a valuation from the day after it
//! (engine E2.5). Nothing here may name a newer one, not even by counting it.

mod business_segments;
mod reports;
mod valuation;

pub(crate) use business_segments::GetBusinessSegments;
pub(crate) use reports::GetFundamentals;
pub(crate) use valuation::GetValuation;

use crate::number::{Gaps, Seen, rounded};
use traderharness_contract::{ErrorCode, Reason, ToolFailure};
use traderharness_market::money::round_f64;

/// The dataset has no such table: no security of this run can be answered.
pub(crate) fn no_table(what: &str) -> ToolFailure {
    ToolFailure::new(
        ErrorCode::DataUnavailable,
        format!("The dataset of this run holds no {what}."),
        "Go on without this tool: it cannot answer for any security in this run.",
    )
}

/// The table is there and holds nothing visible of this security.
pub(crate) fn nothing_visible(what: &str) -> ToolFailure {
    ToolFailure::new(
        ErrorCode::SecurityDataUnavailable,
        format!("No {what} of this security is visible at this decision point."),
        "Go on without it, or choose another security. A later decision point may show one, if it is published by then.",
    )
}

/// A dataset number; `None` is missing, and what is not finite is broken.
pub(crate) fn known(value: Option<f64>) -> Seen<f64> {
    let value = value.ok_or(Reason::SourceMissing)?;
    if value.is_finite() { Ok(value) } else { Err(Reason::BadValue) }
}

/// The number as shown, or null and a note under `field`, whose name is only built when it is needed.
pub(crate) fn figure(gaps: &mut Gaps, field: impl FnOnce() -> String, value: Seen<f64>, places: u32) -> Option<f64> {
    match value.and_then(|v| rounded(Ok(v), places).ok_or(Reason::BadValue)) {
        Ok(shown) => Some(shown),
        Err(reason) => {
            gaps.note(&field(), reason);
            None
        }
    }
}

/// A fraction of the dataset as percent. The fraction is rounded half-even on its own decimals first: 0.12345 is a tie of
/// 12.345 %, which multiplying a float by 100 may lose.
pub(crate) fn percent(fraction: Option<f64>) -> Seen<f64> {
    let fraction = known(fraction)?;
    round_f64(fraction, 4).map(|v| v * 100.0).filter(|v| v.is_finite()).ok_or(Reason::BadValue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::PERCENT;

    #[test]
    fn fractions_become_percent_half_even_on_their_decimals() {
        // spec/tools.md T1, b28
        for (fraction, shown) in
            [(0.001_516, 0.15), (0.123_45, 12.34), (0.123_55, 12.36), (-0.350_05, -35.0), (0.0, 0.0), (2.5, 250.0)]
        {
            assert_eq!(rounded(percent(Some(fraction)), PERCENT), Some(shown), "{fraction}");
        }
    }

    #[test]
    fn what_is_no_number_has_a_reason() {
        // complaint NU-1
        assert_eq!(percent(None), Err(Reason::SourceMissing));
        for broken in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308] {
            assert_eq!(percent(Some(broken)), Err(Reason::BadValue), "{broken}");
        }
    }
}
