//! [`Journal`]: where the records of a session go. Nobody is answered before the record of it is kept.

use serde_json::Value;
use traderharness_replay::{Record, RecordingError, Trajectory};

/// Receives the records of a session in order, before anybody is answered. A record that cannot be kept stops the session.
pub trait Journal: Send {
    /// Keeps one record.
    ///
    /// # Errors
    /// When the record is not safely kept.
    fn append(&mut self, record: Record) -> Result<(), RecordingError>;

    /// What answered this call from outside the process when the run was recorded; `None` when there is no recording of it, so that
    /// the outside has to be asked.
    fn kept_external(&mut self, _call_id: &str, _tool: &str) -> Option<Value> {
        None
    }
}

/// Keeps nothing: for benches and for hosts that record elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn append(&mut self, _: Record) -> Result<(), RecordingError> {
        Ok(())
    }
}

impl Journal for Trajectory {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        Self::append(self, record).map(|_| ())
    }
}
