//! The trajectory survives a kill at every byte and never holds a time.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use traderharness_contract::Envelope;
use traderharness_replay::cassette::Dataset;
use traderharness_replay::trajectory::{Entry, Record, RunStart, TimingLog, Trajectory, read};
use traderharness_replay::{Fingerprint, Message, RecordingError, Response, ToolCall};

fn start() -> RunStart {
    RunStart {
        contract_version: "v5".into(),
        model: "scripted".into(),
        dataset: Dataset { name: "real-pack".into(), sha256: None },
        synthetic: false,
        ..RunStart::default()
    }
}

/// One record of every type after the start.
fn records() -> Vec<Record> {
    let call = ToolCall::new("c1", "place_order", r#"{"stock_code":"股票🚀"#);
    let envelope = Envelope(json!({"success": false, "error": "At the limit.", "error_code": "limit_up_locked"}));
    vec![
        Record::DayStart { day_index: 1, day: "2025-07-14".into(), account: json!({"cash": "100000.00"}) },
        Record::Brief { role: "user".into(), text: "Day 1 ≥ \u{2028}\n".into() },
        Record::DecisionPoint { point: "open_1".into(), time: "09:30".into(), equity: None },
        Record::ModelRequest { scope: "main".into(), step: 0, request_sha256: Fingerprint([1; 32]), messages: 3 },
        Record::ModelResponse {
            scope: "main".into(),
            step: 0,
            response: Response::new(Message::assistant("", std::slice::from_ref(&call))),
        },
        Record::ToolCall { scope: None, call_id: call.id, tool: call.name, arguments: call.arguments },
        Record::tool_result("c1", "place_order", &envelope, None),
        Record::Order { event: json!({"status": "accepted"}) },
        Record::Fill { event: json!({"price": "10.25", "quantity": 100}) },
        Record::Completion { point: "open_1".into(), detail: json!({"summary": "done"}) },
        Record::Error { code: "budget_tokens".into(), message: "The token budget is used up.".into(), detail: Value::Null },
        Record::DayEnd { day: "2025-07-14".into(), account: json!({"cash": "99000.00"}) },
        Record::RunEnd { status: "completed".into(), totals: json!({"days": 1}) },
    ]
}

fn write(path: &Path) -> Vec<u8> {
    let mut trajectory = Trajectory::create(path, start()).unwrap();
    for (index, record) in records().into_iter().enumerate() {
        assert_eq!(trajectory.append(record).unwrap(), index as u64 + 1);
    }
    std::fs::read(path).unwrap()
}

fn check_broken(content: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, content).unwrap();
    let error = read(&path).expect_err(expected).to_string().replace(&path.display().to_string(), "FILE");
    assert_eq!(error, expected);
}

#[test]
fn every_record_comes_back_and_the_lines_read_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let bytes = write(&path);
    insta::assert_snapshot!("all_records", std::str::from_utf8(&bytes).unwrap());
    let recovered = read(&path).unwrap();
    assert_eq!(recovered.cut, None);
    let found: Vec<Record> = recovered.entries.into_iter().skip(1).map(|entry| entry.record).collect();
    assert_eq!(found, records());
}

