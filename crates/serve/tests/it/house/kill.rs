//! Killed at any moment, the house has done exactly what it acknowledged and nothing twice (complaint OR-13).
//!
//! A real process serves a folder and is killed with requests in flight, again and again. What it answered is asked for again under its
//! key and must be the same; what it did not answer is sent again under its key and must happen once.

use super::fixture::{Hosted, buy, caller, open, profile, server, store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use traderharness_harness::Card;
use traderharness_serve::{House, ServerConfig};

const FOLDER: &str = "TRADERHARNESS_TEST_KILL_FOLDER";
/// Requests that are in flight at the same time.
const TOGETHER: usize = 6;

fn config() -> ServerConfig {
    let store = store();
    let mut server = server(&store, true, vec![caller("alice")]);
    let card = Card { one_fill_per_day: false, max_position_pct: 90.0, initial_cash: 1e9, ..Card::builtin() };
    server.profiles = vec![traderharness_serve::config::Profile { card, ..profile(&store, true) }];
    server
}

fn house(folder: &Path) -> Arc<House> {
    open(&store(), config(), Some(folder))
}

fn answer(hosted: &Hosted, request: &Value) -> Value {
    let key = request["key"].as_str().unwrap();
    match hosted.call(request["tool"].as_str().unwrap(), request["input"].clone(), key) {
        Ok(reply) => json!({ "key": key, "ok": true, "body": reply.body, "text": reply.text }),
        Err(refusal) if refusal.code == "still_running" => json!({ "key": key, "running": true }),
        Err(refusal) => json!({ "key": key, "ok": false, "body": refusal.record() }),
    }
}

/// The process that is killed: does nothing unless it is told which folder to serve. Requests and answers are lines.
#[test]
fn a_process_that_serves_a_folder() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let house = house(Path::new(&folder));
    let caller = house.local_caller("alice").unwrap();
    let session = house.sessions(&caller).unwrap()[0].session_id.clone();
    let hosted = Hosted { house, caller, session };
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                loop {
                    let mut line = String::new();
                    if std::io::stdin().read_line(&mut line).unwrap() == 0 {
                        return;
                    }
                    let answer = answer(&hosted, &serde_json::from_str(&line).unwrap());
                    // Written whole: half a line is no answer.
                    let mut out = std::io::stdout().lock();
                    out.write_all(format!("ANSWER {answer}\n").as_bytes()).unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
}

struct Served {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<Value>,
}

fn serve(folder: &Path) -> Served {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "house::kill::a_process_that_serves_a_folder", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (tell, answers) = channel();
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            // The first answer may stand behind what the test runner prints.
            let Some((_, answer)) = line.split_once("ANSWER ") else { continue };
            let Ok(answer) = serde_json::from_str(answer) else { continue };
            if tell.send(answer).is_err() {
                return;
            }
        }
    });
    Served { child, stdin, answers }
}

