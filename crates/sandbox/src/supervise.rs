//! One job from fork to funeral: speaks with the worker, answers its calls, keeps the clock and the quota, and sees the process gone.
//! It believes nothing the worker says beyond what concerns the worker's own end.

use crate::channel::{Channel, Outgoing, Received, Sent};
use crate::neutral::Neutral;
use crate::pool::{Job, PoolError};
use crate::protocol::{Exit, FromWorker, Layers, MAX_CALL, MAX_CALLS, MAX_DEPTH, ToWorker, WorkerEnded, depth};
use crate::template::{Forked, Report, Template};
use crate::watch::Occupied;
use crate::{Ended, EndedBy, HostCalls, HostFault, HostFaultKind, Ran, Segment, Usage};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::Pid;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Time between the deadline, which the worker keeps itself, and the kill.
const GRACE: Duration = Duration::from_secs(1);
/// Time a worker has from its fork to its confinement.
const READY: Duration = Duration::from_secs(20);
/// Time between a worker's last word and its end, after which it is killed.
const LEAVING: Duration = Duration::from_millis(500);
/// Time a killed process has to be gone.
const DYING: Duration = Duration::from_secs(5);
/// Time between two looks at the workspace, and whether anybody still waits for the code.
const LOOK: Duration = Duration::from_millis(100);
/// Room of a frame for what is not the result or the output.
const ROOM: usize = 64 << 10;
/// Bytes of a character of output in a frame, at most: control characters are written as `\u0000`.
const ESCAPED: u64 = 6;
/// Memory that a table takes at least, bytes.
const PAGE: u64 = 4 << 10;
/// Longest traceback and message that is kept, bytes.
const LONGEST_TEXT: usize = 16 << 10;

/// What came of one attempt.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// The job was run.
    Ran(Box<Ran>),
    /// The template was gone before anything ran.
    TemplateGone,
}

/// Why the host stopped listening.
#[derive(Debug)]
enum Stop {
    /// The worker said how it ended.
    Said(WorkerEnded),
    /// Its end of the socket is closed.
    Closed,
    /// Time is up.
    Deadline,
    /// Nobody waits for it any more.
    Cancelled,
    /// It was not confined in time.
    NotReady,
    /// The workspace is too full.
    OverQuota(Occupied),
    /// It sent what no worker sends.
    Hostile(String),
}

/// Runs a job in a worker of this template.
pub(crate) fn supervise(template: &Template, job: &Job<'_>, calls: &mut dyn HostCalls) -> Result<Attempt, PoolError> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let not_forked = |what: String| PoolError::NotForked { what };
    let shown = job.workspace.display();
    let workspace = job.workspace.canonicalize().map_err(|error| not_forked(format!("workspace {shown}: {error}")))?;
    let workspace = workspace.to_str().ok_or_else(|| not_forked(format!("workspace {shown}: its path is not UTF-8")))?;
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, flags)
        .map_err(|error| not_forked(format!("no socket: {error}")))?;
    let Some(forked) = template.fork(theirs.as_fd()).map_err(not_forked)? else { return Ok(Attempt::TemplateGone) };
    drop(theirs);
    let longest = usize::try_from(job.limits.result_bytes.max(job.limits.output_bytes.saturating_mul(ESCAPED)));
    let longest = longest.unwrap_or(usize::MAX).max(MAX_CALL).saturating_add(ROOM);
    let mut talk = Talk::new(Channel::new(ours, longest), job);
    let stop = talk.until_the_end(workspace, calls);
    let end = see_it_gone(template, &forked, &stop);
    template.forget(forked.job);
    let neutral = Neutral::new(job.workspace, &template.found().folders);
    Ok(Attempt::Ran(Box::new(talk.ran(&stop, &end, &neutral)?)))
}

/// What the host saw of a process's end.
#[derive(Debug, Default)]
struct End {
    exit: Option<Exit>,
    killed: bool,
    gone: bool,
}

/// Sees the process gone; kills it unless it leaves by itself.
fn see_it_gone(template: &Template, forked: &Forked, stop: &Stop) -> End {
    let mut end = End::default();
    let leaves = matches!(stop, Stop::Said(_) | Stop::Closed);
    if leaves && wait_for_exit(forked, LEAVING, &mut end) {
        return end;
    }
    end.killed = true;
    template.kill(forked.job);
    if wait_for_exit(forked, LEAVING, &mut end) {
        return end;
    }
    // The template does not do it. Its child cannot have been reaped, so the number is still that process.
    let group = Pid::from_raw(forked.pid);
    let _ = killpg(group, Signal::SIGKILL);
    let _ = kill(group, Signal::SIGKILL);
    wait_for_exit(forked, DYING, &mut end);
    end
}

