//! Calls: admitted, run, kept in one transaction with everything they changed, and answered; as a job where that takes long.

use super::sessions::{audit_row, state_of};
use super::{House, LOOK};
use crate::admission::{Admitted, Ticket, not_open};
use crate::answer::{Asked, answer, defect, refusal};
use crate::caller::Caller;
use crate::hosted::{Hosted, Stage};
use crate::jobs::{Finish, Wait, Work};
use crate::keep::{JobState, Outcome, answers, jobs, sessions};
use crate::random;
use crate::refusal::Refusal;
use crate::reply::{Invocation, Reply, ReplyKind, Watch};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use traderharness_contract::algebra::{InvocationId, JobId};
use traderharness_contract::json::{length, text};
use traderharness_contract::{Effect, FailureClass};
use traderharness_harness::CancelToken;

/// Tools that may outlast the patience of a client and run as jobs by themselves.
const SLOW: &[&str] = &["execute_code"];

/// Characters of arguments that do not fit, up to which the session looks at them. Code with a wrong field beside it is shorter.
const LONGEST_UNFIT: usize = 32_768;

/// Calls in a row with arguments that do not fit, up to which the session looks at them: each is kept with it and costs its caller
/// nothing. No model makes so many.
const MOST_UNFIT: u32 = 200;

/// A call that was refused.
#[derive(Debug)]
pub(crate) enum Unserved {
    /// With what it came to in the keep: it is counted, and its line of the audit log is there.
    Kept(Refusal),
    /// Before it did anything.
    Undone(Refusal),
}

impl Unserved {
    fn into_refusal(self) -> Refusal {
        match self {
            Self::Kept(refusal) | Self::Undone(refusal) => refusal,
        }
    }
}

impl<T: Into<Refusal>> From<T> for Unserved {
    fn from(refusal: T) -> Self {
        Self::Undone(refusal.into())
    }
}

impl House {
    /// Calls a tool. The body is the `ToolResult` envelope, or the accepted job.
    ///
    /// # Errors
    /// [`Refusal`], by the first check that fails: key, tool, revision, own scope, session, parameters, dependencies and data rights,
    /// authority of the operation, budget (spec/seeds.md C6); or the failure of the tool itself.
    pub fn invoke(&self, caller: &Arc<Caller>, invocation: &Invocation, key: &str, watch: &Watch) -> Result<Reply, Refusal> {
        match self.invoking(caller, invocation, key, watch) {
            Ok(reply) => Ok(reply),
            Err(Unserved::Kept(refusal)) => Err(refusal),
            Err(Unserved::Undone(refusal)) => {
                let session = invocation.session_id.as_deref().filter(|id| self.find(caller, id).is_ok());
                self.refused(&refusal, caller, &invocation.tool, session);
                Err(refusal)
            }
        }
    }

    fn invoking(&self, caller: &Arc<Caller>, invocation: &Invocation, key: &str, watch: &Watch) -> Result<Reply, Unserved> {
        match self.admit(caller, invocation, key)? {
            Admitted::Again(kept, outcome) => {
                self.replayed(caller, &kept.capability, invocation.session_id.as_deref());
                outcome.reply(true).map_err(Unserved::Kept)
            }
            Admitted::Unfit { hosted, tool, input } => Err(self.unfit(&hosted, &tool, &input).into()),
            Admitted::Run(ticket) => {
                let slow = SLOW.contains(&ticket.tool.as_str()) && self.runs_code();
                if invocation.job || slow {
                    self.start_job(ticket, invocation.job, watch)
                } else {
                    self.perform(&ticket, &watch.cancel, None)
                }
            }
        }
    }

    /// Whether a call is for its client alone, so that it ends when the client leaves: it takes long, and until it is done it leaves
    /// nothing behind.
    pub(crate) fn ends_with_its_client(&self, invocation: &Invocation) -> bool {
        let tool = self.capability(&invocation.tool).and_then(|capability| capability.tool.as_deref());
        !invocation.job && tool.is_some_and(|tool| SLOW.contains(&tool))
    }

