//! `technical_compute`: its numbers against a Python library, and how it judges its input.

use crate::call::{at, call, hidden, issues, masked, missing, refused, schema_refuses};
use crate::research::{CODE, with_code as args};
use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_contract::budget::RESULT_LIMIT;
use traderharness_contract::{ErrorCode, FailureClass};
use traderharness_market::testing::{SmallMarket, SmallStock, day};
use traderharness_market::{PriceBasis, Store, View};

fn market(sessions: usize, stock: SmallStock) -> Store {
    SmallMarket::new("2024-03-04", sessions).stock(stock).build()
}

fn wave(sessions: usize) -> Vec<f64> {
    (0..sessions).map(|i| 10.0 + ((i * 7) % 11) as f64 * 0.1).collect()
}

fn last_day(store: &Store) -> String {
    format!("{} open_1", store.calendar().days().last().unwrap())
}

fn compute(store: &Store, more: &Value) -> Value {
    call(store, &last_day(store), "technical_compute", args(more))
}

fn refusal(store: &Store, more: &Value) -> Value {
    let failure = refused(store, &last_day(store), "technical_compute", args(more));
    assert_eq!(
        (failure.code, failure.code.class()),
        (ErrorCode::InsufficientEvidence, FailureClass::InsufficientEvidence),
        "{more}"
    );
    assert_eq!(failure.correction["eligibility"]["eligible"], false);
    Value::Object(failure.correction)
}

