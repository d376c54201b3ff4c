//! What the early versions do otherwise: arguments, payloads, results and texts, by flag.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use traderharness_contract::version::legacy::{
    Call, READ_LIMIT, RunDay, TRUNCATED, arguments, coerce, echo, known, model_text, payload, render, text,
};
use traderharness_contract::version::{Behaviour, Behaviours, Pack, Version};
use traderharness_contract::{Envelope, ErrorCode, Outcome, ToolFailure};

const TODAY: RunDay = RunDay { index: 4 };

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "days": {"type": "integer", "minimum": 1, "maximum": 250},
            "quantity": {"type": "integer", "minimum": 0},
            "price": {"type": "number", "exclusiveMinimum": 0},
            "importance": {"type": "number", "minimum": 0, "maximum": 1},
            "protective": {"type": "boolean"},
            "action": {"type": "string", "enum": ["buy", "sell"]},
            "stock_code": {"type": "string", "minLength": 6},
            "keyword": {"type": "string", "minLength": 1, "maxLength": 5},
            "tags": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
            "industry": {"type": ["string", "array"], "items": {"type": "string"}},
            "note": {"type": ["string", "null"]},
            "summary": {"type": "string", "minLength": 1, "maxLength": 500},
            "card": {
                "type": "object",
                "properties": {"days": {"type": "integer"}, "ids": {"type": "array", "items": {"type": "integer"}}},
                "required": ["days"],
                "additionalProperties": false
            }
        },
        "required": ["stock_code"],
        "additionalProperties": false
    })
}

fn check(raw: Value, expected: Value) {
    assert_eq!(coerce(&schema(), &raw), expected, "{raw}");
}

#[test]
fn arguments_are_brought_into_type_and_range() {
    for (raw, expected) in [
        (json!("5"), json!(5)),
        (json!(" +5 "), json!(5)),
        (json!(5.0), json!(5)),
        (json!("5.0"), json!(5)),
        (json!(0), json!(1)),
        (json!(-3), json!(1)),
        (json!(1000), json!(250)),
        (json!("1e300"), json!(250)),
        (json!(u64::MAX), json!(250)),
        (json!(-1e300), json!(1)),
        // What spells no whole number stays for the checks.
        (json!(5.5), json!(5.5)),
        (json!("five"), json!("five")),
        (json!("NaN"), json!("NaN")),
        (json!("infinity"), json!("infinity")),
        (json!(true), json!(true)),
        (json!([5]), json!([5])),
    ] {
        check(json!({"stock_code": "600036", "days": raw}), json!({"stock_code": "600036", "days": expected}));
    }
    for (name, raw, expected) in [
        ("importance", json!("0.7"), json!(0.7)),
        ("importance", json!(7), json!(1)),
        ("protective", json!("TRUE"), json!(true)),
        ("protective", json!(0), json!(false)),
        ("protective", json!(2), json!(2)),
        ("action", json!(" Buy "), json!("buy")),
        ("action", json!("hold"), json!("hold")),
        ("stock_code", json!(600_036), json!("600036")),
        ("tags", json!("one"), json!(["one"])),
        ("tags", json!("[\"one\", 2]"), json!(["one", "2"])),
        ("tags", json!("[one"), json!(["[one"])),
        ("industry", json!("Banking"), json!("Banking")),
        ("industry", json!(["Banking"]), json!(["Banking"])),
        ("note", json!(null), json!(null)),
        ("summary", json!("中".repeat(501)), json!("中".repeat(500))),
        ("card", json!("{\"days\": \"3\", \"x\": 1}"), json!({"days": 3})),
        ("card", json!({"days": "3", "ids": "7"}), json!({"days": 3, "ids": [7]})),
        ("card", json!({"days": ""}), json!({"days": ""})),
    ] {
        let mut sent = json!({"stock_code": "600036"});
        let mut wanted = sent.clone();
        sent[name] = raw;
        wanted[name] = expected;
        check(sent, wanted);
    }
}

#[test]
fn what_is_unknown_or_blank_is_left_out() {
    check(
        json!({"stock_code": "600036", "days": "", "keyword": "  ", "tags": null, "colour": "red", "card": null}),
        json!({"stock_code": "600036"}),
    );
    // A required field is never left out.
    check(json!({"stock_code": " "}), json!({"stock_code": " "}));
    check(json!({"stock_code": null}), json!({"stock_code": null}));
    check(json!([1]), json!([1]));
    check(json!(null), json!(null));
}

