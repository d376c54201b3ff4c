//! Reads JSON and JSONL as a stream of strings with their places. Must be bounded whatever comes: no document, line or string is held
//! whole. What is not JSON is searched as text, and reading goes on with the next line.

use super::batch::{AFTER, BEFORE, Batch, FULL, Role, Step, lossy, partial};
use super::desk::Desk;
use super::escapes::{Escapes, Taken};
use super::finding::FindingKind;

/// Deepest nesting of containers.
const DEEPEST: usize = 256;
/// Texts that are JSON are read as JSON so many levels deep.
const NESTED: usize = 4;
/// Longest number or word.
const LONGEST_SCALAR: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value must come.
    Value,
    /// A value, or the end of the list that has just begun.
    FirstItem,
    Key,
    /// A key, or the end of the object that has just begun.
    FirstKey,
    Colon,
    /// A comma or the end of the container.
    After,
    Text {
        key: bool,
    },
    Scalar,
    /// The document is whole.
    Done,
    /// Not JSON: searched as text until the end of the line, or of the document.
    Raw,
}

#[derive(Debug)]
struct Frame {
    object: bool,
    node: u32,
    index: u64,
    key: Step,
}

/// The reader.
#[derive(Debug)]
pub(super) struct Reader {
    /// One document a line.
    lines: bool,
    /// Levels of texts in texts that are still read as JSON.
    nested: usize,
    state: State,
    frames: Vec<Frame>,
    root: u32,
    /// Step from there to the document.
    top: Step,
    /// The string, scalar or raw text that is being read, decoded.
    held: Vec<u8>,
    /// Bytes at the start of `held` that the piece before it has searched already.
    again: usize,
    /// Something of this text went out as a piece already.
    pieces: bool,
    /// Where it began.
    place: (u64, u64),
    escapes: Escapes,
    line: u64,
    offset: u64,
    /// The line whose document is whole; 0 before the first.
    whole: u64,
    /// The document as a whole failed; nested ones are taken back.
    pub(super) failed: bool,
}

impl Reader {
    pub(super) fn new(lines: bool) -> Self {
        Self {
            lines,
            nested: NESTED,
            state: if lines { State::Done } else { State::Value },
            frames: vec![],
            root: 0,
            top: Step::Root,
            held: vec![],
            again: 0,
            pieces: false,
            place: (1, 0),
            escapes: Escapes::default(),
            line: 1,
            offset: 0,
            whole: 0,
            failed: false,
        }
    }

    /// Takes the next bytes of the artifact.
    pub(super) fn feed(&mut self, bytes: &[u8], batch: &mut Batch, desk: &mut Desk<'_>) {
        let mut at = 0;
        while let Some(byte) = bytes.get(at).copied() {
            let rest = bytes.get(at..).unwrap_or_default();
            let step = match self.state {
                State::Text { key } => self.text(rest, key, batch, desk),
                State::Raw => self.raw(rest, batch, desk),
                State::Scalar => self.scalar(rest, batch, desk),
                _ => {
                    self.punctuation(byte, batch, desk);
                    1
                }
            };
            at += step;
            self.offset += step as u64;
            if self.nested == NESTED && batch.is_full() {
                self.flush(batch, desk);
            }
        }
    }

    /// The artifact ends.
    pub(super) fn finish(&mut self, batch: &mut Batch, desk: &mut Desk<'_>) {
        if self.state == State::Scalar {
            self.end_scalar(batch, desk);
        }
        let whole = matches!(self.state, State::Done | State::Raw) && self.frames.is_empty();
        if self.state == State::Raw {
            self.end_text(Role::Text, batch, desk);
        } else if !whole {
            if matches!(self.state, State::Text { .. }) {
                self.end_text(Role::Text, batch, desk);
            }
            self.fault(FindingKind::Truncated, "the artifact ends inside of its JSON", desk);
        }
        if self.nested == NESTED {
            desk.run(batch);
        }
    }

