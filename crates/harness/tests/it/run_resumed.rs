//! Stopped anywhere, by a cancel or a budget, a run goes on from its records: nothing is asked twice, nothing is ordered twice, and it
//! ends with the recording and the records of a run that never stopped (engine E10.11, DESIGN rule 8).

use crate::fixture::{Setup, store, trading_days};
use crate::loop_batches::{Desk, number, with_desk};
use async_trait::async_trait;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use traderharness_harness::context::ContextPolicy;
use traderharness_harness::model::{ModelClient, ModelError, ScriptedClient, Turn};
use traderharness_harness::resume::{ResumingClient, ResumingJournal};
use traderharness_harness::run::{Budgets, Observer, RunSettings, RunStatus, play};
use traderharness_harness::sandbox::{RunsJobs, Sandbox};
use traderharness_harness::script::Script;
use traderharness_harness::session::Journal;
use traderharness_harness::{CallReport, CancelToken, Session};
use traderharness_market::{Mask, MaskConfig, MaskStyle};
use traderharness_replay::trajectory::{self, RunStart};
use traderharness_replay::{Meta, Record, Recorder, Replay, Request, Response, Trajectory};
use traderharness_sandbox::protocol::Layers;
use traderharness_sandbox::{Ended, HostCalls, Job, PoolError, Ran, Usage, Workspace};

fn script() -> Script {
    let store = store();
    let mask =
        Mask::new(&store, MaskConfig { dates: false, entities: false, style: MaskStyle::Opaque, key: b"harness tests".to_vec() });
    let order = |action: &str, quantity: i64| json!({ "tool": "place_order", "args": { "action": action, "stock_code": "$600001", "quantity": quantity, "reasoning": "r" } });
    let complete = json!({ "calls": [{ "tool": "complete_phase", "args": { "decision": "ready", "summary": "ok" } }] });
    let outside = |tool: &str, n: i64| json!({ "tool": tool, "args": { "n": n } });
    let code = || json!({ "tool": "execute_code", "args": { "code": "result = 1" } });
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
            "open_1": [{ "say": "buy", "calls": [order("buy", 1000), outside("outside_write", 4)] }, { "calls": [code()] }, complete]
        },
        { "open_1": [{ "calls": [order("sell", 0), outside("outside_once", 3), code()] }, complete] }
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

/// Code that adds a letter to a file and gives how many there are. While it holds a token, it first is what somebody waits for too long.
#[derive(Debug, Default)]
struct Letters {
    ran: AtomicU64,
    cancel: Mutex<Option<CancelToken>>,
}

impl RunsJobs for Letters {
    fn run(&self, job: &Job<'_>, calls: &mut dyn HostCalls) -> Result<Ran, PoolError> {
        self.ran.fetch_add(1, Ordering::SeqCst);
        let file = job.workspace.join("letters");
        let letters = std::fs::read_to_string(&file).unwrap_or_default() + "x";
        std::fs::write(&file, &letters).unwrap();
        if let Some(cancel) = self.cancel.lock().unwrap().take() {
            assert!(!calls.is_cancelled());
            cancel.cancel();
        }
        if calls.is_cancelled() {
            return Err(PoolError::Cancelled);
        }
        Ok(Ran {
            ended: Ended::Finished(json!(letters.len())),
            output: String::new(),
            output_dropped: 0,
            usage: Usage::default(),
            layers: Layers { landlock: 5, seccomp: true, rlimits: true, no_new_privs: true },
            worker_exited: true,
            calls: 0,
        })
    }
}

struct Bench {
    desk: Arc<Desk>,
    code: Arc<Letters>,
    asked: Arc<AtomicU64>,
    script: Script,
    context: Option<ContextPolicy>,
}

impl Bench {
    fn new(context: Option<ContextPolicy>) -> Self {
        Self { desk: Desk::new(number), code: Arc::default(), asked: Arc::default(), script: script(), context }
    }

    /// Runs, or goes on with, the run of a folder. True when it came to its end; steps that were seen.
    fn go(&self, folder: &Path, budgets: Budgets, stop_after: u64) -> (bool, u64) {
        self.go_until(folder, budgets, stop_after, CancelToken::new())
    }

    fn go_until(&self, folder: &Path, budgets: Budgets, stop_after: u64, cancel: CancelToken) -> (bool, u64) {
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
        let sandbox = Sandbox::new(Arc::<Letters>::clone(&self.code), Workspace::new(folder.join("files")), false);
        let mut session = Setup { journal, ..with_desk(&self.desk) }.session(&store).with_sandbox(sandbox);
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
    ran: u64,
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
        let ran = bench.code.ran.load(Ordering::SeqCst);
        assert_eq!(ran, 2);
        Self { records, cassette: cassette(&folder), steps, requests, ran, outside, context, place }
    }

    /// A run that is stopped so, one stop after the other, and then goes on to its end.
    fn check(&self, name: &str, stops: &[(Budgets, u64)]) {
        let folder = self.place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let bench = Bench::new(self.context.clone());
        for (budgets, stop_after) in stops {
            assert!(!bench.go(&folder, budgets.clone(), *stop_after).0, "{name} was not stopped");
        }
        self.ends_the_same(name, &folder, &bench);
        assert_eq!(bench.code.ran.load(Ordering::SeqCst), self.ran, "{name}: code ran again whose outcome was kept");
    }

    fn ends_the_same(&self, name: &str, folder: &Path, bench: &Bench) {
        assert!(bench.go(folder, Budgets::default(), u64::MAX).0, "{name}");
        assert!(records(folder) == self.records, "{name}: other records");
        assert!(cassette(folder) == self.cassette, "{name}: another recording");
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

// Code is ended at once; the run that goes on runs it again, over the files that there were.
#[test]
fn a_run_that_was_cancelled_while_code_ran_says_so_and_goes_on_to_the_same_end() {
    let whole = Whole::new();
    let folder = whole.place.path().join("code");
    std::fs::create_dir(&folder).unwrap();
    let bench = Bench::new(None);
    for interrupted in 1..=2 {
        let cancel = CancelToken::new();
        *bench.code.cancel.lock().unwrap() = Some(cancel.clone());
        assert!(!bench.go_until(&folder, Budgets::default(), u64::MAX, cancel).0);
        let entries = trajectory::read(folder.join("trajectory.jsonl")).unwrap().entries;
        let last: Vec<Record> = entries.into_iter().rev().take(2).map(|entry| entry.record).collect();
        let [Record::RunEnd { status, .. }, Record::Error { code, detail, .. }] = last.as_slice() else { panic!("{last:?}") };
        assert_eq!((status.as_str(), code.as_str()), ("cancelled", "cancelled"));
        let effect = detail["effects"].as_array().and_then(|effects| effects.last()).unwrap();
        assert_eq!((&effect["tool"], &effect["effect_committed"]), (&json!("execute_code"), &json!(false)), "{detail}");
        assert_eq!(bench.code.ran.load(Ordering::SeqCst), interrupted);
    }
    whole.ends_the_same("code", &folder, &bench);
    assert_eq!(bench.code.ran.load(Ordering::SeqCst), 2 + whole.ran);
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
