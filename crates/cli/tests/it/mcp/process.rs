//! The process: its streams, its folder, its end.

use super::Client;
use crate::command::{run, text};
use serde_json::{Value, json};
use std::path::Path;

fn buy() -> Value {
    json!({"stock_code": "000338", "action": "buy", "quantity": 1000, "reasoning": "A test of the door."})
}

#[test]
fn a_day_over_stdio_is_recorded_and_reported_like_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("day");
    let mut client = Client::start(&["--mask", "none", "--record", text(&kept)]);
    client.complete();
    let bought = client.call("place_order", buy());
    assert_eq!(bought["isError"], false, "{bought}");
    client.finish(3);
    let session = client.session.clone();
    let (code, said) = client.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("session {session}: day 1, pre_market")) && said.contains("traderharness report"), "{said}");
    let report = run(&["report", text(&kept), "--json"]);
    assert_eq!(report.code, 0, "{}{}", report.out, report.err);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    let run = &report["runs"][0];
    assert_eq!((&run["cassette"]["state"], &run["result"]["status"]), (&json!("whole"), &json!("completed")));
    assert_eq!((&run["result"]["agent"], &run["result"]["requests"]), (&json!("mcp client"), &json!(0)));
    assert_eq!(run["result"]["trades"][0]["stock_code"], "000338");
    assert_eq!(run["result"]["days"].as_array().unwrap().len(), 1);
    // Only the session itself knew what nobody asked a model for, and what it sold.
    assert_eq!(run["result"]["metrics"]["win_rate_pct"], Value::Null);
    assert_eq!(run["result"]["cost"], json!({ "amount": null, "reason": "no prices were given" }));
    assert_eq!(run["differences"], json!([]));
    again(&kept, &[]);
    // What can be handed on names no session key, and the mask key stays private.
    let audit = crate::command::run(&["audit", text(&kept), "--allow-dates", "--allow-entities"]);
    assert_eq!(audit.code, 0, "{}", audit.out);
}

/// Replay, rescore and bundle of a recorded session.
fn again(kept: &Path, key: &[&str]) {
    let check = |args: &[&str], words: &[&str]| {
        let ran = run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
        words.iter().for_each(|word| assert!(ran.out.contains(word), "{args:?}: no `{word}` in {}", ran.out));
    };
    let identical =
        ["calls identical; the session was played through a door", "trajectory records identical", "The result file is"];
    check(&["replay", text(kept)], &identical);
    check(&["rescore", text(kept), "--no-audit"], &["the stored result is what the recording gives"]);
    check(&["rescore", text(kept), "--no-audit", "--trajectory"], &["the stored result is what the recording gives"]);
    let bundle = kept.with_extension("bundle");
    check(&["bundle", text(kept), "--out", text(&bundle)], &["Written to"]);
    check(&[&["replay", text(&bundle)], key].concat(), &identical);
    let exported = run(&["export", "rl", text(kept), "--out", text(&kept.with_extension("jsonl")), "--allow-unmasked"]);
    assert_eq!(exported.code, 2, "{}", exported.out);
    assert!(exported.err.contains("no answer of a model"), "{}", exported.err);
}

#[test]
fn a_masked_session_of_two_days_is_played_again_with_its_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("days");
    let mut client = Client::start(&["--end", "2020-02-05", "--record", text(&kept)]);
    let found = client.call("screen_stocks", json!({}));
    let codes = found["structuredContent"]["data"]["stocks"].as_array().unwrap();
    let codes: Vec<&str> = codes.iter().map(|stock| stock["code"].as_str().unwrap()).collect();
    let order = |code: &str, action: &str| json!({"stock_code": code, "action": action, "quantity": 100, "reasoning": "A test of the door."});
    client.complete();
    let bought = codes.iter().find(|code| client.call("place_order", order(code, "buy"))["isError"] == false).unwrap();
    client.call("execute_code", json!({"code": "result = 1"}));
    client.finish(3);
    client.complete();
    let sold = client.call("place_order", order(bought, "sell"));
    assert_eq!(sold["isError"], false, "{sold}");
    client.finish(3);
    let (code, said) = client.end();
    assert_eq!((code, said.contains("warning")), (Some(0), false), "{said}");
    let result: Value = serde_json::from_slice(&std::fs::read(kept.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["trades"].as_array().unwrap().len(), 2);
    assert!(result["metrics"]["win_rate_pct"].is_number() && result["trades"][1]["realised"].is_number(), "{result}");
    assert_eq!((&result["window"], &result["days"][0]["date"]), (&Value::Null, &Value::Null));
    let key = kept.join("private/run.json");
    again(&kept, &["--mask-key", text(&key)]);
    // Nothing of what can be handed on says when or what it was.
    let audit = run(&["audit", text(&kept)]);
    assert_eq!(audit.code, 0, "{}", audit.out);
    // One changed record is found, and named by its number.
    let path = kept.join("trajectory.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, whole.replacen("\"quantity\":100", "\"quantity\":200", 1)).unwrap();
    let changed = run(&["replay", text(&kept)]);
    assert_eq!(changed.code, 1, "{}{}", changed.out, changed.err);
    assert!(changed.err.contains("of the trajectory"), "{}", changed.err);
    let cut: Vec<&str> = whole.lines().collect();
    std::fs::write(&path, cut[..cut.len() - 3].join("\n") + "\n").unwrap();
    let cut = run(&["replay", text(&kept)]);
    assert_eq!(cut.code, 1, "{}{}", cut.out, cut.err);
}

