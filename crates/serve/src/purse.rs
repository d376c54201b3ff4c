//! [`Purse`]: something of which there is so much at most, and which comes back with time: units of a budget, faults that are forgiven.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What is left of something that comes back with time.
#[derive(Debug)]
pub(crate) struct Purse {
    /// Units at most.
    most: u64,
    /// Units that come back; 0 = none.
    per_minute: u64,
    pub(crate) available: u64,
    /// Set aside, and may come back.
    pub(crate) reserved: u64,
    /// Refill that is not a whole unit yet, in units times 60,000.
    part: u128,
    filled: Instant,
}

impl Purse {
    pub(crate) fn full(most: u64, per_minute: u64) -> Self {
        Self { most, per_minute, available: most, reserved: 0, part: 0, filled: Instant::now() }
    }

    pub(crate) const fn most(&self) -> u64 {
        self.most
    }

    /// Adds what came back since it was last looked at.
    pub(crate) fn refill(&mut self, now: Instant) {
        let millis = now.saturating_duration_since(self.filled).as_millis();
        self.filled = now;
        if self.per_minute == 0 {
            return;
        }
        let part = self.part + millis.saturating_mul(self.per_minute.into());
        let whole = u64::try_from(part / 60_000).unwrap_or(u64::MAX);
        self.part = part % 60_000;
        // What is set aside may come back, so a full purse is full with it.
        let room = self.most.saturating_sub(self.available).saturating_sub(self.reserved);
        self.available += whole.min(room);
    }

    /// Seconds until there are so many units; `None` when there never are.
    pub(crate) fn wait(&self, units: u64) -> Option<u32> {
        // What is more than the whole purse never fits.
        if self.per_minute == 0 || units > self.most {
            return None;
        }
        let lacking = units.saturating_sub(self.available);
        let seconds = (u128::from(lacking) * 60).div_ceil(u128::from(self.per_minute));
        Some(u32::try_from(seconds.max(1)).unwrap_or(u32::MAX))
    }
}

pub(crate) fn lock(purse: &Mutex<Purse>) -> MutexGuard<'_, Purse> {
    purse.lock().unwrap_or_else(PoisonError::into_inner)
}
