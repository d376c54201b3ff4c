//! A program that answers calls over a pipe: one JSON line in, one JSON line out.
//!
//! | direction | line |
//! |---|---|
//! | to the program | `{"id": 7, "tool": "name", "arguments": {...}, "deadline_ms": 30000}` |
//! | from the program | `{"id": 7, "ok": true, "result": {...} or "text"}` |
//! | from the program | `{"id": 7, "ok": false, "error": "text"}` |
//!
//! One call at a time. Whatever breaks the protocol (a line nobody asked for, another id, no JSON, a line over 1 MiB) ends the program
//! with its process group, and so does a deadline; the next call starts it anew. Ids go on counting, so an answer of an old process can
//! never be taken for a new one. A call is never sent twice.

use super::launch::{Group, LastWords, Launch, LaunchFault};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use traderharness_contract::arguments::{ARGUMENTS_LIMIT, parse_arguments};
use traderharness_harness::plugin::{PlugIn, PlugInAnswer, PlugInContext};

/// How often a waiting call looks whether the run is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Lines that are read ahead: a program that talks without end waits in its pipe instead of filling our memory.
const AHEAD: usize = 4;

/// A plug-in over a pipe.
#[derive(Debug)]
pub struct Pipe {
    launch: Launch,
    state: Mutex<State>,
    free: Condvar,
    /// Counts cancellations; a call that sees another number than at its start ends.
    cancels: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    busy: bool,
    process: Option<Process>,
    calls: u64,
}

#[derive(Debug)]
struct Process {
    child: Child,
    group: Group,
    requests: Sender<Vec<u8>>,
    lines: Receiver<Line>,
    words: LastWords,
    waited: bool,
}

#[derive(Debug)]
enum Line {
    Text(String),
    TooLong,
    NotText,
}

/// How one exchange ended: the answer, and whether the program can go on.
struct Exchange {
    answer: PlugInAnswer,
    intact: bool,
}

impl Pipe {
    /// A plug-in whose program is started now, so that one that cannot be is found before a run.
    ///
    /// # Errors
    /// [`LaunchFault::Refused`].
    pub fn start(launch: Launch) -> Result<Self, LaunchFault> {
        let process = Process::start(&launch)?;
        let state = State { process: Some(process), ..State::default() };
        Ok(Self { launch, state: Mutex::new(state), free: Condvar::new(), cancels: AtomicU64::new(0) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the program to be free; `None` when the time is over or the run is to end.
    fn turn(&self, watch: &Watch<'_>) -> Option<(Turn<'_>, Option<Process>, u64)> {
        let mut state = self.lock();
        while state.busy {
            if watch.over() || watch.cancelled() {
                return None;
            }
            state = self.free.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.busy = true;
        state.calls += 1;
        let (process, id) = (state.process.take(), state.calls);
        drop(state);
        Some((Turn { pipe: self, process: None }, process, id))
    }
}

/// The right to talk to the program; given back with the process, however the call ends.
struct Turn<'p> {
    pipe: &'p Pipe,
    process: Option<Process>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.pipe.lock();
        state.busy = false;
        state.process = self.process.take();
        drop(state);
        self.pipe.free.notify_one();
    }
}

/// When a call must stop waiting.
struct Watch<'a> {
    context: &'a PlugInContext<'a>,
    pipe: &'a Pipe,
    cancels: u64,
    deadline: Instant,
}

impl Watch<'_> {
    fn over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn cancelled(&self) -> bool {
        (self.context.cancelled)() || self.pipe.cancels.load(Ordering::Acquire) != self.cancels
    }
}

impl PlugIn for Pipe {
    fn call(&self, context: &PlugInContext<'_>, arguments: &Value) -> PlugInAnswer {
        let cancels = self.cancels.load(Ordering::Acquire);
        let watch = Watch { context, pipe: self, cancels, deadline: Instant::now() + context.time_limit };
        let Some((mut turn, process, id)) = self.turn(&watch) else {
            let fault = "it was busy with other calls for the whole time of this one".to_owned();
            return if watch.cancelled() {
                PlugInAnswer::Cancelled { sent: false }
            } else {
                PlugInAnswer::Down { fault, sent: false }
            };
        };
        // A program that ended or spoke unasked since the last call is replaced: nothing of this call has gone out yet.
        let usable = process.filter(|p| matches!(p.lines.try_recv(), Err(TryRecvError::Empty)));
        let mut process = match usable.map_or_else(|| Process::start(&self.launch), Ok) {
            Ok(process) => process,
            Err(fault) => return PlugInAnswer::Down { fault: fault.to_string(), sent: false },
        };
        let exchange = process.exchange(&watch, id, arguments, &self.launch);
        if exchange.intact {
            turn.process = Some(process);
        }
        redacted(exchange.answer, &self.launch)
    }

