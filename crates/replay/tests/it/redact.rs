//! Redaction: one choke point, two sinks, idempotent, linear, JSON stays JSON.

use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_replay::redact::{PREVIEW_CHARACTERS, Redactor, Sink};

const KEY: &str = "planted/key+with=signs_0123456789";

fn redactor() -> Redactor {
    Redactor::new().with_roots(["/Users/me", "/Users/me/work"]).with_secrets([KEY])
}

#[track_caller]
fn check(value: Value, sink: Sink, expected: Value) {
    let shown = redactor().value(&value, sink);
    assert_eq!(shown, expected);
    assert_eq!(redactor().value(&shown, sink), expected, "a second pass changes nothing");
    assert_eq!(redactor().payload(&value.to_string(), sink), expected.to_string());
}

// spec/seeds.md B14.2, B14.3
#[test]
fn two_sinks_release_what_they_say() {
    let result = json!({"content": "hello", "env": {"A": "b"}, "stdout": "Authorization: Bearer abc", "secret_content": "x"});
    let kept = json!({"content": "hello", "env": "[redacted]", "stdout": "Authorization: Bearer [redacted]", "secret_content": "[redacted]"});
    check(result.clone(), Sink::named("result"), kept.clone());
    let mut strict = kept;
    strict["content"] = json!("[redacted]");
    for name in ["arguments", "Result", "", "results"] {
        check(result.clone(), Sink::named(name), strict.clone());
    }
    check(
        json!({"content": 1, "Account-Number": 2, "accountRef": 3, "headers": [4], "max_tokens": 4096, "token_count": 7, "token": 7}),
        Sink::Arguments,
        json!({"content": "[redacted]", "Account-Number": "[redacted]", "accountRef": 3, "headers": "[redacted]", "max_tokens": 4096, "token_count": 7, "token": "[redacted]"}),
    );
}

#[test]
fn every_container_is_walked() {
    check(
        json!([[{"a": [{"password": "x"}]}], {KEY: 1, "sk-aaaaaaaaaaaaaaaaaaaaaaaaa": 2, "arguments": "{\"env\": {\"A\": 1}, \"n\": 2}"}]),
        Sink::Arguments,
        json!([[{"a": [{"password": "[redacted]"}]}], {"[redacted]": 1, "[redacted]#2": 2, "arguments": "{\"env\":\"[redacted]\",\"n\":2}"}]),
    );
    // Tuples and structs are containers too.
    let shown = redactor()
        .of(&("a", ("Bearer abcdef99", [1, 2]), Some(std::collections::BTreeMap::from([("token", "x")]))), Sink::Result);
    assert_eq!(shown, json!(["a", ["Bearer [redacted]", [1, 2]], {"token": "[redacted]"}]));
    // A text with nothing to hide keeps its spelling, and a key that stands twice hides nothing behind the last one.
    check(json!({"x": "{ \"a\" : 1 }"}), Sink::Result, json!({"x": "{ \"a\" : 1 }"}));
    assert_eq!(redactor().payload(r#"{"x":"sk-aaaaaaaaaaaaaaaaaaaaaaaaa","x":1}"#, Sink::Result), r#"{"x":1}"#);
}

// complaint RP-4
#[test]
fn a_known_secret_goes_in_every_encoding() {
    let redactor = redactor();
    let forms = [
        KEY.to_owned(),
        KEY.replace('/', "\\/"),
        "planted%2Fkey%2Bwith%3Dsigns_0123456789".to_owned(),
        "planted%2fkey%2bwith%3dsigns_0123456789".to_owned(),
        KEY.bytes().map(|b| format!("{b:02x}")).collect(),
        "cGxhbnRlZC9rZXkrd2l0aD1zaWduc18wMTIzNDU2Nzg5".to_owned(),
    ];
    for form in forms {
        let shown = redactor.text(&format!("<{form}>")).into_owned();
        assert!(shown.starts_with("<[redacted]") && shown.len() < 20, "{form}: {shown}");
    }
    assert_eq!(format!("{redactor:?}"), "Redactor { .. }");
}

// spec/seeds.md B14.5
#[test]
fn a_preview_is_cut_after_redaction() {
    let text = format!("{}{KEY}", "股".repeat(PREVIEW_CHARACTERS - 5));
    let shown = redactor().preview(&text, Sink::Result, PREVIEW_CHARACTERS);
    assert_eq!(shown, format!("{}[reda", "股".repeat(PREVIEW_CHARACTERS - 5)));
}

/// Pieces that make the rules meet.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "token",
        "secret",
        "password",
        "api_key",
        "Authorization",
        "Bearer ",
        "basic ",
        "=",
        ": ",
        "\"",
        "\\\"",
        "\\",
        "'",
        "sk-",
        "ghp_",
        "xoxb-",
        "eyJ",
        ".",
        "AKIA",
        "pypi-",
        "-----BEGIN PRIVATE KEY-----",
        "-----END",
        "[redacted]",
        "<redacted>",
        "/Users/me",
        "/Users/me/work",
        "/",
        "{",
        "}",
        "[",
        "]",
        ",",
        " ",
        "\n",
        "&",
        "：",
        "股票",
        "abcdefghij0123456789ABCDEFGHIJ",
        "0",
        KEY,
        "env",
        "content",
    ]);
    prop_oneof![8 => fixed.prop_map(str::to_owned), 1 => "\\PC{0,3}"]
}

