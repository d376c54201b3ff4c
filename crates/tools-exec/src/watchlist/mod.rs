//! The agent's watchlist: which securities it wants to see together, why, and for how long. Beside the ledger, not in it: watching
//! moves no money, so a change here is no ledger event. Never orders anything by real code, and never hears of a day before it came.

pub mod add_watchlist;
pub mod get_watchlist;
pub(crate) mod quote;
pub mod remove_watchlist;

use crate::ledger::Ledger;
use crate::matching::sessions_held;
use traderharness_market::{Code, Day, View};

/// One watched security.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchEntry {
    /// Security.
    pub code: Code,
    /// Why, in the agent's own words; may be empty. Never masked and never unmasked.
    pub reason: String,
    /// Day it was added or added again.
    pub refreshed: Day,
    /// Trading days it lives after `refreshed`; `None` = no limit.
    pub lives: Option<u32>,
}

impl WatchEntry {
    /// Trading days left after today: the limit of the card on the day of adding, 0 on the last day. `None` without a limit. A held
    /// security stays at 0.
    pub fn days_left(&self, view: &View<'_>) -> Option<u32> {
        self.lives.map(|lives| lives.saturating_sub(sessions_held(view, self.refreshed)))
    }

    fn is_over(&self, view: &View<'_>) -> bool {
        self.lives.is_some_and(|lives| sessions_held(view, self.refreshed) > lives)
    }
}

/// Watched securities in the order in which they were first added; a change of day keeps that order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watchlist {
    entries: Vec<WatchEntry>,
}

impl Watchlist {
    /// Entries, first added first.
    pub fn entries(&self) -> &[WatchEntry] {
        &self.entries
    }

    /// Adds a security, or gives a watched one a new reason and a new life in its old place. True when it was not watched before.
    /// `ttl` is the card's limit in trading days; 0 = no limit.
    pub fn add(&mut self, code: Code, reason: String, today: Day, ttl: u32) -> bool {
        let entry = WatchEntry { code, reason, refreshed: today, lives: (ttl > 0).then_some(ttl) };
        match self.entries.iter_mut().find(|e| e.code == code) {
            Some(old) => {
                *old = entry;
                false
            }
            None => {
                self.entries.push(entry);
                true
            }
        }
    }

    /// Takes a security off; false when it was not watched.
    pub fn remove(&mut self, code: Code) -> bool {
        let before = self.entries.len();
        self.entries.retain(|e| e.code != code);
        self.entries.len() < before
    }

    /// Drops what has outlived its limit and is not held. Done once, when a trading day starts, so that an entry never vanishes
    /// inside a day; a held one goes on the first day after it was sold.
    pub fn start_day(&mut self, view: &View<'_>, ledger: &Ledger) {
        self.entries.retain(|e| !e.is_over(view) || ledger.position(e.code).is_some());
    }
}
