//! The dataset that comes with the program, so that the first run needs no file: real bars of eight stocks (see `packs/real-zvt/NOTICE`).

use crate::error::IngestError;
use crate::layout::Layout;
use crate::load::{Dataset, LoadOptions, assemble, build, quiet};
use crate::metadata::Metadata;
use crate::source::Source;
use bytes::Bytes;
use std::path::{Path, PathBuf};

macro_rules! table {
    ($file:literal) => {
        Source::memory(
            concat!("bundled/real-zvt/", $file),
            Bytes::from_static(include_bytes!(concat!("../packs/real-zvt/", $file))),
        )
    };
}

/// The bundled dataset: daily bars 2018-06-01..2020-06-16 of eight stocks, 5-minute bars of 000338 on 157 days from 2019-10-25,
/// ex-events and reports. Prices are forward-adjusted. No index, news, announcements, segments or valuation.
///
/// # Errors
/// [`IngestError`], only when the program itself is damaged.
pub fn bundled() -> Result<Dataset, IngestError> {
    let path = PathBuf::from("bundled/real-zvt");
    let layout = Layout {
        path: path.clone(),
        metadata: Metadata::parse(
            Path::new("bundled/real-zvt/metadata.json"),
            include_bytes!("../packs/real-zvt/metadata.json"),
        )?,
        daily: Some(table!("daily.parquet")),
        minute: vec![table!("5min_clean/year=2019/part.parquet"), table!("5min_clean/year=2020/part.parquet")],
        fundamentals: Some(table!("fundamentals.parquet")),
        dividends: Some(table!("dividends.parquet")),
        securities: Some(table!("securities.parquet")),
        ..Layout::default()
    };
    match assemble(&layout, &LoadOptions::default(), &quiet, &mut Err, &mut Vec::new())? {
        (Some(parts), report) => build(&path, parts, report),
        (None, _) => Err(IngestError::Empty { path, what: "daily bars" }),
    }
}

/// The notice that goes with the bundled dataset.
pub const BUNDLED_NOTICE: &str = include_str!("../packs/real-zvt/NOTICE");
