//! A small market with one security for each situation an order can meet, and short ways to place orders in it.

use serde_json::{Value, json};
use traderharness_contract::{Definition, Handler, Policy, ToolFailure};
use traderharness_market::testing::{SmallMarket, SmallStock, day};
use traderharness_market::{Cash, Clock, Code, DecisionPoint, FeeSchedule, Mask, MaskConfig, Shares, Side, Store, View};
use traderharness_tools_exec::{Account, CardLimits, Control, ExecCtx, ExecTools, Fill, Matching, Order, Refusal};

/// The day most tests stand on; ten sessions from 2024-03-04.
pub(crate) const TODAY: &str = "2024-03-08";
/// The session after it.
pub(crate) const NEXT: &str = "2024-03-11";
/// The sessions of the market.
pub(crate) const DAYS: [&str; 10] = [
    "2024-03-04",
    "2024-03-05",
    "2024-03-06",
    "2024-03-07",
    "2024-03-08",
    "2024-03-11",
    "2024-03-12",
    "2024-03-13",
    "2024-03-14",
    "2024-03-15",
];

pub(crate) const PLAIN: &str = "600036";
pub(crate) const OTHER: &str = "600519";
pub(crate) const CHEAP: &str = "000001";
pub(crate) const LOCKED_UP: &str = "600101";
pub(crate) const LOCKED_DOWN: &str = "600102";
pub(crate) const HALTED_ALL_DAY: &str = "600103";
pub(crate) const HALTED_AT_TEN: &str = "600104";
pub(crate) const DRY: &str = "600105";
pub(crate) const ST: &str = "600106";
pub(crate) const NO_REFERENCE: &str = "600107";
pub(crate) const NOT_YET_LISTED: &str = "600108";
pub(crate) const STAR: &str = "688001";
pub(crate) const BSE: &str = "920001";

/// A stock that stands at `price` on every day, 48 bars of 10,000 shares.
pub(crate) fn flat(code: &str, price: f64) -> SmallStock {
    DAYS.iter().fold(SmallStock::new(code).closes(&[price; 10]), |s, d| s.minutes(d, &[price; 48]))
}

/// As [`flat`] before `TODAY`, and these closes on it.
pub(crate) fn today_at(code: &str, before: f64, closes: &[f64]) -> SmallStock {
    let stock = SmallStock::new(code).closes(&[before; 4]).minutes(TODAY, closes);
    DAYS[..4].iter().fold(stock, |s, d| s.minutes(d, &[before; 48]))
}

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) mask: Mask,
}

impl World {
    pub(crate) fn of(market: &SmallMarket) -> Self {
        let store = market.build();
        let mask = Mask::new(&store, MaskConfig::default());
        Self { store, mask }
    }

    /// The market with every situation.
    pub(crate) fn full() -> Self {
        let dry_bar = [10.0, 10.0, 10.0, 10.0, 0.0, 0.0];
        let market = SmallMarket::new(DAYS[0], 10)
            .stock(flat(PLAIN, 10.0))
            .stock(flat(OTHER, 100.0))
            .stock(flat(CHEAP, 1.0))
            .stock(today_at(LOCKED_UP, 10.0, &[11.0; 48]))
            .stock(today_at(LOCKED_DOWN, 10.0, &[9.0; 48]))
            .stock(today_at(HALTED_ALL_DAY, 10.0, &[]))
            .stock(today_at(HALTED_AT_TEN, 10.0, &[10.0, 10.1, 10.2, 10.3]))
            .stock(today_at(DRY, 10.0, &[10.0; 3]).minute_bar(TODAY, "09:50", dry_bar))
            .stock(flat(ST, 10.0).st("2024-03-06", false).st("2024-03-07", true))
            .stock(SmallStock::new(NO_REFERENCE).listed("2019-01-02").minutes(TODAY, &[10.0; 48]))
            .stock(SmallStock::new(NOT_YET_LISTED).minutes(NEXT, &[10.0; 48]))
            .stock(flat(STAR, 50.0))
            .stock(flat(BSE, 5.0));
        Self::of(&market)
    }

    pub(crate) fn view(&self, date: &str, point: DecisionPoint) -> View<'_> {
        View::new(&self.store, Clock { day: day(date), point }, &self.mask)
    }
}

pub(crate) fn code(text: &str) -> Code {
    Code::parse(text).unwrap()
}

/// Limits that refuse nothing by themselves, with the flat fee schedule of the peer.
pub(crate) fn free() -> CardLimits {
    CardLimits {
        max_positions: 50,
        max_position_basis_points: 10_000,
        fees: FeeSchedule::Reference,
        once_per_day: false,
        ..CardLimits::default()
    }
}

pub(crate) fn rich() -> Account {
    Account::new(Cash(100_000_000))
}

pub(crate) fn buy(code_text: &str, shares: i64) -> Order {
    Order::new(code(code_text), Side::Buy, Shares(shares))
}

pub(crate) fn sell(code_text: &str, shares: i64) -> Order {
    Order::new(code(code_text), Side::Sell, Shares(shares))
}

/// Places an order; on a refusal the whole account must be as before.
pub(crate) fn place(order: Order, view: &View<'_>, account: &mut Account, limits: &CardLimits) -> Result<Fill, Refusal> {
    let before = account.clone();
    let result = Matching::place(order, view, account, limits);
    if result.is_err() {
        assert_eq!(*account, before, "a refusal changes nothing");
    }
    account.check_invariants().unwrap();
    result
}

/// An account that has held `shares` of a security since the day before `TODAY`.
pub(crate) fn holding(world: &World, code_text: &str, shares: i64) -> Account {
    let mut account = rich();
    place(buy(code_text, shares), &world.view("2024-03-07", DecisionPoint::Open1), &mut account, &free()).unwrap();
    account.start_day(&world.view(TODAY, DecisionPoint::PreMarket)).unwrap();
    account
}

/// One tool as the dispatcher calls it: the arguments are validated, the result is checked against the output schema.
pub(crate) fn call(
    name: &str,
    args: Value,
    view: View<'_>,
    account: &mut Account,
    limits: &CardLimits,
    control: &mut Control,
) -> Result<Value, ToolFailure> {
    let tool = tool(name);
    let definition = definition(name, &Policy::default());
    definition.validate(&args).unwrap_or_else(|issues| panic!("{name} {args}: {issues:?}"));
    let mut ctx = ExecCtx { view, account, limits, gate: None, control, code: None };
    let payload = tool.invoke(&mut ctx, args)?;
    definition.validate_output(&payload).unwrap_or_else(|issues| panic!("{name}: {issues:?} in {payload:#}"));
    Ok(payload)
}

pub(crate) fn tool(name: &str) -> Handler<ExecTools> {
    traderharness_tools_exec::tools().into_iter().find(|t| t.spec.name == name).unwrap()
}

pub(crate) fn definition(name: &str, policy: &Policy) -> Definition {
    (tool(name).define)(policy)
}

/// Arguments of a plain order.
pub(crate) fn order_args(action: &str, code_text: &str, quantity: i64) -> Value {
    json!({"action": action, "stock_code": code_text, "quantity": quantity, "reasoning": "r"})
}
