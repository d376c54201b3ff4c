//! Texts without traces of this machine: a path of the workspace is shown relative to it, folders of the interpreter get one name, and
//! addresses of objects are zero. Without it
//! the same code would print other bytes on each machine.

use serde_json::Value;
use std::path::Path;

/// Cleans texts of one job.
#[derive(Debug)]
pub(crate) struct Neutral {
    paths: Vec<(String, &'static str)>,
}

impl Neutral {
    /// For this workspace and the interpreter's folders.
    pub(crate) fn new(workspace: &Path, folders: &[String]) -> Self {
        let real = workspace.canonicalize().unwrap_or_else(|_| workspace.to_path_buf());
        let mut paths: Vec<_> = folders.iter().map(|folder| (folder.clone(), "<python>")).collect();
        paths.push((real.to_string_lossy().into_owned(), "."));
        // A folder inside another one comes first; a root would match everywhere.
        paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        paths.retain(|(path, _)| path.len() > 1);
        Self { paths }
    }

    /// The text as the agent reads it.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut clean = without_addresses(text);
        for (path, name) in &self.paths {
            if clean.contains(path.as_str()) {
                clean = clean.replace(path.as_str(), name);
            }
        }
        clean
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
        let neutral = Neutral::new(Path::new("/no/w1"), &["/py/lib".to_owned(), "/py/lib/site".to_owned(), "/".to_owned()]);
        assert_eq!(neutral.text(text), expected);
    }

    #[test]
    fn addresses_and_the_workspace_are_not_shown() {
        check("<object object at 0x7ffff7a3c0d0>", "<object object at 0x0>");
        check("<a at 0x7ffff7a3c0d0> <b at 0x7ffff7a3c0d8", "<a at 0x0> <b at 0x0");
        check("look at 0x1F", "look at 0x1F");
        check("/no/w1/a.csv and /no/w1", "./a.csv and .");
        check("/py/lib/site/a.py /py/lib/b.py /x", "<python>/a.py <python>/b.py /x");
    }
}
