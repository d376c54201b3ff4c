//! Calls that exercise every tool: its own example on every listed security, and the edges of its arguments.

use serde_json::{Value, json};
use traderharness_harness::{RawArguments, Session};

/// Every call, as `tool(arguments)` and the text the model reads. Completion tools and the sandbox come last or not at all: they
/// would move the clock or leave this process.
pub(crate) fn run(session: &mut Session) -> Vec<(String, String)> {
    let tools: Vec<(String, Value)> = session
        .offered()
        .map(|t| (t.bound.spec().name.to_owned(), t.definition.example().clone()))
        .filter(|(name, _)| !["complete_phase", "finish_day", "execute_code"].contains(&name.as_str()))
        .collect();
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
    seen.push((format!("{tool}({args})"), report.text));
}
