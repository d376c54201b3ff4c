//! Tables with numbers that are none: not a number, infinite, missing, negative, zero, far too large; tables that are not there. No tool
//! breaks, none invents a number, and every hole is named.

use super::envelope::{Answer, definition, failure, reads_strict, tools};
use super::world::{Step, World, free_card, run, send};
use serde_json::{Value, json};
use std::sync::LazyLock;
use traderharness_contract::ErrorCode;
use traderharness_harness::Session;
use traderharness_market::store::{BarColumns, FundamentalRow};
use traderharness_market::{DecisionPoint, StoreParts};
use traderharness_tests::market::{CODES, SESSIONS, parts};

static PARTS: LazyLock<StoreParts> = LazyLock::new(parts);

/// Digits no honest number of the market has, below zero.
const SENTINEL: f64 = -987_654.25;
const DIGITS: &str = "987654";

type Visit = fn(&mut StoreParts, &mut dyn FnMut(&mut f64));

/// A numeric column of a table.
struct Column {
    name: &'static str,
    /// No value of it may be below zero.
    never_negative: bool,
    /// A price: zero is no value of it either.
    price: bool,
    visit: Visit,
}

fn bars(
    pick: fn(&mut StoreParts) -> Option<&mut BarColumns>,
    field: fn(&mut BarColumns) -> &mut Vec<f64>,
) -> impl Fn(&mut StoreParts, &mut dyn FnMut(&mut f64)) {
    move |parts, f| {
        if let Some(columns) = pick(parts) {
            field(columns).iter_mut().for_each(f);
        }
    }
}

macro_rules! bar_columns {
    ($table:literal, $pick:expr) => {
        bar_columns!(@ $table, $pick, open true, high true, low true, close true, volume false, amount false)
    };
    (@ $table:literal, $pick:expr, $($field:ident $price:literal),*) => {
        vec![$(Column {
            name: concat!($table, ".", stringify!($field)),
            never_negative: true,
            price: $price,
            visit: |parts, f| bars($pick, |c| &mut c.$field)(parts, f),
        }),*]
    };
}

fn bar_tables() -> Vec<Column> {
    let daily = bar_columns!("daily", |p: &mut StoreParts| Some(&mut p.daily));
    let minute = bar_columns!("minute", |p: &mut StoreParts| Some(&mut p.minute));
    let index = bar_columns!("index", |p: &mut StoreParts| p.index.as_mut());
    daily.into_iter().chain(minute).chain(index).collect()
}

fn reports(parts: &mut StoreParts, f: &mut dyn FnMut(&mut f64), field: fn(&mut FundamentalRow) -> &mut Option<f64>) {
    for row in parts.fundamentals.iter_mut().flatten() {
        optional(field(row), f);
    }
}

/// `NaN` stands for a field that is not there.
fn optional(field: &mut Option<f64>, f: &mut dyn FnMut(&mut f64)) {
    let mut value = field.unwrap_or(1.0);
    f(&mut value);
    *field = (!value.is_nan()).then_some(value);
}

macro_rules! columns {
    ($table:literal, $negative:expr, |$parts:ident, $f:ident, $field:ident| $($names:ident),* => $body:expr) => {
        vec![$(Column {
            name: concat!($table, ".", stringify!($names)),
            never_negative: $negative,
            price: false,
            visit: |$parts, $f| { macro_rules! $field { ($row:expr) => { $row.$names } } $body },
        }),*]
    };
}

fn other_tables() -> Vec<Column> {
    let tables = [
        columns!("valuation", false, |parts, f, field| pe_ttm, pb_mrq, ps_ttm => {
            for table in parts.valuation.iter_mut() { field!(table).iter_mut().for_each(&mut *f); }
        }),
        columns!("valuation", true, |parts, f, field| turnover => {
            for table in parts.valuation.iter_mut() { field!(table).iter_mut().for_each(&mut *f); }
        }),
        columns!("fundamentals", false, |parts, f, field| roe, net_profit_margin, gross_margin, net_profit, eps, eps_ttm, revenue,
        bvps, yoy_net_profit, yoy_eps, yoy_equity, yoy_asset, yoy_pni => reports(parts, f, |row| &mut field!(row))),
        columns!("segments", false, |parts, f, field| revenue, revenue_pct, gross_margin => {
            for row in parts.segments.iter_mut().flatten() { optional(&mut field!(row), &mut *f); }
        }),
        columns!("ex_events", false, |parts, f, field| bonus, transfer, cash, rights, rights_price => {
            for row in parts.ex_events.iter_mut().flatten() { f(&mut field!(row)); }
        }),
    ];
    tables.into_iter().flatten().collect()
}

