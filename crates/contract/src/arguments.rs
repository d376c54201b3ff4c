//! Strict reading of an argument string: one complete JSON object or a typed fault with its place.
//!
//! Nothing is repaired, completed or dropped here. An empty argument string means no arguments; a corrupt one is never taken
//! for an empty one (complaint JR-5). Own code, because a general JSON reader lets through what must not reach an order: duplicate
//! keys (the last one wins), integers that lose digits, numbers that vanish into zero.

use crate::{ErrorCode, ToolFailure};
use serde_json::{Map, Number, Value};

/// Bytes an argument string may have.
pub const ARGUMENTS_LIMIT: usize = 1 << 20;

/// Arrays and objects inside each other, the outermost object included.
pub const DEPTH_LIMIT: usize = 64;

/// What is wrong with an argument string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at character {position}")]
pub struct ArgumentsFault {
    /// Characters (Unicode scalar values) before the fault.
    pub position: usize,
    /// What it is.
    pub kind: FaultKind,
}

/// Kinds of faults. No message repeats received text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FaultKind {
    /// The text ends inside a value.
    #[error("the JSON text ends before it is complete")]
    Incomplete,
    /// Another character was needed.
    #[error("the text is not JSON")]
    Syntax,
    /// Text after the object.
    #[error("text follows the end of the JSON object")]
    TrailingText,
    /// A complete value that is no object.
    #[error("the arguments are a JSON value but not an object")]
    NotAnObject,
    /// A key came twice in one object.
    #[error("a key appears twice in one object")]
    DuplicateKey,
    /// `NaN` or an infinity.
    #[error("NaN and Infinity are not numbers of JSON")]
    NotFinite,
    /// A number that no 64-bit number holds.
    #[error("the number is outside the range of 64-bit numbers")]
    NumberRange,
    /// A bad escape or a raw control character.
    #[error("the string holds a bad escape or a raw control character")]
    BadString,
    /// Half of a surrogate pair.
    #[error("the string holds half of a surrogate pair")]
    LoneSurrogate,
    /// More than [`DEPTH_LIMIT`].
    #[error("arrays and objects are nested too deeply")]
    TooDeep,
    /// More than [`ARGUMENTS_LIMIT`].
    #[error("the argument text is too long")]
    TooLong,
}

impl FaultKind {
    /// Stable name for records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::Syntax => "syntax",
            Self::TrailingText => "trailing_text",
            Self::NotAnObject => "not_an_object",
            Self::DuplicateKey => "duplicate_key",
            Self::NotFinite => "not_finite",
            Self::NumberRange => "number_range",
            Self::BadString => "bad_string",
            Self::LoneSurrogate => "lone_surrogate",
            Self::TooDeep => "too_deep",
            Self::TooLong => "too_long",
        }
    }
}

impl ArgumentsFault {
    /// The failure the model reads.
    pub fn failure(&self, tool: &str) -> ToolFailure {
        let instruction = match self.kind {
            FaultKind::Incomplete => "The arguments were cut off, so nothing was run. Send the whole call again.",
            FaultKind::DuplicateKey => "Send each field once.",
            FaultKind::NotFinite | FaultKind::NumberRange => "Send an ordinary finite number, or leave an optional field out.",
            FaultKind::TooLong | FaultKind::TooDeep => "Send shorter arguments in the shape of the valid example.",
            _ => "Send exactly one JSON object with the arguments, in the shape of the valid example, and nothing around it.",
        };
        ToolFailure::new(
            ErrorCode::InvalidToolArgumentsJson,
            format!("The arguments of {tool} cannot be read: {self}."),
            instruction,
        )
        .with("fault", self.kind.as_str())
        .with("position", self.position)
    }
}

/// Reads an argument string. A string of nothing but whitespace means no arguments (spec/seeds.md A6.4).
///
/// # Errors
/// [`ArgumentsFault`] for anything that is not exactly one complete JSON object: duplicate keys, NaN, Infinity, numbers outside
/// 64 bits, lone surrogates, text after the object, more than [`DEPTH_LIMIT`] levels, more than [`ARGUMENTS_LIMIT`] bytes.
pub fn parse_arguments(text: &str) -> Result<Map<String, Value>, ArgumentsFault> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match parse_value(text)? {
        Value::Object(map) => Ok(map),
        _ => Err(ArgumentsFault { position: 0, kind: FaultKind::NotAnObject }),
    }
}

