//! Schemas from outside, made portable (spec/seeds.md B2.9): references inlined, nullable unions reduced to what is not null, no private
//! or useless keywords, an object on top. A field that happens to be called `title` or `items` is never taken for a keyword.

use serde_json::{Map, Value, json};
use traderharness_contract::without_null;

/// References followed inside each other.
const DEPTH: usize = 16;
/// Schemas in one document; what is beyond takes any value.
const NODES: usize = 4_000;
/// Text of a field that has none.
const NO_DESCRIPTION: &str = "(no description provided)";

const ONE: &[&str] = &[
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
const LIST: &[&str] = &["prefixItems", "allOf", "anyOf", "oneOf"];
const NAMED: &[&str] = &["properties", "patternProperties", "dependentSchemas"];
/// Keywords that mean nothing once references are inlined, or that only a remote reads.
const DROPPED: &[&str] =
    &["$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$ref", "$dynamicRef", "$dynamicAnchor", "nullable"];

/// A schema that stands alone. A top level that is no object becomes an object without fields.
pub fn portable_schema(schema: &Value) -> Value {
    let mut walk = Walk { root: schema, nodes: 0 };
    let portable = walk.node(schema, 0);
    match portable {
        Value::Object(mut map) if map.get("type") == Some(&json!("object")) || map.contains_key("properties") => {
            map.insert("type".into(), "object".into());
            map.entry("properties").or_insert_with(|| json!({}));
            Value::Object(map)
        }
        _ => json!({ "type": "object", "properties": {} }),
    }
}

struct Walk<'a> {
    root: &'a Value,
    nodes: usize,
}

