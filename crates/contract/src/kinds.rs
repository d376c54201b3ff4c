//! Field kinds: which strings of a result are codes, days, times, names or free text, so that masking touches those and nothing else.
//!
//! A kind is a newtype. Its JSON Schema carries the private keyword `x-kind`; a [`KindPlan`] is compiled once from a schema
//! and then walks values. Numbers, ids and ordinary words are never rewritten (engine E8.3).

use crate::schema::children;
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
///
/// The plan finds kinds through options, lists, tuples, nested objects, maps, tagged enums and conditional branches. Keys of a
/// map carry a kind when the field says so with `x-key-kind`. Where two branches give one string two kinds, the first wins;
/// tagged enums avoid that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindPlan {
    kind: Option<FieldKind>,
    fields: BTreeMap<String, KindPlan>,
    /// Plan of array items.
    items: Option<Box<KindPlan>>,
    /// Plans of the first array items, where each place has its own schema.
    places: Vec<KindPlan>,
    /// Plan of the values of fields that `fields` does not name.
    values: Option<Box<KindPlan>>,
    /// Kind of the keys of such fields.
    keys: Option<FieldKind>,
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
        let kind = |key: &str| node.get(key).and_then(Value::as_str).and_then(FieldKind::parse);
        self.kind = self.kind.or(kind("x-kind"));
        self.keys = self.keys.or(kind("x-key-kind"));
        children(node, |key, name, sub| match (key, name) {
            // A named field keeps its place in the plan even without a kind, so that the plan of other fields never reaches it.
            ("properties", Some(name)) => self.fields.entry(name.to_owned()).or_default().merge(Self::compile(sub)),
            ("items", _) => self.items.get_or_insert_default().merge(Self::compile(sub)),
            ("additionalProperties" | "unevaluatedProperties" | "patternProperties", _) => {
                self.values.get_or_insert_default().merge(Self::compile(sub));
            }
            ("allOf" | "anyOf" | "oneOf" | "then" | "else" | "dependentSchemas", _) => self.absorb(sub),
            _ => {}
        });
        for (i, sub) in node.get("prefixItems").and_then(Value::as_array).into_iter().flatten().enumerate() {
            if self.places.len() == i {
                self.places.push(Self::default());
            }
            self.places[i].merge(Self::compile(sub));
        }
        self.prune();
    }

    fn merge(&mut self, other: Self) {
        self.kind = self.kind.or(other.kind);
        self.keys = self.keys.or(other.keys);
        for (name, child) in other.fields {
            self.fields.entry(name).or_default().merge(child);
        }
        for (i, child) in other.places.into_iter().enumerate() {
            if self.places.len() == i {
                self.places.push(Self::default());
            }
            self.places[i].merge(child);
        }
        for (slot, child) in [(&mut self.items, other.items), (&mut self.values, other.values)] {
            if let Some(child) = child {
                slot.get_or_insert_default().merge(*child);
            }
        }
    }

    /// Drops parts that rewrite nothing, so that [`KindPlan::is_empty`] is a look at the surface.
    fn prune(&mut self) {
        for slot in [&mut self.items, &mut self.values] {
            if slot.as_ref().is_some_and(|plan| plan.is_empty()) {
                *slot = None;
            }
        }
        if self.places.iter().all(Self::is_empty) {
            self.places.clear();
        }
        // Plain fields only matter beside a plan for all other fields.
        if self.values.is_none() && self.keys.is_none() {
            self.fields.retain(|_, plan| !plan.is_empty());
        }
    }

    /// True when no string of such a value needs rewriting.
    pub fn is_empty(&self) -> bool {
        self.kind.is_none()
            && self.keys.is_none()
            && self.items.is_none()
            && self.values.is_none()
            && self.places.is_empty()
            && self.fields.values().all(Self::is_empty)
    }

    /// Calls `f` on every string of `value` that has a kind, map keys included; a returned string replaces it.
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
                for (i, item) in items.iter_mut().enumerate() {
                    if let Some(plan) = self.places.get(i).or(self.items.as_deref()) {
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
                if let Some(kind) = self.keys {
                    let renamed = std::mem::take(map).into_iter().map(|(name, item)| match f(kind, &name) {
                        Some(new) if !self.fields.contains_key(&name) => (new, item),
                        _ => (name, item),
                    });
                    *map = renamed.collect();
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
