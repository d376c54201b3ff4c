//! Lists in pages: each record once, none lost, and a cursor is good for its own query at its own clock only.

use super::envelope::{failure, tools};
use super::world::Step;
use super::world::{World, free_card, run, send};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use traderharness_contract::ErrorCode;
use traderharness_harness::Session;
use traderharness_market::DecisionPoint;
use traderharness_market::testing::{SmallMarket, SmallStock};

const SESSIONS: usize = 130;
const STOCKS: usize = 70;
const FIRST: &str = "600100";

fn code(n: usize) -> String {
    format!("600{}", 100 + n)
}

/// More of everything than fits one answer: sectors, stocks in a stage, news, announcements.
static MANY: LazyLock<World> = LazyLock::new(|| {
    let closes = |n: usize| -> Vec<f64> {
        let fall = |i: usize| 20.0 - 8.0 * i as f64 / SESSIONS as f64 + ((i * (n + 3)) % 7) as f64 * 0.05;
        (0..SESSIONS).map(|i| (fall(i) * 100.0).round() / 100.0).collect()
    };
    let days = SmallMarket::new("2024-01-02", SESSIONS)
        .stock(SmallStock::new(FIRST).closes(&closes(0)))
        .build()
        .calendar()
        .days()
        .to_vec();
    let mut market = SmallMarket::new("2024-01-02", SESSIONS);
    for n in 0..STOCKS {
        let mut stock =
            SmallStock::new(&code(n)).name(&format!("Quanfeng Works {n}")).industry(&format!("Sector {n:02}")).closes(&closes(n));
        for day in &days[SESSIONS - 2..] {
            stock = stock.minutes(&day.to_string(), &[12.0; 48]);
        }
        if n == 0 {
            for k in 0..125 {
                // Five of each minute, so that pages end inside one moment.
                let time = format!("{} 18:{:02}", days[SESSIONS - 6], k / 5);
                stock = stock.announcement(&time, &format!("Notice {k}"));
            }
        }
        market = market.stock(stock);
    }
    for k in 0..140 {
        market =
            market.news(&format!("{} 08:{:02}", days[SESSIONS - 2], k / 5), &format!("Item {k}"), &format!("Tea and text {k}."));
    }
    World::of(market.parts())
});

fn session(masked: bool) -> Session {
    let mut session = MANY.open(&free_card(), masked, SESSIONS - 2, DecisionPoint::Open1);
    let watch: Vec<Step> = (0..STOCKS)
        .map(|n| Step::Call("add_watchlist", json!({ "stock_code": code(n), "reason": format!("{n} {}", "w".repeat(200)) })))
        .collect();
    run(&mut session, &watch);
    let condition = |n: usize| {
        json!({
            "operation": "create", "action": "buy", "stock_code": code(n), "quantity": 100, "comparator": "price_gte", "trigger_price": 50.0,
            "reasoning": format!("{n} {}", "why ".repeat(100))
        })
    };
    let note = |n: usize| json!({ "content": format!("tea {n} {}", "word ".repeat(300)), "memory_type": "lesson" });
    let mut steps: Vec<Step> = (0..64).map(|n| Step::Call("manage_conditional_order", condition(n))).collect();
    steps.extend((0..45).map(|n| Step::Call("remember", note(n))));
    run(&mut session, &steps);
    session
}

/// A list: arguments of a small and of a large page, an argument that makes it another query, where the records are, what names one,
/// and where the number of all is.
struct List {
    tool: &'static str,
    small: Value,
    large: Value,
    other: Value,
    records: &'static str,
    id: &'static str,
    total: &'static str,
}

