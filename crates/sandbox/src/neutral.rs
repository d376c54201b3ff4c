//! Texts without traces of this machine: a path of the workspace is shown relative to it, and addresses of objects are zero. Without it
//! the same code would print other bytes on each machine.

use serde_json::Value;
use std::path::Path;

/// Cleans texts of one job.
#[derive(Debug)]
pub(crate) struct Neutral {
    workspace: String,
}

impl Neutral {
    /// For this workspace.
    pub(crate) fn new(workspace: &Path) -> Self {
        let path = workspace.canonicalize().unwrap_or_else(|_| workspace.to_path_buf());
        Self { workspace: path.to_string_lossy().into_owned() }
    }

    /// The text as the agent reads it.
    pub(crate) fn text(&self, text: &str) -> String {
        let text = if self.workspace.len() > 1 { text.replace(&self.workspace, ".") } else { text.to_owned() };
        without_addresses(&text)
    }

    /// Every string of the value, keys included.
    pub(crate) fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(map) => Value::Object(map.into_iter().map(|(key, item)| (self.text(&key), self.value(item))).collect()),
            other => other,
        }
    }
}

/// `<f at 0x7f3a...>` becomes `<f at 0x0>`: shorter hexadecimal numbers are the agent's own.
fn without_addresses(text: &str) -> String {
    const MARK: &str = " at 0x";
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let (before, after) = rest.split_at(at + MARK.len());
        let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        clean.push_str(before);
        if digits >= 8 {
            clean.push('0');
            rest = after.get(digits..).unwrap_or_default();
        } else {
            rest = after;
        }
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let neutral = Neutral { workspace: "/tmp/w1".to_owned() };
        assert_eq!(neutral.text(text), expected);
    }

    #[test]
    fn addresses_and_the_workspace_are_not_shown() {
        check("<object object at 0x7ffff7a3c0d0>", "<object object at 0x0>");
        check("<a at 0x7ffff7a3c0d0> <b at 0x7ffff7a3c0d8", "<a at 0x0> <b at 0x0");
        check("look at 0x1F", "look at 0x1F");
        check("/tmp/w1/a.csv and /tmp/w1", "./a.csv and .");
    }
}
