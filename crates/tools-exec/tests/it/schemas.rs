//! What a model sees of the tools, and what it may send.

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::Policy;

fn policies() -> [(&'static str, Policy); 2] {
    let strict = Policy { require_structured_plan: true, require_decision_card: true, ..Policy::default() };
    [("plain", Policy::default()), ("structured", strict)]
}

#[test]
fn every_tool_has_a_valid_example_closed_input_and_described_fields() {
    fn fields(schema: &Value, path: &str) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, field) in properties {
                let text = field.get("description").and_then(Value::as_str).unwrap_or_default();
                assert!(!text.is_empty(), "{path}.{name} has no description");
                fields(field, &format!("{path}.{name}"));
            }
        }
        for key in ["items", "anyOf"] {
            match schema.get(key) {
                Some(Value::Array(branches)) => branches.iter().for_each(|b| fields(b, path)),
                Some(item) => fields(item, path),
                None => {}
            }
        }
    }
    for tool in traderharness_tools_exec::tools() {
        for (name, policy) in policies() {
            let definition = (tool.define)(&policy);
            let example: Value = serde_json::from_str(tool.spec.example).unwrap();
            definition.validate(&example).unwrap_or_else(|i| panic!("{} {name}: {i:?}", tool.spec.name));
            assert_eq!(definition.input_schema["additionalProperties"], json!(false), "{}", tool.spec.name);
            fields(&definition.input_schema, tool.spec.name);
            fields(&definition.output_schema, tool.spec.name);
        }
    }
}

#[test]
fn malformed_quantities_never_reach_the_handler() {
    // complaint AR-2
    let definition = definition("place_order", &Policy::default());
    for bad in [
        json!("bad"),
        json!("1e3 "),
        json!("100"),
        json!(true),
        json!(-100),
        json!(null),
        json!(100.5),
        json!([100]),
        json!(1e300),
    ] {
        let mut args = order_args("buy", PLAIN, 100);
        args["quantity"] = bad.clone();
        let refused_by_schema = definition.validate(&args).is_err();
        let view_of = World::full();
        let mut account = rich();
        let before = account.clone();
        let (limits, mut control) = (free(), Default::default());
        let mut ctx = traderharness_tools_exec::ExecCtx {
            view: view_of.view(TODAY, traderharness_market::DecisionPoint::Open1),
            account: &mut account,
            limits: &limits,
            gate: None,
            control: &mut control,
            code: None,
        };
        let failed = tool("place_order").invoke(&mut ctx, args).is_err();
        assert!(refused_by_schema || bad == json!(1e300), "{bad}");
        assert!(failed && account == before, "{bad}");
    }
    let missing = json!({"action": "buy", "stock_code": PLAIN, "reasoning": "r"});
    assert!(definition.validate(&missing).is_err());
    assert!(definition.validate(&order_args("buy", PLAIN, 0)).is_err(), "a buy of nothing");
    assert!(definition.validate(&order_args("sell", PLAIN, 0)).is_ok(), "a sell of everything");
    assert!(definition.validate(&order_args("hold", PLAIN, 100)).is_err());
    assert!(definition.validate(&order_args("buy", "6000", 100)).is_err());
}

#[test]
fn plans_and_cards_are_asked_for_only_to_open() {
    // spec/tools.md b38: whether a buy opens is not in its arguments, so an add-on buy must pass the schema
    for (_, policy) in policies() {
        let definition = definition("place_order", &policy);
        assert!(definition.validate(&order_args("buy", PLAIN, 100)).is_ok());
        let text = definition.input_schema["properties"]["behavior_hypothesis"]["description"].as_str().unwrap();
        assert_eq!(text.contains("OPEN a position"), policy.require_structured_plan, "{text}");
        let card = definition.input_schema["properties"]["decision_card"]["description"].as_str().unwrap();
        assert_eq!(card.contains("OPEN a position"), policy.require_decision_card, "{card}");
    }
}

#[test]
fn contracts_are_reviewed_as_snapshots() {
    for tool in traderharness_tools_exec::tools() {
        for (name, policy) in policies() {
            if name != "plain" && tool.spec.name != "place_order" {
                continue;
            }
            let definition = (tool.define)(&policy);
            let shown = json!({"input": definition.input_schema, "output": definition.output_schema});
            insta::assert_snapshot!(format!("{}-{name}", tool.spec.name), serde_json::to_string_pretty(&shown).unwrap());
        }
    }
}

// complaint AR-3: what 0 means as a size is said where a model reads it, and nothing is ever sized at 0
#[test]
fn a_size_of_zero_is_all_of_a_sell_and_no_buy() {
    for (tool, buy, sell) in [
        ("place_order", order_args("buy", PLAIN, 0), order_args("sell", PLAIN, 0)),
        ("manage_conditional_order", condition_args("buy"), condition_args("sell")),
    ] {
        let definition = definition(tool, &Policy::default());
        let said = definition.input_schema["properties"]["quantity"]["description"].as_str().unwrap();
        assert!(said.contains("0 sells all that is sellable"), "{tool}: {said}");
        assert!(definition.example()["quantity"].as_i64().unwrap() > 0, "{tool}: the example is sized");
        let issues = definition.validate(&buy).unwrap_err();
        assert!(issues.iter().all(|i| i.path == "/quantity") && !issues.is_empty(), "{tool}: {issues:?}");
        assert!(definition.validate(&sell).is_ok(), "{tool}");
    }
    let world = World::full();
    let mut account = rich();
    let view = world.view(TODAY, traderharness_market::DecisionPoint::Open1);
    let mut control = Default::default();
    let nothing = call("place_order", order_args("sell", PLAIN, 0), view, &mut account, &free(), &mut control).unwrap_err();
    assert_eq!(nothing.code, traderharness_contract::ErrorCode::PositionNotHeld);
    assert!(account.fills().is_empty());
}

fn condition_args(action: &str) -> Value {
    json!({
        "operation": "create", "action": action, "stock_code": PLAIN, "quantity": 0, "comparator": "price_gte",
        "trigger_price": 12.0, "reasoning": "r"
    })
}
