//! `complete_phase` and `finish_day`: the completion rules of engine E10.4 and E10.5.

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, Policy, ToolFailure};
use traderharness_market::DecisionPoint::{self, Close2, Open1, PreMarket};
use traderharness_tools_exec::{Control, PendingError};

fn pending(pairs: &[(&str, ErrorCode)]) -> Control {
    let pending = pairs.iter().map(|(tool, code)| PendingError { tool: (*tool).to_owned(), code: *code }).collect();
    Control { pending, ..Control::default() }
}

fn run(tool: &str, args: Value, point: DecisionPoint, control: &mut Control) -> Result<Value, ToolFailure> {
    let world = World::full();
    call(tool, args, world.view(TODAY, point), &mut rich(), &free(), control)
}

#[test]
fn a_completion_without_open_failures_is_accepted() {
    let mut control = Control::default();
    let args = json!({"decision": "ready", "summary": "done", "next_focus": "banks"});
    let payload = run("complete_phase", args, PreMarket, &mut control).unwrap();
    assert_eq!(payload["status"], "phase_complete");
    assert_eq!((&payload["sub_window"], &payload["next_decision_point"]), (&Value::Null, &json!("open_1")));
    let asked = control.requested.unwrap();
    assert_eq!((asked.finishes_day, asked.decision.as_str(), asked.next_focus.as_str()), (false, "ready", "banks"));
}

#[test]
fn open_failures_block_and_are_named_with_the_two_ways_out() {
    let open = [("place_order", ErrorCode::InsufficientCash), ("get_kline", ErrorCode::InvalidToolArguments)];
    for (tool, args, point) in
        [("complete_phase", json!({"decision": "ready", "summary": "s"}), Open1), ("finish_day", json!({"summary": "s"}), Close2)]
    {
        let mut control = pending(&open);
        let failure = run(tool, args, point, &mut control).unwrap_err();
        assert_eq!(failure.code, ErrorCode::CompletionBlocked);
        assert_eq!(
            failure.correction["open_failures"],
            json!(["place_order=insufficient_cash", "get_kline=invalid_tool_arguments"])
        );
        assert!(failure.instruction.contains("repair") && failure.instruction.contains("abandon_error_codes"));
        assert_eq!(control.requested, None, "a refused completion asks for nothing");
    }
}

#[test]
fn the_correction_of_a_blocked_completion_leads_to_success() {
    let open = [("place_order", ErrorCode::InsufficientCash), ("get_kline", ErrorCode::InvalidToolArguments)];
    let mut control = pending(&open);
    let mut args = json!({"decision": "no_trade", "summary": "s", "abandon_error_codes": ["insufficient_cash"]});
    let failure = run("complete_phase", args.clone(), Open1, &mut control).unwrap_err();
    assert_eq!(failure.correction["open_failures"], json!(["get_kline=invalid_tool_arguments"]));
    args["abandon_error_codes"] = failure.correction["abandon_error_codes"].clone();
    run("complete_phase", args, Open1, &mut control).unwrap();
    let asked = control.requested.unwrap();
    assert_eq!(asked.abandoned, [ErrorCode::InsufficientCash, ErrorCode::InvalidToolArguments]);
}

#[test]
fn words_that_are_no_codes_cannot_abandon_anything() {
    let mut control = pending(&[("place_order", ErrorCode::InsufficientCash)]);
    let args = json!({"decision": "ready", "summary": "s", "abandon_error_codes": ["insufficient_cash", "everything"]});
    let failure = run("complete_phase", args, Open1, &mut control).unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidToolArguments);
    assert_eq!(failure.correction["not_codes"], json!(["/abandon_error_codes/1"]));
    assert_eq!(failure.correction["open_codes"], json!(["insufficient_cash"]));
    assert!(!failure.message.contains("everything"), "what was sent is not echoed");
}

#[test]
fn each_completion_tool_keeps_to_its_decision_points() {
    let failure =
        run("complete_phase", json!({"decision": "ready", "summary": "s"}), Close2, &mut Control::default()).unwrap_err();
    assert_eq!((failure.code, &failure.correction["required_tool"]), (ErrorCode::ToolUnavailableInPhase, &json!("finish_day")));
    for point in DecisionPoint::ALL.into_iter().filter(|p| *p != Close2) {
        let failure = run("finish_day", json!({"summary": "s"}), point, &mut Control::default()).unwrap_err();
        assert_eq!(failure.code, ErrorCode::ToolUnavailableInPhase);
    }
    let payload = run("finish_day", json!({"summary": "s"}), Close2, &mut Control::default()).unwrap();
    assert_eq!(
        payload,
        json!({"status": "day_complete", "summary_saved": true, "trades_today": 0, "summary": "s", "abandon_error_codes": []})
    );
}

#[test]
fn blank_and_overlong_words_are_refused() {
    let failure = run("finish_day", json!({"summary": " \n"}), Close2, &mut Control::default()).unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidToolArguments);
    let complete = definition("complete_phase", &Policy::default());
    let finish = definition("finish_day", &Policy::default());
    let ok = |n| json!({"decision": "ready", "summary": "x".repeat(n)});
    assert!(
        complete.validate(&ok(1_000)).is_ok() && complete.validate(&ok(1_001)).is_err() && complete.validate(&ok(0)).is_err()
    );
    assert!(complete.validate(&json!({"decision": "ready", "summary": "s", "next_focus": "x".repeat(1_001)})).is_err());
    assert!(complete.validate(&json!({"decision": "stop", "summary": "s"})).is_err());
    assert!(
        finish.validate(&json!({"summary": "x".repeat(500)})).is_ok()
            && finish.validate(&json!({"summary": "x".repeat(501)})).is_err()
    );
    assert!(finish.validate(&json!({"summary": "s", "abandon_error_codes": vec!["a"; 21]})).is_err());
}
