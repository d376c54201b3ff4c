//! Removing what is kept too long: sessions that ended, with everything that is theirs, and lines of the audit log, which go to a file
//! first. One small step at a time, each a transaction of its own, so that no request waits for it; a step that was cut off is done again.
//!
//! Never removed: a session that is open or has a job that is not done, with its answers; budgets; and the newest session and line,
//! so that no number is given twice.

use super::{Keep, KeepError, answers};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use std::io::Write as _;
use std::path::Path;

/// Rows that one step removes at most.
const STEP: i64 = 500;

/// Pages without content that the file may have; more of them are given back to the disk.
const SPARE_PAGES: i64 = 1_024;

/// Name of the file that lines of the audit log are moved to.
const AUDIT_FILE: &str = "audit.jsonl";

const SECONDS_OF_A_DAY: i64 = 86_400;

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Retention {
    /// Days after its end that a session is kept; 0 = for ever.
    pub(crate) days: u32,
    /// Bytes beyond which sessions that ended are removed before their time, those that ended first first; 0 = no bound.
    pub(crate) most_bytes: u64,
}

impl Retention {
    /// The moment before which things are too old.
    fn cutoff(self, now: i64) -> Option<i64> {
        (self.days > 0).then(|| now - i64::from(self.days) * SECONDS_OF_A_DAY)
    }
}

/// What was removed, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Pruned {
    /// Sessions.
    pub sessions: u64,
    /// Records of their trajectories.
    pub records: u64,
    /// Answers under their keys.
    pub answers: u64,
    /// Jobs.
    pub jobs: u64,
    /// Lines of the audit log, moved to the file.
    pub audit_lines: u64,
}

/// Sessions that may be removed, those that ended first first. `?1`: ended before.
const ENDED: &str = "FROM sessions WHERE ended < ?1 AND state <> 'open' AND number < (SELECT max(number) FROM sessions)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.session = sessions.id AND jobs.state IN ('accepted', 'running'))";

/// Lines of the audit log that may be moved. `?1`: written before.
const OLD_LINES: &str = "at < ?1 AND seq < (SELECT max(seq) FROM audit)";

fn now(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT unixepoch()", [], |row| row.get(0))
}

/// Bytes of the file that hold something.
fn used(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0));
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    Ok(u64::try_from(pages.saturating_mul(number("page_size")?)).unwrap_or(0))
}

impl Keep {
    /// Bytes that are kept.
    pub(crate) fn used_bytes(&self) -> Result<u64, KeepError> {
        Ok(used(&self.lock())?)
    }

    /// Removes a little of what is kept too long; false when there is nothing more of it. `forget` is told the id of a session before
    /// anything of it is removed, and may be told it again.
    pub(crate) fn prune_step(&self, retention: Retention, forget: &dyn Fn(&str), pruned: &mut Pruned) -> Result<bool, KeepError> {
        Ok(self.clear_gone(pruned)?
            || self.remove_session(retention, forget, pruned)?
            || self.move_audit_lines(retention, pruned)?
            || self.give_back_pages()?)
    }

    /// Rows of a session that is not there any more.
    fn clear_gone(&self, pruned: &mut Pruned) -> Result<bool, KeepError> {
        let mut removed = Pruned::default();
        let more = self.together(|t| {
            let gone: Option<i64> =
                t.query_row("SELECT number FROM gone ORDER BY number LIMIT 1", [], |row| row.get(0)).optional()?;
            let Some(number) = gone else { return Ok(false) };
            let some = |statement: &str| Ok::<_, KeepError>(t.prepare_cached(statement)?.execute(params![number, STEP])?);
            let answers = some(
                "DELETE FROM answers WHERE (caller, capability, key) IN
                 (SELECT caller, capability, key FROM answers WHERE session = ?1 LIMIT ?2)",
            )?;
            let records = some(
                "DELETE FROM records WHERE session = ?1
                 AND number < (SELECT min(number) + ?2 FROM records WHERE session = ?1)",
            )?;
            let ops =
                some("DELETE FROM ops WHERE session = ?1 AND number < (SELECT min(number) + ?2 FROM ops WHERE session = ?1)")?;
            if answers + records + ops == 0 {
                t.execute("DELETE FROM gone WHERE number = ?1", [number])?;
            }
            (removed.answers, removed.records) = (answers as u64, records as u64);
            Ok(true)
        })?;
        pruned.answers += removed.answers;
        pruned.records += removed.records;
        Ok(more)
    }

