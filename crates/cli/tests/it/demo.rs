//! `demo` and the other commands without arguments.

use crate::command::{repo, run};
use serde_json::Value;

#[test]
fn the_demo_replays_identically_and_says_what_to_try_next() {
    let ran = run(&["demo"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains(" requests identical."), "{}", ran.out);
    assert!(ran.out.contains("(repaired)"), "{}", ran.out);
    assert!(ran.out.contains("Try next:"), "{}", ran.out);
    assert!(!ran.out.contains("SYNTHETIC"));
    assert!(!ran.out.contains('\x1b'), "colour codes in a pipe");
    for hidden in ["000338", "2020-02-04"] {
        assert!(!ran.out.contains(hidden), "{hidden} is shown");
    }
}

#[test]
fn the_demo_speaks_json() {
    let ran = run(&["demo", "--json"]);
    let value: Value = serde_json::from_str(&ran.out).expect("one JSON value");
    assert_eq!(value["identical"], value["requests"]);
    assert_eq!(value["run"]["dataset"]["synthetic"], false);
    assert_eq!(value["run"]["summary"]["days"].as_array().unwrap().len(), 1);
}

// The bundled recording is the one its script makes today.
#[test]
fn the_demo_cassette_is_current() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let script = repo("crates/cli/demo/script.yaml");
    let key = repo("crates/cli/demo/mask.key");
    let ran = run(&[
        "run",
        "--script",
        script.to_str().unwrap(),
        "--mask-key",
        key.to_str().unwrap(),
        "--start",
        "2020-02-04",
        "--end",
        "2020-02-04",
        "--record",
        record.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let made = std::fs::read_to_string(record.join("cassette.jsonl")).unwrap();
    let kept = std::fs::read_to_string(repo("crates/cli/recordings/v5.jsonl")).unwrap();
    assert!(made == kept, "the bundled recording is stale; renew it with `cargo xtask cassettes` and read the diff");
}

#[test]
fn tools_are_listed_and_shown() {
    let list = run(&["tools"]);
    assert_eq!(list.code, 0);
    for tool in ["get_kline", "place_order", "finish_day"] {
        assert!(list.out.contains(tool));
        let one = run(&["tools", tool]);
        assert!(one.out.contains("Example"), "{}", one.out);
        let machine: Value = serde_json::from_str(&run(&["tools", tool, "--json"]).out).unwrap();
        assert_eq!(machine["name"], tool);
        assert_eq!(machine["input_schema"]["additionalProperties"], false);
    }
    // A card's demands stand in the schema.
    let folder = tempfile::tempdir().unwrap();
    let card = folder.path().join("card.yaml");
    std::fs::write(&card, "id: strict\nrequire_decision_card: true\n").unwrap();
    let under = run(&["tools", "place_order", "--json", "--card", card.to_str().unwrap()]);
    assert_ne!(under.out, run(&["tools", "place_order", "--json"]).out);
    // Failures of --json are JSON too.
    let machine = run(&["tools", "get_klines", "--json"]);
    let fault: Value = serde_json::from_str(&machine.err).unwrap();
    assert_eq!((machine.code, &fault["exit_code"], machine.out.as_str()), (2, &serde_json::json!(2), ""));
    assert!(fault["hints"][0].as_str().unwrap().starts_with("tools: "));
    let unknown = run(&["tools", "get_klines"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("hint: tools: "), "{}", unknown.err);
}

#[test]
fn the_bundled_pack_describes_itself() {
    let ran = run(&["data", "info", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(ran.out.contains("3864"), "daily rows: {report}");
    assert_eq!(run(&["data", "info"]).code, 0);
}
