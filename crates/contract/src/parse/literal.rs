//! One tolerant reader for what models write instead of JSON: trailing commas, single quotes, Python words, bare keys, raw line ends
//! in strings. Every difference from JSON is noted as a repair. It never completes a value: text that ends inside one is
//! [`Stop::Incomplete`]. Duplicate keys and tokens like `NaN` are kept as they were written, so that the strict gate refuses them.

use crate::arguments::{DEPTH_LIMIT, FaultKind, parse_value};
use serde_json::Value;

/// Why no value could be read, and the byte where that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text ends inside the value.
    Incomplete,
    /// Not a value in any form that is read here.
    Malformed,
}

/// A value with the bytes it stands in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Entries in the order they were written; a key may come twice.
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
    Plain(Value),
    /// A token that JSON has no value for (`NaN`, `1e999`), as written.
    Refused(String),
}

impl Node {
    /// The JSON text of what was read. What JSON cannot hold is written as it came, so that no strict reader takes it.
    pub(super) fn write(&self, out: &mut String) {
        match &self.kind {
            Kind::Plain(value) => out.push_str(&value.to_string()),
            Kind::Refused(token) => out.push_str(token),
            Kind::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Kind::Object(entries) => {
                out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    write_key(key, out);
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The only entry under `key`; `None` also when there are two.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Kind::Object(entries) = &self.kind else { return None };
        let mut found = entries.iter().filter(|(name, _)| name == key).map(|(_, node)| node);
        found.next().filter(|_| found.next().is_none())
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Kind::Plain(Value::String(text)) = &self.kind { Some(text) } else { None }
    }
}

/// `"key": ` in JSON.
pub(super) fn write_key(key: &str, out: &mut String) {
    out.push_str(&Value::from(key).to_string());
    out.push_str(": ");
}

/// Reads values from a place in a text.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    pub(super) at: usize,
    /// Tuples and Python's way of writing numbers are read too.
    python: bool,
    depth: usize,
    /// Bytes where the text differed from JSON.
    pub(super) repairs: Vec<usize>,
    /// String entries of the outermost object read so far: a broken call can still be answered under its name.
    pub(super) head: Vec<(String, String)>,
}

type Read<T> = Result<T, Stop>;

impl<'a> Reader<'a> {
    pub(super) fn json(text: &'a str, at: usize) -> Self {
        Self { text, at, python: false, depth: 0, repairs: Vec::new(), head: Vec::new() }
    }

    pub(super) fn python(text: &'a str, at: usize) -> Self {
        Self { python: true, ..Self::json(text, at) }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn unexpected<T>(&self) -> Read<T> {
        Err(if self.at >= self.text.len() { Stop::Incomplete } else { Stop::Malformed })
    }

    pub(super) fn value(&mut self) -> Read<Node> {
        self.space();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(|reader| reader.array(b']'))?,
            Some(b'(') if self.python => {
                self.repairs.push(start);
                self.nested(|reader| reader.array(b')'))?
            }
            Some(b'"' | b'\'') => Kind::Plain(self.string()?.into()),
            _ => self.token()?,
        };
        Ok(Node { kind, start, end: self.at })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Read<Kind>) -> Read<Kind> {
        if self.depth == DEPTH_LIMIT {
            return Err(Stop::Malformed);
        }
        self.depth += 1;
        self.at += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn object(&mut self) -> Read<Kind> {
        let mut entries = Vec::new();
        loop {
            self.space();
            if self.peek() == Some(b'}') {
                self.close(entries.is_empty());
                return Ok(Kind::Object(entries));
            }
            let key = match self.peek() {
                Some(b'"' | b'\'') => self.string()?,
                _ => self.bare_key()?,
            };
            self.space();
            if self.peek() != Some(b':') {
                return self.unexpected();
            }
            self.at += 1;
            let value = self.value()?;
            if let (1, Some(text)) = (self.depth, value.as_str()) {
                self.head.push((key.clone(), text.to_owned()));
            }
            entries.push((key, value));
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.close(true);
                    return Ok(Kind::Object(entries));
                }
                _ => return self.unexpected(),
            }
        }
    }

    fn array(&mut self, end: u8) -> Read<Kind> {
        let mut items = Vec::new();
        let mut comma = false;
        loop {
            self.space();
            if self.peek() == Some(end) {
                self.close(items.is_empty() || !comma);
                // In Python `(1)` is the number in brackets; only the comma makes a tuple.
                if end == b')' && !comma && items.len() == 1 {
                    return items.pop().map(|item: Node| item.kind).ok_or(Stop::Malformed);
                }
                return Ok(Kind::Array(items));
            }
            if !items.is_empty() && !comma {
                return self.unexpected();
            }
            items.push(self.value()?);
            self.space();
            comma = self.peek() == Some(b',');
            self.at += usize::from(comma);
        }
    }

    /// Steps over the closing bracket; one after a comma is a repair.
    fn close(&mut self, clean: bool) {
        if !clean {
            self.repairs.push(self.at);
        }
        self.at += 1;
    }

    fn bare_key(&mut self) -> Read<String> {
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let key = &rest[..length];
        if length == 0 || key.starts_with(|c: char| c.is_numeric()) {
            return self.unexpected();
        }
        self.repairs.push(self.at);
        self.at += length;
        Ok(key.to_owned())
    }

