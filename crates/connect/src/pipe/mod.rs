//! [`PipeClient`]: people's own agents as a process that speaks JSON lines ([`protocol`]). The process gets its requests and the
//! environment it was promised, and nothing else; it never outlives the client, and what it writes is bounded.

mod process;
pub mod protocol;

use crate::endpoint::SetupError;
use crate::http::from_now;
use crate::openai::response_of;
use crate::plugin::Launch;
use crate::progress::{Progress, Watcher, unwatched};
use crate::secret::{Redactor, bounded};
use async_trait::async_trait;
use process::Process;
use protocol::{Line, PROTOCOL};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::{ModelClient, ModelError, Turn};
use traderharness_replay::{Request, Response, Usage};

/// Characters of a foreign text that are shown.
const SHOWN: usize = 200;

/// Time and size limits of an agent's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipeLimits {
    /// From its start to its greeting.
    pub greeting: Duration,
    /// From a request to its answer.
    pub answer: Duration,
    /// From the end of the run to the end of the process; then it is killed.
    pub end: Duration,
    /// Bytes of one line.
    pub line_bytes: usize,
}

impl Default for PipeLimits {
    fn default() -> Self {
        Self {
            greeting: Duration::from_secs(30),
            answer: Duration::from_secs(300),
            end: Duration::from_secs(2),
            line_bytes: 8 << 20,
        }
    }
}

/// Asks an agent's process. Needs a tokio runtime with time and I/O. Dropping it kills the process and all it has started.
pub struct PipeClient {
    process: Process,
    name: String,
    limits: PipeLimits,
    /// Takes the values of passed variables out of answers, which are recorded.
    redactor: Redactor,
    watcher: Watcher,
    asked: u64,
    /// Why the process is not asked any more: after a broken protocol nothing says which line belongs to what.
    broken: Option<ClientFault>,
}

