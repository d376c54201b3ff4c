//! `place_order`: a plain order at the last visible bar. Reads the arguments, hands them to [`gate::submit`], shows the fill.

use super::shown;
use crate::decision_card::DecisionCard;
use crate::plan::PlanRequest;
use crate::{ExecCtx, ExecTools, Fill, Order, Origin, Refusal, control, gate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use traderharness_contract::{DayField, Effect, ErrorCode, Group, Policy, Repeat, StockCode, Tool, ToolFailure, ToolSpec};
use traderharness_market::{Code, Shares, Side};

/// The tool.
#[derive(Debug)]
pub struct PlaceOrder;

/// Side of an order.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Take shares for cash.
    Buy,
    /// Give shares for cash.
    Sell,
}

impl From<Action> for Side {
    fn from(action: Action) -> Self {
        match action {
            Action::Buy => Self::Buy,
            Action::Sell => Self::Sell,
        }
    }
}

/// An order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Side of the order.
    pub action: Action,
    /// Complete code of the security, exactly as another tool of this run showed it.
    #[schemars(length(min = 6))]
    pub stock_code: StockCode,
    /// Shares. A buy: whole lots (100; STAR at least 200 and BSE at least 100, then any number). A sell: at most the sellable
    /// quantity, in lots or with the whole odd remainder; 0 sells all that is sellable.
    #[schemars(range(min = 0))]
    pub quantity: i64,
    /// Why, in your own words; 1 to 2000 characters. Kept with the fill.
    #[schemars(length(min = 1, max = 2000))]
    pub reasoning: String,
    /// Name of the company for the reader, at most 80 characters; not used to find the security.
    #[serde(default)]
    #[schemars(length(max = 80))]
    pub stock_name: Option<String>,
    /// A key of your choice, 1 to 64 characters. The same order under the same key is filled once; asking again returns the first
    /// result. None by default.
    #[serde(default)]
    #[schemars(length(min = 1, max = 64))]
    pub idempotency_key: Option<String>,
    /// Behaviour the trade bets on, at most 1000 characters.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub behavior_hypothesis: Option<String>,
    /// Price that confirms the idea, CNY, above 0, on the tick of 0.01; the fill price must have reached it.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub confirmation_level: Option<f64>,
    /// Price that proves the idea wrong, CNY, above 0 and below the fill price, on the tick of 0.01. A protective stop is created there.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub original_structural_stop: Option<f64>,
    /// When to leave the position, at most 1000 characters.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub exit_condition: Option<String>,
    /// Sessions the trade should take, at least 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub expected_holding_days: Option<u32>,
    /// Decision card; every field in it is required and none may be blank.
    #[serde(default)]
    pub decision_card: Option<DecisionCard>,
}

/// Fees by kind, CNY.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FeesShown {
    /// Commission, both sides.
    pub commission: f64,
    /// Stamp duty, sells only.
    pub stamp_duty: f64,
    /// Transfer fee, both sides; 0 under the reference schedule.
    pub transfer_fee: f64,
    /// Sum.
    pub total: f64,
}

/// The bar and the rules the order was filled under.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FillShown {
    /// Number of the fill in this run, from 1.
    pub number: u64,
    /// Day of the bar.
    pub bar_day: DayField,
    /// End of the bar whose close is the price, HH:MM.
    pub bar_end: String,
    /// Volume of the bar, shares.
    pub bar_volume: i64,
    /// Shares of the bar still open to this account; null when the card sets no participation cap.
    pub liquidity_left: Option<i64>,
    /// Rule that set the price band.
    pub band_rule: String,
    /// Upper limit of today, CNY; null on days without a band.
    pub limit_up: Option<f64>,
    /// Lower limit of today, CNY; null on days without a band.
    pub limit_down: Option<f64>,
    /// Fee schedule: dated or reference.
    pub fee_schedule: String,
    /// Settlement: shares bought today can be sold from the next trading day.
    pub settlement: String,
}

/// A holding after the fill.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HoldingShown {
    /// Code.
    pub code: StockCode,
    /// Shares held.
    pub qty: i64,
}

/// The account after the fill.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PortfolioAfter {
    /// Usable cash, CNY.
    pub cash: f64,
    /// Holdings in the order in which they were opened.
    pub positions: Vec<HoldingShown>,
    /// Number of holdings.
    pub position_count: usize,
}

