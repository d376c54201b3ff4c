//! Conditional orders.

use super::{Entry, Kind, gap};
use crate::differential::diff::Diff;
use crate::differential::names::is_not_ours;
use crate::differential::oracle::rounds_to;
use crate::differential::play::{Earlier, rows};
use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_market::Day;

const BOTH: &[&str] = &["manage_conditional_order", "list_conditional_orders"];
const LIST: &[&str] = &["list_conditional_orders"];
const MANAGE: &[&str] = &["manage_conditional_order"];

/// Innermost order object of a difference.
fn row(diff: &Diff) -> (&Value, &Value) {
    (&diff.their_row, &diff.our_row)
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "b21-conditions",
        tools: MANAGE,
        fields: &["outcome"],
        reason: "A condition is checked like an order when it is made: universe, lots, ST, a trigger on the tick.",
        covers: |case, diff| {
            let args = &case.played.args;
            let off_tick = args["trigger_price"].as_f64().is_some_and(|p| ((p * 100.0).round() - p * 100.0).abs() > 1e-6);
            diff.theirs == "success"
                && match diff.ours.as_str() {
                    Some("unknown_security") => !case.oracle.knows(case.code()),
                    Some("invalid_lot") => args["quantity"].as_f64().is_some_and(|q| q % 100.0 != 0.0),
                    Some("st_forbidden") => case.oracle.is_st(case.code(), case.played.clock.day),
                    Some("invalid_tool_arguments") => off_tick,
                    _ => false,
                }
        },
    },
    Entry {
        id: "b21-absent",
        tools: BOTH,
        fields: &["orders[]", "count", "outcome"],
        reason: "Follows from b21: an order that ours refused is not there, nor what was done to it.",
        covers: |case, diff| match diff.kind {
            Kind::Absent => diff.theirs["order_id"].as_str().is_some_and(is_not_ours),
            Kind::Outcome => {
                case.played.args["order_id"].as_str().is_some_and(is_not_ours) && diff.ours == "conditional_order_state_conflict"
            }
            // A count follows its list, whose rows are compared one by one.
            Kind::Value => {
                let counted = |v: &Value| v["count"].as_u64() == Some(rows(v, "orders").len() as u64);
                diff.field == "count" && counted(&case.played.ours) && counted(&case.played.theirs)
            }
            _ => false,
        },
    },
    Entry {
        id: "E5-one-account",
        tools: BOTH,
        fields: &["order.agent_id", "orders[].agent_id"],
        reason: "A session has one account, so orders carry no agent id.",
        covers: |_, diff| diff.kind == Kind::Absent,
    },
    Entry {
        id: "E5.2",
        tools: BOTH,
        fields: &[
            "order.not_before_day_index",
            "orders[].not_before_day_index",
            "order.active_after_minute",
            "orders[].active_after_minute",
        ],
        reason: "active_after_day and active_after_minute say from which bar on an order looks; theirs has a day index beside a minute.",
        covers: |_, diff| {
            let (theirs, ours) = row(diff);
            let delayed = theirs["not_before_day_index"].as_i64() > theirs["created_day_index"].as_i64();
            ours["active_after_day"].is_string() && (diff.kind == Kind::Absent || delayed && diff.ours == json!(1440))
        },
    },
    Entry {
        id: "E1-created-phase",
        tools: BOTH,
        fields: &["order.created_phase", "orders[].created_phase"],
        reason: "created_phase is a phase; the decision point of theirs is created_decision_point.",
        covers: |_, diff| row(diff).1["created_decision_point"] == diff.theirs,
    },
    Entry {
        id: "T3-changes",
        tools: BOTH,
        fields: &["order.revisions[].changes", "orders[].revisions[].changes"],
        reason: "Changes are a list of {field, from, to}, so that the output has a schema.",
        covers: |_, diff| {
            let listed = diff.ours.as_array().map_or(&[][..], Vec::as_slice);
            let same =
                |c: &Value| diff.theirs[c["field"].as_str().unwrap_or_default()] == json!({"from": c["from"], "to": c["to"]});
            !listed.is_empty() && listed.iter().all(same) && diff.theirs.as_object().is_some_and(|o| o.len() == listed.len())
        },
    },
    Entry {
        id: "T3-ended",
        tools: LIST,
        fields: &["orders[].triggered_day_index", "orders[].cancelled_day_index"],
        reason: "ended_day_index, whatever ended it.",
        covers: |_, diff| diff.kind == Kind::Absent && row(diff).1["ended_day_index"] == diff.theirs,
    },
    Entry {
        id: "T1-minute-bar",
        tools: LIST,
        fields: &["orders[].triggered_time", "orders[].attempts[].time"],
        reason: "Bar ends are HH:MM.",
        covers: |_, diff| diff.ours.as_str().zip(diff.theirs.as_str()).is_some_and(|(a, b)| b == format!("{a}:00")),
    },
    Entry {
        id: "E5.2-seen",
        tools: BOTH,
        fields: &["order.active_after_minute", "orders[].active_after_minute"],
        reason: "The bar after which an order looks moves on when its bars were evaluated; theirs keeps the one of the last change.",
        covers: |case, diff| {
            let minutes = [-1, 590, 600, 890, 900, 1440];
            let later = gap(diff).is_some_and(|g| g > 0.0) || row(diff).1["active_after_day"] != row(diff).1["created_day"];
            case.played.tool == "list_conditional_orders" && later && minutes.iter().any(|m| diff.ours == *m)
        },
    },
    Entry {
        id: "b36",
        tools: LIST,
        fields: &["orders[].attempts[]*"],
        reason: "After a failed attempt the later bars of the window are tried too. Equal outcomes of a day are one attempt with a number of bars.",
        covers: |case, diff| {
            // The innermost row may be an attempt; the order is the one that has it.
            let order =
                |v: &Value| rows(v, "orders").iter().find(|o| diff.path.contains(o["order_id"].as_str().unwrap_or("?"))).cloned();
            let (Some(ours), Some(theirs)) = (order(&case.played.ours), order(&case.played.theirs)) else { return false };
            let outcome = |a: &Value| (a["date"].clone(), a["success"].clone());
            let mut expected: Vec<(Value, Value)> = rows(&theirs, "attempts").iter().map(outcome).collect();
            expected.dedup();
            let found: Vec<(Value, Value)> = rows(&ours, "attempts").iter().map(outcome).collect();
            // Each attempt is a bar of the dataset, on the day that its index says.
            let code = ours["stock_code"].as_str().unwrap_or_default();
            let day = |shown: &Value| -> Option<Day> {
                let text = shown.as_str()?;
                match text.strip_prefix('D') {
                    Some(offset) => Some(case.played.clock.day.plus(offset.parse().ok()?)),
                    None => Day::parse(text).ok(),
                }
            };
            let calendar = &case.oracle.parts.calendar;
            let index = |d: Day| calendar.index_of(d).map(|i| i as i64);
            let bars = rows(&ours, "attempts").iter().all(|a| {
                let made = day(&ours["created_day"]).and_then(index).zip(ours["created_day_index"].as_i64());
                let tried = day(&a["date"]).and_then(index).zip(a["day_index"].as_i64());
                let close = day(&a["date"]).and_then(|d| case.oracle.bar_close(code, d, a["time"].as_str()?));
                made.zip(tried).is_some_and(|(m, t)| t.0 - m.0 == t.1 - m.1)
                    && close.is_some_and(|c| rounds_to(&a["price"], c, 2))
                    && a["bars"].as_u64() >= Some(1)
            });
            expected == found && bars
        },
    },
    Entry {
        id: "b20",
        tools: LIST,
        fields: &["orders[]", "orders[].status", "orders[].expires_in_trading_days"],
        reason: "N sessions are N with today, and an order that is over is shown so at once (engine E5.5).",
        covers: |_, diff| {
            let of = |v: &Value| v["status"] == "expired" || v["status"] == "active" && v["expires_in_trading_days"].is_number();
            match diff.kind {
                Kind::Extra => diff.ours["status"] == "expired" && diff.ours["expires_in_trading_days"].is_number(),
                Kind::Absent => of(&diff.theirs) && diff.theirs["expires_in_trading_days"].is_number(),
                _ => {
                    let (theirs, ours) = row(diff);
                    let (a, b) = (ours["expires_in_trading_days"].as_i64(), theirs["expires_in_trading_days"].as_i64());
                    let left = a.zip(b).is_some_and(|(a, b)| (a - b).abs() <= 1 && (a == 0) == (ours["status"] == "expired"));
                    left && of(ours) && of(theirs)
                }
            }
        },
    },
    Entry {
        id: "b21-update",
        tools: LIST,
        fields: &["orders[].quantity", "orders[].revisions[]"],
        reason: "Follows from b21: a change to 50 shares was refused.",
        covers: |_, diff| match diff.kind {
            Kind::Absent => diff.theirs["changes"]["quantity"]["to"].as_i64().is_some_and(|q| q % 100 != 0),
            _ => {
                let from = |r: &Value| r["changes"]["quantity"]["from"] == diff.ours;
                diff.theirs.as_i64().is_some_and(|q| q % 100 != 0) && rows(row(diff).0, "revisions").iter().any(from)
            }
        },
    },
    Entry {
        id: "E5.8",
        tools: MANAGE,
        fields: &["outcome"],
        reason: "A card with plans may add to a held position by condition; only opening one is refused (b38).",
        covers: |case, diff| {
            let bought =
                |e: &Arc<Earlier>| e.0 == "place_order" && e.3["success"] == json!(true) && e.1["stock_code"] == case.code();
            diff.theirs == "conditional_order_cannot_open_position"
                && diff.ours == "success"
                && case.played.earlier.iter().any(bought)
        },
    },
    Entry {
        id: "E5.4",
        tools: BOTH,
        fields: &["order.protective", "orders[].protective"],
        reason: "A stop is protective when the call says so; theirs makes every sell-all price_lte of a planned position protective.",
        covers: |_, diff| {
            let ours = row(diff).1;
            diff.ours == json!(false)
                && ours["side"] == "sell"
                && ours["quantity"] == json!(0)
                && ours["comparator"] == "price_lte"
        },
    },
    Entry {
        id: "E5.8-limits",
        tools: BOTH,
        fields: &["order.max_positions", "orders[].max_positions", "order.max_position_pct", "orders[].max_position_pct"],
        reason: "The limits of the card stand beside every order; theirs leaves them out of stops it made itself.",
        covers: |_, diff| diff.theirs.is_null() && diff.ours.is_number(),
    },
    Entry {
        id: "prose-reasons",
        tools: BOTH,
        fields: &["order.reasoning", "orders[].reasoning", "orders[].cancel_reasoning"],
        reason: "Reasons that the environment gives are our own words.",
        covers: |_, diff| diff.ours.as_str().is_some_and(|t| t.starts_with("The position") || t.starts_with("Protective stop")),
    },
    Entry {
        id: "b29-none-active",
        tools: MANAGE,
        fields: &["retryable"],
        reason: "Without an active order no id can be sent that would do, so there is nothing to try again.",
        covers: |case, diff| {
            let none = case.played.ours["correction"]["active_order_ids"] == json!([]);
            let made = |e: &&Arc<Earlier>| e.1["operation"] == json!("create") && e.3["success"] == json!(true);
            let gone = |e: &&Arc<Earlier>| e.1["operation"] == json!("cancel") && e.3["success"] == json!(true);
            let count = |what: &dyn Fn(&&Arc<Earlier>) -> bool| case.played.earlier.iter().filter(what).count();
            none && count(&made) <= count(&gone) && diff.theirs == json!(true) && diff.ours == json!(false)
        },
    },
    Entry {
        id: "b29-no-change",
        tools: MANAGE,
        fields: &["correction.required_tool"],
        reason: "A change that changes nothing needs no other tool; the order stands as asked.",
        covers: |case, diff| {
            let same =
                |e: &Arc<Earlier>| e.1["trigger_price"] == case.played.args["trigger_price"] && e.3["success"] == json!(true);
            diff.kind == Kind::Absent && case.played.earlier.iter().any(same)
        },
    },
];
