//! Whether a call is admitted: every check of spec/seeds.md C6, in its order, in one function. Nothing runs and nothing is kept here.
//!
//! authenticate (the door) -> key -> tool known and enabled -> revision -> own scope -> session -> parameters -> D* -> key used before
//! -> authority of the operation -> budget -> work.
//!
//! A request whose key was answered before gets that answer as soon as its caller is known to be entitled to it: what the session came
//! to since does not matter.

use crate::budget::Reservation;
use crate::caller::{Caller, SCOPE_TRADE};
use crate::cursors;
use crate::hosted::{Hosted, Stage};
use crate::house::House;
use crate::keep::{Kept, Outcome};
use crate::keys::{Claim, digest_of_request, key_digest};
use crate::manifest::Capability;
use crate::refusal::Refusal;
use crate::reply::Invocation;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use traderharness_contract::document::closest;
use traderharness_contract::{Effect, FailureClass};

/// A call that may run.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) caller: Arc<Caller>,
    /// Dotted name.
    pub(crate) capability: String,
    /// Plain tool name.
    pub(crate) tool: String,
    /// As the caller named it.
    pub(crate) named: String,
    pub(crate) effect: Effect,
    pub(crate) input: Value,
    pub(crate) hosted: Arc<Hosted>,
    pub(crate) kept: Kept,
    pub(crate) request: [u8; 32],
    pub(crate) reservation: Reservation,
    /// Nobody else runs under this key while it lives.
    pub(crate) claim: Option<Claim>,
}

/// What admission comes to.
#[derive(Debug)]
pub(crate) enum Admitted {
    /// The key was answered before.
    Again(Kept, Box<Outcome>),
    /// The arguments do not fit. The session answers that itself, as it does in a loop, so that the failure counts there too.
    Unfit { hosted: Arc<Hosted>, tool: String, input: Value },
    /// It may run.
    Run(Box<Ticket>),
}

impl House {
    pub(crate) fn admit(&self, caller: &Arc<Caller>, invocation: &Invocation, key: &str) -> Result<Admitted, Refusal> {
        let key = key_digest(key)?;
        let capability = self.known_and_enabled(&invocation.tool)?;
        let session = self.session_of(caller, invocation.session_id.as_deref());
        served_revision(caller, invocation, session.as_ref().ok(), capability)?;
        own_scope(caller, capability)?;

        let request = digest_of_request(&json!({
            "tool": capability.name,
            "input": invocation.input,
            "session_id": invocation.session_id,
            "agent_revision_id": invocation.agent_revision_id,
            "job": invocation.job,
        }));
        let kept = Kept { caller: caller.id.clone(), capability: capability.name.clone(), key };
        let before = self.keep().answer(&kept)?;
        if let Some(answer) = before.filter(|before| before.request == request) {
            self.entitled(caller, capability)?;
            return Ok(Admitted::Again(kept, Box::new(answer.outcome)));
        }

        let hosted = session?;
        let Some(tool) = capability.tool.clone() else { return Err(not_callable(capability)) };
        let input = cursors::unbind(&hosted.id, &invocation.input);
        if !self.fits(&hosted, &tool, &input)? {
            return Ok(Admitted::Unfit { hosted, tool, input });
        }
        self.entitled(caller, capability)?;

        let claim = self.running().claim(&kept, &request)?;
        // Between the first look and the claim somebody else may have been answered.
        if let Some(before) = self.keep().answer(&kept)? {
            return if before.request == request {
                Ok(Admitted::Again(kept, Box::new(before.outcome)))
            } else {
                Err(other_request())
            };
        }
        authority(caller, capability, &hosted)?;
        let reservation = self.account_of(caller)?.reserve(capability.effect)?;
        Ok(Admitted::Run(Box::new(Ticket {
            caller: Arc::clone(caller),
            capability: capability.name.clone(),
            tool,
            named: invocation.tool.clone(),
            effect: capability.effect,
            input,
            hosted,
            kept,
            request,
            reservation,
            claim: Some(claim),
        })))
    }

    fn known_and_enabled(&self, tool: &str) -> Result<&Capability, Refusal> {
        let Some(capability) = self.capability(tool) else {
            let names: Vec<&str> =
                self.catalog().all().iter().flat_map(|c| [Some(c.name.as_str()), c.tool.as_deref()]).flatten().collect();
            let message = "There is no tool of this name; the catalog lists what there is.";
            let mut refusal = Refusal::new(FailureClass::UnsupportedCapability, 404, "unknown_tool", message, false);
            if let Some(near) = closest(tool, &names) {
                refusal = refusal.with("did_you_mean", near);
            }
            return Err(refusal);
        };
        // An old catalog is no permission (spec/seeds.md C1.5).
        if !capability.enabled {
            let message = format!("{} is switched off on this server.", capability.name);
            return Err(Refusal::new(FailureClass::UnsupportedCapability, 422, "capability_disabled", message, false)
                .with("tool", capability.name.as_str()));
        }
        if capability.tool.is_none() {
            return Err(not_callable(capability));
        }
        Ok(capability)
    }

    /// Whether the arguments fit the tool's schema under the session's card.
    fn fits(&self, hosted: &Hosted, tool: &str, input: &Value) -> Result<bool, Refusal> {
        let world = self.world(&hosted.profile)?;
        let Some(bound) = world.toolbox.all().iter().find(|t| t.bound.spec().name == tool) else { return Ok(true) };
        Ok(match input {
            Value::Object(_) => bound.definition.validate(&bound.definition.normalise(input.clone()).args).is_ok(),
            Value::Null => bound.definition.validate(&json!({})).is_ok(),
            _ => false,
        })
    }

