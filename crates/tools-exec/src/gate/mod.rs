//! The order gate: a layer in front of [`Matching::place`] for sessions that ask for it (spec/seeds.md B16). An owner's mandate, a kill
//! switch that no model can reach, and an audit log stand between an order and the market. Whatever cannot be read or written denies.
//!
//! Checks run in this fixed order, and the first failure wins:
//!
//! 1. the mandate: checked when it is loaded; a gate without one cannot be made
//! 2. consent, at the simulated clock
//! 3. kill switch of all channels, then of this channel
//! 4. outcome of an equal order not known
//! 5. intent, excluded securities, instrument, board
//! 6. size at the worse of quote and limit; what cannot be priced is denied; order cap
//! 7. gross exposure with the order applied to its own symbol, then leverage; an order that lowers the exposure passes both
//! 8. trades of the day; a counter that cannot be read denies
//! 9. funding (buys), floors on market value and turnover
//! 10. the intent is recorded, the kill switch read once more, the order placed, the trade counted, the outcome recorded
//!
//! An order under a key that was filled before is answered with its first result and asks nothing: nothing is traded. When something
//! cannot be written after a fill, the fill stands and every later order of the session is denied.
#![deny(clippy::float_arithmetic)]

pub mod audit;
mod facts;
pub mod host;
pub mod mandate;
mod refusal;
pub mod verdict;

pub use audit::{Break, BreakKind, OpenIntent, Verified, verify};
pub use host::{GateHost, Halt, Reading, Recorded};
pub use mandate::{Mandate, MandateError};
pub use refusal::{GateReason, GateRefusal};
pub use verdict::{Breach, Facts, Intent, Limit, Structural, Verdict};

use crate::account::{Account, CardLimits};
use crate::matching::Matching;
use crate::order::{Fill, Order, Origin};
use crate::refusal::Refusal;
use audit::Chain;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use traderharness_market::{Day, Shares, Side, View};

/// A gate that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The first record could not be kept.
    #[error("the audit log of the order gate cannot be written")]
    Audit(#[source] io::Error),
}

/// The gate of one session.
pub struct OrderGate {
    mandate: Mandate,
    host: Box<dyn GateHost>,
    chain: Chain,
    /// Orders filled by day, as the audit log has them.
    filled: BTreeMap<Day, u32>,
    /// Orders of earlier sessions without an outcome.
    unknown: Vec<OpenIntent>,
    /// States of the kill switch read since the last record.
    halts: Vec<Halt>,
    /// What the counter said since the last record.
    reading: Option<Value>,
    was_halted: bool,
    opened_halted: bool,
    /// Something could not be written; no order goes any more.
    latched: bool,
}

impl std::fmt::Debug for OrderGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderGate")
            .field("channel", &self.mandate.channel)
            .field("latched", &self.latched)
            .finish_non_exhaustive()
    }
}

/// Places an order through the gate of the session, if it has one. Every door and every conditional order comes here.
///
/// # Errors
/// As [`Matching::place`], and [`Refusal::Gate`].
pub fn submit(
    order: Order,
    view: &View<'_>,
    account: &mut Account,
    limits: &CardLimits,
    gate: Option<&mut OrderGate>,
) -> Result<Fill, Refusal> {
    match gate {
        None => Matching::place(order, view, account, limits),
        Some(gate) => gate.place(order, view, account, limits),
    }
}

impl OrderGate {
    /// Opens a gate over what an audit log holds so far ([`verify`]) and records that it was opened.
    ///
    /// # Errors
    /// [`GateError`] when that record cannot be kept.
    pub fn open(mandate: Mandate, mut host: Box<dyn GateHost>, log: &Verified) -> Result<Self, GateError> {
        let halt = host.halt(&mandate.channel);
        let mut gate = Self {
            chain: Chain::after(log),
            filled: log.filled.clone(),
            unknown: log.open_intents.clone(),
            halts: vec![halt],
            reading: None,
            was_halted: halt != Halt::Clear,
            opened_halted: halt != Halt::Clear,
            latched: false,
            mandate,
            host,
        };
        gate.record(audit::OPENED, None, Map::new()).map_err(GateError::Audit)?;
        Ok(gate)
    }

    /// The mandate.
    pub const fn mandate(&self) -> &Mandate {
        &self.mandate
    }

    /// True when the kill switch was set, or could not be read, when the gate was opened: order tools are then not offered
    /// (spec/seeds.md B16, step 3).
    pub const fn opened_halted(&self) -> bool {
        self.opened_halted
    }

