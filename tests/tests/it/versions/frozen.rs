//! What each version tells and offers, as reviewed text. A change of a file of v1-v4 here means that recordings made under them no longer
//! replay.

use super::world::{Kept, days, mask, session};
use serde_json::json;
use std::fmt::Write as _;
use traderharness_contract::version::Version;
use traderharness_harness::card::{Advisor, Committee, Meeting, Memo};
use traderharness_harness::{Card, Contract, RawArguments, brief, prompt};
use traderharness_market::{DecisionPoint, MaskStyle};

pub(super) fn cards() -> [(&'static str, Card); 4] {
    let plain = Card { id: "plain".into(), ..Card::default() };
    [
        ("plain", plain.clone()),
        ("phase protocol", Card { id: "protocol".into(), require_phase_completion: true, ..plain.clone() }),
        (
            "decision card",
            Card {
                id: "cards".into(),
                require_decision_card: true,
                require_structured_plan: true,
                persona: "Patient.".into(),
                risk_profile: "balanced".into(),
                holding_period: "5-20 sessions".into(),
                ..plain.clone()
            },
        ),
        (
            "decision card, phase protocol, opt-in tool",
            Card {
                id: "both".into(),
                require_decision_card: true,
                require_phase_completion: true,
                allowed_tools: vec!["get_kline".into(), "get_announcement_evidence".into()],
                ..plain
            },
        ),
    ]
}

fn advised() -> Card {
    let advisor = Advisor {
        role: "skeptic".into(),
        persona: "Doubt everything.".into(),
        tools: Vec::new(),
        max_iterations: 3,
        model: None,
    };
    let memo = Memo { at: vec![Meeting::PreMarket], ..Memo::default() };
    Card { id: "advised".into(), committee: Some(Committee { advisors: vec![advisor], memo }), ..Card::default() }
}

/// Prompts, offers, briefs and reminders.
pub(super) fn words(contract: &Contract) -> String {
    let mut text = String::new();
    for (what, card) in cards() {
        for masked in [false, true] {
            let config = mask(contract, masked).config().clone();
            let _ = write!(text, "\n=== system prompt: {what}, {}\n", if masked { "masked" } else { "not masked" });
            text.push_str(&prompt::system_under(contract, &card, &config));
            text.push('\n');
        }
        let mut session = session(contract, &card, true, &Kept::default());
        let actions = session.start_day(days()[0]).expect("a trading day");
        let mut offered: Vec<String> = Vec::new();
        for point in DecisionPoint::ALL {
            if point != DecisionPoint::PreMarket {
                session.advance().expect("a point");
            }
            let names: Vec<&str> = session.offered().map(|tool| tool.bound.spec().name).collect();
            if offered != names {
                let _ = write!(text, "\n=== offered from {point} on: {what}\n{}\n", names.join(" "));
                offered = names.into_iter().map(str::to_owned).collect();
            }
            if session.has_protocol() {
                let _ = write!(text, "\n=== protocol at {point}: {what}\n{}\n", prompt::protocol(&session));
            }
            if what == "plain" {
                let brief = if point == DecisionPoint::PreMarket {
                    brief::morning_of(&session, &actions, 7)
                } else {
                    brief::window(&session)
                };
                let _ = write!(text, "\n=== brief at {point}\n{brief}");
            }
        }
    }
    let mut failed = session(contract, &cards()[1].1, true, &Kept::default());
    failed.start_day(days()[0]).expect("a trading day");
    failed.call("get_kline", RawArguments::Value(json!({ "stock_code": "999999" }))).expect("a session that goes on");
    if failed.has_protocol() {
        let _ = write!(text, "\n=== protocol behind a failure\n{}\n", prompt::protocol(&failed));
    }
    let mut other = mask(contract, true).config().clone();
    other.style = if other.style == MaskStyle::Opaque { MaskStyle::Permutation } else { MaskStyle::Opaque };
    let _ = write!(text, "\n=== system prompt: the other mask\n{}\n", prompt::system_under(contract, &cards()[0].1, &other));
    let card = advised();
    let committee = card.committee.as_ref().expect("a committee");
    let config = mask(contract, true).config().clone();
    let _ = write!(text, "\n=== system prompt: with a committee\n{}\n", prompt::system_under(contract, &card, &config));
    let told = prompt::advisor_under(contract, &card, committee, &committee.advisors[0], &config);
    let _ = write!(text, "\n=== system prompt of an advisor\n{told}\n\n=== what the loop says\n");
    use prompt::Reminder as R;
    for which in [R::NoCall, R::SameAnswer, R::NoCallTurns, R::CallInText, R::LastAdvice, R::NoStatement] {
        let _ = writeln!(text, "{}", prompt::reminder(contract, which));
    }
    for (protocol, point) in [
        (true, DecisionPoint::Open1),
        (false, DecisionPoint::Open1),
        (false, DecisionPoint::Close2),
        (true, DecisionPoint::Close2),
    ] {
        let _ = writeln!(text, "{}", prompt::wrap_up(contract, 8, 10, protocol, point));
    }
    let _ = writeln!(text, "{}", prompt::finish_request(contract, 2, Some("finish_day was not called.")));
    let _ = writeln!(text, "{}", prompt::advice(contract, DecisionPoint::Open1));
    let said =
        [prompt::Statement { role: "skeptic", said: Ok("No.") }, prompt::Statement { role: "other", said: Err("nothing") }];
    let _ = writeln!(text, "{}", prompt::memo(contract, DecisionPoint::Open1, &said, 100));
    text
}

/// Every definition that a card with all tools gets, over the day.
pub(super) fn definitions(contract: &Contract) -> String {
    let mut session = session(contract, &traderharness_tests::session::all_tools_card(), true, &Kept::default());
    session.start_day(days()[0]).expect("a trading day");
    let mut seen = session.tool_definitions();
    while session.clock().point != DecisionPoint::Close2 {
        session.advance().expect("a point");
        for definition in session.tool_definitions() {
            if !seen.contains(&definition) {
                seen.push(definition);
            }
        }
    }
    serde_json::to_string_pretty(&json!(seen)).expect("JSON")
}

// spec/versions.md: any byte that changes fails
#[test]
fn every_version_tells_and_offers_what_it_always_did() {
    insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false }, {
        for version in Version::ALL {
            let contract = Contract::of(version);
            let flags = format!("contract {}, flags {:?}\n", contract.name(), contract.flags().numbers());
            insta::assert_snapshot!(
                format!("version-{version}-words"),
                flags + &words(&contract),
                &format!("recordings made under {version} would no longer replay")
            );
            // What v5 offers is held by the snapshots of the contracts.
            if version != Version::V5 {
                insta::assert_snapshot!(
                    format!("version-{version}-tools"),
                    definitions(&contract),
                    &format!("recordings made under {version} would no longer replay")
                );
            }
        }
    });
}

// spec/versions.md, table
#[test]
fn versions_offer_what_the_table_says() {
    let names = |version: Version, card: &Card, point: DecisionPoint| -> Vec<String> {
        let mut session = session(&Contract::of(version), card, false, &Kept::default());
        session.start_day(days()[0]).expect("a trading day");
        while session.clock().point != point {
            session.advance().expect("a point");
        }
        session.tool_definitions().iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
    };
    let has = |list: &[String], tool: &str| list.iter().any(|name| name == tool);
    let [(_, plain), (_, protocol), _, (_, both)] = cards();
    for version in Version::ALL {
        let early = version <= Version::V2;
        let open = names(version, &plain, DecisionPoint::Open1);
        assert_eq!(open.len(), if early { 25 } else { 24 }, "{version}");
        assert_eq!(has(&open, "finish_day"), early, "{version}");
        assert!(has(&names(version, &plain, DecisionPoint::Close2), "finish_day"), "{version}");
        assert_eq!(has(&names(version, &protocol, DecisionPoint::Open1), "complete_phase"), version >= Version::V4, "{version}");
        assert_eq!(has(&names(version, &both, DecisionPoint::Open1), "get_announcement_evidence"), !early, "{version}");
    }
}
