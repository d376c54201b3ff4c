//! Turns a derived JSON Schema into the one a model gets: no private keywords, closed objects, no advertised nulls, one key order.
//!
//! Works on schemas by structure: a property that happens to be called `title` or `format` is never mistaken for a keyword.
//! Private keywords, all removed from what is published: `x-kind`, `x-key-kind` (masking), `x-order` (budget), `x-nullable`
//! (an optional argument for which null means something other than absent).

pub(crate) mod shape;

use serde_json::{Map, Value};

/// Which side of a tool a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// What the agent sends.
    Input,
    /// What the tool answers.
    Output,
    /// What a person writes by hand: closed like arguments, but a text may be empty.
    Document,
}

/// Keywords that hold one schema.
pub(crate) const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "contains",
    "if",
    "then",
    "else",
    "not",
];
/// Keywords that hold a list of schemas.
pub(crate) const LIST: &[&str] = &["prefixItems", "allOf", "anyOf", "oneOf"];
/// Keywords that hold schemas by name.
pub(crate) const NAMED: &[&str] = &["properties", "patternProperties", "dependentSchemas", "$defs"];

/// Order of the keywords in a published schema; others follow, sorted.
const ORDER: &[&str] = &[
    "description",
    "type",
    "const",
    "enum",
    "default",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "prefixItems",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "dependentRequired",
    "dependentSchemas",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "not",
];

/// Calls `f` on every schema directly inside `node`.
pub(crate) fn children<'a>(node: &'a Map<String, Value>, mut f: impl FnMut(&'a str, Option<&'a str>, &'a Value)) {
    for (key, value) in node {
        let key = key.as_str();
        if ONE.contains(&key) {
            f(key, None, value);
        } else if LIST.contains(&key) {
            value.as_array().into_iter().flatten().for_each(|sub| f(key, None, sub));
        } else if NAMED.contains(&key) {
            value.as_object().into_iter().flatten().for_each(|(name, sub)| f(key, Some(name), sub));
        }
    }
}

/// True when `node` is met by values of this type, as far as its own `type` says.
pub(crate) fn says_type(node: &Map<String, Value>, name: &str) -> bool {
    match node.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(many)) => many.iter().any(|t| t == name),
        _ => false,
    }
}

/// Makes a derived schema publishable.
pub(crate) fn tidy(schema: &mut Value, side: Side) {
    visit(schema, side, Closing::Here);
}

/// Whether an object schema met on the walk stands for a whole value, so that it must be closed, or refines another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    Here,
    Never,
}

fn visit(schema: &mut Value, side: Side, closing: Closing) {
    let Value::Object(map) = schema else { return };
    if side != Side::Output {
        drop_nulls(map);
    }
    // Branches are whole values only where the node itself describes no fields (an enum of objects).
    let branch = if closing == Closing::Here && !map.contains_key("properties") { Closing::Here } else { Closing::Never };
    for (key, value) in map.iter_mut() {
        let key = key.as_str();
        let inside = match key {
            "allOf" | "if" | "then" | "else" | "not" | "dependentSchemas" => Closing::Never,
            "anyOf" | "oneOf" => branch,
            _ => closing,
        };
        if ONE.contains(&key) {
            visit(value, side, inside);
        } else if LIST.contains(&key) {
            value.as_array_mut().into_iter().flatten().for_each(|sub| visit(sub, side, inside));
        } else if NAMED.contains(&key) {
            value.as_object_mut().into_iter().flatten().for_each(|(_, sub)| visit(sub, side, inside));
        }
    }
    gather_constants(map);
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = unwrap_lines(text);
    }
    if side == Side::Input && closing == Closing::Here {
        ask_for_text(map);
    }
    if side != Side::Output && closing == Closing::Here {
        close(map);
    }
    for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
        // A bound of a decimal field comes as `0.0`; `0` says the same.
        if let Some(whole) = map.get(key).and_then(Value::as_f64).filter(|f| f.fract() == 0.0 && f.abs() < 1e15)
            && map[key].is_f64()
        {
            map.insert(key.to_owned(), (whole as i64).into());
        }
    }
    let numeric = says_type(map, "integer") || says_type(map, "number");
    map.retain(|key, value| {
        let dropped =
            key == "$schema" || (key == "title" && value.is_string()) || (key == "format" && numeric) || key.starts_with("x-");
        !dropped
    });
    sort_keys(map);
}

/// An `Option` argument is optional, not nullable: null is not advertised (complaint AR-5). `x-nullable` keeps it.
fn drop_nulls(map: &mut Map<String, Value>) {
    let required: Vec<String> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    for (name, field) in map.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let Some(field) = field.as_object_mut() else { continue };
        if required.contains(name) || field.get("x-nullable") == Some(&Value::Bool(true)) {
            continue;
        }
        without_null(field);
    }
}

