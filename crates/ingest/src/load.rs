//! Loads a dataset: finds its tables, reads them, and builds the store and the report.
//!
//! The dataset given is the dataset used (spec/tools.md b19, b31): no table is replaced by another, none is invented.

use crate::bars::{self, BarTable, Shape};
use crate::canon;
use crate::cross;
use crate::error::IngestError;
use crate::layout::Layout;
use crate::metadata::basis_name;
use crate::report::{DatasetReport, Fault, FaultKind, Faults, TableReport};
use crate::source::Source;
use crate::tables::{self, Brought};
use std::path::Path;
use traderharness_market::store::DatasetMeta;
use traderharness_market::{Code, Day, PriceBasis, Store, StoreParts};

/// A dataset in memory.
#[derive(Debug)]
pub struct Dataset {
    /// The market; share it between sessions.
    pub store: Store,
    /// What it holds and what was wrong with it.
    pub report: DatasetReport,
}

/// Limits on what a file may claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Most rows of one table.
    pub max_rows: u64,
    /// Most decompressed bytes of one file.
    pub max_bytes: u64,
}

impl Default for LoadOptions {
    /// 300 million rows (27 years of daily bars, or 4 years of 5-minute bars, of 5,400 stocks have fewer) and 16 GiB.
    fn default() -> Self {
        Self { max_rows: 300_000_000, max_bytes: 16 << 30 }
    }
}

/// How far a long piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// Steps done.
    pub done: u64,
    /// Steps in all.
    pub total: u64,
}

/// Told how far the work is; called from any thread.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Sync);

/// For callers that show nothing.
pub fn quiet(_: Progress) {}

/// Loads a dataset directory or a `.thc` cache file.
///
/// # Errors
/// [`IngestError`]; nothing is kept of a dataset that cannot be loaded whole.
pub fn load(path: &Path, options: &LoadOptions, progress: OnProgress<'_>) -> Result<Dataset, IngestError> {
    let (parts, report) = load_parts(path, options, progress)?;
    build(path, parts, report)
}

/// As [`load`], before the parts become a store; for building a cache.
///
/// # Errors
/// As [`load`].
pub fn load_parts(
    path: &Path,
    options: &LoadOptions,
    progress: OnProgress<'_>,
) -> Result<(StoreParts, DatasetReport), IngestError> {
    if Layout::is_cache(path)? {
        return crate::cache::read_cache(path);
    }
    let layout = Layout::of_directory(path)?;
    let mut faults = Vec::new();
    match assemble(&layout, options, progress, &mut |error| Err(error), &mut faults)? {
        (Some(parts), report) => Ok((parts, report)),
        (None, _) => Err(IngestError::Empty { path: path.to_owned(), what: "daily bars" }),
    }
}

/// Reads everything that can be read and reports everything that is wrong; never fails.
pub fn check(path: &Path, options: &LoadOptions, progress: OnProgress<'_>) -> DatasetReport {
    let whole = || -> Result<DatasetReport, IngestError> {
        if Layout::is_cache(path)? {
            let (parts, report) = crate::cache::read_cache(path)?;
            return build(path, parts, report).map(|d| d.report);
        }
        let layout = Layout::of_directory(path)?;
        let mut faults = Vec::new();
        let mut unreadable = Vec::new();
        let (parts, mut report) = assemble(
            &layout,
            options,
            progress,
            &mut |error| {
                unreadable.push(unreadable_fault(&error));
                Ok(())
            },
            &mut faults,
        )?;
        report.faults.extend(unreadable);
        report.sort_faults();
        match parts {
            Some(parts) => build(path, parts, report).map(|d| d.report),
            None => Ok(report),
        }
    };
    whole().unwrap_or_else(|error| DatasetReport {
        name: path.display().to_string(),
        prices: basis_name(PriceBasis::Raw).to_owned(),
        faults: vec![unreadable_fault(&error)],
        ..DatasetReport::default()
    })
}

