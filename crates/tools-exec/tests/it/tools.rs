//! The account tools as a dispatcher calls them: validated arguments, results that fit their output schema.

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::ErrorCode;
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