fn json_value() -> impl Strategy<Value = Value> {
    let text = prop::collection::vec(piece(), 0..6).prop_map(|parts| parts.concat()).boxed();
    let leaf = prop_oneof![any::<i64>().prop_map(Value::from), Just(Value::Null), text.clone().prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_text_is_redacted_once(parts in prop::collection::vec(piece(), 0..24)) {
        let text = parts.concat();
        let redactor = redactor();
        let once = redactor.text(&text).into_owned();
        prop_assert_eq!(redactor.text(&once), once.as_str(), "of {:?}", text);
        prop_assert!(!once.contains(KEY));
    }

    #[test]
    fn json_stays_json_and_is_redacted_once(value in json_value(), pretty in any::<bool>(), results in any::<bool>()) {
        let redactor = redactor();
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let scrubbed = redactor.text(&text).into_owned();
        prop_assert!(serde_json::from_str::<Value>(&scrubbed).is_ok(), "{:?} became {:?}", text, scrubbed);
        let sink = if results { Sink::Result } else { Sink::Arguments };
        let once = redactor.payload(&text, sink);
        if value.is_object() || value.is_array() {
            prop_assert!(serde_json::from_str::<Value>(&once).is_ok());
        }
        prop_assert_eq!(redactor.payload(&once, sink), once);
    }
}

// Linear: a megabyte of what makes a careless search go back again and again. A quadratic one would take minutes.
#[test]
fn a_megabyte_of_the_worst_text_is_quick() {
    let redactor = redactor();
    for part in [
        "token=",
        "token=\"",
        "\"token\":\"\\",
        "token ",
        "eyJ",
        "eyJ.",
        "eyJa.eyJ",
        "sk-",
        "Bearer ",
        "-----BEGIN PRIVATE KEY-----",
        "/Users/me",
        "/Users/me/work/",
        "\\",
        "\\\"",
        "{\"a\":",
        "[",
        "password: '",
        "authorization: token ",
        "xoxb-",
    ] {
        let text = part.repeat((1 << 20) / part.len());
        let started = std::time::Instant::now();
        let once = redactor.text(&text).into_owned();
        redactor.payload(&text, Sink::Arguments);
        assert!(started.elapsed().as_secs() < 5, "{part:?} took {:?}", started.elapsed());
        assert_eq!(redactor.text(&once), once.as_str(), "{part:?}");
    }
}
