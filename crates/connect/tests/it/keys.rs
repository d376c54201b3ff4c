//! A planted key is in no answer, error, note or record, in no form (complaint RP-4).

use crate::ask::{KEY, at_once, block, endpoint, request, turn, whole};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use traderharness_connect::testing::{Reply, Server};
use traderharness_connect::{ChatCompletions, OpenAiClient};
use traderharness_harness::model::ModelClient;
use traderharness_harness::resume::ResumingClient;
use traderharness_replay::{Message, Meta, Recorder};

/// Base64 as servers write it.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            out.push(char::from(ALPHABET[(word >> (18 - 6 * place)) as usize & 63]));
        }
    }
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    out
}

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").unwrap();
        }
        out
    })
}

/// The key as it may come back.
fn forms() -> Vec<String> {
    let mut forms = vec![KEY.to_owned(), percent(KEY), percent(KEY).to_lowercase(), format!("Bearer {KEY}")];
    for before in ["", "B", "Be", "Bearer ", "user:"] {
        forms.push(base64(format!("{before}{KEY}").as_bytes()));
        forms.push(base64(format!("{before}{KEY} and more").as_bytes()).replace('+', "-").replace('/', "_"));
    }
    forms.push(KEY.bytes().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    }));
    forms
}

/// Nothing of the key may be in `text`: no form and no long part of it.
fn check_clean(text: &str) {
    let lower = text.to_lowercase();
    assert!(!text.contains("planted") && !lower.contains(&percent("/key+").to_lowercase()), "{text}");
    assert!(!lower.contains("706c616e746564"), "hexadecimal: {text}");
    // Three characters are the most that base64 gives away of what surrounds the key.
    for offset in 0..3 {
        let padded = format!("{}{KEY}", "x".repeat(offset));
        let inside = base64(padded.as_bytes());
        let inside = inside.trim_end_matches('=');
        for window in inside.as_bytes()[2..].windows(10) {
            let part = std::str::from_utf8(window).unwrap();
            assert!(!text.contains(part) && !text.contains(&part.replace('+', "-").replace('/', "_")), "base64 {part}: {text}");
        }
    }
}

/// Every text a person or a record gets to see when a server gives `reply`.
fn everything_seen(reply: Reply, attempts: u32) -> String {
    let server = Server::replies(vec![reply; attempts as usize]).unwrap();
    let seen = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&seen);
    let client = OpenAiClient::new(ChatCompletions::default(), endpoint(&server), at_once(attempts)).unwrap();
    let client = client.watched(Arc::new(move |progress| write!(kept.lock().unwrap(), "{progress:?} ").unwrap()));
    let debug = format!("{client:?} {client:#?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let mut client = ResumingClient::new(None, client, Recorder::create(&path, Meta::default()).unwrap());
    let answer = block(client.complete(&request(), turn()));
    let errors = match &answer {
        Ok(_) => String::new(),
        Err(error) => format!("{error} {error:?}"),
    };
    client.into_recorder().finish().unwrap();
    let record = std::fs::read_to_string(&path).unwrap();
    format!("{debug} {} {answer:?} {errors} {record}", seen.lock().unwrap())
}

#[test]
fn errors_and_notes_hold_no_key() {
    for form in forms() {
        let body = json!({"error": {"message": format!("bad key {form}, sorry"), "code": form}}).to_string();
        for reply in [
            Reply::status(401, &[], &body),
            Reply::status(500, &[], &body),
            Reply::status(429, &[], format!("plain {form}")),
            Reply::status(200, &[], format!("<html>{form}</html>")),
            Reply::status(200, &[], &body),
            Reply::stream(format!("data: {form}\n\n")),
            Reply::stream(format!("data: {body}\n\n")),
            Reply::status(302, &[("Location", &format!("/{form}?k={form}"))], ""),
            Reply::raw(format!("{form}\r\n\r\n")),
        ] {
            check_clean(&everything_seen(reply, 2));
        }
    }
}

#[test]
fn answers_that_repeat_the_key_go_on_without_it() {
    for form in forms() {
        let message = json!({"role": "assistant", "content": format!("your key is {form}."), "reasoning_content": form, "refusal": form,
            "tool_calls": [{"id": form, "extra": {form.as_str(): [form]}, "function": {"name": form, "arguments": json!({"a": form}).to_string()}}]});
        let mut body = whole(&message, &form);
        body["model"] = form.as_str().into();
        body["usage"] = json!({"prompt_tokens": 1, "completion_tokens": 1, "note": form});
        body["choices"][0]["logprobs"] = json!({"content": [{"token": form, "logprob": -1.0}]});
        check_clean(&everything_seen(Reply::json(&body), 1));
    }
}

#[test]
fn a_key_that_comes_in_pieces_is_found() {
    let pieces: Vec<Value> = KEY.chars().map(|c| json!({"content": c.to_string()})).collect();
    check_clean(&everything_seen(Reply::stream(crate::ask::stream(&pieces, "stop")), 1));
}

#[test]
fn a_request_that_holds_the_key_is_not_sent() {
    let server = Server::replies([]).unwrap();
    let mut client = OpenAiClient::new(ChatCompletions::default(), endpoint(&server), at_once(1)).unwrap();
    let mut request = request();
    request.messages.push(Message::user(format!("OPENAI_API_KEY={KEY}")));
    let error = block(client.complete(&request, turn())).unwrap_err().to_string();
    assert_eq!(error, "the request cannot be sent: it holds the key itself, which would then be recorded");
    assert_eq!(server.received(), []);
}
