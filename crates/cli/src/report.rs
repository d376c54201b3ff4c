//! A day as a person wants to read it: clock, calls, repairs, orders, equity.

use crate::fault::{Class, Fault};
use crate::figures;
use crate::result::RunResult;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;
use traderharness_harness::run::{DayRecord, Observer, RunSummary};
use traderharness_harness::{CallReport, Session};
use traderharness_replay::Response;
use traderharness_replay::redact::{Redactor, Sink};

/// Why stdout lost a block, other than a reader who had enough.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// Prints a block to stdout; a closed pipe ends the output quietly, anything else is told by [`lost_output`].
pub(crate) fn print(text: &str) {
    if let Err(e) = writeln!(std::io::stdout().lock(), "{text}")
        && e.kind() != std::io::ErrorKind::BrokenPipe
    {
        // The first loss is the one that is told.
        let _ = LOST.set(e);
    }
}

/// The fault of a command whose result did not reach stdout whole: a full disk, an unwritable device.
pub(crate) fn lost_output() -> Option<Fault> {
    LOST.get().map(|e| Fault::text(Class::Environment, format!("the result could not be written to stdout: {e}")))
}

/// Prints what happens, line by line.
#[derive(Debug)]
pub(crate) struct Printer {
    color: bool,
    /// Tools with an open failure at this decision point, to mark the call that repairs it.
    open: Vec<String>,
    /// Failed calls that were repaired at the same decision point.
    pub(crate) repairs: u64,
}

