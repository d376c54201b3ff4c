//! The order gate on files: mandate, kill switch, counter, audit log; and `traderharness gate verify`, which only reads.
//!
//! ```text
//! DIR/HALT                     halts every channel, whatever is in it
//! DIR/CHANNEL/HALT             halts this channel
//! DIR/CHANNEL/trades.json      orders filled by day
//! DIR/CHANNEL/audit.jsonl      hash-chained decisions; locked while a run writes it
//! ```
//!
//! Anything that is there and cannot be read as what it should be holds orders back. The folder belongs to the owner of the account:
//! the audit log holds real codes and days.

use crate::args::{GateCommand, GateOptions};
use crate::fault::{Class, Fault, Outcome, read_text};
use crate::manifest::write_whole;
use crate::report::print;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traderharness_market::Day;
use traderharness_tools_exec::OrderGate;
use traderharness_tools_exec::gate::audit::session_after;
use traderharness_tools_exec::gate::host::NothingLive;
use traderharness_tools_exec::gate::{Break, GateHost, Halt, Mandate, Reading, Recorded, Verified, verify};

/// What a private run file says about the gate of its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GateRun {
    /// The mandate, as it was read.
    mandate: Value,
    /// Folder of the gate.
    dir: PathBuf,
    /// Records the audit log had when the run began.
    records_before: u64,
}

/// Reads a mandate: JSON, or YAML. A key that is written twice is an error in either.
fn read_mandate(path: &Path) -> Result<Value, Fault> {
    let text = read_text("mandate", path)?;
    let text = text.trim_start_matches('\u{feff}');
    let strict = || -> Result<Value, serde_yaml_ng::Error> {
        let value: serde_yaml_ng::Value = serde_yaml_ng::from_str(text)?;
        serde_yaml_ng::from_value(value)
    };
    strict().map_err(|e| Fault::new(Class::Input, e).context(format!("mandate `{}` is not YAML or JSON", path.display())))
}

fn checked(mandate: &Value, path: &Path) -> Result<Mandate, Fault> {
    Mandate::from_value(mandate.clone()).map_err(|e| Fault::new(Class::Input, e).context(format!("mandate `{}`", path.display())))
}

/// A gate that was looked at and is not open yet: nothing was decided and nothing recorded.
pub(crate) struct Closed {
    terms: Mandate,
    host: Box<dyn GateHost>,
    log: Verified,
    /// What the run keeps about it, before it opens.
    pub(crate) run: GateRun,
}

/// Looks at the gate of a run. `resumed` is what the interrupted run kept about its gate: its decisions are then taken from the log,
/// as far as it goes.
pub(crate) fn look(mandate: &Path, dir: &Path, resumed: Option<&GateRun>) -> Result<Closed, Fault> {
    let raw = read_mandate(mandate)?;
    let terms = checked(&raw, mandate)?;
    let (host, log) = FileHost::open(dir, &terms.channel, resumed.is_some())?;
    let broken = |e: Break| {
        Fault::new(Class::Finding, e)
            .context(format!("the audit log of the order gate in `{}` is not whole, so no order is sent", dir.display()))
            .hint("look at it with: traderharness gate verify AUDIT; a run with a new --gate-dir starts a new log")
    };
    let before = match resumed {
        Some(run) => run.records_before,
        None => verify(&log).map_err(broken)?.records,
    };
    let (log, lines) = session_after(&log, before).map_err(broken)?;
    let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_path_buf());
    let host: Box<dyn GateHost> = if lines.is_empty() { Box::new(host) } else { Box::new(Recorded::new(&lines, host)) };
    Ok(Closed { terms, host, log, run: GateRun { mandate: raw, dir, records_before: before } })
}

impl Closed {
    /// Opens the gate, which is its first record.
    pub(crate) fn open(self) -> Result<OrderGate, Fault> {
        let dir = self.run.dir;
        OrderGate::open(self.terms, self.host, &self.log).map_err(|e| {
            Fault::new(Class::Environment, e).context(format!("the order gate in `{}` cannot be opened", dir.display()))
        })
    }
}

/// The gate of a recorded run, over what its audit log says; nothing is written. A log in the run folder, which may have been moved,
/// comes before the folder the run was told.
pub(crate) fn replayed(run: &GateRun, own: &Path) -> Result<OrderGate, Fault> {
    let terms = checked(&run.mandate, Path::new("private/run.json"))?;
    let beside = audit_path(own, &terms.channel);
    let path = if beside.exists() { beside } else { audit_path(&run.dir, &terms.channel) };
    let log = std::fs::read(&path).map_err(|e| unreadable(&path, e))?;
    let found = |e: Break| Fault::new(Class::Finding, e).context(format!("the audit log `{}` is not whole", path.display()));
    let (verified, lines) = session_after(&log, run.records_before).map_err(found)?;
    OrderGate::open(terms, Box::new(Recorded::new(&lines, NothingLive)), &verified)
        .map_err(|e| Fault::new(Class::Finding, e).context(format!("the audit log `{}` is not that of this run", path.display())))
}

