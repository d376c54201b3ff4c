//! Rows of recordings: how fast the leak audit searches, and how fast recorded runs become rows to train on. In memory: disks differ.

use super::measure::{Outcome, Row, Target};
use serde_json::{Value, json};
use std::io::Read;
use std::time::Instant;
use traderharness_ingest::rows::{Column, ColumnKind, RowLimits, RowWriter, Rows};
use traderharness_replay::audit::{Auditor, Kind, NameKind, Rules};
use traderharness_replay::export::{self, ExportError, Per, Recorded};
use traderharness_replay::redact::Redactor;
use traderharness_replay::{Cassette, Message, Meta, Recorder, Request, Response, ToolCall};

/// Bytes that a scan goes over.
const BYTES: usize = 256 << 20;
/// Names and codes of the whole market.
const COMPANIES: usize = 5_400;
/// Model calls of the exported recording.
const CALLS: usize = 400;
const RUNS: usize = 3;

/// The registry of this file.
pub(crate) fn all() -> Vec<Row> {
    let row = |name, unit, target, measure| Row { name, unit, target, peer: None, measure };
    vec![
        row("audit_jsonl_nested", "MB/s", Target::AtLeast(200.0), |_| scans(Kind::Jsonl)),
        row("audit_text", "MB/s", Target::AtLeast(200.0), |_| scans(Kind::Text)),
        row("audit_parquet", "MB/s", Target::None, |_| tables()),
        row("export_sft_rows", "rows/s", Target::None, |_| exports(true)),
        row("export_rl_rows", "rows/s", Target::None, |_| exports(false)),
    ]
}

/// One line again and again.
struct Again<'a> {
    line: &'a [u8],
    at: usize,
    left: usize,
}

impl Read for Again<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = &self.line[self.at..];
        let step = rest.len().min(buffer.len()).min(self.left);
        buffer[..step].copy_from_slice(&rest[..step]);
        self.at = (self.at + step) % self.line.len();
        self.left -= step;
        Ok(step)
    }
}

fn auditor() -> Auditor {
    let letter = |n: usize| char::from_u32(0x4e00 + (n * 7919 % 20_000) as u32).unwrap_or('\u{4e00}');
    let names = (0..COMPANIES).flat_map(|n| {
        let full: String = (0..4).map(|k| letter(n * 31 + k * 977)).collect();
        [(full, NameKind::Company), (format!("Company Name {n}"), NameKind::English)]
    });
    let codes = (0..COMPANIES).map(|n| (format!("{:06}", 600_000 + n), None)).collect();
    Auditor::new(&Rules { names: names.collect(), codes, ..Rules::default() })
}

/// What a recorded call holds: a result as JSON in a string, and prose.
fn message() -> Value {
    let cells: Vec<Value> =
        (0..20).map(|n| json!({"day": format!("D-{n}"), "open": 12.5, "close": 13.4, "volume": 183_400 + n})).collect();
    let rows = json!({"success": true, "stock_code": "SHM-000360", "rows": cells}).to_string();
    let prose = "The position is small; I wait for the close and keep the stop at 12.30. ".repeat(8);
    json!({"messages": [{"role": "tool", "content": rows}, {"role": "assistant", "content": prose}], "scope": "main"})
}

fn rate(mut work: impl FnMut() -> anyhow::Result<u64>) -> anyhow::Result<Outcome> {
    let mut samples = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        let done = work()?;
        samples.push(done as f64 / start.elapsed().as_secs_f64());
    }
    Ok(Outcome::Samples(samples))
}

fn scans(kind: Kind) -> anyhow::Result<Outcome> {
    let auditor = auditor();
    let line = format!("{}\n", message());
    rate(|| {
        let found = auditor.scan("made-up", Again { line: line.as_bytes(), at: 0, left: BYTES }, kind);
        anyhow::ensure!(found.bytes as usize == BYTES, "the scan ended early");
        Ok((BYTES >> 20) as u64)
    })
}

/// Megabytes of JSON that rows of a table become while they are searched.
fn tables() -> anyhow::Result<Outcome> {
    let auditor = auditor();
    let mut writer =
        RowWriter::new(vec![], &[Column::new("messages", ColumnKind::Json), Column::new("scope", ColumnKind::Text)])?;
    let mut row = message();
    for n in 0..20_000 {
        row["messages"][0]["n"] = n.into();
        writer.push(&row)?;
    }
    let bytes = writer.finish()?;
    rate(|| {
        let rows = Rows::from_bytes("made-up.parquet", bytes.clone(), RowLimits::default())?;
        Ok(auditor.scan("made-up", rows.into_read(), Kind::Rows).bytes >> 20)
    })
}

/// A day's conversation with the tools of the contract, in a file of its own.
fn recording() -> anyhow::Result<Cassette> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("cassette.jsonl");
    let mut recorder = Recorder::create(&path, Meta { contract_version: "v5".into(), ..Meta::default() })?;
    let content = message()["messages"][0]["content"].clone();
    let mut request = Request::new("made-up", "v5");
    request.tools = crate::catalog::entries()
        .iter()
        .map(|entry| json!({"type": "function", "function": {"name": entry.definition.spec.name, "parameters": {"type": "object"}}}))
        .collect();
    for n in 0..CALLS {
        if n % 20 == 0 {
            request.messages = vec![Message::user("The market opens.")];
        }
        let answer = Message::assistant("", &[ToolCall::new(format!("c{n}"), "get_kline", "{\"days\":20}")]);
        recorder.record("main", &request, &Response::new(answer.clone()))?;
        request.messages.push(answer);
        request.messages.push(Message::tool(format!("c{n}"), content.as_str().unwrap_or_default()));
    }
    recorder.finish()?;
    Ok(Cassette::load(path)?)
}

/// Rows of a recording, with credentials looked for, as they are written.
fn exports(conversations: bool) -> anyhow::Result<Outcome> {
    let cassette = recording()?;
    let redactor = Redactor::new().with_secrets(["0123456789abcdef0123456789abcdef"]);
    rate(|| {
        let recorded = Recorded::new("made-up", &cassette, &[]);
        let mut rows = 0_u64;
        let mut count = |row: serde_json::Result<Value>| {
            if let Ok(row) = row {
                std::hint::black_box(export::redacted(row, &redactor).0.to_string());
                rows += 1;
            }
            Ok::<(), ExportError>(())
        };
        if conversations {
            export::sft(&recorded, Per::Turn, |row| count(serde_json::to_value(row)))?;
        } else {
            export::rl(&recorded, |row| count(serde_json::to_value(row)))?;
        }
        anyhow::ensure!(rows == CALLS as u64, "{rows} rows of {CALLS} calls");
        Ok(rows)
    })
}
