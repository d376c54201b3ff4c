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
use traderharness_contract::version::legacy::double_text;

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