/// The bars of a stock of the vectors as a market whose clock is the day after them.
fn store_of(stock: &Value) -> Store {
    let number = |name: &str, i: usize| stock[name][i].as_f64().unwrap();
    let sessions: Vec<&str> = stock["sessions"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    let mut small = SmallStock::new(CODE);
    for (i, session) in sessions.iter().enumerate() {
        let row = [number("open", i), number("high", i), number("low", i), number("close", i), number("volume", i), 1.0];
        small = small.bar(session, row);
    }
    let days = sessions.iter().copied().chain(stock["clock"].as_str()).map(day).collect();
    SmallMarket::of_days(days).stock(small).prices(PriceBasis::ForwardAdjusted).build()
}

// Vectors: tests/it/vectors/make.py
#[test]
fn indicators_agree_with_the_python_library_on_real_bars() {
    let vectors: Value = serde_json::from_str(include_str!("vectors/indicators.json")).unwrap();
    let (mut compared, mut worst) = (0, 0.0_f64);
    for stock in vectors["stocks"].as_array().unwrap() {
        let store = store_of(stock);
        for case in stock["cases"].as_array().unwrap() {
            let asked =
                json!({"indicator": case["indicator"], "parameters": case["parameters"], "output": "series", "limit": 50});
            let got = compute(&store, &asked);
            let points = got["points"].as_array().unwrap();
            assert_eq!(points.len(), 50, "{}", case["indicator"]);
            assert!(got.to_string().len() < RESULT_LIMIT, "{}", case["indicator"]);
            for (name, line) in case["lines"].as_object().unwrap() {
                for (point, want) in points.iter().zip(&line.as_array().unwrap()[10..]) {
                    let (ours, want) = (point["values"][name].as_f64().unwrap(), want.as_f64().unwrap());
                    let off = (ours - want).abs() / want.abs().max(1e-6);
                    assert!(off <= 1e-9, "{} {name} {}: {ours} {want}", case["indicator"], point["session"]);
                    worst = worst.max(off);
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} values, furthest off {worst:e}");
    assert!(compared > 3_000, "only {compared} values were compared");
}

#[test]
fn the_documented_call_needs_nothing_but_the_instrument() {
    let got = compute(&market(30, SmallStock::new(CODE).closes(&[10.0; 30])), &json!({}));
    assert_eq!((&got["indicator"], &got["parameters"]), (&json!("sma"), &json!({"period": 20})));
    assert_eq!(got["points"], json!([{"session": "2024-04-11", "values": {"value": 10.0}}]));
}

// spec/seeds.md C4.7: 12 < 20
#[test]
fn too_few_bars_are_insufficient_evidence_with_the_judgement() {
    let store = market(13, SmallStock::new(CODE).closes(&wave(13)));
    let facts = refusal(&store, &json!({"indicator": "sma"}));
    assert_eq!(facts["eligibility"]["reason"], "12 bars < 20");
    assert_eq!((&facts["required_bars"], &facts["available_bars"]), (&json!(20), &json!(12)));
    assert_eq!(facts["input_snapshot"]["bars"], 12);
    for (indicator, needed) in [
        (json!({"indicator": "rsi"}), 15),
        (json!({"indicator": "macd"}), 34),
        (json!({"indicator": "stochastic"}), 18),
        (json!({"indicator": "realised_volatility"}), 21),
        (json!({"indicator": "atr", "parameters": {"period": 12}}), 13),
    ] {
        assert_eq!(refusal(&store, &indicator)["required_bars"], needed, "{indicator}");
    }
    // With exactly the bars it needs, it computes.
    assert_eq!(compute(&store, &json!({"indicator": "sma", "parameters": {"period": 12}}))["eligibility"]["eligible"], true);
}

// spec/seeds.md C4.7: bars with holes stay usable, the computation fails
#[test]
fn a_hole_inside_the_needed_bars_makes_them_unfit_and_outside_of_them_does_not() {
    let store = market(40, SmallStock::new(CODE).closes(&wave(40)).without("2024-04-10"));
    let facts = refusal(&store, &json!({"indicator": "sma", "parameters": {"period": 20}}));
    assert_eq!(facts["eligibility"]["reason"], "1 of the 21 sessions needed have no bar");
    assert_eq!(facts["holes"], json!([{"from": "2024-04-10", "to": "2024-04-10", "sessions": 1, "reason": "suspended"}]));
    assert_eq!(call(&store, &last_day(&store), "market_bars", args(&json!({})))["total"], 38, "the bars stay usable");
    let after = compute(&store, &json!({"indicator": "sma", "parameters": {"period": 5}}));
    assert_eq!(after["eligibility"]["reason"], "5 bars >= 5, no hole");
    let over = compute(&store, &json!({"indicator": "sma", "gaps": "traded_sessions"}));
    assert_eq!(over["eligibility"]["reason"], "20 bars >= 20; 1 sessions without a bar are passed over");
    // A recursive indicator needs them all.
    refusal(&store, &json!({"indicator": "ema", "parameters": {"period": 5}}));
    compute(&store, &json!({"indicator": "ema", "parameters": {"period": 5}, "start": "2024-04-11", "end": "2024-04-25"}));
}

#[test]
fn the_newest_session_without_a_bar_is_a_hole() {
    let store = market(40, SmallStock::new(CODE).closes(&wave(40)).without("2024-04-25"));
    let facts = refusal(&store, &json!({"indicator": "sma", "parameters": {"period": 5}}));
    assert_eq!(facts["holes"][0]["from"], "2024-04-25");
}

#[test]
fn a_missing_number_counts_only_where_it_is_read() {
    let store = market(40, SmallStock::new(CODE).closes(&wave(40)).bar("2024-04-24", [10.0, f64::NAN, 9.9, 10.0, f64::NAN, 1.0]));
    compute(&store, &json!({"indicator": "sma"}));
    for indicator in ["atr", "stochastic", "obv"] {
        let facts = refusal(&store, &json!({"indicator": indicator}));
        assert_eq!(facts["holes"], json!([{"session": "2024-04-24"}]), "{indicator}");
        refusal(&store, &json!({"indicator": indicator, "gaps": "traded_sessions"}));
    }
}

// spec/seeds.md C10.1
#[test]
fn what_is_not_defined_is_null_with_its_reason_and_never_zero() {
    let store = market(60, SmallStock::new(CODE).closes(&[10.0; 60]));
    for (indicator, field, nulls) in [
        ("rsi", "value", json!({"value": null})),
        ("bollinger", "percent_b", json!({"upper": 10.0, "middle": 10.0, "lower": 10.0, "percent_b": null, "bandwidth": 0.0})),
    ] {
        let got = compute(&store, &json!({"indicator": indicator}));
        assert_eq!(got["points"][0]["values"], nulls);
        assert_eq!(missing(&got), [format!("points[0].values.{field}: zero_variance")]);
    }
    let got = compute(&store, &json!({"indicator": "stochastic"}));
    assert_eq!(got["points"][0]["values"], json!({"d": null, "k": null}));
    // Calculated zeros are zeros.
    let got = compute(&store, &json!({"indicator": "realised_volatility"}));
    assert_eq!((&got["points"][0]["values"], missing(&got).len()), (&json!({"value": 0.0}), 0));
    let got = compute(&store, &json!({"indicator": "max_drawdown"}));
    assert_eq!((&got["points"][0]["values"], &got["drawdown"]), (&json!({"value": 0.0}), &json!(null)));
}

#[test]
fn a_drawdown_names_its_peak_and_trough() {
    let store = market(7, SmallStock::new(CODE).closes(&[10.0, 12.0, 9.0, 11.0, 6.0, 8.0, 9.0]));
    let got = compute(&store, &json!({"indicator": "max_drawdown"}));
    assert_eq!(got["points"][0]["values"]["value"], -0.5);
    assert_eq!(got["drawdown"], json!({"peak": "2024-03-05", "trough": "2024-03-08"}));
}

#[test]
fn parameters_belong_to_their_indicator() {
    for more in [
        json!({"parameters": {"slow": 26}}),
        json!({"indicator": "rsi", "parameters": {"deviations": 2}}),
        json!({"indicator": "macd", "parameters": {"period": 9}}),
        json!({"indicator": "obv", "parameters": {"period": 9}}),
        json!({"indicator": "bollinger", "parameters": {"period": 0}}),
        json!({"indicator": "sharpe"}),
        json!({"limit": 20}),
        json!({"output": "last", "limit": 20}),
        json!({"start": "2024-03-04"}),
    ] {
        assert!(schema_refuses("technical_compute", &args(&more)), "{more}");
    }
    let said = issues("technical_compute", &args(&json!({"indicator": "macd", "parameters": {"period": 9}})));
    assert!(said.len() == 1 && said[0].contains("period"), "{said:?}");
    let store = market(60, SmallStock::new(CODE).closes(&wave(60)));
    let more = json!({"indicator": "macd", "parameters": {"fast": 30, "slow": 26}});
    let failure = refused(&store, &last_day(&store), "technical_compute", args(&more));
    assert_eq!(failure.code.class(), FailureClass::InvalidInput);
    compute(&store, &json!({"indicator": "macd", "parameters": {"fast": 5}}));
}

#[test]
fn the_snapshot_is_that_of_the_bars_that_went_in() {
    let store = market(60, SmallStock::new(CODE).closes(&wave(60)));
    let digest = |more: &Value| compute(&store, more)["input_snapshot"]["digest"].clone();
    let whole = call(&store, &last_day(&store), "market_bars", args(&json!({})))["snapshot"].clone();
    assert_eq!(compute(&store, &json!({"indicator": "ema"}))["input_snapshot"], whole, "a recursive indicator uses them all");
    assert_ne!(digest(&json!({"indicator": "sma"})), whole["digest"]);
    let same = json!({"start": "2024-04-26", "end": "2024-05-23"});
    let bars = call(&store, &last_day(&store), "market_bars", args(&same));
    assert_eq!(bars["total"], 20);
    assert_eq!(digest(&json!({"indicator": "sma"})), bars["snapshot"]["digest"]);
}

#[test]
fn adjusted_prices_make_an_indicator_continuous_over_an_ex_date() {
    let mut closes = vec![10.0; 20];
    closes.extend([5.0; 20]);
    let store = market(40, SmallStock::new(CODE).closes(&closes).ex_event("2024-04-01", 10.0, 0.0, 0.0, 0.0, 0.0));
    let fall = |adjustment: &str| {
        compute(&store, &json!({"indicator": "max_drawdown", "adjustment": adjustment}))["points"][0]["values"]["value"].clone()
    };
    assert_eq!((fall("none"), fall("split_only"), fall("total_return")), (json!(-0.5), json!(0.0), json!(0.0)));
}

#[test]
fn a_masked_failure_shows_no_absolute_day_and_keeps_its_digest() {
    let store = market(13, SmallStock::new(CODE).name("Example Spirits").closes(&wave(13)));
    let mask = hidden(&store);
    let clock = last_day(&store);
    let alias = mask.code(View::new(&store, at(&clock), &mask).securities().next().unwrap()).to_owned();
    let failure = masked(&store, &mask, &clock, "technical_compute", &json!({"instrumentId": alias})).unwrap_err();
    let facts = Value::Object(failure.correction);
    assert_eq!(facts["input_snapshot"]["last_session"], "D-1");
    assert!(!facts.to_string().contains("2024-"), "{facts}");
    assert!(failure.own_words.contains(&"input_snapshot"), "a digest is no text to be searched for codes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    // spec/seeds.md C10.1
    #[test]
    fn nothing_that_is_not_finite_ever_leaves(
        closes in prop::collection::vec(prop_oneof![Just(10.0), Just(0.01), Just(1e12), 0.01_f64..1e5], 40..70),
        which in 0_usize..12,
    ) {
        let names = ["sma", "ema", "wma", "rsi", "macd", "bollinger", "atr", "stochastic", "obv", "roc", "realised_volatility", "max_drawdown"];
        let store = market(closes.len() + 1, SmallStock::new(CODE).closes(&closes));
        let got = compute(&store, &json!({"indicator": names[which], "output": "series", "limit": 50}));
        let nulls = missing(&got).len();
        let values = got["points"].as_array().unwrap().iter().flat_map(|p| p["values"].as_object().unwrap().values());
        prop_assert_eq!(values.filter(|v| v.is_null()).count(), nulls);
    }
}
