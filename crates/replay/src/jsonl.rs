//! Lines of a JSONL file with their places, and the writer that hands every line to the operating system at once.
//! Reading tolerates a byte order mark, CRLF and blank lines; writing never produces them.

use crate::error::RecordingError;
use serde::Serialize;
use serde_json::Value;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;

/// Longest recording that is read, in bytes: what runs of years come to, and far from what would take all memory without a word. One that a
/// bundle holds is shorter by scope.
pub const RECORDING_BYTES: u64 = 4 << 30;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where a line is in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// Line number, from 1.
    pub line: usize,
    /// Byte offset of the line's first byte, from 0.
    pub offset: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, byte {}", self.line, self.offset)
    }
}

/// One non-blank line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) place: Place,
    /// Content without line end and byte order mark.
    pub(crate) bytes: &'a [u8],
    /// Offset just after the line, its end included.
    pub(crate) end: usize,
    /// False for a last line without line end: a write may have been cut there.
    pub(crate) ended: bool,
}

impl Line<'_> {
    /// Parses the line as one JSON object.
    pub(crate) fn object(&self) -> Result<Value, String> {
        let text = std::str::from_utf8(self.bytes)
            .map_err(|fault| format!("not UTF-8 at byte {} of the file", self.place.offset + fault.valid_up_to()))?;
        match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err("JSON, but not an object".to_owned()),
            Err(fault) if fault.is_eof() => Err(format!("the JSON ends too early, at column {}", fault.column())),
            Err(fault) => {
                let text = fault.to_string();
                // serde_json names a line of its own input, which is always 1 here and would contradict ours.
                let what = text.split(" at line ").next().unwrap_or(&text);
                Err(format!("not JSON: {what} at column {}", fault.column()))
            }
        }
    }
}

/// Splits a file into its non-blank lines.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut seen = Seen::default();
    bytes.split_inclusive(|b| *b == b'\n').filter_map(move |raw| seen.line(raw))
}

/// What was passed of a file.
#[derive(Debug, Default)]
struct Seen {
    lines: usize,
    bytes: usize,
}

impl Seen {
    /// The next line of the file, given with its end; `None` for a blank one.
    fn line<'a>(&mut self, raw: &'a [u8]) -> Option<Line<'a>> {
        let rest = if self.bytes == 0 { raw.strip_prefix(BYTE_ORDER_MARK).unwrap_or(raw) } else { raw };
        self.lines += 1;
        let place = Place { line: self.lines, offset: self.bytes + raw.len() - rest.len() };
        self.bytes += raw.len();
        let content = rest.strip_suffix(b"\n");
        let ended = content.is_some();
        let content = content.unwrap_or(rest);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        let line = Line { place, bytes: content, end: self.bytes, ended };
        (!content.trim_ascii().is_empty()).then_some(line)
    }
}

/// A file that only grows, line by line. One that was made or gone on with here is written by nobody else meanwhile: two processes that
/// go on with one recording would tear it.
#[derive(Debug)]
pub(crate) struct Appender {
    file: File,
    /// Bytes of whole lines.
    length: u64,
    /// Also wait for the disk after every line.
    pub(crate) sync: bool,
    /// A write failed and what it left could not be removed; a further line would follow a torn one.
    torn: bool,
}

impl Appender {
    /// Makes a new file; an existing one is an error.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        own(&file)?;
        Ok(Self { file, length: 0, sync: false, torn: false })
    }

    /// Opens a file at its end, making it when it is not there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length, sync: false, torn: false })
    }

    /// Opens an interrupted file, cuts it to `length` and ends the last line if it lacks its line end. A file that another process
    /// writes, or has written since it was read, is left as it is.
    pub(crate) fn reopen(path: &Path, whole: &Whole) -> io::Result<Self> {
        let mut file = OpenOptions::new().append(true).open(path).map_err(|fault| match fault.kind() {
            // It was there a moment ago.
            io::ErrorKind::NotFound => busy(),
            _ => fault,
        })?;
        own(&file)?;
        if file.metadata()?.len() != whole.read as u64 {
            return Err(busy());
        }
        let mut length = whole.length as u64;
        file.set_len(length)?;
        if !whole.ended {
            file.write_all(b"\n")?;
            length += 1;
        }
        Ok(Self { file, length, sync: false, torn: false })
    }

    /// Appends one JSON line and hands it to the operating system: after this returns, a kill of the process loses nothing.
    /// Gives the line without its end.
    pub(crate) fn append(&mut self, record: &impl Serialize) -> io::Result<String> {
        if self.torn {
            return Err(io::Error::other("an earlier line could not be written whole"));
        }
        let mut line = serde_json::to_string(record).map_err(io::Error::other)?;
        line.push('\n');
        // One write call per line, so that a kill cuts at most the last one.
        if let Err(fault) = self.file.write_all(line.as_bytes()) {
            self.torn = self.file.set_len(self.length).is_err();
            return Err(fault);
        }
        self.length += line.len() as u64;
        // Not known to be on the disk, but in the file: a repeated line would stand there twice.
        if self.sync
            && let Err(fault) = self.file.sync_data()
        {
            self.torn = true;
            return Err(fault);
        }
        line.pop();
        Ok(line)
    }

    /// Waits until everything is on the disk.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Takes the right to write a file, for as long as it is open.
fn own(file: &File) -> io::Result<()> {
    match file.try_lock() {
        // Not every file system has locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(busy()),
    }
}

