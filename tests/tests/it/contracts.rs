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
