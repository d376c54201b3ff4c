//! JSON as Python's `json` module reads and writes it: it knows values that JSON does not have (`NaN`, `Infinity`, unpaired surrogates)
//! and integers of any length. For reading recordings of the Python implementation; nothing of ours is ever written in this form, and
//! nothing is replaced in silence: what has no JSON value is an error that says what it is.

use crate::Fingerprint;
use crate::canonical::{Sink, write_string};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};
use traderharness_contract::version::legacy::double_text;

/// Deepest nesting that is read; as deep as every other reader here goes.
const DEEPEST: usize = 127;
/// Longest integer: Python itself refuses longer ones.
const LONGEST_INTEGER: usize = 4_300;

/// A value of Python that its `json` module can write.
#[derive(Debug, Clone, PartialEq)]
pub enum PyValue {
    /// `None`.
    Null,
    /// `True`, `False`.
    Bool(bool),
    /// An integer of any length, in its decimal digits.
    Int(String),
    /// A double, also one that is not finite.
    Float(f64),
    /// A text. May hold surrogates without their other half, each in the three bytes that UTF-8 would give its number.
    Text(Vec<u8>),
    /// A list.
    List(Vec<Self>),
    /// A dictionary in the order in which its keys came first; a later value of a key replaces an earlier one.
    Dict(Vec<(Vec<u8>, Self)>),
}

/// A text that Python's reader would not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON, also as Python reads it: {what} at byte {at}")]
pub struct NotPythonJson {
    /// Byte of the text, from 0.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// A value that Python writes and JSON does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoJson {
    /// `NaN`, `Infinity` or `-Infinity`.
    #[error("{0}, which is no JSON number")]
    NotFinite(&'static str),
    /// An unpaired surrogate: no UTF-8 text can hold it, so Python itself could not take a digest over it.
    #[error("the unpaired surrogate \\u{0:04x}, which no UTF-8 text can hold")]
    Surrogate(u16),
    /// An integer beyond 64 bits.
    #[error("the integer {0}, which is longer than 64 bits")]
    Integer(String),
}

impl PyValue {
    /// Reads a text as `json.loads` does.
    ///
    /// # Errors
    /// [`NotPythonJson`].
    pub fn parse(text: &str) -> Result<Self, NotPythonJson> {
        let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
        reader.space();
        let value = reader.value(0)?;
        reader.space();
        if reader.at < reader.bytes.len() { Err(reader.fault("something follows the value")) } else { Ok(value) }
    }

    /// The text of `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)`, as the bytes of its code points.
    pub fn sorted_text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// SHA-256 over [`PyValue::sorted_text`].
    ///
    /// # Errors
    /// [`NoJson::Surrogate`]: Python cannot encode such a text, so it has no digest there either.
    pub fn fingerprint(&self) -> Result<Fingerprint, NoJson> {
        let text = self.sorted_text();
        match unpaired(&text) {
            Some(surrogate) => Err(NoJson::Surrogate(surrogate)),
            None => Ok(Fingerprint(Sha256::digest(&text).into())),
        }
    }

    /// The same value in JSON.
    ///
    /// # Errors
    /// [`NoJson`], when JSON as it is read here has no such value.
    pub fn to_json(&self) -> Result<Value, NoJson> {
        let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(NoJson::Surrogate(unpaired(bytes).unwrap_or_default())),
        };
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(digits) => match (digits.parse::<u64>(), digits.parse::<i64>()) {
                (Ok(number), _) => number.into(),
                (_, Ok(number)) => number.into(),
                _ => return Err(NoJson::Integer(digits.chars().take(40).collect())),
            },
            Self::Float(double) => Number::from_f64(*double).map(Value::Number).ok_or(NoJson::NotFinite(not_finite(*double)))?,
            Self::Text(bytes) => text(bytes)?.into(),
            Self::List(items) => Value::Array(items.iter().map(Self::to_json).collect::<Result<_, _>>()?),
            Self::Dict(entries) => {
                let entries = entries.iter().map(|(key, value)| Ok((text(key)?, value.to_json()?)));
                Value::Object(entries.collect::<Result<Map<_, _>, NoJson>>()?)
            }
        })
    }

    /// The value of a key of a dictionary.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Dict(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key.as_bytes()).map(|(_, value)| value)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Int(digits) => out.extend_from_slice(digits.as_bytes()),
            Self::Float(double) if double.is_finite() => out.extend_from_slice(double_text(*double).as_bytes()),
            Self::Float(double) => out.extend_from_slice(not_finite(*double).as_bytes()),
            Self::Text(text) => write_text(text, out),
            Self::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Dict(entries) => {
                // Python compares code points; so do these bytes, surrogates included.
                let mut sorted: Vec<&(Vec<u8>, Self)> = entries.iter().collect();
                sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
                out.push(b'{');
                for (index, (key, item)) in sorted.into_iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_text(key, out);
                    out.push(b':');
                    item.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

const fn not_finite(double: f64) -> &'static str {
    if double.is_nan() {
        "NaN"
    } else if double > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// The first surrogate without its other half.
fn unpaired(text: &[u8]) -> Option<u16> {
    let fault = std::str::from_utf8(text).err()?;
    match text.get(fault.valid_up_to()..) {
        Some([0xed, second, third, ..]) => Some(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f)),
        _ => None,
    }
}

struct Bytes<'a>(&'a mut Vec<u8>);