fn busy() -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing it; wait for it or end it")
}

/// How much of an interrupted file is whole lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole {
    /// Bytes.
    pub(crate) length: usize,
    /// False when the last of these lines lacks its line end.
    pub(crate) ended: bool,
    /// Bytes of the file when it was read.
    pub(crate) read: usize,
}

/// Measures the whole lines of a file. A JSON object that is closed is whole even without its line end.
pub(crate) fn whole(bytes: &[u8]) -> Whole {
    let last = lines(bytes).filter(|line| line.ended || line.object().is_ok()).last();
    let read = bytes.len();
    last.map_or(Whole { length: 0, ended: true, read }, |line| Whole { length: line.end, ended: line.ended, read })
}

/// Makes a rename in the folder of `path` outlast a loss of power, where the system can; not all file systems do.
pub(crate) fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent()
        && let Ok(folder) = File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    {
        drop(folder.sync_all());
    }
}

/// Reads a whole recording, of [`RECORDING_BYTES`] at most.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, RecordingError> {
    read_up_to(path, RECORDING_BYTES)
}

/// Reads a whole file of at most `limit` bytes. Only regular files: a device or a pipe may have no end.
///
/// # Errors
/// [`RecordingError::Io`], [`RecordingError::TooLarge`].
pub fn read_up_to(path: &Path, limit: u64) -> Result<Vec<u8>, RecordingError> {
    let (file, length) = open(path, limit)?;
    let mut bytes = Vec::new();
    let room = bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX));
    room.map_err(|full| RecordingError::io("read", path)(full.into()))?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(RecordingError::io("read", path))?;
    within(path, bytes.len() as u64, limit)?;
    Ok(bytes)
}

/// Gives the non-blank lines of a recording of [`RECORDING_BYTES`] at most, one after the other; only one is in memory at a time.
pub(crate) fn read_lines(
    path: &Path,
    mut take: impl FnMut(&Line<'_>) -> Result<(), RecordingError>,
) -> Result<(), RecordingError> {
    let (file, _) = open(path, RECORDING_BYTES)?;
    let mut file = BufReader::with_capacity(1 << 16, file.take(RECORDING_BYTES.saturating_add(1)));
    let mut seen = Seen::default();
    let mut raw = Vec::new();
    while file.read_until(b'\n', &mut raw).map_err(RecordingError::io("read", path))? > 0 {
        let line = seen.line(&raw);
        within(path, seen.bytes as u64, RECORDING_BYTES)?;
        if let Some(line) = line {
            take(&line)?;
        }
        raw.clear();
    }
    Ok(())
}

/// Opens a regular file of at most `limit` bytes, and gives its length; it may grow while it is read.
fn open(path: &Path, limit: u64) -> Result<(File, u64), RecordingError> {
    let meta = std::fs::metadata(path).map_err(RecordingError::io("read", path))?;
    if !meta.is_file() {
        let what = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        return Err(RecordingError::Io { action: "read", path: path.to_owned(), source: what });
    }
    within(path, meta.len(), limit)?;
    let file = File::open(path).map_err(RecordingError::io("read", path))?;
    Ok((file, meta.len()))
}

fn within(path: &Path, bytes: u64, limit: u64) -> Result<(), RecordingError> {
    if bytes > limit { Err(RecordingError::TooLarge { path: path.to_owned(), bytes, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_and_no_line_follows_a_torn_one() {
        let mut appender = Appender::open(Path::new("/dev/full")).unwrap();
        let full = appender.append(&1).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        // A device cannot be cut back, so the writer has to refuse from now on.
        assert_eq!(appender.append(&2).unwrap_err().to_string(), "an earlier line could not be written whole");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_a_size_on_paper_alone_costs_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.jsonl");
        File::create(&path).unwrap().set_len(RECORDING_BYTES + 1).unwrap();
        let error = read(&path).unwrap_err();
        assert!(matches!(error, RecordingError::TooLarge { bytes, limit: RECORDING_BYTES, .. } if bytes == RECORDING_BYTES + 1));
        File::create(&path).unwrap().write_all(b"{}\n").unwrap();
        assert_eq!(read_up_to(&path, 3).unwrap(), b"{}\n");
        assert!(matches!(read_up_to(&path, 2), Err(RecordingError::TooLarge { bytes: 3, limit: 2, .. })));
        assert!(matches!(read(folder.path()), Err(RecordingError::Io { .. })));
    }

    #[test]
    fn lines_know_their_places_through_byte_order_mark_crlf_and_blanks() {
        let bytes = b"\xef\xbb\xbf{\"a\":1}\r\n\r\n  \n{\"b\":2}\n{\"c\"";
        let found: Vec<_> =
            lines(bytes).map(|line| (line.place.line, line.place.offset, line.ended, line.object().is_ok())).collect();
        assert_eq!(found, [(1, 3, true, true), (4, 17, true, true), (5, 25, false, false)]);
        assert_eq!(whole(bytes), Whole { length: 25, ended: true, read: bytes.len() });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.jsonl");
        std::fs::write(&path, bytes).unwrap();
        let mut read = Vec::new();
        let outcome = read_lines(&path, |line| {
            read.push((line.place.line, line.place.offset, line.ended, line.object().is_ok()));
            Ok(())
        });
        assert_eq!((outcome.is_ok(), read), (true, found), "from the file as from memory");
    }
}
