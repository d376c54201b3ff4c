//! Steps 1 to 5 of a call: parse, resolve, validate, disambiguate and unmask, admit. Nothing runs here.

use super::RawArguments;
use crate::Session;
use crate::correction::Unfit;
use crate::masking::unmask_arguments;
use crate::phase::COMPLETION_TOOLS;
use crate::plugin::PlugInAnswer;
use crate::toolbox::BoundTool;
use crate::versions::SetAside;
use serde_json::{Value, json};
use std::borrow::Cow;
use traderharness_contract::definition::Note;
use traderharness_contract::json::canonical;
use traderharness_contract::{Effect, ErrorCode, Repeat, ToolFailure};

/// A call on its way: everything known before the handler runs.
pub(super) struct Admitted<'t> {
    pub(super) tool: &'t BoundTool,
    pub(super) args: Value,
    /// A decision card that the handler could not take ([`crate::Contract`] without strict arguments).
    pub(super) aside: Option<SetAside>,
    /// Id the model gave the call.
    pub(super) id: String,
    /// What answered from outside, when it was asked together with its neighbours ([`Session::call_batch`]).
    pub(super) asked: Option<PlugInAnswer>,
}

impl Session {
    pub(super) fn admit<'t>(
        &mut self,
        id: &str,
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
        let tool = self.resolve(toolbox, name).map_err(|exists| self.unresolved(name, exists))?;
        let spec = tool.bound.spec();
        let args = parsed?;

        // 3. Validate, before anything looks at a code.
        let args = self.contract().arguments(&tool.definition, args, self.run_day());
        let mut normalised = tool.definition.normalise(args);
        notes.extend(normalised.notes);
        let mut fits = tool.definition.validate(&normalised.args);
        let issues = fits.as_ref().err().map_or(&[][..], Vec::as_slice);
        let aside = self.contract().set_aside(name, &mut normalised.args, issues);
        if aside.is_some() {
            fits = tool.definition.validate(&normalised.args);
        }
        if let Err(issues) = fits {
            return Err(self.contract().unfit(&tool.definition, &issues));
        }

        // 4. Disambiguate and unmask whole code fields.
        let args = unmask_arguments(&tool.definition.input_plan, &normalised.args, &self.view())?;

        // 5. Admit.
        if self.phase.completed.is_some() {
            return Err(self.unavailable(name, "The phase was completed earlier in this message; this call was not run."));
        }
        if !self.contract().offers(name, self.clock.point) {
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
        // What the agent stated, whatever of it can be run.
        let stated = aside.as_ref().map_or(Cow::Borrowed(&args), |aside| aside.whole(&args));
        if name == "place_order" {
            self.corrections.admit_order(&stated)?;
        }
        if spec.repeat == Repeat::OncePerMessage {
            // The order of its fields makes no other call.
            let key = (name.to_owned(), canonical(&stated).to_string());
            if self.message_effects.contains(&key) {
                return Err(ToolFailure::new(
                    ErrorCode::DuplicateCall,
                    format!("An equal {name} call was already made in this message; it was not run again."),
                    "Read the result of the first call; send a new message if you really want to repeat it.",
                ));
            }
            self.message_effects.push(key);
        }
        Ok(Admitted { tool, args, aside, id: id.to_owned(), asked: None })
    }

    fn unresolved(&self, name: &str, exists: bool) -> ToolFailure {
        let names: Vec<&str> = self.offered().map(|t| t.bound.spec().name).collect();
        if let Some(failure) = self.config.toolbox.absent(name) {
            return failure.with("available_tools", json!(names));
        }
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
            .with_facts(self.config.toolbox.incomplete())
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
