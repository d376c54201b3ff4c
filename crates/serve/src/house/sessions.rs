//! Sessions of the house: made and looked at. A caller finds its own; every other one is not there.

use super::{House, LOOK};
use crate::admission::{other_request, unknown_revision};
use crate::answer::WORDS;
use crate::caller::Caller;
use crate::hosted::{Hosted, Play, Stage, World, restore};
use crate::keep::{AuditRow, KeepError, Kept, Outcome, SessionRow, answers, sessions};
use crate::keys::{digest_of_request, key_digest};
use crate::random;
use crate::refusal::Refusal;
use crate::reply::{BriefText, OfferedTool, Reply, SessionRequest, SessionState};
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError};
use traderharness_contract::FailureClass;
use traderharness_harness::phase::COMPLETION_TOOLS;
use traderharness_harness::toolbox::BoundTool;
use traderharness_harness::{Sandbox, SessionError};

/// What keys of new sessions count for.
pub(super) const CREATE: &str = "session.create";

/// Records of one answer at most.
const RECORDS: usize = 1_000;

impl House {
    /// Makes a session; the body is its [`SessionState`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn create_session(&self, caller: &Arc<Caller>, request: &SessionRequest, key: &str) -> Result<Reply, Refusal> {
        self.creating(caller, request, key).inspect_err(|refusal| self.refused(refusal, caller, CREATE, None))
    }

    fn creating(&self, caller: &Arc<Caller>, request: &SessionRequest, key: &str) -> Result<Reply, Refusal> {
        let kept = Kept { caller: caller.id.clone(), capability: CREATE.to_owned(), key: key_digest(key)? };
        let body = json!({ "profile": request.profile, "agent_revision_id": request.agent_revision_id });
        let digest = digest_of_request(&body);
        let _claim = self.running.claim(&kept, &digest)?;
        if let Some(again) = self.again(caller, &kept, &digest)? {
            return Ok(again);
        }
        let profile = request.profile.as_ref().unwrap_or(&caller.profile);
        let no_profile = || {
            let message = "This caller has no profile of this name.";
            Refusal::new(FailureClass::InvalidInput, 422, "unknown_profile", message, true)
        };
        let world = self.worlds.get(profile).filter(|_| caller.may_use(profile)).ok_or_else(no_profile)?;
        let revision = request.agent_revision_id.as_ref().or(caller.default_revision.as_ref());
        if revision.is_some_and(|id| !caller.agent_revisions.contains_key(id)) {
            return Err(unknown_revision());
        }
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = self.account_of(caller)?.sessions;
        let open = self.keep.open_sessions_of(&caller.id)?.len();
        if open >= limit as usize {
            let message = format!("{open} sessions are open, which is the limit of this caller; close one.");
            return Err(Refusal::new(FailureClass::BudgetExhausted, 429, "too_many_sessions", message, true).with("limit", limit));
        }
        let no_chance =
            |_| Refusal::new(FailureClass::DependencyUnavailable, 503, "random_unavailable", "No session could be made.", true);
        let id = format!("ses_{}", random::letters(26).map_err(no_chance)?);
        let mask_key = random::key().map_err(no_chance)?.to_vec();
        let sandbox = self.sandbox_for(&id, world)?;
        let mut play = Play::start(Arc::clone(world), &mask_key, sandbox).map_err(|fault| stopped(&fault).0)?;
        let records = play.tape().take();
        let state = state_of(&play, &id, revision.map(String::as_str), Stage::Open);
        let shown = serde_json::to_value(&state).unwrap_or_default();
        let row = SessionRow {
            id: id.clone(),
            number: 0,
            caller: caller.id.clone(),
            profile: profile.clone(),
            agent_revision: revision.cloned(),
            made_of: world.made_of.clone(),
            mask_key,
            state: Stage::Open.as_str().to_owned(),
            shown: shown.clone(),
        };
        let outcome = Outcome::Complete { body: shown, text: None, completed: None };
        let number = self.keep.together(|t| {
            let number = sessions::insert(t, &row)?;
            sessions::append(t, number, 0, None, &json!("start"), 0, &records)?;
            answers::answer(t, number, &kept, &digest, &outcome)?;
            answers::audit(t, &audit_row(caller, CREATE, Some(&id), &kept, "OK", 0))?;
            Ok(number)
        })?;
        play.kept(records.len());
        let hosted = Hosted::new(id.clone(), number, caller.id.clone(), Stage::Open, state, Some(Box::new(play)));
        self.hosted().insert(id, Arc::new(hosted));
        outcome.reply(false)
    }

    /// Sessions of the caller, in the order they were made.
    ///
    /// # Errors
    /// 503 when what was kept cannot be read, be it of one session alone: a list never leaves one out.
    pub fn sessions(&self, caller: &Caller) -> Result<Vec<SessionState>, Refusal> {
        let rows = self.keep.sessions_of(&caller.id)?;
        let hosted = self.hosted();
        rows.into_iter()
            .map(|row| match hosted.get(&row.id) {
                Some(known) => Ok(known.shown().1),
                None => Ok(kept_state(row.shown)?),
            })
            .collect()
    }

    /// A session.
    ///
    /// # Errors
    /// 404, the same for an unknown id and for a session of another caller.
    pub fn session(&self, caller: &Caller, id: &str) -> Result<SessionState, Refusal> {
        Ok(self.look(caller, id)?.shown().1)
    }

    /// System prompt and what its words for results are called here, memory, the brief of the current decision point, and the protocol
    /// message as it stands; the system prompt alone once the session has ended.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn brief(&self, caller: &Caller, id: &str) -> Result<Vec<BriefText>, Refusal> {
        let hosted = self.look(caller, id)?;
        if hosted.stage() != Stage::Open {
            // Nothing is said any more, and making a session again for that would cost as much as the session did.
            return Ok(vec![BriefText { role: "system".to_owned(), text: self.world(&hosted.profile)?.system() }]);
        }
        let mut guard = hosted.lock_within(self.session_wait)?;
        let mut texts = self.loaded(&hosted, &mut guard)?.brief();
        let prompts = texts.iter().take_while(|text| text.role == "system").count();
        texts.insert(prompts, BriefText { role: "system".to_owned(), text: WORDS.to_owned() });
        Ok(texts)
    }

    /// The account, masked: cash, total assets and positions at the last visible prices.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn account(&self, caller: &Caller, id: &str) -> Result<Value, Refusal> {
        Ok(self.look(caller, id)?.shown().1.account)
    }

    /// Tools that can be called now in this session and that the caller is entitled to, in catalog order.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn offered(&self, caller: &Caller, id: &str) -> Result<Vec<OfferedTool<'_>>, Refusal> {
        let mut listed = self.listed(caller, id)?;
        listed.retain(|tool| tool.on_offer);
        Ok(listed)
    }

    /// The same with both tools that end a decision point, of which one is on offer: for clients that read the list once and could not
    /// come to the end of a day by what they read then.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn listed(&self, caller: &Caller, id: &str) -> Result<Vec<OfferedTool<'_>>, Refusal> {
        let hosted = self.look(caller, id)?;
        let (stage, state) = hosted.shown();
        if stage != Stage::Open {
            return Ok(Vec::new());
        }
        let world = self.world(&hosted.profile)?;
        let on_offer = |name: &str| state.offered_tools.iter().any(|offered| offered == name);
        let ends = |tool: &BoundTool| tool.enabled && COMPLETION_TOOLS.contains(&tool.bound.spec().name);
        let listed = world.toolbox.all().iter().filter(|tool| ends(tool) || on_offer(tool.bound.spec().name));
        Ok(listed
            .filter_map(|tool| {
                let name = tool.bound.spec().name;
                let capability = self.catalog.find(name)?;
                self.is_served(caller, capability).then(|| OfferedTool {
                    capability,
                    on_offer: on_offer(name),
                    description: tool.definition.description.clone(),
                    input_schema: tool.definition.input_schema.clone(),
                    envelope_schema: capability.envelope_schema.clone(),
                })
            })
            .collect())
    }

    /// Records of the session's trajectory from number `from`, at most `limit` and at most 1,000, as its caller may see them: where
    /// something is hidden, name and digest of the dataset are too, because they say which days and companies it holds.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn records(&self, caller: &Caller, id: &str, from: u64, limit: usize) -> Result<Vec<Value>, Refusal> {
        let mut records = self.trajectory(caller, id, from, limit)?;
        let profile = &self.find(caller, id)?.profile;
        if self.worlds.get(profile).is_none_or(|world| world.hide.dates || world.hide.entities) {
            for record in records.iter_mut().filter(|record| record["type"] == "run_start") {
                record["dataset"] = json!({ "name": "hidden", "sha256": null });
            }
        }
        Ok(records)
    }

    /// The same records whole, for the run folder of whoever runs the house. No door shows them.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn trajectory(&self, caller: &Caller, id: &str, from: u64, limit: usize) -> Result<Vec<Value>, Refusal> {
        let hosted = self.look(caller, id)?;
        Ok(self.keep.records(hosted.number, i64::try_from(from).unwrap_or(i64::MAX), limit.min(RECORDS))?)
    }

    /// A session that the caller asks about; one that is not there is a fault of the request.
    fn look(&self, caller: &Caller, id: &str) -> Result<Arc<Hosted>, Refusal> {
        self.find(caller, id).inspect_err(|refusal| self.refused(refusal, caller, LOOK, None))
    }

    /// A session of the caller, open or not. Every other id is the same 404.
    pub(crate) fn find(&self, caller: &Caller, id: &str) -> Result<Arc<Hosted>, Refusal> {
        let nobodys = || {
            let message = "There is no session of this id.";
            Refusal::new(FailureClass::InvalidInput, 404, "session_not_found", message, false)
        };
        // Held until it is clear which one it is: a session that ends meanwhile is not put back as an open one.
        let mut all = self.hosted();
        if let Some(known) = all.get(id) {
            return if known.caller == caller.id { Ok(Arc::clone(known)) } else { Err(nobodys()) };
        }
        let row = self.keep.session(id)?.filter(|row| row.caller == caller.id).ok_or_else(nobodys)?;
        let unknown = || KeepError::Broken { what: "a session", fault: "its state has an unknown name".to_owned() };
        let stage = Stage::named(&row.state).ok_or_else(unknown)?;
        let state = kept_state(row.shown)?;
        let hosted = Arc::new(Hosted::new(row.id.clone(), row.number, row.caller, stage, state, None));
        if stage != Stage::Open {
            return Ok(hosted);
        }
        all.insert(row.id, Arc::clone(&hosted));
        Ok(hosted)
    }

    /// The session that a call names, or the caller's only open one.
    pub(crate) fn session_of(&self, caller: &Caller, id: Option<&str>) -> Result<Arc<Hosted>, Refusal> {
        if let Some(id) = id {
            return self.find(caller, id);
        }
        let open = self.keep.open_sessions_of(&caller.id)?;
        match open.as_slice() {
            [one] => self.find(caller, one),
            [] => {
                let message = "There is no open session; make one first.";
                Err(Refusal::new(FailureClass::InvalidInput, 422, "no_session", message, true))
            }
            many => {
                let message = format!("{} sessions are open; name one by its session_id.", many.len());
                Err(Refusal::new(FailureClass::InvalidInput, 422, "session_ambiguous", message, true))
            }
        }
    }

    /// The session itself, made again when it is not in memory.
    pub(crate) fn loaded<'g>(&self, hosted: &Hosted, guard: &'g mut Option<Box<Play>>) -> Result<&'g mut Play, Refusal> {
        if guard.is_none() {
            let world = self.world(&hosted.profile)?;
            let row = self.keep.session(&hosted.id)?.ok_or_else(gone)?;
            let sandbox = self.sandbox_for(&hosted.id, world)?;
            let made = restore(&self.keep, &row, world, sandbox).map_err(|fault| {
                let message = "The session cannot be made again from what was kept: its profile, dataset or program changed.";
                Refusal::new(FailureClass::DependencyUnavailable, 503, "session_not_restored", message, false)
                    .with("fault", fault.to_string())
            })?;
            *guard = Some(made);
        }
        guard.as_deref_mut().ok_or_else(gone)
    }

    fn sandbox_for(&self, id: &str, world: &World) -> Result<Option<Sandbox>, Refusal> {
        let Some(open) = &self.sandbox.0 else { return Ok(None) };
        open(id, &world.card).map(Some).map_err(|_| {
            let message = "The place where code of the session runs cannot be made.";
            Refusal::new(FailureClass::DependencyUnavailable, 503, "sandbox_unavailable", message, true)
        })
    }

    /// Whether code can run at all.
    pub(super) const fn runs_code(&self) -> bool {
        self.sandbox.0.is_some()
    }

    /// What a session that broke off is answered. Unless its account is not trusted any more, it is made again as it was before.
    pub(super) fn failed(
        &self,
        caller: &Caller,
        hosted: &Hosted,
        guard: &mut Option<Box<Play>>,
        fault: &SessionError,
    ) -> Refusal {
        *guard = None;
        let (refusal, for_good) = stopped(fault);
        if for_good {
            let (_, mut state) = hosted.shown();
            state.state = Stage::Stopped.as_str().to_owned();
            state.finished = true;
            state.offered_tools.clear();
            let shown = serde_json::to_value(&state).unwrap_or_default();
            let row = AuditRow {
                caller: &caller.id,
                capability: "session.stopped",
                session: Some(&hosted.id),
                key_digest: None,
                class: refusal.class.as_str(),
                units: 0,
                count: 1,
            };
            // In memory it stays stopped also when that cannot be kept.
            let _ = self.keep.together(|t| {
                sessions::show(t, hosted.number, Stage::Stopped.as_str(), &shown)?;
                answers::audit(t, &row)
            });
            hosted.show(Stage::Stopped, state);
        }
        refusal
    }

    /// The answer that a key got, when it was for the same request.
    pub(super) fn again(&self, caller: &Caller, kept: &Kept, digest: &[u8; 32]) -> Result<Option<Reply>, Refusal> {
        match self.keep.answer(kept)? {
            None => Ok(None),
            Some(before) if before.request != *digest => Err(other_request()),
            Some(before) => {
                self.replayed(caller, &kept.capability, None);
                before.outcome.reply(true).map(Some)
            }
        }
    }
}

