//! What a server says when it does not answer: the error bodies of the servers in use, and which fault each of them is. Nothing here
//! guesses from the words of a message; only statuses and codes decide.

use serde_json::Value;
use traderharness_harness::client_fault::ClientFault;

/// Codes and types that mean the provider's filter refused.
const MODERATION: [&str; 5] = [
    "content_filter",
    "content_policy_violation",
    "moderation_blocked",
    "data_inspection_failed",
    "responsible_ai_policy_violation",
];

/// Codes and types that mean no credit is left.
const NO_CREDIT: [&str; 4] = ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"];

/// An error inside of an answer that came with status 200.
pub(super) fn reported(object: &Value) -> Result<(), ClientFault> {
    let Some(error) = object.get("error").filter(|error| !error.is_null()) else { return Ok(()) };
    let coded = |name: &str| error.get(name).and_then(status_of);
    let status = coded("code").or_else(|| coded("status")).or_else(|| coded("type")).unwrap_or(200);
    Err(fault(status, object, ""))
}

/// The fault of a refusal: its status and its body.
pub(crate) fn fault(status: u16, body: &Value, place: &str) -> ClientFault {
    let message = message(body);
    let error = body.get("error").unwrap_or(body);
    let codes = ["code", "type"].into_iter().filter_map(|name| error.get(name).and_then(Value::as_str));
    let inner = error.pointer("/innererror/code").and_then(Value::as_str);
    let mut codes: Vec<String> = codes.chain(inner).map(str::to_ascii_lowercase).collect();
    if error.pointer("/metadata/flagged_input").is_some() {
        codes.push("moderation_blocked".to_owned());
    }
    let any = |known: &[&str]| codes.iter().any(|code| known.contains(&code.as_str()));
    match status {
        _ if any(&MODERATION) => ClientFault::Moderation { message },
        402 => ClientFault::NoCredit { status, message },
        _ if any(&NO_CREDIT) => ClientFault::NoCredit { status, message },
        401 | 403 => ClientFault::RefusedKey { status, message },
        404 => ClientFault::NotFound { place: place.to_owned(), message },
        _ => ClientFault::Status { status, message },
    }
}

/// A status written as a number, as text, or as one of the usual names.
fn status_of(code: &Value) -> Option<u16> {
    let status = match code {
        Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok())?,
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" | "resource_exhausted" => 429,
            "server_error" | "internal_error" | "internal_server_error" => 500,
            "overloaded" | "overloaded_error" | "unavailable" | "service_unavailable" => 503,
            "invalid_api_key" | "authentication_error" => 401,
            "invalid_request_error" => 400,
            "model_not_found" => 404,
            other => other.parse().ok()?,
        },
        _ => return None,
    };
    (400..600).contains(&status).then_some(status)
}

/// What the server said, as it said it.
fn message(body: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let said = items.iter().filter_map(|item| item.get("msg").or(Some(item)).and_then(Value::as_str));
            Some(said.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
        }
        _ => None,
    };
    let paths = ["/error/message", "/error", "/message", "/detail", "/errors", "/error/code"];
    let said = paths.iter().find_map(|path| body.pointer(path).and_then(text)).filter(|text| !text.trim().is_empty());
    let raw = body.pointer("/error/metadata/raw").and_then(Value::as_str);
    match (said, raw) {
        (Some(said), Some(raw)) => format!("{said}: {raw}"),
        (Some(said), None) => said,
        (None, _) if body.is_null() => "(nothing)".to_owned(),
        (None, _) => body.as_str().map_or_else(|| body.to_string(), str::to_owned),
    }
}