/// A filled order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Output {
    /// Side, as sent.
    pub action: String,
    /// Code.
    pub stock_code: StockCode,
    /// Fill price per share, CNY.
    pub price: f64,
    /// Shares filled.
    pub quantity: i64,
    /// Price times quantity, CNY.
    pub amount: f64,
    /// Fees by kind.
    pub fees: FeesShown,
    /// Buys: amount and fees, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_cost: Option<f64>,
    /// Sells: amount less the fees of the sale, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_income: Option<f64>,
    /// Sells: profit after the fees of both sides, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pnl: Option<f64>,
    /// Sells: amount less the cost of the shares sold, before fees, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pnl_gross: Option<f64>,
    /// Usable cash after the fill, CNY.
    pub remaining_cash: f64,
    /// Cash that could leave the account today after the fill, CNY.
    pub withdrawable_cash: f64,
    /// The account after the fill.
    pub portfolio_after: PortfolioAfter,
    /// The bar and the rules of the fill.
    pub fill: FillShown,
    /// Id of the protective stop that the fill created; absent when none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protective_conditional_order_id: Option<String>,
    /// True when the same order was filled before under the same key: this is that first result and nothing was traded now.
    pub repeated: bool,
}

impl Output {
    fn of(fill: &Fill) -> Self {
        let sell = fill.side == Side::Sell;
        let shown_if = |on: bool, cash| on.then(|| shown::cash(cash));
        Self {
            action: fill.side.as_str().to_owned(),
            stock_code: fill.security.into(),
            price: shown::price(fill.price),
            quantity: fill.shares.0,
            amount: shown::cash(fill.amount),
            fees: FeesShown {
                commission: shown::cash(fill.fees.commission),
                stamp_duty: shown::cash(fill.fees.stamp_duty),
                transfer_fee: shown::cash(fill.fees.transfer),
                total: shown::cash(fill.fees.total()),
            },
            total_cost: shown_if(!sell, fill.total_cost()),
            net_income: shown_if(sell, fill.net_income()),
            pnl: shown_if(sell, fill.realised.net),
            pnl_gross: shown_if(sell, fill.realised.gross),
            remaining_cash: shown::cash(fill.cash_after),
            withdrawable_cash: shown::cash(fill.withdrawable_after),
            portfolio_after: PortfolioAfter {
                cash: shown::cash(fill.cash_after),
                positions: fill.holdings_after.iter().map(|(code, n)| HoldingShown { code: (*code).into(), qty: n.0 }).collect(),
                position_count: fill.holdings_after.len(),
            },
            fill: FillShown {
                number: fill.number,
                bar_day: fill.day.into(),
                bar_end: fill.bar_end.to_string(),
                bar_volume: fill.bar_volume.0,
                liquidity_left: fill.liquidity_left.map(|n| n.0),
                band_rule: fill.rules.band.to_owned(),
                limit_up: fill.rules.limit_up.map(shown::price),
                limit_down: fill.rules.limit_down.map(shown::price),
                fee_schedule: fill.rules.fee_schedule().to_owned(),
                settlement: "T+1".to_owned(),
            },
            protective_conditional_order_id: fill.protective_order_id.clone(),
            repeated: fill.repeated,
        }
    }
}

