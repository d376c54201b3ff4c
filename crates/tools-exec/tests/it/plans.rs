//! Structured plans and decision cards (engine E11).

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_market::DecisionPoint::{self, Open1, Open2, PreMarket};
use traderharness_market::testing::SmallMarket;
use traderharness_market::{Price, Shares};
use traderharness_tools_exec::decision_card::{CardRefusal, DecisionCard};
use traderharness_tools_exec::{Account, CardLimits, Control, evaluate};

fn planned() -> CardLimits {
    CardLimits { require_structured_plan: true, minimum_holding_days: 2, ..free() }
}

fn carded() -> CardLimits {
    CardLimits { require_decision_card: true, ..planned() }
}

fn order() -> Value {
    json!({
        "action": "buy", "stock_code": PLAIN, "quantity": 100, "reasoning": "r",
        "behavior_hypothesis": "h", "confirmation_level": 9.9, "original_structural_stop": 9.5,
        "exit_condition": "e", "expected_holding_days": 5
    })
}

fn card() -> Value {
    json!({
        "decision": "trade", "mode": "leader_attack", "entry_setup": "trend_continuation", "theme": "t", "theme_logic": "l",
        "text_evidence_ids": ["news-1"], "business_fit": "b", "business_fit_basis": "industry_proxy",
        "sector_state": "confirmed_leading", "sector_confirmation": "s", "candidate_role": "true_leader",
        "leadership_comparison": "c", "best_expression_reason": "r", "candidate_rank": "best_expression",
        "stronger_candidate_status": "none_identified", "execution_compromise": "none", "capacity_liquidity": "q",
        "price_volume_confirmation": "p", "market_stage": "confirmation", "extension_assessment": "acceptable",
        "counter_evidence": "x", "why_now": "w", "abstention_case": "a", "invalidation": "i"
    })
}

fn with(mut order: Value, changes: &[(&str, Value)]) -> Value {
    for (field, value) in changes {
        match field.strip_prefix("card.") {
            Some(field) => order["decision_card"][field] = value.clone(),
            None => order[*field] = value.clone(),
        }
    }
    order
}

fn send(
    world: &World,
    args: Value,
    limits: &CardLimits,
    date: &str,
    point: DecisionPoint,
    account: &mut Account,
) -> Result<Value, ToolFailure> {
    let before = account.clone();
    let result = call("place_order", args, world.view(date, point), account, limits, &mut Control::default());
    if result.is_err() {
        assert_eq!(*account, before, "a refusal changes nothing");
    }
    result
}

fn seen() -> Account {
    let mut account = rich();
    account.evidence.note_call("get_news", None, &json!({"items": [{"evidence_id": "news-1"}, {"evidence_id": "news-2"}]}));
    for tool in ["get_stock_info", "get_business_segments", "get_valuation", "get_kline", "get_stock_price"] {
        account.evidence.note_call(tool, Some(code(PLAIN)), &json!({"segments": []}));
    }
    account
}

fn refused(args: Value, limits: &CardLimits, account: &mut Account, expected: ErrorCode, fact: &str, accepted: Value) {
    let failure = send(&World::full(), args, limits, TODAY, Open1, account).unwrap_err();
    assert_eq!(failure.code, expected, "{}", failure.message);
    assert_eq!(failure.correction.get(fact).cloned().unwrap_or(Value::Null), accepted, "{:?}", failure.correction);
}

#[test]
fn opening_needs_every_plan_field() {
    // engine E11.1
    let plain = order_args("buy", PLAIN, 100);
    let all = json!([
        "behavior_hypothesis",
        "confirmation_level",
        "original_structural_stop",
        "exit_condition",
        "expected_holding_days"
    ]);
    let code = ErrorCode::StructuredPlanMissingFields;
    refused(plain, &planned(), &mut rich(), code, "place_at_order_top_level", all);
    let blank = with(order(), &[("exit_condition", json!("  "))]);
    refused(blank, &planned(), &mut rich(), code, "place_at_order_top_level", json!(["exit_condition"]));
}

#[test]
fn levels_must_agree_with_the_fill_price() {
    // engine E11.1; the fill price is 10.00
    let check = |changes: &[(&str, Value)], code, fact: &str, accepted| {
        refused(with(order(), changes), &planned(), &mut rich(), code, fact, accepted);
    };
    check(&[("original_structural_stop", json!(10.0))], ErrorCode::PlanLevelInvalid, "field", json!("original_structural_stop"));
    check(&[("original_structural_stop", json!(9.555))], ErrorCode::PlanLevelInvalid, "price", json!(10.0));
    check(&[("confirmation_level", json!(10.001))], ErrorCode::PlanLevelInvalid, "field", json!("confirmation_level"));
    check(&[("confirmation_level", json!(10.01))], ErrorCode::DecisionCardSemanticRejection, "confirmation_level", json!(10.01));
}

