//! The `text` style: `Action: name(key=value, ...)` at the start of a line (spec/seeds.md A6.5, A6.9).
//!
//! A call ends with the bracket that closes it; what follows on the line is prose. A call may go on over lines where a quote or a bracket
//! is open, or between arguments that are all literals. When such a call is never closed, nothing after it is run either: it could stand
//! inside the value.

use super::literal::{Reader, Stop, balanced, write_key};
use super::think::MARK;
use super::{DiagnosticKind, Parsed, ParsedCall, arguments, untouched};
use crate::arguments::parse_arguments;
use serde_json::{Map, Value};

const ACTION: &str = "Action:";

/// What an `Action:` line came to.
enum Line {
    /// A call that ends before this byte.
    Call(ParsedCall, usize),
    /// The line is no call, for this reason.
    Skip(DiagnosticKind),
    /// The call never ends.
    Open,
}

/// Reads the calls; gives the spans they take.
pub(super) fn read(body: &str, tools: &[Value], parsed: &mut Parsed) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut at = 0;
    while at < body.len() {
        let end = line_end(body, at);
        let line = &body[at..end];
        let start = at + (line.len() - line.trim_start_matches(blank).len());
        if let Some(rest) = body[start..end].strip_prefix(ACTION) {
            match call(body, start, end - rest.len(), tools) {
                Line::Call(call, stop) => {
                    parsed.calls.push(call);
                    spans.push((start, stop));
                    at = line_end(body, stop) + 1;
                    continue;
                }
                Line::Skip(kind) => parsed.note(kind, &body[start..end]),
                Line::Open => {
                    parsed.note(DiagnosticKind::Incomplete, &body[start..]);
                    break;
                }
            }
        } else if near_miss(&body[start..end]) {
            parsed.note(DiagnosticKind::NearMiss, &body[start..end]);
        }
        at = end + 1;
    }
    spans
}

fn blank(c: char) -> bool {
    c.is_whitespace() || c == MARK
}

fn line_end(body: &str, at: usize) -> usize {
    body.get(at..).and_then(|rest| rest.find('\n')).map_or(body.len(), |length| at + length)
}

/// Bullets, bold marks or another case before what would be a call.
fn near_miss(line: &str) -> bool {
    let word =
        line.trim_start_matches(|c: char| blank(c) || matches!(c, '-' | '*' | '#' | '>' | '`' | '.' | ')') || c.is_numeric());
    let Some(rest) = word.get(..6).filter(|start| start.eq_ignore_ascii_case("action")).map(|_| &word[6..]) else { return false };
    rest.trim_start_matches(['*', '`', ' ']).starts_with(':') && rest.contains('(')
}

fn call(body: &str, start: usize, after: usize, tools: &[Value]) -> Line {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let name_at = skip_blanks(body, after);
    let length = body[name_at..].find(|c: char| !word(c)).unwrap_or(body.len() - name_at);
    let open = skip_blanks(body, name_at + length);
    if length == 0 || !body[open..].starts_with('(') {
        let cut = open >= body.len();
        return Line::Skip(if cut { DiagnosticKind::Incomplete } else { DiagnosticKind::NearMiss });
    }
    let name = &body[name_at..name_at + length];
    let line = Text { body, open, line_end: line_end(body, open), properties: properties(tools, name) };
    match line.arguments() {
        Ok(Written { text, repaired, end }) => {
            let raw = Value::from(&body[start..end]);
            Line::Call(ParsedCall { name: name.to_owned(), id: None, arguments: text, repaired, incomplete: false, raw }, end)
        }
        Err(Fault::NoCall) => Line::Skip(DiagnosticKind::Incomplete),
        Err(Fault::Open) => Line::Open,
    }
}

fn skip_blanks(body: &str, at: usize) -> usize {
    at + (body[at..].len() - body[at..].trim_start_matches([' ', '\t']).len())
}

/// Names of the properties of an offered tool.
fn properties<'a>(tools: &'a [Value], name: &str) -> Option<&'a Map<String, Value>> {
    let function = |tool: &'a Value| tool.get("function").unwrap_or(tool);
    let named = |function: &&Value| function.get("name").and_then(Value::as_str) == Some(name);
    tools.iter().map(function).find(named)?.pointer("/parameters/properties")?.as_object()
}

/// The bracket of one call.
struct Text<'a> {
    body: &'a str,
    /// The opening bracket.
    open: usize,
    /// End of the line the bracket stands on.
    line_end: usize,
    properties: Option<&'a Map<String, Value>>,
}

struct Written {
    text: String,
    repaired: bool,
    /// The byte after the closing bracket.
    end: usize,
}

enum Fault {
    /// The bracket is not closed on its line.
    NoCall,
    /// A quote or bracket that is open at the end of the line is never closed, or is not what it seems.
    Open,
}