/// Waits for the report of the end. True when there is nothing more to wait for.
fn wait_for_exit(forked: &Forked, patience: Duration, end: &mut End) -> bool {
    let until = Instant::now() + patience;
    loop {
        match forked.reports.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Report::Exited(exit)) => {
                end.exit = Some(exit);
                end.gone = true;
                return true;
            }
            Ok(Report::Forked(_) | Report::NotForked(_)) => {}
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {
                // The template is gone and its children with it; nobody reports them, so ask the kernel.
                while Instant::now() < until {
                    if kill(Pid::from_raw(forked.pid), None) == Err(Errno::ESRCH) {
                        end.gone = true;
                        return true;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                return false;
            }
        }
    }
}

/// The conversation with one worker.
struct Talk<'a> {
    channel: Channel,
    job: &'a Job<'a>,
    started: Instant,
    ended: Option<Duration>,
    answering: Duration,
    looked: Instant,
    layers: Option<Layers>,
    running: bool,
    /// Tables that were handed over, each once, and the memory of all of them: the worker may hold on to any of them without having
    /// it in its own memory, so its limit does not count them.
    handed: BTreeMap<usize, Weak<Segment>>,
    handed_bytes: u64,
    output: String,
    dropped: u64,
    notices: u32,
    calls: u32,
}

impl<'a> Talk<'a> {
    fn new(channel: Channel, job: &'a Job<'a>) -> Self {
        let now = Instant::now();
        Self {
            channel,
            job,
            started: now,
            ended: None,
            answering: Duration::ZERO,
            looked: now,
            layers: None,
            running: false,
            handed: BTreeMap::new(),
            handed_bytes: 0,
            output: String::new(),
            dropped: 0,
            notices: 0,
            calls: 0,
        }
    }

