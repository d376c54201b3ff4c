//! Overview, sector, screens and narrative tools: counts, orders, removed stocks, budgets, and a cache that ends with its clock.

use crate::call::{at, bright, call, column, missing, refused, schema_refuses};
use serde_json::{Value, json};
use traderharness_contract::budget::RESULT_LIMIT;
use traderharness_contract::{Definition, ErrorCode, Handler, Policy, ToolFailure};
use traderharness_market::testing::{SmallMarket, SmallStock};
use traderharness_market::{Mask, Store, View};
use traderharness_tools_market::{MarketCtx, MarketState, MarketTools, tools};

/// A run of calls on one state, as a session makes them.
struct Session<'a> {
    store: &'a Store,
    mask: Mask,
    state: MarketState,
}

impl<'a> Session<'a> {
    fn new(store: &'a Store) -> Self {
        Self { store, mask: bright(store), state: MarketState::default() }
    }

    fn call(&mut self, clock: &str, tool: &str, args: Value) -> Result<Value, ToolFailure> {
        let handler: Handler<MarketTools> = tools().into_iter().find(|h| h.spec.name == tool).unwrap();
        let definition: Definition = (handler.define)(&Policy::default());
        definition.validate(&args).unwrap();
        let view = View::new(self.store, at(clock), &self.mask);
        let payload = handler.invoke(&mut MarketCtx { view, state: &mut self.state }, args)?;
        definition.validate_output(&payload).unwrap();
        Ok(payload)
    }
}

fn closes(change_pct: f64) -> Vec<f64> {
    (0..30).map(|i| if i < 29 { 10.0 } else { 10.0 * (1.0 + change_pct / 100.0) }).collect()
}

/// 30 sessions from Monday 2024-03-04, the last on Friday 2024-04-12; the clock is the Monday after.
const NOW: &str = "2024-04-15 pre_market";

fn market() -> SmallMarket {
    let mut stocks = vec![];
    for (code, industry, change) in [
        ("600000", "Banking-Large", 1.0),
        ("600001", "Banking-Small", 2.0),
        ("600003", "Banking", -1.0),
        ("600004", "Banks of sand", 3.0),
        ("000001", "Chips-Design", 9.97),
        ("000002", "Chips-Design-Analog", 10.0),
        ("000004", "Chips", -10.0),
        ("000005", "Chips", 0.0),
        ("300001", "Software", 10.0),
    ] {
        stocks.push(SmallStock::new(code).name(code).industry(industry).closes(&closes(change)));
    }
    stocks.push(SmallStock::new("600010").industry("Banking").closes(&closes(5.0)).without("2024-04-12"));
    stocks.into_iter().fold(SmallMarket::new("2024-03-04", 40), SmallMarket::stock)
}

// spec/tools.md T3, b27
#[test]
fn the_overview_counts_every_listed_stock_once() {
    let got = call(&market().build(), NOW, "get_market_overview", json!({}));
    let counts = ["up_count", "down_count", "flat_count", "suspended_count", "unknown_count", "total_stocks"]
        .map(|f| got[f].as_u64().unwrap());
    assert_eq!(counts, [6, 2, 1, 1, 0, 8]);
    // 10 % is the limit of the main boards, 20 % that of ChiNext; 10.997 rounds to the limit price 11.00.
    assert_eq!((&got["limit_up_count"], &got["limit_down_count"]), (&json!(2), &json!(1)));
    assert_eq!((&got["session"], &got["median_change_pct"]), (&json!("2024-04-12"), &json!(2.0)));
    assert_eq!((&got["total_sectors"], &got["small_sectors"]), (&json!(2), &json!(2)));
    assert_eq!(column(&got, "top_sectors", "sector"), ["Chips", "Banking"]);
    assert_eq!(column(&got, "top_sectors", "avg_change_pct"), ["2.49", "0.67"]);
    assert_eq!((&got["up_volume"], &got["down_volume"]), (&json!(6_000_000), &json!(2_000_000)));
}