    /// Searches the batch and goes on with an empty one that knows the containers this place is in.
    fn flush(&mut self, batch: &mut Batch, desk: &mut Desk<'_>) {
        let path: Vec<(Option<String>, Step, Option<String>, Step)> = self
            .frames
            .iter()
            .map(|frame| {
                let step = batch.step_to(frame.node);
                let named = |step: Step| matches!(step, Step::Key(..)).then(|| batch.key_of(step).to_owned());
                (named(step), step, named(frame.key), frame.key)
            })
            .collect();
        desk.run(batch);
        self.root = batch.node(0, Step::Root);
        let mut parent = self.root;
        for (frame, (name, step, key, key_step)) in self.frames.iter_mut().zip(path) {
            let step = name.map_or(step, |name| batch.key(&name));
            parent = batch.node(parent, step);
            frame.node = parent;
            frame.key = key.map_or(key_step, |key| batch.key(&key));
        }
    }

    fn fault(&mut self, kind: FindingKind, what: &str, desk: &mut Desk<'_>) {
        self.failed = true;
        if self.nested == NESTED {
            desk.fault(kind, what, (self.line, self.offset));
        }
    }

    /// From here on it is no JSON.
    fn give_up(&mut self, what: &str, batch: &mut Batch, desk: &mut Desk<'_>) {
        if matches!(self.state, State::Text { .. }) {
            self.end_text(Role::Text, batch, desk);
        }
        self.fault(FindingKind::InvalidJson, what, desk);
        self.frames.clear();
        // What was read of a number is searched as text too.
        let kept = if self.state == State::Scalar { std::mem::take(&mut self.held) } else { vec![] };
        self.start(State::Raw);
        self.held = kept;
    }

    fn start(&mut self, state: State) {
        self.state = state;
        self.held.clear();
        self.escapes = Escapes::default();
        (self.again, self.pieces) = (0, false);
        self.place = (self.line, self.offset);
    }

    fn punctuation(&mut self, byte: u8, batch: &mut Batch, desk: &mut Desk<'_>) {
        match (byte, self.state) {
            (b'\n', state) => {
                if self.lines && state != State::Done {
                    self.fault(FindingKind::InvalidJson, "the line ends inside of its JSON", desk);
                    self.frames.clear();
                    self.state = State::Done;
                }
                self.line += 1;
            }
            (b' ' | b'\t' | b'\r', _) => {}
            (b'\xef' | b'\xbb' | b'\xbf', State::Value | State::Done) if self.offset < 3 => {}
            (_, State::Done) if self.lines && self.whole != self.line => {
                self.state = State::Value;
                self.value(byte, batch, desk);
            }
            (b']', State::FirstItem | State::After) if self.frames.last().is_some_and(|f| !f.object) => self.close(),
            (b'}', State::FirstKey | State::After) if self.frames.last().is_some_and(|f| f.object) => self.close(),
            (_, State::Value | State::FirstItem) => self.value(byte, batch, desk),
            (b'"', State::Key | State::FirstKey) => {
                self.start(State::Text { key: true });
                self.place.1 += 1;
            }
            (b':', State::Colon) => self.state = State::Value,
            (b',', State::After) => {
                let frame = self.frames.last_mut();
                self.state = frame.map_or(State::Done, |frame| {
                    frame.index += 1;
                    if frame.object { State::Key } else { State::Value }
                });
            }
            _ => {
                self.give_up("not JSON", batch, desk);
                self.held.push(byte);
            }
        }
    }

    fn value(&mut self, byte: u8, batch: &mut Batch, desk: &mut Desk<'_>) {
        match byte {
            b'{' | b'[' => {
                if self.frames.len() >= DEEPEST {
                    return self.give_up("nested too deep", batch, desk);
                }
                let (parent, step) = self.here(batch);
                let node = batch.node(parent, step);
                self.frames.push(Frame { object: byte == b'{', node, index: 0, key: Step::Root });
                self.state = if byte == b'{' { State::FirstKey } else { State::FirstItem };
            }
            b'"' => {
                self.start(State::Text { key: false });
                self.place.1 += 1;
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.start(State::Scalar);
                self.held.push(byte);
            }
            _ => {
                self.give_up("not JSON", batch, desk);
                self.held.push(byte);
            }
        }
    }

