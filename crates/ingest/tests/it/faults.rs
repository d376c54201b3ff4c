//! What is wrong inside readable tables: counted, shown, and never carried into the store.

use crate::sheet::{Cells, Folder, Sheet, daily, minutes};
use traderharness_ingest::{FaultKind, LoadOptions, Severity, load_parts, quiet};
use traderharness_market::{Clock, Code, Day, DecisionPoint, Mask, MaskConfig, Minute, View};

/// Loads one changed daily table and counts one fault.
fn check(sheet: &Sheet, kind: FaultKind, count: u64, kept: u64) {
    let data = Folder::new().put("daily.parquet", sheet).loaded();
    assert_eq!(data.report.count(kind), count, "{kind:?}\n{}", data.report);
    assert_eq!(data.report.table("daily.parquet").unwrap().kept, kept, "{kind:?}\n{}", data.report);
    assert_eq!(data.report.faults.iter().find(|f| f.kind == kind).unwrap().examples.len(), 1, "{}", data.report);
}

fn set(sheet: &Sheet, column: &str, row: usize, value: f64) -> Sheet {
    let mut sheet = sheet.clone();
    let (_, cells) = sheet.columns.iter_mut().find(|(n, _)| n == column).unwrap();
    match cells {
        Cells::Float(values) => values[row] = Some(value),
        Cells::Integer(values) => values[row] = Some(value as i64),
        _ => panic!("{column} holds no numbers"),
    }
    sheet
}

#[test]
fn a_clean_table_has_no_fault_of_its_own() {
    let data = Folder::with_daily().loaded();
    let own: Vec<_> = data.report.faults.iter().filter(|f| f.kind != FaultKind::MissingTable).collect();
    assert!(own.is_empty(), "{own:?}");
    assert_eq!(data.report.worst(), Some(Severity::Warning));
    assert_eq!(data.store.calendar().days().len(), 3);
}

#[test]
fn values_that_cannot_be_are_null_and_counted() {
    let base = daily();
    check(&set(&base, "high", 1, 9.0), FaultKind::HighBelowLow, 1, 6);
    check(&set(&base, "close", 1, 0.0), FaultKind::NonPositivePrice, 1, 6);
    check(&set(&base, "close", 1, -3.0), FaultKind::NonPositivePrice, 1, 6);
    check(&set(&base, "open", 1, f64::INFINITY), FaultKind::NonFiniteValue, 1, 6);
    check(&set(&base, "volume", 1, -100.0), FaultKind::NegativeVolume, 1, 6);
    check(&set(&base, "close", 1, 11.0), FaultKind::CloseOutsideRange, 1, 6);
    // Half a tick outside is rounding, not a fault.
    let data = Folder::new().put("daily.parquet", &set(&base, "close", 1, 10.604)).loaded();
    assert_eq!(data.report.count(FaultKind::CloseOutsideRange), 0);
}

// complaint NU-1
#[test]
fn a_bar_without_prices_is_no_bar_and_one_without_volume_is() {
    let mut base = daily();
    for column in ["open", "high", "low", "close"] {
        base = set(&base, column, 1, f64::NAN);
    }
    check(&base, FaultKind::NoPrice, 1, 5);
    let halted = daily().with("volume", Cells::Float(vec![Some(1.0), Some(f64::NAN), None, Some(1.0), Some(1.0), Some(1.0)]));
    let data = Folder::new().put("daily.parquet", &halted).loaded();
    assert_eq!(data.report.table("daily.parquet").unwrap().nulls.get("volume"), Some(&2));
    assert_eq!(data.report.table("daily.parquet").unwrap().kept, 6);
}

