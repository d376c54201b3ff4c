//! Calls that are wrong at random: fields dropped, renamed, retyped, blown up; texts cut anywhere. Never a panic, never `internal`, and
//! every failure keeps its promise.

use super::envelope::{Answer, failure, reads_strict};
use super::follow::ways;
use super::world::{DRY, FULL, HALTED_ALL_DAY, LOCKED_UP, PLAIN, ST, STAR, TODAY, free_card, send, visible};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use traderharness_harness::{Card, RawArguments, Session};
use traderharness_market::DecisionPoint;

/// One change of an arguments object.
#[derive(Debug, Clone)]
enum Change {
    Drop(Index),
    Rename(Index, String),
    Put(Index, Value),
    Add(String, Value),
    /// A value of the schema's own field that the example does not have.
    Field(Index, Value),
}

fn odd() -> impl Strategy<Value = Value> {
    let fixed = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(99),
        json!(130),
        json!(1_000_000_000),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5),
        json!(-0.0),
        json!(1e308),
        json!(1e-300),
        json!(""),
        json!(" "),
        json!("null"),
        json!("NaN"),
        json!("100"),
        json!("[]"),
        json!("{}"),
        json!("buy"),
        json!("sell"),
        json!("update"),
        json!("cancel"),
        json!("cond-0001"),
        json!("mem-0001"),
        json!("full"),
        json!("last_decision_point"),
        json!(LOCKED_UP),
        json!(DRY),
        json!(ST),
        json!(STAR),
        json!(HALTED_ALL_DAY),
        json!(100),
        json!(300),
        json!(10.0),
        json!(12.005),
        json!("600036.SH"),
        json!("\u{202e}\u{0}\u{1F4A5}"),
        json!("x".repeat(5_000)),
        json!("(?i).*[a"),
        json!([]),
        json!({}),
        json!(["a", "a"]),
        json!([1, null, {"a": [[[[[[]]]]]]}]),
        json!({ "decision": "trade" }),
    ];
    prop_oneof![
        proptest::sample::select(fixed.to_vec()),
        any::<i64>().prop_map(|n| json!(n)),
        any::<f64>().prop_map(|n| json!(n)),
        "\\PC{0,12}".prop_map(|text| json!(text)),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<Index>().prop_map(Change::Drop),
        (any::<Index>(), "[a-z_]{1,9}").prop_map(|(at, name)| Change::Rename(at, name)),
        (any::<Index>(), odd()).prop_map(|(at, value)| Change::Put(at, value)),
        ("\\PC{1,9}", odd()).prop_map(|(name, value)| Change::Add(name, value)),
        (any::<Index>(), odd()).prop_map(|(at, value)| Change::Field(at, value)),
        (any::<Index>(), odd()).prop_map(|(at, value)| Change::Field(at, value)),
    ]
}

impl Change {
    fn apply(&self, args: &mut Value, schema: &Value) {
        let fields: Vec<String> = schema["properties"].as_object().into_iter().flat_map(|p| p.keys().cloned()).collect();
        let Some(map) = args.as_object_mut() else { return };
        let keys: Vec<String> = map.keys().cloned().collect();
        let nth = |at: &Index, keys: &[String]| (!keys.is_empty()).then(|| keys[at.index(keys.len())].clone());
        match self {
            Self::Drop(at) => {
                nth(at, &keys).and_then(|key| map.shift_remove(&key));
            }
            Self::Rename(at, name) => {
                if let Some(value) = nth(at, &keys).and_then(|key| map.shift_remove(&key)) {
                    map.insert(name.clone(), value);
                }
            }
            Self::Put(at, value) => {
                if let Some(key) = nth(at, &keys) {
                    map.insert(key, value.clone());
                }
            }
            Self::Add(name, value) => {
                map.insert(name.clone(), value.clone());
            }
            Self::Field(at, value) => {
                if let Some(key) = nth(at, &fields) {
                    map.insert(key, value.clone());
                }
            }
        }
    }
}

