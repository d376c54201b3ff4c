//! [`CancelToken`]: one flag that asks a run to end. Whoever holds a copy may set it (a signal, a door, a parent task); the loop, the
//! dispatcher and long calls look at it at safe points. It never takes back an effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to end. Copies share one flag; it is set once and never cleared.
///
/// The loop looks before each request, after each answer and between calls (engine E10.9). A call that outlasts its moment, in a
/// plug-in or in the sandbox, looks at the copy it was given.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag of every copy. True for the call that set it, false when it was set before.
    pub fn cancel(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
