//! Streamable HTTP: who may come, whose connection it is, with and without a handshake.

use super::client::{REVISION, hello, record};
use crate::house::fixture::{caller, open, server, store};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_serve::caller::digest_of;
use traderharness_serve::mcp::{Door, HttpSettings, router};
use traderharness_serve::{House, SessionRequest};

const ALICE: &str = "th_alice_alice_alice_alice_alice";
const BOB: &str = "th_bob_bob_bob_bob_bob_bob_bob_bob";

struct Http {
    house: Arc<House>,
    router: TowerToHyperService<Router>,
}

/// A request that is right in everything that a test does not change.
fn post(token: &str) -> axum::http::request::Builder {
    Request::post("http://127.0.0.1/mcp")
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

impl Http {
    fn new() -> Self {
        Self::with(HttpSettings::default())
    }

    fn with(settings: HttpSettings) -> Self {
        let store = store();
        let callers = [("alice", ALICE), ("bob", BOB)].map(|(id, token)| {
            let mut config = caller(id);
            config.token_sha256 = Some(digest_of(token));
            config
        });
        let house = open(&store, server(&store, false, callers.to_vec()), None);
        let settings = HttpSettings { hosts: vec!["door.example".into()], ..settings };
        let router = TowerToHyperService::new(router(Door::new(Arc::clone(&house)), &settings));
        Self { house, router }
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.call(request).await.unwrap()
    }

    /// The messages of an answer, whether it is one JSON value or a stream of events.
    async fn messages(response: Response<Body>) -> Vec<Value> {
        let text = String::from_utf8(to_bytes(response.into_body(), 1 << 24).await.unwrap().to_vec()).unwrap();
        if let Ok(value) = serde_json::from_str(&text) {
            return vec![value];
        }
        text.lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .filter_map(|data| serde_json::from_str(data.trim()).ok())
            .collect()
    }

    /// Begins a connection, unless it is refused.
    async fn begin(&self, token: &str) -> Response<Body> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello(REVISION)});
        self.send(post(token).body(Body::from(body.to_string())).unwrap()).await
    }

    /// Begins a connection; its id and the answer.
    async fn hello(&self, token: &str) -> (String, Value) {
        let response = self.begin(token).await;
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        (id, Self::messages(response).await.pop().unwrap())
    }

    async fn request(&self, token: &str, connection: &str, method: &str, params: Value) -> (StatusCode, Vec<Value>) {
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let request = post(token).header("mcp-session-id", connection).header("mcp-protocol-version", REVISION);
        let response = self.send(request.body(Body::from(body.to_string())).unwrap()).await;
        (response.status(), Self::messages(response).await)
    }

    /// A request of a client without a handshake.
    async fn modern(&self, token: &str, method: &str, name: Option<&str>, mut params: Value, session: Option<&str>) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let mut request = post(token).header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        if let Some(session) = session {
            request = request.header("traderharness-session", session);
        }
        let response = self.send(request.body(Body::from(body.to_string())).unwrap()).await;
        Self::messages(response).await.pop().unwrap()
    }
}

#[tokio::test]
async fn nobody_comes_without_a_token_or_from_another_site() {
    let http = Http::new();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello(REVISION)});
    let check = async |change: &dyn Fn(&mut Request<Body>), status: u16| {
        let mut request = post(ALICE).body(Body::from(body.to_string())).unwrap();
        change(&mut request);
        let response = http.send(request).await;
        assert_eq!(response.status(), status);
        response
    };
    let header = |name: &'static str, value: &'static str| {
        move |r: &mut Request<Body>| drop(r.headers_mut().insert(name, value.parse().unwrap()))
    };
    check(&|_| {}, 200).await;
    let refused = check(&|r| drop(r.headers_mut().remove("authorization")), 401).await;
    assert_eq!(refused.headers()["www-authenticate"], r#"Bearer realm="traderharness""#);
    assert_eq!(refused.headers()["cache-control"], "no-store");
    assert_eq!(Http::messages(refused).await[0]["error_code"], "FORBIDDEN");
    check(&header("authorization", "Bearer wrong"), 401).await;
    check(&header("authorization", "Basic dXNlcjpwYXNz"), 401).await;
    check(&|r| assert!(r.headers_mut().append("authorization", format!("Bearer {BOB}").parse().unwrap())), 401).await;
    // Names that another site could make a browser use.
    check(&header("host", "evil.example"), 403).await;
    check(&header("host", "door.example:8750"), 200).await;
    check(&header("origin", "https://evil.example"), 403).await;
    check(&header("origin", "null"), 403).await;
    check(&header("origin", "http://localhost:6274"), 200).await;
    check(&header("content-type", "text/plain"), 415).await;
    check(&header("accept", "text/html"), 406).await;
    check(&|r| *r.body_mut() = Body::from("x".repeat((1 << 20) + 1)), 413).await;
    check(&|r| *r.body_mut() = Body::from("{"), 400).await;
    check(&|r| *r.method_mut() = axum::http::Method::PUT, 405).await;
}

