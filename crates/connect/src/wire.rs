//! The seam between sending and meaning: a [`WireFormat`] says how a request is written and how the answer is read; [`crate::http`]
//! sends, waits and retries and knows nothing of the format. A format never opens a connection and never sees a key.

use serde_json::{Map, Value};
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::Turn;
use traderharness_replay::{Request, Response};

/// One way of talking to model servers.
pub trait WireFormat: Send + Sync + std::fmt::Debug {
    /// What is put behind the base URL, e.g. `chat/completions`.
    fn path(&self) -> &'static str;

    /// The body of a request. Everything but the transport (streaming) comes out of the request, whose fingerprint is recorded.
    ///
    /// # Errors
    /// [`ClientFault::Unsendable`] when the request sets what belongs to the transport.
    fn body(&self, request: &Request) -> Result<Map<String, Value>, ClientFault>;

    /// A reader for the answer to this request.
    fn reader(&self, request: &Request, turn: Turn) -> Box<dyn AnswerReader>;
}

/// How the bytes of an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The server ended them.
    Closed,
    /// The connection broke or went silent; this is how.
    Broken(String),
}

/// Reads one answer out of bytes that come in any pieces.
pub trait AnswerReader: Send {
    /// Takes the next bytes. True when the answer is whole and nothing more has to be waited for.
    ///
    /// # Errors
    /// [`ClientFault::Malformed`], or what the server reports inside of its answer.
    fn push(&mut self, bytes: &[u8]) -> Result<bool, ClientFault>;

    /// The answer. A connection that broke after the last word of the answer takes nothing away from it.
    ///
    /// # Errors
    /// [`ClientFault::Cut`], [`ClientFault::Empty`], [`ClientFault::Malformed`], or what the server reports.
    fn finish(self: Box<Self>, end: End) -> Result<Response, ClientFault>;
}