    /// Container and step of the value that comes.
    fn here(&mut self, batch: &mut Batch) -> (u32, Step) {
        match self.frames.last() {
            Some(frame) => (frame.node, if frame.object { frame.key } else { Step::Index(frame.index) }),
            None => {
                if self.nested == NESTED {
                    self.root = batch.node(0, Step::Root);
                }
                (self.root, self.top)
            }
        }
    }

    fn close(&mut self) {
        self.frames.pop();
        self.after();
    }

    fn after(&mut self) {
        self.state = if self.frames.is_empty() { State::Done } else { State::After };
        if self.frames.is_empty() {
            self.whole = self.line;
        }
    }

    fn scalar(&mut self, rest: &[u8], batch: &mut Batch, desk: &mut Desk<'_>) -> usize {
        let more = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+')).count();
        self.held.extend_from_slice(rest.get(..more.min(LONGEST_SCALAR)).unwrap_or_default());
        if self.held.len() > LONGEST_SCALAR {
            self.give_up("a number without end", batch, desk);
        } else if more < rest.len() {
            self.end_scalar(batch, desk);
        }
        more
    }

    fn end_scalar(&mut self, batch: &mut Batch, desk: &mut Desk<'_>) {
        let held = std::mem::take(&mut self.held);
        let text = std::str::from_utf8(&held).unwrap_or_default();
        let number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        // Whether the number is a number in every detail is not the audit's business; a word is one of three.
        if !number && !matches!(text, "true" | "false" | "null") {
            self.held = held;
            return self.give_up("not JSON", batch, desk);
        }
        let at = self.here(batch);
        if number && let Some(form) = desk.rules.number(batch.name_of(at), text) {
            let start = batch.text.len() as u32;
            batch.push(text, (0, text.len()), self.place, Role::Number, at);
            batch.numbers.push((start, start + text.len() as u32, form));
        }
        self.held = held;
        self.held.clear();
        self.after();
    }

    /// Bytes of a string: up to its end, an escape, or what there is.
    fn text(&mut self, rest: &[u8], key: bool, batch: &mut Batch, desk: &mut Desk<'_>) -> usize {
        match self.escapes.take(rest, &mut self.held) {
            Taken::Bytes(bytes) => {
                if self.held.len() >= FULL {
                    self.piece(Role::Value, batch, desk);
                }
                bytes
            }
            Taken::End => {
                self.end_string(key, batch, desk);
                1
            }
            Taken::Cut => {
                self.give_up("a string that does not end on its line", batch, desk);
                0
            }
            Taken::Unknown => {
                self.give_up("an escape that JSON does not know", batch, desk);
                0
            }
        }
    }

    fn end_string(&mut self, key: bool, batch: &mut Batch, desk: &mut Desk<'_>) {
        if key {
            let held = std::mem::take(&mut self.held);
            let name = lossy(&held);
            let step = batch.key(name.get(..name.floor_char_boundary(200)).unwrap_or_default());
            if let Some(frame) = self.frames.last_mut() {
                frame.key = step;
            }
            drop(name);
            self.held = held;
            self.end_text(Role::Key, batch, desk);
            self.state = State::Colon;
            return;
        }
        if !self.pieces && self.nested > 0 && self.inside(batch, desk) {
            self.held.clear();
        } else {
            self.end_text(Role::Value, batch, desk);
        }
        self.after();
    }

