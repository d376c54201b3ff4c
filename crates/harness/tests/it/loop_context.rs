//! The loop under a context policy: what a request shows, what is written before older messages leave it, and what stays whole.

use crate::fixture::{Memory, Setup, store, trading_days};
use crate::phases::{Model, calls, completes, says};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Mutex;
use traderharness_harness::Card;
use traderharness_harness::model::Turn;
use traderharness_harness::run::{RunSettings, Silent, play};
use traderharness_market::DecisionPoint;
use traderharness_replay::{Record, Request};

/// Every call of a request has one later result, and every result its call (complaint CX-2).
fn is_paired(request: &Request) -> bool {
    let mut open = BTreeSet::new();
    request.messages.iter().all(|message| {
        let fits = message.tool_call_id().is_none_or(|id| open.remove(id));
        open.extend(message.tool_calls().into_iter().map(|call| call.id));
        fits
    }) && open.is_empty()
}

// engine E10.10, E12.6
#[test]
fn older_messages_become_notes_after_the_hard_state_was_written() {
    let store = store();
    let memory = Memory::default();
    let card = Card { context_tokens: 2_500, ..Card::builtin() };
    let mut session = Setup { card, journal: Box::new(memory.clone()), ..Setup::default() }.session(&store);
    let seen: Mutex<Vec<(usize, usize)>> = Mutex::default();
    let mut n = 0;
    let mut model = Model(|request: &Request, turn: Turn| {
        seen.lock().unwrap().push((request.tools.len(), request.messages.len()));
        assert!(is_paired(request), "{:?}", request.messages);
        if request.tools.is_empty() {
            return says("## Goal\nTrade with care; 600001 was looked at.");
        }
        n += 1;
        let mut answer = match (turn.point, turn.iteration) {
            (DecisionPoint::PreMarket, 0) => calls(&[(
                "manage_conditional_order",
                json!({ "operation": "create", "action": "buy", "stock_code": "600001", "quantity": 100, "comparator": "price_lte", "trigger_price": 1.0, "reasoning": "cheap" }),
            )]),
            (_, 0..=5) => calls(&[("get_kline", json!({ "stock_code": "600001" })), ("get_portfolio", json!({}))]),
            _ => completes(turn.point),
        };
        // Ids are unique in a conversation.
        for call in answer.message.0["tool_calls"].as_array_mut().unwrap() {
            call["id"] = format!("{n}-{}", call["id"].as_str().unwrap()).into();
        }
        answer
    });
    let settings = RunSettings { model: "test".into(), ..RunSettings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = runtime.block_on(play(&mut session, &mut model, &trading_days(&store)[..1], &settings, &mut Silent));
    assert!(outcome.stopped.is_none(), "{:?}", outcome.stopped);
    let seen = seen.into_inner().unwrap();
    let notes = seen.iter().filter(|(tools, _)| *tools == 0).count();
    assert!(notes > 1, "{seen:?}");
    assert_eq!(outcome.summary.requests as usize, seen.len());
    // The view does not grow with the conversation: the whole one has more than 60 messages.
    assert!(seen.iter().map(|(_, messages)| *messages).max().unwrap() < 40, "{seen:?}");
    let records = memory.records.lock().unwrap();
    let handoffs: Vec<&str> = records
        .iter()
        .filter_map(|r| {
            if let Record::Brief { text, .. } = r { text.contains("600001 was looked at").then_some(text.as_str()) } else { None }
        })
        .collect();
    assert!(!handoffs.is_empty() && handoffs.iter().all(|text| text.contains("cond-0001")), "{handoffs:?}");
    let steps: Vec<usize> =
        records.iter().filter_map(|r| if let Record::ModelRequest { step, .. } = r { Some(*step) } else { None }).collect();
    assert_eq!(steps, (0..seen.len()).collect::<Vec<_>>());
}

// The day of a plan is shown as the mask shows it, its words as the agent wrote them (engine E8.5).
#[test]
fn the_hard_state_that_is_shown_has_no_real_day() {
    let card = Card { require_structured_plan: true, ..Card::builtin() };
    let mut session = Setup { card, masked: true, ..Setup::default() }.at(DecisionPoint::Open1);
    let security = session.view().find(traderharness_market::Code::parse("600001").unwrap()).unwrap();
    let alias = session.mask().code(security).to_owned();
    let order = json!({
        "action": "buy", "stock_code": alias, "quantity": 100, "reasoning": "r", "behavior_hypothesis": "600001 rises in 2024",
        "confirmation_level": 10.0, "original_structural_stop": 9.0, "exit_condition": "falls", "expected_holding_days": 5
    });
    let report = crate::fixture::call(&mut session, "place_order", order);
    assert!(report.envelope.is_success(), "{}", report.text);
    let state: serde_json::Value = serde_json::from_str(&session.hard_state_text()).unwrap();
    let plan = &state["position_plans"][alias.as_str()];
    assert_eq!((&plan["entry_date"], &plan["behavior_hypothesis"]), (&json!("D+0"), &json!("600001 rises in 2024")));
    assert_eq!(state["active_conditional_orders"][0]["stock_code"], json!(alias));
}
