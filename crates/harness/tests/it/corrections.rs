//! Corrected orders: what a correction turn offers, what it may not change, and how many there are (engine E10.8).

use crate::fixture::{Setup, call, code, store, trading_days};
use crate::phases::{calls, completes, play, says};
use serde_json::{Value, json};
use traderharness_harness::correction::{CORRECTIONS_WITH_PROTOCOL, CORRECTIONS_WITHOUT_PROTOCOL};
use traderharness_harness::{Card, Session};
use traderharness_market::DecisionPoint;
use traderharness_tools_exec::decision_card::{LOCKED_FIELDS, REQUIRED_TOOLS};

fn carded(protocol: bool) -> Card {
    Card { require_decision_card: true, require_phase_completion: protocol, ..Card::builtin() }
}

fn card() -> Value {
    json!({
        "decision": "trade", "mode": "leader_attack", "entry_setup": "trend_continuation", "theme": "t", "theme_logic": "l",
        "text_evidence_ids": ["news-unseen"], "business_fit": "b", "business_fit_basis": "industry_proxy",
        "sector_state": "confirmed_leading", "sector_confirmation": "s", "candidate_role": "true_leader",
        "leadership_comparison": "c", "best_expression_reason": "r", "candidate_rank": "best_expression",
        "stronger_candidate_status": "none_identified", "execution_compromise": "none", "capacity_liquidity": "q",
        "price_volume_confirmation": "p", "market_stage": "confirmation", "extension_assessment": "acceptable",
        "counter_evidence": "x", "why_now": "w", "abstention_case": "a", "invalidation": "i"
    })
}

fn order() -> Value {
    json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r", "decision_card": card() })
}

fn with(changes: &[(&str, Value)]) -> Value {
    let mut order = order();
    for (field, value) in changes {
        match field.strip_prefix("card.") {
            Some(field) => order["decision_card"][field] = value.clone(),
            None => order[*field] = value.clone(),
        }
    }
    order
}

fn offered(session: &Session) -> Vec<&'static str> {
    session.offered().map(|t| t.bound.spec().name).collect()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|t| t["function"]["name"].as_str()).collect()
}

/// A session whose first order cited evidence that nobody returned.
fn faulty(protocol: bool) -> Session {
    let mut session = Setup { card: carded(protocol), ..Setup::default() }.at(DecisionPoint::Open1);
    session.begin_message();
    assert_eq!(code(&call(&mut session, "place_order", order())), "decision_card_unseen_evidence");
    session.begin_message();
    session
}

fn evidence_id(session: &mut Session) -> String {
    let news = call(session, "get_news", json!({})).envelope.0;
    let id = news["news"][0]["evidence_id"].as_str().or(news["items"][0]["evidence_id"].as_str());
    id.unwrap_or_else(|| panic!("{news:#}")).to_owned()
}

#[test]
fn a_correction_turn_offers_the_order_the_missing_tools_and_the_completion() {
    let mut session = Setup { card: carded(true), ..Setup::default() }.at(DecisionPoint::Open1);
    session.begin_message();
    let id = evidence_id(&mut session);
    assert_eq!(code(&call(&mut session, "place_order", order())), "decision_card_unseen_evidence");
    assert_eq!(offered(&session), ["place_order", "complete_phase"]);

    // Another tool is not run, and the refusal says what is offered.
    session.begin_message();
    let refused = call(&mut session, "get_market_overview", json!({}));
    assert_eq!(code(&refused), "tool_unavailable_in_phase");
    assert_eq!(refused.envelope.0["correction"]["available_tools"], json!(["place_order", "complete_phase"]));

    // Repaired in one respect, the order needs results that were not fetched: now those tools are offered too.
    let repaired = with(&[("card.text_evidence_ids", json!([id]))]);
    assert_eq!(code(&call(&mut session, "place_order", repaired.clone())), "decision_card_missing_tool_evidence");
    let mut expected: Vec<&str> = REQUIRED_TOOLS.into_iter().chain(["place_order", "complete_phase"]).collect();
    let mut found = offered(&session);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);

    session.begin_message();
    for tool in REQUIRED_TOOLS {
        let report = call(&mut session, tool, json!({ "stock_code": "600001" }));
        assert_eq!(code(&report), "success", "{tool}: {}", report.text);
    }
    // The words that are not locked may be written anew.
    let mut repaired = repaired;
    repaired["decision_card"]["why_now"] = json!("other words");
    repaired["reasoning"] = json!("other words");
    let filled = call(&mut session, "place_order", repaired);
    assert_eq!(code(&filled), "success", "{}", filled.text);
    session.begin_message();
    assert!(offered(&session).len() > 10, "the correction is over");
    assert!(session.phase().pending().iter().all(|p| p.tool != "place_order"));
}

