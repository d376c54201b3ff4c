//! A recording made today under each version replays: every tool runs again and every request is the recorded one (engine E13.5).

use super::frozen::cards;
use super::world::{days, record, replay};
use serde_json::{Value, json};
use traderharness_contract::version::Version;
use traderharness_replay::{Cassette, Record};
use traderharness_tests::market::CODES;

fn call(tool: &str, args: Value) -> Value {
    json!({ "tool": tool, "args": args })
}

/// A day with what makes versions differ: coerced arguments, mixed calls in one message, long results, refusals, an order, a standing
/// order, text without calls, and the end of phases in both ways.
fn script(version: Version, protocol: bool) -> Value {
    let code = format!("${}", CODES[0]);
    let other = format!("${}", CODES[2]);
    let ends = |decision: &str| {
        let gives_up = [
            "invalid_tool_arguments",
            "invalid_tool_arguments_json",
            "unknown_tool",
            "tool_unavailable_in_phase",
            "decision_card_missing_fields",
        ];
        json!({ "calls": [call("complete_phase", json!({ "decision": decision, "summary": "Done here.", "abandon_error_codes": gives_up }))] })
    };
    let mut pre = vec![
        json!({ "say": "Look around.", "calls": [
            call("remember", json!({ "memory_type": "observation", "content": "Watch copper." })),
            call("get_portfolio", json!({})),
            call("get_kline", json!({ "stock_code": code, "days": "5" })),
            call("get_kline", json!({ "stock_code": code, "days": 120, "fields": ["open", "high", "low", "close", "volume", "amount", "change_pct"] })),
            call("get_kline", json!({ "stock_code": other, "days": 9999 })),
        ] }),
        json!({ "calls": [
            call("get_stock_info", json!({ "stock_code": code })),
            call("get_business_segments", json!({ "stock_code": code })),
            call("get_valuation", json!({ "stock_code": code })),
            call("get_news", json!({ "keyword": "copper|tea", "limit": "3" })),
            call("get_announcements", json!({ "stock_code": code })),
            call("get_fundamentals", json!({ "stock_code": code })),
            call("get_no_such_tool", json!({ "a": [1, { "b": null }] })),
            json!({ "tool": "get_kline", "raw": "{\"stock_code\": " }),
        ] }),
    ];
    let mut open = vec![
        json!({ "calls": [
            call("place_order", json!({ "action": "buy", "stock_code": code, "quantity": "200", "reasoning": "Rises." })),
            call("get_stock_price", json!({ "stock_code": code })),
        ] }),
        json!({ "calls": [
            call("manage_conditional_order", json!({
                "operation": "create", "action": "sell", "stock_code": code, "quantity": 100, "comparator": "price_lte",
                "trigger_price": "0.5", "expires_day_index": 1, "reasoning": "Stop."
            })),
            call("list_conditional_orders", json!({})),
            call("get_position", json!({ "stock_code": code })),
        ] }),
    ];
    if protocol && version >= Version::V4 {
        pre.push(ends("ready"));
        open.push(ends("monitor"));
    } else {
        pre.push(json!({ "say": "Ready." }));
    }
    json!({ "schema": 1, "days": [{ "pre_market": pre, "open_1": open }, { "pre_market": [{ "say": "Nothing new." }] }] })
}

#[test]
fn a_recording_of_v1_replays_with_every_card() {
    replays(Version::V1);
}

#[test]
fn a_recording_of_v2_replays_with_every_card() {
    replays(Version::V2);
}

#[test]
fn a_recording_of_v3_replays_with_every_card() {
    replays(Version::V3);
}

#[test]
fn a_recording_of_v4_replays_with_every_card() {
    replays(Version::V4);
}

#[test]
fn a_recording_of_v5_replays_with_every_card() {
    replays(Version::V5);
}

fn replays(version: Version) {
    let folder = tempfile::tempdir().expect("a folder");
    for (what, card) in cards() {
        for masked in [false, true] {
            let path = folder.path().join(format!("{version}-{}-{masked}.jsonl", card.id));
            let script = script(version, card.require_phase_completion);
            let made = record(version, &card, masked, &days(), script, &path);
            let again = replay(version, &card, masked, &days(), &path);
            let at = format!("{version}, {what}, masked {masked}");
            assert!(made.records == again.records, "{at}: the records differ");
            assert_eq!(made.summary, again.summary, "{at}");
            assert_eq!(made.summary.days.len(), 2, "{at}");
            assert!(made.summary.calls.succeeded > 3 && made.summary.calls.total() > made.summary.calls.succeeded, "{at}");
            if !card.require_decision_card {
                // A quantity that is a text is an order under the loose versions alone.
                assert_eq!(made.summary.days[0].fills, usize::from(version != Version::V5), "{at}");
            }
        }
    }
}

