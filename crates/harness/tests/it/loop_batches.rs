//! Calls of one message: reads beside each other, everything else alone; what is recorded and answered is in the order of the calls,
//! whoever was ready first (engine E10.3, spec/seeds.md B5, B7, D9).

use crate::fixture::{Memory, Setup, call, code, store, trading_days};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use traderharness_contract::{Effect, Repeat};
use traderharness_harness::dispatch::{BatchCall, TOGETHER};
use traderharness_harness::plugin::{
    Declaration, ExternalTool, PlugIn, PlugInAnswer, PlugInContext, RESULT_CHARACTERS, TIME_LIMIT, Wording,
};
use traderharness_harness::resume::CheckingJournal;
use traderharness_harness::session::SessionError;
use traderharness_harness::{CallReport, Card, Entry, HostFacts, RawArguments, Registry, Session};
use traderharness_market::DecisionPoint;
use traderharness_replay::Record;
use traderharness_replay::trajectory;

/// What a test wants a plug-in to do with the number it is given.
type Work = dyn Fn(i64) -> PlugInAnswer + Send + Sync;

/// Answers by a function, and counts how often it was asked.
pub(crate) struct Desk {
    work: Box<Work>,
    asked: Mutex<Vec<i64>>,
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

impl Desk {
    pub(crate) fn new(work: impl Fn(i64) -> PlugInAnswer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { work: Box::new(work), asked: Mutex::default(), inside: AtomicUsize::new(0), most: AtomicUsize::new(0) })
    }

    pub(crate) fn asked(&self) -> Vec<i64> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort_unstable();
        asked
    }
}