    /// D* (spec/seeds.md C2): scopes and data rights of the capability and of everything it needs, whether or not the call will read it.
    fn entitled(&self, caller: &Caller, capability: &Capability) -> Result<(), Refusal> {
        let mut scopes = BTreeSet::new();
        let mut rights = BTreeSet::new();
        for needed in self.catalog().star(capability) {
            if !needed.enabled {
                let message = format!("{} needs {}, which is switched off on this server.", capability.name, needed.name);
                return Err(Refusal::new(FailureClass::UnsupportedCapability, 422, "dependency_disabled", message, false)
                    .with("tool", capability.name.as_str())
                    .with("dependency", needed.name.as_str()));
            }
            scopes.extend(needed.scopes.iter().filter(|scope| !caller.has_scope(scope)).cloned());
            rights.extend(needed.sources.iter().filter(|source| !caller.has_right(source)).cloned());
        }
        let missing = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>();
        if !scopes.is_empty() {
            let message = format!("{} needs what this caller was not granted.", capability.name);
            return Err(Refusal::new(FailureClass::Forbidden, 403, "missing_scope", message, false)
                .with("tool", capability.name.as_str())
                .with("missing", missing(scopes))
                .with("missing_data_rights", missing(rights)));
        }
        if !rights.is_empty() {
            let message = format!("{} is made of sources that this caller has no right to.", capability.name);
            return Err(Refusal::new(FailureClass::Forbidden, 403, "missing_data_right", message, false)
                .with("tool", capability.name.as_str())
                .with("missing_data_rights", missing(rights)));
        }
        Ok(())
    }
}

fn not_callable(capability: &Capability) -> Refusal {
    let message = format!("{} is what other capabilities stand on; it cannot be called.", capability.name);
    Refusal::new(FailureClass::UnsupportedCapability, 422, "not_callable", message, false).with("tool", capability.name.as_str())
}

/// The same key came before with something else in it.
pub(crate) fn other_request() -> Refusal {
    let message = "This idempotency key was used before for another request. Nothing was done; use a new key for a new request.";
    Refusal::new(FailureClass::IdempotencyConflict, 409, "idempotency_conflict", message, false)
}

fn served_revision(
    caller: &Caller,
    invocation: &Invocation,
    hosted: Option<&Arc<Hosted>>,
    capability: &Capability,
) -> Result<(), Refusal> {
    let of_the_session = || hosted.and_then(|hosted| hosted.agent_revision.as_deref());
    let named = invocation.agent_revision_id.as_deref().or_else(of_the_session).or(caller.default_revision.as_deref());
    let Some(named) = named else { return Ok(()) };
    let Some(pins) = caller.agent_revisions.get(named) else {
        return Err(unknown_revision());
    };
    match pins.get(&capability.name) {
        Some(pinned) if *pinned != capability.revision => {
            let message = format!(
                "{} is served as revision {}, and this agent revision speaks {pinned}.",
                capability.name, capability.revision
            );
            Err(Refusal::new(FailureClass::ToolRevisionConflict, 409, "tool_revision_conflict", message, false)
                .with("tool", capability.name.as_str())
                .with("pinned", pinned.as_str())
                .with("served", capability.revision.as_str()))
        }
        _ => Ok(()),
    }
}

/// An agent revision that this caller does not have.
pub(crate) fn unknown_revision() -> Refusal {
    Refusal::new(FailureClass::InvalidInput, 422, "unknown_agent_revision", "This caller has no agent revision of this id.", true)
}

fn own_scope(caller: &Caller, capability: &Capability) -> Result<(), Refusal> {
    let missing: Vec<&str> = capability.scopes.iter().map(String::as_str).filter(|scope| !caller.has_scope(scope)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("{} was not granted to this caller.", capability.name);
    Err(Refusal::new(FailureClass::Forbidden, 403, "missing_scope", message, false)
        .with("tool", capability.name.as_str())
        .with("missing", missing))
}

/// What a session that takes no calls any more answers.
pub(crate) fn not_open(stage: Stage) -> Refusal {
    let (code, message) = match stage {
        Stage::Open => ("session_open", "The session is open."),
        Stage::Finished => ("session_finished", "The session has no further day; make a new one."),
        Stage::Closed => ("session_closed", "The session was closed; make a new one."),
        Stage::Stopped => {
            ("session_stopped", "A defect stopped the session and its account is not trusted any more; make a new one.")
        }
    };
    Refusal::new(FailureClass::Forbidden, 403, code, message, false)
}

fn authority(caller: &Caller, capability: &Capability, hosted: &Hosted) -> Result<(), Refusal> {
    match hosted.stage() {
        Stage::Open => {}
        stage => return Err(not_open(stage)),
    }
    // The execution boundary has an authority of its own (spec/seeds.md C1.3).
    if capability.effect == Effect::Financial && !caller.has_scope(SCOPE_TRADE) {
        let message = format!("{} places orders, and this caller may not trade.", capability.name);
        return Err(Refusal::new(FailureClass::Forbidden, 403, "missing_authority", message, false)
            .with("tool", capability.name.as_str())
            .with("missing", vec![SCOPE_TRADE]));
    }
    Ok(())
}
