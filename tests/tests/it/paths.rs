//! One result, every way to a model: what a call answers does not depend on the door it came in by, and a result that is too long is
//! cut in the same place on all of them.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use traderharness_contract::budget::RESULT_LIMIT;
use traderharness_harness::model::{ModelClient, ReplayClient, ScriptedClient};
use traderharness_harness::resume::ResumingClient;
use traderharness_harness::run::{Observer, RunSettings, run};
use traderharness_harness::script::Script;
use traderharness_harness::session::Journal;
use traderharness_harness::{CallReport, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_market::{Code, Day, DecisionPoint, Mask, Store};
use traderharness_replay::{Cassette, Meta, Player, Record, Recorder, RecordingError};
use traderharness_tests::market;
use traderharness_tests::session::{all_tools_card, at, mask_config};

static STORE: LazyLock<Arc<Store>> = LazyLock::new(|| Arc::new(Store::new(market::parts()).expect("a store")));

fn day() -> Day {
    market::days()[market::SESSIONS - 2]
}

/// Calls with results of several times the limit, a success and a failure, in letters of every width: an order that was changed often
/// for long reasons, and a refused one with a very long reason.
fn calls(code: &str) -> Vec<(&'static str, Value)> {
    let words = |n: usize| "why \u{1F680} 𠮷 ".repeat(n);
    let mut calls = vec![(
        "manage_conditional_order",
        json!({
            "operation": "create", "action": "buy", "stock_code": code, "quantity": 100, "comparator": "price_lte",
            "trigger_price": 1.0, "reasoning": "first"
        }),
    )];
    calls.extend((0..20).map(|n| {
        let reasoning = format!("{n} {}", words(200));
        let price = f64::from(n + 101) / 100.0;
        let update = json!({ "operation": "update", "order_id": "cond-0001", "trigger_price": price, "reasoning": reasoning });
        ("manage_conditional_order", update)
    }));
    calls.push(("place_order", json!({ "action": "buy", "stock_code": code, "quantity": 150, "reasoning": words(6_000) })));
    calls
}

/// Texts that the model reads, call by call.
fn direct(masked: bool, text: bool) -> Vec<String> {
    let mut session = at(&STORE, all_tools_card(), masked, day(), DecisionPoint::PreMarket);
    let security = session.view().find(Code::parse(market::CODES[0]).expect("a code")).expect("a security");
    let code = session.mask().code(security).to_owned();
    session.begin_message();
    let answers = calls(&code).into_iter().map(|(tool, args)| {
        let raw = args.to_string();
        let args = if text { RawArguments::Text(&raw) } else { RawArguments::Value(args) };
        session.call(tool, args).expect("a session that goes on").text
    });
    answers.collect()
}

/// Keeps what the loop tells its observer, and the records of the trajectory.
#[derive(Default, Clone)]
struct Seen {
    texts: Vec<String>,
    records: Arc<Mutex<Vec<Record>>>,
}

impl Observer for Seen {
    fn call(&mut self, _: &Session, report: &CallReport) {
        self.texts.push(report.text.clone());
    }
}

impl Journal for Seen {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        self.records.lock().expect("one thread").push(record);
        Ok(())
    }
}

impl Seen {
    /// What the trajectory says the model read.
    fn recorded(&self) -> Vec<String> {
        let read = |record: &Record| match record {
            Record::ToolResult { shown: Some(shown), .. } => Some(shown.clone()),
            Record::ToolResult { result, .. } => Some(traderharness_contract::json::text(result)),
            _ => None,
        };
        self.records.lock().expect("one thread").iter().filter_map(read).collect()
    }
}

