//! Connections as hostile or careless clients use them. What `lines` does with single lines is tested beside it.

use super::client::{Client, record};
use crate::house::fixture::{Hosted, buy};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use traderharness_serve::mcp::McpFault;

#[tokio::test]
async fn a_call_before_the_handshake_is_refused_and_the_handshake_still_works() {
    let mut client = Client::raw();
    let early = client.request("tools/call", json!({"name": "get_portfolio", "arguments": {}})).await;
    assert_eq!(early["error"]["code"], -32602, "{early}");
    client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
    client.write("nonsense").await;
    assert_eq!(client.message().await["error"]["code"], -32700);
    let mut client = client.greeted().await;
    assert_eq!(client.call("get_portfolio", json!({})).await["isError"], false);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_connection_and_not_its_session() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let mut client = Client::to(&hosted).greeted().await;
    client.send("tools/call", json!({"name": "screen_stocks", "arguments": {}})).await;
    client.send("tools/call", json!({"name": "place_order", "arguments": buy("600001")})).await;
    client.to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"meth").await.unwrap();
    client.to.shutdown().await.unwrap();
    let Client { served, from, .. } = client;
    let served = tokio::time::timeout(Duration::from_secs(10), served).await.expect("the connection ends").unwrap();
    assert!(served.is_ok(), "{served:?}");
    drop(from);
    let state = hosted.house.session(&hosted.caller, &hosted.session).unwrap();
    assert_eq!(state.state, "open");
    // What was sent whole was done once; what was cut was not done.
    let mut client = Client::to(&hosted).greeted().await;
    let position = client.call("get_position", json!({"stock_code": "600001"})).await;
    assert_eq!(position["structuredContent"]["data"]["quantity"], 200, "{position}");
}

#[tokio::test]
async fn a_client_that_never_begins_is_told_apart() {
    let client = Client::raw();
    let Client { to, from, served, .. } = client;
    drop(from.into_inner().into_inner().unsplit(to));
    assert!(matches!(served.await.unwrap(), Err(McpFault::NoClient)));
}

#[tokio::test]
async fn floods_of_notifications_and_cancels_of_nothing_change_nothing() {
    let mut client = Client::new().await;
    for n in 0..2_000 {
        let line = match n % 4 {
            0 => json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}}),
            1 => json!({"jsonrpc": "2.0", "method": "notifications/no_such", "params": {"x": n}}),
            2 => json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}),
            _ => json!({"jsonrpc": "2.0", "id": n, "result": {}}),
        };
        client.write(&line.to_string()).await;
    }
    assert_eq!(client.call("get_portfolio", json!({})).await["isError"], false);
}

/// Sends requests and reads nothing, until the server takes no more; how many it took.
async fn taken(line: impl Fn(usize) -> Value) -> usize {
    let mut client = Client::new().await;
    for n in 0..20_000 {
        let line = line(n).to_string() + "\n";
        match tokio::time::timeout(Duration::from_millis(300), client.to.write_all(line.as_bytes())).await {
            Ok(written) => written.unwrap(),
            Err(_) => return n,
        }
    }
    20_000
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_from_either() {
    // The places for calls and lines, and what lies in the pipe.
    let of_many = taken(|n| json!({"jsonrpc": "2.0", "id": n, "method": "tools/list"})).await;
    assert!(of_many < 3_000, "{of_many} requests were taken");
    let of_one = taken(|_| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert!(of_one < 4_000, "{of_one} requests were taken");
    let of_none = taken(|_| json!({"jsonrpc": "2.0", "id": 1})).await;
    assert!(of_none < 6_000, "{of_none} lines were taken");
}

#[tokio::test]
async fn a_call_that_is_cancelled_at_once_holds_up_no_other() {
    let mut client = Client::new().await;
    let id = client.send("tools/call", json!({"name": "screen_stocks", "arguments": {}})).await;
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "changed my mind"})).await;
    let next = client.request("ping", json!({})).await;
    assert_eq!(next["result"], json!({}));
    assert_eq!(client.call("get_portfolio", json!({})).await["isError"], false);
}

#[tokio::test]
async fn another_session_of_the_caller_can_be_named_and_nobody_elses() {
    let hosted = Hosted::new();
    let other = crate::house::fixture::session(&hosted.house, &hosted.caller, "second");
    let mut client = Client::to(&hosted).greeted().await;
    let call = |session: &str| json!({"name": "read_brief", "arguments": {}, "_meta": {"traderharness/session": session}});
    let result = client.result("tools/call", call(&other)).await;
    assert_eq!(result["structuredContent"]["session_id"], other);
    let result = client.result("tools/call", call("ses_nobodys")).await;
    assert_eq!(record(&result)["details"]["code"], "session_not_found");
    let result = client.result("tools/call", call("key:mine")).await;
    let mine = result["structuredContent"]["session_id"].clone();
    assert!(mine != json!(other) && mine != json!(client.session), "{mine}");
    let again = client.result("tools/call", call("key:mine")).await;
    assert_eq!(again["structuredContent"]["session_id"], mine);
}

#[tokio::test]
async fn clients_without_a_handshake_are_served_too() {
    let mut client = Client::raw();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.result("server/discover", json!({"_meta": meta})).await;
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    let listed = client.result("tools/list", json!({"_meta": meta})).await;
    assert!(listed["tools"].as_array().unwrap().len() > 20);
    let listens = client.send("subscriptions/listen", json!({
        "_meta": meta, "notifications": {"toolsListChanged": true, "resourceSubscriptions": ["traderharness://account", "traderharness://x"]},
    })).await;
    let acknowledged = client.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    let call = json!({"name": "complete_phase", "arguments": {"decision": "monitor", "summary": "x"}, "_meta": meta});
    let done = client.result("tools/call", call).await;
    assert_eq!(done["isError"], false, "{done}");
    let mut told = client.heard();
    while told.len() < 2 {
        let message = client.message().await;
        client.heard.push(message);
        told.extend(client.heard());
    }
    assert_eq!(told, ["notifications/tools/list_changed", "notifications/resources/updated traderharness://account"]);
    client.notify("notifications/cancelled", json!({"requestId": listens})).await;
}