    /// The session that is kept longest beyond its time. From here on it is not there; its rows follow.
    fn remove_session(&self, retention: Retention, forget: &dyn Fn(&str), pruned: &mut Pruned) -> Result<bool, KeepError> {
        let found: Option<(i64, String)> = {
            let connection = self.lock();
            let before = if retention.most_bytes > 0 && used(&connection)? > retention.most_bytes {
                Some(i64::MAX)
            } else {
                retention.cutoff(now(&connection)?)
            };
            let Some(before) = before else { return Ok(false) };
            connection
                .prepare_cached(&format!("SELECT number, id {ENDED} ORDER BY ended, number LIMIT 1"))?
                .query_row([before], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?
        };
        let Some((number, id)) = found else { return Ok(false) };
        forget(&id);
        let jobs = self.together(|t| {
            t.execute("INSERT OR IGNORE INTO gone (number) VALUES (?1)", [number])?;
            t.execute("DELETE FROM sessions WHERE number = ?1", [number])?;
            Ok(t.execute("DELETE FROM jobs WHERE session = ?1", [&id])?)
        })?;
        pruned.sessions += 1;
        pruned.jobs += jobs as u64;
        Ok(true)
    }

    /// Old lines of the audit log, to the file first. After a kill between the two a line stands in both; its `seq` says which it is.
    fn move_audit_lines(&self, retention: Retention, pruned: &mut Pruned) -> Result<bool, KeepError> {
        let (before, lines) = {
            let connection = self.lock();
            let Some(before) = retention.cutoff(now(&connection)?) else { return Ok(false) };
            (before, answers::audit_lines(&connection, OLD_LINES, before, STEP)?)
        };
        let Some(last) = lines.last().and_then(|line| line["seq"].as_i64()) else { return Ok(false) };
        if let Some(folder) = self.folder() {
            append(&folder.join(AUDIT_FILE), &lines).map_err(KeepError::Folder)?;
        }
        self.together(|t| Ok(t.execute("DELETE FROM audit WHERE at < ?1 AND seq <= ?2", [before, last])?))?;
        pruned.audit_lines += lines.len() as u64;
        Ok(true)
    }

    fn give_back_pages(&self) -> Result<bool, KeepError> {
        let connection = self.lock();
        let free = || connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
        let before = free()?;
        if before <= SPARE_PAGES {
            return Ok(false);
        }
        // Every row that it gives is one page.
        let mut statement = connection.prepare_cached("PRAGMA incremental_vacuum(256)")?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        Ok(free()? < before)
    }

    /// What would be removed by age, without removing it.
    pub(crate) fn too_old(&self, days: u32) -> Result<Pruned, KeepError> {
        let connection = self.lock();
        let retention = Retention { days, most_bytes: 0 };
        let Some(before) = retention.cutoff(now(&connection)?) else { return Ok(Pruned::default()) };
        let count = |statement: String| {
            let rows = connection.query_row(&statement, [before], |row| row.get::<_, i64>(0))?;
            Ok::<_, KeepError>(u64::try_from(rows).unwrap_or(0))
        };
        // With those that an earlier removal left.
        let of = |table: &str| {
            count(format!("SELECT count(*) FROM {table} WHERE session IN (SELECT number {ENDED} UNION SELECT number FROM gone)"))
        };
        Ok(Pruned {
            sessions: count(format!("SELECT count(*) {ENDED}"))?,
            records: of("records")?,
            answers: of("answers")?,
            jobs: count(format!("SELECT count(*) FROM jobs WHERE session IN (SELECT id {ENDED})"))?,
            audit_lines: count(format!("SELECT count(*) FROM audit WHERE {OLD_LINES}"))?,
        })
    }

    /// Writes the file anew without pages that hold nothing. Nobody else is served meanwhile.
    pub(crate) fn compact(&self) -> Result<(), KeepError> {
        self.lock().execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(())
    }
}

/// Adds lines to the file, readable by the owner alone, and waits until they are on the disk.
fn append(path: &Path, lines: &[serde_json::Value]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    super::for_the_owner_alone(&mut options);
    let mut file = options.open(path)?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    // No request waits for more than one step.
    #[test]
    fn a_step_removes_a_bounded_number_of_rows() {
        let keep = Keep::open(None).unwrap();
        keep.lock()
            .execute_batch(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1300)
                 INSERT INTO records SELECT 1, n * 7, x'00' FROM n;
                 WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1300)
                 INSERT INTO answers SELECT 'a', 'x.y', CAST(n AS BLOB), x'00', 0, x'00', 1 FROM n;
                 INSERT INTO gone VALUES (1);",
            )
            .unwrap();
        let rows = || -> i64 {
            let count = "SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM answers)";
            keep.lock().query_row(count, [], |row| row.get(0)).unwrap()
        };
        let mut pruned = Pruned::default();
        let mut before = rows();
        while keep.prune_step(Retention::default(), &|_| (), &mut pruned).unwrap() {
            let after = rows();
            assert!(before - after <= 2 * STEP, "{before} rows, then {after}");
            before = after;
        }
        assert_eq!((rows(), pruned.records, pruned.answers), (0, 1_300, 1_300));
    }

    #[test]
    fn room_is_given_back_a_little_at_a_time() {
        let keep = Keep::open(None).unwrap();
        let pages = || -> i64 { keep.lock().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap() };
        keep.lock().execute_batch("INSERT INTO records VALUES (1, 1, zeroblob(12000000)); INSERT INTO gone VALUES (1);").unwrap();
        let full = pages();
        while keep.prune_step(Retention::default(), &|_| (), &mut Pruned::default()).unwrap() {}
        assert!(full > 2_900 && pages() <= SPARE_PAGES + 100, "{full} pages, then {}", pages());
    }
}
