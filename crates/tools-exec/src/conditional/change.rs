//! Making, changing and cancelling conditional orders, checked like orders (spec/tools.md b20, b21).
#![deny(clippy::float_arithmetic)]

use super::{Changed, Comparator, ConditionalOrder, Conditions, Ended, Expiry, MAX_ACTIVE, Revision, Status};
use crate::account::{Account, CardLimits};
use crate::matching::{check_buy_lot, check_sell_lot};
use crate::plan::on_tick;
use crate::refusal::Refusal;
use crate::valuation::usable_price;
use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_market::money::decimal;
use traderharness_market::rules::{TICK, lot_rule};
use traderharness_market::{Code, Day, DecisionPoint, Minute, Price, Rounding, Shares, Side, View};

/// A conditional order to make.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "as in ConditionalOrder")]
pub struct NewCondition {
    pub security: Code,
    pub side: Side,
    pub shares: Shares,
    pub comparator: Comparator,
    /// CNY, as sent.
    pub trigger: f64,
    pub protective: bool,
    pub reasoning: String,
    /// Trading days, today included.
    pub sessions: Option<u32>,
}

/// A change to make; `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "as in NewCondition")]
pub struct Update {
    pub trigger: Option<f64>,
    pub shares: Option<Shares>,
    pub sessions: Option<u32>,
    pub reasoning: String,
}

