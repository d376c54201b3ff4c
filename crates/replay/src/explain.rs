//! The first difference of two requests as a person reads it: where it is, what stood there and what stands there now, with context. Long
//! texts are compared line by line, JSON in its indented form, prose word by word. Bounded, and the same for the same requests.

use crate::canonical;
use crate::diff::member;
use crate::request::{Message, Request, tool_name};
use serde::Serialize;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Unchanged lines or words shown around a change.
const CONTEXT: usize = 3;
/// Most lines or words that are compared of each side, from the first difference on.
const COMPARED: usize = 600;
/// Most lines shown.
const LINES: usize = 120;
/// Longest line shown.
const WIDTH: usize = 200;
/// A text with longer lines is compared word by word.
const PROSE: usize = 160;

/// The first difference of two requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Where, as `messages[5].content` or `tools[get_kline].function.parameters.properties.days.minimum`.
    pub path: String,
    /// Number of the message, from 0, when it is in one.
    pub message: Option<usize>,
    /// Role of that message in the recording, or now when it is new.
    pub role: Option<String>,
    /// The tool that the difference is in, or whose result the message is.
    pub tool: Option<String>,
    /// What stands there, line by line: `  ` unchanged, `- ` recorded, `+ ` now, `@@` where something was left out.
    pub lines: Vec<String>,
    /// Further places that differ, the first few.
    pub also: Vec<String>,
}

impl Explanation {
    /// As text for a terminal.
    pub fn text(&self) -> String {
        let mut head = format!("first difference: {}", self.path);
        if let Some(role) = &self.role {
            head.push_str(&format!(" (role {role})"));
        }
        if let Some(tool) = &self.tool {
            head.push_str(&format!(", tool {tool}"));
        }
        let mut lines = vec![head, "  - recorded, + now".to_owned()];
        lines.extend(self.lines.iter().map(|line| format!("  {line}")));
        if !self.also.is_empty() {
            lines.push(format!("  also different: {}", self.also.join(", ")));
        }
        lines.join("\n")
    }
}

/// Explains the first difference of two requests; `None` when there is none.
pub fn explain(expected: &Request, actual: &Request) -> Option<Explanation> {
    let mut found = Vec::new();
    request(expected, actual, &mut found);
    let mut places = found.into_iter();
    let first = places.next()?;
    let message = first.message;
    let of = |request: &Request| message.and_then(|index| request.messages.get(index).cloned());
    let role = of(expected).or_else(|| of(actual)).map(|message| message.role().to_owned());
    let tool = first.tool.clone().or_else(|| message.and_then(|index| called(expected, index).or_else(|| called(actual, index))));
    let lines = lines(first.before.as_ref(), first.after.as_ref());
    Some(Explanation { path: first.path, message, role, tool, lines, also: places.map(|place| place.path).take(5).collect() })
}

/// A place where two requests differ, with all that stands there.
struct Place {
    path: String,
    message: Option<usize>,
    tool: Option<String>,
    before: Option<Value>,
    after: Option<Value>,
}

fn request(expected: &Request, actual: &Request, found: &mut Vec<Place>) {
    let text = |text: &str| Some(Value::from(text));
    let part = |path: &str, before: Option<Value>, after: Option<Value>| match (before, after) {
        (Some(before), Some(after)) => first_inside(path.to_owned(), &before, &after),
        (None, None) => None,
        (before, after) => Some((path.to_owned(), before, after)),
    };
    let plain = [
        part("contract_version", text(&expected.contract_version), text(&actual.contract_version)),
        part("model", text(&expected.model), text(&actual.model)),
        part("sampling", Some(expected.sampling.clone().into()), Some(actual.sampling.clone().into())),
        part("system", expected.system.clone().map(Value::from), actual.system.clone().map(Value::from)),
    ];
    let place = |(path, before, after), message, tool| Place { path, message, tool, before, after };
    found.extend(plain.into_iter().flatten().map(|differs| place(differs, None, None)));
    tools(&expected.tools, &actual.tools, found);
    let length = expected.messages.len().max(actual.messages.len());
    for index in 0..length {
        let value = |list: &[Message]| list.get(index).map(|message| message.0.clone());
        let path = format!("messages[{index}]");
        if let Some(differs) = part(&path, value(&expected.messages), value(&actual.messages)) {
            found.push(place(differs, Some(index), None));
            if found.len() > 8 {
                return;
            }
        }
    }
}

