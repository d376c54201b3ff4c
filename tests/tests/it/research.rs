//! The research capabilities of the doors in a session: blind to the future, and every answer of a tool sound in the result algebra.

use crate::battery;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use traderharness_contract::algebra::{InvocationId, ResultStatus, check, data_schema, envelope_schema};
use traderharness_contract::render::{Invocation, answer};
use traderharness_contract::{Definition, Outcome, Policy};
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, Entry, HostFacts, RawArguments, Registry, Session, SessionConfig};
use traderharness_market::store::BarColumns;
use traderharness_market::{Clock, Day, DecisionPoint, Mask, Store, StoreParts};
use traderharness_tests::poison::{Future, shows_poison};
use traderharness_tests::{market, session::mask_config};
use traderharness_tools_market::research::{MarketBars, TechnicalCompute, revision_history, sources};

static PARTS: LazyLock<StoreParts> = LazyLock::new(market::parts);

fn open(day: Day, point: DecisionPoint, masked: bool, future: Future) -> Session {
    open_with(day, point, masked, |parts| future.put(parts, Clock { day, point }))
}

fn open_with(day: Day, point: DecisionPoint, masked: bool, change: impl FnOnce(&mut StoreParts)) -> Session {
    let mut parts = PARTS.clone();
    change(&mut parts);
    let store = Arc::new(Store::new(parts).expect("a store"));
    let registry = Registry::standard()
        .with(Entry::of::<MarketBars>("research"))
        .and_then(|r| r.with(Entry::of::<TechnicalCompute>("research")))
        .expect("names of their own");
    let allowed_tools = registry.entries().iter().map(|entry| entry.name().to_owned()).collect();
    let card = Card { id: "research".into(), allowed_tools, ..Card::default() };
    let toolbox = Arc::new(registry.build(&card, masked, &HostFacts::default()).expect("known tools"));
    let mask = Arc::new(Mask::new(&store, mask_config(masked)));
    let config = SessionConfig { store, mask, card: Arc::new(card), toolbox, check_output: true };
    let mut session = Session::new(config, day, Box::new(NoJournal)).expect("a trading day");
    session.start_day(day).expect("a trading day");
    while session.clock().point != point {
        session.advance().expect("a later point");
    }
    session
}

/// Calls of both capabilities on listed securities.
fn calls(session: &Session) -> Vec<(&'static str, Value)> {
    let view = session.view();
    let shown = |back: usize| view.sessions_ago(back).map(|day| session.mask().day(day, view.today()));
    let today = session.mask().day(view.today(), view.today());
    let mut calls = Vec::new();
    for sec in view.securities() {
        let code = session.mask().code(sec);
        for adjustment in ["none", "total_return"] {
            let whole = json!({"instrumentId": code, "adjustment": adjustment, "limit": 20});
            let mut range = whole.clone();
            range["start"] = json!(shown(9));
            range["end"] = json!(today);
            calls.extend([("market_bars", whole), ("market_bars", range)]);
        }
        // One with an ex-date, one with a suspension, one without either.
        if !["600002", "603004", "000005"].contains(&view.code(sec).to_string().as_str()) {
            continue;
        }
        for adjustment in ["none", "split_only", "total_return"] {
            for indicator in ["sma", "ema", "rsi", "macd", "atr", "obv", "realised_volatility", "max_drawdown"] {
                let args =
                    json!({"instrumentId": code, "adjustment": adjustment, "indicator": indicator, "gaps": "traded_sessions"});
                calls.push(("technical_compute", args));
            }
        }
        calls
            .push(("technical_compute", json!({"instrumentId": code, "indicator": "bollinger", "output": "series", "limit": 5})));
    }
    calls
}

fn texts(day: Day, point: DecisionPoint, masked: bool, future: Future) -> Vec<(String, String)> {
    let mut session = open(day, point, masked, future);
    let names: Vec<(String, String)> = {
        let view = session.view();
        let order = session.mask().in_visible_order();
        order.iter().map(|s| (session.mask().code(*s).to_owned(), view.code(*s).to_string())).collect()
    };
    let mut seen = Vec::new();
    for (tool, args) in calls(&session) {
        session.begin_message();
        let text = session.call(tool, RawArguments::Value(args.clone())).expect("an answer").text;
        let mut pair = (format!("{tool}({args})"), text);
        if masked {
            // The number of an alias depends on how many securities the universe has.
            for (alias, code) in &names {
                pair = (pair.0.replace(alias, code), pair.1.replace(alias, code));
            }
        }
        if masked && let Some((head, tail)) = pair.1.split_once("\"next_cursor\": \"c") {
            // A cursor is bound to the alias.
            pair.1 = format!("{head}{}", tail.split_once('"').map_or("", |(_, rest)| rest));
        }
        seen.push(pair);
    }
    seen
}

