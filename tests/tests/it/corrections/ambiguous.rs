//! An incomplete code is never guessed, and the answer holds every complete call it could have been.

use super::envelope::{failure, takes_a_code, tools};
use super::listed::partial;
use super::world::{FULL, TODAY, free_card, send};
use serde_json::{Value, json};
use traderharness_contract::ErrorCode;
use traderharness_market::DecisionPoint;

/// Arguments with which the tool answers for any security whatever it is worth, so that only the code decides.
fn arguments(tool: &str, example: &Value, code: &str) -> Value {
    let mut args = example.clone();
    args["stock_code"] = json!(code);
    if tool == "place_order" {
        args["action"] = json!("sell");
    }
    args
}

// complaint AR-10; spec/tools.md b08; engine E8.6
#[test]
fn an_incomplete_code_comes_back_as_complete_calls_for_every_tool_that_takes_one() {
    let mut checked = 0;
    for masked in [false, true] {
        for definition in tools().filter(|d| takes_a_code(d)) {
            let tool = definition.spec.name;
            let mut session = FULL.open(&free_card(), masked, TODAY, DecisionPoint::Open1);
            let sent = arguments(tool, definition.example(), &partial(&session));
            let answer = send(&mut session, tool, &sent);
            assert_eq!(failure(&session, tool, &answer), ErrorCode::AmbiguousMaskedStockCode, "{}", answer.report.text);
            let correction = &answer.report.envelope.0["correction"];
            let aliases = correction["candidate_aliases"].as_array().expect("candidates");
            let choices = correction["retry_argument_choices"].as_array().expect("choices");
            assert!(!aliases.is_empty() && aliases.len() == choices.len(), "{}", answer.report.text);
            for (alias, choice) in aliases.iter().zip(choices) {
                let mut expected = sent.clone();
                expected["stock_code"] = alias.clone();
                assert_eq!(*choice, expected, "{tool}: a choice is the call that was sent, with one complete code");
                let bound = session.offered().find(|t| t.bound.spec().name == tool).expect("offered");
                assert!(bound.definition.validate(choice).is_ok(), "{tool}: {choice}");
                assert!(session.mask().resolve(alias.as_str().unwrap_or_default()).is_ok(), "{tool}: {alias} is complete");
            }
            for choice in choices.clone() {
                let answer = send(&mut session, tool, &choice);
                let code = answer.report.envelope.error_code().unwrap_or_default();
                let about_codes = ["ambiguous_masked_stock_code", "unknown_security", "invalid_tool_arguments"];
                assert!(!about_codes.contains(&code), "{tool}({choice}): {}", answer.report.text);
            }
            checked += 1;
        }
    }
    assert!(checked >= 2 * 12, "only {checked} tools take a code");
}
