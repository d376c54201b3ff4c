//! Asking a run to end: where it stops, what is recorded of it, and that nothing is executed that came too late (engine E10.9,
//! spec/seeds.md A4.7, A4.8, B5.3).

use crate::fixture::{Memory, Setup, call, store, trading_days};
use crate::loop_batches::{Desk, number, with_desk};
use crate::phases::{Model, calls, completes};
use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_harness::plugin::PlugInAnswer;
use traderharness_harness::run::{Observer, Outcome, RunError, RunSettings, RunStatus, Silent, play};
use traderharness_harness::session::{Committed, SessionError};
use traderharness_harness::{CallReport, CancelToken, RawArguments, Session};
use traderharness_market::DecisionPoint;
use traderharness_replay::{Record, Request, Response};

fn buy() -> (&'static str, Value) {
    ("place_order", json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" }))
}

struct Played {
    session: Session,
    outcome: Outcome,
    records: Vec<Record>,
}

impl Played {
    fn stop(&self) -> (&str, &Value, &str, &Value) {
        let [.., Record::Error { code, detail, .. }, Record::RunEnd { status, totals }] = self.records.as_slice() else {
            panic!("{:?}", self.records.last())
        };
        (code, detail, status, totals)
    }

    fn count(&self, what: impl Fn(&Record) -> bool) -> usize {
        self.records.iter().filter(|r| what(r)).count()
    }
}

fn played(
    desk: &Arc<Desk>,
    cancel: &CancelToken,
    observer: &mut dyn Observer,
    model: impl FnMut(&Request, DecisionPoint) -> Response + Send,
) -> Played {
    let store = store();
    let memory = Memory::default();
    let setup = Setup { journal: Box::new(memory.clone()), ..with_desk(desk) };
    let mut session = setup.session(&store);
    let settings = RunSettings { model: "test".into(), cancel: cancel.clone(), ..RunSettings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut model = model;
    let mut client = Model(move |request: &Request, turn: traderharness_harness::model::Turn| model(request, turn.point));
    let outcome = runtime.block_on(play(&mut session, &mut client, &trading_days(&store)[..1], &settings, observer));
    let records = memory.records.lock().unwrap().clone();
    Played { session, outcome, records }
}

// engine E10.9
#[test]
fn an_answer_that_comes_after_a_cancel_is_recorded_and_not_executed() {
    let cancel = CancelToken::new();
    let during = cancel.clone();
    let played = played(&Desk::new(number), &cancel, &mut Silent, move |_, point| {
        if point != DecisionPoint::Open1 {
            return completes(point);
        }
        during.cancel();
        calls(&[buy(), ("get_portfolio", json!({}))])
    });
    assert!(matches!(played.outcome.stopped, Some(RunError::Cancelled)), "{:?}", played.outcome.stopped);
    assert_eq!(played.outcome.summary.status, RunStatus::Cancelled);
    assert!(played.session.account().fills().is_empty());
    let (code, detail, status, totals) = played.stop();
    assert_eq!((code, status, &totals["status"]), ("cancelled", "cancelled", &json!("cancelled")));
    assert_eq!(detail, &json!({ "calls_not_run": ["c0", "c1"], "effects": [] }));
    // The answer is there, its calls are not.
    let answered = played.count(|r| matches!(r, Record::ModelResponse { .. }));
    assert_eq!((answered, played.count(|r| matches!(r, Record::ModelRequest { .. }))), (2, 2));
    assert_eq!(played.count(|r| matches!(r, Record::ToolCall { tool, .. } if tool == "place_order")), 0);
}

#[test]
fn a_run_that_was_cancelled_before_it_began_asks_nobody_and_opens_no_day() {
    let cancel = CancelToken::new();
    assert!(cancel.cancel());
    assert!(!cancel.cancel(), "a token is set once");
    let played = played(&Desk::new(number), &cancel, &mut Silent, |_, _| panic!("asked"));
    assert_eq!(played.records.len(), 2);
    assert_eq!(played.stop().2, "cancelled");
}

/// Cancels when a tool was answered.
struct After(&'static str, CancelToken);
impl Observer for After {
    fn call(&mut self, _: &Session, report: &CallReport) {
        if report.tool == self.0 {
            self.1.cancel();
        }
    }
}

// spec/seeds.md A4.8 OURS, B5.3: between the calls of a message; what was done is named as done
#[test]
fn between_two_calls_a_cancel_keeps_what_was_done_and_runs_no_more() {
    let cancel = CancelToken::new();
    let played = played(&Desk::new(number), &cancel, &mut After("place_order", cancel.clone()), |_, point| {
        if point == DecisionPoint::Open1 {
            calls(&[("get_portfolio", json!({})), buy(), ("complete_phase", json!({ "decision": "trade", "summary": "s" }))])
        } else {
            completes(point)
        }
    });
    assert_eq!(played.session.account().fills().len(), 1);
    assert_eq!(played.count(|r| matches!(r, Record::Fill { .. })), 1);
    let (_, detail, ..) = played.stop();
    let expected = json!({
        "calls_not_run": ["c2"], "effects": [{ "call_id": "c1", "tool": "place_order", "effect_committed": true }]
    });
    assert_eq!(detail, &expected);
    assert_eq!(played.count(|r| matches!(r, Record::Completion { .. })), 1, "only pre_market was completed");
}

// spec/seeds.md A4.8: what a plug-in gave up is no part of the run; whether it had an effect is said
#[test]
fn a_plug_in_that_was_interrupted_leaves_no_result_and_says_what_is_known() {
    for (tool, sent, expected) in
        [("outside_read", true, json!(false)), ("outside_write", true, json!("unknown")), ("outside_write", false, json!(false))]
    {
        let cancel = CancelToken::new();
        let inside = cancel.clone();
        let desk = Desk::new(move |_| {
            inside.cancel();
            PlugInAnswer::Cancelled { sent }
        });
        let played =
            played(&desk, &cancel, &mut Silent, |_, _| calls(&[(tool, json!({ "n": 1 })), ("get_portfolio", json!({}))]));
        assert!(matches!(played.outcome.stopped, Some(RunError::Cancelled)), "{:?}", played.outcome.stopped);
        let (_, detail, status, _) = played.stop();
        assert_eq!(status, "cancelled");
        assert_eq!(detail["effects"], json!([{ "call_id": "c0", "tool": tool, "effect_committed": expected }]));
        assert_eq!(played.count(|r| matches!(r, Record::ToolResult { .. })), 0);
    }
}

// A result that came is kept, also while the run is ended: a resumed run must not do it again.
#[test]
fn what_a_plug_in_answered_is_kept_though_the_run_is_to_end() {
    let cancel = CancelToken::new();
    let inside = cancel.clone();
    let desk = Desk::new(move |n| {
        inside.cancel();
        number(n)
    });
    let played =
        played(&desk, &cancel, &mut Silent, |_, _| calls(&[("outside_write", json!({ "n": 1 })), ("get_portfolio", json!({}))]));
    assert_eq!(played.stop().1["effects"], json!([{ "call_id": "c0", "tool": "outside_write", "effect_committed": true }]));
    assert_eq!(played.count(|r| matches!(r, Record::ToolResult { tool, success: true, .. } if tool == "outside_write")), 1);
}

// spec/seeds.md A4.7
#[test]
fn an_abort_ends_the_run_and_is_never_shown_as_a_failure() {
    let desk = Desk::new(|_| PlugInAnswer::Abort { reason: "the exchange of the experiment is closed".into() });
    let mut requests = 0;
    let played = played(&desk, &CancelToken::new(), &mut Silent, |_, _| {
        requests += 1;
        calls(&[("outside_write", json!({ "n": 1 })), ("get_portfolio", json!({}))])
    });
    assert_eq!(requests, 1);
    assert!(matches!(&played.outcome.stopped, Some(RunError::Aborted { tool, .. }) if tool == "outside_write"));
    let (code, detail, status, _) = played.stop();
    assert_eq!((code, status), ("aborted", "aborted"));
    assert_eq!(detail["reason"], "the exchange of the experiment is closed");
    assert_eq!(played.count(|r| matches!(r, Record::ToolResult { .. })), 0);
}

// A host with its own loop gets the same as errors.
#[test]
fn a_session_tells_its_host_of_an_abort_and_of_an_interruption() {
    let desk =
        Desk::new(
            |n| {
                if n == 0 { PlugInAnswer::Abort { reason: "over".into() } } else { PlugInAnswer::Cancelled { sent: true } }
            },
        );
    let mut session = with_desk(&desk).at(DecisionPoint::Open1);
    let mut ask = |n: i64| session.call("outside_write", RawArguments::Value(json!({ "n": n })));
    assert!(matches!(ask(0), Err(SessionError::Aborted { reason, .. }) if reason == "over"));
    assert!(matches!(ask(1), Err(SessionError::Interrupted { effect_committed: Committed::Unknown, .. })));
    // It is the host's to decide what follows: nothing of the account is in doubt.
    assert!(call(&mut session, "get_portfolio", json!({})).envelope.is_success());
}
