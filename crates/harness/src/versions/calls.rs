//! What an earlier version does otherwise with a call: what arguments become before they are checked, and what of a result is read.
//! Rule 6 of the design holds under every version: what a handler's types cannot take is a failure before the handler.

use super::Contract;
use serde_json::Value;
use traderharness_contract::version::Behaviour;
use traderharness_contract::version::legacy::{self, Call, RunDay};
use traderharness_contract::{Definition, Issue, Outcome, ToolFailure};
use traderharness_tools_exec::decision_card::DecisionCard;

/// What of a result is kept and read, where it is not the v5 envelope.
pub(crate) struct Said {
    /// The whole result.
    pub(crate) result: Value,
    /// What the model reads.
    pub(crate) text: String,
    /// Whether `text` was cut.
    pub(crate) truncated: bool,
    /// Whether `text` is something else than `result` written down, so that it has to be kept beside it.
    pub(crate) shown: bool,
}

impl Contract {
    /// Arguments as they are checked: as they came, or brought into the types, bounds and words of today's handlers.
    pub(crate) fn arguments(&self, definition: &Definition, args: Value, day: RunDay) -> Value {
        let name = definition.spec.name;
        let Some(tool) = self.tool(name).filter(|_| !self.has(Behaviour::StrictArguments)) else { return args };
        let args = legacy::arguments(name, legacy::known(tool, args), &self.flags, day);
        let mut args = legacy::coerce(&definition.input_schema, &args);
        if let Some(order) = args.as_object_mut().filter(|_| name == "place_order") {
            if !self.has(Behaviour::DecisionCardSection) {
                order.shift_remove(CARD);
            } else if !self.has(Behaviour::DecisionCardEntrySetup)
                && let Some(card) = order.get_mut(CARD).and_then(Value::as_object_mut)
            {
                card.insert(DecisionCard::SETUP.to_owned(), DecisionCard::ANY_SETUP.as_str().into());
            }
        }
        args
    }

    /// What is wrong with arguments. Where no correction is read, which is the place of a long list, every fault is in the reason.
    pub(crate) fn unfit(&self, definition: &Definition, issues: &[Issue]) -> ToolFailure {
        let mut failure = definition.invalid(issues);
        if !self.has(Behaviour::FailureEnvelope) {
            let words: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
            failure.message = format!("Invalid arguments for {}: {}.", definition.spec.name, words.join(". "));
        }
        failure
    }

    /// Changes the payload of a success, masked already, to what the version gave.
    pub(crate) fn payload(&self, tool: &str, outcome: &mut Outcome, received: &Value, day: RunDay) {
        if let Outcome::Complete(payload) | Outcome::Partial(payload) = outcome {
            legacy::payload(tool, payload, &self.flags, day);
            legacy::echo(tool, payload, received, &self.flags);
        }
    }

    /// What is kept and read of an outcome; `None` where it is the v5 envelope within its size budget.
    pub(crate) fn said(&self, outcome: &Outcome, tool: &str, reads: bool, example: &Value, received: &Value) -> Option<Said> {
        let ours = [Behaviour::SuccessField, Behaviour::OrderErrorCodes, Behaviour::FailureEnvelope, Behaviour::ValidJsonBudget];
        if ours.iter().all(|flag| self.has(*flag)) {
            return None;
        }
        let read_only = self.tool(tool).map_or(reads, |tool| tool.read_only);
        let result = legacy::render(outcome, &Call { tool, read_only, example, received }, &self.flags);
        let (text, truncated) = legacy::model_text(&result, read_only, &self.flags);
        let shown = truncated || text != traderharness_contract::json::text(&result);
        Some(Said { result, text, truncated, shown })
    }

    /// Whether a call of this tool runs before those of its message that change something. A name that is no tool waits for nothing.
    pub(crate) fn reads_first(&self, tool: &str, reads: bool) -> bool {
        self.has(Behaviour::ReadsFirst) && self.tool(tool).map_or(reads, |tool| tool.read_only)
    }
}

/// Field of the order that holds the decision card.
pub(super) const CARD: &str = "decision_card";
