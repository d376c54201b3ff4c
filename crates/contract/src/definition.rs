//! One tool, ready to publish and to check calls: schemas, rendered description, compiled validators, kind plans.

use crate::kinds::KindPlan;
use crate::{Policy, Tool, ToolSpec};
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value};

/// A fault of an arguments object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Issue {
    /// JSON pointer to the faulty value; empty for the whole object.
    pub path: String,
    /// What is wrong and what would be accepted. Holds no received value.
    pub message: String,
}

/// The contract of one tool under one policy.
#[derive(Debug)]
pub struct Definition {
    /// Published data.
    pub spec: &'static ToolSpec,
    /// Description as the model gets it: text, notes, example, success summary, error contract.
    pub description: String,
    /// Input schema as the model gets it (JSON Schema 2020-12, closed objects, no private keywords).
    pub input_schema: Value,
    /// Schema of the success payload, without `success`.
    pub output_schema: Value,
    /// Where codes and other kinds are in the arguments.
    pub input_plan: KindPlan,
    /// Where codes and other kinds are in the success payload.
    pub output_plan: KindPlan,
    validator: jsonschema::Validator,
    output_validator: jsonschema::Validator,
}

impl Definition {
    /// Builds the definition of `T` under `policy`.
    ///
    /// # Panics
    /// When the derived schema is not a valid JSON Schema: a defect of the tool, found by the audit and by every test that lists tools.
    pub fn of<T: Tool>(policy: &Policy) -> Self {
        let settings = || SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let mut input = settings().into_generator().into_root_schema_for::<T::Args>().to_value();
        T::refine(&mut input, policy);
        let output = settings().for_serialize().into_generator().into_root_schema_for::<T::Output>().to_value();
        Self::from_schemas(&T::SPEC, input, output)
    }

    fn from_schemas(spec: &'static ToolSpec, mut input_schema: Value, mut output_schema: Value) -> Self {
        let input_plan = KindPlan::compile(&input_schema);
        let output_plan = KindPlan::compile(&output_schema);
        tidy(&mut input_schema);
        tidy(&mut output_schema);
        let compile = |schema: &Value| match jsonschema::draft202012::new(schema) {
            Ok(validator) => validator,
            #[expect(clippy::panic, reason = "a tool whose own schema is invalid must not start")]
            Err(fault) => panic!("schema of {} is invalid: {fault}", spec.name),
        };
        Self {
            spec,
            description: String::new(),
            validator: compile(&input_schema),
            output_validator: compile(&output_schema),
            input_schema,
            output_schema,
            input_plan,
            output_plan,
        }
    }

    /// Checks arguments. All faults are reported, in a stable order.
    ///
    /// # Errors
    /// The faults, sorted by path and message.
    pub fn validate(&self, args: &Value) -> Result<(), Vec<Issue>> {
        faults(&self.validator, args)
    }

    /// Checks a success payload against the output schema (tests and `--check-output`).
    ///
    /// # Errors
    /// The faults, sorted by path and message.
    pub fn validate_output(&self, payload: &Value) -> Result<(), Vec<Issue>> {
        faults(&self.output_validator, payload)
    }
}

fn faults(validator: &jsonschema::Validator, value: &Value) -> Result<(), Vec<Issue>> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let mut issues: Vec<Issue> = validator
        .iter_errors(value)
        .map(|e| Issue { path: e.instance_path().to_string(), message: e.masked().to_string() })
        .collect();
    issues.sort(); // the validator's order is not part of our contract
    issues.dedup();
    Err(issues)
}

/// Removes what a model has no use for: `$schema`, `title`, integer `format`s and private `x-` keywords.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let keep: Map<String, Value> = std::mem::take(map)
                .into_iter()
                .filter(|(key, value)| {
                    !(key == "$schema"
                        || (key == "title" && value.is_string())
                        || (key == "format" && value.is_string())
                        || key.starts_with("x-"))
                })
                .collect();
            *map = keep;
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
