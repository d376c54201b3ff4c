//! Old recordings in the schema of today: nothing lost, or nothing written.

use serde_json::{Value, json};
use std::path::Path;
use traderharness_replay::cassette::Scheme;
use traderharness_replay::migrate::{self, MigrateError, Migration};
use traderharness_replay::reference::NoJson;
use traderharness_replay::{Cassette, Message, Player, RecordingError, ReplayError, Request, reference};

const META: &str =
    r#"{"type": "meta", "schema_version": 1, "prompt_contract_version": "v2", "entity_mask_style": "permutation"}"#;

fn line(step: i64, request: &Request, output: &str) -> String {
    let sha = reference::fingerprint(request);
    format!(
        r#"{{"schema_version": 1, "step": {step}, "type": "llm_call", "request_sha256": "{sha}", "output": {output}, "took": 1.5}}"#
    )
}

fn requests() -> [Request; 2] {
    let mut first = Request::new("any", "v2");
    first.messages.push(Message::user("Day 1 of 4. 贵州茅台 1402.0"));
    let mut second = first.clone();
    second.messages.push(Message::assistant("I wait.", &[]));
    [first, second]
}

fn old() -> String {
    let [first, second] = requests();
    let outputs = [
        r#"{"role": "assistant", "content": "I wait. 😀", "_usage": {"prompt_tokens": 3629, "cost": 1e-05, "more": 1e16}}"#,
        r#"{"role": "assistant", "content": null, "tool_calls": []}"#,
    ];
    format!("{META}\n{}\n{}\n", line(0, &first, outputs[0]), line(7, &second, outputs[1]))
}

fn rewritten(text: &str) -> (Vec<u8>, usize) {
    match migrate::cassette(Path::new("old.jsonl"), text.as_bytes()).unwrap() {
        Migration::Rewritten { bytes, calls, from: 1 } => (bytes, calls),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_old_recording_is_rewritten_call_by_call_and_plays_the_same() {
    let before = Cassette::from_bytes("old.jsonl", old().as_bytes()).unwrap();
    let (bytes, calls) = rewritten(&old());
    let after = Cassette::from_bytes("new.jsonl", &bytes).unwrap();
    after.verify().unwrap();
    assert_eq!((calls, after.schema(), before.schema(), after.scheme()), (2, 2, 1, Scheme::Reference));
    for (old, new) in before.calls().iter().zip(after.calls()) {
        assert_eq!((&old.scope, &old.request_sha256, &old.output), (&new.scope, &new.request_sha256, &new.output));
        assert_eq!(old.source, new.source);
    }
    assert_eq!(after.calls()[1].source["step"], 7, "the number its writer gave it");
    assert_eq!(after.calls()[1].source["took"], 1.5);
    let meta = after.meta().unwrap();
    assert_eq!((meta.contract_version.as_str(), meta.mask.as_ref().unwrap().entities.as_deref()), ("v2", Some("permutation")));
    assert_eq!(meta.extra["meta"], serde_json::from_str::<Value>(META).unwrap());
    for cassette in [before, after] {
        let mut player = Player::new(cassette).unwrap();
        let [first, second] = requests();
        assert_eq!(player.next(&first).unwrap().message.content(), Some("I wait. 😀"));
        assert_eq!(player.next(&second).unwrap().message.content(), None);
        player.finish().unwrap();
    }
    // The same file again; and once it has today's schema there is nothing to do.
    assert_eq!(rewritten(&old()).0, bytes);
    let again = migrate::cassette(Path::new("new.jsonl"), &bytes).unwrap();
    assert_eq!(again, Migration::Nothing { schema: 2 });
}

#[test]
fn a_changed_line_of_a_rewritten_recording_is_found() {
    let (bytes, _) = rewritten(&old());
    let changed = String::from_utf8(bytes).unwrap().replacen("I wait.", "I buy.", 1);
    let error = Cassette::from_bytes("new.jsonl", changed.as_bytes()).unwrap().verify().unwrap_err();
    assert!(matches!(error, RecordingError::Changed { .. }), "{error}");
}

#[test]
fn what_cannot_be_kept_is_not_rewritten() {
    let [first, _] = requests();
    let check = |output: &str, expected: NoJson| {
        let text = format!("{}\n", line(0, &first, output));
        match migrate::cassette(Path::new("old.jsonl"), text.as_bytes()) {
            Err(MigrateError::Lossy { line: 1, what, .. }) => assert_eq!(what, expected),
            other => panic!("{other:?}"),
        }
    };
    check(r#"{"role": "assistant", "content": "\ud83d"}"#, NoJson::Surrogate(0xd83d));
    check(r#"{"role": "assistant", "p": NaN}"#, NoJson::NotFinite("NaN"));
    check(r#"{"role": "assistant", "p": 1e999}"#, NoJson::NotFinite("Infinity"));
    check(r#"{"role": "assistant", "p": 123456789012345678901}"#, NoJson::Integer("123456789012345678901".into()));
    let newer = old().replacen("\"schema_version\": 1", "\"schema_version\": 9", 1);
    let error = migrate::cassette(Path::new("old.jsonl"), newer.as_bytes()).unwrap_err();
    assert!(matches!(error, MigrateError::Recording(RecordingError::Newer { found: 9, .. })), "{error}");
    let broken = migrate::cassette(Path::new("old.jsonl"), &old().as_bytes()[..200]).unwrap_err();
    assert!(matches!(broken, MigrateError::Recording(RecordingError::Broken { .. })), "{broken}");
}

// What Python writes and JSON does not have costs one call, not the recording.
#[test]
fn an_answer_that_json_cannot_hold_is_a_call_without_one_that_says_why() {
    let [first, second] = requests();
    let good = json!({"role": "assistant", "content": "I wait."}).to_string();
    let text = format!("{META}\n{}\n{}\n", line(0, &first, &good), line(1, &second, r#"{"role": "assistant", "p": [NaN]}"#));
    let cassette = Cassette::from_bytes("old.jsonl", text.as_bytes()).unwrap();
    assert_eq!(cassette.calls()[1].output, None);
    let mut player = Player::new(cassette).unwrap();
    player.next(&first).unwrap();
    let error = player.next(&second).unwrap_err();
    assert!(matches!(&error, ReplayError::NoOutput { error: Some(why), .. } if why.contains("NaN")), "{error}");
    // In a recording of ours the same is a broken line.
    let ours =
        r#"{"schema_version":2,"type":"meta","contract_version":"v5","canonical_version":1,"model":"m","synthetic":false}"#;
    let text = format!("{ours}\n{}\n", line(0, &first, r#"{"p": NaN}"#));
    assert!(matches!(Cassette::from_bytes("ours.jsonl", text.as_bytes()), Err(RecordingError::Broken { .. })));
}
