//! The memory file of a recorded run: one line per event, handed to the operating system before the call that made it is answered.
//! It holds real days and is for the owner of the run, not for an agent.

use crate::fault::{Class, Fault};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use traderharness_tools_exec::memory::{MemoryEvent, MemorySink};

/// A memory file that only grows.
pub(crate) struct MemoryFile {
    file: File,
    /// Bytes of whole lines.
    length: u64,
    /// A write failed and what it left could not be removed.
    torn: bool,
}

impl MemoryFile {
    /// Starts the file. One of an interrupted run is written anew: the run is played again from its first day and gives the same events.
    pub(crate) fn start(path: &Path) -> Result<Self, Fault> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(|e| {
                Fault::new(Class::Environment, e).context(format!("memory file `{}` cannot be made", path.display()))
            })?;
        Ok(Self { file, length: 0, torn: false })
    }
}

impl MemorySink for MemoryFile {
    fn keep(&mut self, events: &[MemoryEvent]) -> io::Result<()> {
        if self.torn {
            return Err(io::Error::other("an earlier line could not be written whole"));
        }
        // One write for what belongs together, so that a kill cuts at most its last line.
        let lines: String = events.iter().map(|event| event.to_line() + "\n").collect();
        if let Err(fault) = self.file.write_all(lines.as_bytes()) {
            self.torn = self.file.set_len(self.length).is_err();
            return Err(fault);
        }
        self.length += lines.len() as u64;
        Ok(())
    }
}
