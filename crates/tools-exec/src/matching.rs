//! [`Matching`], the one order path. Every door and every conditional order fills through [`Matching::place`] (DESIGN rule 2).
//!
//! Checks run in this fixed order, and the first failure wins (engine E3.1):
//!
//! 1. idempotency key: the same order gets its first result again, another order under the key is a conflict
//! 2. phase: no orders before the open
//! 3. the security is in this run's universe
//! 4. size: a buy is a whole lot of the board, nothing is above the board's largest order
//! 5. the security has traded today
//! 6. it has a usable bar at which to fill
//! 7. that bar has volume, and enough of it is left under the card's participation cap
//! 8. the band reference is known
//! 9. the price is not locked at the limit on this side
//! 10. once per security and day
//! 11. ST, position count (card limits of an opening buy that no other size can satisfy)
//! 12. sells: held, T+1, sellable, lot; buys: cash with fees, then weight
//! 13. plan, decision card, minimum holding
//!
//! Steps 2-13 read the account through a shared reference, so a refusal cannot change anything. The largest accepted quantity named
//! by a refusal satisfies cash, weight, lot and liquidity together. A sell of everything (quantity 0) that is more than the board takes
//! in one order stands for as many orders as the exchange would need, all at this bar: a stop must be able to leave a position.
#![deny(clippy::float_arithmetic)]

use crate::account::{Account, CardLimits, Keyed};
use crate::ledger::EventKind;
use crate::order::{Fill, Order, Origin, RuleSet};
use crate::plan::{Levels, Plan};
use crate::refusal::Refusal;
use crate::valuation::{self, usable_price};
use traderharness_market::money::{decimal, div_round};
use traderharness_market::rules::{self, LotRule};
use traderharness_market::{Band, Board, Cash, Code, Day, Fees, Minute, Price, Rounding, SecId, Shares, Side, View};

/// The matching engine. It has no state: the market is the view, the rest is the account.
#[derive(Debug, Clone, Copy, Default)]
pub struct Matching;

/// An order that passed every check, with what it needs to settle.
#[derive(Debug)]
struct Ticket {
    bar: FillBar,
    rules: RuleSet,
    shares: Shares,
    amount: Cash,
    fees: Fees,
    opened: bool,
    /// Shares of the bar still open to the account before this order; `None` without a cap.
    liquidity: Option<Shares>,
    levels: Option<Levels>,
}

/// The bar an order fills at.
#[derive(Debug, Clone, Copy)]
struct FillBar {
    end: Minute,
    price: Price,
    volume: Shares,
}

impl Matching {
    /// Fills an order or says why not. On a refusal the account is exactly as before. The host begins each day with
    /// [`Account::start_day`], so that ex-dates are in the account before the first order.
    ///
    /// # Errors
    /// The first [`Refusal`] in the order of the module text.
    pub fn place(order: Order, view: &View<'_>, account: &mut Account, limits: &CardLimits) -> Result<Fill, Refusal> {
        if let Some(first) = order.idempotency_key.as_ref().and_then(|key| account.keyed.get(key)) {
            if first.order != order {
                return Err(Refusal::IdempotencyConflict);
            }
            return Ok(Fill { repeated: true, ..first.fill.clone() });
        }
        let ticket = check(&order, view, account, limits)?;
        settle(order, ticket, view, account, limits)
    }

    /// Shares of a security that may be sold on the view's day.
    pub fn sellable(account: &Account, view: &View<'_>, code: Code) -> Shares {
        account.ledger.position(code).map_or(Shares(0), |p| {
            // An account that has not begun this day yet has nothing locked on it.
            if account.day == Some(view.today()) { p.sellable() } else { p.total }
        })
    }
}

/// A buy quantity a board accepts, or the refusal that says which are.
pub(crate) fn check_buy_lot(board: Board, day: Day, shares: Shares) -> Result<(), Refusal> {
    let (rule, max) = (rules::lot_rule(board), rules::max_order(board, day));
    if rule.accepts_buy(shares) && shares <= max {
        return Ok(());
    }
    Err(Refusal::BuyLot { asked: shares.0, min: rule.min.0, step: rule.step.0, max: max.0 })
}

