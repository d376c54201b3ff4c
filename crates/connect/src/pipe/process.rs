//! [`Process`]: the process of an agent with its three streams. Reading never waits for writing and the other way round, so that a
//! process which does only one of them stops neither us nor the run for longer than its limit.

use crate::plugin::launch::{Group, LastWords, Launch};
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Lines that are read ahead; more wait in the pipe.
const AHEAD: usize = 8;

/// How long the last words of a process that ended are waited for: its error stream is read beside everything else.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Pause between two looks at a process that is ending.
const LOOK: Duration = Duration::from_millis(2);

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Whole,
    /// The process does not read.
    Late,
    /// The process closed its input.
    Gone,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Line(Vec<u8>),
    /// Longer than allowed; nothing after it is read.
    TooLong,
    /// The process closed its output.
    End,
    /// Nothing in time.
    Late,
}

/// A running process. Dropping it kills its group.
pub(super) struct Process {
    launch: Launch,
    child: Child,
    group: Group,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<Read>,
    reading: JoinHandle<()>,
    words: LastWords,
}

impl Process {
    pub(super) fn start(launch: Launch, line_bytes: usize) -> Result<Self, String> {
        let mut command = Command::from(launch.command());
        let mut child = command.kill_on_drop(true).spawn().map_err(|error| launch.refused(&error).to_string())?;
        let missing = || "its streams cannot be opened".to_owned();
        let group = Group::started(child.id().ok_or_else(missing)?);
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?.into_owned_fd().map_err(|error| error.to_string())?;
        let words = LastWords::listen(std::fs::File::from(errors));
        let (sender, lines) = mpsc::channel(AHEAD);
        let reading = tokio::spawn(read_lines(BufReader::new(output), sender, line_bytes));
        Ok(Self { launch, child, group, input, lines, reading, words })
    }

    /// Writes one line.
    pub(super) async fn write(&mut self, line: &Value, until: Instant) -> Written {
        let Some(input) = &mut self.input else { return Written::Gone };
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        let write = async {
            input.write_all(&bytes).await?;
            input.flush().await
        };
        match timeout_at(until, write).await {
            Ok(Ok(())) => Written::Whole,
            Ok(Err(_)) => Written::Gone,
            Err(_) => Written::Late,
        }
    }

    /// The next line that is not blank.
    pub(super) async fn line(&mut self, until: Instant) -> Read {
        match timeout_at(until, self.lines.recv()).await {
            Ok(read) => read.unwrap_or(Read::End),
            Err(_) => Read::Late,
        }
    }

    /// Closes the input, waits for the end until `until`, kills what is left, and says how the process ended.
    pub(super) async fn ended(&mut self, until: Instant) -> String {
        self.input = None;
        // Looked at without being waited for: until then the group's number belongs to nobody else, and what the process has started
        // can be ended with it.
        while !self.group.leader_ended() && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
        let stayed = !self.group.leader_ended();
        self.kill();
        match self.child.wait().await {
            Ok(status) if !stayed => status.to_string(),
            _ => "it closed its output and stayed, and was killed".to_owned(),
        }
    }

    /// The last line of its error stream, without secrets.
    pub(super) async fn last_words(&mut self) -> String {
        // The thread that reads them ends with the stream; there is no telling when, only a moment to let it.
        let until = Instant::now() + LAST_WORDS;
        loop {
            let line = self.words.line(&self.launch);
            if !line.is_empty() || Instant::now() >= until {
                return line;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A text without the values of the environment that was handed over.
    pub(super) fn redact(&self, text: &str) -> String {
        self.launch.redact(text)
    }

    /// Ends the process and all it has started.
    pub(super) fn kill(&self) {
        // Only while the leader has not been waited for, its number is surely its own.
        if self.child.id().is_some() {
            self.group.kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        self.reading.abort();
    }
}

async fn read_lines(mut output: impl AsyncBufRead + Unpin, lines: mpsc::Sender<Read>, most: usize) {
    let mut line = Vec::new();
    let mut first = true;
    loop {
        let (taken, ended) = match output.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(bytes) => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    line.extend_from_slice(bytes.get(..end).unwrap_or_default());
                    (end + 1, true)
                }
                None => {
                    line.extend_from_slice(bytes);
                    (bytes.len(), false)
                }
            },
        };
        output.consume(taken);
        if line.len() > most {
            let _ = lines.send(Read::TooLong).await;
            return;
        }
        if !ended {
            continue;
        }
        let whole = std::mem::take(&mut line);
        let text = if std::mem::take(&mut first) { whole.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&whole) } else { &whole };
        let text = text.trim_ascii();
        if !text.is_empty() && lines.send(Read::Line(text.to_vec())).await.is_err() {
            return;
        }
    }
    // A line without its end may be cut: it is no line.
    let _ = lines.send(Read::End).await;
}
