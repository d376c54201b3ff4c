//! Writes small tables in the layout, right or wrong on purpose.

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use traderharness_ingest::{Dataset, DatasetReport, IngestError, LoadOptions, check, load, quiet};
use traderharness_market::{Day, Minute};

/// A column of a test table.
#[derive(Debug, Clone)]
pub(crate) enum Cells {
    Text(Vec<Option<String>>),
    Raw(Vec<Vec<u8>>),
    Float(Vec<Option<f64>>),
    Integer(Vec<Option<i64>>),
    /// Wall-clock seconds, written as microseconds.
    Time(Vec<Option<i64>>),
    Flag(Vec<Option<bool>>),
}

impl Cells {
    fn pick(&self, rows: &[usize]) -> Self {
        fn of<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().map(|r| values[*r].clone()).collect()
        }
        match self {
            Self::Text(v) => Self::Text(of(v, rows)),
            Self::Raw(v) => Self::Raw(of(v, rows)),
            Self::Float(v) => Self::Float(of(v, rows)),
            Self::Integer(v) => Self::Integer(of(v, rows)),
            Self::Time(v) => Self::Time(of(v, rows)),
            Self::Flag(v) => Self::Flag(of(v, rows)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(v) => v.len(),
            Self::Raw(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Integer(v) | Self::Time(v) => v.len(),
            Self::Flag(v) => v.len(),
        }
    }
}

/// A table to write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sheet {
    pub(crate) columns: Vec<(String, Cells)>,
}

impl Sheet {
    pub(crate) fn text(mut self, name: &str, values: &[&str]) -> Self {
        // `-` stands for null.
        let cells = values.iter().map(|v| (*v != "-").then(|| (*v).to_owned())).collect();
        self.columns.push((name.to_owned(), Cells::Text(cells)));
        self
    }

    pub(crate) fn floats(mut self, name: &str, values: &[f64]) -> Self {
        // NaN stands for null.
        let cells = values.iter().map(|v| (!v.is_nan()).then_some(*v)).collect();
        self.columns.push((name.to_owned(), Cells::Float(cells)));
        self
    }

    pub(crate) fn integers(mut self, name: &str, values: &[i64]) -> Self {
        self.columns.push((name.to_owned(), Cells::Integer(values.iter().map(|v| Some(*v)).collect())));
        self
    }

    /// Texts such as `2024-06-26` or `2024-06-26 09:35`; `-` is null.
    pub(crate) fn times(mut self, name: &str, values: &[&str]) -> Self {
        self.columns.push((name.to_owned(), Cells::Time(values.iter().map(|v| seconds(v)).collect())));
        self
    }

    pub(crate) fn with(mut self, name: &str, cells: Cells) -> Self {
        self.columns.retain(|(n, _)| n != name);
        self.columns.push((name.to_owned(), cells));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.columns.retain(|(n, _)| n != name);
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, c)| c.len())
    }

    pub(crate) fn pick(&self, rows: &[usize]) -> Self {
        Self { columns: self.columns.iter().map(|(n, c)| (n.clone(), c.pick(rows))).collect() }
    }

    pub(crate) fn write(&self, path: &Path) {
        self.write_as(path, Compression::ZSTD(ZstdLevel::try_new(1).unwrap()), self.rows().max(1));
    }

    /// Writes with a codec and rows per row group.
    pub(crate) fn write_as(&self, path: &Path, codec: Compression, group: usize) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let fields = self
            .columns
            .iter()
            .map(|(name, cells)| {
                let (physical, logical) = match cells {
                    Cells::Text(_) | Cells::Raw(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                    Cells::Float(_) => (Physical::DOUBLE, None),
                    Cells::Integer(_) => (Physical::INT64, None),
                    Cells::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::MICROS))),
                    Cells::Flag(_) => (Physical::BOOLEAN, None),
                };
                let field = Type::primitive_type_builder(name, physical)
                    .with_logical_type(logical)
                    .with_repetition(Repetition::OPTIONAL)
                    .build()
                    .unwrap();
                Arc::new(field)
            })
            .collect();
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build().unwrap());
        let properties = Arc::new(WriterProperties::builder().set_compression(codec).build());
        let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
        let all: Vec<usize> = (0..self.rows()).collect();
        for rows in all.chunks(group) {
            let mut out = writer.next_row_group().unwrap();
            for (_, cells) in &self.columns {
                let mut column = out.next_column().unwrap().unwrap();
                macro_rules! put {
                    ($kind:ty, $values:expr) => {{
                        let values: Vec<Option<_>> = $values;
                        let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
                        let present: Vec<_> = values.into_iter().flatten().collect();
                        column.typed::<$kind>().write_batch(&present, Some(&levels), None).unwrap();
                    }};
                }
                match cells.pick(rows) {
                    Cells::Text(v) => {
                        put!(ByteArrayType, v.into_iter().map(|t| t.map(|t| ByteArray::from(t.as_str()))).collect::<Vec<_>>());
                    }
                    Cells::Raw(v) => put!(ByteArrayType, v.into_iter().map(|b| Some(ByteArray::from(b))).collect::<Vec<_>>()),
                    Cells::Float(v) => put!(DoubleType, v),
                    Cells::Integer(v) => put!(Int64Type, v),
                    Cells::Time(v) => put!(Int64Type, v.into_iter().map(|t| t.map(|t| t * 1_000_000)).collect::<Vec<_>>()),
                    Cells::Flag(v) => put!(BoolType, v),
                }
                column.close().unwrap();
            }
            out.close().unwrap();
        }
        writer.close().unwrap();
    }
}

