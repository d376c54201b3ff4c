//! [`Account`]: everything one session owns, and the limits a card sets. Agents only read it; [`crate::Matching`] and the
//! trading day change it.
#![deny(clippy::float_arithmetic)]

use crate::conditional::Conditions;
use crate::corporate::{CorporateAction, Rescaled};
use crate::evidence::Evidence;
use crate::ledger::{EventKind, Ledger, LedgerError};
use crate::memory::Memory;
use crate::order::{Fill, Order};
use crate::plan::Plan;
use crate::valuation::{self, Valuation};
use crate::watchlist::Watchlist;
use std::collections::BTreeMap;
use traderharness_market::{Cash, Code, Day, FeeSchedule, Minute, Price, Shares, Side, View};

/// Limits a card sets for orders (engine E9).
#[derive(Debug, Clone, PartialEq)]
pub struct CardLimits {
    /// Positions held at most.
    pub max_positions: u32,
    /// Share of total assets one position may have after a buy, in basis points (2,500 = 25 %).
    pub max_position_basis_points: u32,
    /// Fee schedule.
    pub fees: FeeSchedule,
    /// Share of a bar's volume that may fill, in basis points; `None` = off.
    pub participation_basis_points: Option<u32>,
    /// One fill per security and day.
    pub once_per_day: bool,
    /// Opening buys of ST securities are refused.
    pub forbid_st: bool,
    /// Opening buys need a structured plan (engine E11.1).
    pub require_structured_plan: bool,
    /// Opening buys need a decision card (engine E11.2).
    pub require_decision_card: bool,
    /// Sessions a planned position is held at least, unless the price is at or below its stop; 0 = off.
    pub minimum_holding_days: u32,
    /// Trading days a watchlist entry lives after it was added; 0 = no limit.
    pub watchlist_ttl_days: u32,
    /// Active memory records at most; 0 = no limit.
    pub max_active_memories: u32,
    /// Memory records written per day at most; 0 = no limit.
    pub max_daily_memories: u32,
    /// `execute_code` only before the open.
    pub sandbox_pre_market_only: bool,
    /// `execute_code` attempts per day at most; 0 = no limit.
    pub sandbox_max_calls_per_day: u32,
    /// Seconds that code may run at most, whatever the call asks for.
    pub sandbox_timeout_seconds: u32,
}

impl Default for CardLimits {
    fn default() -> Self {
        Self {
            max_positions: 4,
            max_position_basis_points: 2_500,
            fees: FeeSchedule::Dated,
            participation_basis_points: None,
            once_per_day: true,
            forbid_st: true,
            require_structured_plan: false,
            require_decision_card: false,
            minimum_holding_days: 0,
            watchlist_ttl_days: 0,
            max_active_memories: 0,
            max_daily_memories: 0,
            sandbox_pre_market_only: false,
            sandbox_max_calls_per_day: 0,
            sandbox_timeout_seconds: 60,
        }
    }
}

/// An order that was filled under a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Keyed {
    pub(crate) order: Order,
    pub(crate) fill: Fill,
}

/// The account of one session.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Cash at the start of the run.
    pub initial_cash: Cash,
    /// What the agent has been shown, for decision cards. The harness notes it.
    pub evidence: Evidence,
    /// What the agent watches.
    pub watchlist: Watchlist,
    /// What the agent remembers.
    pub memory: Memory,
    /// `execute_code` attempts of `day`.
    pub(crate) code_attempts: u32,
    pub(crate) ledger: Ledger,
    pub(crate) fills: Vec<Fill>,
    pub(crate) keyed: BTreeMap<String, Keyed>,
    pub(crate) plans: BTreeMap<Code, Plan>,
    pub(crate) conditions: Conditions,
    /// Day the fields below belong to.
    pub(crate) day: Option<Day>,
    /// Shares filled of each bar of `day` (engine E3.4).
    pub(crate) bar_used: BTreeMap<(Code, Minute), Shares>,
    /// Ex-dates up to this day are applied.
    pub(crate) actions_until: Option<Day>,
}

impl Account {
    /// An account with cash and no position.
    pub fn new(initial_cash: Cash) -> Self {
        Self {
            initial_cash,
            evidence: Evidence::new(),
            watchlist: Watchlist::default(),
            memory: Memory::new(),
            code_attempts: 0,
            ledger: Ledger::new(initial_cash),
            fills: vec![],
            keyed: BTreeMap::new(),
            plans: BTreeMap::new(),
            conditions: Conditions::default(),
            day: None,
            bar_used: BTreeMap::new(),
            actions_until: None,
        }
    }

    /// The ledger.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Every fill, oldest first.
    pub fn fills(&self) -> &[Fill] {
        &self.fills
    }

    /// Fills of a day, oldest first.
    pub fn fills_on(&self, day: Day) -> impl Iterator<Item = &Fill> {
        self.fills.iter().filter(move |f| f.day == day)
    }

    /// The fill of an order that was sent under this key.
    pub fn filled_under(&self, key: &str) -> Option<&Fill> {
        self.keyed.get(key).map(|keyed| &keyed.fill)
    }

    /// Plan of a held position.
    pub fn plan(&self, code: Code) -> Option<&Plan> {
        self.plans.get(&code)
    }

    /// Conditional orders of the run.
    pub const fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// First trading day of the account.
    pub fn first_day(&self) -> Option<Day> {
        self.ledger.events().iter().find(|e| e.kind == EventKind::DayStarted).map(|e| e.day)
    }

