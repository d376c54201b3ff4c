//! Daily, 5-minute and index bars: read, put into canonical order, cleaned, counted.
//!
//! Canonical order is (code, day, minute) and then the values themselves, so neither the order of rows nor the split into files can
//! change the result. Values are nulled or rows left out, never repaired: what a bar should have been is not known here.

use crate::civil;
use crate::column::{BAD_CODE, Codes, NULL_CODE, TableFile};
use crate::error::IngestError;
use crate::load::LoadOptions;
use crate::report::{FaultKind, Faults, TableReport};
use crate::source::Source;
use rayon::prelude::*;
use std::cmp::Ordering;
use traderharness_market::store::BarColumns;
use traderharness_market::{Board, Code, Day, Minute};

/// Columns of prices, volume and amount in the order of [`RawBars::values`].
pub(crate) const VALUES: [&str; 6] = ["open", "high", "low", "close", "volume", "amount"];
const AMOUNT: usize = 5;
/// Half a tick: data rounded to the tick can differ by this much and still agree.
const HALF_TICK: f64 = 0.005 + 1e-9;

/// Which table of bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Daily,
    Minute,
    Index,
}

impl Shape {
    pub(crate) const fn table(self) -> &'static str {
        match self {
            Self::Daily => "daily.parquet",
            Self::Minute => "5min_clean",
            Self::Index => "index_300.parquet",
        }
    }
}

/// A cleaned table of bars.
#[derive(Debug)]
pub(crate) struct BarTable {
    /// Distinct codes, ascending; empty for the index.
    pub(crate) codes: Vec<u32>,
    /// Rows of `codes[i]` are `offsets[i]..offsets[i + 1]`.
    pub(crate) offsets: Vec<u32>,
    pub(crate) columns: BarColumns,
    pub(crate) report: TableReport,
    pub(crate) faults: Faults,
    /// True when an `adjust` column names an adjustment.
    pub(crate) adjusted: bool,
}

/// Rows as the files give them.
#[derive(Debug, Default)]
struct RawBars {
    code: Vec<u32>,
    /// Seconds; [`civil::NULL`] and [`civil::BAD`] included.
    time: Vec<i64>,
    values: [Vec<f64>; 6],
}

/// Reads all files of a table. `universe` limits the rows to its codes (5-minute bars).
pub(crate) fn read(
    shape: Shape,
    sources: &[Source],
    universe: Option<&[u32]>,
    options: &LoadOptions,
) -> Result<BarTable, IngestError> {
    let mut faults = Faults::new(shape.table());
    let mut raw = RawBars::default();
    let mut rows = 0_u64;
    let mut adjusted = false;
    // One file at a time: its columns are decoded in parallel, which bounds the memory by the largest file.
    for source in sources {
        let file = TableFile::open(source.clone(), shape.table(), options)?;
        rows += file.rows() as u64;
        if rows > options.max_rows {
            return Err(IngestError::TooLarge {
                path: source.path().to_owned(),
                table: shape.table(),
                what: "rows",
                claimed: rows,
                cap: options.max_rows,
            });
        }
        adjusted |= read_file(shape, &file, &mut raw, &mut faults)?;
    }
    let mut table = arrange(shape, raw, universe, faults);
    table.report.files = sources.len();
    table.report.rows = rows;
    table.adjusted = adjusted;
    Ok(table)
}

enum Part {
    Codes(Codes),
    Times(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<Option<String>>),
    Absent,
}

