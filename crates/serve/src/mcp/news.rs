//! What happened in a session, for every client that listens to it. Holds no market value: clients are told that something changed and
//! read it themselves.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::broadcast;

/// News that wait for a slow listener; the oldest go first, and the listener then reads everything anew.
const MOST_WAITING: usize = 64;

/// Something changed in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    /// Connection whose call made the change; it was told already.
    pub(super) from: u64,
    /// The tools on offer, the brief and the state changed: the clock moved.
    pub(super) clock: bool,
    /// The account may have changed.
    pub(super) account: bool,
}

impl Change {
    /// What to read anew when news were missed.
    pub(super) const EVERYTHING: Self = Self { from: u64::MAX, clock: true, account: true };

    /// Resources that changed.
    pub(super) fn uris(self) -> impl Iterator<Item = &'static str> {
        let clock = [super::resources::BRIEF, super::resources::SESSION].into_iter().filter(move |_| self.clock);
        clock.chain([super::resources::ACCOUNT].into_iter().filter(move |_| self.clock || self.account))
    }
}

/// Who listens to which session.
#[derive(Debug, Default)]
pub(super) struct News(Mutex<BTreeMap<String, broadcast::Sender<Change>>>);

impl News {
    /// Hears what happens in a session from now on.
    pub(super) fn listen(&self, session: &str) -> broadcast::Receiver<Change> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, sender| sender.receiver_count() > 0);
        sessions.entry(session.to_owned()).or_insert_with(|| broadcast::channel(MOST_WAITING).0).subscribe()
    }

    /// Tells all who listen.
    pub(super) fn tell(&self, session: &str, change: Change) {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = sessions.get(session) {
            // Nobody listens any more: that is no fault.
            let _ = sender.send(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_reach_those_who_listen_to_that_session() {
        let news = News::default();
        let change = Change { from: 1, clock: true, account: false };
        news.tell("ses_a", change);
        let (mut a, mut b) = (news.listen("ses_a"), news.listen("ses_b"));
        news.tell("ses_a", change);
        assert_eq!(a.try_recv(), Ok(change));
        assert!(b.try_recv().is_err());
        drop((a, b));
        drop(news.listen("ses_c"));
        assert_eq!(news.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_moved_clock_changes_brief_session_and_account() {
        let uris = |clock, account| Change { from: 0, clock, account }.uris().collect::<Vec<_>>();
        assert_eq!(uris(false, true), ["traderharness://account"]);
        assert_eq!(uris(true, false), ["traderharness://brief", "traderharness://session", "traderharness://account"]);
        assert_eq!(uris(false, false), Vec::<&str>::new());
    }
}
