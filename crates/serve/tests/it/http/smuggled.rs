//! Requests whose ends can be read in two ways, and heads that are none: whoever stands in between must not see other requests than the
//! server does. Each is answered at most once, its connection ends, and nothing that it hides is done.

use super::client::{DESK, Served, new_key, request};
use serde_json::json;
use std::io::{ErrorKind, Read as _};
use std::time::{Duration, Instant};
use traderharness_serve::http::Limits;

/// A request that would be answered if it were taken for one.
const HIDDEN: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The head of a request that makes a session, up to what says how long its body is.
fn post() -> String {
    let key = new_key();
    format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {DESK}\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\n"
    )
}

/// Everything that comes back until the connection ends; it must end.
fn all(served: &Served, bytes: &[u8]) -> String {
    let mut connection = served.connect();
    connection.send(bytes);
    let mut answered = Vec::new();
    let read = connection.stream.read_to_end(&mut answered).map_err(|fault| fault.kind());
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]);
    assert!(matches!(read, Ok(_) | Err(ErrorKind::ConnectionReset)), "{shown:?}: {read:?}");
    String::from_utf8(answered).unwrap()
}

/// Statuses of the answers.
fn statuses(answered: &str) -> Vec<&str> {
    answered.match_indices("HTTP/1.1 ").map(|(at, name)| &answered[at + name.len()..][..3]).collect()
}

fn sessions(served: &Served) -> usize {
    served.get(DESK, "/v1/sessions").json()["sessions"].as_array().unwrap().len()
}

// Two lengths: the chunks count, and the connection ends after them.
#[test]
fn a_request_with_two_lengths_is_the_last_of_its_connection() {
    let served = Served::new();
    let [length, chunked] = ["Content-Length: 12\r\n", "Transfer-Encoding: chunked\r\n"];
    for lengths in [[length, chunked].concat(), [chunked, length].concat()] {
        let bytes = format!("{}{lengths}\r\n2\r\n{{}}\r\n0\r\n\r\n{HIDDEN}", post());
        let mut connection = served.connect();
        connection.send(bytes.as_bytes());
        let answer = connection.answer().unwrap();
        assert_eq!((answer.status, answer.header("connection")), (201, Some("close")), "{lengths:?} {}", answer.text());
        assert!(connection.answer().is_none(), "{lengths:?}");
    }
    // The shorter of the two is the length: what stands behind it is no body, and no request either.
    let bytes = format!("{}{chunked}Content-Length: 3\r\n\r\n{:x}\r\n{{}}{HIDDEN}\r\n0\r\n\r\n", post(), HIDDEN.len() + 2);
    assert!(statuses(&all(&served, bytes.as_bytes())).len() <= 1);
    assert_eq!(sessions(&served), 2);
}

/// Not taken for a request: refused once at most, and the connection ends.
fn refused(served: &Served, bytes: &str) {
    let answered = all(served, bytes.as_bytes());
    let shown = &bytes[..bytes.len().min(300)];
    assert!(matches!(statuses(&answered).as_slice(), [] | ["400" | "403" | "431" | "501"]), "{shown:?}: {answered}");
    assert!(!answered.contains("<html") && !answered.contains("panicked"), "{answered}");
}

#[test]
fn lengths_that_two_readers_would_read_in_two_ways_are_refused() {
    let served = Served::new();
    for lengths in [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: 2, 3\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +2\r\n",
        "Content-Length: 0x2\r\n",
        "Content-Length: 2 2\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length : 2\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding:\u{b}chunked\r\n",
        // A header line that goes on in the next one.
        "Transfer-Encoding:\r\n chunked\r\n",
        "X: y\r\n Content-Length: 2\r\n",
        "X: y\rContent-Length: 2\r\n",
        "X: y\u{0}\r\nContent-Length: 2\r\n",
    ] {
        refused(&served, &format!("{}{lengths}\r\n2\r\n{{}}\r\n0\r\n\r\n{HIDDEN}", post()));
    }
    for chunks in ["zz\r\n{}\r\n", "-2\r\n{}\r\n", "2\r\n{}X\r\n0\r\n\r\n", "ffffffffffffffffff\r\n{}", "2 ;\u{0}\r\n{}\r\n"] {
        refused(&served, &format!("{}Transfer-Encoding: chunked\r\n\r\n{chunks}{HIDDEN}", post()));
    }
    assert_eq!(sessions(&served), 0, "nothing was made");
}

