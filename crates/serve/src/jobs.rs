//! Jobs: calls that may outlast the patience of a client (complaint RG-3). A bounded pool works on them; a call that is ready in time is
//! answered as any other, and one that is not is answered with an id to ask by. What runs when the process ends has no effect.

use crate::admission::Ticket;
use crate::house::House;
use crate::refusal::Refusal;
use crate::reply::Reply;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use traderharness_contract::FailureClass;
use traderharness_harness::CancelToken;

/// How a job stands for the one who waits for it.
#[derive(Debug)]
pub(crate) enum Wait {
    /// Somebody waits for the result.
    Pending,
    /// The one who waited was told that it goes on.
    Told,
    /// It is done; the result, until the one who waits takes it.
    Done(Option<Box<Result<Reply, Refusal>>>),
}

/// Where a result is left for the one who waits.
#[derive(Debug)]
pub(crate) struct Finish {
    state: Mutex<Wait>,
    changed: Condvar,
}

impl Finish {
    /// Held while the end of a job is kept, so that nobody is told meanwhile that it goes on.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Wait> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn done(&self, mut state: MutexGuard<'_, Wait>, result: Result<Reply, Refusal>) {
        let waits = matches!(*state, Wait::Pending);
        *state = Wait::Done(waits.then(|| Box::new(result)));
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the end; `None` when it did not come in time, and the caller is told so from then on.
    pub(crate) fn wait(&self, patience: Duration, tick: &dyn Fn(u64)) -> Option<Result<Reply, Refusal>> {
        let start = Instant::now();
        let mut state = self.lock();
        let mut seconds = 0;
        loop {
            if let Wait::Done(result) = &mut *state {
                return result.take().map(|result| *result);
            }
            let waited = start.elapsed();
            let Some(left) = patience.checked_sub(waited).filter(|left| !left.is_zero()) else {
                *state = Wait::Told;
                return None;
            };
            let slice = left.min(Duration::from_secs(1));
            state = self.changed.wait_timeout(state, slice).unwrap_or_else(PoisonError::into_inner).0;
            if start.elapsed().as_secs() > seconds {
                seconds = start.elapsed().as_secs();
                tick(seconds);
            }
        }
    }
}

/// A job on its way.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) id: String,
    pub(crate) ticket: Box<Ticket>,
    pub(crate) cancel: CancelToken,
    pub(crate) finish: Arc<Finish>,
}

#[derive(Debug)]
struct Active {
    cancel: CancelToken,
    running: bool,
    caller: String,
    session: String,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Work>,
    active: BTreeMap<String, Active>,
    closed: bool,
}

impl Queue {
    /// The oldest job of the caller of whom the fewest run, those last whose session is busy: it would only wait there. Callers who hand
    /// in many long jobs keep the others waiting for a free worker, never for the end of their own line.
    fn fairest(&mut self) -> Option<Work> {
        let place =
            self.next_of(self.waiting.iter().map(|work| (work.ticket.caller.id.as_str(), work.ticket.hosted.id.as_str())))?;
        self.waiting.remove(place)
    }

    fn next_of<'w>(&self, waiting: impl Iterator<Item = (&'w str, &'w str)>) -> Option<usize> {
        let running = || self.active.values().filter(|active| active.running);
        let weight = |(caller, session): (&str, &str)| {
            (running().any(|active| active.session == session), running().filter(|active| active.caller == caller).count())
        };
        waiting.map(weight).enumerate().min_by_key(|(_, weight)| *weight).map(|(place, _)| place)
    }
}

/// The pool.
#[derive(Debug)]
pub(crate) struct Jobs {
    queue: Mutex<Queue>,
    ready: Condvar,
    most: usize,
}

