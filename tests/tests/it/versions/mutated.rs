//! Whether the goldens can fail: a flag that is turned, and a text of a pack that is changed, has to show in one of them. What no golden
//! shows could change in code, and nobody would know that recordings do not replay any more.

use super::world::EARLY;
use super::{briefs, day, frozen};
use serde_json::Value;
use traderharness_contract::version::{Behaviour, Behaviours, Pack, Version};
use traderharness_harness::Contract;

/// A golden, made under any contract.
type Golden = fn(&Contract) -> String;

/// Goldens that are cheap to make.
const GOLDENS: [Golden; 4] = [day::render, frozen::words, frozen::definitions, briefs::render];

/// Flags that say nothing where another one is not set.
const IDLE_WITHOUT: [(Behaviour, Behaviour); 2] = [
    (Behaviour::DecisionCardEntrySetup, Behaviour::DecisionCardSection),
    (Behaviour::FiveStepMorningWithoutProtocol, Behaviour::CompletePhaseTool),
];

/// The pack of a version as one from elsewhere.
fn foreign(version: Version) -> Value {
    let pack = Pack::builtin(version).expect("a pack");
    let mut value = serde_json::to_value(pack).expect("JSON");
    value["version"] = "elsewhere".into();
    value
}

/// The flags of a version with one of them turned.
fn turned(version: Version, flag: Behaviour) -> Behaviours {
    let kept = version.behaviours();
    let mut flags: Vec<Behaviour> = kept.iter().filter(|other| *other != flag).collect();
    if !kept.has(flag) {
        flags.push(flag);
    }
    Behaviours::of(&flags)
}

/// Turns each flag of a version; those that no golden shows.
fn silent(version: Version) -> Vec<Behaviour> {
    let usual = GOLDENS.map(|render| render(&Contract::of(version)));
    let is_silent = |flag: &Behaviour| {
        let flags = turned(version, *flag);
        if IDLE_WITHOUT.iter().any(|(idle, without)| idle == flag && !flags.has(*without)) {
            return false;
        }
        // A pack that cannot be read is no pack, and the test of its digest says so.
        let mut pack = foreign(version);
        pack["flags"] = serde_json::to_value(&flags).expect("numbers");
        if Pack::read(&pack.to_string()).is_err() {
            return false;
        }
        let contract = Contract::of(version).with_flags(flags);
        GOLDENS.iter().zip(&usual).all(|(render, usual)| render(&contract) == *usual)
    };
    Behaviour::ALL.iter().copied().filter(is_silent).collect()
}

// spec/versions.md: numbered behaviour flags; DESIGN rule 9
#[test]
fn every_flag_of_v1_that_is_turned_shows_in_a_golden() {
    assert_eq!(silent(Version::V1), []);
}

#[test]
fn every_flag_of_v2_that_is_turned_shows_in_a_golden() {
    assert_eq!(silent(Version::V2), []);
}

#[test]
fn every_flag_of_v3_that_is_turned_shows_in_a_golden() {
    assert_eq!(silent(Version::V3), []);
}

#[test]
fn every_flag_of_v4_that_is_turned_shows_in_a_golden() {
    assert_eq!(silent(Version::V4), []);
}

/// Puts a mark behind each text of a pack that a model reads.
fn mark(value: &mut Value, key: &str, place: &str, marks: &mut Vec<String>) {
    match value {
        Value::String(text) if key == "description" || place.starts_with("/prompt/") => {
            text.push_str(&format!(" #{}#", marks.len()));
            marks.push(place.to_owned());
        }
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| mark(value, key, &format!("{place}/{key}"), marks)),
        Value::Array(items) => {
            items.iter_mut().enumerate().for_each(|(n, value)| mark(value, "", &format!("{place}/{n}"), marks));
        }
        _ => {}
    }
}

#[test]
fn every_text_of_a_pack_shows_in_a_golden() {
    for version in EARLY {
        let mut pack = foreign(version);
        let mut marks = Vec::new();
        mark(&mut pack, "", "", &mut marks);
        assert!(marks.len() > 100, "{version}: {} texts", marks.len());
        let contract = Contract::foreign(Pack::read(&pack.to_string()).expect("a pack"));
        let shown: String = GOLDENS.iter().map(|render| render(&contract)).collect();
        let silent: Vec<&String> =
            marks.iter().enumerate().filter(|(n, _)| !shown.contains(&format!("#{n}#"))).map(|(_, place)| place).collect();
        assert!(silent.is_empty(), "{version}: no golden shows these texts: {silent:#?}");
    }
}

// Any byte of a frozen pack: under its own name another text is refused, so that two of them never look alike in a recording.
#[test]
fn a_byte_that_changed_makes_another_pack() {
    for (version, text) in EARLY.into_iter().zip([
        include_str!("../../../../crates/contract/packs/v1.json"),
        include_str!("../../../../crates/contract/packs/v2.json"),
        include_str!("../../../../crates/contract/packs/v3.json"),
        include_str!("../../../../crates/contract/packs/v4.json"),
    ]) {
        assert!(Pack::read(text).is_ok(), "{version}");
        for at in (0..text.len()).step_by(211) {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'q' { b'z' } else { b'q' };
            let changed = String::from_utf8(bytes).expect("ASCII");
            let read = Pack::read(&changed);
            // Another version's name is another version.
            assert!(read.as_ref().map_or(true, |pack| pack.version != version.as_str()), "{version}: byte {at}");
        }
    }
}
