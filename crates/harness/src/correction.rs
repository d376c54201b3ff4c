//! Controlled corrections of an opening buy (engine E10.8). When plan or decision card of an order need repair, the next turn offers the
//! order, the tools whose results are missing, and the completion tool, and the corrected order says the same thing as the first one.
//!
//! A correction repairs form and evidence. It never gives a second opinion: what the first card stated stays stated for the rest of
//! the decision point, also after the correction itself is over.

use crate::phase::COMPLETION_TOOLS;
use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_tools_exec::decision_card::LOCKED_FIELDS;

/// Corrections per day under the phase protocol.
pub const CORRECTIONS_WITH_PROTOCOL: u32 = 6;

/// Corrections per day of a card without it.
pub const CORRECTIONS_WITHOUT_PROTOCOL: u32 = 2;

/// `retry_kind` of a failure that opens a correction.
const KIND: &str = "decision_card_correction";

/// The tool that is corrected.
const ORDER: &str = "place_order";

/// Order fields that a correction may not change.
const ORDER_FIELDS: [&str; 3] = ["action", "stock_code", "quantity"];

/// An order that needs repair.
#[derive(Debug, Clone)]
struct Faulty {
    /// Its arguments, in real codes.
    args: Value,
    missing_tools: Vec<String>,
    /// The correction is still to come; afterwards only what was stated is kept.
    open: bool,
}

/// What happened in a correction turn so far.
#[derive(Debug, Clone, Default)]
struct Turn {
    ordered: bool,
    calls: u32,
}

/// Corrections of a day.
#[derive(Debug, Clone, Default)]
pub(crate) struct Corrections {
    faulty: Vec<Faulty>,
    turn: Option<Turn>,
    used: u32,
}

/// Why a call does not fit a correction turn.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// Not one of its tools.
    Tool,
    /// A second order.
    SecondOrder,
}

impl Corrections {
    /// A new day: nothing is open and nothing is used.
    pub(crate) fn start_day(&mut self) {
        *self = Self::default();
    }

    /// A new decision point: prices moved, so what was stated is no longer binding.
    pub(crate) fn next_point(&mut self) {
        self.faulty.clear();
        self.turn = None;
    }

    /// The end of an assistant message. Where no completion tool could end the correction, a turn that did nothing for it gives it up.
    pub(crate) fn end_message(&mut self, can_complete: bool) {
        let idle = self.turn.take().is_some_and(|turn| turn.calls == 0 && !turn.ordered);
        if idle && !can_complete {
            self.faulty.iter_mut().for_each(|f| f.open = false);
        }
    }

    /// A new assistant message: a correction turn while a correction is open.
    pub(crate) fn begin_message(&mut self) {
        self.turn = self.is_open().then(Turn::default);
    }

    fn is_open(&self) -> bool {
        self.faulty.iter().any(|f| f.open)
    }

    /// Whether a tool is offered while a correction is open.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let missing = || self.faulty.iter().filter(|f| f.open).any(|f| f.missing_tools.iter().any(|name| name == tool));
        !self.is_open() || tool == ORDER || COMPLETION_TOOLS.contains(&tool) || missing()
    }

    /// Whether a call fits the current turn; notes it when it does.
    pub(crate) fn admit(&mut self, tool: &str) -> Result<(), Unfit> {
        let offered = self.offers(tool);
        let Some(turn) = &mut self.turn else { return Ok(()) };
        if tool == ORDER {
            if std::mem::replace(&mut turn.ordered, true) {
                return Err(Unfit::SecondOrder);
            }
        } else if !offered {
            return Err(Unfit::Tool);
        } else {
            turn.calls += 1;
        }
        Ok(())
    }

    /// Compares an order with the faulty one it corrects, and counts it as a correction.
    ///
    /// # Errors
    /// `decision_card_correction_changed_semantics`; the correction is then over.
    pub(crate) fn admit_order(&mut self, args: &Value) -> Result<(), ToolFailure> {
        let same = self.faulty.iter().position(|f| f.args.get("stock_code") == args.get("stock_code"));
        // In a correction turn every order is the correction, also one of another security.
        let first = || self.turn.as_ref().and_then(|_| self.faulty.iter().position(|f| f.open));
        let Some(faulty) = same.or_else(first).map(|i| &mut self.faulty[i]) else { return Ok(()) };
        let changed = changed(&faulty.args, args);
        if changed.is_empty() {
            self.used += u32::from(faulty.open);
            return Ok(());
        }
        faulty.open = false;
        Err(ToolFailure::new(
            ErrorCode::DecisionCardCorrectionChangedSemantics,
            format!("The corrected order says something else than the first one: {}.", changed.join(", ")),
            "A correction repairs form and evidence only. Leave this security for this decision point; give up the open failure in \
             abandon_error_codes of the completion call.",
        )
        .with("changed_fields", changed)
        .with("semantic_fields_must_not_change", json!(LOCKED_FIELDS)))
    }

    /// Books what became of an order: opens a correction, ends one, or turns its failure into the last one.
    pub(crate) fn settle(&mut self, args: &Value, failure: Option<&mut ToolFailure>, protocol: bool) {
        let place = self.faulty.iter().position(|f| f.args.get("stock_code") == args.get("stock_code"));
        let Some(failure) = failure else {
            place.map(|i| self.faulty.remove(i));
            return;
        };
        let repairable = failure.retryable() && failure.correction.get("retry_kind").is_some_and(|kind| kind == KIND);
        if !repairable {
            if let Some(i) = place {
                self.faulty[i].open = false;
            }
            return;
        }
        let limit = if protocol { CORRECTIONS_WITH_PROTOCOL } else { CORRECTIONS_WITHOUT_PROTOCOL };
        let names = failure.correction.get("missing_tools").and_then(Value::as_array);
        let missing_tools = names.into_iter().flatten().filter_map(|t| t.as_str().map(str::to_owned)).collect();
        let open = self.used < limit;
        if !open {
            failure.correction.shift_remove("retry_kind");
            failure.correction.insert("corrections_per_day".into(), limit.into());
            failure.correction.insert("last_error_code".into(), failure.code.as_str().into());
            failure.message = format!("{} The {limit} corrections of this day are used up.", failure.message);
            failure.instruction =
                "Leave this security today; give up the open failure in abandon_error_codes of the completion call.".to_owned();
            failure.code = ErrorCode::DecisionCardCorrectionRetryLimit;
            failure.retryable = None;
        }
        let faulty = Faulty { args: args.clone(), missing_tools, open };
        match place {
            Some(i) => self.faulty[i] = faulty,
            None => self.faulty.push(faulty),
        }
    }
}

/// Fields the first order stated and the second states otherwise. What was absent or blank stated nothing yet.
fn changed(first: &Value, second: &Value) -> Vec<String> {
    let stated = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        _ => true,
    };
    let differs = |a: Option<&Value>, b: Option<&Value>| a.is_some_and(|a| stated(a) && b != Some(a));
    let mut fields: Vec<String> =
        ORDER_FIELDS.iter().filter(|f| differs(first.get(**f), second.get(**f))).map(|f| (*f).to_owned()).collect();
    let card = |order: &'_ Value, field: &str| order.get("decision_card").and_then(|c| c.get(field)).cloned();
    for field in LOCKED_FIELDS {
        if differs(card(first, field).as_ref(), card(second, field).as_ref()) {
            fields.push(format!("decision_card.{field}"));
        }
    }
    fields
}
