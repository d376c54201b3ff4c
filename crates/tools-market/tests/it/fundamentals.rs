//! Reports, segments and valuation: visible from publication, percent with units, null with a reason.

use crate::call::{call, column, hidden, masked, missing, real, refused, schema_refuses};
use serde_json::json;
use traderharness_contract::ErrorCode;
use traderharness_market::store::{FundamentalRow, SegmentRow};
use traderharness_market::testing::{SmallMarket, SmallStock, code, day, fundamental, moment};
use traderharness_market::{Mask, MaskConfig, Store};

const CODE: &str = "600519";

fn of(stock: SmallStock) -> Store {
    SmallMarket::new("2024-03-04", 5).stock(stock.closes(&[10.0; 5])).build()
}

fn stock() -> SmallStock {
    SmallStock::new(CODE).name("Example Spirits")
}

fn report(visible_from: &str, period: &str, roe: f64) -> FundamentalRow {
    FundamentalRow { period: Some(day(period)), roe: Some(roe), ..fundamental(visible_from) }
}

fn segment(visible_from: &str, report_date: &str, name: &str, revenue: f64) -> SegmentRow {
    SegmentRow {
        code: code(CODE),
        visible_from: Some(moment(visible_from)),
        published: Some(moment(visible_from).day()),
        report_date: Some(day(report_date)),
        kind: "by product".into(),
        name: name.into(),
        revenue: Some(revenue),
        revenue_pct: Some(0.123_45),
        gross_margin: Some(-0.05),
    }
}

#[test]
fn reports_come_newest_period_first_whatever_the_order_of_publication() {
    // The annual report and the first quarter come out together; an old period is corrected later.
    let store = of(stock()
        .fundamental(report("2024-03-04 18:00", "2023-12-31", 0.30))
        .fundamental(report("2024-03-04 18:00", "2024-03-31", 0.08))
        .fundamental(report("2023-10-20 18:00", "2023-09-30", 0.20))
        .fundamental(report("2024-03-05 18:00", "2023-09-30", 0.21)));
    let got = call(&store, "2024-03-06 pre_market", "get_fundamentals", json!({ "stock_code": CODE, "periods": 8 }));
    assert_eq!(column(&got, "reports", "report_period"), ["2024-03-31", "2023-12-31", "2023-09-30"]);
    assert_eq!(column(&got, "reports", "roe"), ["8.0", "30.0", "21.0"], "percent, and the corrected figure");
    assert_eq!(column(&got, "reports", "restated"), ["false", "false", "true"]);
    assert_eq!((&got["total"], &got["complete"], &got["units"]["roe"]), (&json!(3), &json!(true), &json!("percent")));
    // Before the correction the first version stands.
    let got = call(&store, "2024-03-05 close_2", "get_fundamentals", json!({ "stock_code": CODE, "periods": 8 }));
    assert_eq!(column(&got, "reports", "roe"), ["8.0", "30.0", "20.0"]);
    assert_eq!(column(&got, "reports", "restated"), ["false", "false", "false"]);
    let got = call(&store, "2024-03-06 pre_market", "get_fundamentals", json!({ "stock_code": CODE, "periods": 1 }));
    assert_eq!((&got["returned"], &got["total"], &got["complete"]), (&json!(1), &json!(3), &json!(false)));
}

// complaint LA-13, engine E2.4
#[test]
fn a_report_of_the_evening_is_absent_that_day_and_there_the_next() {
    let store = of(stock().fundamental(report("2024-03-05 20:00", "2023-12-31", 0.1)));
    for clock in ["2024-03-05 pre_market", "2024-03-05 open_1", "2024-03-05 close_2"] {
        let failure = refused(&store, clock, "get_fundamentals", json!({ "stock_code": CODE }));
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::SecurityDataUnavailable, false), "{clock}");
    }
    let got = call(&store, "2024-03-06 pre_market", "get_fundamentals", json!({ "stock_code": CODE }));
    assert_eq!(column(&got, "reports", "published"), ["2024-03-05"]);
}

// engine E2.4: a publication day alone means after the close of that day.
#[test]
fn a_report_with_only_a_day_is_not_visible_at_the_last_decision_point_of_that_day() {
    let store = of(stock().fundamental(report("2024-03-05 15:00", "2023-12-31", 0.1)));
    assert_eq!(
        refused(&store, "2024-03-05 close_2", "get_fundamentals", json!({ "stock_code": CODE })).code,
        ErrorCode::SecurityDataUnavailable
    );
    call(&store, "2024-03-06 pre_market", "get_fundamentals", json!({ "stock_code": CODE }));
}

