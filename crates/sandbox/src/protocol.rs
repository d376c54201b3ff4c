//! The frames that host, template and worker exchange. Each is one JSON text behind its length (u32, little endian). Whatever comes
//! from a worker is hostile input: bounded, strictly typed, and never trusted for who may do what.

use crate::host::HostFault;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest call from the worker, bytes: its method and its arguments. A longer one is no use and costs the host memory.
pub const MAX_CALL: usize = 256 << 10;
/// Containers in one another in a result, at most: what nests deeper could not be read back from a recording, where it lies in others.
pub const MAX_DEPTH: usize = 80;
/// Calls one job may make.
pub const MAX_CALLS: u32 = 5_000;
/// Tells this text of the protocol from every other. The worker module has it as `PROTOCOL`, so that one built from other sources is
/// found before it misunderstands a frame.
pub const PROTOCOL: u32 = fingerprint(include_bytes!("protocol.rs"));

/// FNV-1a.
const fn fingerprint(text: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut at = 0;
    while at < text.len() {
        hash = (hash ^ text[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// Containers in one another in a value: 0 for a number, 1 for an empty list.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Limits of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Time the code may run, milliseconds; time the host needs to answer calls is not counted.
    pub deadline_ms: u64,
    /// Memory the code may use beyond the warmed interpreter, bytes.
    pub memory_bytes: u64,
    /// Output that is kept, bytes; the rest is cut with a notice.
    pub output_bytes: u64,
    /// Longest JSON text of `result`, bytes.
    pub result_bytes: u64,
    /// Largest file, bytes.
    pub file_bytes: u64,
    /// All files of the workspace together, bytes.
    pub workspace_bytes: u64,
    /// Files in the workspace.
    pub workspace_files: u32,
    /// Open descriptors.
    pub open_files: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline_ms: 60_000,
            memory_bytes: 1 << 30,
            output_bytes: 64 << 10,
            result_bytes: 1 << 20,
            file_bytes: 16 << 20,
            workspace_bytes: 32 << 20,
            workspace_files: 256,
            open_files: 64,
        }
    }
}

/// What the code sees in place of the host's clock and random source, so that the same code gives the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// Seconds since 1970-01-01 00:00 UTC of the moment the code believes it is: the decision point, on 2000-01-01 under masked dates.
    /// The code's zone is the exchange's (UTC+8), so 2000-01-01 09:30 there is 946690200.
    pub epoch_seconds: i64,
    /// Seed of every random source.
    pub seed: u64,
}

/// Host to worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToWorker {
    /// Run this; the first frame.
    Run {
        /// Python source.
        code: String,
        /// Limits.
        limits: Limits,
        /// Folder the code may write to.
        workspace: String,
        /// Clock and seed.
        frozen: Frozen,
        /// Refuse to run unless every layer of confinement is on.
        strict: bool,
    },
    /// Answer to a call. A segment's descriptor comes with it.
    Answer {
        /// Number of the call.
        id: u32,
        /// The value.
        #[serde(default)]
        value: Value,
        /// Columns, when the method returns a table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        layout: Option<Layout>,
        /// Why there is no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<HostFault>,
    },
}

/// Worker to host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromWorker {
    /// Confinement is in force; the code starts after it.
    Confined {
        /// Layers that hold.
        layers: Layers,
    },
    /// The code is compiled and starts now. From here on a worker can say what it likes, but not any more that nothing ran.
    Running,
    /// The code printed something. Never empty; all of them together never pass the limit.
    Output {
        /// Text.
        text: String,
    },
    /// Output was cut; sent when the limit is reached, at each doubling, and before the end.
    Dropped {
        /// Bytes dropped so far.
        bytes: u64,
    },
    /// The code calls the host.
    Call {
        /// Number, from 1.
        id: u32,
        /// Method, e.g. `market.get_kline`.
        method: String,
        /// Arguments by name.
        args: Map<String, Value>,
    },
    /// The code ended; the last frame.
    Ended {
        /// How.
        ended: WorkerEnded,
    },
}

