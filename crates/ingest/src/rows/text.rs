//! [`Unpacked`]: text compressed with zstd as a stream. Must stop at a bomb: neither memory nor time grow without bound.

use super::RowLimits;
use super::error::RowsError;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Largest window of a frame, as a power of two: so much is held.
const WINDOW_LOG: u32 = 26;

/// The text of a `.zst` file.
pub struct Unpacked {
    decoder: zstd::stream::read::Decoder<'static, BufReader<File>>,
    path: PathBuf,
    given: u64,
    cap: u64,
}

impl std::fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacked").field("path", &self.path).field("given", &self.given).finish_non_exhaustive()
    }
}

impl Unpacked {
    /// Opens a file. Faults of its bytes come while it is read, as an [`std::io::Error`]; one that is a bomb holds
    /// [`RowsError::TooLarge`].
    ///
    /// # Errors
    /// [`RowsError::Io`].
    pub fn open(path: impl AsRef<Path>, limits: RowLimits) -> Result<Self, RowsError> {
        let path = path.as_ref().to_owned();
        let open = || {
            let file = File::open(&path)?;
            let len = file.metadata()?.len();
            let mut decoder = zstd::stream::read::Decoder::new(file)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Ok((decoder, len))
        };
        let (decoder, len) = open().map_err(RowsError::io("read", &path))?;
        Ok(Self { decoder, given: 0, cap: limits.most_bytes(len), path })
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.decoder.read(buffer)?;
        self.given += read as u64;
        if self.given > self.cap {
            return Err(std::io::Error::other(RowsError::too_large(&self.path, "bytes of text", self.given, self.cap)));
        }
        Ok(read)
    }
}
