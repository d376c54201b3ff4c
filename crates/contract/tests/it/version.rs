//! Packs: the frozen ones, and what reading a foreign one refuses.

use serde_json::{Value, json};
use traderharness_contract::version::{Behaviour, Behaviours, Pack, PackError, Section, TOOL_NAMES, UnknownBehaviour, Version};

const FROZEN: [Version; 4] = [Version::V1, Version::V2, Version::V3, Version::V4];

fn pack(version: Version) -> &'static Pack {
    Pack::builtin(version)
        .unwrap_or_else(|| panic!("the pack of {version} cannot be read: recordings made under {version} would no longer replay"))
}

/// A pack that could come from elsewhere, as JSON.
fn foreign(version: Version) -> Value {
    let mut value = serde_json::to_value(pack(version)).unwrap();
    value["version"] = "elsewhere-1".into();
    value
}

/// DESIGN rule 9: a version's bytes and flags change only by adding a version.
fn check_frozen(version: Version, digest: &str, flags: &[u32]) {
    let found = pack(version);
    let words = format!("recordings made under {version} would no longer replay");
    assert_eq!(found.digest(), digest, "the pack changed: {words}; add a version instead");
    let numbers: Vec<u32> = found.flags.numbers().into_iter().collect();
    assert_eq!(numbers, flags, "the flags changed: {words}; add a version instead");
    assert_eq!(version.behaviours(), found.flags, "code and pack disagree on the flags: {words}");
    assert_eq!(found.version, version.as_str());
}

#[test]
fn v1_is_frozen() {
    check_frozen(Version::V1, "851a816e11d7c8c34eeebe83e780adfd8f635bd0b37139fedfcbc5deec2406c4", &[9, 10, 16, 17, 18, 19]);
}

#[test]
fn v2_is_frozen() {
    check_frozen(Version::V2, "445761fbb7c1fcd5b774b99e9c9f0639c458695d668fc43f02126132f63a9209", &[1, 9, 10, 16, 17, 18, 19]);
}

#[test]
fn v3_is_frozen() {
    check_frozen(
        Version::V3,
        "37d1d579e71f49dae2a7876763c35083f2fde6184004fa435a98a95e1fc3b4d6",
        &[1, 2, 5, 7, 13, 16, 17, 18, 19],
    );
}

#[test]
fn v4_is_frozen() {
    check_frozen(
        Version::V4,
        "09513d7440368f5290d266e0c46826ff3e069bfb805eb1627a74a5addd4e16ec",
        &[1, 2, 3, 5, 6, 7, 8, 13, 16, 17, 18, 19],
    );
}

#[test]
fn v5_is_code_and_its_flags_are_frozen() {
    assert!(Pack::builtin(Version::V5).is_none());
    let numbers: Vec<u32> = Version::V5.behaviours().numbers().into_iter().collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15], "recordings made under v5 would no longer replay");
}

#[test]
fn the_digest_is_that_of_the_file() {
    let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/packs/v2.json")).unwrap();
    let read = Pack::read(std::str::from_utf8(&text).unwrap()).unwrap();
    assert_eq!(read.digest(), pack(Version::V2).digest());
    assert_ne!(pack(Version::V1).digest(), pack(Version::V2).digest());
}

// spec/versions.md, rows on tools
#[test]
fn each_version_offers_its_tools() {
    for (version, count, opt_in) in [(Version::V1, 25, 0), (Version::V2, 25, 0), (Version::V3, 29, 4), (Version::V4, 30, 5)] {
        let tools = &pack(version).tools;
        assert_eq!(tools.len(), count, "{version}");
        assert_eq!(tools.iter().filter(|tool| tool.opt_in).count(), opt_in, "{version}");
        assert_eq!(pack(version).tool("complete_phase").is_some(), version == Version::V4);
    }
}

// spec/versions.md: the card has 22 fields in v3, without entry_setup
#[test]
fn the_decision_card_comes_with_v3_and_its_setup_with_v4() {
    let card = |version| {
        let order = &pack(version).tool("place_order").unwrap().parameters;
        let fields = order.pointer("/properties/decision_card/properties").and_then(Value::as_object);
        fields.map(|fields| (fields.len(), fields.contains_key("entry_setup")))
    };
    assert_eq!(FROZEN.map(card), [None, None, Some((22, false)), Some((24, true))]);
}

// spec/versions.md: loose schemas
#[test]
fn schemas_are_loose_and_texts_are_english() {
    fn loose(schema: &Value, at: &str) {
        let map = schema.as_object().unwrap();
        for bound in ["additionalProperties", "minimum", "maximum", "minLength", "maxLength", "default", "allOf", "if"] {
            assert!(!map.contains_key(bound), "{at} has {bound}");
        }
        for (name, field) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            assert!(field.get("description").is_some(), "{at}/{name} is not described");
            loose(field, &format!("{at}/{name}"));
        }
    }
    for version in FROZEN {
        for tool in &pack(version).tools {
            loose(&tool.parameters, &tool.name);
            assert!(tool.definition().to_string().is_ascii(), "{}", tool.name);
            assert_eq!(tool.definition()["function"]["name"], tool.name);
        }
        assert!(pack(version).prompt.values().all(|text| text.is_ascii() && !text.ends_with('\n')));
    }
}

