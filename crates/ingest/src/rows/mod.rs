//! Files of rows whatever they mean: any Parquet file as a stream of JSON rows, rows of declared columns as a Parquet file, and
//! compressed text as a stream. For artifacts, not for datasets: nothing here knows a table of the market.
//!
//! A file is hostile until proven otherwise. Its claims are held against its size and against limits before anything is decompressed,
//! and memory does not grow with the number of its rows. Whatever is wrong is a typed error; nothing is ever left out silently.
//!
//! ```
//! use serde_json::json;
//! use traderharness_ingest::rows::{Column, ColumnKind, RowLimits, RowWriter, Rows};
//!
//! let columns = [Column::new("run", ColumnKind::Text), Column::new("step", ColumnKind::Integer)];
//! let mut writer = RowWriter::new(Vec::new(), &columns)?;
//! writer.push(&json!({"run": "a", "step": 7}))?;
//! let bytes = writer.finish()?;
//! let mut rows = Rows::from_bytes("a.parquet", bytes, RowLimits::default())?;
//! assert_eq!(rows.next_row()?, Some(json!({"run": "a", "step": 7})));
//! assert_eq!(rows.next_row()?, None);
//! # Ok::<(), traderharness_ingest::rows::RowsError>(())
//! ```
//!
//! # How a value becomes JSON
//!
//! | Parquet | JSON |
//! |---|---|
//! | boolean, integers, floats | as they are; what is not finite is null |
//! | decimal | a number, exact |
//! | text, enum, JSON | a text |
//! | other bytes | a text when they are UTF-8, else base64 |
//! | UUID | a text, lower case |
//! | date, time of day, timestamp | `2025-03-14`, `09:30:00.5`, `2025-03-14T09:30:00`, with `Z` when the file says that it is UTC |
//! | list, repeated field | a list |
//! | map | a list of objects with `key` and `value` |
//! | group | an object |

mod claims;
mod delta;
mod error;
mod leaf;
mod pages;
mod reader;
mod record;
mod shape;
mod stream;
mod text;
mod unpack;
mod write;

pub use error::RowsError;
pub use reader::Rows;
pub use text::Unpacked;
pub use write::{Column, ColumnKind, RowWriter};

/// What is accepted of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLimits {
    /// Rows. Whatever stands here, no more than two million and 64 for each byte of the file.
    pub rows: u64,
    /// Bytes of JSON, or of unpacked text. Whatever stands here, no more than 1 GiB and 2,000 for each byte of the file.
    pub bytes: u64,
    /// Bytes of JSON of one row.
    pub row_bytes: u64,
    /// Bytes of one page, decompressed.
    pub page_bytes: u64,
    /// Bytes of the largest pages of all columns of one row group together, decompressed: so much is held at a time.
    pub open_bytes: u64,
}

impl Default for RowLimits {
    fn default() -> Self {
        Self { rows: u64::MAX, bytes: u64::MAX, row_bytes: 64 << 20, page_bytes: 64 << 20, open_bytes: 512 << 20 }
    }
}

impl RowLimits {
    /// Most rows of a file of `len` bytes.
    fn most_rows(&self, len: u64) -> u64 {
        self.rows.min(len.saturating_mul(64).saturating_add(2_000_000))
    }

    /// Most bytes of JSON or text out of a file of `len` bytes.
    fn most_bytes(&self, len: u64) -> u64 {
        self.bytes.min(len.saturating_mul(2_000).saturating_add(1 << 30))
    }
}
