//! Text under a mask: found only by what the agent sees, cut so that nothing hidden is left in half.

use crate::call::{call, hidden, masked};
use crate::text::{CODE, NAME, item, with_news};
use serde_json::{Value, json};
use traderharness_market::Store;
use traderharness_market::testing::{SmallMarket, SmallStock, code};

/// A masked call that must not show anything real.
fn seen(store: &Store, tool: &str, args: &Value) -> Value {
    let got = masked(store, &hidden(store), "2024-03-06 open_1", tool, args).unwrap();
    let text = got.to_string();
    for real in [CODE, NAME, "酒业", "2024", "Samplevale", "3月5日"] {
        assert!(!text.contains(real), "{real} in {text}");
    }
    got
}

fn alias(store: &Store) -> String {
    hidden(store).code(store.find(code(CODE)).unwrap()).to_owned()
}

// engine E8.5, spec/tools.md b07
#[test]
fn under_a_mask_a_real_name_code_or_date_finds_nothing_and_the_alias_does() {
    let store = with_news(vec![item("2024-03-05 10:00", "示范酒业（600519）3月5日涨停", "x", "", "")]);
    for keyword in [NAME, "酒业", "示范", "600519", "600", "3月5日", "samplevale"] {
        let got = seen_total(&store, keyword);
        assert_eq!(got, 0, "{keyword}");
    }
    for keyword in ["涨停", &alias(&store), "Company"] {
        assert_eq!(seen_total(&store, keyword), 1, "{keyword}");
    }
    let got = seen(&store, "get_news", &json!({ "stock_code": alias(&store) }));
    assert_eq!(got["total"], json!(1));
    // Without a mask the same words find it.
    for keyword in [NAME, "酒业", "600519", "3月5日"] {
        assert_eq!(call(&store, "2024-03-06 open_1", "get_news", json!({ "keyword": keyword }))["total"], json!(1), "{keyword}");
    }
}

fn seen_total(store: &Store, keyword: &str) -> u64 {
    // The word itself comes back in `filter`; only the rest must hold nothing real.
    let mut got = masked(store, &hidden(store), "2024-03-06 open_1", "get_news", &json!({ "keyword": keyword })).unwrap();
    got["filter"] = json!("");
    for real in [CODE, NAME, "酒业", "2024", "3月5日"] {
        assert!(!got.to_string().contains(real), "{real} in {got}");
    }
    got["total"].as_u64().unwrap()
}

// engine E8.7: half a name behind a cut is a name too.
#[test]
fn a_cut_under_a_mask_never_leaves_half_of_something_hidden() {
    for hidden_part in ["示范酒业", "600519", "2024年3月5日", "Samplevale Spirits"] {
        for pad in 280..=300 {
            let content = format!("{}{hidden_part}公告{}", "长".repeat(pad), "尾".repeat(100));
            let store = with_news(vec![item("2024-03-05 10:00", "t", &content, "", "")]);
            let got = masked(&store, &hidden(&store), "2024-03-06 open_1", "get_news", &json!({})).unwrap();
            let shown = got["news"][0]["content"].as_str().unwrap().to_owned();
            let tail = shown.trim_start_matches('长');
            for left in ["示", "酒", "60", "05", "202", "年", "Samp", "Spir"] {
                assert!(!tail.contains(left), "{hidden_part} {pad}: {tail}");
            }
            assert_eq!(got["news"][0]["content_cut"], json!(true));
        }
    }
}

// engine E8.5: 机器人 is a company and an everyday word. A text that keeps the word must not be found by the company's alias.
#[test]
fn an_alias_finds_only_texts_that_show_it() {
    let stock = SmallStock::new("300024").name("机器人").closes(&[10.0, 10.1, 10.2, 10.3]);
    let store = SmallMarket::new("2024-03-01", 4)
        .stock(stock)
        .news("2024-03-05 10:00", "机器人产业大会开幕", "各地机器人企业参会。")
        .news("2024-03-05 11:00", "机器人：签订合同", "见公告。")
        .news("2024-03-05 12:00", "300024 announces", "See the filing.")
        .build();
    let mask = hidden(&store);
    let alias = mask.code(store.find(code("300024")).unwrap()).to_owned();
    let got = masked(&store, &mask, "2024-03-06 open_1", "get_news", &json!({ "stock_code": alias })).unwrap();
    assert_eq!(got["total"], json!(2), "{got:#}");
    for row in got["news"].as_array().unwrap() {
        assert!(row["title"].as_str().unwrap().contains(&alias), "{row}");
    }
    // Without a mask the word is found wherever it stands.
    assert_eq!(call(&store, "2024-03-06 open_1", "get_news", json!({ "stock_code": "300024" }))["total"], json!(3));
}

// The length of a hidden name, code or date must not be counted out: two texts that look the same give the same answer.
#[test]
fn under_a_mask_only_what_is_seen_is_counted_and_cut() {
    let content = |name: &str, date: &str| format!("{name}公告{}{date}{}", "长".repeat(100), "尾".repeat(150));
    let rows = |name: &str, date: &str| {
        let store = with_news(vec![item("2024-03-05 10:00", &format!("{name}：{date}"), &content(name, date), "", "")]);
        ["get_news", "get_narrative_news"].map(|tool| {
            let mut got = seen(&store, tool, &json!({}));
            // Ids are keyed digests of the source.
            got["news"][0]["evidence_id"] = json!("");
            got.to_string()
        })
    };
    let plain = rows("示范酒业", "2024年3月5日");
    for (name, date) in [("Samplevale Spirits", "2024-03-05"), ("示范酒业", "2024年03月05日")] {
        assert_eq!(rows(name, date), plain, "{name} {date}");
    }
    let store = with_news(vec![item("2024-03-05 10:00", "t", &"示范酒业".repeat(20), "", "")]);
    let got = seen(&store, "get_news", &json!({ "content_limit": 200 }));
    let row = &got["news"][0];
    let label = format!("Company {}", alias(&store));
    assert_eq!(row["content_characters"], json!(20 * label.chars().count()));
    assert_eq!(row["content_cut"], json!(true));
    assert_eq!(row["content"], json!(label.repeat(200 / label.chars().count())));
}
