//! `tools/call`: every tool, every kind of answer, in the form that strict clients take.

use super::client::{Client, record};
use crate::house::fixture::{Hosted, open, server, store};
use crate::house::fixture::{buy, caller};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a strict client does with a result.
fn check(schemas: &BTreeMap<String, Value>, tool: &str, result: &Value) {
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    if result["isError"] == true {
        record(result);
        return;
    }
    let structured = result.get("structuredContent").unwrap_or_else(|| panic!("{tool}: {result}"));
    let validator = jsonschema::draft202012::new(&schemas[tool]).unwrap();
    let faults: Vec<String> = validator.iter_errors(structured).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(faults.is_empty(), "{tool}: {faults:?}");
    assert_eq!(&text, structured, "{tool}: text and structured content differ");
}

async fn schemas(client: &mut Client) -> BTreeMap<String, Value> {
    let listed = client.result("tools/list", json!({})).await;
    listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["name"].as_str().unwrap().to_owned(), t["outputSchema"].clone()))
        .collect()
}

// complaints MC-1, MC-3; spec/seeds.md C9
#[tokio::test]
async fn every_tool_answers_in_the_form_that_it_published() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let mut client = Client::to(&hosted).greeted().await;
    let schemas = schemas(&mut client).await;
    let examples: Vec<(String, Value)> =
        hosted.house.capabilities(&hosted.caller).iter().filter_map(|c| Some((c.tool.clone()?, c.example.clone()))).collect();
    let mut statuses = BTreeMap::<String, usize>::new();
    for (tool, mut input) in examples {
        if !schemas.contains_key(&tool) || tool == "complete_phase" {
            continue;
        }
        for field in ["stock_code", "instrumentId"] {
            if input.get(field).is_some() {
                input[field] = "600001".into();
            }
        }
        let result = client.call(&tool, input.clone()).await;
        check(&schemas, &tool, &result);
        let status = result["structuredContent"]["status"].as_str().unwrap_or("error").to_owned();
        *statuses.entry(status).or_default() += 1;
        // An unknown argument is no protocol error: the model reads how to repair the call.
        input["no_such_argument"] = 1.into();
        let result = client.call(&tool, input).await;
        let record = record(&result);
        assert_eq!(record["error_code"], "INVALID_INPUT", "{tool}: {record}");
        assert_eq!(record["retryable"], true, "{tool}");
        assert!(record["correction"]["instruction"].as_str().is_some_and(|text| !text.is_empty()), "{tool}: {record}");
    }
    assert!(statuses["complete"] >= 15 && statuses.contains_key("partial"), "{statuses:?}");
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_an_error_of_the_protocol() {
    let mut client = Client::new().await;
    let answer = client.request("tools/call", json!({"name": "no_such_tool", "arguments": {}})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["message"], "Unknown tool: no_such_tool");
    assert_eq!(answer["error"]["data"]["error_code"], "UNSUPPORTED_CAPABILITY");
    let long = client.request("tools/call", json!({"name": "é".repeat(100_000)})).await;
    assert!(long.to_string().len() < 2_000);
}

#[tokio::test]
async fn a_tool_of_another_decision_point_is_a_failure_that_the_model_reads() {
    let mut client = Client::new().await;
    let result = client.call("finish_day", json!({"summary": "x"})).await;
    let record = record(&result);
    assert_eq!(record["details"]["code"], "tool_unavailable_in_phase", "{record}");
}

#[tokio::test]
async fn what_was_not_granted_is_refused_and_not_listed() {
    let store = store();
    let mut reader = caller("alice");
    reader.grants = vec!["portfolio.*".into(), "control.*".into()];
    let hosted = Hosted::over(open(&store, server(&store, false, vec![reader]), None), "alice");
    let mut client = Client::to(&hosted).greeted().await;
    let listed = schemas(&mut client).await;
    assert!(listed.contains_key("get_portfolio") && !listed.contains_key("place_order"), "{:?}", listed.keys());
    let record = record(&client.call("place_order", buy("600001")).await);
    assert_eq!(record["error_code"], "FORBIDDEN");
}

// spec/seeds.md C1.5
#[tokio::test]
async fn a_tool_that_is_switched_off_is_refused_whatever_a_client_still_lists() {
    let store = store();
    let mut config = server(&store, false, vec![caller("alice")]);
    config.disabled = vec!["market.get_kline".into()];
    let hosted = Hosted::over(open(&store, config, None), "alice");
    let mut client = Client::to(&hosted).greeted().await;
    assert!(!schemas(&mut client).await.contains_key("get_kline"));
    let record = record(&client.call("get_kline", json!({"stock_code": "600001"})).await);
    assert_eq!(record["error_code"], "UNSUPPORTED_CAPABILITY");
}

