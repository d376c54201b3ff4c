//! Killed at any moment, a run goes on without a lost record or a second order and ends with the bytes of an uninterrupted one
//! (complaint OR-13, DESIGN rule 8).

use crate::command::{command, ran, repo, text};
use std::path::{Path, PathBuf};

const FILES: [&str; 4] = ["cassette.jsonl", "trajectory.jsonl", "summary.json", "private/memory.jsonl"];

/// Trades on most days, so that a second order would show.
fn script(folder: &Path) -> PathBuf {
    let day = r#"  - pre_market:
      - calls: [{tool: get_portfolio, args: {}}, {tool: get_kline, args: {stock_code: $000338}}]
      - calls: [{tool: complete_phase, args: {decision: ready, summary: look}}]
    open_1:
      - calls: [{tool: place_order, args: {action: ACTION, stock_code: $000338, quantity: QUANTITY, reasoning: test}}]
      - calls: [{tool: complete_phase, args: {decision: monitor, summary: done, abandon_error_codes: [position_weight_limit, insufficient_cash]}}]
"#;
    let mut body = String::from("schema: 1\ndays:\n");
    for n in 0..40 {
        let (action, quantity) = if n % 2 == 0 { ("buy", "1000") } else { ("sell", "0") };
        body.push_str(&day.replace("ACTION", action).replace("QUANTITY", quantity));
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
        "2019-12-10",
        "--record",
        text(record),
        "--json",
    ]
}

fn bytes(record: &Path) -> Vec<Vec<u8>> {
    FILES.iter().map(|file| std::fs::read(record.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))).collect()
}

#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let whole = folder.path().join("whole");
    let made = ran(command(&args(&script, &whole, &key)).output().unwrap());
    assert_eq!(made.code, 0, "{}", made.err);
    let expected = bytes(&whole);
    let fills = String::from_utf8_lossy(&expected[1]).matches("\"type\":\"fill\"").count();
    assert!(fills > 15, "{fills} fills");

    let rounds: u32 = if std::env::var_os("TRADERHARNESS_DEEP").is_some() { 100 } else { 3 };
    let mut interrupted = 0;
    for round in 0..rounds {
        let record = folder.path().join(format!("killed-{round}"));
        let mut resume = false;
        // Kill each run twice, when its trajectory has reached a length, then let it end.
        for cut in [2 * round + 1, 2 * round + 2] {
            let mut line = args(&script, &record, &key);
            if resume {
                line.push("--resume");
            }
            let mut child =
                command(&line).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
            let until = expected[1].len() as u64 * u64::from(cut) / u64::from(2 * rounds + 1);
            let written = || std::fs::metadata(record.join("trajectory.jsonl")).map_or(0, |m| m.len());
            while written() < until && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            resume = record.is_dir();
        }
        if !record.join("cassette.jsonl").exists() {
            interrupted += 1;
            let mut line = args(&script, &record, &key);
            if resume {
                line.push("--resume");
            }
            let ended = ran(command(&line).output().unwrap());
            assert_eq!(ended.code, 0, "round {round}: {}", ended.err);
        }
        for (file, (got, wanted)) in FILES.iter().zip(bytes(&record).iter().zip(&expected)) {
            assert!(got == wanted, "round {round}: {file} differs from the uninterrupted run");
        }
    }
    assert!(interrupted * 2 >= rounds, "only {interrupted} of {rounds} runs were cut before their end");
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
