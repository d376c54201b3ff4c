//! Results against their published schemas: whatever a tool answers, at every decision point, masked and not, is what its contract says
//! that it answers, and there is no tool that never answers.

use crate::battery;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use traderharness_contract::{Definition, Policy};
use traderharness_harness::toolbox::definitions;
use traderharness_market::{DecisionPoint, Store};
use traderharness_tests::market;
use traderharness_tests::session::{all_tools_card, at};

/// The payload of a success that was not cut; a cut list or text is no longer what the schema describes.
fn payload(text: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(text).expect("strict JSON");
    let map = value.as_object_mut().expect("an object");
    let whole = map.get("_truncation").is_none();
    let success = map.shift_remove("success") == Some(Value::Bool(true));
    map.shift_remove("normalised");
    (whole && success).then_some(value)
}

fn unfit(definition: &Definition, asked: &str, payload: &Value) -> Option<String> {
    let issues = definition.validate_output(payload).err()?;
    Some(format!("{asked}: {issues:?}"))
}

// issue 3: every output has a real output schema, and every tool answers somewhere under the poison test's calls
#[test]
fn every_tool_answers_and_what_the_model_reads_fits_its_output_schema() {
    let store = Arc::new(Store::new(market::parts()).expect("a store"));
    let published: BTreeMap<&str, Definition> =
        definitions(&Policy::default()).into_iter().map(|definition| (definition.spec.name, definition)).collect();
    assert_eq!(published.len(), 30);
    let mut answered = BTreeSet::new();
    for masked in [false, true] {
        for point in DecisionPoint::ALL {
            let mut session = at(&store, all_tools_card(), masked, market::days()[market::SESSIONS - 2], point);
            for (asked, text) in battery::run(&mut session) {
                let (tool, _) = asked.split_once('(').expect("a call");
                let (name, definition) = published.get_key_value(tool).expect("a tool of the contract");
                if let Some(payload) = payload(&text) {
                    assert_eq!(unfit(definition, &asked, &payload), None);
                    answered.insert(*name);
                }
            }
            assert!(session.phase().completed.is_some(), "{point}: a completion tool answered");
        }
    }
    // Agent code never runs in this process.
    let silent: Vec<&&str> = published.keys().filter(|name| !answered.contains(*name) && **name != "execute_code").collect();
    assert!(silent.is_empty(), "never answered: {silent:?}");
}

#[test]
fn a_missing_or_mistyped_field_is_found() {
    let all = definitions(&Policy::default());
    let definition = all.iter().find(|d| d.spec.name == "finish_day").expect("published");
    let good = payload(r#"{"success": true, "status": "day_complete", "summary_saved": true, "trades_today": 0, "summary": "s", "abandon_error_codes": []}"#)
        .expect("a success");
    assert_eq!(unfit(definition, "c", &good), None);
    let wrong = serde_json::json!({ "status": 7 });
    assert!(unfit(definition, "c", &wrong).is_some());
    assert!(unfit(definition, "c", &serde_json::json!({})).is_some());
    assert_eq!(payload(r#"{"success": false, "error": "x"}"#), None);
    assert_eq!(payload(r#"{"success": true, "_truncation": {"truncated": true}}"#), None);
}