// complaints LA-1, LA-9; engine E2, E2.8
#[test]
fn nothing_after_the_clock_reaches_the_research_capabilities() {
    let days = market::days();
    // On the ex-date of a security, after it, and with few bars.
    let clocks = [
        (market::SESSIONS - 2, DecisionPoint::PreMarket),
        (market::SESSIONS - 2, DecisionPoint::Close2),
        (market::SESSIONS - 1, DecisionPoint::Open1),
        (20, DecisionPoint::Open1),
    ];
    let mut compared = 0;
    for (at, point) in clocks {
        for masked in [false, true] {
            let [first, others @ ..] = Future::ALL;
            let one = texts(days[at], point, masked, first);
            for future in others {
                let two = texts(days[at], point, masked, future);
                assert_eq!(one.len(), two.len());
                for ((asked, one), (also, two)) in one.iter().zip(&two) {
                    assert!(!shows_poison(two), "{} {point}: {asked} shows a row after the clock: {two}", days[at]);
                    assert_eq!((asked, one), (also, two), "{} {point} masked {masked} {future:?}", days[at]);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 2_000, "only {compared} answers were compared");
}

// spec/seeds.md C4.5, C10; complaint MC-1
#[test]
fn every_answer_of_every_tool_is_sound_in_the_result_algebra() {
    let days = market::days();
    let id = InvocationId::new("battery").expect("an id");
    let (mut partial, mut answered) = (0, BTreeSet::new());
    for masked in [false, true] {
        let mut session = open(days[market::SESSIONS - 2], DecisionPoint::Open2, masked, Future::AsIs);
        let cutoff = session.mask().moment(session.clock().now(), session.clock().day);
        let code = session.view().securities().next().map(|sec| session.mask().code(sec).to_owned()).expect("a security");
        let mut asked: Vec<(String, Value)> = calls(&session).into_iter().take(30).map(|(t, a)| (t.to_owned(), a)).collect();
        for tool in session.offered() {
            let mut args = tool.definition.example().clone();
            if args.get("stock_code").is_some() {
                args["stock_code"] = json!(code);
            }
            asked.push((tool.bound.spec().name.to_owned(), args));
        }
        let schemas: Vec<(String, Value)> =
            session.offered().map(|t| (t.bound.spec().name.to_owned(), data_schema(&t.definition.output_schema))).collect();
        for (tool, args) in asked.into_iter().filter(|(tool, _)| !["finish_day", "complete_phase"].contains(&tool.as_str())) {
            session.begin_message();
            let report = session.call(&tool, RawArguments::Value(args.clone())).expect("an answer");
            let Some(mut payload) = report.envelope.is_success().then(|| report.envelope.0.clone()) else { continue };
            payload.as_object_mut().expect("an object").remove("success");
            let invocation = Invocation {
                source_refs: sources(&tool),
                revision_history: revision_history(&tool),
                received: Some(&args),
                ..Invocation::new(&id, &tool, &cutoff)
            };
            let rendered = answer(&Outcome::answered(payload), &invocation).expect("an answer");
            let result = rendered.result().expect("a result");
            assert_eq!(check(result, &cutoff), Ok(()), "{tool} {args}");
            let schema = &schemas.iter().find(|(name, _)| *name == tool).expect("an offered tool").1;
            let envelope = envelope_schema(schema);
            let (whole, data) = (rendered.to_value(), &result.data);
            let spec = Entry::of::<MarketBars>("any").define(&Policy::default()).expect("a definition").spec;
            let valid = |schema: &Value, value: &Value| {
                let definition = Definition::from_schemas(spec, &Policy::default(), json!({"type": "object"}), schema.clone());
                definition.expect("a schema").validate_output(value).is_ok()
            };
            assert!(valid(schema, data) && valid(&envelope, &whole), "{tool} {args}");
            assert!(!valid(&envelope, data) && !valid(schema, &whole), "{tool}: the two schemas are told apart");
            partial += usize::from(result.status == ResultStatus::Partial);
            answered.insert(tool);
        }
    }
    assert!(partial > 0 && answered.len() >= 24, "{partial} {answered:?}");
}

/// A table and how it is taken away.
type Table = (&'static str, fn(&mut StoreParts));

// spec/seeds.md C2.2: who may call a tool needs the right to each of its sources, so none may be left out of the table
#[test]
fn a_table_that_a_tool_does_not_name_as_its_source_changes_nothing_of_its_answers() {
    let tables: [Table; 9] = [
        ("minute", |p| {
            p.minute = BarColumns::default();
            p.minute_offsets.fill(0);
        }),
        ("index", |p| p.index = None),
        ("securities", |p| p.securities = None),
        ("dividends", |p| p.ex_events = None),
        ("valuation", |p| p.valuation = None),
        ("fundamentals", |p| p.fundamentals = None),
        ("segments", |p| p.segments = None),
        ("announcements", |p| p.announcements = None),
        ("news", |p| p.news = None),
    ];
    let day = market::days()[market::SESSIONS - 2];
    let answers = |without: Option<&Table>, point: DecisionPoint| {
        let mut session = open_with(day, point, false, |parts| {
            if let Some((_, take)) = without {
                take(parts);
            }
        });
        // By call and how often it was made before: without a table other calls are made.
        let mut seen: BTreeMap<(String, usize), String> = BTreeMap::new();
        for (asked, text) in battery::run(&mut session) {
            let before = seen.keys().filter(|(other, _)| *other == asked).count();
            seen.insert((asked, before), text);
        }
        seen
    };
    let mut unnamed = BTreeSet::new();
    let mut named = BTreeSet::new();
    for point in [DecisionPoint::PreMarket, DecisionPoint::Open2] {
        let whole = answers(None, point);
        for table in &tables {
            let without = answers(Some(table), point);
            let both = whole.iter().filter_map(|(call, one)| Some((&call.0, one, without.get(call)?)));
            for (asked, one, two) in both {
                let tool = asked.split('(').next().unwrap_or_default();
                if one != two {
                    let known = sources(tool).contains(&table.0);
                    if known { &mut named } else { &mut unnamed }.insert(format!("{tool}: {}", table.0));
                }
            }
        }
    }
    assert_eq!(unnamed, BTreeSet::new());
    assert!(named.len() > 25, "only these tables were seen to matter: {named:?}");
}
