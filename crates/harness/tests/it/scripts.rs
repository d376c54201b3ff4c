//! Scripts of a scripted model.

use crate::fixture::store;
use serde_json::{Value, json};
use traderharness_harness::script::{Script, ScriptError};
use traderharness_market::{DecisionPoint, Mask, MaskConfig};

fn script(days: Value) -> Result<Script, ScriptError> {
    Script::from_value(json!({ "schema": 1, "days": days }))
}

#[test]
fn faults_name_the_place() {
    let check = |result: Result<Script, ScriptError>, says: &str| {
        let fault = result.unwrap_err().to_string();
        assert!(fault.contains(says), "{fault}");
    };
    check(Script::from_json("{"), "cannot be read");
    check(Script::from_value(json!({ "schema": 2, "days": [] })), "upgrade traderharness");
    check(Script::from_value(json!({ "schema": 1, "days": [], "extra": 1 })), "extra");
    check(script(json!([{ "lunch": [] }])), "`lunch`");
    check(script(json!([{}, { "open_1": [{ "calls": [{ "tool": "t" }] }] }])), "day 2, open_1: call of `t`");
    check(script(json!([{ "open_1": [{ "calls": [{ "tool": "t", "args": {}, "raw": "{}" }] }] }])), "exactly one");
}

#[test]
fn codes_become_the_visible_codes_of_the_run() {
    let store = store();
    let mask = Mask::new(&store, MaskConfig { entities: true, key: b"k".to_vec(), ..MaskConfig::default() });
    let script = script(json!([{ "open_1": [{ "say": "Look at $600001.", "calls": [{ "tool": "t", "args": { "stock_code": "$000360", "list": ["$600002"] } }, { "tool": "u", "raw": "{\"a\": \"$600001\"" }] }] }])).unwrap();
    let turn = script.resolve(&store, &mask).unwrap().turn(0, DecisionPoint::Open1, 0).cloned().unwrap();
    let visible = |code: &str| mask.code(store.find(traderharness_market::Code::parse(code).unwrap()).unwrap()).to_owned();
    assert_eq!(turn.say, format!("Look at {}.", visible("600001")));
    assert_eq!(turn.calls[0].args.as_ref().unwrap()["stock_code"], visible("000360"));
    assert_eq!(turn.calls[0].args.as_ref().unwrap()["list"][0], visible("600002"));
    assert!(turn.calls[1].raw.as_ref().unwrap().contains(&visible("600001")));
}

#[test]
fn a_code_outside_the_dataset_is_an_error_before_the_first_day() {
    let store = store();
    let mask = Mask::new(&store, MaskConfig::default());
    for bad in ["$999999", "$60", "cost in $"] {
        let fault = script(json!([{ "open_1": [{ "say": bad }] }])).unwrap().resolve(&store, &mask).unwrap_err();
        assert!(matches!(fault, ScriptError::UnknownCode { .. }), "{bad}");
    }
}