fn unreadable_fault(error: &IngestError) -> Fault {
    let kind = FaultKind::UnreadableTable;
    let table = match error {
        IngestError::MissingTable { table, .. }
        | IngestError::MissingColumn { table, .. }
        | IngestError::MistypedColumn { table, .. }
        | IngestError::Damaged { table, .. }
        | IngestError::Codec { table, .. }
        | IngestError::TooLarge { table, .. }
        | IngestError::NotUtf8 { table, .. } => (*table).to_owned(),
        _ => "dataset".to_owned(),
    };
    Fault {
        kind,
        severity: kind.severity(),
        table,
        count: 1,
        what: format!("{}: {error}; {}", kind.describe(), error.hint()),
        examples: Vec::new(),
    }
}

/// Turns parts into a store.
pub(crate) fn build(path: &Path, parts: StoreParts, report: DatasetReport) -> Result<Dataset, IngestError> {
    let store = Store::new(parts).map_err(|source| IngestError::Store { path: path.to_owned(), source })?;
    Ok(Dataset { store, report })
}

/// Reads the tables of a layout. `fail` decides about each table that cannot be read: stop, or go on without it.
pub(crate) fn assemble(
    layout: &Layout,
    options: &LoadOptions,
    progress: OnProgress<'_>,
    fail: &mut dyn FnMut(IngestError) -> Result<(), IngestError>,
    faults: &mut Vec<Fault>,
) -> Result<(Option<StoreParts>, DatasetReport), IngestError> {
    let total = 10;
    let step = |done: u64, stage: &'static str| progress(Progress { stage, done, total });
    let mut reports: Vec<TableReport> = Vec::new();
    let mut report = DatasetReport { name: layout.name(), synthetic: layout.metadata.synthetic, ..DatasetReport::default() };

    step(0, "daily bars");
    let daily = match layout.daily.as_ref() {
        Some(source) => settle(bars::read(Shape::Daily, std::slice::from_ref(source), None, options), fail)?,
        None => {
            fail(IngestError::MissingTable { path: layout.path.clone(), table: Shape::Daily.table() })?;
            None
        }
    };
    let numbers: Vec<u32> = daily.as_ref().map(|d| d.codes.clone()).unwrap_or_default();
    let codes: Vec<Code> = numbers.iter().filter_map(|n| Code::parse(&format!("{n:06}"))).collect();

    step(1, "5-minute bars");
    let minute = if layout.minute.is_empty() {
        None
    } else {
        let universe = daily.is_some().then_some(numbers.as_slice());
        settle(bars::read(Shape::Minute, &layout.minute, universe, options), fail)?
    };
    step(2, "index bars");
    let index = match &layout.index {
        Some(source) => settle(bars::read(Shape::Index, std::slice::from_ref(source), None, options), fail)?,
        None => None,
    };

    let prices = layout.metadata.prices.unwrap_or(match &daily {
        Some(d) if d.adjusted => PriceBasis::ForwardAdjusted,
        _ => PriceBasis::Raw,
    });
    let mut parts = StoreParts {
        codes: codes.clone(),
        meta: DatasetMeta { name: layout.name(), synthetic: layout.metadata.synthetic, prices, digest: String::new() },
        ..StoreParts::default()
    };

    let mut bar_faults = BarFaults::default();
    if let Some(daily) = &daily {
        step(3, "cross-check");
        let mut daily_faults = Faults::new(Shape::Daily.table());
        let mut minute_faults = Faults::new(Shape::Minute.table());
        parts.calendar = cross::calendar(daily, minute.as_ref(), index.as_ref(), &mut daily_faults, &mut minute_faults);
        if let Some(minute) = &minute {
            cross::minutes_against_daily(daily, minute, &mut minute_faults);
        }
        bar_faults.daily.extend(daily_faults.into_faults());
        bar_faults.minute.extend(minute_faults.into_faults());
    }
    let usable = daily.as_ref().is_some_and(|d| !d.columns.day.is_empty());
    let mut bar_table = |table: Option<BarTable>, shape: Shape, found: bool, extra: Vec<Fault>| -> Option<BarTable> {
        let mut table = table;
        match &mut table {
            Some(table) => {
                reports.push(std::mem::take(&mut table.report));
                faults.extend(std::mem::replace(&mut table.faults, Faults::new(shape.table())).into_faults());
                faults.extend(extra);
            }
            // One that is there but unreadable has its own fault.
            None if found => reports.push(TableReport { table: shape.table().to_owned(), ..TableReport::default() }),
            None => missing(shape.table(), &mut reports, faults),
        }
        table
    };
    if let Some(table) = bar_table(daily, Shape::Daily, true, bar_faults.daily) {
        parts.daily = table.columns;
        parts.daily_offsets = table.offsets;
    }
    parts.minute_offsets = vec![0; codes.len() + 1];
    if let Some(table) = bar_table(minute, Shape::Minute, !layout.minute.is_empty(), bar_faults.minute) {
        parts.minute = table.columns;
        parts.minute_offsets = table.offsets;
    }
    parts.index =
        bar_table(index, Shape::Index, layout.index.is_some(), Vec::new()).map(|t| t.columns).filter(|c| !c.day.is_empty());

    let mut side = Side { options, reports: &mut reports, faults, fail };
    step(4, "news");
    parts.news = side.bring("news_cls.parquet", layout.news.as_ref(), tables::news)?;
    step(5, "announcements");
    parts.announcements =
        side.bring("announcements.parquet", layout.announcements.as_ref(), |s, o| tables::announcements(s, &codes, o))?;
    step(6, "reports");
    parts.fundamentals =
        side.bring("fundamentals.parquet", layout.fundamentals.as_ref(), |s, o| tables::fundamentals(s, &codes, o))?;
    parts.segments = side.bring("business_segments.parquet", layout.segments.as_ref(), |s, o| tables::segments(s, &codes, o))?;
    step(7, "valuation");
    parts.valuation = side.bring("valuation.parquet", layout.valuation.as_ref(), |s, o| tables::valuation(s, &numbers, o))?;
    step(8, "companies");
    parts.ex_events = side.bring("dividends.parquet", layout.dividends.as_ref(), |s, o| tables::dividends(s, &codes, o))?;
    parts.securities = side.bring("securities.parquet", layout.securities.as_ref(), tables::securities)?;

    step(9, "digest");
    if usable {
        parts.meta.digest = canon::digest_of(&parts);
    }
    report.prices = basis_name(prices).to_owned();
    report.digest = parts.meta.digest.clone();
    report.securities = codes.len() as u64;
    report.trading_days = parts.calendar.days().len() as u64;
    report.first_day = parts.calendar.days().first().map(Day::to_string);
    report.last_day = parts.calendar.days().last().map(Day::to_string);
    report.tables = reports;
    report.faults = std::mem::take(faults);
    report.sort_faults();
    step(10, "done");
    Ok((usable.then_some(parts), report))
}

