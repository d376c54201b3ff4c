//! A recording of several scopes as one cassette per scope, and together again. Together they are the recording they were made of, in the
//! order in which it was made.

use super::error::BundleError;
use crate::cassette::{Call, Cassette, DEFAULT_SCOPE, Meta};
use crate::error::RecordingError;
use crate::rewrite::{Rewriter, first_other};
use std::path::Path;

/// One scope of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The scope, as its calls name it.
    pub scope: String,
    /// A whole cassette with the calls of this scope alone.
    pub bytes: Vec<u8>,
    /// Calls in it.
    pub calls: usize,
}

/// A recording in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The parts, in the order of their first calls.
    pub parts: Vec<Part>,
    /// Who asked in turn: number of the part, and how many calls in a row.
    pub order: Vec<(usize, usize)>,
    /// The whole recording again, as it is written from the parts.
    pub joined: Vec<u8>,
}

/// Splits a recording by scope, and checks that the parts together are the recording.
///
/// # Errors
/// [`RecordingError::Changed`] and others of [`Cassette::verify`]: a damaged recording is not handed on.
pub fn split(cassette: &Cassette) -> Result<Parts, RecordingError> {
    cassette.verify()?;
    let meta = cassette.meta().cloned().unwrap_or_default();
    let mut parts = Vec::new();
    // A run that asked nothing has a recording too.
    let scopes = if cassette.calls().is_empty() { vec![DEFAULT_SCOPE] } else { cassette.scopes() };
    for scope in scopes {
        let mut rewriter = Rewriter::new(&meta)?;
        let calls: Vec<&Call> = cassette.calls().iter().filter(|call| call.scope == scope).collect();
        for call in &calls {
            rewriter.call(cassette, call, scope)?;
        }
        parts.push(Part { scope: scope.to_owned(), calls: calls.len(), bytes: rewriter.finish()? });
    }
    let mut order: Vec<(usize, usize)> = Vec::new();
    for call in cassette.calls() {
        let part = parts.iter().position(|part| part.scope == call.scope).unwrap_or_default();
        match order.last_mut() {
            Some((last, count)) if *last == part => *count += 1,
            _ => order.push((part, 1)),
        }
    }
    let read: Vec<Cassette> =
        parts.iter().map(|part| Cassette::from_bytes(Path::new(&part.scope), &part.bytes)).collect::<Result<_, _>>()?;
    let joined = join(&meta, &read, &order)?.unwrap_or_default();
    let again = Cassette::from_bytes(Path::new("the parts together"), &joined)?;
    again.verify()?;
    let (before, after): (Vec<&Call>, Vec<&Call>) = (cassette.calls().iter().collect(), again.calls().iter().collect());
    match first_other(&before, &after) {
        None => Ok(Parts { parts, order, joined }),
        Some(call) => Err(RecordingError::Diverged { what: format!("call {call} of the parts is not that of the recording") }),
    }
}

/// The recording that the parts were made of; `None` when the order does not fit them.
pub(crate) fn join(meta: &Meta, parts: &[Cassette], order: &[(usize, usize)]) -> Result<Option<Vec<u8>>, RecordingError> {
    let mut rewriter = Rewriter::new(meta)?;
    let mut next = vec![0_usize; parts.len()];
    for (part, count) in order {
        let (Some(cassette), Some(next)) = (parts.get(*part), next.get_mut(*part)) else { return Ok(None) };
        let Some(calls) = next.checked_add(*count).and_then(|end| cassette.calls().get(*next..end)) else { return Ok(None) };
        *next += count;
        for call in calls {
            rewriter.call(cassette, call, &call.scope)?;
        }
    }
    if next.iter().zip(parts).any(|(next, part)| *next != part.calls().len()) {
        return Ok(None);
    }
    rewriter.finish().map(Some)
}

/// The joined recording of checked parts.
pub(crate) fn joined(
    name: &Path,
    meta: &Meta,
    parts: &[Cassette],
    order: &[(usize, usize)],
) -> Result<(Vec<u8>, Cassette), BundleError> {
    let bytes = join(meta, parts, order)?.ok_or_else(|| BundleError::Manifest {
        path: name.to_owned(),
        what: "`order` does not fit the calls of the scopes".to_owned(),
    })?;
    let cassette = Cassette::from_bytes(name, &bytes)?;
    Ok((bytes, cassette))
}
