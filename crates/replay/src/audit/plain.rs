//! Reads text and HTML in pieces. Must be bounded: a file without a line end is no longer than any other.

use super::batch::{AFTER, BEFORE, Batch, FULL, Role, Step, lossy, partial};
use super::desk::Desk;
use super::finding::FindingKind;

/// The reader.
#[derive(Debug)]
pub(super) struct Reader {
    html: bool,
    /// Inside of `<script>` or `<style>`.
    script: bool,
    held: Vec<u8>,
    /// Bytes of `held` that the piece before it has searched.
    again: usize,
    line: u64,
    offset: u64,
}

impl Reader {
    pub(super) const fn new(html: bool) -> Self {
        Self { html, script: false, held: vec![], again: 0, line: 1, offset: 0 }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], batch: &mut Batch, desk: &mut Desk<'_>) {
        for part in bytes.chunks(FULL) {
            self.held.extend_from_slice(part);
            if self.held.len() >= FULL {
                self.take(false, batch, desk);
            }
        }
    }

    pub(super) fn finish(&mut self, batch: &mut Batch, desk: &mut Desk<'_>) {
        self.take(true, batch, desk);
    }

    /// Searches what is held; the end of it is kept for the next piece unless it is the last.
    fn take(&mut self, last: bool, batch: &mut Batch, desk: &mut Desk<'_>) {
        let held = std::mem::take(&mut self.held);
        let mut at = 0;
        while self.html
            && let Some(end) = self.turn(held.get(at..).unwrap_or_default())
        {
            self.push(held.get(at..at + end).unwrap_or_default(), usize::MAX, batch, desk);
            self.again = 0;
            self.script = !self.script;
            at += end;
        }
        let rest = held.get(at..).unwrap_or_default();
        if last {
            self.push(rest, usize::MAX, batch, desk);
        } else if rest.len() > 2 * (BEFORE + AFTER) {
            let own = boundary(rest, rest.len() - AFTER);
            let keep = boundary(rest, own - BEFORE);
            let (line, offset) = (self.line, self.offset);
            self.push(rest.get(..rest.len() - partial(rest)).unwrap_or_default(), own, batch, desk);
            self.line = line + newlines(rest.get(..keep).unwrap_or_default());
            self.offset = offset + keep as u64;
            self.again = own - keep;
            self.held = rest.get(keep..).unwrap_or_default().to_vec();
        } else {
            self.held = rest.to_vec();
        }
        desk.run(batch);
    }

    /// Where text becomes program or program text.
    fn turn(&self, bytes: &[u8]) -> Option<usize> {
        let marks: [&[u8]; 2] = if self.script { [b"</script", b"</style"] } else { [b"<script", b"<style"] };
        memchr::memchr_iter(b'<', bytes).find(|at| {
            marks.iter().any(|mark| bytes.get(*at..at + mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark)))
        })
    }

    fn push(&mut self, bytes: &[u8], own: usize, batch: &mut Batch, desk: &mut Desk<'_>) {
        let place = (self.line, self.offset);
        let text = lossy(bytes);
        if matches!(text, std::borrow::Cow::Owned(_)) {
            desk.fault(FindingKind::InvalidText, "a stretch that is no UTF-8", place);
        }
        let role = if self.script { Role::Code } else { Role::Text };
        let node = batch.node(0, Step::Root);
        if self.html && !self.script && memchr::memchr(b'&', bytes).is_some() {
            // An overlap in front of what was decoded may be searched twice; what is found twice is told once.
            let decoded = entities(&text);
            let owned = if own == usize::MAX { usize::MAX } else { decoded.len().saturating_sub(AFTER / 2) };
            batch.push(&decoded, (0, owned), place, role, (node, Step::Root));
        } else {
            batch.push(&text, (self.again.min(text.len()), own), place, role, (node, Step::Root));
        }
        self.line += newlines(bytes);
        self.offset += bytes.len() as u64;
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// The last character boundary at or before `at`.
fn boundary(bytes: &[u8], at: usize) -> usize {
    (0..4).filter_map(|back| at.checked_sub(back)).find(|at| bytes.get(*at).is_none_or(|b| *b & 0xc0 != 0x80)).unwrap_or(at)
}

/// A text with the character references of HTML resolved.
fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let known =
            rest.as_bytes().iter().take(12).position(|b| *b == b';').and_then(|end| Some((end, reference(rest.get(1..end)?)?)));
        match known {
            Some((end, c)) => {
                out.push(c);
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            None => {
                out.push('&');
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']);
        return hex.map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "sol" => '/',
        "hyphen" | "dash" => '-',
        _ => return None,
    })
}
