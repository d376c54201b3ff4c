//! Screens of the whole market.

use super::{Case, Entry, Kind, gap, row_code};
use crate::differential::diff::equal;
use crate::differential::oracle::rounds_to;
use crate::differential::play::rows;
use serde_json::{Value, json};

const SCREEN: &[&str] = &["screen_stocks"];
const CYCLE: &[&str] = &["screen_behavioral_cycle"];

/// Our whole list at this clock.
fn all<'c>(case: &'c Case<'_>, list: &str) -> &'c [Value] {
    case.played.probes.get("all").map_or(&[], |p| rows(p, list))
}

fn by_change(case: &Case<'_>) -> bool {
    let by = &case.played.args["sort_by"];
    by.is_null() || by == "change_5d"
}

/// Every row that both sides know has the same close, one-day change and volume, and our own order is right.
fn consistent(case: &Case<'_>) -> bool {
    let whole = all(case, "stocks");
    let key = match case.played.args["sort_by"].as_str() {
        Some("volume") => "volume",
        Some("change_1d") => "change_1d_pct",
        _ => "change_5d_pct",
    };
    let values: Vec<f64> = whole.iter().filter_map(|r| r[key].as_f64()).collect();
    let first = rows(&case.played.ours, "stocks");
    values.len() == whole.len()
        && values.windows(2).all(|w| w[0] >= w[1])
        && *case.ours("total_matched") == json!(whole.len())
        && first.iter().zip(whole).all(|(a, b)| a == b)
}

/// In our whole list with the same plain numbers, or left out for a reason.
fn known(case: &Case<'_>, row: &Value) -> bool {
    let code = row["code"].as_str().unwrap_or_default();
    let today = case.played.clock.day;
    match all(case, "stocks").iter().find(|r| r["code"] == row["code"]) {
        Some(ours) => ["close", "change_1d_pct", "volume"]
            .iter()
            .all(|f| equal(&ours[*f], &row[*f]) || case.oracle.ex_within(code, today, 1)),
        None => case.oracle.was_suspended(code, today) || case.oracle.sessions(code, today) <= 5,
    }
}

/// The same features except those that count sessions or cross an ex-date.
fn cycle_row(case: &Case<'_>, code: &str) -> bool {
    let today = case.played.clock.day;
    let find = |list: &[Value]| list.iter().find(|r| r["code"] == code).cloned();
    let (Some(theirs), Some(ours)) = (find(rows(&case.played.theirs, "candidates")), find(all(case, "candidates"))) else {
        return false;
    };
    let same = ["atr_20_pct", "volume_5_to_20", "up_down_volume_ratio", "clv_5", "obv_flow_20", "support_20"];
    let plain = case.played.probes.get("plain").map_or(&[][..], |p| rows(p, "candidates"));
    let compared = if case.oracle.ex_within(code, today, 120) { find(plain).unwrap_or(ours) } else { ours };
    same.iter().all(|f| equal(&theirs[*f], &compared[*f]))
}

