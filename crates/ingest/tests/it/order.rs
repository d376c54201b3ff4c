//! The same rows are the same dataset, whatever order, files, row groups or codec they come in.

use crate::sheet::{Folder, Sheet, daily, minutes};
use parquet::basic::Compression;
use proptest::prelude::*;

fn table(name: &str) -> Option<Sheet> {
    Some(match name {
        "daily.parquet" => daily(),
        "5min_clean/year=2024/part.parquet" => minutes(),
        "news_cls.parquet" => Sheet::default()
            .integers("id", &[3, 1, 2, 4])
            .text("title", &["c", "a", "b", "-"])
            .text("content", &["same time", "x", "y\nz", ""])
            .times("display_time", &["2024-06-25 10:30", "2024-06-25 10:30", "2024-06-24 09:00", "2024-06-26 20:00"]),
        "announcements.parquet" => Sheet::default()
            .text("stock_code", &["600000", "000001", "000001"])
            .text("title", &["t", "t2", "t1"])
            .times("announcement_time", &["2024-06-25", "2024-06-25", "2024-06-25"]),
        "fundamentals.parquet" => Sheet::default()
            .text("stock_code", &["600000", "000001", "000001"])
            .text("pub_date", &["2024-04-30", "-", "2024-04-29"])
            .text("stat_date", &["2024-03-31", "2023-12-31", "2024-03-31"])
            .floats("roe", &[0.1, f64::NAN, 0.2]),
        "business_segments.parquet" => Sheet::default()
            .text("stock_code", &["000001", "000001", "000001"])
            .text("report_date", &["2023-12-31", "2023-12-31", "2023-12-31"])
            .text("pub_date", &["2024-04-29", "2024-04-29", "2024-04-29"])
            .text("segment_type", &["p", "p", "r"])
            .text("segment_name", &["small", "large", "home"])
            .floats("revenue", &[1.0, 2.0, 3.0]),
        "dividends.parquet" => Sheet::default()
            .text("stock_code", &["600000", "000001"])
            .text("ex_date", &["2024-06-25", ""])
            .floats("bonus_shares", &[1.0, 0.0])
            .floats("transfer_shares", &[0.0, 2.0])
            .floats("cash_dividend", &[0.5, f64::NAN]),
        "securities.parquet" => Sheet::default().text("stock_code", &["600000", "000001"]).text("name", &["乙", "甲"]),
        "valuation.parquet" => Sheet::default()
            .text("stock_code", &["600000", "000001", "000001"])
            .times("date", &["2024-06-24", "2024-06-25", "2024-06-24"])
            .floats("turn", &[1.0, 2.0, 3.0])
            .floats("pe_ttm", &[-4.0, f64::NAN, 6.0])
            .floats("pb_mrq", &[1.0, 1.0, 1.0])
            .floats("ps_ttm", &[1.0, 1.0, 1.0])
            .floats("is_st", &[0.0, 1.0, f64::NAN]),
        _ => return None,
    })
}

const TABLES: [&str; 9] = [
    "daily.parquet",
    "5min_clean/year=2024/part.parquet",
    "news_cls.parquet",
    "announcements.parquet",
    "fundamentals.parquet",
    "business_segments.parquet",
    "dividends.parquet",
    "securities.parquet",
    "valuation.parquet",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shuffled_files_give_the_same_digest_and_report(keys in prop::collection::vec(any::<u64>(), 64), group in 1_usize..4) {
        let (plain, mut shuffled) = (Folder::new(), Folder::new());
        let mut plain = plain;
        for name in TABLES {
            let sheet = table(name).unwrap();
            let mut rows: Vec<usize> = (0..sheet.rows()).collect();
            rows.sort_by_key(|r| keys[(*r * 7 + name.len()) % 64]);
            plain = plain.put(name, &sheet);
            sheet.pick(&rows).write_as(&shuffled.path(name), Compression::SNAPPY, group);
        }
        shuffled = shuffled.text("metadata.json", r#"{"name": "a"}"#);
        plain = plain.text("metadata.json", r#"{"name": "a"}"#);
        let (a, b) = (plain.loaded().report, shuffled.loaded().report);
        prop_assert_eq!(&a, &b);
        prop_assert_eq!(a.digest.len(), 64);
    }
}

#[test]
fn the_split_into_files_does_not_matter() {
    let whole = Folder::with_daily().put("5min_clean/year=2024/part.parquet", &minutes()).loaded();
    let split = Folder::with_daily()
        .put("5min_clean/year=2024/b.parquet", &minutes().pick(&[0]))
        .put("5min_clean/year=2024/a.parquet", &minutes().pick(&[1]))
        .text("5min_clean/_SUCCESS", "")
        .loaded();
    assert_eq!(whole.report.digest, split.report.digest);
}

#[test]
fn one_changed_value_or_another_price_basis_is_another_digest() {
    let digest = |folder: Folder| folder.loaded().report.digest;
    let base = digest(Folder::with_daily());
    let mut changed = daily();
    changed = changed.without("close").floats("close", &[10.1, 10.2, 10.3, 20.1, 20.2, 20.31]);
    assert_ne!(base, digest(Folder::new().put("daily.parquet", &changed)));
    assert_ne!(base, digest(Folder::with_daily().text("metadata.json", r#"{"prices": "forward_adjusted"}"#)));
    assert_ne!(base, digest(Folder::with_daily().text("metadata.json", r#"{"synthetic": true}"#)));
    assert_eq!(base, digest(Folder::with_daily().text("metadata.json", r#"{"name": "another name"}"#)));
}
