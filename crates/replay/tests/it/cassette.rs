//! Record and replay.

mod damaged;
mod scopes;

use crate::canonical::any_json;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use traderharness_replay::cassette::{DEFAULT_SCOPE, Dataset, Mask};
use traderharness_replay::request::function_tool;
use traderharness_replay::{
    Cassette, Fingerprint, Message, Meta, Player, Recorder, RecordingError, ReplayError, Request, Response, ToolCall, Usage,
    partial_path,
};

pub(crate) fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day.jsonl");
    (folder, path)
}

pub(crate) fn meta() -> Meta {
    Meta {
        contract_version: "v5".into(),
        model: "scripted".into(),
        mask: Some(Mask { entities: Some("opaque".into()), dates: true, seed_sha256: None }),
        dataset: Some(Dataset { name: "real-pack".into(), sha256: Some(Fingerprint([7; 32])) }),
        synthetic: false,
        behaviour_flags: [3, 1].into(),
        extra: Map::from_iter([("start".to_owned(), json!("2025-07-14"))]),
        ..Meta::default()
    }
}

fn tool(name: &str) -> Value {
    function_tool(
        name,
        &format!("Does {name}. 价格 ≥ 0."),
        &json!({"type": "object", "properties": {"days": {"type": "integer"}}}),
    )
}

