//! Requests that come to nothing cost their caller nothing: what they leave behind is bounded, and who sends nothing else is held up.

use super::fixture::{Hosted, buy, caller, open, server, store};
use serde_json::{Value, json};
use traderharness_contract::FailureClass;
use traderharness_serve::caller::digest_of;
use traderharness_serve::config::{CallerConfig, CallerLimits};
use traderharness_serve::{Invocation, SessionRequest, Watch};

const TOKEN: &str = "th_alice_0000000000000000000000000000000000";

/// The audit log as `capability class units x count`.
fn lines(hosted: &Hosted) -> Vec<String> {
    let line = |row: &Value| {
        let word = |key: &str| row[key].as_str().unwrap().to_owned();
        format!("{} {} {} x{}", word("capability"), word("class"), row["units"], row["count"])
    };
    hosted.house.audit(0, 1_000).unwrap().iter().map(line).collect()
}

#[test]
fn a_refusal_is_one_line_of_the_log_and_given_again_it_is_another() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let sell = json!({"stock_code": "600001", "action": "sell", "quantity": 100, "reasoning": "None of it is held."});
    for _ in 0..3 {
        hosted.call("place_order", sell.clone(), "k1").unwrap_err();
    }
    hosted.call("get_portfolio", json!({}), "k2").unwrap();
    hosted.call("get_portfolio", json!({}), "k2").unwrap();
    assert_eq!(
        lines(&hosted),
        [
            "session.create OK 0 x1",
            "session.step OK 0 x1",
            "execution.place_order FORBIDDEN 0 x1",
            "portfolio.get_portfolio OK 0 x1",
            "execution.place_order REPLAYED 0 x2",
            "portfolio.get_portfolio REPLAYED 0 x1",
        ]
    );
    let metrics = hosted.house.metrics();
    assert_eq!((metrics.replayed, metrics.refusals["FORBIDDEN"]), (3, 1));
}

#[test]
fn faults_leave_a_bounded_mark() {
    let faults = if crate::is_deep() { 100_000 } else { 2_000 };
    let folder = tempfile::tempdir().unwrap();
    let hosted = Hosted::with(caller("alice"), Some(folder.path()));
    let (house, alice) = (&hosted.house, &hosted.caller);
    hosted.house.audit(0, 1).unwrap();
    let bytes = || house.metrics().keep_bytes;
    let before = bytes();
    for n in 0..faults / 8 {
        let elsewhere = Invocation { session_id: Some(format!("ses_{n}")), ..hosted.invocation("get_portfolio", json!({})) };
        let unknown = SessionRequest { profile: Some(format!("p{n}")), ..SessionRequest::default() };
        house.invoke(alice, &elsewhere, &format!("k{n}"), &Watch::default()).unwrap_err();
        hosted.call(&format!("tool_{n}"), json!({}), "k").unwrap_err();
        hosted.call("get_portfolio", json!({"x": "a".repeat(33_000)}), "k").unwrap_err();
        house.create_session(alice, &unknown, "k").unwrap_err();
        house.step(alice, &format!("ses_{n}"), "k").unwrap_err();
        house.session(alice, &format!("ses_{n}")).unwrap_err();
        house.job(alice, &format!("job_{n}")).unwrap_err();
        house.authenticate(Some(&format!("th_{n}"))).unwrap_err();
    }
    let log = house.audit(0, 1_000).unwrap();
    let counted: u64 = log.iter().filter(|row| row["class"] != "OK").map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, faults / 8 * 8, "every one of them is counted");
    assert!(log.len() < 20, "{} lines", log.len());
    assert!(log.iter().any(|row| row["caller"].is_null() && row["capability"] == "authenticate"));
    assert!(bytes() - before < 64 << 10, "{} bytes", bytes() - before);
}

// What does not fit is kept with its session, as in a loop; a session does not grow for ever by it.
#[test]
fn calls_in_a_row_that_do_not_fit_are_kept_up_to_a_bound() {
    let hosted = Hosted::new();
    let kept = || {
        let mut records = 0;
        loop {
            let page = hosted.house.records(&hosted.caller, &hosted.session, records, 1_000).unwrap().len() as u64;
            records += page;
            if page == 0 {
                return records;
            }
        }
    };
    let unfit = |n: u32| hosted.call("get_stock_price", json!({"stock_code": n}), "k").unwrap_err();
    for n in 0..200 {
        assert_eq!(unfit(n).code, "invalid_tool_arguments");
    }
    let full = kept();
    for n in 200..210 {
        let refused = unfit(n);
        assert_eq!((refused.class, refused.status, refused.code.as_str()), (FailureClass::InvalidInput, 422, "too_many_unfit"));
    }
    assert_eq!(kept(), full);
    hosted.call("get_stock_price", json!({"stock_code": "600001"}), "fits").unwrap();
    assert_eq!(unfit(210).code, "invalid_tool_arguments");
}

fn limited(faults: u32) -> Hosted {
    let limits = CallerLimits { faults, faults_per_minute: 1, ..CallerLimits::default() };
    let store = store();
    let alice = CallerConfig { limits, token_sha256: Some(digest_of(TOKEN)), ..caller("alice") };
    Hosted::over(open(&store, server(&store, false, vec![alice, caller("bob")]), None), "alice")
}

#[test]
fn who_sends_faults_alone_is_told_when_to_come_again() {
    let hosted = limited(5);
    for n in 0..5 {
        assert!(hosted.house.authenticate(Some(TOKEN)).is_ok(), "{n}");
        hosted.house.session(&hosted.caller, "ses_nobody").unwrap_err();
    }
    let refused = hosted.house.authenticate(Some(TOKEN)).unwrap_err();
    assert_eq!(
        (refused.class, refused.status, refused.code.as_str(), refused.retryable),
        (FailureClass::BudgetExhausted, 429, "too_many_faults", true)
    );
    assert!(refused.retry_after.is_some_and(|seconds| (1..=60).contains(&seconds)), "{refused:?}");
    assert_eq!(hosted.house.authenticate(Some("th_nobody")).unwrap_err().status, 401, "strangers have a limit of their own");
}

// An agent that errs as often as not works on.
#[test]
fn a_call_that_succeeds_takes_a_fault_back() {
    let hosted = limited(5);
    hosted.open_the_market();
    for n in 0..20 {
        hosted.call("get_stock_price", json!({"stock_code": "999999"}), &format!("bad-{n}")).unwrap_err();
        hosted.call("get_stock_price", json!({"stock_code": "600001"}), &format!("good-{n}")).unwrap();
        assert!(hosted.house.authenticate(Some(TOKEN)).is_ok(), "{n}");
    }
    // What the market refuses is a fault of the order, and repeating it is none.
    let sell = json!({"stock_code": "600001", "action": "sell", "quantity": 100, "reasoning": "None of it is held."});
    for _ in 0..10 {
        hosted.call("place_order", sell.clone(), "one").unwrap_err();
    }
    assert!(hosted.house.authenticate(Some(TOKEN)).is_ok());
    hosted.call("place_order", buy("600001"), "order").unwrap();
}

#[test]
fn tokens_that_are_nobodys_are_slowed_and_nobody_else() {
    let hosted = limited(5);
    let statuses: Vec<u16> = (0..700).map(|n| hosted.house.authenticate(Some(&format!("th_{n}"))).unwrap_err().status).collect();
    assert!(statuses[..600].iter().all(|status| *status == 401));
    assert_eq!(statuses[699], 429);
    assert!(hosted.house.authenticate(None).unwrap_err().retry_after.is_some());
    assert!(hosted.house.authenticate(Some(TOKEN)).is_ok());
}
