//! Service budgets (spec/seeds.md C7): set aside before work, settled after it, given back by failures, kept over a restart.

use super::fixture::{Hosted, buy, caller, open, server, store};
use serde_json::json;
use traderharness_contract::FailureClass;
use traderharness_serve::config::{BudgetConfig, CallerConfig, CallerLimits, Costs};

fn with_units(units: u64) -> CallerConfig {
    let costs = Costs { read: 6, compute: 6, mutation: 6, financial: 6 };
    CallerConfig { budget: Some(BudgetConfig { units, refill_per_minute: 0, costs }), ..caller("alice") }
}

#[test]
fn a_success_costs_a_failure_does_not_and_an_answer_given_again_does_not() {
    let hosted = Hosted::with(with_units(12), None);
    hosted.open_the_market();
    hosted
        .call(
            "place_order",
            json!({"stock_code": "600001", "action": "sell", "quantity": 100, "reasoning": "None is held."}),
            "f",
        )
        .unwrap_err();
    hosted.call("get_portfolio", json!({}), "k1").unwrap();
    for _ in 0..5 {
        assert!(hosted.call("get_portfolio", json!({}), "k1").unwrap().replayed);
    }
    hosted.call("place_order", buy("600001"), "k2").unwrap();
    let refused = hosted.call("get_portfolio", json!({}), "k3").unwrap_err();
    assert_eq!((refused.class, refused.status), (FailureClass::BudgetExhausted, 429));
    assert_eq!(refused.details, json!({"units": 6, "available": 0}));
    assert_eq!(hosted.house.metrics().units, 12);
}

// spec/seeds.md C7: budget 10, two concurrent calls of 6: one runs, and nothing is asked for the other
#[test]
fn concurrent_calls_do_not_overspend() {
    let hosted = Hosted::with(with_units(10), None);
    let records = hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap().len();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let hosted = &hosted;
        let calls: Vec<_> =
            (0..8).map(|n| scope.spawn(move || hosted.call("get_portfolio", json!({}), &format!("k{n}")))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 1);
    let after = hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap().len();
    assert_eq!(after - records, 2, "one call and one result");
}

#[test]
fn what_was_spent_stays_spent_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = store();
    let config = || server(&store, false, vec![with_units(10)]);
    {
        let hosted = Hosted::over(open(&store, config(), Some(folder.path())), "alice");
        hosted.call("get_portfolio", json!({}), "k1").unwrap();
    }
    let house = open(&store, config(), Some(folder.path()));
    let caller = house.local_caller("alice").unwrap();
    let session = house.sessions(&caller).unwrap()[0].session_id.clone();
    let hosted = Hosted { house, caller, session };
    assert!(hosted.call("get_portfolio", json!({}), "k1").unwrap().replayed);
    assert_eq!(hosted.call("get_portfolio", json!({}), "k2").unwrap_err().details["available"], 4);
}

#[test]
fn a_caller_has_only_so_many_open_sessions() {
    let limits = CallerLimits { sessions: 1, ..CallerLimits::default() };
    let hosted = Hosted::with(CallerConfig { limits, ..caller("alice") }, None);
    let request = traderharness_serve::SessionRequest::default();
    let refused = hosted.house.create_session(&hosted.caller, &request, "second").unwrap_err();
    assert_eq!((refused.class, refused.code.as_str()), (FailureClass::BudgetExhausted, "too_many_sessions"));
    hosted.house.close_session(&hosted.caller, &hosted.session, "close").unwrap();
    assert!(hosted.house.create_session(&hosted.caller, &request, "second").is_ok());
}

#[test]
fn the_audit_log_names_who_did_what_and_holds_no_secret() {
    let hosted = Hosted::with(with_units(100), None);
    let key = "a-key-that-nobody-may-read";
    hosted.call("get_portfolio", json!({}), key).unwrap();
    hosted.call("get_portfolio", json!({}), key).unwrap();
    hosted.call("no_such_tool", json!({"secret": "sk-123456789012345678901234"}), "k2").unwrap_err();
    let rows = hosted.house.audit(0, 100).unwrap();
    let shown = serde_json::to_string(&rows).unwrap();
    assert!(!shown.contains(key) && !shown.contains("sk-1234") && !shown.contains("no_such_tool"), "{shown}");
    let line: Vec<String> = rows
        .iter()
        .map(|r| format!("{} {} {}", r["capability"].as_str().unwrap(), r["class"].as_str().unwrap(), r["units"]))
        .collect();
    assert_eq!(
        line,
        [
            "session.create OK 0",
            "portfolio.get_portfolio OK 6",
            "portfolio.get_portfolio REPLAYED 0",
            "unknown UNSUPPORTED_CAPABILITY 0"
        ]
    );
    assert_eq!(rows[1]["key_digest"].as_str().unwrap().len(), 16);
    assert!(hosted.house.audit(rows.len() as u64, 10).unwrap().is_empty());
}