    fn cancel(&self) {
        self.cancels.fetch_add(1, Ordering::AcqRel);
    }
}

impl Process {
    fn start(launch: &Launch) -> Result<Self, LaunchFault> {
        let mut child = launch.command().spawn().map_err(|fault| launch.refused(&fault))?;
        let group = Group::started(child.id());
        let (requests, outgoing) = mpsc::channel::<Vec<u8>>();
        let (incoming, lines) = mpsc::sync_channel(AHEAD);
        let words = child.stderr.take().map(LastWords::listen).unwrap_or_default();
        if let Some(stdin) = child.stdin.take() {
            // A program that does not read must not hold the call beyond its deadline.
            std::thread::spawn(move || write_lines(stdin, &outgoing));
        }
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || read_lines(stdout, &incoming));
        }
        Ok(Self { child, group, requests, lines, words, waited: false })
    }

    fn exchange(&mut self, watch: &Watch<'_>, id: u64, arguments: &Value, launch: &Launch) -> Exchange {
        let left = u64::try_from(watch.left().as_millis()).unwrap_or(u64::MAX);
        let request = json!({ "id": id, "tool": watch.context.tool, "arguments": arguments, "deadline_ms": left });
        let ended = |answer| Exchange { answer, intact: false };
        let invalid = |fault: &str| ended(PlugInAnswer::Invalid { fault: fault.to_owned() });
        if self.requests.send(format!("{request}\n").into_bytes()).is_err() {
            return ended(PlugInAnswer::Down { fault: self.end(launch), sent: false });
        }
        loop {
            match self.lines.recv_timeout(watch.left().min(LOOK)) {
                Ok(Line::Text(line)) => {
                    let answer = read_answer(&line, id);
                    let intact = !matches!(answer, PlugInAnswer::Invalid { .. });
                    return Exchange { answer, intact };
                }
                Ok(Line::TooLong) => return invalid("it wrote a line of more than 1048576 bytes"),
                Ok(Line::NotText) => return invalid("it wrote a line that is not UTF-8"),
                Err(RecvTimeoutError::Disconnected) => {
                    return ended(PlugInAnswer::Down { fault: format!("{} during the call", self.end(launch)), sent: true });
                }
                Err(RecvTimeoutError::Timeout) if watch.cancelled() => {
                    self.stop();
                    return ended(PlugInAnswer::Cancelled { sent: true });
                }
                Err(RecvTimeoutError::Timeout) if watch.over() => {
                    let worker_exited = self.stop();
                    return ended(PlugInAnswer::TimedOut { worker_exited });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Ends the program and its group; true once it is gone.
    fn stop(&mut self) -> bool {
        if self.waited {
            return true;
        }
        self.group.kill();
        self.waited = self.child.wait().is_ok();
        self.waited
    }

    /// How the program ended, after it closed its output. What it left behind in its group goes too.
    fn end(&mut self, launch: &Launch) -> String {
        if !self.group.leader_ended() {
            std::thread::sleep(LOOK); // a program that ends closes its output a moment before it is gone
        }
        let ended = self.group.leader_ended();
        self.stop();
        let how = match self.child.try_wait() {
            Ok(Some(status)) if ended => format!("it ended ({status})"),
            _ => "it closed its output".to_owned(),
        };
        format!("{how}{}", self.words.sentence(launch))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Asking first would need a wait; a plug-in keeps nothing that it must save.
        self.stop();
    }
}

fn write_lines(mut stdin: ChildStdin, requests: &Receiver<Vec<u8>>) {
    while let Ok(line) = requests.recv() {
        if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            return; // the reader sees the end of the program and says so
        }
    }
}

fn read_lines(stdout: impl Read, lines: &SyncSender<Line>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut bytes = Vec::new();
        let limit = ARGUMENTS_LIMIT as u64 + 1;
        let line = match reader.by_ref().take(limit).read_until(b'\n', &mut bytes) {
            // What stands before the end without a line's end is no answer.
            Ok(_) if bytes.len() > ARGUMENTS_LIMIT => Line::TooLong,
            Ok(1..) if bytes.ends_with(b"\n") => String::from_utf8(bytes).map_or(Line::NotText, Line::Text),
            _ => return,
        };
        let last = matches!(line, Line::TooLong);
        if lines.send(line).is_err() || last {
            return;
        }
    }
}

/// What a line says about the call of this id.
fn read_answer(line: &str, id: u64) -> PlugInAnswer {
    let invalid = |fault: String| PlugInAnswer::Invalid { fault };
    let mut answer = match parse_arguments(line.trim()) {
        Ok(answer) if !answer.is_empty() => answer,
        Ok(_) => return invalid("it wrote a line without an answer".into()),
        Err(fault) => return invalid(format!("it wrote a line that is no JSON object: {fault}")),
    };
    if answer.get("id") != Some(&json!(id)) {
        return invalid("it answered under another id than it was asked".into());
    }
    match (answer.remove("ok"), answer.remove("result"), answer.remove("error")) {
        (Some(Value::Bool(true)), Some(Value::Object(object)), None) => PlugInAnswer::Object { object },
        (Some(Value::Bool(true)), Some(Value::String(text)), None) => PlugInAnswer::Text { text },
        (Some(Value::Bool(false)), None, Some(Value::String(message))) => PlugInAnswer::Failed { message },
        (Some(Value::Bool(true)), _, _) => {
            invalid("an answer with `ok` true needs `result`, an object or a text, and no `error`".into())
        }
        (Some(Value::Bool(false)), _, _) => invalid("an answer with `ok` false needs `error`, a text, and no `result`".into()),
        _ => invalid("an answer needs `ok`, true or false".into()),
    }
}

/// An answer without the values of passed variables.
pub(crate) fn redacted(mut answer: PlugInAnswer, launch: &Launch) -> PlugInAnswer {
    fn walk(value: &mut Value, launch: &Launch) {
        match value {
            Value::String(text) => *text = launch.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, launch)),
            Value::Object(map) => {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(key, mut item)| {
                        walk(&mut item, launch);
                        (launch.redact(&key), item)
                    })
                    .collect();
            }
            _ => {}
        }
    }
    match &mut answer {
        PlugInAnswer::Object { object } => {
            let mut value = Value::Object(std::mem::take(object));
            walk(&mut value, launch);
            if let Value::Object(map) = value {
                *object = map;
            }
        }
        PlugInAnswer::Text { text } => *text = launch.redact(text),
        PlugInAnswer::Failed { message } => *message = launch.redact(message),
        PlugInAnswer::Invalid { fault } | PlugInAnswer::Down { fault, .. } => *fault = launch.redact(fault),
        _ => {}
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: PlugInAnswer) {
        assert_eq!(read_answer(line, 7), expected, "{line}");
    }

    fn invalid(line: &str, says: &str) {
        match read_answer(line, 7) {
            PlugInAnswer::Invalid { fault } => assert!(fault.contains(says), "{line}: {fault}"),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn an_answer_is_an_object_a_text_or_an_error() {
        check(r#"{"id":7,"ok":true,"result":"t"}"#, PlugInAnswer::Text { text: "t".into() });
        check(r#"{"id":7,"ok":false,"error":"no"}"#, PlugInAnswer::Failed { message: "no".into() });
        check(
            r#"{"id":7,"ok":true,"result":{"a":1}}"#,
            PlugInAnswer::Object { object: json!({"a":1}).as_object().unwrap().clone() },
        );
    }

    #[test]
    fn anything_else_is_invalid_and_says_why() {
        invalid("hello", "no JSON object");
        invalid("", "without an answer");
        invalid("[1]", "not an object");
        invalid(r#"{"id":8,"ok":true,"result":"t"}"#, "another id");
        invalid(r#"{"id":"7","ok":true,"result":"t"}"#, "another id");
        invalid(r#"{"id":7,"ok":true,"result":{"x":NaN}}"#, "NaN");
        invalid(r#"{"id":7,"ok":true,"ok":false,"error":"x"}"#, "twice");
        invalid(r#"{"id":7,"ok":true,"result":[1]}"#, "`result`");
        invalid(r#"{"id":7,"ok":true,"result":{},"error":"x"}"#, "no `error`");
        invalid(r#"{"id":7,"ok":false,"result":{}}"#, "`error`");
        invalid(r#"{"id":7,"ok":"yes","result":{}}"#, "`ok`");
    }

    /// Lines without end, counted as they are taken.
    struct Endless(std::sync::Arc<AtomicU64>);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.fetch_add(1, Ordering::AcqRel);
            buffer[..2].copy_from_slice(b"x\n");
            Ok(2)
        }
    }

    #[test]
    fn a_program_that_talks_without_end_is_read_no_further_than_it_is_heard() {
        let taken = std::sync::Arc::new(AtomicU64::new(0));
        let (sender, lines) = mpsc::sync_channel(AHEAD);
        let endless = Endless(std::sync::Arc::clone(&taken));
        let reading = std::thread::spawn(move || read_lines(endless, &sender));
        for _ in 0..1_000 {
            assert!(matches!(lines.recv(), Ok(Line::Text(_))));
        }
        assert!(taken.load(Ordering::Acquire) <= 1_000 + AHEAD as u64 + 2);
        drop(lines);
        reading.join().unwrap();
    }
}