/// Requests of a recording whose messages hold a text.
fn told(path: &std::path::Path) -> Vec<String> {
    let cassette = Cassette::load(path).expect("a cassette");
    let last = cassette.request(cassette.calls().len() - 1).expect("a request").expect("kept whole");
    last.messages.iter().filter_map(|message| message.content().map(str::to_owned)).collect()
}

// spec/versions.md: finish_day at every decision point, the horizon line, reads before writes
#[test]
fn a_day_of_the_first_versions_can_end_in_the_morning() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, card) = &cards()[0];
    let path = folder.path().join("v1.jsonl");
    let script = json!({ "schema": 1, "days": [
        { "pre_market": [{ "calls": [
            call("add_watchlist", json!({ "stock_code": format!("${}", CODES[0]), "reason": "Strong." })),
            call("get_watchlist", json!({})),
            call("finish_day", json!({ "summary": "Nothing to do." })),
        ] }] },
        { "pre_market": [{ "calls": [call("finish_day", json!({ "summary": "Again." }))] }] },
    ] });
    let made = record(Version::V1, card, true, &days(), script.clone(), &path);
    assert_eq!(made.summary.requests, 2);
    assert_eq!(made.summary.days.iter().map(|day| day.summary.as_str()).collect::<Vec<_>>(), ["Nothing to do.", "Again."]);
    // The clock went through the whole day.
    let points = made.records.iter().filter(|r| matches!(r, Record::DecisionPoint { .. })).count();
    assert_eq!(points, 10);
    // The read was run first, and saw the list before the other call of its message changed it.
    let order: Vec<&str> = made
        .records
        .iter()
        .filter_map(|r| if let Record::ToolResult { tool, .. } = r { Some(tool.as_str()) } else { None })
        .collect();
    assert_eq!(order, ["get_watchlist", "add_watchlist", "finish_day", "finish_day"]);
    let seen = told(&path);
    assert!(seen.iter().any(|text| text.contains("2 of 2")), "{seen:#?}");
    replay(Version::V1, card, true, &days(), &path);
    // A later version refuses it there, and runs calls as they come.
    let path = folder.path().join("v3.jsonl");
    let made = record(Version::V3, card, true, &days(), script, &path);
    assert!(made.summary.requests > 2);
    assert!(!told(&path).iter().any(|text| text.contains("of 2.")));
}

// spec/versions.md: result shapes and texts
#[test]
fn results_have_the_shapes_of_their_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, card) = &cards()[0];
    for version in Version::ALL {
        let path = folder.path().join(format!("{version}.jsonl"));
        let made = record(version, card, false, &days(), script(version, false), &path);
        let read = |wanted: &str, nth: usize| -> (bool, Option<String>, String) {
            let found = made.records.iter().filter_map(|record| match record {
                Record::ToolResult { tool, success, error_code, result, shown, .. } if tool == wanted => {
                    let text = shown.clone().unwrap_or_else(|| traderharness_contract::json::text(result));
                    Some((*success, error_code.clone(), text))
                }
                _ => None,
            });
            found.clone().nth(nth).unwrap_or_else(|| panic!("{version}: {wanted} {nth}"))
        };
        let strict = version == Version::V5;
        let coerced = read("get_kline", 0);
        assert_eq!(
            (coerced.0, coerced.1.as_deref()),
            if strict { (false, Some("invalid_tool_arguments")) } else { (true, None) }
        );
        let long = read("get_kline", 1);
        assert!(long.0, "{version}");
        if strict {
            assert!(serde_json::from_str::<Value>(&long.2).is_ok());
        } else {
            assert!(long.2.ends_with("... (truncated)") && long.2.chars().count() < 3_100, "{version}: {}", long.2);
        }
        let unknown = read("get_no_such_tool", 0);
        assert_eq!((unknown.0, unknown.1.as_deref()), (false, Some("unknown_tool")));
        assert_eq!(unknown.2.starts_with("{\"error\": "), !strict, "{version}: {}", unknown.2);
        let portfolio = read("get_portfolio", 0);
        assert_eq!(portfolio.2.contains("\"success\""), strict, "{version}");
    }
}
