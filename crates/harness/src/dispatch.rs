//! The way a tool call travels: the ten steps of DESIGN, in one function, whichever door the call came in by.

use crate::Session;
use crate::correction::Unfit;
use crate::masking::{FieldMask, unmask_arguments};
use crate::phase::{COMPLETION_TOOLS, is_offered};
use crate::session::SessionError;
use crate::toolbox::{BoundTool, Contexts};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use traderharness_contract::budget::{OldestFirst, RESULT_LIMIT};
use traderharness_contract::definition::Note;
use traderharness_contract::json::canonical;
use traderharness_contract::{Effect, Envelope, ErrorCode, Outcome, Repeat, ToolFailure};
use traderharness_market::{Code, Side, View};
use traderharness_replay::Record;
use traderharness_tools_exec::{Control, ExecCtx, Fill, Origin};
use traderharness_tools_market::MarketCtx;

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
    /// Full result.
    pub envelope: Envelope,
    /// What the model reads: the envelope within the size budget, always valid JSON.
    pub text: String,
    /// True when `text` was compacted.
    pub truncated: bool,
    /// Failure code.
    pub code: Option<ErrorCode>,
    /// What was put into normal form before validation: nulls of optional fields, JSON strings for arrays. The model reads it too.
    pub notes: Vec<Note>,
}

