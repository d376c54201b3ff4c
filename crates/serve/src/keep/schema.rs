//! The tables of the file, and how a file of an earlier version comes to have them.

use super::KeepError;
use rusqlite::{Connection, Transaction};

/// Version of the tables below; a file of a later version is refused, never changed.
pub(super) const VERSION: i64 = 2;

/// `sessions.ended`: when it ended, seconds since 1970; null while it is open. `answers.session`: number of the session that an answer is
/// of; it stays as long as that. `gone`: sessions of which rows are still to be removed. `audit.count`: how many equal lines it stands for.
const TABLES: &str = "
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
    caller TEXT NOT NULL,
    profile TEXT NOT NULL,
    agent_revision TEXT,
    made_of BLOB NOT NULL,
    mask_key BLOB NOT NULL,
    state TEXT NOT NULL,
    shown BLOB NOT NULL,
    ended INTEGER
) STRICT;
CREATE INDEX sessions_of ON sessions (caller, number);
CREATE TABLE ops (
    session INTEGER NOT NULL,
    number INTEGER NOT NULL,
    tool TEXT,
    arguments BLOB,
    records INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE records (
    session INTEGER NOT NULL,
    number INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE answers (
    caller TEXT NOT NULL,
    capability TEXT NOT NULL,
    key BLOB NOT NULL,
    body BLOB NOT NULL,
    kind INTEGER NOT NULL,
    answer BLOB NOT NULL,
    session INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (caller, capability, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    session TEXT NOT NULL,
    capability TEXT NOT NULL,
    key BLOB NOT NULL,
    state TEXT NOT NULL,
    answer BLOB
) STRICT;
CREATE INDEX jobs_open ON jobs (state) WHERE state IN ('accepted', 'running');
CREATE TABLE budgets (
    caller TEXT PRIMARY KEY,
    available INTEGER NOT NULL
) STRICT;
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    caller TEXT NOT NULL,
    capability TEXT NOT NULL,
    session TEXT,
    key_digest TEXT,
    class TEXT NOT NULL,
    units INTEGER NOT NULL,
    at INTEGER NOT NULL DEFAULT 0,
    count INTEGER NOT NULL DEFAULT 1
) STRICT;
";

/// What version 2 has beside the tables of version 1.
const SINCE_2: &str = "
CREATE INDEX sessions_ended ON sessions (ended) WHERE ended IS NOT NULL;
CREATE INDEX answers_of ON answers (session);
CREATE INDEX jobs_of ON jobs (session);
CREATE INDEX audit_at ON audit (at);
CREATE TABLE gone (number INTEGER PRIMARY KEY) STRICT;
";

/// Version 1 said of nothing when it was: it counts as of now. An answer did not name its session: it stays as long as the newest one
/// of its caller.
const FROM_1: &str = "
ALTER TABLE sessions ADD COLUMN ended INTEGER;
ALTER TABLE answers ADD COLUMN session INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
UPDATE sessions SET ended = unixepoch() WHERE state <> 'open';
UPDATE answers SET session = coalesce((SELECT max(number) FROM sessions WHERE sessions.caller = answers.caller), 0);
UPDATE audit SET at = unixepoch();
";

/// What has to be said before the first table is made.
pub(super) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    // What is removed can be given back to the disk a little at a time.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")
}

/// Makes the tables, or those that an earlier version lacks.
pub(super) fn bring_up(transaction: &Transaction<'_>) -> Result<(), KeepError> {
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match version {
        0 => transaction.execute_batch(TABLES)?,
        1 => transaction.execute_batch(FROM_1)?,
        VERSION => return Ok(()),
        found => return Err(KeepError::Version { found }),
    }
    transaction.execute_batch(SINCE_2)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}
