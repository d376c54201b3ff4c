//! The ledger: cash and positions in exact integers, changed only by [`Event`]s that are kept in order.
//!
//! Every change goes through [`Ledger::record`], which computes the next state, checks it, and commits it or nothing (engine E7.3).
//! This module never rounds in floats, never reads a market, and never decides whether an order is allowed.
#![deny(clippy::float_arithmetic)]

use traderharness_market::money::div_round;
use traderharness_market::{Cash, Code, Day, Price, Rounding, Shares};

/// What happened to the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// Cash put in at the start.
    Opened {
        /// Amount.
        cash: Cash,
    },
    /// A trading day began: shares bought earlier become sellable, sale proceeds withdrawable.
    DayStarted,
    /// A buy was filled.
    Bought {
        /// Security.
        code: Code,
        /// Price per share.
        price: Price,
        /// Shares.
        shares: Shares,
        /// `price x shares`, fees not included.
        amount: Cash,
        /// All fees.
        fees: Cash,
    },
    /// A sell was filled.
    Sold {
        /// Security.
        code: Code,
        /// Price per share.
        price: Price,
        /// Shares.
        shares: Shares,
        /// `price x shares`, fees not taken off.
        amount: Cash,
        /// All fees.
        fees: Cash,
    },
    /// A cash dividend came in on the ex-date.
    Dividend {
        /// Security.
        code: Code,
        /// Gross amount.
        cash: Cash,
    },
    /// Bonus or transfer shares came in on the ex-date; total cost is unchanged.
    SharesIn {
        /// Security.
        code: Code,
        /// Whole shares that came in.
        shares: Shares,
    },
}

/// One change of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the list, from 1.
    pub seq: u64,
    /// Day on which it happened.
    pub day: Day,
    /// What happened.
    pub kind: EventKind,
    /// Usable cash after it.
    pub cash: Cash,
}

/// Shares held of one security.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Security.
    pub code: Code,
    /// Day of the buy that opened the position.
    pub opened_on: Day,
    /// Sequence of the event that opened it.
    pub opened_by: u64,
    /// All shares.
    pub total: Shares,
    /// Shares bought today, locked until the next trading day (engine E3.5).
    pub frozen: Shares,
    /// Cost of the shares held, fees not included; exact.
    pub cost: Cash,
    /// Fees paid to buy the shares held.
    pub buy_fees: Cash,
    /// Dividends received while held.
    pub dividends: Cash,
}

impl Position {
    /// Shares that may be sold now.
    pub const fn sellable(&self) -> Shares {
        Shares(self.total.0 - self.frozen.0)
    }

    /// Average cost per share without fees, half-up to 0.01 CNY (engine E7.2).
    pub fn average_cost(&self) -> Price {
        if self.total.0 <= 0 {
            return Price(0);
        }
        Price(div_round(i128::from(self.cost.0), i128::from(self.total.0), Rounding::HalfUp) as i64 * 100)
    }

    /// Cost and buy fees that leave with `shares`: their proportional part, and everything with the last share.
    fn share_of_cost(&self, shares: Shares) -> (Cash, Cash) {
        let part = |whole: Cash| {
            if shares == self.total {
                return whole;
            }
            Cash(div_round(i128::from(whole.0) * i128::from(shares.0), i128::from(self.total.0), Rounding::HalfUp) as i64)
        };
        (part(self.cost), part(self.buy_fees))
    }
}

/// What a sell realised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Realised {
    /// Cost of the shares sold, fees not included.
    pub cost: Cash,
    /// Buy fees that belong to them.
    pub buy_fees: Cash,
    /// Sale amount less cost: no fees.
    pub gross: Cash,
    /// Sale amount less cost and the fees of both sides.
    pub net: Cash,
}

/// The ledger refused a change, or its state contradicts its events. Either is a defect of the caller, never of the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// A quantity or amount of the event is not positive, or overflows.
    #[error("the event has an amount that is not positive or not representable")]
    BadAmount,
    /// More cash would leave than there is.
    #[error("cash would fall below zero")]
    CashBelowZero,
    /// More shares would leave than may be sold.
    #[error("more shares would leave than are sellable")]
    Oversold,
    /// The event needs a position that is not there.
    #[error("there is no position in the security")]
    NoPosition,
    /// The event is dated before the newest one.
    #[error("the event is older than the newest event of the ledger")]
    BackInTime,
    /// The state does not follow from the events.
    #[error("the ledger's {what} does not follow from its events")]
    Broken {
        /// Which part.
        what: &'static str,
    },
}

