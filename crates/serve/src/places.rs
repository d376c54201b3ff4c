//! Places at a door, for calls and for connections, shared out fairly: no more of them at once than there are places, and callers who take
//! all they can get, together or alone, keep nobody else out. It knows no call.
//!
//! Three rules, where there are several callers. No caller holds more than half of the places. Of the free ones, one is left for each
//! caller that holds none (for half of the places at most): a second place is given only beyond them, so that a caller's first call
//! finds a place whatever the others do. And who waits is served by how little it holds, first come first served among equals.

use crate::refusal::{Refusal, broken};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_blocking;

/// Places of a door. Whether for calls or for connections is its holder's to say.
#[derive(Debug)]
pub(crate) struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    count: usize,
    /// Places that one caller may hold.
    share: usize,
    /// Who may come, beside those who are here.
    callers: usize,
    now: Mutex<Now>,
    /// Told when no place is held any more.
    empty: Notify,
}

/// Who holds how many, and who waits.
#[derive(Debug, Default)]
struct Now {
    held: BTreeMap<String, usize>,
    waiting: VecDeque<(String, oneshot::Sender<Place>)>,
}

impl Now {
    fn of(&self, caller: &str) -> usize {
        self.held.get(caller).copied().unwrap_or(0)
    }

    fn all(&self) -> usize {
        self.held.values().sum()
    }
}

/// A place, until it is dropped. The work holds it and not its client: a client that leaves makes no room.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Inner>,
    caller: String,
}

impl Place {
    /// Who holds it.
    pub(crate) fn caller(&self) -> &str {
        &self.caller
    }

