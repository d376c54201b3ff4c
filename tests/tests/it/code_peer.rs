//! What code gets in our sandbox, held against what it got from the Python implementation: the recorded calls of unmasked runs, on the
//! recorded dataset, with the same shares held. Whatever means the same must have the same value.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use traderharness_harness::card::CardFees;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_ingest::{LoadOptions, load_parts, quiet};
use traderharness_market::{Day, DecisionPoint, Mask, Store};
use traderharness_tests::sandbox::{Files, pool};
use traderharness_tests::session::{all_tools_card, mask_config};

/// A call whose answer differs on purpose: a part of the code that names the call, their code and ours (empty for success), and why.
type Deliberate = (&'static str, &'static str, &'static str, &'static str);

const FAILED: &str = "sandbox_execution_failed";

const DELIBERATE: &[Deliberate] = &[
    ("\u{20}\u{20}\u{20}", "tool_rejected", "invalid_tool_arguments", "b29: blank code is an argument error"),
    ("get_all_daily(1)", "", "", "a change needs the session before, which need not be in the table"),
    ("get_all_daily(20)", "", "", "the same; days are dates of pandas, not words"),
    ("get_kline('600406', 3)", "", "", "days are dates of pandas, not words"),
    ("d['datetime'].tail(1)", "", "", "days are dates of pandas, not words"),
    ("get_sector_stocks", "", FAILED, "the recorded dataset has no industries; theirs guesses them"),
    ("get_sector_summary", "", FAILED, "the recorded dataset has no industries; theirs guesses them"),
    ("get_behavioral_features", "", "", "b14: correct session counts"),
    ("get_all_daily(0)", "", FAILED, "T4: days out of range are an error that says the range"),
    ("get_stock_list()[:1]", "", "", "the one call about permissions that shows a code: theirs was masked"),
    ("get_policy_news", "", "", "b18: by time and evidence id; visible up to the clock"),
    ("portfolio.get_positions()", "", "", "T3: positions say what can be sold and what was paid"),
    ("get_kline('600406', 500)", "", FAILED, "T4: days out of range and unknown codes are errors"),
    ("get_fundamentals('600406')", "", "", "b28: percent, period and publication"),
    ("get_fundamentals('SHM", "", FAILED, "T4: an unknown code is an error"),
    ("get_market_overview", "", "", "T3: flat, suspended and limit counts; b27"),
    ("get_stock_price('600406')", "", "", "T3: one more field for each thing a price needs"),
    ("get_stock_price('SHM", "", FAILED, "T4: an unknown code is an error"),
    ("screen_stocks", "", "", "b14: changes over 5 and 20 sessions"),
    ("get_announcements", "", "", "b18: by time and evidence id, newest first"),
    ("np.int64(3)", "", "", "b23: results keep their types"),
    ("pd.DataFrame({'a'", "", "", "b23: results keep their types"),
    ("result = {1, 2}", "", "", "b23: results keep their types"),
    ("import os", FAILED, "", "b05: the process is confined, so harmless modules can be imported"),
    ("import socket", FAILED, "sandbox_disallowed_code", "b29: its own code"),
    ("import traderharness", "sandbox_disallowed_code", FAILED, "there is no such module in the process"),
    ("'x' * 6000", "", "", "what was cut is said in a notice, not in the text"),
];

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a recorded file");
    text.lines().filter(|l| !l.trim().is_empty()).map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn card(agent: &Value) -> Card {
    let mut card = Card { fees: CardFees::Reference, one_fill_per_day: false, ..all_tools_card() };
    if let Some(tools) = agent["allowed_tools"].as_array() {
        card.allowed_tools = tools.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    card
}

/// Equal where a number of either side is a float of the other, to the recorded digits.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            (a - b).abs() <= 1e-9 * a.abs().max(1.0)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => a == b,
    }
}

/// Outcome, value and output of a call, as far as both sides have it.
fn meaning(envelope: &Value) -> Value {
    let output = envelope["stdout"].as_str().filter(|text| *text != "(no output)").unwrap_or_default();
    let success = envelope["success"] == json!(true);
    let code = if success { Value::Null } else { envelope["error_code"].clone() };
    json!({ "code": code, "result": envelope["result"], "stdout": if success { output } else { "" } })
}

