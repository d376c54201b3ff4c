//! The state from the lines of a memory file. A line that is whole but wrong is an error with its number; a last line that a kill
//! has cut is left out and its place told.

use super::event::{MemoryEvent, MemoryKind, Source};
use super::store::{Draft, Journal, Memory, record};
use traderharness_market::Day;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What is wrong with a line. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryFault {
    /// The line is not UTF-8 text.
    #[error("memory line {line} is not UTF-8")]
    NotText {
        /// Line.
        line: usize,
    },
    /// The line is no event of a memory file.
    #[error("memory line {line} is not a memory event: {what}")]
    NotAnEvent {
        /// Line.
        line: usize,
        /// What the JSON reader says.
        what: String,
    },
    /// An id has not the form of its source.
    #[error("memory line {line}: `{id}` is not an id of this source; `{prefix}` and at least four digits are")]
    IdForm {
        /// Line.
        line: usize,
        /// Id.
        id: String,
        /// Start of the ids of the source.
        prefix: &'static str,
    },
    /// Two records have one id.
    #[error("memory line {line}: the id `{id}` is taken by an earlier line")]
    IdTaken {
        /// Line.
        line: usize,
        /// Id.
        id: String,
    },
    /// A record has no words.
    #[error("memory line {line}: `{id}` has no content")]
    NoContent {
        /// Line.
        line: usize,
        /// Id.
        id: String,
    },
    /// The source does not write records of this kind.
    #[error("memory line {line}: a record of the {} cannot be a {}", .from.as_str(), .kind.as_str())]
    WrongKind {
        /// Line.
        line: usize,
        /// Who wrote it.
        from: Source,
        /// What it says to be.
        kind: MemoryKind,
    },
    /// A line names a record that no earlier line of the same source wrote.
    #[error("memory line {line} names `{id}`, which no earlier record of the same source has")]
    UnknownRecord {
        /// Line.
        line: usize,
        /// Id.
        id: String,
    },
    /// A record is superseded twice.
    #[error("memory line {line}: `{id}` was superseded by `{by}` before")]
    SupersededTwice {
        /// Line.
        line: usize,
        /// Id.
        id: String,
        /// What superseded it first.
        by: String,
    },
}

/// A memory that was read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// The state.
    pub memory: Memory,
    /// Bytes of whole lines from the start of the file. What follows was cut while it was written; a file that is written on must be
    /// cut back to this first.
    pub whole: usize,
    /// False when the last whole line lacks its line end.
    pub ended: bool,
}

impl Memory {
    /// Rebuilds the state from the bytes of a memory file. A byte order mark, CRLF and blank lines are passed over.
    ///
    /// # Errors
    /// [`MemoryFault`] naming the first line that is whole but wrong.
    pub fn restore(bytes: &[u8]) -> Result<Restored, MemoryFault> {
        let mut restored = Restored { memory: Self::new(), whole: 0, ended: true };
        let mut offset = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut line = 0;
        while offset < bytes.len() {
            line += 1;
            let rest = &bytes[offset..];
            let end = rest.iter().position(|b| *b == b'\n');
            let content = rest[..end.unwrap_or(rest.len())].trim_ascii();
            if !content.is_empty() {
                match (read(content, line), end) {
                    (Ok(event), _) => restored.memory.replay(event, line)?,
                    // Without its line end a line that cannot be read is one that a kill has cut.
                    (Err(_), None) => break,
                    (Err(fault), Some(_)) => return Err(fault),
                }
                restored.ended = end.is_some();
            }
            offset += end.map_or(rest.len(), |at| at + 1);
            restored.whole = offset;
        }
        Ok(restored)
    }

    fn replay(&mut self, event: MemoryEvent, line: usize) -> Result<(), MemoryFault> {
        match event {
            MemoryEvent::DailyJournal { date, summary } => self.journals.push(Journal { day: date, summary }),
            MemoryEvent::Remember { date, memory_id, memory_type, content, tags, importance, source, supersedes_id } => {
                let number = number(&memory_id, source).ok_or_else(|| MemoryFault::IdForm {
                    line,
                    id: memory_id.clone(),
                    prefix: source.prefix(),
                })?;
                if self.places.contains_key(&memory_id) {
                    return Err(MemoryFault::IdTaken { line, id: memory_id });
                }
                if (memory_type == MemoryKind::RuntimeState) != (source == Source::Environment) {
                    return Err(MemoryFault::WrongKind { line, from: source, kind: memory_type });
                }
                if content.trim().is_empty() {
                    return Err(MemoryFault::NoContent { line, id: memory_id });
                }
                if let Some(old) = &supersedes_id {
                    self.check_superseded(old, source, date, None, line)?;
                }
                let last = &mut self.last[source as usize];
                *last = number.max(*last);
                let draft = Draft { kind: memory_type, content, tags, importance, source, supersedes: supersedes_id };
                self.insert(record(memory_id, date, draft));
            }
            MemoryEvent::Supersede { date, memory_id, superseded_by } => {
                let unknown = || MemoryFault::UnknownRecord { line, id: superseded_by.clone() };
                let by = self.places.get(&superseded_by).map(|place| &self.records[*place]).ok_or_else(unknown)?;
                if by.supersedes.as_deref() != Some(&memory_id) {
                    return Err(unknown());
                }
                self.check_superseded(&memory_id, by.source, date, Some(&superseded_by), line)?;
            }
        }
        Ok(())
    }

    /// A record that `by` may supersede on `day`: of the same source, and not superseded by anything else up to then. A memory that
    /// runs of earlier days share can hold a later supersession those runs could not see.
    fn check_superseded(&self, old: &str, source: Source, day: Day, by: Option<&str>, line: usize) -> Result<(), MemoryFault> {
        let record = self
            .places
            .get(old)
            .map(|place| &self.records[*place])
            .filter(|r| r.source == source)
            .ok_or_else(|| MemoryFault::UnknownRecord { line, id: old.to_owned() })?;
        match &record.superseded {
            Some(first) if first.day <= day && Some(first.by.as_str()) != by => {
                Err(MemoryFault::SupersededTwice { line, id: old.to_owned(), by: first.by.clone() })
            }
            _ => Ok(()),
        }
    }
}

fn read(content: &[u8], line: usize) -> Result<MemoryEvent, MemoryFault> {
    let text = std::str::from_utf8(content).map_err(|_| MemoryFault::NotText { line })?;
    serde_json::from_str(text).map_err(|fault| {
        let what = fault.to_string();
        // serde_json names a line of its own input, which is always 1 here and would contradict ours.
        let what = what.split(" at line ").next().unwrap_or(&what).to_owned();
        MemoryFault::NotAnEvent { line, what }
    })
}

fn number(id: &str, source: Source) -> Option<u64> {
    let digits = id.strip_prefix(source.prefix())?;
    let shaped = digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|n| shaped && *n > 0)?;
    // `mem-00001` would be a second spelling of `mem-0001`.
    (format!("{number:04}") == digits).then_some(number)
}
