//! The account tools as a dispatcher calls them: validated arguments, results that fit their output schema.

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, Policy};
use traderharness_market::DecisionPoint::{self, Open1, Open2, PreMarket};
use traderharness_tools_exec::{Account, CardLimits, Control};

fn run(world: &World, tool: &str, args: Value, date: &str, point: DecisionPoint, account: &mut Account) -> Value {
    call(tool, args, world.view(date, point), account, &free(), &mut Control::default()).unwrap()
}

#[test]
fn a_day_of_calls_reads_as_reviewed() {
    let world = World::full();
    let mut account = rich();
    let mut text = String::new();
    let mut show = |title: &str, value: &Value| {
        text.push_str(&format!("# {title}\n{}\n", serde_json::to_string_pretty(value).unwrap()));
    };
    show("empty portfolio", &run(&world, "get_portfolio", json!({}), TODAY, PreMarket, &mut account));
    show("buy", &run(&world, "place_order", order_args("buy", PLAIN, 1_000), TODAY, Open1, &mut account));
    show("position", &run(&world, "get_position", json!({"stock_code": PLAIN}), TODAY, Open2, &mut account));
    account.start_day(&world.view(NEXT, PreMarket)).unwrap();
    show("sell", &run(&world, "place_order", order_args("sell", PLAIN, 400), NEXT, Open1, &mut account));
    show("portfolio", &run(&world, "get_portfolio", json!({}), NEXT, Open2, &mut account));
    insta::assert_snapshot!(text);
}

#[test]
fn texts_of_an_order_have_a_largest_length() {
    let policy = Policy { require_structured_plan: true, ..Policy::default() };
    let mut plan = order_args("buy", PLAIN, 100);
    for (field, value) in [("behavior_hypothesis", json!("b")), ("exit_condition", json!("e")), ("stock_name", json!("n"))] {
        plan[field] = value;
    }
    plan["confirmation_level"] = json!(10.0);
    plan["original_structural_stop"] = json!(9.5);
    plan["expected_holding_days"] = json!(5);
    for contract in [definition("place_order", &Policy::default()), definition("place_order", &policy)] {
        for (field, most) in [("reasoning", 2_000), ("stock_name", 80), ("behavior_hypothesis", 1_000), ("exit_condition", 1_000)]
        {
            let with = |n: usize| {
                let mut args = plan.clone();
                args[field] = json!("文".repeat(n));
                contract.validate(&args).is_ok()
            };
            assert_eq!((with(most), with(most + 1)), (true, false), "{field}");
        }
    }
}

#[test]
fn without_an_active_condition_no_id_can_be_sent() {
    let world = World::full();
    let mut account = rich();
    let mut send = |args: Value| {
        call("manage_conditional_order", args, world.view(TODAY, Open1), &mut account, &free(), &mut Control::default())
    };
    let cancel = json!({"operation": "cancel", "order_id": "cond-0001", "reasoning": "r"});
    let update = json!({"operation": "update", "order_id": "cond-0001", "trigger_price": 9.0, "reasoning": "r"});
    for args in [&cancel, &update] {
        let failure = send(args.clone()).unwrap_err();
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::ConditionalOrderStateConflict, false));
        assert_eq!(failure.message, "No conditional order is active.");
        assert_eq!(failure.correction["active_order_ids"], json!([]));
    }
    send(json!({"operation": "create", "action": "buy", "stock_code": PLAIN, "quantity": 100, "comparator": "price_lte",
                "trigger_price": 5.0, "reasoning": "r"}))
    .unwrap();
    let other = json!({"operation": "cancel", "order_id": "cond-0009", "reasoning": "r"});
    let failure = send(other).unwrap_err();
    assert_eq!((failure.retryable(), &failure.correction["active_order_ids"]), (true, &json!(["cond-0001"])));
}

#[test]
fn positions_come_in_purchase_order() {
    let world = World::full();
    let mut account = rich();
    for code in [OTHER, CHEAP, PLAIN] {
        run(&world, "place_order", order_args("buy", code, 100), TODAY, Open1, &mut account);
    }
    let portfolio = run(&world, "get_portfolio", json!({}), TODAY, Open1, &mut account);
    let codes: Vec<_> = portfolio["positions"].as_array().unwrap().iter().map(|p| p["stock_code"].as_str().unwrap()).collect();
    assert_eq!(codes, [OTHER, CHEAP, PLAIN]);
}

#[test]
fn a_position_that_is_not_held_or_not_known_is_told_apart() {
    let world = World::full();
    let ask = |code: &str| {
        let args = json!({"stock_code": code});
        call("get_position", args, world.view(TODAY, Open1), &mut rich(), &free(), &mut Control::default()).unwrap_err().code
    };
    assert_eq!(ask(PLAIN), ErrorCode::PositionNotHeld);
    for unknown in ["601999", NOT_YET_LISTED, "SHM-000001", "60003６"] {
        assert_eq!(ask(unknown), ErrorCode::UnknownSecurity, "{unknown}");
    }
}

#[test]
fn two_equal_orders_without_a_key_meet_the_day_rule() {
    // complaint OR-14 at account level: the second of two equal orders is not a second fill
    let world = World::full();
    let mut account = rich();
    let limits = CardLimits::default();
    let mut order = || {
        let args = order_args("buy", PLAIN, 100);
        call("place_order", args, world.view(TODAY, Open1), &mut account, &limits, &mut Control::default())
    };
    assert_eq!(order().unwrap()["quantity"], 100);
    assert_eq!(order().unwrap_err().code, ErrorCode::AlreadyTradedToday);
    assert_eq!(account.fills().len(), 1);
}

#[test]
fn a_lost_response_never_doubles_a_position() {
    // complaint OR-13
    let world = World::full();
    let mut account = rich();
    let mut args = order_args("buy", PLAIN, 100);
    args["idempotency_key"] = json!("open1-a");
    let first = run(&world, "place_order", args.clone(), TODAY, Open1, &mut account);
    let mut again = run(&world, "place_order", args.clone(), TODAY, Open2, &mut account);
    assert_eq!(again["repeated"], true);
    again["repeated"] = json!(false);
    assert_eq!((again, account.fills().len()), (first, 1));
    args["quantity"] = json!(200);
    let failure =
        call("place_order", args, world.view(TODAY, Open1), &mut account, &free(), &mut Control::default()).unwrap_err();
    assert_eq!((failure.code, failure.retryable()), (ErrorCode::IdempotencyConflict, false));
}

#[test]
fn corrections_with_a_quantity_lead_to_success() {
    let world = World::full();
    for (limits, quantity) in
        [(CardLimits::default(), 900_000), (CardLimits { participation_basis_points: Some(500), ..free() }, 900)]
    {
        let mut account = rich();
        let view = world.view(TODAY, Open1);
        let args = order_args("buy", PLAIN, quantity);
        let failure = call("place_order", args.clone(), view, &mut account, &limits, &mut Control::default()).unwrap_err();
        let mut repaired = args;
        repaired["quantity"] = failure.correction["max_quantity"].clone();
        assert!(failure.retryable());
        call("place_order", repaired, view, &mut account, &limits, &mut Control::default()).unwrap();
    }
}