/// The same numbers in every run of the test.
fn chance(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn request(n: usize, codes: &[String]) -> Value {
    let key = format!("k{n}");
    match n % 5 {
        0 | 2 => {
            let mut order = buy(&codes[n % codes.len()]);
            order["reasoning"] = format!("Order number {n} of the test.").into();
            json!({"key": key, "tool": "place_order", "input": order})
        }
        1 => {
            json!({"key": key, "tool": "remember", "input": {"content": format!("Note number {n} of the test."), "memory_type": "lesson"}})
        }
        3 => json!({"key": key, "tool": "get_portfolio", "input": {}}),
        _ => json!({"key": key, "tool": "get_stock_price", "input": {"stock_code": codes[n % codes.len()]}}),
    }
}

#[test]
fn what_was_acknowledged_exists_once_and_what_was_not_happens_once() {
    let rounds = if crate::is_deep() { 60 } else { 8 };
    let folder = tempfile::tempdir().unwrap();
    let codes: Vec<String> = {
        let hosted = Hosted::over(house(folder.path()), "alice");
        let screened = hosted.call("screen_stocks", json!({"max_results": 5}), "codes").unwrap();
        hosted.open_the_market();
        let stocks = screened.body["data"]["stocks"].as_array().unwrap();
        stocks.iter().map(|s| s["code"].as_str().unwrap().to_owned()).collect()
    };
    let mut acknowledged: BTreeMap<String, Value> = BTreeMap::new();
    let mut unanswered: BTreeMap<String, Value> = BTreeMap::new();
    let (mut next, mut seed) = (0, 11);
    let mut same = 0;
    let take = |answer: Value, acknowledged: &mut BTreeMap<String, Value>, unanswered: &mut BTreeMap<String, Value>| -> usize {
        let key = answer["key"].as_str().unwrap().to_owned();
        if answer["running"] == true {
            return 0;
        }
        unanswered.remove(&key);
        match acknowledged.get(&key) {
            Some(before) => {
                assert_eq!(*before, answer, "{key} was answered in another way");
                1
            }
            None => {
                acknowledged.insert(key, answer);
                0
            }
        }
    };
    for _ in 0..rounds {
        let mut served = serve(folder.path());
        // What was never answered comes first, then some of what was, then new requests.
        let mut sends: Vec<Value> = unanswered.values().cloned().collect();
        let known: Vec<usize> = (0..next).filter(|_| chance(&mut seed, 6) == 0).collect();
        sends.extend(known.into_iter().map(|n| request(n, &codes)));
        sends.extend((next..next + 40).map(|n| request(n, &codes)));
        next += 40;
        for send in &sends {
            let key = send["key"].as_str().unwrap().to_owned();
            if !acknowledged.contains_key(&key) {
                unanswered.insert(key, send.clone());
            }
            if writeln!(served.stdin, "{send}").is_err() {
                break;
            }
        }
        let until = chance(&mut seed, sends.len() as u64) as usize;
        for _ in 0..=until {
            let Ok(answer) = served.answers.recv() else { break };
            same += take(answer, &mut acknowledged, &mut unanswered);
        }
        served.child.kill().unwrap();
        served.child.wait().unwrap();
        // What it said before it died was said.
        for answer in served.answers.iter() {
            same += take(answer, &mut acknowledged, &mut unanswered);
        }
    }

    let house = house(folder.path());
    let caller = house.local_caller("alice").unwrap();
    let session = house.sessions(&caller).unwrap()[0].session_id.clone();
    let hosted = Hosted { house, caller, session };
    for request in unanswered.values().cloned().collect::<Vec<_>>() {
        take(answer(&hosted, &request), &mut acknowledged, &mut BTreeMap::new());
    }
    for n in 0..next {
        let again = answer(&hosted, &request(n, &codes));
        assert_eq!(again, acknowledged[&format!("k{n}")], "request {n}");
    }
    assert!(same > rounds, "only {same} answers were asked for twice");

    let mut records = Vec::new();
    loop {
        let page = hosted.house.records(&hosted.caller, &hosted.session, records.len() as u64, 500).unwrap();
        if page.is_empty() {
            break;
        }
        records.extend(page);
    }
    assert!(records.iter().enumerate().all(|(n, record)| record["seq"] == n), "records are numbered without a gap");
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for record in records.iter().filter(|r| r["type"] == "tool_call") {
        let arguments: Value = serde_json::from_str(record["arguments"].as_str().unwrap()).unwrap();
        if let Some(words) = arguments.get("reasoning").or_else(|| arguments.get("content")).and_then(Value::as_str) {
            *asked.entry(words.to_owned()).or_default() += 1;
        }
    }
    let effects = (0..next).filter(|n| matches!(n % 5, 0..=2)).count();
    assert_eq!(asked.len(), effects, "every order and note was made");
    assert!(asked.values().all(|times| *times == 1), "{asked:?}");
    let filled = acknowledged.values().filter(|a| a["ok"] == true && a["body"]["tool"] == "place_order").count();
    assert_eq!(
        records.iter().filter(|r| r["type"] == "fill").count(),
        filled,
        "every fill was acknowledged, and no other was made"
    );
    assert!(filled > 0);
    println!(
        "{rounds} kills, {next} requests, {same} answers the same when asked for again, {effects} orders and notes, {filled} fills"
    );
}
