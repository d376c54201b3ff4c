//! The contract audit of one definition: what a model or a reviewer would stumble over, found before a run.
//!
//! `cargo xtask audit` and the tests of every tool crate call it. It judges what is published and never calls a handler.

use crate::schema::{children, says_type};
use crate::{Definition, ErrorCode};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// What is wrong with a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The tool name is not a short snake_case word, or two tools have it.
    Name,
    /// A field of the input or output has no description.
    UndescribedField,
    /// The example is not JSON, not valid, or needs normal form first.
    Example,
    /// A default does not fit its own schema.
    Default,
    /// An input object takes fields it does not name.
    OpenObject,
    /// The description lacks its text, example, success summary or error contract.
    Description,
    /// A code is listed twice.
    ErrorCodes,
    /// A private or useless keyword is published.
    Keyword,
    /// A schema does not say what type its values have.
    Untyped,
    /// A text shows something that looks like a real security code.
    RealCode,
    /// A text is not plain English prose: a code link of the source, or another script.
    Wording,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Tool.
    pub tool: String,
    /// What is wrong.
    pub check: Check,
    /// Where: a text's name or a path such as `input/range/low`.
    pub place: String,
    /// What was found.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} at {}: {}", self.tool, self.check, self.place, self.detail)
    }
}

/// Findings about one definition, sorted.
pub fn audit(definition: &Definition) -> Vec<Finding> {
    let mut audit = Audit { tool: definition.spec.name, findings: Vec::new() };
    audit.name();
    audit.texts(definition);
    audit.example(definition);
    audit.codes(definition.spec.errors);
    audit.schema(&definition.input_schema, "input", Walk { input: true, refines: false });
    audit.schema(&definition.output_schema, "output", Walk { input: false, refines: false });
    if !definition
        .output_schema
        .as_object()
        .is_some_and(|map| says_type(map, "object") || map.contains_key("oneOf") || map.contains_key("anyOf"))
    {
        audit.find(Check::Untyped, "output", "the result must be an object");
    }
    audit.findings.sort();
    audit.findings.dedup();
    audit.findings
}

/// Findings about a whole catalog: each definition, and names that two tools share.
pub fn audit_all<'a>(definitions: impl IntoIterator<Item = &'a Definition>) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for definition in definitions {
        findings.extend(audit(definition));
        let name = definition.spec.name;
        if !seen.insert(name) {
            findings.push(Finding {
                tool: name.to_owned(),
                check: Check::Name,
                place: "name".into(),
                detail: "two tools have this name".into(),
            });
        }
    }
    findings.sort();
    findings
}

#[derive(Clone, Copy)]
struct Walk {
    input: bool,
    /// The schema only refines one that is described elsewhere.
    refines: bool,
}

struct Audit {
    tool: &'static str,
    findings: Vec<Finding>,
}

impl Audit {
    fn find(&mut self, check: Check, place: &str, detail: impl Into<String>) {
        self.findings.push(Finding { tool: self.tool.to_owned(), check, place: place.to_owned(), detail: detail.into() });
    }

    fn name(&mut self) {
        let plain = self.tool.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !plain || self.tool.is_empty() || self.tool.len() > 64 {
            self.find(Check::Name, "name", "a tool name is 1 to 64 of a-z, 0-9 and _");
        }
    }

    fn texts(&mut self, definition: &Definition) {
        let spec = definition.spec;
        for (place, text) in [("description", spec.description), ("result_summary", spec.result_summary)] {
            if text.trim().is_empty() {
                self.find(Check::Description, place, "the text is empty");
            }
            self.prose(place, text);
        }
        for (i, note) in spec.notes.iter().enumerate() {
            self.prose(&format!("notes/{i}"), note);
        }
        for part in ["Example arguments: ", "Returns: success=true", "On failure: success=false"] {
            if !definition.description.contains(part) {
                self.find(Check::Description, "description", format!("the rendered description lacks `{part}`"));
            }
        }
    }

    fn prose(&mut self, place: &str, text: &str) {
        if shows_code(text) {
            self.find(Check::RealCode, place, "six digits that stand alone look like a real security code");
        }
        if text.contains("[`") || text.contains("](") {
            self.find(Check::Wording, place, "a link into the source means nothing to a model");
        }
        if text.chars().any(|c| matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')) {
            self.find(Check::Wording, place, "texts are written in English");
        }
    }

