//! Announcements and news: up to the clock, in one order, found literally, and under a mask only by what the agent sees.

use crate::call::{at, bright, call, column, hidden, latest, real, refused, schema_refuses};
use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_contract::ErrorCode;
use traderharness_market::store::NewsItem;
use traderharness_market::testing::{SmallMarket, SmallStock, moment};
use traderharness_market::{DecisionPoint, Store};

pub(crate) const CODE: &str = "600519";
pub(crate) const NAME: &str = "示范酒业";

fn stock() -> SmallStock {
    SmallStock::new(CODE).name(NAME).alias("Samplevale Spirits").closes(&[10.0; 10])
}

/// Two weeks from Monday 2024-03-04.
fn market() -> SmallMarket {
    SmallMarket::new("2024-03-04", 10).stock(SmallStock::new("000001").name("Example Bank").closes(&[5.0; 10]))
}

fn told(items: &[(&str, &str)]) -> Store {
    let filed = items.iter().fold(stock(), |stock, (time, title)| stock.announcement(time, title));
    items.iter().fold(market(), |market, (time, title)| market.news(time, title, "content")).stock(filed).build()
}

const LISTS: [(&str, &str); 3] =
    [("get_announcements", "announcements"), ("get_announcement_evidence", "announcements"), ("get_news", "news")];