    /// Time the code has used, the host's own left out.
    fn spent(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.answering)
    }

    /// Time until the kill.
    fn left(&self) -> Duration {
        let all = if self.layers.is_some() { Duration::from_millis(self.job.limits.deadline_ms) + GRACE } else { READY };
        all.saturating_sub(self.spent())
    }

    /// Speaks with the worker until there is no more to say.
    fn until_the_end(&mut self, workspace: &str, calls: &mut dyn HostCalls) -> Stop {
        let stop = self.listen(workspace, calls);
        self.ended = Some(self.spent());
        stop
    }

    fn listen(&mut self, workspace: &str, calls: &mut dyn HostCalls) -> Stop {
        let run = ToWorker::Run {
            code: self.job.code.to_owned(),
            limits: self.job.limits,
            workspace: workspace.to_owned(),
            frozen: self.job.frozen.clone(),
            strict: self.job.strict,
        };
        if let Some(stop) = self.send(&run, None, calls) {
            return stop;
        }
        loop {
            if let Some(stop) = self.over(calls) {
                return stop;
            }
            match self.channel.receive(self.left().min(LOOK)) {
                Received::Frame(bytes) => {
                    if let Some(stop) = self.hear(&bytes, calls) {
                        return stop;
                    }
                }
                Received::Nothing => {}
                Received::Closed => return Stop::Closed,
                Received::TooLong(length) => return Stop::Hostile(format!("a frame of {length} bytes")),
            }
            if let Some(stop) = self.look() {
                return stop;
            }
        }
    }

    /// The reason to stop that lies outside of the code, if there is one.
    fn over(&self, calls: &dyn HostCalls) -> Option<Stop> {
        if calls.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        self.left().is_zero().then(|| if self.layers.is_some() { Stop::Deadline } else { Stop::NotReady })
    }

    /// Looks at the workspace when it is time to.
    fn look(&mut self) -> Option<Stop> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        let occupied = Occupied::below(self.job.workspace, &self.job.limits);
        self.looked = Instant::now();
        occupied.exceeds(&self.job.limits).then_some(Stop::OverQuota(occupied))
    }

    /// Sends a frame. A worker that does not read it is on its own time, and its workspace is watched meanwhile.
    fn send(&mut self, frame: &ToWorker, segment: Option<&Segment>, calls: &dyn HostCalls) -> Option<Stop> {
        let mut outgoing = Outgoing::new(frame, segment.map(|segment| segment.fd.as_fd()))?;
        loop {
            match self.channel.send(&mut outgoing, self.left().min(LOOK)) {
                Sent::Whole => return None,
                Sent::Closed => return Some(Stop::Closed),
                Sent::Part => {}
            }
            if let Some(stop) = self.over(calls).or_else(|| self.look()) {
                return Some(stop);
            }
        }
    }

    /// Takes one frame. Gives the reason to stop, if it is one.
    fn hear(&mut self, bytes: &[u8], calls: &mut dyn HostCalls) -> Option<Stop> {
        let frame = match serde_json::from_slice(bytes) {
            Ok(frame) => frame,
            Err(error) => return Some(Stop::Hostile(format!("a frame that is none: {error}"))),
        };
        match frame {
            FromWorker::Confined { layers } if self.layers.is_none() => {
                self.layers = Some(layers);
                self.started = Instant::now();
                None
            }
            FromWorker::Ended { ended: WorkerEnded::Unconfined { missing } } if self.layers.is_none() => {
                Some(Stop::Said(WorkerEnded::Unconfined { missing }))
            }
            FromWorker::Confined { .. } | FromWorker::Ended { ended: WorkerEnded::Unconfined { .. } } => {
                Some(Stop::Hostile("word of its confinement at the wrong time".to_owned()))
            }
            _ if self.layers.is_none() => Some(Stop::Hostile("a frame before its confinement".to_owned())),
            FromWorker::Running if !self.running => {
                self.running = true;
                None
            }
            FromWorker::Ended { ended: WorkerEnded::Syntax { .. } | WorkerEnded::Disallowed { .. } } | FromWorker::Running
                if self.running =>
            {
                Some(Stop::Hostile("word of its start while it ran".to_owned()))
            }
            FromWorker::Running => None,
            FromWorker::Output { text } => {
                self.output.push_str(&text);
                if text.is_empty() || self.output.len() as u64 > self.job.limits.output_bytes {
                    return Some(Stop::Hostile("output past its limit".to_owned()));
                }
                None
            }
            FromWorker::Dropped { bytes } => {
                self.notices += 1;
                if bytes <= self.dropped || self.notices > 80 {
                    return Some(Stop::Hostile("too many notices of dropped output".to_owned()));
                }
                self.dropped = bytes;
                None
            }
            FromWorker::Call { id, method, args } => {
                if bytes.len() > MAX_CALL {
                    return Some(Stop::Hostile(format!("a call of {} bytes", bytes.len())));
                }
                if id != self.calls + 1 || id > MAX_CALLS {
                    return Some(Stop::Hostile(format!("call number {id} after {}", self.calls)));
                }
                self.calls = id;
                self.answer(id, &method, &args, calls)
            }
            FromWorker::Ended { ended } => Some(self.last_word(ended, bytes.len())),
        }
    }

    /// Answers a call. Only the time of the answer itself is the host's; a worker that does not read is on its own time.
    fn answer(&mut self, id: u32, method: &str, args: &Map<String, Value>, calls: &mut dyn HostCalls) -> Option<Stop> {
        let asked = Instant::now();
        let answer = calls.call(method, args);
        self.answering += asked.elapsed();
        let mut segment = None;
        let frame = match answer.and_then(|answer| self.hand_over(answer.segment).map(|segment| (answer.value, segment))) {
            Ok((value, table)) => {
                segment = table;
                let layout = segment.as_ref().map(|segment| segment.layout.clone());
                ToWorker::Answer { id, value, layout, fault: None }
            }
            Err(fault) => ToWorker::Answer { id, value: Value::Null, layout: None, fault: Some(fault) },
        };
        self.send(&frame, segment.as_deref(), calls)
    }

    /// Books a table that is about to be handed over, unless it would be one too many.
    fn hand_over(&mut self, segment: Option<Arc<Segment>>) -> Result<Option<Arc<Segment>>, HostFault> {
        let Some(segment) = segment else { return Ok(None) };
        let key = Arc::as_ptr(&segment) as usize;
        // A weak count keeps the number from being used again, and the table from being kept.
        if !self.handed.contains_key(&key) {
            let bytes = self.handed_bytes.saturating_add(segment.layout.bytes.max(PAGE));
            if bytes > self.job.limits.memory_bytes {
                let megabytes = self.job.limits.memory_bytes >> 20;
                let message = format!(
                    "the tables that one run of code gets are {megabytes} MB together at most; ask for fewer days, or once for each table"
                );
                return Err(HostFault { kind: HostFaultKind::Environment, message });
            }
            self.handed_bytes = bytes;
            self.handed.insert(key, Arc::downgrade(&segment));
        }
        Ok(Some(segment))
    }

    /// What the worker says about its end, if it is within the bounds a worker keeps.
    fn last_word(&self, ended: WorkerEnded, length: usize) -> Stop {
        // The frame is the result and a few words; a result in its frame may be escaped differently, so there is some room.
        let allowed = usize::try_from(self.job.limits.result_bytes).unwrap_or(usize::MAX).saturating_add(ROOM);
        if length > allowed {
            return Stop::Hostile(format!("a result of {length} bytes"));
        }
        if let WorkerEnded::Finished { result } = &ended
            && depth(result) > MAX_DEPTH
        {
            return Stop::Hostile(format!("a result of more than {MAX_DEPTH} levels"));
        }
        Stop::Said(ended)
    }

    /// Everything together, once the process is gone.
    fn ran(&self, stop: &Stop, end: &End, neutral: &Neutral) -> Result<Ran, PoolError> {
        let exit = end.exit.unwrap_or_default();
        Ok(Ran {
            ended: self.ended(stop, end, neutral)?,
            output: neutral.text(&self.output),
            output_dropped: self.dropped,
            usage: Usage {
                wall: self.ended.unwrap_or_default().as_secs_f64(),
                cpu: Duration::from_micros(exit.cpu_micros).as_secs_f64(),
                memory: exit.memory,
            },
            layers: self.layers.clone().unwrap_or_default(),
            worker_exited: end.gone,
            calls: self.calls,
        })
    }

    fn ended(&self, stop: &Stop, end: &End, neutral: &Neutral) -> Result<Ended, PoolError> {
        let over = |found: &Occupied| Ended::OverQuota { bytes: found.bytes, files: found.files, closed: found.closed };
        Ok(match stop {
            Stop::Cancelled => return Err(PoolError::Cancelled),
            Stop::OverQuota(found) => over(found),
            Stop::Hostile(what) => Ended::Hostile { what: what.clone() },
            Stop::Deadline => Ended::TimedOut { by: EndedBy::Kill, traceback: String::new() },
            Stop::NotReady => Ended::Died { what: format!("it was not confined after {} s", READY.as_secs()) },
            Stop::Closed => closed(end),
            Stop::Said(said) => {
                let found = Occupied::below(self.job.workspace, &self.job.limits);
                if found.exceeds(&self.job.limits) { over(&found) } else { said_end(said.clone(), neutral) }
            }
        })
    }
}

