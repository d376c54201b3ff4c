//! [`Player`] and [`Replay`]: answer requests from a cassette, strictly in the recorded order. They must never answer a
//! request that is not the recorded one, and they know no model to fall back on.

use crate::Fingerprint;
use crate::cassette::{Call, Cassette};
use crate::diff::request_differences;
use crate::error::ReplayError;
use crate::request::{Request, Response};
use std::collections::BTreeMap;
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

    /// As [`Player::next`], for a run that goes on where a call got no answer: a recorded failure is one way a call can end, and comes
    /// back with the reason it was recorded with.
    ///
    /// # Errors
    /// As [`Player::next`], [`ReplayError::NoOutput`] only where no reason was recorded.
    pub fn next_or_failure(&mut self, request: &Request) -> Result<Result<Response, String>, ReplayError> {
        match self.next(request) {
            Err(ReplayError::NoOutput { error: Some(error), .. }) => {
                self.next += 1;
                Ok(Err(error))
            }
            other => other.map(Ok),
        }
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

/// Plays all scopes of a cassette: the mirror of a [`crate::Recorder`]. Each scope is strictly in order; between scopes no
/// order is asked for, because agents may ask at the same time.
#[derive(Debug, Clone)]
pub struct Replay {
    cassette: Arc<Cassette>,
    players: BTreeMap<String, Player>,
}

impl Replay {
    /// Starts at the first call of every scope.
    pub fn new(cassette: impl Into<Arc<Cassette>>) -> Self {
        let cassette = cassette.into();
        let mut players: BTreeMap<String, Player> = BTreeMap::new();
        for call in cassette.calls() {
            let player = players.entry(call.scope.clone()).or_insert_with(|| Player {
                cassette: cassette.clone(),
                scope: call.scope.clone(),
                steps: Vec::new(),
                next: 0,
            });
            player.steps.push(call.step);
        }
        Self { cassette, players }
    }

    /// The recording.
    pub fn cassette(&self) -> &Cassette {
        &self.cassette
    }

    /// The recording, for who needs it beside the replay.
    pub fn shared(&self) -> Arc<Cassette> {
        Arc::clone(&self.cassette)
    }

    /// Requests answered so far, in all scopes.
    pub fn played(&self) -> usize {
        self.players.values().map(Player::played).sum()
    }

    /// Requests recorded, in all scopes.
    pub fn total(&self) -> usize {
        self.players.values().map(Player::total).sum()
    }

    /// Scopes of the recording, sorted.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.players.keys().map(String::as_str)
    }

    /// Recorded calls of a scope that were not played yet; 0 for a scope that is not in the recording.
    pub fn left(&self, scope: &str) -> usize {
        self.players.get(scope).map_or(0, |player| player.total() - player.played())
    }

    /// Answers `request` if it is the next recorded one of `scope`.
    ///
    /// # Errors
    /// As [`Player::next`]; [`ReplayError::UnknownScope`] when nothing was recorded in `scope`.
    pub fn next(&mut self, scope: &str, request: &Request) -> Result<Response, ReplayError> {
        self.player(scope)?.next(request)
    }

    /// As [`Replay::next`], with a recorded failure as one way a call can end ([`Player::next_or_failure`]).
    ///
    /// # Errors
    /// As [`Replay::next`].
    pub fn next_or_failure(&mut self, scope: &str, request: &Request) -> Result<Result<Response, String>, ReplayError> {
        self.player(scope)?.next_or_failure(request)
    }

    fn player(&mut self, scope: &str) -> Result<&mut Player, ReplayError> {
        if self.players.is_empty() {
            let sealed = self.cassette.is_sealed();
            return Err(ReplayError::Exhausted { index: 0, total: 0, scope: scope.to_owned(), sealed });
        }
        let known = self.players.keys().cloned().collect();
        self.players.get_mut(scope).ok_or_else(|| ReplayError::UnknownScope { scope: scope.to_owned(), known })
    }

    /// Ends the replay; gives the number of requests that were answered.
    ///
    /// # Errors
    /// [`ReplayError::Unused`] for the first scope, by name, with recorded responses left; also for one never asked.
    pub fn finish(self) -> Result<usize, ReplayError> {
        self.players.into_values().map(Player::finish).sum()
    }
}

impl From<Player> for Replay {
    /// Goes on where the player is, in its scope alone.
    fn from(player: Player) -> Self {
        let cassette = player.cassette.clone();
        let players = if player.steps.is_empty() { BTreeMap::new() } else { BTreeMap::from([(player.scope.clone(), player)]) };
        Self { cassette, players }
    }
}