#[test]
fn a_market_without_two_sessions_has_no_overview() {
    let store = market().build();
    for tool in ["get_market_overview", "get_narrative_market_overview"] {
        for clock in ["2024-03-04 close_2", "2024-03-05 close_2"] {
            assert_eq!(refused(&store, clock, tool, json!({})).code, ErrorCode::DataUnavailable, "{tool} {clock}");
        }
    }
    let cycle = call(&store, NOW, "screen_behavioral_cycle", json!({}));
    assert_eq!((&cycle["eligible_size"], &cycle["candidates"]), (&json!(0), &json!([])));
    assert!(cycle["empty_reason"].as_str().unwrap().starts_with("insufficient_history"), "complaint NU-4");
}

// spec/tools.md T3
#[test]
fn a_sector_is_found_by_name_or_by_a_prefix_of_its_own() {
    let store = market().build();
    let summary = |name: &str| call(&store, NOW, "get_sector_summary", json!({ "sector": name }));
    for name in ["Chips", "Chi", " Chips "] {
        let got = summary(name);
        assert_eq!((&got["sector"], &got["stock_count"], &got["avg_change_pct"]), (&json!("Chips"), &json!(4), &json!(2.49)));
        assert_eq!(column(&got, "top_gainers", "code"), ["000002", "000001", "000005", "000004"]);
        assert_eq!(column(&got, "top_gainers", "sub_sector"), ["Design", "Design", "null", "null"]);
        assert_eq!(got["top_losers"], json!([]));
    }
    // An exact name wins over longer ones.
    let banking = summary("Banking");
    assert_eq!((&banking["stock_count"], &banking["suspended_count"]), (&json!(3), &json!(1)));
    let ambiguous = refused(&store, NOW, "get_sector_summary", json!({"sector": "Ban"}));
    assert_eq!(ambiguous.code, ErrorCode::SectorNotFound);
    assert_eq!(ambiguous.correction["closest"], json!(["Banking", "Banks of sand"]));
    let unknown = refused(&store, NOW, "get_sector_summary", json!({"sector": "Chip makers"}));
    assert_eq!(unknown.correction["closest"][0], json!("Banks of sand"), "most shared characters first");
    assert_eq!(unknown.correction["sectors"], json!(["Banking", "Banks of sand", "Chips", "Software"]));
    assert!(unknown.retryable());
}

