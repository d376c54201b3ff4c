//! What Python writes, digest by digest. The texts and digests were computed by CPython 3.11 with
//! `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` and SHA-256 over its UTF-8.

use crate::canonical::any_json;
use proptest::prelude::*;
use traderharness_replay::reference::{self, NoJson, PyValue};
use traderharness_replay::{Fingerprint, Message, Request};

/// Reads what Python would read; expects the sorted text that Python writes, and its digest.
fn check(input: &str, text: &str, sha256: &str) {
    let value = PyValue::parse(input).unwrap();
    assert_eq!(String::from_utf8(value.sorted_text()).unwrap(), text);
    assert_eq!(value.fingerprint().unwrap().to_string(), sha256, "{input}");
}

// engine E13.3
#[test]
fn numbers_keys_and_escapes_are_those_of_python() {
    check(
        "[1e16,1e-05,0.0001,-0.0,5e-324,1.7976931348623157e308,123456789012345680.0,9007199254740993,18446744073709551616,-9223372036854775809,0.1,1E5,100.0,1e22,1e21]",
        "[1e+16,1e-05,0.0001,-0.0,5e-324,1.7976931348623157e+308,1.2345678901234568e+17,9007199254740993,18446744073709551616,-9223372036854775809,0.1,100000.0,100.0,1e+22,1e+21]",
        "dc16adc5495e5a4b0005c515db30235a3d4e326cae565e7224f143c0129ea7e7",
    );
    // Half-way between two shortest texts: the even digit, not the one away from zero.
    check(
        "[90485979611544.125,-90485979611544.125]",
        "[90485979611544.12,-90485979611544.12]",
        "af78a64628e6fe7c2408b9e88eb6bacdbccd9de68ca695184a17b76dd99bf790",
    );
    check(
        "[NaN,Infinity,-Infinity,1e400,-1e400,-0]",
        "[NaN,Infinity,-Infinity,Infinity,-Infinity,0]",
        "ee19646aec20d09499d838d1ddb5c9db11b9e651b2372969ea1e0af6f286d442",
    );
    // Code points, not UTF-16: the emoji comes last.
    check(
        r#"{"\uff21":1,"\ud83d\ude80":2,"z":{"b":1,"a":[]},"\u540d":null,"z2":true,"":0,"A":1,"\ud7ff":2,"\ue000":3}"#,
        "{\"\":0,\"A\":1,\"z\":{\"a\":[],\"b\":1},\"z2\":true,\"名\":null,\"\u{d7ff}\":2,\"\u{e000}\":3,\"Ａ\":1,\"🚀\":2}",
        "363f9dd3b91bb0f6c11181bd1fed9bc81195437114dbd4c5c8945ba862a18da2",
    );
    check(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#, "493df656a590967c84d643bdd55ee956fb53262c51b154115083c9bcc4c992e3");
    check(
        r#""\u0000\u001f\u007f\u0085\u2028\"\\\/\b\f\n\r\t""#,
        "\"\\u0000\\u001f\u{7f}\u{85}\u{2028}\\\"\\\\/\\b\\f\\n\\r\\t\"",
        "9dbf591f6358f925a30fd2dcca639a028389ee9aed29906e1142e1312e19b19d",
    );
}

#[test]
fn the_fingerprint_of_a_request_is_that_of_its_messages_and_tools() {
    let body = r#"{"messages":[{"role":"system","content":"You trade."},{"role":"user","content":"Day 1. \u8d35\u5dde\u8305\u53f0 1402.0"}],"tools":[{"type":"function","function":{"name":"get_kline","parameters":{"type":"object","properties":{"days":{"type":"integer","minimum":1.0}}}}}]}"#;
    let sha256: Fingerprint = "9bac9d309237b797a7dfa65f34740ac5f95d75e422eef61d7a8b82909b7e2ce2".parse().unwrap();
    assert_eq!(PyValue::parse(body).unwrap().fingerprint().unwrap(), sha256);
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    let mut request = Request::new("any", "v2");
    request.tools = value["tools"].as_array().unwrap().clone();
    request.messages = value["messages"].as_array().unwrap().iter().cloned().map(Message).collect();
    assert_eq!(reference::fingerprint(&request), sha256);
    // The system prompt may stand apart here; there it is the first message.
    request.messages.remove(0);
    request.system = Some("You trade.".to_owned());
    assert_eq!(reference::fingerprint(&request), sha256);
}

#[test]
fn what_json_does_not_have_is_named_and_never_replaced() {
    // Surrogates in order of their code points, as Python sorts them and writes them with `surrogatepass`.
    let keys = PyValue::parse(r#"{"\ud83d":1,"\ud83d\ude80":2,"\uffff":3,"\udc00":4}"#).unwrap();
    let hex: String = keys.sorted_text().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "7b22eda0bd223a312c22edb080223a342c22efbfbf223a332c22f09f9a80223a327d");
    let text = PyValue::parse(r#"["\ud83d","\ude00x","\ud83d\u0041","\ud83d\ud83d\ude00"]"#).unwrap();
    let hex: String = text.sorted_text().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "5b22eda0bd222c22edb88078222c22eda0bd41222c22eda0bdf09f9880225d");
    assert_eq!(text.fingerprint(), Err(NoJson::Surrogate(0xd83d)), "Python cannot encode it either");
    assert_eq!(text.to_json(), Err(NoJson::Surrogate(0xd83d)));
    assert_eq!(PyValue::parse("[1,{\"a\":NaN}]").unwrap().to_json(), Err(NoJson::NotFinite("NaN")));
    assert_eq!(PyValue::parse("1e400").unwrap().to_json(), Err(NoJson::NotFinite("Infinity")));
    let long = "18446744073709551616";
    assert_eq!(PyValue::parse(long).unwrap().to_json(), Err(NoJson::Integer(long.to_owned())));
    for refused in [
        "",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "nan",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12\"",
        "[1] 2",
        "\"a",
    ] {
        assert!(PyValue::parse(refused).is_err(), "{refused}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(PyValue::parse(&deep).unwrap_err().what, "nested too deep");
    assert!(PyValue::parse(&"9".repeat(5_000)).is_err());
}

proptest! {
    #[test]
    fn json_is_read_as_json_and_written_as_the_fingerprint_writes_it(value in any_json()) {
        let read = PyValue::parse(&value.to_string()).unwrap();
        prop_assert_eq!(&read.to_json().unwrap(), &value);
        prop_assert_eq!(String::from_utf8(read.sorted_text()).unwrap(), reference::to_string(&value));
    }

    #[test]
    fn no_text_is_a_crash_and_what_is_written_reads_back(text in "[\\[\\]{}:,\"\\\\uUdD0-9eE.+-NaInfity \u{e9}]{0,40}") {
        if let Ok(value) = PyValue::parse(&text) {
            let again = value.sorted_text();
            if let Ok(again) = std::str::from_utf8(&again) {
                prop_assert_eq!(PyValue::parse(again).unwrap().sorted_text(), value.sorted_text());
            }
        }
    }
}
