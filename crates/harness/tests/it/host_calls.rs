//! What code in the sandbox may ask for: the values of the tools, the card's permissions, nothing real under a mask, nothing after the
//! clock.

use crate::code_bench::{Bench, FIRST, SESSIONS, Table, card, days, everything, market};
use crate::fixture::call;
use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_harness::toolbox::{Bound, handlers};
use traderharness_market::testing::{SmallMarket, SmallStock};
use traderharness_market::{DecisionPoint, Moment};
use traderharness_sandbox::HostFaultKind;
use traderharness_tools_market::MarketCtx;

/// Equal as numbers: a column of floats has 100.0 where a tool has 100.
fn same(column: &Value, tool: &Value) -> bool {
    match (column.as_f64(), tool.as_f64()) {
        (Some(a), Some(b)) => a.to_bits() == b.to_bits(),
        _ => column == tool,
    }
}

const BAR: [&str; 6] = ["open", "high", "low", "close", "volume", "amount"];

/// Every method against the tools, at one clock.
fn check_agreement(bench: &mut Bench) {
    let all = ["open", "high", "low", "close", "volume", "amount", "change_pct"];
    let codes = bench.codes();
    assert!(codes.len() > 5 && codes.is_sorted(), "{codes:?}");
    assert_eq!(bench.value("market.get_all_stocks", json!({})), json!(codes));
    let daily = bench.table("market.get_all_daily", json!({ "days": 20 }));
    assert_eq!(daily.columns, ["date", "open", "high", "low", "close", "volume", "amount", "stock_code", "change_pct"]);
    assert_eq!(daily, bench.table("market.get_all_daily", json!({})), "20 by default");
    let mut changes = 0;
    for code in &codes {
        let kline = bench.table("market.get_kline", json!({ "code": code, "days": 60 }));
        assert_eq!(kline.columns, ["date", "open", "high", "low", "close", "volume", "amount"]);
        assert_eq!(kline, bench.table("market.get_kline", json!({ "code": code })), "60 by default");
        let args = json!({ "stock_code": code, "days": 60, "fields": all, "detail": "full" });
        let has_bars = !kline.rows.is_empty();
        let rows = if has_bars { bench.pages("get_kline", args, "bars") } else { vec![] };
        assert_eq!(kline.rows.len(), rows.len(), "{code}");
        for (mine, theirs) in kline.rows.iter().zip(&rows) {
            assert_eq!(json!(bench.day(&mine["date"])), theirs["day"]);
            for field in BAR {
                assert!(same(&mine[field], &theirs[field]), "{code} {field}: {mine:?} {theirs}");
            }
        }
        let mine = daily.of_code(code);
        let newest = &rows[rows.len().saturating_sub(20)..];
        assert_eq!(mine.len(), newest.len());
        for (mine, theirs) in mine.iter().zip(newest) {
            assert_eq!(json!(bench.day(&mine["date"])), theirs["day"]);
            for field in all {
                assert!(same(&mine[field], &theirs[field]), "{code} {field}: {mine:?} {theirs}");
            }
            changes += usize::from(!mine["change_pct"].is_null());
        }
        let price = bench.tool("get_stock_price", json!({ "stock_code": code }));
        assert_eq!(bench.value("market.get_stock_price", json!({ "code": code })), price);
        let today = bench.table("market.get_kline_5min", json!({ "code": code }));
        assert_eq!(today.columns, ["date", "datetime", "open", "high", "low", "close", "volume", "amount"]);
        if let Some(last) = today.rows.last() {
            assert!(same(&last["close"], &price["price"]), "{code}: {last:?} {price}");
            let minute = Moment(last["datetime"].as_i64().unwrap());
            assert!(price["price_time"].as_str().unwrap().ends_with(&minute.minute().to_string()));
            let hidden = if bench.masked { "2000-01-01".to_owned() } else { bench.session.clock().day.to_string() };
            assert_eq!(minute.day().to_string(), hidden);
        }
    }
    assert!(changes > 50);
    check_features(bench);
    check_whole_market(bench);
    check_account_and_texts(bench, &codes);
}

