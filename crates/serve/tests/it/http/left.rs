//! Clients that leave while their code runs, and streams that nobody speaks on when the door closes.

use super::client::{Connection, DESK, Served, house_with, new_key, request};
use crate::house::gated::{Gate, gated};
use serde_json::{Value, json};
use std::io::Read as _;
use std::time::Duration;
use traderharness_serve::House;
use traderharness_serve::http::Limits;

fn house(patience: Duration) -> (std::sync::Arc<House>, Gate, tempfile::TempDir) {
    let files = tempfile::tempdir().unwrap();
    let (opens, gate) = gated(files.path());
    let house = house_with(|config| {
        config.sandbox = Some(opens);
        config.server.jobs.patience_ms = patience.as_millis() as u32;
    });
    (house, gate, files)
}

const LONG: Duration = Duration::from_secs(600);

fn code(session: &str, text: &str) -> Value {
    json!({ "session_id": session, "tool": "execute_code", "input": { "code": text } })
}

/// Sends a request over a connection of its own and does not wait for the answer.
fn begin(served: &Served, key: &str, body: &Value) -> Connection {
    let mut connection = served.connect();
    let text = body.to_string();
    connection.send(request("POST", "/v1/tool-invocations", DESK, &[("Idempotency-Key", key)], Some(&text)).as_bytes());
    connection
}

// The code would wait for ever.
#[test]
fn code_whose_client_left_is_ended_and_its_key_is_free() {
    let (house, gate, _files) = house(LONG);
    let served = Served::over(house, Limits::default());
    let session = served.session(DESK);
    let (key, body) = (new_key(), code(&session, "result = 12"));
    let gone = begin(&served, &key, &body);
    gate.started.recv().unwrap();
    drop(gone);
    let after = served.call(DESK, &session, "get_portfolio", json!({}));
    assert_eq!(after.status, 200, "{}", after.text());
    gate.go.send(()).unwrap();
    let answer = served.keyed(DESK, "/v1/tool-invocations", &key, &body);
    assert_eq!((answer.status, answer.header("idempotent-replayed")), (200, None), "{}", answer.text());
    let data = &answer.json()["data"];
    assert_eq!((&data["result"], &data["limits"]["calls_used"]), (&json!(11), &json!(1)));
}

// complaint RG-3: who was told of a job, or asked for one, may leave
#[test]
fn code_that_runs_as_a_job_goes_on_without_its_client() {
    let (house, gate, _files) = house(Duration::ZERO);
    let served = Served::over(house, Limits::default());
    let session = served.session(DESK);
    let mut asked_for = code(&session, "result = 123");
    asked_for["job"] = true.into();
    for body in [code(&session, "result = 12"), asked_for] {
        let mut connection = begin(&served, &new_key(), &body);
        let accepted = connection.answer().unwrap();
        assert_eq!(accepted.status, 202, "{}", accepted.text());
        gate.started.recv().unwrap();
        drop(connection);
        gate.go.send(()).unwrap();
        let url = accepted.json()["status_url"].as_str().unwrap().to_owned();
        let ended = (0..10_000).map(|_| served.get(DESK, &url).json()).find(|job| job["state"] != "running").unwrap();
        assert_eq!(ended["state"], "succeeded", "{ended}");
    }
}

/// Sends a message to `/mcp`; the headers that come before its own answer are read, and what was said of the connection.
fn mcp(served: &Served, method: &str, headers: &[(&str, &str)], message: Option<&Value>) -> (Connection, String) {
    let mut connection = served.connect();
    let all = [&[("Accept", "application/json, text/event-stream")], headers].concat();
    let text = message.map(Value::to_string);
    connection.send(request(method, "/mcp", DESK, &all, text.as_deref()).as_bytes());
    let answer = connection.answer().unwrap();
    assert!(answer.status < 300, "{}", answer.text());
    let id = answer.header("mcp-session-id").unwrap_or_default().to_owned();
    (connection, id)
}

/// What a request of a client without a handshake says of it.
fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

// The code would wait for ever.
#[test]
fn code_of_a_client_without_a_handshake_is_ended_when_it_leaves() {
    let (house, gate, _files) = house(LONG);
    let served = Served::with_mcp(house, Limits::default());
    let session = served.session(DESK);
    let params = json!({ "_meta": modern_meta(), "name": "execute_code", "arguments": { "code": "result = 12" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }).to_string();
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "execute_code"),
        ("traderharness-session", &session),
    ];
    let mut gone = served.connect();
    gone.send(request("POST", "/mcp", DESK, &headers, Some(&call)).as_bytes());
    gate.started.recv_timeout(Duration::from_secs(15)).unwrap();
    drop(gone);
    let after = served.call(DESK, &session, "get_portfolio", json!({}));
    assert_eq!(after.status, 200, "{}", after.text());
    let records = served.get(DESK, &format!("/v1/sessions/{session}/records?limit=500"));
    assert!(records.text().contains(r#""get_portfolio""#) && !records.text().contains("result = 12"), "{}", records.text());
}

#[test]
fn a_door_that_closes_ends_idle_streams_at_once_and_leaves_calls_their_time() {
    let (house, gate, _files) = house(LONG);
    let mut served = Served::with_mcp(house, Limits { grace: LONG, ..Limits::default() });
    let session = served.session(DESK);
    let client = json!({ "name": "test", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let (_, id) = mcp(&served, "POST", &[], Some(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })));
    let of_it = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", "2025-11-25")];
    mcp(&served, "POST", &of_it, Some(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })));
    let (mut stream, _) = mcp(&served, "GET", &of_it, None);
    let params = json!({ "_meta": modern_meta(), "notifications": { "toolsListChanged": true } });
    let listen = json!({ "jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": params });
    let modern =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen"), ("traderharness-session", &session)];
    let (mut listener, _) = mcp(&served, "POST", &modern, Some(&listen));
    let mut call = begin(&served, &new_key(), &code(&session, "result = 12"));
    gate.started.recv().unwrap();
    served.close();
    // Neither would end before the grace does: reading fails after 20 s.
    for idle in [&mut stream, &mut listener] {
        let mut rest = Vec::new();
        idle.stream.read_to_end(&mut rest).unwrap();
        assert!(rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    }
    gate.go.send(()).unwrap();
    let answer = call.answer().unwrap();
    assert_eq!((answer.status, &answer.json()["data"]["result"]), (200, &json!(11)));
    assert!(served.closed());
}
