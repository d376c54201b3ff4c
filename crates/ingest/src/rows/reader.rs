//! [`Rows`]: the rows of a Parquet file, one after another. Must check every claim of the file before it decompresses a page, and must
//! say which limit a file met.

use super::RowLimits;
use super::claims::{column_claims, footer};
use super::error::RowsError;
use super::leaf::Leaf;
use super::record::{Stop, Write};
use super::shape::{self, MOST_COLUMNS, Node};
use super::stream::{Grown, Pages};
use crate::source::Source;
use bytes::Bytes;
use parquet::column::reader::get_column_reader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::Length;
use serde_json::{Value, json};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The rows of a Parquet file.
pub struct Rows {
    source: Source,
    limits: RowLimits,
    metadata: ParquetMetaData,
    tree: Node,
    /// Next row group.
    group: usize,
    leaves: Vec<Leaf>,
    /// Rows left in the group that is open.
    left: u64,
    row: u64,
    rows: u64,
    written: u64,
    failed: bool,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("path", &self.source.path()).field("row", &self.row).field("rows", &self.rows).finish()
    }
}

impl Rows {
    /// Opens a file and checks its footer and the headers of all its pages.
    ///
    /// # Errors
    /// [`RowsError`]; nothing was decompressed then.
    pub fn open(path: impl AsRef<Path>, limits: RowLimits) -> Result<Self, RowsError> {
        let path = path.as_ref();
        Self::of(Source::file(path).map_err(RowsError::io("read", path))?, limits)
    }