/// Calls that read every table, on securities with different fates, by an account that holds and watches some.
fn calls() -> Vec<(&'static str, Value)> {
    let mut out = Vec::new();
    for code in [CODES[0], CODES[1], CODES[3], CODES[4]] {
        let of = json!({ "stock_code": code });
        for tool in
            ["get_stock_price", "get_stock_info", "get_valuation", "get_fundamentals", "get_business_segments", "get_position"]
        {
            out.push((tool, of.clone()));
        }
        let all = json!(["open", "high", "low", "close", "volume", "amount", "change_pct"]);
        for adjustment in ["none", "split_only", "total_return"] {
            out.push(("get_kline", json!({ "stock_code": code, "days": 60, "fields": all, "adjustment": adjustment })));
        }
        out.push(("get_kline", json!({ "stock_code": code, "days": 50, "detail": "full", "fields": all })));
        out.push(("get_announcement_evidence", of));
        out.push(("place_order", json!({ "action": "buy", "stock_code": code, "quantity": 100, "reasoning": "r" })));
    }
    for sort in ["change_1d", "change_20d", "volume", "amount"] {
        out.push(("screen_stocks", json!({ "sort_by": sort, "max_results": 30 })));
    }
    out.push(("screen_stocks", json!({ "price_min": 1, "volume_min": 1, "amount_min": 1, "exclude_limit_up": true })));
    for sector in ["Metals", "Food"] {
        out.push(("get_sector_summary", json!({ "sector": sector })));
        out.push(("get_narrative_sector_summary", json!({ "sector": sector })));
    }
    for tool in [
        "get_market_overview",
        "get_narrative_market_overview",
        "screen_behavioral_cycle",
        "get_portfolio",
        "get_watchlist",
        "list_conditional_orders",
        "get_news",
    ] {
        out.push((tool, json!({})));
    }
    out
}

fn session(world: &World, masked: bool, point: DecisionPoint) -> Session {
    let mut session = world.open(&free_card(), masked, SESSIONS - 3, DecisionPoint::Open1);
    let condition = json!({
        "operation": "create", "action": "buy", "stock_code": CODES[0], "quantity": 100, "comparator": "price_gte", "trigger_price": 1.0,
        "reasoning": "r"
    });
    let mut steps = vec![Step::Try("manage_conditional_order", condition)];
    for code in [CODES[0], CODES[1], CODES[3]] {
        steps.push(Step::Try("place_order", json!({ "action": "buy", "stock_code": code, "quantity": 1_000, "reasoning": "r" })));
        steps.push(Step::Try("add_watchlist", json!({ "stock_code": code, "reason": "r" })));
    }
    run(&mut session, &steps);
    let next = world.store.calendar().days()[SESSIONS - 2];
    session.start_day(next).expect("a trading day");
    super::world::until(&mut session, point);
    session
}

/// True when the description of an output field says itself when it is null.
fn says_when_null(schema: &Value, field: &str) -> bool {
    match schema {
        Value::Object(map) => {
            let described = map.get("properties").and_then(|p| p.get(field)).and_then(|f| f["description"].as_str());
            described.is_some_and(|text| text.to_lowercase().contains("null")) || map.values().any(|v| says_when_null(v, field))
        }
        Value::Array(items) => items.iter().any(|v| says_when_null(v, field)),
        _ => false,
    }
}

/// Nulls of a payload that neither `missing_reasons` names nor their description explains.
fn unexplained(payload: &Value, schema: &Value) -> Vec<String> {
    fn walk(value: &Value, path: &str, folded: &str, named: &[&str], found: &mut Vec<String>) {
        match value {
            Value::Null if !named.contains(&path) && !named.contains(&folded) => found.push(folded.to_owned()),
            Value::Array(items) => items.iter().enumerate().for_each(|(i, item)| {
                walk(item, &format!("{path}[{i}]"), &format!("{folded}[]"), named, found);
            }),
            Value::Object(map) => map.iter().for_each(|(key, item)| {
                let dot = if path.is_empty() { "" } else { "." };
                walk(item, &format!("{path}{dot}{key}"), &format!("{folded}{dot}{key}"), named, found);
            }),
            _ => {}
        }
    }
    let reasons = payload["missing_reasons"].as_array();
    let named: Vec<&str> = reasons.into_iter().flatten().filter_map(|m| m["field"].as_str()).collect();
    let mut found = Vec::new();
    walk(payload, "", "", &named, &mut found);
    found.retain(|path| !says_when_null(schema, path.rsplit('.').next().unwrap_or_default()));
    found.sort_unstable();
    found.dedup();
    found
}