/// Calls with more in them than the examples of their tools, so that a change of one field reaches what stands behind the schema.
fn rich() -> Vec<(&'static str, Value)> {
    let order = json!({ "action": "buy", "stock_code": PLAIN, "quantity": 100, "reasoning": "r" });
    let with = |more: Value| {
        let mut args = order.clone();
        args.as_object_mut().into_iter().for_each(|map| map.extend(more.as_object().cloned().unwrap_or_default()));
        args
    };
    let plan = json!({
        "behavior_hypothesis": "h", "confirmation_level": 9.9, "original_structural_stop": 9.5, "exit_condition": "e",
        "expected_holding_days": 5, "idempotency_key": "k"
    });
    let create = json!({ "operation": "create", "comparator": "price_gte", "trigger_price": 12.0, "expires_in_trading_days": 2 });
    let stop = json!({ "operation": "create", "action": "sell", "quantity": 0, "comparator": "price_lte", "trigger_price": 9.0, "protective": true });
    vec![
        ("place_order", order.clone()),
        ("place_order", with(plan)),
        ("place_order", with(json!({ "action": "sell", "quantity": 0 }))),
        ("manage_conditional_order", with(create)),
        ("manage_conditional_order", with(stop)),
        (
            "manage_conditional_order",
            json!({ "operation": "update", "order_id": "cond-0001", "trigger_price": 13.0, "reasoning": "r" }),
        ),
        ("manage_conditional_order", json!({ "operation": "cancel", "order_id": "cond-0001", "reasoning": "r" })),
        ("get_kline", json!({ "stock_code": PLAIN, "days": 5, "end_offset": 1, "detail": "full", "adjustment": "total_return" })),
        (
            "screen_stocks",
            json!({ "price_min": 1, "price_max": 50, "industry": ["Metals"], "sort_by": "volume", "exclude_st": true }),
        ),
        ("get_news", json!({ "keyword": "copper", "stock_code": PLAIN, "max_results": 2, "content_limit": 50 })),
        ("get_narrative_news", json!({ "keyword": "copper", "max_results": 2 })),
        ("get_announcements", json!({ "stock_code": PLAIN, "days": 9, "max_results": 1 })),
        ("get_sector_summary", json!({ "sector": "Metals" })),
        ("get_narrative_sector_summary", json!({ "sector": "Foo" })),
        ("remember", json!({ "content": "c", "memory_type": "hypothesis", "tags": ["tea"], "supersedes_id": "mem-0001" })),
        ("complete_phase", json!({ "decision": "ready", "summary": "s", "abandon_error_codes": ["invalid_lot"] })),
    ]
}

/// A wrong call: which tool, what is changed, and where its text is cut (`None` = sent as a value).
#[derive(Debug, Clone)]
struct Wrong {
    tool: Index,
    rich: bool,
    changes: Vec<Change>,
    cut: Option<Index>,
}

fn wrong() -> impl Strategy<Value = Wrong> {
    let cut = prop_oneof![4 => Just(None), 1 => any::<Index>().prop_map(Some)];
    let changes = prop::collection::vec(change(), 0..3);
    (any::<Index>(), any::<bool>(), changes, cut).prop_map(|(tool, rich, changes, cut)| Wrong { tool, rich, changes, cut })
}

