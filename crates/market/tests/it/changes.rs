//! Changes over sessions (engine E2.7, E2.8).

use traderharness_market::testing::{SmallMarket, SmallStock, day};
use traderharness_market::view::Adjust;
use traderharness_market::{Change, Clock, DecisionPoint, Mask, MaskConfig, NoChange, PriceBasis, SecId, View};

const DAYS: [&str; 8] =
    ["2024-03-04", "2024-03-05", "2024-03-06", "2024-03-07", "2024-03-08", "2024-03-11", "2024-03-12", "2024-03-13"];

fn with_view<T>(market: &SmallMarket, date: &str, run: impl FnOnce(View<'_>) -> T) -> T {
    let store = market.build();
    let mask = Mask::new(&store, MaskConfig::default());
    run(View::new(&store, Clock { day: day(date), point: DecisionPoint::PreMarket }, &mask))
}

fn check(stock: SmallStock, date: &str, sessions: usize, expected: Result<f64, NoChange>) {
    let market = SmallMarket::new(DAYS[0], DAYS.len()).stock(stock).stock(SmallStock::new("000001").closes(&[5.0; 8]));
    // The other stock has the smaller code.
    let got = with_view(&market, date, |view| view.change(SecId(1), sessions));
    match (got, expected) {
        (Ok(Change(got)), Ok(expected)) => assert!((got - expected).abs() < 1e-12, "{got} for {expected}"),
        (got, expected) => assert_eq!(got.map(|c| c.0), expected),
    }
}

fn stock(closes: &[f64]) -> SmallStock {
    SmallStock::new("600519").closes(closes)
}

#[test]
fn n_sessions_are_n_sessions() {
    // **FIX** of E2.8: the change over 5 sessions needs six closes.
    check(stock(&[10.0, 11.0, 12.0, 13.0, 14.0, 15.0]), DAYS[6], 5, Ok(0.5));
    check(stock(&[10.0, 11.0, 12.0, 13.0, 14.0, 15.0]), DAYS[6], 1, Ok(15.0 / 14.0 - 1.0));
    check(stock(&[10.0, 11.0, 12.0, 13.0, 14.0]), DAYS[5], 5, Err(NoChange::InsufficientHistory));
    check(stock(&[10.0, 11.0]), DAYS[1], 1, Err(NoChange::InsufficientHistory));
    check(stock(&[10.0, 11.0]), DAYS[0], 1, Err(NoChange::InsufficientHistory));
    check(stock(&[10.0, 11.0]), DAYS[2], 0, Ok(0.0));
}

#[test]
fn a_security_suspended_yesterday_has_no_change() {
    // **FIX** of E2.7
    check(stock(&[10.0, 11.0, 12.0]).without(DAYS[2]), DAYS[3], 1, Err(NoChange::Suspended));
    check(stock(&[10.0, 11.0, 12.0, 13.0]).without(DAYS[2]), DAYS[4], 1, Ok(13.0 / 11.0 - 1.0));
}

#[test]
fn bad_closes_have_a_reason_and_no_number() {
    for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        check(stock(&[10.0, 11.0, bad]), DAYS[3], 1, Err(NoChange::BadValue));
        check(stock(&[10.0, bad, 11.0]), DAYS[3], 1, Err(NoChange::BadValue));
    }
    check(stock(&[10.0, f64::NAN, 11.0]), DAYS[3], 2, Ok(0.1));
}

#[test]
fn an_ex_day_compares_with_the_adjusted_reference() {
    // Ten new shares per ten: reference 10.00, close 10.50.
    let split = |market_day: &str| stock(&[20.0, 20.0, 10.5, 11.0]).ex_event(market_day, 10.0, 0.0, 0.0, 0.0, 0.0);
    check(split(DAYS[2]), DAYS[3], 1, Ok(0.05));
    check(split(DAYS[2]), DAYS[4], 3, Ok(0.1));
    check(split(DAYS[2]), DAYS[4], 1, Ok(11.0 / 10.5 - 1.0));
    // 1.00 of cash on 20.00: reference 19.00.
    check(stock(&[20.0, 19.0]).ex_event(DAYS[1], 0.0, 0.0, 10.0, 0.0, 0.0), DAYS[2], 1, Ok(0.0));
    // An ex-date inside a suspension counts at the next bar.
    check(stock(&[20.0, 20.0, 10.0, 10.5]).without(DAYS[2]).ex_event(DAYS[2], 10.0, 0.0, 0.0, 0.0, 0.0), DAYS[4], 1, Ok(0.05));
    // An event of today or later is not in the closes up to yesterday.
    check(split(DAYS[4]), DAYS[4], 1, Ok(11.0 / 10.5 - 1.0));
    check(stock(&[20.0, 19.0]).ex_event(DAYS[1], 0.0, 0.0, f64::NAN, 0.0, 0.0), DAYS[2], 1, Err(NoChange::BadValue));
    let forward = SmallMarket::new(DAYS[0], 8).stock(split(DAYS[2])).prices(PriceBasis::ForwardAdjusted);
    assert_eq!(with_view(&forward, DAYS[3], |v| v.change(SecId(0), 1)), Ok(Change(10.5 / 20.0 - 1.0)));
}

