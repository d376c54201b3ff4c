//! The canonical text of a JSON value: what every fingerprint is taken over. It must never depend on insertion order, on
//! hash order, or on how a JSON library happens to print a number.
//!
//! Version 1 is RFC 8785 (JSON Canonicalization Scheme) with one stated superset:
//!
//! | part | text |
//! |---|---|
//! | object | keys in ascending order of their UTF-16 code units, no spaces |
//! | array | elements in order, no spaces |
//! | string | UTF-8 as it is; escaped are only `"` `\` and U+0000-U+001F, as `\b \t \n \f \r` or `\u00xx` in lower case |
//! | floating point | the ECMAScript text of the double: `1e+21`, `1e-7`, `0.30000000000000004`; `-0` is `0`; `100.0` is `100` |
//! | integer of 64 bits | all its digits, also beyond 2^53 (the superset: RFC 8785 would round it to a double) |
//! | `true` `false` `null` | as they are |
//!
//! A number that is not finite has no JSON value and cannot get here. No Unicode normalisation takes place. Two integral
//! doubles beyond 2^53 keep their ECMAScript text, so `9223372036854775808.0` is `9223372036854776000` while the integer
//! `9223372036854775808` keeps its digits.
//!
//! The form is frozen: `tests/vectors/canonical.json` holds texts and digests that were computed by another language. A
//! change of any byte needs a new version, because it would turn away every recording made before.

use crate::Fingerprint;
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// Version of the canonical form described in this module. It is written into every cassette and hashed into every
/// request fingerprint.
pub const CANONICAL_VERSION: u32 = 1;

/// Writes `value` in canonical form.
///
/// ```
/// let value = serde_json::json!({"b": 100.0, "a": [1e-7, "\u{2028}"]});
/// assert_eq!(traderharness_replay::canonical::to_string(&value), "{\"a\":[1e-7,\"\u{2028}\"],\"b\":100}");
/// ```
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, &Canonical, &mut out);
    out
}

/// SHA-256 over the UTF-8 bytes of the canonical form.
pub fn digest(value: &Value) -> [u8; 32] {
    let mut out = Hashing::new();
    write_value(value, &Canonical, &mut out);
    out.finish().0
}

/// True when both values have the same canonical form: key order and the spelling of a number do not count.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Number(a), Value::Number(b)) => a == b || number_text(a) == number_text(b),
        _ => a == b,
    }
}

/// The canonical text of one number.
pub fn number_text(number: &Number) -> String {
    let mut out = String::new();
    Canonical.number(number, &mut out);
    out
}

/// Where text goes: a string, or a digest that never holds the text.
pub(crate) trait Sink {
    fn put(&mut self, text: &str);
}

impl Sink for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// A sink that only hashes, in blocks: most pieces are a few bytes.
pub(crate) struct Hashing {
    digest: Sha256,
    block: String,
}

impl Hashing {
    const BLOCK: usize = 4096;

    pub(crate) fn new() -> Self {
        Self { digest: Sha256::new(), block: String::with_capacity(Self::BLOCK) }
    }

    pub(crate) fn finish(mut self) -> Fingerprint {
        self.flush();
        Fingerprint(self.digest.finalize().into())
    }

    fn flush(&mut self) {
        self.digest.update(self.block.as_bytes());
        self.block.clear();
    }
}

impl Sink for Hashing {
    fn put(&mut self, text: &str) {
        if self.block.len() + text.len() > Self::BLOCK {
            self.flush();
        }
        if text.len() > Self::BLOCK {
            self.digest.update(text.as_bytes());
        } else {
            self.block.push_str(text);
        }
    }
}

/// What differs between one sorted compact form and another: the order of keys and the text of numbers.
pub(crate) trait Form {
    fn order(&self, a: &str, b: &str) -> std::cmp::Ordering;
    fn number(&self, number: &Number, out: &mut dyn Sink);
}

/// Version 1 of our own form.
pub(crate) struct Canonical;

impl Form for Canonical {
    fn order(&self, a: &str, b: &str) -> std::cmp::Ordering {
        // UTF-16 order and UTF-8 order part only where a surrogate pair (from U+10000) meets U+E000-U+FFFF.
        a.encode_utf16().cmp(b.encode_utf16())
    }

    fn number(&self, number: &Number, out: &mut dyn Sink) {
        if let Some(integer) = number.as_u64() {
            out.put(&integer.to_string());
        } else if let Some(integer) = number.as_i64() {
            out.put(&integer.to_string());
        } else if let Some(double) = number.as_f64() {
            out.put(ryu_js::Buffer::new().format(double));
        } else {
            // Unreachable as serde_json is built here; a number it can only show as text is kept as that text.
            out.put(&number.to_string());
        }
    }
}

/// Writes `value` in `form`. Recursion is bounded by the depth of the value; parsed JSON is at most 128 deep.
pub(crate) fn write_value(value: &Value, form: &dyn Form, out: &mut dyn Sink) {
    match value {
        Value::Null => out.put("null"),
        Value::Bool(true) => out.put("true"),
        Value::Bool(false) => out.put("false"),
        Value::Number(number) => form.number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.put("[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.put(",");
                }
                write_value(item, form, out);
            }
            out.put("]");
        }
        Value::Object(map) => write_object(map, form, out),
    }
}

pub(crate) fn write_object(map: &Map<String, Value>, form: &dyn Form, out: &mut dyn Sink) {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_by(|(a, _), (b, _)| form.order(a, b));
    out.put("{");
    for (index, (key, item)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.put(",");
        }
        write_string(key, out);
        out.put(":");
        write_value(item, form, out);
    }
    out.put("}");
}

pub(crate) fn write_string(text: &str, out: &mut dyn Sink) {
    out.put("\"");
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        // Every escaped character is one ASCII byte, so slicing beside it is always on a character boundary.
        let escape: &str = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            b'\t' => "\\t",
            b'\n' => "\\n",
            0x0c => "\\f",
            b'\r' => "\\r",
            0x00..=0x1f => {
                out.put(&text[plain_from..at]);
                out.put(&format!("\\u{byte:04x}"));
                plain_from = at + 1;
                continue;
            }
            _ => continue,
        };
        out.put(&text[plain_from..at]);
        out.put(escape);
        plain_from = at + 1;
    }
    out.put(&text[plain_from..]);
    out.put("\"");
}