/// A day of `calls` requests: the conversation grows, a request-only message stands at the end, tools change at the close.
pub(crate) fn day(calls: usize) -> Vec<(Request, Response)> {
    let mut conversation = vec![Message::user("Day 1. 开盘 09:30 🚀")];
    let mut day = Vec::new();
    for step in 0..calls {
        let mut request = Request::new("scripted", "v5");
        request.system = Some("You trade A-shares. \u{2028}".into());
        request.sampling.insert("temperature".into(), json!(0.0));
        request.tools = vec![tool("get_kline"), tool("place_order")];
        if step + 1 == calls {
            request.tools.push(tool("finish_day"));
        }
        request.messages = conversation.clone();
        request.messages.push(Message::user("Duty of this phase: decide.")); // engine E10.1: in the request only
        let call = ToolCall::new(format!("c{step}"), "get_kline", r#"{"days": 5}"#);
        let mut response = Response::new(Message::assistant(format!("step {step}"), &[call]));
        response.usage = Some(Usage { input_tokens: 1000, output_tokens: 10, ..Usage::default() });
        conversation.push(response.message.clone());
        conversation.push(Message::tool(format!("c{step}"), format!(r#"{{"success":true,"close":10.{step}}}"#)));
        day.push((request, response));
    }
    day
}

fn record(path: &Path, day: &[(Request, Response)]) {
    let mut recorder = Recorder::create(path, meta()).unwrap();
    for (request, response) in day {
        recorder.record(DEFAULT_SCOPE, request, response).unwrap();
    }
    assert_eq!(recorder.finish().unwrap(), path);
}

fn player(path: &Path) -> Player {
    Player::new(Cassette::load(path).unwrap()).unwrap()
}

fn replay(path: &Path, day: &[(Request, Response)]) {
    let mut player = player(path);
    for (request, response) in day {
        assert_eq!(&player.next(request).unwrap(), response);
    }
    assert_eq!(player.finish().unwrap(), day.len());
}

/// Changes the recorded file as text.
fn edit(path: &Path, change: impl Fn(String) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let changed = change(text.clone());
    assert_ne!(changed, text, "the edit changed nothing");
    std::fs::write(path, changed).unwrap();
}

#[test]
fn a_day_replays_and_verifies() {
    // engine E13.5
    let (_folder, path) = folder();
    let day = day(6);
    record(&path, &day);
    replay(&path, &day);
    assert!(!partial_path(&path).exists());
    let cassette = Cassette::load(&path).unwrap();
    cassette.verify().unwrap();
    assert!(cassette.is_sealed());
    assert_eq!(cassette.meta(), Some(&Meta { canonical_version: 1, ..meta() }));
    for (step, (request, _)) in day.iter().enumerate() {
        assert_eq!(cassette.request(step).unwrap().as_ref(), Some(request));
    }
    assert_eq!(cassette.request(6).unwrap(), None);
}

#[test]
fn the_file_reads_well() {
    let (_folder, path) = folder();
    record(&path, &day(2));
    insta::assert_snapshot!("two_calls", std::fs::read_to_string(&path).unwrap());
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    // complaint RP-7
    let (_folder, path) = folder();
    let record_again = || {
        record(&path, &day(4));
        std::fs::read(&path).unwrap()
    };
    let first = record_again();
    assert!((0..20).all(|_| record_again() == first));
    // complaint WN-1
    assert!(std::str::from_utf8(&first).is_ok_and(|text| text.contains("开盘 09:30 🚀") && !text.contains('\r')));
}

#[test]
fn a_day_of_sixty_calls_is_stored_once_not_sixty_times() {
    let (_folder, path) = folder();
    let day = day(60);
    record(&path, &day);
    let size = |value: &dyn Fn() -> String| value().len();
    let last = size(&|| serde_json::to_string(&day.last().unwrap().0).unwrap());
    let all: usize = day.iter().map(|(request, _)| serde_json::to_string(request).unwrap().len()).sum();
    let file = std::fs::metadata(&path).unwrap().len() as usize;
    // Beside the history: every answer a second time as output, and the frame of each line.
    let lines = 60 * 800;
    assert!(file < 2 * last + lines, "file {file}, last request {last}");
    assert!(file < all / 4, "file {file}, all requests {all}");
}

#[test]
fn one_changed_character_stops_the_replay_and_is_shown() {
    // complaint RP-3
    let (_folder, path) = folder();
    let mut day = day(4);
    record(&path, &day);
    let changed = Message::tool("c1", r#"{"success":true,"close":10.7}"#);
    for (request, _) in &mut day[2..] {
        request.messages[4] = changed.clone();
    }
    let mut player = player(&path);
    player.next(&day[0].0).unwrap();
    player.next(&day[1].0).unwrap();
    let error = player.next(&day[2].0).unwrap_err();
    let ReplayError::Mismatch { index: 2, expected, actual, differences: Some(differences), .. } = &error else {
        panic!("{error}")
    };
    assert_ne!(expected, actual);
    assert_eq!(*actual, day[2].0.fingerprint());
    assert_eq!(differences.len(), 1);
    insta::assert_snapshot!("mismatch", error.to_string());
    // The old answer is never served, however often it is asked for.
    assert!(matches!(player.next(&day[2].0), Err(ReplayError::Mismatch { index: 2, .. })));
    assert!(matches!(player.next(&day[3].0), Err(ReplayError::Mismatch { index: 2, .. })));
}

#[test]
fn a_changed_tool_is_named() {
    let (_folder, path) = folder();
    let mut day = day(1);
    record(&path, &day);
    day[0].0.tools[1]["function"]["parameters"]["properties"]["days"]["type"] = json!("number");
    day[0].0.sampling.insert("temperature".into(), json!(1));
    let error = player(&path).next(&day[0].0).unwrap_err();
    insta::assert_snapshot!("changed_tool", error.to_string());
}

#[test]
fn the_three_ends_of_a_recording_are_three_errors() {
    // engine E13.2
    let (_folder, path) = folder();
    let day = day(2);
    let mut recorder = Recorder::create(&path, meta()).unwrap();
    recorder.record(DEFAULT_SCOPE, &day[0].0, &day[0].1).unwrap();
    recorder.record_failure(DEFAULT_SCOPE, &day[1].0, "the provider closed the connection").unwrap();
    recorder.finish().unwrap();

    let mut at_failure = player(&path);
    at_failure.next(&day[0].0).unwrap();
    insta::assert_snapshot!("no_output", at_failure.next(&day[1].0).unwrap_err().to_string());

    record(&path, &day);
    let mut early = player(&path);
    early.next(&day[0].0).unwrap();
    insta::assert_snapshot!("unused", early.finish().unwrap_err().to_string());

    let mut late = player(&path);
    late.next(&day[0].0).unwrap();
    late.next(&day[1].0).unwrap();
    insta::assert_snapshot!("exhausted", late.next(&day[1].0).unwrap_err().to_string());
    assert_eq!(late.finish().unwrap(), 2);
}

#[test]
fn a_recording_cut_at_a_line_end_says_so_when_it_runs_out() {
    let (_folder, path) = folder();
    let day = day(2);
    record(&path, &day);
    edit(&path, |text| text.lines().take_while(|line| !line.contains("\"step\":1")).map(|line| format!("{line}\n")).collect());
    let mut player = player(&path);
    player.next(&day[0].0).unwrap();
    let error = player.next(&day[1].0).unwrap_err();
    assert!(matches!(error, ReplayError::Exhausted { index: 1, total: 1, sealed: false, .. }));
    assert!(error.to_string().contains("no end line"), "{error}");
    assert!(matches!(player.cassette().verify(), Err(RecordingError::Broken { .. })));
}

#[test]
fn crlf_and_byte_order_mark_are_tolerated() {
    // complaint WN-1
    let (_folder, path) = folder();
    let day = day(3);
    record(&path, &day);
    edit(&path, |text| format!("\u{feff}{}", text.replace('\n', "\r\n")));
    replay(&path, &day);
    Cassette::load(&path).unwrap().verify().unwrap();
}

#[test]
fn without_requests_a_mismatch_still_stops() {
    let (_folder, path) = folder();
    let mut day = day(2);
    let mut recorder = Recorder::create(&path, meta()).unwrap().without_requests();
    for (request, response) in &day {
        recorder.record(DEFAULT_SCOPE, request, response).unwrap();
    }
    recorder.finish().unwrap();
    replay(&path, &day);
    Cassette::load(&path).unwrap().verify().unwrap();
    day[0].0.model.push('x');
    let error = player(&path).next(&day[0].0).unwrap_err();
    assert!(matches!(error, ReplayError::Mismatch { index: 0, differences: None, .. }));
}

#[test]
fn a_recording_of_the_python_implementation_plays() {
    // engine E13.3: no meta line, no scope; the output is the assistant message
    let (_folder, path) = folder();
    let mut request = Request::new("any-model", "v2");
    request.system = Some("You trade.".into());
    request.messages.push(Message::user("Day 1 of 4."));
    let sha256 = traderharness_replay::reference::fingerprint(&request);
    let line = json!({
        "schema_version": 1, "step": 1, "type": "llm_call", "request_sha256": sha256,
        "output": {"role": "assistant", "content": "I wait.", "tool_calls": null},
    });
    std::fs::write(&path, format!("{line}\n")).unwrap();
    let mut player = player(&path);
    assert!(player.cassette().meta().is_none());
    // Sampling is not part of those fingerprints.
    request.sampling.insert("temperature".into(), json!(0.3));
    assert_eq!(player.next(&request).unwrap().message.content(), Some("I wait."));
    request.messages.push(Message::user("Day 2 of 4."));
    assert!(matches!(player.next(&request), Err(ReplayError::Exhausted { index: 1, .. })));
    player.finish().unwrap();
}

fn any_request() -> impl Strategy<Value = Request> {
    let object = || prop::collection::vec((any::<String>(), any_json()), 0..3).prop_map(|entries| entries.into_iter().collect());
    let message = (any::<String>(), any::<String>(), any_json())
        .prop_map(|(role, content, extra)| Message(json!({"role": role, "content": content, "extra": extra})));
    (
        any::<String>(),
        object(),
        prop::option::of(any::<String>()),
        prop::collection::vec(any_json(), 0..3),
        prop::collection::vec(message, 1..5),
    )
        .prop_map(|(model, sampling, system, tools, messages)| Request {
            model,
            contract_version: "v5".into(),
            sampling,
            system,
            tools,
            messages,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_fingerprint_is_that_of_the_documented_body(request in any_request()) {
        prop_assert_eq!(request.fingerprint(), Fingerprint::of(&request.fingerprint_body()));
        prop_assert_eq!(request.fingerprint_body().as_object().unwrap().len(), 7);
    }

    #[test]
    fn whatever_is_recorded_replays(calls in prop::collection::vec((any_request(), any::<String>()), 0..4)) {
        let (_folder, path) = folder();
        let day: Vec<_> = calls.into_iter().map(|(r, text)| (r, Response::new(Message::assistant(text, &[])))).collect();
        record(&path, &day);
        replay(&path, &day);
        let cassette = Cassette::load(&path).unwrap();
        cassette.verify().unwrap();
        for (step, (request, _)) in day.iter().enumerate() {
            prop_assert_eq!(cassette.request(step).unwrap().unwrap().fingerprint(), request.fingerprint());
        }
    }

    // complaint RP-3
    #[test]
    fn any_changed_character_is_a_mismatch_at_its_index(
        request in any_request(), at in any::<prop::sample::Index>(), position in any::<prop::sample::Index>(), with in any::<char>(),
    ) {
        let (_folder, path) = folder();
        let first = Request::new("m", "v5");
        let answer = Response::new(Message::assistant("ok", &[]));
        record(&path, &[(first.clone(), answer.clone()), (request.clone(), answer)]);
        let mut changed = request.clone();
        let index = at.index(changed.messages.len());
        let mut characters: Vec<char> = changed.messages[index].content().unwrap().chars().collect();
        match characters.len() {
            0 => characters.push(with),
            length => {
                let place = position.index(length);
                prop_assume!(characters[place] != with);
                characters[place] = with;
            }
        }
        changed.messages[index].0["content"] = characters.into_iter().collect::<String>().into();
        let mut player = player(&path);
        player.next(&first).unwrap();
        let error = player.next(&changed).unwrap_err();
        let ReplayError::Mismatch { index: 1, differences: Some(differences), .. } = &error else { panic!("{error}") };
        prop_assert_eq!(&differences[0].path, &format!("messages[{index}].content"));
        prop_assert!(player.next(&request).is_ok());
    }

    #[test]
    fn no_file_content_is_a_crash(lines in prop::collection::vec(prop_oneof![
        any_json().prop_map(|value| value.to_string()),
        any::<String>(),
        Just(r#"{"schema_version":2,"type":"meta","contract_version":"v5","canonical_version":1,"model":"m","synthetic":true}"#.to_owned()),
        Just(format!(r#"{{"schema_version":2,"step":0,"type":"llm_call","request_sha256":"{}","output":{{"message":1}}}}"#, "0".repeat(64))),
    ], 0..5)) {
        let (_folder, path) = folder();
        std::fs::write(&path, lines.join("\n")).unwrap();
        if let Ok(cassette) = Cassette::load(&path) {
            let _ = cassette.verify();
            if let Ok(mut player) = Player::new(cassette) {
                prop_assert!(player.next(&Request::default()).is_err());
            }
        }
        let _ = Cassette::read_partial(&path);
    }
}
