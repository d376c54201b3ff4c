//! Code in a session, over a sandbox that does as told: what is recorded, taken from the recording, kept and shown.

use crate::fixture::{Memory, Setup, call, code, store, trading_days};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use traderharness_harness::resume::{CheckingJournal, ResumingJournal};
use traderharness_harness::sandbox::{RunsJobs, Sandbox};
use traderharness_harness::session::{Committed, Journal, SessionError};
use traderharness_harness::{CancelToken, Card, RawArguments, Session};
use traderharness_market::DecisionPoint;
use traderharness_replay::trajectory::{self, RunStart};
use traderharness_replay::{Record, RecordingError, Trajectory};
use traderharness_sandbox::protocol::{Layers, WorkerEnded};
use traderharness_sandbox::{Ended, EndedBy, HostCalls, Job, PoolError, Ran, Usage, Workspace};
use traderharness_tools_exec::CodeOutcome;

/// Understands code of five words; notes what it was asked.
#[derive(Debug, Default)]
struct Told {
    asked: Mutex<Vec<(String, i64, u64, u64)>>,
    layers: Layers,
    /// Added to every number, to be another machine.
    off: i64,
    /// What code that waits sets.
    cancel: Mutex<Option<CancelToken>>,
}

impl Told {
    fn runs(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl RunsJobs for Told {
    fn run(&self, job: &Job<'_>, calls: &mut dyn HostCalls) -> Result<Ran, PoolError> {
        let mut asked = self.asked.lock().unwrap();
        asked.push((job.code.to_owned(), job.frozen.epoch_seconds, job.frozen.seed, job.limits.memory_bytes));
        let write = |name: &str, text: &str| std::fs::write(job.workspace.join(name), text).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let ended = match job.code {
            // Appends to a file and gives what is in it.
            "count" => {
                let text = read(&job.workspace.join("count")) + "x";
                write("count", &text);
                Ended::Finished(json!(text.len() as i64 + self.off))
            }
            "slow" => {
                write("count", "never kept");
                Ended::TimedOut { by: EndedBy::Kill, traceback: String::new() }
            }
            "raise" => Ended::Worker(WorkerEnded::Raised {
                exception: "KeyError".to_owned(),
                message: "600001".to_owned(),
                traceback: "File \"agent\", line 4, in <module>\nKeyError: '600001'".to_owned(),
            }),
            // Writes, and goes on until nobody waits for it.
            "wait" => {
                write("count", "never kept");
                if let Some(cancel) = self.cancel.lock().unwrap().take() {
                    cancel.cancel();
                }
                assert!(calls.is_cancelled());
                return Err(PoolError::Cancelled);
            }
            _ => return Err(PoolError::NotStarted { what: "/machine/of/somebody/python is not there".to_owned() }),
        };
        Ok(Ran {
            ended,
            output: "Harbour Tools 0\n".to_owned(),
            output_dropped: 0,
            usage: Usage { wall: 0.5, cpu: 0.25, memory: 1 << 20 },
            layers: self.layers.clone(),
            worker_exited: true,
            calls: 0,
        })
    }
}

fn whole() -> Layers {
    Layers { landlock: 5, seccomp: true, rlimits: true, no_new_privs: true }
}

fn told() -> Arc<Told> {
    Arc::new(Told { layers: whole(), ..Told::default() })
}

fn session(jobs: &Arc<Told>, files: &Path, journal: Box<dyn Journal>, masked: bool) -> Session {
    let sandbox = Sandbox::new(Arc::<Told>::clone(jobs), Workspace::new(files.to_path_buf()), false);
    let store = store();
    let setup = Setup { journal, masked, ..Setup::default() };
    let mut session = setup.session(&store).with_sandbox(sandbox);
    session.start_day(trading_days(&store)[0]).unwrap();
    session
}

fn run(session: &mut Session, code: &str) -> Value {
    call(session, "execute_code", json!({ "code": code })).envelope.0
}

fn outcomes(records: &[Record]) -> Vec<CodeOutcome> {
    let external = records.iter().filter_map(|record| match record {
        Record::External { outcome, .. } => Some(serde_json::from_value(outcome.clone()).unwrap()),
        _ => None,
    });
    external.collect()
}

#[test]
fn an_outcome_is_recorded_before_its_result_and_nothing_measured_is_in_either() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::default();
    let mut session = session(&told(), folder.path(), Box::new(memory.clone()), false);
    let report = call(&mut session, "execute_code", json!({ "code": "count" }));
    assert_eq!(report.envelope.0["result"], 1, "{}", report.text);
    assert_eq!(report.envelope.0["files"], json!([{ "name": "count", "bytes": 1 }]));
    assert_eq!(report.usage.map(|u| u.wall), Some(0.5));
    let records = memory.records.lock().unwrap();
    let kinds: Vec<&Record> = records.iter().rev().take(3).collect();
    assert!(matches!(kinds[..], [Record::ToolResult { .. }, Record::External { .. }, Record::ToolCall { .. }]), "{kinds:?}");
    for measured in ["wall", "0.25", "1048576"] {
        assert!(!format!("{kinds:?}").contains(measured), "{measured}");
    }
}

#[test]
fn files_stay_between_calls_and_days_and_a_failed_call_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(&told(), folder.path(), Box::new(Memory::default()), false);
    assert_eq!(run(&mut session, "count")["result"], 1);
    assert_eq!(run(&mut session, "slow")["error_code"], "sandbox_timeout");
    assert_eq!(run(&mut session, "count")["result"], 2);
    session.start_day(trading_days(&store())[1]).unwrap();
    assert_eq!(run(&mut session, "count")["result"], 3);
}

