//! The scripted model server that other tests use.

use crate::ask::{ask_with, at_once, block, request};
use serde_json::json;
use traderharness_connect::testing::ScriptedModel;
use traderharness_connect::{ChatCompletions, Endpoint, Secret};
use traderharness_replay::request::function_tool;
use traderharness_replay::{Message, Request, Response};

fn ask(model: &ScriptedModel, stream: bool, request: &Request) -> Response {
    let wire = ChatCompletions { stream, ..ChatCompletions::default() };
    block(ask_with(wire, Endpoint::new(model.url(), Some(Secret::new("k"))), at_once(1), request)).unwrap()
}

#[test]
fn turns_are_played_in_order_and_repeated_requests_get_the_same_answer() {
    let turns = json!([{"say": "≥ 股票 😀", "calls": [{"tool": "get_portfolio"}, {"tool": "get_kline", "args": {"code": "股"}}]}, {"say": "Done."}]);
    let model = ScriptedModel::start(turns).unwrap();
    let first = ask(&model, true, &request());
    assert_eq!(first.message.content(), Some("≥ 股票 😀"));
    let calls = first.message.tool_calls();
    assert_eq!(
        (calls[0].id.as_str(), calls[0].arguments.as_str(), calls[1].arguments.as_str()),
        ("call-1-1", "{}", "{\"code\":\"股\"}")
    );
    assert!(first.usage.clone().unwrap().input_tokens > 0);
    assert_eq!(ask(&model, true, &request()), first);
    let mut next = request();
    next.messages.push(Message::user("Next."));
    assert_eq!(ask(&model, false, &next).message.content(), Some("Done."));
    assert_eq!(model.received().len(), 3);
}

#[test]
fn a_script_that_is_over_ends_what_can_be_ended() {
    let model = ScriptedModel::start(json!([])).unwrap();
    let mut request = request();
    let mut called = |tools: &[&str]| {
        request.tools = tools.iter().map(|name| function_tool(name, "", &json!({"type": "object"}))).collect();
        let whole = ask(&model, false, &request).message;
        assert_eq!(ask(&model, true, &request).message.content().unwrap_or_default(), whole.content().unwrap_or_default());
        whole.tool_calls().first().map(|call| call.name.clone())
    };
    assert_eq!(called(&["get_kline", "complete_phase"]).as_deref(), Some("complete_phase"));
    assert_eq!(called(&["finish_day"]).as_deref(), Some("finish_day"));
    assert_eq!(called(&[]), None);
}

#[test]
fn turns_that_are_none_are_refused() {
    assert!(ScriptedModel::start(json!([{"says": "a"}])).unwrap_err().to_string().contains("unknown field `says`"));
}
