//! [`GateRefusal`]: what an agent reads when the gate holds an order back (spec/seeds.md B16.3). It never holds a day or a code.

use super::host::Halt;
use super::verdict::{Breach, Structural};
use serde_json::{Value, json};
use traderharness_contract::ErrorCode;

/// Why the gate held an order back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
#[non_exhaustive]
pub enum GateReason {
    #[error("The owner's consent does not begin before a later day.")]
    NotYetInForce,
    #[error("The owner's consent has ended.")]
    Expired,
    #[error("{}", match .0 {
        Halt::Unreadable => "The kill switch cannot be read, which counts as set.",
        Halt::Channel => "The kill switch of this channel is set.",
        _ => "The kill switch of all channels is set.",
    })]
    Halted(Halt),
    #[error("An earlier decision of the order gate could not be recorded, so no order is sent any more.")]
    Latched,
    #[error("The order could not be recorded before it was sent, so it was not sent.")]
    IntentUnrecorded,
    #[error("An equal order was sent and what became of it is not known, so it is not sent again.")]
    OutcomeUnknown,
    #[error("{0}")]
    Structural(Structural),
    #[error(
        "The order would bring `{}` to {} and the owner's mandate sets {}.",
        .0.limit.as_str(), .0.limit.text(.0.attempted_value), .0.limit.text(.0.limit_value)
    )]
    Breach(Breach),
}

/// An order the gate held back. Nothing of the account has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct GateRefusal {
    /// Why.
    pub reason: GateReason,
    /// Channel of the mandate.
    pub channel: String,
}

impl GateReason {
    /// Stable name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NotYetInForce => "mandate_not_yet_in_force",
            Self::Expired => "mandate_expired",
            Self::Halted(Halt::Unreadable) => "kill_switch_unreadable",
            Self::Halted(Halt::Channel) => "channel_halted",
            Self::Halted(_) => "halted",
            Self::Latched => "audit_log_broken",
            Self::IntentUnrecorded => "intent_not_recorded",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Structural(why) => why.as_str(),
            Self::Breach(breach) => breach.limit.as_str(),
        }
    }

    /// True when only a new consent of the owner helps.
    pub fn requires_reauthorization(&self) -> bool {
        match self {
            Self::Expired => true,
            Self::Breach(breach) => breach.limit.kind() == "quantitative",
            _ => false,
        }
    }

    /// `deny`, or `pause_for_reauth` where a cap is broken that the owner can raise.
    pub fn decision(&self) -> &'static str {
        if matches!(self, Self::Breach(_)) && self.requires_reauthorization() { "pause_for_reauth" } else { "deny" }
    }
}

impl GateRefusal {
    /// Failure code.
    pub const fn code(&self) -> ErrorCode {
        match &self.reason {
            GateReason::Halted(_) | GateReason::Latched | GateReason::IntentUnrecorded => ErrorCode::OrderGateHalted,
            GateReason::OutcomeUnknown => ErrorCode::OrderOutcomeUnknown,
            GateReason::Expired => ErrorCode::OrderGateReauthorization,
            GateReason::Breach(breach) => match breach.limit.kind().as_bytes() {
                b"universe" => ErrorCode::OrderGateDenied,
                _ => ErrorCode::OrderGateReauthorization,
            },
            GateReason::NotYetInForce | GateReason::Structural(_) => ErrorCode::OrderGateDenied,
        }
    }

    pub(crate) fn instruction(&self) -> String {
        match &self.reason {
            GateReason::Breach(breach) => breach.proposed_action(),
            GateReason::Halted(_) | GateReason::Latched | GateReason::IntentUnrecorded => {
                "Only the owner can lift this. Go on without orders; conditional orders can still be cancelled.".to_owned()
            }
            GateReason::Expired | GateReason::NotYetInForce => {
                "Only the owner can give consent. Go on without orders; conditional orders can still be cancelled.".to_owned()
            }
            GateReason::OutcomeUnknown => {
                "Do not send it again under any key; call get_portfolio to see what is held.".to_owned()
            }
            GateReason::Structural(Structural::Intent) => {
                "Send a quantity above zero; a sell of 0 needs sellable shares.".to_owned()
            }
            GateReason::Structural(_) => {
                "Leave this order; the mandate has to allow a security before it can be traded.".to_owned()
            }
        }
    }

    pub(crate) fn facts(&self) -> Vec<(&'static str, Value)> {
        let mut facts = vec![
            ("status", json!("blocked")),
            ("decision", json!(self.reason.decision())),
            ("reason", json!(self.reason.as_str())),
            ("channel", json!(self.channel)),
            ("requires_reauthorization", json!(self.reason.requires_reauthorization())),
        ];
        if let GateReason::Breach(breach) = &self.reason {
            facts.push(("breach", breach.shown()));
        }
        facts
    }
}