/// Appends a file's rows; true when it names an adjustment.
fn read_file(shape: Shape, file: &TableFile, raw: &mut RawBars, faults: &mut Faults) -> Result<bool, IngestError> {
    let time_column: &[&'static str] = if shape == Shape::Minute { &["datetime"] } else { &["date"] };
    let jobs: Vec<usize> = (0..10).collect();
    let parts: Vec<Result<Part, IngestError>> = jobs
        .par_iter()
        .map(|job| {
            Ok(match *job {
                0 if shape == Shape::Index => {
                    if file.has(&["index_code"]) {
                        Part::Texts(file.texts(&["index_code"])?)
                    } else {
                        Part::Absent
                    }
                }
                0 => Part::Codes(file.codes(&["stock_code", "code"])?),
                1 => Part::Times(file.times(time_column)?),
                8 if shape == Shape::Minute && file.has(&["date"]) => Part::Times(file.times(&["date"])?),
                9 if shape == Shape::Daily && file.has(&["adjust"]) => Part::Texts(file.texts(&["adjust"])?),
                8 | 9 => Part::Absent,
                job => {
                    let name = VALUES[job - 2];
                    Part::Floats(if job - 2 == AMOUNT { file.floats_or_nan(&[name])? } else { file.floats(&[name])? })
                }
            })
        })
        .collect();
    let mut adjusted = false;
    // First error in column order, so that the same file always names the same fault.
    for (job, part) in parts.into_iter().enumerate() {
        match (job, part?) {
            (0, Part::Codes(codes)) => {
                for (text, count) in &codes.bad {
                    faults.text(FaultKind::MalformedCode, 0, &format!("`{text}` in {count} rows"));
                }
                append(&mut raw.code, codes.rows);
            }
            (0, Part::Texts(names)) => raw.code.extend(benchmark_rows(&names)),
            (0, _) => raw.code.extend(std::iter::repeat_n(0, file.rows())),
            (1, Part::Times(times)) => append(&mut raw.time, times),
            (8, Part::Times(days)) => {
                let start = raw.time.len() - days.len();
                for (row, day) in days.iter().enumerate() {
                    let time = raw.time[start + row];
                    if time > civil::BAD && *day > civil::BAD && time.div_euclid(civil::DAY) != day.div_euclid(civil::DAY) {
                        let place = (raw.code[start + row], (time.div_euclid(civil::DAY)) as i32, minute_of(time));
                        faults.at(FaultKind::DateBesideTimeDiffers, place);
                    }
                }
            }
            (9, Part::Texts(kinds)) => {
                let named = |t: &&Option<String>| !matches!(t.as_deref(), None | Some("" | "none" | "raw"));
                let count = kinds.iter().filter(named).count();
                adjusted = count > 0;
                if adjusted && count < kinds.len() {
                    faults.many(FaultKind::MixedAdjustment, count.min(kinds.len() - count) as u64);
                }
            }
            (job, Part::Floats(values)) => append(&mut raw.values[job - 2], values),
            _ => {}
        }
    }
    if shape != Shape::Index && !file.has(&["amount"]) {
        faults.text(FaultKind::MissingColumn, 1, "amount");
    }
    Ok(adjusted)
}

fn append<T>(to: &mut Vec<T>, from: Vec<T>) {
    if to.is_empty() { *to = from } else { to.extend(from) }
}

/// Rows of the benchmark get code 0, rows of another index [`BAD_CODE`]. The CSI 300 is 000300 (Shanghai) or 399300 (Shenzhen);
/// without either the smallest code counts.
fn benchmark_rows(names: &[Option<String>]) -> Vec<u32> {
    let has = |code: &str| names.iter().any(|n| n.as_deref() == Some(code));
    let chosen =
        ["000300", "399300"].into_iter().find(|code| has(code)).or_else(|| names.iter().filter_map(Option::as_deref).min());
    names.iter().map(|n| if n.is_none() || n.as_deref() == chosen { 0 } else { BAD_CODE }).collect()
}

const fn minute_of(time: i64) -> u16 {
    (time.rem_euclid(civil::DAY) / 60) as u16
}

/// True for the 48 bar ends of a day.
pub(crate) const fn is_bar_end(time: i64) -> bool {
    let second = time.rem_euclid(civil::DAY);
    let minute = second / 60;
    second % 300 == 0 && ((minute > 570 && minute <= 690) || (minute > 780 && minute <= 900))
}

/// Whether a number of six digits is a code of a known board, by its first three digits.
pub(crate) fn known_prefixes() -> Vec<bool> {
    (0..1_000).map(|p| Code::parse(&format!("{p:03}000")).and_then(Board::of).is_some()).collect()
}

/// The key of a row to keep: code, day and minute in one number that sorts as they do.
pub(crate) const fn key(code: u32, day: i32, minute: u16) -> u64 {
    ((code as u64) << 40) | ((day as u64) << 16) | minute as u64
}

/// Key of a row that is left out; sorts behind all others.
pub(crate) const LEFT_OUT: u64 = u64::MAX;

fn keys(shape: Shape, raw: &RawBars, universe: Option<&[u32]>, faults: &mut Faults) -> Vec<u64> {
    let prefixes = known_prefixes();
    let in_universe = universe.map(|codes| {
        let mut set = vec![false; 1_000_000];
        for code in codes {
            set[*code as usize] = true;
        }
        set
    });
    let mut keys = Vec::with_capacity(raw.time.len());
    for (code, time) in raw.code.iter().zip(&raw.time) {
        let day = Day(time.div_euclid(civil::DAY) as i32);
        let minute = if shape == Shape::Minute { minute_of(*time) } else { 0 };
        let fault = match *code {
            NULL_CODE => Some((FaultKind::NullKey, (0, 0, 0))),
            BAD_CODE if shape == Shape::Index => Some((FaultKind::OtherIndex, (0, 0, 0))),
            BAD_CODE => Some((FaultKind::MalformedCode, (0, 0, 0))),
            _ if *time == civil::NULL => Some((FaultKind::NullKey, (*code, 0, 0))),
            _ if *time == civil::BAD => Some((FaultKind::UnreadableDate, (*code, 0, 0))),
            code if shape != Shape::Index && !prefixes[(code / 1_000) as usize] => {
                Some((FaultKind::UnknownBoard, (code, day.0, minute)))
            }
            code if civil::is_weekend(day) => Some((FaultKind::WeekendDay, (code, day.0, minute))),
            code if shape == Shape::Minute && !is_bar_end(*time) => Some((FaultKind::ImpossibleMinute, (code, day.0, minute))),
            code if in_universe.as_ref().is_some_and(|set| !set[code as usize]) => {
                Some((FaultKind::OutsideUniverse, (code, day.0, minute)))
            }
            _ => None,
        };
        keys.push(match fault {
            None => key(*code, day.0, minute),
            Some((kind, (0, 0, 0))) => {
                faults.many(kind, 1);
                LEFT_OUT
            }
            Some((kind, (code, 0, 0))) => {
                faults.text(kind, 1, &format!("{code:06}"));
                LEFT_OUT
            }
            Some((kind, place)) => {
                faults.at(kind, place);
                LEFT_OUT
            }
        });
    }
    keys
}

fn arrange(shape: Shape, raw: RawBars, universe: Option<&[u32]>, mut faults: Faults) -> BarTable {
    let mut keys = keys(shape, &raw, universe, &mut faults);
    let RawBars { code, time, mut values } = raw;
    drop((code, time));
    if let Some(order) = canonical_order(&keys, &values, &mut faults) {
        values.par_iter_mut().for_each(|column| *column = order.iter().map(|i| column[*i as usize]).collect());
        keys = order.iter().map(|i| keys[*i as usize]).collect();
    }
    clean(&mut keys, &mut values, &mut faults);
    finish(shape, &keys, values, universe, faults)
}

/// Rows to keep in canonical order, one per key; `None` when the rows are so already.
pub(crate) fn canonical_order(keys: &[u64], values: &[Vec<f64>], faults: &mut Faults) -> Option<Vec<u32>> {
    if keys.windows(2).all(|w| w[0] < w[1]) && keys.last() != Some(&LEFT_OUT) {
        return None;
    }
    let by_value = |a: u32, b: u32| {
        values.iter().fold(Ordering::Equal, |order, column| order.then_with(|| column[a as usize].total_cmp(&column[b as usize])))
    };
    let mut order: Vec<u32> = (0..keys.len() as u32).filter(|i| keys[*i as usize] != LEFT_OUT).collect();
    if !order.is_sorted_by(|a, b| keys[*a as usize] < keys[*b as usize]) {
        order.par_sort_unstable_by(|a, b| keys[*a as usize].cmp(&keys[*b as usize]).then_with(|| by_value(*a, *b)));
    }
    order.dedup_by(|b, a| {
        let (key_b, key_a) = (keys[*b as usize], keys[*a as usize]);
        if key_a != key_b {
            return false;
        }
        let same = by_value(*a, *b) == Ordering::Equal;
        faults.at(if same { FaultKind::DuplicateRow } else { FaultKind::ConflictingRow }, place(key_a));
        true
    });
    Some(order)
}

pub(crate) const fn place(key: u64) -> (u32, i32, u16) {
    ((key >> 40) as u32, ((key >> 16) & 0xff_ffff) as i32, (key & 0xffff) as u16)
}

/// Nulls values that cannot be; leaves out bars without any price.
fn clean(keys: &mut Vec<u64>, values: &mut [Vec<f64>; 6], faults: &mut Faults) {
    let mut empty: Vec<usize> = Vec::new();
    for row in 0..keys.len() {
        let at = place(keys[row]);
        for (index, column) in values.iter_mut().enumerate() {
            let value = &mut column[row];
            if value.is_nan() {
                *value = f64::NAN; // one bit pattern for all nulls
                continue;
            }
            let fault = if value.is_infinite() {
                Some(FaultKind::NonFiniteValue)
            } else if index < 4 && *value <= 0.0 {
                Some(FaultKind::NonPositivePrice)
            } else if *value < 0.0 {
                Some(FaultKind::NegativeVolume)
            } else {
                None
            };
            match fault {
                Some(kind) => {
                    faults.at(kind, at);
                    *value = f64::NAN;
                }
                None => *value += 0.0, // -0 becomes 0
            }
        }
        let [open, high, low, close] = [0, 1, 2, 3].map(|i| values[i][row]);
        if high < low {
            faults.at(FaultKind::HighBelowLow, at);
            values[1][row] = f64::NAN;
            values[2][row] = f64::NAN;
        } else if open.max(close) > high + HALF_TICK || open.min(close) < low - HALF_TICK {
            faults.at(FaultKind::CloseOutsideRange, at);
        }
        if [open, high, low, close].iter().all(|v| v.is_nan()) {
            faults.at(FaultKind::NoPrice, at);
            empty.push(row);
        }
    }
    if !empty.is_empty() {
        let left_out = |row: usize| empty.binary_search(&row).is_ok();
        let mut row = 0;
        keys.retain(|_| {
            row += 1;
            !left_out(row - 1)
        });
        for column in values {
            let mut row = 0;
            column.retain(|_| {
                row += 1;
                !left_out(row - 1)
            });
        }
    }
}

fn finish(shape: Shape, keys: &[u64], values: [Vec<f64>; 6], universe: Option<&[u32]>, mut faults: Faults) -> BarTable {
    let mut present: Vec<u32> = keys.iter().map(|k| place(*k).0).collect();
    present.dedup();
    let codes: Vec<u32> = match (shape, universe) {
        (Shape::Index, _) => Vec::new(),
        (_, Some(universe)) => universe.to_vec(),
        (_, None) => present.clone(),
    };
    let mut offsets: Vec<u32> = codes.iter().map(|c| keys.partition_point(|k| place(*k).0 < *c) as u32).collect();
    offsets.push(keys.len() as u32);
    let day: Vec<Day> = keys.iter().map(|k| Day(place(*k).1)).collect();
    let minute: Vec<Minute> =
        if shape == Shape::Minute { keys.iter().map(|k| Minute(place(*k).2)).collect() } else { Vec::new() };
    let mut report =
        TableReport { table: shape.table().to_owned(), present: true, kept: keys.len() as u64, ..TableReport::default() };
    span(&mut report, &day);
    if shape != Shape::Index {
        report.securities = present.len() as u64;
    }
    for (name, column) in VALUES.iter().zip(&values) {
        let nulls = column.iter().filter(|v| v.is_nan()).count() as u64;
        if nulls > 0 {
            report.nulls.insert((*name).to_owned(), nulls);
        }
    }
    if keys.is_empty() {
        faults.many(FaultKind::EmptyTable, 1);
    }
    let [open, high, low, close, volume, amount] = values;
    let columns = BarColumns { day, minute, open, high, low, close, volume, amount };
    BarTable { codes, offsets, columns, report, faults, adjusted: false }
}

/// Fills the days of a table report.
pub(crate) fn span(report: &mut TableReport, days: &[Day]) {
    let (Some(first), Some(last)) = (days.iter().min(), days.iter().max()) else { return };
    let mut seen = vec![false; (last.0 - first.0) as usize + 1];
    for day in days {
        seen[(day.0 - first.0) as usize] = true;
    }
    report.days = seen.iter().filter(|s| **s).count() as u64;
    report.first = Some(first.to_string());
    report.last = Some(last.to_string());
}
