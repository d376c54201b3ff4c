//! What a summary is made of: every message of the head in exactly one chunk, chunks cut between messages, a message that is larger than
//! a chunk in labelled parts (complaint CX-1).

use super::estimate::{estimate_text, prefix_of};
use std::collections::VecDeque;
use traderharness_replay::Message;

/// Messages still to be summarised, as text.
#[derive(Debug)]
pub(super) struct Pieces {
    left: VecDeque<Piece>,
}

#[derive(Debug, Clone)]
struct Piece {
    /// Place of the message in the whole conversation, from 0.
    place: usize,
    text: String,
    /// Parts of it that were taken already.
    parts: usize,
}

/// One chunk.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) text: String,
    /// What is left when this chunk is done.
    rest: VecDeque<Piece>,
}

impl Pieces {
    /// The messages of a head whose first one stands at `from`.
    pub(super) fn of(head: &[Message], from: usize) -> Self {
        let piece = |(at, message)| Piece { place: from + at, text: render(message), parts: 0 };
        Self { left: head.iter().enumerate().map(piece).collect() }
    }

    /// Place of the first message that is not wholly done.
    pub(super) fn next_place(&self) -> Option<usize> {
        self.left.front().map(|piece| piece.place)
    }

    /// The next chunk, at most about `tokens` tokens; nothing is taken before [`Pieces::done`].
    pub(super) fn chunk(&self, tokens: u64) -> Option<Chunk> {
        let mut rest = self.left.clone();
        let mut text = String::new();
        let mut used = 0;
        while let Some(piece) = rest.front_mut() {
            let size = estimate_text(&piece.text) + LABEL_TOKENS;
            if used + size <= tokens {
                text.push_str(&label(piece, true));
                text.push_str(&piece.text);
                text.push_str("\n\n");
                used += size;
                rest.pop_front();
                continue;
            }
            // Only a message that no chunk holds is cut, and it begins a chunk of its own.
            if used == 0 {
                let part = prefix_of(&piece.text, tokens.saturating_sub(LABEL_TOKENS).max(1)).to_owned();
                let whole = part.len() == piece.text.len();
                text.push_str(&label(piece, whole));
                text.push_str(&part);
                piece.text.drain(..part.len());
                piece.parts += 1;
                if whole {
                    rest.pop_front();
                }
            }
            break;
        }
        (!text.is_empty()).then(|| Chunk { text: text.trim_end().to_owned(), rest })
    }

    /// Takes a chunk off.
    pub(super) fn done(&mut self, chunk: Chunk) {
        self.left = chunk.rest;
    }
}

/// Room for the label of a message.
const LABEL_TOKENS: u64 = 10;

fn label(piece: &Piece, last: bool) -> String {
    match (piece.parts, last) {
        (0, true) => format!("[message {}]\n", piece.place),
        (parts, true) => format!("[message {}, part {}, its last]\n", piece.place, parts + 1),
        (parts, false) => format!("[message {}, part {}, more follows]\n", piece.place, parts + 1),
    }
}

fn render(message: &Message) -> String {
    let mut out = match message.tool_call_id() {
        Some(id) => format!("result of call {id}:\n"),
        None => format!("{}:\n", message.role()),
    };
    match message.0.get("content") {
        None | Some(serde_json::Value::Null) => {}
        Some(serde_json::Value::String(text)) => out.push_str(text),
        Some(other) => out.push_str(&other.to_string()),
    }
    for call in message.tool_calls() {
        out.push_str(&format!("\ncalls {} ({}) with {}", call.name, call.id, call.arguments));
    }
    out
}
