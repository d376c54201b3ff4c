//! A row for each tool that the design page does not name, and the rows of the order path.

use super::House;
use super::measure::{self, Outcome, Row, Target::AtLeast, Target::AtMost};
use super::rows::Called;
use super::session::{Stage, call};
use serde_json::{Value, json};
use std::time::Instant;
use traderharness_harness::Card;
use traderharness_tools_market::MarketState;

/// Whole-market tools, first call of a clock and repeated; peer figures in milliseconds.
macro_rules! whole_market {
    ($name:literal, $again:literal, $peer:expr, $args:expr) => {
        [
            Row { name: $name, unit: "ms", target: AtMost(10.0), peer: $peer, measure: |h| fresh(h, $name, $args) },
            Row { name: $again, unit: "us", target: AtMost(100.0), peer: None, measure: |h| again(h, $name, $args) },
        ]
    };
}

/// A tool through all ten steps of a masked session; target and peer figure in microseconds.
macro_rules! through {
    ($name:literal, $target:expr, $peer:expr, $args:expr) => {
        Row { name: $name, unit: "us", target: $target, peer: Some($peer), measure: |h| through(h, $name, $args) }
    };
}

/// The registry of this file.
pub(crate) fn all() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    rows.extend(whole_market!("screen_stocks", "screen_stocks_again", Some(2281.0), |_| json!({})));
    rows.extend(whole_market!("screen_behavioral_cycle", "screen_behavioral_cycle_again", Some(18_836.0), |_| json!({})));
    rows.extend(whole_market!(
        "get_sector_summary",
        "get_sector_summary_again",
        Some(252.56),
        |sector| json!({ "sector": sector })
    ));
    rows.extend(whole_market!("get_narrative_market_overview", "get_narrative_market_overview_again", Some(4940.0), |_| json!(
        {}
    )));
    rows.extend(whole_market!(
        "get_narrative_sector_summary",
        "get_narrative_sector_summary_again",
        Some(685.64),
        |sector| json!({ "sector": sector })
    ));
    rows.extend([
        through!("get_fundamentals", AtMost(80.0), 1450.0, |code| json!({ "stock_code": code })),
        through!("get_business_segments", AtMost(80.0), 5800.0, |code| json!({ "stock_code": code })),
        through!("get_valuation", AtMost(80.0), 87_560.0, |code| json!({ "stock_code": code })),
        through!("get_announcements", AtMost(130.0), 37_470.0, |code| json!({ "stock_code": code, "days": 30 })),
        through!("get_news", AtMost(10_000.0), 14_660.0, |_| json!({ "days": 3 })),
        through!("list_conditional_orders", AtMost(80.0), 50.0, |_| json!({})),
        through!("get_watchlist", AtMost(80.0), 2560.0, |_| json!({})),
        through!("search_memory", AtMost(80.0), 760.0, |_| json!({ "query": "volume" })),
        Row { name: "orders_per_second", unit: "/s", target: AtLeast(10_000.0), peer: Some(8.7), measure: orders },
        Row { name: "day_of_64_conditions", unit: "ms", target: AtMost(2.0), peer: None, measure: conditions },
    ]);
    rows
}

/// A sector of the market, as its overview names it.
fn sector(house: &mut House) -> anyhow::Result<String> {
    let (store, mask) = house.market()?;
    let overview = Called::find(&store, "get_market_overview")?.call(&store, &mask, &mut MarketState::default(), json!({}))?;
    let name = overview.pointer("/top_sectors/0/sector").and_then(Value::as_str).map(str::to_owned);
    name.ok_or_else(|| anyhow::anyhow!("the market has no sector"))
}

fn fresh(house: &mut House, name: &str, args: fn(&str) -> Value) -> anyhow::Result<Outcome> {
    let args = args(&sector(house)?);
    let (store, mask) = house.market()?;
    let tool = Called::find(&store, name)?;
    measure::each(15, 1e3, || tool.call(&store, &mask, &mut MarketState::default(), args.clone()))
}

fn again(house: &mut House, name: &str, args: fn(&str) -> Value) -> anyhow::Result<Outcome> {
    let args = args(&sector(house)?);
    let (store, mask) = house.market()?;
    let tool = Called::find(&store, name)?;
    let mut state = MarketState::default();
    measure::micros(|_| tool.call(&store, &mask, &mut state, args.clone()))
}

fn through(house: &mut House, name: &str, args: fn(&str) -> Value) -> anyhow::Result<Outcome> {
    let stage = Stage::of(house, true)?;
    let mut session = stage.session()?;
    // A stock that answers: the market has some without a report or an announcement yet.
    let codes: Vec<&str> = (0..400).map(|n| stage.code(n)).filter(|code| call(&mut session, name, args(code)).is_ok()).collect();
    anyhow::ensure!(!codes.is_empty(), "{name} answers for no stock");
    measure::micros(|n| call(&mut session, name, args(codes[n % codes.len()])))
}

/// Orders per second through all ten steps, masked: accounts of a dozen positions, the time of their buys.
fn orders(house: &mut House) -> anyhow::Result<Outcome> {
    const ACCOUNTS: usize = 40;
    const ORDERS: usize = 12;
    let card = Card { initial_cash: 9e11, max_positions: 10_000, max_position_pct: 100.0, ..Card::builtin() };
    let stage = Stage::of_card(house, true, card)?;
    let mut samples = Vec::new();
    for round in 0..9 {
        let (mut filled, mut seconds) = (0, 0.0);
        for account in 0..ACCOUNTS {
            let mut session = stage.session()?;
            let start = Instant::now();
            for n in 0..ORDERS {
                let code = stage.code((round * ACCOUNTS + account) * ORDERS + n);
                let order =
                    json!({ "action": "buy", "stock_code": code, "quantity": 200, "reasoning": "A bench has no reason." });
                filled += usize::from(call(&mut session, "place_order", order).is_ok());
            }
            seconds += start.elapsed().as_secs_f64();
        }
        anyhow::ensure!(filled * 10 > ACCOUNTS * ORDERS * 8, "only {filled} of {} orders filled", ACCOUNTS * ORDERS);
        samples.push(filled as f64 / seconds);
    }
    Ok(Outcome::Samples(samples))
}

/// Milliseconds that 64 active conditions add to a day: the four windows opening over 48 bars.
fn conditions(house: &mut House) -> anyhow::Result<Outcome> {
    let stage = Stage::of(house, true)?;
    let mut samples = Vec::new();
    for _ in 0..9 {
        let mut session = stage.pre_market()?;
        let created = (0..200)
            .filter(|n| {
                let order = json!({
                    "operation": "create", "action": "buy", "stock_code": stage.code(*n), "quantity": 200,
                    "comparator": "price_lte", "trigger_price": 0.01, "reasoning": "A bench has no reason.",
                });
                call(&mut session, "manage_conditional_order", order).is_ok()
            })
            .take(64)
            .count();
        anyhow::ensure!(created == 64, "only {created} conditions were accepted");
        let start = Instant::now();
        for _ in 0..4 {
            session.advance()?;
        }
        samples.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Outcome::Samples(samples))
}