#[test]
fn a_kill_at_any_byte_loses_no_whole_record_and_the_run_goes_on() {
    // DESIGN rule 8; complaint TR-8
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let mut trajectory = Trajectory::create(&path, start()).unwrap();
    // The first records hold texts of two, three and four bytes per character.
    for record in records().into_iter().take(6) {
        trajectory.append(record).unwrap();
    }
    // A killed process holds no file open; one that lives is the only one that may write it.
    let busy = Trajectory::resume(&path).unwrap_err();
    assert!(matches!(busy, RecordingError::Io { source, .. } if source.kind() == std::io::ErrorKind::ResourceBusy));
    drop(trajectory);
    let whole = std::fs::read(&path).unwrap();
    let all = read(&path).unwrap().entries;
    let mut line_ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at).collect();
    line_ends.insert(0, 0);
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let recovered = read(&path).unwrap();
        // A record is whole when its closing brace is there; only its line end may be missing.
        let expected = line_ends.iter().skip(1).filter(|end| **end <= cut).count();
        assert_eq!(recovered.entries, all[..expected], "cut {cut}");
        let torn =
            whole[..cut].len() - line_ends.iter().rfind(|end| **end < cut.max(1)).map_or(0, |end| end + usize::from(*end > 0));
        match recovered.cut {
            Some(place) => assert!(place.bytes == torn && place.place.line == expected + 1, "cut {cut}"),
            None => assert!(cut == 0 || line_ends.iter().any(|end| *end == cut || end + 1 == cut), "cut {cut}"),
        }
    }
    for cut in (0..=whole.len()).step_by(29).chain([whole.len() - 1]) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut trajectory, entries) = Trajectory::resume(&path).unwrap();
        for Entry { seq, record } in &all[entries.len()..] {
            assert_eq!(trajectory.append(record.clone()).unwrap(), *seq);
        }
        assert!(std::fs::read(&path).unwrap() == whole, "cut {cut}");
    }
}

#[test]
fn a_line_broken_in_the_middle_is_an_error_with_its_place() {
    let start =
        r#"{"seq":0,"type":"run_start","schema_version":1,"contract_version":"v5","model":"m","dataset":{},"synthetic":true}"#;
    let day = r#"{"seq":1,"type":"day_end","day":"d","account":null}"#;
    check_broken(&format!("{start}\n{{\"seq\":1,\n{day}\n"), "FILE, line 2, byte 114: the JSON ends too early, at column 9");
    check_broken(&format!("{start}\n{{\"seq\":1,\n"), "FILE, line 2, byte 114: the JSON ends too early, at column 9");
    check_broken(
        &format!("{start}\n{start}\n"),
        "FILE, line 2, byte 114: record 0 where record 1 is due: a line is missing, doubled or moved",
    );
    check_broken(
        &start.replace("version\":1", "version\":2"),
        "FILE, line 1, byte 0: schema_version is version 2 and this program reads up to 1; upgrade traderharness to read it",
    );
    check_broken(&start.replace(",\"synthetic\":true", ""), "FILE, line 1, byte 0: missing field `synthetic`");
    let unknown = read_error(&format!("{start}\n{}", day.replace("day_end", "week_end")));
    assert!(unknown.starts_with("FILE, line 2, byte 114: unknown variant `week_end`"), "{unknown}");
}

fn read_error(content: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, content).unwrap();
    read(&path).unwrap_err().to_string().replace(&path.display().to_string(), "FILE")
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let before = write(&path);
    assert!(matches!(Trajectory::create(&path, start()), Err(RecordingError::Io { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn times_go_into_their_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let mut timing = TimingLog::open(folder.path().join("t.timing.jsonl")).unwrap();
    let mut trajectory = Trajectory::create(&path, start()).unwrap().synced();
    let seq = trajectory.append(records().remove(0)).unwrap();
    timing.append(seq, "day_start", Duration::from_micros(1500)).unwrap();
    let written = std::fs::read_to_string(folder.path().join("t.timing.jsonl")).unwrap();
    assert_eq!(written, "{\"seq\":1,\"what\":\"day_start\",\"microseconds\":1500}\n");
    assert_eq!(read(&path).unwrap().entries.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_content_comes_back(texts in prop::collection::vec((any::<String>(), crate::canonical::any_json()), 0..6)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let records: Vec<Record> =
            texts.into_iter().map(|(code, detail)| Record::Error { message: code.clone(), code, detail }).collect();
        let mut trajectory = Trajectory::create(&path, start()).unwrap();
        for record in &records {
            trajectory.append(record.clone()).unwrap();
        }
        let found: Vec<Record> = read(&path).unwrap().entries.into_iter().skip(1).map(|entry| entry.record).collect();
        prop_assert_eq!(found, records);
    }
}
