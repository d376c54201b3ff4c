//! [`Rows`]: the rows of a Parquet file, one after another. Must check every claim of the file before it decompresses a page, and must
//! say which limit a file met.

use super::error::RowsError;
use super::leaf::{Leaf, quoted};
use super::pages::{self, BadHeader, PageClaim};
use super::shape::{self, Node};
use super::{RowLimits, shape::MOST_COLUMNS};
use crate::source::Source;
use bytes::Bytes;
use parquet::basic::{CompressionCodec, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use serde_json::{Value, json};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Longest footer.
const FOOTER_BYTES: u64 = 32 << 20;
/// Longest header of a page: statistics in it may hold whole texts.
const HEADER_BYTES: u64 = 4 << 20;
/// Most entries of a dictionary.
const DICTIONARY: i64 = 4 << 20;
/// Values of a repeated column in one row group that take less than half a byte each.
const SPARSE: u64 = 16 << 20;

/// The rows of a Parquet file.
pub struct Rows {
    source: Source,
    limits: RowLimits,
    metadata: Arc<ParquetMetaData>,
    reader: SerializedFileReader<Source>,
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
        let reader = guarded(|| SerializedFileReader::new(source.clone())).map_err(|e| RowsError::damaged(&path, e))?;
        let metadata = Arc::new(reader.metadata().clone());
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
        Ok(Self {
            source,
            limits,
            metadata,
            reader,
            tree,
            group: 0,
            leaves: vec![],
            left: 0,
            row: 0,
            rows,
            written: 0,
            failed: false,
        })
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
        let fault = match catch_unwind(AssertUnwindSafe(|| write.row(tree))) {
            Ok(Ok(())) => None,
            Ok(Err(Stop::Parquet(error))) => Some(RowsError::damaged(self.source.path(), error)),
            Ok(Err(Stop::Long)) => Some(RowsError::too_large(self.source.path(), "bytes of JSON in one row", cap, cap)),
            Ok(Err(Stop::Levels(leaf))) => {
                let column = self.metadata.file_metadata().schema_descr().column(leaf).path().string();
                let detail = format!("column `{column}` does not have the values of row {}", self.row + 1);
                Some(RowsError::damaged(self.source.path(), detail))
            }
            Err(_) => Some(RowsError::damaged(self.source.path(), "the decoder gave up on its bytes")),
        };
        if let Some(fault) = fault {
            return Err(fault);
        }
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
        let damaged = |e: String| RowsError::damaged(self.source.path(), e);
        let schema = self.metadata.file_metadata().schema_descr();
        let (index, reader) = (self.group, &self.reader);
        let leaves = guarded(|| {
            let group = reader.get_row_group(index)?;
            (0..schema.num_columns()).map(|at| Ok(Leaf::new(&schema.column(at), group.get_column_reader(at)?))).collect()
        });
        self.leaves = leaves.map_err(damaged)?;
        self.left = u64::try_from(self.metadata.row_group(index).num_rows()).unwrap_or(0);
        self.group += 1;
        Ok(())
    }

    /// All columns of a row group end together.
    fn close(&mut self) -> Result<(), RowsError> {
        let leaves = &mut self.leaves;
        let more = guarded(|| leaves.iter_mut().try_fold(false, |more, leaf| Ok(more || leaf.level()?.is_some())));
        match more {
            Ok(false) => Ok(()),
            Ok(true) => Err(RowsError::damaged(self.source.path(), "a column has more values than its row group has rows")),
            Err(detail) => Err(RowsError::damaged(self.source.path(), detail)),
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Value, RowsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed { None } else { self.next_row().transpose() }
    }
}

/// Why a row cannot be put together.
enum Stop {
    Parquet(ParquetError),
    /// A column has too few values, or its levels contradict those of the others.
    Levels(usize),
    Long,
}

impl From<ParquetError> for Stop {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

/// Puts one row together.
struct Write<'a> {
    leaves: &'a mut [Leaf],
    out: &'a mut Vec<u8>,
    most: usize,
}

impl Write<'_> {
    fn row(&mut self, tree: &Node) -> Result<(), Stop> {
        self.node(tree)?;
        for (at, leaf) in self.leaves.iter_mut().enumerate() {
            if leaf.repeats()? != 0 {
                return Err(Stop::Levels(at));
            }
        }
        Ok(())
    }

    fn leaf(&mut self, at: usize) -> Result<&mut Leaf, Stop> {
        self.leaves.get_mut(at).ok_or(Stop::Levels(0))
    }

    fn node(&mut self, node: &Node) -> Result<(), Stop> {
        if self.out.len() > self.most {
            return Err(Stop::Long);
        }
        match node {
            Node::Leaf(at) => {
                let leaf = self.leaves.get_mut(*at).ok_or(Stop::Levels(0))?;
                if !leaf.write(self.out)? {
                    return Err(Stop::Levels(*at));
                }
            }
            Node::Optional { level, leaf, inner } => match self.leaf(*leaf)?.level()? {
                None => return Err(Stop::Levels(*leaf)),
                Some(found) if found >= *level => self.node(inner)?,
                Some(_) => {
                    self.out.extend_from_slice(b"null");
                    self.pass(inner)?;
                }
            },
            Node::List { level, repeats, leaf, inner } => match self.leaf(*leaf)?.level()? {
                None => return Err(Stop::Levels(*leaf)),
                Some(found) if found >= *level => {
                    self.out.push(b'[');
                    loop {
                        self.node(inner)?;
                        if self.leaf(*leaf)?.repeats()? < *repeats {
                            break;
                        }
                        self.out.push(b',');
                    }
                    self.out.push(b']');
                }
                Some(_) => {
                    self.out.extend_from_slice(b"[]");
                    self.pass(inner)?;
                }
            },
            Node::Object(fields) => {
                self.out.push(b'{');
                for (index, (name, field)) in fields.iter().enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    quoted(name, self.out);
                    self.out.push(b':');
                    self.node(field)?;
                }
                self.out.push(b'}');
            }
        }
        if self.out.len() > self.most { Err(Stop::Long) } else { Ok(()) }
    }

    /// Goes past the one level that each column under a field that is not there has.
    fn pass(&mut self, node: &Node) -> Result<(), Stop> {
        match node {
            Node::Leaf(at) => Ok(self.leaf(*at)?.pass()?),
            Node::Optional { inner, .. } | Node::List { inner, .. } => self.pass(inner),
            Node::Object(fields) => fields.iter().try_for_each(|(_, field)| self.pass(field)),
        }
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

/// The length of the footer, before it is read.
fn footer(source: &Source) -> Result<(), RowsError> {
    let path = source.path();
    let len = source.len();
    let Some(at) = len.checked_sub(8).filter(|_| len >= 12) else {
        return Err(RowsError::damaged(path, "too short for a Parquet file"));
    };
    let tail = source.get_bytes(at, 8).map_err(|e| RowsError::damaged(path, e))?;
    let Some((size, b"PAR1")) = tail.split_first_chunk::<4>() else {
        return Err(RowsError::damaged(path, "it does not end as a Parquet file"));
    };
    let size = u64::from(u32::from_le_bytes(*size));
    if size > at {
        return Err(RowsError::damaged(path, "its footer is longer than the file"));
    }
    if size > FOOTER_BYTES {
        return Err(RowsError::too_large(path, "bytes of footer", size, FOOTER_BYTES));
    }
    Ok(())
}

/// Checks what the pages of a column claim; gives the bytes that are held at a time to read it.
fn column_claims(source: &Source, column: &ColumnChunkMetaData, rows: u64, limits: &RowLimits) -> Result<u64, RowsError> {
    let path = source.path();
    let name = column.column_path().string();
    let damaged = |detail: &str| RowsError::damaged(path, format!("column `{name}`: {detail}"));
    let not_read = |what, found: String| RowsError::NotRead { path: path.to_owned(), column: name.clone(), what, found };
    let codec = column.compression_codec();
    if !matches!(codec, CompressionCodec::UNCOMPRESSED | CompressionCodec::SNAPPY | CompressionCodec::ZSTD) {
        return Err(not_read("codec", format!("{codec:?}").to_lowercase()));
    }
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let (Ok(start), Ok(bytes)) = (u64::try_from(start), u64::try_from(column.compressed_size())) else {
        return Err(damaged("a negative place or size"));
    };
    let end =
        start.checked_add(bytes).filter(|end| *end <= source.len()).ok_or_else(|| damaged("it lies outside of the file"))?;
    let claimed = u64::try_from(column.uncompressed_size()).map_err(|_| damaged("a negative size"))?;
    let (mut at, mut values, mut held) = (start, 0_u64, 0_u64);
    let (mut dictionary, mut largest) = (0_u64, 0_u64);
    while at < end {
        let page = page_header(source, at, end).map_err(&damaged)?;
        let (Ok(size), Ok(packed), Ok(count)) =
            (u64::try_from(page.uncompressed), u64::try_from(page.compressed), u64::try_from(page.values))
        else {
            return Err(damaged("a page of a negative size"));
        };
        if size > limits.page_bytes {
            return Err(RowsError::too_large(path, "bytes in one page", size, limits.page_bytes));
        }
        held = held.saturating_add(size);
        if held > claimed {
            return Err(damaged(&format!("its pages hold more than the {claimed} bytes it claims")));
        }
        if page.is_dictionary() {
            let width = match column.column_type() {
                Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
                Physical::INT64 | Physical::DOUBLE => 8,
                Physical::INT96 => 12,
                Physical::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.column_descr().type_length()).unwrap_or(0).max(1),
                Physical::BOOLEAN => return Err(damaged("a dictionary of flags")),
            };
            if page.values > DICTIONARY {
                return Err(RowsError::too_large(path, "entries of a dictionary", count, DICTIONARY as u64));
            }
            if count.saturating_mul(width) > size {
                return Err(damaged("its dictionary claims more entries than its bytes can hold"));
            }
            dictionary = size;
        } else if page.is_data() {
            // Encodings whose lengths are told apart from their bytes could claim any number of them.
            if !matches!(page.encoding, 0 | 2 | 3 | 5 | 8 | 9) {
                let known = match page.encoding {
                    4 => "BIT_PACKED".to_owned(),
                    6 => "DELTA_LENGTH_BYTE_ARRAY".to_owned(),
                    7 => "DELTA_BYTE_ARRAY".to_owned(),
                    other => format!("number {other}"),
                };
                return Err(not_read("encoding", known));
            }
            largest = largest.max(size);
            values = values.saturating_add(count);
        }
        at = at.checked_add(page.header + packed).filter(|next| *next <= end).ok_or_else(|| damaged("a page ends behind it"))?;
    }
    let told = u64::try_from(column.num_values()).unwrap_or(u64::MAX);
    if values != told {
        return Err(damaged(&format!("its pages have {values} values where it claims {told}")));
    }
    let descriptor = column.column_descr();
    if descriptor.max_rep_level() == 0 && values != rows {
        return Err(damaged(&format!("it has {values} values for {rows} rows")));
    }
    let cap = SPARSE.max(bytes.saturating_mul(2));
    if descriptor.max_rep_level() > 0 && values > cap {
        return Err(RowsError::too_large(path, "values of a list column in one row group", values, cap));
    }
    Ok(dictionary.saturating_add(largest))
}

/// The header of the page at `at`.
fn page_header(source: &Source, at: u64, end: u64) -> Result<PageClaim, &'static str> {
    let mut window = 1024;
    loop {
        let take = (end - at).min(window);
        let bytes = source.get_bytes(at, take as usize).map_err(|_| "a page that cannot be read")?;
        match pages::header(&bytes) {
            Ok(page) => return Ok(page),
            Err(BadHeader::Short) if take == window && window < HEADER_BYTES => window *= 16,
            Err(_) => return Err("a page whose header is damaged"),
        }
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
