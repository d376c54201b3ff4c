//! The page of `traderharness_api`, from the docstrings that the code of an agent can read too. Reads the one Python file; runs none.

use anyhow::Context as _;
use std::fmt::Write as _;

/// The module as agent code imports it.
const SOURCE: &str = include_str!("../../../../crates/sandbox-worker/python/api.py");

/// An object of the module: `market`, `portfolio`, `news`.
#[derive(Debug, PartialEq, Eq)]
struct Object {
    name: String,
    text: String,
    methods: Vec<Method>,
}

#[derive(Debug, PartialEq, Eq)]
struct Method {
    /// `get_kline(code, days=60)`.
    call: String,
    text: String,
}

/// The page.
pub(super) fn render() -> anyhow::Result<String> {
    page(SOURCE)
}

fn page(source: &str) -> anyhow::Result<String> {
    let mut lines = source.lines();
    let intro = docstring(&mut lines).context("the module has no docstring")?;
    let mut text = format!("# `traderharness_api`: what agent code can ask for\n\n{intro}\n");
    text.push_str(
        "\n`help(market)` inside the code says the same. Limits, isolation and the workspace: [sandbox.md](../sandbox.md); the tool \
         that runs the code: [execute_code](execute_code.md).\n",
    );
    for object in objects(source)? {
        let _ = write!(text, "\n## {}\n\n{}\n", object.name, object.text);
        for method in object.methods {
            let _ = write!(text, "\n### `{}.{}`\n\n{}\n", object.name, method.call, method.text);
        }
    }
    Ok(text)
}

/// Classes over `_Api` with their public methods, in the order of the file.
fn objects(source: &str) -> anyhow::Result<Vec<Object>> {
    let mut objects: Vec<Object> = Vec::new();
    let mut inside = false;
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("class ").and_then(|rest| rest.strip_suffix("(_Api):")) {
            inside = true;
            let text = docstring(&mut lines).with_context(|| format!("class {name} has no docstring"))?;
            objects.push(Object { name: name.to_owned(), text, methods: Vec::new() });
        } else if !line.is_empty() && !line.starts_with(' ') {
            inside = false;
        } else if let Some(signature) = line.strip_prefix("    def ").filter(|signature| inside && !signature.starts_with('_')) {
            let call = signature.strip_suffix("):").with_context(|| format!("`{signature}` is more than one line"))?;
            let call = call.replacen("(self, ", "(", 1).replacen("(self", "(", 1) + ")";
            let text = docstring(&mut lines).with_context(|| format!("method {call} has no docstring"))?;
            objects.last_mut().context("a method before any class")?.methods.push(Method { call, text });
        }
    }
    Ok(objects)
}

/// The docstring that the next line starts, without its indent.
fn docstring<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    let first = lines.next()?;
    let indent = first.len() - first.trim_start().len();
    let opened = first.trim_start().strip_prefix("\"\"\"")?;
    if let Some(whole) = opened.strip_suffix("\"\"\"") {
        return Some(whole.to_owned());
    }
    let mut text = vec![opened];
    for line in lines {
        let line = line.get(indent..).unwrap_or_default();
        if let Some(last) = line.strip_suffix("\"\"\"") {
            text.push(last);
            return Some(text.join("\n").trim_end().to_owned());
        }
        text.push(line);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_methods_and_docstrings_are_read() {
        let source = "\"\"\"Intro.\n\n    code\n\"\"\"\nclass a(_Api):\n    \"\"\"The a.\"\"\"\n\n    @_method\n    def get(self, code, days=60):\n        \
                      \"\"\"Bars.\n\n        days: many.\n        \"\"\"\n        return 1\n\n    def _own(self):\n        pass\n\n    def all(self):\n        \
                      \"\"\"All.\"\"\"\n\ndef free(self):\n    pass\n";
        let methods = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(call, text)| Method { call: (*call).to_owned(), text: (*text).to_owned() }).collect::<Vec<_>>()
        };
        let expected = Object {
            name: "a".to_owned(),
            text: "The a.".to_owned(),
            methods: methods(&[("get(code, days=60)", "Bars.\n\ndays: many."), ("all()", "All.")]),
        };
        assert_eq!(objects(source).expect("it reads"), [expected]);
        assert!(
            page(source)
                .expect("it renders")
                .starts_with("# `traderharness_api`: what agent code can ask for\n\nIntro.\n\n    code\n")
        );
    }

    #[test]
    fn what_has_no_docstring_is_a_fault() {
        let fault =
            objects("class a(_Api):\n    \"\"\"The a.\"\"\"\n    def get(self):\n        return 1\n").expect_err("no docstring");
        assert_eq!(fault.to_string(), "method get() has no docstring");
    }

    #[test]
    fn the_module_has_its_three_objects() {
        let found = objects(SOURCE).expect("it reads");
        let names: Vec<&str> = found.iter().map(|object| object.name.as_str()).collect();
        assert_eq!(names, ["market", "portfolio", "news"]);
        assert!(found.iter().all(|object| !object.methods.is_empty()));
    }
}
