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
    assert_eq!(refused["error_code"], "decision_card_missing_fields");
    assert!(refused["error"].as_str().expect("words").contains("entry_setup"), "{refused}");
}

/// Sends an opening order with a card changed in one way; the code and the words that come back.
fn refused(version: Version, change: &dyn Fn(&mut Value)) -> (String, String) {
    let (mut session, code, evidence) = prepared(version);
    let mut sent = card(&evidence);
    if version >= Version::V4 {
        sent["entry_setup"] = "trend_continuation".into();
        sent["business_fit_basis"] = "industry_proxy".into();
    }
    change(&mut sent);
    let answer = call(&mut session, "place_order", order(&code, sent));
    let told = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    (told("error_code"), told("error"))
}

// spec/peer.md, place_order: the codes of decision cards; DESIGN rule 6
#[test]
fn what_is_wrong_with_a_card_has_the_codes_of_cards() {
    let check = |change: &dyn Fn(&mut Value), code: &str, says: &[&str], silent: &[&str]| {
        for version in [Version::V3, Version::V4] {
            let (found, words) = refused(version, change);
            assert_eq!(found, code, "{version}: {words}");
            for word in says {
                assert!(words.contains(word), "{version}: `{word}` is not in {words}");
            }
            for word in silent {
                assert!(!words.contains(word), "{version}: `{word}` is in {words}");
            }
        }
    };
    let (missing, wrong) = ("decision_card_missing_fields", "decision_card_semantic_rejection");
    let without = |names: &'static [&'static str]| {
        move |card: &mut Value| names.iter().for_each(|name| _ = card.as_object_mut().expect("an object").shift_remove(*name))
    };
    check(&without(&["why_now", "theme"]), missing, &["theme, why_now."], &["mode"]);
    check(&|card| card["theme"] = " ".into(), missing, &["theme."], &["mode"]);
    check(&|card| card["theme"] = json!({ "a": [1] }), missing, &["theme."], &["mode"]);
    check(&|card| card["text_evidence_ids"] = json!([]), missing, &["text_evidence_ids."], &["theme"]);
    check(&|card| card["text_evidence_ids"] = json!([{}]), missing, &["text_evidence_ids."], &["theme"]);
    check(&|card| card["mode"] = Value::Null, missing, &["mode."], &["theme"]);
    check(&|card| *card = "trade".into(), missing, &["decision, mode", "invalidation."], &[]);
    check(&|card| *card = json!([]), missing, &["decision, mode", "invalidation."], &[]);
    check(&|card| card["mode"] = "hope".into(), wrong, &["mode is `hope`", "`leader_attack` or `high_low_rotation`"], &["theme"]);
    check(&|card| card["mode"] = "y".repeat(500).into(), wrong, &["mode is `yyy"], &[&"y".repeat(100)]);
    // What is missing is said first; a word of the card that is a word, but not this one, is the handler's to refuse.
    check(&|card| (card["mode"], card["why_now"]) = ("hope".into(), "".into()), missing, &["why_now."], &["mode"]);
    check(&|card| card["decision"] = "abstain".into(), wrong, &["decision is `abstain`"], &[]);
    // A fault beside the card is one of the arguments.
    let (mut session, code, _) = prepared(Version::V3);
    let mut both = order(&code, json!({}));
    both["quantity"] = "many".into();
    assert_eq!(call(&mut session, "place_order", both)["error_code"], "invalid_tool_arguments");
    // The card of a version that does not have these fields is not asked for them.
    let (_, words) = refused(Version::V3, &|card| *card = json!({}));
    assert!(!words.contains("entry_setup") && !words.contains("business_fit_basis"), "{words}");
    let (_, words) = refused(Version::V4, &|card| *card = json!({}));
    assert!(words.contains("entry_setup") && words.contains("business_fit_basis"), "{words}");
}

// engine E10.8 under the early versions: the card that was corrected stated what it stated
#[test]
fn a_card_that_does_not_fit_is_corrected_and_binds_what_it_stated() {
    let half = |evidence: &str, change: &dyn Fn(&mut Value)| {
        let mut half = card(evidence);
        half["why_now"] = "".into();
        change(&mut half);
        half
    };
    let (mut session, code, evidence) = prepared(Version::V3);
    let refused = call(&mut session, "place_order", order(&code, half(&evidence, &|_| {})));
    assert_eq!(refused["error_code"], "decision_card_missing_fields");
    let mut other = card(&evidence);
    other["theme"] = "another".into();
    let changed = call(&mut session, "place_order", order(&code, other));
    assert_eq!(changed["error_code"], "decision_card_correction_changed_semantics", "{changed}");
    let (mut session, code, evidence) = prepared(Version::V3);
    call(&mut session, "place_order", order(&code, half(&evidence, &|_| {})));
    let bought = call(&mut session, "place_order", order(&code, card(&evidence)));
    assert_eq!(bought["success"], true, "{bought}");
    // Who holds it needs no card, so a broken one is nothing to an order that opens nothing.
    let mut sell = order(&code, json!({ "decision": 7 }));
    sell["action"] = "sell".into();
    let locked = call(&mut session, "place_order", sell);
    assert_eq!(locked["error_code"], "already_traded_today", "{locked}");
}

#[test]
fn a_version_without_cards_takes_no_notice_of_one() {
    for version in [Version::V1, Version::V2] {
        let (mut session, code, _) = prepared(version);
        let bought = call(&mut session, "place_order", order(&code, json!({ "decision": 7 })));
        assert_eq!(bought["success"], true, "{version}: {bought}");
    }
}