fn answered(session: &Session, tool: &str, answer: &Answer, column: &Column, value: f64) {
    let told = |what: &str| format!("{} = {value}: {tool}({}): {what}: {}", column.name, answer.sent, answer.report.text);
    reads_strict(&answer.report.text, &told);
    if !answer.report.envelope.is_success() {
        failure(session, tool, answer);
        return;
    }
    let payload = &answer.report.envelope.0;
    for token in ["NaN", "Infinity", "inf"] {
        assert!(!answer.report.text.contains(&format!(": {token}")), "{}", told("no number of JSON"));
    }
    if value == SENTINEL && column.never_negative {
        assert!(!answer.report.text.contains(DIGITS), "{}", told("a number that cannot be is shown as one"));
    }
    let silent = unexplained(payload, &definition(tool, false).expect("a tool").output_schema);
    assert!(silent.is_empty(), "{}", told(&format!("nulls without a reason: {silent:?}")));
    if value == 0.0 && column.price {
        no_price_of_zero(payload, &told);
    }
}

fn no_price_of_zero(value: &Value, told: &dyn Fn(&str) -> String) {
    const PRICES: [&str; 12] = [
        "open",
        "high",
        "low",
        "close",
        "price",
        "last_close",
        "last_low",
        "current_price",
        "previous_close",
        "reference_price",
        "support_20",
        "resistance_20",
    ];
    match value {
        Value::Array(items) => items.iter().for_each(|item| no_price_of_zero(item, told)),
        Value::Object(map) => {
            for (key, item) in map {
                assert!(!(PRICES.contains(&key.as_str()) && item.as_f64() == Some(0.0)), "{}", told(&format!("{key} of zero")));
                no_price_of_zero(item, told);
            }
        }
        _ => {}
    }
}

fn poisoned(columns: &[Column]) {
    let calls = calls();
    let mut turn = 0_usize;
    for column in columns {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, SENTINEL, 0.0, 1e300] {
            turn += 1;
            let mut parts = PARTS.clone();
            // Whole columns and single holes by turns: a hole lies inside windows that are otherwise sound.
            let (mut row, every) = (0, if turn.is_multiple_of(2) { 1 } else { 3 });
            (column.visit)(&mut parts, &mut |cell| {
                row += 1;
                if row % every == 0 {
                    *cell = value;
                }
            });
            assert!(row > 0, "{} has no row in this market", column.name);
            let world = World::of(parts);
            let point = DecisionPoint::ALL[turn % DecisionPoint::ALL.len()];
            let mut session = session(&world, turn.is_multiple_of(3), point);
            for (tool, args) in &calls {
                let answer = send(&mut session, tool, args);
                answered(&session, tool, &answer, column, value);
            }
        }
        turn += 1;
    }
}

// complaints NU-1, NU-2, NU-4
#[test]
fn bars_without_numbers_leave_holes_with_reasons() {
    poisoned(&bar_tables());
}

#[test]
fn reports_without_numbers_leave_holes_with_reasons() {
    poisoned(&other_tables());
}

