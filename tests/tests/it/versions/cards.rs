//! Decision cards of the versions: what v3 asks for opens a position under v3, and a version without cards takes no notice of one.

use super::world::{Kept, days, session};
use serde_json::{Value, json};
use traderharness_contract::version::Version;
use traderharness_harness::{Card, Contract, RawArguments, Session};
use traderharness_market::Code;
use traderharness_tests::market::CODES;

/// The card of 22 fields.
fn card(evidence: &str) -> Value {
    json!({
        "decision": "trade", "mode": "leader_attack", "theme": "t", "theme_logic": "l", "text_evidence_ids": [evidence],
        "business_fit": "b", "sector_state": "emerging_leading", "sector_confirmation": "s", "candidate_role": "true_leader",
        "leadership_comparison": "c", "best_expression_reason": "r", "candidate_rank": "best_expression",
        "stronger_candidate_status": "none_identified", "execution_compromise": "none", "capacity_liquidity": "q",
        "price_volume_confirmation": "p", "market_stage": "confirmation", "extension_assessment": "acceptable",
        "counter_evidence": "x", "why_now": "w", "abstention_case": "a", "invalidation": "i"
    })
}

fn call(session: &mut Session, tool: &str, args: Value) -> Value {
    session.begin_message();
    session.call(tool, RawArguments::Value(args)).expect("a session that goes on").envelope.0
}

/// A session that looked up what a card must rest on, the visible code, and an evidence id.
fn prepared(version: Version) -> (Session, String, String) {
    let allowed_tools: Vec<String> = [
        "get_announcement_evidence",
        "get_stock_info",
        "get_business_segments",
        "get_valuation",
        "get_kline",
        "get_stock_price",
        "get_news",
    ]
    .map(str::to_owned)
    .into();
    let asks = Card { id: "cards".into(), require_decision_card: true, allowed_tools, ..Card::default() };
    let mut session = session(&Contract::of(version), &asks, true, &Kept::default());
    session.start_day(days()[0]).expect("a trading day");
    session.advance().expect("a point");
    let security = session.view().find(Code::parse(CODES[0]).expect("a code")).expect("a security");
    let code = session.mask().code(security).to_owned();
    for tool in ["get_stock_info", "get_business_segments", "get_valuation", "get_kline", "get_stock_price"] {
        assert_eq!(call(&mut session, tool, json!({ "stock_code": code }))["success"], true, "{tool}");
    }
    let news = call(&mut session, "get_news", json!({ "days": 5 }));
    let evidence = news["news"][0]["evidence_id"].as_str().expect("an evidence id").to_owned();
    (session, code, evidence)
}

fn order(code: &str, card: Value) -> Value {
    json!({ "action": "buy", "stock_code": code, "quantity": "100", "reasoning": "r", "decision_card": card })
}

// spec/versions.md: v3 has the card of 22 fields, without entry_setup
#[test]
fn the_card_of_the_third_version_opens_a_position_there() {
    let (mut session, code, evidence) = prepared(Version::V3);
    let mut short = card(&evidence);
    short.as_object_mut().expect("an object").shift_remove("why_now");
    assert_eq!(call(&mut session, "place_order", order(&code, short))["success"], false);
    let bought = call(&mut session, "place_order", order(&code, card(&evidence)));
    assert_eq!(bought["success"], true, "{bought}");
    // Without the setup, a later version asks for it.
    let (mut session, code, evidence) = prepared(Version::V4);
    let refused = call(&mut session, "place_order", order(&code, card(&evidence)));
    assert_eq!(refused["success"], false);
    assert!(refused["error"].as_str().expect("words").contains("entry_setup"), "{refused}");
}

#[test]
fn a_version_without_cards_takes_no_notice_of_one() {
    for version in [Version::V1, Version::V2] {
        let (mut session, code, _) = prepared(version);
        let bought = call(&mut session, "place_order", order(&code, json!({ "decision": 7 })));
        assert_eq!(bought["success"], true, "{version}: {bought}");
    }
}
