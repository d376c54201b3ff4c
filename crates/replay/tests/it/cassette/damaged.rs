//! Everything that can be wrong with a file: broken, cut, interrupted, changed.

use super::{day, edit, folder, meta, player, record};
use traderharness_replay::cassette::DEFAULT_SCOPE;
use traderharness_replay::{Cassette, Player, Recorder, RecordingError, ReplayError, partial_path};

fn check_load(content: &[u8], expected: &str) {
    let (_folder, path) = folder();
    std::fs::write(&path, content).unwrap();
    let error = Cassette::load(&path).expect_err(expected).to_string();
    let error = error.replace(&path.display().to_string(), "FILE");
    assert_eq!(error, expected);
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
