//! The future is unreachable from code too: whatever stands after the clock, every answer and every byte of every table is the same.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use traderharness_harness::Toolbox;
use traderharness_harness::host_calls::{SegmentCache, ToolCalls};
use traderharness_market::{Clock, DecisionPoint, Store};
use traderharness_sandbox::HostCalls;
use traderharness_tests::market;
use traderharness_tests::poison::{Future, SENTINELS, shows_poison};
use traderharness_tests::session::{all_tools_card, at};
use traderharness_tools_market::MarketState;

/// Everything code can read at a clock: what was asked, and the bytes of the answer.
fn readable(clock: Clock, masked: bool, future: Future) -> Vec<(String, Vec<u8>)> {
    let mut parts = market::parts();
    future.put(&mut parts, clock);
    let store = Arc::new(Store::new(parts).expect("a store"));
    let session = at(&store, all_tools_card(), masked, clock.day, clock.point);
    let (toolbox, cache) = (Toolbox::new(&all_tools_card(), masked).expect("known tools"), SegmentCache::default());
    let (limits, mut state) = (session.card().limits(), MarketState::default());
    let mut calls = ToolCalls::new(&toolbox, session.view(), &mut state, session.account(), &limits, &cache);
    let mut out = Vec::new();
    let mut ask = |method: &str, args: Value| -> Value {
        let empty = Map::new();
        let asked = format!("{method} {args}");
        match calls.call(method, args.as_object().unwrap_or(&empty)) {
            Ok(answer) => {
                out.push((asked.clone(), answer.value.to_string().into_bytes()));
                if let Some(segment) = answer.segment {
                    let layout = serde_json::to_vec(&segment.layout).expect("a layout");
                    out.push((format!("{asked}: layout"), layout));
                    out.push((format!("{asked}: table"), segment.to_bytes().expect("a file that can be read")));
                }
                answer.value
            }
            Err(fault) => {
                out.push((asked, fault.message.into_bytes()));
                Value::Null
            }
        }
    };
    let codes = ask("market.get_stock_list", json!({}));
    for days in [1, 20, 120] {
        ask("market.get_all_daily", json!({ "days": days }));
    }
    for method in ["market.get_behavioral_features", "market.screen_stocks", "portfolio.get_positions", "news.get_policy_news"] {
        ask(method, json!({}));
    }
    let overview = ask("market.get_market_overview", json!({}));
    for sector in overview["top_sectors"].as_array().into_iter().flatten() {
        ask("market.get_sector_summary", json!({ "sector": sector["sector"] }));
        ask("market.get_sector_stocks", json!({ "sector": sector["sector"] }));
    }
    ask("news.get_news", json!({ "days": 3 }));
    for code in codes.as_array().into_iter().flatten() {
        for method in ["market.get_kline_5min", "market.get_stock_price", "market.get_fundamentals"] {
            ask(method, json!({ "code": code }));
        }
        ask("market.get_kline", json!({ "code": code, "days": 250 }));
        ask("news.get_announcements", json!({ "code": code, "days": 90 }));
    }
    assert!(out.len() > 50, "the market of the test has something to ask for");
    if masked {
        // Names without a date: what a later day knows is hidden, and told of nobody.
        for (asked, bytes) in &mut out {
            if asked.starts_with("news.")
                && let Ok(text) = String::from_utf8(bytes.clone())
            {
                let names = market::LATER_NAMES.iter().chain([&market::LATER_NAME]);
                *bytes = names.fold(text, |text, name| text.replace(name, "another company")).into_bytes();
            }
        }
    }
    out
}

fn holds_sentinel(bytes: &[u8]) -> bool {
    let near = |cell: &[u8]| {
        let value = f64::from_le_bytes(cell.try_into().unwrap_or_default());
        SENTINELS.iter().any(|s| (value - s).abs() < 1.0)
    };
    bytes.chunks_exact(8).any(near) || shows_poison(&String::from_utf8_lossy(bytes))
}

// complaints LA-1, LA-9; engine E2; the reference's sandbox fault b05
#[test]
fn no_byte_that_code_can_read_depends_on_what_is_after_the_clock() {
    let day = market::days()[market::SESSIONS - 2];
    for point in [DecisionPoint::PreMarket, DecisionPoint::Open1, DecisionPoint::Close1] {
        let clock = Clock { day, point };
        for masked in [false, true] {
            let one = readable(clock, masked, Future::Cut);
            for future in [Future::Poisoned(0), Future::Poisoned(1), Future::AsIs, Future::CutWithoutUnlisted] {
                if masked && future == Future::CutWithoutUnlisted {
                    continue; // the number of an alias depends on how many securities the dataset has
                }
                let two = readable(clock, masked, future);
                assert_eq!(one.len(), two.len(), "{point} masked {masked} {future:?}");
                for ((asked, one), (also, two)) in one.iter().zip(&two) {
                    assert_eq!(asked, also);
                    assert!(!holds_sentinel(two), "{point} masked {masked}: {asked} shows a row after the clock");
                    assert!(one == two, "{point} masked {masked}: {asked} depends on what is after the clock ({future:?})");
                }
            }
        }
    }
}