/// Odd lots leave only with the whole odd remainder, in one order (complaint OR-2): of 130 sellable shares 130, 100 and 30 may be
/// sold, 50 may not. Boards with a step of 1 sell their minimum or more, or all that is left when that is less.
pub(crate) fn check_sell_lot(rule: LotRule, shares: Shares, sellable: Shares) -> Result<(), Refusal> {
    let refuse = |text: &'static str, mut accepted: Vec<i64>| {
        accepted.retain(|n| *n > 0 && *n <= sellable.0);
        accepted.sort_unstable();
        accepted.dedup();
        Err(Refusal::SellLot { asked: shares.0, sellable: sellable.0, rule: text, accepted })
    };
    if shares == sellable {
        return Ok(());
    }
    if rule.step.0 == 1 {
        if shares >= rule.min {
            return Ok(());
        }
        return refuse(
            "this board sells its minimum or more, or all that is left when that is less",
            vec![rule.min.0, sellable.0],
        );
    }
    let odd = sellable.0 % rule.step.0;
    if shares.0 % rule.step.0 == 0 || shares.0 % rule.step.0 == odd {
        return Ok(());
    }
    let below = shares.0 - shares.0 % rule.step.0;
    refuse(
        "only whole lots may be sold, and an odd remainder only as a whole",
        vec![below, below + odd, below + rule.step.0, odd, sellable.0],
    )
}

fn fill_bar(order: &Order, view: &View<'_>, sec: SecId) -> Result<FillBar, Refusal> {
    let (after, until) = view.clock().point.interval().ok_or(Refusal::OrderUnavailableInPhase)?;
    let bar = match &order.origin {
        Origin::Agent => view.window_bar(sec),
        Origin::Condition { bar_end, .. } => {
            let bars = view.minutes_today(sec);
            bars.minute.binary_search(bar_end).ok().and_then(|i| bars.get(i))
        }
    };
    let usable = bar.and_then(|b| Some((b.end?, usable_price(b.close?)?, b.volume)));
    let (end, price, volume) = usable.ok_or(Refusal::NoBarInWindow { after, until })?;
    // An unknown volume counts as none: nothing shows that anyone traded.
    let volume = Shares(volume.and_then(|v| decimal(v, 0, Rounding::Down)).unwrap_or(0).max(0));
    Ok(FillBar { end, price, volume })
}

