//! Every refusal has its own code, says what would be accepted, and changes nothing.

use crate::fixture::*;
use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_market::DecisionPoint::{self, Close2, Open1, Open2, PreMarket};
use traderharness_market::{Cash, Price, Shares};
use traderharness_tools_exec::{Account, CardLimits, Order, Refusal};

fn refused(world: &World, order: Order, point: DecisionPoint, account: &mut Account, limits: &CardLimits) -> Refusal {
    place(order, &world.view(TODAY, point), account, limits).unwrap_err()
}

/// The refusal of `order`, and one fact of its correction.
fn check(
    order: Order,
    point: DecisionPoint,
    account: &mut Account,
    limits: &CardLimits,
    code: ErrorCode,
    fact: &str,
    accepted: &str,
) {
    let refusal = refused(&World::full(), order, point, account, limits);
    assert_eq!(refusal.code(), code, "{refusal}");
    let failure = ToolFailure::from(refusal);
    assert!(!failure.instruction.is_empty());
    let got = if fact.is_empty() { String::new() } else { failure.correction[fact].to_string() };
    assert_eq!(got, accepted, "{fact} of {:?}", failure.correction);
}

#[test]
fn before_the_open_no_order_is_accepted() {
    // engine E1.1
    check(buy(PLAIN, 100), PreMarket, &mut rich(), &free(), ErrorCode::OrderUnavailableInPhase, "", "");
    check(buy("601999", 100), PreMarket, &mut rich(), &free(), ErrorCode::OrderUnavailableInPhase, "", "");
}

#[test]
fn unknown_and_not_yet_listed_codes_get_one_answer() {
    let world = World::full();
    let unknown = refused(&world, buy("601999", 100), Open1, &mut rich(), &free());
    let future = refused(&world, buy(NOT_YET_LISTED, 100), Open1, &mut rich(), &free());
    assert_eq!(unknown, Refusal::UnknownSecurity);
    assert_eq!(unknown.to_string(), future.to_string());
}

#[test]
fn buys_are_whole_lots_of_the_board() {
    // complaints OR-2, OR-3; engine E4
    let limits = free();
    for bad in [0, -100, 1, 99, 130, 1_000_100, i64::MAX, i64::MIN] {
        check(buy(PLAIN, bad), Open1, &mut rich(), &limits, ErrorCode::InvalidLot, "min_quantity", "100");
    }
    check(buy(PLAIN, 130), Open1, &mut rich(), &limits, ErrorCode::InvalidLot, "nearest_quantity_below", "100");
    check(buy(PLAIN, i64::MAX), Open1, &mut rich(), &limits, ErrorCode::InvalidLot, "max_quantity", "1000000");
    check(buy(STAR, 199), Open1, &mut rich(), &limits, ErrorCode::InvalidLot, "min_quantity", "200");
    check(buy(BSE, 99), Open1, &mut rich(), &limits, ErrorCode::InvalidLot, "step", "1");
    let world = World::full();
    for (code, good) in [(PLAIN, 200), (STAR, 200), (STAR, 201), (BSE, 100), (BSE, 101)] {
        place(buy(code, good), &world.view(TODAY, Open1), &mut rich(), &limits).unwrap();
    }
}

