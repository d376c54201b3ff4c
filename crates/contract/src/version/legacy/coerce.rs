//! Arguments of v1-v4, whose handlers took what they could make sense of: values are brought into the types and ranges of today's schema.
//!
//! This file must never invent a value. What cannot be brought into shape stays as it is, and the checks behind say so.

use crate::json::{characters, prefix};
use serde_json::{Map, Number, Value};
use std::ops::RangeInclusive;

/// The largest whole number below which every whole number is its own double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Limits of a text that mean prose: reasons, summaries, memories. Words, names and keys have smaller ones, programs a larger one.
const PROSE: RangeInclusive<usize> = 200..=5_000;

/// Brings `raw` into the types and ranges of `schema`, today's input schema of the tool. Total over any JSON, and a fixed point: doing it
/// again changes nothing.
///
/// | where the schema wants | becomes |
/// |---|---|
/// | an integer | a string that spells a whole number, or a number with a fraction of zero |
/// | a number | a string that spells one |
/// | an integer or number with minimum *and* maximum | the nearer end, when outside |
/// | a boolean | `true`, `false`, `1` and `0` in any spelling |
/// | a word of an enum | the word in its own letter case, without blanks around it |
/// | a string | a number, as its digits |
/// | prose (a string of at most 200 to 5,000 characters) | its beginning, when longer |
/// | an array or object | a string that spells one; for an array also one value alone |
///
/// Fields that the schema does not name are dropped; so are optional fields that are null (where null has no meaning) or a blank string.
///
/// A range with one end only is not clamped: a quantity of -100 must not become 0, which sells the whole position. Prose, a text whose
/// limit is of a size that only prose has, ends at its limit. Other texts and arrays are never cut: half a program, or two idempotency
/// keys that became one, would do what nobody asked for.
pub fn coerce(schema: &Value, raw: &Value) -> Value {
    let types = Types::of(schema);
    if types.accept(raw) {
        return inside(schema, raw);
    }
    converted(&types, raw).map_or_else(|| raw.clone(), |value| inside(schema, &value))
}

/// The types a place takes.
struct Types<'a> {
    names: Vec<&'a str>,
}

