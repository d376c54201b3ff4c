//! Service budgets and calls at the same time (spec/seeds.md C7): what a call may cost is set aside before any work, the actual cost is
//! settled after it, and a reservation that is dropped (failure, cancel, panic) goes back whole. Concurrent calls cannot overspend:
//! looking and taking are one step.

use crate::config::{CallerConfig, Costs};
use crate::faults::Allowance;
use crate::purse::{Purse, lock};
use crate::refusal::Refusal;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use traderharness_contract::{Effect, FailureClass};

/// What a caller may use.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Option<(Costs, Mutex<Purse>)>,
    running: AtomicU32,
    most: u32,
    /// Open sessions at most.
    pub(crate) sessions: u32,
    /// Requests that come to nothing by a fault of their own.
    pub(crate) faults: Allowance,
}

/// The accounts of all callers.
#[derive(Debug)]
pub(crate) struct Accounts(BTreeMap<String, Arc<Account>>);

impl Accounts {
    /// `left` is what was kept of each budget; a caller that is not in it has all of its own.
    pub(crate) fn of(callers: &[CallerConfig], left: &BTreeMap<String, u64>) -> Self {
        let account = |caller: &CallerConfig| {
            let budget = caller.budget.as_ref().map(|budget| {
                let mut purse = Purse::full(budget.units, budget.refill_per_minute);
                purse.available = left.get(&caller.id).map_or(budget.units, |left| (*left).min(budget.units));
                (budget.costs, Mutex::new(purse))
            });
            let limits = caller.limits;
            Arc::new(Account {
                budget,
                running: AtomicU32::new(0),
                most: limits.concurrent_calls,
                sessions: limits.sessions,
                faults: Allowance::new(limits.faults, limits.faults_per_minute),
            })
        };
        Self(callers.iter().map(|caller| (caller.id.clone(), account(caller))).collect())
    }

    pub(crate) fn get(&self, caller: &str) -> Option<&Arc<Account>> {
        self.0.get(caller)
    }
}

const fn cost(costs: Costs, effect: Effect) -> u64 {
    match effect {
        Effect::Read => costs.read,
        Effect::Compute => costs.compute,
        Effect::Mutation => costs.mutation,
        Effect::Financial => costs.financial,
    }
}

impl Account {
    /// Sets aside what a call of this effect class may cost.
    ///
    /// # Errors
    /// `BUDGET_EXHAUSTED`, with the seconds to wait where units come back.
    pub(crate) fn reserve(self: &Arc<Self>, effect: Effect) -> Result<Reservation, Refusal> {
        let running = self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < self.most).then_some(n + 1));
        if running.is_err() {
            let message = format!("{} calls run already, which is the limit of this caller.", self.most);
            return Err(Refusal::new(FailureClass::BudgetExhausted, 429, "too_many_calls", message, true)
                .with("limit", self.most)
                .after(1));
        }
        // From here on the guard gives back the place.
        let reservation = Reservation { account: Arc::clone(self), units: AtomicU64::new(0), spent: AtomicU64::new(0) };
        if let Some((costs, purse)) = &self.budget {
            let units = cost(*costs, effect);
            let mut purse = lock(purse);
            purse.refill(Instant::now());
            if purse.available < units {
                let message = format!("The call costs {units} units and {} are left.", purse.available);
                let refusal = Refusal::new(FailureClass::BudgetExhausted, 429, "budget_exhausted", message, true)
                    .with("units", units)
                    .with("available", purse.available);
                return Err(Refusal { retry_after: purse.wait(units), ..refusal });
            }
            purse.available -= units;
            purse.reserved += units;
            reservation.units.store(units, Ordering::Release);
        }
        Ok(reservation)
    }

    /// What is left, reservations included; `None` without a budget.
    #[cfg(test)]
    fn available(&self) -> Option<u64> {
        self.budget.as_ref().map(|(_, purse)| lock(purse).available)
    }
}

/// Units set aside for a call, and its place among the calls that run. Dropped unsettled, all of it goes back.
#[derive(Debug)]
pub(crate) struct Reservation {
    account: Arc<Account>,
    /// 0 once it is settled.
    units: AtomicU64,
    /// What was settled.
    spent: AtomicU64,
}

impl Reservation {
    /// How many faults its caller may still make.
    pub(crate) fn faults(&self) -> &Allowance {
        &self.account.faults
    }

    /// What the call cost: everything for one that did something, nothing for one that failed.
    pub(crate) fn actual(&self, succeeded: bool) -> u64 {
        if succeeded { self.units.load(Ordering::Acquire) } else { 0 }
    }

