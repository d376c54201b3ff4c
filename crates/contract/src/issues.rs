//! Words for what the validator found: which field, and what would be accepted there. Received values never appear; the only
//! received text that is repeated is the name of an unknown field.

use crate::definition::{Issue, IssueKind};
use crate::json::{characters, pointer_name, pointer_segment, prefix, text};
use crate::schema::shape::Shape;
use jsonschema::error::{ValidationError, ValidationErrorKind as Kind};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Characters of an unknown field name that are repeated.
const NAME_LIMIT: usize = 64;
/// Values of a list (enum, accepted fields) that are written out.
const LIST_LIMIT: usize = 40;

/// Unknown fields of one object that are told one by one; of the others their number.
const UNKNOWN_LIMIT: usize = 20;
/// Faults that are told; of the others their number. What a model sent may hold a hundred thousand.
const ISSUE_LIMIT: usize = 60;

/// Schema and value a report is about.
pub(crate) struct Report<'a> {
    pub(crate) schema: &'a Value,
    pub(crate) shape: &'a Shape,
    pub(crate) value: &'a Value,
}

impl Report<'_> {
    /// Every fault, sorted by path and message, each once, in a bounded number.
    pub(crate) fn issues(&self, validator: &jsonschema::Validator) -> Vec<Issue> {
        finish(self.found(validator))
    }

    /// Every fault, in no order.
    pub(crate) fn found(&self, validator: &jsonschema::Validator) -> Vec<Issue> {
        let mut issues = Vec::new();
        for error in validator.iter_errors(self.value) {
            self.explain(&error, &mut issues);
        }
        issues
    }

    fn explain(&self, error: &ValidationError<'_>, issues: &mut Vec<Issue>) {
        let path = error.instance_path().as_str();
        let at = Place::of(self.schema, error.schema_path().as_str());
        let when = at.when();
        let mut push = |path: &str, words: String, kind: IssueKind| {
            issues.push(Issue { path: path.to_owned(), message: format!("{} {words}{when}", label(path)), kind });
        };
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                push(&join(path, name), "is missing".into(), IssueKind::Missing);
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                self.unknown(path, at.owner, unexpected, issues);
            }
            Kind::FalseSchema if at.keyword == "additionalProperties" || at.keyword == "unevaluatedProperties" => {
                // The validator reports a closed object without fields this way.
                let sent: Vec<String> =
                    self.value.pointer(path).and_then(Value::as_object).map(|m| m.keys().cloned().collect()).unwrap_or_default();
                self.unknown(path, at.owner, &sent, issues);
            }
            Kind::FalseSchema => push(path, "is not accepted".into(), IssueKind::NotAccepted),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => self.branches(path, &at, context, issues),
            Kind::OneOfMultipleValid { .. } => {
                let words = match requirements(at.owner, at.keyword) {
                    Some(list) => format!("accept only one of these at a time: {list}"),
                    None => "must fit exactly one of the accepted forms".into(),
                };
                push(path, words, IssueKind::Constraint);
            }
            Kind::Not { schema } => {
                let named: Vec<&str> = names_in(schema.get("required"));
                if named.is_empty() {
                    push(path, "must not have this form".into(), IssueKind::NotAccepted);
                }
                for name in named {
                    push(&join(path, name), "is not accepted".into(), IssueKind::NotAccepted);
                }
            }
            Kind::MinLength { limit: 1 } => {
                let optional = self.shape.at(path).is_some_and(|shape| !shape.is_required());
                let words =
                    if optional { "must not be empty; leave the field out when it is not needed" } else { "must not be empty" };
                push(path, words.into(), IssueKind::Constraint);
            }
            Kind::UniqueItems => push(path, "must not hold the same item twice".into(), IssueKind::Constraint),
            _ => {
                let mut words = accepted(at.owner).unwrap_or_else(|| "is not accepted".into());
                if self.spells_nothing(path) {
                    words.push_str("; to send nothing, leave the field out");
                }
                push(path, words, IssueKind::Constraint);
            }
        }
    }

    /// True when the value is a word that other languages use for "nothing" (complaint AR-5).
    fn spells_nothing(&self, path: &str) -> bool {
        let word =
            |v: &Value| v.as_str().is_some_and(|s| matches!(s.trim(), "null" | "None" | "none" | "nil" | "undefined" | "NaN"));
        !path.is_empty() && self.value.pointer(path).is_some_and(|v| word(v) || v.is_null())
    }

    fn unknown(&self, path: &str, owner: &Value, sent: &[String], issues: &mut Vec<Issue>) {
        let shape = self.shape.at(path);
        let mut accepted: Vec<&str> =
            owner.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(k, _)| k.as_str()).collect();
        for name in shape.into_iter().flat_map(Shape::field_names) {
            if !accepted.contains(&name) {
                accepted.push(name);
            }
        }
        let known = |name: &str| accepted.contains(&name) && owner.get("properties").and_then(|p| p.get(name)).is_some();
        let mut unknown: Vec<&str> = sent.iter().map(String::as_str).filter(|name| !known(name)).collect();
        unknown.sort_unstable();
        let place = |name: &str| {
            let shown = if characters(name) > NAME_LIMIT { format!("{}…", prefix(name, NAME_LIMIT)) } else { name.to_owned() };
            join(path, &shown)
        };
        let (told, rest) = unknown.split_at(unknown.len().min(UNKNOWN_LIMIT));
        if let [first, others @ ..] = rest {
            let path = place(first);
            let message = format!("{} and {} more are not known fields", label(&path), others.len());
            issues.push(Issue { path, message, kind: IssueKind::Unknown });
        }
        for name in told {
            let path = place(name);
            let near = closest(name, &accepted).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            let list = if accepted.is_empty() {
                "No fields are accepted here".to_owned()
            } else {
                format!("Accepted fields: {}", quoted(&accepted))
            };
            let joint = if near.is_empty() { ". " } else { " " };
            let message = format!("{} is not a known field{near}{joint}{list}", label(&path));
            issues.push(Issue { path, message, kind: IssueKind::Unknown });
        }
    }

    fn branches(&self, path: &str, at: &Place<'_>, context: &[Vec<ValidationError<'static>>], issues: &mut Vec<Issue>) {
        if let Some(list) = requirements(at.owner, at.keyword) {
            let message = format!("{} need at least one of these: {list}{}", label(path), at.when());
            issues.push(Issue { path: path.to_owned(), message, kind: IssueKind::Constraint });
            return;
        }
        // The branch that the value means: right type here, right constants in its fields.
        let meant: Vec<&Vec<ValidationError<'static>>> = context
            .iter()
            .filter(|errors| {
                !errors.iter().any(|e| {
                    let here = e.instance_path().as_str() == path;
                    match e.kind() {
                        Kind::Type { .. } | Kind::FalseSchema => here,
                        Kind::Constant { .. } => true,
                        Kind::Enum { .. } => here,
                        _ => false,
                    }
                })
            })
            .collect();
        if let [errors] = meant.as_slice() {
            errors.iter().for_each(|e| self.explain(e, issues));
            return;
        }
        let forms: Vec<String> =
            at.owner.get(at.keyword).and_then(Value::as_array).into_iter().flatten().filter_map(accepted).collect();
        let words = if forms.is_empty() {
            "must fit one of the accepted forms".to_owned()
        } else {
            let forms: Vec<&str> = forms.iter().map(|f| f.strip_prefix("must be ").unwrap_or(f)).collect();
            format!("must be {}", forms.join(", or "))
        };
        issues.push(Issue {
            path: path.to_owned(),
            message: format!("{} {words}{}", label(path), at.when()),
            kind: IssueKind::Constraint,
        });
    }
}

