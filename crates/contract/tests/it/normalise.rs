//! Normal form of arguments: spelling only, and reported.

use crate::sample::{FindBooks, MoveBook, define};
use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_contract::{Change, Note};

/// Checks the normal form and the reported changes, and that the normal form is its own normal form.
fn check(sent: Value, expected: Value, changes: &[(&str, Change)]) {
    let definition = define::<FindBooks>();
    let normal = definition.normalise(sent);
    assert_eq!(normal.args, expected);
    let notes: Vec<Note> = changes.iter().map(|(path, change)| Note { path: (*path).to_owned(), change: *change }).collect();
    assert_eq!(normal.notes, notes);
    assert_eq!(definition.normalise(expected).notes, []);
}

// complaint AR-5
#[test]
fn null_in_an_optional_field_is_absent() {
    check(
        json!({"stock_code": "1", "keyword": null, "order": null, "days": null, "peers": null, "range": {"low": null, "high": 5, "reason": "r"}}),
        json!({"stock_code": "1", "range": {"high": 5, "reason": "r"}}),
        &[
            ("/keyword", Change::NullRemoved),
            ("/order", Change::NullRemoved),
            ("/days", Change::NullRemoved),
            ("/peers", Change::NullRemoved),
            ("/range/low", Change::NullRemoved),
        ],
    );
}

#[test]
fn null_stays_where_it_is_a_fault() {
    // Required, unknown, inside an array, and the text "null".
    for args in [
        json!({"stock_code": null}),
        json!({"stock_code": "1", "foo": null}),
        json!({"stock_code": "1", "peers": [null]}),
        json!({"stock_code": "1", "keyword": "null"}),
        json!({"stock_code": "1", "peers": ["1", null]}),
    ] {
        check(args.clone(), args.clone(), &[]);
        assert!(define::<FindBooks>().validate(&args).is_err(), "{args}");
    }
}

// complaint AR-1
#[test]
fn a_string_that_spells_the_wanted_container_is_parsed() {
    check(
        json!({"stock_code": "1", "peers": " [\"000001\", \"2\"] ", "range": "{\"low\": 1.0, \"high\": null, \"reason\": \"r\"}"}),
        json!({"stock_code": "1", "peers": ["000001", "2"], "range": {"low": 1.0, "reason": "r"}}),
        &[("/peers", Change::ParsedFromString), ("/range", Change::ParsedFromString), ("/range/high", Change::NullRemoved)],
    );
}

#[test]
fn no_other_string_is_parsed() {
    let kept = [
        json!({"days": "5"}),
        json!({"lent": "true"}),
        json!({"keyword": "[\"a\"]"}),
        json!({"stock_code": "{}"}),
        json!({"peers": "000001"}),
        json!({"peers": "{\"a\": 1}"}),
        json!({"peers": "[\"a\""}),
        json!({"peers": "[\"a\"] x"}),
        json!({"peers": "[1e999]"}),
        json!({"range": "[]"}),
        json!({"range": "{\"low\": 1, \"low\": 2}"}),
        json!({"range": "{\"low\": NaN}"}),
        json!({"peers": ["[\"a\"]"]}),
        json!("{}x"),
    ];
    for args in kept {
        check(args.clone(), args, &[]);
    }
}

#[test]
fn a_whole_number_may_be_written_with_a_zero_fraction() {
    check(
        json!({"days": 20.0, "range": {"low": 5.0, "reason": "r"}}),
        json!({"days": 20, "range": {"low": 5.0, "reason": "r"}}),
        &[("/days", Change::WholeNumber)],
    );
    for days in [json!(20.5), json!(1e300), json!(9_007_199_254_740_994.0_f64), json!("20.0")] {
        check(json!({"days": days}), json!({"days": days}), &[]);
        assert!(define::<FindBooks>().validate(&json!({"stock_code": "1", "days": days})).is_err(), "{days}");
    }
    // No upper bound in this schema: the fault is ours to find, since 64-bit types could not take it.
    let issues = define::<MoveBook>().validate(&json!({"operation": "create", "price": 1, "quantity": 1e20})).unwrap_err();
    assert_eq!(issues[0].message, "`quantity` must be an integer written with all its digits, within 64 bits");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn normal_form_is_idempotent_and_keeps_valid_arguments(days in 1_u32..=250, keyword in "[a-z]{1,9}", fields in proptest::sample::subsequence(vec!["days", "keyword", "lent"], 0..=3)) {
        let mut args = json!({"stock_code": "600000"});
        for field in fields {
            args[field] = match field { "days" => days.into(), "keyword" => keyword.as_str().into(), _ => true.into() };
        }
        let definition = define::<FindBooks>();
        prop_assume!(keyword != "null");
        prop_assert!(definition.validate(&args).is_ok());
        let normal = definition.normalise(args.clone());
        prop_assert_eq!(normal.args, args);
        prop_assert!(normal.notes.is_empty());
    }
}
