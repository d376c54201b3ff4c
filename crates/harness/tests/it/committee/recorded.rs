//! Committees that are recorded: replayed, resumed after any stop, and the same whoever answers first.

use super::{Panel, block, card, play_day, play_with, settings, three, unanswered};
use crate::fixture::{Setup, store, trading_days};
use crate::phases::{calls, completes, says};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use traderharness_harness::card::Meeting;
use traderharness_harness::model::{ModelClient, ModelError, ReplayClient, ScriptedClient, Turn, advisor_role};
use traderharness_harness::resume::{CheckingJournal, ResumingClient, ResumingJournal};
use traderharness_harness::run::{Advice, Budgets, RunError, RunSettings, RunStatus, Silent, play};
use traderharness_harness::script::{Script, ScriptError};
use traderharness_harness::session::Journal;
use traderharness_harness::{CancelToken, Card, Toolbox};
use traderharness_market::{DecisionPoint, Mask, MaskConfig, MaskStyle, Store};
use traderharness_replay::trajectory::{self, Entry, RunStart};
use traderharness_replay::{Cassette, Meta, Record, Recorder, Replay, Request, Response, Trajectory};

/// A committee that reads outside of its rights, fails, cuts and speaks, over two days.
fn script() -> Script {
    let store = store();
    let mask =
        Mask::new(&store, MaskConfig { dates: true, entities: true, style: MaskStyle::Opaque, key: b"harness tests".to_vec() });
    let order = |action: &str, quantity: i64| json!({ "tool": "place_order", "args": { "action": action, "stock_code": "$600001", "quantity": quantity, "reasoning": "r" } });
    let look =
        json!({ "calls": [{ "tool": "get_kline", "args": { "stock_code": "$600001" } }, { "tool": "place_order", "args": {} }] });
    Script::from_value(json!({
        "schema": 1,
        "days": [{ "open_1": [{ "say": "buy", "calls": [order("buy", 1000)] }] }, { "open_1": [{ "calls": [order("sell", 0)] }] }],
        "advisors": {
            "scout": [{ "pre_market": [look, { "say": "$600001 leads." }], "open_1": [look, { "say": "It holds." }] }, { "open_1": [{ "say": "Out." }] }],
            "skeptic": [{ "pre_market": [{ "say": "Too early for $600001." }] }, { "pre_market": [{ "say": "" }, { "say": "" }] }],
        }
    }))
    .unwrap()
    .resolve(&store, &mask)
    .unwrap()
}

pub(super) fn meeting_card() -> Card {
    card(three(), &[Meeting::PreMarket, Meeting::Open1])
}

/// The scripted model, whose analyst is silent on the first day; answers of a round come last one first when it is `backwards`.
fn scripted(script: &Arc<Script>, backwards: bool, asked: &Arc<Mutex<Vec<String>>>) -> Panel {
    let (script, asked) = (Arc::clone(script), Arc::clone(asked));
    let answer = move |scope: &str, request: &Request, turn: Turn| {
        asked.lock().unwrap().push(scope.to_owned());
        if advisor_role(scope) == Some("analyst") && turn.day_index == 0 && turn.point == DecisionPoint::PreMarket {
            return Err(unanswered());
        }
        block_inner(&script, scope, request, turn)
    };
    Panel { backwards, ..Panel::new(answer) }
}

/// A scripted answer needs no runtime: its future never waits.
fn block_inner(script: &Script, scope: &str, request: &Request, turn: Turn) -> Result<Response, ModelError> {
    let mut client = ScriptedClient::new(script.clone());
    let mut future = Box::pin(client.complete_in(scope, request, turn));
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("a script answers at once"),
    }
}

#[derive(Clone)]
struct Bench {
    store: Arc<Store>,
    toolbox: Arc<Toolbox>,
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<String>>>,
    backwards: bool,
}

impl Bench {
    fn new(backwards: bool) -> Self {
        let toolbox = Arc::new(Toolbox::new(&meeting_card(), true).unwrap());
        Self { store: store(), toolbox, script: Arc::new(script()), asked: Arc::default(), backwards }
    }