fn has_flag(row: &Value) -> bool {
    row["risk_flags"].as_array().is_some_and(|f| f.contains(&json!("extended_20d")))
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "b14",
        tools: SCREEN,
        fields: &["stocks[].change_5d_pct"],
        reason: "change_5d spans five sessions: close[-1] / close[-6] - 1 (engine E2.8); theirs spans four.",
        covers: |case, diff| {
            let (code, today) = (row_code(diff), case.played.clock.day);
            case.oracle.plain_change(code, today, 4).is_some_and(|c| rounds_to(&diff.theirs, c, 2))
                && case.oracle.change(code, today, 5).is_some_and(|c| rounds_to(&diff.ours, c, 2))
        },
    },
    Entry {
        id: "b14-order",
        tools: SCREEN,
        fields: &["stocks", "stocks[]"],
        reason: "A list by change_5d is in the order of five sessions, so other stocks are first.",
        covers: |case, diff| {
            by_change(case)
                && consistent(case)
                && match diff.kind {
                    Kind::Absent => known(case, &diff.theirs),
                    Kind::Extra => case
                        .oracle
                        .change(diff.ours["code"].as_str().unwrap_or_default(), case.played.clock.day, 5)
                        .is_some_and(|c| rounds_to(&diff.ours["change_5d_pct"], c, 2)),
                    _ => true,
                }
        },
    },
    Entry {
        id: "T1-ties",
        tools: SCREEN,
        fields: &["stocks"],
        reason: "Ordered by the number before rounding, ties by visible code; theirs orders by the rounded one, ties by real code (b39).",
        covers: |case, diff| {
            let key = if case.played.args["sort_by"] == "volume" { "volume" } else { "change_1d_pct" };
            let shown =
                |code: &Value| rows(&case.played.ours, "stocks").iter().find(|r| r["code"] == *code).map(|r| r[key].clone());
            let (a, b) = (diff.theirs.as_array(), diff.ours.as_array());
            let same = |(x, y): (&Value, &Value)| shown(x).zip(shown(y)).is_some_and(|(x, y)| equal(&x, &y));
            !by_change(case) && consistent(case) && a.zip(b).is_some_and(|(a, b)| a.iter().zip(b).all(same))
        },
    },
    Entry {
        id: "b27-screen",
        tools: SCREEN,
        fields: &["stocks[]", "total_matched"],
        reason: "A stock that did not trade on the last session, or is too young for the change asked for, is not screened; `removed` counts it.",
        covers: |case, diff| {
            let today = case.played.clock.day;
            let removed = |name: &str| {
                rows(&case.played.ours, "removed")
                    .iter()
                    .find(|r| r["filter"] == name)
                    .and_then(|r| r["count"].as_f64())
                    .unwrap_or(0.0)
            };
            let out = removed("suspended") + removed("no_sort_value");
            consistent(case)
                && case.oracle.suspended_count(today) as f64 >= removed("suspended")
                && match diff.kind {
                    Kind::Absent => known(case, &diff.theirs),
                    Kind::Extra => {
                        out > 0.0
                            && !rows(&case.played.theirs, "stocks")
                                .iter()
                                .all(|r| all(case, "stocks").iter().any(|o| o["code"] == r["code"]))
                    }
                    _ => gap(diff).is_some_and(|g| g < 0.0 && -g <= out),
                }
        },
    },
    Entry {
        id: "T1-price-bound",
        tools: SCREEN,
        fields: &["outcome"],
        reason: "There is no hidden upper price bound: a lower bound alone is no contradiction.",
        covers: |case, diff| {
            diff.theirs == "invalid_filter_range"
                && case.played.args["price_max"].is_null()
                && *case.ours("total_matched") == json!(0)
                && *case.ours("empty_reason") == json!("removed_by_price_min")
        },
    },
    Entry {
        id: "b14-cycle",
        tools: CYCLE,
        fields: &["candidates[].change_20_pct"],
        reason: "change_20 spans twenty sessions; theirs spans nineteen.",
        covers: |case, diff| {
            let (code, today) = (row_code(diff), case.played.clock.day);
            case.oracle.plain_change(code, today, 19).is_some_and(|c| rounds_to(&diff.theirs, c, 2))
                && case.oracle.change(code, today, 20).is_some_and(|c| rounds_to(&diff.ours, c, 2))
        },
    },
    Entry {
        id: "b14-cycle-risk",
        tools: CYCLE,
        fields: &["candidates[].risk_flags[]", "candidates[].score"],
        reason: "The flag extended_20d follows the change over twenty sessions, and the score follows the flag.",
        covers: |case, diff| {
            let code = row_code(diff);
            let find = |list: &[Value]| list.iter().find(|r| r["code"] == code).cloned().unwrap_or_default();
            let (theirs, ours) = (find(rows(&case.played.theirs, "candidates")), find(rows(&case.played.ours, "candidates")));
            let sign = if has_flag(&ours) { -1.0 } else { 1.0 };
            has_flag(&theirs) != has_flag(&ours)
                && cycle_row(case, code)
                && adjusted_row(case, code)
                && (diff.field != "candidates[].score" || gap(diff).is_some_and(|g| g * sign > 0.0 && g.abs() <= 2.0))
        },
    },
    Entry {
        id: "b13-cycle",
        tools: CYCLE,
        fields: &["candidates[].*"],
        reason: "Features over an ex-date use adjusted prices (engine E2.8); theirs sees a fall that never was. Without the ex-events ours is equal.",
        covers: |case, diff| {
            let code = row_code(diff);
            let field = diff.field.trim_start_matches("candidates[].").split('[').next().unwrap_or_default();
            let plain = case.played.probes.get("plain").map_or(&[][..], |p| rows(p, "candidates"));
            let find = |list: &[Value]| list.iter().find(|r| r["code"] == code).map(|r| r[field].clone());
            let (Some(plain), Some(theirs)) = (find(plain), find(rows(&case.played.theirs, "candidates"))) else { return false };
            let flags = plain_flag_differs(case, code);
            case.oracle.ex_within(code, case.played.clock.day, 120)
                && adjusted_row(case, code)
                && (field == "change_20_pct" || equal(&plain, &theirs) || flags && matches!(field, "score" | "risk_flags"))
        },
    },
    Entry {
        id: "b14-cycle-order",
        tools: CYCLE,
        fields: &["candidates", "candidates[]"],
        reason: "Scores that follow twenty sessions and adjusted prices put other stocks first; equal scores are in visible order (b39).",
        covers: |case, diff| {
            let whole = all(case, "candidates");
            let sorted = whole.windows(2).all(|w| w[0]["score"].as_f64() >= w[1]["score"].as_f64());
            let moved = |row: &Value| {
                let code = row["code"].as_str().unwrap_or_default();
                match whole.iter().find(|r| r["code"] == row["code"]) {
                    Some(_) => cycle_row(case, code),
                    None => {
                        case.oracle.was_suspended(code, case.played.clock.day)
                            || case.oracle.ex_within(code, case.played.clock.day, 120)
                            || row["score"].as_f64() <= whole.last().and_then(|r| r["score"].as_f64())
                            || changed_flag(case, row)
                    }
                }
            };
            let extra = |row: &Value| {
                let code = row["code"].as_str().unwrap_or_default();
                let twenty = case.oracle.change(code, case.played.clock.day, 20);
                twenty.is_some_and(|c| rounds_to(&row["change_20_pct"], c, 2)) && adjusted_row(case, code)
            };
            sorted
                && match diff.kind {
                    Kind::Absent => moved(&diff.theirs),
                    Kind::Extra => extra(&diff.ours),
                    _ => true,
                }
        },
    },
    Entry {
        id: "b27-cycle",
        tools: CYCLE,
        fields: &["eligible_size", "matched_size", "sample_size"],
        reason: "Suspended stocks are counted apart and not staged.",
        covers: |case, diff| {
            let suspended = case.oracle.suspended_count(case.played.clock.day);
            // A stock that crossed an ex-date is staged on other prices: without the ex-events the rest is the suspended ones.
            let probe = |name: &str| case.played.probes.get(name).and_then(|p| p[diff.field.as_str()].as_f64());
            let rest = probe("plain").zip(diff.theirs.as_f64()).map(|(a, b)| b - a);
            *case.ours("suspended_count") == json!(suspended)
                && rest.is_some_and(|r| (0.0..=suspended as f64).contains(&r))
                && probe("adjusted") == diff.ours.as_f64()
        },
    },
];