fn check(order: &Order, view: &View<'_>, account: &Account, limits: &CardLimits) -> Result<Ticket, Refusal> {
    let today = view.today();
    if account.day.is_some_and(|newest| newest > today) {
        return Err(Refusal::ClockBehindAccount);
    }
    if view.clock().point.interval().is_none() {
        return Err(Refusal::OrderUnavailableInPhase);
    }
    let sec = view.find(order.security).filter(|sec| view.is_listed(*sec)).ok_or(Refusal::UnknownSecurity)?;
    let board = view.board(sec).ok_or(Refusal::UnknownSecurity)?;
    let max = rules::max_order(board, today);
    match order.side {
        Side::Buy => check_buy_lot(board, today, order.shares)?,
        Side::Sell if order.shares.0 < 0 || order.shares > max => {
            return Err(Refusal::SellSize { asked: order.shares.0, max: max.0 });
        }
        Side::Sell => {}
    }
    if view.is_suspended_today(sec) {
        return Err(Refusal::Suspended);
    }
    let bar = fill_bar(order, view, sec)?;
    let sellable = Matching::sellable(account, view, order.security);
    let shares = if order.side == Side::Sell && order.shares.0 == 0 { sellable } else { order.shares };

    let liquidity = liquidity(account, today, order, bar, limits);
    let buyer = Buyer { order, view, account, limits, board, bar, liquidity };
    let left = liquidity.unwrap_or(bar.volume);
    if bar.volume.0 <= 0 || left.0 <= 0 || liquidity.is_some_and(|left| shares > left) {
        let max_quantity = match order.side {
            Side::Buy => buyer.largest(),
            Side::Sell if left >= sellable => sellable,
            Side::Sell => rules::lot_rule(board).round_down(left),
        };
        let left = if bar.volume.0 <= 0 { Shares(0) } else { Shares(left.0.max(0)) };
        return Err(Refusal::NoLiquidity { bar_end: bar.end, volume: bar.volume, left, max_quantity });
    }

    let (name, up, down) = match view.band(sec).map_err(|fault| Refusal::PriceReferenceMissing { fault })? {
        Band::Limits { up, down, rule, .. } => (rule, Some(up), Some(down)),
        Band::None { rule } => (rule, None, None),
    };
    if let (Some(up), Some(down)) = (up, down) {
        match order.side {
            Side::Buy if bar.price >= up => return Err(Refusal::LimitUpLocked { price: bar.price, up, down }),
            Side::Sell if bar.price <= down => return Err(Refusal::LimitDownLocked { price: bar.price, up, down }),
            _ => {}
        }
    }
    if limits.once_per_day && account.traded_today(order.security, today) {
        return Err(Refusal::AlreadyTradedToday { sellable });
    }
    let held = account.ledger.position(order.security);
    let opened = order.side == Side::Buy && held.is_none();
    if opened {
        if limits.forbid_st && view.is_st(sec) == Some(true) {
            return Err(Refusal::StForbidden);
        }
        let count = account.ledger.positions().len();
        if count >= limits.max_positions as usize {
            return Err(Refusal::PositionCountLimit { held: count, max: limits.max_positions });
        }
    }
    match (order.side, held) {
        (Side::Sell, None) => return Err(Refusal::PositionNotHeld),
        (Side::Sell, Some(position)) => {
            if sellable.0 <= 0 {
                return Err(Refusal::TPlusOneLocked { total: position.total });
            }
            if shares > sellable {
                let frozen = Shares(position.total.0 - sellable.0);
                return Err(Refusal::InsufficientSellable { asked: shares, sellable, total: position.total, frozen });
            }
            check_sell_lot(rules::lot_rule(board), shares, sellable)?;
        }
        (Side::Buy, _) => buyer.check(shares)?,
    }
    let amount = amount(bar.price, shares);
    let fees = rules::fees(limits.fees, order.side, board, today, amount);
    if order.side == Side::Sell && account.ledger.cash().0 + amount.0 < fees.total().0 {
        return Err(Refusal::InsufficientCash { needs: fees.total(), has: account.ledger.cash(), max_quantity: Shares(0) });
    }
    let levels = check_plan(order, view, account, limits, bar.price, opened, shares, sellable)?;
    let rules = RuleSet {
        band: name,
        limit_up: up,
        limit_down: down,
        fees: limits.fees,
        participation_basis_points: limits.participation_basis_points,
    };
    Ok(Ticket { bar, rules, shares, amount, fees, opened, liquidity, levels })
}

/// Shares of the bar the account may still trade; `None` when the card sets no cap.
fn liquidity(account: &Account, today: Day, order: &Order, bar: FillBar, limits: &CardLimits) -> Option<Shares> {
    let basis_points = limits.participation_basis_points?;
    let cap = i128::from(bar.volume.0) * i128::from(basis_points.min(10_000)) / 10_000;
    let used = match account.day {
        Some(day) if day == today => account.bar_used.get(&(order.security, bar.end)).map_or(0, |s| s.0),
        _ => 0,
    };
    Some(Shares((cap as i64 - used).max(0)))
}

/// `price x shares`, saturating far above any real amount.
pub(crate) fn amount(price: Price, shares: Shares) -> Cash {
    let fen = div_round(i128::from(price.0) * i128::from(shares.0), 100, Rounding::HalfUp);
    Cash(i64::try_from(fen).unwrap_or(i64::MAX / 4).min(i64::MAX / 4))
}

