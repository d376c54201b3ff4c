//! Paging cursors at the doors. A tool binds its cursor to the query and the clock; where nothing is hidden two sessions have the same
//! clock, so the door binds it to the session too. Inside, the tool gets its own cursor back; a cursor that is not this session's reaches
//! it in a form that it refuses.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Letters of the binding: consonants, so that nothing in it looks like a code or a date.
const LETTERS: &[u8; 20] = b"bcdfghjkmnpqrstvwxyz";
const LENGTH: usize = 10;
const BETWEEN: char = '-';

/// The session's id is known to its caller alone, so nobody else can make this.
fn binding(session: &str, cursor: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"traderharness/cursor/1\0");
    hash.update(session.as_bytes());
    hash.update([0]);
    hash.update(cursor.as_bytes());
    hash.finalize().iter().take(LENGTH).map(|byte| LETTERS[usize::from(byte % 20)] as char).collect()
}

/// A tool's cursor as the session's caller gets it.
pub(crate) fn bind(session: &str, cursor: &str) -> String {
    format!("{cursor}{BETWEEN}{}", binding(session, cursor))
}

/// The arguments with the tool's own cursor. One that is not of this session stays no cursor of any.
pub(crate) fn unbind(session: &str, input: &Value) -> Value {
    let mut input = input.clone();
    if let Some(Value::String(sent)) = input.get_mut("cursor") {
        match sent.rsplit_once(BETWEEN) {
            Some((cursor, bound)) if bound == binding(session, cursor) => *sent = cursor.to_owned(),
            Some(_) => {}
            None => sent.push(BETWEEN),
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cursor_comes_back_in_its_own_session_alone() {
        let sent =
            |session: &str, cursor: &str| unbind(session, &json!({ "cursor": cursor }))["cursor"].as_str().unwrap().to_owned();
        let bound = bind("ses_a", "cbcd");
        assert_eq!(sent("ses_a", &bound), "cbcd");
        for (session, cursor) in
            [("ses_b", bound.as_str()), ("ses_a", "cbcd"), ("ses_a", "cbcd-bcdfghjkmn"), ("ses_a", &format!("{bound}x"))]
        {
            assert!(sent(session, cursor).contains('-'), "{session} {cursor}");
        }
        assert_eq!(unbind("ses_a", &json!({"cursor": 1})), json!({"cursor": 1}));
        assert_eq!(unbind("ses_a", &json!([])), json!([]));
    }
}
