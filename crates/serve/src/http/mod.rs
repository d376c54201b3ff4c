//! The HTTP door: routes onto a [`House`], with the bounds that a door needs (spec/seeds.md C3, C6). Every failure is an error record;
//! none shows a stack trace, a path of the machine, or whether something of another caller exists.
//!
//! Nobody is served without a token, except `/health`, which says nothing but that the server runs. What is allowed, what a call costs
//! and what is kept is the house's to say; nothing of that is here.
//!
//! | module | holds |
//! |---|---|
//! | [`settings`] | addresses, allowed hosts, limits |
//! | [`mod@document`] | the OpenAPI document |
//! | `routes` | one function per route |
//! | `guard` | host, origin, size of the head |
//! | `body` | strict reading of a body |
//! | `gate` | places for calls that block |
//! | `listen` | connections, and closing in order |
//! | `closing` | streams that end with the door |
//! | `stream` | a client that reads nothing |
//! | `answer` | results and error records as responses |
//! | `figures` | counters for a scraper |

mod answer;
mod body;
mod closing;
pub mod document;
mod figures;
mod gate;
mod guard;
mod listen;
mod routes;
pub mod settings;
mod stream;

pub(crate) use answer::refused;
pub(crate) use body::whole;
pub(crate) use closing::Closing;
pub use document::document;
pub(crate) use guard::LOOPBACK;
pub(crate) use routes::bearer;
pub use settings::{AddressFault, Limits, Settings};

use crate::House;
use axum::Router;
use figures::Figures;
use gate::Gate;
use guard::Guard;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// One answered request, for a log. It holds nothing that a client chose but the name that its token has in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Method.
    pub method: &'static str,
    /// Pattern of the route (`/v1/tools/{name}`), `unknown` for a path that has none.
    pub route: String,
    /// HTTP status.
    pub status: u16,
    /// Microseconds from the head of the request to its answer.
    pub micros: u64,
    /// Id of the caller, when one was known.
    pub caller: Option<String>,
}

/// Hears of answered requests.
pub type Log = Arc<dyn Fn(&Seen) + Send + Sync>;

/// The door onto a house.
#[derive(Clone)]
pub struct Door(Arc<Inner>);

struct Inner {
    house: Arc<House>,
    settings: Settings,
    guard: Guard,
    gate: Gate,
    figures: Figures,
    log: Option<Log>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl Door {
    /// A door that answers for loopback names, for `bound` and for the hosts of the settings.
    pub fn new(house: Arc<House>, settings: Settings, bound: Option<SocketAddr>, log: Option<Log>) -> Self {
        let guard = Guard::new(bound.map(|address| address.ip()), &settings.hosts, &settings.limits);
        let limits = &settings.limits;
        let gate = Gate::new(limits.calls, house.caller_count(), limits.turn_time, limits.answer_time);
        Self(Arc::new(Inner { house, guard, gate, figures: Figures::default(), log, settings }))
    }

    /// Names that this door answers for; what is mounted behind it answers for the same.
    pub fn hosts(&self) -> &[String] {
        self.0.guard.hosts()
    }

    /// The routes. `mounted` is merged into them (the MCP door, at `/mcp`), behind the same checks of host, origin and head; it asks for
    /// tokens itself.
    pub fn router(&self, mounted: Option<Router>) -> Router {
        routes::router(self, mounted)
    }

    /// Serves on a bound socket until `closing` is ready. No new connection is taken then, and streams on which clients only
    /// listen end; every running call ends, for at most [`Limits::grace`]. True when all of them did.
    pub async fn serve(&self, listener: TcpListener, mounted: Option<Router>, closing: impl Future<Output = ()>) -> bool {
        let limits = &self.0.settings.limits;
        listen::serve(listener, self.router(mounted), limits, closing).await;
        // Calls whose clients have left.
        self.0.gate.quiet(limits.grace).await
    }
}
