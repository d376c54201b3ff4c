//! Conditional orders (engine E5): validation, bars, expiry, protective stops, ex-dates.

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, Policy, ToolFailure};
use traderharness_market::DecisionPoint::{self, Close1, Close2, Open1, Open2, PreMarket};
use traderharness_market::testing::SmallMarket;
use traderharness_market::{Price, Shares, Side};
use traderharness_tools_exec::conditional::Status;
use traderharness_tools_exec::{Account, CardLimits, ConditionOutcome, Control, evaluate};

const TOOL: &str = "manage_conditional_order";

fn manage(world: &World, args: Value, date: &str, point: DecisionPoint, account: &mut Account) -> Result<Value, ToolFailure> {
    let before = account.clone();
    let result = call(TOOL, args, world.view(date, point), account, &free(), &mut Control::default());
    if result.is_err() {
        assert_eq!(*account, before, "a refusal changes nothing");
    }
    result
}

fn create(action: &str, code: &str, quantity: i64, comparator: &str, trigger: f64) -> Value {
    json!({"operation": "create", "reasoning": "r", "action": action, "stock_code": code, "quantity": quantity,
           "comparator": comparator, "trigger_price": trigger})
}

/// The refusal of a call at open_1 of `TODAY`, and one fact of its correction.
fn refused(args: Value, account: &mut Account, code: ErrorCode, fact: &str, accepted: Value) {
    let failure = manage(&World::full(), args, TODAY, Open1, account).unwrap_err();
    assert_eq!(failure.code, code, "{}", failure.message);
    let got = if fact.is_empty() { Value::Null } else { failure.correction[fact].clone() };
    assert_eq!(got, accepted, "{:?}", failure.correction);
}

fn run(world: &World, date: &str, point: DecisionPoint, account: &mut Account) -> Vec<ConditionOutcome> {
    let view = world.view(date, point);
    if point == PreMarket {
        account.start_day(&view).unwrap();
    }
    let outcomes = evaluate(&view, account, &free());
    let after = account.clone();
    assert_eq!(evaluate(&view, account, &free()), [], "a second evaluation at one clock finds nothing");
    assert_eq!(*account, after);
    account.check_invariants().unwrap();
    outcomes
}

