//! What a schema cannot say of a result (spec/seeds.md C4.5, C10): its invariants, finite numbers, times in order, probabilities,
//! currencies, ranges over several fields. Finds, never repairs: a door that finds something here sends an error instead.

use super::{LabelFault, MomentLabel, ResultStatus, ToolResult};
use crate::json::pointer_segment;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Integers beyond this travel as strings: a reader with doubles would change them (2^53).
pub const LARGEST_INTEGER: u64 = 1 << 53;
/// How far the sum of a distribution may be from 1, per term, where we computed it.
pub const OWN_TOLERANCE: f64 = 1e-9;
/// The same for data from outside.
pub const EXTERNAL_TOLERANCE: f64 = 1e-6;

/// Something that is wrong with a result. Paths are JSON pointers into `data` unless they say otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Partial, and nothing says what is missing.
    #[error("the status is partial and missing_reasons is empty")]
    PartialWithoutReason,
    /// Complete, and something is said to be missing.
    #[error("the status is complete and missing_reasons is not empty")]
    CompleteWithReason,
    /// A source without evidence.
    #[error("source `{source_ref}` has no evidence")]
    SourceWithoutEvidence {
        /// The source.
        source_ref: String,
    },
    /// Evidence of a source that the coverage does not name.
    #[error("evidence `{id}` is of a source that coverage.source_refs does not name")]
    EvidenceWithoutSource {
        /// Id of the evidence.
        id: String,
    },
    /// A record cites evidence that is not listed.
    #[error("{path} cites an evidence id that the evidence does not list")]
    UnlistedEvidence {
        /// Where it is cited.
        path: String,
    },
    /// Two pieces of evidence with one id.
    #[error("evidence id `{id}` is there twice")]
    RepeatedEvidence {
        /// Id of the evidence.
        id: String,
    },
    /// A text that must be a day or moment.
    #[error("{place}: {fault}")]
    Label {
        /// Field.
        place: String,
        /// What is wrong.
        fault: LabelFault,
    },
    /// A moment after the one it may not pass.
    #[error("{place} is after {limit}")]
    After {
        /// Field.
        place: String,
        /// What it may not pass.
        limit: &'static str,
    },
    /// A start after its end.
    #[error("{place}: the start is after the end")]
    Reversed {
        /// Range.
        place: String,
    },
    /// Records whose times do not strictly increase.
    #[error("{path}: record {index} is not after the one before it")]
    OutOfOrder {
        /// List.
        path: String,
        /// First record that is not in order.
        index: usize,
    },
    /// A number that is not finite, or a text that spells one.
    #[error("{path} is not a finite number")]
    NotFinite {
        /// Where.
        path: String,
    },
    /// An integer that does not survive a reader with doubles.
    #[error("{path} is an integer beyond 2^53 and must be a string")]
    LargeInteger {
        /// Where.
        path: String,
    },
    /// A probability outside of 0 to 1.
    #[error("{path} is no probability")]
    Probability {
        /// Where.
        path: String,
    },
    /// A complete distribution that does not sum to 1.
    #[error("{path} sums to {sum}, not to 1")]
    Distribution {
        /// Where.
        path: String,
        /// The sum.
        sum: f64,
    },
    /// An amount in a currency that is neither the instrument's nor the report's.
    #[error("{path} is in a currency that is neither the instrument's nor the report's")]
    Currency {
        /// Where.
        path: String,
    },
    /// A bar whose prices or volume contradict each other.
    #[error("{path}: {fault}")]
    Bar {
        /// The bar.
        path: String,
        /// What is wrong.
        fault: BarFault,
    },
}

/// Why the figures of a bar contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BarFault {
    /// The low is above another price, or the high below one.
    #[error("open, high, low and close are not within low and high")]
    Range,
    /// A price that is not above zero.
    #[error("a price is not above zero")]
    Price,
    /// A volume or amount below zero.
    #[error("the volume or amount is below zero")]
    Size,
}

