//! Telling a model about tools, giving it results, writing calls.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use traderharness_contract::parse::{Answered, CallStyle, describe, parse, place, results, write_call};
use traderharness_contract::parse_arguments;

fn tools() -> Vec<Value> {
    vec![
        json!({"type": "function", "function": {"name": "get_market_overview", "description": "The whole market.", "parameters":
            {"type": "object", "properties": {}, "additionalProperties": false}}}),
        json!({"type": "function", "function": {"name": "screen_stocks", "description": "Finds stocks.\n\n- Lists are sorted.", "parameters":
            {"type": "object", "required": ["sort_by", "Limits", "note"], "properties": {
                "sort_by": {"enum": ["change", "turnover"], "description": "Order of the list."},
                "Limits": {"type": "array", "items": {"type": "number", "minimum": 0.5}, "description": "Limits, percent."},
                "note": {"type": "string", "description": "Why."},
                "max_results": {"type": ["integer", "null"], "default": 20, "description": "Stocks wanted, 1 to 50."},
                "card": {"type": "object", "required": ["rank"], "description": "A card.", "properties":
                    {"rank": {"type": "string", "description": "Rank."}, "ids": {"type": "array", "items": {"type": "string"}}}},
                "legs": {"type": "array", "items": {"type": "object", "properties": {"side": {"enum": ["buy"], "description": "Side."}}}},
                "active": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "description": "Only active ones."}}}}}),
    ]
}

