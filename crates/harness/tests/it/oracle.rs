//! No call tells a masked agent whether a word of its own is a code, a name or a day of the run: two words that differ only in that
//! get the same answer at every place where an agent can write one.

use crate::fixture::{Setup, trading_days};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use traderharness_harness::toolbox::handlers;
use traderharness_harness::{Card, RawArguments, Session};
use traderharness_market::testing::{SmallMarket, SmallStock};
use traderharness_market::{DecisionPoint, Store};

/// A word that is known in the fixture, and one that looks the same and is not.
const PAIRS: [(&str, &str); 4] = [
    ("600001", "699991"),
    ("Harbour Tools", "Harbour Lools"),
    ("2024-04-09", "2034-04-09"),
    ("sh600001 of Harbour Tools on 2024-04-09", "sh699991 of Harbour Lools on 2034-04-09"),
];

fn store() -> Arc<Store> {
    let closes: Vec<f64> = (0..30).map(|i| 10.0 + f64::from(i % 5) / 20.0).collect();
    let mut stock = SmallStock::new("600001").name("Harbour Tools").industry("Tools-Hand").closes(&closes);
    stock = stock.announcement("2024-04-08 17:00", "Harbour Tools (600001) reports on 2024-04-09");
    let other = SmallStock::new("600002").name("Meadow Bank").industry("Banks-City").closes(&closes);
    // Its only bar is of the fixture's last day: at the clock it is not listed yet.
    let later = SmallStock::new("600003")
        .name("Later Mills")
        .industry("Later-Mills")
        .bar("2024-04-11", [9.0, 9.0, 9.0, 9.0, 100.0, 900.0]);
    let market = SmallMarket::new(crate::fixture::FIRST, 30).index(&closes).stock(stock).stock(other).stock(later);
    Arc::new(market.news("2024-04-08 17:30", "Harbour Tools", "600001 Harbour Tools, seen on 2024-04-09.").build())
}

fn session(store: &Arc<Store>, strict: bool) -> Session {
    let allowed_tools = handlers().iter().map(|b| b.spec().name.to_owned()).collect();
    let card = Card {
        id: "oracle".into(),
        allowed_tools,
        require_decision_card: strict,
        require_structured_plan: strict,
        require_phase_completion: true,
        ..Card::default()
    };
    let mut session = Setup { card, masked: true, ..Setup::default() }.session(store);
    session.start_day(trading_days(store)[0]).unwrap();
    while session.clock().point != DecisionPoint::Open1 {
        session.advance().unwrap();
    }
    session
}

/// `args` with each string in it, one at a time, replaced by `word`.
fn each_leaf(args: &Value, word: &str, out: &mut Vec<Value>) {
    fn walk(root: &Value, at: &Value, pointer: &str, word: &str, out: &mut Vec<Value>) {
        match at {
            Value::String(_) => {
                let mut changed = root.clone();
                *changed.pointer_mut(pointer).unwrap() = json!(word);
                out.push(changed);
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, v)| walk(root, v, &format!("{pointer}/{i}"), word, out));
            }
            Value::Object(map) => map.iter().for_each(|(k, v)| walk(root, v, &format!("{pointer}/{k}"), word, out)),
            _ => {}
        }
    }
    walk(args, args, "", word, out);
}

/// Every place an agent can write a word: tool names, field names, every field as text, list and number-like, broken JSON.
fn answers(store: &Arc<Store>, strict: bool, word: &str) -> Vec<(String, String)> {
    let mut session = session(store, strict);
    let visible = session.mask().code(session.view().find(traderharness_market::testing::code("600001")).unwrap()).to_owned();
    let tools: Vec<(String, Value, Map<String, Value>)> = session
        .offered()
        .map(|t| {
            let fields = t.definition.to_openai()["function"]["parameters"]["properties"].as_object().cloned();
            (t.bound.spec().name.to_owned(), t.definition.example().clone(), fields.unwrap_or_default())
        })
        .collect();
    let mut seen = Vec::new();
    let mut call = |tool: &str, raw: RawArguments<'_>| {
        session.begin_message();
        let asked = format!("{tool} {raw:?}");
        let report = session.call(tool, raw).unwrap();
        seen.push((asked.replace(word, "WORD"), report.text.replace(word, "WORD")));
    };
    call(word, RawArguments::Value(json!({})));
    for (tool, example, fields) in &tools {
        if tool == "complete_phase" || (strict && tool != "place_order") {
            continue;
        }
        let mut example = example.clone();
        if example.get("stock_code").is_some() {
            example["stock_code"] = json!(visible);
        }
        let mut tried = Vec::new();
        each_leaf(&example, word, &mut tried);
        for field in fields.keys().map(String::as_str).chain([word]) {
            for value in [json!(word), json!([word])] {
                let mut changed = example.clone();
                changed[field] = value;
                tried.push(changed);
            }
        }
        if strict && tool == "place_order" {
            let mut changed = example.clone();
            changed["decision_card"] = decision_card(word);
            let plan = json!({
                "behavior_hypothesis": "x", "confirmation_level": 1.0, "original_structural_stop": 1.0, "exit_condition": "x",
                "expected_holding_days": 3,
            });
            changed.as_object_mut().unwrap().extend(plan.as_object().unwrap().clone());
            tried.push(changed);
        }
        for args in tried {
            call(tool, RawArguments::Value(args));
        }
        call(tool, RawArguments::Text(&format!("{{\"stock_code\": {word}")));
    }
    call("complete_phase", RawArguments::Value(json!({ "decision": "monitor", "summary": word })));
    seen
}

