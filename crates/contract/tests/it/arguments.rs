//! Strict reading of argument strings.

use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_contract::arguments::{ARGUMENTS_LIMIT, DEPTH_LIMIT, FaultKind};
use traderharness_contract::{ErrorCode, parse_arguments};

fn refuse(text: &str, kind: FaultKind, position: usize) {
    let fault = parse_arguments(text).expect_err(text);
    assert_eq!((fault.kind, fault.position), (kind, position), "{text}");
}

fn accept(text: &str, value: Value) {
    assert_eq!(parse_arguments(text).map(Value::Object), Ok(value), "{text}");
}

#[test]
fn one_complete_object_is_read() {
    accept(
        r#"{"code": "SHM-000360", "n": [1, -2.5e3, true, null], "o": {"": "\u516c\ud83d\ude80\n"}}"#,
        json!({"code": "SHM-000360", "n": [1, -2500.0, true, null], "o": {"": "公🚀\n"}}),
    );
    accept(" \t\r\n{ } \n", json!({}));
    accept(
        r#"{"id": 9007199254740993, "big": 18446744073709551615, "low": -9223372036854775808}"#,
        json!({"id": 9_007_199_254_740_993_i64, "big": u64::MAX, "low": i64::MIN}),
    );
}

// seed A6.4, complaint JR-5
#[test]
fn empty_is_no_arguments_and_corrupt_is_a_fault() {
    for text in ["", " ", "\n\t "] {
        accept(text, json!({}));
    }
    for text in ["null", "[]", "\"\"", "0", "{}x", "{", "}", "''", "{]", "undefined", "\u{feff}{}", "```json\n{}\n```"] {
        assert!(parse_arguments(text).is_err(), "{text}");
    }
}

#[test]
fn each_fault_has_its_kind_and_place() {
    refuse(r#"{"a": 1, "a": 2}"#, FaultKind::DuplicateKey, 9);
    refuse(r#"{"o": {"公": 1, "\u516c": 2}}"#, FaultKind::DuplicateKey, 15);
    refuse(r#"{"a": NaN}"#, FaultKind::NotFinite, 6);
    refuse(r#"{"a": -Infinity}"#, FaultKind::NotFinite, 6);
    refuse(r#"{"a": Infinity}"#, FaultKind::NotFinite, 6);
    refuse(r#"{"a": 1e999}"#, FaultKind::NumberRange, 6);
    refuse(r#"{"a": 1e-999}"#, FaultKind::NumberRange, 6);
    refuse(r#"{"a": 18446744073709551616}"#, FaultKind::NumberRange, 6);
    refuse(r#"{"公": 1} x"#, FaultKind::TrailingText, 9);
    refuse(r#"{"a": 1}{"a": 1}"#, FaultKind::TrailingText, 8);
    refuse(r#"{"a": "\ud83d"}"#, FaultKind::LoneSurrogate, 7);
    refuse(r#"{"a": "\ude80\ud83d"}"#, FaultKind::LoneSurrogate, 7);
    refuse(r#"{"a": "\q"}"#, FaultKind::BadString, 7);
    refuse("{\"a\": \"x\ny\"}", FaultKind::BadString, 8);
    refuse(r#"{"a": 01}"#, FaultKind::Syntax, 7);
    refuse(r#"{"a": .5}"#, FaultKind::Syntax, 6);
    refuse(r#"{"a": 1,}"#, FaultKind::Syntax, 8);
    refuse(r#"{a: 1}"#, FaultKind::Syntax, 1);
    refuse(r#"{"a": True}"#, FaultKind::Syntax, 6);
    refuse(r#"{"a": "#, FaultKind::Incomplete, 6);
    refuse(r#"["a"]"#, FaultKind::NotAnObject, 0);
}

#[test]
fn depth_and_size_have_limits() {
    let nested = |depth: usize| format!("{{\"a\": {}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert!(parse_arguments(&nested(DEPTH_LIMIT)).is_ok());
    assert_eq!(parse_arguments(&nested(DEPTH_LIMIT + 1)).unwrap_err().kind, FaultKind::TooDeep);
    assert_eq!(parse_arguments(&"[".repeat(500_000)).unwrap_err().kind, FaultKind::TooDeep);
    let sized = |bytes: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(bytes - 9));
    assert!(parse_arguments(&sized(ARGUMENTS_LIMIT)).is_ok());
    assert_eq!(parse_arguments(&sized(ARGUMENTS_LIMIT + 1)).unwrap_err().kind, FaultKind::TooLong);
}

// complaint JR-2
#[test]
fn a_call_cut_anywhere_is_not_a_call() {
    let whole =
        r#"{"stock_code": "SHM-000360", "quantity": 1000, "note": "\ud83d\ude80 公 \"x\"", "on": true, "l": [null, -1.5e-3]}"#;
    assert!(parse_arguments(whole).is_ok());
    for (cut, _) in whole.char_indices().skip(1) {
        let fault = parse_arguments(&whole[..cut]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Incomplete, "{}", &whole[..cut]);
    }
}

#[test]
fn the_failure_names_the_place_and_repeats_nothing() {
    let failure = parse_arguments(r#"{"secret-value": NaN}"#).unwrap_err().failure("get_kline");
    assert_eq!((failure.code, failure.retryable()), (ErrorCode::InvalidToolArgumentsJson, true));
    assert_eq!((&failure.correction["fault"], &failure.correction["position"]), (&json!("not_finite"), &json!(17)));
    assert!(!format!("{failure:?}").contains("secret"));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |f| f.is_finite().then(|| Value::from(f))),
        "\\PC{0,20}".prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((".{0,8}", inner), 0..6).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The general reader is the oracle for what is read; ours only refuses more.
    #[test]
    fn written_json_is_read_back(value in any_value()) {
        let object = json!({ "v": value });
        for text in [object.to_string(), serde_json::to_string_pretty(&object).unwrap()] {
            prop_assert_eq!(Value::Object(parse_arguments(&text).unwrap()), serde_json::from_str::<Value>(&text).unwrap());
        }
    }

    #[test]
    fn any_text_is_read_as_the_oracle_reads_it_or_refused(text in "\\PC{0,60}|[\\[\\]{}\",:0-9eE.+\\-\\\\untrfals ]{0,40}") {
        if let Ok(map) = parse_arguments(&text)
            && !text.trim().is_empty()
        {
            prop_assert_eq!(Value::Object(map), serde_json::from_str::<Value>(&text).unwrap());
        }
    }
}