fn whole_day(world: &World, date: &str, account: &mut Account) -> Vec<(String, String)> {
    let points = DecisionPoint::ALL.into_iter();
    points
        .flat_map(|point| run(world, date, point, account))
        .map(|o| {
            let result = o
                .result
                .map_or_else(|r| r.code().as_str().to_owned(), |f| format!("{} {} at {}", f.side.as_str(), f.shares, f.price));
            (format!("{} {}", o.order_id, o.bar_end), result)
        })
        .collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn creation_is_checked_like_an_order() {
    // spec/tools.md b20, b21
    let mut account = rich();
    refused(create("buy", "601999", 100, "price_gte", 10.0), &mut account, ErrorCode::UnknownSecurity, "", Value::Null);
    refused(create("buy", NOT_YET_LISTED, 100, "price_gte", 10.0), &mut account, ErrorCode::UnknownSecurity, "", Value::Null);
    refused(
        create("buy", PLAIN, 150, "price_gte", 10.0),
        &mut account,
        ErrorCode::InvalidLot,
        "nearest_quantity_below",
        json!(100),
    );
    refused(create("buy", STAR, 100, "price_gte", 10.0), &mut account, ErrorCode::InvalidLot, "min_quantity", json!(200));
    refused(create("buy", ST, 100, "price_gte", 10.0), &mut account, ErrorCode::StForbidden, "", Value::Null);
    refused(
        create("sell", PLAIN, 0, "price_lte", 10.0),
        &mut account,
        ErrorCode::PositionNotHeld,
        "required_tool",
        json!("get_portfolio"),
    );
    let mut holder = holding(&World::full(), PLAIN, 300);
    refused(create("sell", PLAIN, 400, "price_lte", 10.0), &mut holder, ErrorCode::InsufficientSellable, "total", json!(300));
    refused(create("sell", PLAIN, 50, "price_lte", 10.0), &mut holder, ErrorCode::InvalidLot, "sellable", json!(300));
}

#[test]
fn triggers_are_prices_on_the_tick() {
    for (bad, nearest) in
        [(10.005, json!([10.0, 10.01])), (0.004, json!([0.01])), (9_999.999, json!([9_999.99, 10_000.0])), (1e300, json!([]))]
    {
        let args = create("buy", PLAIN, 100, "price_gte", bad);
        refused(args, &mut rich(), ErrorCode::InvalidToolArguments, "nearest_trigger_prices", nearest);
    }
    let definition = definition(TOOL, &Policy::default());
    for bad in [json!(0), json!(-1), json!("10"), json!(true), json!(null)] {
        let mut args = create("buy", PLAIN, 100, "price_gte", 10.0);
        args["trigger_price"] = bad.clone();
        assert!(definition.validate(&args).is_err(), "{bad}");
    }
}

#[test]
fn each_operation_asks_for_its_fields() {
    let definition = definition(TOOL, &Policy::default());
    let ok = |args: Value| definition.validate(&args).is_ok();
    assert!(ok(create("buy", PLAIN, 100, "price_gte", 10.0)));
    for field in ["action", "stock_code", "quantity", "comparator", "trigger_price", "reasoning"] {
        let mut args = create("buy", PLAIN, 100, "price_gte", 10.0);
        args.as_object_mut().unwrap().remove(field);
        assert!(!ok(args), "{field}");
    }
    assert!(!ok(create("buy", PLAIN, 0, "price_gte", 10.0)));
    assert!(!ok(json!({"operation": "update", "reasoning": "r", "trigger_price": 1})));
    assert!(!ok(json!({"operation": "update", "reasoning": "r", "order_id": "cond-0001"})));
    assert!(ok(json!({"operation": "update", "reasoning": "r", "order_id": "cond-0001", "expires_in_trading_days": 5})));
    assert!(!ok(json!({"operation": "cancel", "reasoning": "r"})));
    assert!(!ok(json!({"operation": "pause", "reasoning": "r"})));
    let mut args = create("buy", PLAIN, 100, "price_gte", 10.0);
    args["expires_in_trading_days"] = json!(251);
    assert!(!ok(args.clone()));
    args["expires_in_trading_days"] = json!(0);
    assert!(!ok(args));
    let mut stop = create("sell", PLAIN, 0, "price_lte", 9.0);
    stop["protective"] = json!(true);
    assert!(ok(stop.clone()));
    for (field, bad) in [("action", json!("buy")), ("quantity", json!(100)), ("comparator", json!("price_gte"))] {
        let mut args = stop.clone();
        args[field] = bad;
        assert!(!ok(args), "{field}");
    }
}

/// 10.00 on every bar of `TODAY` but for these (index of the bar, close).
fn steps(changes: &[(usize, f64)]) -> World {
    let closes: Vec<f64> = (0..48).map(|i| changes.iter().find(|(at, _)| *at == i).map_or(10.0, |(_, close)| *close)).collect();
    World::of(
        &SmallMarket::new(DAYS[0], 10).stock(today_at(PLAIN, 10.0, &closes).minutes(NEXT, &[10.0; 48])).stock(flat(OTHER, 100.0)),
    )
}

#[test]
fn the_first_bar_that_meets_the_condition_fills_at_its_close() {
    // engine E5.1, E5.3: bar 20 ends at 11:15, in the midday that close_1 opens with
    let world = steps(&[(20, 10.35), (21, 10.5)]);
    let mut account = rich();
    manage(&world, create("buy", PLAIN, 100, "price_gte", 10.3), TODAY, PreMarket, &mut account).unwrap();
    for point in [PreMarket, Open1, Open2] {
        assert_eq!(run(&world, TODAY, point, &mut account), []);
    }
    let outcomes = run(&world, TODAY, Close1, &mut account);
    let fill = outcomes[0].result.as_ref().unwrap();
    assert_eq!((fill.price, fill.bar_end.to_string(), outcomes.len()), (Price(103_500), "11:15".to_owned(), 1));
    let order = &account.conditions().orders()[0];
    assert_eq!((order.status, order.attempts.len()), (Status::Triggered, 1));
}

#[test]
fn bars_visible_when_it_was_made_or_changed_never_fire_it() {
    // engine E5.2; complaint LA-15: 10.40 at 09:45 was seen when the order was made at 09:50
    let world = steps(&[(2, 10.4), (5, 10.4), (47, 10.4)]);
    let mut account = rich();
    manage(&world, create("buy", PLAIN, 100, "price_gte", 10.4), TODAY, Open1, &mut account).unwrap();
    assert_eq!(run(&world, TODAY, Open1, &mut account), []);
    // Changed at 10:00, when the 10:00 bar (10.40) is visible: that one is out too.
    let update = json!({"operation": "update", "order_id": "cond-0001", "quantity": 200, "reasoning": "more"});
    manage(&world, update, TODAY, Open2, &mut account).unwrap();
    assert_eq!(run(&world, TODAY, Open2, &mut account), []);
    assert_eq!(run(&world, TODAY, Close1, &mut account), []);
    let outcomes = run(&world, TODAY, Close2, &mut account);
    assert_eq!(outcomes[0].result.as_ref().unwrap().shares, Shares(200));
}

#[test]
fn orders_of_one_bar_are_tried_in_order_of_id_and_bars_in_order_of_time() {
    let world = steps(&[(1, 10.2), (2, 10.1)]);
    let mut account = rich();
    manage(&world, create("buy", PLAIN, 100, "price_gte", 10.2), TODAY, PreMarket, &mut account).unwrap();
    manage(&world, create("buy", OTHER, 200, "price_lte", 100.0), TODAY, PreMarket, &mut account).unwrap();
    manage(&world, create("buy", PLAIN, 300, "price_gte", 10.1), TODAY, PreMarket, &mut account).unwrap();
    let seen = whole_day(&world, TODAY, &mut account);
    let expected = [
        ("cond-0002 09:35", "buy 200 at 100.00"),
        ("cond-0001 09:40", "buy 100 at 10.20"),
        ("cond-0003 09:40", "buy 300 at 10.20"),
    ];
    assert_eq!(seen, pairs(&expected));
}

#[test]
fn a_failed_attempt_stays_active_and_later_bars_are_tried() {
    // spec/tools.md b36: locked at the limit in the first bars, free later in the same window
    let world = steps(&[(0, 11.0), (1, 11.0), (2, 10.9)]);
    let mut account = rich();
    manage(&world, create("buy", PLAIN, 100, "price_gte", 10.9), TODAY, PreMarket, &mut account).unwrap();
    let expected = [("cond-0001 09:35", "limit_up_locked"), ("cond-0001 09:45", "buy 100 at 10.90")];
    assert_eq!(whole_day(&world, TODAY, &mut account), pairs(&expected));
    let attempts = &account.conditions().orders()[0].attempts;
    assert_eq!((attempts.len(), attempts[0].bars, attempts[0].error), (2, 2, Some(ErrorCode::LimitUpLocked)));
}

#[test]
fn weight_is_judged_with_prices_known_at_the_bar() {
    // b37 and engine E2.2: 900 x 10.00 are a little above 0.90 % of 999,700 and below it once OTHER has risen to 109.00 at 14:25.
    // All those bars are visible when close_1 opens; each is judged with what was known at its own time.
    let late: Vec<f64> = (0..48).map(|i| if i < 40 { 100.0 } else { 109.0 }).collect();
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(flat(PLAIN, 10.0)).stock(today_at(OTHER, 100.0, &late)));
    let limits = CardLimits { max_position_basis_points: 90, ..free() };
    let mut account = holding(&world, OTHER, 9_800);
    manage(&world, create("buy", PLAIN, 900, "price_gte", 10.0), TODAY, PreMarket, &mut account).unwrap();
    let outcomes = evaluate(&world.view(TODAY, Close1), &mut account, &limits);
    let seen: Vec<_> = outcomes.iter().map(|o| (o.bar_end.to_string(), o.result.as_ref().err().map(|r| r.code()))).collect();
    assert_eq!(seen, [("09:35".to_owned(), Some(ErrorCode::PositionWeightLimit)), ("14:25".to_owned(), None)]);
}

