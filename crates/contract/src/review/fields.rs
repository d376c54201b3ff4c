//! A JSON Schema as rows of a table: one row per field, nested fields by path (`bars[].close`). Knows no tool.

use serde_json::Value;

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// Path from the object: `filters[].min`; `*` stands for any key.
    pub(super) path: String,
    /// JSON types.
    pub(super) kind: String,
    /// Bounds, pattern, or the accepted values.
    pub(super) range: String,
    /// Default as JSON, empty when there is none.
    pub(super) default: String,
    /// True when the object must have it.
    pub(super) required: bool,
    /// Text of the field.
    pub(super) description: String,
}

/// Rows of an object schema without `$ref`, in schema order, each parent before its children.
pub(super) fn fields(schema: &Value) -> Vec<Field> {
    let mut rows = Vec::new();
    object(schema, "", &mut rows);
    rows
}

fn object(schema: &Value, at: &str, rows: &mut Vec<Field>) {
    let required: Vec<&str> = list(schema, "required").filter_map(Value::as_str).collect();
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        rows.push(row(field, path.clone(), required.contains(&name.as_str())));
        inside(field, &path, rows);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        let path = format!("{at}{}*", if at.is_empty() { "" } else { "." });
        rows.push(row(values, path.clone(), false));
        inside(values, &path, rows);
    }
    branches(schema).for_each(|branch| object(branch, at, rows));
}

/// Rows of what is in a field: its own object, its items, its alternatives.
fn inside(field: &Value, path: &str, rows: &mut Vec<Field>) {
    if field.get("properties").is_some() || field.get("additionalProperties").is_some_and(Value::is_object) {
        object(field, path, rows);
        return;
    }
    if let Some(items) = field.get("items") {
        inside(items, &format!("{path}[]"), rows);
    }
    branches(field).for_each(|branch| inside(branch, path, rows));
}

fn row(field: &Value, path: String, required: bool) -> Field {
    Field {
        path,
        kind: kinds(field).join(" or "),
        range: ranges(field).join("; "),
        default: field.get("default").map(Value::to_string).unwrap_or_default(),
        required,
        description: field.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    list(schema, "anyOf").chain(list(schema, "oneOf")).chain(list(schema, "allOf"))
}

fn kinds(field: &Value) -> Vec<String> {
    let mut kinds: Vec<String> = match field.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => vec![],
    };
    if let (true, Some(items)) = (kinds.iter().any(|kind| kind == "array"), field.get("items")) {
        let of = kinds_of_items(items);
        for kind in kinds.iter_mut().filter(|kind| *kind == "array") {
            *kind = format!("array of {of}");
        }
    }
    if kinds.is_empty() {
        let values = list(field, "enum").chain(field.get("const"));
        let named = values.map(|value| match value {
            Value::String(_) => "string",
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        });
        kinds.extend(named.map(str::to_owned));
        kinds.extend(branches(field).flat_map(kinds_recursive));
    }
    unique(kinds)
}

fn kinds_recursive(field: &Value) -> Vec<String> {
    kinds(field)
}

fn kinds_of_items(items: &Value) -> String {
    let kinds = kinds(items);
    if kinds.is_empty() { "anything".to_owned() } else { kinds.join(" or ") }
}

