//! Takes credentials out of a row before it is written. Must say that it did: a changed row is no longer what the model saw.

use crate::redact::Redactor;
use serde_json::Value;

/// Fields that are no text of anybody: numbers of tokens, and pieces of the answer under a key (`token`) that elsewhere names a
/// credential.
const TOKENS: [&str; 3] = ["prompt_token_ids", "token_ids", "logprobs"];

/// A row without credentials and known secrets, as one line of JSON, and whether anything was taken out.
///
/// `redacted` of the row is set then, and what the tokens would still tell is null.
pub fn redacted(mut row: Value, redactor: &Redactor) -> (Value, bool) {
    let mut tokens = vec![];
    if let Value::Object(fields) = &mut row {
        for name in TOKENS {
            if let Some(value) = fields.get_mut(name) {
                tokens.push((name, value.take()));
            }
        }
    }
    let text = row.to_string();
    let clean = match redactor.text(&text) {
        std::borrow::Cow::Borrowed(_) => None,
        // It gives JSON for JSON.
        std::borrow::Cow::Owned(clean) => serde_json::from_str::<Value>(&clean).ok().filter(|clean| *clean != row),
    };
    let changed = clean.is_some();
    let mut row = clean.unwrap_or(row);
    if let Value::Object(fields) = &mut row {
        for (name, value) in tokens {
            fields.insert(name.to_owned(), if changed { Value::Null } else { value });
        }
        if changed {
            let marked = match fields.get_mut("metadata") {
                Some(Value::Object(metadata)) => metadata,
                _ => fields,
            };
            marked.insert("redacted".to_owned(), true.into());
        }
    }
    (row, changed)
}
