//! Arguments, codes and failures of every tool.

use super::{Case, Entry, Kind, outcome};
use crate::differential::diff::Diff;
use serde_json::{Value, json};
use traderharness_contract::ErrorCode;
use traderharness_market::DecisionPoint;

const BY_CODE: &[&str] = &[
    "get_kline",
    "get_stock_price",
    "get_stock_info",
    "get_fundamentals",
    "get_business_segments",
    "get_valuation",
    "get_announcements",
    "get_announcement_evidence",
    "get_news",
    "place_order",
    "manage_conditional_order",
    "add_watchlist",
    "remove_watchlist",
];

const ALL: &[&str] = &[
    "get_kline",
    "get_stock_price",
    "get_stock_info",
    "get_market_overview",
    "screen_stocks",
    "get_sector_summary",
    "get_narrative_sector_summary",
    "get_fundamentals",
    "get_business_segments",
    "get_valuation",
    "get_announcements",
    "get_announcement_evidence",
    "get_news",
    "get_narrative_news",
    "get_position",
    "place_order",
    "manage_conditional_order",
    "list_conditional_orders",
    "add_watchlist",
    "remove_watchlist",
    "get_watchlist",
    "remember",
    "search_memory",
    "get_memory",
    "complete_phase",
    "finish_day",
    "execute_code",
];

/// A whole number with a zero fraction somewhere in the arguments.
fn whole_float(args: &Value) -> bool {
    args.as_object().into_iter().flatten().any(|(_, v)| v.as_f64().is_some_and(|f| v.is_f64() && f.fract() == 0.0))
}

