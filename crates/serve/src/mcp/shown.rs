//! Schemas as MCP clients can use them.
//!
//! Clients hand a tool's input schema to a model's API as it is. Two of the widest refuse `allOf`, `anyOf`, `oneOf`, `not` and conditions
//! at the top of it, and some lose what stands behind `$ref`. Here references are put in place, private keywords go, and conditions at
//! the top become sentences of the description. The house checks every call against the whole schema all the same.

use serde_json::{Map, Value};

/// How deep references are followed. A schema that refers to itself keeps its innermost reference as "anything".
const DEEPEST: usize = 24;
/// Keywords that no model's API takes at the top of an input schema.
const TOP: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum"];
/// Keywords of a schema document that mean nothing inside a tool.
const DOCUMENT: [&str; 4] = ["$schema", "$defs", "definitions", "$id"];

/// An input schema for clients, and sentences for what they cannot be shown.
pub(super) fn input(schema: &Value) -> (Map<String, Value>, Vec<String>) {
    let mut shown = object(plain(schema, schema, 0));
    let mut sentences = Vec::new();
    for part in shown.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        sentences.extend(condition(part));
    }
    if shown.contains_key("if") {
        sentences.extend(condition(&Value::Object(shown.clone())));
    }
    for keyword in TOP {
        shown.shift_remove(keyword);
    }
    shown.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    (shown, sentences)
}

/// An output schema for clients. Every client takes conditions here; none takes a root that is no object. No client shows it to a model,
/// and it is sent anew at every decision point, so its words stay in the manifest.
pub(super) fn output(schema: &Value) -> Map<String, Value> {
    let mut shown = plain(schema, schema, 0);
    without_words(&mut shown);
    object(shown)
}

fn without_words(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.shift_remove("description");
            for (keyword, value) in map.iter_mut() {
                match (keyword.as_str(), value) {
                    ("properties" | "patternProperties" | "dependentSchemas", Value::Object(fields)) => {
                        fields.values_mut().for_each(without_words);
                    }
                    ("const" | "enum" | "default" | "examples" | "required", _) => {}
                    (_, value) => without_words(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_words),
        _ => {}
    }
}

fn object(schema: Value) -> Map<String, Value> {
    let mut map = match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    map.insert("type".into(), "object".into());
    map
}

/// A schema without references, document keywords and private keywords.
fn plain(schema: &Value, root: &Value, depth: usize) -> Value {
    match schema {
        Value::Object(map) => {
            if let Some(target) = map.get("$ref").and_then(Value::as_str) {
                let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
                let Some(found) = found.filter(|_| depth < DEEPEST) else { return Value::Bool(true) };
                let mut target = plain(found, root, depth + 1);
                if let Value::Object(target) = &mut target {
                    for (keyword, value) in map.iter().filter(|(keyword, _)| *keyword != "$ref") {
                        target.insert(keyword.clone(), plain(value, root, depth + 1));
                    }
                }
                return target;
            }
            let kept = map.iter().filter(|(keyword, _)| !DOCUMENT.contains(&keyword.as_str()) && !keyword.starts_with("x-"));
            Value::Object(kept.map(|(keyword, value)| (keyword.clone(), inner(keyword, value, root, depth))).collect())
        }
        other => other.clone(),
    }
}

/// The value of a keyword: names of properties are no keywords, and neither is what stands in data.
fn inner(keyword: &str, value: &Value, root: &Value, depth: usize) -> Value {
    match (keyword, value) {
        ("properties" | "patternProperties" | "dependentSchemas", Value::Object(map)) => {
            Value::Object(map.iter().map(|(name, schema)| (name.clone(), plain(schema, root, depth))).collect())
        }
        ("const" | "enum" | "default" | "examples" | "required", _) => value.clone(),
        (_, Value::Array(items)) => Value::Array(items.iter().map(|item| plain(item, root, depth)).collect()),
        _ => plain(value, root, depth),
    }
}

/// A condition in words, where it is one of the simple kind: fields with given values make others required.
fn condition(schema: &Value) -> Option<String> {
    let fields = schema.pointer("/if/properties")?.as_object()?;
    let mut when = Vec::new();
    for (name, value) in fields {
        when.push(format!("{name} is {}", value.get("const")?));
    }
    let names = |schema: &Value| -> Option<Vec<String>> {
        Some(schema.get("required")?.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    };
    let then = schema.get("then")?;
    let mut parts = Vec::new();
    if let Some(required) = names(then).filter(|names| !names.is_empty()) {
        parts.push(format!("{} required", listed(&required, "and")));
    }
    let choices: Vec<String> =
        then.get("anyOf").and_then(Value::as_array).into_iter().flatten().filter_map(names).flatten().collect();
    if !choices.is_empty() {
        parts.push(format!("at least one of {} required", choices.join(", ")));
    }
    (!parts.is_empty()).then(|| format!("When {}: {}.", when.join(" and "), parts.join("; ")))
}

fn listed(names: &[String], word: &str) -> String {
    match names {
        [one] => format!("{one} is"),
        [rest @ .., last] => format!("{} {word} {last} are", rest.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_put_in_place_and_private_keywords_go() {
        let schema = json!({
            "$schema": "x", "type": "object",
            "properties": {"x-price": {"$ref": "#/$defs/P", "description": "here"}, "$ref": {"type": "string"}, "description": {"const": {"description": 1}}},
            "$defs": {"P": {"type": "number", "x-kind": "code", "description": "there"}},
        });
        let shown = Value::Object(output(&schema));
        let expected = json!({
            "type": "object",
            "properties": {"x-price": {"type": "number"}, "$ref": {"type": "string"}, "description": {"const": {"description": 1}}},
        });
        assert_eq!(shown, expected);
        assert_eq!(input(&schema).0["properties"]["x-price"]["description"], "here");
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
        let text = Value::Object(output(&schema)).to_string();
        assert!(!text.contains("$ref") && text.len() < 10_000);
        let nowhere = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}});
        assert_eq!(output(&nowhere)["properties"]["a"], true);
    }

    #[test]
    fn conditions_at_the_top_become_sentences() {
        let schema = json!({
            "type": "object",
            "properties": {"operation": {"enum": ["create", "cancel"]}},
            "allOf": [
                {"if": {"properties": {"operation": {"const": "create"}}}, "then": {"required": ["a", "b"]}},
                {"if": {"properties": {"operation": {"const": "cancel"}}}, "then": {"required": ["c"], "anyOf": [{"required": ["d"]}, {"required": ["e"]}]}},
                {"if": {"properties": {"operation": {"minLength": 1}}}, "then": {"required": ["c"]}},
            ],
        });
        let (shown, sentences) = input(&schema);
        assert_eq!(shown.keys().collect::<Vec<_>>(), ["type", "properties"]);
        assert_eq!(shown["properties"]["operation"]["enum"], json!(["create", "cancel"]));
        assert_eq!(
            sentences,
            [
                r#"When operation is "create": a and b are required."#,
                r#"When operation is "cancel": c is required; at least one of d, e required."#,
            ]
        );
        let (empty, _) = input(&json!(true));
        assert_eq!(Value::Object(empty), json!({"type": "object", "properties": {}}));
    }
}
