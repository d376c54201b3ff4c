//! [`Segment`]: a table as columns in a sealed memory file. The worker gets the descriptor, maps it and makes numpy arrays of it without
//! copying. Whoever builds one puts in only masked rows up to the clock.
//!
//! Columns start at multiples of 64 bytes, little endian, in the order of the table; the strings of text columns follow as one JSON array.
//! Nothing but what a [`SegmentBuilder`] was given is in the file: the gaps are zero.

use crate::protocol::{Column, ColumnType, Layout};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Columns start at multiples of this many bytes.
pub const ALIGNMENT: u64 = 64;

/// A sealed table. Nobody can write to it any more, the host included.
#[derive(Debug)]
pub struct Segment {
    /// The memory file.
    pub fd: OwnedFd,
    /// What is where in it.
    pub layout: Layout,
}

impl Segment {
    /// Everything in the file, for who audits what a worker is handed.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.layout.bytes as usize];
        File::from(self.fd.try_clone()?).read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// Why a table cannot become a segment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// A column has another number of rows than the table.
    #[error("column `{column}` has {found} rows, the table has {expected}")]
    Rows {
        /// Column.
        column: String,
        /// Rows it has.
        found: usize,
        /// Rows it must have.
        expected: usize,
    },
    /// Two columns have one name.
    #[error("two columns are named `{column}`")]
    Duplicate {
        /// Name.
        column: String,
    },
    /// A text column points outside its dictionary.
    #[error("row {row} of text column `{column}` has no entry in its dictionary")]
    Index {
        /// Column.
        column: String,
        /// First faulty row.
        row: usize,
    },
    /// The memory file could not be made, written or sealed.
    #[error("the memory file of a table could not be made")]
    File(#[source] std::io::Error),
}

#[derive(Debug)]
enum Cells {
    F64(Vec<f64>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    Bool(Vec<bool>),
    Text(Vec<i32>),
}

impl Cells {
    const fn kind(&self) -> ColumnType {
        match self {
            Self::F64(_) => ColumnType::F64,
            Self::I64(_) => ColumnType::I64,
            Self::I32(_) => ColumnType::I32,
            Self::Bool(_) => ColumnType::Bool,
            Self::Text(_) => ColumnType::Text,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::F64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::I32(v) | Self::Text(v) => v.len(),
            Self::Bool(v) => v.len(),
        }
    }

    const fn width(&self) -> u64 {
        match self {
            Self::F64(_) | Self::I64(_) => 8,
            Self::I32(_) | Self::Text(_) => 4,
            Self::Bool(_) => 1,
        }
    }

    fn write(&self, out: &mut Out<'_>, at: u64) -> std::io::Result<()> {
        match self {
            Self::F64(v) => out.put(at, v, |v| v.to_le_bytes()),
            Self::I64(v) => out.put(at, v, |v| v.to_le_bytes()),
            Self::I32(v) | Self::Text(v) => out.put(at, v, |v| v.to_le_bytes()),
            Self::Bool(v) => out.put(at, v, |v| [u8::from(*v)]),
        }
    }
}

/// Collects the columns of a table, all of one length, and makes the sealed file of them.
///
/// ```
/// use traderharness_sandbox::SegmentBuilder;
/// let mut table = SegmentBuilder::new(2);
/// table.text("stock_code", &["SHM-000001"], vec![0, 0]).i64("date", vec![-2, -1]).f64("close", vec![10.5, f64::NAN]);
/// let segment = table.build()?;
/// assert_eq!(segment.layout.rows, 2);
/// # Ok::<(), traderharness_sandbox::segment::SegmentError>(())
/// ```
#[derive(Debug)]
pub struct SegmentBuilder {
    rows: usize,
    columns: Vec<(String, Cells)>,
    strings: Vec<String>,
}

impl SegmentBuilder {
    /// A table of so many rows and no column yet.
    pub const fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new(), strings: Vec::new() }
    }

    /// Adds a float column; NaN stands for a missing value.
    pub fn f64(&mut self, name: &str, values: Vec<f64>) -> &mut Self {
        self.push(name, Cells::F64(values))
    }

    /// Adds an integer column of 64 bits.
    pub fn i64(&mut self, name: &str, values: Vec<i64>) -> &mut Self {
        self.push(name, Cells::I64(values))
    }

    /// Adds an integer column of 32 bits.
    pub fn i32(&mut self, name: &str, values: Vec<i32>) -> &mut Self {
        self.push(name, Cells::I32(values))
    }

