//! Calls that exercise every tool: its own example on every listed security, and the edges of its arguments.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use traderharness_harness::{RawArguments, Session};

/// Tools that come last, once each: the sandbox, which answers that it is not there, and what ends a decision point.
const LAST: [&str; 3] = ["execute_code", "complete_phase", "finish_day"];

/// Every call, as `tool(arguments)` and the text the model reads. Every tool on offer is called. The decision point is completed at the
/// end; the clock stays where it is.
pub(crate) fn run(session: &mut Session) -> Vec<(String, String)> {
    let offered = session.offered().map(|t| (t.bound.spec().name.to_owned(), t.definition.example().clone()));
    let (last, tools): (Vec<_>, Vec<_>) = offered.partition(|(name, _)| LAST.contains(&name.as_str()));
    let codes: Vec<String> = {
        let (view, mask) = (session.view(), session.mask());
        let listed = mask.in_visible_order().iter().filter(|sec| view.is_listed(**sec));
        listed.map(|sec| mask.code(*sec).to_owned()).collect()
    };
    let mut seen = Vec::new();
    for (tool, example) in &tools {
        if example.get("stock_code").is_some() {
            for code in &codes {
                let mut args = example.clone();
                args["stock_code"] = json!(code);
                call(session, tool, &args, &mut seen);
            }
        } else {
            call(session, tool, example, &mut seen);
        }
    }
    let code = &codes[0];
    for (tool, args) in [
        ("get_kline", json!({ "stock_code": code, "days": 250, "adjustment": "total_return" })),
        ("get_kline", json!({ "stock_code": codes[1], "days": 60, "detail": "full" })),
        ("place_order", json!({ "action": "buy", "stock_code": codes[2], "quantity": 100_000, "reasoning": "too large" })),
        ("place_order", json!({ "action": "sell", "stock_code": codes[2], "quantity": 0, "reasoning": "exit" })),
        ("place_order", json!({ "action": "buy", "stock_code": "999999", "quantity": 100, "reasoning": "unknown" })),
        ("get_portfolio", json!({})),
        ("get_news", json!({ "days": 3, "keyword": "report" })),
        ("get_announcements", json!({ "stock_code": code, "days": 90 })),
        ("screen_stocks", json!({ "max_results": 30, "sort_by": "volume" })),
        ("get_market_overview", json!({})),
    ] {
        if tools.iter().any(|(name, _)| name == tool) {
            call(session, tool, &args, &mut seen);
        }
    }
    // Again, now that something is held and watched.
    for tool in ["get_position", "remove_watchlist"].iter().filter(|tool| tools.iter().any(|(name, _)| name == *tool)) {
        for code in &codes {
            call(session, tool, &json!({ "stock_code": code }), &mut seen);
        }
    }
    for (tool, mut args) in last {
        if tool != "execute_code" {
            let open: Vec<&str> = session.phase().pending().iter().map(|p| p.code.as_str()).collect();
            args["abandon_error_codes"] = json!(BTreeSet::from_iter(open));
        }
        call(session, &tool, &args, &mut seen);
    }
    seen
}

/// The example of every tool that takes a code, asked for `code`.
pub(crate) fn ask(session: &mut Session, code: &str) -> Vec<(String, String)> {
    let tools: Vec<(String, Value)> =
        session.offered().map(|t| (t.bound.spec().name.to_owned(), t.definition.example().clone())).collect();
    let mut seen = Vec::new();
    for (tool, mut args) in tools.into_iter().filter(|(_, example)| example.get("stock_code").is_some()) {
        args["stock_code"] = json!(code);
        call(session, &tool, &args, &mut seen);
    }
    seen
}

fn call(session: &mut Session, tool: &str, args: &Value, seen: &mut Vec<(String, String)>) {
    session.begin_message();
    let report = session.call(tool, RawArguments::Value(args.clone())).expect("a session that goes on");
    let sector = report.envelope.0["correction"]["sectors"].get(0).cloned();
    seen.push((format!("{tool}({args})"), report.text));
    // The sector of an example is in no small market; the failure names those that are.
    if let Some(sector) = sector.filter(|sector| args["sector"] != *sector) {
        let mut args = args.clone();
        args["sector"] = sector;
        call(session, tool, &args, seen);
    }
}
