//! [`ChatReader`]: tells a streamed answer from one in one piece by its first byte (servers do not always do what was asked, and
//! content types lie), and knows when an answer is whole.

use super::assembly::Assembly;
use super::refusal;
use crate::sse::EventReader;
use crate::wire::{AnswerReader, End};
use serde_json::Value;
use traderharness_harness::client_fault::ClientFault;
use traderharness_replay::Response;

/// Data of the event that ends a stream.
const DONE: &str = "[DONE]";

/// Start of an unreadable answer that is shown, bytes.
const SHOWN: usize = 300;

/// The byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();

#[derive(Debug)]
enum Form {
    /// Nothing but white space so far.
    Unknown,
    Stream(EventReader),
    Whole,
}

/// Reads one answer.
#[derive(Debug)]
pub(super) struct ChatReader {
    form: Form,
    /// All bytes of an answer in one piece; the first bytes of a stream until its form is known.
    bytes: Vec<u8>,
    received: u64,
    events: u64,
    done: bool,
    assembly: Assembly,
}

impl ChatReader {
    pub(super) fn new(assembly: Assembly) -> Self {
        Self { form: Form::Unknown, bytes: Vec::new(), received: 0, events: 0, done: false, assembly }
    }

    fn events(&mut self, events: Vec<Vec<u8>>) -> Result<bool, ClientFault> {
        for event in events {
            if self.done {
                break;
            }
            self.event(&event)?;
        }
        Ok(self.done)
    }

    fn event(&mut self, data: &[u8]) -> Result<(), ClientFault> {
        self.events += 1;
        match data.trim_ascii() {
            b"" => return Ok(()),
            data if data == DONE.as_bytes() => {
                self.done = true;
                return Ok(());
            }
            _ => {}
        }
        let taken = self.object(data);
        // What goes wrong after the last word of the answer takes nothing away from it.
        if taken.is_err() && self.assembly.is_stopped() { Ok(()) } else { taken }
    }

    fn object(&mut self, data: &[u8]) -> Result<(), ClientFault> {
        let object: Value = serde_json::from_slice(data)
            .map_err(|fault| malformed(format!("event {} is not JSON ({fault})", self.events), data))?;
        refusal::reported(&object)?;
        if !object.is_object() {
            return Err(malformed(format!("event {} is no JSON object", self.events), data));
        }
        self.assembly.take(&object)
    }

    fn cut(&self, what: String) -> ClientFault {
        ClientFault::Cut { bytes: self.received, what }
    }
}

impl AnswerReader for ChatReader {
    fn push(&mut self, bytes: &[u8]) -> Result<bool, ClientFault> {
        self.received += bytes.len() as u64;
        let first = match self.form {
            Form::Stream(ref mut reader) => {
                let events = reader.push(bytes);
                return self.events(events);
            }
            Form::Whole => {
                self.bytes.extend_from_slice(bytes);
                return Ok(false);
            }
            Form::Unknown => {
                self.bytes.extend_from_slice(bytes);
                start(&self.bytes)
            }
        };
        match first {
            None => {
                // White space says nothing; looked at again with every piece, much of it would take its square in time.
                if self.bytes.len() > MARK.len() {
                    self.bytes.truncate(0);
                }
                Ok(false)
            }
            Some(b'{' | b'[' | b'<') => {
                self.form = Form::Whole;
                Ok(false)
            }
            Some(_) => {
                let mut reader = EventReader::default();
                let events = reader.push(&std::mem::take(&mut self.bytes));
                self.form = Form::Stream(reader);
                self.events(events)
            }
        }
    }

    fn finish(mut self: Box<Self>, end: End) -> Result<Response, ClientFault> {
        let broken = match end {
            End::Closed => None,
            End::Broken(how) => Some(how),
        };
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => match broken {
                Some(how) => Err(self.cut(how)),
                None => Err(ClientFault::Empty { what: "the body has no content".to_owned() }),
            },
            Form::Whole => {
                let text = self.bytes.strip_prefix(MARK).unwrap_or(&self.bytes);
                let object: Value = match serde_json::from_slice(text) {
                    Ok(object) => object,
                    // JSON that is whole is whole, however the connection ended after it.
                    Err(fault) if fault.is_eof() => {
                        return Err(self.cut(broken.unwrap_or_else(|| "the JSON is not whole".to_owned())));
                    }
                    Err(fault) => return Err(malformed(format!("it is not JSON ({fault})"), text)),
                };
                refusal::reported(&object)?;
                if object.get("choices").and_then(Value::as_array).is_none() {
                    return Err(malformed("it has no `choices`".to_owned(), text));
                }
                self.assembly.take(&object)?;
                if !self.assembly.is_answered() {
                    return Err(ClientFault::Empty { what: "`choices` is empty".to_owned() });
                }
                Ok(self.assembly.finish())
            }
            Form::Stream(mut reader) => {
                if !self.done
                    && broken.is_none()
                    && let Some(event) = reader.finish(DONE)
                {
                    self.event(&event)?;
                }
                if self.done || self.assembly.is_stopped() {
                    if !self.assembly.is_answered() {
                        return Err(ClientFault::Empty { what: "the stream ended without a choice".to_owned() });
                    }
                    self.assembly.end_without_reason();
                    return Ok(self.assembly.finish());
                }
                if self.events == 0 && broken.is_none() {
                    return Err(ClientFault::Malformed { what: "it is neither JSON nor a stream of events".to_owned() });
                }
                let how = broken.unwrap_or_else(|| "the stream ended before the answer did".to_owned());
                Err(self.cut(how))
            }
        }
    }
}

/// The first byte that is no white space and no byte order mark.
fn start(bytes: &[u8]) -> Option<u8> {
    if bytes.len() < MARK.len() && MARK.starts_with(bytes) {
        return None;
    }
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn malformed(what: String, bytes: &[u8]) -> ClientFault {
    let shown = bytes.get(..bytes.len().min(SHOWN)).unwrap_or_default();
    ClientFault::Malformed { what: format!("{what}: {}", String::from_utf8_lossy(shown)) }
}
