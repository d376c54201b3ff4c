//! Stopped anywhere, by a cancel or a budget, a run goes on from its records: nothing is asked twice, nothing is ordered twice, and it
//! ends with the recording and the records of a run that never stopped (engine E10.11, DESIGN rule 8).

use crate::fixture::{Setup, store, trading_days};
use crate::loop_batches::{Desk, number, with_desk};
use async_trait::async_trait;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use traderharness_harness::context::ContextPolicy;
use traderharness_harness::model::{ModelClient, ModelError, ScriptedClient, Turn};
use traderharness_harness::resume::{ResumingClient, ResumingJournal};
use traderharness_harness::run::{Budgets, Observer, RunSettings, RunStatus, play};
use traderharness_harness::script::Script;
use traderharness_harness::session::Journal;
use traderharness_harness::{CallReport, CancelToken, Session};
use traderharness_market::{Mask, MaskConfig, MaskStyle};
use traderharness_replay::trajectory::{self, RunStart};
use traderharness_replay::{Meta, Record, Recorder, Replay, Request, Response, Trajectory};

fn script() -> Script {
    let store = store();
    let mask =
        Mask::new(&store, MaskConfig { dates: false, entities: false, style: MaskStyle::Opaque, key: b"harness tests".to_vec() });
    let order = |action: &str, quantity: i64| json!({ "tool": "place_order", "args": { "action": action, "stock_code": "$600001", "quantity": quantity, "reasoning": "r" } });
    let complete = json!({ "calls": [{ "tool": "complete_phase", "args": { "decision": "ready", "summary": "ok" } }] });
    let outside = |tool: &str, n: i64| json!({ "tool": tool, "args": { "n": n } });
    Script::from_value(json!({ "schema": 1, "days": [
        {
            "pre_market": [
                { "calls": [
                    { "tool": "get_portfolio", "args": {} }, outside("outside_read", 1), outside("outside_read", 2),
                    { "tool": "remember", "args": { "memory_type": "lesson", "content": "wait for the close", "tags": ["t"] } }, outside("outside_once", 3)
                ] },
                { "calls": [{ "tool": "manage_conditional_order", "args": { "operation": "create", "action": "buy", "stock_code": "$000360", "quantity": 100, "comparator": "price_lte", "trigger_price": 50.0, "reasoning": "r" } }] },
                complete
            ],
            "open_1": [{ "say": "buy", "calls": [order("buy", 1000), outside("outside_write", 4)] }, complete]
        },
        { "open_1": [{ "calls": [order("sell", 0), outside("outside_once", 3)] }, complete] }
    ] }))
    .unwrap()
    .resolve(&store, &mask)
    .unwrap()
}

/// Sets a token when so many things have happened.
struct StopAfter {
    left: u64,
    cancel: CancelToken,
    seen: u64,
}

impl StopAfter {
    fn step(&mut self) {
        self.seen += 1;
        if self.seen > self.left {
            self.cancel.cancel();
        }
    }
}

impl Observer for StopAfter {
    fn point(&mut self, _: &Session, _: &str) {
        self.step();
    }
    fn answer(&mut self, _: &Session, _: &Response) {
        self.step();
    }
    fn call(&mut self, _: &Session, _: &CallReport) {
        self.step();
    }
}

/// The scripted model, counted: an answer that is on record must not be asked for again.
struct Counted(ScriptedClient, Arc<AtomicU64>);
#[async_trait]
impl ModelClient for Counted {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.complete(request, turn).await
    }
}

struct Bench {
    desk: Arc<Desk>,
    asked: Arc<AtomicU64>,
    script: Script,
    context: Option<ContextPolicy>,
}

impl Bench {
    fn new(context: Option<ContextPolicy>) -> Self {
        Self { desk: Desk::new(number), asked: Arc::default(), script: script(), context }
    }

    /// Runs, or goes on with, the run of a folder. True when it came to its end; steps that were seen.
    fn go(&self, folder: &Path, budgets: Budgets, stop_after: u64) -> (bool, u64) {
        let (kept, cassette) = (folder.join("trajectory.jsonl"), folder.join("cassette.jsonl"));
        let meta = Meta { contract_version: "v5".into(), model: "scripted".into(), ..Meta::default() };
        let (journal, replay, recorder): (Box<dyn Journal>, _, _) = if kept.exists() {
            let (trajectory, entries) = Trajectory::resume(&kept).unwrap();
            let (recorder, asked) = Recorder::resume(&cassette).unwrap();
            (Box::new(ResumingJournal::new(trajectory, entries)), Some(Replay::new(asked)), recorder)
        } else {
            let trajectory = Trajectory::create(&kept, RunStart::default()).unwrap();
            (Box::new(trajectory), None, Recorder::create(&cassette, meta).unwrap())
        };
        let store = store();
        let mut session = Setup { journal, ..with_desk(&self.desk) }.session(&store);
        let cancel = CancelToken::new();
        let settings = RunSettings {
            model: "scripted".into(),
            budgets,
            cancel: cancel.clone(),
            context: self.context.clone(),
            ..RunSettings::default()
        };
        let counted = Counted(ScriptedClient::new(self.script.clone()), Arc::clone(&self.asked));
        let mut client = ResumingClient::new(replay, counted, recorder);
        let mut observer = StopAfter { left: stop_after, cancel, seen: 0 };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let days = &trading_days(&store)[..2];
        let outcome = runtime.block_on(play(&mut session, &mut client, days, &settings, &mut observer));
        let done = outcome.summary.status == RunStatus::Completed;
        if done {
            client.into_recorder().finish().unwrap();
        } else {
            assert!(matches!(outcome.summary.status, RunStatus::Cancelled | RunStatus::BudgetExhausted), "{:?}", outcome.stopped);
        }
        (done, observer.seen)
    }
}

