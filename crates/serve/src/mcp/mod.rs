//! The MCP door: tools, resources and prompts of a hosted session for any MCP client, over stdio and streamable HTTP.
//!
//! The protocol itself is rmcp's; none of its types leaves this module. Everything a client asks for goes to the [`House`]: the door
//! checks no argument, runs no tool and keeps no result of its own. What it adds is the form that clients expect, and the words by which
//! a model finds its way through a day.
//!
//! | file | is |
//! |---|---|
//! | `lines` | messages as lines over a pair of streams |
//! | `message` | one message as it came: strict, no batch |
//! | `http` | streamable HTTP: tokens, hosts, whose connection it is |
//! | `seat` | which hosted session a connection is about |
//! | `desk` | the requests of the protocol |
//! | `calls` | `tools/list` and `tools/call` |
//! | `resources`, `prompts` | brief, account, session, catalog; the day protocol |
//! | `shown` | schemas as clients can use them |
//! | `news` | what changed in a session, for every connection that listens |

mod calls;
mod desk;
mod http;
mod lines;
mod message;
mod news;
mod prompts;
mod resources;
mod seat;
mod shown;

pub use http::{HttpSettings, router};

use crate::places::Places;
use crate::refusal::broken;
use crate::{Caller, House, Refusal, random};
use desk::Desk;
use lines::Lines;
use news::News;
use seat::Origin;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use traderharness_contract::FailureClass;

/// Calls of the house that this door makes at the same time.
const MOST_CALLS: usize = 32;

/// The door of a house. Cheap to clone; all clones share who listens to what.
#[derive(Debug, Clone)]
pub struct Door(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    house: Arc<House>,
    news: News,
    places: Places,
    /// Held by caller while a session is looked for and made, so that two first calls at once do not make two. One for each caller: a
    /// caller whose places are all taken keeps nobody else from opening.
    opening: std::sync::Mutex<BTreeMap<String, Arc<Mutex<()>>>>,
    /// The session that a caller without connections was last found in, by caller: when its window has ended it stays the caller's.
    found: Mutex<HashMap<String, String>>,
    connections: AtomicU64,
}

/// Why a connection over streams could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpFault {
    /// The client went away before it had said hello.
    #[error("the client went away before it had begun")]
    NoClient,
    /// The client's hello was refused.
    #[error("the client could not be served: {0}")]
    Refused(String),
    /// The task that served the client broke off.
    #[error("the connection broke off: {0}")]
    Broken(String),
}

impl Door {
    /// A door onto a house.
    pub fn new(house: Arc<House>) -> Self {
        Self(Arc::new(Inner {
            places: Places::new(MOST_CALLS, house.caller_count()),
            house,
            news: News::default(),
            opening: std::sync::Mutex::default(),
            found: Mutex::default(),
            connections: AtomicU64::new(1),
        }))
    }

    /// The house.
    pub fn house(&self) -> &Arc<House> {
        &self.0.house
    }

    /// Serves one client over a pair of streams until it goes away. The client is `caller`, whatever it says of itself, and its calls are
    /// for `session` unless it names another of the caller's.
    ///
    /// Nothing but messages of the protocol is written.
    ///
    /// # Errors
    /// [`McpFault`] when the client never began, or when serving broke off.
    pub async fn serve_streams<R, W>(&self, caller: Arc<Caller>, session: String, read: R, write: W) -> Result<(), McpFault>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let desk = Desk::new(self.clone(), Origin::Streams { caller, session });
        let (lines, writer) = Lines::new(read, write);
        let served = match rmcp::serve_server(desk, lines).await {
            Ok(service) => match service.waiting().await {
                Ok(rmcp::service::QuitReason::JoinError(fault)) | Err(fault) => Err(McpFault::Broken(fault.to_string())),
                Ok(_) => Ok(()),
            },
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Err(McpFault::NoClient),
            Err(fault) => Err(McpFault::Refused(fault.to_string())),
        };
        // What was answered reaches the client, unless it does not read.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(2), writer).await;
        served
    }

    /// Runs work of the house for a caller on a thread that may block, in its turn.
    async fn run<T, F>(&self, caller: &Caller, work: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: FnOnce(&Arc<House>) -> Result<T, Refusal> + Send + 'static,
    {
        let place = self.0.places.take(&caller.id).await.ok_or_else(broken)?;
        let house = Arc::clone(&self.0.house);
        place.work(move || work(&house)).await
    }

    /// What a caller holds while it opens a session.
    fn opening(&self, caller: &Caller) -> Arc<Mutex<()>> {
        let mut all = self.0.opening.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(all.entry(caller.id.clone()).or_default())
    }

    fn next_connection(&self) -> u64 {
        self.0.connections.fetch_add(1, Ordering::Relaxed)
    }
}

/// A key nobody else has.
fn drawn_key() -> Result<String, Refusal> {
    let no_chance = |_| {
        let message = "The machine gives no random bytes.";
        Refusal::new(FailureClass::DependencyUnavailable, 503, "random_unavailable", message, true)
    };
    Ok(format!("mcp-{}", random::letters(26).map_err(no_chance)?))
}
