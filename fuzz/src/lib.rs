//! What each fuzz target checks, as plain functions, so that the workspace tests run them too. Each takes any bytes and panics only when
//! a promise of the reader is broken.

use serde_json::{Value, json};
use traderharness_contract::budget::cursor::{Cursor, CursorScope};
use traderharness_contract::parse::{CallStyle, DeltaAccumulator, Parsed, STREAM_CUT, has_call_markup, parse, parse_message};
use traderharness_contract::parse_arguments;
use traderharness_replay::Cassette;

const STYLES: [CallStyle; 3] = [CallStyle::Openai, CallStyle::Json, CallStyle::Text];

/// Any answer in any style: what is run is one complete object, and a cut answer runs nothing.
pub fn parse_styles(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let tools = [json!({"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {}, "Code": {}}}}})];
    has_call_markup(&text);
    let native = [json!({"id": "c1", "function": {"name": "f", "arguments": text}})];
    for style in STYLES {
        let parsed = parse(style, &text, &native, &tools);
        for call in &parsed.calls {
            assert!(!call.incomplete);
            assert!(!call.repaired || call.is_readable());
            assert!(style == CallStyle::Openai || text.contains(&call.name));
        }
        runs_nothing(parsed.ended(style, STREAM_CUT));
    }
    // The same bytes as a message, and as the lines of a stream.
    if let Ok(message) = serde_json::from_slice::<Value>(data) {
        for style in STYLES {
            parse_message(style, &message, "stop", &tools);
            runs_nothing(parse_message(style, &message, STREAM_CUT, &tools));
        }
    }
    let mut stream = DeltaAccumulator::new();
    for line in text.lines() {
        if let Ok(chunk) = serde_json::from_str::<Value>(line) {
            stream.push(&chunk, None);
            stream.push_chunk(&chunk);
        }
    }
    let streamed = stream.finish();
    let parsed = streamed.parse(CallStyle::Openai, &[]);
    if streamed.finish_reason == STREAM_CUT {
        runs_nothing(parsed);
    }
}

fn runs_nothing(parsed: Parsed) {
    assert!(parsed.calls.iter().all(|call| call.incomplete && !call.is_readable()));
}

/// Argument text: what is read is what the general reader reads; nothing else is accepted.
pub fn arguments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse_arguments(text) {
        Ok(map) if text.trim().is_empty() => assert!(map.is_empty()),
        Ok(map) => assert_eq!(serde_json::from_str::<Value>(text).ok(), Some(Value::Object(map))),
        Err(fault) => assert!(fault.position <= text.chars().count()),
    }
}

/// A cursor: only what was given for this query is taken, and it is spelled in one way.
pub fn cursor(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let scope = CursorScope::new("list", &json!({"a": 1}), "day 3");
    if let Ok(cursor) = Cursor::decode(text, &scope) {
        assert_eq!(cursor.encode(&scope), text);
    }
    let offset = data.iter().fold(0_u64, |offset, byte| offset.wrapping_mul(257).wrapping_add(u64::from(*byte)));
    let given = Cursor { offset };
    assert_eq!(Cursor::decode(&given.encode(&scope), &scope), Ok(given));
}

/// The lines of a cassette: read or refused with the place of the fault; a sealed one verifies or says why not.
pub fn cassette(data: &[u8]) {
    match Cassette::from_bytes("fuzz", data) {
        Ok(cassette) => {
            let _ = cassette.verify();
            for step in 0..cassette.calls().len() {
                let _ = cassette.request(step);
            }
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}
