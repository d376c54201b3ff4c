//! Requests that come to nothing by a fault of their own: a schema they do not fit, a session that is not there, a token that is nobody's.
//! They cost no budget, so they are counted against an [`Allowance`]: it comes back with time and with every call that succeeds, and who
//! sends faults alone is told to come later. Knows no caller.

use crate::purse::{Purse, lock};
use crate::refusal::Refusal;
use std::sync::Mutex;
use std::time::Instant;
use traderharness_contract::FailureClass;

/// Whether it was refused for what the request is, and not for what the server has or does at the moment.
pub(crate) fn is_fault(refusal: &Refusal) -> bool {
    let of_the_request = matches!(
        refusal.class,
        FailureClass::InvalidInput
            | FailureClass::Forbidden
            | FailureClass::UnsupportedCapability
            | FailureClass::ToolRevisionConflict
            | FailureClass::IdempotencyConflict
    );
    // Whoever was told when to come again does as told.
    of_the_request && refusal.retry_after.is_none()
}

/// How many faults somebody may still make.
#[derive(Debug)]
pub(crate) struct Allowance(Mutex<Purse>);

impl Allowance {
    /// `most` faults at once, and so many more in a minute.
    pub(crate) fn new(most: u32, per_minute: u32) -> Self {
        Self(Mutex::new(Purse::full(most.into(), per_minute.into())))
    }

    /// A request came to nothing.
    pub(crate) fn fault(&self) {
        self.change(|available| available.saturating_sub(1));
    }

    /// A call succeeded: who is right as often as wrong is never held up.
    pub(crate) fn success(&self) {
        self.change(|available| available.saturating_add(1));
    }

    fn change(&self, to: impl FnOnce(u64) -> u64) {
        let mut purse = lock(&self.0);
        purse.refill(Instant::now());
        purse.available = to(purse.available).min(purse.most());
    }

    /// Whether another request is looked at.
    ///
    /// # Errors
    /// 429 with the seconds until it is.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let mut purse = lock(&self.0);
        purse.refill(Instant::now());
        if purse.available > 0 {
            return Ok(());
        }
        let message = "Too many requests came to nothing by their own fault; nothing is looked at until some time has passed.";
        let refusal = Refusal::new(FailureClass::BudgetExhausted, 429, "too_many_faults", message, true);
        Err(Refusal { retry_after: purse.wait(1), ..refusal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_alone_use_the_allowance_up_and_successes_bring_it_back() {
        let allowance = Allowance::new(3, 30);
        for _ in 0..3 {
            assert!(allowance.check().is_ok());
            allowance.fault();
        }
        let refused = allowance.check().unwrap_err();
        assert_eq!((refused.status, refused.code.as_str(), refused.retry_after), (429, "too_many_faults", Some(2)));
        assert!(!is_fault(&refused), "to be told so is no fault");
        allowance.success();
        assert!(allowance.check().is_ok());
        // No store of good deeds beyond the allowance.
        for _ in 0..100 {
            allowance.success();
        }
        for _ in 0..3 {
            allowance.fault();
        }
        assert!(allowance.check().is_err());
        for _ in 0..1_000 {
            allowance.fault();
            allowance.success();
        }
        assert!(allowance.check().is_ok());
    }

    #[test]
    fn only_what_the_request_is_to_blame_for_is_a_fault() {
        let check = |class: FailureClass, retry_after: Option<u32>, expected: bool| {
            let refusal = Refusal { retry_after, ..Refusal::new(class, 400, "x", "x", true) };
            assert_eq!(is_fault(&refusal), expected, "{class:?} {retry_after:?}");
        };
        check(FailureClass::InvalidInput, None, true);
        check(FailureClass::Forbidden, None, true);
        check(FailureClass::IdempotencyConflict, None, true);
        check(FailureClass::IdempotencyConflict, Some(1), false);
        check(FailureClass::BudgetExhausted, None, false);
        check(FailureClass::DependencyUnavailable, None, false);
        check(FailureClass::InsufficientEvidence, None, false);
    }
}
