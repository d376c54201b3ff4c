//! The schemas of the two doors: HTTP publishes the schema of `data` alone, MCP that of the whole envelope (seed 002; complaint MC-1).
//! JSON Schema 2020-12.

use super::ToolResult;
use crate::SchemaFault;
use crate::schema::{Side, tidy};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Fields of a tool's payload that are channels of the envelope and no part of its data (spec/seeds.md C4.6).
pub const CHANNELS: &[&str] = &["as_of", "missing_reasons", "warnings", "next_cursor", "evidence"];

/// The schema of `data` of a tool: its output schema without the [`CHANNELS`]. What HTTP publishes as `outputSchema`.
pub fn data_schema(output_schema: &Value) -> Value {
    let mut schema = output_schema.clone();
    if let Some(map) = schema.as_object_mut() {
        without_channels(map);
    }
    schema
}

fn without_channels(map: &mut Map<String, Value>) {
    if let Some(fields) = map.get_mut("properties").and_then(Value::as_object_mut) {
        fields.retain(|name, _| !CHANNELS.contains(&name.as_str()));
    }
    if let Some(required) = map.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| CHANNELS.contains(&name)));
    }
    // Branches describe the same object.
    for key in ["anyOf", "oneOf", "allOf"] {
        let branches = map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
        branches.filter_map(Value::as_object_mut).for_each(without_channels);
    }
    for key in ["if", "then", "else"] {
        if let Some(branch) = map.get_mut(key).and_then(Value::as_object_mut) {
            without_channels(branch);
        }
    }
}

/// Whether a value is what a schema says. It compiles the schema each time: for what is asked rarely.
pub fn fits(schema: &Value, value: &Value) -> bool {
    jsonschema::draft202012::new(schema).is_ok_and(|validator| validator.is_valid(value))
}

/// The schema of the whole envelope around `data`. What MCP publishes as `outputSchema` and checks `structuredContent` with. An answer
/// that is no result (an accepted job, an error) is not described by it.
pub fn envelope_schema(data_schema: &Value) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true).for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<ToolResult>().to_value();
    tidy(&mut schema, Side::Output);
    if let Some(map) = schema.as_object_mut() {
        map.insert("description".into(), "The result of one call: its data, where that came from, and what limits it.".into());
        map.insert("type".into(), "object".into());
        if let Some(fields) = map.get_mut("properties").and_then(Value::as_object_mut) {
            fields.insert("data".into(), data_schema.clone());
            let version = json!({"description": "Version of this envelope.", "type": "string", "const": "1.0"});
            fields.insert("schema_version".into(), version);
        }
    }
    schema
}

/// A schema of a door, compiled: the same validator everywhere, so that no door is stricter than another.
#[derive(Debug)]
pub struct ResultSchema(jsonschema::Validator);

impl ResultSchema {
    /// Compiles a schema that stands alone (JSON Schema 2020-12); nothing is ever fetched for it.
    ///
    /// # Errors
    /// [`SchemaFault`] when it is not one. `name` says whose schema it is.
    pub fn compile(name: &str, schema: &Value) -> Result<Self, SchemaFault> {
        jsonschema::draft202012::new(schema).map(Self).map_err(|fault| SchemaFault {
            name: name.to_owned(),
            side: "output",
            fault: fault.to_string().chars().take(300).collect(),
        })
    }

    /// True when the value fits.
    pub fn fits(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// JSON pointers to what does not fit, sorted, each once. Holds no value.
    pub fn faults(&self, value: &Value) -> Vec<String> {
        let places: BTreeSet<String> = self.0.iter_errors(value).map(|fault| fault.instance_path().to_string()).collect();
        places.into_iter().collect()
    }
}