    /// Adds a boolean column.
    pub fn bool(&mut self, name: &str, values: Vec<bool>) -> &mut Self {
        self.push(name, Cells::Bool(values))
    }

    /// Adds a text column: for each row the position of its value in `dictionary`, -1 for none.
    pub fn text<S: AsRef<str>>(&mut self, name: &str, dictionary: &[S], mut index: Vec<i32>) -> &mut Self {
        let base = self.strings.len() as i32;
        let entries = dictionary.len() as i32;
        for i in &mut index {
            *i = match *i {
                -1 => -1,
                i if (0..entries).contains(&i) => i + base,
                _ => OUTSIDE,
            };
        }
        self.strings.extend(dictionary.iter().map(|s| s.as_ref().to_owned()));
        self.push(name, Cells::Text(index))
    }

    fn push(&mut self, name: &str, cells: Cells) -> &mut Self {
        self.columns.push((name.to_owned(), cells));
        self
    }

    fn check(&self) -> Result<(), SegmentError> {
        for (i, (name, cells)) in self.columns.iter().enumerate() {
            let column = || name.clone();
            if cells.len() != self.rows {
                return Err(SegmentError::Rows { column: column(), found: cells.len(), expected: self.rows });
            }
            if self.columns[..i].iter().any(|(other, _)| other == name) {
                return Err(SegmentError::Duplicate { column: column() });
            }
            if let Cells::Text(index) = cells
                && let Some(row) = index.iter().position(|i| *i == OUTSIDE)
            {
                return Err(SegmentError::Index { column: column(), row });
            }
        }
        Ok(())
    }

    /// Makes the sealed file.
    ///
    /// # Errors
    /// [`SegmentError`]; a table that does not fit together makes no file.
    pub fn build(&self) -> Result<Segment, SegmentError> {
        self.check()?;
        let strings = serde_json::to_vec(&self.strings).map_err(|fault| SegmentError::File(fault.into()))?;
        let mut layout = Layout { rows: self.rows as u64, ..Layout::default() };
        let mut end = 0_u64;
        for (name, cells) in &self.columns {
            let offset = end.next_multiple_of(ALIGNMENT);
            layout.columns.push(Column { name: name.clone(), kind: cells.kind(), offset });
            end = offset + cells.width() * self.rows as u64;
        }
        layout.strings = (end.next_multiple_of(ALIGNMENT), strings.len() as u64);
        layout.bytes = layout.strings.0 + layout.strings.1;
        let file = self.file(&layout, &strings).map_err(SegmentError::File)?;
        Ok(Segment { fd: file.into(), layout })
    }

