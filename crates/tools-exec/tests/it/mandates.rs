//! Mandates as they are read, and what they say to one order (spec/seeds.md B16.1, B16.2), with the worked examples.

use crate::fixture::*;
use crate::gate::{cny, mandate, terms, with};
use serde_json::{Value, json};
use traderharness_market::testing::day;
use traderharness_market::{Board, Cash, Price, Shares, Side};
use traderharness_tools_exec::gate::{Facts, Intent, Mandate, MandateError, Structural, Verdict, verdict};

#[test]
fn a_mandate_that_could_be_misunderstood_is_refused_with_its_field() {
    fn check(path: &str, value: Value) {
        match Mandate::from_value(with(path, value.clone())) {
            Err(MandateError::Field { field, .. }) => assert_eq!(field, path, "{value}"),
            Err(MandateError::Syntax { fault }) => assert!(fault.contains(path.rsplit('.').next().unwrap()), "{path}: {fault}"),
            other => panic!("{path} {value}: {other:?}"),
        }
    }
    for cap in ["account_funding_cny", "max_order_notional_cny", "max_total_exposure_cny"] {
        // A cap that is not finite reaches us as null (YAML `.nan`, `.inf`) or as a word.
        for bad in
            [json!(null), json!("NaN"), json!("inf"), json!(-1), json!(0), json!(0.001), json!(1e300), json!("1e3"), json!(true)]
        {
            check(&format!("hard_caps.{cap}"), bad);
        }
    }
    for bad in [json!(null), json!("nan"), json!(-0.5), json!(0), json!(100.5), json!(0.00001)] {
        check("hard_caps.max_leverage", bad);
    }
    for bad in [json!(0), json!(-1), json!(2.5), json!(null), json!("3")] {
        check("hard_caps.max_trades_per_day", bad);
    }
    for bad in [json!([]), json!("stock"), json!(["option"]), json!([1]), json!(null)] {
        check("hard_caps.allowed_instruments", bad);
    }
    for bad in [json!([]), json!(["us_equity"]), json!(null)] {
        check("universe.asset_classes", bad);
    }
    for bad in [json!(["60003"]), json!([600_036]), json!(CHEAP)] {
        check("universe.exclude_symbols", bad);
    }
    check("universe.min_avg_daily_turnover_cny", json!(-1));
    check("consent.created_at", json!("yesterday"));
    for bad in [json!("2024-02-30"), json!("2024-03-11 24:00"), json!("2024-03-11T10:00"), json!(20_240_311), json!("2024-03-01")]
    {
        check("consent.expires_at", bad);
    }
    check("consent.consent_token_sha256", json!("A".repeat(64)));
    check("consent.account_ref", json!("  "));
    for bad in [json!(""), json!("../x"), json!("a/b"), json!("UP"), json!("a".repeat(65))] {
        check("channel", bad);
    }
    check("flatten_on_halt", json!(true));
}

#[test]
fn unknown_versions_and_fields_are_refused() {
    for version in [json!(2), json!(0), json!("1"), json!(1.0), json!(null)] {
        let found = Mandate::from_value(with("schema_version", version.clone()));
        assert!(matches!(found, Err(MandateError::Version { .. })), "{version}: {found:?}");
    }
    // An unknown version is named even where its fields are not ours.
    let other = json!({ "schema_version": 7, "limits": {} });
    assert!(matches!(Mandate::from_value(other), Err(MandateError::Version { .. })));
    for path in ["max_orders", "hard_caps.max_orders", "universe.regions", "consent.token"] {
        let found = Mandate::from_value(with(path, json!(1)));
        let Err(MandateError::Syntax { fault }) = found else { panic!("{path}: {found:?}") };
        assert!(fault.contains(path.rsplit('.').next().unwrap()), "{fault}");
    }
    let mut without = terms();
    without["hard_caps"].as_object_mut().unwrap().remove("max_leverage");
    let Err(MandateError::Syntax { fault }) = Mandate::from_value(without) else { panic!("a missing cap") };
    assert!(fault.contains("max_leverage"), "{fault}");
    for text in ["", "[]", "null", "{", r#"{"schema_version": 1e400}"#] {
        assert!(Mandate::from_json(text).is_err(), "{text}");
    }
}

#[test]
fn a_consent_without_an_end_lasts_thirty_days() {
    let mut terms = terms();
    terms["consent"].as_object_mut().unwrap().remove("expires_at");
    assert_eq!(mandate(terms).consent.expires_at.day(), day("2024-03-31"));
}

#[test]
fn amounts_are_exact() {
    for (text, fen) in [(json!(0.01), 1), (json!("1000.10"), 100_010), (json!(999_999_999_999.99), 99_999_999_999_999)] {
        let mandate = mandate(with("hard_caps.max_order_notional_cny", text));
        assert_eq!(mandate.hard_caps.max_order_notional, Cash(fen));
    }
}