/// Cash, positions and every event that made them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    state: State,
    events: Vec<Event>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    day: Option<Day>,
    cash: Cash,
    withdrawable: Cash,
    fees_paid: Cash,
    realised: Cash,
    dividends: Cash,
    /// In the order in which the positions were opened.
    positions: Vec<Position>,
}

impl Ledger {
    /// A ledger that starts with `cash`, taken as zero when negative.
    pub fn new(cash: Cash) -> Self {
        let cash = Cash(cash.0.max(0));
        let state = State { cash, withdrawable: cash, ..State::default() };
        let opened = Event { seq: 1, day: Day(i32::MIN), kind: EventKind::Opened { cash }, cash };
        Self { state, events: vec![opened] }
    }

    /// Usable cash: what an order may spend.
    pub const fn cash(&self) -> Cash {
        self.state.cash
    }

    /// Cash that could leave the account today; sale proceeds join it on the next trading day.
    pub const fn withdrawable(&self) -> Cash {
        self.state.withdrawable
    }

    /// All fees paid so far.
    pub const fn fees_paid(&self) -> Cash {
        self.state.fees_paid
    }

    /// Profit and loss of all sells so far, after the fees of both sides.
    pub const fn realised(&self) -> Cash {
        self.state.realised
    }

    /// Dividends received so far.
    pub const fn dividends(&self) -> Cash {
        self.state.dividends
    }

    /// Newest trading day the ledger knows.
    pub const fn day(&self) -> Option<Day> {
        self.state.day
    }

    /// Positions in the order in which they were opened.
    pub fn positions(&self) -> &[Position] {
        &self.state.positions
    }

    /// Position in a security.
    pub fn position(&self, code: Code) -> Option<&Position> {
        self.state.positions.iter().find(|p| p.code == code)
    }

    /// Every change, oldest first.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Applies one event, or nothing. A sell returns what it realised.
    ///
    /// # Errors
    /// [`LedgerError`] when the next state would break an invariant; the ledger is then unchanged.
    pub fn record(&mut self, day: Day, kind: EventKind) -> Result<Realised, LedgerError> {
        let seq = self.events.len() as u64 + 1;
        let mut next = self.state.clone();
        let realised = next.apply(seq, day, &kind)?;
        next.check()?;
        self.events.push(Event { seq, day, kind, cash: next.cash });
        self.state = next;
        debug_assert_eq!(self.check_invariants(), Ok(()), "ledger invariants hold after every event");
        Ok(realised)
    }

    /// Checks that the state is sound and follows from the events (engine E7.3).
    ///
    /// # Errors
    /// [`LedgerError`] naming the first contradiction.
    pub fn check_invariants(&self) -> Result<(), LedgerError> {
        self.state.check()?;
        let mut replayed = State::default();
        for (i, event) in self.events.iter().enumerate() {
            if event.seq != i as u64 + 1 {
                return Err(LedgerError::Broken { what: "sequence" });
            }
            replayed.apply(event.seq, event.day, &event.kind)?;
            if replayed.cash != event.cash {
                return Err(LedgerError::Broken { what: "cash" });
            }
        }
        if replayed.positions != self.state.positions {
            return Err(LedgerError::Broken { what: "positions" });
        }
        if replayed != self.state {
            return Err(LedgerError::Broken { what: "totals" });
        }
        Ok(())
    }
}