    /// Settles the actual cost; the rest goes back. Gives what is left of the budget, other reservations not counted as spent; `None`
    /// without a budget. Called inside the transaction that keeps what is left, so that a later one never forgets an earlier cost.
    pub(crate) fn settle(&self, actual: u64) -> Option<u64> {
        let units = self.units.swap(0, Ordering::AcqRel);
        self.spent.store(actual.min(units), Ordering::Release);
        self.give_back(units, units.saturating_sub(actual));
        let (_, purse) = self.account.budget.as_ref()?;
        let purse = lock(purse);
        Some(purse.available.saturating_add(purse.reserved))
    }

    /// Gives back what was settled: the transaction was not kept.
    pub(crate) fn undo(&self) {
        self.give_back(0, self.spent.swap(0, Ordering::AcqRel));
    }

    fn give_back(&self, reserved: u64, units: u64) {
        if let Some((_, purse)) = &self.account.budget {
            let mut purse = lock(purse);
            purse.reserved = purse.reserved.saturating_sub(reserved);
            purse.available = purse.available.saturating_add(units);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let units = self.units.swap(0, Ordering::AcqRel);
        self.give_back(units, units);
        self.account.running.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BudgetConfig, CallerLimits};
    use std::time::Duration;

    fn account(units: u64, refill: u64, concurrent: u32) -> Arc<Account> {
        let caller = CallerConfig {
            id: "a".into(),
            budget: Some(BudgetConfig {
                units,
                refill_per_minute: refill,
                costs: Costs { read: 6, compute: 6, mutation: 0, financial: 100 },
            }),
            limits: CallerLimits { concurrent_calls: concurrent, ..CallerLimits::default() },
            ..CallerConfig::default()
        };
        Arc::clone(Accounts::of(&[caller], &BTreeMap::new()).get("a").unwrap())
    }

    // spec/seeds.md C7
    #[test]
    fn two_calls_cannot_spend_the_same_units() {
        let account = account(10, 0, 8);
        let results: Vec<_> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| account.reserve(Effect::Read))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1);
        let refused = results.iter().find_map(|r| r.as_ref().err()).unwrap();
        assert_eq!((refused.class, refused.status, refused.retry_after), (FailureClass::BudgetExhausted, 429, None));
        drop(results);
        assert_eq!(account.available(), Some(10));
    }

    #[test]
    fn what_is_not_settled_goes_back() {
        let account = account(10, 0, 8);
        let reserved = account.reserve(Effect::Read).unwrap();
        assert_eq!((reserved.settle(6), account.available()), (Some(4), Some(4)));
        drop(reserved);
        assert_eq!(account.available(), Some(4));
        account.reserve(Effect::Mutation).unwrap().settle(0);
        assert_eq!(account.available(), Some(4));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _kept = account.reserve(Effect::Mutation).unwrap();
            panic!("a handler broke off");
        }));
        assert!(panicked.is_err());
        assert_eq!(account.running.load(Ordering::Acquire), 0);
    }

    #[test]
    fn what_is_left_counts_every_cost_before_it_and_no_cost_that_was_not_kept() {
        let account = account(20, 0, 8);
        let (a, b, c) =
            (account.reserve(Effect::Read).unwrap(), account.reserve(Effect::Read).unwrap(), account.reserve(Effect::Read));
        let c = c.unwrap();
        assert_eq!(a.settle(6), Some(14), "the others are reserved, not spent");
        assert_eq!(b.settle(6), Some(8));
        b.undo();
        b.undo();
        assert_eq!(c.settle(0), Some(14));
        drop((a, b, c));
        assert_eq!(account.available(), Some(14));
    }

    #[test]
    fn only_so_many_calls_run_at_once() {
        let account = account(100, 0, 1);
        let first = account.reserve(Effect::Read).unwrap();
        let refused = account.reserve(Effect::Read).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.retry_after), ("too_many_calls", Some(1)));
        drop(first);
        assert!(account.reserve(Effect::Read).is_ok());
    }

    #[test]
    fn units_come_back_and_the_refusal_says_when() {
        let account = account(10, 30, 8);
        account.reserve(Effect::Read).unwrap().settle(6);
        let refused = account.reserve(Effect::Read).unwrap_err();
        assert_eq!(refused.retry_after, Some(4), "2 units are lacking and 30 come back in a minute");
        assert_eq!(account.reserve(Effect::Financial).unwrap_err().retry_after, None, "100 units never fit in 10");
        let (_, purse) = account.budget.as_ref().unwrap();
        let mut purse = lock(purse);
        let start = Instant::now();
        for millis in [1_000, 2_000, 3_000, 4_000] {
            purse.refill(start + Duration::from_millis(millis));
        }
        assert_eq!(purse.available, 6);
        purse.refill(start + Duration::from_secs(3_600));
        assert_eq!(purse.available, 10);
    }
}
