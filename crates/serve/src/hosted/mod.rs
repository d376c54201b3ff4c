//! Hosted sessions: a harness [`Session`](traderharness_harness::Session) for each, moved by operations that are kept, so that a session
//! that is not in memory is made again by doing the same operations over the same data.
//!
//! | file | holds |
//! |---|---|
//! | `tape` | the journal of a hosted session |
//! | `world` | what sessions of a profile share |
//! | `play` | one session: calls, decision points, days |
//! | `restore` | making a session again from what was kept |

mod play;
mod restore;
mod tape;
mod world;

pub(crate) use play::{Done, Play};
pub(crate) use restore::restore;
pub(crate) use world::{World, WorldFault};

use crate::reply::SessionState;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Calls are taken.
    Open,
    /// The window ended.
    Finished,
    /// Its caller closed it.
    Closed,
    /// A defect stopped it; the account is not trusted any more.
    Stopped,
}

impl Stage {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Finished => "finished",
            Self::Closed => "closed",
            Self::Stopped => "stopped",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Open, Self::Finished, Self::Closed, Self::Stopped].into_iter().find(|stage| stage.as_str() == name)
    }
}

/// A session of the house.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) id: String,
    /// Number in the keep.
    pub(crate) number: i64,
    /// Id of its caller.
    pub(crate) caller: String,
    pub(crate) profile: String,
    pub(crate) agent_revision: Option<String>,
    /// The session itself; `None` until something needs it.
    play: Mutex<Option<Box<Play>>>,
    /// As its caller last saw it; never waits for a call.
    shown: Mutex<(Stage, SessionState)>,
}

impl Hosted {
    pub(crate) fn new(
        id: String,
        number: i64,
        caller: String,
        stage: Stage,
        shown: SessionState,
        play: Option<Box<Play>>,
    ) -> Self {
        Self {
            id,
            number,
            caller,
            profile: shown.profile.clone(),
            agent_revision: shown.agent_revision_id.clone(),
            play: Mutex::new(play),
            shown: Mutex::new((stage, shown)),
        }
    }

    /// The session, alone. A panic inside a call leaves a session that is made again, so nothing here is poisoned.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Box<Play>>> {
        self.play.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut guard = poisoned.into_inner();
            *guard = None;
            self.play.clear_poison();
            guard
        })
    }

    /// Whether the session stands in memory; false while a call runs.
    pub(crate) fn is_loaded(&self) -> bool {
        self.play.try_lock().is_ok_and(|play| play.is_some())
    }

    pub(crate) fn shown(&self) -> (Stage, SessionState) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn stage(&self) -> Stage {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn show(&self, stage: Stage, state: SessionState) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = (stage, state);
    }
}
