//! [`Turns`]: one clock for several agents. A day is played by one after the other, always in the same order, and the next day begins when
//! all have ended it. An agent that stops leaves and the others go on.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use traderharness_harness::run::{DayRecord, Observer};
use traderharness_harness::{CallReport, Session};

#[derive(Debug)]
struct State {
    /// Whose turn it is.
    at: usize,
    gone: Vec<bool>,
}

impl State {
    fn next(&mut self) {
        let agents = self.gone.len();
        let after = (1..=agents).map(|n| (self.at + n) % agents.max(1));
        self.at = after.into_iter().find(|n| !self.gone[*n]).unwrap_or(self.at);
    }
}

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

impl Turns {
    pub(super) fn new(agents: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { at: 0, gone: vec![false; agents] }), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for(&self, agent: usize) {
        let mut state = self.state();
        while state.at != agent {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pass(&self, agent: usize) {
        let mut state = self.state();
        if state.at == agent {
            state.next();
        }
        drop(state);
        self.changed.notify_all();
    }

    fn leave(&self, agent: usize) {
        let mut state = self.state();
        state.gone[agent] = true;
        if state.at == agent {
            state.next();
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// An agent's place among the others. Dropping it leaves.
#[derive(Debug)]
pub(super) struct Place {
    turns: Arc<Turns>,
    agent: usize,
}

impl Place {
    pub(super) const fn new(turns: Arc<Turns>, agent: usize) -> Self {
        Self { turns, agent }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.turns.leave(self.agent);
    }
}

/// Told of every day that ended: name, day from 1, days, total assets.
pub(super) type DayTold<'a> = &'a (dyn Fn(&str, u32, f64) + Sync);

/// Holds an agent until it is its turn.
pub(super) struct InTurn<'a> {
    pub(super) place: Place,
    pub(super) name: &'a str,
    pub(super) told: DayTold<'a>,
}

impl Observer for InTurn<'_> {
    fn day(&mut self, _: &Session) {
        self.place.turns.wait_for(self.place.agent);
    }

    fn call(&mut self, _: &Session, _: &CallReport) {}

    fn day_end(&mut self, _: &Session, record: &DayRecord) {
        (self.told)(self.name, record.day_index + 1, record.equity);
        self.place.turns.pass(self.place.agent);
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Turns};
    use std::sync::Mutex;

    /// Days of each agent, and the order in which all were played.
    fn played(days: &[usize]) -> Vec<(usize, usize)> {
        let turns = Turns::new(days.len());
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            // Started backwards: the order of starting decides nothing.
            for (agent, days) in days.iter().enumerate().rev() {
                let (place, order) = (Place::new(turns.clone(), agent), &order);
                scope.spawn(move || {
                    for day in 0..*days {
                        place.turns.wait_for(agent);
                        order.lock().unwrap().push((day, agent));
                        place.turns.pass(agent);
                    }
                });
            }
        });
        order.into_inner().unwrap()
    }

    #[test]
    fn days_are_played_in_order_and_agents_in_order_within_a_day() {
        let order = played(&[3, 3, 3]);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(order, sorted);
        assert_eq!(order.len(), 9);
    }

    #[test]
    fn whoever_leaves_holds_nobody() {
        let order = played(&[1, 0, 3]);
        assert_eq!(order.iter().filter(|(_, agent)| *agent == 2).count(), 3);
        assert_eq!(order.len(), 4);
    }
}
