//! Reads the columns of one Parquet file straight into vectors of our own types.
//!
//! A file is hostile until proven otherwise: its claims are held against its size before anything is allocated, and a panic of the
//! decoder becomes [`IngestError::Damaged`]. Nothing here knows what a table means.

use crate::civil::{self, Seconds};
use crate::error::IngestError;
use crate::load::LoadOptions;
use crate::source::Source;
use parquet::basic::{CompressionCodec, ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, Length, SerializedFileReader};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows decoded at a time.
const BATCH: usize = 16_384;
/// A table of real bars needs several bytes a row; a file that claims more rows than this for its size is a decompression bomb.
const ROWS_PER_BYTE: u64 = 64;
/// Below this no ratio is checked: constant columns compress without bound.
const SMALL_ROWS: u64 = 1_000_000;
/// A code that is null.
pub(crate) const NULL_CODE: u32 = u32::MAX;
/// A code that is not six digits.
pub(crate) const BAD_CODE: u32 = u32::MAX - 1;
/// How many different bad texts are kept as examples.
const BAD_TEXTS: usize = 8;

/// A column of codes as numbers, `000001` = 1.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    /// One per row; [`NULL_CODE`] and [`BAD_CODE`] included.
    pub(crate) rows: Vec<u32>,
    /// Smallest texts that are no code, with their row counts.
    pub(crate) bad: BTreeMap<String, u64>,
}

/// An opened table file.
pub(crate) struct TableFile {
    source: Source,
    table: &'static str,
    metadata: Arc<ParquetMetaData>,
    rows: usize,
}