#[derive(Default)]
struct BarFaults {
    daily: Vec<Fault>,
    minute: Vec<Fault>,
}

fn settle<T>(
    result: Result<T, IngestError>,
    fail: &mut dyn FnMut(IngestError) -> Result<(), IngestError>,
) -> Result<Option<T>, IngestError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => fail(error).map(|()| None),
    }
}

fn missing(table: &'static str, reports: &mut Vec<TableReport>, faults: &mut Vec<Fault>) {
    reports.push(TableReport { table: table.to_owned(), ..TableReport::default() });
    let mut fault = Faults::new(table);
    fault.many(FaultKind::MissingTable, 1);
    faults.extend(fault.into_faults());
}

struct Side<'a> {
    options: &'a LoadOptions,
    reports: &'a mut Vec<TableReport>,
    faults: &'a mut Vec<Fault>,
    fail: &'a mut dyn FnMut(IngestError) -> Result<(), IngestError>,
}

impl Side<'_> {
    fn bring<T>(
        &mut self,
        table: &'static str,
        source: Option<&Source>,
        read: impl FnOnce(&Source, &LoadOptions) -> Result<Brought<T>, IngestError>,
    ) -> Result<Option<T>, IngestError> {
        let Some(source) = source else {
            missing(table, self.reports, self.faults);
            return Ok(None);
        };
        match settle(read(source, self.options), self.fail)? {
            Some(brought) => {
                self.reports.push(brought.report);
                self.faults.extend(brought.faults.into_faults());
                Ok(Some(brought.rows))
            }
            None => {
                self.reports.push(TableReport { table: table.to_owned(), ..TableReport::default() });
                Ok(None)
            }
        }
    }
}