    /// For another run; compiling tools takes most of the time of a small one.
    fn again(&self, backwards: bool) -> Self {
        Self { asked: Arc::default(), backwards, ..self.clone() }
    }

    /// Runs, or goes on with, the run of a folder; true when it came to its end.
    fn go(&self, folder: &Path, settings: &RunSettings) -> bool {
        let (kept, cassette) = (folder.join("trajectory.jsonl"), folder.join("cassette.jsonl"));
        let meta = Meta { contract_version: "v5".into(), model: "scripted".into(), ..Meta::default() };
        let partial = traderharness_replay::partial_path(&cassette);
        let (journal, replay, recorder): (Box<dyn Journal>, _, _) = if partial.exists() {
            let (trajectory, entries) = Trajectory::resume(&kept).unwrap();
            let (recorder, asked) = Recorder::resume(&cassette).unwrap();
            (Box::new(ResumingJournal::new(trajectory, entries)), Some(Replay::new(asked)), recorder)
        } else {
            let trajectory = Trajectory::create(&kept, RunStart::default()).unwrap();
            (Box::new(trajectory), None, Recorder::create(&cassette, meta).unwrap())
        };
        let store = &self.store;
        let toolbox = Some(Arc::clone(&self.toolbox));
        let mut session = Setup { card: meeting_card(), masked: true, journal, toolbox, ..Setup::default() }.session(store);
        let mut client = ResumingClient::new(replay, scripted(&self.script, self.backwards, &self.asked), recorder);
        let outcome = block(play(&mut session, &mut client, &trading_days(store)[..2], settings, &mut Silent));
        match outcome.stopped {
            None => drop(client.into_recorder().finish().unwrap()),
            Some(RunError::Budget(_) | RunError::Cancelled) => return false,
            Some(stop) => panic!("{stop:?}"),
        }
        assert_eq!(outcome.summary.days.iter().map(|d| d.fills).collect::<Vec<_>>(), [1, 1]);
        true
    }
}

/// Cassette, and trajectory without what tells of a stop.
fn files(folder: &Path) -> (String, Vec<Record>) {
    let cassette = std::fs::read_to_string(folder.join("cassette.jsonl")).unwrap();
    let stopped = |r: &Record| match r {
        Record::Error { .. } => true,
        Record::RunEnd { status, .. } => status != RunStatus::Completed.as_str(),
        _ => false,
    };
    let entries = trajectory::read(folder.join("trajectory.jsonl")).unwrap().entries;
    (cassette, entries.into_iter().map(|e| e.record).filter(|r| !stopped(r)).collect())
}

fn whole() -> (tempfile::TempDir, Vec<String>, Bench) {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new(false);
    assert!(bench.go(folder.path(), &settings()));
    let asked = bench.asked.lock().unwrap().clone();
    (folder, asked, bench)
}

// DESIGN rule 4: what is recorded does not tell who was ready first
#[test]
fn answers_that_come_in_another_order_give_the_same_bytes() {
    let (folder, asked, bench) = whole();
    let other = tempfile::tempdir().unwrap();
    let bench = bench.again(true);
    assert!(bench.go(other.path(), &settings()));
    assert_ne!(*bench.asked.lock().unwrap(), asked, "they did come in another order");
    assert_eq!(files(other.path()), files(folder.path()));
    for scope in ["desk__executor", "desk__advisor_scout", "desk__advisor_analyst", "desk__advisor_skeptic"] {
        assert!(asked.iter().any(|s| s == scope), "{scope}");
    }
}

