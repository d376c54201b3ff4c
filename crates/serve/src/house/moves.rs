//! Sessions moved and closed. A move and everything that it changes are kept in one transaction; nobody is answered before.

use super::House;
use super::sessions::{audit_row, state_of};
use crate::admission::not_open;
use crate::caller::Caller;
use crate::hosted::{Hosted, Play, Stage};
use crate::keep::{Kept, Outcome, answers, sessions};
use crate::keys::{digest_of_request, key_digest};
use crate::refusal::Refusal;
use crate::reply::{Reply, SessionState};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What keys of steps count for.
pub(super) const STEP: &str = "session.step";
/// What keys of closings count for.
pub(super) const CLOSE: &str = "session.close";

impl House {
    /// Moves the clock to the next decision point, after close_2 to the next day; the body is the [`SessionState`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn step(&self, caller: &Caller, id: &str, key: &str) -> Result<Reply, Refusal> {
        self.moving(caller, id, key, STEP).inspect_err(|refusal| self.refused(refusal, caller, STEP, None))
    }

    /// Closes a session for good; the body is its [`SessionState`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn close_session(&self, caller: &Caller, id: &str, key: &str) -> Result<Reply, Refusal> {
        self.moving(caller, id, key, CLOSE).inspect_err(|refusal| self.refused(refusal, caller, CLOSE, None))
    }

    fn moving(&self, caller: &Caller, id: &str, key: &str, what: &'static str) -> Result<Reply, Refusal> {
        let hosted = self.find(caller, id)?;
        let kept = Kept { caller: caller.id.clone(), capability: what.to_owned(), key: key_digest(key)? };
        let digest = digest_of_request(&json!({ "session_id": id }));
        let _claim = self.running.claim(&kept, &digest)?;
        if let Some(again) = self.again(caller, &kept, &digest)? {
            return Ok(again);
        }
        let closes = what == CLOSE;
        let stage = hosted.stage();
        let may = match stage {
            Stage::Open => true,
            Stage::Finished | Stage::Stopped => closes,
            Stage::Closed => false,
        };
        if !may {
            return Err(not_open(stage));
        }
        let mut guard = hosted.lock_within(self.session_wait)?;
        // A finished session has nothing left to do; closing it only says so.
        if closes && stage != Stage::Open {
            let (_, mut state) = hosted.shown();
            state.state = Stage::Closed.as_str().to_owned();
            return self.keep_moved(caller, &hosted, &kept, &digest, Stage::Closed, state, None, None);
        }
        let play = self.loaded(&hosted, &mut guard)?;
        if play.is_finished() {
            return Err(not_open(hosted.stage()));
        }
        let moved =
            catch_unwind(AssertUnwindSafe(|| if closes { play.end("closed").map(|()| None) } else { play.step().map(Some) }));
        let done = match moved {
            Ok(Ok(done)) => done,
            Ok(Err(fault)) => return Err(self.failed(caller, &hosted, &mut guard, &fault)),
            Err(_) => {
                *guard = None;
                return Err(crate::answer::defect("moving the clock broke off"));
            }
        };
        let stage = match (closes, play.is_finished()) {
            (true, _) => Stage::Closed,
            (false, true) => Stage::Finished,
            (false, false) => Stage::Open,
        };
        let state = state_of(play, &hosted.id, hosted.agent_revision.as_deref(), stage);
        let completed = done.and_then(|done| done.completed);
        let kept = self.keep_moved(caller, &hosted, &kept, &digest, stage, state, completed, Some(play));
        // What was not kept did not happen: the session is made again from what was.
        if kept.is_err() || stage != Stage::Open {
            *guard = None;
        }
        kept
    }

    #[expect(clippy::too_many_arguments, reason = "one transaction of everything that a move changes")]
    fn keep_moved(
        &self,
        caller: &Caller,
        hosted: &Hosted,
        kept: &Kept,
        digest: &[u8; 32],
        stage: Stage,
        state: SessionState,
        completed: Option<crate::reply::Completed>,
        play: Option<&mut Play>,
    ) -> Result<Reply, Refusal> {
        let shown = serde_json::to_value(&state).unwrap_or_default();
        let outcome = Outcome::Complete { body: shown.clone(), text: None, completed };
        let records = play.as_ref().map(|play| play.tape().take());
        let what = kept.capability.as_str();
        self.keep.together(|t| {
            if let (Some(play), Some(records)) = (&play, &records) {
                let op = json!(if what == CLOSE { "close" } else { "step" });
                sessions::append(t, hosted.number, play.ops, None, &op, play.records, records)?;
            }
            sessions::show(t, hosted.number, stage.as_str(), &shown)?;
            answers::answer(t, hosted.number, kept, digest, &outcome)?;
            answers::audit(t, &audit_row(caller, what, Some(&hosted.id), kept, "OK", 0))
        })?;
        if let (Some(play), Some(records)) = (play, records) {
            play.kept(records.len());
        }
        hosted.show(stage, state);
        if stage != Stage::Open {
            self.hosted().remove(&hosted.id);
        }
        outcome.reply(false)
    }
}
