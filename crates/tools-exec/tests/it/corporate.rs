//! Corporate actions: the value of the account is continuous across an ex-date (engine E6.3).

use crate::fixture::*;
use traderharness_market::DecisionPoint::{Close2, Open1, PreMarket};
use traderharness_market::testing::{SmallMarket, SmallStock, code, day};
use traderharness_market::{Band, Cash, Price, PriceBasis, Shares};
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

/// The account, its valuation and the price band of an ex-date read the same events: `price` is the ex-right price of a holding
/// bought at 10.00, `paid` what came in for 1,000 shares in fen, `band` today's limits.
fn check_alike(events: &[[f64; 5]], price: i64, shares: i64, paid: i64, band: &str) {
    let with = |stock: SmallStock, e: &[f64; 5]| stock.ex_event(TODAY, e[0], e[1], e[2], e[3], e[4]);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(events.iter().fold(flat(PLAIN, 10.0), with)));
    let mut account = rich();
    place(buy(PLAIN, 1_000), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    let cash = account.cash();
    let view = world.view(TODAY, PreMarket);
    account.start_day(&view).unwrap();
    let position = &account.valuation(&view).positions[0];
    assert_eq!(
        (position.mark.price, position.shares, account.cash().0 - cash.0),
        (Price(price), Shares(shares), paid),
        "{events:?}"
    );
    let Ok(Band::Limits { up, down, .. }) = view.band(view.find(code(PLAIN)).unwrap()) else { panic!("no limits: {events:?}") };
    assert_eq!(format!("{up} {down}"), band, "{events:?}");
}

#[test]
fn the_account_and_the_band_read_an_ex_date_alike() {
    // 2,000 new shares per 10, and 3.00 CNY: (10.00 - 0.30) / 201 = 0.04826; 201,000 shares; reference 0.05
    check_alike(&[[2_000.0, 0.0, 3.0, 0.0, 0.0]], 483, 201_000, 30_000, "0.06 0.05");
    // Two offers of one day, each at its own price: (10.00 + 0.2 x 5.00 + 0.1 x 8.00) / 1.3 = 9.07692; reference 9.08
    check_alike(&[[0.0, 0.0, 0.0, 2.0, 5.0], [0.0, 0.0, 0.0, 1.0, 8.0]], 90_769, 1_000, 0, "9.99 8.17");
    // A row with an unusable figure is left out as a whole, the other row of the day counts: 10.00 - 0.25; reference 9.75
    for bad in [f64::NAN, f64::INFINITY, -1.0, 1e12] {
        check_alike(&[[5.0, 0.0, bad, 0.0, 0.0], [0.0, 0.0, 2.5, 0.0, 0.0]], 97_500, 1_000, 25_000, "10.73 8.78");
    }
    // An offer without a price, and a dividend that would leave nothing of the close, are no events either.
    check_alike(&[[0.0, 0.0, 0.0, 3.0, f64::NAN]], 100_000, 1_000, 0, "11.00 9.00");
    check_alike(&[[0.0, 0.0, 100.0, 0.0, 0.0]], 100_000, 1_000, 0, "11.00 9.00");
    // Missing rights do not hide a dividend.
    check_alike(&[[0.0, 0.0, 2.5, f64::NAN, f64::NAN]], 97_500, 1_000, 25_000, "10.73 8.78");
}

#[test]
fn an_event_that_was_left_out_can_be_named() {
    let stock = flat(PLAIN, 10.0)
        .ex_event("2024-03-06", 0.0, 0.0, 1.0, 0.0, 0.0)
        .ex_event("2024-03-07", -1.0, 0.0, 0.0, 0.0, 0.0)
        .ex_event(TODAY, 0.0, 0.0, 500.0, 0.0, 0.0);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock));
    let view = world.view(TODAY, PreMarket);
    let found = view.ex_days(view.find(code(PLAIN)).unwrap(), day(DAYS[0]));
    assert_eq!(found.days.iter().map(|(day, _)| *day).collect::<Vec<_>>(), [day("2024-03-06")]);
    assert_eq!(found.faulty, [day("2024-03-07"), day(TODAY)]);
}
