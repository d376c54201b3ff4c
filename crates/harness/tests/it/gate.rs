//! The order gate and unknown outcomes at the level of a session: what is offered, what the model reads, what a second try does.

use crate::fixture::{Memory, Setup, call, code};
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use traderharness_harness::Session;
use traderharness_harness::session::SessionError;
use traderharness_market::{Day, DecisionPoint};
use traderharness_replay::Record;
use traderharness_tools_exec::OrderGate;
use traderharness_tools_exec::gate::{GateHost, Halt, Mandate, Reading, verify};

#[derive(Clone, Default)]
struct Outside {
    halted: Arc<Mutex<bool>>,
    log: Arc<Mutex<String>>,
}

impl GateHost for Outside {
    fn halt(&mut self, _: &str) -> Halt {
        if *self.halted.lock().unwrap() { Halt::Channel } else { Halt::Clear }
    }
    fn trades(&mut self, _: Day) -> Reading {
        Ok(Some(0))
    }
    fn keep_trades(&mut self, _: Day, _: u32) -> io::Result<()> {
        Ok(())
    }
    fn append(&mut self, line: &str) -> io::Result<()> {
        self.log.lock().unwrap().push_str(&format!("{line}\n"));
        Ok(())
    }
}

impl Outside {
    fn halt(&self, on: bool) {
        *self.halted.lock().unwrap() = on;
    }

    fn gate(&self) -> OrderGate {
        let mandate = json!({
            "schema_version": 1,
            "channel": "paper",
            "hard_caps": {
                "account_funding_cny": 1_000_000, "max_order_notional_cny": 5_000, "max_total_exposure_cny": 900_000,
                "max_leverage": 1, "allowed_instruments": ["stock", "st_stock"], "max_trades_per_day": 9
            },
            "universe": { "asset_classes": ["sh_main", "sz_main", "chinext", "star"] },
            "consent": {
                "created_at": "2024-01-01", "expires_at": "2025-01-01", "consent_token_sha256": "0".repeat(64), "account_ref": "a"
            }
        });
        let log = verify(self.log.lock().unwrap().as_bytes()).unwrap();
        OrderGate::open(Mandate::from_value(mandate).unwrap(), Box::new(self.clone()), &log).unwrap()
    }
}

fn buy(code: &str, shares: i64) -> Value {
    json!({ "action": "buy", "stock_code": code, "quantity": shares, "reasoning": "r" })
}

fn keyed(code: &str, key: &str) -> Value {
    json!({ "action": "buy", "stock_code": code, "quantity": 100, "reasoning": "r", "idempotency_key": key })
}

fn offers_orders(session: &Session) -> bool {
    session.offered().any(|t| t.bound.spec().name == "place_order")
}

#[test]
fn every_order_of_a_gated_session_goes_through_the_gate() {
    let outside = Outside::default();
    let mut session = Setup::default().at(DecisionPoint::PreMarket).with_gate(outside.gate());
    let condition = json!({ "operation": "create", "action": "buy", "stock_code": "600002", "quantity": 100, "comparator": "price_lte", "trigger_price": 20.0, "reasoning": "r" });
    assert_eq!(code(&call(&mut session, "manage_conditional_order", condition)), "success");
    outside.halt(true);
    session.advance().unwrap();
    assert_eq!(session.conditions_met().len(), 1);
    let blocked = call(&mut session, "place_order", buy("600001", 100));
    assert_eq!(code(&blocked), "order_gate_halted");
    assert_eq!(blocked.envelope.0["error_family"], "refused");
    assert_eq!(blocked.envelope.0["correction"]["status"], "blocked");
    assert!(session.account().fills().is_empty());
    assert!(session.phase().pending().is_empty(), "a blocked order does not hold the phase up");
    assert_eq!(
        code(&call(
            &mut session,
            "manage_conditional_order",
            json!({ "operation": "cancel", "order_id": "cond-0001", "reasoning": "r" })
        )),
        "success"
    );

    outside.halt(false);
    session.begin_message();
    // 10.10 x 600 = 6,060, above 5,000
    let paused = call(&mut session, "place_order", buy("600001", 600));
    assert_eq!(code(&paused), "order_gate_reauthorization");
    assert_eq!(paused.envelope.0["correction"]["breach"]["overage"], 1_060.0);
    assert_eq!(code(&call(&mut session, "place_order", buy("600001", 100))), "success");
    let log = verify(outside.log.lock().unwrap().as_bytes()).unwrap();
    assert!(log.open_intents.is_empty());
    let kinds: Vec<String> = outside.log.lock().unwrap().lines().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "mandate_loaded",
            "halt_tripped",
            "order_rejected",
            "order_rejected",
            "order_rejected",
            "order_rejected",
            "order_rejected",
            "order_cancelled",
            "halt_cleared",
            "breach",
            "order_intent",
            "order_placed"
        ],
        "four bars met the condition"
    );
}

