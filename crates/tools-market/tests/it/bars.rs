//! `get_kline` and `get_stock_price`: what is visible when, and what happens to holes, ex-dates and suspensions.

use crate::call::{at, bright, call, column, hidden, masked, missing, real, refused, schema_refuses};
use serde_json::{Value, json};
use traderharness_contract::budget::RESULT_LIMIT;
use traderharness_contract::{ErrorCode, Policy};
use traderharness_market::testing::{SmallMarket, SmallStock};
use traderharness_market::{DecisionPoint, PriceBasis, Store};
use traderharness_tools_market::tools;

const CODE: &str = "600519";

/// Weekdays from Monday 2024-03-04.
fn market(sessions: usize, stock: SmallStock) -> SmallMarket {
    SmallMarket::new("2024-03-04", sessions).stock(stock)
}

fn rising(sessions: usize) -> Vec<f64> {
    (0..sessions).map(|i| 10.0 + i as f64 * 0.1).collect()
}

fn kline(store: &Store, clock: &str, more: Value) -> Value {
    let mut args = json!({ "stock_code": CODE });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call(store, clock, "get_kline", args)
}

fn price(store: &Store, clock: &str) -> Value {
    call(store, clock, "get_stock_price", json!({ "stock_code": CODE }))
}

// complaint LA-9, engine E2.1
#[test]
fn no_decision_point_shows_the_daily_bar_of_its_own_day() {
    let store = market(10, SmallStock::new(CODE).closes(&rising(10)).minutes("2024-03-08", &[77.0; 48])).build();
    for point in DecisionPoint::ALL {
        let got = kline(&store, &format!("2024-03-08 {point}"), json!({"days": 250}));
        assert_eq!(column(&got, "recent_20", "day"), ["2024-03-04", "2024-03-05", "2024-03-06", "2024-03-07"], "{point}");
        assert!(!got.to_string().contains("77"), "{point}");
        assert_eq!(missing(&got), ["count: insufficient_history"]);
    }
}

// complaint LA-12, engine E1.1: bars carry their END minute
#[test]
fn a_quote_is_the_close_of_the_last_bar_that_has_ended() {
    let closes: Vec<f64> = (1..=48).map(|i| 10.0 + f64::from(i) / 100.0).collect();
    let store = market(5, SmallStock::new(CODE).closes(&[10.0; 4]).minutes("2024-03-08", &closes)).build();
    for (point, last_bar, bars, time) in [
        ("open_1", 10.04, 4, "09:50"),
        ("open_2", 10.06, 6, "10:00"),
        ("close_1", 10.46, 46, "14:50"),
        ("close_2", 10.48, 48, "15:00"),
    ] {
        let got = price(&store, &format!("2024-03-08 {point}"));
        assert_eq!(got["price"], json!(last_bar), "{point}");
        assert_eq!(got["price_time"], json!(format!("2024-03-08 {time}")));
        assert_eq!(got["high"], json!(last_bar), "nothing higher has happened yet");
        assert_eq!(got["volume"], json!(bars * 10_000), "{point}");
        assert_eq!(got["open"], json!(10.01));
        assert_eq!(
            (&got["tradable_now"], &got["suspended"], &got["minutes_since_bar"]),
            (&json!(true), &json!(false), &json!(0))
        );
        assert_eq!(got["as_of"], json!({"day": "2024-03-08", "time": time, "decision_point": point}));
        assert_eq!(got["previous_close"], json!(10.0));
    }
    let before = price(&store, "2024-03-08 pre_market");
    assert_eq!((&before["price"], &before["day"], &before["suspended"]), (&json!(10.0), &json!("2024-03-07"), &Value::Null));
    assert_eq!((&before["price_source"], &before["change_pct"]), (&json!("previous_daily_close"), &json!(0.0)));
    assert_eq!(before["as_of"], json!({"day": "2024-03-07", "time": "15:00", "decision_point": "pre_market"}));
}

