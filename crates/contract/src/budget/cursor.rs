//! Paging cursors: opaque to the model, bound to the query and the clock they were given for.
//!
//! A cursor holds no secret and grants nothing: it only says where a list goes on, and is refused for another tool, other
//! arguments or another clock. It is spelled in consonants, so that nothing in it looks like a security code or a date.
//!
//! The digests are unkeyed: whoever reads a cursor can test guesses of what went into it. Give only what the agent may see,
//! that is the arguments as the agent sent them and the clock in its visible form, never a real date of a masked run.

use crate::json::{canonical, text};
use crate::{ErrorCode, ToolFailure};
use serde_json::Value;

const LETTERS: &[u8; 20] = b"bcdfghjkmnpqrstvwxyz";
const DIGEST: usize = 8;
const CHECK: usize = 4;
const PREFIX: char = 'c';

/// What a cursor is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorScope {
    tool: String,
    arguments: String,
    clock: String,
}

impl CursorScope {
    /// The scope of a query: tool name, arguments as the agent sent them (without regard to key order and to their own
    /// `cursor`), clock in its visible form.
    pub fn new(tool: &str, arguments: &Value, clock: &str) -> Self {
        let mut query = canonical(arguments);
        if let Some(map) = query.as_object_mut() {
            map.shift_remove("cursor");
        }
        Self {
            tool: letters_of("tool", tool),
            arguments: letters_of("arguments", &text(&query)),
            clock: letters_of("clock", clock),
        }
    }
}

/// A position in a list of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Records that come before the page.
    pub offset: u64,
}

/// Why a cursor is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorFault {
    /// Not a cursor of this contract, or damaged.
    #[error("the cursor is not one that this tool gave, or it is damaged")]
    Malformed,
    /// Given by another tool.
    #[error("the cursor belongs to another tool")]
    OtherTool,
    /// Given for other arguments.
    #[error("the cursor belongs to a query with other arguments")]
    OtherQuery,
    /// Given at another clock.
    #[error("the cursor was given at an earlier moment, and the data behind it may have changed since")]
    OtherClock,
}

impl CursorFault {
    /// The failure the model reads.
    pub fn failure(self, tool: &str) -> ToolFailure {
        let instruction = match self {
            Self::OtherQuery => {
                "Repeat the query with exactly the arguments of the first page plus `cursor`, or start again without `cursor`."
            }
            _ => "Start again: send the query without `cursor` and follow the `next_cursor` of that answer.",
        };
        let mut message = self.to_string();
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        ToolFailure::new(ErrorCode::InvalidCursor, format!("{message} ({tool})."), instruction)
    }
}

impl Cursor {
    /// The text of the cursor, about thirty letters.
    pub fn encode(self, scope: &CursorScope) -> String {
        let body = format!("{}{}{}{}", scope.tool, scope.arguments, scope.clock, number_letters(self.offset));
        let check = &letters_of("cursor", &body)[..CHECK];
        format!("{PREFIX}{body}{check}")
    }

    /// Reads a cursor for a query.
    ///
    /// # Errors
    /// [`CursorFault`]; the first of damaged, other tool, other query, other clock.
    pub fn decode(cursor: &str, scope: &CursorScope) -> Result<Self, CursorFault> {
        let rest = cursor.strip_prefix(PREFIX).ok_or(CursorFault::Malformed)?;
        if !rest.bytes().all(|b| LETTERS.contains(&b)) || rest.len() <= 3 * DIGEST + CHECK {
            return Err(CursorFault::Malformed);
        }
        let (body, check) = rest.split_at(rest.len() - CHECK);
        if letters_of("cursor", body)[..CHECK] != *check {
            return Err(CursorFault::Malformed);
        }
        let (tool, tail) = body.split_at(DIGEST);
        let (arguments, tail) = tail.split_at(DIGEST);
        let (clock, offset) = tail.split_at(DIGEST);
        if tool != scope.tool {
            return Err(CursorFault::OtherTool);
        }
        if arguments != scope.arguments {
            return Err(CursorFault::OtherQuery);
        }
        if clock != scope.clock {
            return Err(CursorFault::OtherClock);
        }
        Ok(Self { offset: letters_number(offset).ok_or(CursorFault::Malformed)? })
    }
}

/// 64-bit FNV-1a over the label and the text, as eight letters. Collisions only matter by accident, so no cryptographic digest
/// is needed here.
fn letters_of(label: &str, text: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in label.bytes().chain([0]).chain(text.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // The low bits of FNV are weak; fold the high half in before taking letters off the low end.
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut rest = hash >> 16;
    (0..DIGEST)
        .map(|_| {
            let letter = LETTERS[(rest % 20) as usize] as char;
            rest /= 20;
            letter
        })
        .collect()
}

fn number_letters(mut number: u64) -> String {
    let mut out = Vec::new();
    loop {
        out.push(LETTERS[(number % 20) as usize]);
        number /= 20;
        if number == 0 {
            break;
        }
    }
    out.iter().rev().map(|b| *b as char).collect()
}

fn letters_number(letters: &str) -> Option<u64> {
    let mut number = 0_u64;
    for byte in letters.bytes() {
        let digit = LETTERS.iter().position(|l| *l == byte)? as u64;
        number = number.checked_mul(20)?.checked_add(digit)?;
    }
    // Only the spelling `encode` uses is a cursor.
    (!letters.is_empty() && number_letters(number) == letters).then_some(number)
}
