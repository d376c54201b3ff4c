//! The same bytes give the same answer however they are cut.

use crate::ask::{event, request, stream, turn, whole};
use proptest::prelude::*;
use serde_json::json;
use traderharness_connect::ChatCompletions;
use traderharness_connect::wire::{End, WireFormat as _};
use traderharness_harness::client_fault::ClientFault;
use traderharness_replay::Response;

fn read(pieces: &[&[u8]], end: &End) -> Result<Response, ClientFault> {
    let mut reader = ChatCompletions::default().reader(&request(), turn());
    for piece in pieces {
        if reader.push(piece)? {
            return reader.finish(End::Closed);
        }
    }
    reader.finish(end.clone())
}

fn samples() -> Vec<String> {
    let call =
        |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "n", "arguments": arguments}}]});
    let deltas = [json!({"content": "≥😀股"}), call("{\"股\":"), call("\"😀\"}"), json!({"reasoning_content": "hm"})];
    let text = stream(&deltas, "tool_calls");
    vec![
        text.clone() + "data: [DONE]\n\n",
        text.replace('\n', "\r\n"),
        format!("\u{feff}: x\r\r{}", text.replace('\n', "\r")),
        format!(" \n{}", whole(&json!({"role": "assistant", "content": "≥😀股"}), "stop")),
        format!("\u{feff}{}", whole(&json!({"role": "assistant", "content": "≥"}), "length")),
        event(&json!({"delta": {"content": "a"}})),
        "data: {\"error\":{\"code\":500,\"message\":\"≥\"}}\n\n".to_owned(),
        "<html>≥</html>".to_owned(),
        String::new(),
    ]
}

#[test]
fn every_single_boundary_gives_the_same_answer() {
    for text in samples() {
        for end in [End::Closed, End::Broken("reset".to_owned())] {
            let bytes = text.as_bytes();
            let expected = read(&[bytes], &end);
            for cut in 0..=bytes.len() {
                assert_eq!(read(&[&bytes[..cut], &bytes[cut..]], &end), expected, "cut at {cut} of {text:?}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single, &end), expected, "byte by byte: {text:?}");
        }
    }
}

// complaint JR-2: an answer is whole or it is none.
#[test]
fn a_stream_that_ends_anywhere_is_whole_or_an_error() {
    let text = &samples()[0];
    let expected = read(&[text.as_bytes()], &End::Closed).unwrap();
    let stopped = text.find("tool_calls\"}]").unwrap() + "tool_calls\"}]".len();
    for cut in 0..text.len() {
        for end in [End::Closed, End::Broken("reset".to_owned())] {
            match read(&[&text.as_bytes()[..cut]], &end) {
                Ok(response) => {
                    assert!(cut > stopped, "whole after {cut} of {stopped}");
                    assert_eq!(response, expected);
                }
                Err(ClientFault::Cut { .. } | ClientFault::Empty { .. } | ClientFault::Malformed { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

proptest! {
    #[test]
    fn hostile_bytes_give_an_answer_or_a_fault_however_they_are_cut(
        text in r#"(data: ?(\{"choices":\[\{"delta":\{"(content|role|tool_calls|function_call)":("a≥"|\[\{"index":[0-9]{1,20},"function":\{"name":"n","arguments":("\{"|\{\}|null)\}\}\]|null|7)\}(,"finish_reason":"(stop|length)")?\}\]\}|\[DONE\]|\{|7)|: x|[\r\n]|\n\n){0,12}"#,
        cuts in prop::collection::vec(0_usize..600, 0..5),
    ) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces, &End::Closed), read(&[bytes], &End::Closed));
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let whole = read(&[&bytes], &End::Closed);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(read(&single, &End::Closed), whole);
    }
}
