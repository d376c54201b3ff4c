//! Cards of the Python implementation: what becomes of each field, and what is refused.

use serde_json::{Value, json};
use traderharness_harness::Card;
use traderharness_harness::card::{Became, CardFees, Converted};

fn convert(file: &Value) -> Converted {
    Card::of_python(file).unwrap_or_else(|fault| panic!("{file}: {fault}"))
}

fn became(converted: &Converted, pointer: &str) -> Became {
    converted.told.iter().find(|told| told.pointer == pointer).unwrap_or_else(|| panic!("{pointer} is not told")).became
}

/// What one field comes to, beside an id.
fn check<T: PartialEq + std::fmt::Debug>(field: &str, value: &Value, expected: (Became, T), of: impl Fn(&Card) -> T) {
    let converted = convert(&json!({ "id": "a", field: value }));
    let pointer = format!("/{field}");
    assert_eq!((became(&converted, &pointer), of(&converted.card)), expected, "{field}: {value}");
    assert_eq!(converted.told.iter().filter(|told| told.pointer == pointer).count(), 1, "{field} is told once");
}

fn refuse(file: &Value, expected: &[(&str, &str)]) {
    let fault = Card::of_python(file).expect_err(&file.to_string());
    let found: Vec<&str> = fault.refused.iter().map(|refused| refused.pointer.as_str()).collect();
    assert_eq!(found, expected.iter().map(|(pointer, _)| *pointer).collect::<Vec<_>>(), "{file}: {fault}");
    for (refused, (_, says)) in fault.refused.iter().zip(expected) {
        assert!(refused.reason.contains(says), "`{says}` is not in {}", refused.reason);
    }
}

/// A card with every field that a saved card of the Python implementation has.
fn whole() -> Value {
    json!({
        "id": "leader", "name": "Leader", "description": "Follows.", "persona": "You follow leaders.", "strategy_tags": ["trend"],
        "risk_profile": "bold", "holding_period": "2 weeks", "allowed_tools": ["get_kline", "get_news"], "model": "m",
        "initial_cash": 500_000, "max_positions": 2, "max_position_pct": 40.5, "max_pre_iterations": 6, "max_window_iterations": 2,
        "require_structured_plan": true, "require_decision_card": false, "require_phase_completion": true, "minimum_holding_days": 2,
        "research_interval_days": 0, "sandbox_pre_market_only": true, "sandbox_max_calls_per_day": 3, "watchlist_ttl_days": 4,
        "max_active_memories": 5, "max_daily_memories": 6,
    })
}

// engine E9
#[test]
fn a_saved_card_comes_over_whole_and_is_a_card_here() {
    let file = whole();
    let converted = convert(&file);
    let card = serde_json::to_value(&converted.card).unwrap();
    for (name, value) in file.as_object().unwrap() {
        assert_eq!(became(&converted, &format!("/{name}")), Became::Mapped);
        // Amounts are doubles here.
        assert!(card[name] == *value || card[name].as_f64() == value.as_f64(), "{name}: {} of {value}", card[name]);
    }
    assert_eq!((converted.card.fees, became(&converted, "/fees")), (CardFees::Reference, Became::Defaulted));
    assert_eq!(converted.lacking().count(), 0);
    assert_eq!(Card::from_json(&card.to_string()).unwrap(), converted.card);
}