    /// Reads a string that is JSON itself as JSON; false when it is not.
    fn inside(&mut self, batch: &mut Batch, desk: &mut Desk<'_>) -> bool {
        let inner = self.held.trim_ascii();
        let looks = matches!((inner.first(), inner.last()), (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')));
        if !looks || std::str::from_utf8(inner).is_err() {
            return false;
        }
        let (parent, step) = self.here(batch);
        let mark = batch.mark();
        let outer = batch.node(parent, step);
        let mut reader = Self::new(false);
        reader.nested = self.nested - 1;
        (reader.line, reader.offset) = self.place;
        (reader.root, reader.top) = (outer, Step::Inside);
        let held = std::mem::take(&mut self.held);
        reader.feed(held.trim_ascii(), batch, desk);
        reader.finish(batch, desk);
        self.held = held;
        if reader.failed {
            batch.back_to(mark);
        } else {
            // Lines of the text are no lines of the artifact, and its bytes are not where the artifact's are.
            for token in batch.tokens.iter_mut().skip(mark.tokens()) {
                (token.line, token.raw) = self.place;
            }
        }
        !reader.failed
    }

    fn raw(&mut self, rest: &[u8], batch: &mut Batch, desk: &mut Desk<'_>) -> usize {
        let stop = memchr::memchr(b'\n', rest);
        let end = stop.unwrap_or(rest.len()).min(FULL);
        self.held.extend_from_slice(rest.get(..end).unwrap_or_default());
        if self.held.len() >= FULL {
            self.piece(Role::Text, batch, desk);
        }
        if stop != Some(end) {
            return end;
        }
        if self.lines {
            self.end_text(Role::Text, batch, desk);
            self.state = State::Done;
        } else {
            self.held.push(b'\n');
        }
        self.line += 1;
        end + 1
    }

    /// Lets a part of a long text go, and keeps what the next one needs.
    fn piece(&mut self, role: Role, batch: &mut Batch, desk: &mut Desk<'_>) {
        let at = self.here(batch);
        let (text, rest) = split(&self.held);
        let keep = text.floor_char_boundary(text.len().saturating_sub(BEFORE + AFTER));
        let own = text.floor_char_boundary(text.len().saturating_sub(AFTER));
        batch.push(&text, (self.again, own), self.place, role, at);
        let mut next = text.as_bytes().get(keep..).unwrap_or_default().to_vec();
        next.extend_from_slice(rest);
        self.again = own - keep;
        self.held = next;
        self.pieces = true;
        if self.nested == NESTED {
            self.flush(batch, desk);
        }
    }

    fn end_text(&mut self, role: Role, batch: &mut Batch, desk: &mut Desk<'_>) {
        let at = match role {
            Role::Key => self.frames.last().map_or((self.root, Step::Root), |frame| (frame.node, frame.key)),
            _ => self.here(batch),
        };
        let held = std::mem::take(&mut self.held);
        let text = match std::str::from_utf8(&held) {
            Ok(text) => std::borrow::Cow::Borrowed(text),
            Err(_) => {
                if self.nested == NESTED {
                    desk.fault(FindingKind::InvalidText, "a string that is no UTF-8", self.place);
                }
                String::from_utf8_lossy(&held)
            }
        };
        let role = match role {
            Role::Value if super::rules::is_program(batch.key_of(at.1), &text) => Role::Code,
            role => role,
        };
        let value = role == Role::Value && !self.pieces;
        if value && let Some(form) = desk.rules.value(batch.name_of(at), &text) {
            let start = batch.text.len() as u32;
            batch.numbers.push((start, start + text.len() as u32, form));
        }
        batch.push(&text, (self.again, usize::MAX), self.place, role, at);
        self.held = held;
        self.held.clear();
        (self.again, self.pieces) = (0, false);
    }
}

/// A text and the bytes of a character that is not there whole yet.
fn split(held: &[u8]) -> (std::borrow::Cow<'_, str>, &[u8]) {
    let at = held.len() - partial(held);
    (lossy(held.get(..at).unwrap_or_default()), held.get(at..).unwrap_or_default())
}
