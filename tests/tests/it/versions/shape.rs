//! What a result of v1 to v4 looks like, whatever the tool and whatever went wrong: read from its text, without the code that wrote it.

use serde_json::{Map, Value};
use traderharness_contract::version::Version;
use traderharness_harness::{CallReport, Contract};
use traderharness_replay::Fingerprint;

/// Characters of a read tool's result, and what stands behind a text that was cut there (spec/versions.md).
const READ_LIMIT: usize = 3_000;
const CUT: &str = "... (truncated)";

/// Panics with what is wrong when an answer is none of the version.
pub(super) fn check(contract: &Contract, version: Version, tool: &str, report: &CallReport) {
    let told = |what: &str| format!("{version} {tool}({}): {what}: {}", report.received, report.text);
    assert_ne!(report.envelope.error_code(), Some("internal"), "{}", told("a defect of the environment"));
    let packed = contract.pack().and_then(|pack| pack.tool(tool));
    // A name that is no tool of the version fails as a read does.
    let reads = packed.is_none_or(|tool| tool.read_only);
    if let Some(place) = odd_separator(&report.text) {
        panic!("{}", told(&format!("the separators are not `, ` and `: ` at byte {place}")));
    }
    assert_eq!(report.truncated, report.text.ends_with(CUT), "{}", told("cut and not told, or told and not cut"));
    if report.truncated {
        assert!(reads, "{}", told("only what reads is cut"));
        assert_eq!(report.text.chars().count(), READ_LIMIT + CUT.len(), "{}", told("cut elsewhere"));
        return;
    }
    assert!(!reads || report.text.chars().count() <= READ_LIMIT, "{}", told("longer than the limit"));
    let value: Map<String, Value> = serde_json::from_str(&report.text).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
    let keys: Vec<&str> = value.keys().map(String::as_str).collect();
    let orders = ["place_order", "manage_conditional_order"].contains(&tool) && version >= Version::V3;
    match report.code {
        None => {
            assert!(report.envelope.is_success(), "{}", told("no code and no success"));
            for no in ["success", "error", "_truncation", "normalised", "correction"] {
                assert!(!keys.contains(&no), "{}", told(no));
            }
            if tool == "execute_code" {
                assert!(keys.iter().all(|key| ["stdout", "result"].contains(key)), "{}", told("more than was printed and left"));
            }
        }
        Some(code) => {
            if tool == "execute_code" {
                assert!(keys == ["error"] || keys == ["stdout", "error"], "{}", told("another failure shape"));
                assert!(value["error"].as_str().is_some_and(|text| !text.is_empty()), "{}", told("no reason"));
                return;
            }
            let expected: &[&str] = match (reads, orders) {
                (true, _) => &["error"],
                (false, false) => &["success", "error"],
                (false, true) => &["success", "error", "error_code"],
            };
            assert_eq!(keys, expected, "{}", told("another failure shape"));
            assert!(value["error"].as_str().is_some_and(|text| !text.is_empty()), "{}", told("no reason"));
            if !reads {
                assert_eq!(value["success"], false, "{}", told("a failure"));
            }
            if orders {
                assert_eq!(value["error_code"], code.as_str(), "{}", told("another code"));
            }
        }
    }
}

/// Place of a separator that is not written `, ` or `: `, of another blank, or of an escape that JSON does not ask for.
fn odd_separator(text: &str) -> Option<usize> {
    let bytes = text.strip_suffix(CUT).unwrap_or(text).as_bytes();
    let (mut inside, mut i) = (false, 0);
    while i < bytes.len() {
        match (inside, bytes[i]) {
            (true, b'\\') => {
                // Control characters alone are written as numbers.
                if bytes.get(i + 1) == Some(&b'u') && bytes.get(i + 2..i + 4).is_some_and(|hex| hex != b"00") {
                    return Some(i);
                }
                i += 1;
            }
            (_, b'"') => inside = !inside,
            (false, b',' | b':') => {
                if bytes.get(i + 1).is_some_and(|next| *next != b' ') {
                    return Some(i);
                }
                i += 1;
            }
            (false, b' ' | b'\n' | b'\t') => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

/// A text as a snapshot holds it: whole, or where it is long its beginning with its length and digest.
pub(super) fn shown(text: &str, whole: usize) -> String {
    let count = text.chars().count();
    if count <= whole {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(whole * 2 / 3).collect();
    let digest = Fingerprint::of(&Value::from(text)).to_string();
    format!("{beginning} [..., {count} characters, {}]", &digest[..16])
}

#[test]
fn odd_separators_are_found() {
    for (text, place) in [
        ("{\"a\": [1, {\"b, :c\": \"\\\"x\\\":,\"}]}", None),
        ("{\"a\":1}", Some(4)),
        ("[1,2]", Some(2)),
        ("[1 , 2]", Some(2)),
        ("[\"\\u4e2d\"]", Some(2)),
        ("[\"\\u0001 中\"]", None),
        ("{\"a\": [1,... (truncated)", None),
    ] {
        assert_eq!(odd_separator(text), place, "{text}");
    }
}