#[test]
fn a_correction_may_not_change_what_the_order_says() {
    fn check(changes: &[(&str, Value)], expected: &str) {
        let mut session = faulty(true);
        let before = session.account().clone();
        let refused = call(&mut session, "place_order", with(changes));
        assert_eq!(code(&refused), "decision_card_correction_changed_semantics", "{changes:?}");
        assert_eq!(refused.envelope.0["retryable"], false);
        assert_eq!(refused.envelope.0["correction"]["changed_fields"], json!([expected]), "{changes:?}");
        assert_eq!(*session.account(), before);
        // The correction is over, and what was stated still binds.
        session.begin_message();
        assert!(offered(&session).len() > 10);
        let again = call(&mut session, "place_order", with(changes));
        let bound = if changes[0].0 == "stock_code" { "decision_card_unseen_evidence" } else { code(&refused) };
        assert_eq!(code(&again), bound, "{changes:?}");
    }
    check(&[("quantity", json!(200))], "quantity");
    check(&[("stock_code", json!("600002"))], "stock_code");
    let other = |field: &str| match field {
        "decision" => "abstain",
        "mode" => "high_low_rotation",
        "entry_setup" => "leader_pullback",
        "sector_state" => "emerging_leading",
        "candidate_role" => "emerging_leader",
        "candidate_rank" => "weaker_alternative",
        "stronger_candidate_status" => "available",
        "execution_compromise" => "weaker_substitute",
        "market_stage" => "startup",
        "extension_assessment" => "managed_extension",
        _ => "another theme",
    };
    for field in LOCKED_FIELDS {
        check(&[(&format!("card.{field}"), json!(other(field)))], &format!("decision_card.{field}"));
    }
}

#[test]
fn a_field_that_was_blank_may_be_filled() {
    let mut session = Setup { card: carded(true), ..Setup::default() }.at(DecisionPoint::Open1);
    session.begin_message();
    let blank = with(&[("card.theme", json!("  "))]);
    assert_eq!(code(&call(&mut session, "place_order", blank)), "decision_card_missing_fields");
    session.begin_message();
    assert_eq!(code(&call(&mut session, "place_order", order())), "decision_card_unseen_evidence", "the theme is there now");
    session.begin_message();
    let other = with(&[("card.theme", json!("another theme"))]);
    assert_eq!(code(&call(&mut session, "place_order", other)), "decision_card_correction_changed_semantics");
}

#[test]
fn one_order_is_run_per_correction_turn() {
    let mut session = faulty(true);
    assert_eq!(code(&call(&mut session, "place_order", order())), "decision_card_unseen_evidence");
    let second = call(&mut session, "place_order", with(&[("card.why_now", json!("later"))]));
    assert_eq!((code(&second), &second.envelope.0["retryable"]), ("tool_unavailable_in_phase", &json!(false)));
}