/// The mandate of the worked examples: order 3,000, exposure 5,000, leverage 1.0, funding 4,000.
fn worked(order: i64, leverage: f64, funding: i64) -> Mandate {
    let mut terms = terms();
    terms["hard_caps"]["max_order_notional_cny"] = json!(order);
    terms["hard_caps"]["max_total_exposure_cny"] = json!(5_000);
    terms["hard_caps"]["max_leverage"] = json!(leverage);
    terms["hard_caps"]["account_funding_cny"] = json!(funding);
    mandate(terms)
}

/// Long 2,000 of one security, short 1,000 of another, both quoted at 100.
fn facts() -> Facts {
    Facts {
        board: Some(Board::ShMain),
        st: Some(false),
        quote: Some(Price(100 * Price::SCALE)),
        positions: vec![(code(PLAIN), Some(cny(2_000))), (code(OTHER), Some(cny(-1_000)))],
        trades_today: Some(0),
        market_cap: None,
        avg_daily_turnover: None,
    }
}

fn intent(side: Side, quantity: i64, notional: i64) -> Intent {
    Intent { symbol: code(PLAIN), side, quantity: Shares(quantity), notional: cny(notional), limit: None }
}

fn breach(mandate: &Mandate, intent: &Intent, facts: &Facts) -> (&'static str, String, String, String) {
    let Verdict::Breach(b) = verdict::check(mandate, intent, facts) else {
        panic!("{:?}", verdict::check(mandate, intent, facts))
    };
    (b.limit.as_str(), b.limit.text(b.limit_value), b.limit.text(b.attempted_value), b.limit.text(b.overage()))
}

// spec/seeds.md B16.2, worked example 1
#[test]
fn a_sell_first_reduces_its_own_long() {
    // +2,000 - 2,500 = -500; gross |-500| + |-1,000| = 1,500
    let allowed = verdict::check(&worked(3_000, 1.0, 4_000), &intent(Side::Sell, 0, 2_500), &facts());
    assert_eq!(allowed, Verdict::Allow { notional: cny(2_500), exposure: cny(1_500) });
}

// worked example 2
#[test]
fn a_buy_counts_on_top_of_everything_held() {
    // +2,000 + 2,500 = 4,500; gross 4,500 + 1,000 = 5,500; 500 above 5,000
    let found = breach(&worked(3_000, 1.0, 4_000), &intent(Side::Buy, 0, 2_500), &facts());
    assert_eq!(found, ("max_total_exposure_cny", "5000.00".into(), "5500.00".into(), "500.00".into()));
}

// worked example 3
#[test]
fn an_explicit_amount_cannot_hide_a_larger_size() {
    // max(50, 10 x 120) = 1,200; 200 above 1,000
    let facts = Facts { quote: Some(Price(120 * Price::SCALE)), ..facts() };
    let found = breach(&worked(1_000, 1.0, 4_000), &intent(Side::Buy, 10, 50), &facts);
    assert_eq!(found, ("max_order_notional_cny", "1000.00".into(), "1200.00".into(), "200.00".into()));
}

// complaint OR-10: 5 x max(100, 200) = 1,000 above 750; a sell is sized at the quote, 5 x 100 = 500
#[test]
fn a_buy_limit_above_the_quote_is_the_size() {
    let mandate = worked(750, 1.0, 4_000);
    let limit = Some(Price(200 * Price::SCALE));
    let buy = Intent { limit, ..intent(Side::Buy, 5, 0) };
    assert_eq!(breach(&mandate, &buy, &facts()).2, "1000.00");
    let sell = Intent { limit, ..intent(Side::Sell, 5, 0) };
    assert!(matches!(verdict::check(&mandate, &sell, &facts()), Verdict::Allow { notional, .. } if notional == cny(500)));
}

