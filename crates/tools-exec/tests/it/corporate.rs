//! Corporate actions: the value of the account is continuous across an ex-date (engine E6.3).

use crate::fixture::*;
use traderharness_market::DecisionPoint::{Close2, Open1, PreMarket};
use traderharness_market::testing::SmallMarket;
use traderharness_market::{Cash, Price, PriceBasis, Shares};
use traderharness_tools_exec::valuation::MarkSource;

/// 1,000 shares at 10.00, then an ex-date on `TODAY`; the value of cash and shares before and after must agree.
fn check(bonus: f64, transfer: f64, cash: f64, shares: i64, paid: i64) {
    let stock = flat(PLAIN, 10.0).ex_event(TODAY, bonus, transfer, cash, 0.0, f64::NAN);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock));
    let mut account = rich();
    place(buy(PLAIN, 1_000), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    let before = account.equity(&world.view("2024-03-07", Close2));
    let cash_before = account.cash();
    let actions = account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    assert_eq!(actions.len(), 1);
    let position = &account.ledger().positions()[0];
    assert_eq!((position.total, position.frozen, position.cost), (Shares(shares), Shares(0), Cash(1_000_000)));
    assert_eq!(account.cash().0 - cash_before.0, paid);
    let after = account.equity(&world.view(TODAY, PreMarket));
    // One unit of the price (0.0001 CNY) per share is the rounding of the ex-right price.
    assert!((after.0 - before.0).abs() <= 1 + shares / 200, "{before} -> {after}");
    assert_eq!(account.valuation(&world.view(TODAY, PreMarket)).positions[0].mark.source, MarkSource::ExRightDailyClose);
    account.check_invariants().unwrap();
    // Doing it again changes nothing.
    let done = account.clone();
    assert_eq!(account.apply_corporate_actions(&world.view(TODAY, PreMarket)).unwrap(), vec![]);
    assert_eq!(account, done);
}

#[test]
fn value_is_continuous_across_an_ex_date() {
    check(0.0, 0.0, 2.5, 1_000, 25_000);
    check(5.0, 5.0, 0.0, 2_000, 0);
    check(3.0, 0.0, 1.0, 1_300, 10_000);
    check(0.0, 4.9, 3.33, 1_490, 33_300);
}

#[test]
fn fractions_of_shares_are_dropped() {
    let stock = flat(STAR, 10.0).ex_event(TODAY, 0.0, 1.5, 0.0, 0.0, f64::NAN);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock));
    let mut account = holding(&world, STAR, 203);
    // 203 x 1.5 / 10 = 30.45
    assert_eq!(account.ledger().positions()[0].total, Shares(233));
    place(sell(STAR, 0), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
}

#[test]
fn rights_are_reported_and_not_exercised() {
    // engine E6.2
    let stock = flat(PLAIN, 10.0).ex_event(TODAY, 0.0, 0.0, 0.0, 3.0, 5.0);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock));
    let mut account = rich();
    place(buy(PLAIN, 1_000), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    let actions = account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    assert!(actions[0].rights_not_exercised);
    assert_eq!((actions[0].shares_in, actions[0].cash), (Shares(0), Cash(0)));
    // (10.00 + 0.3 x 5.00) / 1.3 = 8.8462
    assert_eq!(account.valuation(&world.view(TODAY, PreMarket)).positions[0].mark.price, Price(88_462));
}

#[test]
fn forward_adjusted_prices_never_move_the_account() {
    let stock = flat(PLAIN, 10.0).ex_event(TODAY, 5.0, 0.0, 1.0, 0.0, f64::NAN);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock).prices(PriceBasis::ForwardAdjusted));
    let account = holding(&world, PLAIN, 1_000);
    assert_eq!(account.ledger().positions()[0].total, Shares(1_000));
    assert_eq!(account.ledger().dividends(), Cash(0));
}

#[test]
fn an_ex_date_that_was_skipped_still_takes_effect_and_a_later_buyer_gets_nothing() {
    let stock = today_at(PLAIN, 10.0, &[5.0; 48]).ex_event(TODAY, 10.0, 0.0, 0.0, 0.0, f64::NAN);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock));
    let mut account = rich();
    place(buy(PLAIN, 100), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    account.start_day(&world.view(NEXT, PreMarket)).unwrap();
    assert_eq!(account.ledger().positions()[0].total, Shares(200));
    let mut late = rich();
    place(buy(PLAIN, 100), &world.view(TODAY, Open1), &mut late, &free()).unwrap();
    late.start_day(&world.view(NEXT, PreMarket)).unwrap();
    assert_eq!(late.ledger().positions()[0].total, Shares(100));
}

#[test]
fn events_with_unusable_figures_do_nothing() {
    for bad in [f64::NAN, f64::INFINITY, -1.0, 1e12] {
        let stock = flat(PLAIN, 10.0).ex_event(TODAY, bad, 0.0, 0.0, 0.0, 0.0);
        let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock));
        let account = holding(&world, PLAIN, 100);
        assert_eq!(account.ledger().positions()[0].total, Shares(100), "{bad}");
    }
}