fn args(tool: &str, more: Value) -> Value {
    let mut args = if tool == "get_news" { json!({}) } else { json!({ "stock_code": CODE }) };
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

// complaint LA-1, engine E2.3
#[test]
fn nothing_after_the_clock_is_listed_at_any_decision_point() {
    let store = told(&[
        ("2024-03-05 15:00", "yesterday close"),
        ("2024-03-06 09:29", "before the open"),
        ("2024-03-06 09:30", "at the open"),
        ("2024-03-06 09:50", "at open_1"),
        ("2024-03-06 14:59", "late"),
        ("2024-03-06 15:00", "at the close"),
        ("2024-03-07 08:00", "tomorrow"),
    ]);
    for (tool, list) in LISTS {
        for (point, newest) in [
            ("pre_market", "before the open"),
            ("open_1", "at the open"),
            ("open_2", "at open_1"),
            ("close_1", "at open_1"),
            ("close_2", "late"),
        ] {
            let clock = format!("2024-03-06 {point}");
            let got = call(&store, &clock, tool, args(tool, json!({})));
            assert_eq!(column(&got, list, "title").first().map(String::as_str), Some(newest), "{tool} {clock}");
            assert!(latest(&got, list).unwrap() < at(&clock).now(), "{tool} {clock}");
            assert_eq!(got["as_of"]["time"], json!(DecisionPoint::parse(point).unwrap().now_minute().to_string()));
        }
    }
}

#[test]
fn days_are_calendar_days_before_today_and_today_so_far() {
    let store = told(&[("2024-03-04 23:59", "too old"), ("2024-03-05 00:00", "first"), ("2024-03-06 09:40", "today")]);
    for (tool, list) in LISTS {
        let got = call(&store, "2024-03-06 open_1", tool, args(tool, json!({ "days": 1 })));
        assert_eq!(column(&got, list, "title"), ["today", "first"], "{tool}");
        assert_eq!((&got["from"], &got["until"]), (&json!("2024-03-05 00:00"), &json!("2024-03-06 09:50")), "{tool}");
    }
}

// spec/tools.md T3, b26: Monday before the open lists the whole weekend since Friday 15:00.
#[test]
fn since_the_last_decision_point_has_no_holes_and_no_repeats() {
    let times = [
        "2024-03-08 14:59",
        "2024-03-08 15:00",
        "2024-03-09 12:00",
        "2024-03-11 09:29",
        "2024-03-11 09:30",
        "2024-03-11 09:49",
        "2024-03-11 09:50",
        "2024-03-11 09:59",
        "2024-03-11 10:00",
        "2024-03-11 14:49",
        "2024-03-11 14:50",
        "2024-03-11 14:59",
    ];
    let store = told(&times.map(|t| (t, t)));
    for (tool, list) in LISTS {
        let mut seen: Vec<String> = Vec::new();
        for point in DecisionPoint::ALL {
            let more = json!({ "since": "last_decision_point", "days": 1 });
            let got = call(&store, &format!("2024-03-11 {point}"), tool, args(tool, more));
            seen.extend(column(&got, list, "title").into_iter().rev());
        }
        assert_eq!(seen, times[1..], "{tool}");
    }
}

// spec/tools.md b18
#[test]
fn order_and_ids_do_not_depend_on_the_order_of_the_source() {
    let items = [("2024-03-05 10:00", "b"), ("2024-03-05 10:00", "a"), ("2024-03-05 10:00", "c"), ("2024-03-05 09:00", "d")];
    let mut other = items;
    other.reverse();
    let (one, two) = (told(&items), told(&other));
    for (tool, list) in LISTS {
        let list_of = |store: &Store| call(store, "2024-03-06 open_1", tool, args(tool, json!({})))[list].clone();
        assert_eq!(list_of(&one), list_of(&two), "{tool}");
        let got = call(&one, "2024-03-06 open_1", tool, args(tool, json!({})));
        let ids = column(&got, list, "evidence_id");
        assert_eq!(column(&got, list, "title")[3], "d");
        assert!(ids[0] > ids[1] && ids[1] > ids[2], "{ids:?}");
    }
}

#[test]
fn both_announcement_tools_give_the_same_ids() {
    let store = told(&[("2024-03-05 10:00", "a"), ("2024-03-05 11:00", "b")]);
    let ids = |tool| column(&call(&store, "2024-03-06 open_1", tool, args(tool, json!({}))), "announcements", "evidence_id");
    assert_eq!(ids("get_announcements"), ids("get_announcement_evidence"));
}

#[test]
fn pages_hold_every_item_once_and_a_cursor_belongs_to_its_query_and_clock() {
    let titles: Vec<String> = (0..7).map(|i| format!("title {i}")).collect();
    let store = told(&titles.iter().map(|t| ("2024-03-05 10:00", t.as_str())).collect::<Vec<_>>());
    for (tool, list) in LISTS {
        let mut seen: Vec<String> = Vec::new();
        let mut cursor = json!(null);
        let mut first_cursor = None;
        loop {
            let mut more = json!({ "max_results": 3 });
            if !cursor.is_null() {
                more["cursor"] = cursor.clone();
            }
            let got = call(&store, "2024-03-06 open_1", tool, args(tool, more));
            assert_eq!((&got["total"], &got["complete"]), (&json!(7), &json!(false)), "{tool}");
            seen.extend(column(&got, list, "title"));
            cursor = got["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
            first_cursor.get_or_insert(cursor.clone());
        }
        seen.sort();
        assert_eq!(seen, titles, "{tool}");
        let cursor = first_cursor.unwrap();
        for (clock, more) in [
            ("2024-03-06 open_2", json!({ "cursor": cursor })),
            ("2024-03-07 open_1", json!({ "cursor": cursor })),
            ("2024-03-06 open_1", json!({ "cursor": cursor, "days": 2 })),
            ("2024-03-06 open_1", json!({ "cursor": cursor, "keyword": "title" })),
            ("2024-03-06 open_1", json!({ "cursor": "c1-00000000" })),
        ] {
            let failure = refused(&store, clock, tool, args(tool, more));
            assert_eq!((failure.code, failure.retryable()), (ErrorCode::InvalidCursor, true), "{tool} {clock}");
        }
    }
}

#[test]
fn an_empty_list_says_why() {
    let store = told(&[("2024-03-05 10:00", "old"), ("2024-03-11 10:00", "title")]);
    for (tool, list) in LISTS {
        for (clock, more, reason) in [
            ("2024-03-05 pre_market", json!({}), json!("nothing_yet")),
            ("2024-03-08 open_1", json!({ "days": 1 }), json!("nothing_in_window")),
            ("2024-03-12 open_1", json!({ "days": 1, "keyword": "absent" }), json!("no_match")),
            ("2024-03-12 open_1", json!({ "days": 1 }), json!(null)),
        ] {
            let got = call(&store, clock, tool, args(tool, more));
            assert_eq!(got["empty_reason"], reason, "{tool} {clock}");
            assert_eq!(got[list].as_array().unwrap().is_empty(), !reason.is_null());
        }
    }
}

// complaint LA-6
#[test]
fn a_missing_table_is_said_and_a_stranger_is_unknown() {
    let bare = SmallMarket::new("2024-03-04", 10).bare().stock(stock()).build();
    for (tool, _) in LISTS {
        let failure = refused(&bare, "2024-03-06 open_1", tool, args(tool, json!({})));
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::DataUnavailable, false), "{tool}");
        let store = told(&[]);
        let failure = refused(&store, "2024-03-06 open_1", tool, args(tool, json!({ "stock_code": "600000" })));
        assert_eq!(failure.code, ErrorCode::UnknownSecurity, "{tool}");
    }
}

