//! Where calls wait for their turn: the house's functions block, so each runs on a thread of its own, and no more of them than there are
//! places. A call that was begun ends, whether or not its client is still there, unless it is one that is told by [`Left`].

use super::answer;
use crate::Refusal;
use crate::places::Places;
use std::time::Duration;
use tokio::time::timeout;
use traderharness_harness::CancelToken;

/// Places for calls.
#[derive(Debug)]
pub(super) struct Gate {
    places: Places,
    turn: Duration,
    answer: Duration,
}

impl Gate {
    pub(super) fn new(calls: usize, callers: usize, turn: Duration, answer: Duration) -> Self {
        Self { places: Places::new(calls, callers), turn, answer }
    }

    /// Runs blocking work of a caller in its turn.
    ///
    /// # Errors
    /// What the work refuses; `DEPENDENCY_UNAVAILABLE` when no turn came, or when the answer takes too long: the work goes on then, and
    /// a repetition with the same key gets its result.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        caller: &str,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(Some(place)) = timeout(self.turn, self.places.take(caller)).await else {
            return Err(answer::busy());
        };
        timeout(self.answer, place.work(work)).await.unwrap_or_else(|_| Err(answer::still_working()))
    }

    /// Calls that work now.
    pub(super) fn working(&self) -> usize {
        self.places.held()
    }

    /// Waits until no call works. False when some still do after `most`.
    pub(super) async fn quiet(&self, most: Duration) -> bool {
        timeout(most, self.places.quiet()).await.is_ok()
    }
}

/// Tells a call that its client left: a request that nobody waits for any more is dropped, and this with it.
#[derive(Debug)]
pub(super) struct Left(Option<CancelToken>);

impl Left {
    /// Sets the token when this is dropped before it is [`Left::answered`].
    pub(super) const fn heard_by(cancel: Option<CancelToken>) -> Self {
        Self(cancel)
    }

    pub(super) fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
    }

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_call_without_a_place_is_told_to_come_again() {
        let gate = Arc::new(Gate::new(1, 1, SHORT, LONG));
        let (go, waits) = channel::<()>();
        runtime().block_on(async {
            let (begun, first) = tokio::sync::oneshot::channel();
            let held = Arc::clone(&gate);
            let held = tokio::spawn(async move {
                held.run("a", move || {
                    let _ = begun.send(());
                    Ok(waits.recv().is_ok())
                })
                .await
            });
            first.await.unwrap();
            assert_eq!(gate.working(), 1);
            let refused = gate.run("a", || Ok(())).await.unwrap_err();
            assert_eq!((refused.status, refused.retry_after, refused.retryable), (503, Some(1), true));
            go.send(()).unwrap();
            assert_eq!(held.await.unwrap(), Ok(true));
            assert_eq!(gate.run("a", || Ok(7)).await, Ok(7));
        });
    }

    // Complaint RG-3: what the client did not wait for goes on, and its place is taken until it ends.
    #[test]
    fn a_call_outlives_its_client() {
        let gate = Arc::new(Gate::new(1, 1, SHORT, SHORT));
        let (go, waits) = channel::<()>();
        let (done, ended) = channel();
        runtime().block_on(async {
            let late = gate.run("a", move || {
                waits.recv().unwrap();
                done.send("done").unwrap();
                Ok(())
            });
            assert_eq!(late.await.unwrap_err().code, "answer_timeout");
            assert!(!gate.quiet(SHORT).await, "it still works");
            go.send(()).unwrap();
            assert!(gate.quiet(LONG).await);
            assert_eq!(ended.recv(), Ok("done"));
        });
    }

    #[test]
    fn a_defect_is_told_without_its_words() {
        let gate = Gate::new(1, 1, SHORT, LONG);
        let refused = runtime().block_on(gate.run("a", || -> Result<(), Refusal> { panic!("the inside") })).unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (500, "internal"));
        assert!(!refused.record().to_string().contains("inside"));
        assert_eq!(gate.working(), 0);
    }
}
