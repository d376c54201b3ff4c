//! What two runs came to, day by day: orders, fills and total assets side by side, and the first day on which they part.

use super::clean;
use crate::redact::Redactor;
use crate::trajectory::{Entry, Record};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The tool through which orders are placed.
const ORDER: &str = "place_order";
/// Most orders and most fills of a day that are listed.
const OF_A_DAY: usize = 50;
/// Longest text of an order.
const WIDTH: usize = 160;

/// What both runs came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// Every day that either run began.
    pub days: Vec<DayBeside>,
    /// The first day, from 1, on which orders, fills or total assets differ.
    pub parted_on: Option<u32>,
    /// The end of the first run.
    pub a: Final,
    /// The end of the second run.
    pub b: Final,
}

/// One day of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DayBeside {
    /// Day of the run, from 1.
    pub day: u32,
    /// Orders, fills and total assets are the same.
    pub same: bool,
    /// The first run; `None` when it did not come so far.
    pub a: Option<DaySide>,
    /// The second run.
    pub b: Option<DaySide>,
}

/// A day of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DaySide {
    /// The day as the run shows it.
    pub shown: String,
    /// Total assets at its end, CNY; `None` when it did not end.
    pub equity: Option<f64>,
    /// Orders that were asked for, accepted or refused, and conditional orders that changed.
    pub order_count: usize,
    /// Fills.
    pub fill_count: usize,
    /// The orders, the first few; empty when the masks of the two runs differ.
    pub orders: Vec<String>,
    /// The fills, likewise.
    pub fills: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Final {
    /// `completed`, `aborted` ...; `None` for one that was killed.
    pub status: Option<String>,
    /// Cash at the start, CNY.
    pub initial: Option<f64>,
    /// Total assets at the end of the last day that ended, CNY.
    pub equity: Option<f64>,
    /// Return in percent, two decimals.
    pub return_pct: Option<f64>,
}

/// Both runs side by side. Where their masks differ, orders and fills are counted and not listed.
pub(super) fn effect(a: &[Entry], b: &[Entry], comparable: bool, redactor: &Redactor) -> Effect {
    let ((a, a_end), (b, b_end)) = (days(a), days(b));
    let last = a.keys().chain(b.keys()).copied().max().unwrap_or_default();
    let mut days = Vec::new();
    for day in 1..=last {
        let (one, other) = (a.get(&day), b.get(&day));
        let same = match (one, other) {
            (Some(a), Some(b)) if comparable => a.equity == b.equity && a.orders == b.orders && a.fills == b.fills,
            (Some(a), Some(b)) => a.equity == b.equity && a.orders.len() == b.orders.len() && a.fills.len() == b.fills.len(),
            _ => false,
        };
        let side = |of: Option<&Told>| of.map(|told| told.side(comparable, redactor));
        days.push(DayBeside { day, same, a: side(one), b: side(other) });
    }
    let parted_on = days.iter().find(|day| !day.same).map(|day| day.day);
    Effect { days, parted_on, a: a_end, b: b_end }
}

/// What a trajectory tells of a day.
#[derive(Debug, Default)]
struct Told {
    shown: String,
    equity: Option<f64>,
    orders: Vec<Value>,
    fills: Vec<Value>,
}

impl Told {
    fn side(&self, comparable: bool, redactor: &Redactor) -> DaySide {
        let list = |values: &[Value]| {
            let listed = values.iter().take(if comparable { OF_A_DAY } else { 0 });
            listed.map(|value| line(&clean(redactor, value))).collect::<Vec<_>>()
        };
        DaySide {
            shown: self.shown.clone(),
            equity: self.equity,
            order_count: self.orders.len(),
            fill_count: self.fills.len(),
            orders: list(&self.orders),
            fills: list(&self.fills),
        }
    }
}

/// An event in one line: what most people look for first, then what else is short.
fn line(event: &Value) -> String {
    let Some(fields) = event.as_object() else { return event.to_string() };
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    const FIRST: [&str; 8] = ["event", "side", "action", "stock_code", "quantity", "price", "bar_end", "outcome"];
    let text: Vec<String> = FIRST.iter().filter_map(|name| fields.get(*name)).map(word).collect();
    let text = if text.is_empty() { event.to_string() } else { text.join(" ") };
    text.chars().take(WIDTH).collect()
}

