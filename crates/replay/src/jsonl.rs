//! Lines of a JSONL file with their places, and the writer that hands every line to the operating system at once.
//! Reading tolerates a byte order mark, CRLF and blank lines; writing never produces them.

use serde::Serialize;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

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
        write!(f, "line {} (byte {})", self.line, self.offset)
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
    let start = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut offset = start;
    let mut number = 0;
    std::iter::from_fn(move || {
        while offset < bytes.len() {
            let rest = &bytes[offset..];
            let (length, ended) = match rest.iter().position(|b| *b == b'\n') {
                Some(at) => (at, true),
                None => (rest.len(), false),
            };
            number += 1;
            let place = Place { line: number, offset };
            let content = &rest[..length];
            let content = content.strip_suffix(b"\r").unwrap_or(content);
            offset += length + usize::from(ended);
            if !content.trim_ascii().is_empty() {
                return Some(Line { place, bytes: content, end: offset, ended });
            }
        }
        None
    })
}

/// Appends one JSON line and hands it to the operating system: after this returns, a kill of the process loses nothing.
/// With `sync` it also waits for the disk, so that a loss of power loses nothing either.
pub(crate) fn append(file: &mut File, record: &impl Serialize, sync: bool) -> io::Result<String> {
    let mut line = serde_json::to_string(record).map_err(io::Error::other)?;
    line.push('\n');
    // One write call per line, so that two lines never interleave and a kill cuts at most the last one.
    file.write_all(line.as_bytes())?;
    if sync {
        file.sync_data()?;
    }
    line.pop();
    Ok(line)
}

/// Opens an interrupted file for appending: cuts off a last line that is not whole and ends one that lacks its line end.
/// `bytes` is the content of the file.
pub(crate) fn reopen(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let whole = lines(bytes).filter(|line| line.ended || line.object().is_ok()).last();
    let mut file = OpenOptions::new().append(true).open(path)?;
    if let Some(line) = whole {
        file.set_len(line.end as u64)?;
        if !line.ended {
            file.write_all(b"\n")?;
        }
    } else {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Makes a rename in the folder of `path` outlast a loss of power, where the system can; not all file systems do.
pub(crate) fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent()
        && let Ok(folder) = File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    {
        drop(folder.sync_all());
    }
}