fn tools(expected: &[Value], actual: &[Value], found: &mut Vec<Place>) {
    let named = |tools: &[Value]| tools.iter().map(|tool| tool_name(tool).unwrap_or_default().to_owned()).collect::<Vec<_>>();
    let (old, new) = (named(expected), named(actual));
    let by_name = |tools: &[Value], name: &str| tools.iter().find(|tool| tool_name(tool) == Some(name)).cloned();
    for name in old.iter().chain(new.iter().filter(|name| !old.contains(name))) {
        let path = format!("tools[{name}]");
        let differs = match (by_name(expected, name), by_name(actual, name)) {
            (Some(before), Some(after)) => first_inside(path, &before, &after),
            (None, None) => None,
            (before, after) => Some((path, before, after)),
        };
        if let Some((path, before, after)) = differs {
            found.push(Place { path, message: None, tool: Some(name.clone()), before, after });
        }
    }
    if old != new && found.iter().all(|place| place.tool.is_none()) {
        let list = |names: &[String]| Some(Value::from(names.join("\n")));
        found.push(Place { path: "tools".to_owned(), message: None, tool: None, before: list(&old), after: list(&new) });
    }
}

/// The tool whose result a message is: the call that it answers stands in an earlier message.
fn called(request: &Request, index: usize) -> Option<String> {
    let id = request.messages.get(index)?.tool_call_id()?.to_owned();
    let before = request.messages.get(..index)?;
    before.iter().rev().flat_map(Message::tool_calls).find(|call| call.id == id).map(|call| call.name)
}

type Differs = (String, Option<Value>, Option<Value>);

/// The first place, in canonical order of keys, where two values differ.
fn first_inside(path: String, before: &Value, after: &Value) -> Option<Differs> {
    if canonical::equal(before, after) {
        return None;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).collect();
            keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            keys.into_iter().find_map(|key| inside(member(&path, key), old.get(key), new.get(key)))
        }
        (Value::Array(old), Value::Array(new)) => {
            let length = old.len().max(new.len());
            (0..length).find_map(|index| inside(format!("{path}[{index}]"), old.get(index), new.get(index)))
        }
        _ => Some((path, Some(before.clone()), Some(after.clone()))),
    }
}

fn inside(path: String, old: Option<&Value>, new: Option<&Value>) -> Option<Differs> {
    match (old, new) {
        (Some(old), Some(new)) => first_inside(path, old, new),
        (None, None) => None,
        (old, new) => Some((path, old.cloned(), new.cloned())),
    }
}

/// A value as lines: a text as it is, JSON inside of a text and other values indented.
fn readable(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => {
            let structured = text.starts_with(['{', '[']);
            let inside = structured.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
            inside.map_or_else(|| text.clone(), |value| indented(&value))
        }
        Some(value) => indented(value),
    }
}

fn indented(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn lines(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let (old, new) = (readable(before), readable(after));
    // Texts that only differ as texts, such as JSON with other spaces, are shown as they are.
    let spelled = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned).unwrap_or_default();
    let (old, new) =
        if old == new && before.is_some() && after.is_some() { (spelled(before), spelled(after)) } else { (old, new) };
    let prose = [&old, &new].iter().any(|text| text.lines().any(|line| line.chars().count() > PROSE));
    let out = if prose && before.is_some() && after.is_some() { by_word(&old, &new) } else { by_line(&old, &new) };
    // Line ends, and a text without a character, have no line of their own.
    if out.is_empty() { by_character(before, after) } else { out }
}

