//! The fields and spellings of the first versions' arguments and payloads (`EarlyPayloads`, and `PlainCode` of `execute_code`).
//!
//! This file must never run before the mask: it moves texts out of the fields in which the mask finds them.

use super::code;
use crate::json::{characters, prefix};
use crate::version::{Behaviour, Behaviours};
use serde_json::{Map, Value};

/// Characters of a news item's content.
const CONTENT: usize = 100;

/// Between the words of a search pattern.
const OR: char = '|';

/// Where in a run a call is made; what `expires_day_index` counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunDay {
    /// Trading days since the run's first one, which is 0; `created_day_index` counts the same way.
    pub index: u32,
}

/// Brings the arguments of an earlier version into the words of today's handlers.
///
/// `EarlyPayloads`:
/// * `manage_conditional_order`: `expires_day_index`, the last day of the run on which the order lives, becomes
///   `expires_in_trading_days`, counted from today. A day that is over counts as today, as the other ranges do.
/// * `get_news`, `get_narrative_news`: a keyword that is two words joined by `|`, without a sector beside it, becomes keyword and sector:
///   an item passes with either. A pattern of more words, or beside a sector, stays literal text, which is what today's search looks for.
///
/// `DecisionCardSection` without `DecisionCardEntrySetup`, the card of 22 fields: `place_order` gets the `business_fit_basis` that asks for
/// no evidence of its own, where the card has none.
pub fn arguments(tool: &str, raw: Value, flags: &Behaviours, day: RunDay) -> Value {
    let Value::Object(mut map) = raw else { return raw };
    if flags.has(Behaviour::EarlyPayloads) {
        match tool {
            "manage_conditional_order" => {
                if let Some(given) = map.shift_remove("expires_day_index") {
                    map.entry("expires_in_trading_days").or_insert_with(|| lives(given, day));
                }
            }
            "get_news" | "get_narrative_news" => either(&mut map),
            _ => {}
        }
    }
    if tool == "place_order"
        && flags.has(Behaviour::DecisionCardSection)
        && !flags.has(Behaviour::DecisionCardEntrySetup)
        && let Some(card) = map.get_mut("decision_card").and_then(Value::as_object_mut)
    {
        card.entry("business_fit_basis").or_insert_with(|| "industry_proxy".into());
    }
    Value::Object(map)
}

