//! Redaction inside of a text that is JSON: its strings change where they must, everything else of it stays byte for byte. Must give
//! JSON again: a credential in one string never takes a bracket or a comma of the document with it.

use super::REDACTED;
use super::shapes::is_credential_name;
use serde::de::IgnoredAny;

/// Whether a text is an object, a list or a string of JSON.
pub(super) fn is_json(text: &str) -> bool {
    let inner = text.trim_ascii().as_bytes();
    let closed =
        matches!((inner.first(), inner.last()), (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) | (Some(b'"'), Some(b'"')));
    closed && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Changes the strings of a JSON text by `leaf`, and hides the scalar under a key that names a credential. `None`: nothing to hide.
pub(super) fn scrub(text: &str, leaf: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    // The value that follows is the credential whose name was read last.
    let mut named = false;
    while let Some(step) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| !b.is_ascii_whitespace() && *b != b':')) {
        at += step;
        let end = match bytes.get(at) {
            Some(b'"') => string_end(bytes, at),
            Some(b'{' | b'}' | b'[' | b']' | b',') => {
                named = false;
                at += 1;
                continue;
            }
            _ => scalar_end(bytes, at),
        };
        let raw = text.get(at..end).unwrap_or_default();
        let next = bytes.get(end..).and_then(|rest| rest.iter().find(|b| !b.is_ascii_whitespace()));
        let is_key = next == Some(&b':') && raw.starts_with('"');
        let decoded = serde_json::from_str::<String>(raw).ok();
        let with = if named && !is_key {
            let shown = decoded.as_deref().is_some_and(|value| value.is_empty() || value == REDACTED);
            (!shown).then(|| REDACTED.to_owned())
        } else {
            match &decoded {
                Some(value) => leaf(value),
                // Half a surrogate pair is no text; what looks like a credential around it goes whole.
                None if raw.starts_with('"') => leaf(raw).map(|_| REDACTED.to_owned()),
                None => None,
            }
        };
        if let Some(with) = with {
            out.push_str(text.get(copied..at).unwrap_or_default());
            out.push_str(&serde_json::Value::from(with).to_string());
            copied = end;
        }
        named = is_key && decoded.is_some_and(|key| is_credential_name(&key));
        at = end;
    }
    if copied == 0 {
        return None;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Some(out)
}

/// After the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// After the number or word that begins at `at`.
fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b',' | b'}' | b']')).count().max(1)
}
