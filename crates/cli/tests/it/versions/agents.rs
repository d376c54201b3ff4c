//! Cards that ask for more than the plain day, under each early version in real processes: a committee, plans and decision cards. Each is
//! recorded, replays with every tool run again, tells nothing of what it hides, and comes out the same when it is killed and goes on.

use super::{DAY, EARLY, calls, identical, line};
use crate::command::{lines, repo, run, text};
use crate::resume::{Dice, killed};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Records a day, replays it, and searches what is left.
fn check(version: &str, script: &Path, card: &Path, into: &Path) -> Vec<Value> {
    let key = repo("crates/cli/demo/mask.key");
    let made = run(&line(version, script, card, &key, DAY, into));
    assert_eq!(made.code, 0, "{version}: {}", made.err);
    let replayed = run(&["replay", text(into)]);
    identical(&replayed, calls(&into.join("cassette.jsonl")), version);
    assert!(replayed.out.contains("trajectory records identical."), "{version}: {}", replayed.out);
    let audited = run(&["audit", text(into)]);
    assert_eq!(audited.code, 0, "{version}: {}{}", audited.out, audited.err);
    lines(&into.join("trajectory.jsonl"))
}

pub(super) fn results<'a>(trajectory: &'a [Value], tool: &'a str) -> impl Iterator<Item = &'a Value> {
    trajectory.iter().filter(move |record| record["type"] == "tool_result" && record["tool"] == tool)
}

#[test]
fn a_committee_is_recorded_and_replays_under_each_early_version() {
    let folder = tempfile::tempdir().unwrap();
    let (script, card) = (repo("examples/cards/scripts/leader-rotation.yaml"), repo("examples/cards/leader-rotation.json"));
    for version in EARLY {
        let into = folder.path().join(version);
        let trajectory = check(version, &script, &card, &into);
        let memo = |record: &&Value| record["text"].as_str().is_some_and(|text| text.contains("> Nothing is held"));
        assert_eq!(trajectory.iter().filter(memo).count(), 1, "{version}: the memo of the committee");
        // An advisor has nothing that acts, and the versions say it in their shapes.
        let refused = results(&trajectory, "place_order").next().unwrap();
        assert_eq!(refused["error_code"], "tool_unavailable_in_phase", "{version}");
        let fields: Vec<&String> = refused["result"].as_object().unwrap().keys().collect();
        let expected: &[&str] =
            if matches!(version, "v3" | "v4") { &["success", "error", "error_code"] } else { &["success", "error"] };
        assert_eq!(fields, expected, "{version}");
        let scout = results(&trajectory, "get_narrative_market_overview").next().unwrap();
        assert_eq!(scout["success"], matches!(version, "v3" | "v4"), "{version}: an opt-in tool");
        let completed = results(&trajectory, "complete_phase").any(|record| record["success"] == true);
        assert_eq!(completed, version == "v4", "{version}");
    }
}

/// A card with plan and decision card, and a day in which an order is repaired until the version takes it or has said why not.
fn planned(folder: &Path) -> (PathBuf, PathBuf) {
    let card = folder.join("card.json");
    let body = json!({
        "id": "argued", "name": "Argued", "description": "Every entry is argued.", "require_structured_plan": true,
        "require_decision_card": true, "max_pre_iterations": 5, "max_window_iterations": 6
    });
    std::fs::write(&card, body.to_string()).unwrap();
    let call = |tool: &str, args: Value| json!({ "tool": tool, "args": args });
    let code = json!({ "stock_code": "$000338" });
    let mut order = json!({
        "action": "buy", "stock_code": "$000338", "quantity": "3000", "reasoning": "It holds. Wrong below yesterday's close."
    });
    let bare = order.clone();
    order.as_object_mut().unwrap().extend(
        json!({
            "behavior_hypothesis": "Forced selling has ended.", "confirmation_level": 12.0, "original_structural_stop": "11.4",
            "exit_condition": "A close below yesterday's close.", "expected_holding_days": "5"
        })
        .as_object()
        .unwrap()
        .clone(),
    );
    let mut carded = order.clone();
    carded["decision_card"] = json!({
        "decision": "trade", "mode": "leader_attack", "entry_setup": "trend_continuation", "theme": "t", "theme_logic": "l",
        "text_evidence_ids": ["news-1"], "business_fit": "b", "business_fit_basis": "industry_proxy", "sector_state": "confirmed_leading",
        "sector_confirmation": "s", "candidate_role": "true_leader", "leadership_comparison": "c", "best_expression_reason": "r",
        "candidate_rank": "best_expression", "stronger_candidate_status": "none_identified", "execution_compromise": "none",
        "capacity_liquidity": "q", "price_volume_confirmation": "p", "market_stage": "confirmation",
        "extension_assessment": "acceptable", "counter_evidence": "x", "why_now": "w", "abstention_case": "a", "invalidation": "i"
    });
    let mut half = carded.clone();
    half["decision_card"].as_object_mut().unwrap().remove("theme");
    let looked = ["get_stock_info", "get_kline", "get_fundamentals", "get_valuation"].map(|tool| call(tool, code.clone()));
    let script = json!({ "schema": 1, "days": [{
        "pre_market": [{ "calls": looked }, { "say": "Ready." }],
        "open_1": [
            { "calls": [call("get_stock_price", code.clone())] },
            { "calls": [call("place_order", bare)] },
            { "calls": [call("place_order", half)] },
            { "calls": [call("place_order", carded)] },
            { "calls": [call("place_order", order)] },
        ],
        "open_2": [{ "calls": [call("list_conditional_orders", json!({})), call("get_position", code)] }],
        "close_2": [{ "calls": [call("finish_day", json!({ "summary": "Done." }))] }],
    }] });
    let path = folder.join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    (path, card)
}

