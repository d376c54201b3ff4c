//! Writes the tables of the layout as Parquet: typed columns, one row group at a time, zstd.
//!
//! Timestamps are wall-clock microseconds without a zone, as the recorded sets have them.

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// Values of one column of one row group.
#[derive(Debug, Clone)]
pub(crate) enum Out {
    /// Texts; `None` = null.
    Text(Vec<Option<Bytes>>),
    /// Numbers; NaN = null.
    Float(Vec<f64>),
    Integer(Vec<i64>),
    /// Wall-clock seconds.
    Time(Vec<i64>),
    Flag(Vec<bool>),
}

/// Kind of a column in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutKind {
    Text,
    Float,
    Integer,
    Time,
    Flag,
}

/// How every file of ours is written: zstd, and nothing in it that another machine or version would write otherwise.
pub(crate) fn properties() -> Result<WriterProperties, ParquetError> {
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_created_by("traderharness".to_owned())
        .build())
}

pub(crate) type Columns = &'static [(&'static str, OutKind)];

pub(crate) struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Columns,
}

impl<W: Write + Send> TableWriter<W> {
    pub(crate) fn new(out: W, columns: Columns) -> Result<Self, ParquetError> {
        let mut fields = Vec::with_capacity(columns.len());
        for (name, kind) in columns {
            let (physical, logical, repetition) = match kind {
                OutKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
                OutKind::Float => (Physical::DOUBLE, None, Repetition::OPTIONAL),
                OutKind::Integer => (Physical::INT64, None, Repetition::REQUIRED),
                OutKind::Time => (Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::MICROS)), Repetition::REQUIRED),
                OutKind::Flag => (Physical::BOOLEAN, None, Repetition::REQUIRED),
            };
            let field =
                Type::primitive_type_builder(name, physical).with_logical_type(logical).with_repetition(repetition).build()?;
            fields.push(Arc::new(field));
        }
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
        Ok(Self { writer: SerializedFileWriter::new(out, schema, Arc::new(properties()?))?, columns })
    }

    /// Writes one row group; the columns come in the order of the schema.
    pub(crate) fn write(&mut self, columns: &[Out]) -> Result<(), ParquetError> {
        if columns.len() != self.columns.len() {
            return Err(ParquetError::General("a row group has another number of columns than the table".to_owned()));
        }
        let mut group = self.writer.next_row_group()?;
        for column in columns {
            let Some(mut writer) = group.next_column()? else { break };
            match column {
                Out::Text(values) => {
                    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
                    let present: Vec<ByteArray> = values.iter().flatten().map(|b| ByteArray::from(b.clone())).collect();
                    writer.typed::<ByteArrayType>().write_batch(&present, Some(&levels), None)?;
                }
                Out::Float(values) => {
                    let levels: Vec<i16> = values.iter().map(|v| i16::from(!v.is_nan())).collect();
                    if levels.contains(&0) {
                        let present: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
                        writer.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
                    } else {
                        writer.typed::<DoubleType>().write_batch(values, Some(&levels), None)?;
                    }
                }
                Out::Integer(values) => {
                    writer.typed::<Int64Type>().write_batch(values, None, None)?;
                }
                Out::Time(values) => {
                    let micros: Vec<i64> = values.iter().map(|s| s * 1_000_000).collect();
                    writer.typed::<Int64Type>().write_batch(&micros, None, None)?;
                }
                Out::Flag(values) => {
                    writer.typed::<BoolType>().write_batch(values, None, None)?;
                }
            }
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer and gives the sink back.
    pub(crate) fn finish(self) -> Result<W, ParquetError> {
        self.writer.into_inner()
    }
}
