//! [`Progress`]: what a client is doing, for a person who waits. It is told and forgotten: no record and no answer depends on it.

use std::sync::Arc;
use std::time::Duration;
use traderharness_harness::client_fault::ClientFault;

/// One moment of a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A request goes out.
    Asking {
        /// 1 for the first attempt.
        attempt: u32,
    },
    /// Bytes of an answer came.
    Receiving {
        /// Bytes of this answer so far.
        bytes: u64,
    },
    /// An attempt failed and another one follows after a pause.
    Waiting {
        /// The attempt that failed.
        attempt: u32,
        /// Most attempts.
        of: u32,
        /// Until the next one.
        pause: Duration,
        /// What went wrong, without keys.
        why: &'a ClientFault,
    },
    /// The agent's process says something to the person.
    Note {
        /// One bounded line.
        text: &'a str,
    },
}

/// Who is told.
pub type Watcher = Arc<dyn Fn(&Progress<'_>) + Send + Sync>;

/// Tells nobody.
pub fn unwatched() -> Watcher {
    Arc::new(|_| {})
}
