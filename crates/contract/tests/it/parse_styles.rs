//! Calls in the text and json styles, row by row (spec/seeds.md A6.5 to A6.9), and what is no call.

use serde_json::{Value, json};
use traderharness_contract::parse::{CallStyle, DiagnosticKind, Parsed, parse};
use traderharness_contract::{ErrorCode, parse_arguments};

/// Definitions the text style takes spellings from.
pub(crate) fn tools() -> Vec<Value> {
    let tool = |name: &str, properties: Value| {
        json!({"type": "function", "function": {"name": name, "description": "A tool.", "parameters":
            {"type": "object", "properties": properties, "required": []}}})
    };
    vec![
        tool("f", json!({"a": {}, "b": {}, "code": {}, "n": {}})),
        tool("cased", json!({"stockCode": {"type": "string"}, "N": {"type": "integer"}})),
        tool("twins", json!({"ab": {}, "Ab": {}})),
    ]
}

pub(crate) fn read(style: CallStyle, content: &str) -> Parsed {
    parse(style, content, &[], &tools())
}

/// Names and arguments; `None` for arguments that the gate refuses.
fn calls(parsed: &Parsed) -> Vec<(&str, Option<Value>)> {
    parsed.calls.iter().map(|c| (c.name.as_str(), parse_arguments(&c.arguments).ok().map(Value::Object))).collect()
}

fn check(style: CallStyle, content: &str, expected: &[(&str, Option<Value>)]) -> Parsed {
    let parsed = read(style, content);
    assert_eq!(calls(&parsed), expected, "{content}\n{parsed:?}");
    assert!(parsed.calls.iter().all(|c| !c.incomplete && c.id.is_none()), "{content}");
    parsed
}

fn text(line: &str, args: Value) {
    let parsed = check(Text, line, &[("f", Some(args))]);
    assert_eq!(parsed.diagnostics, [], "{line}");
}

fn refused(style: CallStyle, content: &str, name: &str) {
    let parsed = check(style, content, &[(name, None)]);
    assert!(parsed.diagnostics.iter().any(|d| d.kind == DiagnosticKind::Unreadable), "{content}");
    assert!(!parsed.calls[0].repaired, "what is refused was not repaired: {content}");
    let failure = parse_arguments(&parsed.calls[0].arguments).unwrap_err().failure(name);
    assert_eq!(failure.code, ErrorCode::InvalidToolArgumentsJson);
}

fn none(style: CallStyle, content: &str, diagnostics: &[DiagnosticKind]) {
    let parsed = check(style, content, &[]);
    assert_eq!(parsed.diagnostics.iter().map(|d| d.kind).collect::<Vec<_>>(), diagnostics, "{content}");
}

use CallStyle::{Json, Text};

