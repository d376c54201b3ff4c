//! What holds for every text: nothing panics, what is run is one complete JSON object, and a cut call is never run.

use crate::parse_prompt::any_args;
use crate::parse_styles::tools;
use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_contract::parse::{CallStyle, ParsedCall, parse, write_call};
use traderharness_contract::parse_arguments;

const STYLES: [CallStyle; 3] = [CallStyle::Openai, CallStyle::Json, CallStyle::Text];

/// The calls of a text that would run.
fn run(style: CallStyle, content: &str) -> Vec<(String, Value)> {
    let parsed = parse(style, content, &[], &tools());
    for call in &parsed.calls {
        assert!(!call.name.is_empty() && call.raw.is_string());
        assert!(!call.repaired || call.is_readable(), "{call:?}");
    }
    let runs = |call: &ParsedCall| Some((call.name.clone(), Value::Object(parse_arguments(&call.arguments).ok()?)));
    parsed.calls.iter().filter_map(runs).collect()
}

/// Every cut of a document runs a beginning of what the whole of it runs.
fn cut_everywhere(style: CallStyle, document: &str) {
    let whole = run(style, document);
    assert!(!whole.is_empty(), "{document}");
    for (cut, _) in document.char_indices() {
        let part = run(style, &document[..cut]);
        assert!(whole.starts_with(&part), "{style:?} cut to {:?} runs {part:?}", &document[..cut]);
        let ended = parse(style, &document[..cut], &[], &tools()).ended(style, "length");
        assert!(ended.calls.iter().all(|call| !call.is_readable()), "{}", &document[..cut]);
    }
}

// complaints JR-1, JR-2
#[test]
fn a_document_cut_at_any_byte_runs_only_whole_calls() {
    for document in [
        "Action: f(a=1)",
        "Action: f(a=1.5e3, b=True, c=None, d=.5)",
        "I look.\nAction: f(s=\"a) b\\\"c\", y=[1, (2, 3)], z={'k': \"v\"}) and more (x)\nAction: g({\"n\": {\"m\": [1, 2]}})\nDone (really).",
        "Action: f({\n  \"a\": \"x\ny\",\n  \"b\": [1,\n 2]\n})\nAction: g()",
        "Action: f(\n  a=\"one\nAction: sell(q=1)\nend\",\n  b=2\n)\nAction: h(a=SHM-000360, b=it's)",
        "Action: f(a=\"Action: g()\")\nAction: f(a='''x''')",
    ] {
        cut_everywhere(CallStyle::Text, document);
    }
    for document in [
        "{\"tool\": \"f\", \"params\": {\"code\": \"SHM-000360\", \"n\": -1.5e3, \"s\": \"a } \\\" ]\"}}",
        "Sure.\n```json\n{\"tool\": \"f\", \"params\": {\"a\": 1}}\n```\nand\n```json\n{\"name\": \"g\", \"arguments\": \"{\\\"b\\\": {}}\"}\n``` done",
        "```json\n[{\"tool\": \"f\", \"params\": {}}, {\"tool\": \"g\", \"params\": {\"a\": [1, {\"tool\": \"sell\", \"params\": {}}]}}]\n```",
        "{\"actions\": [{\"tool\": \"f\", \"params\": {\"a\": 1,}}, {'tool': 'g', params: {'b': True}}]}",
        "[{\"tool\": \"f\", \"params\": {\"note\": \"{\\\"tool\\\": \\\"sell\\\", \\\"params\\\": {}}\"}}]",
        "````json\n{\"tool\": \"f\", \"params\": {\"s\": \"```json\\n{}\\n```\"}}\n````",
        "{\"tool\": \"f\", \"params\": {\"code\": \"公\\ud83d\\ude80\n'x'\"}}",
    ] {
        cut_everywhere(CallStyle::Json, document);
    }
    let tags = "<|DSML|tool_calls><|DSML|invoke name=\"f\"><|DSML|parameter name=\"a\" string=\"true\">x</|DSML|parameter>\
        <|DSML|parameter name=\"b\" string=\"false\">[1, 2]</|DSML|parameter></|DSML|invoke></|DSML|tool_calls>";
    for style in STYLES {
        cut_everywhere(style, tags);
    }
}

#[test]
fn a_native_call_cut_at_any_byte_is_refused() {
    let whole = "{\"code\": \"SHM-000360\", \"n\": [1, -2.5e3, true, null], \"s\": \"\\ud83d\\ude80 公\"}";
    for (cut, _) in whole.char_indices().skip(1) {
        let native = [json!({"id": "c1", "function": {"name": "f", "arguments": &whole[..cut]}})];
        let parsed = parse(CallStyle::Openai, "", &native, &[]);
        assert!(!parsed.calls[0].is_readable(), "{}", &whole[..cut]);
    }
}

#[test]
fn long_and_deep_texts_are_read_in_one_pass() {
    for pattern in [
        "{",
        "[",
        "[{",
        "{\"a\":",
        "{}",
        "[{}]",
        "```",
        "```json\n{",
        "``` {} ",
        "<",
        "<think",
        "<think>",
        "</think>",
        "Action: f(",
        "Action: f(a=[\n",
        "Action: f(a=\"\n",
        "Action: f(a=b[\n",
        "- Action: (\n",
        "{'a':'",
        "(",
        "\u{1}",
        "{\"tool\":\"f\",\"params\":{}}",
        "<|DSML|tool_calls>",
        "`{",
        "[ ",
    ] {
        let text = pattern.repeat(400_000 / pattern.len());
        for style in STYLES {
            let _ = parse(style, &text, &[], &[]);
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("Action: ".to_owned()),
        Just("f(".to_owned()),
        Just("```json\n".to_owned()),
        Just("```".to_owned()),
        Just("{\"tool\": \"f\", \"params\": ".to_owned()),
        Just("{\"actions\": [".to_owned()),
        Just("<think>".to_owned()),
        Just("</think>".to_owned()),
        Just("<|DSML|invoke name=\"f\">".to_owned()),
        "[\\[\\]{}(),:='\" \n\\\\]",
        "a=|1|x|NaN|True|null|公|\\.5|\\\\u[0-9a-f]{4}",
        "\\PC{0,8}",
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_without_a_panic(text in any_text()) {
        for style in STYLES {
            for (name, _) in run(style, &text) {
                // A call is never made up.
                prop_assert!(text.contains(&name));
            }
        }
    }

    #[test]
    fn any_written_call_cut_anywhere_is_not_run(args in any_args(), at in any::<prop::sample::Index>()) {
        for style in [CallStyle::Json, CallStyle::Text] {
            let call = write_call(style, "f", &args);
            prop_assume!(!call.contains("think>"));
            let cuts: Vec<usize> = call.char_indices().map(|(cut, _)| cut).collect();
            let cut = cuts[at.index(cuts.len())];
            prop_assert_eq!(run(style, &call[..cut]), [] as [(String, Value); 0], "{}", &call[..cut]);
        }
    }
}