/// A session as its caller last saw it, out of what was kept.
fn kept_state(shown: Value) -> Result<SessionState, KeepError> {
    serde_json::from_value(shown).map_err(|fault| KeepError::Broken { what: "a session", fault: fault.to_string() })
}

pub(super) fn gone() -> Refusal {
    Refusal::new(FailureClass::DependencyUnavailable, 503, "session_not_restored", "The session is not kept any more.", false)
}

/// A line of the audit log about a request under a key.
pub(super) fn audit_row<'a>(
    caller: &'a Caller,
    capability: &'a str,
    session: Option<&'a str>,
    kept: &Kept,
    class: &'a str,
    units: u64,
) -> AuditRow<'a> {
    AuditRow { caller: &caller.id, capability, session, key_digest: Some(kept.key), class, units, count: 1 }
}

/// A session as its caller sees it.
pub(super) fn state_of(play: &Play, id: &str, agent_revision: Option<&str>, stage: Stage) -> SessionState {
    let (session, world) = (play.session(), play.world());
    let clock = session.clock();
    let open = stage == Stage::Open;
    SessionState {
        session_id: id.to_owned(),
        profile: world.profile.name.clone(),
        agent_revision_id: agent_revision.map(str::to_owned),
        state: stage.as_str().to_owned(),
        finished: !open,
        phase: clock.point.phase().as_str().to_owned(),
        point: clock.point.as_str().to_owned(),
        time: clock.point.now_minute().to_string(),
        day: session.mask().day(clock.day, clock.day),
        day_index: u32::try_from(play.day_number()).unwrap_or(u32::MAX),
        offered_tools: if open { session.offered().map(|t| t.bound.spec().name.to_owned()).collect() } else { Vec::new() },
        account: session.account_summary(),
        synthetic: world.store.meta().synthetic,
    }
}

/// What stopped a session, and whether for good.
fn stopped(fault: &SessionError) -> (Refusal, bool) {
    let refusal = |code: &str, message: &str, retryable: bool| {
        Refusal::new(FailureClass::DependencyUnavailable, if retryable { 503 } else { 500 }, code, message, retryable)
    };
    match fault {
        SessionError::Journal(_) | SessionError::Memory(_) | SessionError::Workspace(_) => (
            refusal(
                "session_not_kept",
                "What the call did could not be kept, so it did nothing; send it again under the same key.",
                true,
            ),
            false,
        ),
        SessionError::Interrupted { .. } => {
            (refusal("cancelled", "The call was cancelled before it was done; nothing of it was kept.", true), false)
        }
        SessionError::Defect { .. } | SessionError::Ledger(_) | SessionError::Stopped => (
            refusal("session_stopped", "A defect of the server stopped the session; its account is not trusted any more.", false),
            true,
        ),
        SessionError::Aborted { .. } => (refusal("session_stopped", "A tool ended the session.", false), true),
        _ => (refusal("internal", "A defect of the server stopped the request; it is not an error of the call.", false), false),
    }
}