// A sell of 0 sells everything: nothing may become 0 that was not.
#[test]
fn a_range_with_one_end_is_not_clamped_and_nothing_but_prose_is_cut() {
    for (name, value) in
        [("quantity", json!(-100)), ("price", json!(-1.5)), ("keyword", json!("too long")), ("tags", json!(["a", "b", "c"]))]
    {
        let mut sent = json!({"stock_code": "600036"});
        sent[name] = value;
        check(sent.clone(), sent);
    }
}

#[test]
fn the_last_day_of_an_order_becomes_trading_days_from_today() {
    let flags = Version::V2.behaviours();
    for (index, days) in
        [(json!(4), json!(1)), (json!(6), json!(3)), (json!("6"), json!(3)), (json!(2), json!(1)), (json!("x"), json!("x"))]
    {
        let sent = json!({"operation": "create", "expires_day_index": index});
        let taken = arguments("manage_conditional_order", sent.clone(), &flags, TODAY);
        assert_eq!(taken, json!({"operation": "create", "expires_in_trading_days": days}));
        assert_eq!(arguments("manage_conditional_order", sent.clone(), &Version::V5.behaviours(), TODAY), sent);
    }
    let far = arguments("manage_conditional_order", json!({"expires_day_index": i64::MAX}), &flags, TODAY);
    assert!(far["expires_in_trading_days"].is_number());
}

#[test]
fn a_pattern_of_two_words_is_keyword_and_sector() {
    let flags = Version::V1.behaviours();
    for (sent, taken) in [
        (json!({"keyword": "chip|battery"}), json!({"keyword": "chip", "sector": "battery"})),
        (json!({"keyword": "a|b|c"}), json!({"keyword": "a|b|c"})),
        (json!({"keyword": "a|"}), json!({"keyword": "a|"})),
        (json!({"keyword": "a|b", "sector": "c"}), json!({"keyword": "a|b", "sector": "c"})),
        (json!({"keyword": 5}), json!({"keyword": 5})),
        (json!("x"), json!("x")),
    ] {
        assert_eq!(arguments("get_news", sent, &flags, TODAY), taken);
    }
    let mut shown = json!({"filter": "chip"});
    let received = json!({"keyword": "chip", "sector": "battery"});
    echo("get_news", shown.as_object_mut().unwrap(), &received, &flags);
    assert_eq!(shown, json!({"filter": "chip|battery"}));
    echo("get_news", shown.as_object_mut().unwrap(), &json!({"keyword": "x"}), &Version::V5.behaviours());
    assert_eq!(shown, json!({"filter": "chip|battery"}));
}

// spec/versions.md: the card of v3
#[test]
fn the_card_of_22_fields_gets_the_basis_that_asks_for_nothing() {
    let sent = json!({"decision_card": {"theme": "x"}});
    let basis = |version: Version| {
        arguments("place_order", sent.clone(), &version.behaviours(), TODAY)["decision_card"]["business_fit_basis"].clone()
    };
    assert_eq!(Version::ALL.map(basis), [json!(null), json!(null), json!("industry_proxy"), json!(null), json!(null)]);
}

fn shown(tool: &str, value: Value) -> Value {
    let Value::Object(mut map) = value else { panic!("a payload is an object") };
    let before = map.clone();
    payload(tool, &mut map, &Version::V5.behaviours(), TODAY);
    assert_eq!(map, before, "nothing changes without the flag");
    payload(tool, &mut map, &Version::V4.behaviours(), TODAY);
    Value::Object(map)
}

