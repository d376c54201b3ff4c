//! Hosted sessions: a harness [`Session`](traderharness_harness::Session) for each, moved by operations that are kept, so that a session
//! that is not in memory is made again by doing the same operations over the same data.
//!
//! | file | holds |
//! |---|---|
//! | `tape` | the journal of a hosted session |
//! | `world` | what sessions of a profile share |
//! | `play` | one session: calls, decision points, days |
//! | `restore` | making a session again from what was kept |
//! | `rerun` | playing a session again from a recording of it |

mod play;
mod rerun;
mod restore;
mod tape;
mod world;

pub(crate) use play::{Done, Play};
pub use rerun::{Rerun, RerunFault, rerun};
pub(crate) use restore::restore;
pub(crate) use world::{World, WorldFault};

use crate::refusal::Refusal;
use crate::reply::SessionState;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use traderharness_contract::FailureClass;

/// Seconds after which whoever found a session busy is told to come again.
const BUSY_PAUSE: u32 = 5;

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

/// Where the session itself stands while nobody has it.
#[derive(Debug)]
struct Place {
    /// `None` until something needs it, and while somebody has it.
    play: Option<Box<Play>>,
    taken: bool,
}

/// A session that nobody else has until this is dropped.
#[derive(Debug)]
pub(crate) struct Alone<'h> {
    hosted: &'h Hosted,
    play: Option<Box<Play>>,
}

impl Deref for Alone<'_> {
    type Target = Option<Box<Play>>;

    fn deref(&self) -> &Self::Target {
        &self.play
    }
}

impl DerefMut for Alone<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.play
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // A panic inside a call may have left half of it: the session is made again from what was kept.
        let play = self.play.take().filter(|_| !std::thread::panicking());
        *self.hosted.place() = Place { play, taken: false };
        self.hosted.free.notify_one();
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
    place: Mutex<Place>,
    /// Told whenever whoever had the session gives it back.
    free: Condvar,
    /// As its caller last saw it; never waits for a call.
    shown: Mutex<(Stage, SessionState)>,
    /// Calls in a row whose arguments did not fit, since it came to memory.
    unfit: AtomicU32,
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
            place: Mutex::new(Place { play, taken: false }),
            free: Condvar::new(),
            shown: Mutex::new((stage, shown)),
            unfit: AtomicU32::new(0),
        }
    }

    /// One call more whose arguments do not fit; gives how many in a row there are.
    pub(crate) fn unfit_again(&self) -> u32 {
        self.unfit.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// The arguments of a call fitted.
    pub(crate) fn fitted(&self) {
        self.unfit.store(0, Ordering::Relaxed);
    }

    /// The session, alone; waits as long as it takes.
    pub(crate) fn lock(&self) -> Alone<'_> {
        let taken = self.free.wait_while(self.place(), |place| place.taken);
        self.take(taken.unwrap_or_else(PoisonError::into_inner))
    }

    /// The session, alone; waits for whoever has it, but no longer than `most`.
    ///
    /// # Errors
    /// 503 when it is still busy then; nothing was done.
    pub(crate) fn lock_within(&self, most: Duration) -> Result<Alone<'_>, Refusal> {
        let waited = self.free.wait_timeout_while(self.place(), most, |place| place.taken);
        let (place, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if place.taken {
            let message = "The session is busy with another call; nothing was done. Send the request again under the same key.";
            let busy = Refusal::new(FailureClass::DependencyUnavailable, 503, "session_busy", message, true);
            return Err(busy.after(BUSY_PAUSE));
        }
        Ok(self.take(place))
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, mut place: MutexGuard<'_, Place>) -> Alone<'_> {
        place.taken = true;
        Alone { hosted: self, play: place.play.take() }
    }

    /// Whether the session stands in memory; false while a call runs.
    pub(crate) fn is_loaded(&self) -> bool {
        self.place().play.is_some()
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
