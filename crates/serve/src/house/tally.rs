//! Lines of the audit log that stand for many: what was refused before it did anything, and what was answered again. Neither costs its
//! caller anything, so they are counted here and kept once in a while, one line for each caller, capability, session and class.

use crate::keep::{AuditRow, Keep, KeepError, answers};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kinds that are told apart at most; what comes beyond them is counted without its session.
const MOST: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    /// Empty for nobody's.
    caller: String,
    capability: String,
    session: Option<String>,
    class: &'static str,
}

/// What is counted and not kept yet.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<BTreeMap<Kind, u64>>);

impl Tally {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Kind, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self, caller: &str, capability: &str, session: Option<&str>, class: &'static str) {
        let mut counts = self.lock();
        let session = session.filter(|_| counts.len() < MOST).map(str::to_owned);
        let kind = Kind { caller: caller.to_owned(), capability: capability.to_owned(), session, class };
        *counts.entry(kind).or_default() += 1;
    }

    /// Keeps what was counted. What cannot be kept is counted on.
    pub(super) fn flush(&self, keep: &Keep) -> Result<(), KeepError> {
        let counted = std::mem::take(&mut *self.lock());
        if counted.is_empty() {
            return Ok(());
        }
        let kept = keep.together(|t| {
            for (kind, count) in &counted {
                let row = AuditRow {
                    caller: &kind.caller,
                    capability: &kind.capability,
                    session: kind.session.as_deref(),
                    key_digest: None,
                    class: kind.class,
                    units: 0,
                    count: *count,
                };
                answers::audit(t, &row)?;
            }
            Ok(())
        });
        if kept.is_err() {
            let mut counts = self.lock();
            for (kind, count) in counted {
                *counts.entry(kind).or_default() += count;
            }
        }
        kept
    }
}
