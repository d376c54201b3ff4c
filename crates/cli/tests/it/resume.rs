//! Killed at any moment, a run goes on without a lost record or a second order and ends with the bytes of an uninterrupted one
//! (complaint OR-13, DESIGN rule 8).

use crate::command::{command, ran, repo, text};
use std::path::{Path, PathBuf};

const FILES: [&str; 5] = ["cassette.jsonl", "trajectory.jsonl", "summary.json", "private/memory.jsonl", "result.json"];

/// Trades on most days, so that a second order would show; conditions, memory, and agent code where it can run.
fn script(folder: &Path) -> PathBuf {
    let code = if crate::sandbox::is_set_up() { ", {tool: execute_code, args: {code: CODE}}" } else { "" };
    let code = code.replace(
        "CODE",
        r#""n = len(os.listdir('.')) if (os := __import__('os')) else 0\nopen('notes.txt', 'a').write('x')\nresult = n""#,
    );
    let day = r#"  - pre_market:
      - calls: [{tool: get_portfolio, args: {}}, {tool: get_kline, args: {stock_code: $000338}}EXECUTE]
      - calls:
          - {tool: remember, args: {content: "Day NUMBER was looked at.", memory_type: lesson, tags: [dayNUMBER]}}
          - tool: manage_conditional_order
            args: {operation: create, action: sell, stock_code: $000338, quantity: 100, comparator: price_lte, trigger_price: 0.01, reasoning: test, expires_in_trading_days: 2}
      - calls: [{tool: complete_phase, args: {decision: ready, summary: look, abandon_error_codes: [position_not_held, conditional_order_state_conflict]}}]
    open_1:
      - calls: [{tool: place_order, args: {action: ACTION, stock_code: $000338, quantity: QUANTITY, reasoning: test}}]
      - calls: [{tool: complete_phase, args: {decision: monitor, summary: done, abandon_error_codes: [position_weight_limit, insufficient_cash]}}]
"#;
    let mut body = String::from("schema: 1\ndays:\n");
    for n in 0..40 {
        let (action, quantity) = if n % 2 == 0 { ("buy", "1000") } else { ("sell", "0") };
        let day = day.replace("ACTION", action).replace("QUANTITY", quantity).replace("NUMBER", &n.to_string());
        body.push_str(&day.replace("EXECUTE", &code));
    }
    let path = folder.join("script.yaml");
    std::fs::write(&path, body).unwrap();
    path
}

fn args<'a>(script: &'a Path, record: &'a Path, key: &'a Path) -> Vec<&'a str> {
    vec![
        "run",
        "--script",
        text(script),
        "--mask-key",
        text(key),
        "--start",
        "2019-11-05",
        "--end",
        "2019-11-11",
        "--record",
        text(record),
        "--json",
    ]
}

fn bytes(record: &Path) -> Vec<Vec<u8>> {
    FILES.iter().map(|file| std::fs::read(record.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))).collect()
}

/// Numbers that look random and are the same in every run of the tests.
pub(crate) struct Dice(pub(crate) u64);
impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Starts or goes on with a run and kills it when its trajectory has a length. False when it came to its end first.
pub(crate) fn killed(line: &[&str], record: &Path, until: u64) -> bool {
    let quiet = || std::process::Stdio::null();
    let mut child = command(line).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let written = || std::fs::metadata(record.join("trajectory.jsonl")).map_or(0, |m| m.len());
    while written() < until && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    // SIGKILL: nothing of the process runs any more.
    let early = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    early && !record.join("cassette.jsonl").exists()
}

