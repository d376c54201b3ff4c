//! The watchlist tools: what may be watched, in which order, for how long, and at which price.

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::audit::audit;
use traderharness_contract::{ErrorCode, Policy};
use traderharness_market::DecisionPoint::{self, Close1, Close2, Open1, Open2, PreMarket};
use traderharness_market::testing::{SmallMarket, SmallStock};
use traderharness_tools_exec::{Account, CardLimits, Control};

struct Desk {
    world: World,
    account: Account,
    limits: CardLimits,
}

impl Desk {
    fn new(world: World, ttl: u32) -> Self {
        Self { world, account: rich(), limits: CardLimits { watchlist_ttl_days: ttl, ..free() } }
    }

    fn call(&mut self, tool: &str, args: Value, date: &str, point: DecisionPoint) -> Result<Value, ErrorCode> {
        let view = self.world.view(date, point);
        call(tool, args, view, &mut self.account, &self.limits, &mut Control::default()).map_err(|f| f.code)
    }

    fn add(&mut self, code: &str, reason: &str, date: &str) -> Value {
        self.call("add_watchlist", json!({"stock_code": code, "reason": reason}), date, PreMarket).unwrap()
    }

    fn list(&mut self, date: &str, point: DecisionPoint) -> Value {
        self.call("get_watchlist", json!({}), date, point).unwrap()
    }

    fn codes(&mut self, date: &str) -> Vec<String> {
        let list = self.list(date, PreMarket);
        list["watchlist"].as_array().unwrap().iter().map(|e| e["stock_code"].as_str().unwrap().to_owned()).collect()
    }

    fn start(&mut self, date: &str) {
        self.account.start_day(&self.world.view(date, PreMarket)).unwrap();
    }
}

#[test]
fn the_contracts_of_these_tools_have_no_finding() {
    for name in ["add_watchlist", "remove_watchlist", "get_watchlist", "remember", "search_memory", "get_memory", "execute_code"]
    {
        for policy in [Policy::default(), Policy { masked_codes: true, ..Policy::default() }] {
            assert_eq!(audit(&definition(name, &policy)), [], "{name}");
        }
    }
}

#[test]
fn only_securities_of_the_run_can_be_watched_and_nothing_changes_otherwise() {
    let mut desk = Desk::new(World::full(), 0);
    for unknown in ["601999", NOT_YET_LISTED, "SHM-999999", "600036.SH", "贵州茅台酒股"] {
        let refused = desk.call("add_watchlist", json!({"stock_code": unknown}), TODAY, PreMarket);
        assert_eq!(refused, Err(ErrorCode::UnknownSecurity), "{unknown}");
        assert_eq!(
            desk.call("remove_watchlist", json!({"stock_code": unknown}), TODAY, PreMarket),
            Err(ErrorCode::UnknownSecurity)
        );
    }
    assert_eq!(desk.account.watchlist.entries(), []);
    let empty = desk.list(TODAY, PreMarket);
    assert_eq!((&empty["count"], empty["empty_reason"].is_string()), (&json!(0), true));
}

#[test]
fn a_security_added_again_keeps_its_place_with_the_new_reason() {
    let mut desk = Desk::new(World::full(), 0);
    assert_eq!(desk.add(OTHER, "first", TODAY)["added"], true);
    desk.add(PLAIN, "second", TODAY);
    desk.add(CHEAP, "", TODAY);
    let again = desk.add(OTHER, "third", TODAY);
    assert_eq!((&again["added"], &again["total_watching"], &again["reason"]), (&json!(false), &json!(3), &json!("third")));
    assert_eq!(again["expires_in_trading_days"], Value::Null);
    assert_eq!(desk.codes(TODAY), [OTHER, PLAIN, CHEAP]);
    // spec/tools.md b39: a change of day must not sort by real code
    desk.start(NEXT);
    assert_eq!(desk.codes(NEXT), [OTHER, PLAIN, CHEAP]);
    desk.call("remove_watchlist", json!({"stock_code": PLAIN}), NEXT, Open1).unwrap();
    desk.add(PLAIN, "", NEXT);
    assert_eq!(desk.codes(NEXT), [OTHER, CHEAP, PLAIN]);
}

#[test]
fn what_is_not_watched_cannot_be_removed() {
    let mut desk = Desk::new(World::full(), 0);
    desk.add(OTHER, "", TODAY);
    let view = desk.world.view(TODAY, PreMarket);
    let args = json!({"stock_code": PLAIN});
    let failure = call("remove_watchlist", args, view, &mut desk.account, &free(), &mut Control::default()).unwrap_err();
    assert_eq!((failure.code, failure.retryable()), (ErrorCode::WatchlistEntryNotFound, false));
    assert_eq!(
        (&failure.correction["required_tool"], &failure.correction["watched"]),
        (&json!("get_watchlist"), &json!([OTHER]))
    );
    assert_eq!(desk.codes(TODAY), [OTHER]);
}