    /// Does work that blocks, on a thread of its own, and holds the place until it ends: whoever stops waiting for it makes no room.
    ///
    /// # Errors
    /// What the work refuses; a defect of the work is refused without its words.
    pub(crate) async fn work<T, F>(self, work: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, Refusal> + Send + 'static,
    {
        let working = spawn_blocking(move || {
            let _place = self;
            work()
        });
        working.await.unwrap_or_else(|_| Err(broken()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut now = self.places.lock();
        match now.held.get_mut(&self.caller) {
            Some(held) if *held > 1 => *held -= 1,
            _ => {
                now.held.remove(&self.caller);
            }
        }
        let given = self.places.give(&mut now);
        if now.held.is_empty() {
            self.places.empty.notify_waiters();
        }
        drop(now);
        // A place that its waiter does not take any more comes back here.
        for (place, waiter) in given {
            let _ = waiter.send(place);
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller may have one more place now.
    fn may(&self, now: &Now, caller: &str) -> bool {
        let free = self.count.saturating_sub(now.all());
        let own = now.of(caller);
        let left_for_others = if own == 0 { 0 } else { self.callers.saturating_sub(now.held.len()).min(self.count / 2) };
        own < self.share && free > left_for_others
    }

    fn place(self: &Arc<Self>, now: &mut Now, caller: String) -> Place {
        *now.held.entry(caller.clone()).or_default() += 1;
        Place { places: Arc::clone(self), caller }
    }

    /// Takes free places for those who wait. They are handed over when the lock is free again.
    fn give(self: &Arc<Self>, now: &mut Now) -> Vec<(Place, oneshot::Sender<Place>)> {
        now.waiting.retain(|(_, waiter)| !waiter.is_closed());
        let mut given = Vec::new();
        loop {
            let next = now.waiting.iter().enumerate().filter(|(_, (caller, _))| self.may(now, caller));
            let Some((at, _)) = next.min_by_key(|(_, (caller, _))| now.of(caller)) else { return given };
            let Some((caller, waiter)) = now.waiting.remove(at) else { return given };
            given.push((self.place(now, caller), waiter));
        }
    }
}

impl Places {
    /// `count` places for that many `callers`.
    pub(crate) fn new(count: usize, callers: usize) -> Self {
        let count = count.max(1);
        let share = if callers > 1 { count.div_ceil(2) } else { count };
        Self(Arc::new(Inner { count, share, callers, now: Mutex::default(), empty: Notify::new() }))
    }

    /// A place, if the caller may have one now.
    pub(crate) fn try_take(&self, caller: &str) -> Option<Place> {
        let mut now = self.0.lock();
        // Whoever waits and may have a place has been given one: nobody is overtaken.
        self.0.may(&now, caller).then(|| self.0.place(&mut now, caller.to_owned()))
    }

    /// Waits for a place.
    pub(crate) async fn take(&self, caller: &str) -> Option<Place> {
        let waits = {
            let mut now = self.0.lock();
            if self.0.may(&now, caller) {
                return Some(self.0.place(&mut now, caller.to_owned()));
            }
            let (waiter, waits) = oneshot::channel();
            now.waiting.push_back((caller.to_owned(), waiter));
            waits
        };
        waits.await.ok()
    }

    /// Places that are held.
    pub(crate) fn held(&self) -> usize {
        self.0.lock().all()
    }

    /// Waits until no place is held.
    pub(crate) async fn quiet(&self) {
        loop {
            let told = self.0.empty.notified();
            if self.held() == 0 {
                return;
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn poll<T>(waits: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match waits.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    fn now(places: &Places, caller: &str) -> Option<Place> {
        poll(pin!(places.take(caller))).flatten()
    }

    /// As many places as the caller gets without waiting.
    fn grab(places: &Places, caller: &str) -> Vec<Place> {
        std::iter::from_fn(|| now(places, caller)).collect()
    }

    #[test]
    fn one_caller_of_several_leaves_half_of_the_places() {
        let places = Places::new(4, 2);
        let held = grab(&places, "a");
        assert_eq!((held.len(), places.held()), (2, 2));
        let others = grab(&places, "b");
        assert_eq!(others.len(), 2);
        drop(held);
        assert_eq!(places.held(), 2);
        assert!(now(&places, "b").is_none() && now(&places, "a").is_some());
    }

    #[test]
    fn an_only_caller_has_all_places() {
        assert_eq!(grab(&Places::new(3, 1), "a").len(), 3);
    }

    /// How many places callers get who come one after another and take what they can.
    fn check(count: usize, callers: usize, expected: &[usize]) {
        let places = Places::new(count, callers);
        let held: Vec<Vec<Place>> = (0..expected.len()).map(|n| grab(&places, &n.to_string())).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), expected, "{count} places, {callers} callers");
    }

    #[test]
    fn callers_who_act_together_leave_a_place_for_each_other_one() {
        check(32, 2, &[16, 16]);
        check(32, 3, &[16, 15, 1]);
        check(32, 4, &[16, 14, 1, 1]);
        // More callers than places: half of the places are for first calls.
        check(8, 100, &[4, 1, 1, 1, 1, 0]);
        check(1, 3, &[1, 0, 0]);
    }

    #[test]
    fn who_holds_least_is_served_first() {
        let places = Places::new(4, 3);
        let (mut of_a, of_b) = (grab(&places, "a"), grab(&places, "b"));
        assert_eq!((of_a.len(), of_b.len()), (2, 1));
        let of_c = now(&places, "c").unwrap();
        let (mut a, mut b, mut c) = (pin!(places.take("a")), pin!(places.take("b")), pin!(places.take("c")));
        assert!(poll(a.as_mut()).is_none() && poll(b.as_mut()).is_none() && poll(c.as_mut()).is_none());
        drop((of_b, of_c));
        let (_b, _c) = (poll(b.as_mut()).flatten().unwrap(), poll(c.as_mut()).flatten().unwrap());
        assert!(poll(a.as_mut()).is_none(), "it holds half already");
        of_a.pop();
        assert!(poll(a.as_mut()).flatten().is_some());
    }

    #[test]
    fn a_place_that_nobody_takes_any_more_goes_to_the_next() {
        let places = Places::new(1, 1);
        let held = now(&places, "a").unwrap();
        let (mut gone, mut next) = (Box::pin(places.take("a")), pin!(places.take("a")));
        assert!(poll(gone.as_mut()).is_none() && poll(next.as_mut()).is_none());
        drop(gone);
        drop(held);
        let got = poll(next.as_mut()).flatten().unwrap();
        // Given, and left before it was looked at.
        let mut late = Box::pin(places.take("a"));
        assert!(poll(late.as_mut()).is_none());
        drop(got);
        assert_eq!(places.held(), 1);
        let mut quiet = pin!(places.quiet());
        assert!(poll(quiet.as_mut()).is_none());
        drop(late);
        assert_eq!((places.held(), poll(quiet.as_mut())), (0, Some(())));
    }
}
