//! Contracts as snapshots: one small file per tool, so that a change shows in a pull request as a readable diff.

use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, Policy};
use traderharness_harness::toolbox::definitions;

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("../snapshots");
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("a JSON value")
}

#[test]
fn every_contract_is_as_reviewed() {
    for d in definitions(&Policy { masked_codes: true, ..Policy::default() }) {
        let text = format!(
            "{}\n\n--- input ---\n{}\n\n--- output ---\n{}\n\n--- errors ---\n{}",
            d.description,
            pretty(&d.input_schema),
            pretty(&d.output_schema),
            d.spec.errors.iter().map(|c| c.as_str()).collect::<Vec<_>>().join("\n")
        );
        snapshot(&format!("tool-{}", d.spec.name), &text);
    }
}

#[test]
fn refinements_by_card_are_as_reviewed() {
    let plain = definitions(&Policy::default());
    let strict = definitions(&Policy { require_structured_plan: true, require_decision_card: true, masked_codes: true });
    for (plain, strict) in plain.iter().zip(&strict) {
        if plain.input_schema != strict.input_schema {
            snapshot(&format!("strict-{}", strict.spec.name), &pretty(&strict.input_schema));
        }
    }
}

#[test]
fn the_code_table_is_as_reviewed() {
    let rows: Vec<String> = ErrorCode::ALL
        .iter()
        .map(|c| {
            format!(
                "{:<48} {:<12} {:<13} {}",
                c.as_str(),
                format!("{:?}", c.family()),
                if c.retryable() { "retryable" } else { "final" },
                c.http_status()
            )
        })
        .collect();
    snapshot("error-codes", &rows.join("\n"));
}

#[test]
fn the_size_of_all_definitions_is_as_reviewed() {
    let all = definitions(&Policy { masked_codes: true, ..Policy::default() });
    let total: usize = all.iter().map(|d| d.to_openai().to_string().chars().count()).sum();
    // Rounded up, so that a word more is no diff and a page more is.
    snapshot("definitions-size", &pretty(&json!({ "tools": all.len(), "thousand_characters": total.div_ceil(1_000) })));
}

#[test]
fn no_contract_has_a_finding() {
    let findings: Vec<String> = definitions(&Policy { masked_codes: true, ..Policy::default() })
        .iter()
        .flat_map(|d| traderharness_contract::audit::audit(d).into_iter().map(move |f| format!("{}: {f}", d.spec.name)))
        .collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Lists whose description says `oldest first` and that the size budget would cut at the wrong end.
fn wrong_end(schema: &Value, path: &str, keeps_newest: &dyn Fn(&str) -> bool, found: &mut Vec<String>) {
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let inside = format!("{path}/{name}");
        let said = field.get("description").and_then(Value::as_str).unwrap_or_default();
        if field.get("items").is_some() && said.contains("oldest first") && !keeps_newest(&inside) {
            found.push(inside.clone());
        }
        wrong_end(field, &inside, keeps_newest, found);
        if let Some(items) = field.get("items") {
            wrong_end(items, &format!("{inside}/*"), keeps_newest, found);
        }
    }
}

// seeds B9.6: a result that is too long never loses its newest rows
#[test]
fn lists_that_run_from_oldest_to_newest_keep_their_newest_when_cut() {
    let mut found = Vec::new();
    let mut lists = 0;
    for d in definitions(&Policy { masked_codes: true, ..Policy::default() }) {
        let name = d.spec.name;
        let keeps = |path: &str| d.oldest_first.contains(path);
        let mut of_tool = Vec::new();
        wrong_end(&d.output_schema, "", &keeps, &mut of_tool);
        lists += usize::from(d.oldest_first != traderharness_contract::budget::OldestFirst::default());
        found.extend(of_tool.into_iter().map(|path| format!("{name}{path}")));
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(lists >= 2, "no tool names such a list");
}