#[test]
fn adjusted_closes_are_in_terms_of_the_newest() {
    let market = SmallMarket::new(DAYS[0], 8).stock(
        stock(&[20.0, f64::NAN, 10.5, 11.0, 5.0])
            .ex_event(DAYS[2], 10.0, 0.0, 0.0, 0.0, 0.0)
            .ex_event(DAYS[4], 10.0, 0.0, 0.0, 0.0, 0.0),
    );
    let closes = |date: &str, n: usize| {
        with_view(&market, date, |v| {
            let bars = v.daily(SecId(0)).tail(n);
            let factors = v.ex_dates(SecId(0)).factors(&bars, *bars.day.last().unwrap(), Adjust::TotalReturn);
            // The factor of the first bar alone is the same one.
            assert_eq!(v.ex_dates(SecId(0)).factor(&bars, Adjust::TotalReturn), factors[0]);
            bars.close.iter().zip(factors).map(|(c, f)| c * f.unwrap().price).collect::<Vec<f64>>()
        })
    };
    assert_eq!(closes(DAYS[4], 2), [10.5, 11.0]);
    let all = closes(DAYS[4], 9);
    assert!((all[0] - 10.0).abs() < 1e-12 && all[1].is_nan() && all[2..] == [10.5, 11.0]);
    let later = closes(DAYS[5], 9);
    assert!(
        (later[0] - 5.0).abs() < 1e-12 && (later[2] - 5.25).abs() < 1e-12 && (later[3] - 5.5).abs() < 1e-12 && later[4] == 5.0
    );
}

fn check_session(stock: SmallStock, date: &str, point: DecisionPoint, expected: Result<f64, NoChange>) {
    let store = SmallMarket::new(DAYS[0], 8).stock(stock).stock(SmallStock::new("000001").closes(&[5.0; 8])).build();
    let mask = Mask::new(&store, MaskConfig::default());
    let view = View::new(&store, Clock { day: day(date), point }, &mask);
    let sec = view.find(traderharness_market::testing::code("600519")).unwrap();
    assert_eq!(view.session_change_pct(sec), expected);
}

#[test]
fn the_newest_session_is_today_in_a_window_and_yesterday_before_the_open() {
    use DecisionPoint::{Close2, PreMarket};
    let traded = || stock(&[10.0, 11.0]).minutes(DAYS[2], &[12.1; 48]);
    check_session(traded(), DAYS[2], PreMarket, Ok(10.0));
    check_session(traded(), DAYS[2], Close2, Ok(10.0));
    check_session(traded().ex_event(DAYS[2], 10.0, 0.0, 0.0, 0.0, 0.0), DAYS[2], PreMarket, Ok(10.0));
    check_session(traded().ex_event(DAYS[2], 10.0, 0.0, 0.0, 0.0, 0.0), DAYS[2], Close2, Ok(120.0));
    check_session(traded().ex_event(DAYS[2], -1.0, 0.0, 0.0, 0.0, 0.0), DAYS[2], Close2, Err(NoChange::BadValue));
    check_session(stock(&[10.0, 11.0, 12.0]).without(DAYS[2]), DAYS[3], PreMarket, Err(NoChange::Suspended));
    check_session(stock(&[10.0, f64::NAN]), DAYS[2], PreMarket, Err(NoChange::BadValue));
    check_session(stock(&[10.0]), DAYS[1], PreMarket, Err(NoChange::InsufficientHistory));
    check_session(stock(&[10.0, 11.0]).minutes(DAYS[2], &[f64::NAN; 48]), DAYS[2], Close2, Err(NoChange::BadValue));
    // No 5-minute bars at all: nothing can tell a suspension.
    check_session(stock(&[10.0, 11.0]), DAYS[2], Close2, Err(NoChange::SourceMissing));
}
