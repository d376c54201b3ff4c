//! How exact values are shown: money and prices in CNY with two decimals, percentages with two, as-of records, plans.
//! Values are rounded half-even from exact integers (spec/tools.md T1); nothing here computes an account.

use crate::plan::Plan;
use crate::{Account, CardLimits};
use schemars::JsonSchema;
use serde::Serialize;
use traderharness_contract::{AsOf, DayField, ErrorCode, StockCode, ToolFailure};
use traderharness_market::money::div_round;
use traderharness_market::{Cash, Code, DecisionPoint, Minute, Price, Rounding, View};

/// A price with two decimals, CNY.
pub(crate) fn price(p: Price) -> f64 {
    div_round(i128::from(p.0), 100, Rounding::HalfEven) as f64 / 100.0
}

/// An amount, CNY.
pub(crate) fn cash(c: Cash) -> f64 {
    c.to_f64()
}

/// `part / whole` in percent with two decimals; `None` when the whole is not above zero.
pub(crate) fn percent(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| div_round(i128::from(part) * 10_000, i128::from(whole), Rounding::HalfEven) as f64 / 100.0)
}

/// As of when a read made at this clock is true.
pub(crate) fn as_of(view: &View<'_>) -> AsOf {
    let clock = view.clock();
    let (day, minute) = match clock.point.visible_until() {
        Some(minute) => (clock.day, minute),
        None => (view.previous_day().unwrap_or(clock.day.plus(-1)), Minute::at(15, 0)),
    };
    AsOf { day: day.into(), time: minute.to_string(), decision_point: clock.point.as_str().to_owned() }
}

/// The real code of an argument. Unknown and not-yet-listed codes get the same answer, and it never repeats the code.
pub(crate) fn code(view: &View<'_>, text: &StockCode) -> Result<Code, ToolFailure> {
    Code::parse(text.as_str())
        .filter(|code| view.find(*code).is_some_and(|sec| view.is_listed(sec)))
        .ok_or_else(|| crate::Refusal::UnknownSecurity.into())
}

/// The failure of a tool that needs a position.
pub(crate) fn not_held() -> ToolFailure {
    ToolFailure::new(ErrorCode::PositionNotHeld, "The security is not held.", "Call get_portfolio to see what is held.")
        .with("required_tool", "get_portfolio")
}

/// The failure of a tool that belongs to another decision point.
pub(crate) fn wrong_point(tool: &str, point: DecisionPoint, instead: &str) -> ToolFailure {
    ToolFailure::new(
        ErrorCode::ToolUnavailableInPhase,
        format!("{tool} is not available at {point}."),
        format!("Call {instead} instead."),
    )
    .with("required_tool", instead)
}

/// The plan a position was opened with.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanShown {
    /// Behaviour the trade bets on.
    pub behavior_hypothesis: String,
    /// Price that confirmed the idea, CNY; moved by ex-dates only.
    pub confirmation_level: f64,
    /// Price that proves it wrong, CNY; moved by ex-dates only.
    pub original_structural_stop: f64,
    /// Trigger of the plan's protective stop as it stands now, CNY; null when it is no longer active.
    pub current_protective_stop: Option<f64>,
    /// When to leave.
    pub exit_condition: String,
    /// Sessions it should take.
    pub expected_holding_days: u32,
    /// Sessions before which it may only be sold at or below the original stop; 0 = none.
    pub minimum_holding_days: u32,
    /// Price of the opening fill, CNY, as traded.
    pub entry_price: f64,
    /// Day of the opening fill.
    pub entry_date: DayField,
    /// Sessions since the opening fill: 0 on its day.
    pub holding_trading_days: u32,
    /// Decision card it was opened with; null when the card of the run needs none.
    pub decision_card: Option<crate::decision_card::DecisionCard>,
    /// Tools whose results on the security were kept with the plan.
    pub decision_evidence: Vec<String>,
    /// Id of the protective stop created with it; null when there is none.
    pub conditional_order_id: Option<String>,
}

impl PlanShown {
    pub(crate) fn of(plan: &Plan, account: &Account, view: &View<'_>) -> Self {
        let stop = plan.protective_order_id.as_deref().and_then(|id| account.conditions().find(id)).filter(|o| o.is_active());
        Self {
            current_protective_stop: stop.map(|o| price(o.trigger)),
            behavior_hypothesis: plan.behavior_hypothesis.clone(),
            confirmation_level: price(plan.confirmation_level),
            original_structural_stop: price(plan.original_structural_stop),
            exit_condition: plan.exit_condition.clone(),
            expected_holding_days: plan.expected_holding_days,
            minimum_holding_days: plan.minimum_holding_days,
            entry_price: price(plan.entry_price),
            entry_date: plan.entry_day.into(),
            holding_trading_days: crate::matching::sessions_held(view, plan.entry_day),
            decision_card: plan.decision_card.as_deref().cloned(),
            decision_evidence: plan.evidence.keys().cloned().collect(),
            conditional_order_id: plan.protective_order_id.clone(),
        }
    }
}

