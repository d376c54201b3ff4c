//! The trajectory: everything that happened in a run, one JSON line per event, in order. Same dataset, same card, same
//! actions: same bytes. So it must never hold a wall-clock value; times that were measured go into a [`TimingLog`] beside it.

use crate::Fingerprint;
use crate::cassette::{Cut, Meta, version};
use crate::error::RecordingError;
use crate::jsonl::{self, Appender};
use crate::request::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use traderharness_contract::Envelope;

/// Schema of the records below; stands in the `run_start` record.
pub const TRAJECTORY_SCHEMA_VERSION: u32 = 1;

/// One event of a run. `Value` fields hold what the owning crate renders; they are kept as they come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// The first record.
    RunStart(RunStart),
    /// A trading day begins.
    DayStart {
        /// Day of the run, from 1.
        day_index: u32,
        /// The day as the run's mask shows it: `D+0`, or YYYY-MM-DD.
        day: String,
        /// Account before the day.
        account: Value,
    },
    /// The clock reached a decision point.
    DecisionPoint {
        /// Name of the point, e.g. `open_1`.
        point: String,
        /// Exchange time, HH:MM.
        time: String,
        /// Total assets at the prices of this moment, CNY, before orders that waited for it; recordings of earlier programs have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        equity: Option<f64>,
    },
    /// The environment told the model something: system prompt, memory, day brief, window message.
    Brief {
        /// Role the text was sent under.
        role: String,
        /// The text.
        text: String,
    },
    /// A model is asked.
    ModelRequest {
        /// Who asks.
        scope: String,
        /// Number of the call in the run, from 0.
        step: usize,
        /// Fingerprint of the request.
        request_sha256: Fingerprint,
        /// Messages in the request.
        messages: usize,
    },
    /// A model answered.
    ModelResponse {
        /// Who asked.
        scope: String,
        /// Number of the call in the run, from 0.
        step: usize,
        /// The answer.
        response: Response,
    },
    /// A model did not answer and the run went on without it, as it does without an advisor.
    ModelFailure {
        /// Who asked.
        scope: String,
        /// Number of the call in the run, from 0.
        step: usize,
        /// Why, as the recording has it: stable names, no words of the other side.
        error: String,
    },
    /// A tool is called, before it runs.
    ToolCall {
        /// Who calls, when it is not the agent that acts: the scope of an advisor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
        /// Id the model gave the call.
        call_id: String,
        /// Tool name as the model wrote it.
        tool: String,
        /// Arguments as the model wrote them: JSON text, perhaps broken.
        arguments: String,
    },
    /// Something outside this process answered for a call: the sandbox, a plug-in tool. Kept before the call's result, so that a replay
    /// or a resumed run can take it from here instead of asking again.
    External {
        /// Id the model gave the call.
        call_id: String,
        /// Tool name.
        tool: String,
        /// What came back, in the form of whoever asked.
        outcome: Value,
    },
    /// A tool answered.
    ToolResult {
        /// Who called, when it is not the agent that acts: the scope of an advisor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
        /// Id the model gave the call.
        call_id: String,
        /// Tool name.
        tool: String,
        /// Whether it succeeded.
        success: bool,
        /// Code of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        /// The whole result.
        result: Value,
        /// The text that the model read in its place, when the result was longer than the size budget lets a model read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<String>,
    },
    /// An order was accepted or refused, or a conditional order changed.
    Order {
        /// The event.
        event: Value,
    },
    /// An order was filled.
    Fill {
        /// The event.
        event: Value,
    },
    /// A decision point was completed.
    Completion {
        /// Name of the point.
        point: String,
        /// Arguments of the completing call, or how the point ended without one.
        detail: Value,
    },
    /// A trading day ended.
    DayEnd {
        /// The day as the run's mask shows it: `D+0`, or YYYY-MM-DD.
        day: String,
        /// Account after the day.
        account: Value,
    },
    /// The last record of a run that came to its end.
    RunEnd {
        /// `completed`, `aborted` ...
        status: String,
        /// Totals.
        totals: Value,
    },
    /// Something of the machine that a reader of the run must know, such as a sandbox with fewer walls than it should have. No
    /// replay compares it: another machine has another one.
    Notice {
        /// Stable code.
        code: String,
        /// What it is.
        message: String,
        /// Facts.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        detail: Value,
    },
    /// Something failed outside a tool: a model client, a protocol, a budget.
    Error {
        /// Stable code.
        code: String,
        /// What happened.
        message: String,
        /// Facts.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        detail: Value,
    },
}

