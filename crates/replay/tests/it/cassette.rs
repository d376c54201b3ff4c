//! Record, replay, and everything that can be wrong with a file.

use crate::canonical::any_json;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use traderharness_replay::cassette::{DEFAULT_SCOPE, Dataset, Mask};
use traderharness_replay::request::function_tool;
use traderharness_replay::{
    Cassette, Fingerprint, Message, Meta, Player, Recorder, RecordingError, Replay, ReplayError, Request, Response, ToolCall,
    Usage, partial_path,
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

fn check_load(content: &[u8], expected: &str) {
    let (_folder, path) = folder();
    std::fs::write(&path, content).unwrap();
    let error = Cassette::load(&path).expect_err(expected).to_string();
    let error = error.replace(&path.display().to_string(), "FILE");
    assert_eq!(error, expected);
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
fn broken_files_name_the_place() {
    let meta =
        r#"{"schema_version":2,"type":"meta","contract_version":"v5","canonical_version":1,"model":"m","synthetic":false}"#;
    let sha = "0".repeat(64);
    let call = |step: usize| {
        format!(r#"{{"schema_version":2,"step":{step},"type":"llm_call","scope":"main","request_sha256":"{sha}","output":null}}"#)
    };
    let check = |lines: &[&str], expected: &str| check_load((lines.join("\n") + "\n").as_bytes(), expected);
    check_load(b"", "FILE is empty; record it again");
    check_load(b"\xef\xbb\xbf\r\n\n", "FILE is empty; record it again");
    check(&[meta, "{\"schema_version\":2,", &call(0)], "FILE, line 2, byte 111: the JSON ends too early, at column 20");
    check(&[meta, "nonsense"], "FILE, line 2, byte 111: not JSON: expected ident at column 2");
    check(&[meta, "[1]"], "FILE, line 2, byte 111: JSON, but not an object");
    check(
        &[meta, r#"{"type":"surprise"}"#],
        "FILE, line 2, byte 111: unknown type \"surprise\"; meta, blob, llm_call and end are known",
    );
    check(&[meta, &call(1)], "FILE, line 2, byte 111: step 1 where step 0 is due: a call is missing, doubled or moved");
    check(&[meta, &call(0), &call(0)], "FILE, line 3, byte 272: step 0 where step 1 is due: a call is missing, doubled or moved");
    check(&[meta, meta], "FILE, line 2, byte 111: a second meta line; two recordings may have been joined");
    check(&[&call(0)], "FILE, line 1, byte 0: the first line is not the meta line; lines are missing before it");
    check(&[&meta.replace(",\"synthetic\":false", "")], "FILE, line 1, byte 0: missing field `synthetic`");
    check(&[meta, &call(0).replace(&sha, "12")], "FILE, line 2, byte 111: a SHA-256 digest is 64 hexadecimal digits; got \"12\"");
    check(
        &[&meta.replace("schema_version\":2", "schema_version\":3")],
        "FILE, line 1, byte 0: schema_version is version 3 and this program reads up to 2; upgrade traderharness to read it",
    );
    check(
        &[&meta.replace("canonical_version\":1", "canonical_version\":99999999999")],
        "FILE, line 1, byte 0: canonical_version is version 99999999999 and this program reads up to 1; upgrade traderharness to read it",
    );
    check(&[&meta.replace(":2", ":\"2\"")], "FILE, line 1, byte 0: schema_version is not a number");
    let mut not_utf8 = (meta.to_owned() + "\n{\"a\":\"").into_bytes();
    not_utf8.extend(b"\xff\"}\n");
    check_load(&not_utf8, "FILE, line 2, byte 111: not UTF-8 at byte 117 of the file");
    check_load(
        (meta.to_owned() + "\n{\"schema").as_bytes(),
        "FILE, line 2, byte 111: the last line was cut while it was written; the calls before it can be read as an unfinished recording",
    );
    let error = Cassette::load("no/such/file.jsonl").unwrap_err();
    assert_eq!(error.to_string(), "cannot read no/such/file.jsonl");
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
fn a_killed_recording_keeps_every_whole_line_and_goes_on() {
    // DESIGN rule 8; complaint TR-8: the cuts also fall inside the multi-byte characters
    let (_folder, path) = folder();
    let day = day(2);
    record(&path, &day);
    let whole = std::fs::read(&path).unwrap();
    let partial = partial_path(&path);
    let meta_line = whole.iter().position(|b| *b == b'\n').unwrap();
    for cut in (meta_line..=whole.len()).step_by(37).chain([whole.len() - 1, whole.len()]) {
        std::fs::write(&partial, &whole[..cut]).unwrap();
        let (read, _) = Cassette::read_partial(&partial).unwrap();
        let kept = read.calls().len();
        let complete = whole[..cut].split_inclusive(|b| *b == b'\n').filter(|line| line.ends_with(b"\n"));
        let calls = complete.filter(|line| line.windows(10).any(|w| w == b"\"llm_call\"")).count();
        assert!(kept == calls || kept == calls + 1, "cut {cut}");

        let (mut recorder, answered) = Recorder::resume(&path).unwrap();
        assert_eq!(recorder.calls(), kept);
        let mut player = Player::new(answered).unwrap();
        for (request, response) in &day[..kept] {
            assert_eq!(&player.next(request).unwrap(), response);
        }
        for (request, response) in &day[kept..] {
            recorder.record(DEFAULT_SCOPE, request, response).unwrap();
        }
        recorder.finish().unwrap();
        assert!(std::fs::read(&path).unwrap() == whole, "cut {cut}: other bytes than without the interruption");
    }
}

// A damaged answer would be acted on; a damaged request would be answered with what was never asked.
#[test]
fn a_damaged_recording_is_not_gone_on_with() {
    let (_folder, path) = folder();
    let day = day(2);
    record(&path, &day);
    let whole = std::fs::read(&path).unwrap();
    let meta_line = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    let end_line = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    let mut refused = 0;
    for at in (meta_line..end_line).step_by(11) {
        let mut damaged = whole[..end_line].to_vec();
        damaged[at] ^= 1;
        std::fs::write(partial_path(&path), &damaged).unwrap();
        if let Ok((_, cassette)) = Recorder::resume(&path) {
            // Not every bit matters: what is handed on must be what was recorded.
            let mut player = Player::new(cassette).unwrap();
            for (request, response) in &day {
                assert_eq!(&player.next(request).unwrap(), response, "byte {at}");
            }
        } else {
            refused += 1;
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn an_interrupted_recording_is_never_overwritten() {
    let (_folder, path) = folder();
    let mut recorder = Recorder::create(&path, meta()).unwrap();
    recorder.record(DEFAULT_SCOPE, &day(1)[0].0, &day(1)[0].1).unwrap();
    drop(recorder);
    assert!(!path.exists(), "only a finished recording gets its name");
    let before = std::fs::read(partial_path(&path)).unwrap();
    assert!(matches!(Recorder::create(&path, meta()), Err(RecordingError::PartialExists { .. })));
    assert_eq!(std::fs::read(partial_path(&path)).unwrap(), before);
}

#[test]
fn verify_finds_what_was_changed() {
    let (_folder, path) = folder();
    let day = day(3);
    let check = |from: &str, to: &str, expected: &str| {
        record(&path, &day);
        edit(&path, |text| text.replacen(from, to, 1));
        let cassette = Cassette::load(&path).unwrap();
        let error = cassette.verify().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("Does place_order", "Does Place_order", "the stored part does not have its recorded digest");
    check("\\\"close\\\":10.0", "\\\"close\\\":10.9", "request 1 does not have its recorded digest");
    check("\"output_tokens\":10", "\"output_tokens\":11", "a line before the end does not have its recorded digest");
    check("\"calls\":3", "\"calls\":4", "the end line counts 4 calls, the file has 3");
    check("\"messages_kept\":1", "\"messages_kept\":9", "keeps 9 messages of 2");
    // A hand-edited request cannot explain a mismatch, and the error says that.
    record(&path, &day);
    let recorded = day[0].0.fingerprint().to_string();
    edit(&path, |text| text.replacen(&recorded, &"0".repeat(64), 1));
    let error = player(&path).next(&day[0].0).unwrap_err();
    assert!(matches!(&error, ReplayError::Mismatch { differences: Some(list), .. } if list.is_empty()));
    assert!(error.to_string().contains("changed by hand"), "{error}");
}

#[test]
fn scopes_play_apart() {
    let (_folder, path) = folder();
    let day = day(3);
    let mut recorder = Recorder::create(&path, meta()).unwrap();
    for (request, response) in &day {
        for scope in ["main", "main__advisor_risk"] {
            recorder.record(scope, request, response).unwrap();
        }
    }
    recorder.finish().unwrap();
    let cassette = std::sync::Arc::new(Cassette::load(&path).unwrap());
    cassette.verify().unwrap();
    assert_eq!(cassette.scopes(), ["main", "main__advisor_risk"]);
    for scope in ["main__advisor_risk", "main"] {
        let mut player = Player::for_scope(cassette.clone(), scope).unwrap();
        for (request, response) in &day {
            assert_eq!(&player.next(request).unwrap(), response);
        }
        player.finish().unwrap();
    }
    assert!(matches!(Player::new(cassette.clone()), Err(ReplayError::UnknownScope { .. })));

    let mut replay = Replay::new(cassette.clone());
    for (request, response) in &day {
        assert_eq!(&replay.next("main", request).unwrap(), response);
    }
    assert!(matches!(replay.next("main__executor", &day[0].0), Err(ReplayError::UnknownScope { .. })));
    assert_eq!((replay.played(), replay.total()), (3, 6));
    // A scope that was never asked is unused, too.
    let mut whole = replay.clone();
    assert!(matches!(replay.finish(), Err(ReplayError::Unused { played: 0, unused: 3, .. })));
    for (request, response) in &day {
        assert_eq!(&whole.next("main__advisor_risk", request).unwrap(), response);
    }
    assert_eq!(whole.finish().unwrap(), 6);

    let error = Player::for_scope(cassette, "main__executor").unwrap_err();
    assert_eq!(error.to_string(), "the recording has no scope \"main__executor\"; it has main, main__advisor_risk");
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

// What a run that goes on without one asker needs: its failure is played like an answer, in its place.
#[test]
fn a_recorded_failure_is_one_way_a_call_can_end_for_who_asks_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let day = day(3);
    let mut recorder = Recorder::create(&path, Meta::default()).unwrap();
    recorder.record("a", &day[0].0, &day[0].1).unwrap();
    recorder.record_failure("a", &day[1].0, "timeout").unwrap();
    recorder.record("a", &day[2].0, &day[2].1).unwrap();
    recorder.record("b", &day[0].0, &day[0].1).unwrap();
    recorder.finish().unwrap();
    let mut replay = Replay::new(Cassette::load(&path).unwrap());
    assert_eq!(replay.scopes().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((replay.left("a"), replay.left("b"), replay.left("c")), (3, 1, 0));
    assert_eq!(replay.next_or_failure("a", &day[0].0).unwrap().unwrap(), day[0].1);
    assert!(matches!(replay.next_or_failure("a", &day[2].0), Err(ReplayError::Mismatch { .. })), "its request is checked too");
    assert!(matches!(replay.next("a", &day[1].0), Err(ReplayError::NoOutput { .. })), "an answer is not made up");
    assert_eq!(replay.next_or_failure("a", &day[1].0).unwrap(), Err("timeout".to_owned()));
    assert_eq!(replay.next("a", &day[2].0).unwrap(), day[2].1);
    assert!(matches!(replay.next_or_failure("a", &day[2].0), Err(ReplayError::Exhausted { .. })));
    assert_eq!((replay.left("a"), replay.played(), replay.total()), (0, 3, 4));
}

#[test]
fn one_scope_is_played_as_a_whole_recording_of_one_agent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let day = day(2);
    let mut recorder = Recorder::create(&path, Meta::default()).unwrap();
    for scope in ["a", "b"] {
        for (request, response) in &day {
            recorder.record(scope, request, response).unwrap();
        }
    }
    recorder.finish().unwrap();
    let mut player = Player::for_scope(Cassette::load(&path).unwrap(), "b").unwrap();
    player.next(&day[0].0).unwrap();
    let mut replay = Replay::from(player);
    assert_eq!((replay.played(), replay.total(), replay.left("b")), (1, 2, 1));
    replay.next("b", &day[1].0).unwrap();
    assert!(matches!(replay.next("a", &day[0].0), Err(ReplayError::UnknownScope { .. })));
    assert_eq!(replay.finish().unwrap(), 2);
    // A recording that ended before its first call is exhausted, whoever asks.
    let empty = folder.path().join("b.jsonl");
    Recorder::create(&empty, Meta::default()).unwrap().finish().unwrap();
    let mut replay = Replay::new(Cassette::load(&empty).unwrap());
    assert!(matches!(replay.next("main", &day[0].0), Err(ReplayError::Exhausted { total: 0, sealed: true, .. })));
}
