//! The way a tool call travels: the ten steps of DESIGN, in one function, whichever door the call came in by.

mod admit;
mod external;
mod handle;
mod once;
mod outside;

pub(crate) use once::OncePerRun;
pub(crate) use outside::Remembered;
pub use outside::TOGETHER;

use crate::session::SessionError;
use crate::{Session, Toolbox};
use admit::Admitted;
use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_contract::budget::{OldestFirst, RESULT_LIMIT};
use traderharness_contract::definition::Note;
use traderharness_contract::{Effect, Envelope, ErrorCode, Outcome, Repeat, ToolFailure};
use traderharness_market::Side;
use traderharness_replay::Record;
use traderharness_sandbox::Usage;
use traderharness_tools_exec::{Fill, Origin};

/// Characters of a tool name that are quoted back.
const NAME_CHARS: usize = 80;

/// Arguments as they came through a door.
#[derive(Debug, Clone)]
pub enum RawArguments<'a> {
    /// The model's argument string, not yet parsed.
    Text(&'a str),
    /// Already a JSON value (MCP, HTTP, Python).
    Value(Value),
}

/// What one call led to.
#[derive(Debug, Clone)]
pub struct CallReport {
    /// Number of the call in the session, from 1.
    pub call: u64,
    /// Tool name as sent.
    pub tool: String,
    /// Arguments as the agent sent them.
    pub received: Value,
    /// Full result, in the shape of v5 whatever the contract version of the session is.
    pub envelope: Envelope,
    /// What the model reads: the envelope within the size budget, always valid JSON; under an earlier contract version what that says.
    pub text: String,
    /// True when `text` was compacted.
    pub truncated: bool,
    /// Failure code.
    pub code: Option<ErrorCode>,
    /// Effect class of the tool that ran; `None` when nothing ran.
    pub effect: Option<Effect>,
    /// What was put into normal form before validation: nulls of optional fields, JSON strings for arrays. The model reads it too.
    pub notes: Vec<Note>,
    /// What code used. Measured, so it stands in no result, record or recording.
    pub usage: Option<Usage>,
    /// Why the sandbox did not run as it should, for a person; may name paths of the machine.
    pub host_note: Option<String>,
}

/// One call of an assistant message, for [`Session::call_batch`].
#[derive(Debug, Clone)]
pub struct BatchCall<'a> {
    /// Id the model gave the call.
    pub id: &'a str,
    /// Tool name as sent.
    pub name: &'a str,
    /// Arguments as sent.
    pub arguments: RawArguments<'a>,
}

/// A call between its admission and its answer.
struct Begun<'t> {
    call: u64,
    id: String,
    name: String,
    sent: String,
    received: Value,
    notes: Vec<Note>,
    /// What runs, or what the call is answered without running.
    next: Result<Admitted<'t>, Outcome>,
    /// Its place in the repeat guard.
    armed: Option<once::Key>,
    effect: Option<Effect>,
    /// Arguments of an order, in real codes.
    order: Option<Value>,
}

impl Session {
    /// Runs one tool call through all ten steps and records it before it is answered.
    ///
    /// # Errors
    /// [`SessionError`] when the record cannot be kept or the account is no longer trusted. A failed call is `Ok` with a failure envelope.
    pub fn call(&mut self, name: &str, raw: RawArguments<'_>) -> Result<CallReport, SessionError> {
        let id = format!("call-{}", self.calls + 1);
        self.call_as(&id, name, raw)
    }

