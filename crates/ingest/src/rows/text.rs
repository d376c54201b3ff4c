//! [`Unpacked`]: text compressed with zstd or gzip as a stream. Must stop at a bomb: neither memory nor time grow without bound.

use super::RowLimits;
use super::error::RowsError;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Largest window of a frame, as a power of two: so much is held.
const WINDOW_LOG: u32 = 26;

/// How a gzip file begins (RFC 1952, section 2.3.1); everything else is taken for zstd.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The text of a compressed file.
pub struct Unpacked {
    decoder: Box<dyn Read>,
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
    /// Opens a file, which its first bytes tell for zstd or gzip. Faults of its bytes come while it is read, as an [`std::io::Error`]; one
    /// that is a bomb holds [`RowsError::TooLarge`].
    ///
    /// # Errors
    /// [`RowsError::Io`].
    pub fn open(path: impl AsRef<Path>, limits: RowLimits) -> Result<Self, RowsError> {
        let path = path.as_ref().to_owned();
        let open = || {
            let mut file = File::open(&path)?;
            let len = file.metadata()?.len();
            let mut head = vec![];
            file.by_ref().take(GZIP.len() as u64).read_to_end(&mut head)?;
            file.seek(SeekFrom::Start(0))?;
            if head == GZIP {
                return Ok((Box::new(MultiGzDecoder::new(BufReader::new(file))) as Box<dyn Read>, len));
            }
            let mut decoder = zstd::stream::read::Decoder::new(file)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Ok((Box::new(decoder) as Box<dyn Read>, len))
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
