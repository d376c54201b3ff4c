//! `list_conditional_orders`: every conditional order with its state, changes and attempts.

use super::shown;
use crate::conditional::{Changed, ConditionalOrder, Status};
use crate::{Account, CardLimits, ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::budget::ListRequest;
use traderharness_contract::{AsOf, DayField, Effect, ErrorCode, Group, Repeat, StockCode, Tool, ToolFailure, ToolSpec};
use traderharness_market::{Day, View};

/// The tool.
#[derive(Debug)]
pub struct ListConditionalOrders;

/// Which states to show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusFilter {
    /// Orders that may still fire.
    #[default]
    Active,
    /// Orders that were filled.
    Triggered,
    /// Orders cancelled by the agent, or because their position was closed.
    Cancelled,
    /// Orders whose trading days are over.
    Expired,
    /// Every order.
    All,
}

impl StatusFilter {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Triggered => "triggered",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::All => "all",
        }
    }

    fn shows(self, status: Status) -> bool {
        self == Self::All || self.as_str() == status.as_str()
    }
}

/// Which orders.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// States to show; active by default.
    #[serde(default)]
    pub status: StatusFilter,
    /// next_cursor of the previous page, with the same status; left out for the first one. It is good at the same decision point while
    /// the orders of that state are the same.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    pub cursor: Option<String>,
}

/// One changed field of an order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangeShown {
    /// Field: trigger_price (CNY), quantity (shares) or expires_in_trading_days (trading days left).
    pub field: String,
    /// Value before; null = never expires.
    pub from: Option<f64>,
    /// Value after; null = never expires.
    pub to: Option<f64>,
}

/// A change of an order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RevisionShown {
    /// Day of the change.
    pub day: DayField,
    /// Trading days since the start of the run.
    pub day_index: u32,
    /// Why.
    pub reasoning: String,
    /// Changed fields.
    pub changes: Vec<ChangeShown>,
}

/// A bar at which the condition held.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttemptShown {
    /// Day of the bar.
    pub date: DayField,
    /// Trading days since the start of the run.
    pub day_index: u32,
    /// End of the bar, HH:MM.
    pub time: String,
    /// Close of the bar, CNY.
    pub price: f64,
    /// True when it was filled.
    pub success: bool,
    /// Failure code; null when it was filled.
    pub error: Option<String>,
    /// Bars of that day with the same outcome; the time and price are those of the first.
    pub bars: u32,
}

/// One conditional order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OrderShown {
    /// Id.
    pub order_id: String,
    /// Code.
    pub stock_code: StockCode,
    /// Side: buy or sell.
    pub side: String,
    /// Shares; 0 in a sell means all that is sellable at the trigger.
    pub quantity: i64,
    /// price_lte or price_gte.
    pub comparator: String,
    /// Trigger, CNY.
    pub trigger_price: f64,
    /// Why, in your own words.
    pub reasoning: String,
    /// True for a stop that may only rise.
    pub protective: bool,
    /// State: active, triggered, cancelled or expired.
    pub status: String,
    /// Day it was made.
    pub created_day: DayField,
    /// Trading days from the start of the run to that day.
    pub created_day_index: u32,
    /// Phase in which it was made.
    pub created_phase: String,
    /// Decision point at which it was made.
    pub created_decision_point: String,
    /// Only bars after this day and active_after_minute can fire it. Both move forward after each evaluation, past the bars that were
    /// looked at.
    pub active_after_day: DayField,
    /// Minute of active_after_day, 0 to 1440, moved forward with it after each evaluation; -1 when all bars of that day count, 1440 when
    /// none does.
    pub active_after_minute: i32,
    /// Positions held at most, as a buy will meet it.
    pub max_positions: u32,
    /// Share of total assets one position may have, percent, as a buy will meet it.
    pub max_position_pct: f64,
    /// Changes, oldest first.
    #[schemars(extend("x-order" = "oldest_first"))]
    pub revisions: Vec<RevisionShown>,
    /// Bars at which the condition held, oldest first.
    #[schemars(extend("x-order" = "oldest_first"))]
    pub attempts: Vec<AttemptShown>,
    /// Trading days left, today included; null = never expires.
    pub expires_in_trading_days: Option<u32>,
    /// Day on which it ended; absent while it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_day: Option<DayField>,
    /// Trading days from the start of the run to that day; absent while it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_day_index: Option<u32>,
    /// End of the bar that filled it, HH:MM; absent unless it was triggered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggered_time: Option<String>,
    /// Why it was cancelled; absent unless it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_reasoning: Option<String>,
}

