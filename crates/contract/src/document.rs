//! A kind of document that people write by hand (a card, a manifest): its published schema, and every fault of one in the words that
//! arguments get. It repairs nothing.

use crate::definition::SchemaFault;
use crate::issues::{self, Report};
use crate::schema::{self, Side, shape::Shape};
use crate::{Issue, json};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// A document's schema, compiled.
#[derive(Debug)]
pub struct Document {
    schema: Value,
    shape: Shape,
    validator: jsonschema::Validator,
}

impl Document {
    /// The document that `T` reads. Objects are closed, and an optional field takes no null.
    ///
    /// # Errors
    /// [`SchemaFault`] when the schema derived from `T` is invalid.
    pub fn of<T: JsonSchema>(name: &str) -> Result<Self, SchemaFault> {
        let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        schema::tidy(&mut schema, Side::Document);
        let validator = jsonschema::draft202012::new(&schema).map_err(|fault| SchemaFault {
            name: name.to_owned(),
            side: "document",
            fault: fault.to_string(),
        })?;
        Ok(Self { shape: Shape::compile(&schema), validator, schema })
    }

    /// The schema (JSON Schema 2020-12).
    pub const fn schema(&self) -> &Value {
        &self.schema
    }

    /// The schema as a file of its own, which says what dialect it is.
    pub fn published(&self) -> Value {
        let dialect = [("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into())];
        let body = self.schema.as_object().cloned().unwrap_or_default();
        Value::Object(dialect.into_iter().chain(body).collect())
    }

    /// Every fault, sorted by path and message. A message names the field with its path, what would be accepted and, for an unknown
    /// field, the closest name; it never repeats a value.
    pub fn issues(&self, document: &Value) -> Vec<Issue> {
        if self.validator.is_valid(document) {
            return Vec::new();
        }
        Report { schema: &self.schema, shape: &self.shape, value: document }.issues(&self.validator)
    }
}

/// The closest of `names` to a word, if one is close enough to be meant.
pub fn closest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    issues::closest(word, names)
}

/// Every fault as one text, for an error message.
pub fn sentences(issues: &[Issue]) -> String {
    let mut text = issues.iter().map(|i| i.message.trim_end_matches('.')).collect::<Vec<_>>().join(". ");
    if json::characters(&text) > 2_000 {
        text = format!("{}...", json::prefix(&text, 2_000));
    }
    text
}
