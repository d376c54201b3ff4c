//! The audit log: one line per decision, each holding the hash of the line before it (spec/seeds.md B16.5). A changed, missing, added
//! or moved record breaks the chain at a line that [`verify`] names. What was cut off at the end leaves a chain that is whole but
//! shorter, so an owner compares the number of records or the head with what was noted elsewhere.
//!
//! Record: `{"seq", "prev_record_hash", "record_hash", "payload"}`, where the hash is SHA-256 over the compact JSON, keys sorted, of
//! `{"payload", "prev_record_hash", "seq"}`. Payloads hold integers and texts only, never a float, and times of the simulated clock.

use super::host::Halt;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use traderharness_contract::json::canonical;
use traderharness_market::Day;

/// What the first record points back to.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Kind of the record that begins a session.
pub(crate) const OPENED: &str = "mandate_loaded";

/// SHA-256 as lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn record_hash(seq: u64, previous: &str, payload: &Value) -> String {
    let whole = json!({ "payload": payload, "prev_record_hash": previous, "seq": seq });
    sha256_hex(canonical(&whole).to_string().as_bytes())
}

fn line(seq: u64, previous: &str, payload: &Value) -> (String, String) {
    let hash = record_hash(seq, previous, payload);
    let record = json!({ "seq": seq, "prev_record_hash": previous, "record_hash": hash, "payload": canonical(payload) });
    (record.to_string(), hash)
}

/// The end of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    seq: u64,
    head: String,
}

impl Chain {
    pub(crate) fn after(log: &Verified) -> Self {
        Self { seq: log.records, head: log.head.clone() }
    }

    /// Id of the record that comes next.
    pub(crate) fn next_id(&self) -> String {
        let digest = sha256_hex(format!("{}:{}", self.head, self.seq + 1).as_bytes());
        format!("la_{}", &digest[..32])
    }

    /// The next line, and the chain once it is kept.
    pub(crate) fn next(&self, payload: &Value) -> (String, Self) {
        let seq = self.seq + 1;
        let (text, head) = line(seq, &self.head, payload);
        (text, Self { seq, head })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    seq: u64,
    prev_record_hash: String,
    record_hash: String,
    payload: Payload,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Payload(pub Value);

impl Payload {
    fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn day(&self) -> Option<Day> {
        self.text("time").get(..10).and_then(|d| Day::parse(d).ok())
    }

    /// States of the kill switch that were read for this record, in order.
    pub(crate) fn halts(&self) -> Vec<Halt> {
        let list = self.0.get("halts").and_then(Value::as_array);
        list.into_iter().flatten().map(|h| h.as_str().and_then(Halt::parse).unwrap_or(Halt::Unreadable)).collect()
    }

    /// What the counter said for this record: outer `None` = it was not asked, inner `None` = it could not be read.
    pub(crate) fn reading(&self) -> Option<Option<Option<u32>>> {
        match self.0.get("trades_today")? {
            Value::String(text) if text == "none" => Some(Some(None)),
            Value::Number(n) => Some(n.as_u64().and_then(|n| u32::try_from(n).ok()).map(Some)),
            _ => Some(None),
        }
    }
}

/// An order that was about to be sent, and of which no record says what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIntent {
    /// Id of its record.
    pub audit_id: String,
    /// The order: security, side, shares.
    pub order: String,
    /// Its idempotency key.
    pub key: Option<String>,
}

/// A whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Records.
    pub records: u64,
    /// Hash of the last one.
    pub head: String,
    /// Sessions that were opened over it.
    pub sessions: u64,
    /// Orders without an outcome.
    pub open_intents: Vec<OpenIntent>,
    /// Orders filled by day.
    pub(crate) filled: BTreeMap<Day, u32>,
}

/// The first place where a log is not a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct Break {
    /// Line, from 1.
    pub line: u64,
    /// What is wrong there.
    pub fault: BreakKind,
}

