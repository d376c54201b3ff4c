//! The words around a finding. Must never show a secret: neither the one that was found nor another one, or half of one, beside it.

use super::batch::Token;
use super::finding::FindingKind;
use super::search::Hit;
use crate::redact::{REDACTED, REDACTED_ROOT};

/// Characters shown on each side.
const SIDE: usize = 24;
/// Most characters shown of what was found.
const MOST: usize = 48;
/// A word without blanks that is this long may be the half of a secret.
const OPAQUE: usize = 16;

/// What stands around a hit.
pub(super) fn excerpt(text: &str, token: &Token, hit: Hit, hits: &[Hit]) -> String {
    let (first, last) = (token.start as usize, token.end as usize);
    let hit_end = hit.end.min(last).max(hit.start);
    let before = text.get(first..hit.start).unwrap_or_default();
    let from = before.char_indices().rev().take(SIDE).last().map_or(hit.start, |(at, _)| first + at);
    let after = text.get(hit_end..last).unwrap_or_default();
    let to = after.char_indices().nth(SIDE).map_or(last, |(at, _)| hit_end + at);
    let shown = match hit.form.0 {
        FindingKind::Secret => REDACTED.to_owned(),
        FindingKind::HostPath => REDACTED_ROOT.to_owned(),
        _ => veiled(text, hit.start, hit_end, hits).chars().take(MOST).collect(),
    };
    let left = opaque(&veiled(text, from, hit.start, hits));
    let right = opaque(&veiled(text, hit_end, to, hits));
    let whole = format!("{left}{shown}{right}");
    whole.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A stretch without the secrets in it.
fn veiled(text: &str, from: usize, to: usize, hits: &[Hit]) -> String {
    let mut out = String::new();
    let mut at = from;
    let hidden = |hit: &&Hit| matches!(hit.form.0, FindingKind::Secret | FindingKind::HostPath) && hit.end > from;
    let until = hits.partition_point(|hit| hit.start < to);
    for hit in hits.get(..until).unwrap_or_default().iter().filter(hidden) {
        out.push_str(text.get(at..hit.start.max(at)).unwrap_or_default());
        if hit.end > at {
            out.push_str(REDACTED);
            at = hit.end.min(to);
        }
    }
    out.push_str(text.get(at..to).unwrap_or_default());
    out
}

/// Without long words, which may be the rest of something that was cut.
fn opaque(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '='))) {
        let word = part.trim_end_matches(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=')));
        if word.len() >= OPAQUE {
            out.push_str("...");
            out.push_str(part.get(word.len()..).unwrap_or_default());
        } else {
            out.push_str(part);
        }
    }
    out
}