impl<'a> Types<'a> {
    fn of(schema: &'a Value) -> Self {
        let names = match schema.get("type") {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ if schema.get("properties").is_some() => vec!["object"],
            _ => Vec::new(),
        };
        Self { names }
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Whether the value is of one of them; anything is where the schema names none.
    fn accept(&self, value: &Value) -> bool {
        self.names.is_empty()
            || match value {
                Value::Null => self.has("null"),
                Value::Bool(_) => self.has("boolean"),
                Value::Number(number) => self.has("number") || (self.has("integer") && !number.is_f64()),
                Value::String(_) => self.has("string"),
                Value::Array(_) => self.has("array"),
                Value::Object(_) => self.has("object"),
            }
    }
}

/// The value as one of the types; `None` when it spells none of them.
fn converted(types: &Types<'_>, value: &Value) -> Option<Value> {
    let alone = |value: &Value| types.has("array").then(|| Value::Array(vec![value.clone()]));
    match value {
        Value::Number(number) => {
            let double = number.as_f64();
            let whole = double.filter(|d| types.has("integer") && d.fract() == 0.0).map(whole);
            let truth = double.filter(|d| types.has("boolean") && (*d == 0.0 || *d == 1.0)).map(|d| Value::Bool(d == 1.0));
            let digits = || types.has("string").then(|| Value::String(number.to_string()));
            whole.or(truth).or_else(digits).or_else(|| alone(value))
        }
        Value::String(text) => {
            let text = text.trim();
            if text.is_empty() {
                return None;
            }
            spelt(types, text).or_else(|| alone(value))
        }
        Value::Bool(_) | Value::Object(_) => alone(value),
        Value::Null | Value::Array(_) => None,
    }
}

/// What a text without blanks around it spells, of the types.
fn spelt(types: &Types<'_>, text: &str) -> Option<Value> {
    if types.has("integer") || types.has("number") {
        let number = number(text);
        let wanted = number.filter(|n| types.has("number") || n.as_f64().is_some_and(|d| d.fract() == 0.0));
        if let Some(number) = wanted {
            return Some(if types.has("number") || !number.is_f64() {
                Value::Number(number)
            } else {
                number.as_f64().map_or(Value::Null, whole)
            });
        }
    }
    if types.has("boolean") {
        for (spelling, truth) in [("true", true), ("1", true), ("false", false), ("0", false)] {
            if text.eq_ignore_ascii_case(spelling) {
                return Some(truth.into());
            }
        }
    }
    let opens = |name, bracket| types.has(name) && text.starts_with(bracket);
    if opens("array", '[') || opens("object", '{') {
        return serde_json::from_str(text).ok().filter(|value| types.accept(value));
    }
    None
}

/// A decimal number; not infinity, and no words.
fn number(text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let digits = text.trim_start_matches(['+', '-']);
    let numeral = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    numeral.then(|| text.parse::<f64>().ok()).flatten().and_then(Number::from_f64)
}

/// A whole double as an integer. One beyond the exact ones stays what it is: which integer was meant is not known.
fn whole(double: f64) -> Value {
    if double.abs() < EXACT { Value::from(double as i64) } else { Number::from_f64(double).map_or(Value::Null, Value::Number) }
}

/// A value of the right type, with what is inside it coerced.
fn inside(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Number(number) => clamped(schema, number).map_or_else(|| value.clone(), Value::Number),
        Value::String(text) => word(schema, text).or_else(|| prose(schema, text)).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => match schema.get("items") {
            Some(item) => items.iter().map(|value| coerce(item, value)).collect(),
            None => value.clone(),
        },
        Value::Object(map) => Value::Object(fields(schema, map)),
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// The end of a closed range that a number is beyond; `None` when it is inside or the range has one end only.
fn clamped(schema: &Value, number: &Number) -> Option<Number> {
    let end = |name| schema.get(name).and_then(Value::as_number);
    let (min, max) = (end("minimum")?, end("maximum")?);
    let (value, low, high) = (number.as_f64()?, min.as_f64()?, max.as_f64()?);
    if low > high {
        None
    } else if value < low {
        Some(min.clone())
    } else if value > high {
        Some(max.clone())
    } else {
        None
    }
}

/// The word of an enum that a text is, apart from letter case and blanks.
fn word<'a>(schema: &'a Value, text: &str) -> Option<&'a str> {
    let words = || schema.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if words().any(|word| word == text) {
        return None;
    }
    let text = text.trim();
    let mut alike = words().filter(|word| word.eq_ignore_ascii_case(text));
    let found = alike.next()?;
    alike.next().is_none().then_some(found)
}

/// The beginning of prose that is too long.
fn prose<'a>(schema: &Value, text: &'a str) -> Option<&'a str> {
    let limit = schema.get("maxLength").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())?;
    (PROSE.contains(&limit) && characters(text) > limit).then(|| prefix(text, limit))
}

fn fields(schema: &Value, map: &Map<String, Value>) -> Map<String, Value> {
    let named = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).into_iter().flatten().any(|field| field.as_str() == Some(name))
    };
    let mut out = Map::with_capacity(map.len());
    for (name, value) in map {
        let value = match (named.and_then(|fields| fields.get(name)), others) {
            (Some(field), _) => {
                let coerced = coerce(field, value);
                let nothing = match &coerced {
                    Value::Null => !Types::of(field).accept(&coerced),
                    Value::String(text) => text.trim().is_empty(),
                    _ => false,
                };
                if nothing && !required(name) {
                    continue;
                }
                coerced
            }
            (None, Some(schema @ Value::Object(_))) => coerce(schema, value),
            // An object of which nothing is said is free.
            (None, Some(Value::Bool(true))) => value.clone(),
            (None, None) if named.is_none() => value.clone(),
            (None, _) => continue,
        };
        out.insert(name.clone(), value);
    }
    out
}
