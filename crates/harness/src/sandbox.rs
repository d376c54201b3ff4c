//! [`Sandbox`]: where the code of a session runs. It turns what the sandbox's pool says into an outcome that holds no measured value,
//! keeps the agent's files by version, and takes outcomes from the recording where there is one. It never runs code in this process.

use crate::host_calls::{SegmentCache, ToolCalls};
use crate::session::{Committed, Journal, SessionError};
use crate::{CancelToken, Toolbox};
use std::sync::Arc;
use traderharness_market::{Day, View};
use traderharness_replay::{Record, RecordingError};
use traderharness_sandbox::protocol::{Frozen, Layers, Limits, WorkerEnded};
use traderharness_sandbox::workspace::Bounds;
use traderharness_sandbox::{Ended, EndedBy, HostCalls, Job, Pool, PoolError, Ran, Usage, Workspace, WorkspaceError, watch};
use traderharness_tools_exec::{Account, CardLimits, CodeFile, CodeLimits, CodeOutcome, CodeRequest, CodeRunner};
use traderharness_tools_market::MarketState;

/// The tool whose outcomes are kept.
pub(crate) const TOOL: &str = "execute_code";

/// The exchange's zone, seconds before UTC.
const ZONE: i64 = 8 * 3_600;

/// Runs jobs: a pool, or what stands for one where there may be none.
pub trait RunsJobs: Send + Sync + std::fmt::Debug {
    /// Runs one job to its end and sees its process gone.
    ///
    /// # Errors
    /// [`PoolError`] when nothing was run, or when the job was cancelled.
    fn run(&self, job: &Job<'_>, calls: &mut dyn HostCalls) -> Result<Ran, PoolError>;
}

impl RunsJobs for Pool {
    fn run(&self, job: &Job<'_>, calls: &mut dyn HostCalls) -> Result<Ran, PoolError> {
        Self::run(self, job, calls)
    }
}

/// Where the code of one session runs.
#[derive(Debug)]
pub struct Sandbox {
    jobs: Arc<dyn RunsJobs>,
    workspace: Workspace,
    segments: Arc<SegmentCache>,
    limits: Limits,
    strict: bool,
    /// Code of the session so far, from the recording or not.
    calls: u64,
    /// Version of the workspace that the last successful call made.
    version: u64,
    /// What is missing around the code was recorded.
    told: bool,
}

impl Sandbox {
    /// A sandbox that runs code by `jobs` and keeps the agent's files in `workspace`. `strict` refuses code unless every layer of
    /// confinement holds.
    pub fn new(jobs: Arc<dyn RunsJobs>, workspace: Workspace, strict: bool) -> Self {
        let segments = Arc::new(SegmentCache::default());
        Self { jobs, workspace, segments, limits: Limits::default(), strict, calls: 0, version: 0, told: false }
    }

    /// Shares whole-market tables with the other sessions of the process.
    #[must_use]
    pub fn with_segments(mut self, segments: Arc<SegmentCache>) -> Self {
        self.segments = segments;
        self
    }

    /// Sets the memory that code may use, megabytes. Part of what the model reads, so it comes from the card.
    pub(crate) const fn set_memory(&mut self, megabytes: u32) {
        self.limits.memory_bytes = (megabytes as u64) << 20;
    }

    /// Limits of a call, except its time.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the workspace of a sandbox with these limits may hold.
    pub const fn bounds(limits: &Limits) -> Bounds {
        Bounds { bytes: limits.workspace_bytes, files: limits.workspace_files as u64 }
    }

    /// Version of the workspace that the last successful call made; 0 when there was none.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The agent's files.
    pub const fn workspace(&self) -> &Workspace {
        &self.workspace
    }
}

/// What a call of the sandbox left for the host, never for the model or a record.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// What it used.
    pub(crate) usage: Option<Usage>,
    /// Why the sandbox did not run, for a person.
    pub(crate) note: Option<String>,
    /// What stops the session.
    pub(crate) fault: Option<SessionError>,
}

/// The sandbox for one call.
pub(crate) struct Runner<'a> {
    pub(crate) sandbox: &'a mut Sandbox,
    pub(crate) journal: &'a mut dyn Journal,
    pub(crate) call_id: &'a str,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) state: &'a mut MarketState,
    pub(crate) card: &'a CardLimits,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) aside: Aside,
}

impl std::fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("sandbox", &self.sandbox).field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

