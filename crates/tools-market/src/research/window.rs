//! Which sessions a research call is about: the last finished ones, or an explicit pair of days. The unfinished session of the clock and
//! everything after it are never in a window, and a day of an argument is read in the visible form of the run alone.

use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_market::{Day, View};

/// Sessions of the default window (spec/seeds.md C5).
pub(super) const DEFAULT_SESSIONS: usize = 252;

/// A day as it is shown in a run, for the schema.
pub(super) const SHOWN_DAY: &str = r"^(\d{4}-\d{2}-\d{2}|D[+-]\d{1,5})$";

/// A resolved window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a> {
    /// First day asked for: of the default window its first session. `None` before the second session of a dataset.
    pub(super) start: Option<Day>,
    /// Last day asked for.
    pub(super) end: Option<Day>,
    /// Finished sessions from start to end, oldest first.
    pub(super) sessions: &'a [Day],
    /// Sessions asked for; more than `sessions` where the dataset begins too late for the default window.
    pub(super) requested: usize,
    /// The window begins before the dataset does.
    pub(super) before_dataset: bool,
    /// The window includes the session of the clock, which is not finished.
    pub(super) unfinished: bool,
}

/// Resolves the window of a call; `start` and `end` come as a pair or not at all, which the schema says too.
///
/// # Errors
/// `invalid_tool_arguments` for half a pair, a text that is no visible day or a day after today; `invalid_filter_range` for a start after
/// its end. No message repeats what was sent.
pub(super) fn resolve<'a>(view: &View<'a>, start: Option<&str>, end: Option<&str>) -> Result<Window<'a>, ToolFailure> {
    let past = view.past_days();
    let (start, end) = match (start, end) {
        (None, None) => {
            let sessions = &past[past.len().saturating_sub(DEFAULT_SESSIONS)..];
            return Ok(Window {
                start: sessions.first().copied(),
                end: sessions.last().copied(),
                sessions,
                requested: DEFAULT_SESSIONS,
                before_dataset: sessions.len() < DEFAULT_SESSIONS,
                unfinished: false,
            });
        }
        (Some(start), Some(end)) => (day(view, "start", start)?, day(view, "end", end)?),
        _ => {
            return Err(ToolFailure::new(
                ErrorCode::InvalidToolArguments,
                "`start` and `end` come only as a pair.",
                "Send both days, or neither for the last 252 finished sessions.",
            ));
        }
    };
    if start > end {
        return Err(ToolFailure::new(
            ErrorCode::InvalidFilterRange,
            "`start` is after `end`.",
            "Send the earlier day as start and the later one as end.",
        ));
    }
    let first = past.partition_point(|d| *d < start);
    let after = past.partition_point(|d| *d <= end);
    let sessions = &past[first..after.max(first)];
    let unfinished = end == view.today();
    // The dataset knows no session before its first day, so nobody can say how many of them there were.
    let begins = past.first().copied().unwrap_or(view.today());
    Ok(Window {
        start: Some(start),
        end: Some(end),
        sessions,
        requested: sessions.len() + usize::from(unfinished),
        before_dataset: start < begins,
        unfinished,
    })
}

fn day(view: &View<'_>, name: &str, text: &str) -> Result<Day, ToolFailure> {
    let form = if view.mask().config().dates { "a label such as D-21, calendar days from today" } else { "YYYY-MM-DD" };
    let wrong = |message: String, instruction: String| ToolFailure::new(ErrorCode::InvalidToolArguments, message, instruction);
    let day = view
        .mask()
        .parse_day(text, view.today())
        .ok_or_else(|| wrong(format!("`{name}` is no day of this run."), format!("Days of this run are written as {form}.")))?;
    if day > view.today() {
        return Err(wrong(
            format!("`{name}` is after today."),
            "Ask for days up to the previous session; nothing later is known.".to_owned(),
        ));
    }
    Ok(day)
}