impl State {
    fn apply(&mut self, seq: u64, day: Day, kind: &EventKind) -> Result<Realised, LedgerError> {
        if self.day.is_some_and(|newest| day < newest) {
            return Err(LedgerError::BackInTime);
        }
        match kind {
            EventKind::Opened { cash } => {
                self.cash = add(self.cash, *cash)?;
                self.withdrawable = self.cash;
                return Ok(Realised::default());
            }
            EventKind::DayStarted => {
                self.positions.iter_mut().for_each(|p| p.frozen = Shares(0));
                self.withdrawable = self.cash;
            }
            EventKind::Bought { code, price, shares, amount, fees } => {
                positive(price.0, shares.0, amount.0, fees.0)?;
                let spent = add(*amount, *fees)?;
                if spent > self.cash {
                    return Err(LedgerError::CashBelowZero);
                }
                self.cash.0 -= spent.0;
                // Proceeds that are not withdrawable yet are spent first.
                self.withdrawable = self.withdrawable.min(self.cash);
                self.fees_paid = add(self.fees_paid, *fees)?;
                let position = match self.positions.iter().position(|p| p.code == *code) {
                    Some(i) => &mut self.positions[i],
                    None => {
                        self.positions.push(Position {
                            code: *code,
                            opened_on: day,
                            opened_by: seq,
                            total: Shares(0),
                            frozen: Shares(0),
                            cost: Cash(0),
                            buy_fees: Cash(0),
                            dividends: Cash(0),
                        });
                        self.positions.last_mut().ok_or(LedgerError::NoPosition)?
                    }
                };
                position.total = more(position.total, *shares)?;
                position.frozen = more(position.frozen, *shares)?;
                position.cost = add(position.cost, *amount)?;
                position.buy_fees = add(position.buy_fees, *fees)?;
            }
            EventKind::Sold { code, price, shares, amount, fees } => {
                positive(price.0, shares.0, amount.0, fees.0)?;
                let index = self.positions.iter().position(|p| p.code == *code).ok_or(LedgerError::NoPosition)?;
                let position = &mut self.positions[index];
                if *shares > position.sellable() {
                    return Err(LedgerError::Oversold);
                }
                let (cost, buy_fees) = position.share_of_cost(*shares);
                let gross = Cash(amount.0 - cost.0);
                let net = Cash(gross.0 - buy_fees.0 - fees.0);
                position.total.0 -= shares.0;
                position.cost.0 -= cost.0;
                position.buy_fees.0 -= buy_fees.0;
                if position.total.0 == 0 {
                    self.positions.remove(index);
                }
                // Fees above the amount of a tiny sale are paid from cash, and never make it negative.
                self.cash = Cash(add(self.cash, *amount)?.0 - fees.0);
                if self.cash.0 < 0 {
                    return Err(LedgerError::CashBelowZero);
                }
                self.withdrawable = self.withdrawable.min(self.cash);
                self.fees_paid = add(self.fees_paid, *fees)?;
                self.realised = Cash(self.realised.0.checked_add(net.0).ok_or(LedgerError::BadAmount)?);
                self.day = Some(day);
                return Ok(Realised { cost, buy_fees, gross, net });
            }
            EventKind::Dividend { code, cash } => {
                if cash.0 < 0 {
                    return Err(LedgerError::BadAmount);
                }
                let position = self.positions.iter_mut().find(|p| p.code == *code).ok_or(LedgerError::NoPosition)?;
                position.dividends = add(position.dividends, *cash)?;
                self.cash = add(self.cash, *cash)?;
                self.withdrawable = add(self.withdrawable, *cash)?;
                self.dividends = add(self.dividends, *cash)?;
            }
            EventKind::SharesIn { code, shares } => {
                if shares.0 < 0 {
                    return Err(LedgerError::BadAmount);
                }
                let position = self.positions.iter_mut().find(|p| p.code == *code).ok_or(LedgerError::NoPosition)?;
                position.total = more(position.total, *shares)?;
            }
        }
        self.day = Some(day);
        Ok(Realised::default())
    }

    fn check(&self) -> Result<(), LedgerError> {
        let broken = |what: &'static str| Err(LedgerError::Broken { what });
        if self.cash.0 < 0 {
            return Err(LedgerError::CashBelowZero);
        }
        if self.withdrawable.0 < 0 || self.withdrawable > self.cash {
            return broken("withdrawable cash");
        }
        for p in &self.positions {
            if p.total.0 <= 0 || p.frozen.0 < 0 || p.frozen > p.total {
                return broken("shares");
            }
            if p.cost.0 < 0 || p.buy_fees.0 < 0 {
                return broken("cost");
            }
        }
        Ok(())
    }
}

fn add(a: Cash, b: Cash) -> Result<Cash, LedgerError> {
    a.0.checked_add(b.0).map(Cash).ok_or(LedgerError::BadAmount)
}

fn more(a: Shares, b: Shares) -> Result<Shares, LedgerError> {
    a.0.checked_add(b.0).map(Shares).ok_or(LedgerError::BadAmount)
}

fn positive(price: i64, shares: i64, amount: i64, fees: i64) -> Result<(), LedgerError> {
    if price > 0 && shares > 0 && amount > 0 && fees >= 0 { Ok(()) } else { Err(LedgerError::BadAmount) }
}