// spec/tools.md b41, issue 3
#[test]
fn keywords_are_literal_and_must_hold_something_to_find() {
    let store = told(&[("2024-03-05 10:00", "AI 芯片 (5%) a.c"), ("2024-03-05 11:00", "abc")]);
    for (tool, list) in LISTS {
        for (keyword, found) in [("a.c", 1), ("ＡＩ", 1), ("ai 芯片", 1), ("(5%)", 1), ("ABC", 1), ("a.*", 0), ("[a-z]+", 0)]
        {
            let got = call(&store, "2024-03-06 open_1", tool, args(tool, json!({ "keyword": keyword })));
            assert_eq!(got[list].as_array().unwrap().len(), found, "{tool} {keyword}");
            assert_eq!(got["matches"]["title"], json!(found), "{tool} {keyword}");
        }
        for keyword in [".*", "。", "  -- "] {
            let failure = refused(&store, "2024-03-06 open_1", tool, args(tool, json!({ "keyword": keyword })));
            assert_eq!((failure.code, failure.retryable()), (ErrorCode::InvalidToolArguments, true), "{tool} {keyword}");
            assert_eq!(failure.correction["issues"][0]["path"], json!("/keyword"));
        }
        assert!(schema_refuses(tool, &args(tool, json!({ "keyword": "" }))));
        assert!(schema_refuses(tool, &args(tool, json!({ "max_results": 0 }))));
        assert!(schema_refuses(tool, &args(tool, json!({ "days": 0 }))));
        assert!(schema_refuses(tool, &args(tool, json!({ "since": "yesterday" }))));
    }
    assert!(schema_refuses("get_news", &json!({ "days": 4 })));
    assert!(schema_refuses("get_announcements", &json!({ "stock_code": CODE, "days": 91 })));
}

pub(crate) fn item(time: &str, title: &str, content: &str, tags: &str, stock_list: &str) -> NewsItem {
    let (title, content) = (title.to_owned(), content.to_owned());
    NewsItem { id: 0, time: moment(time), title, content, level: "C".into(), tags: tags.into(), stock_list: stock_list.into() }
}

pub(crate) fn with_news(items: Vec<NewsItem>) -> Store {
    let mut parts = market().stock(stock().announcement("2024-03-04 10:00", "title")).parts();
    let mut items: Vec<NewsItem> = items.into_iter().enumerate().map(|(i, n)| NewsItem { id: i as i64, ..n }).collect();
    items.sort_by_key(|n| (n.time, n.id));
    parts.news = Some(items);
    Store::new(parts).unwrap()
}

#[test]
fn news_of_a_security_names_it_by_code_or_name_in_any_field() {
    let t = "2024-03-05 10:00";
    let store = with_news(vec![
        item(t, "by code 600519", "", "", ""),
        item(t, "by name", "白酒龙头示范酒业涨停", "", ""),
        item(t, "by alias", "samplevale SPIRITS rises", "", ""),
        item(t, "by tag", "", "示范酒业", ""),
        item(t, "by link", "", "", "sh600519,sz000001"),
        item(t, "a longer number 16005190", "1600519 shares", "", ""),
        item(t, "another company", "Example Bank 000001", "", ""),
    ]);
    let got = call(&store, "2024-03-06 open_1", "get_news", json!({ "stock_code": CODE }));
    let mut titles = column(&got, "news", "title");
    titles.sort();
    assert_eq!(titles, ["by alias", "by code 600519", "by link", "by name", "by tag"]);
    assert_eq!(got["matches"], json!({ "title": 1, "content": 2, "tags": 1, "linked": 1 }));
}