#[test]
fn a_long_list_of_sectors_is_read_page_by_page() {
    let mut market = SmallMarket::new("2024-03-04", 40);
    for i in 0..130 {
        let stock = SmallStock::new(&format!("{:06}", 600_000 + i)).industry(&format!("Sector {i:03}"));
        market = market.stock(stock.closes(&closes(1.0)));
    }
    let store = market.build();
    let mut args = json!({"sector": "Nowhere"});
    let mut names: Vec<Value> = vec![];
    loop {
        let failure = refused(&store, NOW, "get_sector_summary", args.clone());
        names.extend(failure.correction["sectors"].as_array().unwrap().clone());
        assert_eq!(failure.correction["total_sectors"], json!(130));
        match failure.correction["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(names.len(), 130);
    assert_eq!(names[129], json!("Sector 129"));
}

// spec/tools.md b14, engine E2.8
#[test]
fn changes_span_exactly_their_sessions() {
    let closes: Vec<f64> = (0..30).map(|i| 100.0 + f64::from(i * i)).collect();
    let store = SmallMarket::new("2024-03-04", 40).stock(SmallStock::new("600000").closes(&closes)).build();
    let got = call(&store, NOW, "screen_stocks", json!({}));
    let change = |n: usize| {
        let exact = (closes[29] / closes[29 - n] - 1.0) * 100.0;
        json!((exact * 100.0).round() / 100.0)
    };
    let row = &got["stocks"][0];
    assert_eq!((&row["change_1d_pct"], &row["change_5d_pct"], &row["change_20d_pct"]), (&change(1), &change(5), &change(20)));
}

#[test]
fn the_screen_says_what_each_filter_removed() {
    let mut stocks = market();
    stocks = stocks.stock(SmallStock::new("600020").closes(&closes(4.0)).st("2024-04-12", true));
    stocks = stocks.stock(SmallStock::new("600021").bar("2024-04-12", [5.0, 5.0, 5.0, 5.0, 1.0, 5.0]));
    let store = stocks.build();
    let args = json!({"sort_by": "change_1d", "change_pct_min": 0, "exclude_st": true, "exclude_limit_up": true, "industry": ["Banking", "Chips"]});
    let got = call(&store, NOW, "screen_stocks", args);
    assert_eq!(column(&got, "stocks", "code"), ["600001", "600000", "000005"]);
    let removed: Vec<String> =
        got["removed"].as_array().unwrap().iter().map(|r| format!("{} {}", r["filter"].as_str().unwrap(), r["count"])).collect();
    // 12 listed: one suspended, one with a single bar.
    assert_eq!(
        removed,
        ["suspended 1", "no_sort_value 1", "change_pct_min 2", "industry 3", "exclude_st 0", "exclude_limit_up 2"]
    );
    assert_eq!((&got["universe"], &got["total_matched"], &got["complete"]), (&json!(12), &json!(3), &json!(true)));
    let st = call(&store, NOW, "screen_stocks", json!({"exclude_st": true, "sort_by": "change_1d", "max_results": 30}));
    assert!(!column(&st, "stocks", "code").contains(&"600020".to_owned()));
    let none = call(&store, NOW, "screen_stocks", json!({"price_min": 100_000}));
    assert_eq!((&none["stocks"], &none["empty_reason"]), (&json!([]), &json!("removed_by_price_min")));
    let crossed = refused(&store, NOW, "screen_stocks", json!({"change_pct_min": 2, "change_pct_max": 1}));
    assert_eq!(crossed.code, ErrorCode::InvalidFilterRange);
    assert_eq!((&crossed.correction["change_pct_min"], &crossed.correction["change_pct_max"]), (&json!(2.0), &json!(1.0)));
    assert_eq!(refused(&store, NOW, "screen_stocks", json!({"industry": "Nowhere"})).code, ErrorCode::SectorNotFound);
    for bad in [
        json!({"price_max": 0}),
        json!({"max_results": 31}),
        json!({"industry": []}),
        json!({"volume_min": -1}),
        json!({"sort_by": "pe"}),
    ] {
        assert!(schema_refuses("screen_stocks", &bad), "{bad}");
    }
}

// complaint NU-1
#[test]
fn unusable_numbers_leave_the_whole_market_tools_standing() {
    for column_index in 0..6 {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0] {
            let mut row = [10.0, 10.5, 9.5, 10.2, 1000.0, 10_200.0];
            row[column_index] = value;
            let stock = SmallStock::new("600030").industry("Chips").closes(&closes(0.0)).bar("2024-04-12", row);
            let store = market().stock(stock).build();
            for (tool, args) in [
                ("get_market_overview", json!({})),
                ("get_narrative_market_overview", json!({})),
                ("get_sector_summary", json!({"sector": "Chips"})),
                ("get_narrative_sector_summary", json!({"sector": "Chips"})),
                ("screen_stocks", json!({"max_results": 30, "sort_by": "change_1d"})),
                ("screen_behavioral_cycle", json!({})),
            ] {
                // `call` checks the output schema and that the text reads back equal.
                let got = call(&store, NOW, tool, args);
                if tool == "get_market_overview" && column_index == 3 {
                    assert_eq!(got["unknown_count"], json!(1), "a bar without a usable close has no change");
                }
            }
            let holes = missing(&call(&store, NOW, "get_narrative_sector_summary", json!({"sector": "Chips"})));
            let amount = column_index == 5 && value != 0.0;
            assert_eq!(amount, holes.iter().any(|h| h.contains("amount_1d_million")), "{column_index} {value}: {holes:?}");
        }
    }
}

/// 80 sessions with a volume and a range each; `shape` gives (high, low, close, volume).
fn shaped(code: &str, shape: impl Fn(usize) -> (f64, f64, f64, f64)) -> (SmallMarket, Vec<String>) {
    let market = SmallMarket::new("2024-01-01", 90);
    let days: Vec<String> = market.parts().calendar.days().iter().map(ToString::to_string).collect();
    let mut stock = SmallStock::new(code);
    for (i, day) in days.iter().take(80).enumerate() {
        let (high, low, close, volume) = shape(i);
        stock = stock.bar(day, [close, high, low, close, volume, volume * close]);
    }
    (market.stock(stock), days)
}

fn stage(shape: impl Fn(usize) -> (f64, f64, f64, f64)) -> Value {
    let (market, days) = shaped("600000", shape);
    let got = call(&market.build(), &format!("{} pre_market", days[80]), "screen_behavioral_cycle", json!({}));
    got["candidates"].get(0).cloned().unwrap_or(Value::Null)
}

#[test]
fn stages_follow_their_rules() {
    let quiet = |i: usize| (10.2, 9.8, [10.05, 9.95][i % 2], 1000.0);
    let markup = stage(|i| if i >= 78 { (11.0, 10.2, 10.9 + (i as f64 - 78.0) / 100.0, 3000.0) } else { quiet(i) });
    assert_eq!(markup["stage"], Value::Null, "the day before had set the high: {markup}");
    let markup = stage(|i| if i == 79 { (11.0, 10.2, 10.9, 6000.0) } else { quiet(i) });
    assert_eq!(
        (&markup["stage"], &markup["resistance_20"], &markup["invalidation"]),
        (&json!("markup"), &json!(10.2), &json!(9.996))
    );
    // 8 + 6.86 / 5 + 1.6 / 3
    assert_eq!(
        (&markup["breakout_20d_pct"], &markup["volume_5_to_20"], &markup["score"]),
        (&json!(6.86), &json!(1.6), &json!(9.905))
    );

    let washout = stage(|i| match i {
        75..=78 => (10.7, 10.3, 10.5, 1000.0),
        79 => (10.5, 10.1, 10.3, 500.0),
        _ => quiet(i),
    });
    assert_eq!((&washout["stage"], &washout["features"]["recently_broke_out"]), (&json!("washout"), &json!(true)));
    let test = stage(|i| if i == 79 { (10.1, 9.82, 10.0, 500.0) } else { quiet(i) });
    assert_eq!((&test["stage"], &test["features"]["touched_support"]), (&json!("test"), &json!(true)));
    assert_eq!(test["invalidation"], json!(9.604));
}

// complaints TR-2, TR-5
#[test]
fn candidates_come_in_pages_that_fit_and_lose_nothing() {
    let mut market = SmallMarket::new("2024-01-01", 90);
    let days: Vec<String> = market.parts().calendar.days().iter().map(ToString::to_string).collect();
    for code in 600_000..600_050 {
        let mut stock = SmallStock::new(&code.to_string());
        for (i, day) in days.iter().take(80).enumerate() {
            let close = if i == 79 { 1230.0 } else { [1201.05, 1198.95][i % 2] };
            stock = stock.bar(day, [1200.0, close + 2.0, close - 10.0, close, if i == 79 { 6e9 } else { 1e9 }, 1e12]);
        }
        market = market.stock(stock);
    }
    let store = market.build();
    let clock = format!("{} pre_market", days[80]);
    let mut args = json!({"max_results": 20});
    let mut codes: Vec<String> = vec![];
    loop {
        let page = call(&store, &clock, "screen_behavioral_cycle", args.clone());
        assert!(page.to_string().chars().count() < RESULT_LIMIT);
        assert_eq!((&page["matched_size"], &page["complete"]), (&json!(50), &json!(false)));
        codes.extend(column(&page, "candidates", "code"));
        match page["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(codes.len(), 50);
    assert!(codes.windows(2).all(|w| w[0] < w[1]), "equal scores are in the order of visible codes");
}

#[test]
fn a_stock_without_falling_days_or_volume_has_undefined_ratios_not_infinite_ones() {
    let rising = stage(|i| (10.0 + i as f64 * 0.2, 9.9 + i as f64 * 0.2, 10.0 + i as f64 * 0.2, 1000.0 + i as f64 * 100.0));
    assert_eq!(rising["up_down_volume_ratio"], Value::Null);
    let silent = stage(|i| if i == 79 { (10.1, 9.82, 10.0, 0.0) } else { (10.2, 9.8, 10.0, 0.0) });
    assert_eq!(silent, Value::Null, "no volume fits no stage");
}

// engine E2.8: an ex-date is no crash
#[test]
fn features_see_one_price_level_across_an_ex_date() {
    let shape = |i: usize| {
        let level = if i >= 70 { 0.5 } else { 1.0 };
        (10.2 * level, 9.8 * level, 10.0 * level, 1000.0 / level)
    };
    let (market, days) = shaped("600000", shape);
    let clock = format!("{} pre_market", days[80]);
    let fallen = call(&market.build(), &clock, "screen_behavioral_cycle", json!({}));
    let (even, _) = shaped("600000", shape);
    let even = even.stock(SmallStock::new("600001").closes(&[1.0; 3]).ex_event(&days[1], 1.0, 0.0, 0.0, 0.0, 0.0));
    let mut parts = even.parts();
    let mut event = parts.ex_events.clone().unwrap()[0].clone();
    event.code = traderharness_market::Code::parse("600000").unwrap();
    event.ex_date = traderharness_market::Day::parse(&days[70]).ok();
    event.bonus = 10.0;
    parts.ex_events = Some(vec![event]);
    let level = call(&Store::new(parts).unwrap(), &clock, "screen_behavioral_cycle", json!({}));
    assert_eq!(fallen["candidates"][0]["drawdown_120_pct"], json!(-50.98));
    assert_eq!(level["eligible_size"], json!(1));
    assert_ne!(level["candidates"].get(0).map(|c| &c["drawdown_120_pct"]), Some(&json!(-50.98)));
}

// nothing of a call is passed over in silence
#[test]
fn a_bad_cursor_is_refused_although_the_sector_is_right() {
    let store = market().build();
    for tool in ["get_sector_summary", "get_narrative_sector_summary"] {
        for sector in ["Banking", "Chi", "Nowhere"] {
            let failure = refused(&store, NOW, tool, json!({"sector": sector, "cursor": "no-cursor"}));
            assert_eq!(failure.code, ErrorCode::InvalidCursor, "{tool} {sector}");
        }
    }
}

// engine E2.8: ten shares per ten inside the 20 sessions: 2,000 shares after the ex-date are as much of the company as 1,000 before
#[test]
fn a_bonus_issue_is_no_growth_of_volume_in_any_tool() {
    let days = shaped("600000", |_| (1.0, 1.0, 1.0, 1.0)).1;
    let mut stock = SmallStock::new("600000").industry("Chips").ex_event(&days[70], 10.0, 0.0, 0.0, 0.0, 0.0);
    for (i, day) in days.iter().take(80).enumerate() {
        let level = if i >= 70 { 0.5 } else { 1.0 };
        let (high, low, close, volume) = if i == 79 { (11.0, 10.2, 10.9, 6000.0) } else { (10.2, 9.8, 10.0, 1000.0) };
        stock = stock.bar(day, [close * level, high * level, low * level, close * level, volume / level, volume * close]);
    }
    let store = SmallMarket::new("2024-01-01", 90).stock(stock).build();
    let clock = format!("{} pre_market", days[80]);
    let narrative = call(&store, &clock, "get_narrative_sector_summary", json!({"sector": "Chips"}));
    let cycle = call(&store, &clock, "screen_behavioral_cycle", json!({}));
    // (4 x 1,000 + 6,000) / 5 to (19 x 1,000 + 6,000) / 20
    assert_eq!(narrative["leaders"][0]["volume_5_to_20"], json!(1.6));
    assert_eq!(cycle["candidates"][0]["volume_5_to_20"], json!(1.6));
}

// spec/tools.md b16, T5
#[test]
fn only_a_new_answered_sector_uses_the_budget() {
    let store = market().build();
    let mut session = Session::new(&store);
    let tool = "get_narrative_sector_summary";
    assert_eq!(session.call(NOW, tool, json!({"sector": "Nowhere"})).unwrap_err().code, ErrorCode::SectorNotFound);
    let first = session.call(NOW, tool, json!({"sector": "Chips"})).unwrap();
    assert_eq!((&first["budget"], &first["repeated"]), (&json!({"used": 1, "limit": 2}), &json!(false)));
    // Another spelling of the same sector, at another decision point, is the same question.
    let again = session.call("2024-04-15 open_1", tool, json!({"sector": "Chi"})).unwrap();
    assert_eq!((&again["budget"], &again["repeated"]), (&json!({"used": 1, "limit": 2}), &json!(true)));
    assert_eq!((&again["leaders"], &again["top_gainers"]), (&first["leaders"], &first["top_gainers"]), "a repeat is whole");
    session.call("2024-04-15 open_1", tool, json!({"sector": "Banking"})).unwrap();
    let spent = session.call("2024-04-15 close_2", tool, json!({"sector": "Software"})).unwrap_err();
    assert_eq!((spent.code, spent.retryable()), (ErrorCode::DailyToolBudgetExhausted, false));
    assert_eq!(spent.correction["asked_today"], json!(["Chips", "Banking"]));
    assert_eq!(
        session.call("2024-04-15 close_2", tool, json!({"sector": "Nowhere"})).unwrap_err().code,
        ErrorCode::SectorNotFound
    );
    assert!(session.call("2024-04-15 close_2", tool, json!({"sector": "Banking"})).is_ok(), "what was asked stays free");
    let next_day = session.call("2024-04-16 pre_market", tool, json!({"sector": "Software"})).unwrap();
    assert_eq!(next_day["budget"], json!({"used": 1, "limit": 2}));
}

#[test]
fn only_a_new_answered_news_search_uses_the_budget() {
    let mut market = market();
    for i in 10..40 {
        market = market.news(&format!("2024-04-14 10:{i}"), &format!("Chip order {i}"), "content");
    }
    let store = market.news("2024-04-15 09:45", "Chip news at noon", "c").build();
    let mut session = Session::new(&store);
    let tool = "get_narrative_news";
    assert_eq!(session.call(NOW, tool, json!({"keyword": ".*"})).unwrap_err().code, ErrorCode::InvalidToolArguments);
    assert_eq!(session.call(NOW, tool, json!({"stock_code": "600999"})).unwrap_err().code, ErrorCode::UnknownSecurity);
    let first = session.call(NOW, tool, json!({"keyword": "chip"})).unwrap();
    assert_eq!((&first["total"], &first["returned"], &first["budget"]["used"]), (&json!(30), &json!(15), &json!(1)));
    let page = session.call(NOW, tool, json!({"keyword": "chip", "cursor": first["next_cursor"]})).unwrap();
    assert_eq!((&page["repeated"], &page["budget"]["used"], &page["complete"]), (&json!(true), &json!(1), &json!(false)));
    assert!(column(&page, "news", "evidence_id").iter().all(|id| !column(&first, "news", "evidence_id").contains(id)));
    // The same search later in the day is free and sees what came since.
    let later = session.call("2024-04-15 open_1", tool, json!({"keyword": "chip", "max_results": 1})).unwrap();
    assert_eq!((&later["total"], &later["news"][0]["title"]), (&json!(31), &json!("Chip news at noon")));
    let empty = session.call("2024-04-15 open_1", tool, json!({"keyword": "copper"})).unwrap();
    assert_eq!((&empty["empty_reason"], &empty["budget"]["used"]), (&json!("no_match"), &json!(2)));
    let spent = session.call("2024-04-15 open_2", tool, json!({})).unwrap_err();
    assert_eq!(spent.code, ErrorCode::DailyToolBudgetExhausted);
    assert_eq!(spent.correction["asked_today"], json!(["days 3, keyword chip", "days 3, keyword copper"]));
    assert!(session.call("2024-04-16 pre_market", tool, json!({})).is_ok());
}

// spec/tools.md b17
#[test]
fn a_repeated_company_question_is_answered_in_full() {
    let store = market().build();
    let mut session = Session::new(&store);
    let mut ask = |clock: &str| session.call(clock, "get_stock_info", json!({"stock_code": "000002"})).unwrap();
    let (first, mut second, next_day) = (ask(NOW), ask("2024-04-15 pre_market"), ask("2024-04-16 pre_market"));
    assert_eq!((&first["repeated"], &second["repeated"], &next_day["repeated"]), (&json!(false), &json!(true), &json!(false)));
    second["repeated"] = json!(false);
    assert_eq!(first, second);
    assert_eq!((&first["sector"], &first["sub_sectors"]), (&json!("Chips"), &json!(["Design", "Analog"])));
    assert_eq!(
        (&first["board"], &first["lot_min"], &first["tick"], &first["band_pct"]),
        (&json!("SZ main"), &json!(100), &json!(0.01), &json!(10.0))
    );
    assert_eq!(missing(&first), ["is_st: source_missing", "listed: source_missing"]);
}

#[test]
fn nothing_is_kept_across_clocks() {
    let store = market().build();
    let mut session = Session::new(&store);
    for (tool, args) in [
        ("get_market_overview", json!({})),
        ("get_narrative_market_overview", json!({})),
        ("get_sector_summary", json!({"sector": "Chips"})),
        ("get_narrative_sector_summary", json!({"sector": "Chips"})),
        ("screen_stocks", json!({})),
        ("screen_behavioral_cycle", json!({})),
    ] {
        for clock in [NOW, "2024-04-12 close_2", "2024-04-11 pre_market", NOW] {
            let warm = session.call(clock, tool, args.clone()).unwrap();
            let repeat = session.call(clock, tool, args.clone()).unwrap();
            let mut fresh = call(&store, clock, tool, args.clone());
            for got in [warm, repeat] {
                // Whether it was asked before belongs to the session, not to the clock.
                fresh["repeated"] = got["repeated"].clone();
                let mut got = got;
                got["repeated"] = fresh["repeated"].clone();
                assert_eq!(got, fresh, "{tool} {clock}");
            }
        }
    }
}

#[test]
fn a_dataset_without_companies_has_no_sectors_and_says_so() {
    let store = SmallMarket::new("2024-03-04", 40).stock(SmallStock::new("600000").closes(&closes(1.0))).bare().build();
    let overview = call(&store, NOW, "get_market_overview", json!({}));
    assert_eq!((&overview["up_count"], &overview["top_sectors"]), (&json!(1), &json!([])));
    assert_eq!(missing(&overview), ["top_sectors: source_missing"]);
    assert_eq!(overview["adjustment"], json!("no_ex_event_table"));
    for (tool, args) in [
        ("get_sector_summary", json!({"sector": "Chips"})),
        ("get_narrative_sector_summary", json!({"sector": "Chips"})),
        ("screen_stocks", json!({"industry": "Chips"})),
    ] {
        let failure = refused(&store, NOW, tool, args);
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::DataUnavailable, false), "{tool}");
    }
}

#[test]
fn equal_stocks_are_ordered_by_their_visible_code() {
    // complaint and spec/tools.md b39: the order of real codes must not shine through a mask
    let mut market = SmallMarket::new("2024-03-04", 40);
    for i in 0..20 {
        market = market.stock(SmallStock::new(&format!("{}", 600_000 + i)).industry("Chips").closes(&closes(1.0)));
    }
    let store = market.build();
    let mask = crate::call::hidden(&store);
    let got = crate::call::masked(&store, &mask, NOW, "screen_stocks", &json!({"max_results": 20})).unwrap();
    let codes = column(&got, "stocks", "code");
    let mut sorted = codes.clone();
    sorted.sort();
    assert_eq!(codes, sorted);
    let real: Vec<u32> = codes.iter().map(|c| mask.resolve(c).unwrap().0).collect();
    assert!(!real.is_sorted(), "the aliases are not in the order of real codes");
}
