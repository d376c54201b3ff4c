//! `traderharness cards`, and the example cards: each is valid and plays a day over the bundled pack.

use crate::command::{repo, run, text};
use serde_json::Value;

const EXAMPLES: [(&str, &str, u64); 4] = [
    // Card, what its day must show, fills.
    ("trend-follower.yaml", "structured_plan_missing_fields", 1),
    ("leader-rotation.json", "No leader, no trade.", 0),
    ("mean-reversion.yaml", "cond-0001", 0),
    ("cautious-cash.yaml", "Cash stays.", 0),
];

#[test]
fn every_example_card_is_good_and_another_of_its_kind() {
    let files: Vec<String> = EXAMPLES.iter().map(|(card, ..)| text(&repo("examples/cards").join(card)).to_owned()).collect();
    let mut args = vec!["cards", "check"];
    args.extend(files.iter().map(String::as_str));
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(ran.out.lines().filter(|line| line.ends_with(": good")).count(), EXAMPLES.len(), "{}", ran.out);
    let on_disk = std::fs::read_dir(repo("examples/cards")).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count();
    assert_eq!(on_disk, EXAMPLES.len(), "a card that no test plays");
}

#[test]
fn every_example_card_plays_its_day() {
    for (card, shows, fills) in EXAMPLES {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("run");
        let script = repo("examples/cards/scripts").join(card).with_extension("yaml");
        let card_file = repo("examples/cards").join(card);
        let ran = run(&[
            "run",
            "--script",
            text(&script),
            "--card",
            text(&card_file),
            "--start",
            "2020-02-04",
            "--end",
            "2020-02-04",
            "--record",
            text(&record),
            "--check-output",
            "--json",
        ]);
        assert_eq!(ran.code, 0, "{card}: {}", ran.err);
        let trajectory = std::fs::read_to_string(record.join("trajectory.jsonl")).unwrap();
        assert!(trajectory.contains(shows), "{card}: {shows} is not in its day");
        let found = trajectory.lines().filter(|line| line.contains("\"type\":\"fill\"")).count() as u64;
        assert_eq!(found, fills, "{card}");
        let summary: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(summary["summary"]["calls"]["environment"], 0, "{card}: {summary}");
    }
}

#[test]
fn a_faulty_card_is_a_finding_with_every_fault() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, body: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, body).unwrap();
        text(&path).to_owned()
    };
    let check = |path: &str, code: i32, says: &[&str]| {
        let ran = run(&["cards", "check", path]);
        assert_eq!(ran.code, code, "{path}: {}{}", ran.out, ran.err);
        for word in says {
            assert!(ran.out.contains(word) || ran.err.contains(word), "{word}: {}{}", ran.out, ran.err);
        }
    };
    check(
        &file("a.yaml", "id: a\nmax_position: 3\nfees: cheap\n"),
        1,
        &["did you mean `max_positions`?", "`fees` must be one of"],
    );
    check(&file("b.json", r#"{"id": "b", "allowed_tools": ["zzz", "get_kline", "aaa"]}"#), 1, &["unknown tools: aaa, zzz"]);
    check(&file("c.json", "{\n \"id\": \"c\",\n \"id\": \"d\"\n}"), 1, &["twice in one object at line 3"]);
    check(
        &file("d.yaml", "id: d\ncommittee: {advisors: [{role: bull, persona: Buys., tools: [place_order]}]}\n"),
        1,
        &["advisors only read: place_order"],
    );
    check("no-such-card.yaml", 3, &["no-such-card.yaml"]);
    let ran = run(&["cards", "check", "--json", &file("e.yaml", "id: e\n"), &file("f.yaml", "id: f f\n")]);
    let rows: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &rows[0]["valid"], &rows[1]["valid"]), (1, &Value::Bool(true), &Value::Bool(false)));
}

#[test]
fn the_printed_schema_is_the_committed_one() {
    let ran = run(&["cards", "schema"]);
    let committed = std::fs::read_to_string(repo("docs/card.schema.json")).unwrap();
    assert_eq!(ran.out.trim(), committed.trim());
}

#[test]
fn a_card_of_the_python_implementation_is_converted_and_every_field_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.json"), folder.path().join("new.json"));
    let write = |card: &str| std::fs::write(&old, card).unwrap();
    write(
        r#"{"id": "a", "persona": "Buys 强.", "max_positions": "3", "persona_replacements": {"Buys": "Sells"}, "mask_dates": true}"#,
    );
    let ran = run(&["cards", "convert", text(&old), "--out", text(&new)]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for says in ["/id: mapped", "/max_positions: coerced: a text was taken for 3", "/model: defaulted", "/mask_dates: not mapped"]
    {
        assert!(ran.err.contains(says), "`{says}` is not in {}", ran.err);
    }
    assert_eq!(run(&["cards", "check", text(&new)]).code, 0);
    let written = std::fs::read_to_string(&new).unwrap();
    assert!(written.contains("Sells 强.") && written.contains("\"fees\": \"reference\""), "{written}");
    // Without a file to write the card alone is on stdout.
    assert_eq!(run(&["cards", "convert", text(&old)]).out.trim(), written.trim());
    let value: Value = serde_json::from_str(&run(&["cards", "convert", text(&old), "--json"]).out).unwrap();
    assert_eq!(value["card"], serde_json::from_str::<Value>(&written).unwrap());
    assert_eq!(value["fields"][0], serde_json::json!({ "pointer": "/id", "became": "mapped", "what": "" }));
    let refused = |card: &str, says: &str| {
        write(card);
        let ran = run(&["cards", "convert", text(&old), "--out", text(&new)]);
        assert!(ran.code == 2 && ran.err.contains(says), "`{says}`: {} {}", ran.code, ran.err);
        assert_eq!(std::fs::read_to_string(&new).unwrap(), written, "nothing is written over");
    };
    refused(r#"{"id": "b"}"#, "never written over");
    refused(r#"{"id": "b", "max_position": 3}"#, "`/max_position`: is no field");
    refused("id: b\n", "cards of the Python implementation are JSON");
    refused(r#"{"id": "b", "id": "c"}"#, "twice");
}
