//! The size budget: never over the limit, always valid JSON, coverage kept, nothing cut inside a character.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use traderharness_contract::budget::notice::bounded_text;
use traderharness_contract::budget::{COVERAGE, FitStep, OldestFirst, RESULT_LIMIT, fit_json, fit_json_keeping, truncate_text};
use traderharness_contract::json::{characters, text};

/// Fits, checks what holds for every value and limit, and returns the text as a value.
fn fit(value: &Value, limit: usize) -> Value {
    let fitted = fit_json(value, limit);
    assert!(characters(&fitted.text) <= limit, "{} > {limit}: {}", characters(&fitted.text), fitted.text);
    if limit == 0 {
        assert_eq!(fitted.text, "");
        return Value::Null;
    }
    assert_eq!(fitted.truncated, fitted.step != FitStep::Whole);
    serde_json::from_str(&fitted.text).unwrap_or_else(|e| panic!("limit {limit}: {e}: {}", fitted.text))
}

fn rows(count: usize) -> Value {
    (0..count).map(|i| json!({"row": i, "title": "t".repeat(60), "price": 10.25})).collect()
}

fn answer(count: usize) -> Value {
    json!({
        "success": true,
        "as_of": {"day": "D-1", "time": "15:00", "decision_point": "open_1"},
        "bars": rows(count),
        "total": 276, "returned": count, "complete": false, "next_cursor": "cbcd",
        "missing_reasons": [{"field": "bars[3].volume", "reason": "suspended"}]
    })
}

fn failure() -> Value {
    failure_to(50_000)
}

fn failure_to(received: usize) -> Value {
    json!({
        "success": false,
        "error": "Something long. ".repeat(200),
        "error_code": "invalid_tool_arguments",
        "error_family": "arguments",
        "retryable": true,
        "correction": {
            "tool": "get_kline", "instruction": "Add `stock_code`.", "valid_arguments_example": {"stock_code": "SHM-000360"},
            "received_arguments": {"code": "x".repeat(received)}, "missing_fields": ["stock_code"]
        }
    })
}