// spec/seeds.md C3.3
#[tokio::test]
async fn a_call_under_a_key_is_done_once() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let mut client = Client::to(&hosted).greeted().await;
    let order = |key: Value, arguments: Value| json!({"name": "place_order", "arguments": arguments, "_meta": {"traderharness/idempotency-key": key}});
    let first = client.result("tools/call", order("k-1".into(), buy("600001"))).await;
    assert_eq!(first["isError"], false, "{first}");
    assert_eq!(first["_meta"]["traderharness/session"], hosted.session);
    let again = client.result("tools/call", order("k-1".into(), buy("600001"))).await;
    assert_eq!(again["structuredContent"], first["structuredContent"]);
    assert_eq!(again["_meta"]["traderharness/replayed"], true);
    let other = client.result("tools/call", order("k-1".into(), buy("600002"))).await;
    assert_eq!(record(&other)["error_code"], "IDEMPOTENCY_CONFLICT");
    // A failure of the tool is answered again, too, and says so.
    let unheld =
        json!({"stock_code": "600002", "action": "sell", "quantity": 100, "reasoning": "The test sells what it never had."});
    let refused = client.result("tools/call", order("k-2".into(), unheld.clone())).await;
    let again = client.result("tools/call", order("k-2".into(), unheld)).await;
    assert_eq!((record(&again), again["isError"].as_bool()), (record(&refused), Some(true)));
    assert_eq!([&refused, &again].map(|r| r["_meta"]["traderharness/replayed"].as_bool()), [None, Some(true)]);
    let faulty = client.request("tools/call", order(7.into(), buy("600002"))).await;
    assert_eq!(faulty["error"]["code"], -32602);
    // Without a key every call is one of its own.
    let fresh = client.call("get_portfolio", json!({})).await;
    let other = client.call("get_portfolio", json!({})).await;
    assert_ne!(fresh["structuredContent"]["invocation_id"], other["structuredContent"]["invocation_id"]);
}

#[tokio::test]
async fn two_calls_at_once_are_both_answered() {
    let mut client = Client::new().await;
    let call = |code: &str| json!({"name": "get_kline", "arguments": {"stock_code": code}});
    let first = client.send("tools/call", call("600001")).await;
    let second = client.send("tools/call", call("600002")).await;
    let (a, b) = (client.message().await, client.message().await);
    let mut ids = [a["id"].as_i64().unwrap(), b["id"].as_i64().unwrap()];
    ids.sort_unstable();
    assert_eq!(ids, [first, second]);
    for answer in [a, b] {
        let wanted = if answer["id"] == first { "600001" } else { "600002" };
        assert_eq!(answer["result"]["structuredContent"]["data"]["stock_code"], wanted);
    }
}

#[tokio::test]
async fn parameters_that_do_not_fit_the_protocol_are_named() {
    let mut client = Client::new().await;
    for (method, params) in [
        ("tools/call", json!({"name": 5})),
        ("tools/call", json!({})),
        ("tools/call", json!({"name": "get_kline", "arguments": [1]})),
        ("resources/read", json!({})),
        ("prompts/get", json!({"name": {}})),
        ("logging/setLevel", json!({"level": "loud"})),
    ] {
        let answer = client.request(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{method} {params}: {answer}");
    }
    let answer = client.request("no/such/method", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601);
    assert_eq!(answer["error"]["message"], "There is no method no/such/method.");
}

#[tokio::test]
async fn the_agent_revision_of_a_call_counts() {
    let store = store();
    let mut pinned = caller("alice");
    pinned.agent_revisions[0].pins = BTreeMap::from([("market.get_kline".to_owned(), "0.9".to_owned())]);
    let hosted = Hosted::over(open(&store, server(&store, false, vec![pinned]), None), "alice");
    let mut client = Client::to(&hosted).greeted().await;
    let record = record(&client.call("get_kline", json!({"stock_code": "600001"})).await);
    assert_eq!(record["error_code"], "TOOL_REVISION_CONFLICT");
    assert_eq!((&record["details"]["pinned"], &record["details"]["served"]), (&json!("0.9"), &json!("1.0")));
    let call = json!({"name": "get_portfolio", "arguments": {}, "_meta": {"traderharness/agent-revision": "agr_none"}});
    let result = client.result("tools/call", call).await;
    assert_eq!(super::client::record(&result)["error_code"], "INVALID_INPUT");
}
