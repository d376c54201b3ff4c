//! The outcome and its envelopes (spec/seeds.md D1).

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use traderharness_contract::algebra::InvocationId;
use traderharness_contract::budget::OldestFirst;
use traderharness_contract::render::{Invocation, TEXT_LIMIT, Timing, status_object, tool_call_result, tool_result};
use traderharness_contract::{Change, Envelope, ErrorCode, Note, Outcome, ToolFailure, parse_arguments};

fn failure() -> ToolFailure {
    ToolFailure::new(
        ErrorCode::InsufficientCash,
        "The order needs 12,000.00 CNY; 9,500.00 CNY are usable.",
        "Lower the quantity to 700.",
    )
    .with("affordable_quantity", 700)
    .with("tool", "forged")
    .with("received_arguments", "forged")
}

fn payload() -> Map<String, Value> {
    let value = json!({
        "as_of": {"day": "D-1", "time": "15:00", "decision_point": "open_1"},
        "success": "forged", "status": "forged",
        "items": [{"evidence_id": "ev-b", "volume": null}, {"evidence_id": "ev-a", "volume": 0}, {"evidence_id": "ev-b"}],
        "missing_reasons": [{"field": "items[0].volume", "reason": "suspended"}],
        "next_cursor": null
    });
    value.as_object().unwrap().clone()
}

fn every_outcome() -> Vec<(&'static str, Outcome)> {
    let mut complete = payload();
    complete.insert("missing_reasons".into(), json!([]));
    vec![
        ("complete", Outcome::answered(Value::Object(complete))),
        ("partial", Outcome::answered(Value::Object(payload()))),
        ("job", Outcome::Job { job_id: "job_1".into(), status_url: "/v1/jobs/job_1".into() }),
        ("failed", Outcome::Failed(failure())),
        ("skipped", Outcome::Skipped { reason: "It already succeeded.".into() }),
        ("blocked", Outcome::Blocked(failure())),
        ("abort", Outcome::Abort { reason: "stop".into() }),
    ]
}

#[test]
fn each_outcome_has_one_rendering_per_envelope() {
    let timing = Timing { timestamp: 1.5, execution_time: 0.25 };
    let sent = json!({"stock_code": "SHM-000360", "quantity": 900});
    let example = json!({"stock_code": "SHM-000360", "quantity": 100});
    let id = InvocationId::parse("inv_1").unwrap();
    let invocation = Invocation {
        source_refs: &["daily"],
        example: Some(&example),
        received: Some(&sent),
        ..Invocation::new(&id, "place_order", "D+0 10:30")
    };
    let mut all = Map::new();
    for (name, outcome) in every_outcome() {
        all.insert(
            name.into(),
            json!({
                "v5": Envelope::render(&outcome, "place_order", &example, &sent).0,
                "tool_call_result": tool_call_result(&outcome, "place_order", timing, TEXT_LIMIT),
                "status_object": status_object(&outcome, "place_order"),
                "tool_result": tool_result(&outcome, &invocation),
            }),
        );
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&all).unwrap());
}

#[test]
fn the_envelopes_agree_on_success() {
    for (name, outcome) in every_outcome() {
        let v5 = Envelope::render(&outcome, "t", &json!({}), &json!({}));
        let good = !matches!(name, "failed" | "blocked" | "abort");
        assert_eq!(v5.is_success(), good, "{name}");
        assert_eq!(v5.error_code(), outcome.failure().map(|f| f.code.as_str()), "{name}");
        assert_eq!(v5.is_retryable_failure(), outcome.failure().is_some_and(ToolFailure::retryable), "{name}");
        let ok = tool_call_result(&outcome, "t", Timing { timestamp: 0.0, execution_time: 0.0 }, TEXT_LIMIT);
        assert_eq!(ok.map(|r| r["ok"] == true), (name != "abort").then_some(good), "{name}");
    }
}

#[test]
fn what_the_agent_sent_and_the_outcome_cannot_be_forged() {
    let sent = json!({"quantity": 900});
    let envelope = Envelope::render(&Outcome::Failed(failure()), "place_order", &json!({}), &sent).0;
    assert_eq!(envelope["correction"]["received_arguments"], sent);
    assert_eq!(envelope["correction"]["tool"], "place_order");
    assert_eq!(envelope["correction"]["affordable_quantity"], 700);
    let envelope = Envelope::render(&Outcome::answered(json!({"success": false})), "t", &json!({}), &sent);
    assert!(envelope.is_success());
    assert_eq!(status_object(&Outcome::answered(json!({"status": "error"})), "t"), Some(json!({"status": "ok"})));
}

#[test]
fn a_bare_result_gets_a_name() {
    for value in [json!([1]), json!("x"), json!(null)] {
        assert_eq!(Outcome::answered(value.clone()).payload().unwrap()["result"], value);
    }
}

#[test]
fn notes_are_shown_only_when_there_are_some() {
    let plain = Envelope(json!({"success": true}));
    assert_eq!(plain.clone().with_notes(&[]), plain);
    let note = Note { path: "/peers".into(), change: Change::ParsedFromString };
    assert_eq!(
        plain.with_notes(&[note]).0,
        json!({"success": true, "normalised": [{"path": "/peers", "change": "parsed_from_string"}]})
    );
}

#[test]
fn the_text_of_a_long_call_result_is_bounded_and_its_result_is_not() {
    let outcome = Outcome::answered(json!({"text": "x".repeat(100_000)}));
    let result = tool_call_result(&outcome, "t", Timing { timestamp: 0.0, execution_time: 0.0 }, TEXT_LIMIT).unwrap();
    assert_eq!(result["result_str"].as_str().unwrap().len(), TEXT_LIMIT);
    assert_eq!(result["result"]["text"].as_str().unwrap().len(), 100_000);
}

// complaints NU-1, NU-2
#[test]
fn no_number_of_a_result_is_written_as_nan_or_infinity() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, 1.797e308] {
        let output = serde_json::to_value(BTreeMap::from([("price", number)])).unwrap();
        let text =
            Envelope::render(&Outcome::answered(output), "t", &json!({}), &json!({})).fit(10_000, &OldestFirst::default()).text;
        let read = parse_arguments(&text).expect("strict JSON");
        assert_eq!(read["price"].as_f64(), number.is_finite().then_some(number), "{text}");
    }
}