impl Record {
    /// The result record of a call. `shown` is the text the model read when the whole envelope did not fit.
    pub fn tool_result(call_id: impl Into<String>, tool: impl Into<String>, envelope: &Envelope, shown: Option<String>) -> Self {
        Self::ToolResult {
            scope: None,
            call_id: call_id.into(),
            tool: tool.into(),
            success: envelope.is_success(),
            error_code: envelope.error_code().map(str::to_owned),
            result: envelope.0.clone(),
            shown,
        }
    }

    /// The call or result of a call, under the scope of who made it. Other records stay as they are.
    #[must_use]
    pub fn called_by(mut self, by: Option<String>) -> Self {
        if let Self::ToolCall { scope, .. } | Self::ToolResult { scope, .. } = &mut self {
            *scope = by;
        }
        self
    }
}

/// What a run is: everything its bytes depend on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// Set by the writer.
    pub schema_version: u32,
    /// Contract version, e.g. `v5`.
    pub contract_version: String,
    /// Model name.
    pub model: String,
    /// Dataset name and digest.
    pub dataset: crate::cassette::Dataset,
    /// True when the dataset was generated. Never left out.
    pub synthetic: bool,
    /// Card, dates, cash, masks and whatever else the run was set up with.
    #[serde(default)]
    pub run: Map<String, Value>,
}

impl RunStart {
    /// The run of a recording, as its trajectory begins with it.
    pub fn of(meta: &Meta) -> Self {
        Self {
            schema_version: TRAJECTORY_SCHEMA_VERSION,
            contract_version: meta.contract_version.clone(),
            model: meta.model.clone(),
            dataset: meta.dataset.clone().unwrap_or_default(),
            synthetic: meta.synthetic,
            run: meta.extra.clone(),
        }
    }
}

/// A record with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Number in the file, from 0, without gaps.
    pub seq: u64,
    /// The record.
    #[serde(flatten)]
    pub record: Record,
}

/// Writes a trajectory. After [`Trajectory::append`] returns, a kill of the process loses nothing of it.
#[derive(Debug)]
pub struct Trajectory {
    path: PathBuf,
    file: Appender,
    next: u64,
}

impl Trajectory {
    /// Starts a new file with its `run_start` record.
    ///
    /// # Errors
    /// [`RecordingError::Io`], also when the file is already there: records are never overwritten.
    pub fn create(path: impl AsRef<Path>, start: RunStart) -> Result<Self, RecordingError> {
        let path = path.as_ref().to_owned();
        let file = Appender::create(&path).map_err(RecordingError::io("create", &path))?;
        let mut trajectory = Self { path, file, next: 0 };
        trajectory.append(Record::RunStart(RunStart { schema_version: TRAJECTORY_SCHEMA_VERSION, ..start }))?;
        Ok(trajectory)
    }

    /// Goes on with an interrupted file: its whole records stay and come back, a cut line is removed.
    ///
    /// # Errors
    /// As [`read`].
    pub fn resume(path: impl AsRef<Path>) -> Result<(Self, Vec<Entry>), RecordingError> {
        let path = path.as_ref().to_owned();
        let bytes = jsonl::read(&path)?;
        let Recovered { entries, .. } = parse(&path, &bytes)?;
        let file = Appender::reopen(&path, &jsonl::whole(&bytes)).map_err(RecordingError::io("write", &path))?;
        let next = entries.len() as u64;
        Ok((Self { path, file, next }, entries))
    }

    /// Also waits for the disk after every record: slower, safe against a loss of power.
    #[must_use]
    pub fn synced(mut self) -> Self {
        self.file.sync = true;
        self
    }

