//! Clients that are slow, many, or gone: each costs its own connection and nothing else.

use super::client::{DESK, STOCK, Served, new_key, request};
use serde_json::json;
use std::net::Shutdown;
use std::time::{Duration, Instant};
use traderharness_serve::http::Limits;

const SHORT: Duration = Duration::from_millis(150);

#[test]
fn a_body_that_does_not_come_is_told_so() {
    let served = Served::with(Limits { body_time: SHORT, ..Limits::default() });
    let mut slow = served.connect();
    let whole = request("POST", "/v1/sessions", DESK, &[("Idempotency-Key", &new_key())], Some("{}    "));
    slow.send(&whole.as_bytes()[..whole.len() - 3]);
    let begun = Instant::now();
    let answer = slow.answer().unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (408, "body_timeout"));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(slow.answer().is_none(), "the connection is closed: what else came is no request");
}

#[test]
fn a_head_that_does_not_come_ends_its_connection() {
    let served = Served::with(Limits { head_time: SHORT, ..Limits::default() });
    let mut slow = served.connect();
    slow.send(b"GET /health HTTP/1.1\r\nHost: loc");
    assert!(slow.answer().is_none());
}

#[test]
fn a_body_that_ends_early_is_no_request() {
    let served = Served::new();
    let before = served.get(DESK, "/v1/sessions").json();
    let mut cut = served.connect();
    let whole = request("POST", "/v1/sessions", DESK, &[("Idempotency-Key", &new_key())], Some("{}     "));
    cut.send(&whole.as_bytes()[..whole.len() - 3]);
    cut.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    assert!(cut.answer().is_none_or(|answer| answer.status == 400));
    assert_eq!(served.get(DESK, "/v1/sessions").json(), before, "nothing was made");
}

#[test]
fn a_client_that_reads_nothing_holds_only_itself() {
    let served = Served::with(Limits { write_time: SHORT, connections: 2, ..Limits::default() });
    let (mut deaf, mut other) = (served.connect(), served.connect());
    let ask = request("GET", "/v1/tools", DESK, &[], None);
    other.send(ask.as_bytes());
    assert_eq!(other.answer().unwrap().status, 200);
    // Far more answers than the buffers of the system hold.
    deaf.stream.get_ref().set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    deaf.send(ask.repeat(200).as_bytes());
    other.send(ask.as_bytes());
    assert_eq!(other.answer().unwrap().status, 200);
    // The door gives up on it, and its place is free for the next.
    let begun = Instant::now();
    let mut next = served.connect();
    loop {
        next.send(request("GET", "/health", DESK, &[], None).as_bytes());
        if next.answer().is_some_and(|answer| answer.status == 200) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "it still holds its connection");
        next = served.connect();
    }
    // What was written before is read, then the connection ends.
    let answers = std::iter::from_fn(|| deaf.answer()).count();
    assert!(answers < 200, "{answers} answers");
}

#[test]
fn connections_beyond_the_bound_are_turned_away() {
    let served = Served::with(Limits { connections: 2, ..Limits::default() });
    let mut held: Vec<_> = (0..2).map(|_| served.connect()).collect();
    for connection in &mut held {
        connection.send(request("GET", "/health", DESK, &[], None).as_bytes());
        assert_eq!(connection.answer().unwrap().status, 200);
    }
    let mut third = served.connect();
    third.send(request("GET", "/health", DESK, &[], None).as_bytes());
    let answer = third.answer().unwrap();
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    drop(held.pop());
    let free = (0..200).any(|_| {
        let mut next = served.connect();
        next.send(request("GET", "/health", DESK, &[], None).as_bytes());
        next.answer().is_some_and(|answer| answer.status == 200)
    });
    assert!(free, "a place that was left is given away again");
}

// A cancelled client: the call ends, and its result is kept under its key.
#[test]
fn a_call_whose_client_left_is_done_once() {
    let served = Served::new();
    let session = served.session(DESK);
    let body = json!({ "session_id": session, "tool": "add_watchlist", "input": { "stock_code": STOCK, "reason": "liquid" } });
    let (key, text) = (new_key(), body.to_string());
    let mut gone = served.connect();
    gone.send(request("POST", "/v1/tool-invocations", DESK, &[("Idempotency-Key", &key)], Some(&text)).as_bytes());
    drop(gone);
    // The first of these may find the call still running; it is then told to come again.
    let mut answer = served.keyed(DESK, "/v1/tool-invocations", &key, &body);
    for _ in 0..500 {
        if answer.status != 409 {
            break;
        }
        answer = served.keyed(DESK, "/v1/tool-invocations", &key, &body);
    }
    assert_eq!(answer.status, 200, "{}", answer.text());
    let again = served.keyed(DESK, "/v1/tool-invocations", &key, &body);
    assert_eq!((again.status, again.header("idempotent-replayed")), (answer.status, Some("true")));
    assert_eq!(again.body, answer.body);
}

#[test]
fn a_door_that_closes_answers_what_it_took() {
    let served = Served::new();
    let mut open = served.connect();
    let ask = request("GET", "/v1/tools", DESK, &[], None);
    open.send(ask.as_bytes());
    assert_eq!(open.answer().unwrap().status, 200);
    let address = served.address;
    assert!(served.closed());
    assert!(open.answer().is_none(), "the connection is closed in order");
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn one_connection_serves_many_requests() {
    let served = Served::new();
    let mut connection = served.connect();
    for _ in 0..50 {
        connection.send(request("GET", "/health", DESK, &[], None).as_bytes());
        assert_eq!(connection.answer().unwrap().status, 200);
    }
    // Sent at once, answered in order.
    let both = request("GET", "/health", DESK, &[], None) + &request("GET", "/nothing", DESK, &[], None);
    connection.send(both.as_bytes());
    let statuses = [connection.answer().unwrap().status, connection.answer().unwrap().status];
    assert_eq!(statuses, [200, 404]);
}

#[test]
fn a_request_that_came_before_the_end_is_answered() {
    let mut served = Served::new();
    let mut open = served.connect();
    let whole =
        request("POST", "/v1/sessions", DESK, &[("Idempotency-Key", &new_key()), ("Expect", "100-continue")], Some("{  }"));
    let (head, body) = whole.split_at(whole.len() - 4);
    open.send(head.as_bytes());
    // Said once the route waits for the body.
    let mut line = String::new();
    std::io::BufRead::read_line(&mut open.stream, &mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 100"), "{line}");
    std::io::BufRead::read_line(&mut open.stream, &mut line).unwrap();
    served.close();
    let address = served.address;
    while std::net::TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    open.send(body.as_bytes());
    assert_eq!(open.answer().unwrap().status, 201);
    assert!(open.answer().is_none());
    assert!(served.closed());
}