#[test]
fn corrections_are_counted_per_day() {
    for (protocol, limit) in [(true, CORRECTIONS_WITH_PROTOCOL), (false, CORRECTIONS_WITHOUT_PROTOCOL)] {
        let mut session = faulty(protocol);
        for n in 1..=limit {
            let report = call(&mut session, "place_order", order());
            let expected = if n < limit { "decision_card_unseen_evidence" } else { "decision_card_correction_retry_limit" };
            assert_eq!(code(&report), expected, "correction {n} of {limit}");
            session.begin_message();
        }
        let last = call(&mut session, "place_order", order());
        assert_eq!((code(&last), &last.envelope.0["retryable"]), ("decision_card_correction_retry_limit", &json!(false)));
        assert_eq!(last.envelope.0["correction"]["last_error_code"], "decision_card_unseen_evidence");
        assert!(offered(&session).len() > 10, "nothing is left to correct");
        // The next decision point does not give new ones; the next day does.
        session.advance().unwrap();
        session.begin_message();
        assert_eq!(code(&call(&mut session, "place_order", order())), "decision_card_correction_retry_limit");
        session.start_day(trading_days(&store())[1]).unwrap();
        session.advance().unwrap();
        session.begin_message();
        assert_eq!(code(&call(&mut session, "place_order", order())), "decision_card_unseen_evidence");
    }
}

#[test]
fn a_new_decision_point_ends_a_correction() {
    let mut session = faulty(true);
    session.advance().unwrap();
    session.begin_message();
    assert!(offered(&session).len() > 10);
    assert_eq!(code(&call(&mut session, "place_order", with(&[("quantity", json!(200))]))), "decision_card_unseen_evidence");
}

#[test]
fn refusals_of_other_kinds_open_no_correction() {
    let mut session = Setup { card: carded(true), ..Setup::default() }.at(DecisionPoint::Open1);
    session.begin_message();
    assert_eq!(code(&call(&mut session, "place_order", with(&[("quantity", json!(150))]))), "invalid_lot");
    let judged = with(&[("card.decision", json!("abstain"))]);
    session.begin_message();
    assert_eq!(code(&call(&mut session, "place_order", judged)), "decision_card_semantic_rejection");
    session.begin_message();
    assert!(offered(&session).len() > 10);
}

// The loop offers what the session offers, and a completion ends it all.
#[test]
fn the_model_sees_the_correction_turn() {
    let mut seen: Vec<Vec<String>> = Vec::new();
    let (session, outcome) = play(carded(true), |request, turn| {
        if turn.point != DecisionPoint::Open1 {
            return completes(turn.point);
        }
        seen.push(names(&request.tools).into_iter().map(str::to_owned).collect());
        match turn.iteration {
            0 => calls(&[("place_order", order())]),
            _ => calls(&[(
                "complete_phase",
                json!({ "decision": "no_trade", "summary": "no such news", "abandon_error_codes": ["decision_card_unseen_evidence"] }),
            )]),
        }
    });
    outcome.unwrap();
    assert!(seen[0].len() > 10);
    assert_eq!(seen[1], ["place_order", "complete_phase"]);
    assert_eq!(seen.len(), 2);
    assert!(session.account().fills().is_empty());
}

// Without the protocol no tool ends a phase: a turn that does nothing for the correction gives it up.
#[test]
fn prose_gives_a_correction_up_where_nothing_else_could() {
    let mut seen: Vec<usize> = Vec::new();
    let card = Card { max_window_iterations: 4, ..carded(false) };
    let (_, outcome) = play(card, |request, turn| {
        if turn.point != DecisionPoint::Open1 {
            return if turn.point == DecisionPoint::Close2 { completes(turn.point) } else { says("waiting") };
        }
        seen.push(request.tools.len());
        if turn.iteration == 0 { calls(&[("place_order", order())]) } else { says("I leave it.") }
    });
    outcome.unwrap();
    assert!(seen[0] > 10 && seen[2] > 10, "{seen:?}");
    assert_eq!(seen[1], 1);
}