impl Walk<'_> {
    fn node(&mut self, schema: &Value, depth: usize) -> Value {
        self.nodes += 1;
        let Some(node) = schema.as_object() else { return schema.clone() };
        if self.nodes > NODES || depth > 4 * DEPTH {
            return json!({});
        }
        let mut node = node.clone();
        // A reference that leads nowhere, outside or round in a circle takes any value: a plug-in checks its own arguments too.
        let mut hops = 0;
        while let Some(target) =
            node.get("$ref").and_then(Value::as_str).map(|r| r.strip_prefix('#').and_then(|p| self.root.pointer(p)))
        {
            node.shift_remove("$ref");
            hops += 1;
            if let Some(Value::Object(target)) = target
                && hops <= DEPTH
            {
                for (key, value) in target {
                    node.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        let mut out = Map::new();
        for (key, value) in node {
            let name = key.as_str();
            let dropped = DROPPED.contains(&name) || name.starts_with("x-") || (name == "title" && value.is_string());
            if dropped {
                continue;
            }
            let value = match &value {
                _ if ONE.contains(&name) => self.node(&value, depth + 1),
                Value::Array(list) if LIST.contains(&name) => list.iter().map(|s| self.node(s, depth + 1)).collect(),
                Value::Object(map) if NAMED.contains(&name) => {
                    Value::Object(map.iter().map(|(k, s)| (k.clone(), self.node(s, depth + 1))).collect())
                }
                _ => value,
            };
            out.insert(key, value);
        }
        without_null(&mut out);
        Value::Object(out)
    }
}

/// Gives every field without a description the words that it has none; returns how many there were (spec/seeds.md A1.4).
pub fn describe_fields(schema: &mut Value) -> usize {
    let Some(node) = schema.as_object_mut() else { return 0 };
    let mut filled = 0;
    for (key, value) in node.iter_mut() {
        let name = key.as_str();
        if name == "properties" {
            for field in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                filled += describe_fields(field);
                if let Some(field) = field.as_object_mut()
                    && field.get("description").and_then(Value::as_str).is_none_or(|text| text.trim().is_empty())
                {
                    field.insert("description".into(), NO_DESCRIPTION.into());
                    filled += 1;
                }
            }
        } else if ONE.contains(&name) {
            filled += describe_fields(value);
        } else if LIST.contains(&name) {
            filled += value.as_array_mut().into_iter().flatten().map(describe_fields).sum::<usize>();
        }
    }
    filled
}

/// An arguments object that most likely fits: required fields with their default, first accepted value, or the smallest one.
pub(super) fn example(schema: &Value) -> Value {
    sample(schema, 0)
}

fn sample(schema: &Value, depth: usize) -> Value {
    for key in ["default", "const"] {
        if let Some(value) = schema.get(key) {
            return value.clone();
        }
    }
    for key in ["examples", "enum"] {
        if let Some(first) = schema.get(key).and_then(Value::as_array).and_then(|list| list.first()) {
            return first.clone();
        }
    }
    if let Some(first) = ["anyOf", "oneOf"].iter().find_map(|k| schema.get(*k)?.as_array()?.first()) {
        return sample(first, depth + 1);
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    };
    let number = |key: &str| schema.get(key).and_then(Value::as_i64);
    match kind {
        "object" if depth <= 8 => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let field = |name: &str| schema.get("properties").and_then(|p| p.get(name)).map(|s| sample(s, depth + 1));
            Value::Object(required.filter_map(|name| Some((name.to_owned(), field(name)?))).collect())
        }
        "object" => json!({}),
        "array" => {
            let count = usize::try_from(number("minItems").unwrap_or(0).clamp(0, 8)).unwrap_or(0);
            let item = schema.get("items").map_or(Value::Null, |items| sample(items, depth + 1));
            Value::Array(vec![item; count])
        }
        "integer" | "number" => {
            let above = number("exclusiveMinimum").map(|m| m.saturating_add(1));
            let low = number("minimum").or(above).unwrap_or(1);
            json!(number("maximum").map_or(low, |max| low.min(max)))
        }
        "boolean" => json!(true),
        _ => {
            let length = usize::try_from(number("minLength").unwrap_or(4).clamp(1, 64)).unwrap_or(4);
            json!("text".chars().cycle().take(length).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, portable: Value) {
        assert_eq!(portable_schema(&schema), portable, "{schema}");
        assert_eq!(portable_schema(&portable), portable, "portable twice: {portable}");
    }

    // spec/seeds.md B2.9
    #[test]
    fn nullable_unions_are_what_is_not_null_and_the_top_is_an_object() {
        let field = |schema: Value, becomes: Value| {
            check(
                json!({"type": "object", "properties": {"a": schema}}),
                json!({"type": "object", "properties": {"a": becomes}}),
            );
        };
        field(json!({"type": ["string", "null"], "default": null}), json!({"type": "string"}));
        field(
            json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "title": "A"}),
            json!({"type": "integer", "minimum": 1}),
        );
        field(
            json!({"oneOf": [{"type": "string"}, {"type": "integer"}, {"const": null}]}),
            json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        );
        field(json!({"enum": ["x", null]}), json!({"enum": ["x"]}));
        field(json!({"type": "null"}), json!({"type": "null"}));
        field(json!({"type": "string", "x-kind": "code", "nullable": true}), json!({"type": "string"}));
        for top in
            [json!(true), json!(null), json!({"type": "string"}), json!({"anyOf": [{"type": "string"}]}), json!([1]), json!({})]
        {
            check(top, json!({"type": "object", "properties": {}}));
        }
    }

    #[test]
    fn references_are_inlined_and_a_circle_ends() {
        check(
            json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/P", "description": "Own."}}, "$defs": {"P": {"type": "string", "description": "Theirs."}}}),
            json!({"type": "object", "properties": {"p": {"description": "Own.", "type": "string"}}}),
        );
        check(
            json!({"type": "object", "properties": {"p": {"$ref": "https://example.com/s.json"}}}),
            json!({"type": "object", "properties": {"p": {}}}),
        );
        let circle = json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": "object", "properties": {"a": {"$ref": "#/$defs/P"}, "b": {"$ref": "#/$defs/P"}}}}});
        let portable = portable_schema(&circle);
        assert!(!portable.to_string().contains("$ref"));
        let hops = json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"$ref": "#/$defs/P"}}});
        check(hops, json!({"type": "object", "properties": {"p": {}}}));
    }

    #[test]
    fn fields_named_like_keywords_stay_fields() {
        let schema = json!({"type": "object", "properties": {"title": {"type": "string"}, "items": {"type": "string"}, "x-y": {"type": "string"}}});
        check(schema.clone(), schema);
    }

    #[test]
    fn a_field_without_words_says_so() {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"description": "B.", "type": "array", "items": {"type": "object", "properties": {"c": {}}}}}});
        assert_eq!(describe_fields(&mut schema), 2);
        assert_eq!(schema["properties"]["a"]["description"], NO_DESCRIPTION);
        assert_eq!(describe_fields(&mut schema), 0);
    }

    #[test]
    fn an_example_is_made_of_what_is_required() {
        let schema = json!({"type": "object", "required": ["a", "n", "l", "e"], "properties": {
            "a": {"type": "string", "minLength": 6}, "n": {"type": "integer", "minimum": 3}, "l": {"type": "array", "minItems": 2, "items": {"type": "boolean"}},
            "e": {"enum": ["x", "y"]}, "o": {"type": "string"}
        }});
        assert_eq!(example(&schema), json!({"a": "textte", "n": 3, "l": [true, true], "e": "x"}));
    }
}