    /// Begins the trading day of the view: shares bought earlier become sellable, sale proceeds withdrawable, ex-dates take effect
    /// (before pre_market). Repeating it on the same day changes nothing. Returns the corporate actions of the day.
    ///
    /// # Errors
    /// [`LedgerError::BackInTime`] when the view is behind the account.
    pub fn start_day(&mut self, view: &View<'_>) -> Result<Vec<CorporateAction>, LedgerError> {
        self.begin(view)?;
        self.apply_corporate_actions(view)
    }

    fn begin(&mut self, view: &View<'_>) -> Result<(), LedgerError> {
        let today = view.today();
        match self.day {
            Some(day) if day == today => return Ok(()),
            Some(day) if day > today => return Err(LedgerError::BackInTime),
            _ => {}
        }
        self.ledger.record(today, EventKind::DayStarted)?;
        self.day = Some(today);
        self.bar_used.clear();
        self.code_attempts = 0;
        self.watchlist.start_day(view, &self.ledger);
        self.conditions.expire(view);
        if self.actions_until.is_none() {
            // Nothing was held before the first day, so no earlier ex-date concerns this account.
            self.actions_until = Some(today);
        }
        Ok(())
    }

    /// Applies the ex-dates since the last call, up to today (engine E6.1); [`Self::start_day`] does it. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`LedgerError`] when an event does not fit the ledger: a defect.
    pub fn apply_corporate_actions(&mut self, view: &View<'_>) -> Result<Vec<CorporateAction>, LedgerError> {
        self.begin(view)?;
        let today = view.today();
        let Some(after) = self.actions_until.replace(today).filter(|d| *d < today) else { return Ok(vec![]) };
        // Securities held come first, in purchase order; a condition on another one is moved too.
        let mut codes: Vec<Code> = self.ledger.positions().iter().map(|p| p.code).collect();
        for order in self.conditions.active() {
            if !codes.contains(&order.security) {
                codes.push(order.security);
            }
        }
        let mut done = Vec::new();
        for code in codes {
            let Some(sec) = view.find(code) else { continue };
            for (ex_date, terms) in view.ex_days(sec, after).days {
                let before = self.ledger.position(code).map_or(Shares(0), |p| p.total);
                let (shares_in, cash) = (terms.shares_in(before), terms.dividend(before));
                if cash.0 > 0 {
                    self.ledger.record(today, EventKind::Dividend { code, cash })?;
                }
                if shares_in.0 > 0 {
                    self.ledger.record(today, EventKind::SharesIn { code, shares: shares_in })?;
                }
                let mut rescaled = Vec::new();
                if let Some((_, close)) = view.close_before(sec, ex_date) {
                    let to = |level: Price| terms.rescale(level, close);
                    rescaled = self.conditions.rescale(code, today, to);
                    if let Some(plan) = self.plans.get_mut(&code) {
                        let levels = [
                            ("confirmation_level", &mut plan.confirmation_level),
                            ("original_structural_stop", &mut plan.original_structural_stop),
                        ];
                        for (what, level) in levels {
                            let (from, moved) = (*level, to(*level));
                            if moved != from {
                                *level = moved;
                                rescaled.push(Rescaled { what: what.to_owned(), from, to: moved });
                            }
                        }
                    }
                }
                done.push(CorporateAction {
                    code,
                    ex_date,
                    shares_before: before,
                    shares_in,
                    cash,
                    rights_not_exercised: terms.has_rights(),
                    rescaled,
                });
            }
        }
        Ok(done)
    }

    /// Usable cash.
    pub const fn cash(&self) -> Cash {
        self.ledger.cash()
    }

    /// Total assets at the last visible prices (engine E7.1). End-of-day equity is this at close_2.
    pub fn equity(&self, view: &View<'_>) -> Cash {
        self.valuation(view).total
    }

    /// Total assets by position, each with its price and where that came from.
    pub fn valuation(&self, view: &View<'_>) -> Valuation {
        valuation::value(&self.ledger, view, None)
    }

    /// Checks the ledger against its events and the fills against the ledger (engine E7.3).
    ///
    /// # Errors
    /// [`LedgerError`] naming the first contradiction.
    pub fn check_invariants(&self) -> Result<(), LedgerError> {
        self.ledger.check_invariants()?;
        let trades: Vec<_> = self
            .ledger
            .events()
            .iter()
            .filter_map(|e| match &e.kind {
                EventKind::Bought { code, price, shares, amount, fees } => Some((Side::Buy, code, price, shares, amount, fees)),
                EventKind::Sold { code, price, shares, amount, fees } => Some((Side::Sell, code, price, shares, amount, fees)),
                _ => None,
            })
            .collect();
        let same = trades.len() == self.fills.len()
            && trades.iter().zip(&self.fills).all(|((side, code, price, shares, amount, fees), f)| {
                (*side, **code, **price, **shares, **amount, **fees)
                    == (f.side, f.security, f.price, f.shares, f.amount, f.fees.total())
            });
        if same { Ok(()) } else { Err(LedgerError::Broken { what: "list of fills" }) }
    }

    /// True when the security was traded on the view's day.
    pub(crate) fn traded_today(&self, code: Code, today: Day) -> bool {
        self.fills.iter().rev().take_while(|f| f.day == today).any(|f| f.security == code)
    }
}
