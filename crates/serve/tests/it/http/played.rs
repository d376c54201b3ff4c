//! Days that a client plays over HTTP.

use super::client::{DESK, STOCK, Served, new_key};
use serde_json::{Value, json};

#[test]
fn a_window_is_played_to_its_end() {
    let served = Served::new();
    let made = served.post(DESK, "/v1/sessions", &json!({ "profile": "day" }));
    let state = made.json();
    let id = state["session_id"].as_str().unwrap();
    assert_eq!(made.status, 201);
    assert_eq!(made.header("location"), Some(format!("/v1/sessions/{id}").as_str()));
    assert_eq!((&state["point"], &state["day"], &state["day_index"]), (&json!("pre_market"), &json!("2020-02-04"), &json!(1)));
    // spec/versions.md: how many days there are is never said.
    assert!(state.get("days").is_none(), "{state}");

    let texts = served.get(DESK, &format!("/v1/sessions/{id}/brief")).json();
    assert!(texts["texts"].as_array().unwrap().iter().any(|text| text["role"] == "system"), "{texts}");
    let offered = served.get(DESK, &format!("/v1/sessions/{id}/tools")).json();
    assert!(offered["tools"].as_array().unwrap().iter().any(|tool| tool["tool"] == "complete_phase"), "{offered}");

    // Completed by the tool.
    let kline = served.call(DESK, id, "market.get_kline", json!({ "stock_code": STOCK }));
    assert_eq!(kline.status, 200, "{}", kline.text());
    assert_eq!(kline.json()["status"], "complete");
    let done =
        served.call(DESK, id, "complete_phase", json!({ "decision": "no_trade", "summary": "Nothing to do before the open." }));
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(served.get(DESK, &format!("/v1/sessions/{id}")).json()["point"], "open_1");

    let order = json!({ "stock_code": STOCK, "action": "buy", "quantity": 100, "reasoning": "A first position." });
    let bought = served.call(DESK, id, "place_order", order);
    assert_eq!(bought.status, 200, "{}", bought.text());
    let account = served.get(DESK, &format!("/v1/sessions/{id}/account")).json();
    assert!(account.to_string().contains(STOCK), "{account}");

    // Moved on without a completion.
    let mut points = Vec::new();
    for _ in 0..20 {
        let state = served.post(DESK, &format!("/v1/sessions/{id}/step"), &json!({})).json();
        points.push(format!("{} {}", state["day"].as_str().unwrap_or(""), state["point"].as_str().unwrap_or("")));
        if state["finished"] == true {
            break;
        }
    }
    assert!(points.contains(&"2020-02-05 pre_market".to_owned()), "{points:?}");
    assert_eq!(served.get(DESK, &format!("/v1/sessions/{id}")).json()["state"], "finished", "{points:?}");
    let late = served.call(
        DESK,
        id,
        "place_order",
        json!({ "stock_code": STOCK, "action": "sell", "quantity": 100, "reasoning": "Late." }),
    );
    assert!(late.status >= 400, "{}", late.text());

    // Everything of it can be read again, page by page.
    let (mut from, mut records) = (0, Vec::new());
    loop {
        let page = served.get(DESK, &format!("/v1/sessions/{id}/records?from={from}&limit=7")).json();
        records.extend(page["records"].as_array().unwrap().clone());
        match page["next"].as_u64() {
            Some(next) => from = next,
            None => break,
        }
    }
    let whole = served.get(DESK, &format!("/v1/sessions/{id}/records?limit=500")).json();
    assert_eq!(whole["records"], Value::Array(records));

    let closed = served.post(DESK, &format!("/v1/sessions/{id}/close"), &json!({}));
    assert_eq!((closed.status, closed.json()["finished"].as_bool()), (200, Some(true)));
}

