//! The recorded sets load with the counts their description states.

use crate::shared;
use traderharness_ingest::{Dataset, FaultKind, LoadOptions, bundled, load, quiet};

fn real(set: &str) -> Option<Dataset> {
    let path = shared(set)?;
    Some(load(&path, &LoadOptions::default(), &quiet).unwrap())
}

#[test]
fn the_2025_set_has_its_stated_counts() {
    let Some(data) = real("real-2025") else { return };
    println!("{}", data.report);
    let report = &data.report;
    assert_eq!(report.securities, 183);
    assert_eq!(report.table("5min_clean").map(|t| (t.securities, t.days, t.kept)), Some((135, 31, 135 * 31 * 48)));
    assert_eq!(report.table("daily.parquet").and_then(|t| t.nulls.get("amount").copied()), Some(50_005));
    assert_eq!(report.table("news_cls.parquet").map(|t| t.kept), Some(5_138));
    // On 151 of 4,185 security-days the daily bar is adjusted by a tick or two and the 5-minute bars are not; volumes agree.
    assert_eq!(report.count(FaultKind::MinuteDailyPriceDiffers), 151);
    assert_eq!(report.count(FaultKind::MinuteDailyVolumeDiffers), 0);
    let missing: Vec<&str> = report.missing_tables().collect();
    assert_eq!(
        missing,
        ["announcements.parquet", "fundamentals.parquet", "business_segments.parquet", "valuation.parquet", "dividends.parquet"]
    );
    assert!(!report.synthetic);
    // A name with a NUL in the source.
    let name = data.store.securities().unwrap().iter().find(|s| s.code.as_str() == "000002").map(|s| s.name.as_str());
    assert_eq!(name, Some("万 科Ａ"));
}

#[test]
fn the_unadjusted_set_has_its_stated_counts() {
    let Some(data) = real("real-tdx") else { return };
    println!("{}", data.report);
    let report = &data.report;
    assert_eq!((report.securities, report.prices.as_str()), (18, "raw"));
    // The last day has 5-minute bars but neither a daily nor an index bar.
    assert_eq!(report.count(FaultKind::MinuteDayOutsideCalendar), 1);
    assert_eq!(report.last_day.as_deref(), Some("2019-10-24"));
    // The high or low of the 5-minute bars lies inside the daily one.
    assert_eq!(report.count(FaultKind::MinuteDailyPriceDiffers), 114);
    assert_eq!(report.table("fundamentals.parquet").map(|t| t.kept), Some(308));
}

#[test]
fn the_synthetic_peer_set_says_that_it_is_synthetic() {
    let Some(data) = real("peer/dataset") else { return };
    println!("{}", data.report);
    assert!(data.report.synthetic && data.store.meta().synthetic);
    assert_eq!((data.report.securities, data.report.trading_days), (120, 160));
    assert_eq!(data.report.missing_tables().collect::<Vec<_>>(), ["securities.parquet"]);
}

#[test]
fn the_bundled_pack_loads_without_any_file() {
    let data = bundled().unwrap();
    println!("{}", data.report);
    assert_eq!((data.report.securities, data.report.prices.as_str(), data.report.synthetic), (8, "forward_adjusted", false));
    assert_eq!(data.report.table("5min_clean").map(|t| (t.securities, t.days)), Some((1, 157)));
    // Two bars of 2019-11-04 end between bar ends.
    assert_eq!(data.report.count(FaultKind::ImpossibleMinute), 2);
    assert_eq!(data.report.count(FaultKind::UnpublishedReport), 21);
}

#[test]
fn the_bundled_pack_and_the_directory_it_came_from_are_one_dataset() {
    let Some(path) = shared("real-zvt") else { return };
    let directory = load(&path, &LoadOptions::default(), &quiet).unwrap();
    assert_eq!(directory.report.tables, bundled().unwrap().report.tables);
}
