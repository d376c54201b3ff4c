//! The future is unreachable: whatever stands after the clock, no tool, prompt or brief changes, and no sentinel shows.

use crate::battery;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use traderharness_harness::{Session, brief, prompt};
use traderharness_market::{Clock, Day, DecisionPoint, Store, StoreParts};
use traderharness_tests::market;
use traderharness_tests::poison::{Future, poison, shows_poison};
use traderharness_tests::session::{all_tools_card, at};

static PARTS: LazyLock<StoreParts> = LazyLock::new(market::parts);

/// What a model reads at a clock, with that future after it.
fn texts(day: Day, point: DecisionPoint, masked: bool, future: Future) -> Vec<(String, String)> {
    let mut session = open(day, point, masked, future);
    let mut seen = told(&session);
    seen.extend(battery::run(&mut session));
    seen.extend(told(&session));
    if masked {
        // The number of an alias depends on how many securities the universe has.
        let view = session.view();
        let names: Vec<(String, String)> = session
            .mask()
            .in_visible_order()
            .iter()
            .map(|s| (session.mask().code(*s).into(), view.code(*s).to_string()))
            .collect();
        for (asked, text) in &mut seen {
            for (alias, code) in &names {
                *asked = asked.replace(alias, code);
                *text = text.replace(alias, code);
            }
            // Names without a date: what a later day knows is hidden, and told of nobody.
            for name in market::LATER_NAMES.iter().chain([&market::LATER_NAME]) {
                *text = text.replace(name, "another company");
            }
        }
    }
    seen
}

fn open(day: Day, point: DecisionPoint, masked: bool, future: Future) -> Session {
    let mut parts = PARTS.clone();
    future.put(&mut parts, Clock { day, point });
    let store = Arc::new(Store::new(parts).expect("a store"));
    at(&store, all_tools_card(), masked, day, point)
}

/// What the environment says without being asked.
fn told(session: &Session) -> Vec<(String, String)> {
    let config = session.mask().config();
    vec![
        ("system prompt".into(), prompt::system(session.card(), config.dates, config.entities)),
        ("protocol".into(), prompt::protocol(session)),
        ("morning brief".into(), brief::morning(session, &[])),
        ("conditional-order events".into(), brief::conditions(session).unwrap_or_default()),
        ("window message".into(), brief::window(session)),
        ("memory text".into(), session.memory_text().unwrap_or_default()),
        ("account".into(), session.account_summary().to_string()),
        ("tools".into(), serde_json::Value::from(session.tool_definitions()).to_string()),
    ]
}

fn check(day: Day, point: DecisionPoint, masked: bool) {
    let [first, others @ ..] = Future::ALL;
    let one = texts(day, point, masked, first);
    for future in others {
        let two = texts(day, point, masked, future);
        assert_eq!(one.len(), two.len());
        for ((asked, one), (also_asked, two)) in one.iter().zip(&two) {
            assert_eq!(asked, also_asked);
            assert!(!shows_poison(two), "{day} {point}: {asked} shows a row after the clock: {two}");
            assert_eq!(one, two, "{day} {point} masked {masked}: {asked} depends on what is after the clock ({future:?})");
        }
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

/// The same at random clocks: in parts, so that the many of the deep suite run side by side and each within the time of a test.
macro_rules! random_clocks {
    ($($part:ident)*) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                cases: if std::env::var_os("TRADERHARNESS_DEEP").is_some() { 100 } else { 2 },
                failure_persistence: None,
                ..ProptestConfig::default()
            })]
            $(#[test]
            fn $part(back in 1_usize..100, point in 0_usize..5, masked: bool) {
                check(market::days()[market::SESSIONS - back], DecisionPoint::ALL[point], masked);
            })*
        }
    };
}

mod nothing_after_the_clock_reaches_a_model_at_random_clocks {
    use super::*;
    random_clocks! { part_1 part_2 part_3 part_4 }
}

// A security that has not traded answers as a code that does not exist, whatever the dataset already has of it.
#[test]
fn a_security_without_a_row_before_the_clock_is_as_unknown_as_no_security() {
    let day = market::days()[market::SESSIONS - 2];
    let mut asked = 0;
    for point in DecisionPoint::ALL {
        for masked in [false, true] {
            let of = |session: &Session, code: &str| {
                let sec = session.view().find(traderharness_market::testing::code(code)).expect("a code of the fixture");
                (session.mask().code(sec).to_owned(), session.view().is_listed(sec))
            };
            for later in market::LATER {
                let mut session = open(day, point, masked, Future::AsIs);
                let (code, listed) = of(&session, later);
                if listed {
                    continue;
                }
                let known = battery::ask(&mut session, &code);
                let nobody =
                    if masked { format!("{}-000777", code.split_once('-').expect("an alias").0) } else { "688777".into() };
                let unknown = battery::ask(&mut open(day, point, masked, Future::AsIs), &nobody);
                for ((tool, known), (_, unknown)) in known.iter().zip(&unknown) {
                    assert_eq!(known.replace(&code, &nobody), *unknown, "{point} {tool}");
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 100, "only {asked} calls were compared");
}

// Names of announcements after the clock: the mask hides them in earlier texts too, and says nothing of whose they are.
#[test]
fn a_name_of_a_later_day_is_hidden_and_told_of_nobody() {
    let day = market::days()[market::SESSIONS - 2];
    let read = |masked: bool, words: &str| {
        let mut session = open(day, DecisionPoint::Close2, masked, Future::AsIs);
        let args = serde_json::json!({ "days": 3, "keyword": words });
        session.begin_message();
        session.call("get_news", traderharness_harness::RawArguments::Value(args)).expect("an answer").text
    };
    for (words, name) in [("visits a works", market::LATER_NAME), ("sets its price", market::LATER_NAMES[1])] {
        let (masked, plain) = (read(true, words), read(false, words));
        assert!(plain.contains(name), "{plain}");
        assert!(masked.contains("another company") && !masked.contains(name), "{masked}");
    }
    // A name that is known is told, so the mask is at work.
    assert!(read(true, "hires").contains("Company SHM-"));
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
        // The days stay, or the session could not open.
        parts.calendar = PARTS.calendar.clone();
        let store = Arc::new(Store::new(parts).expect("a store"));
        let mut session = at(&store, all_tools_card(), false, day, DecisionPoint::Open1);
        texts.push(battery::run(&mut session));
    }
    assert_ne!(texts[0], texts[1]);
    assert!(texts[0].iter().any(|(_, text)| shows_poison(text)));
}