#[tokio::test]
async fn the_address_that_the_http_door_is_bound_to_is_a_name_of_this_door_too() {
    let mut http = Http::new();
    let bound = "192.0.2.1:8750".parse().unwrap();
    let door = traderharness_serve::http::Door::new(Arc::clone(&http.house), Default::default(), Some(bound), None);
    let settings = HttpSettings { hosts: door.hosts().to_vec(), ..HttpSettings::default() };
    http.router = TowerToHyperService::new(door.router(Some(router(Door::new(Arc::clone(&http.house)), &settings))));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello(REVISION)}).to_string();
    for (host, status) in [("192.0.2.1:8750", 200), ("localhost:8750", 200), ("192.0.2.2:8750", 403)] {
        let mut request = post(ALICE).body(Body::from(body.clone())).unwrap();
        *request.uri_mut() = "/mcp".parse().unwrap();
        request.headers_mut().insert("host", host.parse().unwrap());
        assert_eq!(http.send(request).await.status(), status, "{host}");
    }
}

#[tokio::test]
async fn a_connection_is_a_session_of_its_own_and_belongs_to_its_caller() {
    let http = Http::new();
    let (first, hello) = http.hello(ALICE).await;
    let (second, other) = http.hello(ALICE).await;
    let session = |hello: &Value| hello["result"]["_meta"]["traderharness/session"].as_str().unwrap().to_owned();
    assert_ne!(session(&hello), session(&other));
    let (status, answers) = http.request(ALICE, &first, "tools/call", json!({"name": "read_brief", "arguments": {}})).await;
    assert_eq!(status, 200);
    assert_eq!(answers.last().unwrap()["result"]["structuredContent"]["session_id"], session(&hello));
    // To bob the connection does not exist, whatever he asks of it.
    let (status, answers) = http.request(BOB, &first, "tools/list", json!({})).await;
    assert_eq!((status.as_u16(), &answers[0]["details"]["code"]), (404, &json!("unknown_connection")));
    let (unknown, same) = http.request(BOB, "no-such-connection", "tools/list", json!({})).await;
    assert_eq!((unknown, &same), (status, &answers));
    for method in ["GET", "DELETE"] {
        let request = Request::builder().method(method).uri("http://127.0.0.1/mcp").header("host", "127.0.0.1");
        let request = request.header("authorization", format!("Bearer {BOB}")).header("mcp-session-id", &second);
        let response = http.send(request.header("accept", "text/event-stream").body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 404, "{method}");
    }
    let (status, _) = http.request(ALICE, &second, "ping", json!({})).await;
    assert_eq!(status, 200);
    // Another caller's session cannot be named either.
    let named = http
        .modern(BOB, "tools/call", Some("read_brief"), json!({"name": "read_brief", "arguments": {}}), Some(&session(&hello)))
        .await;
    assert_eq!(record(&named["result"])["details"]["code"], "session_not_found");
}