fn check(session: &mut Session, wrong: &Wrong) {
    let offered: Vec<_> =
        session.offered().map(|t| (t.bound.spec().name, t.definition.example(), &t.definition.input_schema)).collect();
    let (tool, example, schema) = offered[wrong.tool.index(offered.len())];
    let (mut tool, mut args, mut schema) = (tool.to_owned(), example.clone(), schema.clone());
    if wrong.rich {
        let rich = rich();
        let (name, fuller) = &rich[wrong.tool.index(rich.len())];
        if let Some((_, _, own)) = offered.iter().find(|(offered, ..)| offered == name) {
            (tool, args, schema) = ((*name).to_owned(), fuller.clone(), (*own).clone());
        }
    }
    if args.get("stock_code").is_some() {
        args["stock_code"] = json!(PLAIN);
    }
    wrong.changes.iter().for_each(|change| change.apply(&mut args, &schema));
    visible(session, &mut args);
    session.begin_message();
    let answer = match &wrong.cut {
        None => {
            let report = session.call(&tool, RawArguments::Value(args.clone())).expect("a session that goes on");
            Answer { sent: args, report }
        }
        Some(at) => {
            let whole: Vec<char> = args.to_string().chars().collect();
            let text: String = whole[..at.index(whole.len() + 1)].iter().collect();
            let report = session.call(&tool, RawArguments::Text(&text)).expect("a session that goes on");
            let sent = match serde_json::from_str::<Value>(&text) {
                Ok(Value::Object(map)) if report.code != Some(traderharness_contract::ErrorCode::InvalidToolArgumentsJson) => {
                    Value::Object(map)
                }
                _ if text.is_empty() => json!({}),
                _ => json!(text.chars().take(500).collect::<String>()),
            };
            Answer { sent, report }
        }
    };
    let told = |what: &str| format!("{tool}({}): {what}: {}", answer.sent, answer.report.text);
    reads_strict(&answer.report.text, &told);
    if answer.report.envelope.is_success() {
        return;
    }
    failure(session, &tool, &answer);
    // What is named as a repair is at least a valid call, whatever else was wrong. Faults of the schema name fields, not calls.
    if answer.report.envelope.0["correction"].get("issues").is_none() && answer.sent.is_object() {
        for retry in ways(&answer.report.envelope.0, &answer.sent) {
            let bound = session.offered().find(|t| t.bound.spec().name == tool).expect("offered");
            let normal = bound.definition.normalise(retry.args.clone()).args;
            let checked = bound.definition.validate(&normal);
            assert!(checked.is_ok(), "{}", told(&format!("{} is offered and not valid: {checked:?}", retry.args)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("TRADERHARNESS_DEEP").is_some() { 3_000 } else { 160 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    // DESIGN rule 6; complaints AR-1, AR-2, AR-5, AR-6
    #[test]
    fn calls_that_are_wrong_at_random_are_answered_and_never_break(
        calls in prop::collection::vec(wrong(), 1..24),
        point in 0_usize..5,
        masked: bool,
        strict: bool,
    ) {
        let mut card = free_card();
        if strict {
            card = Card { require_structured_plan: true, minimum_holding_days: 2, max_positions: 1, participation_pct: 1.0, ..card };
            card = Card { max_active_memories: 1, one_fill_per_day: true, max_position_pct: 25.0, initial_cash: 1_500.0, ..card };
        }
        let mut session = FULL.open(&card, masked, TODAY, DecisionPoint::ALL[point]);
        for wrong in &calls {
            check(&mut session, wrong);
        }
    }
}

#[test]
fn every_tool_on_every_security_at_every_decision_point_keeps_the_promise() {
    let mut failures = 0;
    for masked in [false, true] {
        for point in DecisionPoint::ALL {
            let mut session = FULL.open(&free_card(), masked, TODAY, point);
            let tools: Vec<(String, Value)> = session
                .offered()
                .map(|t| (t.bound.spec().name.to_owned(), t.definition.example().clone()))
                .filter(|(name, _)| !["complete_phase", "finish_day"].contains(&name.as_str()))
                .collect();
            let order = session.mask().in_visible_order().to_vec();
            let codes: Vec<String> = order.iter().map(|sec| session.mask().code(*sec).to_owned()).collect();
            for (tool, example) in &tools {
                let of = |code: &String| {
                    let mut args = example.clone();
                    args["stock_code"] = json!(code);
                    args
                };
                let calls =
                    if example.get("stock_code").is_some() { codes.iter().map(of).collect() } else { vec![example.clone()] };
                for args in calls {
                    let answer = send(&mut session, tool, &args);
                    if !answer.report.envelope.is_success() {
                        failure(&session, tool, &answer);
                        failures += 1;
                    }
                }
            }
        }
    }
    assert!(failures > 100, "only {failures} of the calls failed");
}