#[test]
fn odd_lots_leave_only_with_the_whole_remainder() {
    // complaint OR-2: of 130 held, 130, 100 and 30 may be sold and 50 may not. 130 come from 100 bought and 3 for 10 as bonus.
    let world = World::of(
        &traderharness_market::testing::SmallMarket::new(DAYS[0], 10)
            .stock(flat(PLAIN, 10.0).ex_event(TODAY, 3.0, 0.0, 0.0, 0.0, 0.0)),
    );
    for good in [130, 100, 30, 0] {
        let mut account = holding(&world, PLAIN, 100);
        let fill = place(sell(PLAIN, good), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
        assert_eq!(fill.shares, Shares(if good == 0 { 130 } else { good }));
    }
    let mut account = holding(&world, PLAIN, 100);
    let refusal = place(sell(PLAIN, 50), &world.view(TODAY, Open1), &mut account, &free()).unwrap_err();
    let Refusal::SellLot { accepted, sellable, .. } = &refusal else { panic!("{refusal}") };
    assert_eq!((accepted.as_slice(), *sellable), ([30, 100, 130].as_slice(), 130));
    for size in accepted.clone() {
        place(sell(PLAIN, size), &world.view(TODAY, Open1), &mut account.clone(), &free()).unwrap();
    }
}

#[test]
fn star_sells_its_minimum_or_everything() {
    let world = World::full();
    let mut account = holding(&world, STAR, 350);
    let refusal = place(sell(STAR, 150), &world.view(TODAY, Open1), &mut account, &free()).unwrap_err();
    assert!(matches!(&refusal, Refusal::SellLot { accepted, .. } if *accepted == [200, 350]), "{refusal}");
    place(sell(STAR, 201), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    place(sell(STAR, 149), &world.view(TODAY, Open2), &mut account, &free()).unwrap();
    assert!(account.ledger().positions().is_empty());
}

#[test]
fn sizes_that_no_order_may_have_are_refused_before_the_market_is_asked() {
    check(sell(PLAIN, -1), Open1, &mut rich(), &free(), ErrorCode::InvalidLot, "max_quantity", "1000000");
    check(sell(HALTED_ALL_DAY, i64::MAX), Open1, &mut rich(), &free(), ErrorCode::InvalidLot, "max_quantity", "1000000");
}

#[test]
fn a_sell_of_everything_may_be_more_than_one_order_of_the_board_holds() {
    // STAR takes 100,000 shares in one order (engine E4); what was bought in two can be left in one call, and only as a whole.
    let world = World::full();
    let mut account = Account::new(Cash(10_000_000_000));
    for _ in 0..2 {
        place(buy(STAR, 100_000), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    }
    account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    check(buy(STAR, 100_001), Open1, &mut account, &free(), ErrorCode::InvalidLot, "max_quantity", "100000");
    check(sell(STAR, 200_000), Open1, &mut account, &free(), ErrorCode::InvalidLot, "max_quantity", "100000");
    let fill = place(sell(STAR, 0), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    assert_eq!((fill.shares, fill.closed), (Shares(200_000), true));
}

#[test]
fn a_security_without_bars_today_is_suspended() {
    check(buy(HALTED_ALL_DAY, 100), Open1, &mut rich(), &free(), ErrorCode::Suspended, "", "");
}

#[test]
fn a_fill_needs_a_bar_of_the_current_interval() {
    // engine E1.1, E3.2: the last bar ended at 09:50, so it fills in open_1 and never later
    let interval = r#"{"after":"09:50","until":"10:00"}"#;
    check(buy(HALTED_AT_TEN, 100), Open2, &mut rich(), &free(), ErrorCode::NoBarInWindow, "interval", interval);
    let world = World::full();
    let fill = place(buy(HALTED_AT_TEN, 100), &world.view(TODAY, Open1), &mut rich(), &free()).unwrap();
    assert_eq!((fill.price, fill.bar_end.to_string()), (Price(103_000), "09:50".to_owned()));
}

#[test]
fn a_bar_without_volume_fills_nothing() {
    // engine E3.4
    check(buy(DRY, 100), Open1, &mut rich(), &free(), ErrorCode::NoLiquidity, "liquidity_left", "0");
}

#[test]
fn a_missing_previous_close_is_never_no_limit() {
    // complaint OR-1
    let code = ErrorCode::PriceReferenceMissing;
    check(buy(NO_REFERENCE, 100), Open1, &mut rich(), &free(), code, "fault", "\"no_previous_close\"");
}

#[test]
fn locked_limits_refuse_one_side_and_name_the_band() {
    // complaints OR-7, LA-10: the check uses the price of the fill and nothing else
    let band = r#"{"limit_up":11.0,"limit_down":9.0}"#;
    check(buy(LOCKED_UP, 100), Open1, &mut rich(), &free(), ErrorCode::LimitUpLocked, "band", band);
    let world = World::full();
    let mut account = holding(&world, LOCKED_DOWN, 100);
    check(sell(LOCKED_DOWN, 0), Open1, &mut account, &free(), ErrorCode::LimitDownLocked, "band", band);
    place(buy(LOCKED_DOWN, 100), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    let mut account = holding(&world, LOCKED_UP, 100);
    let fill = place(sell(LOCKED_UP, 0), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    assert_eq!(fill.price, Price(110_000));
}

#[test]
fn a_lock_that_opens_later_trades_later_and_a_lock_that_comes_later_does_not_block_now() {
    // complaints OR-6, LA-10: locked until 10:00 then free; and free until 10:00 then locked
    let opens: Vec<f64> = (0..48).map(|i| if i < 4 { 11.0 } else { 10.1 }).collect();
    let locks: Vec<f64> = (0..48).map(|i| if i < 4 { 10.05 } else { 11.0 }).collect();
    let world = World::of(
        &traderharness_market::testing::SmallMarket::new(DAYS[0], 10)
            .stock(today_at(PLAIN, 10.0, &opens))
            .stock(today_at(OTHER, 10.0, &locks)),
    );
    let mut account = rich();
    let first = place(buy(PLAIN, 100), &world.view(TODAY, Open1), &mut account, &free()).unwrap_err();
    assert_eq!(first.code(), ErrorCode::LimitUpLocked);
    place(buy(PLAIN, 100), &world.view(TODAY, Open2), &mut account, &free()).unwrap();
    let fill = place(buy(OTHER, 100), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    assert_eq!(fill.price, Price(100_500));
    let later = place(buy(OTHER, 100), &world.view(TODAY, Open2), &mut account, &free()).unwrap_err();
    assert_eq!(later.code(), ErrorCode::LimitUpLocked);
}

#[test]
fn the_limit_check_looks_at_the_price_of_the_fill_and_at_no_other_of_its_bar() {
    // complaint LA-10: fills are at the close of the bar, so its open, high and low neither lock nor unlock it
    let opened_locked = [11.0, 11.0, 10.05, 10.1, 10_000.0, 101_000.0];
    let closed_locked = [10.05, 11.0, 10.05, 11.0, 10_000.0, 110_000.0];
    let fell_through = [10.0, 10.0, 9.0, 9.5, 10_000.0, 95_000.0];
    let market = [(PLAIN, opened_locked), (OTHER, closed_locked), (CHEAP, fell_through)]
        .into_iter()
        .fold(traderharness_market::testing::SmallMarket::new(DAYS[0], 10), |market, (code, bar)| {
            market.stock(today_at(code, 10.0, &[10.0; 3]).minute_bar(TODAY, "09:50", bar))
        });
    let world = World::of(&market);
    let view = world.view(TODAY, Open1);
    assert_eq!(place(buy(PLAIN, 100), &view, &mut rich(), &free()).unwrap().price, Price(101_000));
    let refusal = place(buy(OTHER, 100), &view, &mut rich(), &free()).unwrap_err();
    assert_eq!(refusal, Refusal::LimitUpLocked { price: Price(110_000), up: Price(110_000), down: Price(90_000) });
    let mut account = holding(&world, CHEAP, 100);
    assert_eq!(place(sell(CHEAP, 0), &view, &mut account, &free()).unwrap().price, Price(95_000));
}

#[test]
fn one_fill_per_security_and_day() {
    // engine E3.7; complaint OR-9
    let world = World::full();
    let limits = CardLimits { once_per_day: true, ..free() };
    let mut account = holding(&world, PLAIN, 300);
    place(sell(PLAIN, 100), &world.view(TODAY, Open1), &mut account, &limits).unwrap();
    check(sell(PLAIN, 0), Open2, &mut account, &limits, ErrorCode::AlreadyTradedToday, "sellable", "200");
    check(buy(PLAIN, 100), Open2, &mut account, &limits, ErrorCode::AlreadyTradedToday, "sellable", "200");
    place(sell(PLAIN, 0), &world.view(NEXT, Open1), &mut account, &limits).unwrap();
}

#[test]
fn shares_bought_today_are_locked_until_the_next_trading_day() {
    // complaint OR-1; engine E3.5
    let world = World::full();
    let mut account = rich();
    place(buy(PLAIN, 1_000), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    check(sell(PLAIN, 1_000), Open2, &mut account, &free(), ErrorCode::TPlusOneLocked, "sellable", "0");
    // An account whose day was not begun by the host is still right.
    let fill = place(sell(PLAIN, 1_000), &world.view(NEXT, Open1), &mut account, &free()).unwrap();
    assert!(fill.closed);
}

#[test]
fn a_sell_above_the_sellable_is_refused_not_cut_down() {
    // engine E3.6
    let world = World::full();
    let mut account = holding(&world, PLAIN, 300);
    place(buy(PLAIN, 200), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    let code = ErrorCode::InsufficientSellable;
    check(sell(PLAIN, 500), Open2, &mut account, &free(), code, "sellable", "300");
    let fill = place(sell(PLAIN, 0), &world.view(TODAY, Open2), &mut account, &free()).unwrap();
    assert_eq!((fill.shares, fill.closed), (Shares(300), false));
}

#[test]
fn selling_what_is_not_held_is_refused() {
    let code = ErrorCode::PositionNotHeld;
    check(sell(PLAIN, 0), Open1, &mut rich(), &free(), code, "required_tool", "\"get_portfolio\"");
    check(sell(PLAIN, 37), Open1, &mut rich(), &free(), code, "required_tool", "\"get_portfolio\"");
}

#[test]
fn a_full_sell_repeated_finds_nothing_left() {
    // complaint OR-9: never a negative position
    let world = World::full();
    let mut account = holding(&world, PLAIN, 300);
    place(sell(PLAIN, 300), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    check(sell(PLAIN, 300), Open1, &mut account, &free(), ErrorCode::PositionNotHeld, "", "");
}

/// The quantity a refusal names is accepted, and one lot more is refused for the same reason.
fn exact_maximum(world: &World, order: Order, account: &Account, limits: &CardLimits, lot: i64) -> i64 {
    let view = world.view(TODAY, Open1);
    let refusal = place(order.clone(), &view, &mut account.clone(), limits).unwrap_err();
    let max = refusal.max_quantity().unwrap().0;
    if max > 0 {
        place(Order { shares: Shares(max), ..order.clone() }, &view, &mut account.clone(), limits).unwrap();
    }
    place(Order { shares: Shares(max + lot), ..order }, &view, &mut account.clone(), limits).unwrap_err();
    max
}

#[test]
fn too_little_cash_names_the_affordable_quantity() {
    // 10,000.00 CNY at 10.00: 1,000 shares cost 10,000.00 + 5.00, so 900 are affordable (engine E3.8).
    let world = World::full();
    let account = Account::new(Cash(1_000_000));
    assert_eq!(exact_maximum(&world, buy(PLAIN, 1_000), &account, &free(), 100), 900);
    assert_eq!(exact_maximum(&world, buy(PLAIN, 100_000), &account, &free(), 100), 900);
    // STAR at 50.00 goes by single shares but not below 200.
    assert_eq!(exact_maximum(&world, buy(STAR, 200), &account, &free(), 1), 0);
    let account = Account::new(Cash(1_000_500 + 50 * 100));
    assert_eq!(exact_maximum(&world, buy(STAR, 300), &account, &free(), 1), 201);
    let poor = place(buy(PLAIN, 100), &world.view(TODAY, Open1), &mut Account::new(Cash(100_499)), &free()).unwrap_err();
    assert!(!ToolFailure::from(poor.clone()).retryable(), "no quantity helps: {poor}");
    place(buy(PLAIN, 100), &world.view(TODAY, Open1), &mut Account::new(Cash(100_500)), &free()).unwrap();
}

#[test]
fn a_position_above_the_cap_names_the_quantity_within_it() {
    // 25 % of 1,000,000.00 less fees; at 10.00: 25,000 shares are 250,000.00 and fees 62.50 leave 999,937.50, a little above the cap.
    let world = World::full();
    let limits = CardLimits { max_position_basis_points: 2_500, ..free() };
    assert_eq!(exact_maximum(&world, buy(PLAIN, 25_000), &rich(), &limits, 100), 24_900);
    // What is held counts.
    let mut account = rich();
    place(buy(PLAIN, 20_000), &world.view("2024-03-07", Open1), &mut account, &limits).unwrap();
    assert_eq!(exact_maximum(&world, buy(PLAIN, 10_000), &account, &limits, 100), 4_900);
    let refusal = refused(&world, buy(PLAIN, 25_000), Open1, &mut rich(), &limits);
    assert_eq!(
        refusal.to_string(),
        "The position would be 25.01 % of total assets and this card allows 25.00 %; at most 24900 shares are accepted."
    );
}

#[test]
fn the_number_of_positions_is_capped_and_adding_is_not() {
    let world = World::full();
    let limits = CardLimits { max_positions: 1, ..free() };
    let mut account = holding(&world, PLAIN, 100);
    check(buy(OTHER, 100), Open1, &mut account, &limits, ErrorCode::PositionCountLimit, "max_positions", "1");
    place(buy(PLAIN, 100), &world.view(TODAY, Open1), &mut account, &limits).unwrap();
}

#[test]
fn st_blocks_opening_buys_only() {
    // engine E3.10; spec/tools.md b12
    let world = World::full();
    check(buy(ST, 100), Open1, &mut rich(), &free(), ErrorCode::StForbidden, "", "");
    // Bought when it was not ST: adding and selling stay possible.
    let mut account = rich();
    place(buy(ST, 100), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    place(buy(ST, 100), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    place(sell(ST, 100), &world.view(TODAY, Open2), &mut account, &free()).unwrap();
    let allowed = CardLimits { forbid_st: false, ..free() };
    let fill = place(buy(ST, 100), &world.view(TODAY, Close2), &mut rich(), &allowed).unwrap();
    assert_eq!((fill.rules.limit_up, fill.rules.limit_down), (Some(Price(105_000)), Some(Price(95_000))), "5 % band");
}

#[test]
fn no_volume_is_sold_twice() {
    // engine E3.4: 10 % of 10,000 shares
    let world = World::full();
    let limits = CardLimits { participation_basis_points: Some(1_000), ..free() };
    let mut account = rich();
    assert_eq!(exact_maximum(&world, buy(PLAIN, 1_100), &account, &limits, 100), 1_000);
    let fill = place(buy(PLAIN, 700), &world.view(TODAY, Open1), &mut account, &limits).unwrap();
    assert_eq!(fill.liquidity_left, Some(Shares(300)));
    check(buy(PLAIN, 400), Open1, &mut account, &limits, ErrorCode::NoLiquidity, "max_quantity", "300");
    place(buy(PLAIN, 300), &world.view(TODAY, Open1), &mut account, &limits).unwrap();
    let empty = refused(&world, buy(PLAIN, 100), Open1, &mut account, &limits);
    assert!(!ToolFailure::from(empty).retryable(), "the bar is used up");
    // The next bar has its own volume, and so has the next day's bar of the same time.
    place(buy(PLAIN, 1_000), &world.view(TODAY, Open2), &mut account, &limits).unwrap();
    place(sell(PLAIN, 1_000), &world.view(NEXT, Open1), &mut account, &limits).unwrap();
}

#[test]
fn the_same_key_gives_the_first_result_and_another_order_a_conflict() {
    // complaint OR-13
    let world = World::full();
    let mut account = rich();
    let order = buy(PLAIN, 100).with_key("k1");
    let first = place(order.clone(), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    let after = account.clone();
    let again = place(order, &world.view(NEXT, Close2), &mut account, &free()).unwrap();
    assert!(again.repeated && !first.repeated);
    assert_eq!(traderharness_tools_exec::Fill { repeated: false, ..again }, first);
    assert_eq!(account, after, "nothing is traded twice");
    let other = refused(&world, buy(PLAIN, 200).with_key("k1"), Open1, &mut account, &free());
    assert_eq!(other, Refusal::IdempotencyConflict);
    // A refused order leaves its key free.
    refused(&world, sell(OTHER, 0).with_key("k2"), Open1, &mut account, &free());
    place(buy(OTHER, 100).with_key("k2"), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
}

#[test]
fn the_first_failing_check_in_the_documented_order_wins() {
    // engine E3.1: each order below fails every later check too
    let world = World::full();
    let mut poor = Account::new(Cash(1_000));
    let limits = CardLimits { max_positions: 0, ..free() };
    let code = |order, point, account: &mut Account| refused(&world, order, point, account, &limits).code();
    assert_eq!(code(buy("601999", 1), PreMarket, &mut poor), ErrorCode::OrderUnavailableInPhase);
    assert_eq!(code(buy("601999", 1), Open1, &mut poor), ErrorCode::UnknownSecurity);
    assert_eq!(code(buy(HALTED_ALL_DAY, 1), Open1, &mut poor), ErrorCode::InvalidLot);
    assert_eq!(code(buy(HALTED_ALL_DAY, 100), Open1, &mut poor), ErrorCode::Suspended);
    assert_eq!(code(buy(HALTED_AT_TEN, 100), Open2, &mut poor), ErrorCode::NoBarInWindow);
    assert_eq!(code(buy(DRY, 100), Open1, &mut poor), ErrorCode::NoLiquidity);
    assert_eq!(code(buy(NO_REFERENCE, 100), Open1, &mut poor), ErrorCode::PriceReferenceMissing);
    assert_eq!(code(buy(LOCKED_UP, 100), Open1, &mut poor), ErrorCode::LimitUpLocked);
    assert_eq!(code(buy(ST, 100), Open1, &mut poor), ErrorCode::StForbidden);
    assert_eq!(code(buy(PLAIN, 100), Open1, &mut poor), ErrorCode::PositionCountLimit);
    let limits = free();
    assert_eq!(refused(&world, buy(PLAIN, 100), Open1, &mut poor, &limits).code(), ErrorCode::InsufficientCash);
}

#[test]
fn refusals_never_name_a_security() {
    // engine E8.5: failures are not masked by kind
    let world = World::full();
    for code in [PLAIN, LOCKED_UP, HALTED_ALL_DAY, HALTED_AT_TEN, DRY, ST, NO_REFERENCE, STAR] {
        for order in [buy(code, 100), buy(code, 1), buy(code, 999_900), sell(code, 0)] {
            let Err(refusal) = place(order, &world.view(TODAY, Open1), &mut rich(), &CardLimits::default()) else { continue };
            let failure = ToolFailure::from(refusal);
            let text = format!("{} {} {:?}", failure.message, failure.instruction, failure.correction);
            assert!(!text.contains(code), "{text}");
        }
    }
}