fn check_features(bench: &mut Bench) {
    let features = bench.table("market.get_behavioral_features", json!({}));
    let columns = "stock_code last_close last_low range_position_60 drawdown_120_pct change_20_pct atr_20_pct atr_5_to_20 \
                   volume_5_to_20 up_down_volume_ratio clv_5 clv_last obv_flow_20 breakout_20d_pct support_20 resistance_20 \
                   earlier_resistance observations touched_support recently_broke_out extended_20d distribution_risk \
                   zero_volume_baseline";
    assert_eq!(features.columns, columns.split_whitespace().collect::<Vec<_>>());
    let codes: Vec<&str> = features.rows.iter().map(|row| row["stock_code"].as_str().unwrap()).collect();
    assert!(codes.is_sorted());
    let screen = bench.tool("screen_behavioral_cycle", json!({ "max_results": 20 }));
    assert_eq!(screen["eligible_size"], features.rows.len());
    let candidates = bench.pages("screen_behavioral_cycle", json!({ "max_results": 20 }), "candidates");
    for candidate in candidates {
        let row = features.of_code(candidate["code"].as_str().unwrap())[0];
        for (field, value) in row.iter().filter(|(field, _)| *field != "stock_code") {
            let flags = candidate["risk_flags"].as_array().unwrap();
            let theirs = candidate.get(field).or(candidate["features"].get(field)).cloned();
            let theirs = theirs.unwrap_or_else(|| json!(flags.contains(&json!(field))));
            assert!(same(value, &theirs), "{field}: {row:?} {candidate}");
        }
    }
}

fn check_whole_market(bench: &mut Bench) {
    let overview = bench.tool("get_market_overview", json!({}));
    assert_eq!(bench.value("market.get_market_overview", json!({})), overview);
    let sectors = overview["top_sectors"].as_array().unwrap();
    let mut names: Vec<String> = sectors.iter().map(|s| s["sector"].as_str().unwrap().to_owned()).collect();
    names.truncate(2);
    for sector in &names {
        let summary = bench.tool("get_sector_summary", json!({ "sector": sector }));
        assert_eq!(bench.value("market.get_sector_summary", json!({ "sector": sector })), summary);
        let members = bench.table("market.get_sector_stocks", json!({ "sector": sector }));
        assert_eq!(members.columns, ["stock_code", "close", "change_pct"]);
        let known: Vec<_> = members.rows.iter().filter(|row| !row["change_pct"].is_null()).collect();
        assert_eq!(summary["stock_count"], known.len());
        for (mine, theirs) in known.iter().zip(summary["top_gainers"].as_array().unwrap()) {
            assert_eq!(mine["stock_code"], theirs["code"]);
            assert!(same(&mine["close"], &theirs["close"]) && same(&mine["change_pct"], &theirs["change_pct"]));
        }
    }
    let filters = json!({ "price_min": 1, "sort_by": "change_1d" });
    let mine = bench.value("market.screen_stocks", filters);
    let theirs = bench.pages("screen_stocks", json!({ "price_min": 1, "sort_by": "change_1d", "max_results": 30 }), "stocks");
    assert_eq!(mine["stocks"], json!(theirs));
    assert_eq!(
        (&mine["complete"], &mine["next_cursor"], &mine["returned"]),
        (&json!(true), &Value::Null, &mine["total_matched"])
    );
    let one = bench.value("market.screen_stocks", json!({ "max_results": 1 }));
    assert_eq!(one["stocks"], bench.tool("screen_stocks", json!({ "max_results": 1 }))["stocks"]);
    assert_eq!(one["next_cursor"], Value::Null);
}

