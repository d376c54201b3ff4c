//! The text of a result as v1-v4 wrote it: `", "` and `": "`, no ASCII escaping, keys in the order they were built, and numbers as those
//! versions' program printed them. The number format is that of `double`, so that no JSON library can change a byte of a recording.

use super::double::double_text;
use crate::budget::{RESULT_LIMIT, fit_json};
use crate::json::{characters, prefix};
use crate::version::{Behaviour, Behaviours};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use std::io;

/// Characters of a read tool's result that are kept.
pub const READ_LIMIT: usize = 3_000;

/// Stands behind a text that was cut.
pub const TRUNCATED: &str = "... (truncated)";

/// The text that the model reads, and whether something of the value is not in it.
///
/// With `ValidJsonBudget` the value is compacted within the limit of v5 and stays JSON (a caller that knows which lists run from oldest to
/// newest asks the budget itself). Without it the text of a read tool is cut after [`READ_LIMIT`] characters, wherever that is, and
/// [`TRUNCATED`] follows; other texts are whole.
pub fn model_text(value: &Value, read_only: bool, flags: &Behaviours) -> (String, bool) {
    if flags.has(Behaviour::ValidJsonBudget) {
        let fitted = fit_json(value, RESULT_LIMIT);
        return (fitted.text, fitted.truncated);
    }
    let whole = text(value);
    if !read_only || characters(&whole) <= READ_LIMIT {
        return (whole, false);
    }
    (format!("{}{TRUNCATED}", prefix(&whole, READ_LIMIT)), true)
}

/// JSON text of a value in the style of v1-v4.
pub fn text(value: &Value) -> String {
    let mut out = Vec::with_capacity(256);
    match value.serialize(&mut Serializer::with_formatter(&mut out, Early)) {
        Ok(()) => String::from_utf8(out).unwrap_or_else(|fault| String::from_utf8_lossy(fault.as_bytes()).into_owned()),
        Err(_) => value.to_string(),
    }
}

struct Early;

impl Formatter for Early {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }
    fn begin_object_key<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }
    fn write_f64<W: ?Sized + io::Write>(&mut self, w: &mut W, double: f64) -> io::Result<()> {
        w.write_all(double_text(double).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // NU-*: vectors printed by CPython 3.11 with json.dumps(value, ensure_ascii=False)
    #[test]
    fn numbers_and_strings_are_written_as_the_early_versions_wrote_them() {
        for (value, expected) in [
            (json!(0.1), "0.1"),
            // Half-way between two shortest texts: the even digit.
            (json!(723_887_836_892_353.0 / 8.0), "90485979611544.12"),
            (json!(-0.0), "-0.0"),
            (json!(100.0), "100.0"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(0.000_012_5), "1.25e-05"),
            (json!(1e-10), "1e-10"),
            (json!(1e15), "1000000000000000.0"),
            (json!(1e16), "1e+16"),
            (json!(-1.5e300), "-1.5e+300"),
            (json!(5e-324), "5e-324"),
            (json!(123_456_789.123_456_78), "123456789.12345678"),
            (json!(9_007_199_254_740_993_u64), "9007199254740993"),
            (
                json!({"b": [1, null, true], "a": "中\n\u{1}\u{7f}\"\\/"}),
                "{\"b\": [1, null, true], \"a\": \"中\\n\\u0001\u{7f}\\\"\\\\/\"}",
            ),
        ] {
            assert_eq!(text(&value), expected);
        }
    }
}
