//! What can be wrong with a file of rows. Must name the file, and the limit where one was met.

use parquet::errors::ParquetError;
use std::path::{Path, PathBuf};

/// A file of rows that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// The bytes are not what they say.
    #[error("`{path}` is damaged: {detail}", path = .path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// What the reader found.
        detail: String,
    },
    /// Compressed or encoded in a way that is not read.
    #[error("`{path}`, column `{column}`: {what} `{found}` is not read", path = .path.display())]
    NotRead {
        /// File.
        path: PathBuf,
        /// Column.
        column: String,
        /// `codec`, `encoding` or `type`.
        what: &'static str,
        /// What the file has.
        found: String,
    },
    /// More than is accepted, or more than a file of this size can hold: a decompression bomb.
    #[error("`{path}` has {found} {what}; at most {cap} are accepted", path = .path.display())]
    TooLarge {
        /// File.
        path: PathBuf,
        /// What there is too much of.
        what: &'static str,
        /// Claimed by the file, or counted so far.
        found: u64,
        /// Accepted.
        cap: u64,
    },
    /// A row that does not fit the columns it is written to.
    #[error("row {row}: `{column}` must be {expected}")]
    Mistyped {
        /// Row, from 0.
        row: u64,
        /// Column.
        column: String,
        /// What it must be.
        expected: &'static str,
    },
    /// The columns to write do not make a table.
    #[error("columns cannot be written: {detail}")]
    Columns {
        /// What is wrong.
        detail: String,
    },
    /// The operating system refused.
    #[error("cannot {action} `{path}`: {source}", path = .path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// File.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
}

impl RowsError {
    pub(crate) fn damaged(path: &Path, detail: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), detail: detail.to_string() }
    }

    /// A fault of the decoder; one of ours that went through it comes out as it was.
    pub(super) fn of(path: &Path, error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => inner.downcast::<Self>().map_or_else(|e| Self::damaged(path, e), |own| *own),
            other => Self::damaged(path, other),
        }
    }

    pub(crate) fn too_large(path: &Path, what: &'static str, found: u64, cap: u64) -> Self {
        Self::TooLarge { path: path.to_owned(), what, found, cap }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