#[test]
fn expiry_counts_trading_days_from_today() {
    // spec/tools.md b20: 1 = today only; TODAY is a Friday, so the weekend does not count
    let world = steps(&[]);
    let mut account = rich();
    account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    for days in [1, 2, 3] {
        let mut args = create("buy", PLAIN, 100, "price_gte", 99.0);
        args["expires_in_trading_days"] = json!(days);
        let payload = manage(&world, args, TODAY, PreMarket, &mut account).unwrap();
        assert_eq!(payload["order"]["expires_in_trading_days"], days);
    }
    let states = |account: &Account| account.conditions().orders().iter().map(|o| o.status.as_str()).collect::<Vec<_>>();
    whole_day(&world, TODAY, &mut account);
    assert_eq!(states(&account), ["active", "active", "active"]);
    account.start_day(&world.view(NEXT, PreMarket)).unwrap();
    assert_eq!(states(&account), ["expired", "active", "active"]);
    let left: Vec<_> = account.conditions().orders().iter().map(|o| o.days_left(&world.view(NEXT, PreMarket)).unwrap()).collect();
    assert_eq!(left, [0, 1, 2]);
    account.start_day(&world.view("2024-03-12", PreMarket)).unwrap();
    assert_eq!(states(&account), ["expired", "expired", "active"]);
    // For today only, after the last bar of today: it could never fire.
    let mut args = create("buy", PLAIN, 100, "price_gte", 99.0);
    args["expires_in_trading_days"] = json!(1);
    let failure = manage(&world, args, "2024-03-12", Close2, &mut account).unwrap_err();
    assert_eq!(failure.correction["min_expires_in_trading_days"], 2);
}

