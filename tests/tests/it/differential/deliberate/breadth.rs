//! Whole-market counts and sectors.

use super::{Case, Entry, Kind, gap};
use crate::differential::diff::{Diff, equal};
use crate::differential::oracle::rounds_to;
use crate::differential::play::rows;
use serde_json::{Value, json};

const OVERVIEWS: &[&str] = &["get_market_overview", "get_narrative_market_overview"];

/// Rising and falling stocks, worked out again.
fn counts(case: &Case<'_>) -> (u64, u64) {
    let today = case.played.clock.day;
    let changes: Vec<f64> = case.oracle.codes().filter_map(|c| case.oracle.change(c, today, 1)).collect();
    (changes.iter().filter(|c| **c > 1e-12).count() as u64, changes.iter().filter(|c| **c < -1e-12).count() as u64)
}

fn right_counts(case: &Case<'_>) -> bool {
    let (up, down) = counts(case);
    let shown = |key: &str, n: u64| case.ours(key).as_u64() == Some(n);
    shown("up_count", up) && shown("down_count", down) && shown("total_stocks", up + down)
}

/// Stocks whose change theirs shows as 0.00 although it is none.
fn tiny(case: &Case<'_>) -> usize {
    let today = case.played.clock.day;
    let small = |c: &f64| c.abs() > 1e-12 && c.abs() < 0.005;
    case.oracle.codes().filter(|c| case.oracle.plain_change(c, today, 1).as_ref().is_some_and(small)).count()
}

/// No table of companies: no sector on our side.
fn no_companies(case: &Case<'_>) -> bool {
    case.oracle.parts.securities.is_none()
}

/// The field of a sector row, worked out from its members.
fn sector_value(case: &Case<'_>, diff: &Diff) -> bool {
    let name = diff.their_row["sector"].as_str().unwrap_or_default();
    let field = diff.field.rsplit('.').next().unwrap_or_default();
    let n = if field.contains("_5d") {
        5
    } else if field.contains("_20d") {
        20
    } else {
        1
    };
    let Some((mean, up)) = case.oracle.sector_change(name, case.played.clock.day, n) else { return false };
    rounds_to(&diff.ours, if field.starts_with("up_ratio") { up } else { mean }, 2)
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "b19",
        tools: OVERVIEWS,
        fields: &["total_sectors", "top_sectors*", "bottom_sectors*", "rotation_candidates*"],
        reason: "Sectors come from the dataset given; theirs come from a list in its package. This dataset has no companies table, and says so.",
        covers: |case, diff| {
            let empty = |key: &str| case.ours(key).as_array().is_none_or(Vec::is_empty);
            no_companies(case)
                && *case.ours("total_sectors") == json!(0)
                && ["top_sectors", "bottom_sectors", "rotation_candidates"].iter().all(|k| empty(k))
                && (diff.kind == Kind::Absent || diff.field == "total_sectors")
        },
    },
    Entry {
        id: "b27-breadth",
        tools: OVERVIEWS,
        fields: &["up_count", "down_count", "total_stocks"],
        reason: "Suspended stocks are not in yesterday's breadth but in suspended_count (engine E2.7).",
        covers: |case, diff| {
            let suspended = case.oracle.suspended_count(case.played.clock.day);
            let slack = suspended + tiny(case);
            suspended > 0
                && *case.ours("suspended_count") == json!(suspended)
                && right_counts(case)
                && gap(diff).is_some_and(|g| g.abs() <= slack as f64)
        },
    },
    Entry {
        id: "T1-unrounded",
        tools: OVERVIEWS,
        fields: &["up_count", "down_count", "total_stocks"],
        reason: "A change that only rounds to 0.00 is a change; theirs counts the rounded one.",
        covers: |case, diff| right_counts(case) && tiny(case) > 0 && gap(diff).is_some_and(|g| g.abs() <= tiny(case) as f64),
    },
    Entry {
        id: "T1-rounding-sector",
        tools: OVERVIEWS,
        fields: &[
            "top_sectors[].avg_change_pct",
            "top_sectors[].change_1d_pct",
            "top_sectors[].change_5d_pct",
            "top_sectors[].change_20d_pct",
            "top_sectors[].up_ratio_1d_pct",
            "bottom_sectors[].avg_change_pct",
            "bottom_sectors[].change_1d_pct",
            "bottom_sectors[].change_5d_pct",
            "bottom_sectors[].change_20d_pct",
            "bottom_sectors[].up_ratio_1d_pct",
        ],
        reason: "A sector's mean is the mean of unrounded changes, and its breadth counts them; theirs averages and counts rounded ones.",
        covers: |case, diff| {
            let one_vote = 100.0 / diff.their_row["stock_count"].as_f64().unwrap_or(f64::NAN);
            let width = if diff.field.contains("up_ratio") { one_vote + 0.011 } else { 0.0101 };
            sector_value(case, diff) && gap(diff).is_some_and(|g| g.abs() <= width)
        },
    },
    Entry {
        id: "prose-rules",
        tools: &["get_narrative_market_overview", "screen_behavioral_cycle", "get_narrative_news"],
        fields: &["ranking_rule", "rotation_candidate_rule", "as_of_rule", "interpretation"],
        reason: "Rules in words are our own words.",
        covers: |_, diff| diff.ours.as_str().is_some_and(|t| t.len() > 20) && diff.theirs.is_string(),
    },
    Entry {
        id: "b19-sectors",
        tools: &["get_sector_summary", "get_narrative_sector_summary", "screen_stocks"],
        fields: &["outcome"],
        reason: "Industries come from the dataset given. This one has none: data_unavailable, not a list from somewhere else. \
                 The stocks that theirs shows have the same numbers in ours.",
        covers: |case, diff| {
            let asked = case.played.args["industry"].is_string() || case.played.args["sector"].is_string();
            no_companies(case) && diff.ours == "data_unavailable" && asked && same_members(case)
        },
    },
];