    /// As [`Session::call`], under the id that the model gave the call.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn call_as(&mut self, id: &str, name: &str, raw: RawArguments<'_>) -> Result<CallReport, SessionError> {
        let toolbox = Arc::clone(&self.config.toolbox);
        let begun = self.begin(id, name, raw, &toolbox)?;
        self.settle(begun, &toolbox)
    }

    /// Runs neighbouring calls of one message that only read ([`Session::is_read`]); reports come in the order of the calls.
    ///
    /// Our own handlers take microseconds and run here, one after the other. Where two or more calls go outside, all calls are admitted
    /// first and those that go outside are asked at the same time; then each is recorded and settled in the order of the calls, as if
    /// they had been made one after the other. What is recorded and answered never depends on who was ready first (spec/seeds.md B5.2,
    /// D9), and a read that was asked and not recorded is asked again by a resumed run.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn call_batch(&mut self, calls: Vec<BatchCall<'_>>) -> Result<Vec<CallReport>, SessionError> {
        let toolbox = Arc::clone(&self.config.toolbox);
        if !self.runs_together(&toolbox, &calls) {
            return calls
                .into_iter()
                .map(|call| {
                    let begun = self.begin(call.id, call.name, call.arguments, &toolbox)?;
                    self.settle(begun, &toolbox)
                })
                .collect();
        }
        let mut begun = Vec::with_capacity(calls.len());
        for call in calls {
            begun.push(self.begin(call.id, call.name, call.arguments, &toolbox)?);
        }
        self.ask_together(&mut begun);
        begun.into_iter().map(|begun| self.settle(begun, &toolbox)).collect()
    }

    /// Steps 1 to 5.
    fn begin<'t>(
        &mut self,
        id: &str,
        name: &str,
        raw: RawArguments<'_>,
        toolbox: &'t Toolbox,
    ) -> Result<Begun<'t>, SessionError> {
        if !self.started {
            return Err(SessionError::NotStarted);
        }
        if self.defect {
            return Err(SessionError::Stopped);
        }
        // A name nobody could have is quoted back only as far as a reader needs it.
        let name = name.char_indices().nth(NAME_CHARS).map_or(name, |(end, _)| &name[..end]);
        self.calls += 1;
        let sent = match &raw {
            RawArguments::Text(text) => (*text).to_owned(),
            RawArguments::Value(value) => value.to_string(),
        };
        let mut notes = Vec::new();
        let mut received = Value::Null;
        let admitted = self.admit(id, name, raw, toolbox, &mut received, &mut notes);
        let effect = admitted.as_ref().ok().map(|a| a.tool.bound.spec().effect);
        let order = admitted.as_ref().ok().filter(|_| name == "place_order").map(|a| match &a.aside {
            Some(aside) => aside.whole(&a.args).into_owned(),
            None => a.args.clone(),
        });
        let mut armed = None;
        let next = match admitted {
            Ok(admitted) if admitted.tool.bound.spec().repeat == Repeat::OncePerRun => {
                match self.once.arm(name, &admitted.args) {
                    Ok(key) => {
                        armed = Some(key);
                        Ok(admitted)
                    }
                    Err(instead) => Err(instead),
                }
            }
            Ok(admitted) => Ok(admitted),
            // What is said before a handler ran holds words of the agent and visible codes, no fact of the market. Masking it would tell
            // the agent which of its own words is a code, a name or a day of this run (engine E8.5).
            Err(failure) => Err(stopped(failure)),
        };
        Ok(Begun {
            call: self.calls,
            id: id.to_owned(),
            name: name.to_owned(),
            sent,
            received,
            notes,
            next,
            armed,
            effect,
            order,
        })
    }

    /// The record that the call was made, then steps 6 to 10.
    fn settle(&mut self, begun: Begun<'_>, toolbox: &Toolbox) -> Result<CallReport, SessionError> {
        let Begun { call, id, name, sent, received, notes, next, armed, effect, order } = begun;
        let ran = next.is_ok();
        let by = self.reader.as_ref().map(|reader| reader.scope.clone());
        self.append(Record::ToolCall { scope: by.clone(), call_id: id.clone(), tool: name.clone(), arguments: sent.clone() })?;
        // 6-7: handle, mask.
        let mut outcome = match next {
            Ok(mut admitted) => {
                let aside = admitted.aside.take();
                // Until its result is recorded, nobody may say what became of an order.
                self.order_unknown |= effect == Some(Effect::Financial);
                let mut outcome = match self.remembered(&admitted) {
                    Some(again) => again,
                    None => self.handle_remembering(admitted)?,
                };
                if let Some(aside) = aside {
                    aside.tell(&mut outcome);
                }
                outcome
            }
            Err(instead) => instead,
        };
        if let Some(key) = &armed {
            self.once.settle(key, &outcome);
        }
        self.keep_memory()?;
        // An abort is no answer: nothing of it is shown to the model (spec/seeds.md A4.7).
        if let Outcome::Abort { reason } = &outcome {
            return Err(SessionError::Aborted { tool: name, reason: reason.clone() });
        }
        if let Some(order) = order {
            let failure = match &mut outcome {
                Outcome::Failed(failure) | Outcome::Blocked(failure) => Some(failure),
                _ => None,
            };
            self.corrections.settle(&order, failure, self.has_protocol());
        }
        let mut code = None;
        if let Outcome::Failed(failure) | Outcome::Blocked(failure) = &mut outcome {
            code = Some(failure.code);
            let repeated = self.phase.count_failure(&name, &sent);
            if repeated >= 3 {
                failure.correction.insert("repeated".into(), repeated.into());
                failure.instruction = format!(
                    "This exact call has failed {repeated} times in this phase and will fail again. {}",
                    failure.instruction
                );
            }
        }

        // 8-9: envelope, budget.
        self.contract().payload(&name, &mut outcome, &received, self.run_day());
        let resolved = self.resolve(toolbox, &name).ok();
        let example = resolved.map_or_else(|| json!({}), |t| t.definition.example().clone());
        let envelope = Envelope::render(&outcome, &name, &example, &received).with_notes(&notes);
        let no_order = OldestFirst::default();
        // What an earlier version says in the envelope's place. Counts, phases and hosts go by the envelope under every version.
        let reads = resolved.is_none_or(|t| t.bound.spec().effect.is_read());
        let said = self.contract().said(&outcome, &name, reads, &example, &received);
        let (text, truncated) = match &said {
            None => {
                let fitted = envelope.fit(RESULT_LIMIT, resolved.map_or(&no_order, |t| &t.definition.oldest_first));
                (fitted.text, fitted.truncated)
            }
            Some(said) => (said.text.clone(), said.truncated),
        };
        self.phase.book(&name, &envelope, code);

        // 10: record, then acknowledge.
        while let Some(fill) = self.account.fills().get(self.recorded_fills) {
            let event = self.masked_value(fill_event(fill));
            self.append(Record::Fill { event })?;
            self.recorded_fills += 1;
        }
        // A result that was cut is kept whole, with what the model read of it.
        let shown = said.as_ref().map_or(truncated, |said| said.shown).then(|| text.clone());
        let mut record = Record::tool_result(&id, &name, &envelope, shown).called_by(by);
        if let (Some(said), Record::ToolResult { result, .. }) = (said, &mut record) {
            *result = said.result;
        }
        self.append(record)?;
        if effect == Some(Effect::Financial) {
            self.order_unknown = false;
        }
        // Every event was checked when the ledger took it; that all of them together still give the state is checked at the start of a
        // day, and after each call only where time does not matter: it grows with the run.
        if cfg!(debug_assertions) && effect.is_some_and(|e| !e.is_read()) {
            self.account.ledger().check_invariants().inspect_err(|_| self.defect = true)?;
        }
        let aside = std::mem::take(&mut self.aside);
        Ok(CallReport {
            call,
            tool: name,
            received,
            envelope,
            text,
            truncated,
            code,
            effect: effect.filter(|_| ran),
            notes,
            usage: aside.usage,
            host_note: aside.note,
        })
    }
}