#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let whole = folder.path().join("whole");
    let made = ran(command(&args(&script, &whole, &key)).output().unwrap());
    assert_eq!(made.code, 0, "{}", made.err);
    let expected = bytes(&whole);
    let count = |what: &str| String::from_utf8_lossy(&expected[1]).matches(what).count();
    assert!(count("\"type\":\"fill\"") > 3, "{} fills", count("\"type\":\"fill\""));
    assert!(count("\"tool\":\"remember\",\"success\":true") > 3 && count("cond-0001") > 0);

    let wanted = if std::env::var_os("TRADERHARNESS_DEEP").is_some() { 200 } else { 25 };
    let length = expected[1].len() as u64;
    let mut dice = Dice(20_191_105);
    let (mut kills, mut round) = (0, 0);
    while kills < wanted {
        round += 1;
        assert!(round <= wanted, "only {kills} kills hit a run before its end");
        // One run is killed at many places, each further than the one before.
        let record = folder.path().join(format!("killed-{round}"));
        let mut places: Vec<u64> = (0..13).map(|_| dice.below(length)).collect();
        places.sort_unstable();
        for until in places {
            let mut line = args(&script, &record, &key);
            if record.is_dir() {
                line.push("--resume");
            }
            if !killed(&line, &record, until) {
                break;
            }
            kills += 1;
        }
        if !record.join("cassette.jsonl").exists() {
            let mut line = args(&script, &record, &key);
            line.push("--resume");
            let ended = ran(command(&line).output().unwrap());
            assert_eq!(ended.code, 0, "round {round}: {}", ended.err);
        }
        for (file, (got, wanted)) in FILES.iter().zip(bytes(&record).iter().zip(&expected)) {
            assert!(got == wanted, "round {round}: {file} differs from the uninterrupted run");
        }
    }
}

/// A trajectory without what says that the run stopped, and without the numbers of its lines, which count those too.
fn of_the_run(trajectory: &[u8]) -> Vec<String> {
    let text = String::from_utf8(trajectory.to_vec()).unwrap();
    let stops = |line: &&str| {
        let ended = line.contains("\"type\":\"run_end\"") && !line.contains("\"status\":\"completed\"");
        !(line.contains("\"type\":\"error\"") || ended)
    };
    text.lines().filter(stops).map(|line| line.split_once(',').unwrap().1.to_owned()).collect()
}

// engine E10.11: a limit stops the run with its name and a summary; a larger one goes on
#[test]
fn a_run_that_used_up_a_budget_goes_on_under_a_larger_one() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let (whole, record) = (folder.path().join("whole"), folder.path().join("stopped"));
    let go = |record: &Path, more: &[&str]| {
        let mut line = args(&script, record, &key);
        line.extend_from_slice(more);
        ran(command(&line).output().unwrap())
    };
    assert_eq!(go(&whole, &[]).code, 0);
    let stopped = go(&record, &["--max-requests", "9"]);
    assert_eq!(stopped.code, 4, "{}", stopped.err);
    assert!(stopped.err.contains("budget of 9 requests") && stopped.err.contains("--resume"), "{}", stopped.err);
    let summary: serde_json::Value = serde_json::from_str(&stopped.out).unwrap();
    assert_eq!((&summary["summary"]["status"], &summary["summary"]["requests"]), (&"budget_exhausted".into(), &9.into()));
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(record.join("summary.json")).unwrap()).unwrap();
    assert_eq!((&kept["summary"], &kept["dataset"]), (&summary["summary"], &summary["dataset"]));
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(record.join("result.json")).unwrap()).unwrap();
    assert_eq!(result, summary["result"]);
    assert_eq!(go(&record, &["--resume", "--max-calls", "15"]).code, 4);
    let ended = go(&record, &["--resume", "--max-requests", "900", "--max-seconds", "900", "--max-tokens", "900000000"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let (got, expected) = (bytes(&record), bytes(&whole));
    for (n, file) in FILES.iter().enumerate().filter(|(n, _)| *n != 1) {
        assert!(got[n] == expected[n], "{file} differs from the uninterrupted run");
    }
    assert_eq!(of_the_run(&got[1]), of_the_run(&expected[1]));
    // The stops are part of the record, and of no replay.
    assert!(String::from_utf8_lossy(&got[1]).contains("budget_exhausted"));
    let replayed = ran(command(&["replay", text(&record)]).output().unwrap());
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
}

// engine E10.9: Ctrl-C ends a run at its next step, and the run goes on
#[cfg(unix)]
#[test]
fn an_interrupted_run_says_so_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let (whole, record) = (folder.path().join("whole"), folder.path().join("stopped"));
    assert_eq!(ran(command(&args(&script, &whole, &key)).output().unwrap()).code, 0);
    let pipe = std::process::Stdio::piped;
    let child = command(&args(&script, &record, &key)).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    let written = || std::fs::metadata(record.join("trajectory.jsonl")).map_or(0, |m| m.len());
    while written() == 0 {
        std::thread::yield_now();
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let stopped = ran(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, 4, "{}", stopped.err);
    assert!(stopped.err.contains("Stopping at the next step") && stopped.err.contains("cancelled"), "{}", stopped.err);
    assert!(stopped.out.contains("\"status\": \"cancelled\""), "{}", stopped.out);
    let mut line = args(&script, &record, &key);
    line.push("--resume");
    let ended = ran(command(&line).output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.err);
    let (got, expected) = (bytes(&record), bytes(&whole));
    assert!(got[0] == expected[0], "another recording");
    assert_eq!(of_the_run(&got[1]), of_the_run(&expected[1]));
}

/// A script that differs only in a day the run had not reached would make one recording of two halves.
#[cfg(unix)]
#[test]
fn a_run_goes_on_only_with_the_script_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let record = folder.path().join("run");
    let mut line = args(&script, &record, &key);
    line.extend(["--max-requests", "2"]);
    assert_eq!(ran(command(&line).output().unwrap()).code, 4);
    let other = folder.path().join("other.yaml");
    std::fs::write(&other, format!("{}# the same turns\n", std::fs::read_to_string(&script).unwrap())).unwrap();
    let resumed = |script: &Path| {
        let mut line = args(script, &record, &key);
        line.push("--resume");
        ran(command(&line).output().unwrap())
    };
    let changed = folder.path().join("changed.yaml");
    let text_of = std::fs::read_to_string(&script).unwrap();
    let said = text_of.replacen("model: ", "model: x", 1);
    let said = if said == text_of { format!("model: another\n{text_of}") } else { said };
    std::fs::write(&changed, said).unwrap();
    let refused = resumed(&changed);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("was played by `script "), "{}", refused.err);
    assert_eq!(resumed(&other).code, 0, "a comment changes no turn");
}

