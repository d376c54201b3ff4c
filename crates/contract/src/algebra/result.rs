//! [`ToolResult`]: value, evidence, coverage, warnings and cursor of one call.

use super::{AcceptedJob, ErrorRecord, InvocationId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the envelope; there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum SchemaVersion {
    /// 1.0.
    #[default]
    #[serde(rename = "1.0")]
    V1,
}

/// How much of what was asked for is covered. Says nothing of whether a strategy can use it (spec/seeds.md C4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ResultStatus {
    /// All of it, also where nothing was found.
    Complete,
    /// Something useful with named holes.
    Partial,
}

/// Whether the evidence holds the earlier revisions of what it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RevisionHistory {
    /// Every revision that was published before the clock.
    Complete,
    /// Only some: an earlier figure may have been replaced.
    Incomplete,
    /// The source has no revisions.
    #[default]
    NotApplicable,
}

/// A source, or one record of it, that the data was made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct EvidenceRef {
    /// Id of the source or record. Never leads back to a hidden code or date.
    pub id: String,
    /// Which state of it was read.
    pub revision: String,
    /// Source it belongs to; one of coverage.source_refs.
    pub source_ref: String,
}

/// What of the request is covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Coverage {
    /// First day or moment asked for, as days are shown in this run; null when the request named no range.
    pub requested_start: Option<String>,
    /// Last day or moment asked for; null when the request named no range.
    pub requested_end: Option<String>,
    /// The last moment the data can know of, as moments are shown in this run. Never empty.
    #[schemars(length(min = 1))]
    pub as_of: String,
    /// Sources the answer was made from.
    pub source_refs: Vec<String>,
    /// What is missing and why, `field: reason` each; empty exactly when the status is complete.
    pub missing_reasons: Vec<String>,
    /// Whether earlier revisions of the evidence are there.
    pub revision_history: RevisionHistory,
}

/// The envelope of a call that answered (spec/seeds.md C4.1). `T` is the tool's data; doors that pass it on use JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolResult<T = Value> {
    /// Version of this envelope.
    pub schema_version: SchemaVersion,
    /// Id of the invocation.
    pub invocation_id: InvocationId,
    /// Tool, by the name the caller used.
    pub tool: String,
    /// How much of the request is covered.
    pub status: ResultStatus,
    /// The value.
    pub data: T,
    /// Where it came from.
    pub evidence: Vec<EvidenceRef>,
    /// What of the request is covered.
    pub coverage: Coverage,
    /// What limits the value, one sentence each.
    pub warnings: Vec<String>,
    /// Cursor of what is left to fetch; null when nothing is.
    pub next_cursor: Option<String>,
}

/// What a door answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// The call answered.
    Result(ToolResult),
    /// The call goes on.
    Accepted(AcceptedJob),
    /// The call failed.
    Error(ErrorRecord),
}

impl Answer {
    /// The result, of a call that answered.
    pub const fn result(&self) -> Option<&ToolResult> {
        match self {
            Self::Result(result) => Some(result),
            _ => None,
        }
    }

    /// The error record, of a call that failed.
    pub const fn error(&self) -> Option<&ErrorRecord> {
        match self {
            Self::Error(record) => Some(record),
            _ => None,
        }
    }

    /// The answer as JSON.
    pub fn to_value(&self) -> Value {
        // Every part has a JSON form; the empty object stands for what cannot happen.
        serde_json::to_value(self).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
    }
}