#[test]
fn market_refusals_come_before_the_paperwork() {
    // engine E3.1: plan and card are the last step
    let args = with(order_args("buy", PLAIN, 100), &[("stock_code", json!(LOCKED_UP))]);
    refused(args, &planned(), &mut rich(), ErrorCode::LimitUpLocked, "price", json!(11.0));
}

#[test]
fn a_planned_buy_creates_its_stop_and_holds_until_the_minimum() {
    // engine E11.1: stop at 9.50 from the next trading day; two sessions minimum
    let dip: Vec<f64> = (0..48).map(|i| if i < 6 { 9.8 } else { 9.4 }).collect();
    let stock = today_at(PLAIN, 10.0, &[10.0, 10.0, 10.0, 10.0, 9.4, 9.4]).minutes(NEXT, &dip).minutes("2024-03-12", &[9.8; 48]);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock));
    let mut account = rich();
    account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    let payload = send(&world, order(), &planned(), TODAY, Open1, &mut account).unwrap();
    assert_eq!(payload["protective_conditional_order_id"], "cond-0001");
    assert_eq!(evaluate(&world.view(TODAY, Open2), &mut account, &planned()), [], "9.40 today does not count");
    // Adding needs no paperwork (spec/tools.md b38).
    account.start_day(&world.view(NEXT, PreMarket)).unwrap();
    assert_eq!(evaluate(&world.view(NEXT, Open1), &mut account, &planned()), []);
    send(&world, order_args("buy", PLAIN, 100), &planned(), NEXT, Open1, &mut account).unwrap();
    let early = send(&world, order_args("sell", PLAIN, 100), &planned(), NEXT, Open1, &mut account).unwrap_err();
    assert_eq!((early.code, &early.correction["held_sessions"]), (ErrorCode::MinimumHolding, &json!(1)));
    let position = call(
        "get_position",
        json!({"stock_code": PLAIN}),
        world.view(NEXT, Open1),
        &mut account,
        &planned(),
        &mut Control::default(),
    )
    .unwrap();
    assert_eq!(position["position_plan"]["current_protective_stop"], 9.5);
    // At 9.40 the stop holds: it sells all that is sellable, and the minimum does not keep it.
    let outcomes = evaluate(&world.view(NEXT, DecisionPoint::Close1), &mut account, &planned());
    let fill = outcomes[0].result.as_ref().unwrap();
    assert_eq!((fill.price, fill.shares, fill.bar_end.to_string()), (Price(94_000), Shares(100), "10:05".to_owned()));
    // After the minimum, any price sells.
    send(&world, order_args("sell", PLAIN, 100), &planned(), "2024-03-12", Open1, &mut account).unwrap();
    assert_eq!(account.plan(code(PLAIN)), None);
}

#[test]
fn below_the_stop_before_the_minimum_only_everything_may_go() {
    let stock = today_at(PLAIN, 10.0, &[10.0; 48]).minutes(NEXT, &[9.4; 48]);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock));
    let mut account = rich();
    send(&world, with(order(), &[("quantity", json!(300))]), &planned(), TODAY, Open1, &mut account).unwrap();
    account.start_day(&world.view(NEXT, PreMarket)).unwrap();
    let part = send(&world, order_args("sell", PLAIN, 100), &planned(), NEXT, Open1, &mut account).unwrap_err();
    assert_eq!((part.code, part.retryable(), &part.correction["sellable"]), (ErrorCode::MinimumHolding, true, &json!(300)));
    send(&world, order_args("sell", PLAIN, 0), &planned(), NEXT, Open1, &mut account).unwrap();
}

#[test]
fn conditions_cannot_open_planned_positions() {
    // engine E5.8
    let world = World::full();
    let mut account = rich();
    let create = json!({"operation": "create", "reasoning": "r", "action": "buy", "stock_code": PLAIN, "quantity": 100,
                        "comparator": "price_gte", "trigger_price": 1});
    let view = world.view(TODAY, PreMarket);
    let failure = call("manage_conditional_order", create, view, &mut account, &planned(), &mut Control::default()).unwrap_err();
    assert_eq!((failure.code, failure.retryable()), (ErrorCode::ConditionalOrderCannotOpenPosition, false));
}