/// Both sides in quotes from shortly before the first character that differs.
fn by_character(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let spelled = |value: Option<&Value>| value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let (old, new) = (spelled(before), spelled(after));
    let pair = old.as_deref().unwrap_or_default().chars().zip(new.as_deref().unwrap_or_default().chars());
    let from = pair.take_while(|(a, b)| a == b).count().saturating_sub(20);
    let side = |sign: &str, text: &str| {
        let rest: String = text.chars().skip(from).take(WIDTH).collect();
        format!("{sign} {}", Value::from(rest))
    };
    let mut out = vec![format!("@@ character {from} @@")];
    out.extend(old.map(|old| side("-", &old)));
    out.extend(new.map(|new| side("+", &new)));
    out
}

/// What two lists have in common at their beginning, and at their end.
fn common<T: PartialEq>(old: &[T], new: &[T]) -> (usize, usize) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    (head, tail)
}

/// The part of both lists that has all differences, with context, and what of it is compared.
fn middle<'a, T: PartialEq>(old: &'a [T], new: &'a [T]) -> (usize, &'a [T], &'a [T], bool) {
    let (head, tail) = common(old, new);
    let (from, keep) = (head.saturating_sub(CONTEXT), tail.saturating_sub(CONTEXT));
    let cut = |list: &'a [T]| {
        let part = list.get(from..list.len() - keep).unwrap_or_default();
        (part.get(..COMPARED).unwrap_or(part), part.len() > COMPARED)
    };
    let ((old, cut_old), (new, cut_new)) = (cut(old), cut(new));
    (from, old, new, cut_old || cut_new)
}

fn by_line(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let (from, old, new, cut) = middle(&old, &new);
    let diff = TextDiff::from_slices(old, new);
    let mut out = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        if let Some(first) = group.first() {
            out.push(format!("@@ line {} @@", from + first.old_range().start + 1));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => "  ",
                ChangeTag::Delete => "- ",
                ChangeTag::Insert => "+ ",
            };
            out.push(format!("{sign}{}", shown(change.value())));
        }
    }
    bounded(out, cut)
}

fn by_word(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (words(old), words(new));
    let (from, old, new, cut) = middle(&old, &new);
    let diff = TextDiff::from_slices(old, new);
    let before: usize = from;
    let mut out = Vec::new();
    for group in diff.grouped_ops(8) {
        let Some(first) = group.first() else { continue };
        out.push(format!("@@ word {} @@", before + first.old_range().start + 1));
        let side = |left_out: ChangeTag| {
            let changes = group.iter().flat_map(|op| diff.iter_changes(op)).filter(|change| change.tag() != left_out);
            changes.map(|change| change.value()).collect::<String>()
        };
        out.push(format!("- {}", shown(&side(ChangeTag::Insert))));
        out.push(format!("+ {}", shown(&side(ChangeTag::Delete))));
    }
    bounded(out, cut)
}

/// Words with the spaces after them; a character that is written without spaces stands alone.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut from = 0;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        let begins = (previous.is_whitespace() && !c.is_whitespace()) || !previous.is_ascii() || (!c.is_ascii() && at > 0);
        if begins && at > from {
            words.push(&text[from..at]);
            from = at;
        }
        previous = c;
    }
    if from < text.len() {
        words.push(&text[from..]);
    }
    words
}

/// A line without invisible characters, cut at its limit.
fn shown(line: &str) -> String {
    let mut out = String::new();
    for (count, c) in line.chars().enumerate() {
        if count == WIDTH {
            out.push('…');
            break;
        }
        match c {
            '"' | '\'' | '\\' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    out
}

fn bounded(mut lines: Vec<String>, cut: bool) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 || cut {
        lines
            .push(format!("@@ more differs, not shown{} @@", if more > 0 { format!(": {more} line(s)") } else { String::new() }));
    }
    lines
}