/// The end of a worker that closed its socket without a last word.
fn closed(end: &End) -> Ended {
    let Some(exit) = end.exit else {
        return Ended::Died { what: "the interpreter it was forked from ended".to_owned() };
    };
    if end.killed {
        return Ended::Hostile { what: "it closed its socket and went on".to_owned() };
    }
    match (exit.signal, exit.code) {
        (Some(signal), _) if signal == Signal::SIGKILL as i32 => Ended::Memory { traceback: String::new() },
        (Some(signal), _) if signal == Signal::SIGXCPU as i32 => Ended::TimedOut { by: EndedBy::Kill, traceback: String::new() },
        (Some(signal), _) => {
            let name = Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.as_str().to_owned());
            Ended::Died { what: format!("it was ended by {name}") }
        }
        (None, code) => {
            Ended::Died { what: format!("it left with exit code {} before the code ended", code.unwrap_or_default()) }
        }
    }
}

/// What the worker said, with every text made neutral and short.
fn said_end(said: WorkerEnded, neutral: &Neutral) -> Ended {
    let text = |text: String| shortened(&neutral.text(&text));
    match said {
        WorkerEnded::Finished { result } => Ended::Finished(neutral.value(result)),
        WorkerEnded::TimedOut { traceback } => Ended::TimedOut { by: EndedBy::Trace, traceback: text(traceback) },
        WorkerEnded::Memory { traceback } => Ended::Memory { traceback: text(traceback) },
        WorkerEnded::Syntax { message, line, column } => {
            Ended::Worker(WorkerEnded::Syntax { message: text(message), line, column })
        }
        WorkerEnded::Disallowed { what, line } => Ended::Worker(WorkerEnded::Disallowed { what: text(what), line }),
        WorkerEnded::Raised { exception, message, traceback } => {
            Ended::Worker(WorkerEnded::Raised { exception: text(exception), message: text(message), traceback: text(traceback) })
        }
        WorkerEnded::Unserialisable { path, type_name, hint } => {
            Ended::Worker(WorkerEnded::Unserialisable { path: text(path), type_name: text(type_name), hint: text(hint) })
        }
        WorkerEnded::Unconfined { missing } => Ended::Worker(WorkerEnded::Unconfined { missing: text(missing) }),
    }
}

/// At most [`LONGEST_TEXT`] bytes, the end kept: it names the exception.
fn shortened(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let mut at = text.len() - LONGEST_TEXT;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    format!("...{}", text.get(at..).unwrap_or_default())
}