    /// Orders of earlier sessions of which nobody knows whether they were filled.
    pub fn unknown_outcomes(&self) -> &[OpenIntent] {
        &self.unknown
    }

    /// Checks an order and places it.
    ///
    /// # Errors
    /// [`Refusal::Gate`] when the gate holds it back, else as [`Matching::place`]. Nothing of the account has changed.
    pub fn place(&mut self, order: Order, view: &View<'_>, account: &mut Account, limits: &CardLimits) -> Result<Fill, Refusal> {
        if order.idempotency_key.as_ref().is_some_and(|key| account.keyed.contains_key(key)) {
            return Matching::place(order, view, account, limits);
        }
        let shares = match (order.side, order.shares) {
            (Side::Sell, Shares(0)) => Matching::sellable(account, view, order.security),
            (_, shares) => shares,
        };
        let about = about(&order, shares);
        let trades = match self.decide(&order, shares, view, account) {
            Ok(trades) => trades,
            Err(reason) => return Err(self.blocked(reason, view, about, None)),
        };
        let mut intent = about.clone();
        intent.insert("decision".into(), json!("allow"));
        let Ok(intent_id) = self.record("order_intent", Some(view), intent) else {
            return Err(self.refusal(GateReason::IntentUnrecorded));
        };
        // The last look: whoever set the switch while the order was being judged still stops it.
        if let Err(reason) = self.kill_switch(view) {
            return Err(self.blocked(reason, view, about, Some(&intent_id)));
        }
        let result = Matching::place(order, view, account, limits);
        let (mut outcome, mut uncounted) = (about, false);
        outcome.insert("intent_id".into(), json!(intent_id));
        let kind = match &result {
            Ok(fill) => {
                let count = trades.saturating_add(1);
                self.filled.insert(view.today(), count);
                uncounted = self.host.keep_trades(view.today(), count).is_err();
                outcome.insert("outcome".into(), json!("filled"));
                outcome.insert("fill".into(), filled(fill));
                "order_placed"
            }
            Err(refusal) => {
                outcome.insert("outcome".into(), json!("rejected"));
                outcome.insert("error".into(), json!(refusal.code()));
                "order_rejected"
            }
        };
        // A failure latches; what was done stands and is answered.
        let _ = self.record(kind, Some(view), outcome);
        self.latched |= uncounted;
        result
    }

    /// Notes that a conditional order was cancelled, which is allowed whatever the switch and the mandate say (spec/seeds.md B15.5).
    pub fn cancelled(&mut self, order_id: &str, view: &View<'_>) {
        let _ = self.record("order_cancelled", Some(view), Map::from_iter([("order_id".to_owned(), json!(order_id))]));
    }

    fn decide(&mut self, order: &Order, shares: Shares, view: &View<'_>, account: &Account) -> Result<u32, GateReason> {
        if self.latched {
            return Err(GateReason::Latched);
        }
        let (consent, now) = (&self.mandate.consent, view.clock().now());
        if now < consent.created_at {
            return Err(GateReason::NotYetInForce);
        }
        if now >= consent.expires_at {
            return Err(GateReason::Expired);
        }
        self.kill_switch(view)?;
        let key = order.idempotency_key.as_deref();
        let text = order_text(order, shares);
        if self.unknown.iter().any(|open| open.order == text || (key.is_some() && open.key.as_deref() == key)) {
            return Err(GateReason::OutcomeUnknown);
        }
        let trades_today = self.trades(view.today());
        let facts = facts::of(order, view, account, trades_today);
        let (symbol, side) = (order.security, order.side);
        let intent = Intent { symbol, side, quantity: shares, notional: Default::default(), limit: None };
        match verdict::check(&self.mandate, &intent, &facts) {
            Verdict::Allow { .. } => trades_today.ok_or(GateReason::Structural(Structural::CounterUnreadable)),
            Verdict::Deny(why) => Err(GateReason::Structural(why)),
            Verdict::Breach(breach) => Err(GateReason::Breach(breach)),
        }
    }

    fn kill_switch(&mut self, view: &View<'_>) -> Result<(), GateReason> {
        let halt = self.host.halt(&self.mandate.channel);
        self.halts.push(halt);
        let halted = halt != Halt::Clear;
        if halted != self.was_halted {
            self.was_halted = halted;
            let kind = if halted { "halt_tripped" } else { "halt_cleared" };
            self.record(kind, Some(view), Map::new()).map_err(|_| GateReason::Latched)?;
        }
        if halted { Err(GateReason::Halted(halt)) } else { Ok(()) }
    }

