//! Which calls of an answer run: whole ones, and none that may have been cut.

use crate::phases::{completes, play, says};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use traderharness_contract::parse::STREAM_CUT;
use traderharness_harness::{Card, Session};
use traderharness_market::DecisionPoint;
use traderharness_replay::{Message, Request, Response};

/// What was said under an id in the last request.
type Answers = BTreeMap<String, String>;

/// A run whose model gives this answer once, in open_1; then what the calls of it were answered, by id, and the message as it stands in
/// the conversation.
fn after(answer: &Response) -> (Session, Answers, Message) {
    let (mut answers, mut said) = (Answers::new(), None);
    // Without the phase protocol no failure is left open.
    let (session, outcome) = play(Card::default(), |request: &Request, turn| {
        if turn.point == DecisionPoint::Close2 {
            return completes(turn.point);
        }
        if turn.point != DecisionPoint::Open1 {
            return says("waiting");
        }
        if turn.iteration == 0 {
            return answer.clone();
        }
        if turn.iteration == 1 {
            let at = request.messages.iter().rposition(|m| m.role() == "assistant").unwrap();
            said = Some(request.messages[at].clone());
            let results = request.messages[at + 1..].iter().filter_map(|m| Some((m.tool_call_id()?, m.content()?)));
            answers = results.map(|(id, text)| (id.to_owned(), text.to_owned())).collect();
        }
        says("waiting")
    });
    outcome.unwrap();
    (session, answers, said.unwrap())
}

fn buy(stock: &str) -> Value {
    json!({ "action": "buy", "stock_code": stock, "quantity": 100, "reasoning": "r" })
}

fn native(calls: &[(&str, &str, &str)], finish_reason: &str) -> Response {
    let calls: Vec<Value> = calls
        .iter()
        .map(
            |(id, name, arguments)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }),
        )
        .collect();
    let message = Message(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
    Response { finish_reason: finish_reason.to_owned(), ..Response::new(message) }
}

// spec/seeds.md A6, D5: nothing incomplete runs; the provider began the second call after the first was whole
#[test]
fn the_last_call_of_a_cut_answer_is_answered_and_not_run() {
    let check = |finish_reason: &str, bought: &[&str]| {
        let (first, second) = (buy("600001").to_string(), buy("600002").to_string());
        let answer = native(&[("a", "place_order", &first), ("b", "place_order", &second)], finish_reason);
        let (session, answers, said) = after(&answer);
        let found: Vec<String> = session.account().fills().iter().map(|f| f.security.to_string()).collect();
        assert_eq!(found, bought, "{finish_reason}");
        assert_eq!(answers.keys().collect::<Vec<_>>(), ["a", "b"], "{finish_reason}");
        assert_eq!(said, answer.message, "what was received stands as it came");
        for (id, stock) in [("a", "600001"), ("b", "600002")] {
            let refused = answers[id].contains("invalid_tool_arguments_json");
            assert_eq!(refused, !bought.contains(&stock), "{finish_reason}: {}", answers[id]);
        }
    };
    check("tool_calls", &["600001", "600002"]);
    check("stop", &["600001", "600002"]);
    check("length", &["600001"]);
    check("content_filter", &["600001"]);
    check(STREAM_CUT, &[]);
}

// complaint JR-5: no text is no proof that there are no arguments
#[test]
fn blank_arguments_run_only_in_a_whole_answer() {
    let check = |finish_reason: &str, runs: bool| {
        let calls = [("a", "get_portfolio", ""), ("b", "get_portfolio", " "), ("c", "get_portfolio", "{}")];
        let (_, answers, _) = after(&native(&calls, finish_reason));
        for id in ["a", "b"] {
            assert_eq!(!answers[id].contains("invalid_tool_arguments_json"), runs, "{finish_reason}: {}", answers[id]);
        }
    };
    check("tool_calls", true);
    check("length", false);
    check(STREAM_CUT, false);
}

// spec/seeds.md B12: DSML is read only when the whole answer is DSML
#[test]
fn an_answer_that_is_dsml_alone_makes_its_calls_under_ids_of_the_loop() {
    let block = "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"place_order\">\n\
         <｜DSML｜parameter name=\"action\" string=\"true\">buy</｜DSML｜parameter>\n\
         <｜DSML｜parameter name=\"stock_code\" string=\"true\">600001</｜DSML｜parameter>\n\
         <｜DSML｜parameter name=\"quantity\" string=\"false\">100</｜DSML｜parameter>\n\
         <｜DSML｜parameter name=\"reasoning\" string=\"true\">r</｜DSML｜parameter>\n\
         </｜DSML｜invoke>\n</｜DSML｜function_calls>";
    let answer = |text: &str, finish_reason: &str| Response {
        finish_reason: finish_reason.to_owned(),
        ..Response::new(Message::assistant(text, &[]))
    };
    let (session, answers, said) = after(&answer(block, "stop"));
    assert_eq!(session.account().fills().len(), 1, "{answers:?}");
    let [call] = said.tool_calls().try_into().unwrap();
    assert_eq!((call.id.as_str(), call.name.as_str()), ("open_1-1-1", "place_order"));
    assert_eq!(said.content(), Some(block));
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["open_1-1-1"]);

    let (session, answers, _) = after(&answer(block, "length"));
    assert_eq!(session.account().fills().len(), 0);
    assert!(answers["open_1-1-1"].contains("invalid_tool_arguments_json"), "{answers:?}");

    let (session, answers, _) = after(&answer(&format!("For example:\n{block}"), "stop"));
    assert_eq!((session.account().fills().len(), answers.len()), (0, 0));
}

#[test]
fn a_call_without_an_id_gets_one_that_no_other_call_of_the_message_has() {
    let call = |id: Value| json!({ "id": id, "type": "function", "function": { "name": "get_portfolio", "arguments": "{}" } });
    let calls = [call(Value::Null), call("open_1-1-3".into()), call("".into())];
    let message = Message(json!({ "role": "assistant", "content": "look", "tool_calls": calls, "kept": 1 }));
    let (_, answers, said) = after(&Response::new(message));
    let ids: Vec<String> = said.tool_calls().into_iter().map(|c| c.id).collect();
    assert_eq!(ids[..2], ["open_1-1-1", "open_1-1-3"]);
    assert_eq!(answers.len(), 3, "{ids:?}");
    assert_eq!((&said.0["kept"], said.content()), (&json!(1), Some("look")));
}