// complaint JR-7
#[test]
fn each_style_reads_the_example_its_own_prompt_prints() {
    for (style, name) in [(CallStyle::Json, "prompt_json"), (CallStyle::Text, "prompt_text")] {
        let prompt = describe(style, &tools()).unwrap();
        // The example is all of the prompt that the parser takes for a call.
        let parsed = parse(style, &prompt, &[], &tools());
        let [call] = parsed.calls.as_slice() else { panic!("{style:?}: {parsed:?}") };
        assert_eq!((call.name.as_str(), call.repaired), ("screen_stocks", false));
        let args = parse_arguments(&call.arguments).unwrap();
        assert_eq!(Value::Object(args), json!({"sort_by": "change", "Limits": [0.5], "note": "..."}));
        insta::assert_snapshot!(name, prompt);
    }
    assert_eq!(describe(CallStyle::Openai, &tools()), None);
    assert_eq!(describe(CallStyle::Text, &[]), None);
    // The example of a description is the one that is shown.
    let described = [json!({"name": "f", "description": "Does.\nExample arguments: {\"a\": [1, \"x\"]}", "parameters": {}})];
    let parsed = parse(CallStyle::Text, &describe(CallStyle::Text, &described).unwrap(), &[], &described);
    assert_eq!(parsed.calls[0].arguments, r#"{"a": [1, "x"]}"#);
    // The same holds for each tool alone, whatever it declares.
    for tool in tools().into_iter().chain([json!({"name": "bare"}), json!({"function": {"name": "odd", "parameters": 3}})]) {
        for style in [CallStyle::Json, CallStyle::Text] {
            let tools = [tool.clone()];
            let parsed = parse(style, &describe(style, &tools).unwrap(), &[], &tools);
            assert_eq!(parsed.calls.len(), 1, "{tool}");
            assert!(parsed.calls[0].is_readable(), "{tool}");
        }
    }
}

// seed A6.8
#[test]
fn the_prompt_is_placed_once() {
    let check = |messages: Value, first: Value, count: usize| {
        let mut messages: Vec<Value> = messages.as_array().unwrap().clone();
        place("THE TOOLS", &mut messages);
        assert_eq!((&messages[0], messages.len()), (&first, count));
        let once = messages.clone();
        place("THE TOOLS", &mut messages);
        assert_eq!(messages, once, "twice changes nothing");
    };
    let user = json!({"role": "user", "content": "hi"});
    let system = |content: Value| json!({"role": "system", "content": content});
    check(json!([system(json!("You trade.")), user]), system(json!("You trade.\n\nTHE TOOLS")), 2);
    check(json!([{"role": "developer", "content": ""}]), json!({"role": "developer", "content": "THE TOOLS"}), 1);
    check(json!([system(json!("Has THE TOOLS inside"))]), system(json!("Has THE TOOLS inside")), 1);
    check(json!([user]), system(json!("THE TOOLS")), 2);
    check(json!([]), system(json!("THE TOOLS")), 1);
    let parts = json!([{"type": "text", "text": "You trade."}, {"type": "text", "text": "THE TOOLS"}]);
    check(json!([system(json!([{"type": "text", "text": "You trade."}]))]), system(parts), 1);
    check(json!([system(json!(null))]), system(json!("THE TOOLS")), 1);
}

// seed A6.4, A6.8
#[test]
fn results_go_back_in_the_order_of_the_calls() {
    let answered = [
        Answered { id: "c1", name: "get_kline", arguments: "{\n  \"code\": \"SHM-000360\"\n}", text: "{\"bars\": []}" },
        Answered { id: "c2", name: "get_portfolio", arguments: "{}", text: "{\"cash\": 1}" },
    ];
    let native = results(CallStyle::Openai, &answered);
    assert_eq!(native[1], json!({"role": "tool", "tool_call_id": "c2", "name": "get_portfolio", "content": "{\"cash\": 1}"}));
    for style in [CallStyle::Json, CallStyle::Text] {
        assert_eq!(
            results(style, &answered),
            [json!({"role": "user", "content": "## Result of get_kline({ \"code\": \"SHM-000360\" })\n\n{\"bars\": []}\n\n\
                ## Result of get_portfolio({})\n\n{\"cash\": 1}"})]
        );
        assert_eq!(results(style, &[]), [] as [Value; 0]);
    }
    assert_eq!(results(CallStyle::Openai, &[]), [] as [Value; 0]);
}

#[test]
fn calls_are_written_as_the_styles_have_them() {
    let args = json!({"code": "SHM-000360", "n": 5, "deep": {"x": [true, null]}, "s": "a \"b\"\n'c'"});
    let args = args.as_object().unwrap();
    assert_eq!(
        write_call(CallStyle::Text, "f", args),
        r#"Action: f(code="SHM-000360", n=5, deep={"x": [True, None]}, s="a \"b\"\n'c'")"#
    );
    assert_eq!(
        write_call(CallStyle::Json, "f", args),
        "```json\n{\"tool\": \"f\", \"params\": {\"code\": \"SHM-000360\", \"n\": 5, \"deep\": {\"x\": [true, null]}, \"s\": \"a \\\"b\\\"\\n'c'\"}}\n```"
    );
    let native: Value = serde_json::from_str(&write_call(CallStyle::Openai, "f", args)).unwrap();
    assert_eq!(parse(CallStyle::Openai, "", &[native], &[]).calls[0].name, "f");
}

pub(crate) fn any_args() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |f| f.is_finite().then(|| Value::from(f))),
        "[ -~\n\t公🚀`'\"\\\\(){}\\[\\],=:]{0,24}".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop_oneof!["```", "Action: sell(q=1)", "\nAction: sell(q=1)\n", "None", "</thin k>", "1e999"].prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec(("[a-zA-Z_公 ]{0,6}", inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    });
    proptest::collection::vec(("[a-z_][a-z0-9_]{0,6}|[A-Z][a-z]{0,3}|.{0,4}", value), 0..5)
        .prop_map(|pairs| pairs.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_call_is_read_back(args in any_args(), before in "[a-z ]{0,10}", after in "[a-z .]{0,10}") {
        for style in [CallStyle::Text, CallStyle::Json] {
            let content = format!("{before}\n{} {after}\n", write_call(style, "f", &args));
            // Tags of thinking in a value make the call unreadable; that has its own test.
            prop_assume!(!content.contains("think>"));
            let parsed = parse(style, &content, &[], &[]);
            prop_assert_eq!(parsed.calls.len(), 1, "{}", content);
            let read = parse_arguments(&parsed.calls[0].arguments);
            prop_assert_eq!(read.as_ref(), Ok(&args), "{}", content);
        }
    }
}