#[test]
fn a_grounded_card_opens_and_its_evidence_is_kept() {
    // engine E11.2, E11.4
    let mut account = seen();
    let args = with(order(), &[("decision_card", card())]);
    send(&World::full(), args, &carded(), TODAY, Open1, &mut account).unwrap();
    let plan = account.plan(code(PLAIN)).unwrap();
    assert_eq!(plan.evidence.len(), 5);
    assert_eq!(plan.decision_card.as_ref().unwrap().theme, "t");
}

#[test]
fn each_statement_of_the_card_must_support_the_trade() {
    // engine E11.3: not retryable, and the refusal names the field and what it would have to be
    let check = |changes: &[(&str, &str)], field: &str| {
        let changes: Vec<_> = changes.iter().map(|(f, v)| (*f, json!(v))).collect();
        let args = with(with(order(), &[("decision_card", card())]), &changes);
        let failure = send(&World::full(), args, &carded(), TODAY, Open1, &mut seen()).unwrap_err();
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::DecisionCardSemanticRejection, false));
        assert_eq!(failure.correction["field"], field, "{changes:?}");
    };
    check(&[("card.decision", "abstain")], "decision");
    check(&[("card.candidate_role", "rotation_core")], "candidate_role");
    check(&[("card.mode", "high_low_rotation")], "candidate_role");
    check(
        &[("card.mode", "high_low_rotation"), ("card.candidate_role", "rotation_core"), ("card.entry_setup", "leader_pullback")],
        "entry_setup",
    );
    check(&[("card.mode", "high_low_rotation"), ("card.candidate_role", "rotation_core")], "sector_state");
    check(&[("card.sector_state", "emerging_leading")], "sector_state");
    check(&[("card.sector_state", "unclear"), ("card.entry_setup", "low_base_ignition")], "sector_state");
    check(&[("card.extension_assessment", "overextended")], "extension_assessment");
    check(&[("card.candidate_rank", "unclear")], "candidate_rank");
    check(&[("card.stronger_candidate_status", "available")], "stronger_candidate_status");
    check(&[("card.execution_compromise", "weaker_substitute")], "execution_compromise");
    // What is accepted beside the base card.
    for changes in [
        vec![
            ("card.entry_setup", "low_base_ignition"),
            ("card.sector_state", "emerging_leading"),
            ("card.candidate_role", "emerging_leader"),
        ],
        vec![
            ("card.mode", "high_low_rotation"),
            ("card.candidate_role", "rotation_core"),
            ("card.sector_state", "confirmed_repricing"),
        ],
        vec![("card.extension_assessment", "managed_extension"), ("card.entry_setup", "leader_pullback")],
    ] {
        let changes: Vec<_> = changes.into_iter().map(|(f, v)| (f, json!(v))).collect();
        let args = with(with(order(), &[("decision_card", card())]), &changes);
        send(&World::full(), args, &carded(), TODAY, Open1, &mut seen()).unwrap();
    }
}

