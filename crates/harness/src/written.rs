//! Reading files that people write: cards and manifests, as JSON or YAML, into one JSON value. Strict: what a forgiving reader would drop
//! or guess (a key that comes twice, a tag, a number that is none) is an error with its place.

use serde_json::{Map, Number, Value};
use serde_yaml_ng::Value as Yaml;
use traderharness_contract::arguments::{ARGUMENTS_LIMIT, parse_arguments};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML 1.2, one document.
    Yaml,
}

impl Format {
    /// The format that a file name ends with: `.json`, `.yaml` or `.yml`, in any case.
    pub fn of_name(name: &str) -> Option<Self> {
        let end = name.rsplit_once('.')?.1.to_ascii_lowercase();
        match end.as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// A text that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", place(*.line, *.column))]
pub struct TextFault {
    /// What is wrong.
    pub what: String,
    /// Line, from 1; 0 where there is no place.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

fn place(line: usize, column: usize) -> String {
    if line == 0 { String::new() } else { format!(" at line {line} column {column}") }
}

/// One object out of a text.
///
/// # Errors
/// [`TextFault`] with what and where.
pub fn read(text: &str, format: Format) -> Result<Value, TextFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let nowhere = |what: String| TextFault { what, line: 0, column: 0 };
    if text.len() > ARGUMENTS_LIMIT {
        return Err(nowhere(format!("the text has more than {ARGUMENTS_LIMIT} bytes")));
    }
    match format {
        Format::Json if text.trim().is_empty() => Err(nowhere("the text is empty".into())),
        Format::Json => parse_arguments(text).map(Value::Object).map_err(|fault| {
            let before: String = text.chars().take(fault.position).collect();
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            let what = fault
                .kind
                .to_string()
                .replace("the arguments are a JSON value but not an object", "the text is JSON but no object");
            TextFault { what, line: before.matches('\n').count() + 1, column }
        }),
        Format::Yaml => {
            if is_deep(text) {
                return Err(nowhere(format!("brackets are nested deeper than {DEPTH}")));
            }
            let yaml: Yaml = serde_yaml_ng::from_str(text).map_err(|fault| {
                let (line, column) = fault.location().map_or((0, 0), |l| (l.line(), l.column()));
                let what = fault.to_string();
                // Its own place is at the end of its words.
                TextFault { what: what.split(" at line ").next().unwrap_or_default().to_owned(), line, column }
            })?;
            match convert(yaml, "", 0).map_err(nowhere)? {
                Value::Object(map) => Ok(Value::Object(map)),
                Value::Null => Err(nowhere("the text is empty".into())),
                _ => Err(nowhere("the text is YAML but no mapping".into())),
            }
        }
    }
}

/// Arrays and mappings inside each other.
const DEPTH: usize = 64;

/// Unclosed brackets of a text, those in quotes and comments included: no card has so many, and a reader of YAML that meets them as
/// real ones takes the square of their number in time.
const UNCLOSED: usize = 1_000;

/// Whether brackets are nested too deeply: the reader of YAML goes down once per bracket. Where a quote of YAML begins and ends takes
/// a whole reader to say, so a quote that is none must not hide what follows it.
fn is_deep(text: &str) -> bool {
    let (mut depth, mut unclosed, mut quoted, mut escaped) = (0_usize, 0_usize, false, false);
    text.bytes().any(|byte| {
        match byte {
            b'[' | b'{' => unclosed += 1,
            b']' | b'}' => unclosed = unclosed.saturating_sub(1),
            _ => {}
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEPTH || unclosed > UNCLOSED
    })
}

fn convert(yaml: Yaml, at: &str, depth: usize) -> Result<Value, String> {
    let here = || if at.is_empty() { "the document".to_owned() } else { format!("`{at}`") };
    if depth > DEPTH {
        return Err(format!("{} is nested too deeply", here()));
    }
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(flag) => Value::Bool(flag),
        Yaml::String(text) => Value::String(text),
        Yaml::Number(number) => {
            let number = match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(n), _, _) => Some(Number::from(n)),
                (_, Some(n), _) => Some(Number::from(n)),
                (_, _, Some(n)) => Number::from_f64(n),
                _ => None,
            };
            Value::Number(number.ok_or_else(|| format!("{} is no finite number", here()))?)
        }
        Yaml::Sequence(items) => {
            let items = items.into_iter().enumerate().map(|(i, item)| convert(item, &format!("{at}[{i}]"), depth + 1));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Yaml::Mapping(mapping) => {
            let mut map = Map::new();
            for (key, item) in mapping {
                let Yaml::String(key) = key else {
                    return Err(format!("a key of {} is no text; put it in quotes", here()));
                };
                let inside = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                let value = convert(item, &inside, depth + 1)?;
                map.insert(key, value);
            }
            Value::Object(map)
        }
        Yaml::Tagged(tagged) => return Err(format!("{} has the tag {}; tags are not used here", here(), tagged.tag)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, format: Format, expected: Value) {
        assert_eq!(read(text, format), Ok(expected), "{text}");
    }

    fn fails(text: &str, format: Format, says: &str) {
        let fault = read(text, format).expect_err(text).to_string();
        assert!(fault.contains(says), "{text}: {fault}");
    }

    #[test]
    fn both_forms_give_one_value() {
        let value = json!({"id": "a", "n": 1, "f": 2.5, "list": ["x", null, true], "in": {"k": "v"}});
        check(&value.to_string(), Format::Json, value.clone());
        check("id: a\nn: 1\nf: 2.5\nlist: [x, null, true]\nin:\n  k: v\n", Format::Yaml, value);
        check("\u{feff}{\"id\": \"a\"}", Format::Json, json!({"id": "a"}));
        check("a: &x 1\nb: *x\n", Format::Yaml, json!({"a": 1, "b": 1}));
    }

    #[test]
    fn a_fault_has_its_place() {
        fails("{\n  \"a\": 1,\n  \"a\": 2\n}", Format::Json, "twice in one object at line 3");
        fails("{\n  \"a\": }", Format::Json, "at line 2 column 8");
        fails("", Format::Json, "empty");
        fails("[1]", Format::Json, "no object");
        fails("a: 1\na: 2\n", Format::Yaml, "duplicate");
        fails("a: [1\n", Format::Yaml, "line 2");
        fails("a: .nan\n", Format::Yaml, "`a` is no finite number");
        fails("in:\n  - 1: x\n", Format::Yaml, "`in[0]` is no text");
        fails("a: !secret x\n", Format::Yaml, "tag");
        fails("- a\n", Format::Yaml, "no mapping");
        fails(&format!("a: {}", "[".repeat(100_000)), Format::Yaml, "deeper than 64");
        for quote in ["# \"\n", "b: '\"'\n", "b: |\n  \"\n"] {
            fails(&format!("{quote}a: {}", "[".repeat(200_000)), Format::Yaml, "deeper than 64");
        }
        fails("# nothing\n", Format::Yaml, "empty");
        fails("a: 1\n---\nb: 2\n", Format::Yaml, "more than one document");
    }

    #[test]
    fn aliases_that_multiply_are_refused() {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (new, old) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f"), ("h", "g"), ("i", "h")] {
            text.push_str(&format!("{new}: &{new} [{}]\n", vec![format!("*{old}"); 9].join(", ")));
        }
        fails(&text, Format::Yaml, "repetition limit");
    }
}
