//! [`EventReader`]: server-sent events out of bytes that come in any pieces (WHATWG HTML 9.2.6). Only the data of events is given;
//! names, ids, retry hints and comments are read and dropped. The same bytes give the same events however they are cut.

/// Reads events.
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return, so that a line feed right after it is no second line end.
    after_return: bool,
    /// A byte order mark may stand before the first line only.
    begun: bool,
}

impl EventReader {
    /// Takes the next bytes and gives the data of every event that ends in them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    events.extend(self.end_line());
                }
                _ => {
                    self.after_return = false;
                    self.line.push(byte);
                }
            }
        }
        events
    }

    /// What is left when the bytes end for good: an event whose blank line is missing. A line without its end is only taken when it is
    /// `closing`, because any other may be the beginning of a longer one.
    pub(crate) fn finish(&mut self, closing: &str) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let data = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii);
        if data == Some(closing.as_bytes()) && !self.has_data {
            return Some(closing.as_bytes().to_vec());
        }
        if line.is_empty() { self.take() } else { None }
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let line = if self.begun { &line[..] } else { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            return self.take();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        if field == b"data" {
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(value);
        }
        None
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then_some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::EventReader;
    use proptest::prelude::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = EventReader::default();
        let mut events: Vec<Vec<u8>> = pieces.iter().flat_map(|piece| reader.push(piece)).collect();
        events.extend(reader.finish("[DONE]"));
        events.into_iter().map(|event| String::from_utf8_lossy(&event).into_owned()).collect()
    }

    fn check(input: &str, expected: &[&str]) {
        assert_eq!(events(&[input.as_bytes()]), expected, "{input:?}");
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(events(&bytes), expected, "byte by byte: {input:?}");
    }

    #[test]
    fn every_line_end_and_field_is_read() {
        check("data: a\n\ndata:b\r\n\r\ndata:  c\r\r", &["a", "b", " c"]);
        check("\u{feff}data: a\n\n", &["a"]);
        check(": keep-alive\n\n:\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", &["a"]);
        check("data: a\ndata\ndata: b\n\n", &["a\n\nb"]);
        check("data: {\ndata: }\r\n\r\n", &["{\n}"]);
        check("datas: a\n\ndata : b\n\n", &[]);
        check("data\n\n", &[""]);
    }

    #[test]
    fn a_line_without_its_end_is_no_line_unless_it_closes() {
        check("data: a\n\ndata: {\"x\":1}", &["a"]);
        check("data: a\n", &["a"]);
        check("data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
        check("data: a\ndata: [DONE", &[]);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in r#"(data: ?[a≥😀股{}]{0,4}|: x|event: e|[\r\n]|\r\n){0,24}"#, cuts in prop::collection::vec(0_usize..120, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(events(&pieces), events(&[bytes]));
        }
    }
}
