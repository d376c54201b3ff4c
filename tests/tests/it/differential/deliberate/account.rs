//! What the account and the watchlist are worth.

use super::{Case, Entry, Kind, gap, near, row_code};
use crate::differential::diff::{Diff, equal};
use crate::differential::oracle::rounds_to;
use crate::differential::play::rows;
use serde_json::Value;
use traderharness_market::DecisionPoint;

const HELD: &[&str] = &["get_portfolio", "get_position"];
const PRICED: &[&str] = &["get_portfolio", "get_position", "get_watchlist"];
const PRICES: &[&str] = &[
    "positions[].current_price",
    "positions[].market_value",
    "positions[].pnl_pct",
    "current_price",
    "pnl_pct",
    "watchlist[].price",
    "watchlist[].close",
    "watchlist[].change_pct",
];

/// The value of ours, worked out from the mark of the dataset.
fn right_value(case: &Case<'_>, diff: &Diff) -> bool {
    let (code, clock) = (row_code(diff), case.played.clock);
    let Some(mark) = case.oracle.mark(code, clock) else { return false };
    let shares = diff.our_row["quantity"].as_f64().unwrap_or(0.0);
    match diff.field.rsplit('.').next().unwrap_or_default() {
        "market_value" => rounds_to(&diff.ours, (mark * 100.0).round() / 100.0 * shares, 2),
        "pnl_pct" => {
            let cost = diff.our_row["cost_total"].as_f64().unwrap_or(f64::NAN);
            rounds_to(&diff.ours, ((mark * 100.0).round() / 100.0 * shares / cost - 1.0) * 100.0, 2)
        }
        "change_pct" => {
            let base = case.oracle.reference(code, clock.day).unwrap_or(f64::NAN);
            rounds_to(&diff.ours, (mark / base - 1.0) * 100.0, 2)
        }
        _ => rounds_to(&diff.ours, mark, 2),
    }
}

/// Price that theirs marks a row with.
fn their_price(diff: &Diff) -> &Value {
    let row = &diff.their_row;
    if row["current_price"].is_null() { &row["price"] } else { &row["current_price"] }
}

/// All of ours: cash plus shares at the marks of the dataset.
fn right_total(case: &Case<'_>) -> Option<f64> {
    let mut total = case.ours("cash").as_f64()?;
    for row in rows(&case.played.ours, "positions") {
        let mark = case.oracle.mark(row["stock_code"].as_str()?, case.played.clock)?;
        total += (mark * 100.0).round() / 100.0 * row["quantity"].as_f64()?;
    }
    Some(total)
}

/// Their total with our marks and what the accounts differ by: the rest of the difference must be prices.
fn parted_code(case: &Case<'_>, code: &str) -> i64 {
    case.played.parted.shares.get(code).copied().unwrap_or(0)
}

