//! Requests that must not work: each gets its class and status, as an error record, and changes nothing.

use super::client::{DESK, OTHER, POOR, STOCK, Served, new_key, request};
use serde_json::json;

/// Sends a request and looks at status, class and finer code of the refusal.
fn check(served: &Served, bytes: &[u8], status: u16, class: &str, code: &str) {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
    let answer = served.raw(bytes);
    assert_eq!(answer.status, status, "{shown}\n{}", answer.text());
    assert_eq!(answer.json()["error_code"], class, "{shown}\n{}", answer.text());
    if !code.is_empty() {
        assert_eq!(answer.code(), code, "{shown}\n{}", answer.text());
    }
}

fn invocation(body: &str) -> Vec<u8> {
    request("POST", "/v1/tool-invocations", DESK, &[("Idempotency-Key", &new_key())], Some(body)).into_bytes()
}

#[test]
fn nobody_is_served_without_a_token() {
    let served = Served::new();
    let paths = ["/metrics", "/v1/openapi.json", "/v1/tools", "/v1/tools/get_kline", "/v1/sessions", "/v1/research-registry"];
    for path in paths {
        check(&served, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes(), 401, "FORBIDDEN", "");
    }
    for header in ["Basic abc", "Bearer", "Bearer ", "Bearer wrong", &format!("Bearer {DESK}x"), &format!("Token {DESK}")] {
        let text = format!("GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\n\r\n");
        check(&served, text.as_bytes(), 401, "FORBIDDEN", "");
    }
    let twice = format!(
        "GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {DESK}\r\nAuthorization: Bearer {DESK}\r\n\r\n"
    );
    check(&served, twice.as_bytes(), 401, "FORBIDDEN", "");
    // The one thing that needs no token says nothing but that the server runs.
    let health = served.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!((health.status, health.text()), (200, r#"{"status":"ok"}"#));
}

#[test]
fn a_browser_that_was_made_to_ask_gets_nothing() {
    let served = Served::new();
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1"] {
        let text = format!("GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n");
        check(&served, text.as_bytes(), 403, "FORBIDDEN", "foreign_site");
    }
    let text = "GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    check(&served, text.as_bytes(), 403, "FORBIDDEN", "foreign_site");
    let text = request("GET", "/v1/tools", DESK, &[("Origin", "http://evil.example")], None);
    check(&served, text.as_bytes(), 403, "FORBIDDEN", "foreign_site");
    check(&served, b"GET /health HTTP/1.1\r\n\r\n", 400, "INVALID_INPUT", "malformed_request");
    let preflight = request("OPTIONS", "/v1/tool-invocations", DESK, &[("Origin", "http://localhost:3000")], None);
    check(&served, preflight.as_bytes(), 405, "UNSUPPORTED_CAPABILITY", "method_not_allowed");
}

#[test]
fn what_is_not_there_is_not_found() {
    let served = Served::new();
    for path in ["/", "/v1", "/v1/", "/v1/tools/", "/v2/tools", "/v1/sessions/a/b", "/v1/../etc/passwd", "/v1/tools%2f", "/mcp"] {
        check(&served, request("GET", path, DESK, &[], None).as_bytes(), 404, "UNSUPPORTED_CAPABILITY", "");
    }
    check(
        &served,
        request("GET", "/v1/tools/no.such", DESK, &[], None).as_bytes(),
        404,
        "UNSUPPORTED_CAPABILITY",
        "unknown_tool",
    );
    for path in ["/v1/sessions/ses_nothing", "/v1/sessions/..", "/v1/sessions/ses_a%00", "/v1/sessions/%2e%2e/account"] {
        check(&served, request("GET", path, DESK, &[], None).as_bytes(), 404, "INVALID_INPUT", "session_not_found");
    }
    // An id of another kind is no job (spec/seeds.md C3.4).
    check(&served, request("GET", "/v1/jobs/inv_00000000000000000000", DESK, &[], None).as_bytes(), 422, "INVALID_INPUT", "");
    check(&served, request("GET", "/v1/sessions/%ff", DESK, &[], None).as_bytes(), 400, "INVALID_INPUT", "");
    for (method, path, allowed) in [
        ("GET", "/v1/tool-invocations", "POST"),
        ("DELETE", "/v1/tools", "GET,HEAD"),
        ("PUT", "/v1/sessions", "GET,HEAD,POST"),
        ("PATCH", "/health", "GET,HEAD"),
        ("TRACE", "/v1/tools", "GET,HEAD"),
        ("BREW", "/v1/jobs/job_x", "GET,HEAD,DELETE"),
    ] {
        let answer = served.raw(request(method, path, DESK, &[], None).as_bytes());
        let mut named: Vec<&str> = answer.header("allow").unwrap_or("").split(',').collect();
        let mut expected: Vec<&str> = allowed.split(',').collect();
        named.sort_unstable();
        expected.sort_unstable();
        assert_eq!((answer.status, named), (405, expected), "{method} {path}");
    }
}

#[test]
fn a_body_is_exactly_one_json_object() {
    let served = Served::new();
    let deep = format!(r#"{{"tool":"get_kline","input":{}1{}}}"#, "[".repeat(100), "]".repeat(100));
    for (body, code) in [
        ("", "malformed_request"),
        ("   ", "malformed_request"),
        ("{", "malformed_request"),
        (r#"{"tool":"get_kline","input":{}} x"#, "malformed_request"),
        (r#"{"tool":"get_kline","tool":"place_order","input":{}}"#, "malformed_request"),
        (r#"{"tool":"get_kline","input":{"days":NaN}}"#, "malformed_request"),
        (r#"{"tool":"get_kline","input":{"code":"\ud800"}}"#, "malformed_request"),
        ("\u{feff}{}", "malformed_request"),
        ("{'tool': 'x'}", "malformed_request"),
        (&deep, "malformed_request"),
    ] {
        check(&served, &invocation(body), 400, "INVALID_INPUT", code);
    }
    let mut bytes = invocation(r#"{"tool":"xxxx","input":{}}"#);
    let at = bytes.len() - 18;
    bytes[at] = 0xff;
    check(&served, &bytes, 400, "INVALID_INPUT", "malformed_request");
    for body in ["[]", "1", "null", "\"x\"", r#"{"tool":"get_kline","input":{"days":1e999}}"#] {
        check(&served, &invocation(body), 422, "INVALID_INPUT", "invalid_request");
    }
    for body in [
        r#"{"input":{}}"#,
        r#"{"tool":"get_kline"}"#,
        r#"{"tool":1,"input":{}}"#,
        r#"{"tool":"get_kline","input":{},"sesion_id":"x"}"#,
        r#"{"tool":"get_kline","input":{},"job":"yes"}"#,
        r#"{"tool":"get_kline","input":{},"session_id":null}"#,
    ] {
        check(&served, &invocation(body), 422, "INVALID_INPUT", "invalid_request");
    }
    let twice = r#"{"input":{},"sesion_id":"x"}"#;
    let issues = served.raw(&invocation(twice)).json()["details"]["issues"].as_array().unwrap().len();
    assert_eq!(issues, 2, "all faults are told at once");
}

#[test]
fn a_body_of_another_type_is_refused() {
    let served = Served::new();
    let post = |headers: &str, body: &str| {
        let key = new_key();
        format!(
            "POST /v1/tool-invocations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {DESK}\r\nIdempotency-Key: {key}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for headers in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: application/json; charset=gbk\r\n",
        "Content-Type: application/json\r\nContent-Type: application/json\r\n",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
    ] {
        check(&served, post(headers, "{}").as_bytes(), 415, "INVALID_INPUT", "unsupported_media_type");
    }
    // The body of a request that says nothing more may be left out.
    let session = served.session(DESK);
    let bare = format!(
        "POST /v1/sessions/{session}/step HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {DESK}\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n"
    );
    assert_eq!(served.raw(bare.as_bytes()).status, 200);
    check(
        &served,
        post("Content-Type: text/plain\r\n", "x").replace("tool-invocations", "sessions").as_bytes(),
        415,
        "INVALID_INPUT",
        "",
    );
}

#[test]
fn a_request_that_changes_something_has_one_key() {
    let served = Served::new();
    let body = Some(r#"{"tool":"get_kline","input":{}}"#);
    let session = served.session(DESK);
    for path in [
        "/v1/tool-invocations",
        "/v1/sessions",
        &format!("/v1/sessions/{session}/step"),
        &format!("/v1/sessions/{session}/close"),
    ] {
        check(&served, request("POST", path, DESK, &[], body).as_bytes(), 400, "INVALID_INPUT", "idempotency_key_missing");
    }
    let twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "a")];
    check(&served, request("POST", "/v1/sessions", DESK, &twice, Some("{}")).as_bytes(), 400, "INVALID_INPUT", "");
    let (long, spaced) = ("k".repeat(1_000), "a b");
    for key in ["", long.as_str(), spaced, "schlüssel"] {
        let text = request("POST", "/v1/sessions", DESK, &[("Idempotency-Key", key)], Some("{}"));
        check(&served, text.as_bytes(), 400, "INVALID_INPUT", "");
    }
}

#[test]
fn large_heads_and_bodies_are_refused() {
    let served = Served::new();
    let large = "x".repeat(17 << 10);
    check(
        &served,
        request("GET", "/v1/tools", DESK, &[("X-Large", &large)], None).as_bytes(),
        431,
        "INVALID_INPUT",
        "head_too_large",
    );
    check(
        &served,
        request("GET", &format!("/v1/tools/{large}"), DESK, &[], None).as_bytes(),
        431,
        "INVALID_INPUT",
        "head_too_large",
    );
    let many: Vec<(String, String)> = (0..70).map(|n| (format!("X-{n}"), "1".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    check(&served, request("GET", "/v1/tools", DESK, &many, None).as_bytes(), 431, "INVALID_INPUT", "head_too_large");
    // Declared: refused before a byte of it is sent.
    let key = new_key();
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {DESK}\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\n"
    );
    check(&served, format!("{head}Content-Length: 99999999999\r\n\r\n").as_bytes(), 413, "INVALID_INPUT", "body_too_large");
    // Sent whole all the same: the client reads why, and no reset.
    let declared = format!("{head}Content-Length: {}\r\n\r\n{}", 4 << 20, " ".repeat(4 << 20));
    check(&served, declared.as_bytes(), 413, "INVALID_INPUT", "body_too_large");
    // Undeclared: refused when the bound is passed.
    let chunk = format!("{:x}\r\n{}\r\n", 64 << 10, " ".repeat(64 << 10));
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{}", chunk.repeat(17));
    check(&served, chunked.as_bytes(), 413, "INVALID_INPUT", "body_too_large");
}

#[test]
fn another_callers_session_does_not_exist() {
    let served = Served::new();
    let session = served.session(DESK);
    for path in ["", "/brief", "/account", "/tools", "/records"] {
        let theirs = served.get(OTHER, &format!("/v1/sessions/{session}{path}"));
        let nobodys = served.get(OTHER, &format!("/v1/sessions/ses_{}{path}", &session[4..].chars().rev().collect::<String>()));
        assert_eq!((theirs.status, &theirs.body), (404, &nobodys.body), "{path}");
        assert_eq!(served.get(DESK, &format!("/v1/sessions/{session}{path}")).status, 200, "{path}");
    }
    let (mine, nobodys) = (
        served.call(OTHER, &session, "get_kline", json!({"stock_code": STOCK})),
        served.call(OTHER, "ses_nothing", "get_kline", json!({"stock_code": STOCK})),
    );
    assert_eq!((mine.status, mine.json()), (404, nobodys.json()));
    for path in ["step", "close"] {
        assert_eq!(served.post(OTHER, &format!("/v1/sessions/{session}/{path}"), &json!({})).status, 404);
    }
    assert_eq!(served.get(OTHER, "/v1/sessions").json()["sessions"], json!([]));
}

// spec/seeds.md C6: the order of the checks, as far as it shows over HTTP.
#[test]
fn grants_come_before_parameters_and_budgets_last() {
    let served = Served::new();
    let session = served.session(POOR);
    let status = |tool: &str, input| served.call(POOR, &session, tool, input).status;
    assert_eq!(status("no_such_tool", json!({})), 404);
    assert_eq!(status("place_order", json!({"nonsense": 1})), 403, "schemas cannot be probed without their scope");
    assert_eq!(status("get_kline", json!({"stock_code": 7})), 422);
    for _ in 0..3 {
        assert_eq!(status("get_stock_price", json!({"stock_code": STOCK})), 200);
    }
    let spent = served.call(POOR, &session, "get_stock_price", json!({"stock_code": STOCK}));
    assert_eq!((spent.status, spent.json()["error_code"].as_str().unwrap()), (429, "BUDGET_EXHAUSTED"));
}

#[test]
fn pages_of_records_are_asked_for_strictly() {
    let served = Served::new();
    let session = served.session(DESK);
    for query in ["?limit=0", "?limit=501", "?from=-1", "?from=1&from=2", "?page=2", "?limit=%31"] {
        check(
            &served,
            request("GET", &format!("/v1/sessions/{session}/records{query}"), DESK, &[], None).as_bytes(),
            422,
            "INVALID_INPUT",
            "invalid_request",
        );
    }
}
