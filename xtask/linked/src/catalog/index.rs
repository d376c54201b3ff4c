//! The index of the catalog, for a person and for a machine.

use super::Entry;
use super::tool_page::{cell, effect, family};
use crate::names;
use serde_json::{Value, json};
use traderharness_contract::ErrorCode;

/// The index page, without preamble.
pub(crate) fn markdown(entries: &[Entry]) -> String {
    let mut page = format!(
        "# Tool catalog, contract v5\n\n{} tools. Each page has the arguments, the success payload, an example and the failures of one \
         tool; [codes.md](codes.md) has every error code and the tools that give it, [versions.md](versions.md) every behaviour flag and the failures of earlier contract versions, [rules.md](../rules.md) every dated market rule with its \
         source, [gate.md](../gate.md) the order gate, \
         [traderharness_api.md](traderharness_api.md) what code in `execute_code` can ask for, `catalog.json` all tools and codes for machines. One tool in a terminal: \
         `traderharness tools NAME`.\n",
        entries.len()
    );
    let mut group = None;
    for entry in entries {
        let spec = entry.definition.spec;
        if group != Some(spec.group) {
            group = Some(spec.group);
            page.push_str(&format!("\n## {}\n\n| tool | effect | what it does |\n|---|---|---|\n", names::heading(spec.group)));
        }
        let opt_in = if spec.opt_in { " Only for cards that name it." } else { "" };
        let text = cell(first_sentence(spec.description));
        page.push_str(&format!("| [{0}]({0}.md) | {1} | {text}{opt_in} |\n", spec.name, effect(spec.effect)));
    }
    page
}

/// Text up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |at| &text[..=at])
}

/// The catalog as JSON, with the schemas as a model gets them.
pub(crate) fn json(entries: &[Entry]) -> anyhow::Result<String> {
    let codes = ErrorCode::ALL.iter().map(|code| {
        json!({
            "code": code.as_str(),
            "family": family(code.family()),
            "retryable": code.retryable(),
            "http_status": code.http_status(),
            "meaning": code.meaning(),
        })
    });
    let catalog = json!({
        "written_by": super::COMMAND,
        "contract": "v5",
        "tools": entries.iter().map(tool).collect::<anyhow::Result<Vec<Value>>>()?,
        "codes": codes.collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&catalog)? + "\n")
}

fn tool(entry: &Entry) -> anyhow::Result<Value> {
    let definition = &entry.definition;
    let spec = definition.spec;
    Ok(json!({
        "name": spec.name,
        "group": spec.group,
        "effect": spec.effect,
        "repeat": spec.repeat,
        "opt_in": spec.opt_in,
        "description": definition.description,
        "input_schema": definition.input_schema,
        "output_schema": definition.output_schema,
        "example": serde_json::from_str::<Value>(spec.example)?,
        "errors": spec.errors,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_index_links_each_tool_under_its_group() {
        let page = markdown(&[sample::entry()]);
        assert!(page.contains("## Market\n\n| tool | effect | what it does |\n|---|---|---|\n"), "{page}");
        assert!(
            page.contains("| [get_sample](get_sample.md) | read | Returns a sample. Only for cards that name it. |"),
            "{page}"
        );
    }

    #[test]
    fn the_json_holds_schemas_example_and_every_code() {
        let text = json(&[sample::entry()]).expect("renders");
        let catalog: Value = serde_json::from_str(&text).expect("valid JSON");
        assert_eq!(catalog["codes"].as_array().map(Vec::len), Some(ErrorCode::ALL.len()));
        let tool = &catalog["tools"][0];
        assert_eq!(tool["input_schema"]["properties"]["days"]["maximum"], 250);
        assert_eq!(tool["example"]["code"], "000001");
        assert_eq!(tool["errors"], json!(["unknown_security"]));
    }
}