#[test]
fn a_protective_stop_only_rises_and_keeps_trying_while_locked() {
    // engine E5.4: bought at open_1, below the stop at once, sold on the first bar of the next day
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(today_at(PLAIN, 10.0, &[9.8; 48]).minutes(NEXT, &[9.7; 48])));
    let mut account = rich();
    account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    place(buy(PLAIN, 100), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    let mut stop = create("sell", PLAIN, 0, "price_lte", 9.8);
    stop["protective"] = json!(true);
    manage(&world, stop, TODAY, Open1, &mut account).unwrap();
    let update =
        |field: &str, value: Value| json!({"operation": "update", "order_id": "cond-0001", "reasoning": "r", field: value});
    let failure = manage(&world, update("trigger_price", json!(9.7)), TODAY, Open1, &mut account).unwrap_err();
    assert_eq!((failure.code, &failure.correction["min_trigger_price"]), (ErrorCode::PlanLevelInvalid, &json!(9.8)));
    let failure = manage(&world, update("quantity", json!(100)), TODAY, Open1, &mut account).unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidToolArguments);
    let failure = manage(&world, update("trigger_price", json!(9.8)), TODAY, Open1, &mut account).unwrap_err();
    assert_eq!(failure.code, ErrorCode::ConditionalOrderStateConflict);
    manage(&world, update("trigger_price", json!(9.85)), TODAY, Open1, &mut account).unwrap();
    let today: Vec<_> = [Open2, Close1, Close2].into_iter().flat_map(|p| run(&world, TODAY, p, &mut account)).collect();
    assert_eq!(today.len(), 1, "44 equal failures are one record");
    assert_eq!(account.conditions().orders()[0].attempts[0].bars, 44);
    assert_eq!(whole_day(&world, NEXT, &mut account), pairs(&[("cond-0001 09:35", "sell 100 at 9.70")]));
    assert!(account.ledger().positions().is_empty());
}