/// Takes null out of what a schema node takes: null says that an optional value is not there, and leaving it out says so too. What takes
/// nothing but null stays as it is.
pub fn without_null(node: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = node.get_mut("type")
        && types.len() > 1
    {
        types.retain(|t| t != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            node.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(values)) = node.get_mut("enum")
        && values.len() > 1
    {
        values.retain(|v| !v.is_null());
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = node.get_mut(key) else { continue };
        if branches.len() > 1 {
            branches.retain(|b| b.get("type") != Some(&Value::from("null")) && b.get("const") != Some(&Value::Null));
        }
        if branches.len() == 1
            && let Some(Value::Object(only)) = branches.pop()
        {
            node.shift_remove(key);
            for (inner, value) in only {
                // The node's own words win over those of its type.
                node.entry(inner).or_insert(value);
            }
        }
    }
    if node.get("default") == Some(&Value::Null) {
        node.shift_remove("default");
    }
}

/// `oneOf` of described constants becomes one `enum`; what each value means moves into the description.
fn gather_constants(map: &mut Map<String, Value>) {
    for key in ["oneOf", "anyOf"] {
        let Some(branches) = map.get(key).and_then(Value::as_array) else { continue };
        let mut values = Vec::new();
        let mut meanings = Vec::new();
        let constants = branches.iter().all(|branch| {
            let Some(branch) = branch.as_object() else { return false };
            let known = branch.keys().all(|k| matches!(k.as_str(), "type" | "const" | "enum" | "description"));
            let own: Vec<&Value> = match (branch.get("const"), branch.get("enum").and_then(Value::as_array)) {
                (Some(one), None) => vec![one],
                (None, Some(many)) => many.iter().collect(),
                _ => return false,
            };
            if let (Some(text), [Value::String(one)]) = (branch.get("description").and_then(Value::as_str), own.as_slice()) {
                meanings.push(format!("{one} = {}", text.trim_end_matches('.')));
            }
            values.extend(own.into_iter().cloned());
            known && says_type(branch, "string")
        });
        if !constants || map.contains_key("enum") || map.contains_key("type") {
            continue;
        }
        map.shift_remove(key);
        if !meanings.is_empty() {
            let words = map.get("description").and_then(Value::as_str).unwrap_or_default();
            let text = format!("{words}{}Values: {}.", if words.is_empty() { "" } else { " " }, meanings.join("; "));
            map.insert("description".into(), text.into());
        }
        map.insert("type".into(), "string".into());
        map.insert("enum".into(), values.into());
    }
}

/// A string argument is not empty unless its schema or its default says that it may be (complaint AR-6).
fn ask_for_text(map: &mut Map<String, Value>) {
    let stated = ["minLength", "enum", "const", "pattern", "format"].iter().any(|k| map.contains_key(*k));
    if says_type(map, "string") && !stated && map.get("default") != Some(&Value::from("")) {
        map.insert("minLength".into(), 1.into());
    }
}

fn close(map: &mut Map<String, Value>) {
    let object = says_type(map, "object") || map.contains_key("properties");
    if !object || map.contains_key("additionalProperties") || map.contains_key("unevaluatedProperties") {
        return;
    }
    let declared = |name: &str| map.get("properties").and_then(|p| p.get(name)).is_some();
    let mut foreign = false;
    branch_fields(map, &mut |name| foreign |= !declared(name));
    if !foreign && !map.contains_key("properties") && (map.contains_key("anyOf") || map.contains_key("oneOf")) {
        return;
    }
    // Fields that only branches declare are unknown to `additionalProperties`.
    map.insert(if foreign { "unevaluatedProperties" } else { "additionalProperties" }.into(), false.into());
}

/// Names of the fields that branches of a node declare.
fn branch_fields<'a>(map: &'a Map<String, Value>, f: &mut dyn FnMut(&'a str)) {
    children(map, |key, _, sub| {
        if matches!(key, "allOf" | "anyOf" | "oneOf" | "then" | "else" | "dependentSchemas")
            && let Some(sub) = sub.as_object()
        {
            for (name, field) in sub.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if field != &Value::Bool(false) {
                    f(name);
                }
            }
            branch_fields(sub, f);
        }
    });
}

/// Lines that a doc comment wrapped become one; paragraphs stay apart.
fn unwrap_lines(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|p| !p.is_empty());
    paragraphs.collect::<Vec<_>>().join("\n")
}

fn sort_keys(map: &mut Map<String, Value>) {
    let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
    let rank = |key: &str| ORDER.iter().position(|k| *k == key).unwrap_or(ORDER.len());
    entries.sort_by(|a, b| rank(&a.0).cmp(&rank(&b.0)).then_with(|| a.0.cmp(&b.0)));
    map.extend(entries);
}