// seed A6.5: the rows whose upstream meaning is kept
#[test]
fn verified_rows_of_the_text_style() {
    check(
        Text,
        r#"Action: fit(x_vars=["phi0", "phi1"], y_var="y", limit=10)"#,
        &[("fit", Some(json!({"x_vars": ["phi0", "phi1"], "y_var": "y", "limit": 10})))],
    );
    text("Action: f(Code=SHM-000360, N=5)", json!({"code": "SHM-000360", "n": 5}));
    text(r#"Action: f({"a": 1, "b": null})"#, json!({"a": 1, "b": null}));
    text("Action: f(a=None, b=True)", json!({"a": null, "b": true}));
    text("Action: f()  trailing prose (see above)", json!({}));
    text("Action: f(a=1+1)", json!({"a": "1+1"}));
    for line in ["- Action: f(a=1)", "action: f(a=1)", "Action: ns.tool(a=1)"] {
        none(Text, line, &[DiagnosticKind::NearMiss]);
    }
    none(Text, "Action: f(a=1", &[DiagnosticKind::Incomplete]);
    none(Text, "I think momentum is weak.", &[]);
    none(Text, "", &[]);
}

// seed A6.5: the TRAP rows, with the value they should have had (A6.9.3, A6.9.5)
#[test]
fn trap_rows_of_the_text_style() {
    text("Action: f(c=null, d=true, e=false)", json!({"c": null, "d": true, "e": false}));
    text("Action: f(a=1) and g(b=2)", json!({"a": 1}));
    text(r#"Action: f(s="he said \"hi, bob\"", y=2)"#, json!({"s": "he said \"hi, bob\"", "y": 2}));
    text(r#"Action: f(note="has [", y=1)"#, json!({"note": "has [", "y": 1}));
    text(r#"Action: f(note='a) b', y=(1, 2))"#, json!({"note": "a) b", "y": [1, 2]}));
    for line in [
        r#"Action: f("positional", 3)"#,
        "Action: f(a=1, 3)",
        "Action: f(x=1e999)",
        "Action: f(x=NaN)",
        "Action: f(x=[1, -Infinity])",
        "Action: f({bad json})",
        r#"Action: f({"a": 1}, {"b": 2})"#,
        r#"Action: f({"a": 1, "a": 2})"#,
        "Action: f(a=1, a=2)",
        "Action: f(Code=1, code=2)",
        "Action: f(a=[1, 2)",
        r#"Action: f(a="x" + "y")"#,
        "Action: f(x=99999999999999999999)",
    ] {
        refused(Text, line, "f");
    }
    assert_eq!(read(Text, "Action: f({bad json})").calls[0].arguments, "{bad json}");
    assert_eq!(read(Text, "Action: f(\"positional\", 3)").calls[0].arguments, "\"positional\", 3");
}

#[test]
fn values_of_the_text_style() {
    text("Action: f(code=000360, n=600519)", json!({"code": "000360", "n": 600_519}));
    text(
        "Action: f(a=.5, b=5., c=+7, d=1_000, e=-0x10, g=1e3)",
        json!({"a": 0.5, "b": 5.0, "c": 7, "d": 1000, "e": -16, "g": 1000.0}),
    );
    text("Action: f(a=don't, b=it's ok)", json!({"a": "don't", "b": "it's ok"}));
    text("Action: f(a=x(1, 2) y, b=[1, foo])", json!({"a": "x(1, 2) y", "b": "[1, foo]"}));
    text("Action: f(a=(1), b=(1,), c=())", json!({"a": 1, "b": [1], "c": []}));
    text(r"Action: f(a='\x41\u516c\n', b={'k': [True, None]})", json!({"a": "A公\n", "b": {"k": [true, null]}}));
    text("  Action:f ( a = 1 , b=公司 ) 。", json!({"a": 1, "b": "公司"}));
    text("Action: f(a=, b=2)", json!({"a": "", "b": 2}));
    text("Action: f(a==1)", json!({"a": "=1"}));
}

// seed A6.9.3: the spelling of a declared property wins
#[test]
fn names_of_arguments_take_the_declared_spelling() {
    let one = |line: &str, name: &str, args: Value| check(Text, line, &[(name, Some(args))]);
    one("Action: cased(stockCode=SHM-1, n=2)", "cased", json!({"stockCode": "SHM-1", "N": 2}));
    one("Action: cased(STOCKCODE=SHM-1, Other=2)", "cased", json!({"stockCode": "SHM-1", "other": 2}));
    one("Action: twins(Ab=1, ab=2)", "twins", json!({"Ab": 1, "ab": 2}));
    one("Action: twins(AB=1)", "twins", json!({"ab": 1}));
    one("Action: unknown(Key=1)", "unknown", json!({"key": 1}));
    one(r#"Action: cased({"STOCKCODE": 1})"#, "cased", json!({"STOCKCODE": 1}));
}

#[test]
fn several_lines_and_calls_over_lines() {
    let parsed = check(
        Text,
        "First I look.\nAction: f(a=1) now\r\nthen\n\tAction: g(b=2)\nAction: f(a=1)\nDone.",
        &[("f", Some(json!({"a": 1}))), ("g", Some(json!({"b": 2}))), ("f", Some(json!({"a": 1})))],
    );
    assert_eq!(parsed.text, "First I look.\n now\r\nthen\n\t\n\nDone.");
    assert_eq!(parsed.calls[0].raw, "Action: f(a=1)");

    check(Text, "Action: f({\n  \"a\": 1\n})\nAction: g()", &[("f", Some(json!({"a": 1}))), ("g", Some(json!({})))]);
    check(Text, "Action: f(\n  a=1,\n  b=\"x\"\n)", &[("f", Some(json!({"a": 1, "b": "x"})))]);
    let inner =
        check(Text, "Action: f(a=\"one\nAction: sell(q=1)\nend\")", &[("f", Some(json!({"a": "one\nAction: sell(q=1)\nend"})))]);
    assert!(inner.calls[0].repaired);
    // A line that does not close its bracket is no call, and the next one still is; an open quote could hold all that follows.
    check(Text, "Action: f(a=1\nAction: g(b=2)", &[("g", Some(json!({"b": 2})))]);
    check(Text, "Action: f(a=1,\nAction: g(b=2)", &[("g", Some(json!({"b": 2})))]);
    check(Text, "Action: f(a=1,\nsmile :)\nAction: g(b=2)", &[("g", Some(json!({"b": 2})))]);
    none(Text, "Action: f(a=\"one\nAction: sell(q=1)", &[DiagnosticKind::Incomplete]);
    none(Text, "Action: f({\"a\": 1\nAction: sell(q=1)", &[DiagnosticKind::Incomplete]);
    none(Text, "Action: f(a=\"one\nAction: sell(q=1)\n\" oops)", &[DiagnosticKind::Incomplete]);
}

// seed A6.6, A6.9.2
#[test]
fn forms_of_the_json_style() {
    let one = |content: &str| check(Json, content, &[("a", Some(json!({"x": 1})))]);
    one("```json\n{\"tool\": \"a\", \"params\": {\"x\": 1}}\n```");
    one("```\n{\"name\": \"a\", \"arguments\": {\"x\": 1}}\n```");
    one("```JSON {\"actions\":[{\"tool\":\"a\",\"params\":{\"x\":1}}]}```");
    one("{\"actions\":[{\"tool\":\"a\",\"params\":{\"x\":1}}]}");
    one("  [{\"tool\":\"a\",\"params\":{\"x\":1}}]\n");
    one("I call {\"tool\":\"a\",\"params\":{\"x\":1}} now, see {this} and [1].");
    one("{\"tool\":\"a\",\"arguments\":\"{\\\"x\\\":1}\"}");
    one("Look at `x` and\n```python\nd = {\"tool\": \"no\", \"params\": {}}\n```\nthen {\"tool\":\"a\",\"params\":{\"x\":1}}");
    one("Use ``` for fences.\n```json\n{\"tool\":\"a\",\"params\":{\"x\":1}}\n```");
    one("````json\n{\"tool\":\"a\",\"params\":{\"x\":1}}\n````");
    check(Json, "{\"tool\":\"a\"}", &[("a", Some(json!({})))]);
    check(Json, "{\"tool\":\"a\",\"params\":null,\"thought\":\"t\"}", &[("a", Some(json!({})))]);
    let two = [("a", Some(json!({"x": 1}))), ("b", Some(json!({})))];
    check(Json, "```json\n{\"tool\":\"a\",\"params\":{\"x\":1}}\n```\nand\n```\n{\"tool\":\"b\",\"params\":{}}\n```", &two);
    check(Json, "```json\n[{\"tool\":\"a\",\"params\":{\"x\":1}}, 3, {\"tool\":\"b\",\"params\":{}}]\n```", &two);
    check(Json, "```json\n{\"tool\":\"a\",\"params\":{\"x\":1}}\n{\"tool\":\"b\",\"params\":{}}\n```", &two);
    check(Json, "{\"tool\":\"a\",\"params\":{\"x\":1}}\n{\"tool\":\"b\",\"params\":{}}", &two);
    // Identical calls are kept, an unknown tool is a call, ticks inside a value end no fence.
    check(
        Json,
        "[{\"tool\":\"zz\",\"params\":{}},{\"tool\":\"zz\",\"params\":{}}]",
        &[("zz", Some(json!({}))), ("zz", Some(json!({})))],
    );
    check(Json, "```json\n{\"tool\":\"a\",\"params\":{\"x\":\"```\\nend\"}}\n```", &[("a", Some(json!({"x": "```\nend"})))]);
    let id = read(Json, "{\"tool\":\"a\",\"params\":{},\"id\":\"7\"}");
    assert_eq!(id.calls[0].id.as_deref(), Some("7"));
}

#[test]
fn what_is_no_call_of_the_json_style() {
    for content in
        ["hello", "{}", "[]", "{\"name\": \"Ann\"}", "see {\"tool\": 3, \"params\": {}} there", "use {braces} and [brackets]"]
    {
        assert_eq!(read(Json, content).calls, [], "{content}");
    }
    none(Json, "```json\n{\"a\": 1}\n```", &[DiagnosticKind::NotACall]);
    none(Json, "{\"tool\": \"\", \"params\": {}}", &[DiagnosticKind::NotACall]);
    let drafts = "Either {\"tool\":\"buy\",\"params\":{}} or {\"tool\":\"sell\",\"params\":{}}.";
    none(Json, drafts, &[DiagnosticKind::SeveralObjects]);
    // A fence says what is meant; what stands beside it is prose.
    check(
        Json,
        "Not {\"tool\":\"sell\",\"params\":{}} but\n```json\n{\"tool\":\"a\",\"params\":{}}\n```",
        &[("a", Some(json!({})))],
    );
    // Nothing is picked out of something broken or open.
    none(Json, "{{\"tool\":\"sell\",\"params\":{}}}", &[DiagnosticKind::NotACall]);
    none(Json, "[{\"tool\":\"sell\",\"params\":{}}, oops]", &[DiagnosticKind::NotACall]);
    none(Json, "{\"actions\": [{\"tool\":\"sell\",\"params\":{}}, oops]}", &[DiagnosticKind::NotACall]);
    none(Json, "[{\"tool\":\"sell\",\"params\":{}}", &[DiagnosticKind::Incomplete]);
    none(Json, "```json\n{\"tool\":\"sell\",\"params\":{}}\n", &[DiagnosticKind::Incomplete]);
    none(Json, "```json\n{\"tool\":\"sell\",\"params\":{}}\nand so on\n```", &[DiagnosticKind::Incomplete]);
}

// seed A6.9.4
#[test]
fn what_is_repaired_loses_nothing() {
    let fixed = |params: &str, args: Value| {
        let parsed = check(Json, &format!("```json\n{{\"tool\": \"f\", \"params\": {params}}}\n```"), &[("f", Some(args))]);
        assert!(parsed.calls[0].repaired, "{params}");
    };
    fixed(r#"{"a": 1,}"#, json!({"a": 1}));
    fixed(r#"{"a": [1, 2,],}"#, json!({"a": [1, 2]}));
    fixed(r#"{'a': 'it\'s "x"'}"#, json!({"a": "it's \"x\""}));
    fixed(r#"{"a": True, "b": False, "c": None}"#, json!({"a": true, "b": false, "c": null}));
    fixed(r#"{a: 1, 公: 2}"#, json!({"a": 1, "公": 2}));
    fixed("{\"a\": \"one\n\ttwo\"}", json!({"a": "one\n\ttwo"}));
    let clean = read(Json, "{\"tool\":\"f\",\"params\":{\"a\" :  1}}");
    assert_eq!((clean.calls[0].arguments.as_str(), clean.calls[0].repaired), ("{\"a\" :  1}", false));
    let outer = check(Json, "{'tool': 'f', 'params': {\"a\": 1},}", &[("f", Some(json!({"a": 1})))]);
    assert!(outer.calls[0].repaired);
    // Only the call that was repaired says so.
    let both = read(Json, "[{\"tool\":\"f\",\"params\":{\"a\":1,}},{\"tool\":\"f\",\"params\":{}}]");
    assert_eq!(both.calls.iter().map(|c| c.repaired).collect::<Vec<_>>(), [true, false]);
}

// seed A6.9.4, A6.9.5; complaints JR-4, JR-5
#[test]
fn what_cannot_be_repaired_is_answered_and_not_run() {
    refused(Text, "Action: f(a=1,, a=2)", "f");
    refused(Text, "Action: f(a=1,\n a=2)", "f");
    for params in [
        r#"{"a": NaN}"#,
        r#"{"a": -Infinity}"#,
        r#"{"a": 1e999}"#,
        r#"{"a": 1, "a": 2}"#,
        r#"{"a": 1,, "b": 2}"#,
        r#"{"a": 1 "b": 2}"#,
        r#"{"a": .5}"#,
        r#"{"a": 01}"#,
        r#"{"a": (1, 2)}"#,
        r#"{"a": undefined}"#,
        r#"{"a": 1 /* one */}"#,
        r#"{"code": "for x in {1}: print(\d)"}"#,
        r#"{"a": "\ud83d"}"#,
        "{\"a\": \"\u{7}\"}",
        "[]",
        "3",
        "\"get\"",
        "\"[1]\"",
    ] {
        refused(Json, &format!("```json\n{{\"tool\": \"f\", \"params\": {params}}}\n```"), "f");
        if params.starts_with('{') && !params.contains(".5") && !params.contains("(1") {
            refused(Text, &format!("Action: f({params})"), "f");
        }
    }
    // Arguments beside the name, or twice, would be lost or chosen between.
    refused(Json, r#"{"tool": "f", "a": 1}"#, "f");
    refused(Json, r#"{"tool": "f", "params": {}, "arguments": {"a": 1}}"#, "f");
    let raw = read(Json, r#"{"tool": "f", "params": {"a": 1, "a": 2}}"#);
    assert_eq!(raw.calls[0].arguments, r#"{"a": 1, "a": 2}"#, "untouched");
}

// seed A6.9.1; complaint JR-6
#[test]
fn nothing_inside_thinking_is_a_call() {
    let parsed = check(
        Json,
        "<think>{\"tool\":\"sell\"}</think> Sure.\n```json\n{\"tool\":\"get_kline\",\"params\":{\"code\":\"SHM-000360\",}}\n``` done",
        &[("get_kline", Some(json!({"code": "SHM-000360"})))],
    );
    assert!(parsed.calls[0].repaired);
    assert_eq!(parsed.text, "Sure.\n done");
    let f = [("f", Some(json!({"a": 1})))];
    check(Text, "<think>\nAction: sell(q=1)\n<think>Action: sell(q=2)</think>\nAction: sell()\n</think>\nAction: f(a=1)", &f);
    check(Text, "<thinking>Action: x()\n[{ </thinking>Action: f(a=1)", &f);
    check(Text, "Action: sell(q=1)\n</think>\nAction: f(a=1)", &f);
    let open = check(Text, "Action: f(a=1)\n<reasoning>\nAction: sell(q=1)", &f);
    assert_eq!(open.diagnostics[0].kind, DiagnosticKind::UnclosedThinking);
    // Thinking cut out of a value would change it.
    refused(Json, "{\"tool\":\"f\",\"params\":{\"a\":\"x<think>y</think>z\"}}", "f");
    refused(Text, "Action: f({\"a\": \"x<think>y</think>z\"})", "f");
    assert_eq!(read(CallStyle::Openai, "<think>plan</think> I wait.").text, "I wait.");
}

fn dsml(bar: &str) -> String {
    "<~DSML~tool_calls>\n<~DSML~invoke name=\"get_kline\">\n<~DSML~parameter name=\"code\" string=\"true\">SHM-000360</~DSML~parameter>\n\
     <~DSML~parameter name=\"days\" string=\"false\">60</~DSML~parameter>\n</~DSML~invoke>\n<~DSML~invoke name=\"get_portfolio\">\n\
     </~DSML~invoke>\n</~DSML~tool_calls>"
        .replace('~', bar)
}

// seed B12.3
#[test]
fn dsml_is_run_only_when_it_is_the_whole_answer() {
    let both = [("get_kline", Some(json!({"code": "SHM-000360", "days": 60}))), ("get_portfolio", Some(json!({})))];
    for style in [CallStyle::Openai, Json, Text] {
        for bar in ["|", "\u{ff5c}"] {
            let whole = check(style, &format!("<think>x</think>\n{}\n", dsml(bar)), &both);
            assert_eq!((whole.text.as_str(), whole.diagnostics.as_slice()), ("", [].as_slice()));
            none(style, &format!("For example:\n{}", dsml(bar)), &[DiagnosticKind::ForeignMarkup]);
            none(style, &format!("{}\nThat is it.", dsml(bar)), &[DiagnosticKind::ForeignMarkup]);
        }
    }
    let twice = dsml("|").replace("name=\"days\"", "name=\"code\"");
    assert_eq!(calls(&read(Json, &twice))[0], ("get_kline", None), "a parameter twice");
    let broken = dsml("|").replace(">60<", ">60,<");
    assert_eq!(calls(&read(Json, &broken))[0], ("get_kline", None), "no JSON value");
    let untyped = dsml("|").replace(" string=\"false\"", "");
    assert_eq!(calls(&read(Json, &untyped))[0], ("get_kline", Some(json!({"code": "SHM-000360", "days": "60"}))));
    let thought = dsml("|").replace(">60<", "><think>6</think>0<");
    none(Json, &thought, &[DiagnosticKind::ForeignMarkup]);
}

#[test]
fn what_was_not_taken_is_told_to_the_model() {
    let parsed = read(Text, "- Action: f(a=1)\nAction: g(b=");
    assert_eq!(
        parsed.notice().unwrap(),
        "Parts of your answer were not run:\n- a line looks like a call but does not follow the syntax: - Action: f(a=1)\n\
         - a call was not complete and was not run: Action: g(b="
    );
    assert_eq!(read(Text, "Action: f(a=NaN)").notice(), None, "answered under its own id");
    let many = read(Json, &"[{}]".repeat(5000));
    assert!(many.diagnostics.len() <= 32);
}