#[test]
fn rows_without_a_usable_key_are_left_out() {
    let codes = |third: &str| {
        daily().without("stock_code").text("stock_code", &["000001", "000001", third, "600000", "600000", "600000"])
    };
    check(&codes("sh.001"), FaultKind::MalformedCode, 1, 5);
    check(&codes("900901"), FaultKind::UnknownBoard, 1, 5);
    let data = Folder::new().put("daily.parquet", &codes("-")).loaded();
    assert_eq!(data.report.count(FaultKind::NullKey), 1);
    let weekend = daily()
        .without("date")
        .times("date", &["2024-06-22", "2024-06-25", "2024-06-26", "2024-06-24", "2024-06-25", "2024-06-26"]);
    check(&weekend, FaultKind::WeekendDay, 1, 5);
}

#[test]
fn repeated_rows_count_once_and_conflicting_ones_are_errors() {
    let twice = daily().pick(&[0, 1, 2, 3, 4, 5, 1, 1]);
    let data = Folder::new().put("daily.parquet", &twice).loaded();
    assert_eq!((data.report.count(FaultKind::DuplicateRow), data.report.count(FaultKind::ConflictingRow)), (2, 0));
    assert_eq!(data.report.digest, Folder::with_daily().loaded().report.digest);
    let conflict = set(&twice, "close", 6, 10.25);
    let data = Folder::new().put("daily.parquet", &conflict).loaded();
    assert_eq!((data.report.count(FaultKind::DuplicateRow), data.report.count(FaultKind::ConflictingRow)), (1, 1));
    assert_eq!(data.report.worst(), Some(Severity::Error));
}

#[test]
fn five_minute_bars_keep_to_the_grid_and_the_universe() {
    let sheet = Sheet::default()
        .text("stock_code", &["000001"; 6])
        .times(
            "datetime",
            &[
                "2024-06-26 09:30",
                "2024-06-26 09:35",
                "2024-06-26 11:35",
                "2024-06-26 13:00",
                "2024-06-26 14:11",
                "2024-06-26 15:05",
            ],
        )
        .times("date", &["2024-06-26", "2024-06-25", "2024-06-26", "2024-06-26", "2024-06-26", "2024-06-26"])
        .floats("open", &[10.2; 6])
        .floats("high", &[10.7; 6])
        .floats("low", &[9.7; 6])
        .floats("close", &[10.3; 6])
        .floats("volume", &[100.0; 6]);
    let data = Folder::with_daily().put("5min_clean/year=2024/part.parquet", &sheet).loaded();
    assert_eq!(data.report.count(FaultKind::ImpossibleMinute), 5, "{}", data.report);
    assert_eq!(data.report.count(FaultKind::DateBesideTimeDiffers), 1);
    assert_eq!(data.report.count(FaultKind::MissingColumn), 1);
    let other = minutes().without("stock_code").text("stock_code", &["000001", "000002"]);
    let data = Folder::with_daily().put("5min_clean/part.parquet", &other).loaded();
    assert_eq!(data.report.count(FaultKind::OutsideUniverse), 1);
}

#[test]
fn five_minute_bars_are_held_against_the_daily_bar() {
    let data = Folder::with_daily().put("5min_clean/part.parquet", &minutes()).loaded();
    assert_eq!(data.report.count(FaultKind::MinuteDailyPriceDiffers), 0, "{}", data.report);
    assert_eq!(data.report.count(FaultKind::PartialMinuteDay), 1);
    let off = set(&minutes(), "high", 0, 10.8);
    let data = Folder::with_daily().put("5min_clean/part.parquet", &off).loaded();
    assert_eq!(data.report.count(FaultKind::MinuteDailyPriceDiffers), 1);
    let off = set(&minutes(), "volume", 0, 900.0);
    let data = Folder::with_daily().put("5min_clean/part.parquet", &off).loaded();
    assert_eq!(data.report.count(FaultKind::MinuteDailyVolumeDiffers), 1);
}

// spec/tools.md b31
#[test]
fn empty_tables_are_reported_and_not_crashed_on() {
    let data = Folder::with_daily().put("5min_clean/year=2024/part.parquet", &minutes().pick(&[])).loaded();
    assert_eq!(data.report.count(FaultKind::EmptyTable), 1);
    assert!(data.report.table("5min_clean").unwrap().present);
    let folder = Folder::with_daily();
    std::fs::create_dir_all(folder.path("5min_clean/year=2024")).unwrap();
    assert!(!folder.loaded().report.table("5min_clean").unwrap().present);
}