#[test]
fn a_session_that_has_not_ended_is_reported_and_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("day");
    let mut client = Client::start(&["--mask", "none", "--record", text(&kept)]);
    client.complete();
    assert_eq!(client.end().0, Some(0));
    let report = run(&["report", text(&kept), "--json"]);
    assert_eq!(report.code, 0, "{}{}", report.out, report.err);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["runs"][0]["result"]["status"], "unfinished");
    for command in ["replay", "rescore"] {
        let ran = run(&[command, text(&kept)]);
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
        assert!(ran.err.contains("stopped before its end") && ran.err.contains("--resume"), "{command}: {}", ran.err);
    }
}

#[test]
fn a_killed_client_goes_on_where_its_last_answer_was() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("day");
    let options = ["--mask", "none", "--record", text(&kept), "--resume"];
    let mut client = Client::start(&options);
    client.complete();
    let bought = client.call("place_order", buy());
    let first = client.session.clone();
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    drop(client);
    let mut client = Client::start(&options);
    assert_eq!(client.session, first);
    assert_eq!(client.call("read_brief", json!({}))["structuredContent"]["decision_point"], "open_1");
    let position = client.call("get_position", json!({"stock_code": "000338"}));
    assert_eq!(position["structuredContent"]["data"]["quantity"], 1000, "{position} after {bought}");
    client.finish(3);
    assert_eq!(client.end().0, Some(0));
    let report = run(&["report", text(&kept), "--json"]);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["runs"][0]["result"]["trades"].as_array().unwrap().len(), 1, "the order stands once");
    // The window is over: the next one is a session of its own, and a recorded folder takes no second one.
    let again = run(&["mcp", "--start", "2020-02-04", "--record", text(&kept)]);
    assert_eq!(again.code, 2, "{}", again.err);
}

#[test]
fn two_processes_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let kept = text(folder.path());
    let client = Client::start(&["--keep", kept]);
    let second = run(&["mcp", "--start", "2020-02-04", "--keep", kept]);
    assert_eq!(second.code, 3, "{}", second.err);
    assert!(second.err.contains("another process"), "{}", second.err);
    assert!(second.out.is_empty());
    drop(client);
}

#[test]
fn what_is_wrong_with_the_command_is_said_before_a_client_is_served() {
    let check = |args: &[&str], code: i32, words: &str| {
        let ran = run(&[&["mcp"], args].concat());
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{args:?} wrote to standard output");
    };
    check(&[], 2, "--start");
    check(&["--start", "2020-13-01"], 2, "date");
    check(&["--start", "2020-02-04", "--resume"], 2, "--keep DIR or --record DIR");
    check(&["--start", "2030-02-04"], 2, "future");
    check(&["--start", "2020-02-04", "--data", "/no/such/folder"], 3, "no/such/folder");
}

#[test]
fn nothing_but_messages_stands_on_standard_output_whatever_comes_in() {
    let mut client = Client::start(&[]);
    for line in ["hello", "[1,2]", "{\"jsonrpc\":\"2.0\"}", "{\"jsonrpc\":\"2.0\",\"id\":\"x\"}", "\u{0}"] {
        client.write(line);
        assert!(client.message()["error"]["code"].is_i64(), "{line}");
    }
    client.write(&"x".repeat(5 << 20));
    assert_eq!(client.message()["error"]["code"], -32600);
    assert_eq!(client.call("get_portfolio", json!({}))["isError"], false);
    assert_eq!(client.end().0, Some(0));
}

// What a client's configuration holds for good: each session of a window has a run folder of its own.
#[test]
fn a_session_after_a_recorded_one_is_recorded_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("day");
    let options = ["--mask", "none", "--record", text(&kept), "--resume"];
    let play = || {
        let mut client = Client::start(&options);
        client.complete();
        client.finish(3);
        let (code, said) = client.end();
        assert_eq!(code, Some(0), "{said}");
        said
    };
    play();
    let first = std::fs::read(kept.join("trajectory.jsonl")).unwrap();
    let said = play();
    let second = folder.path().join("day-2");
    assert!(said.contains("has ended; this one is recorded in") && said.contains(text(&second)), "{said}");
    assert!(second.join("cassette.jsonl").is_file());
    assert_eq!(std::fs::read(kept.join("trajectory.jsonl")).unwrap(), first, "a whole run is left alone");
    // Killed after its last record and before its cassette: the next process ends it.
    std::fs::remove_file(second.join("cassette.jsonl")).unwrap();
    let client = Client::start(&options);
    assert_eq!(client.end().0, Some(0));
    assert!(second.join("cassette.jsonl").is_file() && !folder.path().join("day-3").exists());
}