#[test]
fn what_is_not_known_fails() {
    // complaint OR-11: no price is not a price of zero, also beside an explicit amount
    fn check(facts: &Facts, terms: Value, expected: Structural) {
        let found = verdict::check(&mandate(terms), &intent(Side::Buy, 10, 50), facts);
        assert_eq!(found, Verdict::Deny(expected));
    }
    for quote in [None, Some(Price(0)), Some(Price(-1))] {
        check(&Facts { quote, ..facts() }, terms(), Structural::Unpriceable);
    }
    let unknown_value = vec![(code(OTHER), None)];
    check(&Facts { positions: unknown_value, ..facts() }, terms(), Structural::ExposureUnknown);
    check(&Facts { trades_today: None, ..facts() }, terms(), Structural::CounterUnreadable);
    check(&Facts { board: None, ..facts() }, terms(), Structural::AssetClass);
    check(&Facts { board: Some(Board::Bse), ..facts() }, terms(), Structural::AssetClass);
    let only_stock = with("hard_caps.allowed_instruments", json!(["stock"]));
    check(&Facts { st: None, ..facts() }, only_stock.clone(), Structural::InstrumentUnknown);
    check(&Facts { st: Some(true), ..facts() }, only_stock, Structural::Instrument);
    check(&facts(), with("universe.exclude_symbols", json!([PLAIN])), Structural::Excluded);
    check(&facts(), with("universe.min_market_cap_cny", json!(1)), Structural::MarketCapUnknown);
    check(&facts(), with("universe.min_avg_daily_turnover_cny", json!(1)), Structural::TurnoverUnknown);
    for (quantity, notional) in [(0, 0), (-1, 0), (10, -1)] {
        let found = verdict::check(&mandate(terms()), &intent(Side::Buy, quantity, notional), &facts());
        assert_eq!(found, Verdict::Deny(Structural::Intent), "{quantity} {notional}");
    }
}

#[test]
fn each_cap_holds_at_its_last_unit() {
    // order cap 3,000: 3,000.00 goes, 3,000.01 does not
    let mandate = worked(3_000, 100.0, 4_000);
    let free = Facts { positions: vec![], ..facts() };
    assert!(matches!(verdict::check(&mandate, &intent(Side::Buy, 0, 3_000), &free), Verdict::Allow { .. }));
    let above = Intent { notional: Cash(300_001), ..intent(Side::Buy, 0, 0) };
    assert_eq!(breach(&mandate, &above, &free).3, "0.01");
    // leverage 0.5 of 4,000 = 2,000: 2,000.00 goes; 2,000.01 is 0.5000025, shown rounded up to 0.5001
    let levered = worked(3_000, 0.5, 4_000);
    assert!(matches!(verdict::check(&levered, &intent(Side::Buy, 0, 2_000), &free), Verdict::Allow { .. }));
    let above = Intent { notional: Cash(200_001), ..intent(Side::Buy, 0, 0) };
    assert_eq!(breach(&levered, &above, &free), ("max_leverage", "0.50".into(), "0.5001".into(), "0.0001".into()));
    // three trades a day: the fourth is one too many
    let busy = Facts { trades_today: Some(3), ..free.clone() };
    assert_eq!(breach(&mandate, &intent(Side::Buy, 0, 100), &busy), ("max_trades_per_day", "3".into(), "4".into(), "1".into()));
    // one buy may not cost more than the funding, whatever the leverage
    let poor = worked(3_000, 100.0, 1_000);
    assert_eq!(breach(&poor, &intent(Side::Buy, 0, 1_001), &free).0, "account_funding_cny");
    assert!(matches!(verdict::check(&poor, &intent(Side::Sell, 0, 1_001), &free), Verdict::Allow { .. }));
    // floors are breached from below
    let mut floor = terms();
    floor["universe"]["min_avg_daily_turnover_cny"] = json!(1_000);
    let thin = Facts { avg_daily_turnover: Some(cny(999)), ..free };
    let found = breach(&Mandate::from_value(floor).unwrap(), &intent(Side::Buy, 0, 100), &thin);
    assert_eq!(found, ("min_avg_daily_turnover_cny", "1000.00".into(), "999.00".into(), "1.00".into()));
}

// decision: an order that takes risk away is not held back for the risk that is left
#[test]
fn a_reducing_order_passes_an_exposure_that_is_already_too_high() {
    // held 8,000, above the cap of 5,000; selling 1,000 leaves 7,000
    let mandate = worked(3_000, 1.0, 4_000);
    let rich = Facts { positions: vec![(code(PLAIN), Some(cny(8_000)))], ..facts() };
    assert!(matches!(verdict::check(&mandate, &intent(Side::Sell, 0, 1_000), &rich), Verdict::Allow { .. }));
    assert_eq!(breach(&mandate, &intent(Side::Buy, 0, 1_000), &rich).0, "max_total_exposure_cny");
}

#[test]
fn the_largest_numbers_do_not_wrap() {
    let mandate = mandate(terms());
    let huge = Facts { positions: vec![(code(PLAIN), Some(Cash(i64::MAX))), (code(OTHER), Some(Cash(i64::MIN)))], ..facts() };
    assert_eq!(breach(&mandate, &intent(Side::Buy, 0, 100), &huge).0, "max_total_exposure_cny");
    let most = Intent { quantity: Shares(i64::MAX), ..intent(Side::Buy, 1, 0) };
    assert_eq!(breach(&mandate, &most, &facts()).0, "max_order_notional_cny");
}