/// Sorts, keeps one issue per path and message, and bounds their number. How a value should look is not told for a field that must go.
pub(crate) fn finish(mut issues: Vec<Issue>) -> Vec<Issue> {
    let barred: BTreeSet<String> = issues.iter().filter(|i| i.kind == IssueKind::NotAccepted).map(|i| i.path.clone()).collect();
    issues.retain(|i| i.kind == IssueKind::NotAccepted || !barred.contains(&i.path));
    issues.sort(); // the validator's order is not part of the contract
    issues.dedup_by(|a, b| a.path == b.path && a.message == b.message);
    let more = issues.len().saturating_sub(ISSUE_LIMIT);
    issues.truncate(ISSUE_LIMIT);
    if let Some(last) = issues.last_mut().filter(|_| more > 0) {
        last.message.push_str(&format!(" (and {more} more faults like these)"));
    }
    issues
}

/// How a message names the value at a JSON pointer.
pub(crate) fn label(pointer: &str) -> String {
    let mut name = String::new();
    for segment in pointer.split('/').skip(1) {
        let segment = pointer_name(segment);
        if !name.is_empty() && segment.bytes().all(|b| b.is_ascii_digit()) && !segment.is_empty() {
            name.push_str(&format!("[{segment}]"));
        } else {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&segment);
        }
    }
    if name.is_empty() { "the arguments".into() } else { format!("`{name}`") }
}

fn join(path: &str, name: &str) -> String {
    format!("{path}/{}", pointer_segment(name))
}

fn quoted(names: &[&str]) -> String {
    let mut list: Vec<String> = names.iter().take(LIST_LIMIT).map(|n| format!("`{n}`")).collect();
    if names.len() > LIST_LIMIT {
        list.push(format!("and {} more", names.len() - LIST_LIMIT));
    }
    list.join(", ")
}

