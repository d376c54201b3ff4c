//! Calls of a real model: one recorded day of 65 calls, with reasoning, parallel calls and argument strings exactly as they were produced.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use traderharness_contract::parse::{CallStyle, ParsedCall, describe, parse, parse_message, write_call};
use traderharness_contract::{Definition, Policy, parse_arguments};
use traderharness_harness::toolbox::definitions;

/// The assistant messages, with their finish reasons; `None` where the data is not.
fn turns() -> Option<Vec<(Value, String)>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/llm-output/momentum_dragon_2024-03-14.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: the recorded model output is not here");
        return None;
    };
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let outputs = lines.filter_map(|line| line.get("output").cloned());
    Some(outputs.map(|message| (message.clone(), message["_finish_reason"].as_str().unwrap_or_default().to_owned())).collect())
}

fn published() -> BTreeMap<&'static str, Definition> {
    definitions(&Policy::default()).into_iter().map(|definition| (definition.spec.name, definition)).collect()
}

/// What validation says of a call.
fn verdict(published: &BTreeMap<&'static str, Definition>, call: &ParsedCall) -> String {
    let Some(definition) = published.get(call.name.as_str()) else { return "unknown tool".to_owned() };
    let args = match parse_arguments(&call.arguments) {
        Ok(args) => Value::Object(args),
        Err(fault) => return fault.to_string(),
    };
    match definition.validate(&definition.normalise(args).args) {
        Ok(()) => "valid".to_owned(),
        Err(issues) => issues.iter().map(|issue| issue.message.clone()).collect::<Vec<_>>().join("; "),
    }
}

#[test]
fn real_calls_are_read_as_they_were_sent_and_validated() {
    let Some(turns) = turns() else { return };
    let published = published();
    assert_eq!(turns.len(), 21);
    let (mut count, mut parallel, mut refused) = (0, 0, Vec::new());
    for (message, finish) in &turns {
        let parsed = parse_message(CallStyle::Openai, message, finish, &[]);
        let sent = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(parsed.calls.len(), sent.len());
        assert_eq!(parsed.diagnostics, []);
        assert_eq!(parsed.text, message["content"].as_str().unwrap_or_default().trim());
        parallel += usize::from(sent.len() > 1);
        for (call, sent) in parsed.calls.iter().zip(sent) {
            count += 1;
            assert_eq!((call.id.as_deref(), call.incomplete, call.repaired), (sent["id"].as_str(), false, false));
            assert_eq!(Some(call.arguments.as_str()), sent["function"]["arguments"].as_str(), "not a byte is changed");
            let verdict = verdict(&published, call);
            if verdict != "valid" {
                refused.push(format!("{}: {verdict}", call.name));
            }
        }
    }
    assert_eq!((count, parallel), (65, 14));
    // The model of the recording was not told a limit; it is told this one and sends the day's summary again.
    assert_eq!(refused, ["finish_day: `summary` must be a string of 1 to 500 characters"]);
}

#[test]
fn real_calls_survive_being_written_and_read_in_every_style() {
    let Some(turns) = turns() else { return };
    let offered: Vec<Value> = published().values().map(Definition::to_openai).collect();
    for (message, finish) in &turns {
        let calls = parse_message(CallStyle::Openai, message, finish, &[]).calls;
        for style in [CallStyle::Json, CallStyle::Text] {
            let written: Vec<String> =
                calls.iter().map(|c| write_call(style, &c.name, &parse_arguments(&c.arguments).expect("read"))).collect();
            let said = parse(CallStyle::Openai, message["content"].as_str().unwrap_or_default(), &[], &[]).text;
            let content = format!("{said}\n\n{}\nThat is all (for now).", written.join("\n"));
            let read = parse(style, &content, &[], &offered).calls;
            assert_eq!(read.len(), calls.len());
            for (read, call) in read.iter().zip(&calls) {
                assert_eq!((&read.name, parse_arguments(&read.arguments)), (&call.name, parse_arguments(&call.arguments)));
                // Cut at every byte, the written call never runs.
                let one = write_call(style, &call.name, &parse_arguments(&call.arguments).expect("read"));
                let step = one.len() / 200 + 1;
                for (cut, _) in one.char_indices().step_by(step) {
                    let part = parse(style, &one[..cut], &[], &offered);
                    assert!(part.calls.iter().all(|call| !call.is_readable()), "{}", &one[..cut]);
                }
            }
        }
    }
}

// complaint JR-7
#[test]
fn the_prompt_of_the_published_tools_shows_a_call_that_is_read_and_valid() {
    let published = published();
    let offered: Vec<Value> = published.values().map(Definition::to_openai).collect();
    for style in [CallStyle::Json, CallStyle::Text] {
        for tools in std::iter::once(offered.as_slice()).chain(offered.iter().map(std::slice::from_ref)) {
            let prompt = describe(style, tools).expect("a prompt");
            let example = &prompt[prompt.find("# Calling a tool").expect("the syntax")..];
            let calls = parse(style, example, &[], tools).calls;
            let [call] = calls.as_slice() else { panic!("{example}") };
            assert_eq!(verdict(&published, call), "valid", "{example}");
        }
    }
}