fn play(lines: &[Value], store: &Arc<Store>, other: &mut BTreeMap<String, String>, used: &mut BTreeSet<&'static str>) -> usize {
    let Some(pool) = pool() else { return 0 };
    let (mut session, mut equal): (Option<Session>, usize) = (None, 0);
    let files = Files::new();
    let mut config = None;
    for line in lines {
        match line["event"].as_str().unwrap_or_default() {
            "scenario" => {
                session = None;
                // The calls about permissions name no code and no day, but for one, so they mean the same without a mask.
                let about_permissions = line["scenario"].as_str().unwrap_or_default().starts_with("sandbox_permissions");
                config = (line["mask"].is_null() || about_permissions).then(|| {
                    let card = card(&line["agent"]);
                    let toolbox = Arc::new(Toolbox::new(&card, false).expect("known tools"));
                    let mask = Arc::new(Mask::new(store, mask_config(false)));
                    SessionConfig { store: Arc::clone(store), mask, card: Arc::new(card), toolbox, check_output: true }
                });
            }
            "day_start" => {
                let Some(config) = &config else { continue };
                let day = Day::parse(line["date"].as_str().unwrap_or_default()).expect("a day");
                let begin = || Session::new(config.clone(), day, Box::new(NoJournal)).expect("a trading day");
                let current = session.get_or_insert_with(|| files.give(begin(), &pool));
                while current.clock().day < day && current.clock().point != DecisionPoint::Close2 && current.advance().is_ok() {}
                current.start_day(day).expect("a later day");
            }
            "enter" => {
                let Some(current) = &mut session else { continue };
                let point = DecisionPoint::parse(line["phase"].as_str().unwrap_or_default()).expect("a point");
                while current.clock().point != point {
                    current.advance().expect("a later point");
                }
            }
            "call" => {
                let Some(current) = &mut session else { continue };
                current.begin_message();
                let (tool, args) = (line["tool"].as_str().unwrap_or_default(), line["args"].clone());
                let ours = current.call(tool, RawArguments::Value(args.clone())).expect("a session that goes on").envelope.0;
                if tool != "execute_code" {
                    continue;
                }
                let (theirs, ours) = (meaning(&line["result"]), meaning(&ours));
                let source = args["code"].as_str().unwrap_or_default().to_owned();
                if same(&theirs, &ours) {
                    equal += 1;
                    continue;
                }
                let is = |value: &Value, code: &str| value["code"].as_str().unwrap_or_default() == code;
                let meant = |(word, a, b, _): &&Deliberate| source.contains(word) && is(&theirs, a) && is(&ours, b);
                if let Some((word, ..)) = DELIBERATE.iter().find(meant) {
                    used.insert(*word);
                } else {
                    other.insert(source, format!("theirs {theirs}\n    ours   {ours}"));
                }
            }
            _ => {}
        }
    }
    equal
}

#[test]
fn code_gets_the_values_that_the_python_implementation_gave() {
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/peer");
    if !peer.exists() || pool().is_none() {
        println!("skipped: no recorded vectors or no sandbox here");
        return;
    }
    let (parts, _) = load_parts(&peer.join("dataset"), &LoadOptions::default(), &quiet).expect("the recorded dataset");
    let store = Arc::new(Store::new(parts).expect("a store"));
    let mut other = BTreeMap::new();
    let mut used = BTreeSet::new();
    let mut equal = 0;
    for file in ["sandbox", "sandbox_permissions"] {
        equal += play(&lines(&peer.join(format!("vectors/{file}.jsonl"))), &store, &mut other, &mut used);
    }
    let shown: Vec<String> = other.iter().map(|(code, what)| format!("{code}\n    {what}")).collect();
    assert!(other.is_empty(), "{} calls differ ({equal} equal):\n{}", other.len(), shown.join("\n"));
    let idle: Vec<&str> = DELIBERATE.iter().map(|(word, ..)| *word).filter(|word| !used.contains(word)).collect();
    assert!(idle.is_empty(), "entries that match nothing: {idle:?}");
    assert!(equal >= 20, "{equal} calls are equal");
}