fn audit_path(dir: &Path, channel: &str) -> PathBuf {
    dir.join(channel).join("audit.jsonl")
}

fn unreadable(path: &Path, e: io::Error) -> Fault {
    Fault::new(Class::Environment, e).context(format!("audit log `{}` cannot be read", path.display())).hint(
        "pass the audit.jsonl of a channel: CHANNEL/audit.jsonl in the --gate-dir folder, or in private/gate of a run folder",
    )
}

/// `traderharness gate`.
pub(crate) fn gate(options: &GateOptions) -> Outcome {
    let GateCommand::Verify { audit, json } = &options.command;
    let log = std::fs::read(audit).map_err(|e| unreadable(audit, e))?;
    let found = verify(&log);
    if *json {
        let report = match &found {
            Ok(whole) => {
                let open: Vec<Value> = whole
                    .open_intents
                    .iter()
                    .map(|i| json!({ "audit_id": i.audit_id, "order": i.order, "key": i.key }))
                    .collect();
                json!({
                    "whole": true, "records": whole.records, "sessions": whole.sessions, "head": whole.head,
                    "orders_without_outcome": open,
                })
            }
            Err(e) => json!({ "whole": false, "line": e.line, "fault": e.fault.to_string() }),
        };
        print(&crate::run::pretty(&report));
        return Ok(ExitCode::from(u8::from(found.is_err())));
    }
    let whole = found.map_err(|e| Fault::new(Class::Finding, e).context(format!("`{}` is broken", audit.display())))?;
    print(&format!("{} records of {} session(s), every hash in order.\nHead: {}", whole.records, whole.sessions, whole.head));
    for open in &whole.open_intents {
        print(&format!("{}: `{}` was about to be sent, and no record says what became of it.", open.audit_id, open.order));
    }
    Ok(ExitCode::SUCCESS)
}

/// Orders filled by day, as the counter file has them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counter {
    schema_version: u32,
    days: BTreeMap<String, u32>,
}

/// The gate's folder.
#[derive(Debug)]
pub(crate) struct FileHost {
    root: PathBuf,
    channel: PathBuf,
    audit: File,
    /// Bytes of whole lines.
    length: u64,
    /// A write failed and what it left could not be removed.
    torn: bool,
}

impl FileHost {
    /// Opens the folder, made when it is not there, and takes the lock of its audit log. Gives the log as it is; with `mend`, without
    /// a line that a kill has cut.
    pub(crate) fn open(root: &Path, channel: &str, mend: bool) -> Result<(Self, Vec<u8>), Fault> {
        let folder = root.join(channel);
        let path = audit_path(root, channel);
        let fault =
            |e: io::Error| Fault::new(Class::Environment, e).context(format!("the order gate cannot use `{}`", path.display()));
        std::fs::create_dir_all(&folder).map_err(fault)?;
        let mut audit = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(fault)?;
        match audit.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Fault::text(Class::Environment, format!("another run writes `{}`", path.display()))
                    .hint("one run at a time uses a channel; wait for it, or name another --gate-dir"));
            }
            Err(TryLockError::Error(e)) => return Err(fault(e)),
        }
        let mut log = Vec::new();
        audit.read_to_end(&mut log).map_err(fault)?;
        let whole = log.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        if mend && whole < log.len() {
            log.truncate(whole);
            audit.set_len(whole as u64).map_err(fault)?;
        }
        Ok((Self { root: root.to_path_buf(), channel: folder, audit, length: log.len() as u64, torn: false }, log))
    }

    fn counter_path(&self) -> PathBuf {
        self.channel.join("trades.json")
    }

    fn counter(&self) -> io::Result<Option<Counter>> {
        let path = self.counter_path();
        // A link that leads nowhere is there and cannot be read.
        match std::fs::symlink_metadata(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
            Ok(_) => {}
        }
        let counter: Counter = serde_json::from_slice(&std::fs::read(&path)?)?;
        if counter.schema_version != 1 || counter.days.keys().any(|day| Day::parse(day).is_err()) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a counter of schema version 1"));
        }
        Ok(Some(counter))
    }
}

impl GateHost for FileHost {
    fn halt(&mut self, channel: &str) -> Halt {
        // The folder itself must be there, so that a HALT in it would be seen.
        if !std::fs::metadata(&self.root).is_ok_and(|m| m.is_dir()) {
            return Halt::Unreadable;
        }
        let state = |path: PathBuf, halted: Halt| match std::fs::symlink_metadata(path) {
            Ok(_) => halted,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Halt::Clear,
            Err(_) => Halt::Unreadable,
        };
        match state(self.root.join("HALT"), Halt::All) {
            Halt::Clear => state(self.root.join(channel).join("HALT"), Halt::Channel),
            halted => halted,
        }
    }

    fn trades(&mut self, day: Day) -> Reading {
        Ok(self.counter()?.map(|counter| counter.days.get(&day.to_string()).copied().unwrap_or(0)))
    }

