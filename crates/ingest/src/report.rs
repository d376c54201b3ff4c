//! What a dataset holds and what is wrong with it: [`DatasetReport`], as data (serde) and as a page for a person (`Display`).
//!
//! Everything here is computed from sorted content, so the same rows give the same report whatever the order in the files.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use traderharness_market::{Day, Minute};

/// How bad a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Normal for real data; results are not affected beyond a missing value.
    Note,
    /// Something is missing or was left out; results hold for what is there.
    Warning,
    /// Rows contradict each other or the market; a run on them can be wrong.
    Error,
}

impl Severity {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Kinds of faults. The wire name is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "described by `FaultKind::describe`")]
pub enum FaultKind {
    UnreadableTable,
    MissingTable,
    EmptyTable,
    MissingColumn,
    NullKey,
    MalformedCode,
    UnknownBoard,
    WeekendDay,
    ImpossibleMinute,
    DateBesideTimeDiffers,
    DuplicateRow,
    ConflictingRow,
    NoPrice,
    NonFiniteValue,
    NonPositivePrice,
    NegativeVolume,
    HighBelowLow,
    CloseOutsideRange,
    OutsideUniverse,
    MixedAdjustment,
    OtherIndex,
    DayWithoutIndex,
    IndexDayWithoutBars,
    MinuteDayOutsideCalendar,
    PartialMinuteDay,
    MinuteDailyPriceDiffers,
    MinuteDailyVolumeDiffers,
    UndatedNews,
    DateOnlyNews,
    UndatedAnnouncement,
    UnpublishedReport,
    UnpublishedSegment,
    PublishedBeforePeriodEnd,
    UnreadableDate,
    NoExDate,
    ImplausibleRatio,
    ControlCharacters,
    NoName,
}

impl FaultKind {
    /// How bad it is.
    pub const fn severity(self) -> Severity {
        match self {
            Self::UnreadableTable
            | Self::NullKey
            | Self::ConflictingRow
            | Self::NonPositivePrice
            | Self::NonFiniteValue
            | Self::NegativeVolume
            | Self::HighBelowLow
            | Self::MixedAdjustment
            | Self::ImplausibleRatio
            | Self::MalformedCode => Severity::Error,
            Self::MissingTable
            | Self::EmptyTable
            | Self::MissingColumn
            | Self::UnknownBoard
            | Self::WeekendDay
            | Self::ImpossibleMinute
            | Self::DateBesideTimeDiffers
            | Self::DuplicateRow
            | Self::NoPrice
            | Self::CloseOutsideRange
            | Self::DayWithoutIndex
            | Self::IndexDayWithoutBars
            | Self::MinuteDayOutsideCalendar
            | Self::MinuteDailyPriceDiffers
            | Self::MinuteDailyVolumeDiffers
            | Self::UndatedNews
            | Self::UndatedAnnouncement
            | Self::UnpublishedReport
            | Self::UnpublishedSegment
            | Self::PublishedBeforePeriodEnd
            | Self::UnreadableDate => Severity::Warning,
            Self::OutsideUniverse
            | Self::OtherIndex
            | Self::PartialMinuteDay
            | Self::DateOnlyNews
            | Self::NoExDate
            | Self::ControlCharacters
            | Self::NoName => Severity::Note,
        }
    }

