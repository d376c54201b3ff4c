//! The fingerprint of recordings made by the Python implementation (engine E13.3): SHA-256 over the UTF-8 of
//! `{"messages": ..., "tools": ...}` as Python's `json.dumps` writes it with sorted keys, compact separators and without
//! ASCII escaping. Only for reading those recordings; ours use [`crate::canonical`].
//!
//! What such a recording holds is little: no request, only its digest over messages and tools, and the answer as the message itself. So
//! only a run that sends the very same messages and tools can be held against it; model, sampling and contract are not covered.

mod bundle;
mod python;

pub use bundle::{ForeignAgent, ForeignBundle, ForeignScope};
pub use python::{NoJson, NotPythonJson, PyValue};

use crate::Fingerprint;
use crate::canonical::{Form, Sink, write_value};
use crate::request::{Message, Request};
use serde_json::{Number, Value, json};

/// The fingerprint of `request`. A system prompt kept apart is the first message there.
pub fn fingerprint(request: &Request) -> Fingerprint {
    let system = request.system.as_ref().map(Message::system);
    let messages: Vec<&Message> = system.iter().chain(&request.messages).collect();
    let body = json!({"messages": messages, "tools": request.tools});
    let mut out = crate::canonical::Hashing::new();
    write_value(&body, &Python, &mut out);
    out.finish()
}

/// The text Python writes for `value`.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, &Python, &mut out);
    out
}

struct Python;

impl Form for Python {
    fn order(&self, a: &str, b: &str) -> std::cmp::Ordering {
        // Python compares code points, which is the order of UTF-8.
        a.cmp(b)
    }

    fn number(&self, number: &Number, out: &mut dyn Sink) {
        match number.as_f64() {
            Some(double) if number.is_f64() => out.put(&double_text(double)),
            _ => out.put(&number.to_string()),
        }
    }
}

/// Python's `repr` of a finite double: the shortest digits, positional from 1e-4 up to below 1e16, else with an exponent
/// of at least two digits.
fn double_text(double: f64) -> String {
    // Rust's exponent form has the same shortest digits: `-1.25e-7`.
    let text = format!("{double:e}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if !(-4..16).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{exponent_sign}{:02}", exponent.abs());
    }
    match usize::try_from(exponent) {
        Ok(exponent) if digits.len() > exponent + 1 => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            format!("{sign}{whole}.{fraction}")
        }
        Ok(exponent) => format!("{sign}{digits:0<width$}.0", width = exponent + 1),
        Err(_) => format!("{sign}0.{digits:0>width$}", width = digits.len() + exponent.unsigned_abs() as usize - 1),
    }
}
