//! What a session keeps for its read tools between calls. Nothing here outlives the clock or day it was made at, and nothing here knows
//! more than the view showed then.

use traderharness_market::{Clock, Day, View};

/// State of a session's read tools.
#[derive(Debug, Default)]
pub struct MarketState {
    clock: Option<Clock>,
    day: Option<Day>,
}

impl MarketState {
    /// Drops what belongs to another clock or day. Every tool that reads the state calls this first.
    pub(crate) fn at(&mut self, view: &View<'_>) -> &mut Self {
        let clock = view.clock();
        if self.clock != Some(clock) {
            self.clock = Some(clock);
        }
        if self.day != Some(clock.day) {
            self.day = Some(clock.day);
        }
        self
    }
}