fn check_account_and_texts(bench: &mut Bench, codes: &[String]) {
    let portfolio = bench.tool("get_portfolio", json!({}));
    for (method, field) in [
        ("portfolio.get_positions", "positions"),
        ("portfolio.get_cash", "usable_cash"),
        ("portfolio.get_total_value", "total_value"),
        ("portfolio.get_gross_exposure_pct", "exposure_pct"),
    ] {
        assert_eq!(bench.value(method, json!({})), portfolio[field], "{method}");
    }
    for code in codes {
        let args = json!({ "stock_code": code, "days": 90, "max_results": 50 });
        check_list(
            bench,
            "news.get_announcements",
            json!({ "code": code, "days": 90 }),
            "get_announcements",
            args,
            "announcements",
        );
        let report = call(&mut bench.session, "get_fundamentals", json!({ "stock_code": code, "periods": 8 }));
        match bench.ask("market.get_fundamentals", json!({ "code": code })) {
            Ok(answer) => {
                let mut payload = report.envelope.0.clone();
                payload.as_object_mut().unwrap().remove("success");
                assert_eq!(answer.value, payload);
            }
            Err(fault) => {
                let kinds = [HostFaultKind::Lookup, HostFaultKind::Environment];
                assert!(!report.envelope.is_success() && kinds.contains(&fault.kind), "{fault:?} {}", report.text);
            }
        }
    }
    for keyword in [None, Some("chips")] {
        let mut mine = json!({ "days": 3 });
        let mut theirs = json!({ "days": 3, "content_limit": 3000, "max_results": 30 });
        if let Some(keyword) = keyword {
            mine["keyword"] = json!(keyword);
            theirs["keyword"] = json!(keyword);
        }
        let all = check_list(bench, "news.get_news", mine, "get_news", theirs, "news");
        if keyword.is_none()
            && let Some(all) = all
        {
            let policy = bench.value("news.get_policy_news", json!({ "days": 3 }));
            assert!(policy.as_array().unwrap().iter().all(|item| all.contains(item)));
        }
    }
}

/// The list of a method against all pages of its tool; `None` where the dataset has no such table, which both say.
fn check_list(bench: &mut Bench, method: &str, mine: Value, tool: &str, theirs: Value, key: &str) -> Option<Vec<Value>> {
    let mine = bench.ask(method, mine);
    let first = call(&mut bench.session, tool, theirs.clone());
    if !first.envelope.is_success() {
        assert_eq!((first.envelope.error_code(), mine.unwrap_err().kind), (Some("data_unavailable"), HostFaultKind::Environment));
        return None;
    }
    let all = bench.pages(tool, theirs, key);
    assert_eq!(mine.unwrap().value, json!(all), "{method}");
    Some(all)
}

// spec/tools.md T4: values agree with the tools to the last digit
#[test]
fn every_method_gives_what_the_tools_give() {
    for masked in [true, false] {
        for point in [DecisionPoint::PreMarket, DecisionPoint::Open1, DecisionPoint::Close2] {
            let mut bench = Bench::small(everything(), masked, point);
            if point == DecisionPoint::Open1 {
                let code = bench.codes()[0].clone();
                let order = json!({ "action": "buy", "stock_code": code, "quantity": 1000, "reasoning": "r" });
                bench.tool("place_order", order);
                assert_eq!(bench.value("portfolio.get_positions", json!({})).as_array().unwrap().len(), 1);
            }
            check_agreement(&mut bench);
            let silent =
                if masked { bench.codes().into_iter().find(|c| c.starts_with("STAR")).unwrap() } else { "688001".into() };
            assert_eq!(bench.value("news.get_announcements", json!({ "code": silent, "days": 90 })), json!([]));
        }
    }
    // The fixture is not trivial: texts that need three pages, a policy among the news.
    let mut bench = Bench::small(everything(), false, DecisionPoint::Open1);
    assert_eq!(bench.value("news.get_announcements", json!({ "code": "600001" })).as_array().unwrap().len(), 60);
    assert_eq!(bench.value("news.get_news", json!({})).as_array().unwrap().len(), 70);
    assert_eq!(bench.value("news.get_policy_news", json!({})).as_array().unwrap().len(), 10);
}

#[test]
fn every_method_gives_what_the_tools_give_on_the_bundled_data() {
    let store = Arc::new(traderharness_ingest::bundled().unwrap().store);
    let day = store.calendar().days()[store.calendar().days().len() - 2];
    for masked in [true, false] {
        check_agreement(&mut Bench::new(&store, everything(), masked, day, DecisionPoint::Open2));
    }
}