/// Signals again and again, as somebody who does not wait: the agent's program, which hears no signal itself, does not outlive the run.
#[cfg(unix)]
#[test]
fn an_agent_program_does_not_outlive_a_run_that_is_interrupted_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (program, pid) = (folder.path().join("stay.sh"), folder.path().join("pid"));
    let hello = r#"{"type":"hello","protocol":1,"name":"stay"}"#;
    let text_of = format!("trap '' INT TERM\nread line\necho '{hello}'\necho $$ > '{}'\nwhile :; do sleep 1; done\n", text(&pid));
    std::fs::write(&program, text_of).unwrap();
    let pipe = format!("sh '{}'", text(&program));
    let quiet = std::process::Stdio::null;
    let line = ["run", "--pipe", &pipe, "--start", "2020-02-03", "--end", "2020-02-04"];
    let mut child = command(&line).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let signal = |name: &str, pid: &str| {
        std::process::Command::new("kill").args([name, pid]).stderr(quiet()).status().is_ok_and(|status| status.success())
    };
    while std::fs::read_to_string(&pid).map_or(true, |pid| !pid.ends_with('\n')) {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its agent began");
        std::thread::yield_now();
    }
    while child.try_wait().unwrap().is_none() {
        signal("-INT", &child.id().to_string());
        std::thread::yield_now();
    }
    let agent = std::fs::read_to_string(&pid).unwrap();
    let ended = std::time::Instant::now();
    while signal("-0", agent.trim()) {
        assert!(ended.elapsed().as_secs() < 10, "the agent's program lives on");
        std::thread::yield_now();
    }
}

