//! Calls that something outside this process answers, as far as several of them are concerned: which run at the same time, and which
//! need not run because an equal one was answered. How one is asked and kept stands in `external`.

use super::admit::Admitted;
use super::{BatchCall, Begun};
use crate::plugin::{ExternalTool, PlugInAnswer};
use crate::toolbox::{Bound, BoundTool};
use crate::{Session, Toolbox};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use traderharness_contract::Outcome;
use traderharness_contract::json::{canonical, text};
use traderharness_market::Clock;

/// Calls that are outside at the same time at most (spec/seeds.md B5.1).
pub const TOGETHER: usize = 8;

/// Tool and arguments, without regard to the order of fields.
type Question = (String, String);

/// Answers of deterministic plug-in tools at the current clock (spec/seeds.md B7.4).
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered {
    clock: Option<Clock>,
    answers: BTreeMap<Question, Outcome>,
}

fn external_read(tool: &BoundTool) -> Option<&Arc<ExternalTool>> {
    match &tool.bound {
        Bound::External(external) if external.spec().effect.is_read() => Some(external),
        _ => None,
    }
}

/// The question of a call whose answer may be given again.
fn question(admitted: &Admitted<'_>) -> Option<Question> {
    let external = external_read(admitted.tool)?;
    external.is_deterministic().then(|| (external.spec().name.to_owned(), text(&canonical(&admitted.args))))
}

/// One question on its way.
struct Job<'a> {
    at: usize,
    tool: Arc<ExternalTool>,
    id: &'a str,
    args: &'a Value,
}

impl Session {
    /// Whether a batch has calls to ask at the same time: nothing in it changes anything, and two or more go outside.
    pub(super) fn runs_together(&self, toolbox: &Toolbox, calls: &[BatchCall<'_>]) -> bool {
        let tools = calls.iter().map(|call| self.resolve(toolbox, call.name).ok());
        let mut outside = 0;
        for tool in tools {
            match tool {
                Some(tool) if tool.bound.spec().effect.is_read() => outside += usize::from(external_read(tool).is_some()),
                _ => return false,
            }
        }
        outside > 1
    }

    /// Asks what has to be asked of a batch, at most [`TOGETHER`] at a time, and leaves each answer with its call. Answers that are kept
    /// or known are not asked for.
    pub(super) fn ask_together(&mut self, begun: &mut [Begun<'_>]) {
        let mut asked = BTreeSet::new();
        let mut jobs = Vec::new();
        for (at, begun) in begun.iter().enumerate() {
            let Ok(admitted) = &begun.next else { continue };
            let Some(external) = external_read(admitted.tool) else { continue };
            if self.journal.kept_external(&begun.id, &begun.name).is_some() {
                continue;
            }
            if let Some(question) = question(admitted)
                && (self.remembered.answers.contains_key(&question) || !asked.insert(question))
            {
                continue;
            }
            jobs.push(Job { at, tool: Arc::clone(external), id: &begun.id, args: &admitted.args });
        }
        let cancel = self.cancel.clone();
        let answers = together(&jobs, &|job| job.tool.ask(job.id, job.args, &|| cancel.is_cancelled()));
        let places: Vec<usize> = jobs.iter().map(|job| job.at).collect();
        for (at, answer) in places.into_iter().zip(answers) {
            if let Ok(admitted) = &mut begun[at].next {
                admitted.asked = answer;
            }
        }
    }

    /// The answer that an equal call got at this clock, marked as given again.
    pub(super) fn remembered(&self, admitted: &Admitted<'_>) -> Option<Outcome> {
        if self.remembered.clock != Some(self.clock) {
            return None;
        }
        let mut outcome = self.remembered.answers.get(&question(admitted)?)?.clone();
        if let Outcome::Complete(payload) | Outcome::Partial(payload) = &mut outcome {
            payload.insert("cached".into(), true.into());
        }
        Some(outcome)
    }

    /// Runs the handler of a call, and keeps the answer where an equal call may be given it again: successes only.
    pub(super) fn handle_remembering(&mut self, admitted: Admitted<'_>) -> Result<Outcome, crate::SessionError> {
        let question = question(&admitted);
        let outcome = match &admitted.tool.bound {
            Bound::External(external) => self.handle_external(&admitted.id, external, &admitted)?,
            _ => self.handle(admitted)?,
        };
        if let Some(question) = question
            && outcome.payload().is_some()
        {
            if self.remembered.clock != Some(self.clock) {
                self.remembered = Remembered { clock: Some(self.clock), answers: BTreeMap::new() };
            }
            self.remembered.answers.insert(question, outcome.clone());
        }
        Ok(outcome)
    }
}

/// Works on the jobs, a few at a time; the answers are in the order of the jobs, whoever was ready first.
fn together<J: Sync>(jobs: &[J], work: &(dyn Fn(&J) -> PlugInAnswer + Sync)) -> Vec<Option<PlugInAnswer>> {
    if let [one] = jobs {
        return vec![Some(work(one))];
    }
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<Option<PlugInAnswer>>> = Mutex::new(vec![None; jobs.len()]);
    let worker = || {
        while let Some((at, job)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, jobs.get(at)?))) {
            let answer = work(job);
            answers.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(answer);
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "waiting for other processes only; answers are put into the order of the calls"
    )]
    std::thread::scope(|scope| {
        for _ in 0..jobs.len().min(TOGETHER) {
            scope.spawn(worker);
        }
    });
    answers.into_inner().unwrap_or_else(PoisonError::into_inner)
}