#[test]
fn a_field_that_is_left_out_has_the_default_it_has_there_but_for_the_persona() {
    let converted = convert(&json!({ "id": "a" }));
    let card = &converted.card;
    assert_eq!(
        (card.risk_profile.as_str(), card.holding_period.as_str(), card.model.as_str(), card.persona.as_str()),
        ("balanced", "3-10 trading days", "deepseek-v4-pro", "")
    );
    let persona = converted.told.iter().find(|told| told.pointer == "/persona").unwrap();
    assert!(persona.became == Became::Defaulted && persona.what.contains("write yours"), "{persona:?}");
    for name in whole().as_object().unwrap().keys().filter(|name| *name != "id") {
        assert_eq!(became(&converted, &format!("/{name}")), Became::Defaulted, "{name}");
        let mut file = whole();
        file.as_object_mut().unwrap().remove(name);
        // A snapshot without it does not say how the run was set up; what is for people, or for the server alone, may lack.
        let complete = convert(&file).lacking().next().is_none();
        assert_eq!(complete, ["description", "model"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn a_value_of_another_kind_is_taken_as_python_takes_it() {
    let flag = |card: &Card| card.require_structured_plan;
    for (value, taken) in [(json!(0), false), (json!(-2), true), (json!("false"), true), (json!(""), false), (Value::Null, false)]
    {
        check("require_structured_plan", &value, (Became::Coerced, taken), flag);
    }
    check("require_structured_plan", &json!(true), (Became::Mapped, true), flag);
    let days = |card: &Card| card.minimum_holding_days;
    for (value, taken) in
        [(json!(3.9), 3), (json!(" 7 "), 7), (json!(true), 1), (json!(-4), 0), (json!("-4"), 0), (json!(-0.5), 0)]
    {
        check("minimum_holding_days", &value, (Became::Coerced, taken), days);
    }
    check("minimum_holding_days", &json!(3), (Became::Mapped, 3), days);
    check("initial_cash", &json!("250000.5"), (Became::Coerced, 250_000.5), |card| card.initial_cash);
    check("research_interval_days", &json!(5), (Became::NotMapped, 0), |card| card.research_interval_days);
    check("mask_dates", &json!(true), (Became::NotMapped, ()), |_| ());
    check("advisors", &json!([]), (Became::Mapped, true), |card| card.committee.is_none());
}

#[test]
fn substitutions_go_into_the_persona_one_after_the_other_as_they_stand() {
    let converted =
        convert(&json!({ "id": "a", "persona": "x and q", "persona_replacements": { "q": "x", "x": "z", "w": "v" } }));
    assert_eq!(converted.card.persona, "z and z");
    let told = converted.told.iter().find(|told| told.pointer == "/persona_replacements").unwrap();
    assert!(told.became == Became::Mapped && told.what.contains("2 of 3"), "{told:?}");
    let other = convert(&json!({ "id": "a", "persona": "x and q", "persona_replacements": { "x": "z", "q": "x" } }));
    assert_eq!(other.card.persona, "z and x");
    check("persona_replacements", &json!({ "a": "b" }), (Became::NotMapped, String::new()), |card| card.persona.clone());
}

#[test]
fn the_file_of_a_committee_becomes_a_card_with_advisors() {
    let file = json!({ "id": "council", "mask_dates": true, "advisors": [
        { "role": "bull", "model": "m2", "prompt": "Argue for it." }, { "role": "bear", "prompt": "Doubt it." }] });
    let converted = convert(&file);
    let advisors = &converted.card.committee.as_ref().unwrap().advisors;
    let found: Vec<_> = advisors.iter().map(|a| (a.role.as_str(), a.persona.as_str(), a.model.as_deref())).collect();
    assert_eq!(found, [("bull", "Argue for it.", Some("m2")), ("bear", "Doubt it.", None)]);
    assert_eq!(became(&converted, "/advisors/1/model"), Became::Defaulted);
    let mut council = file;
    let mut with = |advisors: Value, expected: &[(&str, &str)]| {
        council["advisors"] = advisors;
        refuse(&council, expected);
    };
    with(json!({}), &[("/advisors", "an object, not a list")]);
    with(json!([1]), &[("/advisors/0", "a number")]);
    with(
        json!([{ "role": "a", "prompt": " ", "tools": [] }, { "prompt": 1, "model": 2 }]),
        &[
            ("/advisors/0/tools", "no field of an advisor"),
            ("/advisors/0/prompt", "empty"),
            ("/advisors/1/role", "left out"),
            ("/advisors/1/prompt", "a number"),
            ("/advisors/1/model", "a number"),
        ],
    );
    with(json!([{ "role": "a", "prompt": "p" }, { "role": "a", "prompt": "q" }]), &[("/advisors", "`a` twice")]);
    with(json!([{ "role": "看多", "prompt": "p" }]), &[("/advisors", "letters, digits")]);
}

#[test]
fn what_is_not_understood_is_refused_at_its_place_all_of_it() {
    refuse(&json!([]), &[("", "not an object")]);
    refuse(
        &json!({ "max_position": 4, "fees": "dated", "a/b": 1, "persona": null, "strategy_tags": "x", "allowed_tools": [1],
            "initial_cash": "much", "max_positions": [], "max_pre_iterations": "3.5", "max_daily_memories": 1e30 }),
        &[
            ("/max_position", "did you mean `max_positions`?"),
            ("/fees", "is no field"),
            ("/a~1b", "is no field"),
            ("/persona", "null, not a text"),
            ("/strategy_tags", "a text, not a list"),
            ("/allowed_tools", "not a text"),
            ("/initial_cash", "no number"),
            ("/max_positions", "a list"),
            ("/max_pre_iterations", "no whole number"),
            ("/max_daily_memories", "too large"),
        ],
    );
    refuse(&json!({ "id": "龙头" }), &[("/id", "letters, digits")]);
    refuse(&json!({ "max_positions": -1 }), &[("/max_positions", "at least 1")]);
    refuse(&json!({ "initial_cash": "inf" }), &[("/initial_cash", "no number")]);
    refuse(&json!({ "allowed_tools": ["zzz", "get_kline", "aaa"] }), &[("/allowed_tools/2", "aaa"), ("/allowed_tools/0", "zzz")]);
    refuse(
        &json!({ "persona": "p", "persona_replacements": { "": "x", "p": 1 } }),
        &[("/persona_replacements/", "empty text"), ("/persona_replacements/p", "a number")],
    );
}
