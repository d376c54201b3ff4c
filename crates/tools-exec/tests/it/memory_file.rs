//! The lines of a memory file: what is written reads back to the same state, cut files lose at most a line, wrong lines are named.

use proptest::prelude::*;
use traderharness_market::testing::day;
use traderharness_tools_exec::memory::{Draft, Memory, MemoryFault, MemoryKind, Source};

const REMEMBER: &str = r#"{"event":"remember","date":"2024-03-08","memory_id":"mem-0001","memory_type":"lesson","content":"x","tags":[],"importance":0.5,"source":"agent","supersedes_id":null}"#;

fn lines(memory: &mut Memory) -> String {
    memory.take_fresh().iter().map(|event| event.to_line() + "\n").collect()
}

fn draft(content: &str, supersedes: Option<String>) -> Draft {
    Draft {
        kind: MemoryKind::Observation,
        content: content.to_owned(),
        tags: vec!["b".into(), "a".into()],
        importance: 0.25,
        source: Source::Agent,
        supersedes,
    }
}

#[test]
fn events_are_lines_in_a_fixed_order_of_fields() {
    let mut memory = Memory::new();
    memory.write(day("2024-03-08"), draft("first \"板块\"\n", None));
    memory.write(day("2024-03-11"), draft("second", Some("mem-0001".into())));
    memory.journal(day("2024-03-11"), "a quiet day");
    memory.write_hard_state(day("2024-03-11"), "{}".into());
    insta::assert_snapshot!(lines(&mut memory));
    assert!(!memory.has_fresh());
}