// engine E13.5, with a failure in the recording
#[test]
fn a_recorded_committee_replays_to_the_byte_without_a_model() {
    let (folder, asked, _) = whole();
    let cassette = Cassette::load(folder.path().join("cassette.jsonl")).unwrap();
    assert_eq!(cassette.calls().iter().filter(|call| call.error.as_deref() == Some("http_status")).count(), 1);
    let entries: Vec<Entry> = trajectory::read(folder.path().join("trajectory.jsonl")).unwrap().entries;
    let journal = CheckingJournal::new(entries);
    let store = store();
    let mut session =
        Setup { card: meeting_card(), masked: true, journal: Box::new(journal.clone()), ..Setup::default() }.session(&store);
    let mut client = ReplayClient::new(Replay::new(cassette));
    let outcome = block(play(&mut session, &mut client, &trading_days(&store)[..2], &settings(), &mut Silent));
    assert!(outcome.stopped.is_none(), "{:?}", outcome.stopped);
    assert_eq!(client.into_player().finish().unwrap(), asked.len());
    assert_eq!(outcome.summary.requests, asked.len() as u64);
    assert_eq!(journal.left(), 0);
}

// engine E10.11; DESIGN rule 8
#[test]
fn a_run_that_stops_at_any_limit_goes_on_to_the_same_bytes_and_asks_nobody_twice() {
    let (folder, asked, bench) = whole();
    let expected = files(folder.path());
    let calls = expected.1.iter().filter(|r| matches!(r, Record::ToolCall { .. })).count() as u64;
    let limits = (0..asked.len() as u64)
        .map(|n| Budgets { max_requests: Some(n), ..Budgets::default() })
        .chain((0..calls).map(|n| Budgets { max_calls: Some(n), ..Budgets::default() }));
    for budgets in limits.step_by(2) {
        let folder = tempfile::tempdir().unwrap();
        let bench = bench.again(false);
        assert!(!bench.go(folder.path(), &RunSettings { budgets: budgets.clone(), ..settings() }), "{budgets:?}");
        if let Some(most) = budgets.max_requests {
            assert_eq!(bench.asked.lock().unwrap().len() as u64, most);
        }
        assert!(bench.go(folder.path(), &settings()));
        assert_eq!(files(folder.path()), expected, "{budgets:?}");
        let mut twice = bench.asked.lock().unwrap().clone();
        let mut once = asked.clone();
        twice.sort();
        once.sort();
        assert_eq!(twice, once, "{budgets:?}");
    }
}

// DESIGN rule 8: kill -9 leaves both files at some byte; the trajectory is never ahead of what was asked
#[test]
fn a_run_that_was_killed_anywhere_goes_on_to_the_same_bytes() {
    let (folder, _, bench) = whole();
    let expected = files(folder.path());
    let cassette = std::fs::read(folder.path().join("cassette.jsonl")).unwrap();
    let trajectory = std::fs::read(folder.path().join("trajectory.jsonl")).unwrap();
    let ends = |bytes: &[u8]| bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect::<Vec<_>>();
    let kinds: Vec<Value> = trajectory.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    // Where the answers stand in the trajectory, by number of the call.
    let answers: Vec<usize> = (0..kinds.len())
        .filter(|at| ["model_response", "model_failure"].contains(&kinds[*at]["type"].as_str().unwrap_or_default()))
        .collect();
    let recorded: Vec<usize> = {
        let lines: Vec<Value> = cassette.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        (0..lines.len()).filter(|at| lines[*at]["type"] == "llm_call").collect()
    };
    assert_eq!(answers.len(), recorded.len());
    let (of_cassette, of_trajectory) = (ends(&cassette), ends(&trajectory));
    let mut cuts = Vec::new();
    for (call, line) in recorded.iter().enumerate() {
        // Inside the line of a call, and behind it, with a trajectory that came as far as it can have come and less far.
        let before = of_trajectory[answers[call] - 1];
        for bytes in [of_cassette[*line] - 7, of_cassette[line - 1]] {
            cuts.push((bytes, before.min(of_trajectory[answers[call] - 1])));
        }
        let next = answers.get(call + 1).map_or(trajectory.len(), |next| of_trajectory[next - 1]);
        cuts.push((of_cassette[*line], next - 5));
        cuts.push((of_cassette[*line], before / 2));
    }
    for (n, (asked, kept)) in cuts.into_iter().enumerate().filter(|(n, _)| n % 3 == 0) {
        // An advisor's request is recorded with its answer, so a trajectory without the one has not got the other.
        let (asked, kept) = (asked.max(of_cassette[0]), kept.max(of_trajectory[0]));
        let again = tempfile::tempdir().unwrap();
        std::fs::write(again.path().join("cassette.jsonl.partial"), &cassette[..asked]).unwrap();
        std::fs::write(again.path().join("trajectory.jsonl"), &trajectory[..kept]).unwrap();
        assert!(bench.again(n % 2 == 1).go(again.path(), &settings()), "{asked} {kept}");
        assert_eq!(files(again.path()), expected, "{asked} {kept}");
    }
}

