//! Definitions: what a model is sent, and what it reads when a call is wrong.

use crate::sample::{FindBooks, ListShelves, MoveBook, Shelf, define, define_masked};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use traderharness_contract::{
    Definition, Effect, Envelope, ErrorCode, Group, Handler, Issue, Outcome, Policy, Repeat, Tool, ToolFailure, ToolSpec,
};

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn a_definition_is_reviewed_as_the_model_gets_it() {
    let definition = define::<FindBooks>();
    insta::assert_snapshot!("find_books_description", definition.description);
    insta::assert_snapshot!("find_books_input", pretty(&definition.input_schema));
    insta::assert_snapshot!("find_books_output", pretty(&definition.output_schema));
    let function = definition.to_openai();
    assert_eq!(function["type"], "function");
    assert_eq!(function["function"]["name"], "find_books");
    assert_eq!(function["function"]["parameters"], definition.input_schema);
    assert_eq!(definition.characters(), traderharness_contract::json::text(&function).chars().count());
}

#[test]
fn a_definition_is_the_same_every_time() {
    let (a, b) = (define::<FindBooks>(), define::<FindBooks>());
    assert_eq!(a.to_openai().to_string(), b.to_openai().to_string());
    assert_eq!(a.output_schema.to_string(), b.output_schema.to_string());
}