/// All that every result must hold, whatever its tool: status and reasons, evidence, as_of against the moment of admission, the order of
/// the requested range, finite numbers, integers that survive. `cutoff` is that moment in its visible form, `D+0 10:30`.
///
/// # Errors
/// Everything that was found, in the order of the fields.
pub fn check(result: &ToolResult, cutoff: &str) -> Result<(), Vec<Violation>> {
    let mut found = Vec::new();
    let coverage = &result.coverage;
    match (result.status, coverage.missing_reasons.is_empty()) {
        (ResultStatus::Partial, true) => found.push(Violation::PartialWithoutReason),
        (ResultStatus::Complete, false) => found.push(Violation::CompleteWithReason),
        _ => {}
    }
    found.extend(evidence(result));
    found.extend(not_after("coverage.as_of", &coverage.as_of, cutoff, "the moment the call was admitted"));
    if let (Some(start), Some(end)) = (&coverage.requested_start, &coverage.requested_end) {
        found.extend(range("coverage.requested_start", start, end));
    }
    numbers(&result.data, "", &mut found);
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn evidence(result: &ToolResult) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut ids = BTreeSet::new();
    for item in &result.evidence {
        if !ids.insert(item.id.as_str()) {
            found.push(Violation::RepeatedEvidence { id: item.id.clone() });
        }
        if !result.coverage.source_refs.contains(&item.source_ref) {
            found.push(Violation::EvidenceWithoutSource { id: item.id.clone() });
        }
    }
    for source in &result.coverage.source_refs {
        if !result.evidence.iter().any(|item| item.source_ref == *source) {
            found.push(Violation::SourceWithoutEvidence { source_ref: source.clone() });
        }
    }
    cited(&result.data, "", &mut |path, id| {
        if !ids.contains(id) {
            found.push(Violation::UnlistedEvidence { path: path.to_owned() });
        }
    });
    found
}

/// Calls `f` on every evidence id in a value, in order of appearance.
pub(crate) fn cited<'v>(value: &'v Value, path: &str, f: &mut dyn FnMut(&str, &'v str)) {
    match value {
        Value::Object(map) => {
            for (name, item) in map {
                let inside = format!("{path}/{}", pointer_segment(name));
                match item {
                    Value::String(id) if name == "evidence_id" => f(&inside, id),
                    item => cited(item, &inside, f),
                }
            }
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(i, item)| cited(item, &format!("{path}/{i}"), f)),
        _ => {}
    }
}

/// C10.1 and C10.6 over a whole value: finite numbers, integers within 2^53.
fn numbers(value: &Value, path: &str, found: &mut Vec<Violation>) {
    match value {
        Value::Number(number) => {
            let large = |n: u64| n > LARGEST_INTEGER;
            if number.as_u64().is_some_and(large) || number.as_i64().is_some_and(|n| large(n.unsigned_abs())) {
                found.push(Violation::LargeInteger { path: path.to_owned() });
            } else if !number.as_f64().is_some_and(f64::is_finite) {
                found.push(Violation::NotFinite { path: path.to_owned() });
            }
        }
        Value::String(text) if spells_no_number(text) => found.push(Violation::NotFinite { path: path.to_owned() }),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, item)| numbers(item, &format!("{path}/{i}"), found)),
        Value::Object(map) => {
            map.iter().for_each(|(name, item)| numbers(item, &format!("{path}/{}", pointer_segment(name)), found));
        }
        _ => {}
    }
}

/// How languages spell what is no number, where a JSON writer was told to keep it.
fn spells_no_number(text: &str) -> bool {
    let plain = text.strip_prefix(['-', '+']).unwrap_or(text);
    ["NaN", "Infinity", "Inf", "inf", "nan"].contains(&plain)
}

fn label(place: &str, text: &str) -> Result<MomentLabel, Violation> {
    MomentLabel::parse(text).map_err(|fault| Violation::Label { place: place.to_owned(), fault })
}

fn order(place: &str, a: &str, b: &str) -> Result<Ordering, Violation> {
    label(place, a)?.order(label(place, b)?).map_err(|fault| Violation::Label { place: place.to_owned(), fault })
}

/// C10.2: a moment that may not be after another. Empty when it is not.
pub fn not_after(place: &str, moment: &str, limit: &str, what: &'static str) -> Vec<Violation> {
    match order(place, moment, limit) {
        Ok(Ordering::Greater) => vec![Violation::After { place: place.to_owned(), limit: what }],
        Ok(_) => vec![],
        Err(violation) => vec![violation],
    }
}