/// How a chain breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BreakKind {
    /// The file does not end with a line end.
    #[error("the last record is not whole")]
    Torn,
    /// The line is not a record.
    #[error("this is not a record")]
    NotARecord,
    /// A record is missing, repeated or moved.
    #[error("the record says it is number {found}, and number {expected} belongs here")]
    Sequence {
        /// What belongs here.
        expected: u64,
        /// What is here.
        found: u64,
    },
    /// The record does not follow the one before it.
    #[error("the record does not follow the one before it")]
    Previous,
    /// The record was changed after it was written.
    #[error("the record is not what its hash was taken of")]
    Hash,
    /// The hash fits and the line is not spelled as it was written.
    #[error("the line is not spelled as it was written")]
    Spelling,
}

/// Checks a log from its first byte; changes nothing. An empty log is whole.
///
/// # Errors
/// The first [`Break`].
pub fn verify(log: &[u8]) -> Result<Verified, Break> {
    read(log).map(|(verified, _)| verified)
}

/// The first `records` records of a log, and the lines of the session that was opened after them; none when none was.
///
/// # Errors
/// As [`verify`].
pub fn session_after(log: &[u8], records: u64) -> Result<(Verified, Vec<(String, Payload)>), Break> {
    let (_, mut lines) = read(log)?;
    let mut session = lines.split_off(usize::try_from(records).unwrap_or(usize::MAX).min(lines.len()));
    let next = session.iter().skip(1).position(|(_, payload)| payload.text("kind") == OPENED);
    session.truncate(next.map_or(session.len(), |at| at + 1));
    let before: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    Ok((verify(before.as_bytes())?, session))
}

fn read(log: &[u8]) -> Result<(Verified, Vec<(String, Payload)>), Break> {
    let mut verified =
        Verified { records: 0, head: GENESIS.to_owned(), sessions: 0, open_intents: vec![], filled: BTreeMap::new() };
    let mut lines = Vec::new();
    let at = |line, fault| Break { line, fault };
    let parts: Vec<&[u8]> = log.split(|b| *b == b'\n').collect();
    let Some((rest, whole)) = parts.split_last() else { return Ok((verified, lines)) };
    for (number, bytes) in (1_u64..).zip(whole) {
        let record: Record = serde_json::from_slice(bytes).map_err(|_| at(number, BreakKind::NotARecord))?;
        let text = std::str::from_utf8(bytes).map_err(|_| at(number, BreakKind::NotARecord))?;
        if record.seq != number {
            return Err(at(number, BreakKind::Sequence { expected: number, found: record.seq }));
        }
        if record.prev_record_hash != verified.head {
            return Err(at(number, BreakKind::Previous));
        }
        let (expected, hash) = line(number, &verified.head, &record.payload.0);
        if record.record_hash != hash {
            return Err(at(number, BreakKind::Hash));
        }
        if expected != text {
            return Err(at(number, BreakKind::Spelling));
        }
        verified.records = number;
        verified.head = hash;
        note(&mut verified, &record.payload);
        lines.push((text.to_owned(), record.payload));
    }
    if !rest.is_empty() {
        return Err(at(verified.records + 1, BreakKind::Torn));
    }
    Ok((verified, lines))
}

fn note(log: &mut Verified, payload: &Payload) {
    match payload.text("kind") {
        OPENED => log.sessions += 1,
        "order_intent" => log.open_intents.push(OpenIntent {
            audit_id: payload.text("audit_id").to_owned(),
            order: payload.text("order").to_owned(),
            key: payload.0.get("idempotency_key").and_then(Value::as_str).map(str::to_owned),
        }),
        _ => {}
    }
    let closes = payload.text("intent_id");
    if !closes.is_empty() {
        log.open_intents.retain(|open| open.audit_id != closes);
    }
    if payload.text("outcome") == "filled"
        && let Some(day) = payload.day()
    {
        *log.filled.entry(day).or_default() += 1;
    }
}