impl Jobs {
    pub(crate) fn new(most_waiting: u32) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::default(), ready: Condvar::new(), most: most_waiting as usize })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the workers of a house. They end with it.
    pub(crate) fn work_for(self: &Arc<Self>, house: &Weak<House>, workers: u32) -> std::io::Result<()> {
        for number in 0..workers {
            let (jobs, house) = (Arc::clone(self), Weak::clone(house));
            std::thread::Builder::new().name(format!("job-{number}")).spawn(move || {
                while let Some(work) = jobs.next() {
                    let id = work.id.clone();
                    match house.upgrade() {
                        Some(house) => house.run_job(work),
                        None => return,
                    }
                    jobs.lock().active.remove(&id);
                }
            })?;
        }
        Ok(())
    }

    fn next(&self) -> Option<Work> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(work) = queue.fairest() {
                if let Some(active) = queue.active.get_mut(&work.id) {
                    active.running = true;
                }
                return Some(work);
            }
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Refuses when the pool is full. Between this and [`Jobs::submit`] others may come in; the bound is one of order, not exact.
    pub(crate) fn room(&self) -> Result<(), Refusal> {
        let waiting = self.lock().waiting.len();
        if waiting < self.most {
            return Ok(());
        }
        let message = format!("{waiting} jobs wait already.");
        Err(Refusal::new(FailureClass::BudgetExhausted, 429, "too_many_jobs", message, true).with("limit", self.most).after(5))
    }

    /// Hands a job that is kept to the workers; gives where its result will be left if somebody `waits` for it.
    pub(crate) fn submit(&self, id: String, ticket: Box<Ticket>, cancel: CancelToken, waits: bool) -> Arc<Finish> {
        let state = if waits { Wait::Pending } else { Wait::Told };
        let finish = Arc::new(Finish { state: Mutex::new(state), changed: Condvar::new() });
        let mut queue = self.lock();
        let (caller, session) = (ticket.caller.id.clone(), ticket.hosted.id.clone());
        queue.active.insert(id.clone(), Active { cancel: cancel.clone(), running: false, caller, session });
        queue.waiting.push_back(Work { id, ticket, cancel, finish: Arc::clone(&finish) });
        drop(queue);
        self.ready.notify_one();
        finish
    }

    /// Asks a job to end. One that still waits is given back, to be settled by who asked.
    pub(crate) fn cancel(&self, id: &str) -> Option<Work> {
        let mut queue = self.lock();
        queue.active.get(id)?.cancel.cancel();
        let place = queue.waiting.iter().position(|work| work.id == id)?;
        queue.active.remove(id);
        queue.waiting.remove(place)
    }

    /// Whether a job is being worked on.
    pub(crate) fn is_running(&self, id: &str) -> bool {
        self.lock().active.get(id).is_some_and(|active| active.running)
    }

    /// Jobs that run and that wait.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let queue = self.lock();
        (queue.active.values().filter(|a| a.running).count() as u64, queue.waiting.len() as u64)
    }

    /// Takes no more work and asks what runs to end.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        for active in queue.active.values() {
            active.cancel.cancel();
        }
        // What waits is dropped with its reservations; the keep says that it was interrupted when it is opened again.
        let dropped = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(dropped);
        self.ready.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(running: &[(&str, &str)], waiting: &[(&str, &str)], expected: Option<usize>) {
        let mut queue = Queue::default();
        for (n, (caller, session)) in running.iter().enumerate() {
            let active = Active {
                cancel: CancelToken::new(),
                running: true,
                caller: (*caller).to_owned(),
                session: (*session).to_owned(),
            };
            queue.active.insert(n.to_string(), active);
        }
        assert_eq!(queue.next_of(waiting.iter().copied()), expected, "{running:?} {waiting:?}");
    }

    #[test]
    fn the_caller_of_whom_fewest_run_comes_first() {
        check(&[], &[], None);
        check(&[], &[("a", "1"), ("b", "2")], Some(0));
        check(&[("a", "1")], &[("a", "2"), ("a", "3"), ("b", "4")], Some(2));
        check(&[("a", "1"), ("b", "2")], &[("a", "3"), ("b", "4")], Some(0));
    }

    #[test]
    fn a_job_of_a_busy_session_does_not_take_a_worker_from_one_that_can_run() {
        check(&[("a", "1")], &[("a", "1"), ("a", "2")], Some(1));
        check(&[("a", "1")], &[("a", "1")], Some(0));
    }
}