impl CodeRunner for Runner<'_> {
    fn limits(&self) -> CodeLimits {
        let limits = &self.sandbox.limits;
        CodeLimits {
            memory_mb: u32::try_from(limits.memory_bytes >> 20).unwrap_or(u32::MAX),
            workspace_bytes: limits.workspace_bytes,
            workspace_files: limits.workspace_files,
        }
    }

    fn run(&mut self, view: &View<'_>, account: &Account, request: &CodeRequest) -> CodeOutcome {
        match self.outcome(view, account, request) {
            Ok(outcome) => outcome,
            Err(fault) => {
                self.aside.fault = Some(fault);
                unavailable()
            }
        }
    }
}

impl Runner<'_> {
    /// The outcome, recorded before anybody reads it.
    fn outcome(&mut self, view: &View<'_>, account: &Account, request: &CodeRequest) -> Result<CodeOutcome, SessionError> {
        // Code that was interrupted does not count: the next gets its number, and with it its seed.
        let number = self.sandbox.calls + 1;
        let outcome = match self.journal.kept_external(self.call_id, TOOL) {
            Some(kept) => serde_json::from_value(kept)
                .map_err(|fault| RecordingError::Diverged { what: format!("the kept outcome of {TOOL} is none: {fault}") })?,
            None => self.execute(number, view, account, request)?,
        };
        self.sandbox.calls = number;
        if matches!(outcome, CodeOutcome::Finished { .. }) {
            self.sandbox.version = number;
        }
        let kept = serde_json::to_value(&outcome).map_err(|fault| RecordingError::Diverged { what: fault.to_string() })?;
        self.journal.append(Record::External { call_id: self.call_id.to_owned(), tool: TOOL.to_owned(), outcome: kept })?;
        Ok(outcome)
    }

    fn execute(
        &mut self,
        number: u64,
        view: &View<'_>,
        account: &Account,
        request: &CodeRequest,
    ) -> Result<CodeOutcome, SessionError> {
        let sandbox = &mut *self.sandbox;
        let limits = Limits { deadline_ms: u64::from(request.timeout_seconds) * 1_000, ..sandbox.limits };
        let bounds = Sandbox::bounds(&limits);
        let stage = sandbox.workspace.stage(number, sandbox.version, &bounds)?;
        let frozen = frozen(view, number);
        let moment = frozen.epoch_seconds;
        let job = Job { code: &request.code, limits, workspace: stage.path(), frozen, strict: sandbox.strict };
        let mut calls =
            ToolCalls::new(self.toolbox, *view, self.state, account, self.card, &sandbox.segments).heeding(self.cancel);
        let ran = match sandbox.jobs.run(&job, &mut calls) {
            Ok(ran) => ran,
            // What nobody waited for is no part of the session, and what it wrote goes with its folder: a resumed run runs it again.
            Err(PoolError::Cancelled) => {
                return Err(SessionError::Interrupted {
                    call_id: self.call_id.to_owned(),
                    tool: TOOL.to_owned(),
                    effect_committed: Committed::No,
                });
            }
            Err(fault) => {
                self.aside.note = Some(fault.to_string());
                return Ok(unavailable());
            }
        };
        self.aside.usage = Some(ran.usage);
        let missing = missing(&ran.layers);
        let told = sandbox.told;
        let finished = matches!(ran.ended, Ended::Finished(_) | Ended::Worker(WorkerEnded::Finished { .. }));
        let outcome = if finished {
            match stage.commit(&bounds, moment) {
                Ok(changed) => {
                    let files = changed.into_iter().map(|file| CodeFile { name: file.name, bytes: file.bytes }).collect();
                    ended(ran, &limits, files, &mut self.aside)
                }
                Err(WorkspaceError::OverQuota { .. }) => over_quota(&limits),
                Err(fault) => return Err(fault.into()),
            }
        } else {
            drop(stage);
            ended(ran, &limits, Vec::new(), &mut self.aside)
        };
        // A worker that never said what holds said nothing about the machine either.
        if !told && !missing.is_empty() && finished {
            self.sandbox.told = true;
            self.journal.append(Record::Notice {
                code: "sandbox_layers_missing".to_owned(),
                message: format!("Code ran without every wall around it; this machine has no {}.", missing.join(", ")),
                detail: serde_json::json!({ "missing": missing }),
            })?;
        }
        Ok(outcome)
    }
}

/// Layers of confinement that did not hold.
pub fn missing(layers: &Layers) -> Vec<&'static str> {
    let all = [
        ("landlock", layers.landlock > 0),
        ("seccomp", layers.seccomp),
        ("rlimits", layers.rlimits),
        ("no_new_privs", layers.no_new_privs),
    ];
    all.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
}