    fn example(&mut self, definition: &Definition) {
        let example = definition.example();
        if !example.is_object() {
            return self.find(Check::Example, "example", "the example is not a JSON object");
        }
        if let Err(issues) = definition.validate(example) {
            for issue in issues {
                self.find(Check::Example, "example", issue.message);
            }
        }
        if !definition.normalise(example.clone()).notes.is_empty() {
            self.find(Check::Example, "example", "the example is not in normal form");
        }
        if definition.policy.masked_codes && shows_code(&example.to_string()) {
            self.find(Check::RealCode, "example", "an example for masked codes shows a code without its prefix");
        }
    }

    fn codes(&mut self, codes: &[ErrorCode]) {
        let mut seen = BTreeSet::new();
        for code in codes {
            if !seen.insert(*code) {
                self.find(Check::ErrorCodes, "errors", format!("{code} is listed twice"));
            }
        }
    }

    fn schema(&mut self, schema: &Value, place: &str, walk: Walk) {
        let Some(node) = schema.as_object() else {
            if schema == &Value::Bool(true) && !walk.refines {
                self.find(Check::Untyped, place, "any value is accepted");
            }
            return;
        };
        for key in node.keys() {
            let useless =
                matches!(key.as_str(), "$schema" | "$ref" | "$defs" | "$id") || (key == "title" && node[key].is_string());
            if key.starts_with("x-") || useless {
                self.find(Check::Keyword, place, format!("`{key}` is published"));
            }
        }
        if let Some(text) = node.get("description").and_then(Value::as_str) {
            self.prose(place, text);
        }
        if let Some(default) = node.get("default")
            && !fits(node, default)
        {
            self.find(Check::Default, place, "the default does not fit its own schema");
        }
        let described = ["type", "enum", "const", "anyOf", "oneOf", "allOf"].iter().any(|k| node.contains_key(*k));
        if walk.input && !walk.refines && !described {
            self.find(Check::Untyped, place, "no type is stated");
        }
        if walk.input && !walk.refines && is_open(node) {
            self.find(Check::OpenObject, place, "fields without a name are accepted");
        }
        children(node, |key, name, sub| {
            let refines = walk.refines
                || matches!(key, "allOf" | "if" | "then" | "else" | "not" | "dependentSchemas" | "contains" | "propertyNames");
            // Branches beside fields refine them; branches alone are whole values.
            let refines = refines || (matches!(key, "anyOf" | "oneOf") && node.contains_key("properties"));
            let inside = match name {
                Some(name) => format!("{place}/{name}"),
                None if key == "items" => format!("{place}/*"),
                None => place.to_owned(),
            };
            if key == "properties"
                && !refines
                && sub.as_object().is_none_or(|field| {
                    field.get("description").and_then(Value::as_str).is_none_or(|text| text.trim().is_empty())
                })
            {
                self.find(Check::UndescribedField, &inside, "the field has no description");
            }
            if !sub.is_boolean() || (key == "properties" && !refines) {
                self.schema(sub, &inside, Walk { refines, ..walk });
            }
        });
    }
}

fn is_open(node: &Map<String, Value>) -> bool {
    let object = says_type(node, "object") || node.contains_key("properties");
    let closed = ["additionalProperties", "unevaluatedProperties"].iter().any(|k| node.get(*k) == Some(&Value::Bool(false)));
    let only_branches = !node.contains_key("properties") && (node.contains_key("oneOf") || node.contains_key("anyOf"));
    object && !closed && !only_branches
}

fn fits(node: &Map<String, Value>, value: &Value) -> bool {
    let schema = Value::Object(node.clone());
    jsonschema::draft202012::new(&schema).is_ok_and(|validator| validator.is_valid(value))
}

/// True when six digits stand alone in a text, not as the tail of an alias such as `SHM-000360`.
fn shows_code(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inside = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b == b'.';
    (0..bytes.len()).any(|i| {
        let run = bytes[i..].iter().take_while(|b| b.is_ascii_digit()).count();
        run == 6 && (i == 0 || !inside(bytes[i - 1])) && bytes.get(i + 6).is_none_or(|b| !b.is_ascii_alphanumeric())
    })
}