/// What limits the size of one buy.
struct Buyer<'a> {
    order: &'a Order,
    view: &'a View<'a>,
    account: &'a Account,
    limits: &'a CardLimits,
    board: Board,
    bar: FillBar,
    liquidity: Option<Shares>,
}

impl Buyer<'_> {
    fn needs(&self, shares: Shares) -> Cash {
        let amount = amount(self.bar.price, shares);
        Cash(amount.0 + rules::fees(self.limits.fees, Side::Buy, self.board, self.view.today(), amount).total().0)
    }

    /// Total assets before the order and value of the position already held, both at prices known when the order fills.
    fn assets(&self) -> (Cash, Cash) {
        let until = match self.order.origin {
            Origin::Agent => None,
            Origin::Condition { bar_end, .. } => Some(bar_end),
        };
        let valuation = valuation::value(&self.account.ledger, self.view, until);
        let held = valuation.position(self.order.security).map_or(Cash(0), |p| p.value);
        (valuation.total, held)
    }

    /// Weight after a buy, in basis points rounded up, when it is above the cap (engine E3.9: fees have left the assets).
    fn overweight(&self, shares: Shares, (total, held): (Cash, Cash)) -> Option<u64> {
        let amount = amount(self.bar.price, shares);
        let after = i128::from(total.0) - i128::from(self.needs(shares).0 - amount.0);
        let position = i128::from(held.0) + i128::from(amount.0);
        let cap = i128::from(self.limits.max_position_basis_points);
        if after > 0 && position * 10_000 <= cap * after {
            return None;
        }
        Some(if after > 0 { ((position * 10_000 + after - 1) / after) as u64 } else { u64::MAX / 4 })
    }

    /// Largest buy that cash, weight, lot, order size and liquidity accept together; 0 when none is.
    fn largest(&self) -> Shares {
        let rule = rules::lot_rule(self.board);
        let top = rules::max_order(self.board, self.view.today()).min(self.liquidity.unwrap_or(Shares(i64::MAX)));
        if self.bar.volume.0 <= 0 || top < rule.min {
            return Shares(0);
        }
        let assets = self.assets();
        let cash = self.account.ledger.cash();
        let fits = |shares: Shares| self.needs(shares) <= cash && self.overweight(shares, assets).is_none();
        let at = |k: i64| Shares(rule.min.0 + k * rule.step.0);
        // Cost and weight rise with the size, so the accepted sizes are a prefix.
        let (mut low, mut high) = (0, (top.0 - rule.min.0) / rule.step.0 + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(at(middle)) { low = middle + 1 } else { high = middle }
        }
        if low == 0 { Shares(0) } else { at(low - 1) }
    }

    fn check(&self, shares: Shares) -> Result<(), Refusal> {
        let (needs, has) = (self.needs(shares), self.account.ledger.cash());
        if needs > has {
            return Err(Refusal::InsufficientCash { needs, has, max_quantity: self.largest() });
        }
        if let Some(weight) = self.overweight(shares, self.assets()) {
            let cap = u64::from(self.limits.max_position_basis_points);
            return Err(Refusal::PositionWeightLimit { weight, cap, max_quantity: self.largest() });
        }
        Ok(())
    }
}

#[expect(clippy::too_many_arguments, reason = "one step of one check list, split out to keep that list readable")]
fn check_plan(
    order: &Order,
    view: &View<'_>,
    account: &Account,
    limits: &CardLimits,
    price: Price,
    opened: bool,
    shares: Shares,
    sellable: Shares,
) -> Result<Option<Levels>, Refusal> {
    if opened && (limits.require_structured_plan || limits.require_decision_card) {
        if order.origin != Origin::Agent {
            return Err(Refusal::ConditionCannotOpen);
        }
        let empty = crate::plan::PlanRequest::default();
        let plan = order.plan.as_ref().unwrap_or(&empty);
        let mut levels = None;
        if limits.require_structured_plan {
            let fields = plan.missing();
            if !fields.is_empty() {
                return Err(Refusal::PlanMissing { fields });
            }
        }
        if limits.require_decision_card {
            let card = plan.decision_card.as_deref().ok_or(crate::decision_card::CardRefusal::MissingFields {
                fields: crate::decision_card::DecisionCard::FIELDS.to_vec(),
            })?;
            card.check(order.security, &account.evidence)?;
        }
        if limits.require_structured_plan {
            levels = Some(plan.levels(price)?);
        }
        return Ok(levels);
    }
    if order.side == Side::Sell
        && let Some(plan) = account.plans.get(&order.security)
    {
        let held = sessions_held(view, plan.entry_day);
        if held < plan.minimum_holding_days {
            if price > plan.original_structural_stop {
                return Err(Refusal::MinimumHolding {
                    minimum: plan.minimum_holding_days,
                    held,
                    stop: plan.original_structural_stop,
                    price,
                });
            }
            if shares != sellable {
                return Err(Refusal::MinimumHoldingPartial { sellable });
            }
        }
    }
    Ok(None)
}

