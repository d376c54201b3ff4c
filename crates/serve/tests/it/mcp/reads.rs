//! Resources, prompts and completions.

use super::client::Client;
use crate::house::fixture::{Hosted, caller, open, server, store};
use serde_json::{Value, json};

async fn read(client: &mut Client, uri: &str) -> Value {
    let result = client.result("resources/read", json!({"uri": uri})).await;
    let contents = &result["contents"][0];
    assert_eq!(contents["uri"], uri);
    match contents["mimeType"].as_str().unwrap() {
        "application/json" => serde_json::from_str(contents["text"].as_str().unwrap()).unwrap(),
        _ => contents["text"].clone(),
    }
}

#[tokio::test]
async fn every_listed_resource_can_be_read() {
    let mut client = Client::new().await;
    let listed = client.result("resources/list", json!({})).await;
    let uris: Vec<String> =
        listed["resources"].as_array().unwrap().iter().map(|r| r["uri"].as_str().unwrap().to_owned()).collect();
    assert_eq!(uris, ["traderharness://brief", "traderharness://account", "traderharness://session", "traderharness://catalog"]);
    let brief = read(&mut client, &uris[0]).await;
    assert!(brief.as_str().unwrap().contains("Decision point: pre_market"));
    let account = read(&mut client, &uris[1]).await;
    assert!(account.is_object(), "{account}");
    let session = read(&mut client, &uris[2]).await;
    assert_eq!(session["session_id"], client.session);
    assert_eq!(session["account"], account);
    let catalog = read(&mut client, &uris[3]).await;
    let names: Vec<&str> = catalog["capabilities"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"market.get_kline") && names.contains(&"market.bars"), "{names:?}");
    let templates = client.result("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2);
    let manifest = read(&mut client, "traderharness://catalog/get_kline").await;
    assert_eq!(manifest, read(&mut client, "traderharness://catalog/market.get_kline").await);
    assert_eq!(manifest["revision"], "1.0");
    assert!(manifest["envelopeSchema"].is_object());
}

#[tokio::test]
async fn an_id_of_another_kind_is_named_and_a_long_name_is_not_repeated() {
    let mut client = Client::new().await;
    let answer = client.request("resources/read", json!({"uri": "traderharness://jobs/inv_abc"})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(answer["error"]["data"]["error_code"], "INVALID_INPUT");
    let answer = client.request("resources/read", json!({"uri": format!("traderharness://{}", "a".repeat(1 << 19))})).await;
    assert!(answer.to_string().len() < 1_000);
}

#[tokio::test]
async fn prompts_bring_the_brief_and_say_when_they_do_not_fit_the_clock() {
    let mut client = Client::new().await;
    let listed = client.result("prompts/list", json!({})).await;
    let names: Vec<&str> = listed["prompts"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["morning", "decision_point", "close"]);
    let get = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let morning = client.result("prompts/get", get("morning", json!({"focus": "  banks "}))).await;
    let text = morning["messages"][0]["content"]["text"].as_str().unwrap();
    assert_eq!(morning["messages"][0]["role"], "user");
    assert!(text.contains("Decision point: pre_market") && text.ends_with("Look at this first: banks"), "{text}");
    assert!(!text.contains("The clock stands"));
    let close = client.result("prompts/get", get("close", json!({}))).await;
    let text = close["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("The clock stands at pre_market"), "{text}");
    for (name, arguments) in
        [("evening", json!({})), ("morning", json!({"tone": "x"})), ("morning", json!({"focus": "a".repeat(1001)}))]
    {
        let answer = client.request("prompts/get", get(name, arguments.clone())).await;
        assert_eq!(answer["error"]["code"], -32602, "{name} {arguments}");
    }
}

#[tokio::test]
async fn a_template_argument_is_completed_from_what_the_caller_is_served() {
    let store = store();
    let mut reader = caller("alice");
    reader.grants = vec!["portfolio.*".into()];
    let hosted = Hosted::over(open(&store, server(&store, false, vec![reader]), None), "alice");
    let mut client = Client::to(&hosted).greeted().await;
    let ask = |uri: &str, value: &str| json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "tool", "value": value}});
    let found = client.result("completion/complete", ask("traderharness://catalog/{tool}", "get_p")).await;
    let values = found["completion"]["values"].as_array().unwrap();
    assert!(
        values.contains(&json!("get_portfolio")) && values.iter().all(|v| v.as_str().unwrap().starts_with("get_p")),
        "{found}"
    );
    let none = client.result("completion/complete", ask("traderharness://brief", "")).await;
    assert_eq!(none["completion"]["values"], json!([]));
}

#[tokio::test]
async fn a_masked_session_shows_no_real_code_or_date_in_anything_that_is_read() {
    let store = store();
    let hosted = Hosted::over(open(&store, server(&store, true, vec![caller("alice")]), None), "alice");
    let mut client = Client::to(&hosted).greeted().await;
    let mut all = String::new();
    for uri in ["traderharness://brief", "traderharness://account", "traderharness://session"] {
        all.push_str(&read(&mut client, uri).await.to_string());
    }
    all.push_str(&client.call("screen_stocks", json!({})).await.to_string());
    all.push_str(&client.result("prompts/get", json!({"name": "morning"})).await.to_string());
    for hidden in ["600001", "600002", "Harbour Tools", "2024-0"] {
        assert!(!all.contains(hidden), "{hidden} is shown");
    }
}
