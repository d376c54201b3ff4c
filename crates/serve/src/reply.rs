//! What a caller sends and gets, as plain values. No rule lives here.

use crate::manifest::Capability;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

use traderharness_harness::CancelToken;

/// Asks for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRequest {
    /// Profile of the configuration; the caller's own when absent.
    pub profile: Option<String>,
    /// Agent revision that the session's calls are made by when a call names none; the caller's default when absent.
    pub agent_revision_id: Option<String>,
}

/// Asks for a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// Which of the caller's agent revisions calls; the session's when absent.
    pub agent_revision_id: Option<String>,
    /// Which session; the caller's only open one when absent.
    pub session_id: Option<String>,
    /// Dotted capability name (`market.get_kline`) or plain tool name (`get_kline`).
    pub tool: String,
    /// Arguments.
    pub input: Value,
    /// Run it as a job, whatever it is.
    pub job: bool,
}

/// A session, as its caller sees it. How many days it has is not said: an agent that knows the last one plays for it (spec/versions.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// `ses_` and random letters.
    pub session_id: String,
    /// Profile it was made from.
    pub profile: String,
    /// Agent revision of calls that name none.
    pub agent_revision_id: Option<String>,
    /// `open`, `finished` (the window ended), `closed` (by the caller) or `stopped` (at a defect).
    pub state: String,
    /// True unless the state is `open`.
    pub finished: bool,
    /// Phase of the decision point: `pre_market`, `open_window` or `close_window`.
    pub phase: String,
    /// Decision point: `pre_market`, `open_1`, `open_2`, `close_1`, `close_2`.
    pub point: String,
    /// Exchange time of the decision point, HH:MM.
    pub time: String,
    /// Today as the session's mask shows it: `D+0` or YYYY-MM-DD.
    pub day: String,
    /// Day of the session, from 1.
    pub day_index: u32,
    /// Plain names of the tools that can be called now.
    pub offered_tools: Vec<String>,
    /// Cash, total assets and positions at the last visible prices; masked.
    pub account: Value,
    /// Whether the data is synthetic.
    pub synthetic: bool,
}

/// How a reply came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKind {
    /// The body is the result.
    Complete,
    /// The body is an accepted job; HTTP 202.
    Accepted,
}

/// A completion that this call made. The clock has been moved already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// Decision point that was completed.
    pub point: String,
    /// True when it ended the day.
    pub day: bool,
    /// True when the session has no further day.
    pub finished: bool,
}

/// What a caller gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Result or accepted job.
    pub kind: ReplyKind,
    /// `ToolResult` envelope, `AcceptedJob`, or the state of a session or job.
    pub body: Value,
    /// The answer that an earlier equal request under this key got; nothing was done again.
    pub replayed: bool,
    /// Phase or day that this call completed.
    pub completed: Option<Completed>,
    /// What a model reads of the body: valid JSON within the size budget.
    pub text: String,
}

/// How far a long call has come.
pub type Progress = Arc<dyn Fn(u64, &str) + Send + Sync>;

/// Lets a caller follow and stop a call.
#[derive(Clone, Default)]
pub struct Watch {
    /// Asks the call to end. What was done stays done.
    pub cancel: CancelToken,
    /// Hears steps of a long call: a number that grows, and words.
    pub progress: Option<Progress>,
    /// How long a call that runs as a job is waited for before it is answered as accepted; as the configuration says when absent.
    pub patience: Option<Duration>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// A text of a decision point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BriefText {
    /// `system` or `user`.
    pub role: String,
    /// The text.
    pub text: String,
}

/// A tool of a session.
#[derive(Debug, Clone)]
pub struct OfferedTool<'h> {
    /// Its manifest.
    pub capability: &'h Capability,
    /// Whether it can be called now.
    pub on_offer: bool,
    /// Description under the session's card.
    pub description: String,
    /// Schema of its arguments under the session's card.
    pub input_schema: Value,
    /// Schema of the whole result envelope.
    pub envelope_schema: Value,
}

/// Counts since the process started, and what is there now. Holds no name of a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    /// Calls that ran, by effect class.
    pub calls: std::collections::BTreeMap<String, u64>,
    /// Refusals, by class of C6.
    pub refusals: std::collections::BTreeMap<String, u64>,
    /// Replies that were given again under a key.
    pub replayed: u64,
    /// Units of budget that were settled.
    pub units: u64,
    /// Open sessions.
    pub sessions: u64,
    /// Sessions that stand in memory.
    pub sessions_loaded: u64,
    /// Jobs that run.
    pub jobs_running: u64,
    /// Jobs that wait.
    pub jobs_waiting: u64,
    /// Rows of the audit log.
    pub audit_rows: u64,
    /// Bytes of the database that hold something.
    pub keep_bytes: u64,
}