fn decision_card(word: &str) -> Value {
    json!({
        "decision": "trade", "mode": "leader_attack", "entry_setup": "low_base_ignition", "theme": word, "theme_logic": "x",
        "text_evidence_ids": [word], "business_fit": "x", "business_fit_basis": "industry_proxy",
        "sector_state": "confirmed_leading", "sector_confirmation": "x", "candidate_role": "true_leader",
        "leadership_comparison": "x", "best_expression_reason": "x", "candidate_rank": "best_expression",
        "stronger_candidate_status": "none_identified", "execution_compromise": "none", "capacity_liquidity": "x",
        "price_volume_confirmation": "x", "market_stage": "startup", "extension_assessment": "acceptable",
        "counter_evidence": "x", "why_now": "x", "abstention_case": "x", "invalidation": "x",
    })
}

// engine E8.5
#[test]
fn a_word_of_the_agent_is_answered_the_same_whether_the_market_knows_it_or_not() {
    let store = store();
    for strict in [false, true] {
        for (known, unknown) in PAIRS {
            let (known, unknown) = (answers(&store, strict, known), answers(&store, strict, unknown));
            assert_eq!(known.len(), unknown.len());
            for ((asked, one), (_, two)) in known.iter().zip(&unknown) {
                assert_eq!(one, two, "{asked}");
            }
        }
    }
}

/// Every tool that takes a code, asked for `code`.
fn asked_for(store: &Arc<Store>, masked: bool, code: &str) -> Vec<String> {
    let allowed_tools = handlers().iter().map(|b| b.spec().name.to_owned()).collect();
    let card = Card { id: "oracle".into(), allowed_tools, require_phase_completion: true, ..Card::default() };
    let mut session = Setup { card, masked, ..Setup::default() }.session(store);
    let mut seen = Vec::new();
    session.start_day(trading_days(store)[0]).unwrap();
    loop {
        let tools: Vec<(String, Value)> = session
            .offered()
            .map(|t| (t.bound.spec().name.to_owned(), t.definition.example().clone()))
            .filter(|(_, example)| example.get("stock_code").is_some())
            .collect();
        for (tool, mut args) in tools {
            args["stock_code"] = json!(code);
            session.begin_message();
            let report = session.call(&tool, RawArguments::Value(args)).unwrap();
            assert!(report.code.is_some(), "{tool} answered for a security that is not listed yet");
            seen.push(report.text.replace(code, "CODE"));
        }
        if session.clock().point == DecisionPoint::Close2 {
            return seen;
        }
        session.advance().unwrap();
    }
}

// engine E2.1: the listing of tomorrow is after the clock too.
#[test]
fn a_security_that_is_not_listed_yet_is_as_unknown_as_one_that_does_not_exist() {
    let store = store();
    let day = trading_days(&store)[0];
    assert_eq!(asked_for(&store, false, "600003"), asked_for(&store, false, "699993"));
    let session = Setup { masked: true, ..Setup::default() }.session(&store);
    let later = session.mask().code(store.find(traderharness_market::testing::code("600003")).unwrap()).to_owned();
    assert!(day < store.calendar().days()[29]);
    assert_eq!(asked_for(&store, true, &later), asked_for(&store, true, "SHM-000777"));
    // Its bare number has no candidate either.
    assert_eq!(asked_for(&store, true, &later[4..]), asked_for(&store, true, "000777"));
}