#[test]
fn a_line_that_is_whole_but_wrong_is_named() {
    let check = |line: &str, expected: &str| {
        let file = format!("{REMEMBER}\n\n{line}\n{REMEMBER}\n");
        let fault = Memory::restore(file.as_bytes()).unwrap_err();
        assert_eq!(fault.to_string(), expected);
    };
    let changed = |from: &str, to: &str| REMEMBER.replace("mem-0001", "mem-0002").replace(from, to);
    check("{", "memory line 3 is not a memory event: EOF while parsing an object");
    check("[1]", "memory line 3 is not a memory event: invalid type: integer `1`, expected variant identifier");
    check(
        r#"{"event":"forget"}"#,
        "memory line 3 is not a memory event: unknown variant `forget`, expected one of `daily_journal`, `remember`, `supersede`",
    );
    check(
        &changed("2024-03-08", "2024-02-30"),
        "memory line 3 is not a memory event: `2024-02-30` is not a date; write it as YYYY-MM-DD, for example 2024-03-05",
    );
    check(&changed("0.5", "null"), "memory line 3 is not a memory event: invalid type: null, expected f64");
    check(REMEMBER, "memory line 3: the id `mem-0001` is taken by an earlier line");
    for id in ["mem-2", "env-0002", "mem-00002", "mem-0000", "mem-99999999999999999999", "mem-000x"] {
        check(
            &changed("mem-0002", id),
            &format!("memory line 3: `{id}` is not an id of this source; `mem-` and at least four digits are"),
        );
    }
    check(&changed(r#""x""#, r#"" ""#), "memory line 3: `mem-0002` has no content");
    check(&changed("lesson", "runtime_state"), "memory line 3: a record of the agent cannot be a runtime_state");
    let superseding = |id: &str| changed(r#""supersedes_id":null"#, &format!(r#""supersedes_id":"{id}""#));
    check(&superseding("mem-0007"), "memory line 3 names `mem-0007`, which no earlier record of the same source has");
    let supersede = r#"{"event":"supersede","date":"2024-03-08","memory_id":"mem-0001","superseded_by":"mem-0002"}"#;
    check(supersede, "memory line 3 names `mem-0002`, which no earlier record of the same source has");
    let twice = format!("{}\n{}", superseding("mem-0001"), superseding("mem-0001").replace("mem-0002", "mem-0003"));
    check(&twice, "memory line 4: `mem-0001` was superseded by `mem-0002` before");
    let latin: Vec<u8> = [b"{\"event\":\"", &b"\xe9"[..], b"\"}\n"].concat();
    assert_eq!(Memory::restore(&latin), Err(MemoryFault::NotText { line: 1 }));
}

#[test]
fn a_supersession_cut_off_from_its_record_still_holds() {
    let mut memory = Memory::new();
    memory.write(day("2024-03-08"), draft("first", None));
    memory.write(day("2024-03-08"), draft("second", Some("mem-0001".into())));
    let file = lines(&mut memory);
    let cut = file.rfind("{\"event\":\"supersede\"").unwrap();
    let restored = Memory::restore(&file.as_bytes()[..cut]).unwrap().memory;
    assert_eq!(restored, Memory::restore(file.as_bytes()).unwrap().memory);
    assert_eq!(restored.active(day("2024-03-08")).count(), 1);
}

#[test]
fn editors_may_leave_a_byte_order_mark_crlf_and_blank_lines() {
    let file = format!("\u{feff}{REMEMBER}\r\n\r\n   \n");
    let restored = Memory::restore(file.as_bytes()).unwrap();
    assert_eq!((restored.memory.records(day("2024-03-08")).count(), restored.ended), (1, true));
    let open = Memory::restore(REMEMBER.as_bytes()).unwrap();
    assert_eq!((open.whole, open.ended), (REMEMBER.len(), false), "a whole object without its line end counts");
    assert_eq!(Memory::restore(b"").unwrap().memory, Memory::new());
}

#[derive(Debug, Clone)]
enum Step {
    Write(String, usize),
    Journal(String),
    Hold(u8),
}

fn steps() -> impl Strategy<Value = Vec<(u8, Step)>> {
    let step = prop_oneof![
        (".{1,30}", 0..8_usize).prop_map(|(words, old)| Step::Write(words, old)),
        ".{0,30}".prop_map(Step::Journal),
        (0..3_u8).prop_map(Step::Hold),
    ];
    prop::collection::vec((0..2_u8, step), 0..25)
}

/// A memory after some days of steps.
fn played(steps: &[(u8, Step)]) -> Memory {
    let mut memory = Memory::new();
    let mut today = day("2024-03-08");
    for (days, step) in steps {
        today = today.plus(i32::from(*days));
        match step {
            Step::Write(words, old) => {
                let old = memory.active(today).nth(*old).map(|r| r.id.clone());
                if !words.trim().is_empty() {
                    memory.write(today, draft(words, old));
                }
            }
            Step::Journal(words) => memory.journal(today, words),
            Step::Hold(n) => memory.write_hard_state(today, format!("state {n}")),
        }
    }
    memory
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_reads_back_and_a_kill_at_any_byte_loses_one_line(steps in steps(), cut in 0.0..1.0_f64) {
        let mut memory = played(&steps);
        let file = lines(&mut memory);
        let restored = Memory::restore(file.as_bytes()).unwrap();
        prop_assert_eq!(&restored.memory, &memory);
        prop_assert_eq!((restored.whole, restored.ended), (file.len(), true));

        let cut = (file.len() as f64 * cut) as usize;
        let part = Memory::restore(&file.as_bytes()[..cut]).unwrap();
        let whole_lines = file.as_bytes()[..cut].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        prop_assert!(part.whole >= whole_lines && part.whole <= cut);
        // What is left can be written on: nothing in it depends on what was lost.
        let again = Memory::restore(&file.as_bytes()[..part.whole]).unwrap();
        prop_assert_eq!(&again.memory, &part.memory);
        prop_assert!(part.whole == whole_lines || !part.ended);
    }

    #[test]
    fn hostile_bytes_are_an_error_or_a_memory(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Memory::restore(&bytes);
    }

    #[test]
    fn search_is_a_function_of_the_records(steps in steps(), query in "[a-zA-Z0-9 板块]{1,12}") {
        let memory = played(&steps);
        let today = day("2030-01-01");
        if let Some(query) = traderharness_tools_exec::memory::search::Query::new(&query) {
            let ids = |m: &Memory| m.search(&query, None, today).iter().map(|r| r.id.clone()).collect::<Vec<_>>();
            let found = ids(&memory);
            let mut distinct = found.clone();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), found.len());
            prop_assert!(found.iter().all(|id| memory.find(id, today).is_some_and(|r| r.is_active(today))));
            let copy = memory.clone();
            prop_assert_eq!(ids(&copy), found);
        }
    }
}
