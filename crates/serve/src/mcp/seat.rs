//! Which hosted session a connection is about, and whose it is. The caller comes from the token or from who owns the process, never from
//! what a message says.

use super::{Door, drawn_key};
use crate::{Caller, Refusal, SessionRequest};
use rmcp::model::{Extensions, RequestMetaObject};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use traderharness_contract::FailureClass;

/// `_meta` key and header of the hosted session: its id, or `new`.
pub(super) const SESSION: &str = "traderharness/session";
/// Header form of [`SESSION`].
pub(super) const SESSION_HEADER: &str = "traderharness-session";
/// `_meta` key of the profile of a new session.
const PROFILE: &str = "traderharness/profile";
/// Header form of [`PROFILE`].
const PROFILE_HEADER: &str = "traderharness-profile";
/// `_meta` key of the agent revision.
pub(super) const REVISION: &str = "traderharness/agent-revision";
/// Header form of [`REVISION`].
const REVISION_HEADER: &str = "traderharness-agent-revision";

/// Where a connection's requests come from.
#[derive(Debug)]
pub(super) enum Origin {
    /// A pair of streams of the process owner.
    Streams {
        /// Who that is.
        caller: Arc<Caller>,
        /// Session that the process was started for.
        session: String,
    },
    /// HTTP requests; each carries its caller.
    Http,
}

/// What a request that names no session is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unnamed {
    /// A session of its own: the client began a connection.
    Makes,
    /// The caller's only open session, or a new one when there is none: the client has no connection.
    Finds,
}

/// A caller's place in a hosted session.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) caller: Arc<Caller>,
    pub(super) session: String,
    /// Made for this connection alone.
    own: bool,
    /// Whether anything was called.
    used: AtomicBool,
}

impl Seat {
    /// Notes that something was called: the session is worth keeping when the connection ends.
    pub(super) fn mark_used(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// A session that a connection made and nobody used.
    pub(super) fn is_left_over(&self) -> bool {
        self.own && !self.used.load(Ordering::Relaxed)
    }
}

/// What a request says beside its parameters.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) caller: Option<Arc<Caller>>,
    session: Option<String>,
    profile: Option<String>,
    pub(super) revision: Option<String>,
}

impl Said {
    /// Reads `_meta` first and headers second.
    pub(super) fn of(meta: &RequestMetaObject, extensions: &Extensions) -> Self {
        let parts = extensions.get::<axum::http::request::Parts>();
        let word = |key: &str, header: &str| {
            let inline = meta.get(key).and_then(|value| value.as_str()).map(str::to_owned);
            inline.or_else(|| parts?.headers.get(header)?.to_str().ok().map(str::to_owned))
        };
        Self {
            caller: parts.and_then(|parts| parts.extensions.get::<Arc<Caller>>().cloned()),
            session: word(SESSION, SESSION_HEADER),
            profile: word(PROFILE, PROFILE_HEADER),
            revision: word(REVISION, REVISION_HEADER),
        }
    }
}

/// Finds or makes the seat of a request.
pub(super) async fn take(door: &Door, origin: &Origin, said: Said, unnamed: Unnamed) -> Result<Seat, Refusal> {
    let (caller, fixed) = match origin {
        Origin::Streams { caller, session } => (Arc::clone(caller), Some(session.clone())),
        Origin::Http => (said.caller.clone().ok_or_else(no_caller)?, None),
    };
    let named = said.session.clone().filter(|session| session != "new");
    let fresh = said.session.as_deref() == Some("new");
    match named.or(fixed.filter(|_| !fresh)) {
        Some(session) => existing(door, caller, session).await,
        None if fresh || unnamed == Unnamed::Makes => make(door, caller, &said).await,
        None => {
            let _opening = door.0.opening.lock().await;
            let seen = Arc::clone(&caller);
            let open: Vec<String> = door
                .run(move |house| Ok(house.sessions(&seen).into_iter().filter(|s| !s.finished).map(|s| s.session_id).collect()))
                .await?;
            match open.as_slice() {
                [] => make(door, caller, &said).await,
                [only] => Ok(Seat { caller, session: only.clone(), own: false, used: AtomicBool::new(true) }),
                [..] => Err(Refusal::new(
                    FailureClass::InvalidInput,
                    422,
                    "session_unclear",
                    format!(
                        "You have several open sessions: name one in _meta[\"{SESSION}\"] or in the header {SESSION_HEADER}."
                    ),
                    true,
                )
                .with("open_sessions", open)),
            }
        }
    }
}

async fn existing(door: &Door, caller: Arc<Caller>, session: String) -> Result<Seat, Refusal> {
    let (seen, id) = (Arc::clone(&caller), session.clone());
    door.run(move |house| house.session(&seen, &id)).await?;
    Ok(Seat { caller, session, own: false, used: AtomicBool::new(true) })
}

async fn make(door: &Door, caller: Arc<Caller>, said: &Said) -> Result<Seat, Refusal> {
    let request = SessionRequest { profile: said.profile.clone(), agent_revision_id: said.revision.clone() };
    let (seen, key) = (Arc::clone(&caller), drawn_key()?);
    let reply = door.run(move |house| house.create_session(&seen, &request, &key)).await?;
    let session = reply.body.get("session_id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
    Ok(Seat { caller, session, own: true, used: AtomicBool::new(false) })
}

/// A request that came past the check of tokens. Cannot happen behind the router.
fn no_caller() -> Refusal {
    Refusal::new(FailureClass::Forbidden, 401, "unauthorized", "The request has no caller.", false)
}