    /// What was found and what was done with it.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::UnreadableTable => "table cannot be read; nothing of it is used",
            Self::MissingTable => "table is missing; tools that need it answer that it is unavailable",
            Self::EmptyTable => "table has no usable row",
            Self::MissingColumn => "optional column is missing; its values are null",
            Self::NullKey => "rows without code or date; left out",
            Self::MalformedCode => "rows whose code is not six digits; left out",
            Self::UnknownBoard => "rows of codes on no known board; left out",
            Self::WeekendDay => "bars on a Saturday or Sunday; left out",
            Self::ImpossibleMinute => "5-minute bars that end at none of the 48 bar ends 09:35..11:30, 13:05..15:00; left out",
            Self::DateBesideTimeDiffers => "`date` is not the day of `datetime`; `datetime` is used",
            Self::DuplicateRow => "rows repeated with equal values; one is kept",
            Self::ConflictingRow => "rows of one key with different values; the one with the smallest values is kept",
            Self::NoPrice => "bars without any price; left out, the day counts as suspended",
            Self::NonFiniteValue => "infinite values; set to null",
            Self::NonPositivePrice => "prices of zero or less; set to null",
            Self::NegativeVolume => "negative volume or amount; set to null",
            Self::HighBelowLow => "bars whose high is below their low; high and low set to null",
            Self::CloseOutsideRange => {
                "bars whose open or close lies outside low..high by more than half a tick; kept as they are"
            }
            Self::OutsideUniverse => "rows of securities without daily bars; not visible",
            Self::MixedAdjustment => "`adjust` differs between rows; the dataset counts as forward-adjusted",
            Self::OtherIndex => "rows of another index than the benchmark; left out",
            Self::DayWithoutIndex => "days with daily bars but no index bar, inside the index range; they count as trading days",
            Self::IndexDayWithoutBars => "days with an index bar but no daily bar of any security; they count as trading days",
            Self::MinuteDayOutsideCalendar => {
                "days with 5-minute bars that are no trading day (no daily or index bar); they cannot be run"
            }
            Self::PartialMinuteDay => "security-days with fewer than 48 5-minute bars",
            Self::MinuteDailyPriceDiffers => {
                "security-days whose 5-minute bars do not aggregate to the open, high, low or close of the daily bar"
            }
            Self::MinuteDailyVolumeDiffers => {
                "security-days whose 5-minute volume differs from the daily volume by more than 1 %"
            }
            Self::UndatedNews => "news without a time; left out, because nobody can say when it was known",
            Self::DateOnlyNews => "news stamped exactly midnight; counted as published at 15:00 of that day",
            Self::UndatedAnnouncement => "announcements without a time; left out, because nobody can say when they were known",
            Self::UnpublishedReport => "reports without a publication date; never visible",
            Self::UnpublishedSegment => "segment rows without a publication date; never visible",
            Self::PublishedBeforePeriodEnd => "rows published on or before the last day of their own period; never visible",
            Self::UnreadableDate => "dates that cannot be read; treated as missing",
            Self::NoExDate => "dividend plans without an ex-date; never take effect",
            Self::ImplausibleRatio => "dividend rows with a negative or infinite ratio; left out",
            Self::ControlCharacters => "texts with control characters; removed",
            Self::NoName => "securities without a name",
        }
    }
}

/// One fault of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Kind.
    pub kind: FaultKind,
    /// How bad it is.
    pub severity: Severity,
    /// Table.
    pub table: String,
    /// Rows (or days, as the kind says) concerned.
    pub count: u64,
    /// What was found and what was done with it.
    pub what: String,
    /// The first few in sorted order.
    pub examples: Vec<String>,
}

/// One table of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableReport {
    /// File or directory name in the layout.
    pub table: String,
    /// False when the dataset has no such table, or one that cannot be read.
    pub present: bool,
    /// Files read.
    pub files: usize,
    /// Rows in the files.
    pub rows: u64,
    /// Rows in the store.
    pub kept: u64,
    /// Securities with a row.
    pub securities: u64,
    /// Days with a row.
    pub days: u64,
    /// First day, ISO.
    pub first: Option<String>,
    /// Last day, ISO.
    pub last: Option<String>,
    /// Nulls by column in the kept rows, columns without nulls left out.
    pub nulls: BTreeMap<String, u64>,
}

/// What a dataset holds and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DatasetReport {
    /// Name of the dataset.
    pub name: String,
    /// True for invented data.
    pub synthetic: bool,
    /// `raw` or `forward_adjusted`.
    pub prices: String,
    /// SHA-256 of the content, hex; empty when the dataset cannot be loaded.
    pub digest: String,
    /// Securities of the universe.
    pub securities: u64,
    /// Trading days.
    pub trading_days: u64,
    /// First trading day, ISO.
    pub first_day: Option<String>,
    /// Last trading day, ISO.
    pub last_day: Option<String>,
    /// Tables in the order of the layout.
    pub tables: Vec<TableReport>,
    /// Faults, worst first.
    pub faults: Vec<Fault>,
}

impl DatasetReport {
    /// Severity of the worst fault; `None` when there is none.
    pub fn worst(&self) -> Option<Severity> {
        self.faults.iter().map(|f| f.severity).max()
    }

    /// Tables the dataset does not have, unreadable ones included.
    pub fn missing_tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().filter(|t| !t.present).map(|t| t.table.as_str())
    }

    /// Report of a table.
    pub fn table(&self, name: &str) -> Option<&TableReport> {
        self.tables.iter().find(|t| t.table == name)
    }

    /// Rows concerned by a fault, over all tables.
    pub fn count(&self, kind: FaultKind) -> u64 {
        self.faults.iter().filter(|f| f.kind == kind).map(|f| f.count).sum()
    }

    pub(crate) fn sort_faults(&mut self) {
        let place: BTreeMap<&str, usize> = self.tables.iter().enumerate().map(|(i, t)| (t.table.as_str(), i)).collect();
        let rank = |f: &Fault| (std::cmp::Reverse(f.severity), place.get(f.table.as_str()).copied(), f.kind);
        self.faults.sort_by_key(rank);
    }
}