fn lists() -> Vec<List> {
    let list = |tool, args: Value, other: Value, records, id, total| {
        let sized = |n: Option<u32>| {
            let mut args = args.clone();
            if let Some(n) = n {
                args["max_results"] = json!(n);
            }
            args
        };
        let unsized_ = ["get_kline", "get_watchlist", "list_conditional_orders"].contains(&tool);
        let most = if ["screen_behavioral_cycle", "search_memory"].contains(&tool) { 20 } else { 30 };
        let (small, large) = if unsized_ { (sized(None), sized(None)) } else { (sized(Some(7)), sized(Some(most))) };
        List { tool, small, large, other, records, id, total }
    };
    let of = json!({ "stock_code": FIRST });
    let bars = json!({ "stock_code": FIRST, "days": 120, "detail": "full" });
    vec![
        list("get_kline", bars, json!({ "days": 121 }), "bars", "day", "total"),
        list("screen_stocks", json!({}), json!({ "sort_by": "volume" }), "stocks", "code", "total_matched"),
        list("screen_behavioral_cycle", json!({}), json!({ "max_results": 5 }), "candidates", "code", "matched_size"),
        list("get_news", json!({ "keyword": "tea" }), json!({ "keyword": "text" }), "news", "evidence_id", "total"),
        list("get_narrative_news", json!({ "keyword": "tea" }), json!({ "keyword": "text" }), "news", "evidence_id", "total"),
        list("get_announcements", of.clone(), json!({ "days": 29 }), "announcements", "evidence_id", "total"),
        list("get_announcement_evidence", of, json!({ "days": 29 }), "announcements", "evidence_id", "total"),
        list("get_watchlist", json!({}), json!(null), "watchlist", "stock_code", "count"),
        list("list_conditional_orders", json!({}), json!({ "status": "expired" }), "orders", "order_id", "total"),
        list("search_memory", json!({ "query": "tea" }), json!({ "query": "word" }), "memories", "memory_id", "total"),
    ]
}

fn has_cursor(tool: &str) -> bool {
    tools().any(|d| d.spec.name == tool && d.input_schema["properties"].get("cursor").is_some())
}

/// Every record of a list in order, page by page.
fn walk(session: &mut Session, list: &List, args: &Value) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut args = args.clone();
    loop {
        let answer = send(session, list.tool, &args);
        assert!(answer.report.envelope.is_success(), "{}({args}): {}", list.tool, answer.report.text);
        assert!(!answer.report.truncated, "{}({args}): a page fits one answer: {}", list.tool, answer.report.text);
        let page = &answer.report.envelope.0;
        let records = page[list.records].as_array().expect("records").clone();
        assert!(!records.is_empty(), "{}: an empty page", list.tool);
        assert_eq!(page["returned"], records.len(), "{}", list.tool);
        out.extend(records.iter().map(|record| record[list.id].clone()));
        let more = page["next_cursor"].as_str().map(str::to_owned);
        assert_eq!(page["complete"], json!(out.len() == records.len() && more.is_none()), "{}", list.tool);
        let Some(cursor) = more else {
            assert_eq!(page[list.total], out.len(), "{}: the total is the number of all records", list.tool);
            return out;
        };
        args["cursor"] = json!(cursor);
    }
}

// complaint TR-2; spec/tools.md T1
#[test]
fn walking_pages_gives_each_record_once_and_loses_none() {
    for masked in [false, true] {
        let mut session = session(masked);
        for list in lists().iter().filter(|l| has_cursor(l.tool)) {
            let all = walk(&mut session, list, &list.small);
            assert!(all.len() > 40, "{}: {} records are no test of pages", list.tool, all.len());
            let distinct: BTreeSet<String> = all.iter().map(Value::to_string).collect();
            assert_eq!(distinct.len(), all.len(), "{}: a record came twice", list.tool);
            assert_eq!(walk(&mut session, list, &list.large), all, "{}: the size of pages changes the list", list.tool);
        }
    }
}

#[test]
fn names_of_sectors_come_in_pages_until_all_were_given() {
    for tool in ["get_sector_summary", "get_narrative_sector_summary"] {
        let mut session = session(false);
        let mut args = json!({ "sector": "none of them" });
        let mut names: Vec<Value> = Vec::new();
        loop {
            let answer = send(&mut session, tool, &args);
            assert_eq!(failure(&session, tool, &answer), ErrorCode::SectorNotFound);
            let correction = &answer.report.envelope.0["correction"];
            names.extend(correction["sectors"].as_array().expect("names").iter().cloned());
            assert_eq!(correction["total_sectors"], STOCKS);
            let Some(cursor) = correction["next_cursor"].as_str() else { break };
            args["cursor"] = json!(cursor);
        }
        let distinct: BTreeSet<String> = names.iter().map(Value::to_string).collect();
        assert_eq!((names.len(), distinct.len()), (STOCKS, STOCKS), "{tool}");
        let answer = send(&mut session, tool, &json!({ "sector": names[STOCKS - 1] }));
        assert!(answer.report.envelope.is_success(), "{}", answer.report.text);
    }
}