impl Printer {
    pub(crate) fn new() -> Self {
        let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { color, open: Vec::new(), repairs: 0 }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

impl Observer for Printer {
    fn day(&mut self, session: &Session) {
        let day = session.mask().day(session.clock().day, session.clock().day);
        let label = if session.mask().config().dates {
            format!("Day {} ({day})", session.day_index() + 1)
        } else {
            format!("Day {} {day}", session.day_index() + 1)
        };
        print(&format!("\n{}", self.paint("1", &label)));
    }

    fn point(&mut self, session: &Session, _: &str) {
        self.open.clear();
        let point = session.clock().point;
        let time = point.visible_until().map_or_else(|| "before the open".to_owned(), |m| m.to_string());
        let equity = session.account().equity(&session.view());
        print(&format!("  {}  total assets {equity}", self.paint("36", &format!("{time:<15} {point}"))));
    }

    fn answer(&mut self, _: &Session, response: &Response) {
        if let Some(text) = response.message.content().filter(|t| !t.trim().is_empty()) {
            print(&format!("    \"{}\"", shorten(text.trim(), 110)));
        }
    }

    fn call(&mut self, _: &Session, report: &CallReport) {
        let mut line = call_line(report);
        if let Some(usage) = &report.usage {
            let _ = write!(
                line,
                "  [{:.2} s, processor {:.2} s, {:.0} MiB]",
                usage.wall,
                usage.cpu,
                usage.memory as f64 / f64::from(1 << 20)
            );
        }
        if report.truncated {
            line.push_str("  (too long: the model read a part)");
        }
        let tool = report.tool.clone();
        let text = if report.envelope.is_success() {
            if let Some(at) = self.open.iter().position(|t| *t == tool) {
                self.open.remove(at);
                self.repairs += 1;
                format!("{line}  {}", self.paint("32", "(repaired)"))
            } else {
                line
            }
        } else {
            if report.envelope.is_retryable_failure() && !self.open.contains(&tool) {
                self.open.push(tool);
            }
            self.paint("33", &line)
        };
        print(&format!("    {text}"));
        if let Some(note) = &report.host_note {
            print(&format!("      note: {note}"));
        }
    }

    fn day_end(&mut self, _: &Session, record: &DayRecord) {
        let mut text = format!(
            "  {}  total assets {:.2}, cash {:.2}, {} position(s), {} fill(s)",
            self.paint("36", "end of day"),
            record.equity,
            record.cash,
            record.positions,
            record.fills
        );
        if let Some(failure) = &record.finish_failure {
            let _ = write!(text, "\n  finish_day failed {} times: {}", failure.attempts, failure.error_code);
        }
        print(&text);
    }
}

/// One line for one call: what was asked and what came of it. A trace: it passes the redaction before anything of it is cut
/// (spec/seeds.md B14.5).
fn call_line(report: &CallReport) -> String {
    let redactor = Redactor::new();
    let asked = arguments(&redactor.value(&report.received, Sink::Arguments));
    let result = redactor.value(&report.envelope.0, Sink::Result);
    let came = if report.envelope.is_success() { outcome(&report.tool, &result) } else { failure(&result) };
    format!("{}({asked}) -> {came}", report.tool)
}

fn arguments(received: &Value) -> String {
    const WORDY: [&str; 5] = ["reasoning", "summary", "next_focus", "content", "code"];
    let Some(map) = received.as_object() else { return shorten(&received.to_string(), 60) };
    let parts: Vec<String> = map
        .iter()
        .filter(|(key, _)| !WORDY.contains(&key.as_str()))
        .map(|(key, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if key == "stock_code" { text } else { format!("{key}={}", shorten(&text, 40)) }
        })
        .collect();
    parts.join(", ")
}

fn outcome(tool: &str, result: &Value) -> String {
    let number = |key: &str| result.get(key).and_then(Value::as_f64);
    let text = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default();
    match tool {
        "place_order" => {
            let price = number("price").unwrap_or_default();
            let quantity = number("quantity").unwrap_or_default();
            format!("{} {quantity} at {price:.2}", if text("action") == "buy" { "bought" } else { "sold" })
        }
        "complete_phase" => format!("phase complete, {}: {}", text("decision"), shorten(text("summary"), 80)),
        "finish_day" => format!("day complete: {}", shorten(text("summary"), 80)),
        "get_kline" => {
            let count = number("count").unwrap_or_default();
            // All rows come in pages, oldest first, and the last close is not on the first one.
            let Some(rows) = result.get("recent_20").and_then(Value::as_array) else { return format!("{count} bars, in pages") };
            let close = rows.last().and_then(|row| row.get("close")).map_or_else(|| "unknown".to_owned(), Value::to_string);
            format!("{count} bars, last close {close}")
        }
        // The first contract versions give the bar alone.
        "get_stock_price" => match result.get("price") {
            Some(price) => format!("{price} ({})", text("price_source")),
            None => format!("{} ({})", result.get("close").unwrap_or(&Value::Null), text("price_time")),
        },
        "get_portfolio" => format!(
            "total {:.2}, {} position(s)",
            number("total_value").unwrap_or_default(),
            number("position_count").unwrap_or_default()
        ),
        "get_market_overview" => {
            format!("{} up, {} down", number("up_count").unwrap_or_default(), number("down_count").unwrap_or_default())
        }
        _ => {
            let scalars: Vec<String> = result
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(key, value)| key.as_str() != "success" && (value.is_number() || value.is_string()))
                .take(3)
                .map(|(key, value)| {
                    format!("{key} {}", shorten(value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_str(), 30))
                })
                .collect();
            if scalars.is_empty() { "ok".to_owned() } else { scalars.join(", ") }
        }
    }
}

fn failure(result: &Value) -> String {
    let text = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default();
    format!("{}: {}", text("error_code"), shorten(text("error"), 110))
}

/// At most `limit` characters, cut between characters and marked.
fn shorten(text: &str, limit: usize) -> String {
    let flat = text.replace('\n', " ");
    if flat.chars().count() <= limit {
        flat
    } else {
        format!("{}...", flat.chars().take(limit.saturating_sub(3)).collect::<String>())
    }
}

/// A line for the person, beside the result.
#[expect(clippy::print_stderr, reason = "stdout belongs to the result")]
pub(crate) fn tell(text: &str) {
    eprintln!("{text}");
}

/// The run in three lines, then every figure.
pub(crate) fn result_text(result: &RunResult, data_notes: &str) -> String {
    // Before the first day has ended there is no figure to read.
    if let (Some(code), true) = (&result.stop_code, result.days.is_empty()) {
        return format!(
            "\nstatus  {}: {code}\nThe run stopped before its first day ended, after {} model requests: there are no figures.{data_notes}",
            result.status, result.requests
        );
    }
    let calls = |key: &str| result.calls.get(key).and_then(Value::as_u64).unwrap_or_default();
    let families = ["succeeded", "bad_arguments", "refused", "environment"];
    let change = (result.final_equity - result.initial_cash) * 100.0 / result.initial_cash;
    let mut text = format!(
        "\n{} day(s): {:.2} -> {:.2} CNY ({change:+.2}%)\n{} model requests, {} tool calls: {} succeeded, {} bad arguments, {} refused, {} environment",
        result.days.len(),
        result.initial_cash,
        result.final_equity,
        result.requests,
        families.iter().map(|key| calls(key)).sum::<u64>(),
        calls("succeeded"),
        calls("bad_arguments"),
        calls("refused"),
        calls("environment")
    );
    if let Some(code) = &result.stop_code {
        let _ = write!(text, "\nThe run stopped before its end: {code}.");
    }
    // What the lines above say is not said again.
    let said = ["status", "days", "total assets", "requests", "calls that succeeded", "bad arguments", "refused", "environment"];
    let rows = figures::rows(result).into_iter().filter(|(name, _)| !said.contains(name));
    let lines: Vec<Vec<String>> = rows.map(|(name, value)| vec![format!("  {name}"), value]).collect();
    let _ = write!(text, "\n{}", figures::table(&lines).trim_end());
    text.push_str(data_notes);
    text
}

/// The run in three lines.
pub(crate) fn summary_text(summary: &RunSummary, data_notes: &str) -> String {
    let c = &summary.calls;
    let mut text = format!(
        "\n{} day(s): {:.2} -> {:.2} CNY ({:+.2}%)\n{} model requests, {} tool calls: {} succeeded, {} bad arguments, {} refused, {} environment",
        summary.days.len(),
        summary.initial_cash,
        summary.final_equity,
        summary.return_pct,
        summary.requests,
        c.total(),
        c.succeeded,
        c.bad_arguments,
        c.refused,
        c.environment
    );
    if let Some(code) = summary.stop_code {
        let _ = write!(text, "\nThe run stopped before its end: {code}.");
    }
    text.push_str(data_notes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use traderharness_contract::Envelope;

    // spec/seeds.md B14.5: redacted first, cut then
    #[test]
    fn a_trace_shows_no_credential() {
        let key = format!("sk-{}", "a1".repeat(30));
        let report = CallReport {
            call: 1,
            tool: "record_memory".to_owned(),
            received: json!({"title": format!("key {key}"), "note": {"api_key": "hunter2", "n": 3}}),
            envelope: Envelope(json!({"success": false, "error_code": "invalid_tool_arguments", "error": format!("bad {key}")})),
            text: String::new(),
            truncated: false,
            code: None,
            effect: None,
            notes: vec![],
            usage: None,
            host_note: None,
        };
        let line = call_line(&report);
        assert!(line.contains("title=key [redacted]") && line.contains("\"n\":3"), "{line}");
        assert!(!line.contains("a1a1") && !line.contains("hunter2"), "{line}");
    }
}
