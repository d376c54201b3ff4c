//! A comparison as a person reads it.

use crate::figures::table;
use std::fmt::Write as _;
use traderharness_replay::causes::{Cause, Comparison, DaySide, Effect, Final, Place, Walked};

/// Orders and fills shown of a day on each side.
const OF_A_DAY: usize = 8;

pub(super) fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    if comparison.identical {
        let asked: usize = comparison.scopes.iter().map(|scope| scope.together).sum();
        let _ = write!(out, "The same: settings, data, {asked} request(s) and their answers");
        let days = comparison.effect.as_ref().map(|effect| effect.days.len());
        let _ = write!(out, "{}.", days.map_or_else(String::new, |days| format!(", orders, fills and assets of {days} day(s)")));
    } else {
        let listed = comparison.causes.len();
        let _ = write!(out, "{} cause(s)", listed + comparison.more_causes);
        let mut kind = None;
        for cause in &comparison.causes {
            if kind != Some(cause.kind) {
                kind = Some(cause.kind);
                let _ = write!(out, "\n\n{}", cause.kind.text());
            }
            out.push_str(&of_cause(cause));
        }
        if comparison.more_causes > 0 {
            let _ = write!(out, "\n\n{} further cause(s) are not shown; --limit shows more", comparison.more_causes);
        }
        if let Some(text) = of_scopes(&comparison.scopes) {
            let _ = write!(out, "\n\nconsequences\n{text}");
        }
    }
    for note in &comparison.notes {
        let _ = write!(out, "\nnote: {note}");
    }
    if let Some(effect) = comparison.effect.as_ref().filter(|_| !comparison.identical) {
        let _ = write!(out, "\n\n{}", of_effect(effect));
    }
    out
}

fn of_place(place: &Place) -> String {
    let mut parts = Vec::new();
    parts.extend(place.scope.clone());
    parts.extend(place.day.map(|day| format!("day {day}")));
    parts.extend(place.point.clone());
    parts.extend(place.request.map(|request| format!("request {request}")));
    parts.extend(place.message.map(|message| format!("message {message}")));
    parts.extend(place.tool.as_ref().map(|tool| format!("tool {tool}")));
    parts.push(place.field.clone());
    parts.join(", ")
}

fn of_cause(cause: &Cause) -> String {
    let mut out = format!("\n  {}", of_place(&cause.place));
    if cause.times > 1 {
        let _ = write!(out, " (first of {} places)", cause.times);
    }
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(not there, or not to be shown)".to_owned());
    let _ = write!(out, "\n    A  {}\n    B  {}", side(&cause.a), side(&cause.b));
    if !cause.why.is_empty() {
        let _ = write!(out, "\n    {}", cause.why);
    }
    for line in &cause.lines {
        let _ = write!(out, "\n      {line}");
    }
    out
}

/// What is counted and not listed; `None` when nothing is.
fn of_scopes(scopes: &[Walked]) -> Option<String> {
    let lines: Vec<String> = scopes
        .iter()
        .filter(|scope| scope.consequences() > 0 || scope.parted_at.is_some())
        .map(|scope| {
            let Walked { requests, together, following, answers, states, came_back, .. } = scope;
            let mut line = format!(
                "  {}: {together} of {} and {} request(s) ask the same; {} of A and {} of B follow from a difference before them",
                scope.scope, requests.0, requests.1, following.0, following.1
            );
            if let Some(at) = scope.parted_at {
                let _ = write!(line, "; apart from request {at} on");
            }
            let counts =
                [(answers, "answer(s) to another request"), (states, "result(s) or brief(s) of another state or set-up")];
            for (count, what) in counts.into_iter().filter(|(count, _)| **count > 0) {
                let _ = write!(line, "; {count} {what}");
            }
            if *came_back > 0 {
                let _ = write!(line, "; came back to the same request {came_back} time(s)");
            }
            line
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn of_effect(effect: &Effect) -> String {
    let heads = ["day", "assets A", "assets B", "orders A", "orders B", "fills A", "fills B", ""];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    let cells = |side: Option<&DaySide>| {
        side.map_or_else(
            || ["-".to_owned(), "-".to_owned(), "-".to_owned()],
            |side| [money(side.equity), side.order_count.to_string(), side.fill_count.to_string()],
        )
    };
    for day in &effect.days {
        let shown = day.a.as_ref().or(day.b.as_ref()).map(|side| side.shown.clone()).unwrap_or_default();
        let ([assets, orders, fills], [assets_b, orders_b, fills_b]) = (cells(day.a.as_ref()), cells(day.b.as_ref()));
        let mark = if day.same { "" } else { "differs" };
        let name = format!("{} {shown}", day.day);
        lines.push(vec![name, assets, assets_b, orders, orders_b, fills, fills_b, mark.to_owned()]);
    }
    let mut out = table(&lines);
    match effect.parted_on {
        None => out.push_str("Orders, fills and assets are the same on every day."),
        Some(day) => {
            let _ = write!(out, "First day on which they part: {day}");
            if let Some(day) = effect.days.iter().find(|beside| beside.day == day) {
                for (name, side) in [("A", &day.a), ("B", &day.b)] {
                    out.push_str(&of_day(name, side.as_ref()));
                }
            }
        }
    }
    let _ = write!(out, "\nEnd  A {}\n     B {}", of_end(&effect.a), of_end(&effect.b));
    out
}

fn of_day(name: &str, side: Option<&DaySide>) -> String {
    let Some(side) = side else { return format!("\n  {name}  did not come so far") };
    let mut out = String::new();
    for (what, events, count) in [("order", &side.orders, side.order_count), ("fill", &side.fills, side.fill_count)] {
        for event in events.iter().take(OF_A_DAY) {
            let _ = write!(out, "\n  {name}  {what}  {event}");
        }
        if count > events.len().min(OF_A_DAY) {
            let _ = write!(out, "\n  {name}  {} {what}(s) not shown", count - events.len().min(OF_A_DAY));
        }
    }
    if out.is_empty() { format!("\n  {name}  no orders") } else { out }
}

fn money(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.2}"))
}

fn of_end(end: &Final) -> String {
    let gained = end.return_pct.map_or_else(|| "n/a".to_owned(), |percent| format!("{percent} %"));
    let status = end.status.as_deref().unwrap_or("unfinished");
    format!("{status}: {} -> {} CNY, return {gained}", money(end.initial), money(end.equity))
}