#[test]
fn the_table_of_statements_is_the_documented_one() {
    // engine E11.3, every combination
    let account = seen();
    let passes = |changes: &[(&str, &str)]| {
        let mut value = card();
        for (field, word) in changes {
            value[*field] = json!(word);
        }
        let card: DecisionCard = serde_json::from_value(value).unwrap();
        match card.check(code(PLAIN), &account.evidence) {
            Ok(()) => true,
            Err(CardRefusal::Semantic { field, accepted, .. }) => {
                assert!(!accepted.is_empty() && changes.iter().any(|(f, _)| *f == field), "{field} of {changes:?}");
                false
            }
            Err(other) => panic!("{other}"),
        }
    };
    let setups = ["low_base_ignition", "trend_continuation", "leader_pullback"];
    let sectors =
        ["emerging_leading", "confirmed_leading", "emerging_repricing", "confirmed_repricing", "single_stock_only", "unclear"];
    let roles = ["emerging_leader", "true_leader", "rotation_core", "follower", "unclear"];
    let mut accepted = Vec::new();
    for mode in ["leader_attack", "high_low_rotation"] {
        for setup in setups {
            for sector in sectors {
                for role in roles {
                    let words = [("mode", mode), ("entry_setup", setup), ("sector_state", sector), ("candidate_role", role)];
                    if passes(&words) {
                        accepted.push(format!("{mode} {setup} {sector} {role}"));
                    }
                }
            }
        }
    }
    let expected = [
        "leader_attack low_base_ignition emerging_leading emerging_leader",
        "leader_attack low_base_ignition emerging_leading true_leader",
        "leader_attack low_base_ignition confirmed_leading emerging_leader",
        "leader_attack low_base_ignition confirmed_leading true_leader",
        "leader_attack trend_continuation confirmed_leading emerging_leader",
        "leader_attack trend_continuation confirmed_leading true_leader",
        "leader_attack leader_pullback confirmed_leading emerging_leader",
        "leader_attack leader_pullback confirmed_leading true_leader",
        "high_low_rotation low_base_ignition emerging_repricing rotation_core",
        "high_low_rotation low_base_ignition confirmed_repricing rotation_core",
        "high_low_rotation trend_continuation confirmed_repricing rotation_core",
    ];
    assert_eq!(accepted, expected);
    let alone: [(&str, &[&str], &[&str]); 5] = [
        ("decision", &["trade"], &["abstain"]),
        ("extension_assessment", &["acceptable", "managed_extension"], &["overextended", "unclear"]),
        ("candidate_rank", &["best_expression"], &["weaker_alternative", "unclear"]),
        ("stronger_candidate_status", &["none_identified"], &["available", "unavailable"]),
        ("execution_compromise", &["none"], &["weaker_substitute", "unclear"]),
    ];
    for (field, good, bad) in alone {
        assert!(good.iter().all(|word| passes(&[(field, word)])), "{field}");
        assert!(!bad.iter().any(|word| passes(&[(field, word)])), "{field}");
    }
    // The stage of the move is stated and judged by nobody (engine E11.5).
    for stage in ["startup", "confirmation", "healthy_pullback", "acceleration", "climax", "distribution", "repricing"] {
        assert!(passes(&[("market_stage", stage)]), "{stage}");
    }
}

#[test]
fn a_card_must_be_complete_and_grounded_in_what_was_shown() {
    // engine E11.4
    let check = |account: &mut Account, changes: &[(&str, Value)], code, fact: &str, accepted| {
        let args = with(with(order(), &[("decision_card", card())]), changes);
        refused(args, &carded(), account, code, fact, accepted);
    };
    let blank = json!(" ");
    check(&mut seen(), &[("card.theme", blank)], ErrorCode::DecisionCardMissingFields, "missing_fields", json!(["theme"]));
    let unseen = [("card.text_evidence_ids", json!(["news-1", "news-9"]))];
    check(&mut seen(), &unseen, ErrorCode::DecisionCardUnseenEvidence, "invalid_evidence_ids", json!(["news-9"]));
    check(&mut seen(), &unseen, ErrorCode::DecisionCardUnseenEvidence, "available_evidence_ids", json!(["news-1", "news-2"]));
    let mut texts_only = rich();
    texts_only.evidence.note_texts(["news-1"]);
    texts_only.evidence.note_result("get_kline", code(PLAIN), json!({}));
    let missing = json!(["get_stock_info", "get_business_segments", "get_valuation", "get_stock_price"]);
    check(&mut texts_only, &[], ErrorCode::DecisionCardMissingToolEvidence, "missing_tools", missing);
    let direct = [("card.business_fit_basis", json!("direct_segments"))];
    check(&mut seen(), &direct, ErrorCode::DecisionCardUngroundedBusinessFit, "field", json!("business_fit_basis"));
    let told = [("card.business_fit_basis", json!("announcement"))];
    let code_told = ErrorCode::DecisionCardMissingAnnouncementEvidence;
    check(&mut seen(), &told, code_told, "missing_tools", json!(["get_announcement_evidence"]));
    let mut grounded = seen();
    grounded.evidence.note_result("get_business_segments", code(PLAIN), json!({"segments": [{"name": "Retail"}]}));
    let args = with(with(order(), &[("decision_card", card())]), &direct);
    send(&World::full(), args, &carded(), TODAY, Open1, &mut grounded).unwrap();
}

#[test]
fn a_card_that_is_not_there_names_all_its_fields() {
    let failure = send(&World::full(), order(), &carded(), TODAY, Open1, &mut seen()).unwrap_err();
    assert_eq!(failure.code, ErrorCode::DecisionCardMissingFields);
    assert_eq!(failure.correction["missing_fields"].as_array().unwrap().len(), 24);
    assert_eq!(failure.correction["retry_kind"], "decision_card_correction");
}
