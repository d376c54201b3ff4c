//! What this crate says of Python's JSON, held against a CPython that is here: the frozen texts in `python.rs` are few, these are many.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use std::io::Write as _;
use std::process::{Command, Stdio};
use traderharness_replay::reference::PyValue;

/// Reads one JSON text per line; writes for each the sorted compact text in hexadecimal and its digest, or that it has none.
const PROGRAM: &str = r#"
import hashlib, json, sys
for line in sys.stdin.buffer:
    text = json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    except UnicodeEncodeError:
        digest = "none"
    print(text.encode("utf-8", "surrogatepass").hex(), digest)
"#;

/// Numbers as a file may spell them: what two writers of numbers are most likely to differ in.
fn number() -> impl Strategy<Value = String> {
    let edges = [
        "1e16",
        "1e15",
        "9999999999999998.0",
        "1e-4",
        "1e-5",
        "-0.0",
        "-0",
        "1e22",
        "1e23",
        "5e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "1e400",
        "NaN",
        "Infinity",
        "-Infinity",
        "18446744073709551616",
        "-9223372036854775809",
        "9007199254740993",
        "9007199254740993.0",
        "0.1",
        "1E5",
        "100.0",
        "123456789012345678901234567890123456789",
    ];
    prop_oneof![
        prop::sample::select(edges.to_vec()).prop_map(str::to_owned),
        any::<u64>().prop_map(f64::from_bits).prop_filter("a number", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
        any::<i128>().prop_map(|n| n.to_string()),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?",
    ]
}

/// Texts: plain, escaped as `ensure_ascii` writes them, halves of a pair alone and together, control characters.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<u16>().prop_map(|unit| format!("\\u{unit:04x}")),
        (0xd800_u16..0xdc00, 0xdc00_u16..0xe000).prop_map(|(high, low)| format!("\\u{high:04x}\\u{low:04X}")),
        prop::sample::select(vec!["\\n", "\\/", "\\\\", "\\\"", "\\b", "\\f", "\\r", "\\t"]).prop_map(str::to_owned),
        "[^\u{0}-\u{1f}\"\\\\\u{7f}-\u{9f}]{1,4}",
        "[\u{7f}-\u{a0}\u{2028}\u{2029}\u{feff}]",
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// One JSON text on one line, with the space and the repeated keys that a writer may leave.
fn any_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned), number(), text(),];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec((text(), inner), 0..6).prop_map(|entries| {
                let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key} : {value}")).collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    })
}

// engine E13.3
#[test]
fn texts_and_digests_of_two_thousand_values_are_those_of_the_cpython_that_is_here() {
    let python = Command::new("python3").args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut python) = python else {
        println!("skipped: there is no python3 to hold the texts against");
        return;
    };
    // The same values in every run: what fails here fails again.
    let mut runner = TestRunner::deterministic();
    let values = any_text();
    let inputs: Vec<String> = (0..2_000).map(|_| values.new_tree(&mut runner).unwrap().current()).collect();
    let mut into = python.stdin.take().unwrap();
    let all = inputs.join("\n");
    let writing = std::thread::spawn(move || into.write_all(all.as_bytes()));
    let out = python.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(out.status.success());
    let out = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.lines().count(), inputs.len());
    for (input, line) in inputs.iter().zip(out.lines()) {
        let (text, digest) = line.split_once(' ').unwrap();
        let value = PyValue::parse(input).unwrap_or_else(|fault| panic!("{input}: {fault}"));
        let ours: String = value.sorted_text().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(ours, text, "{input}");
        let ours = value.fingerprint().map_or_else(|_| "none".to_owned(), |digest| digest.to_string());
        assert_eq!(ours, digest, "{input}");
    }
}
