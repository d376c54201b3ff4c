//! What a model sends under a loose version: whatever it is, the answer is a result or a failure, never a stop (DESIGN rule 6).

use super::world::{Kept, days, session};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use traderharness_contract::version::{TOOL_NAMES, Version};
use traderharness_harness::{Contract, RawArguments};
use traderharness_tests::session::all_tools_card;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![
            Just(""),
            Just("5"),
            Just("-1e400"),
            Just("SHM-000001"),
            Just("600001"),
            Just("buy"),
            Just("create"),
            Just("全部")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4).prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn anything_is_answered(seed in prop::collection::vec(any_json(), 8), version in prop::sample::select(vec![Version::V1, Version::V3, Version::V4])) {
        let contract = Contract::of(version);
        let mut session = session(&contract, &all_tools_card(), true, &Kept::default());
        session.start_day(days()[0]).expect("a trading day");
        session.advance().expect("a point");
        for (n, tool) in TOOL_NAMES.iter().enumerate().filter(|(_, tool)| **tool != "execute_code") {
            // Fields of the tool with values of any kind, and the values as arguments themselves.
            let fields = contract.pack().and_then(|pack| pack.tool(tool)).and_then(|tool| tool.parameters["properties"].as_object());
            let args: Map<String, Value> = fields
                .into_iter()
                .flat_map(Map::keys)
                .enumerate()
                .map(|(i, name)| (name.clone(), seed[(i + n) % seed.len()].clone()))
                .collect();
            for args in [Value::Object(args), seed[n % seed.len()].clone(), json!({ "unknown": seed[0] })] {
                let text = args.to_string();
                let report = session.call(tool, RawArguments::Text(&text)).expect("no call stops a session");
                prop_assert!(!report.text.is_empty());
                prop_assert_ne!(report.envelope.error_code(), Some("internal"), "{} {}", tool, text);
            }
        }
    }
}