fn ranges(field: &Value) -> Vec<String> {
    let mut ranges = Vec::new();
    let number = |key: &str| field.get(key).filter(|v| v.is_number()).map(shown);
    match (number("minimum"), number("maximum")) {
        (Some(low), Some(high)) => ranges.push(format!("{low} to {high}")),
        (Some(low), None) => ranges.push(format!("at least {low}")),
        (None, Some(high)) => ranges.push(format!("at most {high}")),
        (None, None) => {}
    }
    ranges.extend(number("exclusiveMinimum").map(|low| format!("above {low}")));
    ranges.extend(number("exclusiveMaximum").map(|high| format!("below {high}")));
    ranges.extend(number("multipleOf").map(|step| format!("multiple of {step}")));
    for (unit, low, high) in
        [("character", "minLength", "maxLength"), ("item", "minItems", "maxItems"), ("key", "minProperties", "maxProperties")]
    {
        match (number(low), number(high)) {
            (Some(low), Some(high)) if low == high => ranges.push(format!("exactly {}", counted(&low, unit))),
            (Some(low), Some(high)) => ranges.push(format!("{low} to {}", counted(&high, unit))),
            (Some(low), None) => ranges.push(format!("at least {}", counted(&low, unit))),
            (None, Some(high)) => ranges.push(format!("at most {}", counted(&high, unit))),
            (None, None) => {}
        }
    }
    if field.get("uniqueItems") == Some(&Value::Bool(true)) {
        ranges.push("no item twice".to_owned());
    }
    ranges.extend(field.get("pattern").and_then(Value::as_str).map(|pattern| format!("matches `{pattern}`")));
    let values: Vec<String> = list(field, "enum").chain(field.get("const")).map(Value::to_string).collect();
    let described: Vec<String> = list(field, "oneOf").filter_map(|branch| branch.get("const")).map(Value::to_string).collect();
    if !(values.is_empty() && described.is_empty()) {
        ranges.push(format!("one of {}", unique(values.into_iter().chain(described).collect()).join(", ")));
    }
    let others = branches(field).filter(|branch| branch.get("const").is_none() && branch.get("properties").is_none());
    ranges.extend(others.flat_map(ranges_recursive));
    if let Some(items) = field.get("items").filter(|items| items.get("properties").is_none()) {
        ranges.extend(ranges_recursive(items).into_iter().map(|range| format!("each {range}")));
    }
    unique(ranges)
}

fn ranges_recursive(field: &Value) -> Vec<String> {
    ranges(field)
}

fn counted(count: &str, unit: &str) -> String {
    if count == "1" { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

/// A bound as a person writes it: `1` and not `1.0`.
fn shown(number: &Value) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn unique(mut list: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    list.retain(|item| seen.insert(item.clone()));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, expected: &[(&str, &str, &str, &str, bool)]) {
        let found = fields(&schema);
        let shown: Vec<_> =
            found.iter().map(|f| (f.path.as_str(), f.kind.as_str(), f.range.as_str(), f.default.as_str(), f.required)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn plain_fields_show_type_bounds_default_and_need() {
        check(
            json!({"required": ["code"], "properties": {
                "code": {"type": "string", "pattern": "^[0-9]{6}$"},
                "days": {"type": "integer", "minimum": 1, "maximum": 250.0, "default": 60},
                "note": {"type": ["string", "null"], "minLength": 1, "maxLength": 80},
                "share": {"type": "number", "exclusiveMinimum": 0},
            }}),
            &[
                ("code", "string", "matches `^[0-9]{6}$`", "", true),
                ("days", "integer", "1 to 250", "60", false),
                ("note", "string or null", "1 to 80 characters", "", false),
                ("share", "number", "above 0", "", false),
            ],
        );
    }

    #[test]
    fn nested_fields_get_a_path() {
        check(
            json!({"properties": {
                "bars": {"type": "array", "maxItems": 20, "items": {"type": "object", "required": ["close"], "properties": {"close": {"type": "number"}}}},
                "by_code": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "uniqueItems": true},
            }}),
            &[
                ("bars", "array of object", "at most 20 items", "", false),
                ("bars[].close", "number", "", "", true),
                ("by_code", "object", "", "", false),
                ("by_code.*", "integer", "at least 0", "", false),
                ("tags", "array of string", "no item twice; each at most 8 characters", "", false),
            ],
        );
    }

    #[test]
    fn alternatives_show_every_type_and_value() {
        check(
            json!({"properties": {
                "side": {"type": "string", "enum": ["buy", "sell"]},
                "detail": {"oneOf": [{"const": "short", "type": "string"}, {"const": "full", "type": "string"}]},
                "plan": {"anyOf": [{"type": "object", "properties": {"stop": {"type": "number"}}}, {"type": "null"}]},
            }}),
            &[
                ("side", "string", "one of \"buy\", \"sell\"", "", false),
                ("detail", "string", "one of \"short\", \"full\"", "", false),
                ("plan", "object or null", "", "", false),
                ("plan.stop", "number", "", "", false),
            ],
        );
    }

    #[test]
    fn a_schema_without_fields_has_no_row() {
        check(json!({"type": "object", "additionalProperties": false}), &[]);
        check(json!(true), &[]);
    }
}