impl fmt::Display for DatasetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.synthetic { "SYNTHETIC data" } else { "recorded data" };
        writeln!(f, "dataset   {} ({kind}, prices {})", self.name, self.prices)?;
        if let (Some(first), Some(last)) = (&self.first_day, &self.last_day) {
            writeln!(f, "market    {} securities, {} trading days {first}..{last}", self.securities, self.trading_days)?;
        }
        if !self.digest.is_empty() {
            writeln!(f, "digest    {}", self.digest)?;
        }
        writeln!(f)?;
        writeln!(f, "{:<26}{:>11}{:>11}{:>8}{:>7}  range", "table", "rows", "kept", "codes", "days")?;
        for table in &self.tables {
            if !table.present {
                let broken = self.faults.iter().any(|f| f.kind == FaultKind::UnreadableTable && f.table == table.table);
                writeln!(f, "{:<26}{:>11}", table.table, if broken { "unreadable" } else { "missing" })?;
                continue;
            }
            let range = match (&table.first, &table.last) {
                (Some(first), Some(last)) => format!("{first}..{last}"),
                _ => String::new(),
            };
            let codes = if table.securities == 0 { String::new() } else { table.securities.to_string() };
            let days = if table.days == 0 { String::new() } else { table.days.to_string() };
            let line = format!("{:<26}{:>11}{:>11}{codes:>8}{days:>7}  {range}", table.table, table.rows, table.kept);
            writeln!(f, "{}", line.trim_end())?;
            if !table.nulls.is_empty() {
                let nulls: Vec<String> = table.nulls.iter().map(|(column, n)| format!("{column} {n}")).collect();
                writeln!(f, "{:<26}null: {}", "", nulls.join(", "))?;
            }
        }
        writeln!(f)?;
        if self.faults.is_empty() {
            return writeln!(f, "no faults found");
        }
        for fault in &self.faults {
            let whole = matches!(
                fault.kind,
                FaultKind::UnreadableTable | FaultKind::MissingTable | FaultKind::EmptyTable | FaultKind::MissingColumn
            );
            let count = if whole { String::new() } else { format!("{} ", fault.count) };
            writeln!(f, "{:<8}{}: {count}{}", fault.severity.as_str(), fault.table, fault.what)?;
            if !fault.examples.is_empty() {
                writeln!(f, "        e.g. {}", fault.examples.join("; "))?;
            }
        }
        Ok(())
    }
}

/// How many examples a fault keeps.
const EXAMPLES: usize = 3;

/// Place of a faulty row: code number, day, minute.
pub(crate) type Place = (u32, i32, u16);

#[derive(Debug, Default)]
struct Tally {
    count: u64,
    places: Vec<Place>,
    texts: Vec<String>,
}

/// Collects the faults of one table, in any order, with the same result.
#[derive(Debug)]
pub(crate) struct Faults {
    table: &'static str,
    tallies: BTreeMap<FaultKind, Tally>,
}

impl Faults {
    pub(crate) const fn new(table: &'static str) -> Self {
        Self { table, tallies: BTreeMap::new() }
    }

    /// Counts a faulty row at a place; minute 0 = a daily row.
    pub(crate) fn at(&mut self, kind: FaultKind, place: Place) {
        let tally = self.tallies.entry(kind).or_default();
        tally.count += 1;
        keep_smallest(&mut tally.places, place);
    }

    /// Counts `count` rows with one example.
    pub(crate) fn text(&mut self, kind: FaultKind, count: u64, example: &str) {
        let tally = self.tallies.entry(kind).or_default();
        tally.count += count;
        let short: String = example.chars().take(60).collect();
        if !short.is_empty() {
            keep_smallest(&mut tally.texts, short);
        }
    }

    /// Counts rows without an example; nothing happens for 0.
    pub(crate) fn many(&mut self, kind: FaultKind, count: u64) {
        if count > 0 {
            self.tallies.entry(kind).or_default().count += count;
        }
    }

    pub(crate) fn into_faults(self) -> Vec<Fault> {
        let table = self.table;
        let show = |(code, day, minute): Place| match (code, minute) {
            (0, 0) => Day(day).to_string(),
            (0, _) => format!("{} {}", Day(day), Minute(minute)),
            (_, 0) => format!("{code:06} {}", Day(day)),
            _ => format!("{code:06} {} {}", Day(day), Minute(minute)),
        };
        self.tallies
            .into_iter()
            .map(|(kind, tally)| Fault {
                kind,
                severity: kind.severity(),
                table: table.to_owned(),
                count: tally.count,
                what: kind.describe().to_owned(),
                examples: tally.places.into_iter().map(show).chain(tally.texts).take(EXAMPLES).collect(),
            })
            .collect()
    }
}

fn keep_smallest<T: Ord>(kept: &mut Vec<T>, value: T) {
    if kept.len() == EXAMPLES && kept.last().is_some_and(|last| *last <= value) {
        return;
    }
    let at = kept.partition_point(|k| *k < value);
    if kept.get(at) != Some(&value) {
        kept.insert(at, value);
        kept.truncate(EXAMPLES);
    }
}
