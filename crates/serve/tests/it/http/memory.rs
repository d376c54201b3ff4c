//! Memory over many requests and many sessions that end. Slow: part of `cargo xtask test --deep`.

use super::client::{Connection, DESK, STOCK, Served, house_in, new_key, request};
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use traderharness_serve::http::Limits;

const REQUESTS: u64 = 40_000;
/// Requests between two looks.
const EVERY: u64 = 500;
/// Calls of a session.
const CALLS: u64 = 50;
/// Clients at the same time, and places for their calls: threads come and go with the load, and are not what is asked for here.
const CLIENTS: usize = 4;

/// Resident bytes of this process; `None` where the system does not say.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

fn post(connection: &mut Connection, path: &str, body: &str) -> serde_json::Value {
    connection.send(request("POST", path, DESK, &[("Idempotency-Key", &new_key())], Some(body)).as_bytes());
    let answer = connection.answer().expect("an answer");
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    answer.json()
}

fn middle(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

// What a request or a session left behind for good would be there many thousand times.
#[test]
fn memory_is_flat_over_requests_and_sessions() {
    if !crate::is_deep() {
        println!("skipped: a slow suite (cargo xtask test --deep)");
        return;
    }
    if resident().is_none() {
        println!("skipped: this system does not say how much memory a process has");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let served = Served::over(house_in(Some(folder.path())), Limits { calls: CLIENTS, ..Limits::default() });
    let (answered, looked) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut connection = served.connect();
                let next = || {
                    let number = answered.fetch_add(1, Ordering::Relaxed);
                    if number.is_multiple_of(EVERY) {
                        looked.lock().unwrap().push((number, resident().unwrap()));
                    }
                    number < REQUESTS
                };
                while next() {
                    let session = post(&mut connection, "/v1/sessions", "{}")["session_id"].as_str().unwrap().to_owned();
                    let call = json!({"session_id": session, "tool": "get_stock_price", "input": {"stock_code": STOCK}});
                    for _ in 0..CALLS {
                        next();
                        post(&mut connection, "/v1/tool-invocations", &call.to_string());
                    }
                    next();
                    post(&mut connection, &format!("/v1/sessions/{session}/close"), "{}");
                }
            });
        }
    });
    let looked = looked.into_inner().unwrap();
    // Of the last two quarters: in the first half caches, threads and the allocator come to what they keep.
    let quarter = |number: u64| {
        let within = |n: u64| (REQUESTS / 4 * number..REQUESTS / 4 * (number + 1)).contains(&n);
        middle(looked.iter().filter(|(n, _)| within(*n)).map(|(_, bytes)| *bytes).collect())
    };
    let (third, last) = (quarter(2), quarter(3));
    let per_request = last.saturating_sub(third) / (REQUESTS / 4);
    println!("{third} bytes, then {last}: {per_request} bytes per request");
    assert!(per_request < 64, "{per_request} bytes per request: {third}, then {last}");
}