impl TableFile {
    /// Reads the footer and checks its claims.
    pub(crate) fn open(source: Source, table: &'static str, options: &LoadOptions) -> Result<Self, IngestError> {
        let damaged = |detail: String| IngestError::Damaged { path: source.path().to_owned(), table, detail };
        let reader = guarded(|| SerializedFileReader::new(source.clone())).map_err(damaged)?;
        let metadata = Arc::new(reader.metadata().clone());
        let mut rows = 0_u64;
        let mut bytes = 0_u64;
        for group in metadata.row_groups() {
            let group_rows = u64::try_from(group.num_rows()).map_err(|_| damaged("negative row count".to_owned()))?;
            rows = rows.saturating_add(group_rows);
            for column in group.columns() {
                let size = u64::try_from(column.uncompressed_size()).map_err(|_| damaged("negative column size".to_owned()))?;
                bytes = bytes.saturating_add(size);
                let codec = column.compression_codec();
                if !matches!(codec, CompressionCodec::UNCOMPRESSED | CompressionCodec::SNAPPY | CompressionCodec::ZSTD) {
                    let path = source.path().to_owned();
                    return Err(IngestError::Codec { path, table, codec: format!("{codec:?}").to_lowercase() });
                }
            }
        }
        let too_large = |what, claimed, cap| IngestError::TooLarge { path: source.path().to_owned(), table, what, claimed, cap };
        let cap = options.max_rows.min(SMALL_ROWS + source.len().saturating_mul(ROWS_PER_BYTE)).min(u64::from(u32::MAX) - 2);
        if rows > cap {
            return Err(too_large("rows", rows, cap));
        }
        if bytes > options.max_bytes {
            return Err(too_large("bytes", bytes, options.max_bytes));
        }
        if u64::try_from(metadata.file_metadata().num_rows()).ok() != Some(rows) {
            return Err(damaged("the row count of the file is not the sum of its row groups".to_owned()));
        }
        Ok(Self { source, table, metadata, rows: rows as usize })
    }

    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// Position and own name of the first of `names` that exists as a plain column.
    fn find(&self, names: &[&'static str]) -> Option<(usize, &'static str)> {
        let schema = self.metadata.file_metadata().schema_descr();
        names.iter().find_map(|name| {
            let at = schema.columns().iter().position(|c| c.path().parts() == [*name])?;
            Some((at, *name))
        })
    }

    pub(crate) fn has(&self, names: &[&'static str]) -> bool {
        self.find(names).is_some()
    }

    fn missing(&self, column: &'static str) -> IngestError {
        let schema = self.metadata.file_metadata().schema_descr();
        let mut found: Vec<String> = schema.columns().iter().take(40).map(|c| c.path().string()).collect();
        if schema.num_columns() > 40 {
            found.push(format!("and {} more", schema.num_columns() - 40));
        }
        IngestError::MissingColumn {
            path: self.source.path().to_owned(),
            table: self.table,
            column,
            found: if found.is_empty() { "none".to_owned() } else { found.join(", ") },
        }
    }

    fn require(&self, names: &[&'static str]) -> Result<(usize, &'static str), IngestError> {
        self.find(names).ok_or_else(|| self.missing(names.first().copied().unwrap_or_default()))
    }

    /// Kind of a column, or the error that says what was expected.
    fn kind(&self, at: usize, name: &str, expected: &'static str, accepts: fn(Kind) -> bool) -> Result<Kind, IngestError> {
        let column = self.metadata.file_metadata().schema_descr().column(at);
        let kind = Kind::of(&column);
        if accepts(kind) || kind == Kind::Nothing {
            return Ok(kind);
        }
        let found = match (column.logical_type_ref(), kind) {
            (_, Kind::Repeated) => "a list".to_owned(),
            (Some(logical), _) => format!("{} ({logical:?})", column.physical_type()),
            (None, _) => column.physical_type().to_string(),
        };
        Err(IngestError::MistypedColumn {
            path: self.source.path().to_owned(),
            table: self.table,
            column: name.to_owned(),
            found,
            expected,
        })
    }

    /// Numbers; NaN = null.
    pub(crate) fn floats(&self, names: &[&'static str]) -> Result<Vec<f64>, IngestError> {
        let (at, name) = self.require(names)?;
        let kind =
            self.kind(at, name, "a number (DOUBLE, FLOAT, INT64 or INT32)", |k| matches!(k, Kind::Float | Kind::Integer))?;
        if kind == Kind::Nothing {
            return Ok(vec![f64::NAN; self.rows]);
        }
        self.read(at, |reader, rows, levels, out: &mut Vec<f64>| match reader {
            ColumnReader::DoubleColumnReader(r) => pump(r, rows, levels, out, f64::NAN, |v| *v),
            ColumnReader::FloatColumnReader(r) => pump(r, rows, levels, out, f64::NAN, |v| f64::from(*v)),
            ColumnReader::Int64ColumnReader(r) => pump(r, rows, levels, out, f64::NAN, |v| *v as f64),
            ColumnReader::Int32ColumnReader(r) => pump(r, rows, levels, out, f64::NAN, |v| f64::from(*v)),
            _ => Err(wrong_reader()),
        })
    }

    /// As [`Self::floats`]; a missing column is all NaN.
    pub(crate) fn floats_or_nan(&self, names: &[&'static str]) -> Result<Vec<f64>, IngestError> {
        if self.has(names) { self.floats(names) } else { Ok(vec![f64::NAN; self.rows]) }
    }

    /// Whole numbers; `None` = null.
    pub(crate) fn integers(&self, names: &[&'static str]) -> Result<Vec<Option<i64>>, IngestError> {
        let (at, name) = self.require(names)?;
        if self.kind(at, name, "a whole number (INT64 or INT32)", |k| k == Kind::Integer)? == Kind::Nothing {
            return Ok(vec![None; self.rows]);
        }
        self.read(at, |reader, rows, levels, out: &mut Vec<Option<i64>>| match reader {
            ColumnReader::Int64ColumnReader(r) => pump(r, rows, levels, out, None, |v| Some(*v)),
            ColumnReader::Int32ColumnReader(r) => pump(r, rows, levels, out, None, |v| Some(i64::from(*v))),
            _ => Err(wrong_reader()),
        })
    }

    /// Yes/no flags: 0, 1, or 2 for null.
    pub(crate) fn flags(&self, names: &[&'static str]) -> Result<Vec<u8>, IngestError> {
        let (at, name) = self.require(names)?;
        let accepts = |k| matches!(k, Kind::Flag | Kind::Integer | Kind::Float);
        if self.kind(at, name, "BOOLEAN (or a number that is 0 or 1)", accepts)? == Kind::Nothing {
            return Ok(vec![2; self.rows]);
        }
        let number = |v: f64| match v {
            0.0 => 0,
            1.0 => 1,
            _ => 2,
        };
        self.read(at, |reader, rows, levels, out: &mut Vec<u8>| match reader {
            ColumnReader::BoolColumnReader(r) => pump(r, rows, levels, out, 2, |v| u8::from(*v)),
            ColumnReader::Int32ColumnReader(r) => pump(r, rows, levels, out, 2, |v| number(f64::from(*v))),
            ColumnReader::Int64ColumnReader(r) => pump(r, rows, levels, out, 2, |v| number(*v as f64)),
            ColumnReader::DoubleColumnReader(r) => pump(r, rows, levels, out, 2, |v| number(*v)),
            ColumnReader::FloatColumnReader(r) => pump(r, rows, levels, out, 2, |v| number(f64::from(*v))),
            _ => Err(wrong_reader()),
        })
    }

    /// Moments of exchange time in seconds; [`civil::NULL`] and [`civil::BAD`] included.
    pub(crate) fn times(&self, names: &[&'static str]) -> Result<Vec<Seconds>, IngestError> {
        let (at, name) = self.require(names)?;
        let kind = self.kind(at, name, "a timestamp, a date, or text as YYYY-MM-DD", |k| {
            matches!(k, Kind::Timestamp { .. } | Kind::Date | Kind::Int96 | Kind::Text)
        })?;
        match kind {
            Kind::Timestamp { per_second, utc } => {
                let shift = if utc { civil::EXCHANGE_OFFSET } else { 0 };
                self.read(at, |reader, rows, levels, out: &mut Vec<Seconds>| match reader {
                    ColumnReader::Int64ColumnReader(r) => pump(r, rows, levels, out, civil::NULL, |v| {
                        civil::checked(v.div_euclid(per_second).saturating_add(shift))
                    }),
                    _ => Err(wrong_reader()),
                })
            }
            Kind::Date => self.read(at, |reader, rows, levels, out: &mut Vec<Seconds>| match reader {
                ColumnReader::Int32ColumnReader(r) => {
                    pump(r, rows, levels, out, civil::NULL, |v| civil::checked(i64::from(*v) * civil::DAY))
                }
                _ => Err(wrong_reader()),
            }),
            Kind::Int96 => self.read(at, |reader, rows, levels, out: &mut Vec<Seconds>| match reader {
                ColumnReader::Int96ColumnReader(r) => pump(r, rows, levels, out, civil::NULL, |v| civil::checked(v.to_seconds())),
                _ => Err(wrong_reader()),
            }),
            Kind::Text => Ok(self.texts(names)?.iter().map(|text| text.as_deref().map_or(civil::NULL, civil::parse)).collect()),
            _ => Ok(vec![civil::NULL; self.rows]),
        }
    }

    /// Texts; `None` = null.
    pub(crate) fn texts(&self, names: &[&'static str]) -> Result<Vec<Option<String>>, IngestError> {
        let (at, name) = self.require(names)?;
        if self.kind(at, name, "text (BYTE_ARRAY, UTF-8)", |k| k == Kind::Text)? == Kind::Nothing {
            return Ok(vec![None; self.rows]);
        }
        let mut faulty = false;
        let rows = self.read(at, |reader, rows, levels, out: &mut Vec<Option<String>>| {
            let ColumnReader::ByteArrayColumnReader(r) = reader else { return Err(wrong_reader()) };
            pump(r, rows, levels, out, None, |v| {
                let text = std::str::from_utf8(v.data()).ok().map(ToOwned::to_owned);
                faulty |= text.is_none();
                text
            })
        })?;
        if !faulty {
            return Ok(rows);
        }
        // Only now is the row looked for: nulls and values share no index while they are decoded.
        let sound = self.read(at, |reader, rows, levels, out: &mut Vec<bool>| match reader {
            ColumnReader::ByteArrayColumnReader(r) => pump(r, rows, levels, out, true, |v| std::str::from_utf8(v.data()).is_ok()),
            _ => Err(wrong_reader()),
        })?;
        let row = sound.iter().position(|ok| !ok).unwrap_or_default();
        Err(IngestError::NotUtf8 { path: self.source.path().to_owned(), table: self.table, column: name.to_owned(), row })
    }

    /// As [`Self::texts`]; a missing column is all null.
    pub(crate) fn texts_or_null(&self, names: &[&'static str]) -> Result<Vec<Option<String>>, IngestError> {
        if self.has(names) { self.texts(names) } else { Ok(vec![None; self.rows]) }
    }

    /// Six-digit codes.
    pub(crate) fn codes(&self, names: &[&'static str]) -> Result<Codes, IngestError> {
        let (at, name) = self.require(names)?;
        let expected = "six-digit text such as `000001` (a number has lost its leading zeros)";
        let mut codes = Codes::default();
        if self.kind(at, name, expected, |k| k == Kind::Text)? == Kind::Nothing {
            codes.rows = vec![NULL_CODE; self.rows];
            return Ok(codes);
        }
        let bad = &mut codes.bad;
        codes.rows = self.read(at, |reader, rows, levels, out: &mut Vec<u32>| {
            let ColumnReader::ByteArrayColumnReader(r) = reader else { return Err(wrong_reader()) };
            pump(r, rows, levels, out, NULL_CODE, |v| {
                let bytes = v.data();
                if bytes.len() == 6 && bytes.iter().all(u8::is_ascii_digit) {
                    return bytes.iter().fold(0, |number, b| number * 10 + u32::from(b - b'0'));
                }
                if bytes.is_empty() {
                    return NULL_CODE;
                }
                let text: String = String::from_utf8_lossy(bytes).chars().take(24).collect();
                *bad.entry(text).or_insert(0) += 1;
                if bad.len() > BAD_TEXTS {
                    bad.pop_last();
                }
                BAD_CODE
            })
        })?;
        Ok(codes)
    }

    /// Runs `decode` over every row group of a column and checks that each gave as many rows as it claimed.
    fn read<O>(
        &self,
        at: usize,
        mut decode: impl FnMut(ColumnReader, usize, i16, &mut Vec<O>) -> Result<(), ParquetError>,
    ) -> Result<Vec<O>, IngestError> {
        let levels = self.metadata.file_metadata().schema_descr().column(at).max_def_level();
        let run = || -> Result<Vec<O>, ParquetError> {
            let file = SerializedFileReader::new(self.source.clone())?;
            let mut out = Vec::with_capacity(self.rows);
            for index in 0..file.num_row_groups() {
                let group = file.get_row_group(index)?;
                let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
                let want = out.len().saturating_add(rows);
                decode(group.get_column_reader(at)?, rows, levels, &mut out)?;
                if out.len() != want {
                    let got = rows.saturating_sub(want - out.len().min(want));
                    return Err(ParquetError::EOF(format!("row group {index} claims {rows} rows and holds {got}")));
                }
            }
            Ok(out)
        };
        guarded(run).map_err(|detail| IngestError::Damaged { path: self.source.path().to_owned(), table: self.table, detail })
    }
}

/// The decoder is not free of panics for hostile bytes; here they end as a text.
fn guarded<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the decoder gave up on its bytes".to_owned()),
    }
}

fn wrong_reader() -> ParquetError {
    ParquetError::General("the column changed its type between two reads".to_owned())
}

/// Appends `rows` decoded rows to `out`.
fn pump<T: DataType, O: Clone>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    max_level: i16,
    out: &mut Vec<O>,
    null: O,
    mut map: impl FnMut(&T::T) -> O,
) -> Result<(), ParquetError> {
    let mut values: Vec<T::T> = Vec::with_capacity(BATCH.min(rows));
    let mut levels: Vec<i16> = Vec::with_capacity(BATCH.min(rows));
    let mut left = rows;
    while left > 0 {
        values.clear();
        levels.clear();
        let (records, read, _) = reader.read_records(left.min(BATCH), Some(&mut levels), None, &mut values)?;
        if records == 0 {
            break;
        }
        if read == records {
            out.extend(values.iter().map(&mut map));
        } else {
            let mut next = values.iter();
            for level in &levels {
                out.push(if *level == max_level { next.next().map_or_else(|| null.clone(), &mut map) } else { null.clone() });
            }
        }
        left = left.saturating_sub(records);
    }
    Ok(())
}

/// What a column holds, as far as it is read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Integer,
    Flag,
    Text,
    Date,
    Timestamp {
        per_second: i64,
        utc: bool,
    },
    Int96,
    /// A column of only nulls (written by pandas for a column of `None`).
    Nothing,
    Repeated,
    Other,
}

impl Kind {
    fn of(column: &parquet::schema::types::ColumnDescriptor) -> Self {
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Self::Repeated;
        }
        let logical = column.logical_type_ref();
        if matches!(logical, Some(LogicalType::Unknown)) {
            return Self::Nothing;
        }
        match (column.physical_type(), logical, column.converted_type()) {
            (Physical::BOOLEAN, ..) => Self::Flag,
            (Physical::FLOAT | Physical::DOUBLE, ..) => Self::Float,
            (Physical::INT96, ..) => Self::Int96,
            (Physical::BYTE_ARRAY, Some(LogicalType::String), _) => Self::Text,
            (Physical::BYTE_ARRAY, None, ConvertedType::UTF8 | ConvertedType::NONE) => Self::Text,
            (Physical::INT32, Some(LogicalType::Date), _) | (Physical::INT32, None, ConvertedType::DATE) => Self::Date,
            (Physical::INT64, Some(LogicalType::Timestamp(t)), _) => {
                Self::Timestamp { per_second: per_second(&t.unit), utc: t.is_adjusted_to_u_t_c }
            }
            // The old annotations say nothing of the zone; writers of that time used them for wall-clock values.
            (Physical::INT64, None, ConvertedType::TIMESTAMP_MILLIS) => Self::Timestamp { per_second: 1_000, utc: false },
            (Physical::INT64, None, ConvertedType::TIMESTAMP_MICROS) => Self::Timestamp { per_second: 1_000_000, utc: false },
            (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(_)), _) => Self::Integer,
            (
                Physical::INT32 | Physical::INT64,
                None,
                ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64
                | ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64,
            ) => Self::Integer,
            _ => Self::Other,
        }
    }
}

const fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    }
}