#[test]
fn examples_show_codes_in_the_form_of_the_policy() {
    assert_eq!(define::<FindBooks>().example()["stock_code"], "600000");
    let masked = define_masked::<FindBooks>();
    assert_eq!(masked.example(), &json!({"stock_code": "SHM-000360", "days": 20}));
    assert!(masked.description.contains(r#"Example arguments: {"stock_code": "SHM-000360", "days": 20}"#));
}

/// Compares the messages a call gets, one line per issue.
fn check<T: Tool>(args: Value, expected: &[&str]) {
    let issues = define::<T>().validate(&args).err().unwrap_or_default();
    let lines: Vec<String> = issues.iter().map(|i| format!("{}: {}", i.path, i.message)).collect();
    assert_eq!(lines, expected, "{args}");
}

#[test]
fn every_fault_is_named_with_its_place_and_constraint() {
    check::<FindBooks>(json!({"stock_code": "600000"}), &[]);
    check::<FindBooks>(json!({}), &["/stock_code: `stock_code` is missing"]);
    check::<FindBooks>(json!({"stock_code": "1", "days": 251}), &["/days: `days` must be an integer from 1 to 250"]);
    check::<FindBooks>(json!({"stock_code": "1", "order": "oldest"}), &["/order: `order` must be one of \"newest\", \"title\""]);
    check::<FindBooks>(
        json!({"stock_code": "1", "peers": ["a", 2, "", "d"]}),
        &[
            "/peers: `peers` must be an array of 1 to 3 string items",
            "/peers/1: `peers[1]` must be a string that is not empty",
            "/peers/2: `peers[2]` must not be empty; leave the field out when it is not needed",
        ],
    );
    check::<FindBooks>(
        json!({"stock_code": "1", "range": {"low": -1, "extra": 1}}),
        &[
            "/range/extra: `range.extra` is not a known field. Accepted fields: `low`, `high`, `reason`",
            "/range/low: `range.low` must be a number of at least 0",
            "/range/reason: `range.reason` is missing",
        ],
    );
    check::<FindBooks>(json!([]), &[": the arguments must be an object with `stock_code`"]);
    check::<ListShelves>(json!({"a/b~": 1}), &["/a~1b~0: `a/b~` is not a known field. No fields are accepted here"]);
}

// complaint AR-2
#[test]
fn a_malformed_number_is_never_absent() {
    for quantity in [json!("bad"), json!("1e3 "), json!(true), json!(-100), json!("100"), json!(150), json!([100]), json!(0)] {
        check::<MoveBook>(
            json!({"operation": "create", "price": 1.5, "quantity": quantity}),
            &["/quantity: `quantity` must be an integer of at least 100 in multiples of 100"],
        );
    }
}

// complaints AR-5, AR-6
#[test]
fn nothing_sent_as_a_word_gets_a_hint() {
    let hint = "; to send nothing, leave the field out";
    check::<FindBooks>(
        json!({"stock_code": "1", "keyword": "null"}),
        &["/keyword: `keyword` is the text \"null\"; leave the field out instead"],
    );
    check::<FindBooks>(
        json!({"stock_code": "1", "order": "None"}),
        &[&format!("/order: `order` must be one of \"newest\", \"title\"{hint}")],
    );
    check::<FindBooks>(json!({"stock_code": "1", "lent": "null"}), &[&format!("/lent: `lent` must be true or false{hint}")]);
    check::<FindBooks>(
        json!({"stock_code": "1", "keyword": ""}),
        &["/keyword: `keyword` must not be empty; leave the field out when it is not needed"],
    );
    check::<FindBooks>(json!({"stock_code": ""}), &["/stock_code: `stock_code` must not be empty"]);
}

#[test]
fn an_unknown_field_gets_the_accepted_ones_and_the_nearest() {
    let list = "Accepted fields: `stock_code`, `days`, `keyword`, `order`, `peers`, `range`, `title`, `lent`";
    for (sent, near) in [("code", "stock_code"), ("stockCode", "stock_code"), ("keywords", "keyword"), ("day", "days")] {
        check::<FindBooks>(
            json!({"stock_code": "1", sent: 1}),
            &[&format!("/{sent}: `{sent}` is not a known field; did you mean `{near}`? {list}")],
        );
    }
    check::<FindBooks>(json!({"stock_code": "1", "zzzz": 1}), &[&format!("/zzzz: `zzzz` is not a known field. {list}")]);
    let issues = define::<FindBooks>().validate(&json!({"stock_code": "1", "公".repeat(5_000): 1})).unwrap_err();
    assert!(issues[0].path.chars().count() < 80, "a hostile name must not fill the answer");
}

#[test]
fn conditions_are_told_in_words() {
    check::<MoveBook>(
        json!({"operation": "create"}),
        &[
            "/price: `price` is missing when `operation` is \"create\"",
            "/quantity: `quantity` is missing when `operation` is \"create\"",
        ],
    );
    check::<MoveBook>(
        json!({"operation": "cancel", "price": -1}),
        &[
            "/id: `id` is missing when `operation` is \"cancel\"",
            "/price: `price` is not accepted when `operation` is \"cancel\"",
        ],
    );
    check::<MoveBook>(json!({"operation": "list"}), &[]);
    check::<MoveBook>(json!({}), &["/operation: `operation` is missing"]);
}

/// A tool whose input schema is given, to try every keyword.
fn with_schema(refine: fn(&mut Value)) -> Definition {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Free {
        /// A.
        #[allow(dead_code, reason = "only the schema is used")]
        a: Option<Value>,
        /// B.
        #[allow(dead_code, reason = "only the schema is used")]
        b: Option<Value>,
        /// C.
        #[allow(dead_code, reason = "only the schema is used")]
        c: Option<Value>,
    }
    thread_local!(static REFINE: std::cell::Cell<fn(&mut Value)> = const { std::cell::Cell::new(|_| {}) });
    struct Given;
    impl Tool for Given {
        type Family = Shelf;
        type Args = Free;
        type Output = Value;
        const SPEC: ToolSpec = ToolSpec {
            name: "given",
            group: Group::Text,
            effect: Effect::Read,
            repeat: Repeat::Free,
            description: "Given.",
            notes: &[],
            example: "{}",
            result_summary: "any.",
            errors: &[],
            opt_in: false,
        };
        fn call(_: &mut Vec<String>, _: Free) -> Result<Value, ToolFailure> {
            Ok(Value::Null)
        }
        fn refine(schema: &mut Value, _: &Policy) {
            REFINE.get()(schema);
        }
    }
    REFINE.set(refine);
    Definition::of::<Given>(&Policy::default())
}

#[test]
fn every_keyword_gets_a_readable_message() {
    let check = |refine: fn(&mut Value), args: Value, expected: &[&str]| {
        let issues = with_schema(refine).validate(&args).err().unwrap_or_default();
        let messages: Vec<&str> = issues.iter().map(|i| i.message.as_str()).collect();
        assert_eq!(messages, expected, "{args}");
    };
    check(
        |s| s["anyOf"] = json!([{"required": ["a"]}, {"required": ["b", "c"]}]),
        json!({"c": 1}),
        &["the arguments need at least one of these: `a`, `b` and `c`"],
    );
    check(
        |s| s["oneOf"] = json!([{"required": ["a"]}, {"required": ["b"]}]),
        json!({"a": 1, "b": 1}),
        &["the arguments accept only one of these at a time: `a`, `b`"],
    );
    check(
        |s| s["oneOf"] = json!([{"required": ["a"]}, {"required": ["b"]}]),
        json!({}),
        &["the arguments need at least one of these: `a`, `b`"],
    );
    check(
        |s| s["properties"]["a"] = json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "maximum": 5}]}),
        json!({"a": 9}),
        &["`a` must be an integer of at most 5"],
    );
    check(
        |s| s["properties"]["a"] = json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "maximum": 5}]}),
        json!({"a": true}),
        &["`a` must be a string of at least 2 characters, or an integer of at most 5"],
    );
    check(
        |s| {
            s["properties"]["a"] = json!({"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "x"}, "n": {"type": "integer"}}, "required": ["kind", "n"]},
                {"type": "object", "properties": {"kind": {"const": "y"}, "t": {"type": "string"}}, "required": ["kind", "t"]}
            ]});
        },
        json!({"a": {"kind": "y", "t": 1, "u": 2}}),
        &["`a.t` must be a string that is not empty", "`a.u` is not a known field. Accepted fields: `kind`, `t`, `n`"],
    );
    check(|s| s["properties"]["a"] = json!({"const": 5}), json!({"a": 6}), &["`a` must be 5"]);
    check(
        |s| s["properties"]["a"] = json!({"type": "string", "pattern": "^x+$", "maxLength": 3}),
        json!({"a": "yyyy"}),
        &["`a` must be a string of at most 3 characters that matches the pattern ^x+$"],
    );
    check(
        |s| s["properties"]["a"] = json!({"type": "number", "exclusiveMinimum": 0, "maximum": 100.0}),
        json!({"a": 0}),
        &["`a` must be a number of at most 100 above 0"],
    );
    check(
        |s| s["properties"]["a"] = json!({"type": "array", "uniqueItems": true}),
        json!({"a": [1, 1]}),
        &["`a` must not hold the same item twice"],
    );
    check(
        |s| s["not"] = json!({"required": ["a", "b"]}),
        json!({"a": 1, "b": 1}),
        &["`a` is not accepted", "`b` is not accepted"],
    );
    check(|s| s["dependentRequired"] = json!({"a": ["b"]}), json!({"a": 1}), &["`b` is missing"]);
    check(
        |s| s["dependentSchemas"] = json!({"a": {"properties": {"b": {"type": "integer"}}, "required": ["b", "c"]}}),
        json!({"a": 1, "b": "x"}),
        &["`b` must be an integer when `a` is given", "`c` is missing when `a` is given"],
    );
    check(
        |s| {
            s["if"] = json!({"required": ["a"]});
            s["then"] = json!({"required": ["b"]});
            s["else"] = json!({"required": ["c"]});
        },
        json!({}),
        &["`c` is missing when it is not so that `a` is given"],
    );
    check(
        |s| {
            s["if"] = json!({"properties": {"a": {"enum": ["x", "y"]}, "b": {"not": {"const": 1}}}, "required": ["a", "b"]});
            s["then"] = json!({"required": ["c"]});
        },
        json!({"a": "x", "b": 2}),
        &["`c` is missing when `a` is one of \"x\", \"y\" and `b` is not 1"],
    );
}

