//! A short day under each version: what is answered to what is sent loosely, what fails, what is cut, and in which order the calls of a
//! message are answered. Small, so that it can be played under many changed contracts.

use super::frozen::cards;
use super::shape;
use super::world::{days, record_under};
use serde_json::{Value, json};
use std::fmt::Write as _;
use traderharness_contract::version::Version;
use traderharness_harness::Contract;
use traderharness_replay::Record;
use traderharness_tests::market::CODES;

fn script() -> Value {
    let call = |tool: &str, args: Value| json!({ "tool": tool, "args": args });
    let code = format!("${}", CODES[0]);
    let mixed = [
        call("remember", json!({ "memory_type": "observation", "content": "Watch copper." })),
        call("get_memory", json!({ "memory_id": "mem-0001" })),
        call("get_kline", json!({ "stock_code": code, "days": "3" })),
        call("get_kline", json!({ "stock_code": code, "days": 120, "detail": "full" })),
        call("execute_code", json!({ "code": "result = 1" })),
        call("get_news", json!({ "days": 5, "limit": 2 })),
        call("get_no_such_tool", json!({})),
    ];
    // The whole plan, and a card that says little.
    let planned = json!({
        "action": "buy", "stock_code": code, "quantity": "100", "reasoning": "r", "behavior_hypothesis": "h", "confirmation_level": 0.02,
        "original_structural_stop": "0.01", "exit_condition": "e", "expected_holding_days": 5, "decision_card": { "decision": "trade" }
    });
    let orders = [
        call("place_order", json!({ "action": "buy", "stock_code": code, "quantity": 50, "reasoning": "r" })),
        call("place_order", planned),
        call("get_stock_price", json!({ "stock_code": code })),
    ];
    let ends =
        [call("finish_day", json!({ "summary": "s" })), call("complete_phase", json!({ "decision": "ready", "summary": "s" }))];
    json!({ "schema": 1, "days": [{
        "pre_market": [{ "calls": mixed }, { "say": "No more calls." }], "open_1": [{ "calls": orders }], "open_2": [{ "calls": ends }]
    }] })
}

/// What the calls of the day are answered, in their order, of an agent that is asked for little and of one that is asked for decision cards.
pub(super) fn render(contract: &Contract) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = String::new();
    for (what, card) in [&cards()[0], &cards()[2]] {
        let path = folder.path().join(format!("{}.jsonl", card.id));
        let made = record_under(contract, card, true, &days()[..1], script(), &path);
        let _ = writeln!(text, "=== {what}");
        for record in &made.records {
            if let Record::ToolResult { tool, result, shown, .. } = record {
                let read = shown.clone().unwrap_or_else(|| traderharness_contract::json::text(result));
                let _ = writeln!(text, "{tool}\n  {}", shape::shown(&read, 600));
            }
        }
    }
    text
}

// spec/versions.md, table
#[test]
fn the_answers_of_a_day_are_what_they_were() {
    for version in Version::ALL {
        insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(
                format!("version-{version}-day"),
                render(&Contract::of(version)),
                &format!("recordings made under {version} would no longer replay")
            );
        });
    }
}
