//! Answers by idempotency key, what is left of budgets, and the audit log.

use super::pack::{pack, unpack};
use super::{Keep, KeepError};
use crate::refusal::Refusal;
use crate::reply::{Completed, Reply, ReplyKind};
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use traderharness_contract::json::text;
use traderharness_market::Day;

/// What a key was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// A result.
    Complete {
        body: Value,
        /// What a model reads, when it is not the body itself.
        text: Option<String>,
        completed: Option<Completed>,
    },
    /// An accepted job.
    Accepted { body: Value },
    /// A failure of the tool.
    Refused(Refusal),
}

impl Outcome {
    /// What its caller gets, now or `replayed`.
    ///
    /// # Errors
    /// The refusal, where it is one.
    pub(crate) fn reply(self, replayed: bool) -> Result<Reply, Refusal> {
        let (kind, body, shown, completed) = match self {
            Self::Complete { body, text, completed } => (ReplyKind::Complete, body, text, completed),
            Self::Accepted { body } => (ReplyKind::Accepted, body, None, None),
            Self::Refused(refusal) => return Err(Refusal { replayed, ..refusal }),
        };
        let text = shown.unwrap_or_else(|| text(&body));
        Ok(Reply { kind, body, replayed, completed, text })
    }
}

/// Whose key, for which capability. The key itself is kept as a digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kept {
    pub(crate) caller: String,
    pub(crate) capability: String,
    pub(crate) key: [u8; 32],
}

/// An answer with the digest of the request that got it.
#[derive(Debug)]
pub(crate) struct KeptAnswer {
    pub(crate) request: [u8; 32],
    pub(crate) outcome: Outcome,
}

/// A line of the audit log. Holds no argument, no token and no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditRow<'a> {
    /// Nobody's: empty.
    pub(crate) caller: &'a str,
    pub(crate) capability: &'a str,
    pub(crate) session: Option<&'a str>,
    /// Digest of the key; its first 16 hex digits are logged.
    pub(crate) key_digest: Option<[u8; 32]>,
    /// `OK`, `ACCEPTED`, `REPLAYED` or a class of C6.
    pub(crate) class: &'a str,
    pub(crate) units: u64,
    /// How many equal lines it stands for.
    pub(crate) count: u64,
}

