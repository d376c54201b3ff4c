//! Messages that no client should send, one by one: each has the answer that the protocol or spec/seeds.md C6 gives it, and the connection
//! goes on.

use super::client::{Client, record};
use crate::house::fixture::{Hosted, buy};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

/// Sends a line, and holds code and id of what is answered; then the connection still serves.
async fn check(line: &str, code: i64, id: Option<Value>) {
    let mut client = Client::new().await;
    client.write(line).await;
    let answer = client.message().await;
    let shown: String = line.chars().take(200).collect();
    assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    assert_eq!(answer.get("id").filter(|id| !id.is_null()), id.as_ref(), "{shown}: {answer}");
    assert!(answer.to_string().len() < 2_000, "{shown}: a long answer");
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}), "{shown}");
}

/// A request with these words for its id and its parameters.
fn ask(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

#[tokio::test]
async fn an_id_is_a_string_or_a_whole_number() {
    for id in ["null", "1.5", "true", "[]", "{}", "[1]", "9223372036854775808", "1e400"] {
        let code = if id == "1e400" { -32700 } else { -32600 };
        check(&ask(id, "ping", "{}"), code, None).await;
    }
    let mut client = Client::new().await;
    for id in [r#""""#, r#""é\u0000\n""#, "0", "-1", "9223372036854775807", &format!("\"{}\"", "i".repeat(10_000))] {
        client.write(&ask(id, "ping", "{}")).await;
        let answer = client.message().await;
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": serde_json::from_str::<Value>(id).unwrap(), "result": {} }));
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_named_by_its_id() {
    let id = Some(json!(7));
    for (line, code, id) in [
        (format!("[{}]", ask("7", "ping", "{}")), -32600, None),
        ("[]".to_owned(), -32600, None),
        (ask("7", "ping", "[]"), -32600, id.clone()),
        (ask("7", "ping", "\"x\""), -32600, id.clone()),
        (ask("7", "tools/call", "[\"get_kline\"]"), -32600, id.clone()),
        (ask("7", "tools/call", "null"), -32602, id.clone()),
        (ask("7", "", "{}"), -32601, id.clone()),
        (ask("7", "rpc.discover", "{}"), -32601, id.clone()),
        (ask("7", "tools/call/", "{}"), -32601, id.clone()),
        (ask("7", "TOOLS/CALL", "{}"), -32601, id.clone()),
        (ask("7", "notifications/initialized", "{}"), -32601, id.clone()),
        (ask("7", "notifications/cancelled", r#"{"requestId":7}"#), -32601, id.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#.to_owned(), -32600, id.clone()),
        (r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#.to_owned(), -32600, id.clone()),
        (r#"{"id":7,"method":"ping"}"#.to_owned(), -32600, id.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}"#.to_owned(), -32600, id.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#.to_owned(), -32600, Some(json!(8))),
        (ask("7", "tools/call", &format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100))), -32600, id),
    ] {
        check(&line, code, id).await;
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_and_lines_that_are_cut_end_nothing() {
    let mut client = Client::new().await;
    client.to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xff\xfe\"}\n").await.unwrap();
    assert_eq!(client.message().await["error"]["code"], -32700);
    client.to.write_all(b"\r\n\r\n{\"jsonrpc\":\"2.0\",\r\"id\":1,\"method\":\"ping\"}\r\n").await.unwrap();
    assert_eq!(client.message().await["result"], json!({}));
    // A message over several lines is none.
    client.to.write_all(b"{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
    let codes = [client.message().await, client.message().await].map(|answer| answer["error"]["code"].as_i64());
    assert_eq!(codes, [Some(-32700), Some(-32700)]);
    assert_eq!(client.call("get_portfolio", json!({})).await["isError"], false);
}

#[tokio::test]
async fn a_line_of_a_hundred_megabytes_is_passed_over_and_not_kept() {
    let mut client = Client::new().await;
    let block = vec![b'a'; 1 << 20];
    for _ in 0..100 {
        client.to.write_all(&block).await.unwrap();
    }
    client.to.write_all(b"\n").await.unwrap();
    assert_eq!(client.message().await["error"]["code"], -32600);
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn progress_goes_to_tokens_of_the_protocol_alone() {
    let mut client = Client::new().await;
    for token in [json!(1), json!(-5), json!("t"), json!(""), json!(i64::MAX)] {
        let call = json!({"name": "get_portfolio", "arguments": {}, "_meta": {"progressToken": token}});
        assert_eq!(client.result("tools/call", call).await["isError"], false, "{token}");
    }
    for token in [json!(1.5), json!(null), json!(true), json!([1]), json!({"a": 1})] {
        let call = json!({"name": "get_portfolio", "arguments": {}, "_meta": {"progressToken": token}});
        let answer = client.request("tools/call", call).await;
        // Refused, or served without a word of progress.
        assert!(answer["error"]["code"] == -32602 || answer["result"]["isError"] == false, "{token}: {answer}");
        assert_eq!(client.heard(), Vec::<String>::new(), "{token}");
    }
}

#[tokio::test]
async fn a_path_is_no_resource_however_it_is_written() {
    let mut client = Client::new().await;
    for uri in [
        "",
        "traderharness://nothing",
        "traderharness://catalog/no_tool",
        "traderharness://catalog/../brief",
        "file:///etc/hostname",
        "/etc/passwd",
        "../../etc/passwd",
        "file:///etc/passwd",
        "traderharness://catalog/../../etc/passwd",
        "traderharness://catalog/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "traderharness://catalog/..%2fbrief",
        "traderharness://catalog/get_kline/..",
        "traderharness://catalog/get_kline%00",
        "traderharness://catalog/get_kline?x=1",
        "traderharness://catalog/get_kline#x",
        "traderharness://catalog/",
        "traderharness://user@brief",
        "traderharness://brief/",
        "traderharness:brief",
        "TRADERHARNESS://brief",
        "traderharness://BRIEF",
        " traderharness://brief",
        "traderharness://brief\u{0}",
        "http://127.0.0.1/",
        "traderharness://{tool}",
    ] {
        let answer = client.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
        assert!(!answer.to_string().contains("root:"), "{uri}");
    }
    for id in ["../inv_a", "inv_a/../b", "%2e%2e", "", "inv_\u{0}"] {
        let answer = client.request("resources/read", json!({"uri": format!("traderharness://jobs/{id}")})).await;
        assert!(matches!(answer["error"]["code"].as_i64(), Some(-32002 | -32602)), "{id}: {answer}");
    }
    let subscribed = client.request("resources/subscribe", json!({"uri": "file:///etc/passwd"})).await;
    assert!(subscribed["error"]["code"].is_i64(), "{subscribed}");
}

#[tokio::test]
async fn two_clients_on_one_session_take_turns() {
    let hosted = Hosted::new();
    let door = traderharness_serve::mcp::Door::new(std::sync::Arc::clone(&hosted.house));
    let (mut one, mut two) = (Client::through(&door, &hosted).greeted().await, Client::through(&door, &hosted).greeted().await);
    // Both end the first decision point at once: each completes one, and none is completed twice.
    let complete = json!({"name": "complete_phase", "arguments": {"decision": "monitor", "summary": "x"}});
    let (a, b) = (one.send("tools/call", complete.clone()).await, two.send("tools/call", complete).await);
    let (a, b) = (one.answer(a).await, two.answer(b).await);
    assert_eq!((&a["result"]["isError"], &b["result"]["isError"]), (&json!(false), &json!(false)));
    let state = hosted.house.session(&hosted.caller, &hosted.session).unwrap();
    assert_eq!(state.point, "open_2");
    // Each hears what the other did, and both see the same account.
    let bought = one.call("place_order", buy("600001")).await;
    assert_eq!(bought["isError"], false, "{bought}");
    let sold =
        json!({"stock_code": "600001", "action": "sell", "quantity": 200, "reasoning": "The test sells what it bought today."});
    assert_eq!(record(&two.call("place_order", sold).await)["error_code"], "FORBIDDEN", "not before tomorrow");
    let [a, b] = [one.call("get_portfolio", json!({})).await, two.call("get_portfolio", json!({})).await];
    assert_eq!(a["structuredContent"]["data"], b["structuredContent"]["data"]);
}