/// Codes that one side holds and the other not, from the trades only one side made.
fn only_parted(case: &Case<'_>) -> bool {
    let shares = |v: &Value, code: &str| {
        let row = rows(v, "positions").iter().find(|r| r["stock_code"] == code);
        row.and_then(|r| r["quantity"].as_i64()).unwrap_or(0)
    };
    let codes = [&case.played.ours, &case.played.theirs].into_iter().flat_map(|v| rows(v, "positions"));
    codes
        .filter_map(|r| r["stock_code"].as_str())
        .all(|code| shares(&case.played.ours, code) - shares(&case.played.theirs, code) == parted_code(case, code))
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "T1-price-source",
        tools: PRICED,
        fields: &["positions[].price_source", "price_source", "watchlist[].price_source"],
        reason: "A source says which bar it is: current_visible_5min_close, previous_daily_close, or the same moved by an ex-date.",
        covers: |case, diff| {
            let (code, clock) = (row_code(diff), case.played.clock);
            let expected = match case.oracle.intraday(code, clock) {
                Some(_) => "current_visible_5min_close",
                None if case.oracle.mark(code, clock) == case.oracle.closes(code, clock.day).last().copied() => {
                    "previous_daily_close"
                }
                None => "previous_daily_close_ex_right",
            };
            diff.ours == expected
        },
    },
    Entry {
        id: "b01",
        tools: PRICED,
        fields: PRICES,
        reason: "Prices are those of the last visible bar (engine E2.2); theirs shows 10:00 in open_1 and 15:00 in close_1.",
        covers: |case, diff| {
            let early = matches!(case.played.clock.point, DecisionPoint::Open1 | DecisionPoint::Close1);
            let leaked = case.oracle.end_of_window(row_code(diff), case.played.clock);
            early && leaked.is_some_and(|p| rounds_to(their_price(diff), p, 2)) && right_value(case, diff)
        },
    },
    Entry {
        id: "b01-focus",
        tools: PRICED,
        fields: PRICES,
        reason: "Every held or watched security is priced at every point; theirs only knows those that were there when the window opened, \
                 or that trade inside it, and shows yesterday's close or an old price for the others.",
        covers: |case, diff| {
            let close = case.oracle.closes(row_code(diff), case.played.clock.day).last().copied();
            case.played.clock.point != DecisionPoint::PreMarket
                && case.oracle.intraday(row_code(diff), case.played.clock).is_some()
                && close.is_some_and(|c| rounds_to(their_price(diff), c, 2))
                && right_value(case, diff)
        },
    },
    Entry {
        id: "b13-mark",
        tools: PRICED,
        fields: PRICES,
        reason: "On the morning of an ex-date a holding is valued at the reference price, so that the account is continuous (engine E6.3).",
        covers: |case, diff| {
            let (code, today) = (row_code(diff), case.played.clock.day);
            let yesterday = case.oracle.yesterday(today);
            yesterday.is_some_and(|y| case.oracle.has_ex_event(code, y, today)) && right_value(case, diff)
        },
    },
    Entry {
        id: "E7.2-exact-cost",
        tools: HELD,
        fields: &["positions[].pnl_pct", "pnl_pct"],
        reason: "Percent of the exact cost; theirs divides by an average rounded to the cent.",
        covers: |case, diff| {
            let average = diff.our_row["avg_cost"].as_f64().unwrap_or(f64::NAN);
            let width = 0.5 / average + 0.011;
            right_value(case, diff)
                && equal(&diff.our_row["current_price"], &diff.their_row["current_price"])
                && gap(diff).is_some_and(|g| g.abs() <= width)
        },
    },
    Entry {
        id: "b22-account",
        tools: HELD,
        fields: &[
            "cash",
            "positions[]",
            "position_count",
            "positions[].quantity",
            "positions[].market_value",
            "positions[].pnl_pct",
            "quantity",
            "sellable_quantity",
        ],
        reason: "Follows from an earlier order that only one side filled (b12, b22, E4-lot): the accounts differ by exactly that trade.",
        covers: |case, diff| {
            let code = row_code(diff);
            let parted = &case.played.parted;
            match (diff.field.as_str(), diff.kind) {
                ("cash", _) => gap(diff).is_some_and(|g| near(g, parted.cash)),
                ("position_count", _) => {
                    only_parted(case) && diff.ours.as_u64() == Some(rows(&case.played.ours, "positions").len() as u64)
                }
                ("positions[]", Kind::Absent) => {
                    let (code, shares) =
                        (diff.theirs["stock_code"].as_str().unwrap_or_default(), diff.theirs["quantity"].as_i64());
                    shares.is_some_and(|s| parted_code(case, code) == -s)
                }
                ("quantity" | "sellable_quantity" | "positions[].quantity", _) => {
                    gap(diff).is_some_and(|g| g != 0.0 && near(g, parted_code(case, code) as f64))
                }
                _ => parted_code(case, code) != 0 && right_value(case, diff),
            }
        },
    },
    Entry {
        id: "b01-total",
        tools: &["get_portfolio"],
        fields: &["total_value", "return_pct"],
        reason: "Total assets are cash and shares at the marks above.",
        covers: |case, diff| {
            let Some(total) = right_total(case) else { return false };
            match diff.field.as_str() {
                "total_value" => rounds_to(&diff.ours, total, 2),
                _ => {
                    rounds_to(&diff.ours, (total / 1_000_000.0 - 1.0) * 100.0, 2)
                        && *case.ours("total_value") != *case.theirs("total_value")
                }
            }
        },
    },
    Entry {
        id: "T3-holding-days",
        tools: &["get_position"],
        fields: &["holding_trading_days"],
        reason: "Sessions held are known without a plan too.",
        covers: |case, diff| {
            let held = case.ours("days_held").as_i64().unwrap_or(-1);
            diff.theirs.is_null() && diff.ours.as_i64().is_some_and(|n| n <= held && (n > 0) == (held > 0))
        },
    },
    Entry {
        id: "E11.4",
        tools: &["get_position"],
        fields: &["position_plan.decision_evidence_snapshot"],
        reason: "The results behind a plan are kept with it; the position names their tools and does not print them again.",
        covers: |case, diff| {
            let named = case.ours("position_plan")["decision_evidence"].as_array();
            let names = || named.into_iter().flatten().filter_map(Value::as_str);
            let theirs = diff.theirs.as_object();
            diff.kind == Kind::Absent && theirs.is_some_and(|o| o.keys().all(|k| names().any(|n| n.contains(k.as_str()))))
        },
    },
    Entry {
        id: "E11-plan-day",
        tools: &["get_position"],
        fields: &["position_plan.entry_day_index"],
        reason: "A plan has entry_date and holding_trading_days; the index of a day in the run is not shown.",
        covers: |case, diff| diff.kind == Kind::Absent && case.ours("position_plan")["entry_date"].is_string(),
    },
    Entry {
        id: "b21-watchlist",
        tools: &["get_watchlist", "add_watchlist", "remove_watchlist"],
        fields: &["watchlist[]", "count", "total_watching"],
        reason: "Follows from b21: a security that is not in the run is not on the list.",
        covers: |case, diff| {
            let unknown = rows(&case.played.theirs, "watchlist")
                .iter()
                .filter(|r| !case.oracle.knows(r["stock_code"].as_str().unwrap_or_default()))
                .count();
            match diff.kind {
                Kind::Absent => !case.oracle.knows(diff.theirs["stock_code"].as_str().unwrap_or_default()),
                _ if diff.field == "count" && diff.ours.as_u64() != Some(rows(&case.played.ours, "watchlist").len() as u64) => {
                    false
                }
                _ if diff.field == "count" => gap(diff).is_some_and(|g| near(g, -(unknown as f64))),
                _ => {
                    gap(diff).is_some_and(|g| g < 0.0)
                        && case.played.earlier.iter().any(|e| e.0 == "add_watchlist" && e.3["success"] != e.2["success"])
                }
            }
        },
    },
    Entry {
        id: "T3-watch-order",
        tools: &["get_watchlist"],
        fields: &["watchlist"],
        reason: "Added first, shown first, on every day; theirs sorts by real code after a night (b39).",
        covers: |_, diff| {
            let list = |v: &Value| -> Vec<String> {
                v.as_array().into_iter().flatten().filter_map(|c| c.as_str().map(str::to_owned)).collect()
            };
            let (theirs, ours) = (list(&diff.theirs), list(&diff.ours));
            let mut sorted = theirs.clone();
            sorted.sort();
            theirs == sorted && ours != theirs
        },
    },
];