    /// The larger of the counter and the audit log; `None` when the counter cannot be read, or is gone while the log has trades.
    fn trades(&mut self, day: Day) -> Option<u32> {
        let counted = self.filled.get(&day).copied().unwrap_or(0);
        let reading = self.host.trades(day).ok();
        self.reading = Some(match reading {
            None => json!("unreadable"),
            Some(None) => json!("none"),
            Some(Some(n)) => json!(n),
        });
        match reading? {
            Some(n) => Some(n.max(counted)),
            None => (counted == 0).then_some(0),
        }
    }

    fn refusal(&self, reason: GateReason) -> Refusal {
        Refusal::Gate(GateRefusal { reason, channel: self.mandate.channel.clone() })
    }

    fn blocked(
        &mut self,
        reason: GateReason,
        view: &View<'_>,
        mut about: Map<String, Value>,
        intent_id: Option<&str>,
    ) -> Refusal {
        if let Some(id) = intent_id {
            about.insert("intent_id".into(), json!(id));
        }
        about.insert("outcome".into(), json!("blocked"));
        about.insert("decision".into(), json!(reason.decision()));
        about.insert("reason".into(), json!(reason.as_str()));
        let kind = if let GateReason::Breach(breach) = &reason {
            let (limit_value, attempted_value, overage) = (breach.limit_value, breach.attempted_value, breach.overage());
            let limit = breach.limit.as_str();
            about.insert(
                "breach".into(),
                json!({ "limit": limit, "limit_value": limit_value, "attempted_value": attempted_value, "overage": overage }),
            );
            "breach"
        } else {
            "order_rejected"
        };
        let _ = self.record(kind, Some(view), about);
        self.refusal(reason)
    }

    /// Appends a record; returns its id. A failure latches the gate.
    fn record(&mut self, kind: &str, view: Option<&View<'_>>, about: Map<String, Value>) -> io::Result<String> {
        if self.latched {
            return Err(io::Error::other("an earlier record could not be kept"));
        }
        let id = self.chain.next_id();
        let mut payload = Map::new();
        payload.insert("audit_id".into(), json!(id));
        payload.insert("kind".into(), json!(kind));
        payload.insert("channel".into(), json!(self.mandate.channel));
        payload.insert("mandate_sha256".into(), json!(self.mandate.digest()));
        payload.insert("consent_token_sha256".into(), json!(self.mandate.consent.consent_token_sha256));
        if let Some(view) = view {
            let clock = view.clock();
            payload.insert("time".into(), json!(format!("{} {}", clock.day, clock.point.now_minute())));
            payload.insert("point".into(), json!(clock.point.as_str()));
        }
        let halts: Vec<&str> = self.halts.iter().map(|h| h.as_str()).collect();
        payload.insert("halts".into(), json!(halts));
        if let Some(reading) = &self.reading {
            payload.insert("trades_today".into(), reading.clone());
        }
        payload.extend(about);
        let (line, next) = self.chain.next(&Value::Object(payload));
        if let Err(fault) = self.host.append(&line) {
            self.latched = true;
            return Err(fault);
        }
        self.chain = next;
        self.halts.clear();
        self.reading = None;
        Ok(id)
    }
}

fn order_text(order: &Order, shares: Shares) -> String {
    format!("{} {} {shares}", order.side.as_str(), order.security)
}

/// What every record of an order says about it. No reasoning, no plan: a log of decisions is not a place for prose.
fn about(order: &Order, shares: Shares) -> Map<String, Value> {
    let mut about = Map::new();
    about.insert("order".into(), json!(order_text(order, shares)));
    if let Some(key) = &order.idempotency_key {
        about.insert("idempotency_key".into(), json!(key));
    }
    if let Origin::Condition { order_id, bar_end } = &order.origin {
        about.insert("condition".into(), json!(order_id));
        about.insert("bar_end".into(), json!(bar_end.to_string()));
    }
    about
}

fn filled(fill: &Fill) -> Value {
    json!({
        "number": fill.number,
        "price_ten_thousandths": fill.price.0,
        "shares": fill.shares.0,
        "amount_fen": fill.amount.0,
        "fees_fen": fill.fees.total().0,
        "bar_end": fill.bar_end.to_string(),
    })
}