#[test]
fn closing_a_position_cancels_its_other_sells_and_nothing_else() {
    // engine E5.6
    let world = steps(&[]);
    let mut account = holding(&world, PLAIN, 200);
    manage(&world, create("sell", PLAIN, 0, "price_gte", 12.0), TODAY, PreMarket, &mut account).unwrap();
    manage(&world, create("buy", PLAIN, 100, "price_lte", 5.0), TODAY, PreMarket, &mut account).unwrap();
    place(sell(PLAIN, 100), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    assert!(account.conditions().orders()[0].is_active(), "a part is still held");
    place(sell(PLAIN, 0), &world.view(TODAY, Open2), &mut account, &free()).unwrap();
    let states: Vec<_> = account.conditions().orders().iter().map(|o| o.status).collect();
    assert_eq!(states, [Status::Cancelled, Status::Active]);
}

#[test]
fn at_most_64_are_active_and_unknown_ids_name_the_active_ones() {
    let world = steps(&[]);
    let mut account = rich();
    for _ in 0..64 {
        manage(&world, create("buy", PLAIN, 100, "price_gte", 99.0), TODAY, PreMarket, &mut account).unwrap();
    }
    let failure = manage(&world, create("buy", PLAIN, 100, "price_gte", 99.0), TODAY, PreMarket, &mut account).unwrap_err();
    assert_eq!((failure.code, &failure.correction["active"]), (ErrorCode::ConditionalOrderStateConflict, &json!(64)));
    let cancel = json!({"operation": "cancel", "order_id": "cond-0064", "reasoning": "room"});
    let payload = manage(&world, cancel.clone(), TODAY, PreMarket, &mut account).unwrap();
    assert_eq!((&payload["order"]["status"], &payload["order"]["cancel_reasoning"]), (&json!("cancelled"), &json!("room")));
    let failure = manage(&world, cancel, TODAY, PreMarket, &mut account).unwrap_err();
    assert_eq!(failure.correction["active_order_ids"].as_array().unwrap().len(), 63);
    assert!(manage(&world, create("buy", PLAIN, 100, "price_gte", 99.0), TODAY, PreMarket, &mut account).is_ok());
}

#[test]
fn an_update_keeps_what_makes_the_order_itself() {
    let world = steps(&[]);
    let mut account = rich();
    manage(&world, create("buy", PLAIN, 100, "price_gte", 99.0), TODAY, PreMarket, &mut account).unwrap();
    let args = json!({"operation": "update", "order_id": "cond-0001", "reasoning": "r", "trigger_price": 98, "action": "sell"});
    let failure = manage(&world, args, TODAY, PreMarket, &mut account).unwrap_err();
    assert_eq!(failure.correction["fixed_fields"], json!(["action"]));
    let args = json!({"operation": "update", "order_id": "cond-0001", "reasoning": "r", "quantity": 50});
    assert_eq!(manage(&world, args, TODAY, PreMarket, &mut account).unwrap_err().code, ErrorCode::InvalidLot);
}

#[test]
fn ex_dates_move_triggers_with_the_price() {
    // engine E6.1; spec/tools.md b13: 10 for 10, price 10.00 -> 5.00; the stop at 9.50 becomes 4.75 and does not fire at 5.00
    let stock = today_at(PLAIN, 10.0, &[5.0; 48]).ex_event(TODAY, 10.0, 0.0, 0.0, 0.0, f64::NAN);
    let paying = today_at(OTHER, 100.0, &[90.0; 48]).ex_event(TODAY, 0.0, 0.0, 100.0, 0.0, f64::NAN);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock).stock(paying));
    let mut account = rich();
    place(buy(PLAIN, 100), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    manage(&world, create("sell", PLAIN, 0, "price_lte", 9.5), "2024-03-07", Close2, &mut account).unwrap();
    // Not held: a buy below 95.00 stays a buy 5 % below the price.
    manage(&world, create("buy", OTHER, 100, "price_lte", 95.0), "2024-03-07", Close2, &mut account).unwrap();
    let actions = account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    let moved: Vec<_> = actions.iter().flat_map(|a| &a.rescaled).map(|r| (r.what.as_str(), r.from.0, r.to.0)).collect();
    assert_eq!(moved, [("cond-0001", 95_000, 47_500), ("cond-0002", 950_000, 855_000)]);
    assert_eq!(whole_day(&world, TODAY, &mut account), []);
    assert_eq!(account.conditions().orders()[0].revisions.len(), 1);
    assert_eq!(account.ledger().positions()[0].total, Shares(200));
}

