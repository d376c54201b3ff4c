//! Calls that take long: progress, cancellation, and the job that a client can ask for when it lost its call (complaint RG-3).

use super::client::{Client, record};
use crate::house::fixture::{Hosted, caller, server, store};
use crate::house::gated::{self, Gate};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use traderharness_serve::{House, HouseConfig};

fn gated() -> (Hosted, Gate, tempfile::TempDir) {
    let files = tempfile::tempdir().unwrap();
    let (opens, gate) = gated::gated(files.path());
    let store = store();
    let mut config =
        HouseConfig::new(server(&store, false, vec![caller("alice")]), BTreeMap::from([("small".to_owned(), store)]));
    config.sandbox = Some(opens);
    (Hosted::over(House::open(config).unwrap(), "alice"), gate, files)
}

fn code(token: Value) -> Value {
    json!({"name": "execute_code", "arguments": {"code": "result = 1"}, "_meta": {"progressToken": token}})
}

#[tokio::test]
async fn a_long_call_tells_its_steps_and_ends_with_its_result() {
    let (hosted, gate, _files) = gated();
    let mut client = Client::to(&hosted).greeted().await;
    let id = client.send("tools/call", code("t-1".into())).await;
    let mut steps = Vec::new();
    // The first words that are more than "running" name the job.
    let job = loop {
        let step = client.message().await;
        assert_eq!(
            (&step["method"], &step["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("t-1")),
            "{step}"
        );
        steps.push(step["params"]["progress"].as_f64().unwrap());
        let words = step["params"]["message"].as_str().unwrap_or_default().to_owned();
        if let Some(at) = words.find("traderharness://jobs/") {
            break words[at..].split_whitespace().next().unwrap().to_owned();
        }
    };
    let state = client.result("resources/read", json!({"uri": job})).await;
    let state: Value = serde_json::from_str(state["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(state["state"], "running");
    gate.go.send(()).unwrap();
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["structuredContent"]["data"]["result"], 10, "{answer}");
    steps.extend(client.heard.iter().filter_map(|m| m["params"]["progress"].as_f64()));
    assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
    // The result stays where the progress said.
    let state = client.result("resources/read", json!({"uri": job})).await;
    assert!(state["contents"][0]["text"].as_str().unwrap().contains("\"succeeded\""));
}

#[tokio::test]
async fn a_call_without_a_token_is_told_nothing_before_its_answer() {
    let (hosted, gate, _files) = gated();
    gate.go.send(()).unwrap();
    let mut client = Client::to(&hosted).greeted().await;
    let answer = client.result("tools/call", json!({"name": "execute_code", "arguments": {"code": "result = 1"}})).await;
    assert_eq!(answer["isError"], false, "{answer}");
    assert_eq!(client.heard(), Vec::<String>::new());
}

// The code would wait for ever.
#[tokio::test]
async fn a_long_call_that_is_cancelled_ends_at_once_and_is_no_part_of_the_session() {
    let (hosted, gate, _files) = gated();
    let mut client = Client::to(&hosted).greeted().await;
    let id = client.send("tools/call", code(1.into())).await;
    let job = loop {
        let step = client.message().await;
        let words = step["params"]["message"].as_str().unwrap_or_default();
        if let Some(at) = words.find("traderharness://jobs/") {
            break words[at..].split_whitespace().next().unwrap().to_owned();
        }
    };
    gate.started.recv().unwrap();
    let before = hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap();
    client.notify("notifications/cancelled", json!({"requestId": id})).await;
    // The session is one: this call comes after the cancelled one.
    let after = client.call("get_portfolio", json!({})).await;
    assert_eq!(after["isError"], false, "{after}");
    assert!(client.heard.iter().all(|message| message["id"] != id), "a cancelled call was answered");
    let state = client.result("resources/read", json!({"uri": job})).await;
    let state: Value = serde_json::from_str(state["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&state["state"], &state["error"]["details"]["code"]), (&json!("cancelled"), &json!("cancelled")), "{state}");
    let audit = hosted.house.audit(0, 100).unwrap();
    let line = audit.iter().find(|line| line["class"] == "CANCELLED").unwrap_or_else(|| panic!("{audit:?}"));
    assert_eq!((&line["session"], &line["units"]), (&json!(hosted.session), &json!(0)), "{line}");
    // What is kept goes on where it was before the code, and so does the count of its calls.
    let records = hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap();
    assert_eq!(records[..before.len()], before);
    assert!(records.iter().all(|record| record["tool"] != "execute_code"), "{records:?}");
    gate.go.send(()).unwrap();
    let again = client.call("execute_code", json!({"code": "result = 12"})).await;
    let data = &again["structuredContent"]["data"];
    assert_eq!((&data["result"], &data["limits"]["calls_used"]), (&json!(11), &json!(1)), "{again}");
}

#[tokio::test]
async fn where_no_code_can_run_the_model_is_told_so() {
    let mut client = Client::new().await;
    let record = record(&client.call("execute_code", json!({"code": "result = 1"})).await);
    assert_eq!(record["error_code"], "DEPENDENCY_UNAVAILABLE", "{record}");
}