// engine E2: a table ends where the clock is
#[test]
fn tables_hold_no_bar_after_the_clock_and_no_security_before_its_first_bar() {
    for (point, bars) in [(DecisionPoint::PreMarket, 0), (DecisionPoint::Open1, 4), (DecisionPoint::Open2, 6)] {
        let mut bench = Bench::small(everything(), false, point);
        assert_eq!(bench.table("market.get_kline_5min", json!({ "code": "600001" })).rows.len(), bars, "{point}");
        let listed = bench.codes().contains(&"600777".to_owned());
        assert_eq!(listed, point != DecisionPoint::PreMarket);
        let unknown = bench.ask("market.get_kline", json!({ "code": "600777" }));
        if listed {
            assert_eq!(Table::of(&unknown.unwrap()).rows, vec![], "listed today: no daily bar yet");
        } else {
            assert_eq!(unknown.unwrap_err(), bench.ask("market.get_kline", json!({ "code": "699999" })).unwrap_err());
        }
        let today = i64::from(bench.session.clock().day.0) * 86_400;
        let daily = bench.table("market.get_all_daily", json!({ "days": 120 }));
        assert!(daily.rows.iter().all(|row| row["date"].as_i64().unwrap() < today));
    }
}

// engine E2.8: a change over an ex-date is from the exchange's reference price
#[test]
fn a_change_over_an_ex_date_is_no_mechanical_drop() {
    let mut bench = Bench::small(everything(), false, DecisionPoint::PreMarket);
    let daily = bench.table("market.get_all_daily", json!({ "days": 10 }));
    let ex = i64::from(days()[SESSIONS - 6].0) * 86_400;
    let row = daily.of_code("000360").into_iter().find(|row| row["date"] == ex).unwrap();
    // Ten bonus shares for ten, and 0.1 CNY a share: the reference is about half of the close before.
    assert!(row["change_pct"].as_f64().unwrap() > 80.0, "{row:?}");
    let holes = daily.of_code("300360").into_iter().find(|row| row["close"] == 10.0).unwrap();
    assert_eq!(
        (&holes["open"], &holes["low"], &holes["volume"], &holes["amount"]),
        (&Value::Null, &Value::Null, &Value::Null, &json!(1234.57))
    );
}

// complaint SB-10; spec/tools.md T4
#[test]
fn a_method_needs_a_tool_of_the_card() {
    let code = json!({ "code": "600001" });
    let sector = json!({ "sector": "Tools" });
    let none = json!({});
    let methods = [
        ("market.get_kline", &code, "get_kline"),
        ("market.get_kline_5min", &code, "get_kline"),
        ("market.get_all_daily", &none, "get_kline"),
        ("market.get_behavioral_features", &none, "screen_behavioral_cycle get_kline"),
        ("market.get_stock_price", &code, "get_stock_price"),
        ("market.get_fundamentals", &json!({ "code": "688001" }), "get_fundamentals"),
        ("market.get_market_overview", &none, "get_market_overview get_narrative_market_overview"),
        ("market.get_sector_summary", &sector, "get_sector_summary get_narrative_sector_summary"),
        ("market.get_sector_stocks", &sector, "get_sector_summary get_narrative_sector_summary"),
        ("market.screen_stocks", &none, "screen_stocks"),
        ("news.get_announcements", &code, "get_announcements get_announcement_evidence"),
        ("news.get_policy_news", &none, "get_news"),
        ("news.get_news", &none, "get_news get_narrative_news"),
    ];
    let others: Vec<&str> = handlers().iter().map(|b| b.spec().name).collect();
    for (method, args, permitting) in methods {
        let permitting: Vec<&str> = permitting.split(' ').collect();
        let without: Vec<&str> = others.iter().copied().filter(|name| !permitting.contains(name)).collect();
        let mut bench = Bench::small(card(&without), false, DecisionPoint::Open1);
        let fault = bench.ask(method, args.clone()).unwrap_err();
        assert_eq!(fault.kind, HostFaultKind::Permission, "{method}");
        assert!(permitting.iter().all(|tool| fault.message.contains(tool)), "{}", fault.message);
        // Refused before the arguments are looked at, so that a refusal tells nothing of them.
        let wrong = bench.ask(method, json!({ "what": 1 })).unwrap_err();
        assert_eq!(wrong, fault);
        for tool in permitting {
            let mut bench = Bench::small(card(&["execute_code", tool]), false, DecisionPoint::Open1);
            match bench.ask(method, args.clone()) {
                Ok(_) => {}
                // A budgeted tool gives code what it was asked as a tool, see below.
                Err(fault) => assert!(
                    tool.starts_with("get_narrative") && fault.kind == HostFaultKind::Environment,
                    "{method} {tool}: {fault:?}"
                ),
            }
        }
    }
    let mut least = Bench::small(card(&["execute_code"]), false, DecisionPoint::Open1);
    for method in ["market.get_stock_list", "market.get_all_stocks", "portfolio.get_positions", "portfolio.get_cash"] {
        least.value(method, json!({}));
    }
    for method in ["market.run_backtest", "backtest.run", "market.get_canonical_data", "market._ctx", "get_kline", ""] {
        let fault = Bench::small(everything(), false, DecisionPoint::Open1).ask(method, json!({})).unwrap_err();
        assert_eq!(fault.kind, HostFaultKind::Value, "{method}");
    }
}

