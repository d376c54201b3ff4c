//! A whole day over one connection: the clock moves by completions, and the client is told.

use super::client::{Client, one_day, record};
use crate::house::fixture::{Hosted, buy};
use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_serve::mcp::Door;

async fn names(client: &mut Client) -> Vec<String> {
    let listed = client.result("tools/list", json!({})).await;
    listed["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect()
}

/// Of the tools that end a decision point, which are listed, and whether each is on offer.
async fn ends(client: &mut Client) -> Vec<(String, bool)> {
    let listed = client.result("tools/list", json!({})).await;
    let ends = listed["tools"].as_array().unwrap().iter().filter(|t| t["name"] == "complete_phase" || t["name"] == "finish_day");
    ends.map(|t| (t["name"].as_str().unwrap().to_owned(), t["_meta"]["traderharness/on-offer"].as_bool().unwrap())).collect()
}

fn completion() -> Value {
    json!({"decision": "monitor", "summary": "Nothing to do."})
}

#[tokio::test]
async fn a_day_is_played_by_completions_and_every_one_brings_the_next_brief() {
    let hosted = one_day();
    let mut client = Client::to(&hosted).greeted().await;
    let brief = client.call("read_brief", json!({})).await;
    let told = &brief["structuredContent"];
    assert_eq!((&told["decision_point"], &told["finished"]), (&json!("pre_market"), &json!(false)));
    assert!(told["brief"].as_str().unwrap().contains("Decision point: pre_market"));
    let expected = |phase: bool| [("complete_phase".to_owned(), phase), ("finish_day".to_owned(), !phase)];
    for point in ["open_1", "open_2", "close_1", "close_2"] {
        // A client that reads the list once knows both, and every client is told which of them the clock offers.
        assert_eq!(ends(&mut client).await, expected(true), "before {point}");
        let result = client.call("complete_phase", completion()).await;
        assert_eq!(result["isError"], false, "{result}");
        let next = result["content"][1]["text"].as_str().unwrap();
        assert!(next.contains(&format!("Decision point: {point}")), "{next}");
        assert_eq!(client.heard(), ["notifications/tools/list_changed"], "{point}");
        assert_eq!(client.call("read_brief", json!({})).await["structuredContent"]["decision_point"], point);
        if point == "open_1" {
            let bought = client.call("place_order", buy("600001")).await;
            assert_eq!(bought["isError"], false, "{bought}");
            assert_eq!(bought["content"].as_array().unwrap().len(), 1);
        }
    }
    assert_eq!(ends(&mut client).await, expected(false));
    let end = client.call("finish_day", json!({"summary": "The day is over."})).await;
    assert_eq!(end["isError"], false, "{end}");
    assert_eq!(end["content"][1]["text"], "The session has ended: that was its last day.");
    assert_eq!(names(&mut client).await, ["read_brief"]);
    let late = record(&client.call("get_portfolio", json!({})).await);
    assert_eq!((&late["error_code"], &late["details"]["code"]), (&json!("FORBIDDEN"), &json!("session_finished")));
    assert_eq!(client.call("read_brief", json!({})).await["structuredContent"]["finished"], true);
}

#[tokio::test]
async fn a_completion_whose_answer_was_lost_is_asked_for_again_and_moves_nothing() {
    let mut client = Client::new().await;
    let params =
        json!({"name": "complete_phase", "arguments": completion(), "_meta": {"traderharness/idempotency-key": "done-1"}});
    let first = client.result("tools/call", params.clone()).await;
    client.heard();
    let again = client.result("tools/call", params).await;
    assert_eq!(again["structuredContent"], first["structuredContent"]);
    assert!(again["content"][1]["text"].as_str().unwrap().contains("Decision point: open_1"));
    assert_eq!(client.heard(), Vec::<String>::new());
    assert_eq!(client.call("read_brief", json!({})).await["structuredContent"]["decision_point"], "open_1");
}

#[tokio::test]
async fn subscribers_hear_what_changed_and_others_do_not() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let mut client = Client::to(&hosted).greeted().await;
    for uri in ["traderharness://account", "traderharness://brief"] {
        assert_eq!(client.result("resources/subscribe", json!({"uri": uri})).await, json!({}));
    }
    client.call("get_portfolio", json!({})).await;
    assert_eq!(client.heard(), Vec::<String>::new());
    client.call("place_order", buy("600001")).await;
    assert_eq!(client.heard(), ["notifications/resources/updated traderharness://account"]);
    client.result("resources/unsubscribe", json!({"uri": "traderharness://account"})).await;
    client.result("logging/setLevel", json!({"level": "info"})).await;
    client.call("complete_phase", completion()).await;
    let expected =
        ["notifications/message", "notifications/tools/list_changed", "notifications/resources/updated traderharness://brief"];
    assert_eq!(client.heard(), expected);
    let unknown = client.request("resources/subscribe", json!({"uri": "traderharness://catalog"})).await;
    assert_eq!(unknown["error"]["code"], -32002);
}

#[tokio::test]
async fn a_second_connection_to_the_session_hears_of_the_first_one() {
    let hosted = Hosted::new();
    let door = Door::new(Arc::clone(&hosted.house));
    let mut first = Client::through(&door, &hosted).greeted().await;
    let mut second = Client::through(&door, &hosted).greeted().await;
    // Its hello was answered before it listens for sure; a request after it is not.
    second.result("ping", json!({})).await;
    first.call("complete_phase", completion()).await;
    let told = second.message().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
}
