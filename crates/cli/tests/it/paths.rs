//! A result that is too long, through every command: run, run that goes on, replay. The same bytes everywhere, and the reader is told.

use crate::command::{repo, run, text};
use serde_json::Value;
use std::path::Path;
use traderharness_contract::budget::RESULT_LIMIT;
use traderharness_replay::{Cassette, Record};

/// A refused order with a very long reason, and one that fits.
fn script(folder: &Path) -> String {
    let order = |reason: &str| {
        format!(
            "          - {{tool: place_order, args: {{action: buy, stock_code: $000338, quantity: 150, reasoning: '{reason}'}}}}\n"
        )
    };
    let body = format!(
        "schema: 1\ndays:\n  - open_1:\n      - calls:\n{}{}          - {{tool: complete_phase, args: {{decision: no_trade, summary: s, \
         abandon_error_codes: [invalid_lot, invalid_tool_arguments]}}}}\n",
        order(&"a reason \u{1F680} ".repeat(4_000)),
        order("short")
    );
    let path = folder.join("script.yaml");
    std::fs::write(&path, body).unwrap();
    text(&path).to_owned()
}

fn shown(record: &Path) -> Vec<String> {
    let entries = traderharness_replay::trajectory::read(record.join("trajectory.jsonl")).unwrap().entries;
    entries.into_iter().filter_map(|e| if let Record::ToolResult { shown, .. } = e.record { shown } else { None }).collect()
}

// complaints TR-7, TR-1
#[test]
fn a_result_that_is_too_long_is_the_same_through_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let line = |record: &Path, more: &[&str]| {
        let mut args = vec!["run", "--script", &script, "--mask-key", text(&key), "--start", "2020-02-04", "--end", "2020-02-04"];
        args.extend_from_slice(&["--record", text(record)]);
        args.extend_from_slice(more);
        run(&args)
    };
    let record = folder.path().join("run");
    let ran = line(&record, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told: Vec<&str> = ran.out.lines().filter(|l| l.contains("place_order(")).collect();
    assert!(told.len() == 2 && told[0].contains("the model read a part"), "{told:?}");
    assert_eq!(ran.out.matches("the model read a part").count(), 1, "{}", ran.out);

    let seen = shown(&record);
    let [long] = &seen[..] else { panic!("{} results were cut", seen.len()) };
    assert!(long.chars().count() <= RESULT_LIMIT);
    let read: Value = serde_json::from_str(long).unwrap();
    assert_eq!((&read["success"], &read["_truncation"]["truncated"]), (&false.into(), &true.into()));
    let cassette = Cassette::load(record.join("cassette.jsonl")).unwrap();
    let last = cassette.request(cassette.calls().len() - 1).unwrap().unwrap();
    let results = last.messages.iter().filter(|m| m.role() == "tool").filter_map(|m| m.content());
    let sent: Vec<&str> = results.filter(|text| text.contains("_truncation")).collect();
    assert_eq!(sent, [long.as_str()], "the request holds what the trajectory says");

    // A run that goes on from nothing but its first records, and a machine's run, come to the same bytes.
    let again = folder.path().join("again");
    assert_eq!(line(&again, &["--json"]).code, 0);
    let cut = std::fs::read_to_string(again.join("trajectory.jsonl")).unwrap();
    let head: String = cut.split_inclusive('\n').take(12).collect();
    std::fs::write(again.join("trajectory.jsonl"), head).unwrap();
    std::fs::rename(again.join("cassette.jsonl"), again.join("cassette.jsonl.partial")).unwrap();
    let resumed = line(&again, &["--json", "--resume"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert_eq!(shown(&again), seen);
    for more in [&["--show"][..], &["--json"], &[]] {
        let replayed = run(&[&["replay", text(&record)], more].concat());
        assert_eq!(replayed.code, 0, "{more:?}: {}", replayed.err);
        assert_eq!(replayed.out.contains("the model read a part"), more == ["--show"], "{more:?}");
    }
}