/// A table and the tools that can answer nothing without it.
type Lost = (&'static str, fn(&mut StoreParts), &'static [&'static str]);

const TABLES: [Lost; 7] = [
    ("fundamentals", |p| p.fundamentals = None, &["get_fundamentals"]),
    ("segments", |p| p.segments = None, &["get_business_segments"]),
    ("valuation", |p| p.valuation = None, &["get_valuation"]),
    ("announcements", |p| p.announcements = None, &["get_announcements", "get_announcement_evidence"]),
    ("news", |p| p.news = None, &["get_news", "get_narrative_news"]),
    ("securities", |p| p.securities = None, &["get_sector_summary", "get_narrative_sector_summary"]),
    ("index", |p| p.index = None, &[]),
];

// complaint LA-6; spec/tools.md T1
#[test]
fn a_table_that_is_not_there_is_said_to_be_missing_and_no_other_tool_fails() {
    for (table, lose, silent) in TABLES {
        let mut parts = PARTS.clone();
        lose(&mut parts);
        let world = World::of(parts);
        for masked in [false, true] {
            let mut session = session(&world, masked, DecisionPoint::Open1);
            let more = [("get_announcements", json!({ "stock_code": CODES[0] })), ("get_narrative_news", json!({}))];
            for (tool, args) in calls().into_iter().chain(more) {
                let answer = send(&mut session, tool, &args);
                let told = || format!("without {table}: {tool}({args}): {}", answer.report.text);
                if silent.contains(&tool) {
                    assert_eq!(failure(&session, tool, &answer), ErrorCode::DataUnavailable, "{}", told());
                    assert!(!answer.report.envelope.is_retryable_failure(), "{}", told());
                } else if !answer.report.envelope.is_success() {
                    assert_ne!(failure(&session, tool, &answer), ErrorCode::DataUnavailable, "{}", told());
                }
            }
        }
    }
}

// spec/tools.md T1: an empty answer, a missing table and an unknown security are three things
#[test]
fn an_empty_answer_says_why_it_is_empty() {
    let mut parts = PARTS.clone();
    parts.news = Some(vec![]);
    parts.announcements = Some(vec![]);
    parts.fundamentals = Some(vec![]);
    let world = World::of(parts);
    let mut session = world.open(&free_card(), false, SESSIONS - 2, DecisionPoint::Open1);
    for (tool, args) in [
        ("get_news", json!({})),
        ("get_narrative_news", json!({})),
        ("get_announcements", json!({ "stock_code": CODES[0] })),
        ("get_announcement_evidence", json!({ "stock_code": CODES[0] })),
        ("screen_stocks", json!({ "price_min": 1e6 })),
        ("get_watchlist", json!({})),
        ("list_conditional_orders", json!({})),
        ("search_memory", json!({ "query": "tea" })),
    ] {
        let answer = send(&mut session, tool, &args);
        assert!(answer.report.envelope.is_success(), "{}", answer.report.text);
        let reason = answer.report.envelope.0["empty_reason"].as_str().unwrap_or_default();
        assert!(reason.len() > 3, "{tool}({args}) is empty without a reason: {}", answer.report.text);
    }
    let answer = send(&mut session, "get_fundamentals", &json!({ "stock_code": CODES[0] }));
    assert_eq!(failure(&session, "get_fundamentals", &answer), ErrorCode::SecurityDataUnavailable);
}

// spec/tools.md b41
#[test]
fn a_keyword_that_looks_like_a_pattern_is_literal_text() {
    let mut parts = PARTS.clone();
    let item = parts.news.iter().flatten().next().cloned().expect("news");
    let mut odd = item.clone();
    odd.title = "A title with x.*y and [abc in it (see 1+1)".into();
    odd.time = traderharness_market::testing::moment(&format!("{} 08:00", parts.calendar.days()[SESSIONS - 2]));
    let at = parts.news.as_ref().map_or(0, |rows| rows.partition_point(|r| r.time < odd.time));
    parts.news.get_or_insert_default().insert(at, odd);
    let world = World::of(parts);
    for masked in [false, true] {
        let mut session = world.open(&free_card(), masked, SESSIONS - 2, DecisionPoint::Open1);
        for (word, found) in [
            ("x.*y", 1),
            ("[a", 1),
            ("1+1)", 1),
            ("(see", 1),
            ("C.pper", 0),
            ("Copper|Tea", 0),
            ("^Copper", 0),
            ("\\d", 0),
            ("%", -1),
            (".*", -1),
            ("(", -1),
            ("$^", -1),
        ] {
            let answer = send(&mut session, "get_news", &json!({ "keyword": word, "days": 3 }));
            if found < 0 {
                assert_eq!(failure(&session, "get_news", &answer), ErrorCode::InvalidToolArguments, "{word}");
            } else {
                assert_eq!(answer.report.envelope.0["total"], found, "masked {masked}: {word}: {}", answer.report.text);
            }
        }
    }
}

/// Read tools whose answers state no `as_of`, each with its reason.
const WITHOUT_AS_OF: [&str; 0] = [];

// spec/tools.md T1
#[test]
fn every_read_says_as_of_when_it_is_true() {
    let reads = tools().filter(|d| d.spec.effect == traderharness_contract::Effect::Read).map(|d| d.spec.name);
    for tool in reads {
        let schema = &definition(tool, true).expect("a tool").output_schema;
        let required = schema["required"].as_array().is_some_and(|list| list.contains(&json!("as_of")));
        assert_eq!(required, !WITHOUT_AS_OF.contains(&tool), "{tool}: as_of is in every success, or the tool is on the list");
    }
}