// complaint LA-11
#[test]
fn rows_without_a_publication_date_are_never_visible() {
    let never = FundamentalRow { visible_from: None, published: None, ..report("2023-01-01 15:00", "2022-12-31", 0.9) };
    let lost = SegmentRow { visible_from: None, published: None, ..segment("2023-01-01 15:00", "2022-12-31", "Lost", 1e8) };
    let store = of(stock().fundamental(never).segment(lost));
    for tool in ["get_fundamentals", "get_business_segments"] {
        let failure = refused(&store, "2024-03-08 close_2", tool, json!({ "stock_code": CODE }));
        assert_eq!(failure.code, ErrorCode::SecurityDataUnavailable);
    }
}

// complaint LA-4
#[test]
fn every_date_of_an_answer_is_at_or_before_the_clock() {
    let store = of(stock()
        .fundamental(report("2024-03-04 18:00", "2023-12-31", 0.1))
        .fundamental(report("2024-03-06 18:00", "2024-03-31", 0.1))
        .segment(segment("2024-03-04 18:00", "2023-12-31", "Spirits", 1e8))
        .valuation("2024-03-04", [1.0, 1.0, 1.0, 1.0], false)
        .valuation("2024-03-05", [2.0, 1.0, 1.0, 1.0], false));
    for tool in ["get_fundamentals", "get_business_segments", "get_valuation"] {
        let got = call(&store, "2024-03-05 open_1", tool, json!({ "stock_code": CODE }));
        assert_eq!(got["as_of"], json!({ "day": "2024-03-05", "time": "09:50", "decision_point": "open_1" }));
        let text = got.to_string();
        for later in ["2024-03-06", "2024-03-31", "2025", "2026"] {
            assert!(!text.contains(later), "{tool}: {text}");
        }
    }
}

// complaint NU-1
#[test]
fn broken_numbers_are_null_with_a_reason() {
    let row = FundamentalRow {
        roe: Some(f64::NAN),
        net_profit: Some(f64::INFINITY),
        revenue: Some(f64::NEG_INFINITY),
        eps: Some(0.0),
        ..report("2024-03-04 18:00", "2023-12-31", 0.0)
    };
    let broken = SegmentRow {
        revenue: Some(f64::NEG_INFINITY),
        gross_margin: None,
        ..segment("2024-03-04 18:00", "2023-12-31", "A", 0.0)
    };
    let store = of(stock().fundamental(row).segment(broken).valuation(
        "2024-03-04",
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN],
        false,
    ));
    let got = call(&store, "2024-03-05 open_1", "get_fundamentals", json!({ "stock_code": CODE }));
    let report = &got["reports"][0];
    assert_eq!((&report["roe"], &report["net_profit"], &report["revenue"]), (&json!(null), &json!(null), &json!(null)));
    assert_eq!(report["eps"], json!(0.0), "an observed zero stays zero");
    let why = missing(&got);
    for line in ["reports[0].roe: bad_value", "reports[0].revenue: bad_value", "reports[0].yoy_eps: source_missing"] {
        assert!(why.iter().any(|w| w == line), "{line} in {why:?}");
    }
    let nulls = report.as_object().unwrap().values().filter(|v| v.is_null()).count();
    assert_eq!(nulls, why.len());

    let got = call(&store, "2024-03-05 open_1", "get_business_segments", json!({ "stock_code": CODE }));
    assert_eq!(missing(&got), ["segments[0].revenue_100m_cny: bad_value", "segments[0].gross_margin: source_missing"]);

    let got = call(&store, "2024-03-05 open_1", "get_valuation", json!({ "stock_code": CODE }));
    for field in ["pe_ttm", "pb_mrq", "ps_ttm", "turnover_pct", "avg_turnover_5d_pct", "pe_ttm_percentile"] {
        assert_eq!(got[field], json!(null), "{field}");
        assert!(missing(&got).iter().any(|m| m.starts_with(field)), "{field}");
    }
    // A missing multiple and a broken one are not the same.
    for line in ["pe_ttm: source_missing", "pb_mrq: bad_value", "ps_ttm: bad_value", "pb_mrq_percentile: bad_value"] {
        assert!(missing(&got).iter().any(|m| m == line), "{line} in {:?}", missing(&got));
    }
}

