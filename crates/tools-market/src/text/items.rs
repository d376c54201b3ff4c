//! What text items share: evidence ids, order, and why a list is empty.

use schemars::JsonSchema;
use serde::Serialize;
use traderharness_market::store::{Announcement, NewsItem};
use traderharness_market::{Moment, View};

/// Why a list is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmptyReason {
    /// There is no item at all before now.
    NothingYet,
    /// There are older items, but none between `from` and `until`.
    NothingInWindow,
    /// There are items between `from` and `until`, but none that the filters let pass.
    NoMatch,
}

impl EmptyReason {
    /// The reason for a list of `found` items, or `None` when it is not empty.
    pub(super) fn of(found: usize, in_window: usize, visible: usize) -> Option<Self> {
        match (found, in_window, visible) {
            (0, 0, 0) => Some(Self::NothingYet),
            (0, 0, _) => Some(Self::NothingInWindow),
            (0, ..) => Some(Self::NoMatch),
            _ => None,
        }
    }
}

/// A text item: its time and an id made from its content.
pub(crate) trait Item {
    /// Publication time.
    fn time(&self) -> Moment;
    /// Id made from kind, code, source time and text: equal in every run over the same source, whatever the file order; keyed
    /// with the run's secret under a mask.
    fn evidence_id(&self, view: &View<'_>) -> String;
}

fn seconds(time: Moment) -> String {
    time.0.to_string()
}

impl Item for Announcement {
    fn time(&self) -> Moment {
        self.time
    }

    fn evidence_id(&self, view: &View<'_>) -> String {
        let parts = ["announcement", self.code.as_str(), &seconds(self.time), &self.kind, &self.title];
        format!("ann-{}", view.mask().evidence_digest(&parts))
    }
}

impl Item for NewsItem {
    fn time(&self) -> Moment {
        self.time
    }

    fn evidence_id(&self, view: &View<'_>) -> String {
        format!("news-{}", view.mask().evidence_digest(&["news", &seconds(self.time), &self.title, &self.content]))
    }
}

/// Turns items sorted by time, oldest first, into the order of every list: newest first, items of one second by descending evidence
/// id, that is (time, evidence id) read backwards (spec/tools.md b18). An id is only made where two items share a second.
pub(super) fn newest_first<T: Item>(view: &View<'_>, items: &mut [&T]) {
    items.reverse();
    for second in items.chunk_by_mut(|a, b| a.time() == b.time()) {
        if second.len() > 1 {
            second.sort_by_cached_key(|item| std::cmp::Reverse(item.evidence_id(view)));
        }
    }
}