    fn file(&self, layout: &Layout, strings: &[u8]) -> std::io::Result<File> {
        let file = File::from(memfd_create(c"table", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
        file.set_len(layout.bytes)?;
        let mut out = Out { file: &file, buffer: Vec::with_capacity(CHUNK) };
        for ((_, cells), column) in self.columns.iter().zip(&layout.columns) {
            cells.write(&mut out, column.offset)?;
        }
        file.write_all_at(strings, layout.strings.0)?;
        let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        Ok(file)
    }
}

/// Marks an index outside its dictionary until the table is checked.
const OUTSIDE: i32 = i32::MIN;
/// Bytes written at once: values become bytes in a buffer that stays in the processor's cache.
const CHUNK: usize = 256 << 10;

struct Out<'f> {
    file: &'f File,
    buffer: Vec<u8>,
}

impl Out<'_> {
    fn put<T, const N: usize>(&mut self, mut at: u64, values: &[T], bytes: impl Fn(&T) -> [u8; N]) -> std::io::Result<()> {
        for part in values.chunks(CHUNK / N) {
            self.buffer.clear();
            self.buffer.resize(part.len() * N, 0);
            for (slot, value) in self.buffer.chunks_exact_mut(N).zip(part) {
                slot.copy_from_slice(&bytes(value));
            }
            self.file.write_all_at(&self.buffer, at)?;
            at += self.buffer.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn table() -> SegmentBuilder {
        let mut table = SegmentBuilder::new(3);
        table
            .text("code", &["A", "B"], vec![1, 0, -1])
            .f64("price", vec![1.5, f64::NAN, -0.0])
            .i64("date", vec![i64::MIN, -1, 7])
            .i32("count", vec![1, 2, i32::MAX])
            .bool("flag", vec![true, false, true])
            .text("name", &["x\"\u{e9}"], vec![0, 0, -1]);
        table
    }

    fn values<const N: usize, T>(bytes: &[u8], layout: &Layout, name: &str, read: fn([u8; N]) -> T) -> Vec<T> {
        let column = layout.columns.iter().find(|c| c.name == name).unwrap();
        let start = column.offset as usize;
        let all = &bytes[start..start + N * layout.rows as usize];
        all.chunks_exact(N).map(|c| read(c.try_into().unwrap())).collect()
    }

    #[test]
    fn a_column_is_where_the_layout_says_and_nothing_else_is_in_the_file() {
        let segment = table().build().unwrap();
        let (bytes, layout) = (segment.to_bytes().unwrap(), &segment.layout);
        assert!(layout.columns.iter().all(|c| c.offset % ALIGNMENT == 0));
        let names: Vec<&str> = layout.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["code", "price", "date", "count", "flag", "name"]);
        assert_eq!(values(&bytes, layout, "code", i32::from_le_bytes), [1, 0, -1]);
        let prices = values(&bytes, layout, "price", f64::from_le_bytes);
        assert!(prices[0] == 1.5 && prices[1].is_nan() && prices[2].is_sign_negative());
        assert_eq!(values(&bytes, layout, "date", i64::from_le_bytes), [i64::MIN, -1, 7]);
        assert_eq!(values(&bytes, layout, "count", i32::from_le_bytes), [1, 2, i32::MAX]);
        assert_eq!(values(&bytes, layout, "flag", |b: [u8; 1]| b[0]), [1, 0, 1]);
        assert_eq!(values(&bytes, layout, "name", i32::from_le_bytes), [2, 2, -1]);
        let strings = &bytes[layout.strings.0 as usize..];
        assert_eq!(serde_json::from_slice::<Vec<String>>(strings).unwrap(), ["A", "B", "x\"\u{e9}"]);
        assert_eq!(layout.bytes as usize, bytes.len());
        // The gap after the first column.
        assert!(bytes[12..64].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_sealed_file_cannot_be_changed_by_anybody() {
        let segment = table().build().unwrap();
        let before = segment.to_bytes().unwrap();
        let mut file = File::from(segment.fd.try_clone().unwrap());
        assert!(file.write_all(b"x").is_err());
        assert!(file.write_at(b"x", 0).is_err());
        assert!(file.set_len(1).is_err());
        assert!(file.set_len(1 << 20).is_err());
        assert!(fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).is_err(), "seals are sealed");
        assert_eq!(segment.to_bytes().unwrap(), before);
    }

    #[test]
    fn a_table_without_rows_or_columns_is_a_file_all_the_same() {
        for table in [SegmentBuilder::new(0), SegmentBuilder::new(5)] {
            let segment = table.build().unwrap();
            assert_eq!((segment.layout.bytes, segment.to_bytes().unwrap()), (2, b"[]".to_vec()));
        }
        let mut empty = SegmentBuilder::new(0);
        empty.f64("close", vec![]).text::<&str>("code", &[], vec![]);
        let layout = empty.build().unwrap().layout;
        assert_eq!((layout.rows, layout.columns.len()), (0, 2));
    }

    #[test]
    fn columns_longer_than_the_buffer_are_whole() {
        let many = CHUNK / 8 * 2 + 3;
        let mut table = SegmentBuilder::new(many);
        table.f64("a", (0..many).map(|i| i as f64).collect()).bool("b", vec![true; many]);
        let segment = table.build().unwrap();
        let bytes = segment.to_bytes().unwrap();
        let a = values(&bytes, &segment.layout, "a", f64::from_le_bytes);
        assert!(a.iter().enumerate().all(|(i, v)| *v == i as f64));
        assert!(values(&bytes, &segment.layout, "b", |b: [u8; 1]| b[0]).iter().all(|b| *b == 1));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let mut short = SegmentBuilder::new(2);
        short.i32("a", vec![1]);
        assert!(matches!(short.build(), Err(SegmentError::Rows { found: 1, expected: 2, .. })));
        let mut twice = SegmentBuilder::new(1);
        twice.i32("a", vec![1]).i64("a", vec![1]);
        assert!(matches!(twice.build(), Err(SegmentError::Duplicate { .. })));
        for bad in [2, -2, i32::MIN, i32::MAX] {
            let mut outside = SegmentBuilder::new(2);
            outside.text("a", &["x", "y"], vec![0, bad]);
            assert!(matches!(outside.build(), Err(SegmentError::Index { row: 1, .. })), "{bad}");
        }
    }
}
