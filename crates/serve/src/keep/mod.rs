//! [`Keep`]: what survives the process, in one SQLite file: sessions, their operations and records, answers by idempotency key, jobs,
//! budgets, the audit log. One transaction per acknowledged effect; what was not committed was never acknowledged. Holds the mask keys of
//! sessions, so the folder is the owner's alone, and never a token: only digests.

pub(crate) mod answers;
pub(crate) mod jobs;
mod pack;
pub(crate) mod prune;
mod schema;
pub(crate) mod sessions;

pub(crate) use answers::{AuditRow, Kept, Outcome};
pub(crate) use jobs::JobState;
pub use prune::Pruned;
pub(crate) use prune::Retention;
pub(crate) use sessions::SessionRow;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Name of the file in the folder.
const FILE: &str = "house.sqlite";

/// Why something is not kept or not found again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The folder or the file.
    #[error("the folder of the server cannot be used")]
    Folder(#[source] std::io::Error),
    /// The database.
    #[error("the database of the server cannot be used")]
    Database(#[from] rusqlite::Error),
    /// Another process has it open.
    #[error("another process serves this folder")]
    InUse,
    /// Written by another version.
    #[error("the database has version {found}, and this program reads version {}", schema::VERSION)]
    Version {
        /// Version found.
        found: i64,
    },
    /// What is in it cannot be read.
    #[error("the database holds {what} that cannot be read: {fault}")]
    Broken {
        /// What.
        what: &'static str,
        /// Why.
        fault: String,
    },
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Keep {
    connection: Mutex<Connection>,
    folder: Option<PathBuf>,
}

impl Keep {
    /// Opens the file in a folder, made when it is not there, for this process alone; `None` keeps everything in memory.
    pub(crate) fn open(folder: Option<&Path>) -> Result<Self, KeepError> {
        let connection = match folder {
            Some(folder) => Connection::open(private_file(folder).map_err(KeepError::Folder)?)?,
            None => Connection::open_in_memory()?,
        };
        // Who waits for another server's folder waits for ever.
        connection.busy_timeout(std::time::Duration::ZERO)?;
        // No second process: operations of one session have one order. The lock of a killed process is gone with it.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let busy = |fault: rusqlite::Error| match fault.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => KeepError::InUse,
            _ => fault.into(),
        };
        schema::prepare(&connection).map_err(busy)?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(busy)?;
        // In WAL this loses nothing to a killed process; only a loss of power may take the last commits.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // Moving the log into the file waits for the disk, so it is done once in about a thousand calls: the slow one in a thousand is
        // slower, the one in a hundred is not slow at all.
        connection.pragma_update(None, "wal_autocheckpoint", 8_000)?;
        connection.pragma_update(None, "foreign_keys", "OFF")?;
        connection.set_prepared_statement_cache_capacity(64);
        let mut keep = connection;
        let transaction = keep.transaction_with_behavior(TransactionBehavior::Immediate).map_err(busy)?;
        schema::bring_up(&transaction)?;
        transaction.commit()?;
        Ok(Self { connection: Mutex::new(keep), folder: folder.map(Path::to_owned) })
    }

    /// The connection. A panic in the middle of a transaction rolled it back, so the connection is still good.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is kept; `None` in memory.
    fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Whether a folder holds a file of ours.
    pub(crate) fn is_in(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// Runs something as one transaction: all of it is kept, or nothing.
    pub(crate) fn together<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, KeepError>) -> Result<T, KeepError> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

/// The file in the folder, both readable by the owner alone.
fn private_file(folder: &Path) -> std::io::Result<PathBuf> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    for_the_owner_alone(&mut options);
    crate::private::make_private(folder)?;
    let path = folder.join(FILE);
    options.open(&path)?;
    Ok(path)
}

/// A file that is made by these options is readable by its owner alone, where the system knows owners.
fn for_the_owner_alone(options: &mut std::fs::OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}
