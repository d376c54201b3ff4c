//! The watchlist through a session: visible codes in and out, relative times, the reason as written, limits of the card.

#![allow(clippy::unwrap_used, reason = "a broken expectation must stop its test at once, a skipped one says so")]

use crate::fixture::{Setup, call, code, store, trading_days};
use serde_json::{Value, json};
use traderharness_harness::{Card, Session};
use traderharness_market::{Code, DecisionPoint};

fn alias(session: &Session, real: &str) -> String {
    session.mask().code(session.view().find(Code::parse(real).unwrap()).unwrap()).to_owned()
}

fn add(session: &mut Session, stock_code: &str) -> Value {
    call(session, "add_watchlist", json!({ "stock_code": stock_code, "reason": format!("like {stock_code}") })).envelope.0
}

#[test]
fn codes_are_visible_ones_and_times_relative() {
    let mut session = Setup { masked: true, ..Setup::default() }.at(DecisionPoint::PreMarket);
    let watched = alias(&session, "600001");
    let reason = "600001 is Harbour Tools 0, seen on 2024-04-09";
    let added = call(&mut session, "add_watchlist", json!({ "stock_code": watched, "reason": reason })).envelope.0;
    assert_eq!((&added["stock_code"], &added["reason"]), (&json!(watched), &json!(reason)), "the reason is never rewritten");
    let list = call(&mut session, "get_watchlist", json!({}));
    let entry = list.envelope.0["watchlist"][0].clone();
    assert_eq!((&entry["stock_code"], &entry["reason"]), (&json!(watched), &json!(reason)));
    let time = entry["price_time"].as_str().unwrap();
    assert!(time.starts_with("D-") && time.ends_with(" 15:00"), "{time}");
    assert!(list.envelope.0["as_of"]["day"].as_str().unwrap().starts_with("D-"));
    session.advance().unwrap();
    let entry = call(&mut session, "get_watchlist", json!({})).envelope.0["watchlist"][0].clone();
    assert_eq!((&entry["price"], &entry["price_time"]), (&json!(10.1), &json!("D+0 09:50")));
    let price = call(&mut session, "get_stock_price", json!({ "stock_code": watched })).envelope.0;
    for field in ["price", "price_time", "price_source", "change_pct"] {
        assert_eq!(entry[field], price[field], "{field} agrees with get_stock_price");
    }
}

// spec/tools.md b07, b08
#[test]
fn real_and_incomplete_codes_are_not_watched() {
    let mut session = Setup { masked: true, ..Setup::default() }.at(DecisionPoint::PreMarket);
    for tool in ["add_watchlist", "remove_watchlist"] {
        let real = call(&mut session, tool, json!({ "stock_code": "600001" }));
        assert_eq!(code(&real), "unknown_security");
        assert!(!real.envelope.0["correction"].to_string().contains(&alias(&session, "600001")), "{}", real.text);
        let bare = call(&mut session, tool, json!({ "stock_code": "000001" }));
        assert_eq!(code(&bare), "ambiguous_masked_stock_code");
        let choices = bare.envelope.0["correction"]["retry_argument_choices"].as_array().unwrap().clone();
        assert!(!choices.is_empty());
        if tool == "add_watchlist" {
            assert_eq!(code(&call(&mut session, tool, choices[0].clone())), "success");
        }
    }
    let watched = call(&mut session, "get_watchlist", json!({})).envelope.0;
    assert_eq!(watched["count"], 1);
    let other =
        ["600001", "600002"].iter().map(|c| alias(&session, c)).find(|a| watched["watchlist"][0]["stock_code"] != json!(a));
    let missing = call(&mut session, "remove_watchlist", json!({ "stock_code": other.unwrap() })).envelope.0;
    assert_eq!(missing["error_code"], "watchlist_entry_not_found");
    assert_eq!(missing["correction"]["watched"], json!([watched["watchlist"][0]["stock_code"]]), "visible codes only");
}

#[test]
fn order_and_limit_hold_over_days() {
    let store = store();
    let days = trading_days(&store);
    let card = Card { watchlist_ttl_days: 1, ..Card::builtin() };
    let mut session = Setup { masked: true, card, ..Setup::default() }.session(&store);
    session.start_day(days[0]).unwrap();
    let codes: Vec<String> = ["688001", "000360", "600002"].iter().map(|c| alias(&session, c)).collect();
    for stock_code in &codes {
        assert_eq!(add(&mut session, stock_code)["expires_in_trading_days"], 1);
    }
    let shown = |session: &mut Session| -> Vec<(String, Value)> {
        let list = call(session, "get_watchlist", json!({})).envelope.0;
        let entries = list["watchlist"].as_array().unwrap().clone();
        entries.iter().map(|e| (e["stock_code"].as_str().unwrap().to_owned(), e["expires_in_trading_days"].clone())).collect()
    };
    let expected = |codes: &[String], left: &[u32]| -> Vec<(String, Value)> {
        codes.iter().zip(left).map(|(code, n)| (code.clone(), json!(n))).collect()
    };
    assert_eq!(shown(&mut session), expected(&codes, &[1, 1, 1]));
    session.start_day(days[1]).unwrap();
    assert_eq!(shown(&mut session), expected(&codes, &[0, 0, 0]));
    add(&mut session, &codes[1]);
    assert_eq!(shown(&mut session), expected(&codes, &[0, 1, 0]));
    session.start_day(days[2]).unwrap();
    assert_eq!(shown(&mut session), expected(&codes[1..2], &[0]));
}

#[test]
fn code_cannot_run_in_this_build() {
    let mut session = Setup { masked: true, ..Setup::default() }.at(DecisionPoint::PreMarket);
    let report = call(&mut session, "execute_code", json!({ "code": "result = 1" }));
    assert_eq!((code(&report), &report.envelope.0["retryable"]), ("environment_unavailable", &json!(false)));
    assert!(session.phase().pending().is_empty(), "nothing the agent could repair stays open");
}
