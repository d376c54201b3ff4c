//! Sessions, the operations that made them what they are, and their records.

use super::pack::{pack, unpack};
use super::{Keep, KeepError};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde_json::Value;
use traderharness_replay::Record;

/// A session as it is kept.
#[derive(Clone)]
pub(crate) struct SessionRow {
    pub(crate) id: String,
    /// Counts the sessions of the file, from 1.
    pub(crate) number: i64,
    pub(crate) caller: String,
    pub(crate) profile: String,
    pub(crate) agent_revision: Option<String>,
    /// What it was made of: profile and dataset digest. A session goes on only over the same.
    pub(crate) made_of: Value,
    /// Secret of its mask.
    pub(crate) mask_key: Vec<u8>,
    /// `open`, `finished`, `closed`, `stopped`.
    pub(crate) state: String,
    /// Its state as its caller last saw it.
    pub(crate) shown: Value,
}

impl std::fmt::Debug for SessionRow {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionRow").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

/// An operation of a session with the records that it made.
#[derive(Debug)]
pub(crate) struct KeptOp {
    /// Tool; `None` for a step of the clock.
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Value,
    pub(crate) records: Vec<Record>,
}

const COLUMNS: &str = "id, number, caller, profile, agent_revision, made_of, mask_key, state, shown";

fn session(row: &Row<'_>) -> rusqlite::Result<(SessionRow, Vec<u8>, Vec<u8>)> {
    let kept = SessionRow {
        id: row.get(0)?,
        number: row.get(1)?,
        caller: row.get(2)?,
        profile: row.get(3)?,
        agent_revision: row.get(4)?,
        made_of: Value::Null,
        mask_key: row.get(6)?,
        state: row.get(7)?,
        shown: Value::Null,
    };
    Ok((kept, row.get(5)?, row.get(8)?))
}

fn whole((mut row, made_of, shown): (SessionRow, Vec<u8>, Vec<u8>)) -> Result<SessionRow, KeepError> {
    row.made_of = unpack("a session", &made_of)?;
    row.shown = unpack("a session", &shown)?;
    Ok(row)
}

/// Keeps a new session; gives its number.
pub(crate) fn insert(t: &Transaction<'_>, row: &SessionRow) -> Result<i64, KeepError> {
    let number: i64 = t.query_row("SELECT coalesce(max(number), 0) + 1 FROM sessions", [], |row| row.get(0))?;
    t.execute(
        "INSERT INTO sessions (id, number, caller, profile, agent_revision, made_of, mask_key, state, shown)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            row.id,
            number,
            row.caller,
            row.profile,
            row.agent_revision,
            pack(&row.made_of)?,
            row.mask_key,
            row.state,
            pack(&row.shown)?
        ],
    )?;
    Ok(number)
}

/// Keeps what a session is now.
pub(crate) fn show(t: &Transaction<'_>, number: i64, state: &str, shown: &Value) -> Result<(), KeepError> {
    t.prepare_cached(
        "UPDATE sessions SET state = ?2, shown = ?3,
         ended = CASE WHEN ?2 = 'open' THEN NULL ELSE coalesce(ended, unixepoch()) END WHERE number = ?1",
    )?
    .execute(params![number, state, pack(shown)?])?;
    Ok(())
}

/// Keeps an operation and its records.
pub(crate) fn append(
    t: &Transaction<'_>,
    session: i64,
    op: i64,
    tool: Option<&str>,
    arguments: &Value,
    first_record: i64,
    records: &[Record],
) -> Result<(), KeepError> {
    t.prepare_cached("INSERT INTO ops (session, number, tool, arguments, records) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![session, op, tool, pack(arguments)?, records.len() as i64])?;
    let mut insert = t.prepare_cached("INSERT INTO records (session, number, record) VALUES (?1, ?2, ?3)")?;
    for (number, record) in (first_record..).zip(records) {
        insert.execute(params![session, number, pack(record)?])?;
    }
    Ok(())
}

impl Keep {
    /// A session.
    pub(crate) fn session(&self, id: &str) -> Result<Option<SessionRow>, KeepError> {
        let connection = self.lock();
        let found = connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?
            .query_row([id], session)
            .optional()?;
        found.map(whole).transpose()
    }

    /// Sessions of a caller, in the order they were made.
    pub(crate) fn sessions_of(&self, caller: &str) -> Result<Vec<SessionRow>, KeepError> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE caller = ?1 ORDER BY number"))?;
        let rows = statement.query_map([caller], session)?.collect::<Result<Vec<_>, _>>()?;
        rows.into_iter().map(whole).collect()
    }

    /// Ids of the open sessions of a caller.
    pub(crate) fn open_sessions_of(&self, caller: &str) -> Result<Vec<String>, KeepError> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT id FROM sessions WHERE caller = ?1 AND state = 'open' ORDER BY number")?;
        let ids = statement.query_map([caller], |row| row.get(0))?.collect::<Result<Vec<_>, _>>()?;
        Ok(ids)
    }

    /// How many sessions are open.
    pub(crate) fn open_sessions(&self) -> Result<u64, KeepError> {
        let open: i64 = self.lock().query_row("SELECT count(*) FROM sessions WHERE state = 'open'", [], |row| row.get(0))?;
        Ok(u64::try_from(open).unwrap_or(0))
    }

    /// An operation of a session with its records; `None` after the last.
    pub(crate) fn op(&self, session: i64, op: i64, first_record: i64) -> Result<Option<KeptOp>, KeepError> {
        let connection = self.lock();
        let found: Option<(Option<String>, Vec<u8>, i64)> = connection
            .prepare_cached("SELECT tool, arguments, records FROM ops WHERE session = ?1 AND number = ?2")?
            .query_row([session, op], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((tool, arguments, records)) = found else { return Ok(None) };
        let mut statement = connection
            .prepare_cached("SELECT record FROM records WHERE session = ?1 AND number >= ?2 AND number < ?3 ORDER BY number")?;
        let rows = statement
            .query_map([session, first_record, first_record + records], |row| row.get::<_, Vec<u8>>(0))?
            .collect::<Result<Vec<_>, _>>()?;
        let records = rows.iter().map(|bytes| unpack("a record", bytes)).collect::<Result<_, _>>()?;
        Ok(Some(KeptOp { tool, arguments: unpack("an operation", &arguments)?, records }))
    }

    /// Records of a session from a number, with their numbers, each as a trajectory line has it.
    pub(crate) fn records(&self, session: i64, from: i64, limit: usize) -> Result<Vec<Value>, KeepError> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT number, record FROM records WHERE session = ?1 AND number >= ?2 ORDER BY number LIMIT ?3")?;
        let rows = statement
            .query_map(params![session, from, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
            })?
            .collect::<Result<Vec<_>, _>>()?;
        let line = |(number, bytes): &(i64, Vec<u8>)| {
            let record: serde_json::Map<String, Value> = unpack("a record", bytes)?;
            let mut line = serde_json::Map::from_iter([("seq".to_owned(), Value::from(*number))]);
            line.extend(record);
            Ok(Value::Object(line))
        };
        rows.iter().map(line).collect()
    }
}
