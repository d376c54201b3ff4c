//! A hole in the data is no suspension (DESIGN rule 10).

use traderharness_market::testing::{SmallMarket, SmallStock, code, day};
use traderharness_market::{Clock, DecisionPoint, Mask, MaskConfig, View};

const DAYS: [&str; 4] = ["2024-03-04", "2024-03-05", "2024-03-06", "2024-03-07"];

fn stock(name: &str, minute_days: &[&str]) -> SmallStock {
    minute_days.iter().fold(SmallStock::new(name).closes(&[10.0; 4]), |stock, date| stock.minutes(date, &[10.0; 48]))
}

fn check(minutes: &[(&str, &[&str])], date: &str, point: DecisionPoint, expected: &[(&str, Option<bool>)]) {
    let market = minutes.iter().fold(SmallMarket::new(DAYS[0], 4), |market, (name, days)| market.stock(stock(name, days)));
    let store = market.build();
    let mask = Mask::new(&store, MaskConfig::default());
    let view = View::new(&store, Clock { day: day(date), point }, &mask);
    for (name, wanted) in expected {
        assert_eq!(view.suspended_today(view.find(code(name)).unwrap()), *wanted, "{name} on {date} at {point}");
    }
}

#[test]
fn a_security_without_a_bar_is_suspended_only_where_the_market_is_seen_to_trade() {
    let both: [(&str, &[&str]); 2] = [("600001", &[DAYS[1], DAYS[2]]), ("600002", &[DAYS[1]])];
    // Before the open nobody knows; from the first window the other one trades and this one does not.
    check(&both, DAYS[2], DecisionPoint::PreMarket, &[("600001", None), ("600002", None)]);
    check(&both, DAYS[2], DecisionPoint::Open1, &[("600001", Some(false)), ("600002", Some(true))]);
    // A day without any 5-minute bar: nothing is known of anybody.
    check(&both, DAYS[3], DecisionPoint::Close2, &[("600001", None), ("600002", None)]);
    // The first day with bars: there is no covered day before it, so a missing bar counts.
    check(&both, DAYS[1], DecisionPoint::Open1, &[("600001", Some(false)), ("600002", Some(false))]);
}

#[test]
fn a_security_whose_bars_the_dataset_lacks_is_not_called_suspended() {
    // 600002 traded on the covered day before and has no 5-minute bar of it.
    let half: [(&str, &[&str]); 2] = [("600001", &[DAYS[1], DAYS[2]]), ("600002", &[])];
    check(&half, DAYS[2], DecisionPoint::Open1, &[("600001", Some(false)), ("600002", None)]);
}
