//! A decision card that does not fit, where arguments are not checked strictly. It is taken out of the order, so that no handler gets what
//! it cannot take, and the handler decides whether the order needs a card at all; where it does, what is said is what was wrong with the
//! card. This file must never let an order through that the handler would have refused.

use super::Contract;
use super::calls::CARD;
use serde_json::Value;
use std::borrow::Cow;
use traderharness_contract::definition::IssueKind;
use traderharness_contract::json::prefix;
use traderharness_contract::version::Behaviour;
use traderharness_contract::{ErrorCode, Issue, Outcome};
use traderharness_tools_exec::Refusal;
use traderharness_tools_exec::decision_card::{CardRefusal, DecisionCard};

/// Characters of a wrong word that are quoted back.
const WORD: usize = 60;

/// What was taken out of an order, and what it is refused with if it needs a card.
#[derive(Debug)]
pub(crate) struct SetAside {
    card: Option<Value>,
    refusal: CardRefusal,
}

impl SetAside {
    /// The order as it was sent.
    pub(crate) fn whole<'a>(&self, args: &'a Value) -> Cow<'a, Value> {
        let mut whole = Cow::Borrowed(args);
        if let Some(card) = &self.card {
            whole.to_mut()[CARD] = card.clone();
        }
        whole
    }

    /// Puts what was wrong with the card in the place of the handler's word that there was none.
    pub(crate) fn tell(self, outcome: &mut Outcome) {
        if let Outcome::Failed(failure) = outcome
            && failure.code == ErrorCode::DecisionCardMissingFields
        {
            *failure = Refusal::from(self.refusal).into();
        }
    }
}

impl Contract {
    /// Takes the decision card out of an order when it is all that does not fit; also notes an order without one. `None` leaves the order as
    /// it was: then the faults are for the model to read.
    pub(crate) fn set_aside(&self, tool: &str, order: &mut Value, issues: &[Issue]) -> Option<SetAside> {
        if tool != "place_order" || self.has(Behaviour::StrictArguments) || !self.has(Behaviour::DecisionCardSection) {
            return None;
        }
        let order = order.as_object_mut()?;
        let places: Option<Vec<&str>> = issues.iter().map(|issue| inside(&issue.path)).collect();
        let places = places?;
        if !order.contains_key(CARD) {
            let refusal = CardRefusal::MissingFields { fields: self.card_fields().collect() };
            return issues.is_empty().then_some(SetAside { card: None, refusal });
        }
        if issues.is_empty() {
            return None;
        }
        let card = order.shift_remove(CARD)?;
        let said = |field: &str| card.get(field).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let lacks = |field: &&str| {
            let faults = || places.iter().zip(issues).filter(|(place, _)| place.split('/').next() == Some(*field));
            card.get(*field).is_none() || faults().any(|(_, issue)| issue.kind == IssueKind::Missing || said(field).is_none())
        };
        let fields: Vec<&'static str> = self.card_fields().filter(lacks).collect();
        let wrong = || self.card_fields().find(|field| places.contains(field));
        let refusal = match (fields.is_empty(), wrong()) {
            (true, Some(field)) => CardRefusal::Semantic {
                field,
                got: prefix(said(field).unwrap_or_default(), WORD).to_owned(),
                accepted: self.accepted(field),
            },
            _ => CardRefusal::MissingFields { fields },
        };
        Some(SetAside { card: Some(card), refusal })
    }

    /// Fields of a card that the agent was told of.
    fn card_fields(&self) -> impl Iterator<Item = &'static str> {
        let young = !self.has(Behaviour::DecisionCardEntrySetup);
        DecisionCard::FIELDS.into_iter().filter(move |field| !(young && YOUNG.contains(field)))
    }

    /// The words that the agent was told of for a field.
    fn accepted(&self, field: &str) -> String {
        let told = self.tool("place_order").and_then(|tool| {
            tool.parameters.pointer(&format!("/properties/{CARD}/properties/{field}/enum")).and_then(Value::as_array)
        });
        let words: Vec<String> = told.into_iter().flatten().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        if words.is_empty() { "one of its words".to_owned() } else { words.join(" or ") }
    }
}

/// Fields that came with the card of 24.
const YOUNG: [&str; 2] = [DecisionCard::SETUP, "business_fit_basis"];

/// Place inside the card; empty for the card itself, `None` outside of it.
fn inside(path: &str) -> Option<&str> {
    let rest = path.strip_prefix('/')?.strip_prefix(CARD)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}
