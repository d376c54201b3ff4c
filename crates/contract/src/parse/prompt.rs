//! The other way round: telling a model about the tools, giving it results, and writing calls in a style. What is printed here as an
//! example is read back by the parser of the same style (complaint JR-7).

use super::CallStyle;
use crate::definition::EXAMPLE;
use crate::{json, parse_arguments};
use serde_json::{Map, Value, json};

/// The part of the system prompt that describes the tools and the syntax; `None` natively, where tools go out beside the messages, and
/// without tools. `tools` are definitions in OpenAI shape.
pub fn describe(style: CallStyle, tools: &[Value]) -> Option<String> {
    if style == CallStyle::Openai || tools.is_empty() {
        return None;
    }
    let mut out = String::from("# Available tools\n");
    for function in tools.iter().map(function) {
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let description = function.get("description").and_then(Value::as_str).unwrap_or_default();
        out.push_str(&format!("\n## {name}\n\n{}\n", signature(style, name, function)));
        if !description.is_empty() {
            out.push_str(&format!("\n{}\n", description.trim()));
        }
        let listed = arguments(function);
        if !listed.is_empty() {
            out.push_str(&format!("\nArguments:\n{}\n", listed.join("\n")));
        }
    }
    let (name, args) = example(tools);
    let shown = write_call(style, &name, &args);
    out.push_str(&match style {
        CallStyle::Text => format!(
            "\n# Calling a tool\n\nStart a line with `Action:` and write the call on it. The line begins with that word, without bullets or \
             bold marks:\n\n{shown}\n\nEvery argument is given as name=value. Texts stand in double quotes, with \\n for a line end and \\\" \
             for a quote; lists and objects are written as in JSON. Several such lines are several calls, made in that order. Without such a \
             line no tool is called."
        ),
        _ => format!(
            "\n# Calling a tool\n\nWrite one JSON object in a fence, with the name of the tool and its parameters:\n\n{shown}\n\nSeveral \
             fenced blocks are several calls, made in that order. The JSON must be complete and strict: double quotes, no comments, no \
             trailing commas. Without such a block no tool is called."
        ),
    });
    Some(out)
}

fn function(tool: &Value) -> &Value {
    tool.get("function").unwrap_or(tool)
}

fn properties(function: &Value) -> impl Iterator<Item = (&String, &Value, bool)> {
    let parameters = function.get("parameters");
    let required = parameters.and_then(|p| p.get("required")).and_then(Value::as_array);
    let properties = parameters.and_then(|p| p.get("properties")).and_then(Value::as_object);
    properties.into_iter().flatten().map(move |(name, schema)| {
        let needed = required.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)));
        (name, schema, needed)
    })
}

/// `get_kline(stock_code: string, days: integer = 60)`; what may be left out without a default ends in `?`.
fn signature(style: CallStyle, name: &str, function: &Value) -> String {
    let parts: Vec<String> = properties(function)
        .map(|(name, schema, needed)| {
            let kind = type_name(schema);
            match schema.get("default") {
                Some(Value::Null) | None => format!("{name}{}: {kind}", if needed { "" } else { "?" }),
                Some(default) => format!("{name}: {kind} = {}", literal(style, default)),
            }
        })
        .collect();
    format!("{name}({})", parts.join(", "))
}

/// One line per argument; fields of objects under the path to them.
fn arguments(function: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    list(function, "", 0, &mut lines);
    lines
}

fn list(function: &Value, path: &str, depth: usize, lines: &mut Vec<String>) {
    for (name, schema, needed) in properties(function) {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let needed = if needed { "required" } else { "optional" };
        let line = format!("- {path}{name} ({}, {needed}): {description}", type_name(schema));
        lines.push(line.trim_end_matches([':', ' ']).to_owned());
        let (inner, path) = match schema.get("items") {
            Some(items) => (items, format!("{path}{name}[].")),
            None => (schema, format!("{path}{name}.")),
        };
        if depth < 4 {
            list(&json!({ "parameters": inner }), &path, depth + 1, lines);
        }
    }
}

fn type_name(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return options.iter().map(json::text).collect::<Vec<_>>().join(" | ");
    }
    if let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array()) {
        return choices.iter().map(type_name).collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" => match schema.get("items").map(type_name) {
            Some(items) if items != "any" => format!("array of {items}"),
            _ => "array".to_owned(),
        },
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => "any".to_owned(),
    }
}

