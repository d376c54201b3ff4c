//! Calls that the provider took apart. Their argument text is handed on untouched: a provider's JSON is either whole or not, and the
//! strict gate says which (complaint JR-1). A broken call is answered under its own id, never dropped from the history.

use super::{ParsedCall, untouched};
use serde_json::Value;

/// The normal form of one native call (spec/seeds.md A6.4).
pub(super) fn normal(call: &Value) -> ParsedCall {
    let function = call.get("function");
    let name = text(function.and_then(|f| f.get("name"))).or_else(|| text(call.get("name"))).unwrap_or_default();
    let id = text(call.get("id")).or_else(|| text(call.get("call_id")));
    let arguments = match argument_text(call) {
        None => "{}".to_owned(),
        // A nameless call runs nothing, whatever its arguments say.
        Some(written) if name.trim().is_empty() => untouched(written),
        Some(written) => written,
    };
    ParsedCall { name, id, arguments, repaired: false, incomplete: false, raw: call.clone() }
}

/// The first field that says something; a blank text, null or an empty object says that there are no arguments. Another value than an
/// object stays what it is, for the gate to refuse: corrupt is not empty (complaint JR-5).
pub(super) fn argument_text(call: &Value) -> Option<String> {
    let nested = call.get("function").and_then(|f| f.get("arguments"));
    [nested, call.get("arguments"), call.get("arguments_json"), call.get("args")].into_iter().flatten().find_map(|value| {
        match value {
            Value::Null => None,
            Value::String(text) if text.trim().is_empty() => None,
            Value::String(text) => Some(text.clone()),
            Value::Object(map) if map.is_empty() => None,
            other => Some(other.to_string()),
        }
    })
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}
