//! The account over days: cost and profit, cash that can be spent and withdrawn, valuation.

use crate::fixture::*;
use traderharness_market::DecisionPoint::{Close1, Close2, Open1, Open2, PreMarket};
use traderharness_market::testing::{SmallMarket, SmallStock};
use traderharness_market::{Cash, FeeSchedule, Price, Shares};
use traderharness_tools_exec::CardLimits;
use traderharness_tools_exec::valuation::MarkSource;

#[test]
fn sale_proceeds_buy_other_shares_today_and_can_be_withdrawn_tomorrow() {
    // complaint OR-4; engine E3.5
    let world = World::full();
    let mut account = traderharness_tools_exec::Account::new(Cash(1_000_500));
    place(buy(OTHER, 100), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    assert_eq!(account.cash(), Cash(0));
    let sold = place(sell(OTHER, 0), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    // 10,000.00 less commission 5.00 and stamp duty 10.00
    assert_eq!((sold.net_income(), account.cash(), account.ledger().withdrawable()), (Cash(998_500), Cash(998_500), Cash(0)));
    place(buy(PLAIN, 900), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    assert_eq!((account.cash(), account.ledger().withdrawable()), (Cash(98_000), Cash(0)));
    account.start_day(&world.view(NEXT, PreMarket)).unwrap();
    assert_eq!(account.ledger().withdrawable(), Cash(98_000));
}

#[test]
fn cost_excludes_fees_and_profit_includes_those_of_both_sides() {
    // engine E7.2; spec/tools.md b33. 1,000 at 10.00: commission 5.00. Sold at 10.00: commission 5.00, stamp duty 10.00 (reference).
    let world = World::full();
    let mut account = holding(&world, PLAIN, 1_000);
    let position = &account.ledger().positions()[0];
    assert_eq!((position.average_cost(), position.cost, position.buy_fees), (Price(100_000), Cash(1_000_000), Cash(500)));
    let part = place(sell(PLAIN, 300), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    assert_eq!(part.fees.total(), Cash(500 + 300));
    assert_eq!((part.realised.gross, part.realised.net), (Cash(0), Cash(-(500 + 300) - 150)));
    let rest = place(sell(PLAIN, 0), &world.view(TODAY, Open2), &mut account, &free()).unwrap();
    assert_eq!(rest.realised.net, Cash(-(500 + 700) - 350));
    let all: i64 = account.fills().iter().map(|f| f.realised.net.0).sum();
    assert_eq!((account.ledger().realised(), Cash(all)), (Cash(-2_500), Cash(-2_500)));
    assert_eq!(account.cash().0 - account.initial_cash.0, -2_500, "what was realised is what the cash shows");
}

#[test]
fn the_dated_schedule_halves_the_stamp_duty_and_adds_the_transfer_fee() {
    // engine E4: 2024-03-08, stamp duty 0.05 %, transfer fee 0.001 %
    let world = World::full();
    let dated = CardLimits { fees: FeeSchedule::Dated, ..free() };
    let mut account = holding(&world, PLAIN, 1_000);
    let fill = place(sell(PLAIN, 1_000), &world.view(TODAY, Open1), &mut account, &dated).unwrap();
    assert_eq!((fill.fees.commission, fill.fees.stamp_duty, fill.fees.transfer), (Cash(500), Cash(500), Cash(10)));
    assert_eq!((fill.rules.band, fill.rules.fee_schedule()), ("main_10pct", "dated"));
}

#[test]
fn the_account_is_valued_at_the_last_visible_bar_and_never_later() {
    // engine E2.2, E7.1; complaint LA-15: 10.00 until 09:50, 10.50 until 10:00, 9.70 after
    let closes: Vec<f64> = (0..48)
        .map(|i| {
            if i < 4 {
                10.0
            } else if i < 6 {
                10.5
            } else {
                9.7
            }
        })
        .collect();
    let market = SmallMarket::new(DAYS[0], 10).stock(today_at(PLAIN, 10.2, &closes));
    let world = World::of(&market);
    let mut account = holding(&world, PLAIN, 100);
    let mark = |account: &traderharness_tools_exec::Account, point| {
        let valued = account.valuation(&world.view(TODAY, point)).positions[0].clone();
        (valued.mark.price, valued.mark.source, valued.mark.time.unwrap().1.to_string())
    };
    assert_eq!(mark(&account, PreMarket), (Price(102_000), MarkSource::DailyClose, "15:00".to_owned()));
    assert_eq!(mark(&account, Open1), (Price(100_000), MarkSource::FiveMinuteClose, "09:50".to_owned()));
    assert_eq!(mark(&account, Open2), (Price(105_000), MarkSource::FiveMinuteClose, "10:00".to_owned()));
    assert_eq!(mark(&account, Close1).0, Price(97_000));
    // An order fills at the bar that is the newest visible one, whose end is the clock's own limit.
    for (point, price) in [(Open1, 100_000), (Open2, 105_000), (Close2, 97_000)] {
        let view = world.view(TODAY, point);
        let fill = place(buy(PLAIN, 100), &view, &mut account, &free()).unwrap();
        assert_eq!((fill.price, Some(fill.bar_end)), (Price(price), view.clock().point.visible_until()));
    }
}

#[test]
fn a_suspended_holding_keeps_its_last_close() {
    // spec/tools.md b15: bought at 10.00, closed at 12.00, then suspended
    let stock = SmallStock::new(PLAIN).closes(&[10.0, 10.0, 10.0, 10.5]).minutes("2024-03-07", &[10.0; 48]);
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock).stock(flat(OTHER, 10.0)));
    let mut account = rich();
    place(buy(PLAIN, 100), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap();
    let valued = account.valuation(&world.view(NEXT, Close2));
    let position = &valued.positions[0];
    assert_eq!(
        (position.mark.price, position.mark.source, position.value),
        (Price(105_000), MarkSource::DailyClose, Cash(105_000))
    );
    assert_eq!(account.equity(&world.view(NEXT, Close2)), Cash(100_000_000 - 100_500 + 105_000));
}

#[test]
fn a_partial_sale_keeps_the_cost_exact() {
    // 300 at 10.00 and 100 at 10.03: 4,003.00 for 400, average 10.0075 shown as 10.01. Selling 100 three times and the rest
    // gives back exactly the cost.
    let closes: Vec<f64> = (0..48).map(|i| if i < 4 { 10.0 } else { 10.03 }).collect();
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(today_at(PLAIN, 10.0, &closes).minutes(NEXT, &[10.0; 48])));
    let mut account = rich();
    place(buy(PLAIN, 300), &world.view(TODAY, Open1), &mut account, &free()).unwrap();
    place(buy(PLAIN, 100), &world.view(TODAY, Open2), &mut account, &free()).unwrap();
    let position = &account.ledger().positions()[0];
    assert_eq!((position.cost, position.average_cost(), position.total), (Cash(400_300), Price(100_100), Shares(400)));
    let costs: Vec<i64> = (0..4)
        .map(|_| place(sell(PLAIN, 100), &world.view(NEXT, Open1), &mut account, &free()).unwrap().realised.cost.0)
        .collect();
    assert_eq!((costs.iter().sum::<i64>(), costs[0]), (400_300, 100_075));
}

#[test]
fn a_price_no_share_can_have_never_fills() {
    // complaint OR-7: closes of zero, below zero, missing and absurd
    for close in [0.0, -1.0, f64::NAN, 0.001, 1e14] {
        let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(today_at(PLAIN, 10.0, &[close; 48])));
        let refusal = place(buy(PLAIN, 100), &world.view(TODAY, Open1), &mut rich(), &free()).unwrap_err();
        assert_eq!(refusal.code().as_str(), "no_bar_in_window", "{close}");
    }
}

#[test]
fn a_clock_behind_the_account_is_a_defect_not_a_trade() {
    let world = World::full();
    let mut account = holding(&world, PLAIN, 100);
    let refusal = place(buy(PLAIN, 100), &world.view("2024-03-07", Open1), &mut account, &free()).unwrap_err();
    assert_eq!(refusal.code().as_str(), "internal");
    assert!(account.start_day(&world.view("2024-03-07", PreMarket)).is_err());
}