// spec/tools.md T5, b16
#[test]
fn code_gets_from_a_budgeted_tool_only_what_it_answered_today_and_spends_nothing() {
    let tools = ["execute_code", "get_narrative_sector_summary", "get_narrative_news"];
    let mut bench = Bench::small(card(&tools), false, DecisionPoint::Open1);
    // The session's own state: share it, as a session does.
    let ask = |bench: &mut Bench, method: &str, args: Value| bench.ask(method, args);
    for (method, args) in [
        ("market.get_sector_summary", json!({ "sector": "Tools" })),
        ("market.get_sector_stocks", json!({ "sector": "Tools" })),
        ("news.get_news", json!({ "days": 3, "keyword": "chips" })),
    ] {
        let fault = ask(&mut bench, method, args).unwrap_err();
        assert_eq!(fault.kind, HostFaultKind::Environment, "{method}: {fault:?}");
        assert!(fault.message.contains("Call the tool"), "{}", fault.message);
    }
    // The tool answers, on the same state.
    let view = bench.session.view();
    let tool = |name: &str| handlers().into_iter().find(|b| b.spec().name == name).unwrap();
    let mut invoke = |name: &str, args: Value| {
        let Bound::Market(handler) = tool(name) else { panic!("a read tool") };
        let mut ctx = MarketCtx { view, state: &mut bench.state };
        handler.invoke(&mut ctx, args).unwrap()
    };
    let first = invoke("get_narrative_sector_summary", json!({ "sector": "Tools" }));
    let search = invoke("get_narrative_news", json!({ "days": 3, "keyword": "chips" }));
    assert_eq!((&first["budget"]["used"], &search["budget"]["used"]), (&json!(1), &json!(1)));
    let again = bench.value("market.get_sector_summary", json!({ "sector": "Tools" }));
    assert_eq!((&again["repeated"], &again["budget"]), (&json!(true), &json!({ "used": 1, "limit": 2 })));
    assert_eq!(again["avg_change_pct"], first["avg_change_pct"]);
    assert_eq!(bench.table("market.get_sector_stocks", json!({ "sector": "Tools" })).rows.len(), 3, "one of four was suspended");
    assert_eq!(bench.value("news.get_news", json!({ "keyword": "chips" })).as_array().unwrap().len(), 70);
    assert!(bench.ask("market.get_sector_summary", json!({ "sector": "Banks" })).is_err());
    // Neither what was refused nor what was repeated has used the budget.
    let view = bench.session.view();
    let Bound::Market(handler) = tool("get_narrative_sector_summary") else { panic!() };
    let mut ctx = MarketCtx { view, state: &mut bench.state };
    assert_eq!(handler.invoke(&mut ctx, json!({ "sector": "Banks" })).unwrap()["budget"]["used"], 2);
}