/// Reads one complete JSON value under the same rules.
pub(crate) fn parse_value(text: &str) -> Result<Value, ArgumentsFault> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let place = |fault: (usize, FaultKind)| {
        let mut end = fault.0.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        ArgumentsFault { position: text[..end].chars().count(), kind: fault.1 }
    };
    if text.len() > ARGUMENTS_LIMIT {
        return Err(place((ARGUMENTS_LIMIT, FaultKind::TooLong)));
    }
    let value = reader.value().map_err(place)?;
    reader.space();
    if reader.at < text.len() {
        return Err(place((reader.at, FaultKind::TrailingText)));
    }
    Ok(value)
}

type Read<T> = Result<T, (usize, FaultKind)>;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The fault of meeting the wrong byte here: the end of the text is a fault of its own.
    fn unexpected<T>(&self) -> Read<T> {
        let kind = if self.at >= self.text.len() { FaultKind::Incomplete } else { FaultKind::Syntax };
        Err((self.at, kind))
    }

    fn value(&mut self) -> Read<Value> {
        self.space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'N' | b'I') if self.rest_is("NaN") || self.rest_is("Inf") => Err((self.at, FaultKind::NotFinite)),
            _ => self.unexpected(),
        }
    }

    fn rest_is(&self, word: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(word.as_bytes())
    }

    fn word(&mut self, word: &str, value: Value) -> Read<Value> {
        let rest = &self.text.as_bytes()[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        let kind = if word.as_bytes().starts_with(rest) { FaultKind::Incomplete } else { FaultKind::Syntax };
        Err((self.at, kind))
    }

    fn nested(&mut self, read: fn(&mut Self) -> Read<Value>) -> Read<Value> {
        if self.depth == DEPTH_LIMIT {
            return Err((self.at, FaultKind::TooDeep));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Read<Value> {
        let mut map = Map::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.unexpected();
            }
            let start = self.at;
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return self.unexpected();
            }
            self.at += 1;
            let value = self.value()?;
            if map.insert(key, value).is_some() {
                return Err((start, FaultKind::DuplicateKey));
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                _ => return self.unexpected(),
            }
        }
    }

    fn array(&mut self) -> Read<Value> {
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return self.unexpected(),
            }
        }
    }

    fn digits(&mut self) -> Read<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.unexpected();
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        let mut whole = true;
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.rest_is("Inf") || self.rest_is("NaN") {
                return Err((start, FaultKind::NotFinite));
            }
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return self.unexpected();
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let spelled = &self.text[start..self.at];
        let range = (start, FaultKind::NumberRange);
        if whole && spelled != "-0" {
            let signed = spelled.parse::<i64>().map(Number::from);
            return signed.or_else(|_| spelled.parse::<u64>().map(Number::from)).map(Value::Number).map_err(|_| range);
        }
        let value: f64 = spelled.parse().map_err(|_| range)?;
        let mantissa = spelled.split(['e', 'E']).next().unwrap_or(spelled);
        let vanished = value == 0.0 && mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'));
        // `from_f64` refuses infinities, which is what 1e999 parses to.
        Number::from_f64(value).filter(|_| !vanished).map(Value::Number).ok_or(range)
    }

    fn string(&mut self) -> Read<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let from = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            out.push_str(&self.text[from..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err((self.at, FaultKind::BadString)),
                None => return Err((self.at, FaultKind::Incomplete)),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let start = self.at;
        self.at += 1;
        let Some(kind) = self.peek() else { return Err((self.at, FaultKind::Incomplete)) };
        self.at += 1;
        Ok(match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hex()?;
                let lone = (start, FaultKind::LoneSurrogate);
                let point = match high {
                    0xd800..=0xdbff => {
                        if !self.rest_is("\\u") {
                            let cut = self.at >= self.text.len() || (self.rest_is("\\") && self.at + 1 == self.text.len());
                            return Err(if cut { (self.text.len(), FaultKind::Incomplete) } else { lone });
                        }
                        self.at += 2;
                        let low = self.hex()?;
                        if !(0xdc00..=0xdfff).contains(&low) {
                            return Err(lone);
                        }
                        0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)
                    }
                    other => other,
                };
                char::from_u32(point).ok_or(lone)?
            }
            _ => return Err((start, FaultKind::BadString)),
        })
    }

    fn hex(&mut self) -> Read<u32> {
        let mut value = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else { return Err((self.at, FaultKind::Incomplete)) };
            let digit = (byte as char).to_digit(16).ok_or((self.at, FaultKind::BadString))?;
            value = value * 16 + digit;
            self.at += 1;
        }
        Ok(value)
    }
}