#[test]
fn the_failure_names_fields_and_steps() {
    let definition = define::<FindBooks>();
    let sent = json!({"days": 0, "order": "x", "keyword": "", "code": "600519", "range": {}});
    let issues = definition.validate(&sent).unwrap_err();
    let failure = definition.invalid(&issues);
    let envelope = Envelope::render(&Outcome::Failed(failure), "find_books", definition.example(), &sent);
    insta::assert_snapshot!("invalid_arguments", pretty(&envelope.0));
}

// complaint AR-8
#[test]
fn dropping_any_required_field_names_it() {
    fn check<T: Tool>() {
        let definition = define::<T>();
        let required: Vec<String> =
            serde_json::from_value(definition.input_schema.get("required").cloned().unwrap_or(json!([]))).unwrap();
        for name in required {
            let mut args = definition.example().clone();
            args.as_object_mut().unwrap().shift_remove(&name);
            let failure = definition.invalid(&definition.validate(&args).unwrap_err());
            assert_eq!(failure.code, ErrorCode::InvalidToolArguments);
            assert!(failure.instruction.contains(&format!("Add `{name}`")), "{}", failure.instruction);
            assert_eq!(failure.correction["missing_fields"], json!([name]));
            assert!(failure.retryable());
        }
        assert_eq!(definition.validate(definition.example()), Ok(()));
    }
    check::<FindBooks>();
    check::<MoveBook>();
    check::<ListShelves>();
}

// complaint AR-9
#[test]
fn following_the_correction_repairs_the_call_in_two_rounds() {
    let definition = define::<MoveBook>();
    let mut args = json!({"operation": "create", "quantity": "many", "id": "x", "prize": 3});
    for round in 0..2 {
        let Err(issues) = definition.validate(&args) else { break };
        let failure = definition.invalid(&issues);
        // A model that only follows the issues: takes missing and wrong fields from the example, removes the others.
        let map = args.as_object_mut().unwrap();
        for issue in failure.correction["issues"].as_array().unwrap() {
            let name = issue["path"].as_str().unwrap().trim_start_matches('/').to_owned();
            match definition.example().get(&name) {
                Some(value) => map.insert(name, value.clone()),
                None => map.shift_remove(&name),
            };
        }
        assert!(round < 2);
    }
    assert_eq!(definition.validate(&args), Ok(()));
}