#[test]
fn wrong_arguments_are_told_in_the_words_of_the_method() {
    let mut bench = Bench::small(everything(), true, DecisionPoint::Open1);
    let alias = bench.codes()[0].clone();
    let suffix = alias.rsplit('-').next().unwrap().to_owned();
    let cases = [
        ("market.get_kline", json!({ "code": alias, "days": 0 }), HostFaultKind::Value, "days"),
        ("market.get_kline", json!({ "code": alias, "days": 251 }), HostFaultKind::Value, "250"),
        ("market.get_kline", json!({ "days": 5 }), HostFaultKind::Value, "`code`"),
        ("market.get_kline", json!({ "code": 600001 }), HostFaultKind::Value, "`code`"),
        ("market.get_kline", json!({ "code": alias, "adjustment": "none" }), HostFaultKind::Value, "accepted: code, days"),
        ("market.get_kline", json!({ "code": "600001" }), HostFaultKind::Lookup, "visible code"),
        ("market.get_kline", json!({ "code": "SHM-999999" }), HostFaultKind::Lookup, "visible code"),
        ("market.get_kline", json!({ "code": suffix }), HostFaultKind::Lookup, alias.as_str()),
        ("market.get_all_daily", json!({ "days": 121 }), HostFaultKind::Value, "between 1 and 120"),
        ("market.get_all_daily", json!({ "days": 0 }), HostFaultKind::Value, "between 1 and 120"),
        ("market.get_all_daily", json!({ "days": "20" }), HostFaultKind::Value, "whole number"),
        ("market.get_all_daily", json!({ "days": 1.5 }), HostFaultKind::Value, "whole number"),
        ("market.get_all_daily", json!({ "offset": 1 }), HostFaultKind::Value, "accepted: days"),
        ("market.get_stock_list", json!({ "x": 1 }), HostFaultKind::Value, "no arguments"),
        ("market.screen_stocks", json!({ "cursor": "x" }), HostFaultKind::Value, "accepted: price_min"),
        ("market.screen_stocks", json!({ "price": 5 }), HostFaultKind::Value, "exclude_st"),
        ("market.screen_stocks", json!({ "price_min": 9, "price_max": 1 }), HostFaultKind::Value, "price"),
        ("market.screen_stocks", json!({ "max_results": 31 }), HostFaultKind::Value, "30"),
        ("market.get_sector_summary", json!({ "sector": "Tolls" }), HostFaultKind::Lookup, "Tools"),
        ("market.get_sector_stocks", json!({ "sector": "" }), HostFaultKind::Value, "sector"),
        ("news.get_news", json!({ "days": 4 }), HostFaultKind::Value, "days"),
        ("news.get_policy_news", json!({ "days": 31 }), HostFaultKind::Value, "between 1 and 30"),
    ];
    for (method, args, kind, part) in cases {
        let fault = bench.ask(method, args.clone()).unwrap_err();
        assert_eq!(fault.kind, kind, "{method} {args}: {}", fault.message);
        assert!(fault.message.contains(part) && fault.message.starts_with(method), "{method} {args}: {}", fault.message);
    }
    // A null is an argument that was not given.
    bench.value("news.get_news", json!({ "days": null, "keyword": null }));
}

#[test]
fn a_table_that_a_dataset_lacks_is_an_error_not_an_empty_list() {
    let bare = SmallMarket::new(FIRST, 30).stock(SmallStock::new("600001").closes(&[10.0; 30])).bare();
    let store = Arc::new(bare.build());
    let day = store.calendar().days()[28];
    let mut bench = Bench::new(&store, everything(), false, day, DecisionPoint::PreMarket);
    for (method, args) in [
        ("news.get_news", json!({})),
        ("news.get_policy_news", json!({})),
        ("news.get_announcements", json!({ "code": "600001" })),
        ("market.get_fundamentals", json!({ "code": "600001" })),
        ("market.get_sector_stocks", json!({ "sector": "x" })),
    ] {
        assert_eq!(bench.ask(method, args).unwrap_err().kind, HostFaultKind::Environment, "{method}");
    }
    assert_eq!(bench.table("market.get_behavioral_features", json!({})).rows.len(), 0, "too short a history");
}

