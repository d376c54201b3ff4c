//! The canonical form against vectors computed in another language, and its invariances.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use traderharness_replay::canonical::{self, CANONICAL_VERSION};
use traderharness_replay::{Fingerprint, Request, reference};

#[derive(Deserialize)]
struct Vectors {
    canonical_version: u32,
    cases: Vec<Case>,
    requests: Vec<RequestCase>,
    reference_texts: Vec<ReferenceText>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    input: String,
    canonical: String,
    sha256: Fingerprint,
}

#[derive(Deserialize)]
struct RequestCase {
    name: String,
    request: Request,
    sha256: Fingerprint,
    reference_sha256: Fingerprint,
}

#[derive(Deserialize)]
struct ReferenceText {
    input: String,
    text: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/canonical.json")).unwrap()
}

#[test]
fn the_form_is_the_one_another_language_computes() {
    let vectors = vectors();
    assert_eq!(vectors.canonical_version, CANONICAL_VERSION);
    assert!(vectors.cases.len() >= 29, "a frozen case was removed");
    for Case { name, input, canonical: expected, sha256 } in vectors.cases {
        let value: Value = serde_json::from_str(&input).unwrap();
        assert_eq!(canonical::to_string(&value), expected, "{name}");
        assert_eq!(Fingerprint::of(&value), sha256, "{name}");
    }
}

#[test]
fn request_fingerprints_are_the_ones_another_language_computes() {
    for RequestCase { name, request, sha256, reference_sha256 } in vectors().requests {
        assert_eq!(request.fingerprint(), sha256, "{name}");
        assert_eq!(reference::fingerprint(&request), reference_sha256, "{name}, Python form");
    }
}

#[test]
fn the_python_form_is_what_python_writes() {
    // engine E13.3
    for ReferenceText { input, text } in vectors().reference_texts {
        assert_eq!(reference::to_string(&serde_json::from_str(&input).unwrap()), text);
    }
}

#[test]
fn every_part_of_a_request_counts() {
    let base: Request = vectors().requests.pop().unwrap().request;
    let body = serde_json::to_value(&base).unwrap();
    let mut seen = vec![base.fingerprint()];
    let changes = [
        ("/model", json!("some-model-2")),
        ("/contract_version", json!("v4")),
        ("/sampling/temperature", json!(0.1)),
        ("/system", Value::Null),
        ("/tools/0/function/parameters/type", json!("array")),
        ("/messages/0/content", json!("Day 2.")),
    ];
    for (pointer, value) in changes {
        let mut changed = body.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let changed: Request = serde_json::from_value(changed).unwrap();
        seen.push(changed.fingerprint());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7);
}

#[test]
fn fingerprints_read_back_and_refuse_what_is_none() {
    let print = Fingerprint::of(&json!({}));
    assert_eq!(print.to_string(), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    assert_eq!(print.to_string().parse(), Ok(print));
    assert_eq!(print.to_string().to_uppercase().parse(), Ok(print));
    for bad in ["", "44", &"g".repeat(64), &"股".repeat(21), &format!("{print}0")] {
        assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
    }
}

/// Any JSON value, with keys and texts from all of Unicode.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect::<Map<String, Value>>())
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        other => other.clone(),
    }
}

proptest! {
    // complaints RP-7 and RP-8
    #[test]
    fn key_order_and_spelling_do_not_count(value in any_json()) {
        let text = canonical::to_string(&value);
        prop_assert_eq!(&canonical::to_string(&reversed(&value)), &text);
        prop_assert!(canonical::equal(&value, &reversed(&value)));
        let spaced: Value = serde_json::from_str(&serde_json::to_string_pretty(&value).unwrap()).unwrap();
        prop_assert_eq!(&canonical::to_string(&spaced), &text);
        // The form is a fixed point: reading it gives the same form again.
        let again: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(canonical::to_string(&again), text);
    }

    #[test]
    fn equal_is_equality_of_the_texts(a in any_json(), b in any_json()) {
        prop_assert_eq!(canonical::equal(&a, &b), canonical::to_string(&a) == canonical::to_string(&b));
        prop_assert!(canonical::equal(&a, &a.clone()));
    }

    #[test]
    fn doubles_come_back_to_the_bit_in_both_forms(bits in any::<u64>()) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite() && double != 0.0);
        for text in [canonical::to_string(&json!(double)), reference::to_string(&json!(double))] {
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits, "{}", text);
        }
    }
}
