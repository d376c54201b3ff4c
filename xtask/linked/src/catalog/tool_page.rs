//! The page of one tool. Says what the contract says; adds no word of its own on what a tool does.

use super::Entry;
use super::fields::{Field, fields};
use crate::names;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use traderharness_contract::{Effect, ErrorCode, ErrorFamily, Repeat};

/// Renders the page, without preamble.
pub(crate) fn render(entry: &Entry) -> anyhow::Result<String> {
    let definition = &entry.definition;
    let spec = definition.spec;
    let mut page = format!("# {}\n\n{}\n", spec.name, spec.description);
    for note in spec.notes {
        write!(page, "\n- {note}")?;
    }
    let newline = if spec.notes.is_empty() { "" } else { "\n" };
    write!(page, "{newline}\n| group | effect | repeated call | offered |\n|---|---|---|---|\n")?;
    let offered = if spec.opt_in { "only to cards that name it" } else { "by default" };
    writeln!(page, "| {} | {} | {} | {offered} |", names::heading(spec.group), effect(spec.effect), repeat(spec.repeat))?;

    page.push_str("\n## Arguments\n\n");
    table(&mut page, &fields(&definition.input_schema), true)?;
    rules(&mut page, &definition.input_schema)?;
    for (switch, other) in &entry.switched {
        writeln!(page, "\n### With `{switch}`\n\nA card with this switch changes the schema here:")?;
        json(&mut page, &difference(&definition.input_schema, &other.input_schema))?;
    }

    page.push_str("\nExample:\n");
    json(&mut page, &serde_json::from_str(spec.example)?)?;

    writeln!(page, "\n## Success\n\n{}\n", spec.result_summary)?;
    table(&mut page, &fields(&definition.output_schema), false)?;

    page.push_str("\n## Failures of this tool\n\nBeside the [codes of every call](codes.md).\n\n");
    failures(&mut page, spec.errors)?;
    Ok(page)
}

/// Wire word of an effect with what it means.
pub(crate) const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Compute => "compute",
        Effect::Mutation => "mutation",
        Effect::Financial => "financial",
    }
}

const fn repeat(repeat: Repeat) -> &'static str {
    match repeat {
        Repeat::Free => "runs again",
        Repeat::OncePerMessage => "once per assistant message",
        Repeat::OncePerRun => "once per run",
    }
}

/// Wire word of a family.
pub(crate) const fn family(family: ErrorFamily) -> &'static str {
    match family {
        ErrorFamily::Arguments => "arguments",
        ErrorFamily::Refused => "refused",
        ErrorFamily::Environment => "environment",
    }
}

/// Text inside a table cell.
pub(crate) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn table(page: &mut String, fields: &[Field], input: bool) -> std::fmt::Result {
    if fields.is_empty() {
        return writeln!(page, "None.");
    }
    if input {
        page.push_str("| field | type | range | default | required | meaning |\n|---|---|---|---|---|---|\n");
    } else {
        page.push_str("| field | type | range | always there | meaning |\n|---|---|---|---|---|\n");
    }
    for field in fields {
        write!(page, "| `{}` | {} | {} |", field.path, cell(&field.kind), cell(&field.range))?;
        if input {
            write!(page, " {} |", cell(&field.default))?;
        }
        writeln!(page, " {} | {} |", if field.required { "yes" } else { "" }, cell(&field.description))?;
    }
    Ok(())
}

/// Requirements across fields, as the schema has them.
fn rules(page: &mut String, schema: &Value) -> anyhow::Result<()> {
    const ACROSS: &[&str] =
        &["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "minProperties"];
    let Some(map) = schema.as_object() else { return Ok(()) };
    let found: Map<String, Value> =
        map.iter().filter(|(key, _)| ACROSS.contains(&key.as_str())).map(|(key, value)| (key.clone(), value.clone())).collect();
    if !found.is_empty() {
        page.push_str("\nRules across fields:\n");
        json(page, &found.into())?;
    }
    Ok(())
}

fn json(page: &mut String, value: &Value) -> anyhow::Result<()> {
    writeln!(page, "\n```json\n{}\n```", serde_json::to_string_pretty(value)?)?;
    Ok(())
}

/// The parts of `after` that `before` does not have, by key; a key that is gone is null.
fn difference(before: &Value, after: &Value) -> Value {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else { return after.clone() };
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    let mut map: Map<String, Value> = changed
        .map(|(key, value)| (key.clone(), old.get(key).map_or_else(|| value.clone(), |old| difference(old, value))))
        .collect();
    map.extend(old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null)));
    map.into()
}

fn failures(page: &mut String, codes: &[ErrorCode]) -> std::fmt::Result {
    if codes.is_empty() {
        return writeln!(page, "None.");
    }
    page.push_str("| code | family | retryable | meaning |\n|---|---|---|---|\n");
    for code in codes {
        let retryable = if code.retryable() { "yes" } else { "no" };
        writeln!(page, "| `{code}` | {} | {retryable} | {} |", family(code.family()), cell(code.meaning()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_has_every_part_of_the_contract() {
        let page = render(&sample::entry()).expect("the sample renders");
        for part in [
            "# get_sample\n\nReturns a sample. It is of no use.\n\n- Rows are ordered by day.\n",
            "| Market | read | runs again | only to cards that name it |",
            "| `code` | string | ",
            " | yes | Complete visible code. |",
            "| `days` | integer | 1 to 250 | 60 |  | Sessions to return. |",
            "Rows \\| columns to keep.",
            "| `filters[].min` | number |  |  | yes | Lower bound, CNY. |",
            "### With `require_structured_plan`",
            "\"required\": [\n        \"reason\"",
            "{\n  \"code\": \"000001\"\n}",
            "| `price` | number or null |",
            "| `unknown_security` | arguments | yes |",
        ] {
            assert!(page.contains(part), "lacks {part:?}:\n{page}");
        }
        assert!(!page.contains("\n\n\n"), "no double empty line:\n{page}");
    }

    #[test]
    fn a_difference_names_only_what_changed() {
        let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "gone": true});
        let after = json!({"a": 1, "b": {"c": 1, "d": 3}, "new": []});
        assert_eq!(difference(&before, &after), json!({"b": {"d": 3}, "new": [], "gone": null}));
    }
}