#[test]
fn a_section_of_a_flag_is_only_where_the_flag_is() {
    for version in FROZEN {
        for section in Section::ALL {
            assert_eq!(
                pack(version).prompt.contains_key(section.name()),
                section.belongs_to(&version.behaviours()),
                "{version} {}",
                section.name()
            );
        }
    }
}

#[test]
fn placeholders_are_filled_once_and_values_are_never_read_as_placeholders() {
    let text = pack(Version::V1).text(Section::Horizon, &[("days", "{day_number}"), ("day_number", "3")]);
    assert_eq!(text, "This is day 3 of {day_number}.");
    let persona = pack(Version::V1).text(Section::Persona, &[("persona", "{persona} {{x} }")]);
    assert_eq!(persona, "Your role\n{persona} {{x} }");
    assert_eq!(pack(Version::V1).text(Section::Protocol, &[]), "");
    let mut odd = foreign(Version::V1);
    odd["prompt"]["role"] = "{ {} {A} {unfinished 中{".into();
    let odd = Pack::read(&odd.to_string()).unwrap();
    assert_eq!(odd.text(Section::Role, &[("a", "b")]), "{ {} {A} {unfinished 中{");
}

#[test]
fn a_foreign_pack_is_read() {
    for version in FROZEN {
        let read = Pack::read(&foreign(version).to_string()).unwrap();
        assert_eq!((read.version.as_str(), &read.flags), ("elsewhere-1", &version.behaviours()));
        assert_eq!(read.tools, pack(version).tools);
        assert_eq!(read.digest().len(), 64);
    }
}

#[test]
fn what_is_not_whole_is_refused_by_name() {
    fn check(edit: impl FnOnce(&mut Value), expected: &str) {
        let mut value = foreign(Version::V3);
        edit(&mut value);
        let fault = Pack::read(&value.to_string()).unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
    }
    check(|p| p["flags"] = json!([1, 2, 5, 7, 13, 400, 16]), "behaviour flag 400 is not known here");
    check(|p| p["flags"] = json!([1, 1]), "/flags/1: flag 1 is given twice");
    check(|p| p["flags"] = json!([-1]), "invalid value");
    check(|p| p["flags"] = json!([13]), "/tools/4/name: `get_narrative_market_overview` needs behaviour flag 5");
    check(|p| p["colour"] = 1.into(), "unknown field `colour`");
    check(|p| p["tools"][0]["colour"] = 1.into(), "unknown field `colour`");
    check(|p| p["tools"][0]["name"] = "get_future".into(), "/tools/0/name: there is no tool `get_future`");
    check(|p| p["tools"][1]["name"] = "get_kline".into(), "/tools/1/name: tool `get_kline` is given twice");
    check(|p| p["tools"][0]["parameters"] = json!([]), "/tools/0/parameters: parameters are a JSON Schema object");
    check(|p| drop(p["tools"].as_array_mut().unwrap().remove(2)), "`get_stock_info` is missing");
    check(|p| drop(p["tools"][0].as_object_mut().unwrap().remove("read_only")), "missing field `read_only`");
    check(|p| p["prompt"]["joke"] = "x".into(), "/prompt/joke: there is no section");
    check(|p| drop(p["prompt"].as_object_mut().unwrap().remove("role")), "section `role` is missing");
    check(
        |p| p["prompt"]["persona"] = "{person}".into(),
        "/prompt/persona: `{person}` is not filled in here; there is `{persona}`",
    );
    check(|p| p["prompt"]["role"] = "{cash}".into(), "/prompt/role: `{cash}` is not filled in here; there are no placeholders");
    check(|p| p["version"] = "V 1".into(), "`V 1` is no name of a version");
    check(|p| p["version"] = "v2".into(), "`v2` is a version of traderharness itself");
    check(|p| p["version"] = "v5".into(), "`v5` is a version of traderharness itself");
    let twice = foreign(Version::V1).to_string().replace("\"prompt\":{", "\"prompt\":{\"role\":\"\",");
    assert!(Pack::read(&twice).unwrap_err().to_string().contains("duplicate field `role`"));
    assert_eq!(Pack::read(&" ".repeat(5 << 20)), Err(PackError::TooLong { bytes: 5 << 20 }));
    assert!(matches!(Pack::read(&"[".repeat(100_000)), Err(PackError::Shape(_))));
    assert!(matches!(Pack::read(""), Err(PackError::Shape(_))));
    let many = json!({"version": "x", "flags": (1000..9000).collect::<Vec<_>>(), "tools": [], "prompt": {}});
    assert_eq!(Pack::read(&many.to_string()), Err(PackError::Flag(UnknownBehaviour((1000..1020).collect()))));
}

#[test]
fn the_frozen_names_are_thirty_and_distinct() {
    let distinct: std::collections::BTreeSet<_> = TOOL_NAMES.iter().collect();
    assert_eq!(distinct.len(), 30);
    assert!(Behaviours::of(&[Behaviour::StrictArguments]).has(Behaviour::StrictArguments));
}
