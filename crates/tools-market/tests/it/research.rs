//! `market_bars`: its window, its prices, what it says of its coverage; and the table of sources.

use crate::call::{at, bright, call, column, hidden, issues, masked, missing, refused, schema_refuses};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use traderharness_contract::algebra::check::bars as bars_check;
use traderharness_contract::algebra::{InvocationId, RevisionHistory, check, data_schema, envelope_schema, fit};
use traderharness_contract::audit::audit;
use traderharness_contract::render::{Invocation, answer};
use traderharness_contract::{ErrorCode, FailureClass, Handler, Outcome, Policy};
use traderharness_market::testing::{SmallMarket, SmallStock};
use traderharness_market::{DecisionPoint, PriceBasis, Store, View};
use traderharness_tools_market::research::{MarketBars, TechnicalCompute, requires, revision_history, sources};
use traderharness_tools_market::tools;

pub(crate) const CODE: &str = "600519";

/// Weekdays from Monday 2024-03-04.
fn market(sessions: usize, stock: SmallStock) -> SmallMarket {
    SmallMarket::new("2024-03-04", sessions).stock(stock)
}

fn rising(sessions: usize) -> Vec<f64> {
    (0..sessions).map(|i| 10.0 + i as f64 * 0.1).collect()
}

/// The arguments of a call about the one stock of these tests.
pub(crate) fn with_code(more: &Value) -> Value {
    let mut args = json!({ "instrumentId": CODE });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

fn bars(store: &Store, clock: &str, more: Value) -> Value {
    call(store, clock, "market_bars", with_code(&more))
}

fn closes(got: &Value) -> Vec<f64> {
    got["bars"].as_array().unwrap().iter().map(|bar| bar["close"].as_f64().unwrap()).collect()
}

// spec/seeds.md C5
#[test]
fn the_default_window_is_the_last_252_finished_sessions() {
    let store = market(300, SmallStock::new(CODE).listed("2024-03-04").closes(&rising(300))).build();
    let days = store.calendar().days().to_vec();
    for point in DecisionPoint::ALL {
        let got = bars(&store, &format!("{} {point}", days[280]), json!({"limit": 252}));
        assert_eq!((&got["total"], &got["coverage"]["sessions_requested"]), (&json!(252), &json!(252)));
        assert_eq!(got["coverage"]["requested_start"], json!(days[28].to_string()));
        assert_eq!(
            got["coverage"]["requested_end"],
            json!(days[279].to_string()),
            "{point}: the current session is never served"
        );
        assert_eq!(missing(&got), Vec::<String>::new());
        assert_eq!(got["adjustment"]["requested"], "split_only");
    }
    let got = bars(&store, &format!("{} open_1", days[100]), json!({}));
    assert_eq!(missing(&got), ["coverage.requested_start: before_dataset"], "252 sessions cannot be had, and that is said");
    assert_eq!((&got["coverage"]["sessions_requested"], &got["total"]), (&json!(252), &json!(100)));
}

// spec/seeds.md C5: start 2024-03-08 (Friday) to 2024-03-12: a weekend is no hole
#[test]
fn an_explicit_pair_is_inclusive_and_a_weekend_is_no_hole() {
    let store = market(20, SmallStock::new(CODE).closes(&rising(20))).build();
    let got = bars(&store, "2024-03-20 open_1", json!({"start": "2024-03-08", "end": "2024-03-12"}));
    assert_eq!(column(&got, "bars", "session"), ["2024-03-08", "2024-03-11", "2024-03-12"]);
    assert_eq!(missing(&got), Vec::<String>::new());
    // Nothing there and fully covered: complete and empty.
    let got = bars(&store, "2024-03-20 open_1", json!({"start": "2024-03-09", "end": "2024-03-10"}));
    assert_eq!(
        (&got["bars"], &got["missing_reasons"], &got["coverage"]["sessions_requested"]),
        (&json!([]), &json!([]), &json!(0))
    );
    assert!(matches!(Outcome::answered(got), Outcome::Complete(_)));
}

#[test]
fn a_window_that_makes_no_sense_is_the_callers_error() {
    let store = market(20, SmallStock::new(CODE).closes(&rising(20))).build();
    for (more, code) in [
        (json!({"start": "2024-03-12", "end": "2024-03-08"}), ErrorCode::InvalidFilterRange),
        (json!({"start": "2024-03-12", "end": "2024-03-21"}), ErrorCode::InvalidToolArguments),
        (json!({"start": "2024-02-30", "end": "2024-03-08"}), ErrorCode::InvalidToolArguments),
        (json!({"start": "D-3", "end": "D-1"}), ErrorCode::InvalidToolArguments),
    ] {
        let failure = refused(&store, "2024-03-20 open_1", "market_bars", with_code(&more));
        assert_eq!((failure.code, failure.code.class()), (code, FailureClass::InvalidInput), "{more}");
    }
    for more in [
        json!({"start": "2024-03-08"}),
        json!({"end": "2024-03-08"}),
        json!({"interval": "5m"}),
        json!({"adjustment": "forward"}),
        json!({"start": "yesterday", "end": "2024-03-08"}),
        json!({"limit": 0}),
    ] {
        assert!(schema_refuses("market_bars", &with_code(&more)), "{more}");
    }
    assert_eq!(issues("market_bars", &with_code(&json!({"interval": "5m"}))).len(), 1);
}

// spec/seeds.md C4.4
#[test]
fn a_range_with_holes_is_partial_and_names_each_of_them() {
    let stock = SmallStock::new(CODE)
        .listed("2024-03-06")
        .closes(&rising(20))
        .without("2024-03-04")
        .without("2024-03-05")
        .without("2024-03-12")
        .without("2024-03-13")
        .bar("2024-03-14", [11.0, 11.2, 10.9, 11.1, f64::NAN, 5.0]);
    let store = market(20, stock).build();
    let got = bars(&store, "2024-03-18 open_1", json!({"start": "2024-03-04", "end": "2024-03-18"}));
    assert_eq!(
        got["coverage"]["missing"],
        json!([
            {"from": "2024-03-04", "to": "2024-03-05", "sessions": 2, "reason": "not_listed"},
            {"from": "2024-03-12", "to": "2024-03-13", "sessions": 2, "reason": "suspended"},
        ])
    );
    assert_eq!(got["coverage"]["first_listing"], "2024-03-06");
    assert_eq!((&got["coverage"]["sessions_requested"], &got["coverage"]["sessions_present"]), (&json!(11), &json!(6)));
    assert_eq!(
        missing(&got),
        ["coverage.missing[1]: suspended", "coverage.requested_end: not_finished", "bars[4].volume: source_missing"],
        "before its listing nothing is missing"
    );
    assert_eq!(got["bars"][4]["volume"], json!(null), "unknown is null, not zero");
    assert!(matches!(Outcome::answered(got), Outcome::Partial(_)));
}

// spec/seeds.md C4.9
#[test]
fn zero_is_what_was_observed() {
    let store =
        market(10, SmallStock::new(CODE).closes(&rising(10)).bar("2024-03-05", [10.0, 10.0, 10.0, 10.0, 0.0, 0.0])).build();
    let got = bars(&store, "2024-03-08 open_1", json!({"start": "2024-03-05", "end": "2024-03-05"}));
    assert_eq!((&got["bars"][0]["volume"], &got["missing_reasons"]), (&json!(0), &json!([])));
}

#[test]
fn a_window_without_any_bar_but_with_holes_is_a_failure_and_no_empty_answer() {
    let store = market(10, SmallStock::new(CODE).closes(&rising(10)).without("2024-03-06")).build();
    for (start, end, reason) in [
        ("2024-03-06", "2024-03-06", "suspended"),
        ("2024-03-08", "2024-03-08", "not_finished"),
        ("2023-01-01", "2023-02-01", "before_dataset"),
    ] {
        let failure = refused(&store, "2024-03-08 open_1", "market_bars", with_code(&json!({"start": start, "end": end})));
        assert_eq!(failure.code.class(), FailureClass::InsufficientEvidence);
        assert_eq!(failure.correction["reasons"], json!([reason]));
    }
}

// engine E2.8, E6.1. 10 bonus shares per 10 on the ex-date and 5.00 cash per 10: reference (10.00 - 0.50) / 2 = 4.75.
#[test]
fn adjustments_follow_their_formulas_as_of_the_clock() {
    let stock = || SmallStock::new(CODE).closes(&[10.0, 10.0, 4.8, 4.9, 5.0]).ex_event("2024-03-06", 10.0, 0.0, 5.0, 0.0, 0.0);
    let store = market(5, stock()).build();
    let got = |clock: &str, adjustment: &str| bars(&store, clock, json!({"adjustment": adjustment}));
    let none = got("2024-03-08 open_1", "none");
    assert_eq!(closes(&none), [10.0, 10.0, 4.8, 4.9]);
    let split = got("2024-03-08 open_1", "split_only");
    assert_eq!(closes(&split), [5.0, 5.0, 4.8, 4.9]);
    assert_eq!(split["bars"][0]["volume"], json!(2_000_000));
    let total = got("2024-03-08 open_1", "total_return");
    assert_eq!(closes(&total), [4.75, 4.75, 4.8, 4.9]);
    assert_eq!(total["adjustment"], json!({"requested": "total_return", "applied": "total_return", "adjusted_to": "2024-03-07"}));
    // Before the ex-date nothing is known of it, and on its morning the last finished session is still as traded.
    for clock in ["2024-03-05 close_2", "2024-03-06 pre_market", "2024-03-06 close_2"] {
        let all = ["none", "split_only", "total_return"].map(|a| closes(&got(clock, a)));
        assert!(all.iter().all(|c| *c == all[0] && c.iter().all(|c| *c == 10.0)), "{clock}: {all:?}");
    }
}

#[test]
fn what_a_dataset_cannot_give_is_refused_by_class() {
    let adjusted = market(5, SmallStock::new(CODE).closes(&rising(5))).prices(PriceBasis::ForwardAdjusted).build();
    let failure = refused(&adjusted, "2024-03-08 open_1", "market_bars", with_code(&json!({"adjustment": "none"})));
    assert_eq!((failure.code, failure.code.class()), (ErrorCode::UnsupportedAdjustment, FailureClass::UnsupportedCapability));
    for asked in ["split_only", "total_return"] {
        let got = bars(&adjusted, "2024-03-08 open_1", json!({"adjustment": asked}));
        assert_eq!(
            got["adjustment"],
            json!({"requested": asked, "applied": "dataset_forward_adjusted", "adjusted_to": null}),
            "never said to be what it is not"
        );
        assert_eq!(got["warnings"].as_array().unwrap().len(), 1);
    }
    let bare = market(5, SmallStock::new(CODE).closes(&rising(5))).bare().build();
    let failure = refused(&bare, "2024-03-08 open_1", "market_bars", with_code(&json!({})));
    assert_eq!((failure.code, failure.code.class()), (ErrorCode::DataUnavailable, FailureClass::InsufficientEvidence));
    assert_eq!(closes(&bars(&bare, "2024-03-08 open_1", json!({"adjustment": "none"}))).len(), 4);
}

// spec/seeds.md C10.5
#[test]
fn prices_that_contradict_each_other_are_null_with_their_reason() {
    let store = market(5, SmallStock::new(CODE).closes(&rising(5)).bar("2024-03-05", [12.0, 11.0, 10.0, 10.5, 7.0, 7.0])).build();
    let got = bars(&store, "2024-03-08 open_1", json!({"start": "2024-03-05", "end": "2024-03-05"}));
    let bar = &got["bars"][0];
    assert_eq!((&bar["open"], &bar["close"], &bar["volume"]), (&json!(null), &json!(null), &json!(7)));
    assert_eq!(missing(&got).len(), 4);
}

#[test]
fn pages_hold_every_bar_once_and_belong_to_their_query() {
    let store = market(300, SmallStock::new(CODE).closes(&rising(300))).build();
    let clock = format!("{} open_1", store.calendar().days()[299]);
    let whole = bars(&store, &clock, json!({"limit": 10}))["snapshot"].clone();
    let (mut sessions, mut cursor, mut pages) = (Vec::new(), None::<String>, 0);
    loop {
        let mut args = json!({"limit": 100});
        if let Some(cursor) = &cursor {
            args["cursor"] = json!(cursor);
        }
        let got = bars(&store, &clock, args);
        assert_eq!(got["offset"], json!(sessions.len()));
        assert_eq!(got["snapshot"], whole, "the snapshot is that of the window, not of the page");
        assert!(got.to_string().len() < 10_000);
        sessions.extend(column(&got, "bars", "session"));
        pages += 1;
        match got["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert!(pages > 2);
    assert_eq!(sessions.len(), 252);
    assert_eq!(sessions.iter().collect::<BTreeSet<_>>().len(), 252);
    let first = bars(&store, &clock, json!({"limit": 100}))["next_cursor"].clone();
    let other = with_code(&json!({"limit": 100, "cursor": first, "adjustment": "none"}));
    assert_eq!(refused(&store, &clock, "market_bars", other).code, ErrorCode::InvalidCursor);
}

#[test]
fn a_masked_run_reads_and_shows_days_by_their_distance() {
    let store = market(20, SmallStock::new(CODE).name("Example Spirits").closes(&rising(20)).listed("2024-03-04")).build();
    let mask = hidden(&store);
    let alias = mask.code(View::new(&store, at("2024-03-20 open_1"), &mask).securities().next().unwrap()).to_owned();
    let ask = |more: Value| {
        let mut args = with_code(&more);
        args["instrumentId"] = json!(alias);
        masked(&store, &mask, "2024-03-20 open_1", "market_bars", &args)
    };
    let got = ask(json!({"start": "D-8", "end": "D-5"})).unwrap();
    assert_eq!(column(&got, "bars", "session"), ["D-8", "D-7", "D-6", "D-5"]);
    assert!(!got.to_string().contains("2024"), "{got:#}");
    let failure = ask(json!({"start": "2024-03-12", "end": "2024-03-15"})).unwrap_err();
    assert!(
        failure.code == ErrorCode::InvalidToolArguments && !failure.message.contains("2024"),
        "an absolute day is no day here"
    );
    // The same bars under another mask have another digest only through their days.
    let bright = bars(&store, "2024-03-20 open_1", json!({"start": "2024-03-12", "end": "2024-03-15"}));
    assert_ne!(bright["snapshot"]["digest"], got["snapshot"]["digest"]);
}

// complaint MC-1: HTTP checks `data`, MCP the envelope, and neither passes for the other
#[test]
fn the_two_schemas_of_every_tool_take_their_own_value_and_not_the_others() {
    let store = market(30, SmallStock::new(CODE).name("Example Spirits").closes(&rising(30)).without("2024-03-12")).build();
    let clock = "2024-04-12 open_1";
    let handler = Handler::of::<MarketBars>();
    let definition = (handler.define)(&Policy::default());
    let data = data_schema(&definition.output_schema);
    let envelope = envelope_schema(&data);
    let sent = with_code(&json!({"start": "2024-03-11", "end": "2024-03-20"}));
    let outcome = Outcome::answered(call(&store, clock, "market_bars", sent.clone()));
    let id = InvocationId::new("a1").unwrap();
    let invocation = Invocation {
        source_refs: sources("market_bars"),
        revision_history: revision_history("market_bars"),
        received: Some(&sent),
        ..Invocation::new(&id, "market.bars", "2024-04-12 09:50")
    };
    let answer = answer(&outcome, &invocation).unwrap();
    let result = answer.result().unwrap();
    assert_eq!(check(result, "2024-04-12 09:50"), Ok(()));
    let rows = result.data["bars"].as_array().unwrap();
    assert!(rows.len() > 5 && bars_check("/bars", rows, &result.coverage.as_of).is_empty(), "C10.2, C10.5");
    assert_eq!(result.coverage.requested_start.as_deref(), Some("2024-03-11"));
    assert_eq!(result.coverage.missing_reasons, ["coverage.missing[0]: suspended"]);
    let valid = |schema: &Value, value: &Value| definition_of(schema).validate_output(value).is_ok();
    let (whole, inner) = (answer.to_value(), result.data.clone());
    assert!(valid(&data, &inner) && valid(&envelope, &whole), "{:?}", definition_of(&envelope).validate_output(&whole));
    assert!(!valid(&envelope, &inner) && !valid(&data, &whole));
    // Of all tools: no envelope passes for the data of one, so a door that mixes them up is found out.
    for handler in tools() {
        let data = data_schema(&(handler.define)(&Policy::default()).output_schema);
        assert!(!valid(&data, &whole), "{}", handler.spec.name);
    }
}

fn definition_of(schema: &Value) -> traderharness_contract::Definition {
    let spec = Handler::of::<MarketBars>().spec;
    traderharness_contract::Definition::from_schemas(spec, &Policy::default(), json!({"type": "object"}), schema.clone()).unwrap()
}

// spec/seeds.md C4.8
#[test]
fn a_result_that_is_cut_goes_on_where_it_was_cut() {
    let store = market(100, SmallStock::new(CODE).closes(&rising(100)).without("2024-04-15")).build();
    let clock = format!("{} open_1", store.calendar().days()[99]);
    let mask = bright(&store);
    let view = View::new(&store, at(&clock), &mask);
    let sent = with_code(&json!({"limit": 60}));
    let id = InvocationId::new("a1").unwrap();
    let invocation =
        Invocation { source_refs: sources("market_bars"), ..Invocation::new(&id, "market.bars", "2024-07-19 09:50") };
    let whole = answer(&Outcome::answered(call(&store, &clock, "market_bars", sent.clone())), &invocation).unwrap();
    let whole = whole.result().unwrap().clone();
    let fitted = fit(whole.clone(), 4_000, Some("bars"), |kept| MarketBars::cursor(&view, &sent, kept)).unwrap();
    assert!(fitted.kept > 5 && fitted.characters <= 4_000);
    assert_eq!(fitted.result.coverage, whole.coverage);
    assert_eq!(fitted.result.evidence, whole.evidence);
    assert_eq!(fitted.result.data["returned"], json!(fitted.kept));
    let mut next = sent;
    next["cursor"] = json!(fitted.result.next_cursor);
    let rest = call(&store, &clock, "market_bars", next);
    assert_eq!(rest["offset"], json!(fitted.kept));
    assert_eq!(rest["bars"][0], whole.data["bars"][fitted.kept]);
}

#[test]
fn neither_contract_has_a_finding_and_neither_is_in_the_catalog() {
    for handler in [Handler::of::<MarketBars>(), Handler::of::<TechnicalCompute>()] {
        let definition = (handler.define)(&Policy { masked_codes: true, ..Policy::default() });
        assert_eq!(audit(&definition), []);
        assert!(tools().iter().all(|tool| tool.spec.name != handler.spec.name));
    }
    assert_eq!(requires("technical_compute"), ["market_bars"]);
    assert_eq!(requires("technical.compute"), ["market.bars"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_days_are_sent_the_answer_keeps_to_finished_sessions(
        start in r"(20[0-9]{2}-[0-9]{2}-[0-9]{2}|D[+-][0-9]{1,5})",
        end in r"(2024-0[3-5]-[0-3][0-9]|[0-9]{4}-[0-9]{2}-[0-9]{2}|D[+-][0-9]{1,5})",
        dark: bool,
    ) {
        let store = market(40, SmallStock::new(CODE).closes(&rising(40)).without("2024-03-20")).build();
        let mask = if dark { hidden(&store) } else { bright(&store) };
        let code = mask.code(View::new(&store, at("2024-04-10 open_1"), &mask).securities().next().unwrap()).to_owned();
        let args = json!({"instrumentId": code, "start": start, "end": end});
        match masked(&store, &mask, "2024-04-10 open_1", "market_bars", &args) {
            Ok(got) => prop_assert!(!got["bars"].to_string().contains(if dark { "D+" } else { "2024-04-1" }), "{}", got),
            Err(failure) => prop_assert!(failure.code.class() != FailureClass::DependencyUnavailable, "{:?}", failure),
        }
    }
}

#[test]
fn every_read_tool_says_which_tables_it_reads() {
    for handler in tools() {
        assert!(!sources(handler.spec.name).is_empty(), "{}", handler.spec.name);
    }
    assert_eq!(sources("no_such_tool"), [""; 0]);
    assert_eq!(revision_history("get_fundamentals"), RevisionHistory::Incomplete);
    assert_eq!(revision_history("market_bars"), RevisionHistory::NotApplicable);
}