// spec/tools.md b30
#[test]
fn a_stock_halted_since_keeps_its_last_bar_of_today_but_is_not_tradable() {
    let store = market(5, SmallStock::new(CODE).closes(&[10.0; 4]).minutes("2024-03-08", &[10.1, 10.2])).build();
    let got = price(&store, "2024-03-08 close_1");
    assert_eq!((&got["price"], &got["tradable_now"], &got["suspended"]), (&json!(10.2), &json!(false), &json!(false)));
    assert_eq!(got["minutes_since_bar"], json!(310));
}

// engine E2.7, spec/tools.md b27 b32
#[test]
fn a_suspended_stock_has_a_price_but_no_change() {
    let stock = SmallStock::new(CODE).closes(&[10.0, 11.0, 11.0, 11.0]).without("2024-03-07");
    let other = SmallStock::new("000001").closes(&[5.0; 5]).minutes("2024-03-08", &[5.0; 48]);
    let store = market(5, stock).stock(other).build();
    let before = price(&store, "2024-03-08 pre_market");
    assert_eq!((&before["price"], &before["day"], &before["change_pct"]), (&json!(11.0), &json!("2024-03-06"), &Value::Null));
    assert!(missing(&before).contains(&"change_pct: suspended".to_owned()));
    assert_eq!(before["suspended"], Value::Null, "today's suspension is not known before the open");
    let inside = price(&store, "2024-03-08 open_1");
    assert_eq!((&inside["suspended"], &inside["change_pct"]), (&json!(true), &Value::Null));
}

// DESIGN rule 10: where the dataset has no 5-minute bars, nobody is called suspended
#[test]
fn a_day_without_any_five_minute_bar_suspends_nobody() {
    let store = market(5, SmallStock::new(CODE).closes(&[10.0, 11.0, 11.0, 11.0, 11.0])).build();
    let inside = price(&store, "2024-03-08 open_1");
    assert_eq!(
        (&inside["suspended"], &inside["change_pct"], &inside["tradable_now"]),
        (&Value::Null, &Value::Null, &json!(false))
    );
    for gap in ["suspended: source_missing", "change_pct: source_missing"] {
        assert!(missing(&inside).contains(&gap.to_owned()), "{gap}: {inside}");
    }
}

#[test]
fn sessions_without_a_bar_are_listed_as_runs() {
    let days = ["2024-03-05", "2024-03-06", "2024-03-08", "2024-03-12", "2024-03-13"];
    let stock = days.iter().fold(SmallStock::new(CODE).closes(&rising(8)), |s, day| s.without(day));
    let got = kline(&market(8, stock).build(), "2024-03-13 pre_market", json!({}));
    assert_eq!(column(&got, "recent_20", "day"), ["2024-03-04", "2024-03-07", "2024-03-11"]);
    let run = |from: &str, to: &str, n: u32| json!({"from": from, "to": to, "sessions": n, "reason": "suspended"});
    assert_eq!(
        got["missing"],
        json!([run("2024-03-05", "2024-03-06", 2), run("2024-03-08", "2024-03-08", 1), run("2024-03-12", "2024-03-12", 1)])
    );
}

#[test]
fn the_newest_twenty_bars_are_whole_and_the_older_ones_summarised() {
    let store = market(40, SmallStock::new(CODE).closes(&rising(40))).build();
    let got = kline(&store, "2024-04-26 pre_market", json!({"days": 32}));
    assert_eq!(got["recent_20"].as_array().unwrap().len(), 20);
    let older = &got["older_summary"];
    assert_eq!((&older["period_days"], &older["avg_volume"]), (&json!(12), &json!(1_000_000)));
    // Sessions 7 to 18: the first opens at the close of session 6.
    assert_eq!((&older["open_price"], &older["close_price"], &older["change_pct"]), (&json!(10.6), &json!(11.8), &json!(11.32)));
    assert_eq!((&older["ma5_end"], &older["ma10_end"]), (&json!(11.6), &json!(11.35)));
    // complaint NU-4: a mean of 20 sessions needs 20 sessions
    assert_eq!(older["ma20_end"], Value::Null);
    assert_eq!(missing(&got), ["older_summary.ma20_end: insufficient_history"]);
    let shifted = kline(&store, "2024-04-26 pre_market", json!({"days": 3, "end_offset": 2}));
    assert_eq!(column(&shifted, "recent_20", "day"), ["2024-04-19", "2024-04-22", "2024-04-23"]);
}