/// A failed call, or a blocked one: the codes of an order that was stopped in front of the market.
fn stopped(failure: ToolFailure) -> Outcome {
    match failure.code {
        ErrorCode::OrderGateHalted
        | ErrorCode::OrderGateDenied
        | ErrorCode::OrderGateReauthorization
        | ErrorCode::OrderOutcomeUnknown => Outcome::Blocked(failure),
        _ => Outcome::Failed(failure),
    }
}

/// A fill as the trajectory keeps it.
pub(crate) fn fill_event(fill: &Fill) -> Value {
    json!({
        "number": fill.number,
        "stock_code": fill.security.to_string(),
        "side": if fill.side == Side::Buy { "buy" } else { "sell" },
        "quantity": fill.shares.0,
        "price": fill.price.to_f64(),
        "amount": fill.amount.to_f64(),
        "fees": { "commission": fill.fees.commission.to_f64(), "stamp_duty": fill.fees.stamp_duty.to_f64(), "transfer": fill.fees.transfer.to_f64() },
        "bar_end": fill.bar_end.to_string(),
        "band_rule": fill.rules.band,
        "cash_after": fill.cash_after.to_f64(),
        "origin": match &fill.origin {
            Origin::Agent => Value::Null,
            Origin::Condition { order_id, .. } => json!(order_id),
        },
    })
}