/// Everything code could read at a clock: values, faults, and the bytes of every file.
fn everything_readable(bench: &mut Bench) -> Vec<Vec<u8>> {
    let mut asked: Vec<(&str, Value)> = vec![
        ("market.get_stock_list", json!({})),
        ("market.get_all_daily", json!({ "days": 120 })),
        ("market.get_behavioral_features", json!({})),
        ("market.get_market_overview", json!({})),
        ("market.get_sector_summary", json!({ "sector": "Tools" })),
        ("market.get_sector_summary", json!({ "sector": "no such" })),
        ("market.get_sector_stocks", json!({ "sector": "Tools" })),
        ("market.screen_stocks", json!({})),
        ("portfolio.get_positions", json!({})),
        ("news.get_policy_news", json!({})),
        ("news.get_news", json!({})),
    ];
    for code in bench.codes() {
        for method in ["market.get_kline", "market.get_kline_5min", "market.get_stock_price", "market.get_fundamentals"] {
            asked.push((method, json!({ "code": code })));
        }
        asked.push(("news.get_announcements", json!({ "code": code })));
    }
    let mut out = Vec::new();
    for (method, args) in asked {
        match bench.ask(method, args) {
            Ok(answer) => {
                out.push(answer.value.to_string().into_bytes());
                out.extend(answer.segment.map(|segment| segment.to_bytes().unwrap()));
            }
            Err(fault) => out.push(fault.message.into_bytes()),
        }
    }
    out
}

// engine E8.7
#[test]
fn nothing_real_is_in_what_masked_code_reads() {
    let mut bench = Bench::small(everything(), true, DecisionPoint::Open1);
    let code = bench.codes()[0].clone();
    bench.tool("place_order", json!({ "action": "buy", "stock_code": code, "quantity": 1000, "reasoning": "r" }));
    let read = everything_readable(&mut bench);
    let mut hidden: Vec<String> =
        ["600001", "600002", "000360", "300360", "688001", "600009", "600777", "Harbour", "Later"].map(str::to_owned).into();
    hidden.extend(days().iter().map(ToString::to_string));
    hidden.extend(["2024-0", "20240"].map(str::to_owned));
    // Numbers of a column are bytes, not text: a day must not be there as days or seconds since 1970 either.
    let numbers: Vec<[u8; 8]> =
        days().iter().flat_map(|d| [i64::from(d.0), i64::from(d.0) * 86_400]).map(i64::to_le_bytes).collect();
    assert!(read.len() > 40);
    for bytes in &read {
        let text = String::from_utf8_lossy(bytes);
        for word in &hidden {
            assert!(!text.contains(word.as_str()), "{word} in {}", &text[..text.len().min(600)]);
        }
        for cell in bytes.chunks_exact(8) {
            assert!(!numbers.iter().any(|n| n == cell), "a day since 1970");
        }
    }
}

#[test]
fn whole_market_tables_are_made_once_a_day_and_shared() {
    let store = Arc::new(market().build());
    let day = days()[SESSIONS - 3];
    let mut bench = Bench::new(&store, everything(), true, day, DecisionPoint::PreMarket);
    let segment = |bench: &mut Bench, method: &str, args: Value| bench.ask(method, args).unwrap().segment.unwrap();
    let daily = segment(&mut bench, "market.get_all_daily", json!({}));
    let features = segment(&mut bench, "market.get_behavioral_features", json!({}));
    bench.session.advance().unwrap();
    // Another session at another point of the day, with the same mask.
    let mut other = Bench::new(&store, everything(), true, day, DecisionPoint::Close1);
    std::mem::swap(&mut bench.cache, &mut other.cache);
    assert!(Arc::ptr_eq(&daily, &segment(&mut other, "market.get_all_daily", json!({}))));
    assert!(Arc::ptr_eq(&features, &segment(&mut other, "market.get_behavioral_features", json!({}))));
    assert!(!Arc::ptr_eq(&daily, &segment(&mut other, "market.get_all_daily", json!({ "days": 5 }))));
    // Another mask, another store, another day: nothing is shared.
    for mut stranger in [
        Bench::new(&store, everything(), false, day, DecisionPoint::PreMarket),
        Bench::new(&Arc::new(market().build()), everything(), true, day, DecisionPoint::PreMarket),
        Bench::new(&store, everything(), true, days()[SESSIONS - 2], DecisionPoint::PreMarket),
    ] {
        std::mem::swap(&mut other.cache, &mut stranger.cache);
        assert!(!Arc::ptr_eq(&daily, &segment(&mut stranger, "market.get_all_daily", json!({}))));
        std::mem::swap(&mut other.cache, &mut stranger.cache);
    }
}
