//! Cards: everything wrong is found when the card is read.

use traderharness_harness::{Card, CardError, Toolbox};

fn check(text: &str, says: &str) {
    let fault = Card::from_json(text).map(|_| ()).unwrap_err().to_string();
    assert!(fault.contains(says), "{text}: {fault}");
}

#[test]
fn a_faulty_card_names_its_field() {
    check("{", "cannot be read");
    check(r#"{"id":"a","no_such_field":1}"#, "no_such_field");
    check(r#"{"id":"a b"}"#, "`id`");
    check(r#"{"initial_cash":0}"#, "`initial_cash`");
    check(r#"{"initial_cash":100.005}"#, "`initial_cash`");
    check(r#"{"max_position_pct":101}"#, "`max_position_pct`");
    check(r#"{"participation_pct":-1}"#, "`participation_pct`");
    check(r#"{"max_pre_iterations":0}"#, "`max_pre_iterations`");
    check(r#"{"research_interval_days":5}"#, "no research days");
    check(r#"{"max_positions":0}"#, "`max_positions`");
    check(r#"{"max_positions":"four"}"#, "`max_positions` must be an integer of at least 1");
}

// engine E9: every fault at once, with its path and the closest name
#[test]
fn a_card_that_is_wrong_in_three_places_says_all_three() {
    let text =
        "id: a\nmax_position: 4\nfees: cheap\ncommittee:\n  advisors:\n    - {role: bear, persona: Doubts., tool: [get_news]}\n";
    let fault = Card::from_yaml(text).unwrap_err();
    let CardError::Fields { issues } = &fault else { panic!("{fault:?}") };
    let paths: Vec<&str> = issues.iter().map(|i| i.path.as_str()).collect();
    assert_eq!(paths, ["/committee/advisors/0/tool", "/fees", "/max_position"]);
    let text = fault.to_string();
    assert!(text.contains("did you mean `max_positions`?") && text.contains("did you mean `tools`?"), "{text}");
    assert!(text.contains("`committee.advisors[0].tool`"), "{text}");
}

#[test]
fn json_and_yaml_give_one_card() {
    let yaml = "id: trend\nmax_positions: 3\nmax_position_pct: 12.5\nallowed_tools: [get_kline]\ncommittee:\n  advisors:\n    - {role: bear, persona: Doubts.}\n";
    let card = Card::from_yaml(yaml).unwrap();
    assert_eq!(Card::from_json(&serde_json::to_string(&card).unwrap()).unwrap(), card);
    assert_eq!(card.committee.as_ref().unwrap().memo.max_characters, 1_500);
    let fault = |text: &str| Card::from_yaml(text).unwrap_err().to_string();
    assert!(fault("id: a\nid: b\n").contains("duplicate"), "{}", fault("id: a\nid: b\n"));
    assert!(fault("id: a\nname: !x y\n").contains("tag"));
    assert!(Card::from_json(r#"{"id":"a","id":"b"}"#).unwrap_err().to_string().contains("twice"));
}

#[test]
fn a_card_without_a_committee_is_written_as_before() {
    assert!(!serde_json::to_string(&Card::builtin()).unwrap().contains("committee"));
}

fn committee(advisors: &str) -> Result<Toolbox, String> {
    let card = Card::from_yaml(&format!("id: a\ncommittee:\n  advisors: [{advisors}]\n")).map_err(|e| e.to_string())?;
    Toolbox::new(&card, false).map_err(|e| e.to_string())
}

#[test]
fn advisors_only_read() {
    let refused = |advisors: &str, says: &str| {
        let fault = committee(advisors).unwrap_err();
        assert!(fault.contains(says), "{advisors}: {fault}");
    };
    refused(
        "{role: bull, persona: Buys., tools: [remember, get_kline, place_order]}",
        "`bull` of the card names tools that change something, and advisors only read: place_order, remember",
    );
    refused("{role: bull, persona: Buys., tools: [finish_day]}", "advisors only read: finish_day");
    refused("{role: bull, persona: Buys., tools: [execute_code]}", "advisors only read: execute_code");
    refused("{role: bull, persona: Buys., tools: [zzz, aaa]}", "`bull` of the card names unknown tools: aaa, zzz");
    refused("{role: bull, persona: Buys.}, {role: bull, persona: Sells.}", "`bull` twice");
    refused("{role: \"a b\", persona: Buys.}", "`committee.advisors[0].role`");
    refused("{role: bull, persona: \"\"}", "persona");
    refused("", "`committee.advisors`");
    let toolbox = committee("{role: bull, persona: Buys., tools: [get_news, get_kline]}, {role: bear, persona: Sells.}").unwrap();
    let card = Card::from_yaml("id: a\ncommittee:\n  advisors: [{role: bull, persona: Buys., tools: [get_news, get_kline]}, {role: bear, persona: Sells.}]\n").unwrap();
    let advisors = card.committee.unwrap().advisors;
    let names: Vec<&str> = toolbox.of_advisor(&advisors[0]).map(|t| t.bound.spec().name).collect();
    assert_eq!(names, ["get_kline", "get_news"]);
    let all: Vec<&str> = toolbox.of_advisor(&advisors[1]).map(|t| t.bound.spec().name).collect();
    assert!(
        all.contains(&"get_portfolio")
            && !all.contains(&"place_order")
            && !all.contains(&"remember")
            && !all.contains(&"execute_code"),
        "{all:?}"
    );
}

// engine E9
#[test]
fn unknown_tools_are_named_sorted() {
    let card = Card { allowed_tools: vec!["zzz".into(), "get_kline".into(), "aaa".into()], ..Card::default() };
    let fault = Toolbox::new(&card, false).unwrap_err().to_string();
    assert!(fault.ends_with("aaa, zzz"), "{fault}");
}

#[test]
fn protected_tools_are_always_there_and_opt_in_ones_only_when_named() {
    let names =
        |card: &Card| -> Vec<&str> { Toolbox::new(card, false).unwrap().enabled().map(|t| t.bound.spec().name).collect() };
    let listed = names(&Card { allowed_tools: vec!["get_kline".into()], ..Card::default() });
    for name in ["get_portfolio", "get_position", "place_order", "finish_day", "get_kline"] {
        assert!(listed.contains(&name), "{name}");
    }
    assert_eq!(listed.len(), 5);
    assert!(!names(&Card::default()).contains(&"complete_phase"));
    assert!(names(&Card::builtin()).contains(&"complete_phase"));
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let card = Card::from_json("{}").unwrap();
    assert_eq!(card, Card::default());
    assert_eq!(
        (card.max_positions, card.max_position_pct, card.max_pre_iterations, card.max_window_iterations),
        (4, 25.0, 10, 3)
    );
    assert!(matches!(Card { id: String::new(), ..card }.check(), Err(CardError::Field { field: "id", .. })));
}

// spec/versions.md: the five-step morning, for cards with decision cards, unless the phase protocol leads the day
#[test]
fn a_card_that_buys_by_decision_cards_is_told_how_to_prepare_where_no_protocol_leads() {
    let told = |decision_card: bool, protocol: bool| {
        let card = Card { require_decision_card: decision_card, require_phase_completion: protocol, ..Card::default() };
        traderharness_harness::prompt::system(&card, true, true).contains("Before the open, in this order\n1. ")
    };
    assert_eq!([told(true, false), told(true, true), told(false, false), told(false, true)], [true, false, false, false]);
}