/// Trading days from today to the day of that index, both included; what is no whole number stays for the checks.
fn lives(given: Value, day: RunDay) -> Value {
    let index = match &given {
        Value::Number(number) => {
            number.as_i64().or_else(|| number.as_f64().filter(|d| d.fract() == 0.0 && d.abs() < 1e9).map(|d| d as i64))
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match index {
        Some(index) => Value::from(index.saturating_sub(i64::from(day.index)).saturating_add(1).max(1)),
        None => given,
    }
}

fn either(map: &mut Map<String, Value>) {
    let given =
        |map: &Map<String, Value>, name: &str| map.get(name).and_then(Value::as_str).is_some_and(|t| !t.trim().is_empty());
    if given(map, "sector") {
        return;
    }
    let Some(keyword) = map.get("keyword").and_then(Value::as_str) else { return };
    let words: Vec<String> = keyword.split(OR).map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect();
    if let ([first, second], true) = (words.as_slice(), keyword.contains(OR)) {
        map.insert("keyword".into(), first.as_str().into());
        map.insert("sector".into(), second.as_str().into());
    }
}

/// Changes a success payload, masked already, to what earlier versions gave (`EarlyPayloads`, `PlainCode`); nothing without the flags.
///
/// | tool | change |
/// |---|---|
/// | `execute_code` | `PlainCode`: `stdout` and `result` alone, each where there is one; at most 5,000 characters of `stdout` |
/// | all but `execute_code` | a volume that is null is printed as 0 (spec/seeds.md D3), and its reason left out |
/// | `get_stock_price` | without `price`, `price_source`, `as_of` |
/// | `get_portfolio`, `get_position` | without `price_source` |
/// | `get_announcements` | `announcements` is a list of titles |
/// | `get_news` | content of at most 100 characters |
/// | `get_business_segments` | `revenue_100m_cny` is named `revenue_billion`; the value is the same, in 100 million CNY |
/// | `manage_conditional_order`, `list_conditional_orders` | `expires_day_index`, the last day the order lives, for `expires_in_trading_days`; null where that is not known any more |
/// | `list_conditional_orders` | without `count` |
pub fn payload(tool: &str, payload: &mut Map<String, Value>, flags: &Behaviours, day: RunDay) {
    if tool == code::TOOL {
        // What code of the agent computed is its own: nothing inside `result` is changed.
        if flags.has(Behaviour::PlainCode) {
            code::payload(payload);
        }
        return;
    }
    if !flags.has(Behaviour::EarlyPayloads) {
        return;
    }
    match tool {
        "get_stock_price" => {
            for name in ["price", "price_source", "as_of"] {
                payload.shift_remove(name);
            }
        }
        "get_portfolio" => {
            for position in rows(payload, "positions") {
                position.shift_remove("price_source");
            }
        }
        "get_position" => {
            payload.shift_remove("price_source");
        }
        "get_announcements" => {
            if let Some(Value::Array(items)) = payload.get_mut("announcements") {
                for item in items {
                    if let Some(title) = item.get_mut("title") {
                        *item = title.take();
                    }
                }
            }
        }
        "get_news" => {
            for item in rows(payload, "news") {
                cut(item);
            }
        }
        "get_business_segments" => {
            for segment in rows(payload, "segments") {
                rename(segment, REVENUE, EARLY_REVENUE);
            }
            for missing in rows(payload, "missing_reasons") {
                if let Some(Value::String(field)) = missing.get_mut("field")
                    && let Some(row) = field.strip_suffix(REVENUE)
                {
                    *field = format!("{row}{EARLY_REVENUE}");
                }
            }
        }
        "manage_conditional_order" => {
            if let Some(Value::Object(order)) = payload.get_mut("order") {
                expiry(order, day);
            }
        }
        "list_conditional_orders" => {
            payload.shift_remove("count");
            for order in rows(payload, "orders") {
                expiry(order, day);
            }
        }
        _ => {}
    }
    if volumes_of(payload) > 0
        && let Some(Value::Array(reasons)) = payload.get_mut("missing_reasons")
    {
        reasons.retain(|reason| {
            let field = reason.get("field").and_then(Value::as_str).unwrap_or_default();
            field != VOLUME && !field.ends_with(".volume")
        });
    }
}

/// What a result repeats of the arguments as the agent sent them (`EarlyPayloads`): the `filter` of `get_news` is keyword and sector
/// joined by `|` where both were given.
pub fn echo(tool: &str, payload: &mut Map<String, Value>, received: &Value, flags: &Behaviours) {
    if tool != "get_news" || !flags.has(Behaviour::EarlyPayloads) {
        return;
    }
    let sent = |name| received.get(name).and_then(Value::as_str).map(str::trim).filter(|word| !word.is_empty());
    let words: Vec<&str> = [sent("keyword"), sent("sector")].into_iter().flatten().collect();
    if !words.is_empty()
        && let Some(filter) = payload.get_mut("filter")
    {
        *filter = words.join("|").into();
    }
}

const REVENUE: &str = "revenue_100m_cny";
const EARLY_REVENUE: &str = "revenue_billion";
const VOLUME: &str = "volume";
const LEFT: &str = "expires_in_trading_days";
const LAST_DAY: &str = "expires_day_index";

/// The objects in a list of the payload.
fn rows<'a>(payload: &'a mut Map<String, Value>, name: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    payload.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Renames a field where it stands.
fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if map.contains_key(from) {
        *map = std::mem::take(map)
            .into_iter()
            .map(|(name, value)| (if name == from { to.to_owned() } else { name }, value))
            .collect();
    }
}

fn cut(item: &mut Map<String, Value>) {
    let Some(Value::String(content)) = item.get_mut("content") else { return };
    if characters(content) <= CONTENT {
        return;
    }
    *content = prefix(content, CONTENT).to_owned();
    if let Some(cut) = item.get_mut("content_cut") {
        *cut = true.into();
    }
}

fn expiry(order: &mut Map<String, Value>, day: RunDay) {
    // Days left, today included. None left: the order lived until the day it expired on, or was ended and nothing tells.
    let expired =
        (order.get("status").and_then(Value::as_str) == Some("expired")).then(|| order.get("ended_day_index").cloned()).flatten();
    if let Some(left) = order.get_mut(LEFT) {
        *left = match left.as_u64() {
            Some(0) => expired.unwrap_or(Value::Null),
            Some(days) => last_day(days, u64::from(day.index)),
            None => Value::Null,
        };
    }
    rename(order, LEFT, LAST_DAY);
    for revision in rows(order, "revisions") {
        let on = revision.get("day_index").and_then(Value::as_u64).unwrap_or(u64::from(day.index));
        for change in rows(revision, "changes") {
            if change.get("field").and_then(Value::as_str) != Some(LEFT) {
                continue;
            }
            change.insert("field".into(), LAST_DAY.into());
            for end in ["from", "to"] {
                if let Some(days) = change.get_mut(end)
                    && let Some(count) = days.as_f64().filter(|d| *d >= 0.0)
                {
                    *days = last_day(count as u64, on);
                }
            }
        }
    }
}

/// The last of `days` trading days of which the first has the index `first`.
fn last_day(days: u64, first: u64) -> Value {
    Value::from(first.saturating_add(days).saturating_sub(1))
}

/// Prints volumes that are null as 0, at any depth; how many there were.
fn volumes_of(map: &mut Map<String, Value>) -> usize {
    let within: usize = map.values_mut().map(volumes).sum();
    match map.get_mut(VOLUME) {
        Some(volume @ Value::Null) => {
            *volume = 0.into();
            within + 1
        }
        _ => within,
    }
}

fn volumes(value: &mut Value) -> usize {
    match value {
        Value::Object(map) => volumes_of(map),
        Value::Array(items) => items.iter_mut().map(volumes).sum(),
        _ => 0,
    }
}
