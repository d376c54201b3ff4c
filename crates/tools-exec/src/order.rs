//! [`Order`], what is asked of the market, and [`Fill`], what the market gave. Plain data; nothing here decides anything.

use crate::ledger::Realised;
use crate::plan::PlanRequest;
use traderharness_market::{Cash, Code, Day, DecisionPoint, FeeSchedule, Fees, Minute, Price, Shares, Side};

/// An order to buy or sell now.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Security.
    pub security: Code,
    /// Side.
    pub side: Side,
    /// Shares; 0 in a sell means all that is sellable.
    pub shares: Shares,
    /// The agent's own words.
    pub reasoning: String,
    /// A key of the caller: the same order under the same key is filled once (complaint OR-13).
    pub idempotency_key: Option<String>,
    /// Plan and decision card of a buy that opens a position.
    pub plan: Option<PlanRequest>,
    /// Who placed it and at which bar it fills.
    pub origin: Origin,
}

impl Order {
    /// An agent's order without key and plan.
    pub fn new(security: Code, side: Side, shares: Shares) -> Self {
        Self { security, side, shares, reasoning: String::new(), idempotency_key: None, plan: None, origin: Origin::Agent }
    }

    /// The same order under a key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }
}

/// Who placed an order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// The agent: fills at the last visible bar of the current trading interval (engine E3.2).
    #[default]
    Agent,
    /// A conditional order that fired: fills at the bar that met its condition (engine E5.1).
    Condition {
        /// Id of the conditional order.
        order_id: String,
        /// End of the bar, today and already visible.
        bar_end: Minute,
    },
}

/// The rules a fill was made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSet {
    /// Rule that set the price band.
    pub band: &'static str,
    /// Upper limit; `None` on days without a band.
    pub limit_up: Option<Price>,
    /// Lower limit; `None` on days without a band.
    pub limit_down: Option<Price>,
    /// Fee schedule.
    pub fees: FeeSchedule,
    /// Share of the bar's volume that may fill, in basis points; `None` = no cap.
    pub participation_basis_points: Option<u32>,
}

impl RuleSet {
    /// Wire name of the fee schedule.
    pub const fn fee_schedule(&self) -> &'static str {
        match self.fees {
            FeeSchedule::Dated => "dated",
            FeeSchedule::Reference => "reference",
        }
    }
}

/// A filled order.
#[derive(Debug, Clone, PartialEq)]
pub struct Fill {
    /// Number of the fill in the run, from 1.
    pub number: u64,
    /// Day of the bar.
    pub day: Day,
    /// Decision point at which the order was placed or the condition was evaluated.
    pub point: DecisionPoint,
    /// End minute of the bar whose close is the price.
    pub bar_end: Minute,
    /// Volume of that bar, shares.
    pub bar_volume: Shares,
    /// Shares of that bar still open to this account; `None` when the card sets no participation cap.
    pub liquidity_left: Option<Shares>,
    /// Rules it was made under.
    pub rules: RuleSet,
    /// Security.
    pub security: Code,
    /// Side.
    pub side: Side,
    /// Price per share, on the tick.
    pub price: Price,
    /// Shares.
    pub shares: Shares,
    /// `price x shares`.
    pub amount: Cash,
    /// Fees by kind.
    pub fees: Fees,
    /// What a sell realised; zeros for a buy.
    pub realised: Realised,
    /// True when the buy opened the position.
    pub opened: bool,
    /// True when the sell closed the position.
    pub closed: bool,
    /// Usable cash after it.
    pub cash_after: Cash,
    /// Withdrawable cash after it.
    pub withdrawable_after: Cash,
    /// Positions after it, in the order in which they were opened.
    pub holdings_after: Vec<(Code, Shares)>,
    /// Id of the protective stop that the fill created.
    pub protective_order_id: Option<String>,
    /// The agent's own words.
    pub reasoning: String,
    /// Who placed it.
    pub origin: Origin,
    /// True when this answers a repeated order from memory: nothing was traded now.
    pub repeated: bool,
}

impl Fill {
    /// What a buy took from cash: amount and fees.
    pub const fn total_cost(&self) -> Cash {
        Cash(self.amount.0 + self.fees.total().0)
    }

    /// What a sell brought to cash: amount less fees.
    pub const fn net_income(&self) -> Cash {
        Cash(self.amount.0 - self.fees.total().0)
    }
}
