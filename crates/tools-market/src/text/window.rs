//! From when to when a call looks at texts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::AsOf;
use traderharness_market::{Minute, Moment, View};

/// A start of the window other than a number of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Since {
    /// What appeared since the previous decision point: before the open since the previous trading day 15:00, however many
    /// calendar days ago that is.
    LastDecisionPoint,
}

/// Times `from` included, `until` excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Moment,
    pub(crate) until: Moment,
}

impl Window {
    /// The last `days` calendar days and today up to now, or what is new since the previous decision point.
    pub(super) fn of(view: &View<'_>, days: u8, since: Option<Since>) -> Self {
        let by_days = view.today().plus(-i32::from(days)).at(Minute(0));
        let from = match since {
            None => by_days,
            // The first day of a dataset has no previous point; the days given or their default stand in, and `from` shows it.
            Some(Since::LastDecisionPoint) => view.previous_now().unwrap_or(by_days),
        };
        Self { from, until: view.clock().now() }
    }

    /// The part of rows sorted by time that lies in the window.
    pub(super) fn of_rows<'a, T>(&self, rows: &'a [T], time: impl Fn(&T) -> Moment) -> &'a [T] {
        let start = rows.partition_point(|row| time(row) < self.from);
        let end = rows.partition_point(|row| time(row) < self.until);
        &rows[start.min(end)..end]
    }
}

/// As of when a list of texts is true: texts are visible up to the clock, before the open too (engine E2.3).
pub(crate) fn as_of(view: &View<'_>) -> AsOf {
    let now = view.clock().now();
    AsOf { day: now.day().into(), time: now.minute().to_string(), decision_point: view.clock().point.as_str().to_owned() }
}