#[test]
fn an_entry_lives_its_trading_days_and_a_held_one_longer() {
    // The weekend between DAYS[4] and DAYS[5] is no trading day.
    let mut desk = Desk::new(World::full(), 2);
    let days = |list: &Value| -> Vec<Value> {
        list["watchlist"].as_array().unwrap().iter().map(|e| e["expires_in_trading_days"].clone()).collect()
    };
    let first = DAYS[2];
    desk.start(first);
    assert_eq!(desk.add(PLAIN, "", first)["expires_in_trading_days"], 2);
    desk.add(OTHER, "", first);
    place(buy(OTHER, 100), &desk.world.view(first, Open1), &mut desk.account, &free()).unwrap();
    desk.start(DAYS[3]);
    desk.add(CHEAP, "", DAYS[3]);
    assert_eq!(days(&desk.list(DAYS[3], PreMarket)), [json!(1), json!(1), json!(2)]);
    desk.start(DAYS[4]);
    assert_eq!(days(&desk.list(DAYS[4], PreMarket)), [json!(0), json!(0), json!(1)]);
    desk.start(DAYS[5]);
    assert_eq!(desk.codes(DAYS[5]), [OTHER, CHEAP], "not held and over");
    let list = desk.list(DAYS[5], PreMarket);
    assert_eq!(days(&list), [json!(0), json!(0)]);
    assert_eq!((&list["watchlist"][0]["held"], &list["watchlist"][1]["held"]), (&json!(true), &json!(false)));
    // Sold: it stays to the end of this day and is gone on the next.
    place(sell(OTHER, 0), &desk.world.view(DAYS[5], Open1), &mut desk.account, &free()).unwrap();
    assert_eq!(desk.codes(DAYS[5]), [OTHER, CHEAP]);
    desk.start(DAYS[6]);
    assert!(desk.codes(DAYS[6]).is_empty());
}

#[test]
fn adding_again_renews_the_limit_and_days_without_a_session_count() {
    let mut desk = Desk::new(World::full(), 1);
    desk.start(DAYS[1]);
    desk.add(PLAIN, "", DAYS[1]);
    desk.start(DAYS[2]);
    desk.add(PLAIN, "again", DAYS[2]);
    desk.add(OTHER, "", DAYS[2]);
    // The session skips a trading day; the limit is in trading days of the market.
    desk.start(DAYS[4]);
    assert!(desk.codes(DAYS[4]).is_empty());
}

#[test]
fn prices_are_the_last_visible_bar_and_say_where_they_are_from() {
    // spec/tools.md b01: in open_1 the 10:00 bar and in close_1 the 15:00 bar are not visible
    let closes: Vec<f64> = (0..48).map(|i| 10.0 + f64::from(i) / 100.0).collect();
    let market = SmallMarket::new(DAYS[0], 10).stock(today_at("600201", 10.0, &closes));
    let mut desk = Desk::new(World::of(&market), 0);
    desk.add("600201", "", TODAY);
    let mut check = |point, price: f64, source: &str, time: &str, change: f64| {
        let entry = desk.list(TODAY, point)["watchlist"][0].clone();
        let shown = json!([entry["price"], entry["close"], entry["price_source"], entry["price_time"], entry["change_pct"]]);
        assert_eq!(shown, json!([price, price, source, time, change]), "{point}");
        let held = position_mark(&desk, point);
        assert_eq!(entry["price"], held, "the price of a position at {point}");
    };
    check(PreMarket, 10.0, "previous_daily_close", &format!("{} 15:00", DAYS[3]), 0.0);
    check(Open1, 10.03, "current_visible_5min_close", &format!("{TODAY} 09:50"), 0.3);
    check(Open2, 10.05, "current_visible_5min_close", &format!("{TODAY} 10:00"), 0.5);
    check(Close1, 10.45, "current_visible_5min_close", &format!("{TODAY} 14:50"), 4.5);
    check(Close2, 10.47, "current_visible_5min_close", &format!("{TODAY} 15:00"), 4.7);
}

/// Price of a position in the same security, bought the day before.
fn position_mark(desk: &Desk, point: DecisionPoint) -> Value {
    let mut account = rich();
    place(buy("600201", 100), &desk.world.view(DAYS[3], Open1), &mut account, &free()).unwrap();
    account.start_day(&desk.world.view(TODAY, PreMarket)).unwrap();
    let view = desk.world.view(TODAY, point);
    let args = json!({"stock_code": "600201"});
    call("get_position", args, view, &mut account, &free(), &mut Control::default()).unwrap()["current_price"].clone()
}