#[test]
fn arguments_that_only_the_types_refuse_are_answered() {
    let handler = Handler::<Shelf>::of::<FindBooks>();
    let mut seen = vec![];
    let failure = handler.invoke(&mut seen, json!({"days": "x"})).unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidToolArguments);
    assert!(seen.is_empty());
    let output = handler.invoke(&mut seen, json!({"stock_code": "600000"})).unwrap();
    assert_eq!(define::<FindBooks>().validate_output(&output), Ok(()));
    assert_eq!(seen, ["600000"]);
}

#[test]
fn an_output_that_does_not_fit_is_told_where() {
    let definition = define::<FindBooks>();
    let issues = definition.validate_output(&json!({"books": [{"code": 1}]})).unwrap_err();
    assert!(issues.contains(&Issue::new("/books/0/code", "`books[0].code` must be a string")), "{issues:?}");
}

#[test]
fn nullable_arguments_must_be_asked_for() {
    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Args {
        /// Plain.
        plain: Option<u32>,
        /// Null clears the value.
        #[schemars(extend("x-nullable" = true))]
        clear: Option<u32>,
        /// May be empty.
        #[serde(default)]
        empty: String,
        /// May be empty too.
        #[schemars(length(max = 5), extend("minLength" = 0))]
        stated: Option<String>,
    }
    struct Clear;
    impl Tool for Clear {
        type Family = Shelf;
        type Args = Args;
        type Output = crate::sample::Moved;
        const SPEC: ToolSpec = ToolSpec { name: "clear", ..ListShelves::SPEC };
        fn call(_: &mut Vec<String>, _: Args) -> Result<Self::Output, ToolFailure> {
            Ok(crate::sample::Moved { id: String::new() })
        }
    }
    let definition = define::<Clear>();
    let types = |name: &str| definition.input_schema["properties"][name]["type"].clone();
    assert_eq!((types("plain"), types("clear")), (json!("integer"), json!(["integer", "null"])));
    let normal = definition.normalise(json!({"plain": null, "clear": null, "empty": "", "stated": ""}));
    assert_eq!(normal.args, json!({"clear": null, "empty": "", "stated": ""}));
    assert_eq!(definition.validate(&normal.args), Ok(()));
}

fn any_args() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |f| f.is_finite().then(|| Value::from(f))),
        "SECRET[a-z0-9]{0,5}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("(low|high|reason|[a-z]{1,5})", inner), 0..4)
                .prop_map(|p| Value::Object(p.into_iter().collect())),
        ]
    });
    let names = "(stock_code|days|keyword|order|peers|range|title|lent|operation|price|quantity|id|[a-z]{1,6})";
    proptest::collection::vec((names, value), 0..8).prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // complaint AR-9
    #[test]
    fn issues_are_stable_sorted_and_free_of_values(args in any_args()) {
        for definition in [define::<FindBooks>(), define::<MoveBook>()] {
            let args = definition.normalise(args.clone()).args;
            let Err(issues) = definition.validate(&args) else { continue };
            prop_assert_eq!(Err(issues.clone()), definition.validate(&args));
            let keys: Vec<(&str, &str)> = issues.iter().map(|i| (i.path.as_str(), i.message.as_str())).collect();
            prop_assert!(keys.is_sorted());
            prop_assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
            prop_assert!(!issues.is_empty());
            let failure = definition.invalid(&issues);
            let words = format!("{} {} {:?}", failure.message, failure.instruction, failure.correction);
            prop_assert!(!words.contains("SECRET"), "{}", words);
        }
    }

    #[test]
    fn what_the_schema_lets_through_the_types_take(args in any_args()) {
        let definition = define::<FindBooks>();
        let args = definition.normalise(args).args;
        if definition.validate(&args).is_ok() {
            prop_assert!(serde_json::from_value::<crate::sample::FindArgs>(args.clone()).is_ok(), "{}", args);
        }
    }
}

// What a model sends may hold a hundred thousand faults; what it reads about them does not.
#[test]
fn the_words_for_many_faults_are_bounded() {
    let definition = define::<FindBooks>();
    let many = (0..50_000).map(|n| (format!("k{n:05}"), Value::Null)).collect::<Map<_, _>>();
    let issues = definition.validate(&Value::Object(many)).unwrap_err();
    let last = issues.iter().rfind(|issue| issue.path.starts_with("/k")).unwrap();
    assert_eq!((last.path.as_str(), last.message.as_str()), ("/k00020", "`k00020` and 49979 more are not known fields"));
    let failure = definition.invalid(&issues);
    assert!(serde_json::to_string(&failure.correction).unwrap().len() < 40_000);
}
