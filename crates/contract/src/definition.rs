//! One tool, ready to publish and to check calls: schemas, rendered description, compiled validators, kind plans.
//!
//! A definition never repairs what a call means: [`Definition::normalise`] changes spelling only and reports each change,
//! [`Definition::validate`] reports every fault, and nothing else stands between the agent and the handler.

use crate::budget::OldestFirst;
use crate::issues::{self, Report};
use crate::json::{length, text};
use crate::kinds::{FieldKind, KindPlan};
use crate::schema::shape::Shape;
use crate::schema::{self, Side};
use crate::{ErrorCode, Policy, Tool, ToolFailure, ToolSpec};
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Starts the line of a description that holds the example; prompts of the text styles take it from there.
pub(crate) const EXAMPLE: &str = "Example arguments: ";

/// What sort of fault an [`Issue`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum IssueKind {
    /// A value outside its constraint.
    #[default]
    Constraint,
    /// A required field is not there.
    Missing,
    /// The field exists, but not in this call.
    NotAccepted,
    /// No field of this name.
    Unknown,
}

/// A fault of an arguments object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Issue {
    /// JSON pointer to the faulty or missing value; empty for the whole object.
    pub path: String,
    /// What is wrong and what would be accepted. Holds no received value.
    pub message: String,
    /// What sort of fault it is; decides what the instruction asks for.
    #[serde(skip)]
    pub kind: IssueKind,
}

impl Issue {
    /// A value outside its constraint.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), kind: IssueKind::Constraint }
    }
}

/// A change of spelling that [`Definition::normalise`] made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// An optional field was null and is taken as absent (complaint AR-5).
    NullRemoved,
    /// An array or object came as a string that spells it (complaint AR-1).
    ParsedFromString,
    /// A whole number came with a fraction of zero, `100.0`.
    WholeNumber,
}

/// One change of spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Note {
    /// JSON pointer to the value.
    pub path: String,
    /// What was done.
    pub change: Change,
}

/// Arguments in normal form.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalised {
    /// The arguments to validate and run.
    pub args: Value,
    /// What was changed, in the order of the walk; empty for almost every call.
    pub notes: Vec<Note>,
}

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {side} schema of `{name}` is invalid: {fault}")]
pub struct SchemaFault {
    /// Tool or document.
    pub name: String,
    /// `input`, `output` or `document`.
    pub side: &'static str,
    /// What is wrong.
    pub fault: String,
}