impl Text<'_> {
    /// The text up to the end of the line.
    fn line(&self) -> &str {
        &self.body[..self.line_end]
    }

    fn arguments(&self) -> Result<Written, Fault> {
        let mut reader = Reader::python(self.body, self.open + 1);
        reader.space();
        if reader.peek() == Some(b'{')
            && let Some(written) = self.object(&mut reader)?
        {
            return Ok(written);
        }
        self.keywords()
    }

    /// The form `name({...})`; `None` when more than the object stands in the brackets.
    fn object(&self, reader: &mut Reader<'_>) -> Result<Option<Written>, Fault> {
        let start = reader.at;
        match reader.value() {
            Ok(node) => {
                reader.space();
                if reader.peek() != Some(b')') {
                    return if node.end > self.line_end { Err(Fault::Open) } else { Ok(None) };
                }
                let (text, repaired) = arguments(&self.body[start..node.end], Some(&node));
                Ok(Some(Written { text, repaired, end: reader.at + 1 }))
            }
            Err(Stop::Incomplete) => Err(Fault::Open),
            Err(Stop::Malformed) if reader.at > self.line_end => Err(Fault::Open),
            Err(Stop::Malformed) => self.unreadable().map(Some),
        }
    }

    /// Nothing can be made of the arguments: they are kept as they stand, for the gate to refuse.
    fn unreadable(&self) -> Result<Written, Fault> {
        let end = balanced(self.line(), self.open);
        let last = || self.body[self.open..self.line_end].rfind(')').map(|at| self.open + at + 1);
        let end = end.or_else(last).ok_or(Fault::NoCall)?;
        let raw = self.body[self.open + 1..end - 1].trim();
        Ok(Written { text: untouched(raw.to_owned()), repaired: false, end })
    }

    /// The form `name(key=value, ...)`. Once a value went over a line end, a call that fails takes the lines after it along.
    fn keywords(&self) -> Result<Written, Fault> {
        let mut over_lines = false;
        self.pieces(&mut over_lines).map_err(|fault| if over_lines { Fault::Open } else { fault })
    }

    fn pieces(&self, over_lines: &mut bool) -> Result<Written, Fault> {
        let mut text = String::from("{");
        let mut repaired = false;
        let mut reader = Reader::python(self.body, self.open + 1);
        // Whether an argument may start here; a comma where one may is an empty piece, which says nothing.
        let mut separated = true;
        loop {
            reader.space();
            let crossed = reader.at > self.line_end;
            match reader.peek() {
                None => return Err(Fault::NoCall),
                Some(b')') => {
                    text.push('}');
                    // What the gate refuses (a key that came twice) was not repaired.
                    repaired = (repaired || separated && text.len() > 2) && parse_arguments(&text).is_ok();
                    return Ok(Written { text, repaired, end: reader.at + 1 });
                }
                Some(b',') => {
                    repaired |= separated;
                    separated = true;
                    reader.at += 1;
                    continue;
                }
                Some(_) => {}
            }
            let Some((key, value_at)) = self.key(reader.at).filter(|_| separated) else {
                // A value without a name would be lost; what stands on a later line is no argument.
                return if crossed { Err(Fault::NoCall) } else { self.unreadable() };
            };
            if text.len() > 1 {
                text.push_str(", ");
            }
            write_key(&self.spelled(key), &mut text);
            let Some(end) = self.value(value_at, crossed, &mut text)? else { return self.unreadable() };
            *over_lines |= self.body[value_at..end].contains('\n');
            repaired |= *over_lines;
            reader.at = end;
            separated = false;
        }
    }

    /// Appends the JSON of one value and gives the byte behind it; `None` when it has no one meaning.
    fn value(&self, at: usize, crossed: bool, text: &mut String) -> Result<Option<usize>, Fault> {
        let mut reader = Reader::python(self.body, at);
        let first = self.body.as_bytes().get(at);
        let enclosed = matches!(first, Some(b'"' | b'\'' | b'{' | b'[' | b'('));
        match reader.value() {
            Ok(node) => {
                reader.space();
                if matches!(reader.peek(), Some(b',' | b')')) {
                    node.write(text);
                    return Ok(Some(node.end));
                }
            }
            Err(Stop::Incomplete) => return Err(if enclosed { Fault::Open } else { Fault::NoCall }),
            Err(Stop::Malformed) => {}
        }
        // No literal: a raw text, which ends on its line.
        if enclosed && reader.at > self.line_end {
            return Err(Fault::Open);
        }
        if crossed {
            return Err(Fault::NoCall);
        }
        if matches!(first, Some(b'"' | b'\'')) {
            return Ok(None);
        }
        let Some(end) = self.piece_end(at) else { return Ok(None) };
        text.push_str(&Value::from(self.body[at..end].trim_end()).to_string());
        Ok(Some(end))
    }

    /// The key of a piece and where its value starts.
    fn key(&self, at: usize) -> Option<(&str, usize)> {
        let rest = &self.body[at..];
        let length = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))).unwrap_or(rest.len());
        let equals = skip_blanks(self.body, at + length);
        let named = length > 0 && self.body[equals..].starts_with('=');
        named.then(|| (&rest[..length], skip_blanks(self.body, equals + 1)))
    }

    /// The spelling the tool declares: the key itself, else the property that differs in case only, else lower case.
    fn spelled(&self, key: &str) -> String {
        if let Some(properties) = self.properties {
            if properties.contains_key(key) {
                return key.to_owned();
            }
            let lower = key.to_lowercase();
            let mut alike = properties.keys().filter(|name| name.to_lowercase() == lower);
            if let (Some(one), None) = (alike.next(), alike.next()) {
                return one.clone();
            }
        }
        key.to_lowercase()
    }

    /// The comma or bracket that ends a raw text on this line, outside of quotes and brackets.
    fn piece_end(&self, from: usize) -> Option<usize> {
        let mut at = from;
        let mut before = b' ';
        while at < self.line_end {
            let byte = *self.body.as_bytes().get(at)?;
            match byte {
                b',' | b')' => return Some(at),
                b'{' | b'[' | b'(' => {
                    at = balanced(self.line(), at)?;
                    before = b')';
                    continue;
                }
                b'}' | b']' => return None,
                b'"' | b'\'' if before == b' ' => {
                    let mut reader = Reader::python(self.line(), at);
                    reader.value().ok()?;
                    at = reader.at;
                    before = byte;
                    continue;
                }
                _ => {}
            }
            before = if byte.is_ascii_whitespace() { b' ' } else { byte };
            at += 1;
        }
        None
    }
}
