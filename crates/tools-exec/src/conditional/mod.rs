//! Conditional orders (engine E5): owned by the environment, made and changed by the agent, filled through [`crate::Matching`].
//!
//! This file holds what an order is and how it may change. [`evaluate`] runs the bars. Nothing here fills an order itself.
#![deny(clippy::float_arithmetic)]

mod change;
mod evaluate;

pub use change::{ConditionRefusal, NewCondition, Update};
pub use evaluate::{ConditionOutcome, evaluate, evaluate_through};

use traderharness_contract::ErrorCode;
use traderharness_market::{Code, Day, DecisionPoint, Minute, Price, Shares, Side, View};

/// Orders that may be active at once (engine E5.6).
pub const MAX_ACTIVE: usize = 64;

/// How a bar's close is compared with the trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparator {
    /// Fires at or below the trigger.
    AtMost,
    /// Fires at or above the trigger.
    AtLeast,
}

impl Comparator {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AtMost => "price_lte",
            Self::AtLeast => "price_gte",
        }
    }

    fn holds(self, price: Price, trigger: Price) -> bool {
        match self {
            Self::AtMost => price <= trigger,
            Self::AtLeast => price >= trigger,
        }
    }
}

/// State of a conditional order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the field's own names")]
pub enum Status {
    Active,
    Triggered,
    Cancelled,
    Expired,
}

impl Status {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Triggered => "triggered",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// A change of an order: by the agent, or by the environment on an ex-date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Day of the change.
    pub day: Day,
    /// Why.
    pub reasoning: String,
    /// Field, value before, value after.
    pub changes: Vec<Changed>,
}

/// One changed field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "value before and after")]
pub enum Changed {
    /// Trigger price.
    Trigger { from: Price, to: Price },
    /// Quantity.
    Quantity { from: Shares, to: Shares },
    /// Trading days until it expires, as sent; `None` = never.
    Expiry { from: Option<u32>, to: Option<u32> },
}

/// A bar at which the condition held and the order was tried. Equal failures of one day are one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Day of the bar.
    pub day: Day,
    /// End of the first bar with this outcome.
    pub bar_end: Minute,
    /// Close of that bar.
    pub price: Price,
    /// Why it was not filled; `None` when it was.
    pub error: Option<ErrorCode>,
    /// Bars of the day with this outcome.
    pub bars: u32,
}

/// How an order ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Day.
    pub day: Day,
    /// End of the bar that filled it.
    pub bar_end: Option<Minute>,
    /// Why it was cancelled; empty otherwise.
    pub reasoning: String,
}

/// Trading days an order lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// Day from which they count, itself the first.
    pub from: Day,
    /// Trading days; 1 = that day only (engine E5.5).
    pub sessions: u32,
}

/// One conditional order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionalOrder {
    /// Number in the run, from 1.
    pub number: u32,
    /// Security.
    pub security: Code,
    /// Side.
    pub side: Side,
    /// Shares; 0 in a sell means all that is sellable at the trigger.
    pub shares: Shares,
    /// Comparison.
    pub comparator: Comparator,
    /// Trigger on the tick.
    pub trigger: Price,
    /// A stop that may only rise (engine E5.4).
    pub protective: bool,
    /// The agent's own words.
    pub reasoning: String,
    /// State.
    pub status: Status,
    /// Day it was made.
    pub created_day: Day,
    /// Decision point at which it was made.
    pub created_point: DecisionPoint,
    /// Bars up to this day and minute never fire it: they were visible when it was made, last changed, or last evaluated.
    pub seen: (Day, Minute),
    /// When it expires; `None` = never.
    pub expiry: Option<Expiry>,
    /// Changes, oldest first.
    pub revisions: Vec<Revision>,
    /// Attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// How it ended.
    pub ended: Option<Ended>,
}

impl ConditionalOrder {
    /// Wire id: four digits, so that no masker can take it for a code (engine E5.6).
    pub fn id(&self) -> String {
        format!("cond-{:04}", self.number)
    }

    /// True while it may still fire.
    pub fn is_active(&self) -> bool {
        self.status == Status::Active
    }

    /// Trading days left, today included; `None` when it never expires.
    pub fn days_left(&self, view: &View<'_>) -> Option<u32> {
        self.expiry.map(|e| e.sessions.saturating_sub(crate::matching::sessions_held(view, e.from)))
    }
}

/// Every conditional order of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    orders: Vec<ConditionalOrder>,
}

impl Conditions {
    /// All orders, in order of id.
    pub fn orders(&self) -> &[ConditionalOrder] {
        &self.orders
    }

    /// Orders that may still fire, in order of id.
    pub fn active(&self) -> impl Iterator<Item = &ConditionalOrder> {
        self.orders.iter().filter(|o| o.is_active())
    }

    /// The order of an id.
    pub fn find(&self, id: &str) -> Option<&ConditionalOrder> {
        self.orders.iter().find(|o| o.id() == id)
    }

    /// Marks the orders whose days are over.
    pub(crate) fn expire(&mut self, view: &View<'_>) {
        for order in self.orders.iter_mut().filter(|o| o.is_active()) {
            if order.days_left(view) == Some(0) {
                order.status = Status::Expired;
                order.ended = Some(Ended { day: view.today(), bar_end: None, reasoning: String::new() });
            }
        }
    }

    /// Cancels the active sells of a security that is no longer held, except the one that closed it (engine E5.6).
    pub(crate) fn position_closed(&mut self, security: Code, day: Day, except: Option<&str>) {
        for order in self.orders.iter_mut().filter(|o| o.is_active() && o.security == security && o.side == Side::Sell) {
            if except != Some(order.id().as_str()) {
                order.status = Status::Cancelled;
                order.ended = Some(Ended { day, bar_end: None, reasoning: "The position was closed.".to_owned() });
            }
        }
    }

    /// Moves the triggers of a security on an ex-date (engine E6.1). `to` gives the new level of an old one.
    pub(crate) fn rescale(&mut self, security: Code, day: Day, to: impl Fn(Price) -> Price) -> Vec<crate::corporate::Rescaled> {
        let mut moved = Vec::new();
        for order in self.orders.iter_mut().filter(|o| o.is_active() && o.security == security) {
            let (from, level) = (order.trigger, to(order.trigger));
            if level != from {
                order.trigger = level;
                let changes = vec![Changed::Trigger { from, to: level }];
                order.revisions.push(Revision { day, reasoning: "Ex-date: level moved with the price.".to_owned(), changes });
                moved.push(crate::corporate::Rescaled { what: order.id(), from, to: level });
            }
        }
        moved
    }
}