// spec/versions.md, row on payloads. Texts are compared, so that the order of keys is too.
#[test]
fn payloads_have_the_fields_of_the_first_versions() {
    fn check(tool: &str, given: Value, expected: Value) {
        assert_eq!(text(&shown(tool, given)), text(&expected));
    }
    check(
        "get_stock_price",
        json!({"stock_code": "x", "as_of": {}, "price": 1.5, "price_source": "s", "close": 1.5, "volume": null,
               "missing_reasons": [{"field": "volume", "reason": "suspended"}, {"field": "open", "reason": "suspended"}]}),
        json!({"stock_code": "x", "close": 1.5, "volume": 0, "missing_reasons": [{"field": "open", "reason": "suspended"}]}),
    );
    check(
        "get_portfolio",
        json!({"cash": 1, "positions": [{"a": 1, "price_source": "s", "b": 2}], "price_source": "kept"}),
        json!({"cash": 1, "positions": [{"a": 1, "b": 2}], "price_source": "kept"}),
    );
    check("get_position", json!({"a": 1, "price_source": "s"}), json!({"a": 1}));
    check(
        "get_announcements",
        json!({"announcements": [{"evidence_id": "e", "time": "D-1", "title": "T"}], "total": 1}),
        json!({"announcements": ["T"], "total": 1}),
    );
    check(
        "get_news",
        json!({"news": [{"content": "中".repeat(101), "content_cut": false}, {"content": "short", "content_cut": false}]}),
        json!({"news": [{"content": "中".repeat(100), "content_cut": true}, {"content": "short", "content_cut": false}]}),
    );
    check(
        "get_business_segments",
        json!({"segments": [{"name": "n", "revenue_100m_cny": 2.5, "revenue_pct": null}],
               "missing_reasons": [{"field": "segments[0].revenue_100m_cny", "reason": "r"}]}),
        json!({"segments": [{"name": "n", "revenue_billion": 2.5, "revenue_pct": null}],
               "missing_reasons": [{"field": "segments[0].revenue_billion", "reason": "r"}]}),
    );
    check(
        "list_conditional_orders",
        json!({"orders": [
                   {"order_id": "a", "status": "active", "expires_in_trading_days": 3, "revisions": [
                       {"day_index": 2, "changes": [{"field": "expires_in_trading_days", "from": null, "to": 5.0}, {"field": "quantity", "from": 1, "to": 2}]}]},
                   {"order_id": "b", "status": "active", "expires_in_trading_days": null},
                   {"order_id": "c", "status": "expired", "expires_in_trading_days": 0, "ended_day_index": 2},
                   {"order_id": "d", "status": "cancelled", "expires_in_trading_days": 0, "ended_day_index": 2}],
               "count": 4, "total": 4}),
        json!({"orders": [
                   {"order_id": "a", "status": "active", "expires_day_index": 6, "revisions": [
                       {"day_index": 2, "changes": [{"field": "expires_day_index", "from": null, "to": 6}, {"field": "quantity", "from": 1, "to": 2}]}]},
                   {"order_id": "b", "status": "active", "expires_day_index": null},
                   {"order_id": "c", "status": "expired", "expires_day_index": 2, "ended_day_index": 2},
                   {"order_id": "d", "status": "cancelled", "expires_day_index": null, "ended_day_index": 2}],
               "total": 4}),
    );
    check(
        "manage_conditional_order",
        json!({"order": {"expires_in_trading_days": 1}}),
        json!({"order": {"expires_day_index": 4}}),
    );
    // spec/seeds.md D3
    check(
        "get_kline",
        json!({"recent_20": [{"volume": null, "close": null}]}),
        json!({"recent_20": [{"volume": 0, "close": null}]}),
    );
}

// spec/versions.md: bare payload, text whole; spec/peer.md, execute_code
#[test]
fn code_gives_what_it_printed_and_its_result() {
    let early = |value: Value| {
        let mut map = value.as_object().cloned().unwrap();
        payload("execute_code", &mut map, &Version::V2.behaviours(), TODAY);
        Value::Object(map)
    };
    let whole = |stdout: Value, result: Value, notices: Value| json!({"stdout": stdout, "result": result, "limits": {"memory_mb": 1}, "files": [{"name": "a"}], "notices": notices, "younger": 1});
    for (given, expected) in [
        (whole(json!("x\n"), json!({"volume": null}), json!([])), json!({"stdout": "x\n", "result": {"volume": null}})),
        (whole(json!(null), json!(0), json!([])), json!({"result": 0})),
        (whole(json!("x"), json!(null), json!([])), json!({"stdout": "x"})),
        (whole(json!(null), json!(null), json!([])), json!({"stdout": "(no output)"})),
        (whole(json!("x"), json!(null), json!([{"code": "c"}])), json!({"stdout": "x... (truncated)"})),
        (
            whole(json!("中".repeat(5_001)), json!(null), json!([])),
            json!({"stdout": format!("{}... (truncated)", "中".repeat(5_000))}),
        ),
    ] {
        assert_eq!(early(given), expected);
    }
    let kept = whole(json!("x"), json!(null), json!([]));
    let mut map = kept.as_object().cloned().unwrap();
    payload("execute_code", &mut map, &Version::V5.behaviours(), TODAY);
    assert_eq!(Value::Object(map), kept);
}