// engine E8.5: code sees masked data alone, so its words are not masked again: that would tell which of its guesses are real.
#[test]
fn what_code_says_is_not_masked_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(&told(), folder.path(), Box::new(Memory::default()), true);
    assert_eq!(run(&mut session, "count")["stdout"], "Harbour Tools 0\n");
    let failure = run(&mut session, "raise");
    assert_eq!(failure["error_code"], "sandbox_execution_failed");
    assert_eq!(failure["correction"]["exception_message"], "600001");
    assert_eq!(failure["correction"]["line"], 4);
    assert!(failure["correction"]["traceback"].as_str().unwrap().ends_with("KeyError: '600001'"));
}

#[test]
fn a_sandbox_that_does_not_start_tells_the_model_no_path_and_the_host_why() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::default();
    let mut session = session(&told(), folder.path(), Box::new(memory.clone()), false);
    let report = call(&mut session, "execute_code", json!({ "code": "?" }));
    assert_eq!(code(&report), "environment_unavailable");
    assert!(!report.text.contains("/machine"), "{}", report.text);
    assert!(!format!("{:?}", memory.records.lock().unwrap()).contains("/machine"));
    assert!(report.host_note.unwrap().contains("/machine/of/somebody/python"));
}

// A host with its own loop goes on with the session: files, counts and seeds are those of a session that never ran the code.
#[test]
fn code_that_was_cancelled_is_no_part_of_its_session() {
    let played = |interrupted: bool| {
        let (folder, jobs, memory) = (tempfile::tempdir().unwrap(), told(), Memory::default());
        let mut session = session(&jobs, folder.path(), Box::new(memory.clone()), false);
        let mut shown = vec![run(&mut session, "count")];
        if interrupted {
            let cancel = CancelToken::new();
            *jobs.cancel.lock().unwrap() = Some(cancel.clone());
            session.set_cancel(cancel);
            let stopped = session.call("execute_code", RawArguments::Value(json!({ "code": "wait" }))).unwrap_err();
            let SessionError::Interrupted { tool, effect_committed, .. } = stopped else { panic!("{stopped:?}") };
            assert_eq!((tool.as_str(), effect_committed), ("execute_code", Committed::No));
            session.set_cancel(CancelToken::new());
        }
        shown.extend(["slow", "count"].map(|code| run(&mut session, code)));
        let asked = jobs.asked.lock().unwrap().clone();
        let asked: Vec<_> = asked.into_iter().filter(|(code, ..)| code != "wait").collect();
        (shown, asked, outcomes(&memory.records.lock().unwrap()))
    };
    let expected = played(false);
    assert_eq!(expected.0[2]["result"], 2);
    assert_eq!(played(true), expected);
}

