//! A card with a committee from the command line: played, recorded, replayed, killed and gone on with.

use crate::command::{lines, repo, run, text};
use serde_json::Value;
use std::path::Path;

const SCOPES: [&str; 4] = [
    "leader-rotation__executor",
    "leader-rotation__advisor_theme_scout",
    "leader-rotation__advisor_leader_analyst",
    "leader-rotation__advisor_skeptic",
];

fn play(record: &Path, more: &[&str]) -> crate::command::Ran {
    let (script, card) = (repo("examples/cards/scripts/leader-rotation.yaml"), repo("examples/cards/leader-rotation.json"));
    let key = repo("crates/cli/demo/mask.key");
    let mut args = vec!["run", "--script", text(&script), "--card", text(&card), "--start", "2020-02-04", "--end", "2020-02-04"];
    args.extend(["--mask-key", text(&key), "--record", text(record), "--check-output", "--json"]);
    args.extend(more);
    run(&args)
}

#[test]
fn a_committee_is_recorded_under_its_scopes_and_replays_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let ran = play(&record, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    let advice = &result["summary"]["advice"];
    assert_eq!((&advice["requests"], &advice["absences"]), (&7.into(), &0.into()), "{advice}");
    assert_eq!((&advice["calls"]["succeeded"], &advice["calls"]["bad_arguments"]), (&4.into(), &1.into()), "{advice}");

    let mut scopes: Vec<String> = lines(&record.join("cassette.jsonl"))
        .iter()
        .filter(|line| line["type"] == "llm_call")
        .map(|line| line["scope"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(scopes[..3], [SCOPES[1], SCOPES[2], SCOPES[3]], "the advisors ask first, in the order of the card");
    scopes.sort();
    scopes.dedup();
    let mut expected = SCOPES;
    expected.sort_unstable();
    assert_eq!(scopes, expected);

    let trajectory = lines(&record.join("trajectory.jsonl"));
    let memo =
        trajectory.iter().find(|r| r["text"].as_str().is_some_and(|text| text.starts_with("Memo of your committee"))).unwrap();
    let memo = memo["text"].as_str().unwrap();
    for said in ["theme_scout:\n> No theme", "leader_analyst:\n> ", "does not lead it.", "skeptic:\n> Nothing is held"] {
        assert!(memo.contains(said), "{memo}");
    }
    let refused = trajectory.iter().find(|r| r["type"] == "tool_result" && r["tool"] == "place_order").unwrap();
    assert_eq!((&refused["scope"], &refused["error_code"]), (&SCOPES[2].into(), &"tool_unavailable_in_phase".into()));
    let recorded = std::fs::read_to_string(record.join("cassette.jsonl")).unwrap();
    assert!(!recorded.contains("000338"), "the run is masked for advisors too");

    let replayed = run(&["replay", text(&record)]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    let requests = &result["summary"]["requests"];
    assert!(replayed.out.contains(&format!("{requests} of {requests} requests identical.")), "{}", replayed.out);
}

#[test]
fn a_committee_that_was_stopped_goes_on_to_the_same_recording() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    assert_eq!(play(&whole, &[]).code, 0);
    for most in ["0", "2", "3", "5", "8"] {
        let record = folder.path().join(most);
        let stopped = play(&record, &["--max-requests", most]);
        assert_ne!(stopped.code, 0, "{most}");
        let ran = play(&record, &["--resume"]);
        assert_eq!(ran.code, 0, "{most}: {}", ran.err);
        let bytes = |run: &Path| std::fs::read(run.join("cassette.jsonl")).unwrap();
        assert!(bytes(&record) == bytes(&whole), "after {most} requests the recording is another one");
        assert_eq!(run(&["replay", text(&record)]).code, 0, "{most}");
    }
}

#[test]
fn a_script_for_an_advisor_that_the_card_does_not_have_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("s.yaml");
    std::fs::write(&script, "schema: 1\ndays: []\nadvisors: {bull: []}\n").unwrap();
    let ran = run(&["run", "--script", text(&script), "--start", "2020-02-04", "--end", "2020-02-04"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("names advisor `bull`; the card has none"), "{}", ran.err);
}
