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
    check(r#"{"max_positions":"four"}"#, "invalid type");
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
