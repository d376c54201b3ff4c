//! Calls written in DSML, the tag format of some models. They are run only when the whole answer is DSML: an example inside prose is
//! never a call (spec/seeds.md B12.3).

use super::literal::write_key;
use super::markup::strip_bar;
use super::think::MARK;
use super::untouched;
use crate::arguments::parse_value;
use serde_json::Value;

/// One call as it was written.
#[derive(Debug)]
pub(super) struct Invoked {
    pub(super) name: String,
    /// JSON text of the arguments, or the untouched parameters when one of them cannot be read.
    pub(super) arguments: String,
    /// The whole call.
    pub(super) raw: String,
}

/// The calls of a text that is nothing but DSML blocks; `None` for every other text, a cut one included.
pub(super) fn read(text: &str) -> Option<Vec<Invoked>> {
    let mut rest = text.trim_matches(|c: char| c.is_whitespace() || c == MARK);
    // Thinking inside a value would be lost from it.
    (!rest.contains(MARK)).then_some(())?;
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let wrapper = ["function_calls", "tool_calls"].into_iter().find(|name| open(rest, name).is_some())?;
        let (attributes, inside) = open(rest, wrapper)?;
        attributes.trim().is_empty().then_some(())?;
        rest = inside.trim_start();
        while close(rest, wrapper).is_none() {
            let (call, left) = invoke(rest)?;
            calls.push(call);
            rest = left.trim_start();
        }
        rest = close(rest, wrapper)?.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

fn invoke(text: &str) -> Option<(Invoked, &str)> {
    let (attributes, inside) = open(text, "invoke")?;
    let name = attribute(attributes, "name")?.to_owned();
    let mut rest = inside.trim_start();
    let mut arguments = String::from("{");
    let mut readable = true;
    loop {
        if let Some(after) = close(rest, "invoke") {
            arguments.push('}');
            let raw = text[..text.len() - after.len()].to_owned();
            let written = inside[..inside.len() - rest.len()].trim_end().to_owned();
            return Some((Invoked { name, arguments: if readable { arguments } else { untouched(written) }, raw }, after));
        }
        let (attributes, inside) = open(rest, "parameter")?;
        let key = attribute(attributes, "name")?;
        let (value, after) = until_close(inside, "parameter")?;
        if arguments.len() > 1 {
            arguments.push_str(", ");
        }
        write_key(key, &mut arguments);
        // Without the attribute the value is the text it is; a number then fails the schema instead of being guessed at.
        match attribute(attributes, "string") {
            Some("false") => {
                readable &= parse_value(value).is_ok();
                arguments.push_str(value.trim());
            }
            _ => arguments.push_str(&Value::from(value).to_string()),
        }
        rest = after.trim_start();
    }
}

/// `<|DSML|name attributes>`: the attributes and what follows.
fn open<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let rest = tag_name(text.strip_prefix('<')?, name)?;
    let end = rest.find('>')?;
    let attributes = &rest[..end];
    (attributes.is_empty() || attributes.starts_with(char::is_whitespace)).then(|| (attributes, &rest[end + 1..]))
}

/// What follows `</|DSML|name>`.
fn close<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    tag_name(text.strip_prefix("</")?, name)?.trim_start().strip_prefix('>')
}

fn tag_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    strip_bar(strip_bar(text)?.strip_prefix("DSML")?)?.strip_prefix(name)
}

fn until_close<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    text.match_indices("</").find_map(|(at, _)| Some((&text[..at], close(&text[at..], name)?)))
}

/// The value of `key="value"`.
fn attribute<'a>(attributes: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = attributes.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        if name.trim() == key {
            return (!value.is_empty()).then_some(value);
        }
        rest = after.trim_start();
    }
    None
}