#[test]
fn code_that_fails_says_why_in_its_own_words() {
    let failed = |code, facts: &[(&'static str, Value)]| {
        let failure = facts.iter().fold(ToolFailure::new(code, "Reason.", "Fix."), |f, (k, v)| f.with(k, v.clone()));
        let call = Call { tool: "execute_code", read_only: false, example: &json!({}), received: &json!({}) };
        render(&Outcome::Failed(failure), &call, &Version::V3.behaviours())
    };
    use ErrorCode::{SandboxDailyLimitReached, SandboxDisallowedCode, SandboxExecutionFailed, SandboxTimeout};
    for (code, facts, expected) in [
        (SandboxDailyLimitReached, vec![("daily_limit", json!(1))], json!({"error": "Reason."})),
        (SandboxDisallowedCode, vec![("disallowed", json!("import os"))], json!({"error": "Reason.\nimport os"})),
        (
            SandboxExecutionFailed,
            vec![("exception", json!("E")), ("exception_message", json!("m")), ("traceback", json!("T")), ("stdout", json!("x"))],
            json!({"stdout": "x", "error": "T"}),
        ),
        (
            SandboxExecutionFailed,
            vec![
                ("exception", json!("SyntaxError")),
                ("exception_message", json!("m")),
                ("line", json!(2)),
                ("column", json!(3)),
            ],
            json!({"error": "SyntaxError: m (line 2, column 3)"}),
        ),
        (
            SandboxExecutionFailed,
            vec![
                ("exception", json!("TypeError")),
                ("exception_message", json!("m")),
                ("line", json!(null)),
                ("hint", json!("h")),
            ],
            json!({"error": "TypeError: m\nh"}),
        ),
        (SandboxExecutionFailed, vec![("exception_message", json!("signal 11"))], json!({"error": "Reason.\nsignal 11"})),
        (SandboxTimeout, vec![("traceback", json!("T")), ("stdout", json!(""))], json!({"error": "Reason.\nT"})),
    ] {
        assert_eq!(failed(code, &facts), expected);
    }
}

#[test]
fn results_have_the_shape_of_their_version() {
    let failure = || ToolFailure::new(ErrorCode::InsufficientCash, "Too dear.", "Buy less.");
    let (example, received) = (json!({"a": 1}), json!({"a": 2}));
    let shape = |outcome: &Outcome, tool: &str, read_only: bool, version: Version| {
        text(&render(outcome, &Call { tool, read_only, example: &example, received: &received }, &version.behaviours()))
    };
    let (read, order) = (("get_kline", true), ("place_order", false));
    let done = Outcome::Complete(Map::from_iter([("a".to_owned(), json!(1))]));
    let failed = Outcome::Failed(failure());
    for ((tool, reads), outcome, version, expected) in [
        (read, &done, Version::V1, r#"{"a": 1}"#),
        (read, &done, Version::V5, r#"{"success": true, "a": 1}"#),
        (read, &failed, Version::V4, r#"{"error": "Too dear."}"#),
        (order, &failed, Version::V1, r#"{"success": false, "error": "Too dear."}"#),
        (order, &failed, Version::V3, r#"{"success": false, "error": "Too dear.", "error_code": "insufficient_cash"}"#),
        (("remember", false), &failed, Version::V4, r#"{"success": false, "error": "Too dear."}"#),
        (order, &Outcome::Skipped { reason: "r".into() }, Version::V2, r#"{"skipped": true, "reason": "r"}"#),
        (order, &Outcome::Abort { reason: "r".into() }, Version::V2, r#"{"success": false, "error": "r", "aborted": true}"#),
        (
            order,
            &Outcome::Job { job_id: "j".into(), status_url: "u".into() },
            Version::V2,
            r#"{"job_id": "j", "state": "accepted", "status_url": "u"}"#,
        ),
    ] {
        assert_eq!(shape(outcome, tool, reads, version), expected);
    }
    // Under the flags of v5 it is the envelope of v5.
    for outcome in [
        done,
        failed,
        Outcome::Blocked(failure()),
        Outcome::Skipped { reason: "r".into() },
        Outcome::Abort { reason: "r".into() },
    ] {
        assert_eq!(
            shape(&outcome, "place_order", false, Version::V5),
            text(&Envelope::render(&outcome, "place_order", &example, &received).0)
        );
    }
    let mixed = Behaviours::of(&[Behaviour::FailureEnvelope, Behaviour::EarlyPayloads]);
    let call = Call { tool: "remember", read_only: false, example: &example, received: &received };
    assert!(render(&Outcome::Failed(failure()), &call, &mixed).get("correction").is_none());
}

#[test]
fn texts_of_read_tools_are_cut_and_others_are_whole() {
    let flags = Version::V1.behaviours();
    let value = json!({"t": "中".repeat(4000)});
    let (cut, was) = model_text(&value, true, &flags);
    assert!(was && cut.ends_with(TRUNCATED) && cut.starts_with("{\"t\": \"中"));
    assert_eq!(cut.chars().count(), READ_LIMIT + TRUNCATED.len());
    assert_eq!(model_text(&value, false, &flags), (text(&value), false));
    // Exactly as long as it may be: whole.
    let full = json!({"t": "x".repeat(READ_LIMIT - 9)});
    assert_eq!(text(&full).len(), READ_LIMIT);
    assert_eq!(model_text(&full, true, &flags), (text(&full), false));
    let (fitted, was) = model_text(&json!({"t": "x".repeat(20_000)}), true, &Version::V5.behaviours());
    assert!(was && serde_json::from_str::<Value>(&fitted).is_ok());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![
            Just(String::new()),
            Just(" ".to_owned()),
            "[0-9+.eE-]{1,8}",
            Just("[1, \"2\"]".to_owned()),
            Just("{\"days\": \"4\"}".to_owned()),
            Just("[[[".to_owned()),
            Just(" SELL".to_owned()),
            ".{0,12}",
        ]
        .prop_map(Value::from),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "days",
            "quantity",
            "price",
            "importance",
            "protective",
            "action",
            "stock_code",
            "keyword",
            "tags",
            "industry",
            "note",
            "card",
            "ids",
            "volume",
            "announcements",
            "news",
            "title",
            "content",
            "orders",
            "order",
            "revisions",
            "changes",
            "segments",
            "positions",
            "expires_in_trading_days",
            "expires_day_index",
            "missing_reasons",
            "field",
            "decision_card",
            "day_index",
            "from",
            "to",
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,4}",
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn coercion_is_total_and_a_fixed_point(raw in any_json(), other in any_json()) {
        let once = coerce(&schema(), &raw);
        prop_assert_eq!(coerce(&schema(), &once), once);
        // Any JSON as a schema, too.
        let once = coerce(&other, &raw);
        prop_assert_eq!(coerce(&other, &once), once);
    }

    #[test]
    fn a_coerced_object_has_only_fields_of_the_schema(raw in any_json()) {
        if let (Value::Object(_), Value::Object(out)) = (&raw, coerce(&schema(), &raw)) {
            let schema = schema();
            let named = schema["properties"].as_object().unwrap();
            prop_assert!(out.keys().all(|name| named.contains_key(name)));
        }
    }

    #[test]
    fn arguments_payloads_and_results_take_any_json(value in any_json(), tool in prop::sample::select(traderharness_contract::version::TOOL_NAMES.to_vec()), read_only: bool, index: u32) {
        let day = RunDay { index };
        for version in Version::ALL {
            let flags = version.behaviours();
            let _ = arguments(tool, value.clone(), &flags, day);
            let mut map = value.as_object().cloned().unwrap_or_default();
            payload(tool, &mut map, &flags, day);
            echo(tool, &mut map, &value, &flags);
            let call = Call { tool, read_only, example: &value, received: &value };
            let result = render(&Outcome::Complete(map), &call, &flags);
            let (text, cut) = model_text(&result, read_only, &flags);
            let limit = if flags.has(Behaviour::ValidJsonBudget) { 10_000 } else if read_only { READ_LIMIT + TRUNCATED.len() } else { usize::MAX };
            prop_assert!(text.chars().count() <= limit);
            if !cut {
                prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
            }
        }
    }
}

// spec/versions.md: nothing is ever added to v1-v4, not even by a field that v5 gains
#[test]
fn a_field_that_comes_after_v5_is_nothing_under_an_early_version() {
    for version in [Version::V1, Version::V2, Version::V3, Version::V4] {
        let tool = Pack::builtin(version).unwrap().tool("get_kline").unwrap();
        let sent = json!({"stock_code": "600001", "days": 5, "detail": "full", "of_a_later_version": true});
        assert_eq!(known(tool, sent), json!({"stock_code": "600001", "days": 5, "detail": "full"}));
        assert_eq!(known(tool, json!([1])), json!([1]));
    }
}