#[test]
fn what_fits_is_left_as_it_is() {
    let value = json!({"success": true, "name": "平安 🚀", "list": [1, 2.5, null], "empty": {}, "none": []});
    let fitted = fit_json(&value, RESULT_LIMIT);
    assert_eq!(fitted.text, r#"{"success": true, "name": "平安 🚀", "list": [1, 2.5, null], "empty": {}, "none": []}"#);
    assert_eq!((fitted.step, fitted.original_characters), (FitStep::Whole, characters(&fitted.text)));
    assert_eq!(fit_json(&value, characters(&fitted.text)).text, fitted.text);
    assert!(fit_json(&value, characters(&fitted.text) - 1).truncated);
}

// complaint TR-1
#[test]
fn forty_thousand_characters_become_valid_json_that_says_so() {
    let value = answer(400);
    let original = characters(&text(&value));
    assert!(original > 30_000);
    let shown = fit(&value, RESULT_LIMIT);
    assert_eq!(shown["bars"].as_array().unwrap().len(), 8);
    assert_eq!(shown["_truncation"]["truncated"], true);
    assert_eq!(shown["_truncation"]["original_characters"], original);
    assert_eq!(shown["_truncation"]["list_items_kept_per_array"], 8);
    assert_eq!(shown["_truncation"]["lists_cut"], json!([{"path": "/bars", "total": 400, "kept": "first"}]));
    assert!(shown["_truncation"]["instruction"].as_str().unwrap().len() > 20);
}

#[test]
fn steps_are_taken_in_order() {
    let value = json!({"success": true, "items": (0..20).map(|i| format!("{i}{}", "x".repeat(400))).collect::<Vec<_>>()});
    for (limit, step, kept) in [(3_000, 0, 8), (1_600, 1, 5), (900, 2, 3), (520, 3, 1)] {
        let fitted = fit_json(&value, limit);
        assert_eq!(fitted.step, FitStep::Compacted(step), "limit {limit}");
        assert_eq!(fit(&value, limit)["items"].as_array().unwrap().len(), kept);
    }
    assert_eq!(fit_json(&value, 250).step, FitStep::Minimal);
}

// complaint TR-3
#[test]
fn every_small_limit_gives_valid_json() {
    let long = "s".repeat(3_100);
    let values =
        [answer(30), failure_to(500), json!(long), rows(40), Value::Object(Map::from_iter([(long.clone(), json!(1))])), json!(7)];
    for value in &values {
        for limit in (0..3_000).step_by(7).chain(0..60) {
            fit(value, limit);
        }
    }
}

#[test]
fn the_smallest_answers_are_these() {
    let shown = |value: &Value, limit: usize| fit_json(value, limit).text;
    let (good, bad) = (answer(60), failure());
    let pairs = [
        (1, "0", "0"),
        (2, "{}", "{}"),
        (18, "{}", r#"{"success": false}"#),
        (36, r#"{"_truncation": {"truncated": true}}"#, r#"{"_truncation": {"truncated": true}}"#),
        (53, r#"{"success": true, "_truncation": {"truncated": true}}"#, r#"{"_truncation": {"truncated": true}}"#),
    ];
    for (limit, of_good, of_bad) in pairs {
        assert_eq!((shown(&good, limit).as_str(), shown(&bad, limit).as_str()), (of_good, of_bad), "limit {limit}");
    }
}

// complaint TR-8
#[test]
fn a_cut_never_falls_inside_a_character() {
    for mark in ["\u{1F680}", "\u{2A6B2}", "e\u{301}", "👩‍👩‍👧"] {
        for offset in 0..5 {
            let long = format!("{}{}", "a".repeat(offset), mark.repeat(6_000));
            for limit in [60, 100, 160, 240, 241, 500, 999, 10_000] {
                let shown = fit(&json!({"success": true, "content": long}), limit);
                assert!(!shown.to_string().contains('\u{fffd}'));
                assert!(characters(&truncate_text(&long, limit)) <= limit);
                assert!(!truncate_text(&long, limit).contains('\u{fffd}'));
                assert!(characters(&bounded_text(&long, limit)) <= limit);
            }
        }
    }
}

// complaint TR-9
#[test]
fn a_single_long_text_is_cut_in_its_field_and_says_so() {
    let shown = fit(&json!({"success": true, "title": "Notice", "content": "c".repeat(20_000)}), RESULT_LIMIT);
    let content = shown["content"].as_str().unwrap();
    assert!(content.starts_with("ccc") && content.ends_with("… [cut: 240 of 20000 characters]"), "{content}");
    assert_eq!(shown["title"], "Notice");
}

#[test]
fn coverage_stays_whole_while_rows_go() {
    let value = answer(400);
    let shown = fit(&value, 900);
    for name in ["success", "as_of", "total", "returned", "complete", "next_cursor", "missing_reasons"] {
        assert_eq!(shown[name], value[name], "{name}");
    }
}

#[test]
fn a_failure_keeps_its_correction_and_loses_what_was_sent() {
    let shown = fit(&failure(), RESULT_LIMIT);
    assert_eq!(shown["error"], failure()["error"]);
    assert_eq!(shown["correction"]["instruction"], "Add `stock_code`.");
    assert_eq!(shown["correction"]["missing_fields"], json!(["stock_code"]));
    assert!(shown["correction"]["received_arguments"]["code"].as_str().unwrap().ends_with("of 50000 characters]"));
    // Far too small for the message: the code, and how to repair, still come before everything else.
    let small = fit(&failure(), 700);
    assert_eq!(
        (&small["success"], &small["error_code"], &small["retryable"]),
        (&json!(false), &json!("invalid_tool_arguments"), &json!(true))
    );
    assert_eq!(small["correction"]["instruction"], "Add `stock_code`.");
}

#[test]
fn coverage_that_is_itself_too_long_is_compacted_last() {
    let holes: Vec<Value> = (0..2_000).map(|i| json!({"field": format!("bars[{i}].volume"), "reason": "suspended"})).collect();
    let value = json!({"success": true, "as_of": {"day": "D-1"}, "missing_reasons": holes, "bars": rows(30)});
    let fitted = fit_json(&value, RESULT_LIMIT);
    assert_eq!(fitted.step, FitStep::CoverageCompacted(0));
    let shown = fit(&value, RESULT_LIMIT);
    assert_eq!(shown["missing_reasons"].as_array().unwrap().len(), 8);
    assert_eq!(shown["_truncation"]["lists_cut"][0], json!({"path": "/missing_reasons", "total": 2_000, "kept": "first"}));
}

// seed B9.6
#[test]
fn rows_that_run_from_oldest_to_newest_keep_the_newest() {
    let order = OldestFirst::new(["/bars", "/groups/*/bars"]);
    let value = json!({"bars": rows(300), "groups": [{"bars": rows(100)}]});
    let shown: Value = serde_json::from_str(&fit_json_keeping(&value, 4_000, &order).text).unwrap();
    assert_eq!(shown["bars"][7]["row"], 299);
    assert_eq!(shown["groups"][0]["bars"][7]["row"], 99);
    assert_eq!(shown["_truncation"]["lists_cut"][0]["kept"], "last");
}

#[test]
fn a_wide_object_becomes_the_minimal_one() {
    let wide: Map<String, Value> = (0..5_000).map(|i| (format!("SHM-{i:06}"), json!(i))).collect();
    let mut map = Map::from_iter([("success".to_owned(), json!(true)), ("as_of".to_owned(), json!({"day": "D-1"}))]);
    map.extend(wide);
    let shown = fit(&Value::Object(map), RESULT_LIMIT);
    assert_eq!(shown["as_of"], json!({"day": "D-1"}));
    assert_eq!(shown["_truncation"]["list_items_kept_per_array"], 0);
    assert_eq!(shown.as_object().unwrap().len(), 3);
}

// seed B8.2, B8.3
#[test]
fn a_notice_says_how_much_of_a_text_is_shown() {
    let check = |total: usize, limit: usize| {
        let shown = truncate_text(&"x".repeat(total), limit);
        assert!(characters(&shown) <= limit, "{total} at {limit}");
        shown
    };
    assert_eq!(check(10_000, 10_000), "x".repeat(10_000));
    let shown = check(28_498, 10_000);
    let body = shown.bytes().take_while(|b| *b == b'x').count();
    assert!(shown.contains(&format!("\n\n[TRUNCATED: {body} of 28498 characters are shown.")), "{shown}");
    assert!(characters(&shown) >= 9_998);
    let nothing = check(28_498, 100);
    assert_eq!(characters(&nothing), 100);
    assert!(nothing.starts_with("[TRUNCATED: 0 of 28498"), "{nothing}");
    assert_eq!(check(5, 0), "");
}

// seed A4.5
#[test]
fn a_bounded_text_counts_what_it_leaves_out() {
    for (total, limit, ignored) in [(100_000, 65_536, 34_494), (200, 80, 148), (65_537, 65_536, 28)] {
        let shown = bounded_text(&"x".repeat(total), limit);
        assert_eq!(characters(&shown), limit);
        assert!(
            shown.ends_with(&format!("... ({ignored} characters ignored)")),
            "{total} at {limit}: {}",
            &shown[shown.len() - 40..]
        );
    }
    assert_eq!(characters(&bounded_text(&"x".repeat(1_000), 10)), 10);
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof!["[a-z]{0,12}", "\\PC{0,300}", Just("\u{1F680}".repeat(90)), Just("\"\\\n\u{1}".repeat(40))];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    let name = prop_oneof![
        3 => "[a-z_]{1,8}",
        1 => proptest::sample::select(COVERAGE).prop_map(str::to_owned),
        1 => Just("_truncation".to_owned()),
        1 => "\\PC{0,40}",
    ];
    leaf.prop_recursive(5, 120, 14, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..14).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..10).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_fits_any_limit(value in any_json(), limit in 0_usize..3_000) {
        fit(&value, limit);
    }

    #[test]
    fn fitting_is_a_function_of_its_input(value in any_json(), limit in 0_usize..2_000) {
        prop_assert_eq!(fit_json(&value, limit), fit_json(&value, limit));
    }

    #[test]
    fn the_style_is_strict_json(value in any_json()) {
        let back: Value = serde_json::from_str(&text(&value)).unwrap();
        prop_assert_eq!(back, value);
    }

    #[test]
    fn notices_stay_within_their_limit(words in "\\PC{0,600}", limit in 0_usize..700) {
        prop_assert!(characters(&truncate_text(&words, limit)) <= limit);
        prop_assert!(characters(&bounded_text(&words, limit)) <= limit);
    }
}
