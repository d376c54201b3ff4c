//! Datasets that cannot be loaded: a typed error that names the place, and a hint.

use crate::sheet::{Cells, Folder, daily, minutes};
use parquet::basic::Compression;
use proptest::prelude::*;
use traderharness_ingest::{FaultKind, IngestError, LoadOptions, Severity, bundled, check, load, quiet};

fn check_error(folder: &Folder, parts: &[&str]) {
    let text = folder.error();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_path_that_is_no_dataset_is_named() {
    let folder = Folder::new().text("notes.txt", "x");
    let options = LoadOptions::default();
    assert!(matches!(load(&folder.path("nowhere"), &options, &quiet), Err(IngestError::NotFound { .. })));
    assert!(matches!(load(&folder.path("notes.txt"), &options, &quiet), Err(IngestError::NotADataset { .. })));
    check_error(&folder, &["`DIR` has no `daily.parquet`", "hint: every dataset needs"]);
}

#[test]
fn a_missing_column_is_named_with_those_that_exist() {
    for column in ["stock_code", "date", "open", "high", "low", "close", "volume"] {
        let folder = Folder::new().put("daily.parquet", &daily().without(column));
        check_error(&folder, &["DIR/daily.parquet", &format!("no column `{column}`"), "it has:"]);
    }
    let folder = Folder::with_daily().put("5min_clean/part.parquet", &minutes().without("datetime"));
    check_error(&folder, &["DIR/5min_clean/part.parquet", "no column `datetime`"]);
}

#[test]
fn a_mistyped_column_says_what_was_found_and_what_is_expected() {
    let text = || Cells::Text(vec![Some("x".to_owned()); 6]);
    for (column, cells, expected) in [
        ("close", text(), "a number"),
        ("volume", Cells::Flag(vec![Some(true); 6]), "a number"),
        ("stock_code", Cells::Integer((0..6).map(Some).collect()), "six-digit text"),
        ("date", Cells::Float(vec![Some(1.0); 6]), "a timestamp"),
        ("date", Cells::Integer(vec![Some(1); 6]), "a timestamp"),
    ] {
        let folder = Folder::new().put("daily.parquet", &daily().with(column, cells));
        check_error(&folder, &[&format!("column `{column}`"), "expected", expected]);
    }
}

#[test]
fn dates_as_text_are_read_and_nonsense_is_counted() {
    let dates = ["2024-06-24", "2024-06-25", "20240626", "2024-06-24", "2024-02-30", "tomorrow"];
    let data = Folder::new().put("daily.parquet", &daily().without("date").text("date", &dates)).loaded();
    assert_eq!(data.report.count(FaultKind::UnreadableDate), 2);
    assert_eq!(data.report.table("daily.parquet").unwrap().kept, 4);
}

#[test]
fn text_that_is_not_utf8_names_the_row() {
    let news = crate::sheet::Sheet::default()
        .integers("id", &[1, 2])
        .with("content", Cells::Raw(vec![b"fine".to_vec(), vec![0xc4, 0xe3, 0xba]]))
        .times("display_time", &["2024-06-25 10:30", "2024-06-25 10:31"]);
    let folder = Folder::with_daily().put("news_cls.parquet", &news);
    check_error(&folder, &["`content`", "not UTF-8 at row 1"]);
}

#[test]
fn a_file_cut_short_anywhere_is_damaged_and_not_half_read() {
    let whole = Folder::with_daily();
    let bytes = std::fs::read(whole.path("daily.parquet")).unwrap();
    for length in [0, 3, 4, 11, bytes.len() / 4, bytes.len() / 2, bytes.len() - 9, bytes.len() - 8, bytes.len() - 1] {
        let folder = Folder::new();
        std::fs::write(folder.path("daily.parquet"), &bytes[..length]).unwrap();
        let error = folder.load().err();
        assert!(matches!(error, Some(IngestError::Damaged { .. })), "{length}: {error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_of_a_table_never_panic(at in any::<prop::sample::Index>(), value in any::<u8>(), more in any::<prop::sample::Index>()) {
        let folder = Folder::with_daily();
        let path = folder.path("daily.parquet");
        let mut bytes = std::fs::read(&path).unwrap();
        let (first, second) = (at.index(bytes.len()), more.index(bytes.len()));
        bytes[first] = value;
        bytes[second] ^= 0x55;
        std::fs::write(&path, &bytes).unwrap();
        // Loaded or refused with a typed error; the check always answers.
        if let Err(error) = folder.load() {
            prop_assert!(!error.hint().is_empty());
        }
        let report = folder.check();
        prop_assert!(!report.name.is_empty());
    }
}

#[test]
fn claims_beyond_the_limit_or_beyond_the_size_are_refused_before_reading() {
    let folder = Folder::with_daily();
    let options = LoadOptions { max_rows: 5, ..LoadOptions::default() };
    let error = load(&folder.root(), &options, &quiet).err();
    assert!(matches!(error, Some(IngestError::TooLarge { what: "rows", claimed: 6, cap: 5, .. })), "{error:?}");
    let options = LoadOptions { max_bytes: 10, ..LoadOptions::default() };
    let error = load(&folder.root(), &options, &quiet).err();
    assert!(matches!(error, Some(IngestError::TooLarge { what: "bytes", .. })), "{error:?}");
    // A constant column packs a million rows into some hundred bytes.
    let bomb = crate::sheet::Sheet::default().integers("stock_code", &vec![1; 1_300_000]);
    bomb.write_as(&folder.path("daily.parquet"), Compression::UNCOMPRESSED, 1_300_000);
    let error = load(&folder.root(), &LoadOptions::default(), &quiet).err();
    assert!(matches!(error, Some(IngestError::TooLarge { what: "rows", claimed: 1_300_000, .. })), "{error:?}");
}

#[test]
fn another_compression_is_named() {
    let folder = Folder::with_daily();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/news_gzip.parquet");
    std::fs::copy(file, folder.path("news_cls.parquet")).unwrap();
    check_error(&folder, &["compressed with gzip", "hint: write it again"]);
}

#[test]
fn metadata_that_says_nonsense_is_refused() {
    for text in ["", "[]", "{", r#"{"name": 5}"#, r#"{"synthetic": "yes"}"#, r#"{"prices": "back_adjusted"}"#, r#"{"name": ""}"#]
    {
        let error = Folder::with_daily().text("metadata.json", text).load().err();
        assert!(matches!(error, Some(IngestError::Metadata { .. })), "{text}: {error:?}");
    }
}

#[test]
fn a_dataset_without_a_usable_row_is_empty() {
    let folder = Folder::new().put("daily.parquet", &daily().pick(&[]));
    assert!(matches!(folder.load(), Err(IngestError::Empty { .. })));
    assert_eq!(folder.check().count(FaultKind::EmptyTable), 1);
}

#[test]
fn the_check_names_every_broken_table_in_one_go() {
    let folder = Folder::with_daily()
        .put("5min_clean/part.parquet", &minutes().without("close"))
        .text("news_cls.parquet", "not parquet at all")
        .text("securities.parquet", "");
    let report = folder.check();
    assert_eq!(report.count(FaultKind::UnreadableTable), 3, "{report}");
    assert_eq!(report.worst(), Some(Severity::Error));
    assert_eq!(report.table("daily.parquet").unwrap().kept, 6);
    let shown = report.to_string().replace(&folder.root().display().to_string(), "DIR");
    let shown = shown.replace(&report.name, "NAME");
    insta::assert_snapshot!("check_of_broken_tables", shown);
    let nowhere = check(&folder.path("nowhere"), &LoadOptions::default(), &quiet);
    assert_eq!(nowhere.worst(), Some(Severity::Error));
}

#[test]
fn the_report_of_the_bundled_pack_reads_well() {
    let report = bundled().unwrap().report;
    insta::assert_snapshot!("bundled_report", report.to_string());
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<traderharness_ingest::DatasetReport>(&json).unwrap(), report);
}
