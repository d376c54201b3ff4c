//! The cache is the dataset, or it is refused.

use crate::sheet::Folder;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::OnceLock;
use traderharness_ingest::{
    DatasetReport, GenerateConfig, IngestError, LoadOptions, build_cache, generate, generate_in_memory, load, load_parts, quiet,
    write_cache,
};

fn small() -> GenerateConfig {
    GenerateConfig { stocks: 12, days: 12, minute_days: 2, ..GenerateConfig::default() }
}

/// Bytes of a cache with every table, and its report.
fn cache_bytes() -> &'static (Vec<u8>, DatasetReport) {
    static BYTES: OnceLock<(Vec<u8>, DatasetReport)> = OnceLock::new();
    BYTES.get_or_init(|| {
        let folder = Folder::new();
        generate(&small(), &folder.path("data"), &quiet).unwrap();
        let report = build_cache(&folder.path("data"), &folder.path("a.thc"), &LoadOptions::default(), &quiet).unwrap();
        (std::fs::read(folder.path("a.thc")).unwrap(), report)
    })
}

fn try_bytes(bytes: &[u8]) -> Result<DatasetReport, IngestError> {
    let folder = Folder::new();
    let path: PathBuf = folder.path("x.thc");
    std::fs::write(&path, bytes).unwrap();
    load(&path, &LoadOptions::default(), &quiet).map(|d| d.report)
}

#[test]
fn a_cache_gives_back_the_dataset_and_leaves_nothing_beside_it() {
    let folder = Folder::new();
    generate(&small(), &folder.path("data"), &quiet).unwrap();
    let from_files = load_parts(&folder.path("data"), &LoadOptions::default(), &quiet).unwrap();
    write_cache(&from_files.0, &from_files.1, &folder.path("a.thc")).unwrap();
    let from_cache = load_parts(&folder.path("a.thc"), &LoadOptions::default(), &quiet).unwrap();
    assert_eq!(from_files.1, from_cache.1);
    // NaN is not equal to itself, so the parts are compared as text.
    assert_eq!(format!("{:?}", from_files.0), format!("{:?}", from_cache.0));
    let mut names: Vec<String> =
        std::fs::read_dir(folder.root()).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["a.thc", "data"]);
}

#[test]
fn a_dataset_with_one_table_survives_the_cache() {
    let folder = Folder::with_daily();
    let report = build_cache(&folder.root(), &folder.path("a.thc"), &LoadOptions::default(), &quiet).unwrap();
    let back = load(&folder.path("a.thc"), &LoadOptions::default(), &quiet).unwrap();
    assert_eq!((back.report, back.store.meta().digest.len()), (report, 64));
}

#[test]
fn a_newer_format_is_named_and_other_files_are_refused() {
    let mut bytes = cache_bytes().0.clone();
    bytes[8] = 2;
    assert!(matches!(try_bytes(&bytes), Err(IngestError::CacheNewer { found: 2, supported: 1, .. })));
    bytes[0] = b'P';
    assert!(matches!(try_bytes(&bytes), Err(IngestError::CacheDamaged { .. })));
    assert!(matches!(try_bytes(b""), Err(IngestError::CacheDamaged { .. })));
}

#[test]
fn writing_to_a_place_that_does_not_exist_is_an_error() {
    let (parts, report) = load_parts(&Folder::with_daily().root(), &LoadOptions::default(), &quiet).unwrap();
    let target = Folder::new().path("no/such/place.thc");
    assert!(matches!(write_cache(&parts, &report, &target), Err(IngestError::Io { action: "write", .. })));
}

/// Rewrites the header of a cache by text, with all digests of the header made right again.
fn forge(edit: impl Fn(&str) -> String) -> Vec<u8> {
    let bytes = &cache_bytes().0;
    let length = u64::from_le_bytes(bytes[12..20].try_into().unwrap()) as usize;
    let header = edit(std::str::from_utf8(&bytes[52..52 + length]).unwrap());
    let mut forged = bytes[..12].to_vec();
    forged.extend_from_slice(&(header.len() as u64).to_le_bytes());
    forged.extend_from_slice(&Sha256::digest(header.as_bytes()));
    forged.extend_from_slice(header.as_bytes());
    forged.extend_from_slice(&bytes[52 + length..]);
    forged
}