/// Why a conditional order was not made or changed. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
#[non_exhaustive]
pub enum ConditionRefusal {
    #[error(transparent)]
    Order(#[from] Refusal),
    #[error("The trigger is not a price on the tick of 0.01 CNY above zero.")]
    Trigger { nearest: Vec<Price> },
    #[error("A protective stop sells quantity 0 (all that is sellable) at price_lte, and nothing else.")]
    ProtectiveShape,
    #[error("A protective stop may only rise; it stands at {stands}.")]
    ProtectiveFall { stands: Price },
    #[error("This card may open positions with place_order only.")]
    CannotOpen,
    #[error("No bar of today is left, so an order for today only could never fire.")]
    NothingLeftToday,
    #[error("The order must live from 1 to 250 trading days.")]
    Sessions,
    #[error("{MAX_ACTIVE} conditional orders are active, which is the most this environment keeps.")]
    TooMany,
    #[error("{}", if active.is_empty() { "No conditional order is active." } else { "No conditional order of this id is active." })]
    NotActive { active: Vec<String> },
    #[error("The order already is as asked; nothing would change.")]
    NoChange,
}

impl From<ConditionRefusal> for ToolFailure {
    fn from(refusal: ConditionRefusal) -> Self {
        use ConditionRefusal as R;
        let (code, instruction): (ErrorCode, &str) = match &refusal {
            R::Order(order) => return order.clone().into(),
            R::Trigger { .. } => (ErrorCode::InvalidToolArguments, "Send the call again with one of `nearest_trigger_prices`."),
            R::ProtectiveShape => (
                ErrorCode::InvalidToolArguments,
                "Leave `protective` out, or send action sell, quantity 0 and comparator price_lte.",
            ),
            R::ProtectiveFall { .. } => {
                (ErrorCode::PlanLevelInvalid, "Send a trigger above `min_trigger_price`, or leave the stop where it is.")
            }
            R::CannotOpen => (ErrorCode::ConditionalOrderCannotOpenPosition, "Open the position with place_order and its plan."),
            R::NothingLeftToday => {
                (ErrorCode::InvalidToolArguments, "Send expires_in_trading_days of at least 2, or leave it out.")
            }
            R::Sessions => (ErrorCode::InvalidToolArguments, "Send expires_in_trading_days from 1 to 250, or leave it out."),
            R::TooMany => (ErrorCode::ConditionalOrderStateConflict, "Cancel one first; list_conditional_orders shows them."),
            R::NotActive { active } if active.is_empty() => (
                ErrorCode::ConditionalOrderStateConflict,
                "Go on without it: there is no order to change or cancel. manage_conditional_order makes one with operation create.",
            ),
            R::NotActive { .. } => {
                (ErrorCode::ConditionalOrderStateConflict, "Use one of `active_order_ids`; list_conditional_orders shows them.")
            }
            R::NoChange => {
                (ErrorCode::ConditionalOrderStateConflict, "Send a different value, or go on: the order stands as it is.")
            }
        };
        let mut failure = Self::new(code, refusal.to_string(), instruction);
        match &refusal {
            R::Trigger { nearest } => {
                failure = failure.with("nearest_trigger_prices", nearest.iter().map(|p| p.to_f64()).collect::<Vec<_>>());
            }
            R::ProtectiveFall { stands } => failure = failure.with("min_trigger_price", stands.to_f64()),
            R::CannotOpen => failure = failure.with("required_tool", "place_order"),
            R::NothingLeftToday => failure = failure.with("min_expires_in_trading_days", 2),
            R::TooMany => failure = failure.with("active", MAX_ACTIVE).with("required_tool", "list_conditional_orders"),
            R::NotActive { active } => {
                // Without an active order no id can be sent that would do.
                failure.retryable = active.is_empty().then_some(false);
                failure = failure.with("active_order_ids", active.clone()).with("required_tool", "list_conditional_orders");
            }
            _ => {}
        }
        failure
    }
}

/// The trigger as a price, or the ticks beside it.
fn trigger(value: f64) -> Result<Price, ConditionRefusal> {
    on_tick(value).ok_or_else(|| {
        let down = decimal(value, 2, Rounding::Down).and_then(|cents| cents.checked_mul(TICK.0)).map(Price);
        let mut nearest: Vec<Price> = [down, down.map(|p| Price(p.0.saturating_add(TICK.0)))]
            .into_iter()
            .flatten()
            .filter(|p| usable_price(p.to_f64()).is_some())
            .collect();
        nearest.dedup();
        ConditionRefusal::Trigger { nearest }
    })
}

/// Bars visible now never fire an order made or changed now (engine E5.2).
pub(super) fn seen_now(view: &View<'_>) -> (Day, Minute) {
    (view.today(), view.clock().point.visible_until().unwrap_or_default())
}

fn expiry(view: &View<'_>, sessions: Option<u32>) -> Result<Option<Expiry>, ConditionRefusal> {
    match sessions {
        None => Ok(None),
        Some(1..=250) if sessions == Some(1) && view.clock().point == DecisionPoint::Close2 => {
            Err(ConditionRefusal::NothingLeftToday)
        }
        Some(sessions @ 1..=250) => Ok(Some(Expiry { from: view.today(), sessions })),
        Some(_) => Err(ConditionRefusal::Sessions),
    }
}

/// What an order of this size and side needs to be kept at all: a board lot to buy, a position to sell.
fn check_size(
    view: &View<'_>,
    account: &Account,
    limits: &CardLimits,
    (security, side, shares): (Code, Side, Shares),
) -> Result<(), ConditionRefusal> {
    let sec = view.find(security).filter(|sec| view.is_listed(*sec)).ok_or(Refusal::UnknownSecurity)?;
    let board = view.board(sec).ok_or(Refusal::UnknownSecurity)?;
    let held = account.ledger.position(security);
    match side {
        Side::Buy => {
            check_buy_lot(board, view.today(), shares)?;
            if held.is_none() {
                if limits.require_structured_plan || limits.require_decision_card {
                    return Err(ConditionRefusal::CannotOpen);
                }
                if limits.forbid_st && view.is_st(sec) == Some(true) {
                    return Err(Refusal::StForbidden.into());
                }
            }
        }
        Side::Sell => {
            let total = held.ok_or(Refusal::PositionNotHeld)?.total;
            if shares.0 < 0 {
                let max = traderharness_market::rules::max_order(board, view.today()).0;
                return Err(Refusal::SellSize { asked: shares.0, max }.into());
            }
            if shares > total {
                let refusal = Refusal::InsufficientSellable { asked: shares, sellable: total, total, frozen: Shares(0) };
                return Err(refusal.into());
            }
            if shares.0 > 0 {
                check_sell_lot(lot_rule(board), shares, total)?;
            }
        }
    }
    Ok(())
}

impl Account {
    /// Makes a conditional order. Returns its id.
    ///
    /// # Errors
    /// [`ConditionRefusal`]; nothing has changed.
    pub fn create_condition(
        &mut self,
        new: NewCondition,
        view: &View<'_>,
        limits: &CardLimits,
    ) -> Result<String, ConditionRefusal> {
        let protective_shape = new.side == Side::Sell && new.shares.0 == 0 && new.comparator == Comparator::AtMost;
        if new.protective && !protective_shape {
            return Err(ConditionRefusal::ProtectiveShape);
        }
        check_size(view, self, limits, (new.security, new.side, new.shares))?;
        let trigger = trigger(new.trigger)?;
        let expiry = expiry(view, new.sessions)?;
        if self.conditions.active().count() >= MAX_ACTIVE {
            return Err(ConditionRefusal::TooMany);
        }
        Ok(self.conditions.add(ConditionalOrder {
            number: 0,
            security: new.security,
            side: new.side,
            shares: new.shares,
            comparator: new.comparator,
            trigger,
            protective: new.protective,
            reasoning: new.reasoning,
            status: Status::Active,
            created_day: view.today(),
            created_point: view.clock().point,
            seen: seen_now(view),
            expiry,
            revisions: vec![],
            attempts: vec![],
            ended: None,
        }))
    }

