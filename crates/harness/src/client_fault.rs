//! [`ClientFault`]: why a model outside of this process did not answer. Texts are for the person who started the run; they hold what
//! the other side said, bounded and without keys. Making them so is the client's duty, never the reader's.

/// A model outside of this process did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientFault {
    /// No connection: name not found, refused, no TLS.
    #[error("the model server at {place} cannot be reached: {what}")]
    Unreachable {
        /// Host and port, or the program.
        place: String,
        /// What the system said.
        what: String,
    },
    /// Nothing, or not the whole answer, came in time.
    #[error("no {waited_for} within {millis} ms")]
    Timeout {
        /// `connection`, `first byte`, `next byte`, `whole answer`, `greeting`, `request to be read`.
        waited_for: &'static str,
        /// The limit, milliseconds.
        millis: u64,
    },
    /// The server refused the request or failed.
    #[error("the model server answered {status}: {message}")]
    Status {
        /// HTTP status, or the code in the body when the status was 200.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The key is missing, wrong or not allowed to do this (401, 403).
    #[error("the model server refused the key ({status}): {message}")]
    RefusedKey {
        /// HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The account has no credit left (402, or 429 with such a code). Waiting does not help.
    #[error("the account has no credit left ({status}): {message}")]
    NoCredit {
        /// HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// No such model or no such address (404).
    #[error("the model server does not know this model or address ({place}): {message}")]
    NotFound {
        /// Address without query.
        place: String,
        /// What it said.
        message: String,
    },
    /// The provider's filter refused the request.
    #[error("the provider's moderation refused the request: {message}")]
    Moderation {
        /// What it said.
        message: String,
    },
    /// The server sends to another address. Keys are not sent after it.
    #[error("the model server sends to another address ({status}, {location}); set that as base URL if it is right")]
    Redirected {
        /// HTTP status.
        status: u16,
        /// Where to, without query.
        location: String,
    },
    /// The answer is no answer of this protocol.
    #[error("the answer cannot be read: {what}")]
    Malformed {
        /// What is wrong with it.
        what: String,
    },
    /// A well-formed answer without any message in it. A message without text and calls is an answer, and not this.
    #[error("the answer holds no message: {what}")]
    Empty {
        /// What came instead.
        what: String,
    },
    /// The connection ended inside the answer. What had come is thrown away.
    #[error("the answer was cut off after {bytes} bytes: {what}")]
    Cut {
        /// Bytes of the answer that had come.
        bytes: u64,
        /// How it ended.
        what: String,
    },
    /// The answer is longer than allowed.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// The limit, bytes.
        limit: usize,
    },
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {what}")]
    Unsendable {
        /// Why.
        what: String,
    },
    /// The agent's process ended.
    #[error("the agent's process ended ({status}){}", said(.stderr))]
    Exited {
        /// Exit code or signal.
        status: String,
        /// Last lines of its standard error.
        stderr: String,
    },
    /// The agent's process wrote what is no line of the protocol.
    #[error("the agent's process broke the protocol: {what}{}", said(.stderr))]
    Protocol {
        /// What it wrote and what belongs there.
        what: String,
        /// Last lines of its standard error.
        stderr: String,
    },
    /// The agent's process answered that it failed.
    #[error("the agent failed: {message}")]
    Agent {
        /// What it said.
        message: String,
    },
    /// Somebody asked the run to end while the answer was waited for.
    #[error("the run was asked to end while the model was waited for")]
    Interrupted,
    /// The request was made as often as allowed.
    #[error("no answer after {attempts} attempts; the last one: {last}")]
    GaveUp {
        /// Attempts made.
        attempts: u32,
        /// What the last one ended with.
        last: Box<ClientFault>,
    },
}

impl ClientFault {
    /// Stable name for records and machine output.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::Status { .. } => "http_status",
            Self::RefusedKey { .. } => "refused_key",
            Self::NoCredit { .. } => "no_credit",
            Self::NotFound { .. } => "not_found",
            Self::Moderation { .. } => "moderation",
            Self::Redirected { .. } => "redirected",
            Self::Malformed { .. } => "malformed_answer",
            Self::Empty { .. } => "empty_answer",
            Self::Cut { .. } => "cut_answer",
            Self::TooLong { .. } => "answer_too_long",
            Self::Unsendable { .. } => "unsendable",
            Self::Exited { .. } => "agent_exited",
            Self::Protocol { .. } => "agent_protocol",
            Self::Agent { .. } => "agent_failed",
            Self::Interrupted => "interrupted",
            Self::GaveUp { .. } => "gave_up_after_retries",
        }
    }

    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::GaveUp { last, .. } => return last.hint(),
            Self::Unreachable { .. } => "check the base URL and that the server runs",
            Self::Timeout { .. } => "raise the time limit, or ask for a streamed answer so that a slow model is seen to be alive",
            Self::RefusedKey { .. } => "check the key and that it may use this model",
            Self::NoCredit { .. } => "waiting does not help; the account needs credit",
            Self::NotFound { .. } => "check the model name and the base URL; the base URL of most servers ends with /v1",
            Self::Protocol { .. } => "standard output is for the protocol alone; write logs to standard error",
            _ => return None,
        })
    }
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its standard error ends with: {stderr}") }
}