// engine E10.9
#[test]
fn a_cancel_during_a_meeting_ends_the_run_after_the_round_and_runs_none_of_its_calls() {
    let cancel = CancelToken::new();
    let token = cancel.clone();
    let panel = Panel::new(move |scope, _, turn| {
        Ok(match advisor_role(scope) {
            None => completes(turn.point),
            Some(_) => {
                token.cancel();
                calls(&[("get_portfolio", json!({}))])
            }
        })
    });
    let played = play_with(
        Setup { card: card(three(), &[Meeting::PreMarket]), ..Setup::default() },
        panel,
        1,
        &RunSettings { cancel, ..settings() },
    );
    assert!(matches!(played.outcome.stopped, Some(RunError::Cancelled)));
    let count = |matching: fn(&Record) -> bool| played.records.iter().filter(|r| matching(r)).count();
    assert_eq!(count(|r| matches!(r, Record::ModelResponse { .. })), 3);
    assert_eq!(count(|r| matches!(r, Record::ToolCall { .. })), 0);
    assert_eq!(played.outcome.summary.advice.map(|a| a.requests), Some(3));
}

#[test]
fn a_run_without_a_committee_says_and_records_nothing_of_one() {
    let played = play_day(Card { id: "desk".into(), ..Card::builtin() }, |scope, _, turn| {
        assert_eq!(scope, "main");
        Ok(completes(turn.point))
    });
    assert_eq!(played.outcome.summary.advice, None::<Advice>);
    let text = serde_json::to_string(&played.records).unwrap();
    for word in ["advice", "committee", "advisor", "\"scope\":null", "__executor"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn an_advisor_may_have_a_model_of_its_own() {
    let mut advisors = three();
    advisors[1].model = Some("small".into());
    let played = play_day(card(advisors, &[Meeting::PreMarket]), |scope, _, turn| {
        Ok(if advisor_role(scope).is_some() { says("ok") } else { completes(turn.point) })
    });
    let models: Vec<&str> = played.seen[..4].iter().map(|seen| seen.request.model.as_str()).collect();
    assert_eq!(models, ["scripted", "small", "scripted", "scripted"]);
}

#[test]
fn a_script_names_only_advisors_of_the_card_and_its_faults_are_found_in_their_turns_too() {
    let known = |script: &Script, card: &Card| script.check_advisors(card).map_err(|e| e.to_string());
    assert_eq!(known(&script(), &meeting_card()), Ok(()));
    assert_eq!(known(&script(), &Card::builtin()), Err("the script names advisor `scout`; the card has none".into()));
    let read = |advisors: Value| Script::from_value(json!({ "schema": 1, "days": [], "advisors": advisors }));
    assert!(matches!(read(json!({ "a": [{ "noon": [] }] })), Err(ScriptError::UnknownPoint { day: 1, .. })));
    assert!(matches!(
        read(json!({ "a": [{}, { "open_1": [{ "calls": [{ "tool": "x" }] }] }] })),
        Err(ScriptError::Arguments { day: 2, .. })
    ));
    let unknown = read(json!({ "a": [{ "open_1": [{ "say": "$999999" }] }] })).unwrap();
    let (store, mask) = (store(), Mask::new(&store(), MaskConfig::default()));
    assert!(matches!(unknown.resolve(&store, &mask), Err(ScriptError::UnknownCode { .. })));
}