/// The clock and the seed of a call: those of the decision point, so that the same code in the same place gives the same bytes. Under
/// masked dates the day is 2000-01-01, and the seed is made with the run's key, which it does not tell.
pub fn frozen(view: &View<'_>, number: u64) -> Frozen {
    let clock = view.clock();
    let day = if view.mask().config().dates { Day::from_ymd(2000, 1, 1).unwrap_or_default() } else { clock.day };
    let minute = clock.point.now_minute();
    let digest = view.mask().evidence_digest(&["sandbox", &clock.day.to_string(), clock.point.as_str(), &number.to_string()]);
    Frozen {
        epoch_seconds: i64::from(day.0) * 86_400 + i64::from(minute.0) * 60 - ZONE,
        seed: u64::from_str_radix(&digest, 16).unwrap_or(number),
    }
}

fn unavailable() -> CodeOutcome {
    CodeOutcome::Unavailable { message: "The sandbox does not run on this machine.".to_owned() }
}

/// Names the quota, not what was found: how much that was hangs on when the host looked.
fn over_quota(limits: &Limits) -> CodeOutcome {
    let message = format!("The quota is {} bytes in {} files and folders.", limits.workspace_bytes, limits.workspace_files);
    CodeOutcome::OutOf { what: "workspace".to_owned(), message, traceback: String::new() }
}

fn closed_folder() -> CodeOutcome {
    let message = format!("A folder that is nested more than {} levels deep, or that cannot be listed.", watch::DEPTH);
    CodeOutcome::OutOf { what: "workspace".to_owned(), message, traceback: String::new() }
}

/// Line of the innermost frame that a traceback names.
fn last_line(traceback: &str) -> Option<u32> {
    traceback.rmatch_indices(", line ").find_map(|(at, found)| {
        let digits = &traceback[at + found.len()..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    })
}

/// What a job came to, without anything that was measured.
fn ended(ran: Ran, limits: &Limits, files: Vec<CodeFile>, aside: &mut Aside) -> CodeOutcome {
    let Ran { ended, output: stdout, output_dropped: stdout_dropped, worker_exited, layers, .. } = ran;
    let memory = |traceback: String| {
        let message = format!("The limit is {} MB.", limits.memory_bytes >> 20);
        CodeOutcome::OutOf { what: "memory".to_owned(), message, traceback }
    };
    let timed_out = |by: EndedBy, traceback: String, stdout: String| {
        let ended_by = if by == EndedBy::Trace { "trace" } else { "kill" }.to_owned();
        CodeOutcome::TimedOut { ended_by, worker_exited, traceback, stdout }
    };
    match ended {
        Ended::Finished(result) | Ended::Worker(WorkerEnded::Finished { result }) => {
            CodeOutcome::Finished { stdout, stdout_dropped, result, files }
        }
        Ended::Worker(WorkerEnded::Syntax { message, line, column }) => CodeOutcome::Failed {
            message,
            instruction: String::new(),
            exception: "SyntaxError".to_owned(),
            traceback: String::new(),
            line,
            column: Some(column.unwrap_or(1)),
            stdout,
        },
        Ended::Worker(WorkerEnded::Disallowed { what, line }) => CodeOutcome::Disallowed { message: what, line },
        Ended::Worker(WorkerEnded::Raised { exception, message, traceback }) => CodeOutcome::Failed {
            message,
            instruction: String::new(),
            exception,
            line: last_line(&traceback),
            traceback,
            column: None,
            stdout,
        },
        Ended::Worker(WorkerEnded::Unserialisable { path, type_name, hint }) => CodeOutcome::Failed {
            message: format!("{path} is of type {type_name}, which has no JSON form"),
            instruction: hint,
            exception: "TypeError".to_owned(),
            traceback: String::new(),
            line: None,
            column: None,
            stdout,
        },
        Ended::TimedOut { by, traceback } => timed_out(by, traceback, stdout),
        Ended::Worker(WorkerEnded::TimedOut { traceback }) => timed_out(EndedBy::Trace, traceback, stdout),
        Ended::Memory { traceback } | Ended::Worker(WorkerEnded::Memory { traceback }) => memory(traceback),
        Ended::OverQuota { closed: true, .. } => closed_folder(),
        Ended::OverQuota { .. } => over_quota(limits),
        // It ended before it was confined, so before the code: that is none of the code's doing.
        Ended::Died { what } if layers == Layers::default() => {
            aside.note = Some(format!("the worker did not get ready: {what}"));
            unavailable()
        }
        Ended::Died { what } => CodeOutcome::Broke { message: what, stdout },
        Ended::Hostile { what } => {
            aside.note = Some(format!("the worker was killed for what it sent: {what}"));
            CodeOutcome::Broke { message: "The worker sent what no worker sends.".to_owned(), stdout }
        }
        Ended::Worker(WorkerEnded::Unconfined { missing }) => {
            aside.note = Some(format!("the sandbox is strict and this machine lacks: {missing}"));
            unavailable()
        }
    }
}
