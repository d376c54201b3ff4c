//! Texts in UTF-16 and in GB 18030 (GBK and GB 2312 with it, in which many Chinese tables are written) as UTF-8. Must pass on what it does not
//! know as it is: whoever reads it reports that it is no UTF-8.

use encoding_rs::{Decoder, DecoderResult, Encoding, GB18030, UTF_16BE, UTF_16LE};
use std::io::Read;

/// Bytes that tell in what a text is written.
const HEAD: usize = 64 << 10;
/// What stands where bytes are no character of the encoding: no UTF-8 either, so that it is reported.
const NONE: u8 = 0xff;

/// Whether bytes at the beginning of a file are text that [`scan`](super::Auditor::scan) can read.
pub fn is_text(head: &[u8]) -> bool {
    let encoding = of(head);
    let utf16 = encoding.is_some_and(|encoding| encoding != GB18030);
    let utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(e) => e.error_len().is_none() && e.valid_up_to() > 0,
    };
    utf16 || !head.contains(&0) && (utf8 || encoding.is_some())
}

/// The encoding that is not UTF-8 and that bytes at the beginning of a file are in; `None` for UTF-8 and for what nobody knows.
fn of(head: &[u8]) -> Option<&'static Encoding> {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return (encoding == UTF_16LE || encoding == UTF_16BE).then_some(encoding);
    }
    // Text in Latin letters: every second byte is zero.
    let zeros = |from: usize| head.iter().skip(from).step_by(2).take(256).filter(|b| **b == 0).count();
    let (even, odd, half) = (zeros(0), zeros(1), head.len().min(512) / 2);
    match (even, odd) {
        (0, odd) if odd > half / 3 => return Some(UTF_16LE),
        (even, 0) if even > half / 3 => return Some(UTF_16BE),
        _ => {}
    }
    if head.contains(&0) || std::str::from_utf8(head).err().is_none_or(|e| e.error_len().is_none()) {
        return None;
    }
    let mut out = vec![0; head.len() * 3 + 16];
    let (result, ..) = GB18030.new_decoder_without_bom_handling().decode_to_utf8_without_replacement(head, &mut out, false);
    (result == DecoderResult::InputEmpty).then_some(GB18030)
}

/// A text as UTF-8.
pub(super) struct Utf8<R> {
    reader: R,
    decoder: Option<Decoder>,
    /// Bytes of the text that wait.
    held: Vec<u8>,
    at: usize,
    ended: bool,
    fault: Option<std::io::Error>,
}

impl<R: Read> Utf8<R> {
    /// Looks at the beginning of a text. A fault of the reader comes when what was read before it was taken.
    pub(super) fn new(mut reader: R) -> Self {
        let mut held = vec![];
        let fault = reader.by_ref().take(HEAD as u64).read_to_end(&mut held).err();
        let decoder = of(&held).map(Encoding::new_decoder_with_bom_removal);
        let mut text = Self { reader, decoder, held, at: 0, ended: false, fault };
        if text.decoder.is_some() {
            let head = std::mem::take(&mut text.held);
            text.decode(&head, false);
        }
        text
    }

    fn decode(&mut self, mut bytes: &[u8], last: bool) {
        let Some(decoder) = &mut self.decoder else { return };
        self.held.clear();
        self.at = 0;
        loop {
            let start = self.held.len();
            self.held.resize(start + bytes.len() * 3 + 16, 0);
            let room = self.held.get_mut(start..).unwrap_or_default();
            let (result, read, written) = decoder.decode_to_utf8_without_replacement(bytes, room, last);
            self.held.truncate(start + written);
            bytes = bytes.get(read..).unwrap_or_default();
            match result {
                DecoderResult::InputEmpty => return,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => self.held.push(NONE),
            }
        }
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.at >= self.held.len() && !self.ended {
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            if self.decoder.is_none() {
                return self.reader.read(buffer);
            }
            let mut bytes = vec![0; HEAD];
            let read = self.reader.read(&mut bytes)?;
            self.ended = read == 0;
            self.decode(bytes.get(..read).unwrap_or_default(), self.ended);
        }
        let rest = self.held.get(self.at..).unwrap_or_default();
        let step = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..step), rest.get(..step)) {
            to.copy_from_slice(from);
        }
        self.at += step;
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, big: bool, bom: bool) -> Vec<u8> {
        let units = bom.then_some(0xfeff).into_iter().chain(text.encode_utf16());
        units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &[u8]) {
        let mut out = vec![];
        Utf8::new(bytes).read_to_end(&mut out).unwrap();
        assert_eq!(out, expected, "{}", String::from_utf8_lossy(&out));
        assert!(is_text(bytes));
    }

    #[test]
    fn texts_in_other_encodings_are_read() {
        let text = "name,贵州茅台\r\ncode,600519 and some more letters\r\n".repeat(4_000);
        for (big, bom) in [(false, true), (true, true), (false, false), (true, false)] {
            check(&utf16(&text, big, bom), text.as_bytes());
        }
        check(&GB18030.encode(&text).0, text.as_bytes());
        check(text.as_bytes(), text.as_bytes());
        check(b"", b"");
    }

    #[test]
    fn what_nobody_knows_passes_as_it_is() {
        for bytes in [&b"caf\xe9 au lait"[..], b"\xff\xff\xff\xff", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01"] {
            let mut out = vec![];
            Utf8::new(bytes).read_to_end(&mut out).unwrap();
            assert_eq!(out, bytes);
            assert!(!is_text(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_character_is_no_utf8() {
        let mut bytes = GB18030.encode(&"贵州".repeat(40_000)).0.into_owned();
        bytes.extend([0xff, 0xff]);
        let mut out = vec![];
        Utf8::new(&bytes[..]).read_to_end(&mut out).unwrap();
        assert!(out.starts_with("贵州".as_bytes()) && out.ends_with(&[NONE]), "{:?}", &out[out.len() - 4..]);
    }
}
