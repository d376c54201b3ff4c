//! `manage_conditional_order`: makes, changes or cancels an order that the environment fills when a bar meets its condition.

use super::list_conditional_orders::OrderShown;
use super::place_order::Action;
use super::shown;
use crate::conditional::{Comparator, NewCondition, Update};
use crate::{ExecCtx, ExecTools, control};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use traderharness_contract::{Effect, ErrorCode, Group, Policy, Repeat, StockCode, Tool, ToolFailure, ToolSpec};
use traderharness_market::{Shares, Side};

/// The tool.
#[derive(Debug)]
pub struct ManageConditionalOrder;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Make an order.
    Create,
    /// Change an active order.
    Update,
    /// Cancel an active order.
    Cancel,
}

/// How a bar's close is compared with the trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ComparatorArg {
    /// Fires at or below the trigger.
    #[serde(rename = "price_lte")]
    AtMost,
    /// Fires at or above the trigger.
    #[serde(rename = "price_gte")]
    AtLeast,
}

impl From<ComparatorArg> for Comparator {
    fn from(arg: ComparatorArg) -> Self {
        match arg {
            ComparatorArg::AtMost => Self::AtMost,
            ComparatorArg::AtLeast => Self::AtLeast,
        }
    }
}

/// What to do with which order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to do.
    pub operation: Operation,
    /// Why, in your own words, 1 to 2000 characters. Kept with the order.
    #[schemars(length(min = 1, max = 2000))]
    pub reasoning: String,
    /// Id of the order, for example cond-0001. Needed to update and cancel.
    #[serde(default)]
    pub order_id: Option<String>,
    /// Side of the order. Needed to create.
    #[serde(default)]
    pub action: Option<Action>,
    /// Complete code of the security. Needed to create.
    #[serde(default)]
    #[schemars(length(min = 6))]
    pub stock_code: Option<StockCode>,
    /// Shares. Needed to create. A buy: whole lots of the board. A sell: 0 sells all that is sellable at the trigger.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub quantity: Option<i64>,
    /// How a bar's close is compared with the trigger. Needed to create.
    #[serde(default)]
    pub comparator: Option<ComparatorArg>,
    /// Trigger, CNY, above 0, on the tick of 0.01. Needed to create.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub trigger_price: Option<f64>,
    /// True for a stop that may only rise; only in a sell of quantity 0 at price_lte. False by default; cannot be changed later.
    #[serde(default)]
    pub protective: Option<bool>,
    /// Trading days the order lives, 1 to 250, counted from today: 1 = today only. Without it the order lives until it ends.
    #[serde(default)]
    #[schemars(range(min = 1, max = 250))]
    pub expires_in_trading_days: Option<u32>,
}

/// The order after the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The order.
    pub order: OrderShown,
}

/// A field the schema already asks for; the types still hold it as optional.
fn needed<T>(field: &str, value: Option<T>) -> Result<T, ToolFailure> {
    value.ok_or_else(|| {
        ToolFailure::new(
            ErrorCode::InvalidToolArguments,
            format!("`{field}` is needed for this operation."),
            format!("Send the call again with `{field}`."),
        )
        .with("missing_fields", vec![field])
    })
}