// complaints TR-2, TR-5
#[test]
fn full_detail_comes_in_pages_that_fit_and_lose_nothing() {
    let store = market(260, SmallStock::new(CODE).closes(&rising(260))).build();
    let fields = json!(["open", "high", "low", "close", "volume", "amount", "change_pct"]);
    let mut args = json!({"stock_code": CODE, "days": 250, "detail": "full", "fields": fields});
    let mut days: Vec<String> = vec![];
    loop {
        let page = call(&store, "2025-02-28 close_2", "get_kline", args.clone());
        assert!(page.to_string().chars().count() < RESULT_LIMIT);
        assert_eq!((&page["total"], &page["count"], &page["complete"]), (&json!(250), &json!(250), &json!(false)));
        days.extend(column(&page, "bars", "day"));
        assert_eq!(page["returned"], json!(page["bars"].as_array().unwrap().len()));
        match page["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(days.len(), 250);
    assert!(days.windows(2).all(|w| w[0] < w[1]));
    for (clock, change) in [("2025-02-28 close_1", json!({})), ("2025-02-28 close_2", json!({"days": 249}))] {
        let mut other = args.clone();
        other.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        assert_eq!(refused(&store, clock, "get_kline", other).code, ErrorCode::InvalidCursor, "{clock}");
    }
    args["cursor"] = json!("nonsense");
    assert_eq!(refused(&store, "2025-02-28 close_2", "get_kline", args.clone()).code, ErrorCode::InvalidCursor);
    args["detail"] = json!("summary");
    assert_eq!(refused(&store, "2025-02-28 close_2", "get_kline", args).code, ErrorCode::InvalidCursor);
}

/// 10 for 10 bonus and 1 CNY per share on 2024-03-07: a close of 20 becomes a reference of 9.5.
fn ex_stock() -> SmallStock {
    SmallStock::new(CODE).closes(&[18.0, 19.0, 20.0, 9.5, 10.0]).ex_event("2024-03-07", 10.0, 0.0, 10.0, 0.0, 0.0)
}

// engine E2.8
#[test]
fn adjustment_uses_only_ex_dates_up_to_now() {
    let store = market(8, ex_stock()).build();
    let closes = |clock: &str, adjustment: &str| {
        let got = kline(&store, clock, json!({"adjustment": adjustment}));
        assert_eq!(got["adjustment"], json!(adjustment));
        column(&got, "recent_20", "close").join(" ")
    };
    for how in ["none", "split_only", "total_return"] {
        assert_eq!(closes("2024-03-06 close_2", how), "18.0 19.0", "{how}: tomorrow's ex-date is not known");
    }
    assert_eq!(closes("2024-03-11 pre_market", "none"), "18.0 19.0 20.0 9.5 10.0");
    assert_eq!(closes("2024-03-11 pre_market", "split_only"), "9.0 9.5 10.0 9.5 10.0");
    assert_eq!(closes("2024-03-11 pre_market", "total_return"), "8.55 9.02 9.5 9.5 10.0");
    // On the ex-date itself the bars before it are already in terms of today.
    assert_eq!(closes("2024-03-07 open_1", "total_return"), "8.55 9.02 9.5");
    let got = kline(&store, "2024-03-11 pre_market", json!({"adjustment": "split_only", "fields": ["volume", "change_pct"]}));
    assert_eq!(column(&got, "recent_20", "volume").join(" "), "2000000 2000000 2000000 1000000 1000000");
    assert_eq!(column(&got, "recent_20", "change_pct").join(" "), "null 5.56 5.26 0.0 5.26");
    assert_eq!(got["ex_dates"], json!(["2024-03-07"]));
}

// engine E2.8, spec/tools.md b13
#[test]
fn a_quote_on_an_ex_date_compares_with_the_exchange_reference() {
    let store = market(8, ex_stock().minutes("2024-03-07", &[9.69; 4])).build();
    let got = price(&store, "2024-03-07 open_1");
    assert_eq!((&got["previous_close"], &got["reference_price"]), (&json!(20.0), &json!(9.5)));
    assert_eq!((&got["change_pct"], &got["adjustment"]), (&json!(2.0), &json!("exchange_reference")));
    assert_eq!((&got["limit_up"], &got["limit_down"], &got["band_pct"]), (&json!(10.45), &json!(8.55), &json!(10.0)));
}

#[test]
fn a_dataset_that_is_adjusted_already_says_so_and_is_not_adjusted_twice() {
    let store = market(8, ex_stock()).prices(PriceBasis::ForwardAdjusted).build();
    for how in ["none", "split_only", "total_return"] {
        let got = kline(&store, "2024-03-11 pre_market", json!({"adjustment": how}));
        assert_eq!(column(&got, "recent_20", "close").join(" "), "18.0 19.0 20.0 9.5 10.0");
        assert_eq!(got["adjustment"], json!("dataset_forward_adjusted"));
    }
    let bare = market(8, SmallStock::new(CODE).closes(&rising(5))).bare().build();
    let args = json!({"stock_code": CODE, "adjustment": "total_return"});
    let failure = refused(&bare, "2024-03-11 pre_market", "get_kline", args);
    assert_eq!((failure.code, failure.retryable()), (ErrorCode::DataUnavailable, false));
}

// complaint NU-1
#[test]
fn a_hole_in_any_column_is_null_with_a_reason() {
    let good = [10.0, 10.5, 9.5, 10.2, 1000.0, 10_200.0];
    let names = ["open", "high", "low", "close", "volume", "amount"];
    for (column, name) in names.iter().enumerate() {
        for (value, reason) in
            [(f64::NAN, "source_missing"), (f64::INFINITY, "bad_value"), (f64::NEG_INFINITY, "bad_value"), (-1.0, "bad_value")]
        {
            let mut row = good;
            row[column] = value;
            let stock =
                SmallStock::new(CODE).closes(&[10.0, 10.1]).bar("2024-03-06", row).minute_bar("2024-03-07", "09:35", good);
            let store = market(5, stock.minute_bar("2024-03-07", "09:40", row)).build();
            let got = kline(&store, "2024-03-07 pre_market", json!({"fields": names}));
            assert_eq!(got["recent_20"][2][*name], Value::Null, "{name} {value}");
            assert!(missing(&got).contains(&format!("recent_20[2].{name}: {reason}")), "{name} {value}: {:?}", missing(&got));
            let intraday = price(&store, "2024-03-07 open_1");
            if *name == "close" {
                // complaint NU-2: a bar without a close is no trade; the bar before it still is
                assert_eq!((&intraday["price"], &intraday["price_time"]), (&json!(10.2), &json!("2024-03-07 09:35")));
            } else if *name != "open" {
                assert_eq!(intraday[*name], Value::Null, "{name} {value}");
                assert!(missing(&intraday).contains(&format!("{name}: {reason}")), "{name} {value}: {:?}", missing(&intraday));
            }
        }
    }
}

// complaint NU-2
#[test]
fn a_trailing_empty_daily_bar_is_passed_over_and_named() {
    let stock = SmallStock::new(CODE).closes(&[10.0, 10.1]).bar("2024-03-06", [f64::NAN; 6]);
    let got = price(&market(5, stock).build(), "2024-03-07 pre_market");
    assert_eq!((&got["price"], &got["day"], &got["change_pct"]), (&json!(10.1), &json!("2024-03-05"), &Value::Null));
    assert!(missing(&got).contains(&"change_pct: bad_value".to_owned()));
}

#[test]
fn zero_that_was_observed_stays_zero() {
    let stock = SmallStock::new(CODE).closes(&[10.0]).bar("2024-03-05", [10.0, 10.0, 10.0, 10.0, 0.0, 0.0]);
    let got = kline(&market(5, stock).build(), "2024-03-06 pre_market", json!({"fields": ["volume", "amount", "change_pct"]}));
    assert_eq!(got["recent_20"][1], json!({"day": "2024-03-05", "volume": 0, "amount": 0.0, "change_pct": 0.0}));
}

#[test]
fn a_stock_that_is_not_listed_yet_answers_like_one_that_does_not_exist() {
    let later = SmallStock::new(CODE).closes(&[f64::NAN; 0]).bar("2024-03-08", [5.0, 5.0, 5.0, 5.0, 1.0, 5.0]);
    let store = market(6, later).stock(SmallStock::new("000001").closes(&[5.0; 5])).build();
    for tool in ["get_kline", "get_stock_price", "get_stock_info"] {
        let ours = refused(&store, "2024-03-07 close_2", tool, json!({"stock_code": CODE}));
        let unknown = refused(&store, "2024-03-07 close_2", tool, json!({"stock_code": "600001"}));
        assert_eq!(ours, unknown, "{tool}");
        assert_eq!(ours.code, ErrorCode::UnknownSecurity);
        assert!(!format!("{ours:?}").contains(CODE), "an error never repeats the code");
    }
    let args = json!({"stock_code": "000001", "end_offset": 9});
    assert_eq!(refused(&store, "2024-03-07 close_2", "get_kline", args).code, ErrorCode::SecurityDataUnavailable);
}

// engine E8.1, E8.2
#[test]
fn a_masked_run_sees_aliases_and_offsets_only() {
    let store = market(8, ex_stock().name("Example Spirits").minutes("2024-03-08", &[10.0; 4])).build();
    let mask = hidden(&store);
    let alias = mask.code(traderharness_market::SecId(0)).to_owned();
    for tool in ["get_kline", "get_stock_price", "get_stock_info"] {
        let got = masked(&store, &mask, "2024-03-08 open_1", tool, &json!({"stock_code": alias})).unwrap();
        let text = got.to_string();
        assert_eq!(got["stock_code"], json!(alias));
        for hidden in [CODE, "2024", "Example"] {
            assert!(!text.contains(hidden), "{tool} shows {hidden}: {text}");
        }
    }
}

#[test]
fn invalid_arguments_are_refused_by_the_schema() {
    for args in [
        json!({}),
        json!({"stock_code": "00"}),
        json!({"stock_code": CODE, "days": 0}),
        json!({"stock_code": CODE, "days": 251}),
        json!({"stock_code": CODE, "days": "5"}),
        json!({"stock_code": CODE, "fields": []}),
        json!({"stock_code": CODE, "fields": ["turnover"]}),
        json!({"stock_code": CODE, "adjustment": "forward"}),
        json!({"stock_code": CODE, "end_offset": -1}),
        json!({"stock_code": CODE, "x": 1}),
    ] {
        assert!(schema_refuses("get_kline", &args), "{args}");
    }
}

#[test]
fn every_example_is_valid_in_masked_and_unmasked_runs() {
    for handler in tools() {
        for masked_codes in [false, true] {
            let definition = (handler.define)(&Policy { masked_codes, ..Policy::default() });
            let example: Value = serde_json::from_str(handler.spec.example).unwrap();
            assert_eq!(definition.validate(&example), Ok(()), "{} masked {masked_codes}", handler.spec.name);
        }
    }
}

#[test]
fn the_first_day_of_a_dataset_has_no_bars_but_breaks_nothing() {
    let store = market(3, SmallStock::new(CODE).closes(&[10.0; 3]).minutes("2024-03-04", &[10.0; 48])).build();
    let before = real(&store, &bright(&store), at("2024-03-04 pre_market"), "get_stock_price", &json!({"stock_code": CODE}));
    assert_eq!(before.unwrap_err().code, ErrorCode::UnknownSecurity);
    let inside = price(&store, "2024-03-04 open_1");
    assert_eq!((&inside["price"], &inside["change_pct"], &inside["limit_up"]), (&json!(10.0), &Value::Null, &Value::Null));
    assert!(missing(&inside).contains(&"change_pct: insufficient_history".to_owned()));
    let args = json!({"stock_code": CODE});
    assert_eq!(refused(&store, "2024-03-04 open_1", "get_kline", args).code, ErrorCode::SecurityDataUnavailable);
}