    /// Appends one record and gives its number.
    ///
    /// # Errors
    /// [`RecordingError::Io`]; the event must then not be acknowledged.
    pub fn append(&mut self, record: Record) -> Result<u64, RecordingError> {
        let seq = self.next;
        self.file.append(&Entry { seq, record }).map_err(RecordingError::io("write", &self.path))?;
        self.next += 1;
        Ok(seq)
    }
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// All whole records.
    pub entries: Vec<Entry>,
    /// The line that was being written when the run was killed.
    pub cut: Option<Cut>,
}

/// Reads a trajectory up to its last whole record.
///
/// # Errors
/// [`RecordingError::Broken`] for a line before the last one that cannot be understood or a number out of order,
/// [`RecordingError::Newer`], [`RecordingError::Io`]. An empty file is an interrupted one: it has no records and no error.
pub fn read(path: impl AsRef<Path>) -> Result<Recovered, RecordingError> {
    let path = path.as_ref();
    parse(path, &jsonl::read(path)?)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Recovered, RecordingError> {
    let mut recovered = Recovered { entries: Vec::new(), cut: None };
    for line in jsonl::lines(bytes) {
        let value = match line.object() {
            Ok(value) => value,
            Err(_) if !line.ended => {
                recovered.cut = Some(Cut { place: line.place, bytes: line.bytes.len() });
                break;
            }
            Err(what) => return Err(RecordingError::broken(path, line.place, what)),
        };
        version(path, line.place, &value, "schema_version", TRAJECTORY_SCHEMA_VERSION)?;
        let entry: Entry =
            serde_json::from_value(value).map_err(|fault| RecordingError::broken(path, line.place, fault.to_string()))?;
        let due = recovered.entries.len() as u64;
        if entry.seq != due {
            let what = format!("record {} where record {due} is due: a line is missing, doubled or moved", entry.seq);
            return Err(RecordingError::broken(path, line.place, what));
        }
        recovered.entries.push(entry);
    }
    Ok(recovered)
}

/// Where a trajectory tells requests or answers that a recording does not hold; `None` when it is of that recording. One that ends early
/// is: what it tells was asked. Requests after the end of an unfinished recording say nothing either way.
pub fn of_another(entries: &[Entry], cassette: &crate::Cassette) -> Option<String> {
    let missing = |step: &usize| {
        (cassette.is_sealed()).then(|| format!("it tells of request {step}, and the recording has {}", cassette.calls().len()))
    };
    entries.iter().find_map(|entry| match &entry.record {
        Record::ModelRequest { scope, step, request_sha256, .. } => match cassette.calls().get(*step) {
            None => missing(step),
            Some(call) if call.scope != *scope => {
                Some(format!("request {step} is of {scope} there and of {} in the recording", call.scope))
            }
            Some(call) if call.request_sha256 != *request_sha256 => Some(format!("request {step} has another digest there")),
            Some(_) => None,
        },
        Record::ModelResponse { scope, step, response } => match cassette.calls().get(*step) {
            None => missing(step),
            Some(call) => {
                let recorded = call.output.as_ref().and_then(|output| cassette.response(output).ok());
                let same = call.scope == *scope && recorded.is_none_or(|recorded| recorded.message == response.message);
                (!same).then(|| format!("answer {step} is another one there"))
            }
        },
        _ => None,
    })
}

/// Measured times of a run, in a file beside its trajectory. The caller measures; this only writes. Nothing reads it back
/// into a run.
#[derive(Debug)]
pub struct TimingLog {
    path: PathBuf,
    file: Appender,
}

#[derive(Serialize)]
struct Timing<'a> {
    seq: u64,
    what: &'a str,
    microseconds: u64,
}

impl TimingLog {
    /// Opens the file for appending, making it when it is not there.
    ///
    /// # Errors
    /// [`RecordingError::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        let path = path.as_ref().to_owned();
        let file = Appender::open(&path).map_err(RecordingError::io("create", &path))?;
        Ok(Self { path, file })
    }

    /// Writes how long the event with the trajectory number `seq` took.
    ///
    /// # Errors
    /// [`RecordingError::Io`].
    pub fn append(&mut self, seq: u64, what: &str, took: std::time::Duration) -> Result<(), RecordingError> {
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.file.append(&Timing { seq, what, microseconds }).map(drop).map_err(RecordingError::io("write", &self.path))
    }
}
