//! Where calls wait for their turn: the house's functions block, so each runs on a thread of its own, and no more of them than there are
//! places. A call that was begun ends, whether or not its client is still there.

use super::answer;
use crate::Refusal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Places for calls.
#[derive(Debug)]
pub(super) struct Gate {
    places: Arc<Semaphore>,
    all: u32,
    turn: Duration,
    answer: Duration,
}

impl Gate {
    pub(super) fn new(calls: usize, turn: Duration, answer: Duration) -> Self {
        let all = u32::try_from(calls).unwrap_or(u32::MAX).max(1);
        Self { places: Arc::new(Semaphore::new(all as usize)), all, turn, answer }
    }

    /// Runs blocking work in its turn.
    ///
    /// # Errors
    /// What the work refuses; `DEPENDENCY_UNAVAILABLE` when no turn came, or when the answer takes too long: the work goes on then, and
    /// a repetition with the same key gets its result.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(Ok(place)) = timeout(self.turn, Arc::clone(&self.places).acquire_owned()).await else {
            return Err(answer::busy());
        };
        let working = spawn_blocking(move || {
            // Held by the work and not by its client: a client that leaves makes no room.
            let _place = place;
            work()
        });
        match timeout(self.answer, working).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(answer::broken()),
            Err(_) => Err(answer::still_working()),
        }
    }

    /// Calls that work now.
    pub(super) fn working(&self) -> usize {
        (self.all as usize).saturating_sub(self.places.available_permits())
    }

    /// Waits until no call works. False when some still do after `most`.
    pub(super) async fn quiet(&self, most: Duration) -> bool {
        matches!(timeout(most, self.places.acquire_many(self.all)).await, Ok(Ok(_)))
    }
}
