//! Running conditional orders over the bars that became visible (engine E5.1-E5.3).
#![deny(clippy::float_arithmetic)]

use super::{Attempt, Ended, Status};
use crate::account::{Account, CardLimits};
use crate::gate::{self, OrderGate};
use crate::order::{Fill, Order, Origin};
use crate::refusal::Refusal;
use crate::valuation::usable_price;
use traderharness_market::{Code, Minute, Price, View};

/// A condition that held, and what came of its order.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionOutcome {
    /// Id of the conditional order.
    pub order_id: String,
    /// Security.
    pub security: Code,
    /// End of the bar.
    pub bar_end: Minute,
    /// Close of the bar.
    pub price: Price,
    /// The fill, or why there is none. The order then stays active.
    pub result: Result<Fill, Refusal>,
}

/// Evaluates every active conditional order over the bars of today that became visible since it was made, changed or evaluated:
/// bar by bar in time order, orders of one bar in order of id. Call it when a decision point opens, before the agent sees it; the
/// midday bars are run when close_1 opens. A second call at the same clock finds nothing new.
///
/// A failed attempt leaves the order active and later bars are tried too (spec/tools.md b36). Outcomes that repeat an order's last
/// failure of the day are recorded with it and not reported again.
pub fn evaluate(view: &View<'_>, account: &mut Account, limits: &CardLimits) -> Vec<ConditionOutcome> {
    evaluate_through(view, account, limits, None)
}

/// As [`evaluate`], with every order going through the session's order gate, if it has one.
pub fn evaluate_through(
    view: &View<'_>,
    account: &mut Account,
    limits: &CardLimits,
    mut gate: Option<&mut OrderGate>,
) -> Vec<ConditionOutcome> {
    account.conditions.expire(view);
    let Some(until) = view.clock().point.visible_until() else { return vec![] };
    let today = view.today();
    let mut due: Vec<(Minute, u32, Price)> = Vec::new();
    for order in account.conditions.active() {
        let Some(sec) = view.find(order.security) else { continue };
        let bars = view.minutes_today(sec);
        let from = bars.minute.partition_point(|end| (today, *end) <= order.seen);
        for i in from..bars.len() {
            if let Some(price) = usable_price(bars.close[i])
                && order.comparator.holds(price, order.trigger)
            {
                due.push((bars.minute[i], order.number, price));
            }
        }
    }
    due.sort_unstable();
    let mut outcomes = Vec::new();
    for (bar_end, number, price) in due {
        // An earlier fill may have ended this order: its own, or one that closed the position.
        let Some(order) = account.conditions.orders.get(number as usize - 1).filter(|o| o.is_active()) else { continue };
        let (order_id, security) = (order.id(), order.security);
        let order = Order {
            security,
            side: order.side,
            shares: order.shares,
            reasoning: order.reasoning.clone(),
            idempotency_key: None,
            plan: None,
            origin: Origin::Condition { order_id: order_id.clone(), bar_end },
        };
        let result = gate::submit(order, view, account, limits, gate.as_deref_mut());
        let error = result.as_ref().err().map(Refusal::code);
        let order = &mut account.conditions.orders[number as usize - 1];
        let repeats = order.attempts.last_mut().filter(|a| a.day == today && a.error == error && error.is_some());
        if let Some(last) = repeats {
            last.bars += 1;
            continue;
        }
        order.attempts.push(Attempt { day: today, bar_end, price, error, bars: 1 });
        if result.is_ok() {
            order.status = Status::Triggered;
            order.ended = Some(Ended { day: today, bar_end: Some(bar_end), reasoning: String::new() });
        }
        outcomes.push(ConditionOutcome { order_id, security, bar_end, price, result });
    }
    for order in account.conditions.orders.iter_mut().filter(|o| o.is_active()) {
        order.seen = order.seen.max((today, until));
    }
    outcomes
}
