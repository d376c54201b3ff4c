//! Where the bytes of a table come from: a file, or a slice compiled into the program.
//!
//! Every read opens its own handle, because the columns of one file are read at the same time and a cloned handle would share its
//! position.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) enum Source {
    File { path: Arc<PathBuf>, len: u64 },
    Memory { name: Arc<PathBuf>, bytes: Bytes },
}

impl Source {
    pub(crate) fn file(path: &Path) -> std::io::Result<Self> {
        let len = std::fs::metadata(path)?.len();
        Ok(Self::File { path: Arc::new(path.to_owned()), len })
    }

    pub(crate) fn memory(name: &str, bytes: Bytes) -> Self {
        Self::Memory { name: Arc::new(PathBuf::from(name)), bytes }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } => path,
            Self::Memory { name, .. } => name,
        }
    }

    fn open_at(path: &Path, start: u64) -> std::io::Result<File> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Memory { bytes, .. } => bytes.len() as u64,
        }
    }
}

impl ChunkReader for Source {
    type T = Box<dyn Read + Send>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(match self {
            Self::File { path, .. } => Box::new(BufReader::new(Self::open_at(path, start)?)),
            Self::Memory { bytes, .. } => {
                let from = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
                Box::new(Cursor::new(bytes.slice(from..)))
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len());
        let Some(end) = end else {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} lie outside the {} bytes of the file", self.len())));
        };
        match self {
            Self::File { path, .. } => {
                let mut buffer = Vec::with_capacity(length);
                let read = Self::open_at(path, start)?.take(length as u64).read_to_end(&mut buffer)?;
                if read != length {
                    return Err(ParquetError::EOF(format!("read {read} of {length} bytes at {start}")));
                }
                Ok(buffer.into())
            }
            Self::Memory { bytes, .. } => Ok(bytes.slice(start as usize..end as usize)),
        }
    }
}