#[test]
fn a_number_that_is_not_there_is_null_with_its_reason() {
    let nan = f64::NAN;
    let holes = SmallStock::new("600301").closes(&[10.0, 10.0, 10.0, nan]).minutes(TODAY, &[nan; 48]);
    let only_holes = SmallStock::new("600302").closes(&[nan; 10]);
    let fresh = SmallStock::new("600303").listed(TODAY).minutes(TODAY, &[5.0; 48]);
    let market = SmallMarket::new(DAYS[0], 10)
        .stock(flat(PLAIN, 10.0))
        .stock(today_at(HALTED_ALL_DAY, 10.0, &[]))
        .stock(flat("600304", 8.0).without(DAYS[3]))
        .stock(holes)
        .stock(only_holes)
        .stock(fresh);
    let mut desk = Desk::new(World::of(&market), 0);
    for code in [PLAIN, HALTED_ALL_DAY, "600304", "600301", "600302"] {
        desk.add(code, "", TODAY);
    }
    let mut reasons = |point| -> Vec<(String, String)> {
        let list = desk.list(TODAY, point);
        for entry in list["watchlist"].as_array().unwrap() {
            assert!(entry["price"].is_number() == entry["price_time"].is_string(), "{entry}");
        }
        let missing = list["missing_reasons"].as_array().unwrap().clone();
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        missing.iter().map(|m| (text(&m["field"]), text(&m["reason"]))).filter(|(f, _)| f.ends_with("change_pct")).collect()
    };
    let is = |row: usize, reason: &str| (format!("watchlist[{row}].change_pct"), reason.to_owned());
    assert_eq!(reasons(PreMarket), [is(2, "suspended"), is(3, "bad_value"), is(4, "bad_value")]);
    assert_eq!(reasons(Open1), [is(1, "suspended"), is(3, "bad_value"), is(4, "bad_value")]);
    // A security is known once it is listed; its first day has no close before it.
    let mut desk = Desk::new(desk.world, 0);
    desk.call("add_watchlist", json!({"stock_code": "600303"}), TODAY, Open1).unwrap();
    let list = desk.list(TODAY, Open1);
    assert_eq!(list["watchlist"][0]["price"], 5.0);
    assert_eq!(list["missing_reasons"], json!([{"field": "watchlist[0].change_pct", "reason": "insufficient_history"}]));
}

#[test]
fn a_change_over_an_ex_date_is_against_the_reference_price() {
    // engine E2.8: 10 for 10 bonus shares halve the price; that is no change
    let stock = SmallStock::new("600401").closes(&[20.0, 20.0, 20.0, 20.0, 10.0, 10.0, 10.0]).minutes(TODAY, &[10.1; 48]);
    let market = SmallMarket::new(DAYS[0], 10).stock(stock.ex_event(TODAY, 10.0, 0.0, 0.0, 0.0, 0.0));
    let mut desk = Desk::new(World::of(&market), 0);
    desk.add("600401", "", TODAY);
    let morning = desk.list(TODAY, PreMarket)["watchlist"][0].clone();
    assert_eq!((&morning["price"], &morning["change_pct"]), (&json!(10.0), &json!(0.0)));
    assert_eq!(morning["price_source"], "previous_daily_close_ex_right");
    let open = desk.list(TODAY, Open1)["watchlist"][0].clone();
    assert_eq!((&open["price"], &open["change_pct"]), (&json!(10.1), &json!(1.0)));
    let after = desk.list(NEXT, PreMarket)["watchlist"][0].clone();
    assert_eq!((&after["price"], &after["change_pct"]), (&json!(10.0), &json!(0.0)));
}

#[test]
fn a_long_list_comes_in_whole_pages_of_one_clock() {
    let codes: Vec<String> = (0..60).map(|i| format!("6003{i:02}")).collect();
    let market = codes.iter().fold(SmallMarket::new(DAYS[0], 10), |m, code| m.stock(flat(code, 10.0)));
    let mut desk = Desk::new(World::of(&market), 0);
    for code in &codes {
        desk.add(code, &"\"why\" ".repeat(60), TODAY);
    }
    let mut seen: Vec<String> = Vec::new();
    let mut cursor: Option<String> = None;
    let mut cursors = Vec::new();
    loop {
        let args = cursor.as_ref().map_or(json!({}), |c| json!({"cursor": c}));
        let page = desk.call("get_watchlist", args, TODAY, Open1).unwrap();
        assert!(page.to_string().chars().count() < 9_000, "a page is never compacted");
        let rows = page["watchlist"].as_array().unwrap();
        assert_eq!((&page["count"], &page["returned"], &page["complete"]), (&json!(60), &json!(rows.len()), &json!(false)));
        seen.extend(rows.iter().map(|e| e["stock_code"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => {
                cursors.push(next.to_owned());
                cursor = Some(next.to_owned());
            }
            None => break,
        }
    }
    assert_eq!(seen, codes);
    let old = json!({"cursor": cursors[0]});
    assert_eq!(desk.call("get_watchlist", old.clone(), TODAY, Open2), Err(ErrorCode::InvalidCursor), "another clock");
    assert_eq!(desk.call("get_watchlist", json!({"cursor": "x"}), TODAY, Open1), Err(ErrorCode::InvalidCursor));
    desk.call("remove_watchlist", json!({"stock_code": codes[0]}), TODAY, Open1).unwrap();
    assert_eq!(desk.call("get_watchlist", old, TODAY, Open1), Err(ErrorCode::InvalidCursor), "another list");
}
