//! [`Naming`]: ids of calls. A conversation needs one per call that no other call has; servers give none, empty ones, or the same ones
//! again.

use std::collections::BTreeSet;
use traderharness_harness::model::Turn;
use traderharness_replay::Request;

/// Gives calls ids of our own where the server gave none, or one that is already taken in the conversation. The ids follow from the
/// place in the run, so that the same answers give the same conversation.
#[derive(Debug, Clone)]
pub(crate) struct Naming {
    turn: Turn,
    taken: BTreeSet<String>,
}

impl Naming {
    /// Names for the calls of the answer to a request.
    pub(crate) fn new(request: &Request, turn: Turn) -> Self {
        let taken = request.messages.iter().flat_map(|message| message.tool_calls()).map(|call| call.id);
        Self { turn, taken: taken.filter(|id| !id.is_empty()).collect() }
    }

    /// The id of call number `index` of the answer.
    pub(crate) fn name(&mut self, index: usize, given: Option<String>) -> String {
        let given = given.filter(|id| !id.trim().is_empty() && !self.taken.contains(id));
        let id = given.unwrap_or_else(|| {
            let own = format!("{}-{}-{}", self.turn.point, self.turn.iteration + 1, index + 1);
            let again = (2..).map(|n| format!("{own}-{n}"));
            let mut free = std::iter::once(own.clone()).chain(again).filter(|id| !self.taken.contains(id));
            free.next().unwrap_or(own)
        });
        self.taken.insert(id.clone());
        id
    }
}
