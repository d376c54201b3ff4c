//! Every form of a date is found, and what only looks like one is not.

use super::{check, pointers, rules, scan};
use traderharness_replay::audit::{Auditor, DatePolicy, FindingKind, Kind, Rules};

// engine E8.4
#[test]
fn every_form_of_a_date_is_found() {
    for text in [
        "2024-03-14",
        "2024/3/14",
        "2024.3.14",
        "20240314",
        "2024年3月14日",
        "2024 年 3 月 14 日",
        "3月14日",
        "三月十四日",
        "二〇二四年",
        "14 March 2024",
        "March 14, 2024",
        "Mar. 14 2024",
        "March 14th",
        "14th of March",
        "14-Mar-24",
        "March 2024",
        "Q1 2024",
        "1Q24",
        "2024Q1",
        "Q1'24",
        "FY2024",
        "FY24",
        "H1 2024",
        "2024年",
        "24年3月",
        "２０２４－０３－１４",
        "２０２４年",
        "2024-03-14T10:30:00Z",
        "2024-03-14 10:30:00+08:00",
        "20240314T103000",
        "202403141030",
        "20240314103000",
        "Thursday, March 14, 2024",
        "周四（3月14日）",
        "2024-W11",
        "14.03.2024",
        "3/14/2024",
        "2024-03",
        "in 2024",
        "2024 annual report",
        "2024E",
        "〔2024〕",
        "3月",
        "report_20240314.csv",
        "2024年一季度",
        "14 March",
        "14Mar2024",
        "report_2024_03_14.csv",
        "Thursday, March 14",
        "2024年3月14日 星期四",
        "2024-03-14 10:30 CST",
        "Thursday 03-14",
        "3/14 (Thu)",
        "周四 03-14",
        "03-14（星期四）",
        "03-14 09:30",
        "date: 03-14",
        "截至03-14",
        "on 03-14.",
        "周四14日",
        "14日（周四）",
        "Thursday the 14th",
    ] {
        let found = scan(text, Kind::Text);
        assert_eq!(found.total(FindingKind::Date), 1, "{text}: {found:?}");
        check(text, &[&format!("date:{}", found.findings[0].detail)]);
        let allowed = Auditor::new(&Rules { dates: DatePolicy::Allowed, ..rules() });
        assert!(allowed.scan("x", text.as_bytes(), Kind::Text).is_clean(), "{text}");
    }
    let found = scan(
        r#"{"trade_date":20240314,"updated_at":1710403200,"ts":"1710403200123","count":20240314,"days":[20240314]}"#,
        Kind::Json,
    );
    assert_eq!(pointers(&found), ["/trade_date", "/updated_at", "/ts", "/days/0"]);
}

#[test]
fn what_only_looks_like_a_date_stays() {
    for text in [
        "D-21",
        "D+0 10:30",
        "M-4, Q-2, Y-1年",
        "20240314 shares",
        "volume 20240314",
        "￥20240314.50",
        "$20240314",
        "2024.31",
        "2024 shares",
        "price 2024.5",
        "20241399",
        "120240314",
        "5f2024031499ab",
        "3个月",
        "14日均线",
        "version 2024.3.14.5",
        "draft/2020-12",
        "gpt-4o-2024-08-06",
        "may 30",
        "March 14,000 troops",
        "May 30 percent",
        "10:30",
        "1-2-3",
        "3/4",
        "03-14",
        "on 10-15 names",
        "by 10-15%",
        "on 3/4 of them",
        "sat 3/4",
        "13-14 Thursday",
        "03-14-2",
        "14日",
        "the 14th",
        "周线14日",
        "12.2024",
        "of 2000",
        "up to 2050",
        "1024x2024",
        "deadbeef20240314",
        "step 8 of 12",
        "MA 20",
        "second 30",
        "sha256 e774c8c1fa254ffb81ebf4b67027eefd844740427f3f4f9cc18c63c8cdc030d8",
        "12 decimals",
        "3 June",
        "0.2024",
    ] {
        let expected: &[&str] = if text == "3 June" { &["date:english"] } else { &[] };
        check(text, expected);
    }
}

// engine E8.4
#[test]
fn days_under_keys_that_name_a_time_are_found() {
    let json = r#"{"date":"03-14","day":"02/29","range":"03-14","day":"03-32","start":"3-14"}"#;
    let found = scan(json, Kind::Json);
    assert_eq!(pointers(&found), ["/date", "/day"]);
}