    /// Arguments that do not fit are answered by the session, which counts the failure in its phase as it does in a loop; nothing is
    /// kept under the key, so that the corrected request may use it.
    fn unfit(&self, hosted: &Hosted, tool: &str, input: &Value) -> Refusal {
        if hosted.stage() != Stage::Open {
            return not_open(hosted.stage());
        }
        // The session keeps what it was sent and sends it back: what no model could read is neither kept nor repeated.
        let characters = length(input);
        if characters > LONGEST_UNFIT {
            let message = format!(
                "The arguments do not fit {tool}, and with {characters} characters they are too long to be looked at; \
                 send arguments that fit its schema."
            );
            return Refusal::new(FailureClass::InvalidInput, 422, "arguments_too_long", message, true).with("tool", tool);
        }
        if hosted.unfit_again() > MOST_UNFIT {
            let message = format!(
                "The arguments do not fit {tool}. {MOST_UNFIT} calls of this session in a row did not fit their tools, so what does not \
                 fit is not looked at any more; the next call that fits its schema ends that."
            );
            return Refusal::new(FailureClass::InvalidInput, 422, "too_many_unfit", message, true).with("tool", tool);
        }
        let mut guard = match hosted.lock_within(self.session_wait) {
            Ok(guard) => guard,
            Err(refusal) => return refusal,
        };
        let play = match self.loaded(hosted, &mut guard) {
            Ok(play) if !play.is_finished() => play,
            Ok(_) => return not_open(hosted.stage()),
            Err(refusal) => return refusal,
        };
        let done = match catch_unwind(AssertUnwindSafe(|| play.call(tool, input, CancelToken::new()))) {
            Ok(Ok(done)) => done,
            _ => {
                *guard = None;
                return defect("answering faulty arguments broke off");
            }
        };
        let records = play.tape().take();
        let (op, first) = (play.ops, play.records);
        if let Err(fault) = self.keep.together(|t| sessions::append(t, hosted.number, op, Some(tool), input, first, &records)) {
            *guard = None;
            return fault.into();
        }
        play.kept(records.len());
        match &done.report {
            None => defect("a call without a report"),
            Some(report) if report.envelope.is_success() => defect("faulty arguments were answered"),
            Some(report) => refusal(report),
        }
    }

    /// Runs an admitted call and keeps everything it changed in one transaction: its operation, its records, its answer, its cost, its
    /// line of the audit log, and the end of its job. Nobody is answered before.
    pub(crate) fn perform(&self, ticket: &Ticket, cancel: &CancelToken, job: Option<(&str, &Finish)>) -> Result<Reply, Unserved> {
        let hosted = &ticket.hosted;
        // Whoever asked for a job is not kept waiting by its place in the line.
        let mut guard = match job {
            Some(_) => hosted.lock(),
            None => hosted.lock_within(self.session_wait)?,
        };
        // Both may have come while this call waited for the one before.
        if cancel.is_cancelled() {
            return Err(cancelled().into());
        }
        if hosted.stage() != Stage::Open {
            return Err(not_open(hosted.stage()).into());
        }
        let play = self.loaded(hosted, &mut guard)?;
        let called = catch_unwind(AssertUnwindSafe(|| play.call(&ticket.tool, &ticket.input, cancel.clone())));
        let done = match called {
            Ok(Ok(done)) => done,
            Ok(Err(fault)) => return Err(self.failed(&ticket.caller, hosted, &mut guard, &fault).into()),
            Err(_) => {
                *guard = None;
                return Err(defect("the call broke off").into());
            }
        };
        let (outcome, class, transient) = match self.answered(ticket, &done, play.session()) {
            Ok(answer) => {
                (Outcome::Complete { body: answer.body, text: answer.text, completed: done.completed.clone() }, "OK", false)
            }
            Err(refusal) => {
                let (class, transient) = (refusal.class.as_str(), refusal.class == FailureClass::DependencyUnavailable);
                (Outcome::Refused(refusal), class, transient)
            }
        };
        let succeeded = matches!(outcome, Outcome::Complete { .. });
        let units = ticket.reservation.actual(succeeded);
        let records = play.tape().take();
        let stage = if play.is_finished() { Stage::Finished } else { Stage::Open };
        let moved = done.completed.is_some() || ticket.effect == Effect::Mutation || ticket.effect == Effect::Financial;
        let (_, before) = hosted.shown();
        let offers = || play.session().offered().map(|t| t.bound.spec().name).eq(before.offered_tools.iter().map(String::as_str));
        let state = (moved || !offers()).then(|| state_of(play, &hosted.id, hosted.agent_revision.as_deref(), stage));
        let shown = state.as_ref().map(|state| serde_json::to_value(state).unwrap_or_default());
        // A part of the environment that was down may be back when the same key comes again; what was done stays done under it.
        let did = done.report.as_ref().is_some_and(|report| report.envelope.is_success()) || ticket.effect == Effect::Financial;
        let stays = !transient || (did && !ticket.effect.is_read());
        let (op, first) = (play.ops, play.records);
        let finish = job.map(|(_, finish)| finish.lock());
        let told = finish.as_ref().is_some_and(|finish| matches!(**finish, Wait::Told));
        let kept = self.keep.together(|t| {
            sessions::append(t, hosted.number, op, Some(&ticket.tool), &ticket.input, first, &records)?;
            if let Some(shown) = &shown {
                sessions::show(t, hosted.number, stage.as_str(), shown)?;
            }
            match job {
                None if stays => answers::answer(t, hosted.number, &ticket.kept, &ticket.request, &outcome)?,
                None => {}
                Some((id, _)) => {
                    let state = if succeeded { JobState::Succeeded } else { JobState::Failed };
                    jobs::settle(t, id, state, Some(&outcome))?;
                    if !stays {
                        answers::forget(t, &ticket.kept.caller, &ticket.kept.capability, &ticket.kept.key)?;
                    } else if !told {
                        answers::replace(t, &ticket.kept, &outcome)?;
                    }
                }
            }
            if let Some(left) = ticket.reservation.settle(units) {
                answers::budget(t, &ticket.caller.id, left)?;
            }
            answers::audit(t, &audit_row(&ticket.caller, &ticket.capability, Some(&hosted.id), &ticket.kept, class, units))
        });
        if let Err(fault) = kept {
            // What was not kept did not happen: the session is made again from what was.
            *guard = None;
            ticket.reservation.undo();
            return Err(Refusal::from(fault).into());
        }
        play.kept(records.len());
        if let Some(state) = state {
            hosted.show(stage, state);
        }
        if stage != Stage::Open {
            *guard = None;
            self.hosted().remove(&hosted.id);
        }
        self.counts.called(ticket.effect, units);
        hosted.fitted();
        let result = outcome.reply(false);
        match &result {
            Ok(_) => ticket.reservation.faults().success(),
            Err(refusal) => self.blame(refusal, &ticket.caller.id),
        }
        if let (Some((_, finish)), Some(state)) = (job, finish) {
            finish.done(state, result.clone());
        }
        result.map_err(Unserved::Kept)
    }