fn kind(line: &str) -> String {
    let record: Value = serde_json::from_str(line).unwrap();
    record["payload"]["kind"].as_str().unwrap().to_owned()
}

// complaint OR-15: after a restart under a halt, the order tool is not even listed
#[test]
fn a_session_that_opens_halted_offers_no_orders() {
    let outside = Outside::default();
    outside.halt(true);
    let mut session = Setup::default().at(DecisionPoint::Open1).with_gate(outside.gate());
    assert!(!offers_orders(&session));
    assert_eq!(code(&call(&mut session, "place_order", buy("600001", 100))), "order_gate_halted");
    // Lifting it helps the next session.
    outside.halt(false);
    assert!(!offers_orders(&session));
    let session = Setup::default().at(DecisionPoint::Open1).with_gate(outside.gate());
    assert!(offers_orders(&session));
}

// complaint OR-13: the same key gives the first result
#[test]
fn the_same_order_under_the_same_key_is_filled_once() {
    let card = traderharness_harness::Card { one_fill_per_day: false, ..traderharness_harness::Card::builtin() };
    let mut session = Setup { card, ..Setup::default() }.at(DecisionPoint::Open1);
    let first = call(&mut session, "place_order", keyed("600001", "k")).envelope.0;
    session.begin_message();
    let again = call(&mut session, "place_order", keyed("600001", "k")).envelope.0;
    assert_eq!((first["repeated"].clone(), again["repeated"].clone()), (json!(false), json!(true)));
    let strip = |mut v: Value| {
        v.as_object_mut().unwrap().remove("repeated");
        v
    };
    assert_eq!(strip(first), strip(again));
    session.begin_message();
    assert_eq!(code(&call(&mut session, "place_order", keyed("600002", "k"))), "idempotency_conflict");
    assert_eq!(session.account().fills().len(), 1);
}

/// A session whose first order is filled and whose records then cannot be kept; `lost` records of that call are written.
fn unanswered(lost: usize) -> (Session, Memory) {
    let journal = Memory::default();
    let mut session = Setup { journal: Box::new(journal.clone()), ..Setup::default() }.at(DecisionPoint::Open1);
    let written = journal.records.lock().unwrap().len();
    // The call itself is one record; the fill and the result are the next two.
    let failing = Memory { fail_at: Some(written + lost), ..journal.clone() };
    session = session.with_journal(Box::new(failing));
    session.begin_message();
    let args = traderharness_harness::RawArguments::Value(keyed("600001", "k"));
    let fault = session.call("place_order", args).unwrap_err();
    assert!(matches!(fault, SessionError::Journal(_)), "{fault}");
    let session = session.with_journal(Box::new(journal.clone()));
    (session, journal)
}

// complaint OR-13: the handler committed and the answer was lost
#[test]
fn an_order_whose_result_was_not_recorded_blocks_every_other_order() {
    for lost in [1, 2] {
        let (mut session, journal) = unanswered(lost);
        assert_eq!(session.account().fills().len(), 1, "the order was filled");
        session.begin_message();
        for other in [buy("600001", 100), keyed("600001", "new"), buy("600002", 100)] {
            let blocked = call(&mut session, "place_order", other);
            assert_eq!((code(&blocked), &blocked.envelope.0["retryable"]), ("order_outcome_unknown", &json!(false)));
        }
        assert_eq!(code(&call(&mut session, "get_portfolio", json!({}))), "success", "reading is not blocked");
        // Its own key settles it: the first result, recorded with the fill that was lost, and nothing is traded twice.
        session.begin_message();
        let settled = call(&mut session, "place_order", keyed("600001", "k"));
        assert_eq!(settled.envelope.0["repeated"], true);
        let fills = journal.records.lock().unwrap().iter().filter(|r| matches!(r, Record::Fill { .. })).count();
        assert_eq!((session.account().fills().len(), fills), (1, 1));
        session.begin_message();
        assert_eq!(code(&call(&mut session, "place_order", buy("600002", 100))), "success");
    }
}

#[test]
fn an_order_that_was_never_handed_over_is_not_unknown() {
    let (mut session, _) = unanswered(0);
    assert!(session.account().fills().is_empty());
    session.begin_message();
    assert_eq!(code(&call(&mut session, "place_order", keyed("600001", "k"))), "success");
}