#[test]
fn keyword_or_sector_and_the_security() {
    let t = "2024-03-05 10:00";
    let store = with_news(vec![
        item(t, "chips", "", "", ""),
        item(t, "banks", "", "", ""),
        item(t, "other", "about chips", "", "600519"),
        item(t, "else", "", "", "600519"),
    ]);
    let titles = |args: Value| {
        let mut titles = column(&call(&store, "2024-03-06 open_1", "get_news", args), "news", "title");
        titles.sort();
        titles
    };
    assert_eq!(titles(json!({ "keyword": "CHIPS" })), ["chips", "other"]);
    assert_eq!(titles(json!({ "keyword": "chips", "sector": "banks" })), ["banks", "chips", "other"]);
    assert_eq!(titles(json!({ "keyword": "chips", "stock_code": CODE })), ["other"]);
    assert_eq!(titles(json!({ "stock_code": CODE })), ["else", "other"]);
    assert_eq!(titles(json!({})).len(), 4);
}

// complaint TR-9
#[test]
fn a_very_long_text_is_cut_in_its_field_and_says_so() {
    let long = "长".repeat(20_000);
    let store = market().news("2024-03-05 10:00", &long, &long).stock(stock().announcement("2024-03-05 10:00", &long)).build();
    let got = call(&store, "2024-03-06 open_1", "get_news", json!({}));
    let row = &got["news"][0];
    assert_eq!(row["content"].as_str().unwrap().chars().count(), 300);
    assert_eq!((&row["content_characters"], &row["content_cut"]), (&json!(20_000), &json!(true)));
    let got = call(&store, "2024-03-06 open_1", "get_news", json!({ "content_limit": 3000 }));
    assert_eq!(got["news"][0]["content"].as_str().unwrap().chars().count(), 3000);
    let got = call(&store, "2024-03-06 open_1", "get_announcements", json!({ "stock_code": CODE }));
    let row = &got["announcements"][0];
    assert_eq!((&row["title_characters"], &row["title_cut"]), (&json!(20_000), &json!(true)));
    assert!(got.to_string().len() < 10_000);
    // A word behind the cut is found, and a short text is not called cut.
    let store = market().news("2024-03-05 10:00", "t", &format!("{}芯片", "长".repeat(500))).stock(stock()).build();
    let got = call(&store, "2024-03-06 open_1", "get_news", json!({ "keyword": "芯片" }));
    assert_eq!((&got["total"], &got["matches"]["content"]), (&json!(1), &json!(1)));
}

// complaint TR-8: a cut never splits a character.
#[test]
fn cuts_keep_four_byte_characters_whole() {
    for pad in 295..305 {
        let content = format!("{}🚀𠮷🚀", "x".repeat(pad));
        let store = market().news("2024-03-05 10:00", "t", &content).stock(stock()).build();
        let got = call(&store, "2024-03-06 open_1", "get_news", json!({}));
        let shown = got["news"][0]["content"].as_str().unwrap();
        assert!(content.starts_with(shown) && shown.chars().count() == 300.min(pad + 3), "{pad}");
    }
}

// spec/tools.md b39
#[test]
fn ids_of_a_masked_run_are_not_those_of_an_open_one() {
    let store = told(&[("2024-03-05 10:00", "title")]);
    for (tool, list) in LISTS {
        let clock = at("2024-03-06 open_1");
        let open = real(&store, &bright(&store), clock, tool, &args(tool, json!({}))).unwrap();
        let closed = real(&store, &hidden(&store), clock, tool, &args(tool, json!({}))).unwrap();
        assert_ne!(column(&open, list, "evidence_id"), column(&closed, list, "evidence_id"), "{tool}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    // Rule 4 of the design: same visible data, same bytes. What comes later changes nothing now.
    #[test]
    fn later_items_do_not_change_an_answer(later in proptest::collection::vec((0_u16..600, "[a-z]{1,4}"), 0..6)) {
        let base = vec![item("2024-03-05 10:00", "one", "x", "", ""), item("2024-03-06 09:40", "two", "x", "", "")];
        let more: Vec<NewsItem> = later.iter().map(|(minutes, title)| {
            let mut news = item("2024-03-06 09:50", title, "x", "", CODE);
            news.time.0 += i64::from(*minutes) * 60;
            news
        }).collect();
        let full = with_news(base.iter().cloned().chain(more).collect());
        let small = with_news(base);
        for args in [json!({}), json!({ "keyword": "one" }), json!({ "stock_code": CODE }), json!({ "max_results": 1 })] {
            prop_assert_eq!(call(&full, "2024-03-06 open_1", "get_news", args.clone()), call(&small, "2024-03-06 open_1", "get_news", args));
        }
    }
}
