//! Recordings of the early versions whose agent runs code, with a real worker: what the model reads is what those versions gave, and the
//! code runs again in a replay and comes to the same.

use super::agents::results;
use super::{DAY, EARLY, calls, identical, line};
use crate::command::{command, lines, ran, repo, run, text};
use crate::sandbox::is_set_up;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What is run, in the first four versions and in the fifth alike.
const CODE: [&str; 6] = [
    "from traderharness_api import market, portfolio, news\nbars = market.get_all_daily(5)\nprint(list(bars.columns))\n\
     result = {'n': len(bars), 'cash': portfolio.get_cash(), 'quote': market.get_stock_price(market.get_stock_list()[0])}",
    "open('a.txt', 'w').write('one')\nprint('kept')",
    "result = open('a.txt').read()",
    "print('before')\nfrom traderharness_api import market\nmarket.get_kline('999999')",
    "result = (",
    "pass",
];

fn script(folder: &Path) -> PathBuf {
    let calls: Vec<Value> = CODE.iter().map(|code| json!({ "tool": "execute_code", "args": { "code": code } })).collect();
    let days = json!([{ "pre_market": [{ "calls": calls }, { "say": "Seen." }], "close_2": [{ "calls": [{ "tool": "finish_day", "args": { "summary": "Done." } }] }] }]);
    let path = folder.join("script.json");
    std::fs::write(&path, json!({ "schema": 1, "days": days }).to_string()).unwrap();
    path
}

// spec/versions.md, success and failure shapes of execute_code; complaint RP-1
#[test]
fn code_under_each_early_version_is_recorded_in_its_shape_and_runs_again() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (script, key) = (script(folder.path()), repo("crates/cli/demo/mask.key"));
    let mut seen = Vec::new();
    let card = folder.path().join("card.json");
    std::fs::write(&card, json!({ "id": "coder", "name": "Coder", "description": "Runs code." }).to_string()).unwrap();
    for version in EARLY {
        let into = folder.path().join(version);
        let made = run(&line(version, &script, &card, &key, DAY, &into));
        assert_eq!(made.code, 0, "{version}: {}", made.err);
        let trajectory = lines(&into.join("trajectory.jsonl"));
        let results: Vec<&Value> = results(&trajectory, "execute_code").map(|record| &record["result"]).collect();
        let fields = |n: usize| results[n].as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(fields(0), ["stdout", "result"], "{version}");
        assert_eq!(*results[1], json!({ "stdout": "kept\n" }), "{version}");
        assert_eq!(*results[2], json!({ "result": "one" }), "{version}");
        assert_eq!(fields(3), ["stdout", "error"], "{version}");
        assert!(
            results[3]["error"].as_str().unwrap().starts_with("Traceback (most recent call last):"),
            "{version}: {}",
            results[3]
        );
        assert_eq!(fields(4), ["error"], "{version}");
        assert_eq!(*results[5], json!({ "stdout": "(no output)" }), "{version}");
        // What code gets of the API is of no version: columns and fields are those of today.
        assert!(results[0]["result"]["quote"].get("price_source").is_some(), "{version}: {}", results[0]);
        seen.push(results[0].clone());
        let count = calls(&into.join("cassette.jsonl"));
        let mut again = command(&["replay", text(&into)]);
        let again = ran(again.env("TZ", "Asia/Tokyo").env("PYTHONHASHSEED", "7").output().unwrap());
        identical(&again, count, version);
        assert!(again.out.contains("6 code outcome(s) identical when run again"), "{version}: {}", again.out);
    }
    // The recording alone is enough where there is no Python, and it tells nothing of what it hides.
    let into = folder.path().join("v1");
    let mut without = command(&["replay", text(&into)]);
    let without = ran(without.env("TRADERHARNESS_PYTHON", "/no/python").output().unwrap());
    identical(&without, calls(&into.join("cassette.jsonl")), "without a Python");
    let audited = run(&["audit", text(&into)]);
    assert_eq!(audited.code, 0, "{}{}", audited.out, audited.err);
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
}