/// The folder of a run that was killed when its trajectory had `kept` bytes: what the answers up to there had written, and no more.
fn killed_at(whole: &Path, record: &Path, kept: usize) {
    std::fs::create_dir_all(record.join("private")).unwrap();
    for file in ["run.json", "private/run.json", "private/mask.key"] {
        if whole.join(file).exists() {
            std::fs::copy(whole.join(file), record.join(file)).unwrap();
        }
    }
    let trajectory = std::fs::read(whole.join("trajectory.jsonl")).unwrap();
    let trajectory = &trajectory[..kept];
    let answers = String::from_utf8_lossy(trajectory).matches("\"type\":\"model_response\"").count();
    let cassette = std::fs::read_to_string(whole.join("cassette.jsonl")).unwrap();
    let calls = cassette.lines().scan(0, |seen, line| {
        *seen += usize::from(line.contains("\"type\":\"llm_call\""));
        (*seen <= answers).then(|| format!("{line}\n"))
    });
    std::fs::write(record.join("cassette.jsonl.partial"), calls.collect::<String>()).unwrap();
    std::fs::write(record.join("trajectory.jsonl"), trajectory).unwrap();
}

// complaint OR-13: the order was filled, the fill is on disk, and the answer never reached the model
#[test]
fn killed_between_an_effect_and_its_acknowledgement_the_run_orders_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let whole = folder.path().join("whole");
    let line = |record: &Path, more: &[&str]| {
        let mut line: Vec<String> = args(&script, record, &key).iter().map(|s| (*s).to_owned()).collect();
        "2019-11-05".clone_into(&mut line[8]);
        line.extend(more.iter().map(|s| (*s).to_owned()));
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        ran(command(&line).output().unwrap())
    };
    let made = line(&whole, &[]);
    assert_eq!(made.code, 0, "{}", made.err);
    let expected = bytes(&whole);
    let trajectory = String::from_utf8(expected[1].clone()).unwrap();
    let fills = |text: &str| text.matches("\"type\":\"fill\"").count();
    assert_eq!(fills(&trajectory), 1);
    let fill = trajectory.find("\"type\":\"fill\"").unwrap();
    let (start, end) = (trajectory[..fill].rfind('\n').unwrap() + 1, fill + trajectory[fill..].find('\n').unwrap() + 1);
    let next = trajectory[end..].lines().next().unwrap();
    assert!(next.contains("place_order") || next.contains("\"success\""), "the answer follows the fill: {next}");
    // Before the fill was recorded, in the middle of its record, right after it, and in the middle of the answer's record.
    for kept in [start, (start + end) / 2, end, end + next.len() / 2] {
        let record = folder.path().join(format!("killed-{kept}"));
        killed_at(&whole, &record, kept);
        let resumed = line(&record, &["--resume"]);
        assert_eq!(resumed.code, 0, "killed at {kept}: {}", resumed.err);
        for (file, (got, wanted)) in FILES.iter().zip(bytes(&record).iter().zip(&expected)) {
            assert!(got == wanted, "killed at {kept}: {file} differs from the uninterrupted run");
        }
        assert_eq!(fills(&String::from_utf8_lossy(&bytes(&record)[1])), 1, "killed at {kept}");
    }
}

#[test]
fn resume_refuses_what_is_not_that_run() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let record = folder.path().join("run");
    let go = |extra: &[&str], end: &str| {
        let mut line = args(&script, &record, &key);
        line[8] = end;
        line.extend_from_slice(extra);
        ran(command(&line).output().unwrap())
    };
    let none = go(&["--resume"], "2019-11-06");
    assert_eq!((none.code, none.err.contains("there is no run")), (2, true), "{}", none.err);
    assert_eq!(go(&[], "2019-11-06").code, 0);
    let finished = go(&["--resume"], "2019-11-06");
    assert_eq!((finished.code, finished.err.contains("is finished")), (2, true), "{}", finished.err);
    // The same folder, cut back to an unfinished state, with another window.
    std::fs::rename(record.join("cassette.jsonl"), record.join("cassette.jsonl.partial")).unwrap();
    let other = go(&["--resume"], "2019-11-07");
    assert_eq!((other.code, other.err.contains("not those of the interrupted run")), (2, true), "{}", other.err);
    assert_eq!(go(&["--resume"], "2019-11-06").code, 0);
}
