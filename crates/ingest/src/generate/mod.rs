//! The generator: a whole synthetic market in the dataset layout, with every table, the same for a seed on every machine.
//!
//! It is made to exercise the rules (bands, sealed days, suspensions, ex-rights, ST, listings), not to be profitable or predictable.
//! Everything it writes says that it is synthetic (DESIGN rule 10).

mod company;
mod filings;
mod intraday;
mod news;
mod path;
mod random;
mod schemas;
mod tables;

use crate::civil;
use crate::error::IngestError;
use crate::layout::Layout;
use crate::load::{Dataset, LoadOptions, OnProgress, Progress, assemble, build, quiet};
use crate::metadata::Metadata;
use crate::source::Source;
use bytes::Bytes;
use rayon::prelude::*;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tables::{Rows, Writers};
use traderharness_market::Day;

/// Version of the generator; a change of what a seed gives raises it.
const GENERATOR_VERSION: u32 = 1;
/// Companies made and written at a time.
const GROUP: usize = 200;
/// Longest window.
const MAX_DAYS: u32 = 5_000;

/// What to generate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerateConfig {
    /// Companies, 1 to 6,400.
    pub stocks: u32,
    /// Trading days, 5 to 5,000.
    pub days: u32,
    /// Trading days at the end that also have 5-minute bars.
    pub minute_days: u32,
    /// The same seed and sizes give the same market.
    pub seed: u64,
    /// Last day; the window ends on the last trading day up to it.
    pub end: Day,
}

impl Default for GenerateConfig {
    /// 300 companies, 250 days to 2024-06-28, 5 days of 5-minute bars, seed 7.
    fn default() -> Self {
        Self { stocks: 300, days: 250, minute_days: 5, seed: 7, end: Day(19_902) }
    }
}

/// What was generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Name of the dataset.
    pub name: String,
    /// First trading day.
    pub first: Day,
    /// Last trading day.
    pub last: Day,
    /// First day that has 5-minute bars; it and those after it can be traded.
    pub tradable_from: Option<Day>,
    /// Daily bars.
    pub daily_rows: u64,
    /// 5-minute bars.
    pub minute_rows: u64,
}

impl GenerateConfig {
    fn check(&self) -> Result<Vec<Day>, IngestError> {
        let fault = |setting, detail: String| IngestError::Setting { setting, detail };
        if self.stocks == 0 || self.stocks > company::MAX_COMPANIES {
            return Err(fault("stocks", format!("{} is not in 1..={}", self.stocks, company::MAX_COMPANIES)));
        }
        if self.days < 5 || self.days > MAX_DAYS {
            return Err(fault("days", format!("{} is not in 5..={MAX_DAYS}", self.days)));
        }
        if self.minute_days > self.days {
            return Err(fault("minute_days", format!("{} is more than the {} days", self.minute_days, self.days)));
        }
        let days = trading_days(self.end, self.days);
        match days.first() {
            Some(first) if first.ymd().0 >= 2000 && self.end.ymd().0 < 2100 => Ok(days),
            _ => Err(fault("end", format!("{} days up to {} leave the years 2000 to 2099", self.days, self.end))),
        }
    }

    fn name(&self) -> String {
        format!("synthetic-{}x{}-seed{}", self.stocks, self.days, self.seed)
    }

    fn metadata(&self, days: &[Day], made: &Generated) -> serde_json::Value {
        json!({
            "name": self.name(),
            "synthetic": true,
            "notice": "Invented market: companies, prices and texts are fictitious.",
            "generator": "traderharness",
            "generator_version": GENERATOR_VERSION,
            "seed": self.seed,
            "stocks": self.stocks,
            "days": self.days,
            "minute_days": self.minute_days,
            "first_day": days.first().map(Day::to_string),
            "last_day": days.last().map(Day::to_string),
            "prices": "raw",
            "daily_rows": made.daily_rows,
            "minute_rows": made.minute_rows,
        })
    }
}

/// The last `count` trading days up to `end`: weekdays without fixed holidays.
fn trading_days(end: Day, count: u32) -> Vec<Day> {
    let mut days = Vec::with_capacity(count as usize);
    let mut day = end;
    while days.len() < count as usize && day.0 > 0 {
        let (_, month, date) = day.ymd();
        let holiday = matches!((month, date), (1, 1) | (2, 10..=16) | (4, 4) | (5, 1..=3) | (10, 1..=7));
        if !civil::is_weekend(day) && !holiday {
            days.push(day);
        }
        day = day.plus(-1);
    }
    days.reverse();
    days
}

