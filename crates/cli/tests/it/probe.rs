//! `traderharness probe`: masked and unmasked pairs, and questions about what is behind the labels.

use crate::command::{repo, run, text};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use traderharness_connect::testing::{Reply, Server};

const WINDOW: [&str; 4] = ["--start", "2020-02-03", "--end", "2020-02-04"];

/// A model that ends every decision point, and answers questions as `answer` says: it gets the words of the question.
fn model(answer: impl Fn(&str) -> String + Send + 'static) -> (Server, Arc<Mutex<Vec<Value>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let server = Server::start(move |received| {
        let body = received.json();
        kept.lock().unwrap().push(body.clone());
        let tools = body.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
        let message = if tools.is_empty() {
            let question = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
            json!({"role": "assistant", "content": answer(&question)})
        } else {
            let offered = |name: &str| tools.iter().any(|tool| tool["function"]["name"] == name);
            let (tool, args) = if offered("finish_day") {
                ("finish_day", json!({"summary": "done"}))
            } else {
                ("complete_phase", json!({"decision": "monitor", "summary": "wait"}))
            };
            let call = json!({"id": "c", "type": "function", "function": {"name": tool, "arguments": args.to_string()}});
            json!({"role": "assistant", "content": "", "tool_calls": [call]})
        };
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        Reply::json(&json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}))
    })
    .unwrap();
    (server, seen)
}

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn probe(record: &Path, more: &[&str]) -> crate::command::Ran {
    let key = repo("crates/cli/demo/mask.key");
    let line = [&["probe"][..], &WINDOW, &["--mask-key", text(&key), "--record", text(record)], more].concat();
    run(&line)
}

// complaint LA-8, engine E8.8
#[test]
fn the_gap_is_measured_and_the_truth_stays_private() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let (server, seen) = model(|question| {
        if question.contains("In which month") {
            "```json\n{\"month\": \"2020-02\", \"confidence\": 90}\n```".to_owned()
        } else {
            r#"{"company": "Nobody", "code": "000000", "confidence": 10}"#.to_owned()
        }
    });
    let url = server.url();
    let made = probe(&first, &["--model", "m", "--base-url", &url, "--no-stream", "--questions", "7", "--json"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let value: Value = serde_json::from_str(&made.out).unwrap();
    assert_eq!(value, json_of(&first.join("probe.json")));
    assert_eq!((&value["pair"]["masked"]["total_return_pct"], &value["pair"]["gap_pct"]), (&json!(0.0), &json!(0.0)));
    let questions = &value["questions"];
    assert_eq!((&questions["firms"]["right"]["hits"], &questions["firms"]["right"]["asked"]), (&json!(0), &json!(7)));
    assert_eq!((&questions["period"]["right"]["hits"], &questions["period"]["right"]["asked"]), (&json!(2), &json!(2)));
    assert_eq!(questions["firms"]["confidence"], json!([null, 10.0]));
    // Both ways are recordings like any other.
    for arm in ["masked", "unmasked"] {
        let replayed = run(&["replay", text(&first.join(arm).join(value["pair"]["agent"].as_str().unwrap()))]);
        assert_eq!(replayed.code, 0, "{arm}: {}", replayed.err);
    }
    // Nothing of the truth was asked, printed or kept outside of private/.
    let truth = json_of(&first.join("private/truth.json"));
    let firms: Vec<(String, Value)> = truth["truth"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(|t| Some((t["label"].as_str()?.to_owned(), t["truth"].clone())))
        .collect();
    assert_eq!(firms.len(), 7);
    let asked_for: std::collections::BTreeSet<&String> = firms.iter().map(|(label, _)| label).collect();
    assert_eq!(asked_for.len(), 7, "each firm is asked for once");
    let asked: Vec<String> =
        seen.lock().unwrap().iter().filter(|body| body.get("tools").is_none()).map(Value::to_string).collect();
    assert_eq!(asked.len(), 9);
    let public = std::fs::read_to_string(first.join("questions.jsonl")).unwrap() + &made.out + &made.err + &asked.concat();
    for (_, firm) in &firms {
        for hidden in std::iter::once(&firm["code"]).chain(firm["names"].as_array().unwrap()) {
            let hidden = hidden.as_str().unwrap();
            // A label may end with the digits of another firm's code, and a volume may hold them.
            let alone = |at: usize| {
                let of_a_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
                !public[..at].ends_with(of_a_word) && !public[at + hidden.len()..].starts_with(of_a_word)
            };
            assert!(!public.match_indices(hidden).any(|(at, _)| alone(at)), "{hidden} is told");
        }
    }
    let audit = run(&["audit", text(&first.join("questions.jsonl")), text(&first.join("probe.json"))]);
    // The model's own answer names the month; nothing else does.
    assert!(audit.out.lines().filter(|l| l.contains("date")).all(|l| !l.contains("2020-02-03")), "{}", audit.out);

    // A model that knows is found out.
    let (server, _) = model(move |question| {
        firms.iter().find(|(label, _)| question.contains(&format!("Which company is {label}?"))).map_or_else(
            || "no idea".to_owned(),
            |(_, firm)| json!({"company": "?", "code": firm["code"], "confidence": 99}).to_string(),
        )
    });
    let url = server.url();
    let more = ["--model", "m", "--base-url", &url, "--no-stream", "--questions", "7", "--only-questions"];
    let made = probe(&second, &more);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.out.contains("Firms named right: 7 of 7 (100.0 %"), "{}", made.out);
    assert!(made.out.contains("Answers that could not be read: 2"), "{}", made.out);
}

#[test]
fn a_rule_has_no_memory_to_ask_and_no_gap_where_codes_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("rule");
    let made = probe(&record, &["--baseline", "buy-and-hold"]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.out.contains("No questions: no model that could be asked"), "{}", made.out);
    assert!(made.out.contains("Gap, unmasked less masked:"), "{}", made.out);
    let refused = probe(&folder.path().join("none"), &["--baseline", "buy-and-hold", "--only-questions"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(!folder.path().join("none").exists());
}