fn play(masked: bool, client: &mut dyn ModelClient) -> Seen {
    let mut seen = Seen::default();
    let card = all_tools_card();
    let mask = Arc::new(Mask::new(&STORE, mask_config(masked)));
    let toolbox = Arc::new(Toolbox::new(&card, masked).expect("card names known tools"));
    let config = SessionConfig { store: Arc::clone(&STORE), mask, card: Arc::new(card), toolbox, check_output: true };
    let mut session = Session::new(config, day(), Box::new(seen.clone())).expect("a trading day");
    let settings = RunSettings { model: "scripted".into(), ..RunSettings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(run(&mut session, client, &[day()], &settings, &mut seen)).expect("a day");
    seen
}

/// Runs the calls in the loop and records them: what was seen, and what the requests of the cassette hold.
fn recorded(masked: bool, path: &Path) -> (Seen, Vec<String>) {
    let mask = Mask::new(&STORE, mask_config(masked));
    let mut turns: Vec<Value> =
        calls(&format!("${}", market::CODES[0])).into_iter().map(|(tool, args)| json!({ "tool": tool, "args": args })).collect();
    let gives_up = json!({ "decision": "monitor", "summary": "s", "abandon_error_codes": ["invalid_tool_arguments"] });
    turns.push(json!({ "tool": "complete_phase", "args": gives_up }));
    let script = json!({ "schema": 1, "days": [{ "pre_market": [{ "calls": turns }] }] });
    let script = Script::from_value(script).expect("a script").resolve(&STORE, &mask).expect("known codes");
    let meta = Meta { contract_version: "v5".into(), model: "scripted".into(), ..Meta::default() };
    let recorder = Recorder::create(path, meta).expect("a file");
    let mut client = ResumingClient::new(None, ScriptedClient::new(script), recorder);
    let seen = play(masked, &mut client);
    client.into_recorder().finish().expect("a cassette");
    let cassette = Cassette::load(path).expect("a cassette");
    let last = cassette.request(cassette.calls().len() - 1).expect("a request").expect("kept whole");
    let told = last.messages.iter().filter(|m| m.role() == "tool").filter_map(|m| m.content().map(str::to_owned));
    (seen, told.collect())
}

// complaints TR-7, TR-1, TR-8
#[test]
fn a_result_that_is_too_long_reads_the_same_on_every_path() {
    let folder = tempfile::tempdir().expect("a folder");
    for masked in [false, true] {
        let expected = direct(masked, false);
        let [.., success, failure] = &expected[..] else { panic!("{} results", expected.len()) };
        for (long, ends) in [(success, true), (failure, false)] {
            let read: Value = serde_json::from_str(long).expect("JSON");
            assert_eq!(read["success"], ends, "{long}");
            assert!(long.chars().count() <= RESULT_LIMIT, "{} characters", long.chars().count());
            let whole = read["_truncation"]["original_characters"].as_u64().expect("it says that it was cut");
            assert!(whole > 3 * RESULT_LIMIT as u64, "{whole} characters are no test of a cut");
            assert!(!long.contains('\u{fffd}') && long.contains('\u{1F680}'), "{long}");
        }
        assert!(success.contains("\"19 why") && !success.contains("\"0 why"), "the newest change is kept: {success}");

        assert_eq!(direct(masked, true), expected, "arguments as text");
        let path = folder.path().join(format!("{masked}.jsonl"));
        let (seen, told) = recorded(masked, &path);
        let same = |what: &str, texts: &[String]| {
            assert!(texts.len() >= expected.len(), "{what}: {} texts", texts.len());
            for (n, (one, other)) in expected.iter().zip(texts).enumerate() {
                assert_eq!(one, other, "{what}: call {n}");
            }
            // What the loop adds to end its day is within the limit too.
            assert!(texts.iter().all(|text| text.chars().count() <= RESULT_LIMIT), "{what}");
        };
        same("what an observer is told", &seen.texts);
        same("the messages of the requests", &told);
        same("the trajectory", &seen.recorded());
        let mut replayed = ReplayClient::new(Player::new(Cassette::load(&path).expect("a cassette")).expect("one agent"));
        let again = play(masked, &mut replayed);
        replayed.into_player().finish().expect("every answer used");
        same("the replay", &again.texts);
        assert_eq!(*again.records.lock().expect("one thread"), *seen.records.lock().expect("one thread"), "the replay's records");
    }
}

// complaint TR-1: that a result was cut stands in the trajectory, beside the whole of it
#[test]
fn a_cut_is_an_event_of_the_trajectory() {
    let folder = tempfile::tempdir().expect("a folder");
    let (seen, _) = recorded(false, &folder.path().join("c.jsonl"));
    let records = seen.records.lock().expect("one thread");
    let cut: Vec<(&str, &Value, &str)> = records
        .iter()
        .filter_map(|record| match record {
            Record::ToolResult { tool, result, shown: Some(shown), .. } => Some((tool.as_str(), result, shown.as_str())),
            _ => None,
        })
        .collect();
    let of = |name: &str| cut.iter().filter(|(tool, ..)| *tool == name).collect::<Vec<_>>();
    let [.., (_, result, shown)] = of("manage_conditional_order")[..] else { panic!("no change was cut") };
    assert_eq!(result["order"]["revisions"].as_array().map(Vec::len), Some(20), "nothing is lost");
    assert!(shown.contains("\"_truncation\""), "{shown}");
    let [(_, result, shown)] = of("place_order")[..] else { panic!("the failure was not cut") };
    assert!(result["correction"]["received_arguments"]["reasoning"].as_str().is_some_and(|text| text.len() > 3 * RESULT_LIMIT));
    assert!(shown.contains("\"instruction\""), "{shown}");
    let results = records.iter().filter(|record| matches!(record, Record::ToolResult { .. })).count();
    assert!(cut.len() < results, "a result that fits is recorded once");
}