// spec/seeds.md C3.3, complaint OR-13
#[test]
fn a_key_gets_its_answer_again_and_nothing_is_done_twice() {
    let served = Served::new();
    let id = served.session(DESK);
    served.post(DESK, &format!("/v1/sessions/{id}/step"), &json!({}));
    let order = |quantity: u32| json!({ "session_id": id, "tool": "place_order", "input": { "stock_code": STOCK, "action": "buy", "quantity": quantity, "reasoning": "Once." } });
    let key = new_key();
    let first = served.keyed(DESK, "/v1/tool-invocations", &key, &order(100));
    assert_eq!(first.status, 200, "{}", first.text());
    let account = served.get(DESK, &format!("/v1/sessions/{id}/account")).json();
    for _ in 0..3 {
        let again = served.keyed(DESK, "/v1/tool-invocations", &key, &order(100));
        assert_eq!((again.status, &again.body), (200, &first.body));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
    }
    let other = served.keyed(DESK, "/v1/tool-invocations", &key, &order(200));
    assert_eq!((other.status, other.json()["error_code"].as_str().unwrap()), (409, "IDEMPOTENCY_CONFLICT"));
    assert_eq!(served.get(DESK, &format!("/v1/sessions/{id}/account")).json(), account);

    // What the tool refused is kept under its key like a result, and says so.
    let key = new_key();
    let body = json!({ "session_id": id, "tool": "get_stock_price", "input": { "stock_code": "999999" } });
    let ask = || served.keyed(DESK, "/v1/tool-invocations", &key, &body);
    let (first, again) = (ask(), ask());
    assert_eq!((first.status, first.header("idempotent-replayed")), (422, None), "{}", first.text());
    assert_eq!((again.status, again.header("idempotent-replayed")), (422, Some("true")));
    assert_eq!(again.body, first.body);

    let key = new_key();
    let steps: Vec<Vec<u8>> =
        (0..3).map(|_| served.keyed(DESK, &format!("/v1/sessions/{id}/step"), &key, &json!({})).body).collect();
    assert!(steps.iter().all(|step| *step == steps[0]));
    let key = new_key();
    let made: Vec<Value> = (0..3).map(|_| served.keyed(DESK, "/v1/sessions", &key, &json!({})).json()).collect();
    assert!(made.iter().all(|session| session["session_id"] == made[0]["session_id"]));
    assert_eq!(served.get(DESK, "/v1/sessions").json()["sessions"].as_array().unwrap().len(), 2);
}

// complaint RG-3
#[test]
fn a_long_call_is_answered_with_a_job_first() {
    let served = Served::new();
    let id = served.session(DESK);
    let body = json!({ "session_id": id, "tool": "get_kline", "input": { "stock_code": STOCK }, "job": true });
    let accepted = served.post(DESK, "/v1/tool-invocations", &body);
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    let place = accepted.header("location").unwrap().to_owned();
    assert!(accepted.header("retry-after").is_some());
    assert_eq!(accepted.json()["status_url"], place.as_str());
    let done = (0..2_000).find_map(|_| {
        let job = served.get(DESK, &place).json();
        job.get("result").cloned()
    });
    assert_eq!(done.expect("the job ends")["status"], "complete");
    assert_eq!(served.get(super::client::OTHER, &place).status, 404, "a job is its caller's alone");
}

#[test]
fn the_registry_reads_alike_and_the_metrics_name_nobody() {
    let served = Served::new();
    let (one, two) = (served.get(DESK, "/v1/research-registry"), served.get(DESK, "/v1/research-registry"));
    assert_eq!((one.status, &one.body), (200, &two.body));
    let id = served.session(DESK);
    served.get(DESK, &format!("/v1/sessions/{id}"));
    served.get("wrong", "/v1/tools");
    let metrics = served.get(DESK, "/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain"));
    let text = metrics.text();
    assert!(text.contains("traderharness_requests_total{route=\"/v1/sessions/{id}\",method=\"GET\",status=\"200\"} 1"), "{text}");
    assert!(text.contains("traderharness_requests_total{route=\"/v1/tools\",method=\"GET\",status=\"401\"} 1"), "{text}");
    assert!(!text.contains("desk") && !text.contains(&id), "{text}");
}
