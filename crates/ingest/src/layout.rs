//! Where the tables of a dataset lie: the directory layout, or slices compiled into the program.

use crate::error::IngestError;
use crate::metadata::Metadata;
use crate::source::Source;
use std::path::{Path, PathBuf};

/// Depth of directories under `5min_clean` that is searched: `year=2025/part.parquet`, and one level more.
const DEPTH: usize = 3;

/// The tables found.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) path: PathBuf,
    pub(crate) metadata: Metadata,
    pub(crate) daily: Option<Source>,
    pub(crate) minute: Vec<Source>,
    pub(crate) index: Option<Source>,
    pub(crate) news: Option<Source>,
    pub(crate) announcements: Option<Source>,
    pub(crate) fundamentals: Option<Source>,
    pub(crate) segments: Option<Source>,
    pub(crate) valuation: Option<Source>,
    pub(crate) dividends: Option<Source>,
    pub(crate) securities: Option<Source>,
}

impl Layout {
    /// True for a cache file; an error for a path that is neither a directory nor a cache.
    pub(crate) fn is_cache(path: &Path) -> Result<bool, IngestError> {
        let found = match std::fs::metadata(path) {
            Ok(found) => found,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(IngestError::NotFound { path: path.to_owned() }),
            Err(e) => return Err(IngestError::io("read", path)(e)),
        };
        if found.is_dir() {
            return Ok(false);
        }
        if found.is_file() && path.extension().is_some_and(|e| e == "thc") {
            return Ok(true);
        }
        Err(IngestError::NotADataset { path: path.to_owned() })
    }

    pub(crate) fn of_directory(dir: &Path) -> Result<Self, IngestError> {
        let table = |name: &str| -> Result<Option<Source>, IngestError> {
            let path = dir.join(name);
            match Source::file(&path) {
                Ok(source) => Ok(Some(source)),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(IngestError::io("read", &path)(e)),
            }
        };
        let mut files = Vec::new();
        let minutes = dir.join("5min_clean");
        if minutes.is_dir() {
            collect(&minutes, DEPTH, &mut files)?;
        }
        files.sort();
        let mut minute = Vec::with_capacity(files.len());
        for file in files {
            minute.push(Source::file(&file).map_err(IngestError::io("read", &file))?);
        }
        Ok(Self {
            path: dir.to_owned(),
            metadata: Metadata::of_directory(dir)?,
            daily: table("daily.parquet")?,
            minute,
            index: table("index_300.parquet")?,
            news: table("news_cls.parquet")?,
            announcements: table("announcements.parquet")?,
            fundamentals: table("fundamentals.parquet")?,
            segments: table("business_segments.parquet")?,
            valuation: table("valuation.parquet")?,
            dividends: table("dividends.parquet")?,
            securities: table("securities.parquet")?,
        })
    }

    /// Name the dataset gives itself, else the name of its directory.
    pub(crate) fn name(&self) -> String {
        if let Some(name) = &self.metadata.name {
            return name.clone();
        }
        // `.` and `..` have no name of their own; the resolved path has.
        let resolved = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        resolved.file_name().map_or_else(|| "dataset".to_owned(), |n| n.to_string_lossy().into_owned())
    }
}

fn collect(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), IngestError> {
    let entries = std::fs::read_dir(dir).map_err(IngestError::io("read", dir))?;
    for entry in entries {
        let path = entry.map_err(IngestError::io("read", dir))?.path();
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(['.', '_']));
        if hidden {
            continue;
        }
        if path.is_dir() {
            if depth > 1 {
                collect(&path, depth - 1, files)?;
            }
        } else if path.extension().is_some_and(|e| e == "parquet") {
            files.push(path);
        }
    }
    Ok(())
}