impl OrderShown {
    pub(crate) fn of(order: &ConditionalOrder, account: &Account, limits: &CardLimits, view: &View<'_>) -> Self {
        let index = |day: Day| {
            let first = account.first_day().unwrap_or(day);
            // The calendar up to today is enough: nothing here is dated later.
            let days = view.past_days();
            (days.partition_point(|d| *d < day) - days.partition_point(|d| *d < first)) as u32
        };
        let (seen_day, seen_minute) = order.seen;
        let shown_limits = shown::LimitsShown::of(limits);
        let change = |c: &Changed| match c {
            Changed::Trigger { from, to } => {
                ChangeShown { field: "trigger_price".into(), from: Some(shown::price(*from)), to: Some(shown::price(*to)) }
            }
            Changed::Quantity { from, to } => {
                ChangeShown { field: "quantity".into(), from: Some(from.0 as f64), to: Some(to.0 as f64) }
            }
            Changed::Expiry { from, to } => {
                ChangeShown { field: "expires_in_trading_days".into(), from: from.map(f64::from), to: to.map(f64::from) }
            }
        };
        Self {
            order_id: order.id(),
            stock_code: order.security.into(),
            side: order.side.as_str().to_owned(),
            quantity: order.shares.0,
            comparator: order.comparator.as_str().to_owned(),
            trigger_price: shown::price(order.trigger),
            reasoning: order.reasoning.clone(),
            protective: order.protective,
            status: order.status.as_str().to_owned(),
            created_day: order.created_day.into(),
            created_day_index: index(order.created_day),
            created_phase: order.created_point.phase().as_str().to_owned(),
            created_decision_point: order.created_point.as_str().to_owned(),
            active_after_day: seen_day.into(),
            active_after_minute: if seen_minute.0 == 0 { -1 } else { i32::from(seen_minute.0) },
            max_positions: shown_limits.max_positions,
            max_position_pct: shown_limits.max_position_pct,
            revisions: order
                .revisions
                .iter()
                .map(|r| RevisionShown {
                    day: r.day.into(),
                    day_index: index(r.day),
                    reasoning: r.reasoning.clone(),
                    changes: r.changes.iter().map(change).collect(),
                })
                .collect(),
            attempts: order
                .attempts
                .iter()
                .map(|a| AttemptShown {
                    date: a.day.into(),
                    day_index: index(a.day),
                    time: a.bar_end.to_string(),
                    price: shown::price(a.price),
                    success: a.error.is_none(),
                    error: a.error.map(|code| code.as_str().to_owned()),
                    bars: a.bars,
                })
                .collect(),
            expires_in_trading_days: order.days_left(view),
            ended_day: order.ended.as_ref().map(|e| e.day.into()),
            ended_day_index: order.ended.as_ref().map(|e| index(e.day)),
            triggered_time: order.ended.as_ref().and_then(|e| e.bar_end).map(|m| m.to_string()),
            cancel_reasoning: order.ended.as_ref().filter(|_| order.status == Status::Cancelled).map(|e| e.reasoning.clone()),
        }
    }
}

/// The orders.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Orders in order of id.
    pub orders: Vec<OrderShown>,
    /// The same as returned.
    pub count: usize,
    /// Orders of the asked state, on all pages.
    pub total: usize,
    /// Number of orders on this page.
    pub returned: usize,
    /// True when this page holds them all.
    pub complete: bool,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// State that was asked for.
    pub status_filter: String,
    /// Orders that may still fire, whatever was asked for; at most 64 are kept.
    pub active_count: usize,
    /// Why there is none; absent when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_reason: Option<String>,
    /// As of when this is true.
    pub as_of: AsOf,
}

impl Tool for ListConditionalOrders {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "list_conditional_orders",
        group: Group::Execution,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Lists conditional orders with their triggers, trading days left, changes and attempts.",
        notes: &[
            "Orders come in order of id.",
            "Prices in CNY, quantities in shares, days in trading days.",
            "Orders too many for one answer come in pages: ask again with cursor set to next_cursor.",
        ],
        example: r#"{"status": "active"}"#,
        result_summary: "The orders of the asked state, each with its trigger, days left, changes and attempts.",
        errors: &[ErrorCode::InvalidCursor],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let conditions = ctx.account.conditions();
        let found: Vec<_> = conditions.orders().iter().filter(|o| args.status.shows(o.status)).collect();
        let empty_reason = found.is_empty().then(|| {
            if conditions.orders().is_empty() { "no_conditional_order_was_made" } else { "no_order_of_this_status" }.to_owned()
        });
        let clock = ctx.view.clock_digest();
        let request = ListRequest {
            tool: Self::SPEC.name,
            query: std::iter::once(args.status.as_str().to_owned()).chain(found.iter().map(|o| o.id())).collect(),
            clock: &clock,
            cursor: args.cursor.as_deref(),
            max_records: usize::MAX,
        };
        let page = request.page_that_fits(&found, |order| OrderShown::of(order, ctx.account, ctx.limits, &ctx.view))?;
        Ok(Output {
            count: page.records.len(),
            total: page.total,
            returned: page.records.len(),
            complete: page.complete,
            next_cursor: page.next_cursor,
            orders: page.records,
            status_filter: args.status.as_str().to_owned(),
            active_count: conditions.active().count(),
            empty_reason,
            as_of: shown::as_of(&ctx.view),
        })
    }
}