#[test]
fn a_cursor_is_good_for_its_own_query_at_its_own_clock_only() {
    for masked in [false, true] {
        let lists: Vec<List> = lists().into_iter().filter(|l| has_cursor(l.tool)).collect();
        let mut session = session(masked);
        let mut given: Vec<(usize, String)> = Vec::new();
        for (n, list) in lists.iter().enumerate() {
            let page = send(&mut session, list.tool, &list.small).report.envelope.0;
            given.push((n, page["next_cursor"].as_str().expect("more than a page").to_owned()));
        }
        let refused = |session: &mut Session, list: &List, args: &Value, why: &str| {
            let answer = send(session, list.tool, args);
            assert!(!answer.report.envelope.is_success(), "{why}: {}({args}): {}", list.tool, answer.report.text);
            assert_eq!(failure(session, list.tool, &answer), ErrorCode::InvalidCursor, "{why}: {}({args})", list.tool);
            assert!(answer.report.envelope.is_retryable_failure(), "{why}");
            let instruction = answer.report.envelope.0["correction"]["instruction"].as_str().unwrap_or_default().to_lowercase();
            assert!(instruction.contains("start again"), "{why}: {}: {instruction}", list.tool);
        };
        let with = |list: &List, cursor: &str| {
            let mut args = list.small.clone();
            args["cursor"] = json!(cursor);
            args
        };
        for (n, cursor) in &given {
            let list = &lists[*n];
            if let Some(changes) = list.other.as_object() {
                let mut args = with(list, cursor);
                args.as_object_mut().expect("an object").extend(changes.clone());
                refused(&mut session, list, &args, "other arguments");
            }
            let foreign = &given[(n + 1) % given.len()].1;
            refused(&mut session, list, &with(list, foreign), "the cursor of another tool");
            let mut damaged = cursor.clone();
            damaged.pop();
            refused(&mut session, list, &with(list, &damaged), "a damaged cursor");
        }
        session.advance().expect("open_2");
        for (n, cursor) in &given {
            refused(&mut session, &lists[*n], &with(&lists[*n], cursor), "another clock");
        }
    }
}

#[test]
fn every_tool_with_pages_is_walked() {
    let walked: Vec<&str> =
        lists().iter().map(|l| l.tool).chain(["get_sector_summary", "get_narrative_sector_summary"]).collect();
    for definition in tools().filter(|d| has_cursor(d.spec.name)) {
        assert!(walked.contains(&definition.spec.name), "{} has pages and is not walked here", definition.spec.name);
    }
    for definition in tools() {
        let shown = definition.output_schema["properties"].get("next_cursor").is_some();
        assert!(!shown || has_cursor(definition.spec.name), "{} gives a cursor and takes none", definition.spec.name);
    }
}

/// Lists that stay short whatever the market and the run hold, with what bounds each.
const SHORT: [(&str, &str, &str); 15] = [
    ("complete_phase", "abandon_error_codes", "those that the call names"),
    ("execute_code", "files", "the workspace's quota"),
    ("execute_code", "notices", "one per kind"),
    ("finish_day", "abandon_error_codes", "those that the call names"),
    ("get_business_segments", "segments", "those of one report"),
    ("get_fundamentals", "reports", "the number that the call asks for"),
    ("get_market_overview", "bottom_sectors", "a fixed number"),
    ("get_market_overview", "top_sectors", "a fixed number"),
    ("get_narrative_market_overview", "bottom_sectors", "a fixed number"),
    ("get_narrative_market_overview", "rotation_candidates", "a fixed number"),
    ("get_narrative_market_overview", "top_sectors", "a fixed number"),
    ("get_portfolio", "positions", "the card's number of positions"),
    ("get_sector_summary", "top_gainers", "a fixed number"),
    ("get_sector_summary", "top_losers", "a fixed number"),
    ("get_stock_info", "sub_sectors", "those of one security"),
];

// spec/seeds.md B8, B9, D2: a list that can grow has pages; a new one must say here why it cannot
#[test]
fn a_list_that_can_grow_has_pages() {
    // What one sector shows is as short as a market's overview; `missing_reasons` names each kind of hole once.
    let short = |tool: &str, field: &str| {
        field == "missing_reasons"
            || tool == "get_narrative_sector_summary"
            || SHORT.iter().any(|(t, f, why)| *t == tool && *f == field && !why.is_empty())
    };
    let mut seen = 0;
    for definition in tools() {
        let properties = definition.output_schema["properties"].as_object().expect("an object");
        if properties.contains_key("next_cursor") {
            continue;
        }
        for (field, schema) in properties {
            if schema["type"] == "array" && schema.get("maxItems").is_none() {
                assert!(short(definition.spec.name, field), "{}: `{field}` has neither pages nor a bound", definition.spec.name);
                seen += 1;
            }
        }
    }
    assert!(seen >= SHORT.len(), "only {seen} lists were looked at");
}