/// Keeps an answer of a session, named by its number. A second one under the key is a defect and fails.
pub(crate) fn answer(
    t: &Transaction<'_>,
    session: i64,
    kept: &Kept,
    request: &[u8; 32],
    outcome: &Outcome,
) -> Result<(), KeepError> {
    t.prepare_cached(
        "INSERT INTO answers (caller, capability, key, body, kind, answer, session) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![kept.caller, kept.capability, kept.key, request, kind(outcome), pack(outcome)?, session])?;
    Ok(())
}

/// Puts the final answer in place of the accepted job that nobody was told of yet.
pub(crate) fn replace(t: &Transaction<'_>, kept: &Kept, outcome: &Outcome) -> Result<(), KeepError> {
    t.prepare_cached("UPDATE answers SET kind = ?4, answer = ?5 WHERE caller = ?1 AND capability = ?2 AND key = ?3")?
        .execute(params![kept.caller, kept.capability, kept.key, kind(outcome), pack(outcome)?])?;
    Ok(())
}

/// Forgets an answer, so that its key may be used again.
pub(crate) fn forget(t: &Transaction<'_>, caller: &str, capability: &str, key: &[u8]) -> Result<(), KeepError> {
    t.prepare_cached("DELETE FROM answers WHERE caller = ?1 AND capability = ?2 AND key = ?3")?
        .execute(params![caller, capability, key])?;
    Ok(())
}

const fn kind(outcome: &Outcome) -> i64 {
    match outcome {
        Outcome::Complete { .. } => 0,
        Outcome::Accepted { .. } => 1,
        Outcome::Refused(_) => 2,
    }
}

/// Keeps what is left of a budget.
pub(crate) fn budget(t: &Transaction<'_>, caller: &str, available: u64) -> Result<(), KeepError> {
    t.prepare_cached(
        "INSERT INTO budgets (caller, available) VALUES (?1, ?2) ON CONFLICT (caller) DO UPDATE SET available = excluded.available",
    )?
    .execute(params![caller, i64::try_from(available).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// Adds a line to the audit log.
pub(crate) fn audit(t: &Transaction<'_>, row: &AuditRow<'_>) -> Result<(), KeepError> {
    t.prepare_cached(
        "INSERT INTO audit (at, caller, capability, session, key_digest, class, units, count)
         VALUES (unixepoch(), ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        row.caller,
        row.capability,
        row.session,
        row.key_digest.map(|digest| crate::caller::hex(&digest[..8])),
        row.class,
        i64::try_from(row.units).unwrap_or(i64::MAX),
        i64::try_from(row.count).unwrap_or(i64::MAX)
    ])?;
    Ok(())
}

impl Keep {
    /// What a key was answered.
    pub(crate) fn answer(&self, kept: &Kept) -> Result<Option<KeptAnswer>, KeepError> {
        let connection = self.lock();
        let found: Option<([u8; 32], Vec<u8>)> = connection
            .prepare_cached("SELECT body, answer FROM answers WHERE caller = ?1 AND capability = ?2 AND key = ?3")?
            .query_row(params![kept.caller, kept.capability, kept.key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((request, answer)) = found else { return Ok(None) };
        Ok(Some(KeptAnswer { request, outcome: unpack("an answer", &answer)? }))
    }

    /// What is left of the budgets.
    pub(crate) fn budgets(&self) -> Result<BTreeMap<String, u64>, KeepError> {
        let connection = self.lock();
        let mut statement = connection.prepare("SELECT caller, available FROM budgets")?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?
            .collect::<Result<Vec<_>, _>>()?;
        Ok(rows.into_iter().map(|(caller, left)| (caller, u64::try_from(left).unwrap_or(0))).collect())
    }

    /// Lines of the audit log after a number, at most `limit`, as objects.
    pub(crate) fn audit_after(&self, after: i64, limit: usize) -> Result<Vec<Value>, KeepError> {
        audit_lines(&self.lock(), "seq > ?1", after, i64::try_from(limit).unwrap_or(i64::MAX))
    }

    /// Lines of the audit log.
    pub(crate) fn audit_rows(&self) -> Result<u64, KeepError> {
        let last: i64 = self.lock().query_row("SELECT coalesce(max(seq), 0) FROM audit", [], |row| row.get(0))?;
        Ok(u64::try_from(last).unwrap_or(0))
    }
}

/// Lines of the audit log under a condition on `?1`, in their order, at most `limit`.
pub(super) fn audit_lines(connection: &Connection, condition: &str, bound: i64, limit: i64) -> Result<Vec<Value>, KeepError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT seq, at, caller, capability, session, key_digest, class, units, count FROM audit
         WHERE {condition} ORDER BY seq LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![bound, limit], |row| {
        let caller: String = row.get(2)?;
        Ok(serde_json::json!({
            "seq": row.get::<_, i64>(0)?,
            "at": moment(row.get(1)?),
            "caller": (!caller.is_empty()).then_some(caller),
            "capability": row.get::<_, String>(3)?,
            "session": row.get::<_, Option<String>>(4)?,
            "key_digest": row.get::<_, Option<String>>(5)?,
            "class": row.get::<_, String>(6)?,
            "units": row.get::<_, i64>(7)?,
            "count": row.get::<_, i64>(8)?,
        }))
    })?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?)
}

/// Seconds since 1970 as a moment in UTC.
fn moment(seconds: i64) -> String {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let day = Day(i32::try_from(days).unwrap_or(0));
    format!("{day}T{:02}:{:02}:{:02}Z", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_utc() {
        let check = |seconds: i64, expected: &str| assert_eq!(moment(seconds), expected);
        check(0, "1970-01-01T00:00:00Z");
        check(951_868_799, "2000-02-29T23:59:59Z");
        check(951_868_800, "2000-03-01T00:00:00Z");
    }
}
