//! Places for calls at a door: no more calls of the house work at once than there are places, and where there are several callers no one
//! of them holds more than half, so that a caller whose session is busy with a long call keeps nobody else out. It knows no call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places of a door.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    count: u32,
    /// Places that one caller may hold.
    share: usize,
    callers: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

/// A place, until it is dropped. The work holds it and not its client: a client that leaves makes no room.
#[derive(Debug)]
pub(crate) struct Place {
    _of_caller: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Places {
    /// `count` places for that many `callers`.
    pub(crate) fn new(count: usize, callers: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let share = if callers > 1 { (count as usize).div_ceil(2) } else { count as usize };
        Self { all: Arc::new(Semaphore::new(count as usize)), count, share, callers: Mutex::default() }
    }

    /// Waits for a place. Callers are those of the configuration, so their number is bounded.
    pub(crate) async fn take(&self, caller: &str) -> Option<Place> {
        let own = {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(callers.entry(caller.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.share))))
        };
        // The own place first: who waits for it keeps no place of the others.
        let of_caller = own.acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Place { _of_caller: of_caller, _of_all: of_all })
    }

    /// Places that are held.
    pub(crate) fn held(&self) -> usize {
        (self.count as usize).saturating_sub(self.all.available_permits())
    }

    /// Waits until no place is held.
    pub(crate) async fn quiet(&self) -> bool {
        self.all.acquire_many(self.count).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn now(places: &Places, caller: &str) -> Option<Place> {
        match pin!(places.take(caller)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => place,
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_caller_of_several_leaves_half_of_the_places() {
        let places = Places::new(4, 2);
        let held: Vec<_> = (0..4).filter_map(|_| now(&places, "a")).collect();
        assert_eq!((held.len(), places.held()), (2, 2));
        let others: Vec<_> = (0..4).filter_map(|_| now(&places, "b")).collect();
        assert_eq!(others.len(), 2);
        drop(held);
        assert_eq!(places.held(), 2);
        assert!(now(&places, "b").is_none() && now(&places, "a").is_some());
    }

    #[test]
    fn an_only_caller_has_all_places() {
        let places = Places::new(3, 1);
        let held: Vec<_> = (0..4).filter_map(|_| now(&places, "a")).collect();
        assert_eq!(held.len(), 3);
    }
}