fn names_in(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The place of a keyword in a schema: the schema that holds it, and the conditions it stands under.
struct Place<'a> {
    owner: &'a Value,
    keyword: &'a str,
    conditions: Vec<String>,
}

impl<'a> Place<'a> {
    fn of(schema: &'a Value, pointer: &'a str) -> Self {
        let mut place = Self { owner: schema, keyword: "", conditions: Vec::new() };
        let mut segments = pointer.split('/').skip(1);
        while let Some(keyword) = segments.next() {
            place.keyword = keyword;
            let Some(node) = place.owner.as_object() else { break };
            let mut next = node.get(keyword);
            let named = crate::schema::NAMED.contains(&keyword);
            if named || crate::schema::LIST.contains(&keyword) {
                let Some(raw) = segments.next() else { break };
                let name = pointer_name(raw);
                next = match next {
                    Some(Value::Array(list)) => name.parse().ok().and_then(|i: usize| list.get(i)),
                    Some(Value::Object(map)) => map.get(&name),
                    _ => None,
                };
                if keyword == "dependentSchemas" {
                    place.conditions.push(format!("`{name}` is given"));
                }
            } else if !crate::schema::ONE.contains(&keyword) {
                break; // a keyword without subschemas ends the walk
            }
            let condition = node.get("if").map(condition);
            match (keyword, condition) {
                ("then", Some(words)) => place.conditions.push(words),
                ("else", Some(words)) => place.conditions.push(format!("it is not so that {words}")),
                _ => {}
            }
            match next {
                Some(inner @ Value::Object(_)) => place.owner = inner,
                _ => break, // `false` as a schema: the keyword is what failed
            }
        }
        place
    }

    fn when(&self) -> String {
        match self.conditions.as_slice() {
            [] => String::new(),
            all => format!(" when {}", all.join(" and ")),
        }
    }
}

/// An `if` schema in words, e.g. `` `operation` is "create" ``.
fn condition(schema: &Value) -> String {
    let mut parts = Vec::new();
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        match field.as_object() {
            Some(field) if field.contains_key("const") || field.contains_key("enum") => {
                let words = accepted_constant(field).unwrap_or_default();
                parts.push(format!("`{name}` is {words}"));
            }
            Some(field) if field.contains_key("properties") => {
                parts.push(format!("in `{name}` {}", condition(&Value::Object(field.clone()))));
            }
            Some(field) => parts.push(match field.get("not").and_then(Value::as_object).and_then(accepted_constant) {
                Some(words) => format!("`{name}` is not {words}"),
                None => match accepted(&Value::Object(field.clone())) {
                    Some(words) => format!("`{name}` is {}", words.trim_start_matches("must be ")),
                    None => format!("`{name}` is given"),
                },
            }),
            None => parts.push(format!("`{name}` is given")),
        }
    }
    for name in names_in(schema.get("required")) {
        let told = schema.get("properties").and_then(|p| p.get(name)).is_some();
        if !told {
            parts.push(format!("`{name}` is given"));
        }
    }
    for name in names_in(schema.get("not").and_then(|n| n.get("required"))) {
        parts.push(format!("`{name}` is not given"));
    }
    for (key, joint) in [("allOf", " and "), ("anyOf", " or "), ("oneOf", " or ")] {
        if let Some(list) = schema.get(key).and_then(Value::as_array) {
            parts.push(list.iter().map(condition).collect::<Vec<_>>().join(joint));
        }
    }
    if parts.is_empty() { "the tool's condition holds".into() } else { parts.join(" and ") }
}

/// `a`, or `b` and `c`: branches that only ask for fields.
fn requirements(owner: &Value, keyword: &str) -> Option<String> {
    let branches = owner.get(keyword)?.as_array()?;
    let mut list = Vec::new();
    for branch in branches {
        let map = branch.as_object()?;
        if !map.keys().all(|k| matches!(k.as_str(), "required" | "description" | "not")) {
            return None;
        }
        let names = names_in(map.get("required"));
        if names.is_empty() {
            continue;
        }
        list.push(names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" and "));
    }
    (!list.is_empty()).then(|| list.join(", "))
}

fn accepted_constant(node: &Map<String, Value>) -> Option<String> {
    if let Some(value) = node.get("const") {
        return Some(text(value));
    }
    let values = node.get("enum")?.as_array()?;
    let mut list: Vec<String> = values.iter().take(LIST_LIMIT).map(text).collect();
    if values.len() > LIST_LIMIT {
        list.push(format!("and {} more", values.len() - LIST_LIMIT));
    }
    Some(if list.len() == 1 { list.remove(0) } else { format!("one of {}", list.join(", ")) })
}