impl Tool for ManageConditionalOrder {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "manage_conditional_order",
        group: Group::Execution,
        effect: Effect::Financial,
        repeat: Repeat::OncePerMessage,
        description: "Makes, changes or cancels an order that fills by itself at the close of the first 5-minute bar that meets its \
                      condition.",
        notes: &[
            "create needs action, stock_code, quantity, comparator and trigger_price, with or without protective and expires_in_trading_days.",
            "update needs order_id and at least one of trigger_price, quantity and expires_in_trading_days; cancel needs order_id.",
            "Only bars that end after the order was made or last changed can fire it; bars between 10:00 and 14:50 are run when close_1 opens.",
            "Orders of one bar are tried in order of id; each fills under the same rules as place_order.",
            "A failed attempt is recorded and the order stays active; closing a position cancels its other sell conditions.",
            "A protective stop may only rise. On an ex-date triggers move with the price.",
            "At most 64 orders are active.",
        ],
        example: r#"{"operation": "create", "action": "buy", "stock_code": "600036", "quantity": 100, "comparator": "price_gte", "trigger_price": 41.5, "reasoning": "Buy the breakout.", "expires_in_trading_days": 3}"#,
        result_summary: "The order after the call: id, trigger, state, trading days left, changes and attempts.",
        errors: &[
            ErrorCode::UnknownSecurity,
            ErrorCode::InvalidLot,
            ErrorCode::StForbidden,
            ErrorCode::PositionNotHeld,
            ErrorCode::InsufficientSellable,
            ErrorCode::ConditionalOrderCannotOpenPosition,
            ErrorCode::ConditionalOrderStateConflict,
            ErrorCode::PlanLevelInvalid,
            ErrorCode::InvalidToolArguments,
        ],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        control::words("reasoning", &args.reasoning)?;
        let (view, limits) = (ctx.view, ctx.limits);
        let id = match args.operation {
            Operation::Create => {
                let security = shown::code(&view, &needed("stock_code", args.stock_code)?)?;
                let new = NewCondition {
                    security,
                    side: needed("action", args.action)?.into(),
                    shares: Shares(needed("quantity", args.quantity)?),
                    comparator: needed("comparator", args.comparator)?.into(),
                    trigger: needed("trigger_price", args.trigger_price)?,
                    protective: args.protective.unwrap_or(false),
                    reasoning: args.reasoning,
                    sessions: args.expires_in_trading_days,
                };
                ctx.account.create_condition(new, &view, limits)?
            }
            Operation::Update => {
                let id = needed("order_id", args.order_id)?;
                if let Some(order) = ctx.account.conditions().find(&id) {
                    let other = |differs: bool, field: &'static str| differs.then_some(field);
                    let fixed: Vec<_> = [
                        other(args.action.is_some_and(|a| Side::from(a) != order.side), "action"),
                        other(args.stock_code.is_some_and(|c| c.as_str() != order.security.as_str()), "stock_code"),
                        other(args.comparator.is_some_and(|c| Comparator::from(c) != order.comparator), "comparator"),
                        other(args.protective.is_some_and(|p| p != order.protective), "protective"),
                    ]
                    .into_iter()
                    .flatten()
                    .collect();
                    if !fixed.is_empty() {
                        return Err(ToolFailure::new(
                            ErrorCode::InvalidToolArguments,
                            format!("An update cannot change: {}.", fixed.join(", ")),
                            "Change trigger_price, quantity or expires_in_trading_days; for anything else cancel and create.",
                        )
                        .with("fixed_fields", fixed));
                    }
                }
                let update = Update {
                    trigger: args.trigger_price,
                    shares: args.quantity.map(Shares),
                    sessions: args.expires_in_trading_days,
                    reasoning: args.reasoning,
                };
                ctx.account.update_condition(&id, update, &view, limits)?;
                id
            }
            Operation::Cancel => {
                let id = needed("order_id", args.order_id)?;
                ctx.account.cancel_condition(&id, args.reasoning, &view)?;
                if let Some(gate) = ctx.gate.as_deref_mut() {
                    gate.cancelled(&id, &view);
                }
                id
            }
        };
        let order = ctx.account.conditions().find(&id).ok_or_else(|| {
            ToolFailure::new(ErrorCode::Internal, "The order cannot be read back.", "Call list_conditional_orders.")
        })?;
        Ok(Output { order: OrderShown::of(order, ctx.account, limits, &view) })
    }

    fn refine(schema: &mut Value, _: &Policy) {
        let when = |operation: &str, then: Value| json!({"if": {"properties": {"operation": {"const": operation}}, "required": ["operation"]}, "then": then});
        if let Some(map) = schema.as_object_mut() {
            let rules = json!([
                when("create", json!({"required": ["action", "stock_code", "quantity", "comparator", "trigger_price"]})),
                when(
                    "update",
                    json!({
                        "required": ["order_id"],
                        "anyOf": [
                            {"required": ["trigger_price"]},
                            {"required": ["quantity"]},
                            {"required": ["expires_in_trading_days"]}
                        ]
                    })
                ),
                when("cancel", json!({"required": ["order_id"]})),
                {
                    "if": {
                        "properties": {"operation": {"const": "create"}, "action": {"const": "buy"}},
                        "required": ["operation", "action"]
                    },
                    "then": {"properties": {"quantity": {"minimum": 1}}}
                },
                {
                    "if": {
                        "properties": {"operation": {"const": "create"}, "protective": {"const": true}},
                        "required": ["operation", "protective"]
                    },
                    "then": {
                        "properties": {"action": {"const": "sell"}, "quantity": {"const": 0}, "comparator": {"const": "price_lte"}}
                    }
                }
            ]);
            map.insert("allOf".to_owned(), rules);
        }
    }
}
