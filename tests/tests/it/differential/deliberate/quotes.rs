//! Bars and quotes of one security.

use super::{Case, Entry, Kind, near};
use crate::differential::oracle::rounds_to;
use serde_json::{Value, json};
use traderharness_market::DecisionPoint;

const INTRADAY: &str = "current_visible_5min_close";

fn reason(case: &Case<'_>, field: &str, word: &str) -> bool {
    let all = case.ours("missing_reasons").as_array();
    all.is_some_and(|list| list.contains(&json!({"field": field, "reason": word})))
}

/// Ours quotes a bar of today although this sub-window has none.
fn earlier_bar(case: &Case<'_>) -> bool {
    *case.ours("price_source") == INTRADAY
        && *case.theirs("price_source") == "previous_daily_close"
        && *case.ours("tradable_now") == json!(false)
        && case.oracle.fill_price(case.code(), case.played.clock).is_none()
        && case.oracle.today_so_far(case.code(), case.played.clock).is_some_and(|[open, high, low, close, volume]| {
            let base = case.oracle.reference(case.code(), case.played.clock.day).unwrap_or(f64::NAN);
            let prices = [("open", open), ("high", high), ("low", low), ("close", close), ("price", close)];
            prices.iter().all(|(field, exact)| rounds_to(case.ours(field), *exact, 2))
                && rounds_to(case.ours("volume"), volume, 0)
                && rounds_to(case.ours("change_pct"), (close / base - 1.0) * 100.0, 2)
        })
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "b30",
        tools: &["get_stock_price"],
        fields: &["day", "open", "high", "low", "close", "price", "volume", "change_pct", "price_source", "as_of"],
        reason: "A quote is the last visible bar of today from any window; tradable_now says that this window has none.",
        covers: |case, _| earlier_bar(case),
    },
    Entry {
        id: "T1-as-of",
        tools: &["get_stock_price"],
        fields: &["as_of"],
        reason: "as_of has day, time and decision point on every read; theirs is a window name or a day.",
        covers: |case, diff| {
            let point = case.played.clock.point;
            let shown = diff.ours["decision_point"] == point.as_str();
            let time = match point.visible_until() {
                Some(end) => diff.ours["day"] == *case.today() && diff.ours["time"] == end.to_string(),
                None => diff.ours["time"] == "15:00" && diff.theirs == diff.ours["day"],
            };
            let theirs = diff.theirs == point.as_str() || *case.theirs("price_source") == "previous_daily_close";
            shown && time && theirs
        },
    },
    Entry {
        id: "T3-tradable-now",
        tools: &["get_stock_price"],
        fields: &["tradable_execution_price"],
        reason: "The field is called tradable_now; same value.",
        covers: |case, diff| diff.kind == Kind::Absent && *case.ours("tradable_now") == diff.theirs,
    },
    Entry {
        id: "T1-day",
        tools: &["get_stock_price"],
        fields: &["day"],
        reason: "An unmasked run shows the date; theirs writes D+0 for today although nothing is masked.",
        covers: |case, diff| diff.theirs == "D+0" && !case.played.masked && diff.ours == *case.today(),
    },
    Entry {
        id: "E2.7-today",
        tools: &["get_stock_price"],
        fields: &["change_pct"],
        reason: "Inside a window the newest session is today; without a bar of it there is no change. Theirs shows yesterday's.",
        covers: |case, diff| {
            let (oracle, code, clock) = (case.oracle, case.code(), case.played.clock);
            diff.ours.is_null()
                && ["suspended", "source_missing"].iter().any(|word| reason(case, "change_pct", word))
                && clock.point != DecisionPoint::PreMarket
                && oracle.intraday(code, clock).is_none()
                && (oracle.plain_change(code, clock.day, 1).is_none_or(|c| rounds_to(&diff.theirs, c, 2)))
        },
    },
    Entry {
        id: "b13",
        tools: &["get_stock_price"],
        fields: &["previous_close", "change_pct"],
        reason: "On an ex-date the comparison is with the exchange's reference price, not with the raw close before (engine E2.8).",
        covers: |case, diff| {
            let (oracle, code, today) = (case.oracle, case.code(), case.played.clock.day);
            let Some(yesterday) = oracle.yesterday(today) else { return false };
            let intraday = *case.ours("price_source") == INTRADAY;
            if !intraday {
                return oracle.ex_within(code, today, 1)
                    && oracle.change(code, today, 1).is_some_and(|c| rounds_to(&diff.ours, c, 2));
            }
            let Some(reference) = oracle.reference(code, today) else { return false };
            let price = case.ours("price").as_f64().unwrap_or(f64::NAN);
            oracle.has_ex_event(code, yesterday, today)
                && match diff.field.as_str() {
                    "previous_close" => near(diff.ours.as_f64().unwrap_or(f64::NAN), (reference * 100.0).round() / 100.0),
                    _ => rounds_to(&diff.ours, (price / reference - 1.0) * 100.0, 2),
                }
        },
    },
    Entry {
        id: "NU-4",
        tools: &["get_kline"],
        fields: &["older_summary.ma5_end", "older_summary.ma10_end"],
        reason: "A mean over fewer sessions than its name says is null (complaint NU-4).",
        covers: |case, diff| {
            let needed = if diff.field.ends_with("ma5_end") { 5 } else { 10 };
            let period = case.theirs("older_summary")["period_days"].as_u64();
            diff.ours == Value::Null && period.is_some_and(|p| p < needed)
        },
    },
    Entry {
        id: "T1-rounding-mean",
        tools: &["get_kline"],
        fields: &["older_summary.ma5_end", "older_summary.ma10_end", "older_summary.ma20_end"],
        reason: "Means are rounded half-even from exact decimals, theirs from a binary sum.",
        covers: |case, diff| {
            let closes = case.oracle.closes(case.code(), case.played.clock.day);
            let n = match diff.field.as_str() {
                "older_summary.ma5_end" => 5,
                "older_summary.ma10_end" => 10,
                _ => 20,
            };
            let end = closes.len() - 20;
            let mean = closes[end - n..end].iter().sum::<f64>() / n as f64;
            rounds_to(&diff.ours, mean, 2) && super::gap(diff).is_some_and(|g| g.abs() < 0.0101)
        },
    },
];