#[test]
fn time_and_chance_are_those_of_the_decision_point() {
    let check = |masked: bool, first_epoch: i64| {
        let folder = tempfile::tempdir().unwrap();
        let jobs = told();
        let mut session = session(&jobs, folder.path(), Box::new(Memory::default()), masked);
        run(&mut session, "count");
        run(&mut session, "count");
        session.advance().unwrap();
        run(&mut session, "count");
        let asked = jobs.asked.lock().unwrap().clone();
        assert_eq!(asked[0].1, first_epoch);
        assert_eq!(asked[2].1 - asked[1].1, 20 * 60, "09:30 to 09:50");
        assert!(asked[0].2 != asked[1].2 && asked[1].2 != asked[2].2, "another call, another seed");
        assert_eq!(asked[0].3, 1 << 30);
        asked[0].2
    };
    let seed = check(true, 946_690_200);
    assert_eq!(seed, check(true, 946_690_200), "the same run, the same seed");
    // 2024-04-09 09:30 at the exchange.
    assert_ne!(seed, check(false, 1_712_626_200));
}

#[test]
fn missing_walls_are_told_once_and_no_replay_compares_them() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = Arc::new(Told { layers: Layers { landlock: 0, ..whole() }, ..Told::default() });
    let memory = Memory::default();
    let mut first = session(&jobs, folder.path(), Box::new(memory.clone()), false);
    run(&mut first, "count");
    run(&mut first, "count");
    let records = memory.records.lock().unwrap().clone();
    let notices: Vec<&Record> = records.iter().filter(|r| matches!(r, Record::Notice { .. })).collect();
    let [Record::Notice { detail, .. }] = notices[..] else { panic!("{notices:?}") };
    assert_eq!(*detail, json!({ "missing": ["landlock"] }));

    let other = tempfile::tempdir().unwrap();
    let checking = CheckingJournal::new(entries(records)).running_code();
    let mut again = session(&told(), other.path(), Box::new(checking.clone()), false);
    run(&mut again, "count");
    run(&mut again, "count");
    assert_eq!(checking.left(), 0);
}

fn entries(records: Vec<Record>) -> Vec<trajectory::Entry> {
    records.into_iter().enumerate().map(|(seq, record)| trajectory::Entry { seq: seq as u64, record }).collect()
}

fn recorded(codes: &[&str]) -> Vec<Record> {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::default();
    let mut session = session(&told(), folder.path(), Box::new(memory.clone()), false);
    for code in codes {
        run(&mut session, code);
    }
    memory.records.lock().unwrap().clone()
}

#[test]
fn a_replay_runs_code_again_except_where_the_machine_decides() {
    let codes = ["count", "slow", "raise", "?", "count"];
    let records = recorded(&codes);
    let check = |checking: CheckingJournal, ran: usize| {
        let folder = tempfile::tempdir().unwrap();
        let jobs = told();
        let mut session = session(&jobs, folder.path(), Box::new(checking.clone()), false);
        codes.iter().for_each(|code| drop(run(&mut session, code)));
        assert_eq!(checking.left(), 0);
        assert_eq!(jobs.runs(), ran);
        assert_eq!(checking.code_from_recording() as usize, codes.len() - ran);
    };
    check(CheckingJournal::new(entries(records.clone())).running_code(), 3);
    check(CheckingJournal::new(entries(records)), 0);
}

#[test]
fn code_that_ends_otherwise_stops_the_replay_and_says_where() {
    let records = recorded(&["count"]);
    let folder = tempfile::tempdir().unwrap();
    let jobs = Arc::new(Told { layers: whole(), off: 41, ..Told::default() });
    let checking = CheckingJournal::new(entries(records)).running_code();
    let mut session = session(&jobs, folder.path(), Box::new(checking), false);
    let stopped = session.call("execute_code", RawArguments::Value(json!({ "code": "count" }))).unwrap_err();
    let SessionError::Journal(RecordingError::Diverged { what }) = stopped else { panic!("{stopped:?}") };
    for said in ["execute_code, call call-1", "result", "recorded  1", "now       42"] {
        assert!(what.contains(said), "{said}: {what}");
    }
}

/// Keeps records in a file until one is the `fail_at`-th.
struct Cut {
    trajectory: Trajectory,
    left: usize,
}

impl Journal for Cut {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        if self.left == 0 {
            let source = std::io::Error::other("killed");
            return Err(RecordingError::Io { action: "write", path: "trajectory.jsonl".into(), source });
        }
        self.left -= 1;
        self.trajectory.append(record).map(drop)
    }
}

