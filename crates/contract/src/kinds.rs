//! Field kinds: which strings of a result are codes, days, times, names or free text, so that masking touches those and nothing else.
//!
//! A kind is a newtype. Its JSON Schema carries the private keyword `x-kind`; a [`KindPlan`] is compiled once from a schema
//! and then walks values. Numbers, ids and ordinary words are never rewritten (engine E8.3).

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a string field carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldKind {
    /// A security code: six digits inside, an alias such as `SHM-000360` outside when masked.
    Code,
    /// A civil day: ISO inside, `D-3` outside when masked.
    Day,
    /// A day with time: `2024-06-26 15:40` inside, `D-1 15:40` outside when masked.
    Time,
    /// A company name.
    Name,
    /// Text from a source (title, content): names, codes and absolute dates in it are neutralised.
    Text,
}

impl FieldKind {
    /// Value of the `x-kind` keyword.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Day => "day",
            Self::Time => "time",
            Self::Name => "name",
            Self::Text => "text",
        }
    }

    fn parse(s: &str) -> Option<Self> {
        [Self::Code, Self::Day, Self::Time, Self::Name, Self::Text].into_iter().find(|k| k.as_str() == s)
    }
}

macro_rules! kind_newtype {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "x-kind": FieldKind::$kind.as_str() })
            }
        }

        impl $name {
            /// The value as it is inside the environment.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: std::fmt::Display> From<T> for $name {
            fn from(value: T) -> Self {
                Self(value.to_string())
            }
        }
    };
}

kind_newtype!(
    /// A security code: real six digits inside the environment, the visible alias outside.
    StockCode, Code
);
kind_newtype!(
    /// A civil day, `YYYY-MM-DD` inside the environment.
    DayField, Day
);
kind_newtype!(
    /// A day with time, `YYYY-MM-DD HH:MM` inside the environment.
    TimeField, Time
);
kind_newtype!(
    /// A company name.
    CompanyName, Name
);
kind_newtype!(
    /// Text from a source.
    FreeText, Text
);

/// Rewrites field values by kind. The harness implements it over the market's mask; `Cow::Borrowed` means unchanged.
pub trait Masker {
    /// The visible form of `value`.
    fn mask<'a>(&self, kind: FieldKind, value: &'a str) -> Cow<'a, str>;
}

/// Where the kinds are in a value of one schema. Compiled from the schema once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindPlan {
    kind: Option<FieldKind>,
    fields: BTreeMap<String, KindPlan>,
    /// Plan of array items and of map values.
    items: Option<Box<KindPlan>>,
    values: Option<Box<KindPlan>>,
}

impl KindPlan {
    /// Reads the plan out of a schema that has no `$ref` (the generator inlines).
    pub fn compile(schema: &Value) -> Self {
        let mut plan = Self::default();
        plan.absorb(schema);
        plan
    }

    fn absorb(&mut self, schema: &Value) {
        let Some(node) = schema.as_object() else { return };
        if let Some(kind) = node.get("x-kind").and_then(Value::as_str).and_then(FieldKind::parse) {
            self.kind = Some(kind);
        }
        for (name, sub) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let child = Self::compile(sub);
            if !child.is_empty() {
                self.fields.entry(name.clone()).or_default().merge(child);
            }
        }
        for (key, slot) in [("items", &mut self.items), ("additionalProperties", &mut self.values)] {
            if let Some(sub) = node.get(key) {
                let child = Self::compile(sub);
                if !child.is_empty() {
                    slot.get_or_insert_default().merge(child);
                }
            }
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for branch in node.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.absorb(branch);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.kind = self.kind.or(other.kind);
        for (name, child) in other.fields {
            self.fields.entry(name).or_default().merge(child);
        }
        for (slot, child) in [(&mut self.items, other.items), (&mut self.values, other.values)] {
            if let Some(child) = child {
                slot.get_or_insert_default().merge(*child);
            }
        }
    }

    /// True when no string of such a value needs rewriting.
    pub fn is_empty(&self) -> bool {
        self.kind.is_none() && self.fields.is_empty() && self.items.is_none() && self.values.is_none()
    }

    /// Calls `f` on every string of `value` that has a kind; a returned string replaces it.
    pub fn rewrite(&self, value: &mut Value, f: &mut dyn FnMut(FieldKind, &str) -> Option<String>) {
        match value {
            Value::String(text) => {
                if let Some(kind) = self.kind
                    && let Some(new) = f(kind, text)
                {
                    *text = new;
                }
            }
            Value::Array(items) => {
                if let Some(plan) = &self.items {
                    for item in items {
                        plan.rewrite(item, f);
                    }
                }
            }
            Value::Object(map) => {
                for (name, item) in map.iter_mut() {
                    if let Some(plan) = self.fields.get(name).or(self.values.as_deref()) {
                        plan.rewrite(item, f);
                    }
                }
            }
            _ => {}
        }
    }

    /// Masks a value in place.
    pub fn mask(&self, value: &mut Value, masker: &dyn Masker) {
        if self.is_empty() {
            return;
        }
        self.rewrite(value, &mut |kind, text| match masker.mask(kind, text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(new) => Some(new),
        });
    }
}
