//! Calls: every tool answers in the envelope, an equal request is answered again, and a key counts for one caller and one capability.

use super::fixture::{Hosted, buy, caller, open, server, session, store};
use serde_json::{Value, json};
use traderharness_contract::FailureClass;
use traderharness_serve::{Invocation, Refusal, ReplyKind, SessionRequest, Watch};

/// Validates a value against a schema of the catalog.
fn fits(schema: &Value, value: &Value) -> Result<(), String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

// spec/seeds.md C1.2, C9; complaint MC-1
#[test]
fn every_answer_fits_the_schemas_that_the_catalog_publishes() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let mut answered = 0;
    for capability in hosted.house.capabilities(&hosted.caller) {
        let Some(tool) = &capability.tool else { continue };
        let mut input = capability.example.clone();
        for field in ["stock_code", "instrumentId"] {
            if input.get(field).is_some() {
                input[field] = "600001".into();
            }
        }
        if tool == "finish_day" || tool == "complete_phase" {
            continue;
        }
        match hosted.call(tool, input, &format!("key-{tool}")) {
            Ok(reply) => {
                answered += 1;
                assert_eq!(reply.kind, ReplyKind::Complete);
                fits(&capability.envelope_schema, &reply.body).unwrap_or_else(|fault| panic!("{tool}: {fault}"));
                fits(&capability.output_schema, &reply.body["data"]).unwrap_or_else(|fault| panic!("{tool}: {fault}"));
                assert!(fits(&capability.envelope_schema, &reply.body["data"]).is_err(), "{tool}: data is no envelope");
                let read: Value = serde_json::from_str(&reply.text).unwrap();
                if reply.text.chars().count() < 10_000 {
                    assert_eq!(read, reply.body, "{tool}");
                }
                assert!(reply.body["invocation_id"].as_str().unwrap().starts_with("inv_"));
            }
            Err(refusal) => assert_ne!(refusal.status, 500, "{tool}: {refusal:?}"),
        }
    }
    assert!(answered >= 20, "{answered} tools answered");
}

// spec/seeds.md C3.3
#[test]
fn an_equal_request_is_answered_again_and_another_one_is_a_conflict() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let first = hosted.call("place_order", buy("600001"), "k1").unwrap();
    assert!(!first.replayed);
    let again = hosted.call("execution.place_order", buy("600001"), "k1").unwrap();
    assert!(again.replayed);
    assert_eq!((&again.body, &again.text), (&first.body, &first.text));
    let positions = hosted.house.account(&hosted.caller, &hosted.session).unwrap();
    assert_eq!(positions["positions"].as_array().unwrap().len(), 1);

    let conflict = hosted.call("place_order", buy("600002"), "k1").unwrap_err();
    assert_eq!((conflict.class, conflict.status, conflict.retryable), (FailureClass::IdempotencyConflict, 409, false));
    // The key of another capability is another key.
    assert!(hosted.call("get_portfolio", json!({}), "k1").is_ok());
    assert_eq!(hosted.call("get_portfolio", json!({}), "").unwrap_err().status, 400);
}

#[test]
fn a_refusal_of_the_market_is_answered_again_but_one_before_any_work_is_not() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let refused = hosted.call(
        "place_order",
        json!({"stock_code": "600001", "action": "sell", "quantity": 100, "reasoning": "The test sells what it never had."}),
        "k1",
    );
    let refused = refused.unwrap_err();
    assert_eq!(refused.class, FailureClass::Forbidden, "{refused:?}");
    let records = || hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap().len();
    let before = records();
    let again = hosted.call(
        "place_order",
        json!({"stock_code": "600001", "action": "sell", "quantity": 100, "reasoning": "The test sells what it never had."}),
        "k1",
    );
    assert!(!refused.replayed);
    assert_eq!((again.unwrap_err(), records()), (Refusal { replayed: true, ..refused }, before));
    // Faulty arguments use no key up: the corrected request may have it.
    let faulty = hosted.call("place_order", json!({"stock_code": "600001", "action": "buy"}), "k2").unwrap_err();
    assert_eq!((faulty.class, faulty.status), (FailureClass::InvalidInput, 422));
    assert!(faulty.correction.as_ref().unwrap()["valid_arguments_example"].is_object());
    assert!(hosted.call("place_order", buy("600001"), "k2").is_ok());
}

// spec/seeds.md C9: data fine but the envelope lies: see the unit tests of the algebra; here: what a session did stays in its records
#[test]
fn faulty_arguments_count_in_the_phase_as_they_do_in_a_loop() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    hosted.call("get_stock_price", json!({"code": 1}), "k1").unwrap_err();
    let done = json!({"decision": "no_trade", "summary": "Nothing to do here.", "next_focus": ""});
    let blocked = hosted.call("complete_phase", done.clone(), "k2").unwrap_err();
    assert_eq!(blocked.code, "completion_blocked", "{blocked:?}");
    hosted.call("get_stock_price", json!({"stock_code": "600001"}), "k3").unwrap();
    let reply = hosted.call("complete_phase", done, "k4").unwrap();
    let completed = reply.completed.unwrap();
    assert_eq!((completed.point.as_str(), completed.day, completed.finished), ("open_1", false, false));
    assert_eq!(hosted.house.session(&hosted.caller, &hosted.session).unwrap().point, "open_2");
}