#[tokio::test]
async fn a_caller_takes_half_of_the_connections_and_what_it_ends_is_free_again() {
    let http = Http::with(HttpSettings { connections: 4, ..HttpSettings::default() });
    let mut first = String::new();
    for _ in 0..2 {
        first = http.hello(ALICE).await.0;
    }
    let refused = http.begin(ALICE).await;
    assert_eq!((refused.status(), refused.headers()["retry-after"].to_str().unwrap()), (StatusCode::SERVICE_UNAVAILABLE, "5"));
    assert_eq!(Http::messages(refused).await[0]["details"]["code"], "too_many_connections");
    // What alice holds keeps bob from nothing, and needs no place for what is no connection.
    for _ in 0..2 {
        http.hello(BOB).await;
    }
    assert_eq!(http.begin(BOB).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(http.request(ALICE, &first, "ping", json!({})).await.0, StatusCode::OK);
    let modern = http.modern(ALICE, "tools/list", None, json!({}), Some("key:modern")).await;
    assert!(modern["result"]["tools"].is_array(), "{modern}");
    let end = |id: &str| {
        let request = Request::delete("http://127.0.0.1/mcp").header("host", "127.0.0.1").header("mcp-session-id", id);
        request.header("authorization", format!("Bearer {ALICE}")).body(Body::empty()).unwrap()
    };
    assert!(http.send(end(&first)).await.status().is_success());
    http.hello(ALICE).await;
    assert_eq!(http.begin(ALICE).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_session_that_was_never_used_goes_with_its_connection() {
    let http = Http::new();
    let alice = http.house.local_caller("alice").unwrap();
    let (unused, _) = http.hello(ALICE).await;
    let (used, _) = http.hello(ALICE).await;
    http.request(ALICE, &used, "tools/call", json!({"name": "get_portfolio", "arguments": {}})).await;
    for connection in [&unused, &used] {
        let request = Request::delete("http://127.0.0.1/mcp").header("host", "127.0.0.1").header("mcp-session-id", connection);
        let request = request.header("authorization", format!("Bearer {ALICE}")).header("mcp-protocol-version", REVISION);
        let response = http.send(request.body(Body::empty()).unwrap()).await;
        assert!(response.status().is_success());
        let (status, _) = http.request(ALICE, connection, "ping", json!({})).await;
        assert_eq!(status, 404);
    }
    let states = || http.house.sessions(&alice).unwrap().iter().map(|s| s.state.clone()).collect::<Vec<_>>();
    // The connection's task ends by itself.
    let ended = async {
        while states() != ["closed", "open"] {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(2), ended).await;
    assert!(waited.is_ok(), "{:?}", states());
}

#[tokio::test]
async fn clients_without_a_handshake_stay_in_one_session() {
    let http = Http::new();
    let found = http.modern(ALICE, "server/discover", None, json!({}), None).await;
    assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    let brief = json!({"name": "read_brief", "arguments": {}});
    let session = async |named: Option<&str>| {
        let answer = http.modern(ALICE, "tools/call", Some("read_brief"), brief.clone(), named).await;
        answer["result"]["structuredContent"]["session_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let first = session(None).await;
    assert_eq!(session(None).await, first);
    let run = session(Some("key:run-1")).await;
    assert_ne!(run, first);
    assert_eq!(session(Some("key:run-1")).await, run);
    assert_eq!(session(Some(&first)).await, first);
    // A second open session does not take a client out of its own in the middle of a day.
    assert_eq!(session(None).await, first);
    // Who was in none yet must say which of two.
    let unclear = http.modern(BOB, "tools/call", Some("read_brief"), brief.clone(), Some("key:run-1")).await;
    assert_eq!(unclear["result"]["isError"], false, "{unclear}");
    http.modern(BOB, "tools/call", Some("read_brief"), brief.clone(), Some("key:run-2")).await;
    let unclear = http.modern(BOB, "tools/call", Some("read_brief"), brief.clone(), None).await;
    assert_eq!(record(&unclear["result"])["details"]["code"], "session_ambiguous");
    let fresh = http.modern(ALICE, "tools/call", Some("read_brief"), brief, Some("new")).await;
    assert_eq!(record(&fresh["result"])["details"]["code"], "invalid_session_name");
}

// Over HTTP the caller opened the session that an MCP client then found; its end is told, and no other account is opened.
#[tokio::test]
async fn a_session_that_was_found_stays_it_when_its_window_ends() {
    let http = Http::new();
    let alice = http.house.authenticate(Some(ALICE)).unwrap();
    let opened = http.house.create_session(&alice, &SessionRequest::default(), "open").unwrap();
    let id = opened.body["session_id"].as_str().unwrap().to_owned();
    let brief = async || {
        let params = json!({"name": "read_brief", "arguments": {}});
        let answer = http.modern(ALICE, "tools/call", Some("read_brief"), params, None).await;
        answer["result"]["structuredContent"].clone()
    };
    assert_eq!((&brief().await["session_id"], &brief().await["finished"]), (&json!(id), &json!(false)));
    for number in 0..100 {
        if http.house.session(&alice, &id).unwrap().finished {
            break;
        }
        http.house.step(&alice, &id, &format!("step-{number}")).unwrap();
    }
    let after = brief().await;
    assert_eq!((&after["session_id"], &after["finished"]), (&json!(id), &json!(true)), "{after}");
    assert_eq!(http.house.sessions(&alice).unwrap().len(), 1);
    // One that was closed is given up: the next request begins anew.
    http.house.close_session(&alice, &id, "close").unwrap();
    assert_ne!(brief().await["session_id"], json!(id));
}

// A request of an id that waits already would take the answer of the one before, and one of the two would wait for ever.
#[tokio::test]
async fn two_requests_of_one_id_at_once_are_refused() {
    let http = Http::new();
    let (connection, _) = http.hello(ALICE).await;
    let ping = async |id: Value| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let request = post(ALICE).header("mcp-session-id", &connection).header("mcp-protocol-version", REVISION);
        http.send(request.body(Body::from(body.to_string())).unwrap()).await
    };
    let first = ping(json!(7)).await;
    assert_eq!(first.status(), 200);
    let second = ping(json!(7)).await;
    assert_eq!(second.status(), 400);
    let second = Http::messages(second).await;
    assert_eq!((&second[0]["error"]["code"], &second[0]["id"]), (&json!(-32600), &Value::Null));
    assert_eq!(ping(json!("7")).await.status(), 200, "1 and \"1\" are two ids");
    assert_eq!(Http::messages(first).await.pop().unwrap()["result"], json!({}));
    assert_eq!(ping(json!(7)).await.status(), 200);
}

#[tokio::test]
async fn what_is_no_strict_message_is_answered_in_the_protocols_form() {
    let http = Http::new();
    let (connection, _) = http.hello(ALICE).await;
    let check = async |text: &str, code: i64, id: Value| {
        let request = post(ALICE).header("mcp-session-id", &connection).header("mcp-protocol-version", REVISION);
        let response = http.send(request.body(Body::from(text.to_owned())).unwrap()).await;
        assert_eq!(response.status(), 400, "{text}");
        let answer = Http::messages(response).await.pop().unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{text}: {answer}");
    };
    check("{", -32700, Value::Null).await;
    check("[]", -32600, Value::Null).await;
    check("null", -32600, Value::Null).await;
    let order = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"place_order","arguments":{"quantity":100,"quantity":9}}}"#;
    check(order, -32600, json!(3)).await;
    check(
        &format!(r#"{{"jsonrpc":"2.0","id":4,"method":"ping","params":{}{}}}"#, "[".repeat(90), "]".repeat(90)),
        -32600,
        json!(4),
    )
    .await;
}

#[tokio::test]
async fn messages_that_are_none_count_against_their_caller() {
    let http = Http::new();
    let (connection, _) = http.hello(ALICE).await;
    let send = async |connection: &str, text: &str| {
        let request = post(ALICE).header("mcp-session-id", connection).header("mcp-protocol-version", REVISION);
        http.send(request.body(Body::from(text.to_owned())).unwrap()).await.status().as_u16()
    };
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for _ in 0..400 {
        assert_eq!(send(&connection, ping).await, 200, "what is right costs nothing");
    }
    // Cut off, a batch, a doubled key, no message of the protocol, a connection that is not there.
    let faults = [
        (connection.as_str(), "{"),
        (&connection, "[]"),
        (&connection, r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#),
        (&connection, r#"{"jsonrpc":"2.0","id":1,"method":7}"#),
        ("no-such", ping),
    ];
    let mut counted = [0_u64; 5];
    loop {
        let kind = (counted.iter().sum::<u64>() % 5) as usize;
        let (connection, text) = faults[kind];
        match send(connection, text).await {
            429 => break,
            status => assert!((400..500).contains(&status), "{text}: {status}"),
        }
        counted[kind] += 1;
        assert!(counted[0] < 400, "never told to come later");
    }
    // The allowance, and what comes back while the test runs.
    let all = counted.iter().sum::<u64>();
    assert!((300..600).contains(&all), "{all} faults were answered");
    assert_eq!(http.begin(BOB).await.status(), StatusCode::OK, "others are served");
    let audit = http.house.audit(0, 100).unwrap();
    let line = audit.iter().find(|line| line["class"] == "INVALID_INPUT").unwrap_or_else(|| panic!("{audit:?}"));
    assert_eq!((&line["caller"], &line["count"]), (&json!("alice"), &json!(all)), "{audit:?}");
}

/// A body of which nothing ever comes.
struct Never;

impl hyper::body::Body for Never {
    type Data = hyper::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

#[tokio::test]
async fn a_message_that_never_arrives_is_given_up() {
    let mut http = Http::new();
    let settings = HttpSettings { body_time: std::time::Duration::from_millis(1), ..HttpSettings::default() };
    http.router = TowerToHyperService::new(router(Door::new(Arc::clone(&http.house)), &settings));
    let response = http.send(post(ALICE).body(Body::new(Never)).unwrap()).await;
    assert_eq!(response.status(), 408);
    assert_eq!(Http::messages(response).await[0]["details"]["code"], "body_timeout");
}

#[tokio::test]
async fn answers_to_lost_callers_are_in_the_protocols_form() {
    let http = Http::new();
    let (connection, _) = http.hello(ALICE).await;
    let (_, answers) = http.request(ALICE, &connection, "tools/call", json!({"name": "no_such", "arguments": {}})).await;
    assert_eq!(answers.last().unwrap()["error"]["code"], -32602);
    let unknown = http.modern(ALICE, "no/such", None, json!({}), None).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}