fn seconds(text: &str) -> Option<i64> {
    if text == "-" {
        return None;
    }
    let day = Day::parse(&text[..10]).unwrap();
    let clock = text.get(11..16).map_or(Minute(0), |t| Minute::at(t[..2].parse().unwrap(), t[3..].parse().unwrap()));
    Some(day.at(clock).0)
}

/// Three days of two stocks, all in order.
pub(crate) fn daily() -> Sheet {
    Sheet::default()
        .text("stock_code", &["000001", "000001", "000001", "600000", "600000", "600000"])
        .times("date", &["2024-06-24", "2024-06-25", "2024-06-26", "2024-06-24", "2024-06-25", "2024-06-26"])
        .floats("open", &[10.0, 10.1, 10.2, 20.0, 20.1, 20.2])
        .floats("high", &[10.5, 10.6, 10.7, 20.5, 20.6, 20.7])
        .floats("low", &[9.5, 9.6, 9.7, 19.5, 19.6, 19.7])
        .floats("close", &[10.1, 10.2, 10.3, 20.1, 20.2, 20.3])
        .integers("volume", &[1_000, 1_100, 1_200, 2_000, 2_100, 2_200])
        .floats("amount", &[1e4, 1.1e4, 1.2e4, 4e4, 4.1e4, 4.2e4])
}

/// Two 5-minute bars of 000001 on 2024-06-26.
pub(crate) fn minutes() -> Sheet {
    Sheet::default()
        .text("stock_code", &["000001", "000001"])
        .times("datetime", &["2024-06-26 09:35", "2024-06-26 15:00"])
        .floats("open", &[10.2, 10.3])
        .floats("high", &[10.7, 10.4])
        .floats("low", &[10.0, 9.7])
        .floats("close", &[10.3, 10.3])
        .integers("volume", &[700, 500])
        .floats("amount", &[7e3, 5e3])
}

/// A dataset directory under construction.
pub(crate) struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A directory that has daily bars.
    pub(crate) fn with_daily() -> Self {
        Self::new().put("daily.parquet", &daily())
    }

    pub(crate) fn put(self, name: &str, sheet: &Sheet) -> Self {
        sheet.write(&self.path(name));
        self
    }

    pub(crate) fn text(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn load(&self) -> Result<Dataset, IngestError> {
        load(&self.root(), &LoadOptions::default(), &quiet)
    }

    pub(crate) fn loaded(&self) -> Dataset {
        self.load().unwrap()
    }

    pub(crate) fn check(&self) -> DatasetReport {
        check(&self.root(), &LoadOptions::default(), &quiet)
    }

    /// The error of a load, with the temporary path replaced.
    pub(crate) fn error(&self) -> String {
        let error = self.load().expect_err("the dataset must be refused");
        format!("{error}\nhint: {}", error.hint()).replace(&self.root().display().to_string(), "DIR")
    }
}