/// A call on its way: everything known before the handler runs.
struct Admitted<'t> {
    tool: &'t BoundTool,
    args: Value,
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
        if !self.started {
            return Err(SessionError::NotStarted);
        }
        if self.defect {
            return Err(SessionError::Stopped);
        }
        // A name nobody could have is quoted back only as far as a reader needs it.
        let name = name.char_indices().nth(NAME_CHARS).map_or(name, |(end, _)| &name[..end]);
        self.calls += 1;
        let call = self.calls;
        let sent = match &raw {
            RawArguments::Text(text) => (*text).to_owned(),
            RawArguments::Value(value) => value.to_string(),
        };
        let toolbox = Arc::clone(&self.config.toolbox);
        let mut notes = Vec::new();
        let mut received = Value::Null;

        // 1-5: parse, resolve, validate, disambiguate and unmask, admit.
        let admitted = self.admit(name, raw, &toolbox, &mut received, &mut notes);
        let effect = admitted.as_ref().ok().map(|a| a.tool.bound.spec().effect);
        let order = admitted.as_ref().ok().filter(|_| name == "place_order").map(|a| a.args.clone());
        self.append(Record::ToolCall { call_id: id.to_owned(), tool: name.to_owned(), arguments: sent.clone() })?;

        // 6-7: handle, mask. What is said before a handler ran holds words of the agent and visible codes, no fact of the market.
        // Masking it would tell the agent which of its own words is a code, a name or a day of this run (engine E8.5).
        let mut outcome = match admitted {
            Ok(admitted) => {
                // Until its result is recorded, nobody may say what became of an order.
                self.order_unknown |= effect == Some(Effect::Financial);
                self.handle(admitted)?
            }
            Err(failure) => stopped(failure),
        };
        self.keep_memory()?;
        if let Some(order) = order {
            let failure = if let Outcome::Failed(f) | Outcome::Blocked(f) = &mut outcome { Some(f) } else { None };
            self.corrections.settle(&order, failure, self.config.card.require_phase_completion);
        }
        let mut code = None;
        if let Outcome::Failed(failure) | Outcome::Blocked(failure) = &mut outcome {
            code = Some(failure.code);
            let repeated = self.phase.count_failure(name, &sent);
            if repeated >= 3 {
                failure.correction.insert("repeated".into(), repeated.into());
                failure.instruction = format!(
                    "This exact call has failed {repeated} times in this phase and will fail again. {}",
                    failure.instruction
                );
            }
        }

        // 8-9: envelope, budget.
        let resolved = toolbox.resolve(name).ok();
        let example = resolved.map_or_else(|| json!({}), |t| t.definition.example().clone());
        let envelope = Envelope::render(&outcome, name, &example, &received).with_notes(&notes);
        let no_order = OldestFirst::default();
        let fitted = envelope.fit(RESULT_LIMIT, resolved.map_or(&no_order, |t| &t.definition.oldest_first));
        self.phase.book(name, &envelope, code);

        // 10: record, then acknowledge.
        while let Some(fill) = self.account.fills().get(self.recorded_fills) {
            let event = self.masked_value(fill_event(fill));
            self.append(Record::Fill { event })?;
            self.recorded_fills += 1;
        }
        // A result that was cut is kept whole, with what the model read of it.
        let shown = fitted.truncated.then(|| fitted.text.clone());
        self.append(Record::tool_result(id, name, &envelope, shown))?;
        if effect == Some(Effect::Financial) {
            self.order_unknown = false;
        }
        // Every event was checked when the ledger took it; that all of them together still give the state is checked at the start of a
        // day, and after each call only where time does not matter: it grows with the run.
        if cfg!(debug_assertions) && effect.is_some_and(|e| !e.is_read()) {
            self.account.ledger().check_invariants().inspect_err(|_| self.defect = true)?;
        }
        Ok(CallReport {
            call,
            tool: name.to_owned(),
            received,
            envelope,
            text: fitted.text,
            truncated: fitted.truncated,
            code,
            notes,
        })
    }

    fn admit<'t>(
        &mut self,
        name: &str,
        raw: RawArguments<'_>,
        toolbox: &'t crate::Toolbox,
        received: &mut Value,
        notes: &mut Vec<Note>,
    ) -> Result<Admitted<'t>, ToolFailure> {
        // 1. Parse. What is not one complete JSON object is never run.
        let parsed = match raw {
            RawArguments::Value(value) => {
                *received = value.clone();
                match value {
                    Value::Object(_) => Ok(value),
                    Value::Null => Ok(json!({})),
                    _ => Err(ToolFailure::new(
                        ErrorCode::InvalidToolArgumentsJson,
                        format!("The arguments of {name} are not a JSON object."),
                        "Send one complete JSON object as the arguments; nothing was executed.",
                    )),
                }
            }
            RawArguments::Text(text) => match traderharness_contract::arguments::parse_arguments(text) {
                Ok(map) => {
                    *received = Value::Object(map);
                    Ok(received.clone())
                }
                Err(fault) => {
                    *received = Value::String(text.chars().take(500).collect());
                    Err(fault.failure(name))
                }
            },
        };

        // 2. Resolve.
        let tool = toolbox.resolve(name).map_err(|exists| self.unresolved(name, exists))?;
        let spec = tool.bound.spec();
        let args = parsed?;

        // 3. Validate, before anything looks at a code.
        let normalised = tool.definition.normalise(args);
        notes.extend(normalised.notes);
        if let Err(issues) = tool.definition.validate(&normalised.args) {
            return Err(tool.definition.invalid(&issues));
        }

        // 4. Disambiguate and unmask whole code fields.
        let args = unmask_arguments(&tool.definition.input_plan, &normalised.args, &self.view())?;

        // 5. Admit.
        if self.phase.completed.is_some() {
            return Err(self.unavailable(name, "The phase was completed earlier in this message; this call was not run."));
        }
        if !is_offered(name, self.clock.point) {
            return Err(self.unavailable(name, &format!("{name} cannot be called at {}.", self.clock.point)));
        }
        if let Some(only) = self.only.filter(|only| *only != name) {
            let mut failure = self.unavailable(name, &format!("Only {only} can be called now; {name} was not run."));
            failure.retryable = Some(false);
            return Err(failure);
        }
        match self.corrections.admit(name) {
            Ok(()) => {}
            Err(Unfit::Tool) => {
                let text = format!("{name} was not run: this turn is for the correction of an order.");
                return Err(self.unavailable(name, &text));
            }
            Err(Unfit::SecondOrder) => {
                let mut failure = self.unavailable(name, "One order is run per correction turn; this one was not.");
                failure.retryable = Some(false);
                return Err(failure);
            }
        }
        if spec.effect == Effect::Financial && self.order_unknown {
            let key = args.get("idempotency_key").and_then(Value::as_str);
            if key.is_none_or(|key| self.account.filled_under(key).is_none()) {
                return Err(ToolFailure::new(
                    ErrorCode::OrderOutcomeUnknown,
                    "An earlier order was sent and its result could not be recorded, so no further order is sent.",
                    "Send the earlier order again under its own idempotency key to get its result; call get_portfolio to see what is held.",
                ));
            }
        }
        if name == "place_order" {
            self.corrections.admit_order(&args)?;
        }
        if spec.repeat == Repeat::OncePerMessage {
            // The order of its fields makes no other call.
            let key = (name.to_owned(), canonical(&args).to_string());
            if self.message_effects.contains(&key) {
                return Err(ToolFailure::new(
                    ErrorCode::DuplicateCall,
                    format!("An equal {name} call was already made in this message; it was not run again."),
                    "Read the result of the first call; send a new message if you really want to repeat it.",
                ));
            }
            self.message_effects.push(key);
        }
        Ok(Admitted { tool, args })
    }

    /// 6-7: runs the handler on a fresh view and masks its result.
    fn handle(&mut self, admitted: Admitted<'_>) -> Result<Outcome, SessionError> {
        let Admitted { tool, args } = admitted;
        let spec = tool.bound.spec();
        let asked = args.get("stock_code").cloned().unwrap_or_default();
        let view = View::new(&self.config.store, self.clock, &self.config.mask);
        let mut control = Control { pending: self.phase.blocking(), requested: None };
        let mut contexts = Contexts {
            market: MarketCtx { view, state: &mut self.market_state },
            exec: ExecCtx {
                view,
                account: &mut self.account,
                limits: &self.limits,
                gate: self.gate.as_mut(),
                control: &mut control,
            },
        };
        // A panic is a defect of ours. In a read tool it costs that call; in an account-changing one the account is not trusted any more.
        let result = catch_unwind(AssertUnwindSafe(|| tool.invoke(&mut contexts, args)));
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
        if let Ok(payload) = &result {
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

    fn unresolved(&self, name: &str, exists: bool) -> ToolFailure {
        let names: Vec<&str> = self.offered().map(|t| t.bound.spec().name).collect();
        if exists {
            ToolFailure::new(
                ErrorCode::ToolUnavailableInPhase,
                format!("{name} is not offered to this agent."),
                "Use one of available_tools.",
            )
            .with("available_tools", json!(names))
        } else {
            ToolFailure::new(
                ErrorCode::UnknownTool,
                format!("There is no tool named `{name}`."),
                "Use one of available_tools, spelled exactly so.",
            )
            .with("available_tools", json!(names))
        }
    }

    fn unavailable(&self, name: &str, message: &str) -> ToolFailure {
        let names: Vec<&str> = self.offered().map(|t| t.bound.spec().name).filter(|n| *n != name).collect();
        let hint = if COMPLETION_TOOLS.contains(&name) {
            "complete_phase ends pre_market, open_1, open_2 and close_1; finish_day ends close_2."
        } else {
            "Call it again after the clock has moved, or use one of available_tools."
        };
        ToolFailure::new(ErrorCode::ToolUnavailableInPhase, message, hint).with("available_tools", json!(names))
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

/// Security a call is about, from its unmasked arguments.
fn security_of(stock_code: &Value) -> Option<Code> {
    stock_code.as_str().and_then(Code::parse)
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
