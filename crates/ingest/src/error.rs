//! What can go wrong when data is brought in: one typed error, which names the place, and a hint that says what to do.
//!
//! It never carries rows of the dataset beyond a single short example.

use std::path::{Path, PathBuf};
use traderharness_market::StoreError;

/// Why a dataset could not be brought in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// There is nothing at the path.
    #[error("no dataset at `{path}`: there is no such file or directory", path = .path.display())]
    NotFound {
        /// What was given.
        path: PathBuf,
    },
    /// The path is a file that is no cache.
    #[error("`{path}` is neither a dataset directory nor a `.thc` cache file", path = .path.display())]
    NotADataset {
        /// What was given.
        path: PathBuf,
    },
    /// A table without which nothing works is missing.
    #[error("dataset `{path}` has no `{table}`", path = .path.display())]
    MissingTable {
        /// Dataset directory.
        path: PathBuf,
        /// File that is missing.
        table: &'static str,
    },
    /// A required column is missing.
    #[error("`{path}` has no column `{column}` (table `{table}`); it has: {found}", path = .path.display())]
    MissingColumn {
        /// File.
        path: PathBuf,
        /// Table.
        table: &'static str,
        /// Column that is missing.
        column: &'static str,
        /// Columns that exist, joined by `, `.
        found: String,
    },
    /// A column holds another type than it should.
    #[error("column `{column}` of `{path}` (table `{table}`) is {found}, expected {expected}", path = .path.display())]
    MistypedColumn {
        /// File.
        path: PathBuf,
        /// Table.
        table: &'static str,
        /// Column.
        column: String,
        /// Type in the file.
        found: String,
        /// Types that are read.
        expected: &'static str,
    },
    /// The file is no Parquet file, was cut short, or is damaged.
    #[error("`{path}` (table `{table}`) is damaged or cut short: {detail}", path = .path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// Table.
        table: &'static str,
        /// What the reader found.
        detail: String,
    },
    /// The file is compressed in a way that is not read.
    #[error("`{path}` (table `{table}`) is compressed with {codec}; read are snappy, zstd and uncompressed", path = .path.display())]
    Codec {
        /// File.
        path: PathBuf,
        /// Table.
        table: &'static str,
        /// Codec of the file.
        codec: String,
    },
    /// The file claims more than is accepted, or more than its size can hold.
    #[error("`{path}` (table `{table}`) claims {claimed} {what}; the limit is {cap}", path = .path.display())]
    TooLarge {
        /// File.
        path: PathBuf,
        /// Table.
        table: &'static str,
        /// `rows` or `bytes`.
        what: &'static str,
        /// Claimed by the file.
        claimed: u64,
        /// What is accepted.
        cap: u64,
    },
    /// A text is not UTF-8.
    #[error("column `{column}` of `{path}` (table `{table}`) is not UTF-8 at row {row}", path = .path.display())]
    NotUtf8 {
        /// File.
        path: PathBuf,
        /// Table.
        table: &'static str,
        /// Column.
        column: String,
        /// First faulty row, from 0.
        row: usize,
    },
    /// `metadata.json` cannot be used.
    #[error("`{path}`: {detail}", path = .path.display())]
    Metadata {
        /// File.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// No usable row is left.
    #[error("dataset `{path}` has no usable {what}", path = .path.display())]
    Empty {
        /// Dataset.
        path: PathBuf,
        /// What it lacks.
        what: &'static str,
    },
    /// A cache file of a newer program.
    #[error("cache `{path}` has format {found}; this program reads up to {supported}", path = .path.display())]
    CacheNewer {
        /// File.
        path: PathBuf,
        /// Format of the file.
        found: u32,
        /// Newest format known.
        supported: u32,
    },
    /// A cache file that is damaged, cut short, or not of this program.
    #[error("cache `{path}` is damaged: {detail}", path = .path.display())]
    CacheDamaged {
        /// File.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The settings of the generator contradict each other.
    #[error("generator setting `{setting}`: {detail}")]
    Setting {
        /// Setting.
        setting: &'static str,
        /// What is wrong and what is accepted.
        detail: String,
    },
    /// The operating system refused.
    #[error("cannot {action} `{path}`: {source}", path = .path.display())]
    Io {
        /// `read`, `write`, ...
        action: &'static str,
        /// File.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The cleaned parts do not form a store: a defect of this crate, or a hostile cache.
    #[error("dataset `{path}`: {source}", path = .path.display())]
    Store {
        /// Dataset.
        path: PathBuf,
        /// Reason.
        source: StoreError,
    },
}

impl IngestError {
    /// One sentence that says what to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { .. } => {
                "check the path; `traderharness data generate` makes a synthetic dataset, and without a path the bundled pack is used".to_owned()
            }
            Self::NotADataset { .. } => "give the directory that holds `daily.parquet`, or a `.thc` file written by this program".to_owned(),
            Self::MissingTable { table, .. } => {
                format!("every dataset needs `{table}`; the other tables are optional. Is this the directory one level too high or too low?")
            }
            Self::MissingColumn { column, .. } => format!("write the table again with a column `{column}`; extra columns are ignored"),
            Self::MistypedColumn { column, expected, .. } => format!("write `{column}` again as {expected}"),
            Self::Damaged { .. } => "copy or write the file again; nothing of it was used".to_owned(),
            Self::Codec { .. } => "write it again with `compression=\"zstd\"` or `\"snappy\"`".to_owned(),
            Self::TooLarge { .. } => "split the dataset by period or raise the limit in the load options if the file is genuine".to_owned(),
            Self::NotUtf8 { .. } => "write the texts again as UTF-8 (GBK is a common source encoding)".to_owned(),
            Self::Metadata { .. } => {
                "`metadata.json` is an object with optional `name` (text), `synthetic` (true or false), `prices` (`raw` or `forward_adjusted`)".to_owned()
            }
            Self::Empty { .. } => "run `traderharness data check` on it: the report says which rows were refused and why".to_owned(),
            Self::CacheNewer { .. } => "use a newer program, or build the cache again from the dataset directory".to_owned(),
            Self::CacheDamaged { .. } => "delete it and build it again from the dataset directory".to_owned(),
            Self::Setting { setting, .. } => format!("change `{setting}` and run again; nothing was written"),
            Self::Io { .. } => "check the path, the permissions and the free space".to_owned(),
            Self::Store { .. } => "run `traderharness data check` on the dataset and report the message if it is clean".to_owned(),
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
