//! One message as it came, before the protocol reads it: strict JSON, an object, no batch. The same for every transport; what a lenient
//! reader lets through (a doubled key, of which the last one wins) must not reach an order.

use rmcp::model::{ErrorData, RequestId};
use serde_json::Value;
use traderharness_contract::arguments::{ARGUMENTS_LIMIT, FaultKind, parse_arguments};

/// Bytes of one message.
pub(super) const LONGEST: usize = ARGUMENTS_LIMIT;

/// A message that is refused, with the id to repeat where one can be told.
pub(super) type Refused = (ErrorData, Option<RequestId>);

/// Reads a message.
///
/// # Errors
/// -32700 for what is no JSON, -32600 for JSON that is no message.
pub(super) fn read(bytes: &[u8]) -> Result<Value, Refused> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let no_json = || (ErrorData::parse_error("The message is not one JSON value.", None), None);
    let value: Value = serde_json::from_slice(bytes).map_err(|_| no_json())?;
    if value.is_array() {
        let words = "Batches are not part of the protocol: send one message at a time.";
        return Err((ErrorData::invalid_request(words, None), None));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| no_json())?;
    match parse_arguments(text) {
        Ok(_) => Ok(value),
        Err(fault) if fault.kind == FaultKind::NotAnObject => Err(malformed(&value)),
        Err(fault) => {
            Err((ErrorData::invalid_request(format!("The message is not taken: {fault}."), None), value.get("id").and_then(id)))
        }
    }
}

/// What a message that is JSON and no message is answered.
pub(super) fn malformed(value: &Value) -> Refused {
    let words = "The message is not a JSON-RPC 2.0 request of the protocol.";
    (ErrorData::invalid_request(words, None), value.get("id").and_then(id))
}

/// What a request is answered whose id waits already: without the id, because the answer to the request that waits is still to come.
pub(super) fn doubled() -> ErrorData {
    ErrorData::invalid_request("A request of this id still waits for its answer.", None)
}

/// An id as it can be repeated in an answer.
pub(super) fn id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)).map(RequestId::Number),
        _ => None,
    }
}

/// The whole number that a float is, where it is one: `1e3` is the id 1000.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_by_its_value() {
        let read = |text: &str| id(&serde_json::from_str(text).unwrap()).map(|id| id.to_string());
        assert_eq!(["1e3", "1000", "-0.0", "\"1\""].map(read), ["1000", "1000", "0", "1"].map(|id| Some(id.to_owned())));
        assert_eq!(["1.5", "1e300", "null", "[1]", "9007199254740993.0"].map(read), [const { None }; 5]);
    }

    fn check(text: &str, expected: Result<(), (i32, Option<i64>)>) {
        let read = read(text.as_bytes()).map(|_| ()).map_err(|(fault, id)| {
            let id = match id {
                Some(RequestId::Number(id)) => Some(id),
                _ => None,
            };
            (fault.code.0, id)
        });
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn a_message_is_one_strict_object() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Ok(()));
        check("\u{feff}{}", Ok(()));
        check("{", Err((-32700, None)));
        check("", Err((-32700, None)));
        check("null", Err((-32600, None)));
        check("[{}]", Err((-32600, None)));
        check(r#"{"id":3,"params":{"quantity":100,"quantity":100000}}"#, Err((-32600, Some(3))));
        check(r#"{"id":"a","x":"\ud800"}"#, Err((-32700, None)));
        check(&format!(r#"{{"id":4,"x":{}1{}}}"#, "[".repeat(70), "]".repeat(70)), Err((-32600, Some(4))));
    }
}