#[test]
fn segments_are_those_of_the_newest_report_as_last_published_largest_first() {
    let store = of(stock()
        .segment(segment("2023-08-30 15:00", "2023-06-30", "Old", 9e8))
        .segment(segment("2024-03-04 15:00", "2023-12-31", "Beer", 5e6))
        .segment(segment("2024-03-04 15:00", "2023-12-31", "Spirits", 12_345_678_901.0))
        .segment(segment("2024-03-06 15:00", "2023-12-31", "Corrected", 1e8)));
    let got = call(&store, "2024-03-05 open_1", "get_business_segments", json!({ "stock_code": CODE }));
    assert_eq!(column(&got, "segments", "name"), ["Spirits", "Beer"]);
    assert_eq!(column(&got, "segments", "revenue_100m_cny"), ["123.46", "0.05"]);
    assert_eq!(column(&got, "segments", "revenue_pct"), ["12.34", "12.34"]);
    assert_eq!(column(&got, "segments", "gross_margin"), ["-5.0", "-5.0"]);
    assert_eq!((&got["report_date"], &got["published"]), (&json!("2023-12-31"), &json!("2024-03-04")));
    let got = call(&store, "2024-03-07 open_1", "get_business_segments", json!({ "stock_code": CODE }));
    assert_eq!(column(&got, "segments", "name"), ["Corrected"]);
}

fn valued(days: usize, value: impl Fn(usize) -> [f64; 4]) -> (Store, String) {
    let market = SmallMarket::new("2023-01-02", days + 1);
    let calendar = market.parts().calendar;
    let mut stock = stock().closes(&vec![10.0; days + 1]);
    for (i, day) in calendar.days()[..days].iter().enumerate() {
        stock = stock.valuation(&day.to_string(), value(i), i == days - 1);
    }
    // A row of today must not count, and not show.
    let today = calendar.days()[days].to_string();
    let store = market.stock(stock.valuation(&today, [-999.0; 4], false)).build();
    (store, format!("{today} close_2"))
}

// engine E2.5
#[test]
fn valuation_is_the_last_row_before_today() {
    let (store, clock) = valued(6, |i| [10.0 + i as f64, 1.2345, f64::NAN, i as f64]);
    let got = call(&store, &clock, "get_valuation", json!({ "stock_code": CODE }));
    assert_eq!((&got["pe_ttm"], &got["pb_mrq"], &got["turnover_pct"]), (&json!(15.0), &json!(1.234), &json!(5.0)));
    assert_eq!((&got["avg_turnover_5d_pct"], &got["is_st"]), (&json!(3.0), &json!(true)));
    assert_eq!((&got["date"], &got["history_days"]), (&json!("2023-01-09"), &json!(6)));
    assert!(!got.to_string().contains("999"));
    assert_eq!(
        missing(&got),
        [
            "ps_ttm: source_missing",
            "pe_ttm_percentile: insufficient_history",
            "pb_mrq_percentile: insufficient_history",
            "ps_ttm_percentile: source_missing"
        ]
    );
}

#[test]
fn a_hole_in_the_last_five_rows_is_a_hole_in_their_mean() {
    let (store, clock) = valued(6, |i| [1.0, 1.0, 1.0, if i == 3 { f64::NAN } else { 2.0 }]);
    let got = call(&store, &clock, "get_valuation", json!({ "stock_code": CODE }));
    assert_eq!(got["avg_turnover_5d_pct"], json!(null));
    assert!(missing(&got).contains(&"avg_turnover_5d_pct: source_missing".to_owned()));
    let (store, clock) = valued(4, |_| [1.0; 4]);
    let got = call(&store, &clock, "get_valuation", json!({ "stock_code": CODE }));
    assert!(missing(&got).contains(&"avg_turnover_5d_pct: insufficient_history".to_owned()));
}

// spec/tools.md T3
#[test]
fn percentiles_need_250_values() {
    let pe = |i: usize| [if i == 249 { 50.0 } else { i as f64 }, 1.0, if i < 3 { f64::NAN } else { 1.0 }, 1.0];
    let (store, clock) = valued(250, pe);
    let got = call(&store, &clock, "get_valuation", json!({ "stock_code": CODE }));
    // 0..=50 and the value itself: 52 of 250.
    assert_eq!((&got["pe_ttm_percentile"], &got["pb_mrq_percentile"]), (&json!(20.8), &json!(100.0)));
    assert_eq!(got["ps_ttm_percentile"], json!(null), "three of the 250 rows have no value");
    let (store, clock) = valued(249, pe);
    let got = call(&store, &clock, "get_valuation", json!({ "stock_code": CODE }));
    assert!(missing(&got).contains(&"pe_ttm_percentile: insufficient_history".to_owned()));
}