#[test]
fn plans_and_decision_cards_are_asked_for_by_the_versions_that_tell_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let (script, card) = planned(folder.path());
    for version in EARLY {
        let trajectory = check(version, &script, &card, &folder.path().join(version));
        let codes: Vec<&str> =
            results(&trajectory, "place_order").map(|record| record["error_code"].as_str().unwrap_or("filled")).collect();
        let expected: &[&str] = if matches!(version, "v1" | "v2") {
            &["structured_plan_missing_fields", "filled", "already_traded_today", "already_traded_today"]
        } else {
            &["structured_plan_missing_fields", "decision_card_missing_fields", "decision_card_correction_retry_limit"]
        };
        assert_eq!(codes, expected, "{version}");
    }
}

// complaint OR-13, DESIGN rule 8, under a version whose calls are reordered and whose results are cut
#[test]
fn a_killed_run_of_an_early_version_goes_on_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let (key, card) = (repo("crates/cli/demo/mask.key"), repo("crates/cli/recordings/card.yaml"));
    let told = std::fs::read_to_string(repo("crates/cli/recordings/v2.yaml")).unwrap();
    let (head, day) = told.split_once("days:\n").unwrap();
    let script = folder.path().join("script.yaml");
    std::fs::write(&script, format!("{head}days:\n{}", day.repeat(4))).unwrap();
    let end = "2020-02-07";
    let bytes = |of: &Path| {
        ["cassette.jsonl", "trajectory.jsonl", "summary.json", "result.json"].map(|name| std::fs::read(of.join(name)).unwrap())
    };
    let whole = folder.path().join("whole");
    let made = run(&line("v2", &script, &card, &key, end, &whole));
    assert_eq!(made.code, 0, "{}", made.err);
    let expected = bytes(&whole);
    let length = expected[1].len() as u64;
    let (mut dice, mut kills) = (Dice(20_200_204), 0);
    for round in 0..4 {
        let into = folder.path().join(format!("killed-{round}"));
        let mut places: Vec<u64> = (0..4).map(|_| dice.below(length)).collect();
        places.sort_unstable();
        for until in places {
            let mut args = line("v2", &script, &card, &key, end, &into);
            if into.is_dir() {
                args.push("--resume");
            }
            if !killed(&args, &into, until) {
                break;
            }
            kills += 1;
        }
        if !into.join("cassette.jsonl").exists() {
            let mut args = line("v2", &script, &card, &key, end, &into);
            args.push("--resume");
            let ended = run(&args);
            assert_eq!(ended.code, 0, "round {round}: {}", ended.err);
        }
        assert!(bytes(&into) == expected, "round {round}: a run that was killed is another one");
        let replayed = run(&["replay", text(&into)]);
        identical(&replayed, calls(&into.join("cassette.jsonl")), "killed");
        assert!(replayed.out.contains("trajectory records identical."), "{}", replayed.out);
    }
    assert!(kills > 4, "only {kills} kills hit a run before its end");
    // Under another version it is another run.
    let other = folder.path().join("other");
    let mut args = line("v2", &script, &card, &key, end, &other);
    assert!(killed(&args, &other, length / 2), "the run ended before it was killed");
    args[2] = "v3";
    args.push("--resume");
    let ran = run(&args);
    assert_ne!(ran.code, 0, "a run under v2 went on under v3: {}", ran.out);
}