/// One held security.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PositionShown {
    /// Code.
    pub stock_code: StockCode,
    /// Shares held.
    pub quantity: i64,
    /// Shares that may be sold now.
    pub sellable: i64,
    /// Shares locked until the next trading day (T+1).
    pub frozen: i64,
    /// Shares bought today.
    pub today_bought: i64,
    /// Average cost per share without fees, CNY.
    pub avg_cost: f64,
    /// Cost of the shares held without fees, CNY.
    pub cost_total: f64,
    /// Fees paid to buy the shares held, CNY.
    pub fees_paid: f64,
    /// Last visible price, CNY.
    pub current_price: f64,
    /// Where the price came from: current_visible_5min_close, previous_daily_close, previous_daily_close_ex_right (last close moved by
    /// an ex-date since then), or average_cost_fallback (no usable price in the dataset).
    pub price_source: String,
    /// Day of the price; null for average_cost_fallback.
    pub price_day: Option<DayField>,
    /// Exchange time of the price, HH:MM; null for average_cost_fallback.
    pub price_time: Option<String>,
    /// Quantity times price, CNY.
    pub market_value: f64,
    /// Share of total assets, percent.
    pub exposure_pct: Option<f64>,
    /// Market value less cost and buy fees, CNY. The fees of a later sale are not known and not in it.
    pub pnl: f64,
    /// Market value less cost, CNY.
    pub pnl_gross: f64,
    /// `pnl_gross` in percent of the cost.
    pub pnl_pct: Option<f64>,
    /// Gross cash dividends received while held, CNY; not in pnl.
    pub dividends: f64,
    /// Calendar days since the first buy of the position.
    pub days_held: i32,
    /// Sessions since the first buy: 0 on its day.
    pub holding_trading_days: u32,
    /// True when no bar of today is visible although the market has traded; null when that cannot be known: before the open, and
    /// where the dataset has no 5-minute bars to tell.
    pub suspended: Option<bool>,
    /// Plan it was opened with; null when the card needs none.
    pub position_plan: Option<PlanShown>,
}

/// Every held security, in the order in which the positions were opened.
pub(crate) fn positions(view: &View<'_>, account: &Account, valuation: &crate::Valuation) -> Vec<PositionShown> {
    let entries = account.ledger().positions().iter().zip(&valuation.positions);
    entries
        .map(|(held, marked)| {
            let sellable = crate::Matching::sellable(account, view, held.code);
            let frozen = held.total.0 - sellable.0;
            let gross = marked.value.0 - held.cost.0;
            PositionShown {
                stock_code: held.code.into(),
                quantity: held.total.0,
                sellable: sellable.0,
                frozen,
                today_bought: frozen,
                avg_cost: price(held.average_cost()),
                cost_total: cash(held.cost),
                fees_paid: cash(held.buy_fees),
                current_price: price(marked.mark.price),
                price_source: marked.mark.source.as_str().to_owned(),
                price_day: marked.mark.time.map(|(day, _)| day.into()),
                price_time: marked.mark.time.map(|(_, minute)| minute.to_string()),
                market_value: cash(marked.value),
                exposure_pct: percent(marked.value.0, valuation.total.0),
                pnl: cash(Cash(gross - held.buy_fees.0)),
                pnl_gross: cash(Cash(gross)),
                pnl_pct: percent(gross, held.cost.0),
                dividends: cash(held.dividends),
                days_held: view.today().days_since(held.opened_on),
                holding_trading_days: crate::matching::sessions_held(view, held.opened_on),
                suspended: view.find(held.code).and_then(|sec| view.suspended_today(sec)),
                position_plan: account.plan(held.code).map(|plan| PlanShown::of(plan, account, view)),
            }
        })
        .collect()
}

/// Limits of the card that a buy meets.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LimitsShown {
    /// Positions held at most.
    pub max_positions: u32,
    /// Share of total assets one position may have after a buy, percent.
    pub max_position_pct: f64,
}

impl LimitsShown {
    pub(crate) fn of(limits: &CardLimits) -> Self {
        Self { max_positions: limits.max_positions, max_position_pct: f64::from(limits.max_position_basis_points) / 100.0 }
    }
}
