//! The inside of a JSON string, decoded as it comes. Must be able to stop at any byte and go on with the next.

/// Most bytes that are taken at once.
const STEP: usize = super::batch::FULL;

/// What was taken of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// So many bytes of it.
    Bytes(usize),
    /// The quote that ends it comes.
    End,
    /// A line end comes, which no string has.
    Cut,
    /// An escape that JSON does not have; its beginning was taken.
    Unknown,
}

/// What an escape that is not there whole yet began with.
#[derive(Debug, Default)]
pub(super) struct Escapes {
    escape: Vec<u8>,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

impl Escapes {
    /// Takes bytes of a string and adds what they say to `out`. `rest` is not empty.
    pub(super) fn take(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Taken {
        if !self.escape.is_empty() {
            return self.escaped(rest, out);
        }
        let bytes = self.plain(rest, out);
        if bytes > 0 {
            return Taken::Bytes(bytes);
        }
        match rest.first() {
            Some(b'"') => {
                self.lone_half(out);
                Taken::End
            }
            Some(b'\\') => {
                self.escape.push(b'\\');
                Taken::Bytes(1)
            }
            _ => Taken::Cut,
        }
    }

    /// Takes plain bytes and the escapes that recordings are full of, up to what needs a closer look.
    fn plain(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let rest = rest.get(..STEP).unwrap_or(rest);
        let mut at = 0;
        loop {
            let from = rest.get(at..).unwrap_or_default();
            let end = memchr::memchr3(b'"', b'\\', b'\n', from).unwrap_or(from.len());
            if end > 0 {
                self.lone_half(out);
                out.extend_from_slice(from.get(..end).unwrap_or_default());
                at += end;
            }
            let escaped = match from.get(end..end + 2) {
                Some([b'\\', byte @ (b'"' | b'\\' | b'/')]) => *byte,
                Some([b'\\', b'n']) => b'\n',
                Some([b'\\', b't']) => b'\t',
                _ => return at,
            };
            self.lone_half(out);
            out.push(escaped);
            at += 2;
        }
    }

    /// One more byte of an escape.
    fn escaped(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Taken {
        let byte = rest.first().copied().unwrap_or_default();
        self.escape.push(byte);
        let plain = match (self.escape.len(), byte) {
            (2, b'u') => return Taken::Bytes(1),
            (2, b'n') => b'\n',
            (2, b't') => b'\t',
            (2, b'r') => b'\r',
            (2, b'b' | b'f') => b' ',
            (2, b'"' | b'\\' | b'/') => byte,
            (3..=6, _) if byte.is_ascii_hexdigit() => {
                if self.escape.len() == 6 {
                    let digits = std::str::from_utf8(self.escape.get(2..).unwrap_or_default()).unwrap_or_default();
                    let unit = u32::from_str_radix(digits, 16).unwrap_or_default();
                    self.escape.clear();
                    self.unit(unit, out);
                }
                return Taken::Bytes(1);
            }
            _ => return Taken::Unknown,
        };
        self.escape.clear();
        self.lone_half(out);
        out.push(plain);
        Taken::Bytes(1)
    }

    /// A code unit of UTF-16.
    fn unit(&mut self, unit: u32, out: &mut Vec<u8>) {
        let mut code = unit;
        if let (Some(high), 0xdc00..=0xdfff) = (self.high, unit) {
            self.high = None;
            code = 0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00);
        }
        self.lone_half(out);
        if (0xd800..=0xdbff).contains(&code) {
            self.high = Some(code);
            return;
        }
        let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn lone_half(&mut self, out: &mut Vec<u8>) {
        if self.high.take().is_some() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}