// DESIGN rule 8
#[test]
fn killed_anywhere_a_run_goes_on_with_the_files_and_outcomes_it_recorded() {
    let codes = ["count", "count", "slow", "count", "raise", "count"];
    let expected = recorded(&codes);
    let mut seen = std::collections::BTreeSet::new();
    for cut in 0..expected.len() {
        let folder = tempfile::tempdir().unwrap();
        let (files, path) = (folder.path().join("files"), folder.path().join("trajectory.jsonl"));
        let journal = Cut { trajectory: Trajectory::create(&path, RunStart::default()).unwrap(), left: cut };
        let jobs = told();
        let started = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut first = session(&jobs, &files, Box::new(journal), false);
            codes.iter().for_each(|code| drop(run(&mut first, code)));
        }));
        assert!(started.is_err(), "cut at {cut}: the first run stops");

        let (trajectory, kept) = Trajectory::resume(&path).unwrap();
        let recorded_outcomes = outcomes(&kept.iter().map(|e| e.record.clone()).collect::<Vec<_>>()).len();
        let jobs = told();
        let mut second = session(&jobs, &files, Box::new(ResumingJournal::new(trajectory, kept)), false);
        codes.iter().for_each(|code| drop(run(&mut second, code)));
        assert_eq!(jobs.runs(), codes.len() - recorded_outcomes, "cut at {cut}: kept outcomes are never run again");
        seen.insert(recorded_outcomes);
        let whole: Vec<Record> = trajectory::read(&path).unwrap().entries.into_iter().skip(1).map(|e| e.record).collect();
        assert_eq!(whole, expected, "cut at {cut}");
    }
    assert_eq!(seen.len(), codes.len() + 1, "every number of kept outcomes was met");
}

#[test]
fn files_that_are_gone_stop_a_resumed_run() {
    let folder = tempfile::tempdir().unwrap();
    let records = recorded(&["count"]);
    let path = folder.path().join("trajectory.jsonl");
    let mut trajectory = Trajectory::create(&path, RunStart::default()).unwrap();
    records.into_iter().for_each(|record| assert!(trajectory.append(record).is_ok()));
    drop(trajectory);
    let (trajectory, kept) = Trajectory::resume(&path).unwrap();
    let journal = Box::new(ResumingJournal::new(trajectory, kept));
    let mut session = session(&told(), &folder.path().join("files"), journal, false);
    run(&mut session, "count");
    let stopped = session.call("execute_code", RawArguments::Value(json!({ "code": "count" }))).unwrap_err();
    assert!(matches!(stopped, SessionError::Workspace(_)), "{stopped:?}");
}

#[test]
fn a_card_that_keeps_code_to_the_morning_does_not_offer_it_later() {
    let offered = |only: bool, point: DecisionPoint| {
        let card = Card { sandbox_pre_market_only: only, ..Card::builtin() };
        let session = Setup { card, ..Setup::default() }.at(point);
        session.offered().any(|tool| tool.bound.spec().name == "execute_code")
    };
    assert!(offered(true, DecisionPoint::PreMarket));
    assert!(!offered(true, DecisionPoint::Open1));
    assert!(offered(false, DecisionPoint::Open1));
}

#[test]
fn the_memory_of_code_is_that_of_the_card() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = told();
    let sandbox = Sandbox::new(Arc::<Told>::clone(&jobs), Workspace::new(folder.path().to_path_buf()), false);
    let store = store();
    let card = Card { sandbox_memory_mb: 256, ..Card::builtin() };
    let mut session = Setup { card, ..Setup::default() }.session(&store).with_sandbox(sandbox);
    session.start_day(trading_days(&store)[0]).unwrap();
    assert_eq!(run(&mut session, "count")["limits"]["memory_mb"], 256);
    assert_eq!(jobs.asked.lock().unwrap()[0].3, 256 << 20);
    for bad in [0, 63, 16_385] {
        assert!(Card { sandbox_memory_mb: bad, ..Card::builtin() }.check().is_err(), "{bad}");
    }
    for bad in [0, 61] {
        assert!(Card { sandbox_timeout_seconds: bad, ..Card::builtin() }.check().is_err(), "{bad}");
    }
}
