//! [`RowWriter`]: rows of declared columns as a Parquet file. Same rows, same bytes: must hold no clock, no machine and no path.

use super::error::RowsError;
use crate::table_out::properties;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group.
const GROUP_ROWS: usize = 16_384;
/// Bytes of text that are held before a row group is written.
const GROUP_BYTES: usize = 16 << 20;

/// What a column holds. Any value may be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Texts.
    Text,
    /// Integers of 64 bits.
    Integer,
    /// Floats of 64 bits.
    Float,
    /// Yes or no.
    Flag,
    /// Any JSON, as compact text.
    Json,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name, which is the key in a row.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, kind: ColumnKind) -> Self {
        Self { name: name.into(), kind }
    }
}

#[derive(Debug)]
enum Held {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Float(Vec<f64>),
    Flag(Vec<bool>),
}

/// Writes rows; memory holds one row group.
pub struct RowWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    held: Vec<(Held, Vec<i16>)>,
    rows: usize,
    bytes: usize,
    written: u64,
}

impl<W: Write + Send> std::fmt::Debug for RowWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowWriter").field("columns", &self.columns).field("written", &self.written).finish_non_exhaustive()
    }
}

fn failed(error: &ParquetError) -> RowsError {
    RowsError::Columns { detail: error.to_string() }
}

impl<W: Write + Send> RowWriter<W> {
    /// Starts a file. Compressed with zstd.
    ///
    /// # Errors
    /// [`RowsError::Columns`]: no column, one without a name, or a name twice.
    pub fn new(out: W, columns: &[Column]) -> Result<Self, RowsError> {
        let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        if columns.is_empty() || names.len() != columns.len() || names.contains("") {
            return Err(RowsError::Columns { detail: "each needs a name of its own".to_owned() });
        }
        let open = || -> Result<SerializedFileWriter<W>, ParquetError> {
            let mut fields = Vec::with_capacity(columns.len());
            for column in columns {
                let (physical, logical) = match column.kind {
                    ColumnKind::Text | ColumnKind::Json => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                    ColumnKind::Integer => (Physical::INT64, None),
                    ColumnKind::Float => (Physical::DOUBLE, None),
                    ColumnKind::Flag => (Physical::BOOLEAN, None),
                };
                let field = Type::primitive_type_builder(&column.name, physical)
                    .with_logical_type(logical)
                    .with_repetition(Repetition::OPTIONAL)
                    .build()?;
                fields.push(Arc::new(field));
            }
            let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
            SerializedFileWriter::new(out, schema, Arc::new(properties()?))
        };
        let writer = open().map_err(|e| failed(&e))?;
        let mut writer = Self { writer, columns: columns.to_vec(), held: vec![], rows: 0, bytes: 0, written: 0 };
        writer.empty();
        Ok(writer)
    }

    fn empty(&mut self) {
        let held = self.columns.iter().map(|column| {
            let held = match column.kind {
                ColumnKind::Text | ColumnKind::Json => Held::Text(vec![]),
                ColumnKind::Integer => Held::Integer(vec![]),
                ColumnKind::Float => Held::Float(vec![]),
                ColumnKind::Flag => Held::Flag(vec![]),
            };
            (held, vec![])
        });
        self.held = held.collect();
        (self.rows, self.bytes) = (0, 0);
    }

    /// Adds a row: an object. A column that it does not have is null.
    ///
    /// # Errors
    /// [`RowsError::Mistyped`]: a value that its column cannot hold, or a key that is no column; the row is not added.
    pub fn push(&mut self, row: &Value) -> Result<(), RowsError> {
        let number = self.written + self.rows as u64;
        let mistyped = |column: &str, expected| RowsError::Mistyped { row: number, column: column.to_owned(), expected };
        let fields = row.as_object().ok_or_else(|| mistyped("", "an object"))?;
        if let Some(key) = fields.keys().find(|key| self.columns.iter().all(|column| column.name != **key)) {
            return Err(mistyped(key, "left out: it is no column"));
        }
        for column in &self.columns {
            let expected = match (column.kind, fields.get(&column.name)) {
                (_, None | Some(Value::Null)) | (ColumnKind::Json, _) => continue,
                (ColumnKind::Text, Some(Value::String(_))) | (ColumnKind::Flag, Some(Value::Bool(_))) => continue,
                (ColumnKind::Float, Some(value)) if value.is_number() => continue,
                (ColumnKind::Integer, Some(value)) if value.is_i64() => continue,
                (ColumnKind::Text, _) => "a text",
                (ColumnKind::Flag, _) => "true or false",
                (ColumnKind::Float, _) => "a number",
                (ColumnKind::Integer, _) => "an integer of 64 bits",
            };
            return Err(mistyped(&column.name, expected));
        }
        for (column, (held, levels)) in self.columns.iter().zip(&mut self.held) {
            let Some(value) = fields.get(&column.name).filter(|value| !value.is_null()) else {
                levels.push(0);
                continue;
            };
            levels.push(1);
            match held {
                Held::Text(texts) => {
                    let text = match value {
                        Value::String(text) if column.kind == ColumnKind::Text => text.clone(),
                        value => value.to_string(),
                    };
                    self.bytes += text.len();
                    texts.push(ByteArray::from(text.into_bytes()));
                }
                Held::Integer(values) => values.extend(value.as_i64()),
                Held::Float(values) => values.extend(value.as_f64()),
                Held::Flag(values) => values.extend(value.as_bool()),
            }
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES { self.group() } else { Ok(()) }
    }

    fn group(&mut self) -> Result<(), RowsError> {
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.writer.next_row_group()?;
            for (held, levels) in &self.held {
                let Some(mut column) = group.next_column()? else { break };
                match held {
                    Held::Text(values) => column.typed::<ByteArrayType>().write_batch(values, Some(levels), None)?,
                    Held::Integer(values) => column.typed::<Int64Type>().write_batch(values, Some(levels), None)?,
                    Held::Float(values) => column.typed::<DoubleType>().write_batch(values, Some(levels), None)?,
                    Held::Flag(values) => column.typed::<BoolType>().write_batch(values, Some(levels), None)?,
                };
                column.close()?;
            }
            group.close().map(drop)
        };
        write().map_err(|e| failed(&e))?;
        self.written += self.rows as u64;
        self.empty();
        Ok(())
    }

    /// Rows so far.
    pub const fn rows(&self) -> u64 {
        self.written + self.rows as u64
    }

    /// Writes the footer and gives the sink back.
    ///
    /// # Errors
    /// [`RowsError::Columns`] when the sink refuses.
    pub fn finish(mut self) -> Result<W, RowsError> {
        if self.rows > 0 {
            self.group()?;
        }
        self.writer.into_inner().map_err(|e| failed(&e))
    }
}