/// Host to template: one datagram each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToTemplate {
    /// Fork a worker; its end of the job's socket comes with it.
    Fork {
        /// Number of the job.
        job: u64,
    },
    /// Kill the worker of this job and its process group, if it still runs.
    Kill {
        /// Number of the job.
        job: u64,
    },
}

/// Template to host: one datagram each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromTemplate {
    /// Everything is loaded and warm; the first message.
    Ready {
        /// What was found.
        found: Found,
    },
    /// It cannot work; the only message.
    Failed {
        /// Why, for a person.
        what: String,
    },
    /// A worker was forked.
    Forked {
        /// Number of the job.
        job: u64,
        /// Its process id, which is its process group too.
        pid: i32,
    },
    /// No worker could be forked.
    NotForked {
        /// Number of the job.
        job: u64,
        /// Why.
        what: String,
    },
    /// A worker ended and was reaped.
    Exited {
        /// Number of the job.
        job: u64,
        /// How.
        exit: Exit,
    },
}

/// What a template found around itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Version of Python.
    pub python: String,
    /// Version of numpy.
    pub numpy: String,
    /// Version of pandas.
    pub pandas: String,
    /// Version of the time zone tables package; empty when there is none.
    pub tzdata: String,
    /// Landlock ABI of the kernel; 0 for none.
    pub landlock: u32,
    /// The kernel takes seccomp filters.
    pub seccomp: bool,
    /// Memory files can be sealed.
    pub memfd_sealing: bool,
    /// The interpreter's clock can be frozen.
    pub frozen_clock: bool,
    /// The interpreter lets the deadline trace and the audit hook in.
    pub deadline_trace: bool,
    /// Folders of the interpreter's modules, which workers may read.
    pub folders: Vec<String>,
}

/// How a process ended, as its parent saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Processor time, microseconds.
    pub cpu_micros: u64,
    /// Highest resident memory, bytes.
    pub memory: u64,
}

/// Layers of confinement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Landlock ABI in force; 0 for none.
    pub landlock: u32,
    /// A seccomp filter is on.
    pub seccomp: bool,
    /// Resource limits are set.
    pub rlimits: bool,
    /// No new privileges.
    pub no_new_privs: bool,
}

/// How the worker saw the code end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum WorkerEnded {
    /// It ran to its end.
    Finished {
        /// Value of `result` as JSON; null for None or not set.
        result: Value,
    },
    /// The source does not compile.
    Syntax {
        /// Python's message.
        message: String,
        /// Line, from 1.
        line: Option<u32>,
        /// Column, from 1.
        column: Option<u32>,
    },
    /// It imports what is never allowed; nothing ran.
    Disallowed {
        /// What.
        what: String,
        /// Line, from 1.
        line: Option<u32>,
    },
    /// It raised an exception.
    Raised {
        /// Type name.
        exception: String,
        /// Message.
        message: String,
        /// Traceback of the agent's frames.
        traceback: String,
    },
    /// The deadline trace ended it.
    TimedOut {
        /// Traceback of the agent's frames.
        traceback: String,
    },
    /// Memory ran out.
    Memory {
        /// Traceback of the agent's frames.
        traceback: String,
    },
    /// `result` has no JSON form.
    Unserialisable {
        /// Where in `result`, e.g. `result["a"][3]`.
        path: String,
        /// Python type.
        type_name: String,
        /// How to convert it.
        hint: String,
    },
    /// A layer is missing and the job is strict.
    Unconfined {
        /// What is missing.
        missing: String,
    },
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// float64, NaN for a missing value.
    F64,
    /// int64.
    I64,
    /// int32.
    I32,
    /// bool, one byte.
    Bool,
    /// Index into `Layout::strings`, int32; -1 for none.
    Text,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: ColumnType,
    /// First byte; a multiple of 64.
    pub offset: u64,
}

/// What is where in a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Rows of every column.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Columns, in the order of the table.
    pub columns: Vec<Column>,
    /// Values of text columns: a JSON array of strings at this offset, with this length in bytes.
    pub strings: (u64, u64),
}