#[test]
fn the_list_shows_what_happened() {
    let world = steps(&[(0, 11.0), (3, 10.9)]);
    let mut account = rich();
    account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    let list = |status: &str, account: &mut Account| {
        let view = world.view(TODAY, Open1);
        call("list_conditional_orders", json!({"status": status}), view, account, &free(), &mut Control::default()).unwrap()
    };
    assert_eq!(list("active", &mut account)["empty_reason"], "no_conditional_order_was_made");
    let mut first = create("buy", PLAIN, 100, "price_gte", 10.9);
    first["expires_in_trading_days"] = json!(2);
    manage(&world, first, TODAY, PreMarket, &mut account).unwrap();
    manage(&world, create("buy", OTHER, 100, "price_lte", 50.0), TODAY, PreMarket, &mut account).unwrap();
    let update = json!({"operation": "update", "order_id": "cond-0002", "trigger_price": 51.5, "reasoning": "closer"});
    manage(&world, update, TODAY, PreMarket, &mut account).unwrap();
    run(&world, TODAY, Open1, &mut account);
    assert_eq!(list("active", &mut account)["count"], 1);
    assert_eq!(list("expired", &mut account)["empty_reason"], "no_order_of_this_status");
    insta::assert_snapshot!(serde_json::to_string_pretty(&list("all", &mut account)).unwrap());
}

#[test]
fn a_condition_fills_through_the_one_order_path() {
    // DESIGN rule 2: the fill is in the account's list, with the bar and the order it came from
    let world = steps(&[]);
    let mut account = rich();
    manage(&world, create("buy", PLAIN, 100, "price_lte", 10.0), TODAY, PreMarket, &mut account).unwrap();
    run(&world, TODAY, Open1, &mut account);
    let fill = &account.fills()[0];
    assert_eq!((fill.side, fill.number), (Side::Buy, 1));
    assert!(matches!(&fill.origin, traderharness_tools_exec::Origin::Condition { order_id, .. } if order_id == "cond-0001"));
    let limits = CardLimits { once_per_day: true, ..free() };
    let again = place(buy(PLAIN, 100), &world.view(TODAY, Open1), &mut account, &limits).unwrap_err();
    assert_eq!(again.code(), ErrorCode::AlreadyTradedToday);
}

#[test]
fn conditions_and_orders_share_the_volume_of_a_bar() {
    // engine E3.4: 10 % of the 10,000 shares of the 09:50 bar, which is also the bar an order of open_1 fills at
    let world = steps(&[(3, 9.9)]);
    let limits = CardLimits { participation_basis_points: Some(1_000), ..free() };
    let mut account = rich();
    for quantity in [600, 500, 100] {
        manage(&world, create("buy", PLAIN, quantity, "price_lte", 9.9), TODAY, PreMarket, &mut account).unwrap();
    }
    let view = world.view(TODAY, Open1);
    let outcomes = evaluate(&view, &mut account, &limits);
    let left: Vec<_> =
        outcomes.iter().map(|o| o.result.as_ref().map(|f| f.liquidity_left.unwrap().0).map_err(|r| r.code())).collect();
    assert_eq!(left, [Ok(400), Err(ErrorCode::NoLiquidity), Ok(300)]);
    let refusal = place(buy(PLAIN, 400), &view, &mut account, &limits).unwrap_err();
    assert_eq!((refusal.code(), refusal.max_quantity()), (ErrorCode::NoLiquidity, Some(Shares(300))));
    let fill = place(buy(PLAIN, 300), &view, &mut account, &limits).unwrap();
    assert_eq!(
        (fill.bar_end.to_string(), fill.bar_volume, fill.liquidity_left),
        ("09:50".to_owned(), Shares(10_000), Some(Shares(0)))
    );
    assert_eq!(account.fills().iter().map(|f| f.shares.0).sum::<i64>(), 1_000);
    account.check_invariants().unwrap();
}
