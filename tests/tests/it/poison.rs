//! The future is unreachable: whatever stands after the clock, no tool, prompt or brief changes, and no sentinel shows.

use crate::battery;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use traderharness_harness::{Session, brief, prompt};
use traderharness_market::{Clock, Day, DecisionPoint, Store, StoreParts};
use traderharness_tests::market;
use traderharness_tests::poison::{poison, shows_poison};
use traderharness_tests::session::{all_tools_card, at};

static PARTS: LazyLock<StoreParts> = LazyLock::new(market::parts);

fn texts(day: Day, point: DecisionPoint, masked: bool, which: usize) -> Vec<(String, String)> {
    let mut parts = PARTS.clone();
    poison(&mut parts, Clock { day, point }, which);
    let store = Arc::new(Store::new(parts).expect("a store"));
    let mut session = at(&store, all_tools_card(), masked, day, point);
    let mut seen = told(&session);
    seen.extend(battery::run(&mut session));
    seen.extend(told(&session));
    seen
}

/// What the environment says without being asked.
fn told(session: &Session) -> Vec<(String, String)> {
    let config = session.mask().config();
    vec![
        ("system prompt".into(), prompt::system(session.card(), config.dates, config.entities)),
        ("protocol".into(), prompt::protocol(session)),
        ("morning brief".into(), brief::morning(session, &[])),
        ("window message".into(), brief::window(session)),
        ("account".into(), session.account_summary().to_string()),
        ("tools".into(), serde_json::Value::from(session.tool_definitions()).to_string()),
    ]
}

fn check(day: Day, point: DecisionPoint, masked: bool) {
    let (one, two) = (texts(day, point, masked, 0), texts(day, point, masked, 1));
    assert_eq!(one.len(), two.len());
    for ((asked, one), (_, two)) in one.iter().zip(&two) {
        assert!(!shows_poison(one), "{day} {point}: {asked} shows a row after the clock: {one}");
        assert_eq!(one, two, "{day} {point}: {asked} depends on rows after the clock");
    }
}

// complaints LA-1, LA-3, LA-9, LA-13; engine E2
#[test]
fn nothing_after_the_clock_reaches_a_model_at_any_point_of_a_day() {
    let days = market::days();
    for point in DecisionPoint::ALL {
        for masked in [false, true] {
            check(days[market::SESSIONS - 2], point, masked);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("TRADERHARNESS_DEEP").is_some() { 400 } else { 12 }, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_after_the_clock_reaches_a_model_at_random_clocks(back in 1_usize..100, point in 0_usize..5, masked: bool) {
        check(market::days()[market::SESSIONS - back], DecisionPoint::ALL[point], masked);
    }
}

/// Every ISO date in a text.
fn dates(text: &str) -> Vec<Day> {
    let found = text.char_indices().filter_map(|(at, _)| text.get(at..at + 10)).filter_map(|part| Day::parse(part).ok());
    found.collect()
}

// complaint LA-3: the host's clock is far past the day, and no text knows it
#[test]
fn no_text_holds_a_date_after_the_simulated_day() {
    let store = Arc::new(Store::new(PARTS.clone()).expect("a store"));
    let day = market::days()[market::SESSIONS - 2];
    let mut seen = 0;
    for point in DecisionPoint::ALL {
        let mut session = at(&store, all_tools_card(), false, day, point);
        let mut texts = told(&session);
        texts.extend(battery::run(&mut session));
        for (asked, text) in texts {
            for date in dates(&text) {
                assert!(date <= day, "{point}: {asked} holds {date}: {text}");
                seen += 1;
            }
        }
    }
    assert!(seen > 1_000, "only {seen} dates were looked at");
}

// The test can fail: a poison that also replaces a visible row is noticed by the same comparison.
#[test]
fn a_change_of_a_visible_row_is_noticed() {
    let day = market::days()[market::SESSIONS - 2];
    let earlier = Clock { day: market::days()[market::SESSIONS - 3], point: DecisionPoint::PreMarket };
    let mut texts = Vec::new();
    for which in [0, 1] {
        let mut parts = PARTS.clone();
        poison(&mut parts, earlier, which);
        let store = Arc::new(Store::new(parts).expect("a store"));
        let mut session = at(&store, all_tools_card(), false, day, DecisionPoint::Open1);
        texts.push(battery::run(&mut session));
    }
    assert_ne!(texts[0], texts[1]);
    assert!(texts[0].iter().any(|(_, text)| shows_poison(text)));
}
