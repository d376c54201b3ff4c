//! The figures of a result as a person reads them.

use crate::result::RunResult;
use serde_json::Value;
use std::fmt::Write as _;
use traderharness_harness::metrics::Metrics;

/// A figure with its unit, or why there is none.
pub(crate) fn figure(metrics: &Metrics, name: &str, value: Option<f64>, unit: &str) -> String {
    match value {
        Some(value) => format!("{value}{unit}"),
        None => {
            let reason = metrics.missing_reasons.iter().find(|missing| missing.metric == name);
            format!("n/a ({})", reason.map_or("not recorded", |missing| missing.reason.as_str()))
        }
    }
}

/// Whether the player of a run has tokens to count; a rule and a script have none.
pub(crate) fn asks(result: &RunResult) -> bool {
    matches!(result.agent.as_str(), "model" | "program" | "unknown")
}

/// Name and text of every figure, in reading order.
pub(crate) fn rows(result: &RunResult) -> Vec<(&'static str, String)> {
    let m = &result.metrics;
    let percent = |name: &str, value| figure(m, name, value, " %");
    let plain = |name: &str, value| figure(m, name, value, "");
    let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_u64).unwrap_or_default();
    let calls = |key: &str| number(&result.calls, key);
    let tokens = |key: &str| number(&result.tokens, key);
    let mut used = format!("{} in, {} out", tokens("input"), tokens("output"));
    if !asks(result) {
        "n/a (no model was asked)".clone_into(&mut used);
    } else if tokens("estimated_requests") > 0 {
        let _ = write!(used, " (estimated for {} of {} requests)", tokens("estimated_requests"), result.requests);
    }
    let text = |key: &str| result.cost.get(key).and_then(Value::as_str).unwrap_or_default();
    let cost = if result.cost.get("amount").is_some_and(Value::is_string) {
        format!("{} {}", text("amount"), text("currency"))
    } else {
        format!("n/a ({})", text("reason"))
    };
    let mut rows = vec![
        ("status", result.stop_code.as_ref().map_or_else(|| result.status.clone(), |code| format!("{}: {code}", result.status))),
        ("days", m.days.to_string()),
        ("total assets", format!("{:.2} -> {:.2} CNY", result.initial_cash, result.final_equity)),
        ("total return", percent("total_return_pct", m.total_return_pct)),
        ("annual return", percent("annual_return_pct", m.annual_return_pct)),
        ("index return", percent("index_return_pct", m.index_return_pct)),
        ("against the index", percent("excess_return_pct", m.excess_return_pct)),
        ("Sharpe", plain("sharpe", m.sharpe)),
        ("Sortino", plain("sortino", m.sortino)),
        ("Calmar", plain("calmar", m.calmar)),
        ("max drawdown", percent("max_drawdown_pct", m.max_drawdown_pct)),
        ("longest losing streak", format!("{} day(s)", m.longest_losing_streak)),
        ("win rate", percent("win_rate_pct", m.win_rate_pct)),
        ("profit/loss ratio", plain("profit_loss_ratio", m.profit_loss_ratio)),
        ("turnover", percent("turnover_pct", m.turnover_pct)),
        ("trades", format!("{} buys, {} sells", m.buys, m.sells)),
        ("fees", format!("{:.2} CNY", m.fees)),
        ("requests", result.requests.to_string()),
        ("calls that succeeded", calls("succeeded").to_string()),
        ("bad arguments", calls("bad_arguments").to_string()),
        ("refused", calls("refused").to_string()),
        ("environment", calls("environment").to_string()),
        ("tokens", used),
        ("cost", cost),
    ];
    if let Some(advice) = &result.advice {
        let made =
            advice.get("calls").and_then(Value::as_object).into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum::<u64>();
        let text = format!("{} requests, {made} calls, {} silent", number(advice, "requests"), number(advice, "absences"));
        rows.push(("advisors", text));
    }
    rows
}

/// A cell with blanks up to a width. Formatting with a width gives up above 65,535 characters, and a result file may hold any text.
fn padded(cell: &str, width: usize) -> String {
    let blanks = width.saturating_sub(cell.chars().count());
    format!("{cell}{}", " ".repeat(blanks))
}

/// Columns of texts, the first one left-aligned, with two spaces between.
pub(crate) fn table(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| padded(cell, *width)).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
