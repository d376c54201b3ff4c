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
    let (sign, digits, exponent) = shortest(double);
    if !(-4..16).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs());
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

/// Sign, shortest digits and decimal exponent of a finite double. Where two shortest texts are equally near to it (`.125` to two digits),
/// Python takes the even last digit, as the form of ECMAScript does; the formatting of Rust goes away from zero.
fn shortest(double: f64) -> (&'static str, String, i32) {
    let sign = if double.is_sign_negative() { "-" } else { "" };
    let mut buffer = ryu_js::Buffer::new();
    let text = buffer.format_finite(double.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let Some(last) = digits.rfind(|digit| digit != '0') else { return (sign, "0".to_owned(), 0) };
    let zeros = i32::try_from(all.len() - digits.len()).unwrap_or(0);
    let point = i32::try_from(whole.len()).unwrap_or(0) - 1 - zeros;
    (sign, digits[..=last].to_owned(), point + exponent.parse::<i32>().unwrap_or(0))
}