impl Tool for PlaceOrder {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "place_order",
        group: Group::Execution,
        effect: Effect::Financial,
        repeat: Repeat::OncePerMessage,
        description: "Buys or sells now, at the close of the last 5-minute bar of the current trading interval, or says exactly why not.",
        notes: &[
            "Accepted at open_1, open_2, close_1 and close_2; never before the open.",
            "Refused at or above the upper price limit (buys) and at or below the lower one (sells).",
            "Shares bought today can be sold from the next trading day (T+1); sale proceeds can be spent at once.",
            "A sell above the sellable quantity is refused, never cut down; quantity 0 sells all that is sellable.",
            "A buy must fit the usable cash with fees, the card's number of positions and its share of total assets.",
            "One fill per security and day, unless the card says otherwise.",
            "A refusal changes nothing and names what would be accepted.",
        ],
        example: r#"{"action": "buy", "stock_code": "600036", "quantity": 100, "reasoning": "Breakout of the base on rising volume."}"#,
        result_summary: "Fill price, quantity, fees by kind, the bar and rules of the fill, remaining cash, holdings after it; for sells the profit.",
        errors: &[
            ErrorCode::OrderUnavailableInPhase,
            ErrorCode::UnknownSecurity,
            ErrorCode::InvalidLot,
            ErrorCode::Suspended,
            ErrorCode::NoBarInWindow,
            ErrorCode::NoLiquidity,
            ErrorCode::PriceReferenceMissing,
            ErrorCode::LimitUpLocked,
            ErrorCode::LimitDownLocked,
            ErrorCode::AlreadyTradedToday,
            ErrorCode::StForbidden,
            ErrorCode::PositionCountLimit,
            ErrorCode::PositionNotHeld,
            ErrorCode::TPlusOneLocked,
            ErrorCode::InsufficientSellable,
            ErrorCode::InsufficientCash,
            ErrorCode::PositionWeightLimit,
            ErrorCode::MinimumHolding,
            ErrorCode::StructuredPlanMissingFields,
            ErrorCode::PlanLevelInvalid,
            ErrorCode::DecisionCardMissingFields,
            ErrorCode::DecisionCardSemanticRejection,
            ErrorCode::DecisionCardUnseenEvidence,
            ErrorCode::DecisionCardMissingToolEvidence,
            ErrorCode::DecisionCardUngroundedBusinessFit,
            ErrorCode::DecisionCardMissingAnnouncementEvidence,
            ErrorCode::DecisionCardCorrectionChangedSemantics,
            ErrorCode::DecisionCardCorrectionRetryLimit,
            ErrorCode::IdempotencyConflict,
            ErrorCode::InvalidToolArguments,
            ErrorCode::Internal,
        ],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        control::words("reasoning", &args.reasoning)?;
        let security = match Code::parse(args.stock_code.as_str()) {
            Some(code) => code,
            // The phase comes first in the documented order, also for a text that is no code.
            None if ctx.view.clock().point.interval().is_none() => return Err(Refusal::OrderUnavailableInPhase.into()),
            None => return Err(Refusal::UnknownSecurity.into()),
        };
        let plan = PlanRequest {
            behavior_hypothesis: args.behavior_hypothesis,
            confirmation_level: args.confirmation_level,
            original_structural_stop: args.original_structural_stop,
            exit_condition: args.exit_condition,
            expected_holding_days: args.expected_holding_days,
            decision_card: args.decision_card.map(Box::new),
        };
        let order = Order {
            security,
            side: args.action.into(),
            shares: Shares(args.quantity),
            reasoning: args.reasoning,
            idempotency_key: args.idempotency_key,
            plan: (plan != PlanRequest::default()).then_some(plan),
            origin: Origin::Agent,
        };
        gate::submit(order, &ctx.view, ctx.account, ctx.limits, ctx.gate.as_deref_mut())
            .map(|fill| Output::of(&fill))
            .map_err(Into::into)
    }

    fn refine(schema: &mut Value, policy: &Policy) {
        // A buy of nothing is never meant. Lots depend on the board, so the order path checks them.
        let mut rules = vec![json!({
            "if": {"properties": {"action": {"const": "buy"}}, "required": ["action"]},
            "then": {"properties": {"quantity": {"minimum": 1}}}
        })];
        let needed = |what: &str| {
            format!("This card needs {what} to OPEN a position. Adding to a held position and selling need none of it.")
        };
        let mut texts: Vec<(&str, String)> = vec![];
        if policy.require_structured_plan {
            for field in crate::decision_card::PLAN_FIELDS {
                texts.push((field, needed("this field")));
            }
            // Whether a buy opens a position is not in the arguments, so the schema only shapes the fields here; the order path
            // asks for them when the security is not held.
            rules.push(json!({
                "if": {"properties": {"action": {"const": "buy"}}, "required": ["action"]},
                "then": {
                    "description": needed("behavior_hypothesis, confirmation_level, original_structural_stop, exit_condition and \
                                           expected_holding_days"),
                    "properties": {"behavior_hypothesis": {"minLength": 1}, "exit_condition": {"minLength": 1}}
                }
            }));
        }
        if policy.require_decision_card {
            texts.push(("decision_card", needed("a decision card")));
            rules.push(json!({
                "if": {"properties": {"action": {"const": "buy"}}, "required": ["action"]},
                "then": {"description": needed("decision_card")}
            }));
        }
        if let Some(map) = schema.as_object_mut() {
            if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
                for (field, text) in texts {
                    if let Some(Value::String(description)) = properties.get_mut(field).and_then(|f| f.get_mut("description")) {
                        *description = format!("{description} {text}");
                    }
                }
            }
            map.insert("allOf".to_owned(), Value::Array(rules));
        }
    }
}