// complaint LA-6: a missing source is said, never replaced.
#[test]
fn a_missing_table_is_not_a_missing_row() {
    let bare = SmallMarket::new("2024-03-04", 5).bare().stock(stock().closes(&[10.0; 5])).build();
    let empty = of(stock());
    for tool in ["get_fundamentals", "get_business_segments", "get_valuation"] {
        let args = || json!({ "stock_code": CODE });
        let failure = refused(&bare, "2024-03-05 open_1", tool, args());
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::DataUnavailable, false), "{tool}");
        assert_eq!(refused(&empty, "2024-03-05 open_1", tool, args()).code, ErrorCode::SecurityDataUnavailable, "{tool}");
        let stranger = refused(&empty, "2024-03-05 open_1", tool, json!({ "stock_code": "600000" }));
        assert_eq!(stranger.code, ErrorCode::UnknownSecurity, "{tool}");
    }
}

#[test]
fn arguments_are_closed_and_bounded() {
    for args in [
        json!({}),
        json!({ "stock_code": CODE, "periods": 0 }),
        json!({ "stock_code": CODE, "periods": 9 }),
        json!({ "stock_code": CODE, "x": 1 }),
    ] {
        assert!(schema_refuses("get_fundamentals", &args), "{args}");
    }
}

// spec/tools.md T1, b39
#[test]
fn evidence_ids_follow_the_content_and_the_key_of_the_run() {
    let build = |roe| {
        of(stock()
            .fundamental(report("2024-03-04 18:00", "2023-12-31", roe))
            .segment(segment("2024-03-04 15:00", "2023-12-31", "A", 1e8))
            .segment(segment("2024-03-04 15:00", "2023-12-31", "B", 2e8)))
    };
    let ids = |store: &Store, mask: &Mask| {
        let at = crate::call::at("2024-03-05 open_1");
        let args = json!({ "stock_code": CODE });
        let report = real(store, mask, at, "get_fundamentals", &args).unwrap()["reports"][0]["evidence_id"].clone();
        let segments = real(store, mask, at, "get_business_segments", &args).unwrap()["evidence_id"].clone();
        (report.as_str().unwrap().to_owned(), segments.as_str().unwrap().to_owned())
    };
    let (one, other) = (build(0.1), build(0.2));
    let bright = ids(&one, &crate::call::bright(&one));
    assert!(bright.0.starts_with("fin-") && bright.1.starts_with("seg-"), "{bright:?}");
    assert_ne!(bright.0, ids(&other, &crate::call::bright(&other)).0);
    assert_eq!(bright.1, ids(&other, &crate::call::bright(&other)).1);
    let hidden_ids = ids(&one, &hidden(&one));
    assert_ne!(bright, hidden_ids);
    assert_eq!(hidden_ids, ids(&one, &hidden(&one)));
    let other_key = MaskConfig { dates: true, entities: true, key: b"another secret key".to_vec(), ..MaskConfig::default() };
    assert_ne!(hidden_ids, ids(&one, &Mask::new(&one, other_key)));
}

// engine E8
#[test]
fn a_masked_answer_shows_neither_code_nor_date() {
    let store = of(stock()
        .fundamental(report("2024-03-04 18:00", "2023-12-31", 0.1))
        .segment(segment("2024-03-04 15:00", "2023-12-31", "A", 1e8))
        .valuation("2024-03-04", [1.0; 4], false));
    let mask = hidden(&store);
    let alias = mask.code(store.find(code(CODE)).unwrap()).to_owned();
    for tool in ["get_fundamentals", "get_business_segments", "get_valuation"] {
        let got = masked(&store, &mask, "2024-03-05 open_1", tool, &json!({ "stock_code": alias })).unwrap();
        let text = got.to_string();
        assert!(text.contains(&alias), "{text}");
        for real in [CODE, "2024", "2023"] {
            assert!(!text.contains(real), "{tool}: {text}");
        }
    }
}