impl std::fmt::Debug for PipeClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("PipeClient");
        shown.field("name", &self.name).field("limits", &self.limits).field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl PipeClient {
    /// Starts the process and waits for its greeting.
    ///
    /// # Errors
    /// [`SetupError::Start`] when it cannot be started, [`SetupError::Greeting`] when it does not greet as [`protocol`] says.
    pub async fn start(launch: Launch, limits: PipeLimits) -> Result<Self, SetupError> {
        let redactor = Redactor::new(&launch.secrets());
        let process = Process::start(launch, limits.line_bytes).map_err(SetupError::Start)?;
        let mut client = Self { process, name: String::new(), limits, redactor, watcher: unwatched(), asked: 0, broken: None };
        client.greet().await?;
        Ok(client)
    }

    /// Tells `watcher` what is going on.
    #[must_use]
    pub fn watched(mut self, watcher: Watcher) -> Self {
        self.watcher = watcher;
        self
    }

    /// What the agent calls itself; empty when it does not say.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells the process that the run is over and gives it a moment to end by itself.
    pub async fn end(mut self) {
        let until = from_now(self.limits.end);
        // A process that does not listen any more is killed by the drop.
        let _ = self.process.write(&protocol::end(), until).await;
        self.process.ended(until).await;
    }

    async fn greet(&mut self) -> Result<(), ClientFault> {
        let limit = self.limits.greeting;
        let until = from_now(limit);
        self.write(&protocol::hello(), until, limit).await?;
        match self.line("greeting", until, limit).await? {
            Line::Hello { protocol: PROTOCOL, name } => {
                self.name = bounded(&self.process.redact(&name), SHOWN);
                Ok(())
            }
            Line::Hello { protocol, .. } => {
                Err(self.protocol(format!("it speaks version {protocol}, and this is version {PROTOCOL}")).await)
            }
            other => Err(self.protocol(format!("a `hello` line comes first, not {}", kind(&other))).await),
        }
    }

    async fn ask(&mut self, request: &Request, turn: Turn) -> Result<Response, ClientFault> {
        self.asked += 1;
        let limit = self.limits.answer;
        let until = from_now(limit);
        (self.watcher)(&Progress::Asking { attempt: 1 });
        self.write(&protocol::request(self.asked, request, turn), until, limit).await?;
        match self.line("answer of the agent", until, limit).await? {
            Line::Answer { id, content, tool_calls, reasoning, finish_reason, usage } if id == self.asked => {
                let message = protocol::message(content.as_deref(), &tool_calls, reasoning.as_deref());
                let mut response = response_of(&message, finish_reason.as_deref(), request, turn)?;
                response.usage = usage.map(Usage::from);
                Ok(self.redactor.without_keys(response))
            }
            Line::Error { id, message } if id == self.asked => {
                Err(ClientFault::Agent { message: bounded(&self.process.redact(&message), SHOWN * 2) })
            }
            Line::Answer { id, .. } | Line::Error { id, .. } => {
                let asked = self.asked;
                Err(self.protocol(format!("it answered request {id} when {asked} was asked")).await)
            }
            other => Err(self.protocol(format!("an `answer` or `error` line belongs here, not {}", kind(&other))).await),
        }
    }

    async fn write(&mut self, line: &Value, until: Instant, limit: Duration) -> Result<(), ClientFault> {
        match self.process.write(line, until).await {
            process::Written::Whole => Ok(()),
            process::Written::Late => Err(self.late("reading of the request by the agent", limit)),
            process::Written::Gone => Err(self.gone().await),
        }
    }

    /// The next line that is no log.
    async fn line(&mut self, waited_for: &'static str, until: Instant, limit: Duration) -> Result<Line, ClientFault> {
        loop {
            let bytes = match self.process.line(until).await {
                process::Read::Line(bytes) => bytes,
                process::Read::Late => return Err(self.late(waited_for, limit)),
                process::Read::End => return Err(self.gone().await),
                process::Read::TooLong => {
                    let limit = self.limits.line_bytes;
                    return Err(self.protocol(format!("a line is longer than {limit} bytes")).await);
                }
            };
            match serde_json::from_slice(&bytes) {
                Ok(Line::Log { message }) => {
                    let text = bounded(&self.process.redact(&message), SHOWN);
                    (self.watcher)(&Progress::Note { text: &text });
                }
                Ok(line) => return Ok(line),
                Err(fault) => {
                    let text = bounded(&self.process.redact(&String::from_utf8_lossy(&bytes)), SHOWN);
                    let fault = bounded(&self.process.redact(&fault.to_string()), SHOWN);
                    return Err(self.protocol(format!("a line is not one of its lines ({fault}): {text}")).await);
                }
            }
        }
    }

    /// Silence: the process is not waited for any longer, whatever it does.
    fn late(&self, waited_for: &'static str, limit: Duration) -> ClientFault {
        self.process.kill();
        ClientFault::Timeout { waited_for, millis: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }
    }

    async fn gone(&mut self) -> ClientFault {
        let status = self.process.ended(from_now(self.limits.end)).await;
        ClientFault::Exited { status, stderr: self.process.last_words().await }
    }

    async fn protocol(&mut self, what: String) -> ClientFault {
        self.process.kill();
        ClientFault::Protocol { what, stderr: self.process.last_words().await }
    }
}

#[async_trait]
impl ModelClient for PipeClient {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        if let Some(fault) = &self.broken {
            return Err(fault.clone().into());
        }
        let answer = self.ask(request, turn).await;
        if let Err(fault) = &answer
            && !matches!(fault, ClientFault::Agent { .. })
        {
            self.broken = Some(fault.clone());
        }
        Ok(answer?)
    }
}

const fn kind(line: &Line) -> &'static str {
    match line {
        Line::Hello { .. } => "`hello`",
        Line::Answer { .. } => "`answer`",
        Line::Error { .. } => "`error`",
        Line::Log { .. } => "`log`",
    }
}