    /// As [`Rows::open`], for a file in memory; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`Rows::open`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>, limits: RowLimits) -> Result<Self, RowsError> {
        Self::of(Source::memory(name, Bytes::from(bytes)), limits)
    }

    fn of(source: Source, limits: RowLimits) -> Result<Self, RowsError> {
        let path = source.path().to_owned();
        footer(&source)?;
        let metadata = guarded(&path, || ParquetMetaDataReader::new().parse_and_finish(&source))?;
        let schema = metadata.file_metadata().schema_descr();
        if schema.num_columns() > MOST_COLUMNS {
            return Err(RowsError::too_large(&path, "columns", schema.num_columns() as u64, MOST_COLUMNS as u64));
        }
        let tree = shape::tree(schema.root_schema(), &path)?;
        let mut rows = 0_u64;
        for (index, group) in metadata.row_groups().iter().enumerate() {
            let here = u64::try_from(group.num_rows()).map_err(|_| RowsError::damaged(&path, "a negative row count"))?;
            rows = rows.saturating_add(here);
            let cap = limits.most_rows(source.len());
            if rows > cap {
                return Err(RowsError::too_large(&path, "rows", rows, cap));
            }
            if group.num_columns() != schema.num_columns() {
                return Err(RowsError::damaged(&path, format!("row group {index} has another number of columns")));
            }
            let mut open = 0_u64;
            for column in group.columns() {
                open = open.saturating_add(column_claims(&source, column, here, &limits)?);
            }
            if open > limits.open_bytes {
                return Err(RowsError::too_large(&path, "bytes in the pages of one row group", open, limits.open_bytes));
            }
        }
        if u64::try_from(metadata.file_metadata().num_rows()).ok() != Some(rows) {
            return Err(RowsError::damaged(&path, "its row count is not the sum of its row groups"));
        }
        Ok(Self { source, limits, metadata, tree, group: 0, leaves: vec![], left: 0, row: 0, rows, written: 0, failed: false })
    }

    /// Number of rows, as the file says; it was held against its size.
    pub const fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there is no row.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Names of the columns, in order.
    pub fn columns(&self) -> Vec<&str> {
        self.metadata.file_metadata().schema().get_fields().iter().map(|field| field.name()).collect()
    }

    /// What the file says beside its rows: who wrote it, and the texts that writers leave in it.
    pub fn described(&self) -> Value {
        let file = self.metadata.file_metadata();
        let texts = file.key_value_metadata().into_iter().flatten().map(|pair| json!({"key": pair.key, "value": pair.value}));
        json!({ "created_by": file.created_by(), "metadata": texts.collect::<Vec<_>>() })
    }

    /// Appends the next row to `out` as one JSON object; false after the last one.
    ///
    /// # Errors
    /// [`RowsError`]; no row comes after one.
    pub fn next_json(&mut self, out: &mut Vec<u8>) -> Result<bool, RowsError> {
        if self.failed {
            return Err(RowsError::damaged(self.source.path(), "reading has stopped before"));
        }
        let start = out.len();
        let done = self.step(out);
        self.failed = done.is_err();
        if self.failed {
            out.truncate(start);
        }
        done
    }

    /// The next row; `None` after the last one.
    ///
    /// # Errors
    /// As [`Rows::next_json`].
    pub fn next_row(&mut self) -> Result<Option<Value>, RowsError> {
        let mut out = vec![];
        if !self.next_json(&mut out)? {
            return Ok(None);
        }
        serde_json::from_slice(&out).map(Some).map_err(|e| RowsError::damaged(self.source.path(), e))
    }

    /// The rows as JSON Lines. A fault comes as an [`std::io::Error`] that holds the [`RowsError`].
    pub fn into_read(self) -> impl Read {
        Lines { rows: self, held: vec![], at: 0, fault: None }
    }

    fn step(&mut self, out: &mut Vec<u8>) -> Result<bool, RowsError> {
        while self.left == 0 {
            self.close()?;
            if self.group >= self.metadata.num_row_groups() {
                return Ok(false);
            }
            self.begin()?;
        }
        let (start, cap) = (out.len(), self.limits.row_bytes);
        let mut write =
            Write { leaves: &mut self.leaves, out, most: start.saturating_add(usize::try_from(cap).unwrap_or(usize::MAX)) };
        let tree = &self.tree;
        let path = self.source.path();
        guarded(path, || Ok(write.row(tree)))?.map_err(|stop| match stop {
            Stop::Parquet(error) => RowsError::of(path, error),
            Stop::Long => RowsError::too_large(path, "bytes of JSON in one row", cap, cap),
            Stop::Levels(leaf) => {
                let column = self.metadata.file_metadata().schema_descr().column(leaf).path().string();
                RowsError::damaged(path, format!("column `{column}` does not have the values of row {}", self.row + 1))
            }
        })?;
        self.left -= 1;
        self.row += 1;
        self.written += (out.len() - start) as u64;
        let cap = self.limits.most_bytes(self.source.len());
        if self.written > cap {
            return Err(RowsError::too_large(self.source.path(), "bytes of JSON", self.written, cap));
        }
        Ok(true)
    }

    fn begin(&mut self) -> Result<(), RowsError> {
        let group = self.metadata.row_group(self.group);
        let (source, limits, grown) = (&self.source, self.limits, Grown::default());
        self.leaves = guarded(source.path(), || {
            let columns = group.columns().iter().map(|column| {
                let pages = Pages::new(source.clone(), column.clone(), limits, grown.clone())?;
                let descriptor = column.column_descr_ptr();
                Ok(Leaf::new(&descriptor, get_column_reader(descriptor.clone(), Box::new(pages))))
            });
            columns.collect()
        })?;
        self.left = u64::try_from(group.num_rows()).unwrap_or(0);
        self.group += 1;
        Ok(())
    }

    /// All columns of a row group end together.
    fn close(&mut self) -> Result<(), RowsError> {
        let (path, leaves) = (self.source.path(), &mut self.leaves);
        let more = guarded(path, || leaves.iter_mut().try_fold(false, |more, leaf| Ok(more || leaf.level()?.is_some())))?;
        if more { Err(RowsError::damaged(path, "a column has more values than its row group has rows")) } else { Ok(()) }
    }
}

impl Iterator for Rows {
    type Item = Result<Value, RowsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed { None } else { self.next_row().transpose() }
    }
}

/// The rows as JSON Lines.
struct Lines {
    rows: Rows,
    held: Vec<u8>,
    at: usize,
    /// Met while rows before it were held.
    fault: Option<RowsError>,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at >= self.held.len() {
            self.held.clear();
            self.at = 0;
            // Many small rows at once.
            while self.held.len() < buffer.len() && self.fault.is_none() {
                match self.rows.next_json(&mut self.held) {
                    Ok(true) => self.held.push(b'\n'),
                    Ok(false) => break,
                    // What was read before it is given first.
                    Err(error) => self.fault = Some(error),
                }
            }
        }
        let rest = self.held.get(self.at..).unwrap_or_default();
        let step = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..step), rest.get(..step)) {
            to.copy_from_slice(from);
        }
        self.at += step;
        match self.fault.take() {
            Some(fault) if step == 0 => Err(std::io::Error::other(fault)),
            fault => {
                self.fault = fault;
                Ok(step)
            }
        }
    }
}

/// The decoder is not free of panics for hostile bytes; here they end as a fault of the file.
fn guarded<T>(path: &Path, run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, RowsError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done.map_err(|error| RowsError::of(path, error)),
        Err(_) => Err(RowsError::damaged(path, "the decoder gave up on its bytes")),
    }
}