    fn answered(
        &self,
        ticket: &Ticket,
        done: &crate::hosted::Done,
        session: &traderharness_harness::Session,
    ) -> Result<crate::answer::Answer, Refusal> {
        let report = done.report.as_ref().ok_or_else(|| defect("a call without a report"))?;
        let capability = self.catalog.find(&ticket.capability).ok_or_else(|| defect("a call without a manifest"))?;
        let id = random::letters(26).ok().and_then(|rest| InvocationId::new(rest).ok());
        let id = id.ok_or_else(|| defect("an invocation without an id"))?;
        let definition = session_definition(ticket, &self.world(&ticket.hosted.profile)?.toolbox);
        let session = done.completed.is_none().then_some(session);
        let session_id = ticket.hosted.id.as_str();
        answer(report, &Asked { id: &id, name: &ticket.named, capability, at: &done.asked_at, definition, session, session_id })
    }

    /// Keeps a job, hands it to the workers and waits as long as the caller likes.
    fn start_job(&self, mut ticket: Box<Ticket>, asked_for: bool, watch: &Watch) -> Result<Reply, Unserved> {
        self.jobs.room()?;
        let id = random::letters(26).ok().and_then(|rest| JobId::new(rest).ok()).ok_or_else(|| defect("a job without an id"))?;
        let body = json!({ "job_id": id, "state": "accepted", "status_url": status_url(id.as_str()) });
        let outcome = Outcome::Accepted { body };
        self.keep.together(|t| {
            jobs::insert(t, id.as_str(), &ticket.caller.id, &ticket.hosted.id, &ticket.capability, &ticket.kept.key)?;
            answers::answer(t, ticket.hosted.number, &ticket.kept, &ticket.request, &outcome)?;
            let session = Some(ticket.hosted.id.as_str());
            answers::audit(t, &audit_row(&ticket.caller, &ticket.capability, session, &ticket.kept, "ACCEPTED", 0))
        })?;
        // From here on the key is answered with the job.
        ticket.claim = None;
        // Who asks for a job wants its id, not its result.
        let patience = watch.patience.or((!asked_for).then_some(self.patience)).filter(|patience| !patience.is_zero());
        let finish = self.jobs.submit(id.as_str().to_owned(), ticket, watch.cancel.clone(), patience.is_some());
        let accepted = || outcome.reply(false).map_err(Unserved::Kept);
        let Some(patience) = patience else { return accepted() };
        let tick = |seconds: u64| {
            if let Some(progress) = &watch.progress {
                progress(seconds, "running");
            }
        };
        match finish.wait(patience, &tick) {
            Some(result) => result.map_err(Unserved::Kept),
            None => accepted(),
        }
    }

