//! A model behind a real server, a program over a pipe and plug-in tools, as a person runs them: recorded, replayed without any of them,
//! killed and resumed, and every way the other side fails.

use crate::command::{Ran, command, lines, ran, repo, run, text};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use traderharness_connect::testing::{Act, Received, Reply, ScriptedModel, Server};

const KEY: &str = "sk-planted/0123456789+abcdef=0123456789abcdef";
const WINDOW: [&str; 4] = ["--start", "2020-02-03", "--end", "2020-02-04"];

fn turns() -> Value {
    json!([{"say": "≥ 股票 😀", "calls": [{"tool": "get_portfolio"}, {"tool": "get_market_overview"}]}])
}

/// A run of a model at an address.
fn line<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--model", "model-1", "--base-url", url, "--key-env", "TEST_KEY"][..], &WINDOW[..], more].concat()
}

fn with_key(args: &[&str]) -> Ran {
    ran(command(args).env("TEST_KEY", KEY).output().unwrap())
}

/// Every file of a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

/// The key in no form in any file and no output.
fn no_key(folder: &Path, outputs: &[&Ran]) {
    let percent: String = KEY
        .bytes()
        .map(|b| if b.is_ascii_alphanumeric() || b == b'-' { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect();
    // Base64 of the key at each offset: the middle of it is the same whatever stands around.
    let base64 = |skip: usize| {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        KEY.as_bytes()[skip..].chunks_exact(3).take(8).fold(String::new(), |text, c| {
            let bits = u32::from(c[0]) << 16 | u32::from(c[1]) << 8 | u32::from(c[2]);
            (0..4).rev().fold(text, |mut text, n| {
                text.push(char::from(ALPHABET[(bits >> (6 * n) & 63) as usize]));
                text
            })
        })
    };
    let forms = [KEY.to_owned(), "planted".to_owned(), percent, base64(0), base64(1), base64(2)];
    for path in files(folder) {
        let bytes = std::fs::read(&path).unwrap();
        for form in &forms {
            assert!(!contains(&bytes, form), "{form} is in {}", path.display());
        }
    }
    for output in outputs {
        for form in &forms {
            assert!(!output.out.contains(form) && !output.err.contains(form), "{form} is in {} {}", output.out, output.err);
        }
    }
}

#[test]
fn a_model_plays_two_days_streamed_or_not_and_its_run_replays_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut days = Vec::new();
    for (name, extra) in [("streamed", &[][..]), ("whole", &["--no-stream"][..])] {
        let record = folder.path().join(name);
        let model = ScriptedModel::start(turns()).unwrap();
        let url = model.url();
        let prices = ["--price-in", "0.5", "--price-out", "2", "--currency", "EUR", "--max-cost", "9", "--record", text(&record)];
        let more = [&prices[..], extra, &["--sampling", r#"{"temperature": 0}"#, "--json"]].concat();
        let made = with_key(&line(&url, &more));
        assert_eq!(made.code, 0, "{name}: {}", made.err);
        let received = model.received();
        assert_eq!(received[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        let body = received[0].json();
        assert_eq!((&body["temperature"], &body["stream"]), (&json!(0), &json!(extra.is_empty())));
        drop(model);
        let value: Value = serde_json::from_str(&made.out).unwrap();
        let result = &value["result"];
        assert_eq!(
            (&result["agent"], &result["model"], &result["status"]),
            (&"model".into(), &"model-1".into(), &"completed".into())
        );
        assert_eq!(result["requests"].as_u64().unwrap() as usize, received.len());
        assert_eq!(result["tokens"]["estimated_requests"], 0);
        // 0.5 and 2 per million tokens, to the last digit.
        let tokens = |key: &str| result["tokens"][key].as_u64().unwrap();
        let due = (tokens("input") * 5 + tokens("output") * 20) as f64 / 1e7;
        let amount: f64 = result["cost"]["amount"].as_str().unwrap().parse().unwrap();
        assert!((amount - due).abs() < 1e-12 && result["cost"]["currency"] == "EUR", "{} {due}", result["cost"]);
        let replayed = run(&["replay", text(&record)]);
        assert_eq!(replayed.code, 0, "{name}: {}", replayed.err);
        assert!(replayed.out.contains("trajectory records identical."), "{}", replayed.out);
        let report = run(&["report", text(&record)]);
        assert_eq!(report.code, 0, "{name}: {}", report.out);
        no_key(&record, &[&made, &replayed, &report]);
        days.push(result["days"].clone());
    }
    assert_eq!(days[0], days[1], "streaming changes nothing");
}

#[test]
fn a_model_that_writes_its_calls_as_text_replays_in_its_style() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let call = |tool: &str, params: Value| json!({"say": format!("```json\n{}\n```", json!({"tool": tool, "params": params}))});
    let on = call("complete_phase", json!({"decision": "monitor", "summary": "≥ nothing"}));
    let day =
        [&[call("get_portfolio", json!({}))][..], &vec![on; 4], &[call("finish_day", json!({"summary": "Done."}))]].concat();
    let model = ScriptedModel::start(json!([day.clone(), day].concat())).unwrap();
    let url = model.url();
    let made = with_key(&line(&url, &["--style", "json", "--record", text(&record), "--json"]));
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(model.received().iter().all(|received| received.json().get("tools").is_none()), "nothing native is sent");
    drop(model);
    assert!(
        std::fs::read_to_string(record.join("trajectory.jsonl")).unwrap().contains("\"tool\":\"get_portfolio\",\"success\":true")
    );
    let replayed = run(&["replay", text(&record)]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
}

#[test]
fn a_killed_run_of_a_model_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let key = repo("crates/cli/demo/mask.key");
    let go = |model: &ScriptedModel, record: &Path, resume: bool| {
        let url = model.url();
        let mut args = line(&url, &["--mask-key", text(&key), "--record", text(record), "--json"]);
        args.extend(resume.then_some("--resume"));
        let mut command = command(&args);
        command.env("TEST_KEY", KEY);
        command
    };
    let whole = folder.path().join("whole");
    let model = ScriptedModel::start(turns()).unwrap();
    let made = ran(go(&model, &whole, false).output().unwrap());
    assert_eq!(made.code, 0, "{}", made.err);
    let length = std::fs::metadata(whole.join("trajectory.jsonl")).unwrap().len();
    let model = ScriptedModel::start(turns()).unwrap();
    let record = folder.path().join("killed");
    let mut kills = 0;
    for share in [2, 5, 8] {
        let mut child = go(&model, &record, record.is_dir());
        let mut child = child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let written = || std::fs::metadata(record.join("trajectory.jsonl")).map_or(0, |m| m.len());
        while written() < length * share / 10 && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        if record.join("cassette.jsonl").exists() {
            break;
        }
    }
    assert!(kills > 0, "no kill hit the run");
    if !record.join("cassette.jsonl").exists() {
        let ended = ran(go(&model, &record, true).output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.err);
    }
    for file in ["cassette.jsonl", "trajectory.jsonl", "summary.json", "result.json"] {
        assert!(std::fs::read(whole.join(file)).unwrap() == std::fs::read(record.join(file)).unwrap(), "{file} differs");
    }
}

/// Ends whatever decision point is open.
fn answer(body: &Value) -> Reply {
    Reply::json(&reply(body))
}

fn reply(body: &Value) -> Value {
    let tools = body["tools"].to_string();
    let call = |name: &str, arguments: &str| {
        let calls = json!([{"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}]);
        (json!({"role": "assistant", "content": "", "tool_calls": calls}), "tool_calls")
    };
    let (message, finish) = if tools.contains("\"complete_phase\"") {
        call("complete_phase", r#"{"decision":"monitor","summary":"nothing"}"#)
    } else {
        call("finish_day", r#"{"summary":"≥ done"}"#)
    };
    json!({"id": "a", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}})
}

/// A server that treats request number `at` (from 0) in its own way and answers all others.
fn server(at: usize, how: impl Fn(&Received) -> Reply + Send + 'static) -> Server {
    let count = AtomicUsize::new(0);
    Server::start(
        move |received| {
            if count.fetch_add(1, Ordering::Relaxed) == at { how(received) } else { answer(&received.json()) }
        },
    )
    .unwrap()
}

#[test]
fn token_ids_and_logprobs_that_a_server_gives_come_out_as_rows_to_train_on() {
    let logprob = |value: f64| json!({"token": "≥", "logprob": value, "bytes": [226, 137, 165], "top_logprobs": []});
    let count = AtomicUsize::new(0);
    let asked = Server::start(move |received| {
        let body = received.json();
        assert_eq!((&body["logprobs"], &body["return_token_ids"]), (&json!(true), &json!(true)));
        let n = count.fetch_add(1, Ordering::Relaxed);
        let mut given = reply(&body);
        given["prompt_token_ids"] = json!([1, n]);
        given["choices"][0]["token_ids"] = json!([7, 8, n]);
        given["choices"][0]["logprobs"] = json!({"content": [logprob(-0.1), logprob(-2.5e-7)]});
        Reply::json(&given)
    })
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (url, record, rows) = (asked.url(), folder.path().join("run"), folder.path().join("rl.jsonl"));
    let sampling = r#"{"logprobs": true, "return_token_ids": true}"#;
    let made = with_key(&line(&url, &["--no-stream", "--sampling", sampling, "--record", text(&record)]));
    assert_eq!(made.code, 0, "{}", made.err);
    let exported = run(&["export", "rl", text(&record), "--out", text(&rows)]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let rows = lines(&rows);
    assert_eq!(rows.len(), asked.received().len());
    for (n, row) in rows.iter().enumerate() {
        assert_eq!((&row["prompt_token_ids"], &row["token_ids"]), (&json!([1, n]), &json!([7, 8, n])));
        assert_eq!(row["logprobs"], json!([logprob(-0.1), logprob(-2.5e-7)]));
    }
    assert_eq!(run(&["replay", text(&record)]).code, 0);
}

#[test]
fn a_server_that_is_busy_is_asked_again_and_the_wait_is_said() {
    let busy = server(1, |_| Reply::status(429, &[("Retry-After", "0")], r#"{"error":{"message":"slow down"}}"#));
    let folder = tempfile::tempdir().unwrap();
    let (url, record) = (busy.url(), folder.path().join("run"));
    let made = with_key(&line(&url, &["--no-stream", "--record", text(&record)]));
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.err.contains("attempt 1 of 5 failed, again in") && made.err.contains("slow down"), "{}", made.err);
    assert!(!made.out.contains("slow down") && made.out.contains("max drawdown"), "{}", made.out);
    let measured: Value = serde_json::from_str(&std::fs::read_to_string(record.join("measured.json")).unwrap()).unwrap();
    assert_eq!(measured["model"]["retries"], 1, "{measured}");
    assert_eq!(run(&["replay", text(&record)]).code, 0);
    assert!(!std::fs::read_to_string(record.join("cassette.jsonl")).unwrap().contains("slow down"));
}

#[test]
fn an_answer_that_is_cut_is_not_used_and_the_run_goes_on_from_there() {
    let cut = server(2, |_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"choices\": [").then(Act::Reset));
    let folder = tempfile::tempdir().unwrap();
    let (url, record) = (cut.url(), folder.path().join("run"));
    let args = line(&url, &["--no-stream", "--attempts", "1", "--record", text(&record), "--json"]);
    let stopped = with_key(&args);
    assert_eq!(stopped.code, 4, "{}", stopped.err);
    assert!(stopped.err.contains("cut") && stopped.err.contains("--resume"), "{}", stopped.err);
    let value: Value = serde_json::from_str(&stopped.out).unwrap();
    assert_eq!((&value["result"]["status"], &value["result"]["stop_code"]), (&"failed".into(), &"model_failed".into()));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(record.join("result.json")).unwrap()).unwrap();
    assert_eq!(kept, value["result"]);
    assert_eq!(run(&["report", text(&record)]).code, 0);
    let ended = with_key(&[&args[..], &["--resume"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(run(&["replay", text(&record)]).code, 0);
}

/// Runs against a server; expects a code and words, and no cassette.
fn refused(url: &str, more: &[&str], code: i32, says: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let ran = with_key(&line(url, &[more, &["--attempts", "1", "--record", text(&record)]].concat()));
    assert_eq!(ran.code, code, "{}", ran.err);
    for word in says {
        assert!(ran.err.contains(word), "`{word}` is not in {}", ran.err);
    }
    assert!(!record.join("cassette.jsonl").exists());
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    no_key(folder.path(), &[&ran]);
}

#[test]
fn a_server_that_cannot_serve_is_told_apart_before_anything_is_run() {
    let unknown = |_: &Received| {
        Reply::status(404, &[], r#"{"error":{"message":"The model `model-1` does not exist","code":"model_not_found"}}"#)
    };
    refused(&server(0, unknown).url(), &[], 3, &["does not know this model", "model-1", "check the model name"]);
    let echo = |received: &Received| {
        Reply::status(401, &[], format!("bad key {}", received.header("authorization").unwrap_or_default()))
    };
    refused(&server(0, echo).url(), &[], 3, &["refused the key"]);
    let moved = |_: &Received| Reply::status(302, &[("Location", "http://elsewhere.invalid/v1")], "");
    refused(&server(0, moved).url(), &[], 3, &["elsewhere.invalid", "base URL"]);
    let closed = server(0, |_| Reply::default()).url();
    refused(&closed, &[], 3, &["cannot be reached", "check the base URL"]);
    refused("localhost:8000/v1", &[], 2, &["is no base URL"]);
    refused("http://127.0.0.1:9/v1", &["--sampling", r#"{"stream": true}"#], 2, &["`stream` is no sampling parameter"]);
    refused("http://127.0.0.1:9/v1", &["--sampling", "[1]"], 2, &["--sampling is no JSON object"]);
    refused("http://127.0.0.1:9/v1", &["--price-in", "x", "--price-out", "1"], 2, &["price"]);
    refused("http://127.0.0.1:9/v1", &["--header", "no-equals-sign"], 2, &["--header"]);
    refused("http://127.0.0.1:9/v1", &["--header", "api-key=env:NOT_THERE"], 2, &["NOT_THERE is not set"]);
    refused("http://127.0.0.1:9/v1", &["--max-cost", "1"], 2, &["--max-cost needs prices"]);
}

#[test]
fn a_key_that_is_missing_is_named_by_its_variable() {
    let args = line("http://127.0.0.1:9/v1", &[]);
    let missing = run(&args);
    assert_eq!(missing.code, 2, "{}", missing.err);
    assert!(missing.err.contains("TEST_KEY is not set") && missing.err.contains("hint:"), "{}", missing.err);
    let empty = ran(command(&args).env("TEST_KEY", " ").output().unwrap());
    assert_eq!((empty.code, empty.err.contains("the variable TEST_KEY is empty")), (2, true), "{}", empty.err);
    let folder = tempfile::tempdir().unwrap();
    let base = [&["run", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--key-file"][..]].concat();
    let file = folder.path().join("key");
    let absent = run(&[&base[..], &[text(&file)], &WINDOW[..]].concat());
    assert_eq!((absent.code, absent.err.contains("key file")), (3, true), "{}", absent.err);
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    let model = ScriptedModel::start(json!([])).unwrap();
    let url = model.url();
    let read =
        run(&[&["run", "--model", "m", "--base-url", &url, "--key-file", text(&file), "--json"][..], &WINDOW[..]].concat());
    assert_eq!(read.code, 0, "{}", read.err);
    assert_eq!(model.received()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

/// What a command line without a server says.
fn check(options: &[&str], code: i32, says: &str) {
    let ran = run(&[&["run"][..], options, &WINDOW[..]].concat());
    assert_eq!((ran.code, ran.err.contains(says)), (code, true), "{options:?}: {}", ran.err);
}

#[test]
fn exactly_one_way_to_play_is_named() {
    check(&[], 2, "nobody is named who plays");
    check(&["--model", "m"], 2, "no server is given");
    check(&["--baseline", "random", "--pipe", "x"], 2, "--baseline and --pipe exclude each other");
    check(&["--baseline", "hold"], 2, "`hold` is no baseline");
    check(&["--baseline", "random:x"], 2, "random:SEED");
    check(&["--base-url", "http://127.0.0.1:9"], 2, "no model is named");
    check(&["--baseline", "random", "--key-env", "K"], 2, "--key-env means nothing with --baseline");
    check(&["--baseline", "random", "--sampling", "{}"], 2, "--sampling means nothing with --baseline");
    check(&["--pipe", "x", "--style", "json"], 2, "--style means nothing with --pipe");
    check(&["--pipe", "sh 'open"], 2, "quoted");
    check(&["--pipe", ""], 2, "first item is the program");
    check(&["--pipe", "x", "--pipe-env", "NOT_THERE"], 2, "NOT_THERE");
    check(&["--pipe", "/no/such/program"], 3, "cannot be started");
    check(&["--baseline", "random", "--tools", "/no/such/file"], 3, "plug-in manifest");
}

#[test]
fn cards_that_cannot_be_used_are_refused_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let card = folder.path().join("card.yaml");
    for (body, says) in [("id: a\nmax_postions: 3\n", "max_positions"), ("id: a\nallowed_tools: [get_klines]\n", "get_klines")] {
        std::fs::write(&card, body).unwrap();
        check(&["--baseline", "buy-and-hold", "--agent", text(&card)], 2, says);
    }
}

/// The interpreter itself; `None`, with a line that says so, where there is none.
fn python() -> Option<String> {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let found = asked.ok().filter(|out| out.status.success()).and_then(|out| String::from_utf8(out.stdout).ok());
    if found.is_none() {
        println!("skipped: there is no python3");
    }
    found.map(|path| path.trim().to_owned())
}

#[test]
fn a_program_of_ones_own_plays_and_its_run_replays_without_it() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (record, program) = (folder.path().join("run"), folder.path().join("my agent.py"));
    std::fs::copy(repo("examples/agents/cautious.py"), &program).unwrap();
    let pipe = format!("{python} '{}'", text(&program));
    let made = run(&[&["run", "--pipe", &pipe, "--record", text(&record)][..], &WINDOW[..]].concat());
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.out.contains("2 day(s)"), "{}", made.out);
    std::fs::remove_file(&program).unwrap();
    let replayed = run(&["replay", text(&record)]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
}

#[test]
fn plug_in_tools_are_offered_and_a_replay_needs_none_of_them() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(repo("crates/connect/tests/fixtures/pipe.py"), at("pipe.py")).unwrap();
    let tool = |name: &str, effect: &str| {
        json!({"name": name, "description": "Prices an option with a model of its own.", "effect": effect, "returns": "The price and what it was made of",
            "input_schema": {"type": "object", "properties": {"how": {"type": "string", "description": "How to answer."}}, "additionalProperties": false}})
    };
    let manifest = json!({"pipes": [
        {"source": "greeks", "argv": [python, "pipe.py"], "tools": [tool("price_option", "read"), tool("send_report", "mutation")]},
        {"source": "gone", "argv": ["/no/such/program"], "tools": [tool("price_future", "read")]},
    ]});
    std::fs::write(at("tools.json"), manifest.to_string()).unwrap();
    let calls = "[{tool: price_option, args: {how: echo}}, {tool: send_report, args: {}}, {tool: price_future, args: {}}]";
    std::fs::write(at("script.yaml"), format!("schema: 1\ndays:\n  - pre_market:\n      - calls: {calls}\n")).unwrap();
    let record = at("run");
    let made = run(&[
        &["run", "--script", text(&at("script.yaml")), "--tools", text(&at("tools.json")), "--record", text(&record)][..],
        &WINDOW[..],
    ]
    .concat());
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.err.contains("warning: pipe gone is left out"), "{}", made.err);
    let kept = std::fs::read_to_string(record.join("trajectory.jsonl")).unwrap();
    assert!(kept.contains("\"tool\":\"price_option\",\"success\":true"), "{kept}");
    assert!(kept.contains("does not allow tools with effects") && kept.contains("failed to load"), "{kept}");
    std::fs::remove_file(at("pipe.py")).unwrap();
    std::fs::remove_file(at("tools.json")).unwrap();
    let replayed = run(&["replay", text(&record)]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
    assert!(replayed.out.contains("trajectory records identical."), "{}", replayed.out);
}

#[test]
fn a_limit_on_cost_stops_a_run_with_its_name_and_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let model = ScriptedModel::start(turns()).unwrap();
    let url = model.url();
    let stopped =
        with_key(&line(&url, &["--price-in", "100", "--price-out", "100", "--max-cost", "1.5", "--record", text(&record)]));
    assert_eq!(stopped.code, 4, "{}", stopped.err);
    assert!(stopped.err.contains("budget of 1500000 micro-units"), "{}", stopped.err);
    let result: Value = serde_json::from_str(&std::fs::read_to_string(record.join("result.json")).unwrap()).unwrap();
    assert_eq!((&result["status"], &result["budgets"]["max_cost_micros"]), (&"budget_exhausted".into(), &1_500_000.into()));
}

// engine E10.9: a model that thinks for minutes does not hold a run that is to end
#[cfg(unix)]
#[test]
fn an_interrupt_does_not_wait_for_a_silent_model_and_the_run_goes_on() {
    let silent = server(2, |_| Reply::default().then(Act::Hold));
    let folder = tempfile::tempdir().unwrap();
    let (url, record) = (silent.url(), folder.path().join("run"));
    let args = line(&url, &["--no-stream", "--record", text(&record), "--json"]);
    let pipe = std::process::Stdio::piped;
    let child = command(&args).env("TEST_KEY", KEY).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    while silent.received().len() < 3 {
        std::thread::yield_now();
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let stopped = ran(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, 4, "{}", stopped.err);
    let value: Value = serde_json::from_str(&stopped.out).unwrap();
    assert_eq!((&value["result"]["status"], &value["result"]["requests"]), (&"cancelled".into(), &2.into()));
    let ended = with_key(&[&args[..], &["--resume"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(run(&["replay", text(&record)]).code, 0);
}

// engine E13: advisors of a committee are asked of the same model, recorded, replayed, and told apart in the result
#[test]
fn a_committee_of_a_model_leaves_a_result_that_tells_its_advisors_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (card, record) = (folder.path().join("card.yaml"), folder.path().join("run"));
    std::fs::write(&card, "id: board\nname: Board\ncommittee:\n  advisors:\n    - {role: risk, persona: \"Looks at risk.\"}\n")
        .unwrap();
    let model = server(usize::MAX, |_| Reply::default());
    let url = model.url();
    let made = with_key(&line(&url, &["--no-stream", "--agent", text(&card), "--record", text(&record), "--json"]));
    assert_eq!(made.code, 0, "{}", made.err);
    drop(model);
    let value: Value = serde_json::from_str(&made.out).unwrap();
    assert!(value["result"]["advice"]["requests"].as_u64().unwrap() > 0, "{}", value["result"]["advice"]);
    let report = run(&["report", text(&record)]);
    assert_eq!(report.code, 0, "{}", report.out);
    assert!(report.out.contains("advisors"), "{}", report.out);
    assert_eq!(run(&["replay", text(&record)]).code, 0);
}
