//! Companies: who they are, what they report, how they are valued.

use super::{Case, Entry, Kind};
use crate::differential::play::rows;
use serde_json::{Value, json};

const RATIOS: [&str; 5] = ["roe", "net_profit_margin", "gross_margin", "yoy_net_profit", "yoy_eps"];

/// A report of ours with the numbers of theirs, ratios as percent.
fn fits(report: &Value, theirs: &Value) -> bool {
    let same = |field: &str, scale: f64, places: i32| match (report[field].as_f64(), theirs[field].as_f64()) {
        (Some(a), Some(b)) => (a - b * scale).abs() <= 0.5 * 10_f64.powi(-places) + 1e-9 * b.abs(),
        (a, b) => a.is_none() && b.is_none(),
    };
    RATIOS.iter().all(|f| same(f, 100.0, 2))
        && ["net_profit", "revenue"].iter().all(|f| same(f, 1.0, 2))
        && same("eps_ttm", 1.0, 3)
}

/// Place of their report in ours.
fn place(case: &Case<'_>, probe: &str) -> Option<usize> {
    let reports = case.played.probes.get(probe).map_or(&[][..], |p| rows(p, "reports"));
    reports.iter().position(|r| fits(r, &case.played.theirs))
}

/// Their report is published today: theirs shows it before the open, ours on the next morning.
fn of_today(case: &Case<'_>) -> bool {
    let reports = case.played.probes.get("tomorrow").map_or(&[][..], |p| rows(p, "reports"));
    let days_ago = |shown: &str| -> bool {
        let today = case.played.clock.day;
        let days = case.oracle.parts.calendar.days();
        let next = days.iter().find(|d| **d > today).map_or(0, |d| d.days_since(today));
        shown == format!("D-{next}") || shown == today.to_string()
    };
    place(case, "all").is_none()
        && reports.iter().any(|r| fits(r, &case.played.theirs) && r["published"].as_str().is_some_and(days_ago))
}

/// Rows of segments of ours with the numbers of theirs.
fn same_segments(ours: &Value, theirs: &Value) -> bool {
    let percent = |v: &Value| v.as_str().and_then(|t| t.trim_end_matches('%').parse::<f64>().ok());
    let near = |a: &Value, b: Option<f64>, width: f64| match (a.as_f64(), b) {
        (Some(a), Some(b)) => (a - b).abs() <= width + 1e-9,
        (a, b) => a.is_none() && b.is_none(),
    };
    let (a, b) = (rows(ours, "segments"), rows(theirs, "segments"));
    a.len() == b.len()
        && b.iter().all(|t| {
            a.iter().any(|o| {
                o["type"] == t["type"]
                    && o["name"] == t["name"]
                    && near(&o["revenue_pct"], percent(&t["revenue_pct"]), 0.055)
                    && near(&o["gross_margin"], percent(&t["gross_margin"]), 0.055)
                    && near(&o["revenue_100m_cny"], t["revenue_100m_cny"].as_f64(), 0.0)
            })
        })
}

/// Every segment of ours is a row of the dataset, of the newest report published before today.
fn right_segments(case: &Case<'_>) -> bool {
    let today = case.played.clock.day;
    let all = case.oracle.parts.segments.iter().flatten();
    let past: Vec<_> = all.filter(|r| r.code.to_string() == case.code() && r.published.is_some_and(|p| p < today)).collect();
    let newest = past.iter().filter_map(|r| r.report_date).max();
    let near = |shown: &Value, exact: Option<f64>, scale: f64| match (shown.as_f64(), exact) {
        (Some(a), Some(b)) => (a - b * scale).abs() <= 0.005 + 1e-6,
        (a, b) => a.is_none() && b.is_none_or(|b| !b.is_finite()),
    };
    rows(&case.played.ours, "segments").iter().all(|s| {
        past.iter().any(|r| {
            r.report_date == newest
                && s["type"] == *r.kind
                && (s["name"] == *r.name || case.played.masked)
                && near(&s["revenue_pct"], r.revenue_pct, 100.0)
                && near(&s["gross_margin"], r.gross_margin, 100.0)
                && near(&s["revenue_100m_cny"], r.revenue, 1e-8)
        })
    })
}