    /// Works on a job, on a thread of the pool.
    pub(crate) fn run_job(&self, work: Work) {
        let Work { id, ticket, cancel, finish } = work;
        let run = || {
            if cancel.is_cancelled() { Err(cancelled().into()) } else { self.perform(&ticket, &cancel, Some((&id, &finish))) }
        };
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(defect("the job broke off").into()));
        // What failed before anything was kept is settled here; its key may come again.
        if let Err(unserved) = result {
            let refusal = unserved.into_refusal();
            let state = finish.lock();
            if !matches!(*state, Wait::Done(_)) {
                self.settle_undone(&id, &ticket, refusal.clone());
                finish.done(state, Err(refusal));
            }
        }
    }

    fn settle_undone(&self, id: &str, ticket: &Ticket, refusal: Refusal) {
        let (state, class) = match refusal.code.as_str() {
            "cancelled" => (JobState::Cancelled, "CANCELLED"),
            _ => (JobState::Failed, refusal.class.as_str()),
        };
        self.blame(&refusal, &ticket.caller.id);
        let outcome = Outcome::Refused(refusal);
        // When even this cannot be kept, the job is found interrupted when the house opens again.
        let _ = self.keep.together(|t| {
            jobs::settle(t, id, state, Some(&outcome))?;
            answers::forget(t, &ticket.kept.caller, &ticket.kept.capability, &ticket.kept.key)?;
            answers::audit(t, &audit_row(&ticket.caller, &ticket.capability, Some(&ticket.hosted.id), &ticket.kept, class, 0))
        });
    }

    /// A job: `{job_id, state, status_url}` with its `result` or `error` once it is done. States: `accepted`, `running`, `succeeded`,
    /// `failed`, `cancelled`, `interrupted`.
    ///
    /// # Errors
    /// `INVALID_INPUT` for an id of another kind, 404 for an unknown one and for one of another caller.
    pub fn job(&self, caller: &Caller, id: &str) -> Result<Reply, Refusal> {
        self.looking_at(caller, id).inspect_err(|refusal| self.refused(refusal, caller, LOOK, None))
    }

    fn looking_at(&self, caller: &Caller, id: &str) -> Result<Reply, Refusal> {
        let id = JobId::parse(id)
            .map_err(|fault| Refusal::new(FailureClass::InvalidInput, 422, "invalid_job_id", fault.failure().message, true))?;
        let running = self.jobs.is_running(id.as_str());
        let row = self.keep.job(id.as_str())?.filter(|row| row.caller == caller.id).ok_or_else(|| {
            Refusal::new(FailureClass::InvalidInput, 404, "job_not_found", "There is no job of this id.", false)
        })?;
        let state = if row.state == JobState::Accepted && running { JobState::Running } else { row.state };
        let mut body = json!({ "job_id": id, "state": state.as_str(), "status_url": status_url(id.as_str()) });
        let (mut completed, mut shown) = (None, None);
        match row.outcome {
            Some(Outcome::Complete { body: result, text, completed: done }) => {
                body["result"] = result;
                completed = done;
                shown = text;
            }
            Some(Outcome::Refused(refusal)) => body["error"] = refusal.record(),
            Some(Outcome::Accepted { .. }) | None => {}
        }
        let text = shown.unwrap_or_else(|| text(&body));
        Ok(Reply { kind: ReplyKind::Complete, body, replayed: false, completed, text })
    }

    /// Asks a job to end; the body is its state. One that waits did nothing; code that runs is ended; anything else that runs ends where
    /// it can, and what it did stays done.
    ///
    /// # Errors
    /// As [`House::job`].
    pub fn cancel_job(&self, caller: &Caller, id: &str) -> Result<Reply, Refusal> {
        // Another caller's job is not there.
        self.job(caller, id)?;
        if let Some(Work { id, ticket, finish, .. }) = self.jobs.cancel(id) {
            let state = finish.lock();
            self.settle_undone(&id, &ticket, cancelled());
            finish.done(state, Err(cancelled()));
        }
        self.job(caller, id)
    }
}

fn session_definition<'t>(
    ticket: &Ticket,
    toolbox: &'t traderharness_harness::Toolbox,
) -> Option<&'t traderharness_contract::Definition> {
    toolbox.all().iter().find(|t| t.bound.spec().name == ticket.tool).map(|t| &t.definition)
}

fn status_url(id: &str) -> String {
    format!("/v1/jobs/{id}")
}

fn cancelled() -> Refusal {
    let message = "The call was cancelled before it did anything; its key may be used again.";
    Refusal::new(FailureClass::DependencyUnavailable, 503, "cancelled", message, true)
}