#[test]
fn the_brief_says_what_its_words_for_results_are_called_here_and_they_are() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let texts = hosted.house.brief(&hosted.caller, &hosted.session).unwrap();
    let (prompt, words) = (&texts[0].text, &texts[1].text);
    for (said, here) in [
        ("`success`", "`status` is `complete` or `partial`"),
        ("`error`", "`message`"),
        ("`error_code`", "`details.code`"),
        ("`abandon_error_codes`", "`details.code`"),
    ] {
        assert!(prompt.contains(said) && words.contains(said) && words.contains(here), "{said}: {words}");
    }
    let answered = hosted.call("get_stock_price", json!({"stock_code": "600001"}), "k1").unwrap().body;
    assert_eq!(answered["status"], "complete", "{answered}");
    assert!(answered["data"].is_object(), "{answered}");
    let record = hosted.call("get_stock_price", json!({"stock_code": "999999"}), "k2").unwrap_err().record();
    assert!(record["message"].is_string(), "{record}");
    let done = json!({"decision": "no_trade", "summary": "No such stock.", "abandon_error_codes": [record["details"]["code"]]});
    assert!(hosted.call("complete_phase", done, "k3").unwrap().completed.is_some(), "{record}");
}

// A look at a session that has ended costs nothing that grows with it.
#[test]
fn the_brief_of_an_ended_session_is_its_task_alone() {
    let hosted = Hosted::new();
    let open = hosted.house.brief(&hosted.caller, &hosted.session).unwrap();
    hosted.house.close_session(&hosted.caller, &hosted.session, "close").unwrap();
    let ended = hosted.house.brief(&hosted.caller, &hosted.session).unwrap();
    assert_eq!((ended.len(), &ended[0].text), (1, &open[0].text));
    assert!(open.len() > 1);
    assert_eq!(hosted.house.metrics().sessions_loaded, 0);
}

// What no model could read would be kept with the session and sent back, at no cost to who sent it.
#[test]
fn faulty_arguments_of_any_length_cost_the_house_nothing() {
    let hosted = Hosted::new();
    let kept = || hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap().len();
    let before = kept();
    let refused = hosted.call("get_portfolio", json!({"x": "a".repeat(500_000)}), "k1").unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (422, "arguments_too_long"));
    assert!(refused.record().to_string().len() < 1_000);
    assert_eq!(kept(), before);
    hosted.call("get_portfolio", json!({"x": "a".repeat(500)}), "k2").unwrap_err();
    assert!(kept() > before);
}

#[test]
fn sessions_of_others_are_not_there() {
    let store = store();
    let house = open(&store, server(&store, false, vec![caller("alice"), caller("bob")]), None);
    let (alice, bob) = (house.local_caller("alice").unwrap(), house.local_caller("bob").unwrap());
    let id = session(&house, &alice, "k");
    let unknown = house.session(&bob, "ses_nobody").unwrap_err();
    assert_eq!(unknown.status, 404);
    assert_eq!(house.session(&bob, &id).unwrap_err(), unknown);
    assert_eq!(house.brief(&bob, &id).unwrap_err(), unknown);
    assert_eq!(house.account(&bob, &id).unwrap_err(), unknown);
    assert_eq!(house.offered(&bob, &id).unwrap_err(), unknown);
    assert_eq!(house.records(&bob, &id, 0, 1).unwrap_err(), unknown);
    assert_eq!(house.step(&bob, &id, "s").unwrap_err(), unknown);
    assert_eq!(house.close_session(&bob, &id, "c").unwrap_err(), unknown);
    let call = Invocation {
        agent_revision_id: None,
        session_id: Some(id.clone()),
        tool: "get_portfolio".into(),
        input: json!({}),
        job: false,
    };
    assert_eq!(house.invoke(&bob, &call, "i", &Watch::default()).unwrap_err(), unknown);
    assert!(house.sessions(&bob).unwrap().is_empty());
    assert_eq!(house.sessions(&alice).unwrap().len(), 1);
    assert_eq!(house.session(&alice, &id).unwrap().session_id, id);
    // Bob's key is another key than Alice's.
    assert!(!house.create_session(&bob, &SessionRequest::default(), "k").unwrap().replayed);
}

#[test]
fn a_session_is_played_to_its_end_by_completions_alone() {
    let hosted = Hosted::new();
    let mut calls = 0;
    loop {
        let state = hosted.house.session(&hosted.caller, &hosted.session).unwrap();
        if state.finished {
            break;
        }
        calls += 1;
        assert!(calls <= 15, "three days have fifteen decision points");
        let (tool, input) = if state.point == "close_2" {
            ("finish_day", json!({"summary": "A quiet day was finished here."}))
        } else {
            ("complete_phase", json!({"decision": "no_trade", "summary": "Nothing to do here.", "next_focus": ""}))
        };
        let reply = hosted.call(tool, input, &format!("k{calls}")).unwrap();
        assert!(reply.completed.is_some());
    }
    assert_eq!(calls, 15);
    let closed = hosted.call("get_portfolio", json!({}), "late").unwrap_err();
    assert_eq!((closed.class, closed.code.as_str()), (FailureClass::Forbidden, "session_finished"));
    let records = hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap();
    let last = records.last().unwrap();
    assert_eq!((last["type"].as_str(), last["status"].as_str()), (Some("run_end"), Some("completed")));
    assert_eq!(last["seq"], records.len() - 1);
    let days = records.iter().filter(|r| r["type"] == "day_end").count();
    assert_eq!(days, 3);
    assert!(hosted.house.brief(&hosted.caller, &hosted.session).is_ok(), "a finished session can still be read");
    assert_eq!(hosted.house.metrics().sessions, 0);
}