#[test]
fn a_forged_header_is_refused() {
    assert!(try_bytes(&forge(ToOwned::to_owned)).is_ok());
    for (from, to) in [
        ("\"synthetic\":true", "\"synthetic\":false"),
        ("\"prices\":\"raw\"", "\"prices\":\"forward_adjusted\""),
        ("\"daily.open\"", "\"daily.opem\""),
        ("\"daily.open\"", "\"daily.minute\""),
        ("\"offset\":0", "\"offset\":18446744073709551615"),
        ("\"news.id\"", "\"news.ix\""),
        ("\"columns\":[", "\"columns\":[],\"more\":["),
    ] {
        let error = try_bytes(&forge(|text| text.replacen(from, to, 1)));
        assert!(matches!(error, Err(IngestError::CacheDamaged { .. })), "{from}: {error:?}");
    }
}

/// Changes a stored value and makes every digest right again, as someone who means harm would.
#[test]
fn well_signed_nonsense_is_refused_and_never_panics() {
    let folder = Folder::new();
    generate(&small(), &folder.path("data"), &quiet).unwrap();
    let fresh = || load_parts(&folder.path("data"), &LoadOptions::default(), &quiet).unwrap();
    type Edit = fn(&mut traderharness_market::StoreParts);
    let edits: [(&str, Edit); 12] = [
        ("offsets beyond the rows", |p| p.daily_offsets[3] = u32::MAX),
        ("offsets out of order", |p| p.daily_offsets.swap(2, 4)),
        ("5-minute offsets", |p| p.minute_offsets[1] = 1_000_000),
        ("a short column", |p| p.daily.close.truncate(5)),
        ("days out of order", |p| p.daily.day.swap(0, 1)),
        ("a day of the far future", |p| *p.daily.day.last_mut().unwrap() = traderharness_market::Day(i32::MAX)),
        ("an infinite price", |p| p.minute.close[0] = f64::INFINITY),
        ("valuation offsets", |p| p.valuation.as_mut().unwrap().offsets.swap(1, 2)),
        ("index out of order", |p| p.index.as_mut().unwrap().day.swap(0, 1)),
        ("reports out of order", |p| p.fundamentals.as_mut().unwrap().reverse()),
        ("announcements out of order", |p| p.announcements.as_mut().unwrap().reverse()),
        ("news out of order", |p| p.news.as_mut().unwrap().reverse()),
    ];
    for (what, edit) in edits {
        let (mut parts, report) = fresh();
        edit(&mut parts);
        write_cache(&parts, &report, &folder.path("x.thc")).unwrap();
        let error = load(&folder.path("x.thc"), &LoadOptions::default(), &quiet).err();
        assert!(matches!(error, Some(IngestError::CacheDamaged { .. } | IngestError::Store { .. })), "{what}: {error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_are_refused(at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let mut bytes = cache_bytes().0.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(try_bytes(&bytes).is_err());
    }

    #[test]
    fn cut_or_lengthened_files_are_refused(at in any::<prop::sample::Index>(), tail in prop::collection::vec(any::<u8>(), 1..9)) {
        let bytes = &cache_bytes().0;
        prop_assert!(try_bytes(&bytes[..at.index(bytes.len())]).is_err());
        prop_assert!(try_bytes(&[bytes.as_slice(), &tail].concat()).is_err());
    }

    #[test]
    fn forged_headers_never_panic(at in any::<prop::sample::Index>(), value in 32_u8..127) {
        let forged = forge(|text| {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            if bytes[at].is_ascii() {
                bytes[at] = value;
            }
            String::from_utf8(bytes).unwrap()
        });
        // The report may change (it is no part of the digest); the market may not.
        if let Ok(report) = try_bytes(&forged) {
            prop_assert_eq!(&report.digest, &cache_bytes().1.digest);
        }
    }
}

#[test]
fn memory_and_disk_give_one_dataset() {
    assert_eq!(generate_in_memory(&small()).unwrap().report.digest, cache_bytes().1.digest);
}