/// A call of the first tool that needs arguments: the example its description gives, else a value of each declared type.
fn example(tools: &[Value]) -> (String, Map<String, Value>) {
    let needs = |function: &&Value| properties(function).any(|(_, _, needed)| needed);
    let chosen = tools.iter().map(function).find(needs).or_else(|| tools.first().map(function));
    let name = chosen.and_then(|f| f.get("name")).and_then(Value::as_str).unwrap_or("tool_name").to_owned();
    let description = chosen.and_then(|f| f.get("description")).and_then(Value::as_str).unwrap_or_default();
    let given = description.lines().rev().find_map(|line| parse_arguments(line.strip_prefix(EXAMPLE)?).ok());
    if let Some(args) = given.filter(|args| !args.is_empty()) {
        return (name, args);
    }
    let args = chosen.into_iter().flat_map(properties).filter(|(_, _, needed)| *needed);
    (name, args.map(|(name, schema, _)| (name.clone(), sample(schema, 0))).collect())
}

fn sample(schema: &Value, depth: usize) -> Value {
    let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|all| all.first()).cloned();
    let stated = schema.get("const").cloned().or_else(|| first("enum")).or_else(|| first("examples"));
    if let Some(value) = stated.or_else(|| schema.get("default").filter(|value| !value.is_null()).cloned()) {
        return value;
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("array") if depth < 4 => json!([sample(schema.get("items").unwrap_or(&Value::Null), depth + 1)]),
        Some("object") if depth < 4 => {
            let wrapped = json!({ "parameters": schema });
            let needed = properties(&wrapped).filter(|(_, _, needed)| *needed);
            Value::Object(needed.map(|(name, schema, _)| (name.clone(), sample(schema, depth + 1))).collect())
        }
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("..."),
    }
}

/// Puts a prompt part into a list of messages: behind the text of the first message when that is a system message, else in a new one in
/// front. A list that holds the part already is left as it is, so applying it twice changes nothing (spec/seeds.md A6.8).
pub fn place(prompt: &str, messages: &mut Vec<Value>) {
    let system = |message: &Value| matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"));
    let Some(first) = messages.first_mut().filter(|message| system(message)) else {
        messages.insert(0, json!({"role": "system", "content": prompt}));
        return;
    };
    match first.get_mut("content") {
        Some(Value::String(text)) if text.contains(prompt) => {}
        Some(Value::String(text)) if text.trim().is_empty() => *text = prompt.to_owned(),
        Some(Value::String(text)) => text.push_str(&format!("\n\n{prompt}")),
        Some(Value::Array(parts)) => {
            let held =
                parts.iter().any(|part| part.get("text").and_then(Value::as_str).is_some_and(|text| text.contains(prompt)));
            if !held {
                parts.push(json!({"type": "text", "text": prompt}));
            }
        }
        _ => first["content"] = prompt.into(),
    }
}

/// One answered call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered<'a> {
    /// Id the call came under, or was given.
    pub id: &'a str,
    /// Tool name.
    pub name: &'a str,
    /// Arguments as the model sent them.
    pub arguments: &'a str,
    /// Result text.
    pub text: &'a str,
}

/// The messages that give results to the model, in the order of the calls: natively one tool message per call, in the text styles one
/// user message with a headed section per call. No call, no message.
pub fn results(style: CallStyle, answered: &[Answered<'_>]) -> Vec<Value> {
    if style == CallStyle::Openai {
        let message = |a: &Answered<'_>| json!({"role": "tool", "tool_call_id": a.id, "name": a.name, "content": a.text});
        return answered.iter().map(message).collect();
    }
    if answered.is_empty() {
        return Vec::new();
    }
    let section = |a: &Answered<'_>| {
        // One line, whatever the model wrote.
        let arguments = a.arguments.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("## Result of {}({arguments})\n\n{}", a.name, a.text)
    };
    vec![json!({"role": "user", "content": answered.iter().map(section).collect::<Vec<_>>().join("\n\n")})]
}

/// One call as a model of this style would write it; the parser of the style reads it back unchanged. Natively: the provider's object.
pub fn write_call(style: CallStyle, name: &str, args: &Map<String, Value>) -> String {
    let object = Value::Object(args.clone());
    match style {
        CallStyle::Openai => {
            json!({"type": "function", "function": {"name": name, "arguments": json::text(&object)}}).to_string()
        }
        CallStyle::Json => format!("```json\n{}\n```", json::text(&json!({"tool": name, "params": object}))),
        CallStyle::Text => {
            // A key in another spelling would be lower-cased, another shape would not be a key.
            let plain =
                |key: &String| !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            if args.keys().all(plain) {
                let parts: Vec<String> =
                    args.iter().map(|(key, value)| format!("{key}={}", literal(CallStyle::Text, value))).collect();
                format!("Action: {name}({})", parts.join(", "))
            } else {
                format!("Action: {name}({})", json::text(&object))
            }
        }
    }
}

/// A value as the style writes it: Python's words in the text style, JSON elsewhere.
fn literal(style: CallStyle, value: &Value) -> String {
    if style != CallStyle::Text {
        return json::text(value);
    }
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(|item| literal(style, item)).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let parts = map.iter().map(|(key, item)| format!("{}: {}", Value::from(key.as_str()), literal(style, item)));
            format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
