//! Trading days of a dataset.

use crate::Day;

/// Sorted trading days.
#[derive(Debug, Clone, Default)]
pub struct Calendar {
    days: Vec<Day>,
}

impl Calendar {
    /// A calendar of the given days; sorts and removes repeats.
    pub fn new(mut days: Vec<Day>) -> Self {
        days.sort_unstable();
        days.dedup();
        Self { days }
    }

    /// All trading days, oldest first. For the host that runs days; tools get a [`crate::View`], which does not offer it.
    pub fn days(&self) -> &[Day] {
        &self.days
    }

    /// Position of a trading day.
    pub fn index_of(&self, day: Day) -> Option<usize> {
        self.days.binary_search(&day).ok()
    }

    /// True for a trading day.
    pub fn contains(&self, day: Day) -> bool {
        self.index_of(day).is_some()
    }

    /// Number of trading days strictly before `day`.
    pub fn count_before(&self, day: Day) -> usize {
        self.days.partition_point(|d| *d < day)
    }

    /// Last trading day strictly before `day`.
    pub fn previous(&self, day: Day) -> Option<Day> {
        self.count_before(day).checked_sub(1).map(|i| self.days[i])
    }

    /// Trading days from `start` to `end`, both included.
    pub fn between(&self, start: Day, end: Day) -> &[Day] {
        let from = self.count_before(start);
        let to = self.days.partition_point(|d| *d <= end);
        &self.days[from..to.max(from)]
    }
}