/// Ours names a missing field itself; theirs names the object that lacks it.
fn missing_fields(_: &Case<'_>, diff: &Diff) -> bool {
    let paths =
        |v: &Value| -> Vec<String> { v.as_array().into_iter().flatten().filter_map(|p| p.as_str().map(str::to_owned)).collect() };
    let (theirs, ours) = (paths(&diff.theirs), paths(&diff.ours));
    let parent = |path: &str| path.rsplit_once('/').map_or(String::new(), |(p, _)| p.to_owned());
    let missing: Vec<&str> = diff.our_row["missing_fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_missing = |path: &&String| missing.iter().any(|m| path.rsplit('/').next() == m.rsplit('.').next());
    let last = |row: &Value| -> Vec<String> {
        let names = row["missing_fields"].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(|n| n.rsplit('.').next().unwrap_or_default().to_owned()).collect()
    };
    last(&diff.our_row) == last(&diff.their_row)
        && !missing.is_empty()
        && ours.iter().filter(|p| !theirs.contains(p)).all(|p| is_missing(&p) && theirs.contains(&parent(p)))
        && theirs.iter().filter(|p| !ours.contains(p)).all(|p| ours.iter().any(|o| is_missing(&o) && parent(o) == *p))
}

/// What ours adds, under the name of the finer code it chose: theirs guesses a coarse one from the words of its message.
fn finer_code(case: &Case<'_>, diff: &Diff) -> bool {
    let Some(code) = ErrorCode::ALL.iter().find(|c| diff.ours == c.as_str()) else { return false };
    let legacy = case.ours("code_family_legacy");
    if diff.theirs != code.legacy() || *legacy != diff.theirs {
        return false;
    }
    let (oracle, clock, code_of) = (case.oracle, case.played.clock, case.code());
    let fill = oracle.fill_price(code_of, clock);
    let quantity = case.played.args["quantity"].as_f64().unwrap_or(0.0);
    let limits = || {
        let reference = oracle.reference(code_of, clock.day)?;
        let percent = if ["300", "301", "688", "689"].iter().any(|p| code_of.starts_with(p)) { 0.2 } else { 0.1 };
        let round = |x: f64| (x * 100.0 + 1e-6).round() / 100.0;
        Some((round(reference * (1.0 - percent)), round(reference * (1.0 + percent))))
    };
    // Each precise code is held against the rows of the dataset.
    match code {
        ErrorCode::UnknownSecurity => !oracle.knows(code_of),
        ErrorCode::Suspended => oracle.intraday(code_of, clock).is_none(),
        ErrorCode::NoBarInWindow => oracle.intraday(code_of, clock).is_some() && fill.is_none(),
        ErrorCode::LimitUpLocked => fill.zip(limits()).is_some_and(|(p, (_, up))| p >= up),
        ErrorCode::LimitDownLocked => fill.zip(limits()).is_some_and(|(p, (down, _))| p <= down),
        ErrorCode::StForbidden => oracle.is_st(code_of, clock.day) && case.played.args["action"] == "buy",
        ErrorCode::PositionCountLimit => {
            let most = case.ours("correction")["max_positions"].as_u64();
            most.is_some_and(|m| case.played.held as u64 >= m) && case.played.args["action"] == "buy"
        }
        ErrorCode::PositionWeightLimit => {
            let cap = case.ours("correction")["max_quantity"].as_f64();
            cap.is_some_and(|most| most < quantity)
        }
        ErrorCode::InsufficientCash => {
            let cash = case.ours("correction")["usable_cash"].as_f64().unwrap_or(f64::MAX);
            fill.is_some_and(|p| p * quantity > cash)
        }
        ErrorCode::AlreadyTradedToday => case.played.traded.iter().any(|c| c == code_of),
        ErrorCode::TPlusOneLocked => case.ours("correction")["sellable"] == json!(0),
        ErrorCode::InvalidLot => quantity % 100.0 != 0.0 || quantity > 1_000_000.0,
        ErrorCode::PlanLevelInvalid => {
            let stop = case.played.args["original_structural_stop"].as_f64();
            let lowered = case.ours("correction")["min_trigger_price"].as_f64();
            let trigger = case.played.args["trigger_price"].as_f64();
            stop.zip(fill).is_some_and(|(s, p)| s >= p) || lowered.zip(trigger).is_some_and(|(least, t)| t <= least)
        }
        ErrorCode::MinimumHolding => {
            let (held, least) =
                (case.ours("correction")["held"].as_u64(), case.ours("correction")["minimum_holding_days"].as_u64());
            case.played.args["action"] == "sell" && least.is_some_and(|l| held.is_none_or(|h| h < l))
        }
        _ => false,
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "sandbox",
        tools: &["execute_code"],
        fields: &["outcome"],
        reason: "Calls are compared without a sandbox, where each accepted one answers environment_unavailable. What code gets is compared by a test of its own.",
        covers: |case, diff| diff.ours == "environment_unavailable" && *case.ours("retryable") == json!(false),
    },
    Entry {
        id: "T1-missing-path",
        tools: ALL,
        fields: &["correction.issues"],
        reason: "An issue about a missing field has the path of that field, not of the object that lacks it.",
        covers: missing_fields,
    },
    Entry {
        id: "T1-whole-number",
        tools: &["get_kline", "place_order", "get_announcements", "get_news"],
        fields: &["outcome"],
        reason: "5.0 is the integer 5, as JSON Schema 2020-12 has it; theirs refuses it.",
        covers: |case, diff| outcome(diff, "invalid_tool_arguments", "success") && whole_float(&case.played.args),
    },
    Entry {
        id: "T1-correction",
        tools: &["remember", "place_order"],
        fields: &["candidate_memories", "candidate_memory_ids", "retry_arguments", "required_argument", "retry_kind"],
        reason: "What repairs a call stands in `correction`, once; theirs puts some of it beside.",
        covers: |case, diff| {
            let ours = &case.ours("correction")[diff.field.as_str()];
            let name = |m: &Value| if m.is_object() { m["memory_id"].clone() } else { m.clone() };
            let ids = |v: &Value| -> Vec<Value> { v.as_array().into_iter().flatten().map(name).collect() };
            diff.kind == Kind::Absent && (*ours == diff.theirs || (!ids(ours).is_empty() && ids(ours) == ids(&diff.theirs)))
        },
    },
    Entry {
        id: "b07",
        tools: BY_CODE,
        fields: &["outcome"],
        reason: "Masked runs know no real code: unknown_security, without an echo (engine E8.5).",
        covers: |case, diff| {
            case.played.masked && diff.ours == "unknown_security" && diff.theirs == "success" && case.oracle.knows(case.code())
        },
    },
    Entry {
        id: "b08",
        tools: BY_CODE,
        fields: &["outcome", "correction.candidate_aliases*", "correction.retry_argument_choices*"],
        reason: "A bare suffix is never resolved, and what a suffix can mean depends on the run's own alias map (engine E8.6).",
        covers: |case, diff| {
            let candidates = |v: &Value| v["correction"]["candidate_aliases"].as_array().map_or(0, Vec::len);
            let choices = |v: &Value| v["correction"]["retry_argument_choices"].as_array().map_or(0, Vec::len);
            let ours = &case.played.ours;
            let bare = |v: &Value| {
                let mut args = v.clone();
                args.as_object_mut().and_then(|o| o.remove("stock_code"));
                args
            };
            let all = ours["correction"]["retry_argument_choices"].as_array();
            // A choice is the call as sent with one candidate.
            let complete = all.into_iter().flatten().all(|c| bare(c) == bare(&case.played.args) && c["stock_code"].is_string());
            case.played.masked
                && complete
                && candidates(ours) > 0
                && candidates(ours) == choices(ours)
                && match diff.kind {
                    // Theirs takes a code with a blank for unknown; ours says which code was meant.
                    Kind::Outcome => diff.ours == "ambiguous_masked_stock_code" && diff.theirs == "security_data_unavailable",
                    _ => true,
                }
        },
    },
    Entry {
        id: "b29",
        tools: ALL,
        fields: &["outcome"],
        reason: "The handler chooses a precise code; the coarse one of theirs stands in code_family_legacy.",
        covers: finer_code,
    },
    Entry {
        id: "b29-rejected",
        tools: &["place_order", "manage_conditional_order", "remember", "execute_code"],
        fields: &["outcome"],
        reason: "A call that theirs refuses with a catch-all code gets the code of its fault.",
        covers: |case, diff| {
            let args = &case.played.args;
            let blank = |key: &str| args[key].as_str().is_some_and(|t| t.trim().is_empty());
            match (diff.theirs.as_str().unwrap_or_default(), diff.ours.as_str().unwrap_or_default()) {
                ("tool_execution_failed", "invalid_tool_arguments") => blank("content"),
                ("tool_execution_failed", "memory_not_found") => args["supersedes_id"].is_string(),
                ("tool_rejected", "position_not_held") => args["action"] == "sell",
                // The size of a protective stop is what is sellable; it cannot be set.
                ("tool_rejected", "invalid_tool_arguments") => {
                    blank("code")
                        || args["operation"] == "update" && args["quantity"].is_number()
                        || args["trigger_price"].as_f64().is_some_and(|p| (p * 100.0).fract().abs() > 1e-9)
                }
                ("structured_plan_missing_fields", "invalid_tool_arguments") => {
                    ["behavior_hypothesis", "exit_condition"].iter().any(|k| blank(k))
                }
                _ => false,
            }
        },
    },
    Entry {
        id: "b29-lot",
        tools: &["place_order", "manage_conditional_order"],
        fields: &["outcome"],
        reason: "Lots depend on the board and the date, so the order path refuses them with invalid_lot and the accepted sizes, not the schema.",
        covers: |case, diff| {
            let quantity = case.played.args["quantity"].as_f64().unwrap_or(0.0);
            ["invalid_tool_arguments", "tool_rejected"].iter().any(|c| diff.theirs == *c)
                && diff.ours == "invalid_lot"
                && (quantity < 100.0 || quantity % 100.0 != 0.0)
        },
    },
    Entry {
        id: "E4-lot",
        tools: &["place_order", "manage_conditional_order"],
        fields: &["outcome"],
        reason: "A STAR buy is at least 200 shares (exchange rules of 2019-03-01, engine E4).",
        covers: |case, diff| {
            ["success", "market_execution_blocked"].iter().any(|c| diff.theirs == *c)
                && diff.ours == "invalid_lot"
                && case.code().starts_with("688")
                && case.played.args["action"] == "buy"
                && case.played.args["quantity"].as_f64().is_some_and(|q| q < 200.0)
        },
    },
    Entry {
        id: "b21",
        tools: &["add_watchlist", "remove_watchlist"],
        fields: &["outcome"],
        reason: "The watchlist refuses a security that is not in the run, so it can hold none (T3).",
        covers: |case, diff| diff.ours == "unknown_security" && !case.oracle.knows(case.code()),
    },
    Entry {
        id: "T1-unknown-news",
        tools: &["get_news"],
        fields: &["outcome"],
        reason: "News of a security that is not in the run is an error, not an empty list.",
        covers: |case, diff| {
            outcome(diff, "success", "unknown_security") && *case.theirs("count") == json!(0) && !case.oracle.knows(case.code())
        },
    },
    Entry {
        id: "T3-arguments",
        tools: &["get_kline", "screen_stocks", "get_news"],
        fields: &["outcome"],
        reason: "Ours accepts more: get_kline up to 250 days, screen_stocks by amount, max_results in every text tool.",
        covers: |case, diff| {
            let args = &case.played.args;
            outcome(diff, "invalid_tool_arguments", "success")
                && match case.played.tool.as_str() {
                    "get_kline" => args["days"].as_u64().is_some_and(|d| (121..=250).contains(&d)),
                    "screen_stocks" => args["sort_by"] == "amount",
                    _ => args["max_results"].is_u64(),
                }
        },
    },
    Entry {
        id: "b41",
        tools: &["get_news", "get_narrative_news", "search_memory", "screen_stocks"],
        fields: &["outcome"],
        reason: "A keyword or query without anything to search for is an argument error; no filter is no argument.",
        covers: |case, diff| {
            let bare = |key: &str| case.played.args[key].as_str().is_some_and(|t| !t.chars().any(char::is_alphanumeric));
            outcome(diff, "success", "invalid_tool_arguments") && ["keyword", "query", "industry"].iter().any(|k| bare(k))
        },
    },
    Entry {
        id: "E10-completion",
        tools: &["complete_phase", "finish_day"],
        fields: &["outcome"],
        reason: "complete_phase ends every point but close_2, finish_day ends close_2 (engine E1.2); theirs relies on its loop to hide them.",
        covers: |case, diff| {
            let close = case.played.clock.point == DecisionPoint::Close2;
            outcome(diff, "success", "tool_unavailable_in_phase") && close == (case.played.tool == "complete_phase")
        },
    },
    Entry {
        id: "E10-abandon",
        tools: &["complete_phase", "finish_day"],
        fields: &["outcome"],
        reason: "Only a code of the table can be abandoned; theirs takes any word.",
        covers: |case, diff| {
            let known = |c: &Value| ErrorCode::ALL.iter().any(|k| c == k.as_str());
            let codes = case.played.args["abandon_error_codes"].as_array();
            outcome(diff, "success", "invalid_tool_arguments") && codes.is_some_and(|all| !all.iter().all(known))
        },
    },
    Entry {
        id: "E8.7-own-words",
        tools: &["finish_day", "complete_phase", "remember", "search_memory", "get_memory"],
        fields: &["summary", "memory.content", "memories[].content"],
        reason: "An agent's own words come back as it wrote them: whole code fields are masked and unmasked, free text of the agent is not rewritten.",
        covers: |case, diff| {
            let said = |args: &Value| ["summary", "content"].iter().any(|k| args[*k] == diff.ours);
            case.played.masked && (said(&case.played.args) || case.played.earlier.iter().any(|e| said(&e.1)))
        },
    },
    Entry {
        id: "missing-daily",
        tools: &[
            "get_kline",
            "get_stock_price",
            "get_stock_info",
            "get_market_overview",
            "get_narrative_market_overview",
            "screen_stocks",
            "screen_behavioral_cycle",
        ],
        fields: &["*"],
        reason: "The recording takes the daily bars out of a running engine. A dataset of ours without them does not load at all \
                 (IngestError::Empty, StoreError::Empty), so no tool ever meets that state.",
        covers: |case, _| {
            let without_bars = traderharness_market::StoreParts::default();
            case.played.id.starts_with("missing_data/") && traderharness_market::Store::new(without_bars).is_err()
        },
    },
    Entry {
        id: "missing-account",
        tools: &["manage_conditional_order", "list_conditional_orders", "remember", "search_memory"],
        fields: &["outcome"],
        reason: "The recording takes the order book and the memory away. A session of ours always has both.",
        covers: |case, diff| case.played.id.starts_with("missing_data/") && diff.ours == "success",
    },
];
