//! `traderharness tools`: the contract, for people and as JSON.

use crate::args::ToolsOptions;
use crate::fault::{Class, Fault, Outcome};
use crate::report::print;
use crate::run::read_card;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;
use traderharness_contract::{Definition, Policy};
use traderharness_harness::toolbox::definitions;

pub(crate) fn tools(options: &ToolsOptions) -> Outcome {
    let policy = match &options.card {
        Some(path) => read_card(path)?.policy(true),
        None => Policy { masked_codes: true, ..Policy::default() },
    };
    let all = definitions(&policy);
    let Some(name) = &options.name else {
        if options.json {
            print(&pretty(&Value::Array(all.iter().map(machine).collect())));
        } else {
            print(&list(&all));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(definition) = all.iter().find(|d| d.spec.name == name) else {
        let mut names: Vec<&str> = all.iter().map(|d| d.spec.name).collect();
        names.sort_unstable();
        return Err(
            Fault::text(Class::Input, format!("there is no tool named `{name}`")).hint(format!("tools: {}", names.join(", ")))
        );
    };
    print(&if options.json { pretty(&machine(definition)) } else { human(definition) });
    Ok(ExitCode::SUCCESS)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn machine(d: &Definition) -> Value {
    json!({
        "name": d.spec.name,
        "group": d.spec.group,
        "effect": d.spec.effect,
        "repeat": d.spec.repeat,
        "opt_in": d.spec.opt_in,
        "description": d.description,
        "input_schema": d.input_schema,
        "output_schema": d.output_schema,
        "errors": d.spec.errors,
    })
}

fn list(all: &[Definition]) -> String {
    let mut text = format!("{} tools, contract v5. `traderharness tools NAME` shows one.\n", all.len());
    let mut group = None;
    for d in all {
        if group != Some(d.spec.group) {
            group = Some(d.spec.group);
            let label = serde_json::to_value(d.spec.group).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
            let _ = write!(text, "\n{label}\n");
        }
        let first = d.spec.description.split_inclusive(". ").next().unwrap_or_default().trim();
        let _ = writeln!(text, "  {:<32} {first}", d.spec.name);
    }
    text.trim_end().to_owned()
}

fn human(d: &Definition) -> String {
    let mut text = format!("{}\n\n{}\n\nArguments\n", d.spec.name, d.description);
    fields(&mut text, &d.input_schema, 1);
    text.push_str("\nResult\n");
    fields(&mut text, &d.output_schema, 1);
    text.trim_end().to_owned()
}

/// One line per field: name, type, whether required, description.
fn fields(text: &mut String, schema: &Value, depth: usize) {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        if depth == 1 {
            text.push_str("  none\n");
        }
        return;
    };
    for (name, field) in properties {
        let kind = kind_of(field);
        let mark = if required.contains(&name.as_str()) { "" } else { ", optional" };
        let description = field.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
        let _ = writeln!(text, "{}{name} ({kind}{mark}): {description}", "  ".repeat(depth));
        for nested in [field, field.get("items").unwrap_or(&Value::Null)]
            .into_iter()
            .chain(field.get("anyOf").and_then(Value::as_array).into_iter().flatten())
        {
            if nested.get("properties").is_some() {
                fields(text, nested, depth + 1);
            }
        }
    }
}

fn kind_of(field: &Value) -> String {
    if let Some(values) = field.get("enum").and_then(Value::as_array) {
        return values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | ");
    }
    match field.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            format!("array of {}", field.get("items").map_or_else(|| "any".to_owned(), kind_of))
        }
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => match field.get("anyOf").or_else(|| field.get("oneOf")).and_then(Value::as_array) {
            Some(branches) => branches.iter().map(kind_of).collect::<Vec<_>>().join(" or "),
            None if field.get("const").is_some() => field["const"].to_string(),
            None => "any".to_owned(),
        },
    }
}
