//! The shape of an input schema: which JSON types and fields each place takes. Compiled once; used to bring arguments into
//! normal form and for the checks that a JSON Schema does not express. It never decides that arguments are valid.

use super::children;
use crate::arguments;
use crate::definition::{Change, Issue, Note};
use crate::json::{pointer_name, pointer_segment};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

const NULL: u8 = 1;
const BOOLEAN: u8 = 1 << 1;
const INTEGER: u8 = 1 << 2;
const FRACTION: u8 = 1 << 3;
const STRING: u8 = 1 << 4;
const ARRAY: u8 = 1 << 5;
const OBJECT: u8 = 1 << 6;
const ANY: u8 = 0x7f;

/// The largest whole number below which every whole number is its own double.
const EXACT: f64 = 9_007_199_254_740_992.0;

#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    types: u8,
    required: bool,
    /// A string that may be any text.
    free_text: bool,
    fields: BTreeMap<String, Shape>,
    items: Option<Box<Shape>>,
    values: Option<Box<Shape>>,
}

impl Shape {
    pub(crate) fn compile(schema: &Value) -> Self {
        let mut shape = Self { types: types(schema), ..Self::default() };
        let Some(node) = schema.as_object() else { return shape };
        shape.free_text = shape.types == STRING && !["enum", "const", "pattern", "format"].iter().any(|k| node.contains_key(*k));
        shape.absorb(node);
        for name in node.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if let Some(field) = shape.fields.get_mut(name) {
                field.required = true;
            }
        }
        shape
    }

    fn absorb(&mut self, node: &Map<String, Value>) {
        children(node, |key, name, sub| match (key, name) {
            ("properties", Some(name)) if sub != &Value::Bool(false) => {
                // The first schema that names a field types it; branches only refine it.
                self.fields.entry(name.to_owned()).or_insert_with(|| Self::compile(sub));
            }
            ("items", _) => {
                self.items.get_or_insert_with(|| Box::new(Self::compile(sub)));
            }
            ("additionalProperties", _) if sub.is_object() => {
                self.values.get_or_insert_with(|| Box::new(Self::compile(sub)));
            }
            ("allOf" | "anyOf" | "oneOf" | "then" | "else" | "dependentSchemas", _) => {
                if let Some(sub) = sub.as_object() {
                    self.absorb(sub);
                }
            }
            _ => {}
        });
    }

    fn field(&self, name: &str) -> Option<&Self> {
        self.fields.get(name).or(self.values.as_deref())
    }

    /// The shape at a JSON pointer, as far as it is known.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |shape, segment| {
            let name = pointer_name(segment);
            match shape.field(&name) {
                Some(field) => Some(field),
                None => shape.items.as_deref().filter(|_| name.bytes().all(|b| b.is_ascii_digit())),
            }
        })
    }

    pub(crate) const fn is_required(&self) -> bool {
        self.required
    }

    pub(crate) fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    /// Brings a value into normal form; see [`crate::Definition::normalise`].
    pub(crate) fn normalise(&self, value: &mut Value, path: &str, notes: &mut Vec<Note>) {
        if let Value::String(text) = value
            && self.types & STRING == 0
            && let Some(parsed) = self.parse_container(text)
        {
            notes.push(Note { path: path.to_owned(), change: Change::ParsedFromString });
            *value = parsed;
        }
        if self.types & (INTEGER | FRACTION) == INTEGER
            && let Value::Number(number) = value
            && let Some(whole) = whole_number(number)
        {
            notes.push(Note { path: path.to_owned(), change: Change::WholeNumber });
            *value = whole.into();
        }
        match value {
            Value::Object(map) => {
                let absent = |shape: &Self, v: &Value| v.is_null() && !shape.required && shape.types & NULL == 0;
                map.retain(|name, v| {
                    let drop = self.fields.get(name).is_some_and(|shape| absent(shape, v));
                    if drop {
                        notes.push(Note { path: format!("{path}/{}", pointer_segment(name)), change: Change::NullRemoved });
                    }
                    !drop
                });
                for (name, v) in map.iter_mut() {
                    if let Some(shape) = self.field(name) {
                        shape.normalise(v, &format!("{path}/{}", pointer_segment(name)), notes);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(shape) = &self.items {
                    for (i, item) in items.iter_mut().enumerate() {
                        shape.normalise(item, &format!("{path}/{i}"), notes);
                    }
                }
            }
            _ => {}
        }
    }

    /// The array or object that a string spells, where the schema wants exactly that.
    fn parse_container(&self, text: &str) -> Option<Value> {
        let wanted = match text.trim_start().bytes().next()? {
            b'[' => self.types & ARRAY,
            b'{' => self.types & OBJECT,
            _ => 0,
        };
        if wanted == 0 { None } else { arguments::parse_value(text).ok() }
    }

    /// Faults that the schema does not express: the text `null` sent for "nothing", a whole number no integer type can hold.
    pub(crate) fn faults(&self, value: &Value, path: &str, issues: &mut Vec<Issue>) {
        match value {
            Value::String(text) if self.free_text && !self.required && text == "null" && !path.is_empty() => {
                issues.push(Issue::new(
                    path,
                    format!("{} is the text \"null\"; leave the field out instead", crate::issues::label(path)),
                ));
            }
            Value::Number(number) if self.types & (INTEGER | FRACTION) == INTEGER && too_large(number) => {
                let words = "must be an integer written with all its digits, within 64 bits";
                issues.push(Issue::new(path, format!("{} {words}", crate::issues::label(path))));
            }
            Value::Object(map) => {
                for (name, v) in map {
                    if let Some(shape) = self.field(name) {
                        shape.faults(v, &format!("{path}/{}", pointer_segment(name)), issues);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(shape) = &self.items {
                    items.iter().enumerate().for_each(|(i, item)| shape.faults(item, &format!("{path}/{i}"), issues));
                }
            }
            _ => {}
        }
    }
}

/// `100.0` as `100`: JSON has one kind of number, so this changes the spelling only.
fn whole_number(number: &Number) -> Option<i64> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

/// A whole number beyond 64 bits or beyond exactness. Fractions are refused by the schema itself.
fn too_large(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|f| f.fract() == 0.0) && whole_number(number).is_none()
}

/// The types a schema lets through, as far as its own keywords say.
fn types(schema: &Value) -> u8 {
    let Some(node) = schema.as_object() else { return if schema == &Value::Bool(false) { 0 } else { ANY } };
    let named = |name: &Value| match name.as_str() {
        Some("null") => NULL,
        Some("boolean") => BOOLEAN,
        Some("integer") => INTEGER,
        Some("number") => INTEGER | FRACTION,
        Some("string") => STRING,
        Some("array") => ARRAY,
        Some("object") => OBJECT,
        _ => 0,
    };
    let of_value = |value: &Value| match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(n) => {
            if n.is_f64() {
                FRACTION | INTEGER
            } else {
                INTEGER
            }
        }
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    };
    let mut allowed = match node.get("type") {
        Some(Value::Array(many)) => many.iter().map(named).fold(0, |a, b| a | b),
        Some(one) => named(one),
        None => ANY,
    };
    if let Some(value) = node.get("const") {
        allowed &= of_value(value);
    }
    if let Some(values) = node.get("enum").and_then(Value::as_array) {
        allowed &= values.iter().map(of_value).fold(0, |a, b| a | b);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(branches) = node.get(key).and_then(Value::as_array) {
            allowed &= branches.iter().map(types).fold(0, |a, b| a | b);
        }
    }
    for branch in node.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        allowed &= types(branch);
    }
    allowed
}
