//! Which hosted session a connection is about, and whose it is. The caller comes from the token or from who owns the process, never from
//! what a message says.

use super::{Door, drawn_key};
use crate::{Caller, Refusal, SessionRequest};
use rmcp::model::{Extensions, RequestMetaObject};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use traderharness_contract::FailureClass;

/// `_meta` key of the hosted session: its id, `key:LABEL`, or `new`.
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
    /// The caller's only open session, else the one it was found in before, else, where none is open, the one under the label `default`:
    /// the client has no connection.
    Finds,
}

/// A caller's place in a hosted session.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) caller: Arc<Caller>,
    pub(super) session: String,
    /// Made for this connection alone, and nothing was called so far.
    unused: AtomicBool,
}

impl Seat {
    /// `own`: the session is made for this connection alone.
    const fn new(caller: Arc<Caller>, session: String, own: bool) -> Self {
        Self { caller, session, unused: AtomicBool::new(own) }
    }

    /// Notes that something was called: the session is worth keeping when the connection ends.
    pub(super) fn mark_used(&self) {
        self.unused.store(false, Ordering::Relaxed);
    }

    /// A session that a connection made and nobody used.
    pub(super) fn is_left_over(&self) -> bool {
        self.unused.load(Ordering::Relaxed)
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

/// Which session a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    /// By its id.
    Id(String),
    /// By a label of the caller's; made when it comes first.
    Label(String),
    /// A new one.
    New,
}

/// Reads `ses_...`, `key:LABEL` or `new`.
fn read_name(text: &str) -> Result<Named, Refusal> {
    let label = text.strip_prefix("key:");
    let is_label = |label: &str| {
        (1..=64).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    };
    match (text, label) {
        ("new", _) => Ok(Named::New),
        (_, Some(label)) if is_label(label) => Ok(Named::Label(label.to_owned())),
        (id, None) => Ok(Named::Id(id.to_owned())),
        (_, Some(_)) => Err(invalid("A label of a session has 1 to 64 letters, digits, `_`, `-` or `.`: key:LABEL.")),
    }
}

/// Finds or makes the seat of a request.
pub(super) async fn take(door: &Door, origin: &Origin, said: Said, unnamed: Unnamed) -> Result<Seat, Refusal> {
    let (caller, fixed) = match origin {
        Origin::Streams { caller, session } => (Arc::clone(caller), Some(session.clone())),
        Origin::Http => (said.caller.clone().ok_or_else(no_caller)?, None),
    };
    match (said.session.as_deref().map(read_name).transpose()?, fixed, unnamed) {
        (Some(Named::Id(session)), _, _) | (None, Some(session), _) => existing(door, caller, session).await,
        (Some(Named::Label(label)), _, _) => made_once(door, caller, &said, &label).await,
        (Some(Named::New), _, Unnamed::Finds) => Err(invalid(
            "A request without a connection cannot ask for a new session each time: name one by a label of yours, key:LABEL.",
        )),
        (Some(Named::New), _, Unnamed::Makes) | (None, None, Unnamed::Makes) => {
            make(door, caller, &said, &drawn_key()?, true).await
        }
        (None, None, Unnamed::Finds) => {
            let seen = Arc::clone(&caller);
            let only = door.run(&caller, move |house| Ok(house.session_of(&seen, None).map(|hosted| hosted.id.clone()))).await?;
            match only {
                Ok(session) => {
                    door.0.found.lock().await.insert(caller.id.clone(), session.clone());
                    Ok(Seat::new(caller, session, false))
                }
                // The session of a caller without connections stays it when it is finished, and when the caller opens a second one beside.
                Err(refusal) => match before(door, &caller).await? {
                    Some(session) => Ok(Seat::new(caller, session, false)),
                    None if refusal.code == "no_session" => made_once(door, caller, &said, "default").await,
                    None => Err(refusal),
                },
            }
        }
    }
}

/// The session that the caller was found in before. Where its window has ended since, who plays on is told so and gets no new account.
async fn before(door: &Door, caller: &Arc<Caller>) -> Result<Option<String>, Refusal> {
    let Some(session) = door.0.found.lock().await.get(&caller.id).cloned() else { return Ok(None) };
    let (seen, id) = (Arc::clone(caller), session.clone());
    match door.run(caller, move |house| house.session(&seen, &id)).await {
        Ok(state) => Ok(matches!(state.state.as_str(), "finished" | "open").then_some(session)),
        // What is kept no longer is given up like what was closed.
        Err(refusal) if refusal.status == 404 => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

async fn existing(door: &Door, caller: Arc<Caller>, session: String) -> Result<Seat, Refusal> {
    let (seen, id) = (Arc::clone(&caller), session.clone());
    door.run(&caller, move |house| house.session(&seen, &id)).await?;
    Ok(Seat::new(caller, session, false))
}

/// The session under a label: the house makes it once and gives the same one ever after.
async fn made_once(door: &Door, caller: Arc<Caller>, said: &Said, label: &str) -> Result<Seat, Refusal> {
    let opening = door.opening(&caller);
    let _opening = opening.lock().await;
    make(door, caller, said, &format!("mcp-label-{label}"), false).await
}

async fn make(door: &Door, caller: Arc<Caller>, said: &Said, key: &str, own: bool) -> Result<Seat, Refusal> {
    let request = SessionRequest { profile: said.profile.clone(), agent_revision_id: said.revision.clone() };
    let (seen, key) = (Arc::clone(&caller), key.to_owned());
    let reply = door.run(&caller, move |house| house.create_session(&seen, &request, &key)).await?;
    let session = reply.body.get("session_id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
    Ok(Seat::new(caller, session, own))
}

fn invalid(words: &str) -> Refusal {
    Refusal::new(FailureClass::InvalidInput, 422, "invalid_session_name", words, true)
}

/// A request that came past the check of tokens. Cannot happen behind the router.
fn no_caller() -> Refusal {
    Refusal::new(FailureClass::Forbidden, 401, "unauthorized", "The request has no caller.", false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_named_by_id_label_or_as_new() {
        let check = |text: &str, expected: Option<Named>| assert_eq!(read_name(text).ok(), expected, "{text}");
        check("new", Some(Named::New));
        check("ses_abc", Some(Named::Id("ses_abc".into())));
        check("key:run-1.a", Some(Named::Label("run-1.a".into())));
        check("", Some(Named::Id(String::new())));
        for bad in ["key:", "key:a b", "key:é", &format!("key:{}", "a".repeat(65))] {
            check(bad, None);
        }
    }
}
