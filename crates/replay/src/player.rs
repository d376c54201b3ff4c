//! [`Player`]: answers requests from a cassette, strictly in the recorded order. It must never answer a request that is
//! not the recorded one, and it knows no model to fall back on.

use crate::Fingerprint;
use crate::cassette::{Call, Cassette};
use crate::diff::request_differences;
use crate::error::ReplayError;
use crate::request::{Request, Response};
use std::sync::Arc;

/// Plays one scope of a cassette.
#[derive(Debug, Clone)]
pub struct Player {
    cassette: Arc<Cassette>,
    scope: String,
    /// Steps of the scope.
    steps: Vec<usize>,
    next: usize,
}

impl Player {
    /// Plays a recording that has one scope.
    ///
    /// # Errors
    /// [`ReplayError::UnknownScope`] when it has several; they must be played apart, because nothing says in which order
    /// two agents ask.
    pub fn new(cassette: impl Into<Arc<Cassette>>) -> Result<Self, ReplayError> {
        let cassette = cassette.into();
        match cassette.scopes()[..] {
            [] => Ok(Self { scope: crate::cassette::DEFAULT_SCOPE.to_owned(), cassette, steps: Vec::new(), next: 0 }),
            [scope] => {
                let scope = scope.to_owned();
                Self::for_scope(cassette, &scope)
            }
            ref several => {
                let known = several.iter().map(|&scope| scope.to_owned()).collect();
                Err(ReplayError::UnknownScope { scope: String::new(), known })
            }
        }
    }

    /// Plays the calls of one scope.
    ///
    /// # Errors
    /// [`ReplayError::UnknownScope`].
    pub fn for_scope(cassette: impl Into<Arc<Cassette>>, scope: &str) -> Result<Self, ReplayError> {
        let cassette = cassette.into();
        let steps: Vec<usize> = cassette.calls().iter().filter(|call| call.scope == scope).map(|call| call.step).collect();
        if steps.is_empty() {
            let known = cassette.scopes().into_iter().map(str::to_owned).collect();
            return Err(ReplayError::UnknownScope { scope: scope.to_owned(), known });
        }
        Ok(Self { cassette, scope: scope.to_owned(), steps, next: 0 })
    }

    /// The recording.
    pub fn cassette(&self) -> &Cassette {
        &self.cassette
    }

    /// Requests answered so far.
    pub fn played(&self) -> usize {
        self.next
    }

    /// Requests recorded in the scope.
    pub fn total(&self) -> usize {
        self.steps.len()
    }

    /// Answers `request` if it is the next recorded one. After an error the same call stays the next one.
    ///
    /// # Errors
    /// [`ReplayError::Mismatch`], [`ReplayError::Exhausted`], [`ReplayError::NoOutput`], [`ReplayError::BadOutput`].
    pub fn next(&mut self, request: &Request) -> Result<Response, ReplayError> {
        let (index, scope) = (self.next, self.scope.clone());
        let Some(call) = self.steps.get(index).and_then(|step| self.cassette.calls().get(*step)) else {
            let (total, sealed) = (self.total(), self.cassette.is_sealed());
            return Err(ReplayError::Exhausted { index, total, scope, sealed });
        };
        let actual = self.cassette.scheme().fingerprint(request);
        if actual != call.request_sha256 {
            return Err(self.mismatch(call, request, actual));
        }
        let place = call.place;
        let output = match &call.output {
            Some(output) if !output.is_null() => output,
            _ => return Err(ReplayError::NoOutput { index, scope, place, error: call.error.clone() }),
        };
        let response = self.cassette.response(output).map_err(|what| ReplayError::BadOutput { index, scope, place, what })?;
        self.next += 1;
        Ok(response)
    }

    /// Ends the replay; gives the number of requests that were answered.
    ///
    /// # Errors
    /// [`ReplayError::Unused`] when recorded responses are left.
    pub fn finish(self) -> Result<usize, ReplayError> {
        let left = self.steps.get(self.next).and_then(|step| self.cassette.calls().get(*step));
        match left {
            None => Ok(self.next),
            Some(call) => Err(ReplayError::Unused {
                played: self.next,
                unused: self.total() - self.next,
                scope: self.scope,
                place: call.place,
            }),
        }
    }

    fn mismatch(&self, call: &Call, request: &Request, actual: Fingerprint) -> ReplayError {
        // A stored request that cannot be put together again only costs the diff; the mismatch stands without it.
        let recorded = self.cassette.request(call.step).ok().flatten();
        ReplayError::Mismatch {
            index: self.next,
            total: self.total(),
            scope: self.scope.clone(),
            place: call.place,
            expected: call.request_sha256,
            actual,
            differences: recorded.map(|recorded| request_differences(&recorded, request)),
        }
    }
}