/// C10.2: a range whose start is not after its end.
pub fn range(place: &str, start: &str, end: &str) -> Vec<Violation> {
    match order(place, start, end) {
        Ok(Ordering::Greater) => vec![Violation::Reversed { place: place.to_owned() }],
        Ok(_) => vec![],
        Err(violation) => vec![violation],
    }
}

/// C10.2: times of records, strictly increasing and none after `as_of`. The first fault of each kind.
pub fn times<'t>(path: &str, times: impl IntoIterator<Item = &'t str>, as_of: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let (mut before, mut ordered): (Option<&str>, bool) = (None, true);
    for (index, time) in times.into_iter().enumerate() {
        let at = format!("{path}/{index}");
        let late = not_after(&at, time, as_of, "coverage.as_of");
        let increases = match before.map(|before| order(&at, before, time)) {
            None | Some(Ok(Ordering::Less) | Err(_)) => true,
            Some(Ok(_)) => false,
        };
        if ordered && !increases {
            ordered = false;
            found.push(Violation::OutOfOrder { path: path.to_owned(), index });
        }
        before = Some(time);
        if !late.is_empty() {
            found.extend(late);
            break;
        }
    }
    found
}

/// C10.3: each probability lies in 0 to 1.
pub fn probability(path: &str, value: f64) -> Vec<Violation> {
    // NaN is in no range.
    if (0.0..=1.0).contains(&value) { vec![] } else { vec![Violation::Probability { path: path.to_owned() }] }
}

/// C10.3: probabilities of a complete distribution; they sum to 1 within `tolerance` for each term.
pub fn distribution(path: &str, terms: &[f64], tolerance: f64) -> Vec<Violation> {
    let mut found: Vec<Violation> =
        terms.iter().enumerate().flat_map(|(i, term)| probability(&format!("{path}/{i}"), *term)).collect();
    let sum: f64 = terms.iter().sum();
    if found.is_empty() && (sum - 1.0).abs() > tolerance * terms.len().max(1) as f64 {
        found.push(Violation::Distribution { path: path.to_owned(), sum });
    }
    found
}

/// C10.4: an amount's currency is the instrument's or the report's.
pub fn currency(path: &str, amount: &str, instrument: &str, reporting: &str) -> Vec<Violation> {
    if amount == instrument || amount == reporting { vec![] } else { vec![Violation::Currency { path: path.to_owned() }] }
}

/// Figures of one bar; what is missing is `None` and contradicts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[allow(missing_docs, reason = "the field's own names")]
pub struct BarFigures {
    pub open: Option<f64>,
    pub high: Option<f64>,
    pub low: Option<f64>,
    pub close: Option<f64>,
    pub volume: Option<f64>,
    pub amount: Option<f64>,
}

impl BarFigures {
    /// C10.1 and C10.5: prices are finite and above zero, low <= open, close <= high, volume and amount are not below zero.
    ///
    /// # Errors
    /// The first [`BarFault`]: price, range, size.
    pub fn check(&self) -> Result<(), BarFault> {
        let prices = [self.open, self.high, self.low, self.close];
        if prices.iter().flatten().any(|p| !p.is_finite() || *p <= 0.0) {
            return Err(BarFault::Price);
        }
        let inside = |price: Option<f64>| {
            price.is_none_or(|p| self.low.is_none_or(|low| low <= p) && self.high.is_none_or(|high| p <= high))
        };
        if !prices.into_iter().all(inside) {
            return Err(BarFault::Range);
        }
        if [self.volume, self.amount].iter().flatten().any(|size| !size.is_finite() || *size < 0.0) {
            return Err(BarFault::Size);
        }
        Ok(())
    }
}

/// C10.2 and C10.5 over a list of bars as JSON: `bars` rows with `session` or `day`, open, high, low, close, volume, amount; missing and
/// null figures contradict nothing.
pub fn bars(path: &str, rows: &[Value], as_of: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let number = |name: &str| row.get(name).and_then(Value::as_f64);
        let figures = BarFigures {
            open: number("open"),
            high: number("high"),
            low: number("low"),
            close: number("close"),
            volume: number("volume"),
            amount: number("amount"),
        };
        if let Err(fault) = figures.check() {
            found.push(Violation::Bar { path: format!("{path}/{i}"), fault });
        }
    }
    let days = rows.iter().filter_map(|row| row.get("session").or_else(|| row.get("day")).and_then(Value::as_str));
    found.extend(times(path, days, as_of));
    found
}