impl Sink for Bytes<'_> {
    fn put(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }
}

fn write_text(mut text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    while !text.is_empty() {
        let whole = std::str::from_utf8(text).map_or_else(|fault| fault.valid_up_to(), str::len);
        let (head, rest) = text.split_at(whole);
        let mut quoted = Vec::with_capacity(head.len() + 2);
        write_string(std::str::from_utf8(head).unwrap_or_default(), &mut Bytes(&mut quoted));
        out.extend_from_slice(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        // What stopped the text is one surrogate of three bytes.
        let (surrogate, rest) = rest.split_at(rest.len().min(3));
        out.extend_from_slice(surrogate);
        text = rest;
    }
    out.push(b'"');
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    const fn fault(&self, what: &'static str) -> NotPythonJson {
        NotPythonJson { at: self.at, what }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()));
        if found {
            self.at += word.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<PyValue, NotPythonJson> {
        if depth > DEEPEST {
            return Err(self.fault("nested too deep"));
        }
        for (word, value) in [
            ("null", PyValue::Null),
            ("true", PyValue::Bool(true)),
            ("false", PyValue::Bool(false)),
            ("NaN", PyValue::Float(f64::NAN)),
            ("Infinity", PyValue::Float(f64::INFINITY)),
            ("-Infinity", PyValue::Float(f64::NEG_INFINITY)),
        ] {
            if self.take(word) {
                return Ok(value);
            }
        }
        match self.peek() {
            Some(b'"') => Ok(PyValue::Text(self.text()?)),
            Some(b'[') => self.list(depth),
            Some(b'{') => self.dict(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            None => Err(self.fault("the text ends where a value is due")),
            Some(_) => Err(self.fault("no value begins like this")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<PyValue, NotPythonJson> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.take("]") {
            return Ok(PyValue::List(items));
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take("]") {
                return Ok(PyValue::List(items));
            }
            if !self.take(",") {
                return Err(self.fault("no comma between the members of a list"));
            }
        }
    }

    fn dict(&mut self, depth: usize) -> Result<PyValue, NotPythonJson> {
        let mut entries: Vec<(Vec<u8>, PyValue)> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        self.at += 1;
        self.space();
        if self.take("}") {
            return Ok(PyValue::Dict(entries));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.fault("no key where one is due"));
            }
            let key = self.text()?;
            self.space();
            if !self.take(":") {
                return Err(self.fault("no colon after a key"));
            }
            self.space();
            let value = self.value(depth + 1)?;
            let place = *places.entry(key.clone()).or_insert(entries.len());
            match entries.get_mut(place) {
                Some(entry) => entry.1 = value,
                None => entries.push((key, value)),
            }
            self.space();
            if self.take("}") {
                return Ok(PyValue::Dict(entries));
            }
            if !self.take(",") {
                return Err(self.fault("no comma between the members of an object"));
            }
        }
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - from
    }

    fn number(&mut self) -> Result<PyValue, NotPythonJson> {
        let from = self.at;
        let negative = self.take("-");
        let first = self.peek();
        let whole = self.digits();
        if whole == 0 || (first == Some(b'0') && whole > 1) {
            return Err(self.fault("no number is written like this"));
        }
        let after = self.at;
        let mut is_float = false;
        if self.take(".") {
            is_float = self.digits() > 0;
            if !is_float {
                return Err(self.fault("no digit after the point of a number"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.fault("no digit in the exponent of a number"));
            }
            is_float = true;
        }
        let text = self.bytes.get(from..self.at).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        if is_float {
            return text.parse().map(PyValue::Float).map_err(|_| self.fault("no number is written like this"));
        }
        if whole > LONGEST_INTEGER {
            return Err(NotPythonJson { at: after, what: "an integer of more than 4,300 digits" });
        }
        // Python has one zero among its integers.
        Ok(PyValue::Int(if negative && text == "-0" { "0".to_owned() } else { text.to_owned() }))
    }

    fn text(&mut self) -> Result<Vec<u8>, NotPythonJson> {
        let mut out = Vec::new();
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.fault("the text ends inside of quotes")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(0..=0x1f) => return Err(self.fault("a control character inside of quotes")),
                Some(b'\\') => self.escape(&mut out)?,
                Some(byte) => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), NotPythonJson> {
        self.at += 1;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let high = self.unit()?;
                let mut number = u32::from(high);
                if (0xd800..0xdc00).contains(&high) && self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u")) {
                    let back = self.at;
                    self.at += 1;
                    let low = self.unit()?;
                    if (0xdc00..0xe000).contains(&low) {
                        number = 0x1_0000 + ((number - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                    } else {
                        self.at = back;
                    }
                }
                match char::from_u32(number) {
                    Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => out.extend([0xed, 0x80 | (number >> 6 & 0x3f) as u8, 0x80 | (number & 0x3f) as u8]),
                }
                return Ok(());
            }
            _ => return Err(self.fault("no escape is written like this")),
        };
        self.at += 1;
        out.push(plain);
        Ok(())
    }

    /// Four hexadecimal digits after a `u`.
    fn unit(&mut self) -> Result<u16, NotPythonJson> {
        let digits = self.bytes.get(self.at + 1..self.at + 5).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|d| u16::from_str_radix(d, 16).ok());
        let unit = unit.ok_or_else(|| self.fault("no four hexadecimal digits after \\u"))?;
        self.at += 5;
        Ok(unit)
    }
}