/// Our row is that of a market without ex-events whose prices were moved by the oracle.
fn adjusted_row(case: &Case<'_>, code: &str) -> bool {
    let adjusted = case.played.probes.get("adjusted").map_or(&[][..], |p| rows(p, "candidates"));
    let find = |list: &[Value]| list.iter().find(|r| r["code"] == code).cloned();
    let (Some(a), Some(b)) = (find(rows(&case.played.ours, "candidates")), find(adjusted)) else { return false };
    a.as_object().is_some_and(|o| {
        o.iter().all(|(k, v)| match (v.as_f64(), b[k.as_str()].as_f64()) {
            (Some(x), Some(y)) => (x - y).abs() <= 0.011,
            _ => v.is_array() || *v == b[k.as_str()] || k == "stage",
        })
    })
}

/// The flag differs between nineteen and twenty sessions even without ex-events.
fn plain_flag_differs(case: &Case<'_>, code: &str) -> bool {
    let find = |list: &[Value]| list.iter().find(|r| r["code"] == code).map(has_flag);
    let plain = case.played.probes.get("plain").map_or(&[][..], |p| rows(p, "candidates"));
    find(plain) != find(rows(&case.played.theirs, "candidates"))
}

/// The flag extended_20d (a change above 25 %) differs between nineteen and twenty sessions.
fn changed_flag(case: &Case<'_>, row: &Value) -> bool {
    let (code, today) = (row["code"].as_str().unwrap_or_default(), case.played.clock.day);
    let nineteen = case.oracle.plain_change(code, today, 19);
    let twenty = case.oracle.change(code, today, 20);
    nineteen.zip(twenty).is_some_and(|(a, b)| (a - b).abs() > 0.0) && !has_flag(row)
}