impl PlugIn for Desk {
    fn call(&self, _: &PlugInContext<'_>, arguments: &Value) -> PlugInAnswer {
        let n = arguments["n"].as_i64().unwrap();
        self.asked.lock().unwrap().push(n);
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        let answer = (self.work)(n);
        self.inside.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

pub(crate) fn number(n: i64) -> PlugInAnswer {
    let Value::Object(object) = json!({ "number": n }) else { unreachable!() };
    PlugInAnswer::Object { object }
}

/// Tools `outside_read`, `outside_sure` (deterministic), `outside_write` and `outside_once` that the desk serves, beside our own.
pub(crate) fn with_desk(desk: &Arc<Desk>) -> Setup {
    let mut registry = Registry::standard();
    for (name, effect, repeat, deterministic) in [
        ("outside_read", Effect::Read, Repeat::Free, false),
        ("outside_sure", Effect::Read, Repeat::Free, true),
        ("outside_write", Effect::Mutation, Repeat::Free, false),
        ("outside_once", Effect::Mutation, Repeat::OncePerRun, false),
    ] {
        let declaration = Declaration {
            name: name.into(),
            source: "test desk".into(),
            remote_name: name.into(),
            description: "Answers with a number. For tests.".into(),
            notes: Vec::new(),
            example: Some(json!({ "n": 1 })),
            returns: "The number.".into(),
            effect,
            repeat,
            deterministic,
            time_limit: TIME_LIMIT,
            result_limit: RESULT_CHARACTERS,
            input_schema: json!({
                "type": "object", "required": ["n"], "additionalProperties": false,
                "properties": { "n": { "type": "integer", "description": "A number." }, "note": { "type": "string", "description": "A word." } }
            }),
            output_schema: None,
            opt_in: false,
            wording: Wording::Host,
        };
        let desk: Arc<dyn PlugIn> = Arc::clone(desk) as _;
        registry.add(Entry::external(ExternalTool::new(declaration, desk).unwrap())).unwrap();
    }
    let host = HostFacts { host_effects: true, ..HostFacts::default() };
    let toolbox = registry.build(&Card::builtin(), false, &host).unwrap();
    Setup { toolbox: Some(Arc::new(toolbox)), ..Setup::default() }
}

fn session(desk: &Arc<Desk>, memory: &Memory) -> Session {
    Setup { journal: Box::new(memory.clone()), ..with_desk(desk) }.at(DecisionPoint::Open1)
}

fn batch(session: &mut Session, calls: &[(&str, Value)]) -> Result<Vec<CallReport>, SessionError> {
    let ids: Vec<String> = (0..calls.len()).map(|n| format!("c{n}")).collect();
    let calls =
        calls.iter().zip(&ids).map(|((name, args), id)| BatchCall { id, name, arguments: RawArguments::Value(args.clone()) });
    session.call_batch(calls.collect())
}

fn asks(count: i64) -> Vec<(&'static str, Value)> {
    (0..count).map(|n| ("outside_read", json!({ "n": n }))).collect()
}

/// Kind and call id of every record about calls.
fn order(memory: &Memory) -> Vec<String> {
    let records = memory.records.lock().unwrap();
    let about = records.iter().filter_map(|r| match r {
        Record::ToolCall { call_id, .. } => Some(format!("call {call_id}")),
        Record::External { call_id, .. } => Some(format!("outside {call_id}")),
        Record::ToolResult { call_id, .. } => Some(format!("result {call_id}")),
        _ => None,
    });
    about.collect()
}

/// Lets callers in a given order: `wait(n)` returns when `n` others have left. A test that would wait for ever fails instead.
#[derive(Default)]
struct Turnstile(Mutex<i64>, Condvar);
impl Turnstile {
    fn wait(&self, n: i64) {
        let left = self.0.lock().unwrap();
        let (_left, late) = self.1.wait_timeout_while(left, Duration::from_secs(20), |left| *left < n).unwrap();
        assert!(!late.timed_out(), "the calls of the batch were not outside at the same time");
    }
    fn leave(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }
}

// spec/seeds.md B5.2: the first call is ready last
#[test]
fn reads_of_a_batch_are_outside_together_and_come_back_in_call_order() {
    let turnstile = Turnstile::default();
    let desk = Desk::new(move |n| {
        turnstile.wait(3 - n);
        turnstile.leave();
        number(n)
    });
    let memory = Memory::default();
    let mut session = session(&desk, &memory);
    let mut calls = asks(4);
    calls.insert(1, ("get_portfolio", json!({})));
    let reports = batch(&mut session, &calls).unwrap();
    let numbers: Vec<Value> = reports.iter().map(|r| r.envelope.0.get("number").cloned().unwrap_or_default()).collect();
    assert_eq!(numbers, [json!(0), Value::Null, json!(1), json!(2), json!(3)]);
    assert_eq!(desk.most.load(Ordering::SeqCst), 4);
    let expected = "call c0, outside c0, result c0, call c1, result c1, call c2, outside c2, result c2, call c3, outside c3, result c3, \
                    call c4, outside c4, result c4";
    assert_eq!(order(&memory).join(", "), expected);
}

// spec/seeds.md B5.1
#[test]
fn no_more_than_eight_calls_are_outside_at_once() {
    let turnstile = Turnstile::default();
    let arrived = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&arrived);
    let desk = Desk::new(move |n| {
        counted.fetch_add(1, Ordering::SeqCst);
        // The first eight wait until eight have come, so that the ninth could only come beside them.
        while counted.load(Ordering::SeqCst) < TOGETHER {
            std::thread::yield_now();
        }
        turnstile.leave();
        number(n)
    });
    let reports = batch(&mut session(&desk, &Memory::default()), &asks(20)).unwrap();
    assert_eq!(reports.len(), 20);
    assert_eq!(desk.most.load(Ordering::SeqCst), TOGETHER);
    assert_eq!(desk.asked(), (0..20).collect::<Vec<_>>());
}

// spec/seeds.md B5.2: a crash in one becomes that call's error
#[test]
fn what_breaks_off_in_a_batch_costs_its_own_call() {
    let desk = Desk::new(|n| if n == 1 { panic!("half way") } else { number(n) });
    let reports = batch(&mut session(&desk, &Memory::default()), &asks(3)).unwrap();
    assert_eq!(reports.iter().map(code).collect::<Vec<_>>(), ["success", "external_tool_failed", "success"]);
}

// spec/seeds.md D9: a replay of the records gives the same answers and asks nobody
#[test]
fn a_batch_that_is_played_again_asks_nobody_and_gives_the_same_records() {
    let desk = Desk::new(number);
    let memory = Memory::default();
    let first = batch(&mut session(&desk, &memory), &asks(3)).unwrap();
    let records = memory.records.lock().unwrap().clone();
    let entries = records.into_iter().enumerate().map(|(n, record)| trajectory::Entry { seq: n as u64, record }).collect();
    let checking = CheckingJournal::new(entries);
    let silent = Desk::new(|_| panic!("asked again"));
    let setup = Setup { journal: Box::new(checking.clone()), ..with_desk(&silent) };
    let again = batch(&mut setup.at(DecisionPoint::Open1), &asks(3)).unwrap();
    assert_eq!(checking.left(), 0);
    let texts = |reports: &[CallReport]| reports.iter().map(|r| r.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&first), texts(&again));
    assert!(silent.asked().is_empty());
}