/// The contract of one tool under one policy.
#[derive(Debug)]
pub struct Definition {
    /// Published data.
    pub spec: &'static ToolSpec,
    /// Policy the definition was made for.
    pub policy: Policy,
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
    /// Lists of the success payload that run from oldest to newest; the size budget keeps their end.
    pub oldest_first: OldestFirst,
    example: Value,
    shape: Shape,
    output_shape: Shape,
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
        match Self::from_schemas(&T::SPEC, policy, input, output) {
            Ok(definition) => definition,
            #[expect(clippy::panic, reason = "a tool whose own schema is invalid must not start")]
            Err(fault) => panic!("{fault}"),
        }
    }

    /// Builds a definition from schemas that somebody wrote, for tools that are no Rust type. They are treated like derived ones: objects
    /// are closed, optional nulls are not advertised, private keywords (`x-kind` ...) are obeyed and not published.
    ///
    /// # Errors
    /// [`SchemaFault`] when one of the two is not a JSON Schema 2020-12 that stands alone: nothing is ever fetched for it.
    pub fn from_schemas(
        spec: &'static ToolSpec,
        policy: &Policy,
        mut input_schema: Value,
        mut output_schema: Value,
    ) -> Result<Self, SchemaFault> {
        let input_plan = KindPlan::compile(&input_schema);
        let output_plan = KindPlan::compile(&output_schema);
        let oldest_first = OldestFirst::compile(&output_schema);
        schema::tidy(&mut input_schema, Side::Input);
        // The tool's description says what its arguments are; the type's name for them tells a model nothing.
        if let Some(root) = input_schema.as_object_mut() {
            root.shift_remove("description");
        }
        schema::tidy(&mut output_schema, Side::Output);
        let compile = |schema: &Value, side: &'static str| {
            jsonschema::draft202012::new(schema).map_err(|fault| SchemaFault {
                name: spec.name.to_owned(),
                side,
                fault: fault.to_string().chars().take(300).collect(),
            })
        };
        let example = example_for(spec, policy, &input_plan);
        Ok(Self {
            spec,
            policy: policy.clone(),
            description: describe(spec, &example),
            validator: compile(&input_schema, "input")?,
            output_validator: compile(&output_schema, "output")?,
            shape: Shape::compile(&input_schema),
            output_shape: Shape::compile(&output_schema),
            input_schema,
            output_schema,
            input_plan,
            output_plan,
            oldest_first,
            example,
        })
    }

    /// A valid arguments object, in the codes of the policy. Null when the spec's text is not JSON, which the audit reports.
    pub const fn example(&self) -> &Value {
        &self.example
    }

    /// The definition in the function shape that chat completion APIs take (spec/seeds.md A6.4).
    pub fn to_openai(&self) -> Value {
        json!({
            "type": "function",
            "function": {"name": self.spec.name, "description": self.description, "parameters": self.input_schema}
        })
    }

    /// Brings arguments into normal form without changing what they mean, and reports each change:
    /// a null in an optional field that takes no null is removed (at every level of objects); a string that spells a whole JSON
    /// array or object is parsed where exactly that is wanted and no string is; `100.0` becomes `100` where an integer is wanted.
    /// Strings never become numbers, nothing is guessed, and the text "null" stays what it is.
    pub fn normalise(&self, mut args: Value) -> Normalised {
        let mut notes = Vec::new();
        self.shape.normalise(&mut args, "", &mut notes);
        Normalised { args, notes }
    }

    /// Checks arguments. All faults are reported, in a stable order; of more than 60 the first ones and how many there are.
    ///
    /// # Errors
    /// The faults, sorted by path and message.
    pub fn validate(&self, args: &Value) -> Result<(), Vec<Issue>> {
        let report = Report { schema: &self.input_schema, shape: &self.shape, value: args };
        let mut found = if self.validator.is_valid(args) { Vec::new() } else { report.found(&self.validator) };
        let mut extra = Vec::new();
        self.shape.faults(args, "", &mut extra);
        // A place that the schema already refuses needs no second word.
        let refused: BTreeSet<String> = found.iter().map(|issue| issue.path.clone()).collect();
        extra.retain(|issue| !refused.contains(&issue.path));
        found.extend(extra);
        if found.is_empty() { Ok(()) } else { Err(issues::finish(found)) }
    }

    /// Checks a success payload, without `success`, against the output schema (tests and `--check-output`).
    ///
    /// # Errors
    /// The faults, sorted by path and message.
    pub fn validate_output(&self, payload: &Value) -> Result<(), Vec<Issue>> {
        if self.output_validator.is_valid(payload) {
            return Ok(());
        }
        Err(Report { schema: &self.output_schema, shape: &self.output_shape, value: payload }.issues(&self.output_validator))
    }

    /// The failure for faulty arguments: every issue, the missing fields by name, and what to do about each.
    pub fn invalid(&self, issues: &[Issue]) -> ToolFailure {
        const SHOWN: usize = 3;
        let name = self.spec.name;
        let mut words: Vec<&str> = issues.iter().take(SHOWN).map(|i| i.message.as_str()).collect();
        let more = format!("{} more in correction.issues", issues.len().saturating_sub(SHOWN));
        if issues.len() > SHOWN {
            words.push(&more);
        }
        let named = |kind: IssueKind| {
            let mut labels: Vec<String> = issues.iter().filter(|i| i.kind == kind).map(|i| issues::label(&i.path)).collect();
            labels.sort();
            labels.dedup();
            labels
        };
        let (missing, wrong) = (named(IssueKind::Missing), named(IssueKind::Constraint));
        let mut surplus = named(IssueKind::Unknown);
        surplus.extend(named(IssueKind::NotAccepted));
        let mut steps = Vec::new();
        for (verb, labels) in [("Add", &missing), ("Correct", &wrong), ("Remove", &surplus)] {
            if !labels.is_empty() {
                steps.push(format!("{verb} {}.", labels.join(", ")));
            }
        }
        if issues.iter().any(|i| i.path.is_empty() && i.kind == IssueKind::Constraint) {
            steps = vec![format!("Call {name} again in this phase with one JSON object in the shape of the valid example.")];
        } else {
            steps.push(format!("Keep the other fields and call {name} again in this phase."));
        }
        let fields: Vec<String> = missing.iter().map(|label| label.trim_matches('`').to_owned()).collect();
        ToolFailure::new(
            ErrorCode::InvalidToolArguments,
            format!("Invalid arguments for {name}: {}.", words.join(". ")),
            steps.join(" "),
        )
        .with("issues", serde_json::to_value(issues).unwrap_or_default())
        .with("missing_fields", fields)
    }

    /// Characters of what a model is sent for this tool.
    pub fn characters(&self) -> usize {
        length(&self.to_openai())
    }
}

/// Codes that examples of a masked run show, in order of first appearance.
const ALIASES: [&str; 4] = ["SHM-000360", "SZM-000127", "GEM-000041", "STAR-000008"];
/// Codes that stand in for aliases where codes are not masked.
const PLAIN: [&str; 4] = ["600000", "000001", "300750", "688981"];

/// The spec's example in the codes of the policy: a card with masked codes is not shown real ones, any other card no aliases.
/// A code that already has the form of the policy stays.
fn example_for(spec: &ToolSpec, policy: &Policy, plan: &KindPlan) -> Value {
    let mut example: Value = serde_json::from_str(spec.example).unwrap_or_default();
    let stand_ins = if policy.masked_codes { ALIASES } else { PLAIN };
    let mut seen: Vec<String> = Vec::new();
    plan.rewrite(&mut example, &mut |kind, code| {
        if kind != FieldKind::Code || code.contains('-') == policy.masked_codes {
            return None;
        }
        let position = seen.iter().position(|s| s == code).unwrap_or_else(|| {
            seen.push(code.to_owned());
            seen.len() - 1
        });
        Some(stand_ins[position % stand_ins.len()].to_owned())
    });
    example
}

/// The common error contract, one sentence of every description. Short, because a model is sent it once per tool.
const ERROR_CONTRACT: &str = "On failure: success=false, error, error_code, retryable, correction {instruction, \
valid_arguments_example, received_arguments}; if retryable, repair the call and send it again in this phase.";

fn describe(spec: &ToolSpec, example: &Value) -> String {
    let mut lines = vec![spec.description.to_owned()];
    lines.extend(spec.notes.iter().map(|note| format!("- {note}")));
    lines.push(format!("{EXAMPLE}{}", if example.is_null() { spec.example.to_owned() } else { text(example) }));
    lines.push(format!("Returns: success=true. {}.", spec.result_summary.trim_end_matches('.')));
    // A defect of ours is nothing a model can plan for.
    let own = spec.errors.iter().filter(|code| **code != ErrorCode::Internal);
    let mut codes = vec![ErrorCode::InvalidToolArguments.as_str()];
    for code in own {
        if !codes.contains(&code.as_str()) {
            codes.push(code.as_str());
        }
    }
    lines.push(format!("{ERROR_CONTRACT} Codes: {}.", codes.join(", ")));
    lines.join("\n")
}