    /// Changes an active conditional order; bars visible now no longer fire it.
    ///
    /// # Errors
    /// [`ConditionRefusal`]; nothing has changed.
    pub fn update_condition(
        &mut self,
        id: &str,
        update: Update,
        view: &View<'_>,
        limits: &CardLimits,
    ) -> Result<(), ConditionRefusal> {
        let order = self.conditions.active_order(id)?;
        let level = update.trigger.map(trigger).transpose()?;
        if order.protective {
            if update.shares.is_some_and(|n| n.0 != 0) {
                return Err(ConditionRefusal::ProtectiveShape);
            }
            if level.is_some_and(|level| level < order.trigger) {
                return Err(ConditionRefusal::ProtectiveFall { stands: order.trigger });
            }
        }
        if let Some(shares) = update.shares.filter(|n| *n != order.shares) {
            check_size(view, self, limits, (order.security, order.side, shares))?;
        }
        let mut changes = Vec::new();
        if let Some(to) = level.filter(|to| *to != order.trigger) {
            changes.push(Changed::Trigger { from: order.trigger, to });
        }
        if let Some(to) = update.shares.filter(|to| *to != order.shares) {
            changes.push(Changed::Quantity { from: order.shares, to });
        }
        let renewed = expiry(view, update.sessions)?;
        if renewed.is_some() && renewed != order.expiry {
            changes.push(Changed::Expiry { from: order.days_left(view), to: update.sessions });
        }
        if changes.is_empty() {
            return Err(ConditionRefusal::NoChange);
        }
        let order = self.conditions.active_order_mut(id)?;
        for change in &changes {
            match change {
                Changed::Trigger { to, .. } => order.trigger = *to,
                Changed::Quantity { to, .. } => order.shares = *to,
                Changed::Expiry { .. } => order.expiry = renewed,
            }
        }
        order.seen = order.seen.max(seen_now(view));
        order.revisions.push(Revision { day: view.today(), reasoning: update.reasoning, changes });
        Ok(())
    }

    /// Cancels an active conditional order.
    ///
    /// # Errors
    /// [`ConditionRefusal::NotActive`]; nothing has changed.
    pub fn cancel_condition(&mut self, id: &str, reasoning: String, view: &View<'_>) -> Result<(), ConditionRefusal> {
        let order = self.conditions.active_order_mut(id)?;
        order.status = Status::Cancelled;
        order.ended = Some(Ended { day: view.today(), bar_end: None, reasoning });
        Ok(())
    }
}

impl Conditions {
    /// Adds an order under the next number. Returns its id.
    pub(crate) fn add(&mut self, order: ConditionalOrder) -> String {
        let order = ConditionalOrder { number: self.orders.len() as u32 + 1, ..order };
        let id = order.id();
        self.orders.push(order);
        id
    }

    /// The stop at the original structural stop of a plan: effective from the next trading day (engine E11.1).
    pub(crate) fn add_plan_stop(&mut self, security: Code, stop: Price, view: &View<'_>) -> String {
        self.add(ConditionalOrder {
            number: 0,
            security,
            side: Side::Sell,
            shares: Shares(0),
            comparator: Comparator::AtMost,
            trigger: stop,
            protective: true,
            reasoning: "Protective stop of the structured plan.".to_owned(),
            status: Status::Active,
            created_day: view.today(),
            created_point: view.clock().point,
            seen: (view.today(), Minute(24 * 60)),
            expiry: None,
            revisions: vec![],
            attempts: vec![],
            ended: None,
        })
    }

    fn active_order(&self, id: &str) -> Result<&ConditionalOrder, ConditionRefusal> {
        self.find(id).filter(|o| o.is_active()).ok_or_else(|| self.not_active())
    }

    fn active_order_mut(&mut self, id: &str) -> Result<&mut ConditionalOrder, ConditionRefusal> {
        let missing = self.not_active();
        self.orders.iter_mut().find(|o| o.is_active() && o.id() == id).ok_or(missing)
    }

    fn not_active(&self) -> ConditionRefusal {
        ConditionRefusal::NotActive { active: self.active().map(ConditionalOrder::id).collect() }
    }
}