    /// A number or a word.
    fn token(&mut self) -> Read<Kind> {
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '+' | '-' | '.'))).unwrap_or(rest.len());
        let token = &rest[..length];
        let cut = self.at + length >= self.text.len();
        let repaired = match token {
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            "None" => Some(Value::Null),
            _ => None,
        };
        let kind = match (repaired, parse_value(token)) {
            (Some(value), _) => {
                self.repairs.push(self.at);
                Kind::Plain(value)
            }
            (None, Ok(value)) => Kind::Plain(value),
            (None, Err(fault)) => match fault.kind {
                FaultKind::NotFinite if matches!(token, "NaN" | "Infinity" | "-Infinity") => Kind::Refused(token.to_owned()),
                FaultKind::NumberRange => Kind::Refused(token.to_owned()),
                _ if cut => return Err(Stop::Incomplete),
                _ if self.python => match python_number(token) {
                    Some(kind) => {
                        self.repairs.push(self.at);
                        kind
                    }
                    None => return Err(Stop::Malformed),
                },
                _ => return Err(Stop::Malformed),
            },
        };
        self.at += length;
        Ok(kind)
    }

    fn string(&mut self) -> Read<String> {
        let quote = self.peek().unwrap_or(b'"');
        if quote == b'\'' {
            self.repairs.push(self.at);
        }
        self.at += 1;
        let mut out = String::new();
        loop {
            let from = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\'' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            out.push_str(self.text.get(from..self.at).unwrap_or_default());
            match self.peek() {
                None => return Err(Stop::Incomplete),
                Some(b'\\') => out.push(self.escape()?),
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(byte @ (b'"' | b'\'')) => {
                    out.push(byte as char);
                    self.at += 1;
                }
                Some(byte @ (b'\n' | b'\r' | b'\t')) => {
                    self.repairs.push(self.at);
                    out.push(byte as char);
                    self.at += 1;
                }
                // Another control character stands for nothing that a model means.
                Some(_) => return Err(Stop::Malformed),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let start = self.at;
        self.at += 1;
        let Some(kind) = self.peek() else { return Err(Stop::Incomplete) };
        self.at += 1;
        let simple = match kind {
            b'"' | b'\\' | b'/' => kind as char,
            b'\'' => {
                self.repairs.push(start);
                '\''
            }
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            b'x' if self.python => {
                self.repairs.push(start);
                let point = self.hex(2)?;
                return char::from_u32(point).ok_or(Stop::Malformed);
            }
            _ => return Err(Stop::Malformed),
        };
        Ok(simple)
    }

    fn unicode(&mut self) -> Read<char> {
        let high = self.hex(4)?;
        let point = if (0xd800..=0xdbff).contains(&high) {
            for expected in *b"\\u" {
                if self.peek() != Some(expected) {
                    return self.unexpected();
                }
                self.at += 1;
            }
            let low = self.hex(4)?;
            if !(0xdc00..=0xdfff).contains(&low) {
                return Err(Stop::Malformed);
            }
            0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)
        } else {
            high
        };
        char::from_u32(point).ok_or(Stop::Malformed)
    }

    fn hex(&mut self, digits: usize) -> Read<u32> {
        let mut value = 0;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|byte| (byte as char).to_digit(16)) else { return self.unexpected() };
            value = value * 16 + digit;
            self.at += 1;
        }
        Ok(value)
    }
}

/// Numbers that Python reads and JSON does not: `+5`, `.5`, `5.`, `1_000`, `0x10`. A number with leading zeros is none in either.
fn python_number(token: &str) -> Option<Kind> {
    let (sign, body) = match token.as_bytes().first()? {
        b'-' => ("-", &token[1..]),
        b'+' => ("", &token[1..]),
        _ => ("", token),
    };
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = body.strip_prefix(prefix) {
            let valid = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            let magnitude = valid.then(|| i64::from_str_radix(digits, radix).ok()).flatten()?;
            return Some(Kind::Plain(if sign == "-" { -magnitude } else { magnitude }.into()));
        }
    }
    let bytes = body.as_bytes();
    // An underscore stands between two digits.
    let between = |at: usize| {
        let digit = |place: Option<&u8>| place.is_some_and(u8::is_ascii_digit);
        at > 0 && digit(bytes.get(at - 1)) && digit(bytes.get(at + 1))
    };
    if bytes.iter().enumerate().any(|(at, byte)| *byte == b'_' && !between(at)) {
        return None;
    }
    let mut spelled = body.replace('_', "");
    if spelled.starts_with('.') {
        spelled.insert(0, '0');
    }
    if let Some(dot) = spelled.find('.')
        && !spelled[dot + 1..].starts_with(|c: char| c.is_ascii_digit())
    {
        spelled.insert(dot + 1, '0');
    }
    let plain = body.bytes().any(|byte| byte.is_ascii_digit()) && !body.starts_with(['+', '-']);
    let spelled = format!("{sign}{spelled}");
    match parse_value(&spelled) {
        Ok(value @ Value::Number(_)) if plain => Some(Kind::Plain(value)),
        Err(fault) if fault.kind == FaultKind::NumberRange => Some(Kind::Refused(spelled)),
        _ => None,
    }
}

/// The byte after the bracket that closes the one at `start`, by brackets and quotes alone; `None` when it is never closed or closed
/// by another kind. A quote opens a string only where a value may start, so an apostrophe in a word opens none.
pub(super) fn balanced(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open = Vec::new();
    let mut quote = None;
    let mut before = b' ';
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if let Some(mark) = quote {
            match byte {
                b'\\' => at += 1,
                _ if byte == mark => quote = None,
                _ => {}
            }
            before = b'"';
            continue;
        }
        match byte {
            b'{' | b'[' | b'(' => open.push(byte),
            b'}' | b']' | b')' => {
                let opener = match byte {
                    b'}' => b'{',
                    b']' => b'[',
                    _ => b'(',
                };
                if open.pop() != Some(opener) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at);
                }
            }
            b'"' | b'\'' if matches!(before, b'{' | b'[' | b'(' | b',' | b':' | b'=' | b' ') => quote = Some(byte),
            _ => {}
        }
        before = if byte.is_ascii_whitespace() { b' ' } else { byte };
    }
    None
}