/// What a schema takes, in words that follow a field name: "must be an integer from 1 to 250".
pub(crate) fn accepted(schema: &Value) -> Option<String> {
    let node = schema.as_object()?;
    if let Some(words) = accepted_constant(node) {
        return Some(format!("must be {words}"));
    }
    let names: Vec<&str> = match node.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        // A branch that only refines: its keywords tell what it is about.
        _ => ["string", "number", "array"]
            .into_iter()
            .filter(|t| constraint_keys(t).iter().any(|k| node.contains_key(*k)))
            .take(1)
            .collect(),
    };
    let forms: Vec<String> = names.iter().map(|name| form(name, node)).collect();
    (!forms.is_empty()).then(|| format!("must be {}", forms.join(" or ")))
}

fn constraint_keys(name: &str) -> &'static [&'static str] {
    match name {
        "string" => &["minLength", "maxLength", "pattern", "format"],
        "number" => &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
        _ => &["minItems", "maxItems"],
    }
}

fn form(name: &str, node: &Map<String, Value>) -> String {
    match name {
        "integer" => format!("an integer{}", range(node)),
        "number" => format!("a number{}", range(node)),
        "string" => {
            let mut words = match (count(node, "minLength"), count(node, "maxLength")) {
                (Some(min), Some(max)) if min == max => format!("a string of {min} characters"),
                (Some(min), Some(max)) => format!("a string of {min} to {max} characters"),
                (Some(1), None) => "a string that is not empty".to_owned(),
                (Some(min), None) => format!("a string of at least {min} characters"),
                (None, Some(max)) => format!("a string of at most {max} characters"),
                (None, None) => "a string".to_owned(),
            };
            if let Some(pattern) = node.get("pattern").and_then(Value::as_str) {
                words.push_str(&format!(" that matches the pattern {pattern}"));
            }
            if let Some(format) = node.get("format").and_then(Value::as_str) {
                words.push_str(&format!(" in the form of a {format}"));
            }
            words
        }
        "array" => {
            let kind = node.get("items").and_then(Value::as_object).and_then(|items| items.get("type")).and_then(Value::as_str);
            let what = kind.map_or_else(|| "items".to_owned(), |k| format!("{k} items"));
            match (count(node, "minItems"), count(node, "maxItems")) {
                (Some(min), Some(max)) => format!("an array of {min} to {max} {what}"),
                (Some(min), None) => format!("an array of at least {min} {what}"),
                (None, Some(max)) => format!("an array of at most {max} {what}"),
                (None, None) => format!("an array of {what}"),
            }
        }
        "object" => match names_in(node.get("required")).as_slice() {
            [] => "an object".into(),
            names => format!("an object with {}", quoted(names)),
        },
        "boolean" => "true or false".into(),
        "null" => "null".into(),
        other => format!("a {other}"),
    }
}

fn count(node: &Map<String, Value>, key: &str) -> Option<u64> {
    node.get(key).and_then(Value::as_u64)
}

fn range(node: &Map<String, Value>) -> String {
    let bound = |key: &str| {
        node.get(key).and_then(Value::as_number).map(|n| match n.as_f64() {
            Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 1e15 => format!("{f:.0}"),
            _ => n.to_string(),
        })
    };
    let mut words = match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) => format!(" of at least {min}"),
        (None, Some(max)) => format!(" of at most {max}"),
        (None, None) => String::new(),
    };
    for (key, word) in [("exclusiveMinimum", "above"), ("exclusiveMaximum", "below"), ("multipleOf", "in multiples of")] {
        if let Some(limit) = bound(key) {
            words.push_str(&format!(" {word} {limit}"));
        }
    }
    words
}

/// The accepted name that a wrong one was probably meant to be.
pub(crate) fn closest<'a>(wrong: &str, accepted: &[&'a str]) -> Option<&'a str> {
    if characters(wrong) > NAME_LIMIT {
        return None;
    }
    let bare = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<Vec<char>>();
    let wrong = bare(wrong);
    let scored = accepted.iter().filter_map(|name| {
        let candidate = bare(name);
        let inside = wrong.len() >= 4 && candidate.len() >= 4 && (contains(&candidate, &wrong) || contains(&wrong, &candidate));
        let distance = if inside { 1 } else { distance(&wrong, &candidate) };
        (distance <= candidate.len() / 3).then_some((distance, candidate.len().abs_diff(wrong.len()), *name))
    });
    scored.min().map(|(_, _, name)| name)
}

fn contains(long: &[char], short: &[char]) -> bool {
    long.windows(short.len()).any(|w| w == short)
}

/// Edit distance between two short names.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