/// Generates a dataset directory. It appears whole or not at all; an existing directory is taken only when it is empty.
///
/// # Errors
/// [`IngestError::Setting`] for settings that cannot be, [`IngestError::Io`] for the file system.
pub fn generate(config: &GenerateConfig, out_dir: &Path, progress: OnProgress<'_>) -> Result<Generated, IngestError> {
    let days = config.check()?;
    let io = |action, path: &Path| IngestError::io(action, path);
    let occupied = match std::fs::read_dir(out_dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
        Err(e) => return Err(io("read", out_dir)(e)),
    };
    if occupied {
        return Err(IngestError::Setting { setting: "out", detail: format!("`{}` exists and is not empty", out_dir.display()) });
    }
    let parent = out_dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(io("create", parent))?;
    let temp = tempfile::Builder::new().prefix(".generate-").tempdir_in(parent).map_err(io("create", parent))?;
    // A directory inside, because the temporary one is open to its owner only.
    let root = temp.path().join("data");
    std::fs::create_dir(&root).map_err(io("create", &root))?;
    let open = |name: &str| -> Result<BufWriter<File>, IngestError> {
        let path = root.join(name);
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(io("create", dir))?;
        }
        Ok(BufWriter::with_capacity(1 << 18, File::create(&path).map_err(io("create", &path))?))
    };
    let (made, sinks) = run(config, &days, out_dir, &open, progress)?;
    for (name, mut sink) in sinks {
        sink.flush().map_err(io("write", &root.join(name)))?;
    }
    let path = root.join("metadata.json");
    let mut text = serde_json::to_string_pretty(&config.metadata(&days, &made)).unwrap_or_default();
    text.push('\n');
    std::fs::write(&path, text).map_err(io("write", &path))?;
    if out_dir.is_dir() {
        std::fs::remove_dir(out_dir).map_err(io("replace", out_dir))?;
    }
    std::fs::rename(&root, out_dir).map_err(io("create", out_dir))?;
    Ok(made)
}

/// Generates a dataset straight into memory, by way of the same tables: equal to generating and loading a directory.
///
/// # Errors
/// As [`generate`].
pub fn generate_in_memory(config: &GenerateConfig) -> Result<Dataset, IngestError> {
    let days = config.check()?;
    let open = |_: &str| -> Result<Vec<u8>, IngestError> { Ok(Vec::new()) };
    let path = PathBuf::from(config.name());
    let (made, sinks) = run(config, &days, &path, &open, &quiet)?;
    let metadata = config.metadata(&days, &made).to_string();
    let mut layout = Layout { path: path.clone(), metadata: Metadata::parse(&path, metadata.as_bytes())?, ..Layout::default() };
    for (name, bytes) in sinks {
        let source = Some(Source::memory(&name, Bytes::from(bytes)));
        match name.as_str() {
            "daily.parquet" => layout.daily = source,
            "index_300.parquet" => layout.index = source,
            "news_cls.parquet" => layout.news = source,
            "announcements.parquet" => layout.announcements = source,
            "fundamentals.parquet" => layout.fundamentals = source,
            "business_segments.parquet" => layout.segments = source,
            "valuation.parquet" => layout.valuation = source,
            "dividends.parquet" => layout.dividends = source,
            "securities.parquet" => layout.securities = source,
            _ => layout.minute.extend(source),
        }
    }
    match assemble(&layout, &LoadOptions::default(), &quiet, &mut Err, &mut Vec::new())? {
        (Some(parts), report) => build(&path, parts, report),
        (None, _) => Err(IngestError::Empty { path, what: "daily bars" }),
    }
}

type Sinks<W> = Vec<(String, W)>;

/// Makes companies group by group and writes a group while the next one is made. Errors name `folder`.
fn run<W: Write + Send>(
    config: &GenerateConfig,
    days: &[Day],
    folder: &Path,
    open: &dyn Fn(&str) -> Result<W, IngestError>,
    progress: OnProgress<'_>,
) -> Result<(Generated, Sinks<W>), IngestError> {
    let companies = company::companies(config.seed, config.stocks, days);
    let factors = path::Factors::new(config.seed, days.len(), company::INDUSTRIES.len());
    let minutes_from = days.len() - config.minute_days as usize;
    let mut writers = Writers::new(folder, open, days, minutes_from)?;
    let mut made = Generated {
        name: config.name(),
        first: days.first().copied().unwrap_or_default(),
        last: days.last().copied().unwrap_or_default(),
        tradable_from: days.get(minutes_from).copied(),
        daily_rows: 0,
        minute_rows: 0,
    };
    let make = |number: usize| -> Vec<Rows> {
        let group = companies.iter().enumerate().skip(number * GROUP).take(GROUP).collect::<Vec<_>>();
        group.par_iter().map(|(i, c)| tables::rows(config.seed, *i as u64, c, days, minutes_from, &factors)).collect()
    };
    let groups = companies.len().div_ceil(GROUP);
    let mut ready = make(0);
    for number in 0..groups {
        progress(Progress { stage: "companies", done: (number * GROUP) as u64, total: companies.len() as u64 });
        let (written, next) =
            rayon::join(|| writers.write(&ready, days), || if number + 1 < groups { make(number + 1) } else { Vec::new() });
        let (daily, minute) = written?;
        made.daily_rows += daily;
        made.minute_rows += minute;
        ready = next;
    }
    progress(Progress { stage: "news and index", done: companies.len() as u64, total: companies.len() as u64 });
    writers.market(&news::news(config.seed, days, &companies, &factors), &factors, config.seed, days)?;
    Ok((made, writers.finish()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is full.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_table_that_cannot_be_written_is_told_with_the_folder_and_the_reason() {
        let config = GenerateConfig { stocks: 3, days: 5, minute_days: 1, ..GenerateConfig::default() };
        let days = config.check().unwrap();
        let fault = run(&config, &days, Path::new("wanted"), &|_| Ok(Full), &quiet).err().unwrap();
        let IngestError::Io { action: "write", path, source } = fault else { panic!("{fault}") };
        assert_eq!((path.as_path(), source.kind()), (Path::new("wanted"), std::io::ErrorKind::StorageFull));
    }
}