fn number(value: &Value, path: &[&str]) -> Option<f64> {
    path.iter().try_fold(value, |value, name| value.get(name))?.as_f64()
}

fn days(entries: &[Entry]) -> (BTreeMap<u32, Told>, Final) {
    let mut days: BTreeMap<u32, Told> = BTreeMap::new();
    let mut end = Final::default();
    let mut day = 0;
    let mut asked: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for entry in entries {
        match &entry.record {
            Record::RunStart(start) => {
                end.initial = start.run.get("manifest").and_then(|manifest| number(manifest, &["card", "initial_cash"]));
            }
            Record::DayStart { day_index, day: shown, account } => {
                day = *day_index;
                end.initial = end.initial.or_else(|| number(account, &["total_value"]));
                days.insert(day, Told { shown: shown.clone(), ..Told::default() });
            }
            Record::DayEnd { account, .. } => {
                end.equity = number(account, &["record", "equity"]).or_else(|| number(account, &["total_value"]));
                days.entry(day).or_default().equity = end.equity;
            }
            Record::ToolCall { call_id, tool, arguments, .. } if tool == ORDER => {
                let fields = serde_json::from_str::<Map<String, Value>>(arguments);
                asked
                    .insert(call_id, fields.unwrap_or_else(|_| Map::from_iter([("event".to_owned(), arguments.clone().into())])));
            }
            Record::ToolResult { call_id, tool, success, error_code, .. } if tool == ORDER => {
                let mut fields = asked.remove(call_id.as_str()).unwrap_or_default();
                // What the agent thought of it is no part of an order.
                fields.retain(|name, _| !["reasoning", "reason"].contains(&name.as_str()));
                let outcome = if *success { "done" } else { error_code.as_deref().unwrap_or("refused") };
                fields.insert("outcome".to_owned(), outcome.into());
                days.entry(day).or_default().orders.push(fields.into());
            }
            Record::Order { event } => days.entry(day).or_default().orders.push(event.clone()),
            Record::Fill { event } => days.entry(day).or_default().fills.push(event.clone()),
            Record::RunEnd { status, .. } => end.status = Some(status.clone()),
            _ => {}
        }
    }
    let gained = end.equity.zip(end.initial.filter(|initial| *initial > 0.0));
    end.return_pct = gained.map(|(equity, initial)| ((equity / initial - 1.0) * 10_000.0).round() / 100.0);
    (days, end)
}

/// The first record of two trajectories that differs.
#[derive(Debug)]
pub(super) struct Apart {
    /// Its type.
    pub(super) kind: String,
    pub(super) day: Option<u32>,
    pub(super) point: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) a: Value,
    pub(super) b: Value,
}

/// Finds it, leaving out what other comparisons are for (set-up, answers) and what is of a machine.
pub(super) fn first_record_apart(a: &[Entry], b: &[Entry]) -> Option<Apart> {
    let told = |entry: &&Entry| {
        !matches!(
            entry.record,
            Record::RunStart(_) | Record::Notice { .. } | Record::ModelResponse { .. } | Record::RunEnd { .. }
        )
    };
    let (mut a, mut b) = (a.iter().filter(told), b.iter().filter(told));
    let (mut day, mut point) = (None, None);
    loop {
        let (one, other) = (a.next(), b.next());
        let (one, other) = (one.map(|entry| &entry.record), other.map(|entry| &entry.record));
        match one.or(other)? {
            Record::DayStart { day_index, .. } => day = Some(*day_index),
            Record::DecisionPoint { point: name, .. } => point = Some(name.clone()),
            _ => {}
        }
        if one == other {
            continue;
        }
        let value = |record: Option<&Record>| record.and_then(|record| serde_json::to_value(record).ok()).unwrap_or(json!(null));
        let (a, b) = (value(one), value(other));
        let of = |name: &str| [&a, &b].into_iter().find_map(|value| value.get(name)?.as_str().map(str::to_owned));
        return Some(Apart { kind: of("type").unwrap_or_default(), day, point, tool: of("tool"), a, b });
    }
}
