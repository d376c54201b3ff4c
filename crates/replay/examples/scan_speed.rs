//! How fast the leak audit searches, and how much memory it needs: `cargo run --release -p traderharness-replay --example scan_speed -- 2048`
//! scans so many MB of made-up recording, with the names and codes of so many companies as the whole market has.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::io::Read;
use traderharness_replay::audit::{Auditor, Kind, NameKind, Rules};

/// A recording without an end: lines of a cassette, again and again.
struct Lines {
    line: Vec<u8>,
    at: usize,
    left: usize,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let step = rest.len().min(buffer.len()).min(self.left);
        if let (Some(to), Some(from)) = (buffer.get_mut(..step), rest.get(..step)) {
            to.copy_from_slice(from);
        }
        self.at = (self.at + step) % self.line.len();
        self.left -= step;
        Ok(step)
    }
}

fn main() {
    let megabytes: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(256);
    // Names of three or four characters, as companies have.
    let letter = |n: usize| char::from_u32(0x4e00 + (n * 7919 % 20_000) as u32).unwrap_or('一');
    let names: Vec<_> = (0..5_400)
        .flat_map(|n| {
            let full: String = (0..4).map(|k| letter(n * 31 + k * 977)).collect();
            [(full, NameKind::Company), (format!("Company Name {n}"), NameKind::English)]
        })
        .collect();
    let codes = (0..5_400).map(|n| (format!("{:06}", 600_000 + n), None)).collect();
    let started = std::time::Instant::now();
    let auditor = Auditor::new(&Rules { names, codes, ..Rules::default() });
    println!("built in {:?}", started.elapsed());
    let cells: Vec<String> =
        (0..20).map(|n| format!(r#"{{"day":"D-{n}","open":12.{n},"close":13.4,"volume":{n}183400}}"#)).collect();
    let rows = format!(r#"{{"success":true,"stock_code":"SHM-000360","rows":[{}]}}"#, cells.join(","));
    let prose = "The position is small; I wait for the close and keep the stop at 12.30. 公司公告称本次交易不构成重大影响，敬请投资者注意风险。";
    let line = serde_json::json!({"type": "call", "scope": "main", "request_sha256": "e774c8c1fa254ffb81ebf4b67027eefd844740427f3f4f9cc18c63c8cdc030d8",
        "messages": [{"role": "tool", "content": rows}, {"role": "assistant", "content": prose.repeat(8)}], "usage": {"input_tokens": 8123, "output_tokens": 112}});
    for (kind, of) in [(Kind::Jsonl, "JSONL"), (Kind::Text, "text")] {
        let lines = Lines { line: format!("{line}\n").into_bytes(), at: 0, left: megabytes << 20 };
        let started = std::time::Instant::now();
        let found = auditor.scan("made-up", lines, kind);
        let seconds = started.elapsed().as_secs_f64();
        println!("{of}: {megabytes} MB in {seconds:.2} s, {:.0} MB/s; found {:?}", megabytes as f64 / seconds, found.totals);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("peak memory unknown"));
}
