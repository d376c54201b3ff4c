//! Steps 6 and 7 of a call: the handler on a fresh view, and the mask over what it returned.

use super::admit::Admitted;
use super::stopped;
use crate::Session;
use crate::masking::FieldMask;
use crate::sandbox::{self, Aside, Runner};
use crate::session::SessionError;
use crate::toolbox::Bound;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use traderharness_contract::version::Behaviour;
use traderharness_contract::{ErrorCode, Outcome, ToolFailure};
use traderharness_market::{Code, View};
use traderharness_tools_exec::{CodeRunner, Control, ExecCtx};
use traderharness_tools_market::MarketCtx;

impl Session {
    /// 6-7: runs the handler on a fresh view and masks its result.
    pub(super) fn handle(&mut self, admitted: Admitted<'_>) -> Result<Outcome, SessionError> {
        let Admitted { tool, args, id, .. } = admitted;
        let spec = tool.bound.spec();
        let asked = args.get("stock_code").cloned().unwrap_or_default();
        let view = View::new(&self.config.store, self.clock, &self.config.mask);
        let finish_anywhere = self.contract().has(Behaviour::FinishDayAtEveryPoint);
        let mut control = Control { pending: self.phase.blocking(), requested: None, finish_anywhere };
        // A panic is a defect of ours. In a read tool it costs that call; in an account-changing one the account is not trusted any more.
        let result = match &tool.bound {
            Bound::Market(handler) => {
                let mut ctx = MarketCtx { view, state: &mut self.market_state };
                catch_unwind(AssertUnwindSafe(|| handler.invoke(&mut ctx, args)))
            }
            Bound::Exec(handler) => {
                // What code asks for is answered from the state of the read tools.
                let mut runner = match self.sandbox.as_mut().filter(|_| spec.name == sandbox::TOOL) {
                    Some(sandbox) => Some(Runner {
                        sandbox,
                        journal: self.journal.as_mut(),
                        call_id: &id,
                        toolbox: &self.config.toolbox,
                        state: &mut self.market_state,
                        card: &self.limits,
                        cancel: &self.cancel,
                        aside: Aside::default(),
                    }),
                    None => None,
                };
                let mut ctx = ExecCtx {
                    view,
                    account: &mut self.account,
                    limits: &self.limits,
                    gate: self.gate.as_mut(),
                    control: &mut control,
                    code: runner.as_mut().map(|runner| runner as &mut dyn CodeRunner),
                };
                let result = catch_unwind(AssertUnwindSafe(|| handler.invoke(&mut ctx, args)));
                if let Some(runner) = runner {
                    self.aside = runner.aside;
                }
                result
            }
            // Asked by the session, which keeps the answer before it is used; a plug-in never sees a context.
            Bound::External(_) => Ok(Err(internal(spec.name))),
        };
        if let Some(fault) = self.aside.fault.take() {
            return Err(fault);
        }
        let result = match result {
            Ok(result) => result,
            Err(panic) => {
                let fault = panic_text(panic.as_ref());
                if !spec.effect.is_read() {
                    self.defect = true;
                    return Err(SessionError::Defect { tool: spec.name.to_owned(), fault });
                }
                self.market_state = Default::default();
                Err(internal(spec.name))
            }
        };
        let security = security_of(&asked);
        // What an advisor read is no evidence of the agent: it has to look for itself.
        if let Ok(payload) = &result
            && self.reader.is_none()
        {
            self.account.evidence.note_call(spec.name, security, payload);
        }
        if let Some(completion) = control.requested.take() {
            self.phase.completed = Some(completion);
        }
        let mask = FieldMask { store: &self.config.store, mask: &self.config.mask, today: self.clock.day };
        let mut payload = match result {
            Ok(payload) => payload,
            Err(failure) => return Ok(stopped(mask.failure(failure))),
        };
        if self.config.check_output
            && let Err(issues) = tool.definition.validate_output(&payload)
        {
            if !spec.effect.is_read() {
                // What was done stays done; a failure would tell the agent that it was not.
                self.defect = true;
                let fault = format!("its result does not fit its output schema: {}", issues.first().map_or("", |i| &i.message));
                return Err(SessionError::Defect { tool: spec.name.to_owned(), fault });
            }
            let mut failure = internal(spec.name);
            failure.correction.insert("output_issues".into(), serde_json::to_value(&issues).unwrap_or_default());
            return Ok(Outcome::Failed(mask.failure(failure)));
        }
        tool.definition.output_plan.mask(&mut payload, &mask);
        Ok(Outcome::answered(payload))
    }
}

/// Security a call is about, from its unmasked arguments.
fn security_of(stock_code: &Value) -> Option<Code> {
    stock_code.as_str().and_then(Code::parse)
}

fn internal(tool: &str) -> ToolFailure {
    ToolFailure::new(
        ErrorCode::Internal,
        format!("A defect of the environment stopped {tool}; it is recorded."),
        "This is not an error of your call. Go on without this tool.",
    )
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".to_owned())
}