/// Sessions from `entry` to today: 0 on the day of entry, 1 on the next trading day.
pub(crate) fn sessions_held(view: &View<'_>, entry: Day) -> u32 {
    let past = view.past_days();
    (past.len() - past.partition_point(|d| *d < entry)) as u32
}

fn settle(order: Order, ticket: Ticket, view: &View<'_>, account: &mut Account, limits: &CardLimits) -> Result<Fill, Refusal> {
    account.start_day(view)?;
    let (code, today) = (order.security, view.today());
    let Ticket { bar, rules, shares, amount, fees, opened, liquidity, levels } = ticket;
    let total = fees.total();
    let kind = match order.side {
        Side::Buy => EventKind::Bought { code, price: bar.price, shares, amount, fees: total },
        Side::Sell => EventKind::Sold { code, price: bar.price, shares, amount, fees: total },
    };
    let realised = account.ledger.record(today, kind)?;
    account.bar_used.entry((code, bar.end)).or_default().0 += shares.0;
    let closed = order.side == Side::Sell && account.ledger.position(code).is_none();
    if closed {
        account.plans.remove(&code);
        let by = match &order.origin {
            Origin::Agent => None,
            Origin::Condition { order_id, .. } => Some(order_id.as_str()),
        };
        account.conditions.position_closed(code, today, by);
    }
    let mut protective_order_id = None;
    if let (true, Some(levels), Some(request)) = (opened, levels, &order.plan) {
        protective_order_id = Some(account.conditions.add_plan_stop(code, levels.stop, view));
        account.plans.insert(
            code,
            Plan {
                behavior_hypothesis: request.behavior_hypothesis.clone().unwrap_or_default(),
                confirmation_level: levels.confirmation,
                original_structural_stop: levels.stop,
                exit_condition: request.exit_condition.clone().unwrap_or_default(),
                expected_holding_days: request.expected_holding_days.unwrap_or_default(),
                minimum_holding_days: limits.minimum_holding_days,
                entry_price: bar.price,
                entry_day: today,
                decision_card: request.decision_card.clone(),
                evidence: account.evidence.snapshot(code),
                protective_order_id: protective_order_id.clone(),
            },
        );
    }
    let fill = Fill {
        number: account.fills.len() as u64 + 1,
        day: today,
        point: view.clock().point,
        bar_end: bar.end,
        bar_volume: bar.volume,
        liquidity_left: liquidity.map(|left| Shares(left.0 - shares.0)),
        rules,
        security: code,
        side: order.side,
        price: bar.price,
        shares,
        amount,
        fees,
        realised,
        opened,
        closed,
        cash_after: account.ledger.cash(),
        withdrawable_after: account.ledger.withdrawable(),
        holdings_after: account.ledger.positions().iter().map(|p| (p.code, p.total)).collect(),
        protective_order_id,
        reasoning: order.reasoning.clone(),
        origin: order.origin.clone(),
        repeated: false,
    };
    account.fills.push(fill.clone());
    if let Some(key) = order.idempotency_key.clone() {
        account.keyed.insert(key, Keyed { order, fill: fill.clone() });
    }
    Ok(fill)
}