fn segments_tomorrow(case: &Case<'_>) -> bool {
    right_segments(case)
        && !same_segments(&case.played.ours, &case.played.theirs)
        && case.played.probes.get("tomorrow").is_some_and(|p| same_segments(p, &case.played.theirs))
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "b28",
        tools: &["get_fundamentals"],
        fields: &[
            "roe",
            "net_profit_margin",
            "gross_margin",
            "net_profit",
            "eps_ttm",
            "revenue",
            "yoy_net_profit",
            "yoy_eps",
            "units*",
        ],
        reason: "Reports stand in `reports`, newest first, with report_period and published; ratios are percent as their unit says.",
        covers: |case, diff| diff.kind == Kind::Absent && place(case, "all") == Some(0),
    },
    Entry {
        id: "T3-periods",
        tools: &["get_fundamentals"],
        fields: &["roe", "net_profit_margin", "gross_margin", "net_profit", "eps_ttm", "revenue", "yoy_net_profit", "yoy_eps"],
        reason: "Up to eight reports, newest period first; theirs shows the last row of the file, here an older report that ours lists further down.",
        covers: |case, diff| diff.kind == Kind::Absent && place(case, "all").is_some_and(|p| p > 0),
    },
    Entry {
        id: "E2.4",
        tools: &["get_fundamentals", "get_business_segments"],
        fields: &["*"],
        reason: "A report with only a publication day is visible from the next trading day; theirs shows it before the open of that day.",
        covers: |case, _| match case.played.tool.as_str() {
            "get_fundamentals" => of_today(case),
            _ => segments_tomorrow(case),
        },
    },
    Entry {
        id: "T3-percent",
        tools: &["get_business_segments"],
        fields: &["segments[].revenue_pct", "segments[].gross_margin"],
        reason: "Percentages are numbers, two decimals; theirs are texts with a sign, one decimal.",
        covers: |case, diff| {
            diff.theirs.is_string() && diff.ours.is_number() && same_segments(&case.played.ours, &case.played.theirs)
        },
    },
    Entry {
        id: "b18-segments",
        tools: &["get_business_segments"],
        fields: &["segments"],
        reason: "Segments are in the order of their share inside a type; theirs in the order of the file.",
        covers: |case, diff| diff.kind == Kind::Order && same_segments(&case.played.ours, &case.played.theirs),
    },
    Entry {
        id: "T1-no-row",
        tools: &["get_fundamentals", "get_business_segments"],
        fields: &["outcome"],
        reason: "No row of this security is security_data_unavailable; data_unavailable means that the table is not there.",
        covers: |case, diff| {
            let parts = &case.oracle.parts;
            let code = case.code();
            let none = match case.played.tool.as_str() {
                "get_fundamentals" => !parts.fundamentals.iter().flatten().any(|r| r.code.to_string() == code),
                _ => !parts.segments.iter().flatten().any(|r| r.code.to_string() == code),
            };
            diff.theirs == "data_unavailable"
                && diff.ours == "security_data_unavailable"
                && none
                && *case.ours("retryable") == json!(false)
        },
    },
    Entry {
        id: "T1-ratio",
        tools: &["get_valuation"],
        fields: &["pe_ttm", "pb_mrq", "ps_ttm"],
        reason: "Ratios have three decimals.",
        covers: |_, diff| super::gap(diff).is_some_and(|g| g.abs() <= 0.005 + 1e-9),
    },
    Entry {
        id: "b19-company",
        tools: &["get_stock_info"],
        fields: &["name", "industry"],
        reason: "Names and industries come from the dataset given; this one has no companies table, so they are null with a reason.",
        covers: |case, diff| {
            let missing = case.ours("missing_reasons").as_array();
            let said = missing.is_some_and(|all| all.iter().any(|m| m["field"] == diff.field && m["reason"] == "source_missing"));
            case.oracle.parts.securities.is_none() && diff.ours == Value::Null && said
        },
    },
    Entry {
        id: "T3-board",
        tools: &["get_stock_info"],
        fields: &["market"],
        reason: "Boards have English names.",
        covers: |_, diff| {
            let pairs = [("主板", "main"), ("创业板", "ChiNext"), ("科创板", "STAR"), ("北交所", "BSE")];
            pairs.iter().any(|(t, o)| diff.theirs == *t && diff.ours == *o)
        },
    },
    Entry {
        id: "b17",
        tools: &["get_stock_info"],
        fields: &["_dedup"],
        reason: "A repeated call returns the full result again, marked repeated.",
        covers: |case, diff| {
            let first = case.played.earlier.iter().find(|e| e.0 == "get_stock_info" && e.1 == case.played.args);
            diff.kind == Kind::Absent
                && *case.ours("repeated") == json!(true)
                && first.is_some_and(|f| f.3["board"] == *case.ours("board"))
        },
    },
];