/// Records of the run, without that it stopped.
fn records(folder: &Path) -> Vec<Record> {
    let read = trajectory::read(folder.join("trajectory.jsonl")).unwrap();
    assert!(read.cut.is_none());
    let of_the_run = |r: &Record| match r {
        Record::Error { .. } => false,
        Record::RunEnd { status, .. } => status == "completed",
        _ => true,
    };
    read.entries.into_iter().map(|e| e.record).filter(of_the_run).collect()
}

fn cassette(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("cassette.jsonl")).unwrap()
}

/// A run that never stopped, to hold the others against.
struct Whole {
    place: tempfile::TempDir,
    records: Vec<Record>,
    cassette: Vec<u8>,
    /// Steps that an observer sees.
    steps: u64,
    requests: u64,
    outside: Vec<i64>,
    context: Option<ContextPolicy>,
}

impl Whole {
    fn new() -> Self {
        Self::under(None)
    }

    fn under(context: Option<ContextPolicy>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("whole");
        std::fs::create_dir(&folder).unwrap();
        let bench = Bench::new(context.clone());
        let (done, steps) = bench.go(&folder, Budgets::default(), u64::MAX);
        assert!(done);
        let records = records(&folder);
        assert_eq!(records.iter().filter(|r| matches!(r, Record::Fill { .. })).count(), 3);
        let (requests, outside) = (bench.asked.load(Ordering::SeqCst), bench.desk.asked());
        assert_eq!(outside, [1, 2, 3, 4]);
        Self { records, cassette: cassette(&folder), steps, requests, outside, context, place }
    }

    /// A run that is stopped so, one stop after the other, and then goes on to its end.
    fn check(&self, name: &str, stops: &[(Budgets, u64)]) {
        let folder = self.place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let bench = Bench::new(self.context.clone());
        for (budgets, stop_after) in stops {
            assert!(!bench.go(&folder, budgets.clone(), *stop_after).0, "{name} was not stopped");
        }
        assert!(bench.go(&folder, Budgets::default(), u64::MAX).0, "{name}");
        assert!(records(&folder) == self.records, "{name}: other records");
        assert!(cassette(&folder) == self.cassette, "{name}: another recording");
        assert_eq!(bench.asked.load(Ordering::SeqCst), self.requests, "{name}: a recorded answer was asked for again");
        assert_eq!(bench.desk.asked(), self.outside, "{name}: a plug-in was asked again");
    }
}

/// Every sixth place; every one in the deep run.
fn places(end: u64) -> impl Iterator<Item = u64> {
    let stride = if std::env::var_os("TRADERHARNESS_DEEP").is_some() { 1 } else { 6 };
    (0..end).step_by(stride)
}

#[test]
fn a_run_that_was_cancelled_anywhere_goes_on_to_the_same_end() {
    let whole = Whole::new();
    // After its last call there is nothing left to cancel.
    for after in places(whole.steps - 1) {
        whole.check(&format!("cancelled-{after}"), &[(Budgets::default(), after)]);
    }
}

#[test]
fn a_run_that_used_up_a_budget_goes_on_under_a_larger_one_to_the_same_end() {
    let whole = Whole::new();
    for n in places(whole.requests) {
        whole.check(&format!("requests-{n}"), &[(Budgets { max_requests: Some(n), ..Budgets::default() }, u64::MAX)]);
    }
    for n in [0, 2, 3, 5] {
        // Stopped twice, then a third time by somebody.
        let calls = |n: u64| (Budgets { max_calls: Some(n), ..Budgets::default() }, u64::MAX);
        whole.check(&format!("calls-{n}"), &[calls(n), calls(n + 2), (Budgets::default(), whole.steps - 2)]);
    }
}

// engine E10.10: requests for notes are requests of the run, in its order
#[test]
fn a_run_whose_conversation_is_compacted_goes_on_to_the_same_end() {
    let policy = ContextPolicy { threshold: 1_800, micro_percent: 0, collapse_percent: 0, ..ContextPolicy::default() };
    let (plain, whole) = (Whole::new(), Whole::under(Some(policy)));
    let notes = whole.requests - plain.requests;
    assert!(notes > 1, "{notes} requests for notes");
    for n in (0..whole.requests).step_by(2) {
        whole.check(&format!("requests-{n}"), &[(Budgets { max_requests: Some(n), ..Budgets::default() }, u64::MAX)]);
    }
}
