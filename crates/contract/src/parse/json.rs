//! The `json` style: objects `{tool, params}` in fences, or one bare object in prose (spec/seeds.md A6.6, A6.9).
//!
//! A value is a call as a whole or not at all: nothing is picked out of a broken or unfinished one (complaint JR-4).

use super::literal::{Kind, Node, Reader, Stop, balanced};
use super::{DiagnosticKind, Parsed, ParsedCall, arguments, arguments_in, untouched};
use serde_json::Value;

type Span = (usize, usize);

/// Info strings of fences that may hold calls.
const TAGS: [&str; 4] = ["", "json", "json5", "jsonc"];

/// Fields that may stand beside a tool name without being arguments.
const ASIDE: [&str; 7] = ["id", "type", "thought", "thoughts", "reason", "reasoning", "comment"];

/// Names of the field that holds the arguments.
const PARAMS: [&str; 4] = ["params", "arguments", "parameters", "args"];

/// One value that was found.
enum Piece {
    /// A whole value, and the places where it was repaired.
    Whole(Node, Vec<usize>),
    /// A closed value that cannot be read, and its name as far as it says one.
    Broken(Option<String>, Span),
}

impl Piece {
    fn span(&self) -> Span {
        match self {
            Self::Whole(node, _) => (node.start, node.end),
            Self::Broken(_, span) => *span,
        }
    }
}

/// Reads the calls; gives the spans they and their fences take.
pub(super) fn read(body: &str, parsed: &mut Parsed) -> Vec<Span> {
    let fences = Fences::of(body);
    if fences.of_calls {
        for at in &fences.cut {
            parsed.note(DiagnosticKind::Incomplete, &body[*at..]);
        }
        let mut spans = Vec::new();
        for (pieces, span) in fences.blocks {
            let before = parsed.calls.len();
            for piece in pieces {
                calls(body, &piece, parsed);
            }
            if parsed.calls.len() > before {
                spans.push(span);
            }
        }
        return spans;
    }
    bare(body, &fences.others, parsed)
}

/// The fences of a text.
#[derive(Default)]
struct Fences {
    /// Closed fences that hold values, with the span of the whole fence.
    blocks: Vec<(Vec<Piece>, Span)>,
    /// Fences of something else.
    others: Vec<Span>,
    /// Where a fence of values starts that is not closed or holds more than values.
    cut: Vec<usize>,
    /// There is a fence of values, so what stands outside of fences is prose.
    of_calls: bool,
}

impl Fences {
    fn of(body: &str) -> Self {
        let mut fences = Self::default();
        let mut at = 0;
        while let Some(open) = find_run(body, at, 3) {
            let ticks = run(body, open);
            let tag_at = open + ticks;
            let tag = &body[tag_at..tag_at + tag_length(&body[tag_at..])];
            let start = skip_space(body, tag_at + tag.len());
            let values = TAGS.iter().any(|t| tag.eq_ignore_ascii_case(t)) && body[start..].starts_with(['{', '[']);
            if !values {
                at = fences.other(body, open, tag_at + tag.len(), ticks);
                continue;
            }
            fences.of_calls = true;
            match block(body, start, ticks) {
                Ok((pieces, end)) => {
                    fences.blocks.push((pieces, (open, end)));
                    at = end;
                }
                Err(resume) => {
                    fences.cut.push(open);
                    match resume {
                        Some(end) => at = end,
                        None => break,
                    }
                }
            }
        }
        fences
    }

    /// Steps over a fence of something else. A run of ticks with a tag after it opens another fence instead of closing this one.
    fn other(&mut self, body: &str, open: usize, from: usize, ticks: usize) -> usize {
        match find_run(body, from, ticks) {
            None => {
                self.others.push((open, body.len()));
                body.len()
            }
            Some(next) => {
                let after = next + run(body, next);
                let tag = &body[after..after + tag_length(&body[after..])];
                if tag.is_empty() {
                    self.others.push((open, after));
                    after
                } else {
                    self.others.push((open, from));
                    next
                }
            }
        }
    }
}

/// Values up to the closing ticks. Otherwise where to go on, if anywhere: an unfinished value swallows all that follows.
fn block(body: &str, start: usize, ticks: usize) -> Result<(Vec<Piece>, usize), Option<usize>> {
    let mut pieces = Vec::new();
    let mut at = start;
    loop {
        at = skip_space(body, at);
        let length = run(body, at);
        if length >= ticks {
            return Ok((pieces, at + length));
        }
        if at >= body.len() {
            return Err(None);
        }
        if !body[at..].starts_with(['{', '[']) {
            return Err(find_run(body, at, ticks).map(|close| close + run(body, close)));
        }
        let piece = piece(body, at).ok_or(None)?;
        at = piece.span().1;
        pieces.push(piece);
    }
}

/// The value at a bracket; `None` when it is never closed.
fn piece(body: &str, at: usize) -> Option<Piece> {
    let mut reader = Reader::json(body, at);
    match reader.value() {
        Ok(node) => Some(Piece::Whole(node, reader.repairs)),
        Err(Stop::Incomplete) => None,
        Err(Stop::Malformed) => {
            let end = balanced(body, at)?;
            let named = |key: &str| reader.head.iter().find(|(k, _)| k == key).map(|(_, name)| name.clone());
            let name = named("tool").or_else(|| named("name")).filter(|name| !name.trim().is_empty());
            Some(Piece::Broken(name, (at, end)))
        }
    }
}

