//! What every read tool does first: find the security an argument names, and say as of when the answer is true.

use traderharness_contract::{AsOf, ErrorCode, StockCode, ToolFailure};
use traderharness_market::{Code, Minute, SecId, View};

/// The security of a code argument. A security whose first bar lies after the clock is not known yet, exactly as a code that does
/// not exist: the answer must not tell that it will be listed.
///
/// # Errors
/// [`ErrorCode::UnknownSecurity`]. The message never repeats the code: under masking it may be a real one.
pub(crate) fn find(view: &View<'_>, code: &StockCode) -> Result<SecId, ToolFailure> {
    Code::parse(code.as_str()).and_then(|code| view.find(code)).filter(|sec| view.is_listed(*sec)).ok_or_else(|| {
        ToolFailure::new(
            ErrorCode::UnknownSecurity,
            "This code names no security that is listed in this run now.",
            "Use a complete code exactly as another tool of this run returned it, for example from get_portfolio, \
             screen_stocks or get_sector_summary.",
        )
    })
}

/// The code of a security as an output field.
pub(crate) fn code(view: &View<'_>, sec: SecId) -> StockCode {
    view.code(sec).into()
}

/// As of when a read made at this clock is true.
pub(crate) fn as_of(view: &View<'_>) -> AsOf {
    let clock = view.clock();
    let (day, minute) = match clock.point.visible_until() {
        Some(minute) => (clock.day, minute),
        // On the first day of a dataset nothing is visible before the open; the evening before is still the right moment.
        None => (view.previous_day().unwrap_or(clock.day.plus(-1)), Minute::at(15, 0)),
    };
    AsOf { day: day.into(), time: minute.to_string(), decision_point: clock.point.as_str().to_owned() }
}
