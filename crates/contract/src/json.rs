//! JSON as contract v5 writes it: `", "` and `": "` separators, no ASCII escaping, keys in the order they were built
//! (spec/versions.md). Sizes are counted in Unicode scalar values, never in bytes.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};
use std::io;

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }
    fn begin_object_key<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }
}

/// JSON text of `value` in the v5 style. A [`Value`] holds no NaN and no infinity, so the text is always strict JSON.
pub fn text(value: &Value) -> String {
    let mut out = Vec::with_capacity(256);
    match value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)) {
        // The serialiser writes UTF-8 only; the lossy form never replaces anything.
        Ok(()) => String::from_utf8(out).unwrap_or_else(|fault| String::from_utf8_lossy(fault.as_bytes()).into_owned()),
        Err(_) => value.to_string(),
    }
}

/// Characters of [`text`] of a value, without making the text.
pub fn length(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Every scalar value has exactly one byte that does not continue another.
            self.0 += bytes.iter().filter(|b| **b & 0xc0 != 0x80).count();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match value.serialize(&mut Serializer::with_formatter(&mut count, Spaced)) {
        Ok(()) => count.0,
        Err(_) => characters(&text(value)),
    }
}

/// Number of Unicode scalar values.
pub fn characters(text: &str) -> usize {
    // Counting the bytes that start a scalar value is what `chars().count()` does, with a fast path for ASCII.
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The first `count` scalar values of `text`; never cuts inside one.
pub fn prefix(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The same value with the keys of every object sorted; the form that digests are taken of.
#[must_use]
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            Value::Object(entries.into_iter().map(|(k, v)| (k.clone(), canonical(v))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

/// One segment of a JSON pointer, escaped.
pub fn pointer_segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The name that a segment of a JSON pointer stands for.
pub fn pointer_name(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}