/// Values outside of fences: one among prose, or an answer of nothing but values.
fn bare(body: &str, fences: &[Span], parsed: &mut Parsed) -> Vec<Span> {
    let mut found = Parsed::default();
    let mut spans: Vec<Span> = Vec::new();
    let mut at = 0;
    while let Some(next) = body[at..].find(['{', '[']).map(|n| at + n) {
        // Fences come in order and do not overlap.
        if let Some((_, end)) = fences.get(fences.partition_point(|(_, end)| *end <= next)).filter(|(start, _)| *start <= next) {
            at = *end;
            continue;
        }
        // A bracket in prose holds no object.
        if body[next..].starts_with('[') && !body[skip_space(body, next + 1)..].starts_with('{') {
            at = next + 1;
            continue;
        }
        let Some(piece) = piece(body, next) else {
            found.note(DiagnosticKind::Incomplete, &body[next..]);
            break;
        };
        let before = found.calls.len();
        calls(body, &piece, &mut found);
        at = piece.span().1;
        if found.calls.len() > before {
            spans.push(piece.span());
        }
    }
    if spans.len() > 1 {
        let between = super::without(body, &spans);
        if !between.is_empty() {
            let first = spans.first().map_or(0, |span| span.0);
            parsed.note(DiagnosticKind::SeveralObjects, &body[first..]);
            return Vec::new();
        }
    }
    // Objects in prose that are no calls are prose.
    let prose = !found.calls.is_empty() || !body.trim_start().starts_with(['{', '[']);
    found.diagnostics.retain(|d| !(prose && d.kind == DiagnosticKind::NotACall));
    parsed.calls.append(&mut found.calls);
    parsed.diagnostics.append(&mut found.diagnostics);
    spans
}

/// The calls of one value: a call, a list of calls, or `{"actions": [..]}`.
fn calls(body: &str, piece: &Piece, parsed: &mut Parsed) {
    let (node, repairs) = match piece {
        Piece::Whole(node, repairs) => (node, repairs),
        Piece::Broken(None, (start, _)) => return parsed.note(DiagnosticKind::NotACall, &body[*start..]),
        Piece::Broken(Some(name), (start, end)) => {
            let raw = &body[*start..*end];
            return parsed.calls.push(ParsedCall {
                name: name.clone(),
                id: None,
                arguments: untouched(raw.to_owned()),
                repaired: false,
                incomplete: false,
                raw: raw.into(),
            });
        }
    };
    let items: Vec<&Node> = match (&node.kind, node.get("actions").map(|a| &a.kind)) {
        (Kind::Array(items), _) | (_, Some(Kind::Array(items))) => items.iter().collect(),
        _ => vec![node],
    };
    // Repairs are noted in the order of the text. One outside of every call concerns them all.
    let until = |place: usize| repairs.partition_point(|at| *at < place);
    let inside: usize = items.iter().map(|item| until(item.end) - until(item.start)).sum();
    let shared = inside < repairs.len();
    for item in items {
        match call(body, item) {
            Some(mut call) => {
                call.repaired |= (shared || until(item.end) > until(item.start)) && call.is_readable();
                parsed.calls.push(call);
            }
            None => parsed.note(DiagnosticKind::NotACall, &body[item.start..]),
        }
    }
}

fn call(body: &str, item: &Node) -> Option<ParsedCall> {
    let Kind::Object(entries) = &item.kind else { return None };
    let tool = item.get("tool").and_then(Node::as_str);
    let name = tool.or_else(|| item.get("name").and_then(Node::as_str)).filter(|name| !name.trim().is_empty())?;
    let raw = &body[item.start..item.end];
    let given: Vec<&Node> = entries.iter().filter(|(key, _)| PARAMS.contains(&key.as_str())).map(|(_, node)| node).collect();
    let (arguments, repaired) = match given.as_slice() {
        [] => {
            // `name` alone is a record of something, not a call.
            tool?;
            let only_asides = entries.iter().all(|(key, _)| key == "tool" || ASIDE.contains(&key.as_str()));
            // Arguments beside the name would be lost.
            if only_asides { ("{}".to_owned(), false) } else { (untouched(raw.to_owned()), false) }
        }
        [params] => match &params.kind {
            Kind::Plain(Value::Null) => ("{}".to_owned(), false),
            Kind::Plain(Value::String(text)) => arguments_in(text),
            _ => arguments(&body[params.start..params.end], Some(params)),
        },
        _ => (untouched(raw.to_owned()), false),
    };
    let id = item.get("id").and_then(Node::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
    Some(ParsedCall { name: name.to_owned(), id, arguments, repaired, incomplete: false, raw: raw.into() })
}

/// The next run of at least `ticks` backticks.
fn find_run(body: &str, from: usize, ticks: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = body.get(at..)?.find('`') {
        let start = at + found;
        let length = run(body, start);
        if length >= ticks {
            return Some(start);
        }
        at = start + length;
    }
    None
}

fn run(body: &str, at: usize) -> usize {
    body.as_bytes().get(at..).unwrap_or_default().iter().take_while(|byte| **byte == b'`').count()
}

fn tag_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'))).unwrap_or(text.len())
}

fn skip_space(body: &str, at: usize) -> usize {
    let rest = &body[at..];
    at + (rest.len() - rest.trim_start().len())
}

#[cfg(test)]
mod tests {
    use super::super::think::MARK;
    use super::*;

    #[test]
    fn the_mark_of_a_removed_block_is_no_space() {
        assert_eq!(skip_space("x  \u{1}", 1), 3);
        assert!(piece(&format!("{{\"a\": \"b{MARK}c\"}}"), 0).is_some_and(|piece| matches!(piece, Piece::Broken(..))));
    }
}
