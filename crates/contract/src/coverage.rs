//! Records every read result carries: as of when it is true, and which numbers are missing and why (spec/tools.md T1).

use crate::DayField;
use schemars::JsonSchema;
use serde::Serialize;

/// The last moment the result can know of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AsOf {
    /// Day of the newest data the answer may hold: today inside a window, the previous trading day before the open.
    pub day: DayField,
    /// Exchange time on that day, HH:MM.
    pub time: String,
    /// Decision point at which the call was made.
    pub decision_point: String,
}

/// Why a number is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The security did not trade on that day.
    Suspended,
    /// The security was not listed then.
    NotListed,
    /// The report is not published yet.
    NotPublished,
    /// The dataset has no value there.
    SourceMissing,
    /// There are fewer observations than the computation needs.
    InsufficientHistory,
    /// The dataset has a value that is not a usable number.
    BadValue,
}

/// One missing number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Missing {
    /// Field of this result that is null; rows are named as `bars[3].volume`.
    pub field: String,
    /// Why.
    pub reason: Reason,
}