    fn keep_trades(&mut self, day: Day, trades: u32) -> io::Result<()> {
        let mut counter = self.counter()?.unwrap_or(Counter { schema_version: 1, days: BTreeMap::new() });
        counter.days.insert(day.to_string(), trades);
        let text = serde_json::to_string(&counter)?;
        write_whole(&self.counter_path(), text.as_bytes(), true).map_err(|_| io::Error::other("the counter cannot be written"))
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        if self.torn {
            return Err(io::Error::other("an earlier record could not be written whole"));
        }
        let bytes = format!("{line}\n");
        if let Err(fault) = self.audit.write_all(bytes.as_bytes()).and_then(|()| self.audit.sync_data()) {
            self.torn = self.audit.set_len(self.length).is_err();
            return Err(fault);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a broken expectation must stop its test at once")]
mod tests {
    use super::*;

    /// An opened gate folder.
    fn host() -> (tempfile::TempDir, FileHost) {
        let folder = tempfile::tempdir().unwrap();
        let (host, log) = FileHost::open(&folder.path().join("gate"), "paper", false).unwrap();
        assert!(log.is_empty());
        (folder, host)
    }

    // complaint OR-15
    #[test]
    fn whatever_is_there_halts() {
        fn check(make: impl Fn(&Path), place: &str, expected: Halt) {
            let (folder, mut host) = host();
            let root = folder.path().join("gate");
            assert_eq!(host.halt("paper"), Halt::Clear);
            make(&root.join(place));
            assert_eq!(host.halt("paper"), expected, "{place}");
            let other = if place == "HALT" { Halt::All } else { Halt::Clear };
            assert_eq!(host.halt("another"), other, "a channel halts itself, HALT halts all");
        }
        for (place, expected) in [("HALT", Halt::All), ("paper/HALT", Halt::Channel)] {
            check(|p| std::fs::write(p, "").unwrap(), place, expected);
            check(|p| std::fs::write(p, [0xff, 0x00, 0xfe]).unwrap(), place, expected);
            check(|p| std::fs::create_dir(p).unwrap(), place, expected);
            #[cfg(unix)]
            check(|p| std::os::unix::fs::symlink("nowhere", p).unwrap(), place, expected);
            #[cfg(unix)]
            check(|p| std::os::unix::fs::symlink("HALT", p).unwrap(), place, expected);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_looked_into_halts() {
        let (folder, mut host) = host();
        let root = folder.path().join("gate");
        std::fs::rename(root.join("paper"), folder.path().join("aside")).unwrap();
        std::fs::write(root.join("paper"), "a file in place of the channel's folder").unwrap();
        assert_eq!(host.halt("paper"), Halt::Unreadable);
        std::fs::rename(&root, folder.path().join("gone")).unwrap();
        assert_eq!(host.halt("paper"), Halt::Unreadable);
        std::fs::write(&root, "a file in place of the gate's folder").unwrap();
        assert_eq!(host.halt("paper"), Halt::Unreadable);
    }

    #[test]
    fn a_counter_that_is_there_and_not_a_counter_is_an_error_and_not_zero() {
        let (folder, mut host) = host();
        let day = Day::parse("2024-03-08").unwrap();
        let path = folder.path().join("gate/paper/trades.json");
        assert_eq!(host.trades(day).unwrap(), None);
        host.keep_trades(day, 2).unwrap();
        assert_eq!(host.trades(day).unwrap(), Some(2));
        assert_eq!(host.trades(day.plus(1)).unwrap(), Some(0));
        for bad in [
            "",
            "{",
            "3",
            r#"{"schema_version":2,"days":{}}"#,
            r#"{"schema_version":1,"days":{"2024-03-08":-1}}"#,
            r#"{"schema_version":1,"days":{"2024-03-08":1.5}}"#,
            r#"{"schema_version":1,"days":{"soon":1}}"#,
            r#"{"schema_version":1,"days":{},"more":1}"#,
        ] {
            std::fs::write(&path, bad).unwrap();
            assert!(host.trades(day).is_err(), "{bad}");
            assert!(host.keep_trades(day, 3).is_err(), "{bad}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bad, "what cannot be read is not written over");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(host.trades(day).is_err(), "a folder in its place");
        std::fs::remove_dir(&path).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("nowhere", &path).unwrap();
            assert!(host.trades(day).is_err(), "a link that leads nowhere");
        }
    }

    #[test]
    fn the_audit_log_only_grows_and_belongs_to_one_run() {
        let (folder, mut host) = host();
        let root = folder.path().join("gate");
        host.append("one").unwrap();
        assert!(FileHost::open(&root, "paper", false).is_err(), "locked");
        assert!(FileHost::open(&root, "another", false).is_ok());
        drop(host);
        std::fs::write(root.join("paper/audit.jsonl"), "one\ntw").unwrap();
        let (_, log) = FileHost::open(&root, "paper", false).unwrap();
        assert_eq!(log, b"one\ntw", "a torn line is for the verifier to name");
        let (mut host, log) = FileHost::open(&root, "paper", true).unwrap();
        assert_eq!(log, b"one\n", "a resumed run cuts what the kill left");
        host.append("two").unwrap();
        assert_eq!(std::fs::read(root.join("paper/audit.jsonl")).unwrap(), b"one\ntwo\n");
    }
}