// spec/seeds.md B7: success is skipped, a plain failure may come again, an unknown outcome may not
#[test]
fn a_call_that_may_run_once_in_a_run_is_skipped_after_it_succeeded() {
    let desk = Desk::new(|n| match n {
        1 => PlugInAnswer::Failed { message: "not now".into() },
        2 => PlugInAnswer::TimedOut { worker_exited: false },
        n => number(n),
    });
    let memory = Memory::default();
    let mut session = session(&desk, &memory);
    let once = |n: i64, session: &mut Session| {
        session.begin_message();
        call(session, "outside_once", json!({ "n": n }))
    };
    assert_eq!(once(7, &mut session).envelope.0["number"], 7);
    session.advance().unwrap();
    let again = once(7, &mut session);
    assert_eq!((&again.envelope.0["skipped"], again.effect), (&json!(true), None), "{}", again.text);
    assert!(again.envelope.0["reason"].as_str().unwrap().contains("already succeeded"));
    assert_eq!(code(&once(1, &mut session)), "external_tool_failed");
    assert_eq!(code(&once(1, &mut session)), "external_tool_failed");
    assert_eq!(code(&once(2, &mut session)), "tool_timeout");
    let doubtful = once(2, &mut session);
    assert_eq!((code(&doubtful), &doubtful.envelope.0["correction"]["effect_committed"]), ("duplicate_call", &json!("unknown")));
    assert_eq!(desk.asked(), [1, 1, 2, 7]);
}

// complaint CX-6; spec/seeds.md B7.4
#[test]
fn an_equal_call_of_a_deterministic_tool_is_answered_without_asking_again() {
    let desk = Desk::new(number);
    let mut session = session(&desk, &Memory::default());
    let first = call(&mut session, "outside_sure", json!({ "n": 3, "note": "x" }));
    let again = call(&mut session, "outside_sure", json!({ "note": "x", "n": 3 }));
    assert_eq!((first.envelope.0.get("cached"), again.envelope.0.get("cached")), (None, Some(&json!(true))));
    assert_eq!(again.envelope.0["number"], 3);
    // Still subject to what every call is subject to.
    session.offer_only(Some("get_portfolio"));
    assert_eq!(code(&call(&mut session, "outside_sure", json!({ "n": 3, "note": "x" }))), "tool_unavailable_in_phase");
    session.offer_only(None);
    // In one batch the question goes out once, and at another clock it is a new one.
    let calls = [("outside_sure", json!({ "n": 4 })), ("outside_sure", json!({ "n": 4 })), ("outside_read", json!({ "n": 5 }))];
    let reports = batch(&mut session, &calls).unwrap();
    assert_eq!(reports.iter().map(|r| r.envelope.0.get("cached").is_some()).collect::<Vec<_>>(), [false, true, false]);
    session.advance().unwrap();
    call(&mut session, "outside_sure", json!({ "n": 4 }));
    // A tool that is not deterministic is asked every time, and a failure is never given again.
    for _ in 0..2 {
        call(&mut session, "outside_read", json!({ "n": 6 }));
    }
    assert_eq!(desk.asked(), [3, 4, 4, 5, 6, 6]);
}

// complaint CX-6: our own tools answer in full again; orders are never answered from memory
#[test]
fn equal_calls_of_our_own_tools_give_the_whole_answer_again() {
    let store = store();
    let mut session = Setup::default().session(&store);
    session.start_day(trading_days(&store)[0]).unwrap();
    session.advance().unwrap();
    let mut equal = BTreeMap::new();
    let tools: Vec<(String, Value)> = session
        .offered()
        .filter(|t| t.bound.spec().effect.is_read() && t.bound.spec().name != "execute_code")
        .map(|t| {
            let mut example = t.definition.example().clone();
            if example.get("stock_code").is_some() {
                example["stock_code"] = json!("600001");
            }
            (t.bound.spec().name.to_owned(), example)
        })
        .collect();
    for (tool, args) in tools {
        let mut results = [call(&mut session, &tool, args.clone()), call(&mut session, &tool, args)].map(|r| r.envelope.0);
        let marked = results[1].get("repeated") == Some(&json!(true));
        for result in &mut results {
            result.as_object_mut().unwrap().remove("repeated");
        }
        assert_eq!(results[0], results[1], "{tool}");
        equal.insert(tool, marked);
    }
    assert!(equal.len() > 12, "{equal:?}");
    assert!(equal["get_stock_info"], "a repeated answer is not marked");
}
