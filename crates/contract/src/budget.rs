//! The size budget of what a model reads (stub; the real one follows).

use serde_json::Value;

/// Characters a tool result may have, contract v5.
pub const RESULT_LIMIT: usize = 10_000;

/// Serialises `value` within `limit` characters; always valid JSON.
pub fn fit_json(value: &Value, limit: usize) -> String {
    let _ = limit;
    value.to_string()
}