/// Each stock of a recorded answer: the same numbers from the rows of the dataset, and, in a market that has the sector, from ours.
fn same_members(case: &Case<'_>) -> bool {
    let today = case.played.clock.day;
    let lists = ["top_gainers", "top_losers", "leaders", "stocks"];
    let shown = lists.iter().flat_map(|l| rows(&case.played.theirs, l));
    shown.into_iter().all(|row| {
        let code = row["code"].as_str().unwrap_or_default();
        let close = case.oracle.closes(code, today).last().copied().unwrap_or(f64::NAN);
        let change = |field: &str, n: usize| {
            let exact = case.oracle.plain_change(code, today, n);
            row[field].is_null() || exact.is_some_and(|e| rounds_to(&row[field], e, 2))
        };
        let sessions = |n: usize| if row["volume"].is_null() { n } else { n - 1 };
        equal(&row["close"], &Value::from((close * 100.0).round() / 100.0))
            && change("change_pct", 1)
            && change("change_1d_pct", 1)
            && change("change_5d_pct", sessions(5))
            && change("change_20d_pct", 20)
    }) && same_sector(case)
}

/// Our lists of a sector made of the stocks that theirs shows: the same stocks in the same order with the same numbers, up to the
/// last place where theirs rounds a binary float, without the suspended ones.
fn same_sector(case: &Case<'_>) -> bool {
    let Some(ours) = case.played.probes.get("sector") else {
        return !case.played.tool.ends_with("sector_summary") || case.theirs("success") != true;
    };
    let today = case.played.clock.day;
    let near = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 0.0101,
        _ => a == b,
    };
    let traded = |row: &&Value| !case.oracle.was_suspended(row["code"].as_str().unwrap_or_default(), today);
    ["top_gainers", "top_losers", "leaders"].iter().all(|list| {
        let theirs: Vec<&Value> = rows(&case.played.theirs, list).iter().filter(traded).collect();
        let mine = rows(ours, list);
        let row = |(a, b): (&Value, &&Value)| b.as_object().is_some_and(|o| o.iter().all(|(k, v)| near(&a[k.as_str()], v)));
        let all_traded = theirs.len() == rows(&case.played.theirs, list).len();
        if all_traded {
            mine.iter().zip(&theirs).all(row) && mine.is_empty() == theirs.is_empty()
        } else {
            theirs.iter().all(|t| mine.iter().any(|m| row((m, t))) || mine.len() >= 5)
        }
    })
}