#[test]
fn what_is_no_request_ends_its_connection() {
    let served = Served::new();
    for bytes in [
        "HELLO\r\n\r\n".to_owned(),
        // HTTP/0.9, a request of a proxy, a greeting of TLS.
        "GET /health\r\n\r\n".to_owned(),
        "GET /health HTTP/0.9\r\n\r\n".to_owned(),
        "GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}".to_owned() + &"x".repeat(300) + "\r\n\r\n",
        "GET /health\u{0} HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n".to_owned(),
        format!("GET /health HTTP/1.1\r\n Host: localhost\r\n\r\n{HIDDEN}"),
    ] {
        refused(&served, &bytes);
    }
}

#[test]
fn a_host_in_the_request_line_and_another_in_its_header_are_refused() {
    let served = Served::new();
    for (line, host) in [
        ("http://evil.example/v1/tools", "localhost"),
        ("http://localhost/v1/tools", "evil.example"),
        ("http://localhost@evil.example/v1/tools", "localhost"),
        ("http://evil.example:80/v1/tools", "localhost"),
    ] {
        let text = format!("GET {line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {DESK}\r\nConnection: close\r\n\r\n");
        let answered = all(&served, text.as_bytes());
        assert!(matches!(statuses(&answered).as_slice(), ["400" | "403"]), "{line} {host}: {answered}");
    }
    let text = format!(
        "GET http://localhost/v1/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {DESK}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(statuses(&all(&served, text.as_bytes())), ["200"]);
}

#[test]
fn a_head_of_a_megabyte_is_refused_before_it_is_whole() {
    let served = Served::new();
    let line = format!("X-Long: {}\r\n", "a".repeat(1_000));
    refused(&served, &format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n", line.repeat(1_000)));
    refused(&served, &format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "a".repeat(1 << 20)));
    refused(&served, &format!("GET /health?{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(1 << 20)));
    assert_eq!(served.get(DESK, "/health").status, 200);
}

// A head that comes byte by byte has the time of one head, however often a byte of it comes.
#[test]
fn a_head_that_drips_ends_with_its_time() {
    let served = Served::with(Limits { head_time: Duration::from_millis(150), ..Limits::default() });
    let mut slow = served.connect();
    slow.stream.get_ref().set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let begun = Instant::now();
    let mut drips = request("GET", "/health", DESK, &[("X", &"a".repeat(10_000))], None).into_bytes().into_iter();
    let ended = loop {
        slow.send(&[drips.next().expect("it ends before its head does")]);
        let mut byte = [0];
        match slow.stream.read(&mut byte) {
            Err(fault) if matches!(fault.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            other => break other,
        }
    };
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

// A body that is cut is no body, whichever way its length is told.
#[test]
fn nothing_is_half_applied() {
    let served = Served::new();
    let session = served.session(DESK);
    let before = served.get(DESK, &format!("/v1/sessions/{session}")).json();
    let body = json!({ "session_id": session, "tool": "complete_phase", "input": { "decision": "monitor", "summary": "x" } })
        .to_string();
    let head = format!(
        "POST /v1/tool-invocations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {DESK}\r\nIdempotency-Key: {}\r\nContent-Type: application/json\r\n",
        new_key()
    );
    let (half, rest) = body.split_at(body.len() / 2);
    for bytes in [
        // Cut in a chunk, after a chunk, and before the last one.
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{half}", body.len()),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{half}\r\n", half.len()),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{half}\r\n{:x}\r\n{rest}\r\n", half.len(), rest.len()),
        format!("{head}Content-Length: {}\r\n\r\n{half}", body.len()),
    ] {
        let mut cut = served.connect();
        cut.send(bytes.as_bytes());
        cut.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
        assert!(cut.answer().is_none_or(|answer| answer.status == 400), "{bytes}");
    }
    assert_eq!(served.get(DESK, &format!("/v1/sessions/{session}")).json(), before);
}
