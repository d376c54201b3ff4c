//! A contract as text that people review: the page of the catalog, and the text that snapshots hold. Says what the contract says and
//! adds no word of its own. A crate with tools of its own holds them against committed texts the same way.

mod fields;

use crate::{Definition, Effect, ErrorCode, ErrorFamily, Group, Repeat, json as style};
use fields::{Field, fields};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Everything a model or a reader gets of one tool, as one text for a snapshot test.
pub fn snapshot(definition: &Definition) -> String {
    let spec = definition.spec;
    let codes: Vec<&str> = spec.errors.iter().map(|c| c.as_str()).collect();
    format!(
        "{}: {}, {}\n\n{}\n\n--- input ---\n{}\n\n--- output ---\n{}\n\n--- errors ---\n{}\n",
        spec.name,
        effect(spec.effect),
        style::text(&serde_json::to_value(spec.repeat).unwrap_or_default()).trim_matches('"'),
        definition.description,
        pretty(&definition.input_schema),
        pretty(&definition.output_schema),
        codes.join("\n")
    )
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The catalog page of one tool, in Markdown.
pub fn page(definition: &Definition) -> String {
    page_with(definition, &[])
}

/// The catalog page of one tool, with what each named card switch makes of its input schema.
pub fn page_with(definition: &Definition, switched: &[(&str, &Definition)]) -> String {
    let mut page = String::new();
    // Writing into a string cannot fail.
    _ = write_page(&mut page, definition, switched);
    page
}

/// Heading of a group.
pub const fn heading(group: Group) -> &'static str {
    match group {
        Group::Market => "Market",
        Group::Narrative => "Narrative",
        Group::Screening => "Screening",
        Group::Fundamentals => "Fundamentals",
        Group::Text => "Text",
        Group::Portfolio => "Portfolio",
        Group::Execution => "Execution",
        Group::Watchlist => "Watchlist",
        Group::Memory => "Memory",
        Group::Sandbox => "Sandbox",
        Group::Control => "Control",
        Group::External => "External",
    }
}

fn write_page(page: &mut String, definition: &Definition, switched: &[(&str, &Definition)]) -> std::fmt::Result {
    let spec = definition.spec;
    write!(page, "# {}\n\n{}\n", spec.name, spec.description)?;
    for note in spec.notes {
        write!(page, "\n- {note}")?;
    }
    let newline = if spec.notes.is_empty() { "" } else { "\n" };
    write!(page, "{newline}\n| group | effect | repeated call | offered |\n|---|---|---|---|\n")?;
    let offered = if spec.opt_in { "only to cards that name it" } else { "by default" };
    writeln!(page, "| {} | {} | {} | {offered} |", heading(spec.group), effect(spec.effect), repeat(spec.repeat))?;

    page.push_str("\n## Arguments\n\n");
    table(page, &fields(&definition.input_schema), true)?;
    rules(page, &definition.input_schema)?;
    for (switch, other) in switched {
        writeln!(page, "\n### With `{switch}`\n\nA card with this switch changes the schema here:")?;
        json(page, &difference(&definition.input_schema, &other.input_schema))?;
    }

    page.push_str("\nExample:\n");
    json(page, &serde_json::from_str(spec.example).unwrap_or_default())?;

    writeln!(page, "\n## Success\n\n{}\n", spec.result_summary)?;
    table(page, &fields(&definition.output_schema), false)?;

    page.push_str("\n## Failures of this tool\n\nBeside the [codes of every call](codes.md).\n\n");
    failures(page, spec.errors)
}

/// Wire word of an effect with what it means.
pub const fn effect(effect: Effect) -> &'static str {
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
pub const fn family(family: ErrorFamily) -> &'static str {
    match family {
        ErrorFamily::Arguments => "arguments",
        ErrorFamily::Refused => "refused",
        ErrorFamily::Environment => "environment",
    }
}

/// Text inside a table cell.
pub fn cell(text: &str) -> String {
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
fn rules(page: &mut String, schema: &Value) -> std::fmt::Result {
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

fn json(page: &mut String, value: &Value) -> std::fmt::Result {
    writeln!(page, "\n```json\n{}\n```", pretty(value))
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
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_names_only_what_changed() {
        let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "gone": true});
        let after = json!({"a": 1, "b": {"c": 1, "d": 3}, "new": []});
        assert_eq!(difference(&before, &after), json!({"b": {"d": 3}, "new": [], "gone": null}));
    }
}
