//! The account's hard state as an environment record: plans of held positions and active conditional orders (engine E12.6). What an
//! agent must not lose when its context is cut, in visible codes and real days; tools never show it.

use crate::Account;
use crate::tools::shown;
use serde_json::{Map, Value, json};
use traderharness_market::{Code, View};

/// The hard state as compact JSON. Positions come in the order in which they were opened, orders by id.
pub fn hard_state(account: &Account, view: &View<'_>) -> String {
    let visible = |code: Code| view.find(code).map_or("", |sec| view.mask().code(sec)).to_owned();
    let mut plans = Map::new();
    for held in account.ledger.positions() {
        let Some(plan) = account.plan(held.code) else { continue };
        let words = json!({
            "behavior_hypothesis": plan.behavior_hypothesis,
            "confirmation_level": shown::price(plan.confirmation_level),
            "original_structural_stop": shown::price(plan.original_structural_stop),
            "exit_condition": plan.exit_condition,
            "expected_holding_days": plan.expected_holding_days,
            "minimum_holding_days": plan.minimum_holding_days,
            "entry_price": shown::price(plan.entry_price),
            "entry_date": plan.entry_day.to_string(),
            "conditional_order_id": plan.protective_order_id,
        });
        plans.insert(visible(held.code), words);
    }
    let orders: Vec<Value> = account
        .conditions()
        .active()
        .map(|order| {
            json!({
                "order_id": order.id(),
                "stock_code": visible(order.security),
                "action": order.side.as_str(),
                "quantity": order.shares.0,
                "trigger_type": order.comparator.as_str(),
                "trigger_price": shown::price(order.trigger),
                "protective": order.protective,
                "reasoning": order.reasoning,
                "expires_in_trading_days": order.days_left(view),
            })
        })
        .collect();
    json!({ "active_conditional_orders": orders, "position_plans": plans }).to_string()
}