fn view_at(text: &str, data: &traderharness_ingest::Dataset, seen: impl Fn(View<'_>) -> usize) -> usize {
    let mask = Mask::new(&data.store, MaskConfig::default());
    let point = DecisionPoint::parse(&text[11..]).unwrap();
    seen(View::new(&data.store, Clock { day: Day::parse(&text[..10]).unwrap(), point }, &mask))
}

// complaint LA-2
#[test]
fn undated_news_never_enters_the_store() {
    let news = Sheet::default()
        .integers("id", &[1, 2, 3])
        .text("title", &["dated", "undated", "bare date"])
        .text("content", &["a", "b", "c"])
        .times("display_time", &["2024-06-25 10:30", "-", "2024-06-25"]);
    let data = Folder::with_daily().put("news_cls.parquet", &news).loaded();
    assert_eq!(data.report.count(FaultKind::UndatedNews), 1);
    assert_eq!(data.report.count(FaultKind::DateOnlyNews), 1);
    assert_eq!(data.report.table("news_cls.parquet").unwrap().kept, 2);
    let count = |at: &str| view_at(at, &data, |v| v.news().unwrap().len());
    assert_eq!(count("2024-06-25 open_2"), 0);
    assert_eq!(count("2024-06-25 close_1"), 1);
    assert_eq!(count("2024-06-25 close_2"), 1);
    assert_eq!(count("2024-06-26 pre_market"), 2);
}

// engine E2.4, complaint LA-11
#[test]
fn a_report_is_visible_from_the_day_after_its_publication_date_and_an_undated_one_never() {
    let reports = Sheet::default()
        .text("stock_code", &["000001"; 5])
        .text("pub_date", &["2024-06-25", "", "-", "2024-03-31", "2024-06-25 10:30:00"])
        .text("stat_date", &["2024-03-31", "2023-12-31", "2023-09-30", "2024-03-31", "2023-06-30"])
        .floats("roe", &[0.1, 0.2, 0.3, 0.4, 0.5]);
    let data = Folder::with_daily().put("fundamentals.parquet", &reports).loaded();
    assert_eq!(data.report.count(FaultKind::UnpublishedReport), 2);
    assert_eq!(data.report.count(FaultKind::PublishedBeforePeriodEnd), 1);
    let code = Code::parse("000001").unwrap();
    let count = |at: &str| view_at(at, &data, |v| v.fundamentals(v.find(code).unwrap()).unwrap().len());
    assert_eq!(count("2024-06-25 pre_market"), 0);
    assert_eq!(count("2024-06-25 open_2"), 0);
    assert_eq!(count("2024-06-25 close_1"), 1); // the one with a time of day
    assert_eq!(count("2024-06-25 close_2"), 1);
    assert_eq!(count("2024-06-26 pre_market"), 2);
}

// engine E2.3
#[test]
fn an_announcement_with_only_a_date_counts_as_published_at_the_close() {
    let rows = Sheet::default()
        .text("stock_code", &["600000"; 3])
        .text("title", &["evening", "bare date", "undated"])
        .times("announcement_time", &["2024-06-24 18:30", "2024-06-25", "-"]);
    let data = Folder::with_daily().put("announcements.parquet", &rows).loaded();
    assert_eq!(data.report.count(FaultKind::UndatedAnnouncement), 1);
    let code = Code::parse("600000").unwrap();
    let count = |at: &str| view_at(at, &data, |v| v.announcements(v.find(code).unwrap()).unwrap().len());
    assert_eq!(count("2024-06-24 close_2"), 0);
    assert_eq!(count("2024-06-25 close_2"), 1);
    assert_eq!(count("2024-06-26 pre_market"), 2);
}

// engine E1.3
#[test]
fn the_calendar_is_the_days_of_index_and_daily_bars_inside_the_span_of_bars() {
    let index = |days: &[&str]| {
        let n = days.len();
        Sheet::default()
            .times("date", days)
            .floats("open", &vec![3_500.0; n])
            .floats("high", &vec![3_510.0; n])
            .floats("low", &vec![3_490.0; n])
            .floats("close", &vec![3_505.0; n])
            .floats("volume", &vec![1e9; n])
    };
    let days = |days: &[&str]| {
        let data = Folder::with_daily().put("index_300.parquet", &index(days)).loaded();
        let listed: Vec<String> = data.store.calendar().days().iter().map(Day::to_string).collect();
        (listed.join(" "), data.report.count(FaultKind::DayWithoutIndex), data.report.count(FaultKind::IndexDayWithoutBars))
    };
    let all = "2024-06-24 2024-06-25 2024-06-26".to_owned();
    assert_eq!(days(&["2024-06-24", "2024-06-25", "2024-06-26"]), (all.clone(), 0, 0));
    // History and future of the index add no day; a hole in it removes none.
    assert_eq!(days(&["2023-01-03", "2024-06-24", "2024-06-26", "2024-07-01"]), (all.clone(), 1, 0));
    // Another index in the same table is left out.
    let two = index(&["2024-06-24", "2024-06-25"]).text("index_code", &["000905", "000300"]);
    let data = Folder::with_daily().put("index_300.parquet", &two).loaded();
    assert_eq!((data.report.count(FaultKind::OtherIndex), data.report.table("index_300.parquet").unwrap().kept), (1, 1));
}

#[test]
fn the_metadata_and_the_adjust_column_say_what_the_prices_are() {
    let basis = |folder: Folder| folder.loaded().report.prices;
    assert_eq!(basis(Folder::with_daily()), "raw");
    assert_eq!(basis(Folder::new().put("daily.parquet", &daily().text("adjust", &["none"; 6]))), "raw");
    assert_eq!(basis(Folder::new().put("daily.parquet", &daily().text("adjust", &["qfq"; 6]))), "forward_adjusted");
    assert_eq!(basis(Folder::with_daily().text("metadata.json", r#"{"prices": "forward_adjusted"}"#)), "forward_adjusted");
    let named = Folder::with_daily().text("metadata.json", r#"{"name": "mine", "generator": "x.py", "unknown": [1]}"#).loaded();
    assert_eq!((named.report.name.as_str(), named.report.synthetic), ("mine", true));
}

/// Written by pandas and pyarrow: categories, DATE, FLOAT, nullable and unsigned integers, an all-null column, a stored index, zoned
/// timestamps, INT96, version 2 pages, snappy.
#[test]
fn the_forms_that_pandas_writes_are_read() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pandas");
    let (parts, report) = load_parts(&path, &LoadOptions::default(), &quiet).unwrap();
    assert!(report.faults.iter().all(|f| matches!(f.kind, FaultKind::MissingTable | FaultKind::PartialMinuteDay)), "{report}");
    assert_eq!(report.table("daily.parquet").map(|t| (t.kept, t.nulls["amount"], t.nulls["close"])), Some((4, 4, 1)));
    assert_eq!(parts.daily.open, [10.0, 10.0, 20.0, 20.0]);
    assert_eq!(parts.minute.minute, [Minute::at(9, 35)]);
    let valuation = parts.valuation.unwrap();
    assert_eq!((valuation.day[0].to_string().as_str(), valuation.is_st[0]), ("2024-06-24", 1));
    assert_eq!(parts.news.unwrap()[0].time.to_string(), "2024-06-24 09:35");
}

#[test]
fn names_lose_their_control_characters() {
    let table = Sheet::default()
        .text("stock_code", &["000001", "600000"])
        .text("name", &["万 科Ａ\0", ""])
        .text("industry", &["-", "银行"]);
    let data = Folder::with_daily().put("securities.parquet", &table).loaded();
    let names: Vec<&str> = data.store.securities().unwrap().iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["万 科Ａ", ""]);
    assert_eq!((data.report.count(FaultKind::ControlCharacters), data.report.count(FaultKind::NoName)), (1, 1));
}
