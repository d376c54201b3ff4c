//! A case makes one tool give exactly one code, and says what a model that follows the correction gets.

use super::envelope::tools;
use super::world::{FULL, PLAIN, Step, TODAY, World, free_card};
use serde_json::{Value, json};
use traderharness_contract::ErrorCode::{self, *};
use traderharness_harness::Card;
use traderharness_market::DecisionPoint::{self, Open1, PreMarket};

/// What following the correction leads to.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// Nothing: no call of this kind can be accepted in this phase, and the failure is not retryable.
    Final,
    /// Not retryable, although the correction names calls that are accepted instead.
    Instead,
    /// The correction names arguments, and each of them succeeds.
    Named,
    /// The correction says what to change in words; these fields, null to leave one out, succeed.
    Changed(Value),
    /// The correction says what to do first in words; after these calls the same call succeeds.
    After(Vec<(&'static str, Value)>),
    /// Retryable by the table, and what it needs is not there in this situation.
    NothingHere,
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) tool: &'static str,
    pub(crate) code: ErrorCode,
    pub(crate) world: &'static std::sync::LazyLock<World>,
    pub(crate) card: Card,
    pub(crate) start: (usize, DecisionPoint),
    pub(crate) steps: Vec<Step>,
    pub(crate) args: Value,
    pub(crate) way: Way,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

/// A case at open_1 of today, in the market of all situations, on a card that holds nothing back.
pub(crate) fn case(tool: &'static str, code: ErrorCode, args: Value, way: Way) -> Case {
    let start = (TODAY, Open1);
    Case { tool, code, world: &FULL, card: free_card(), start, steps: vec![], args, way }
}

impl Case {
    pub(crate) fn on(self, world: &'static std::sync::LazyLock<World>) -> Self {
        Self { world, ..self }
    }

    pub(crate) fn at(self, index: usize, point: DecisionPoint) -> Self {
        Self { start: (index, point), ..self }
    }

    pub(crate) fn card(mut self, change: impl FnOnce(&mut Card)) -> Self {
        change(&mut self.card);
        self
    }

    pub(crate) fn then(mut self, steps: Vec<Step>) -> Self {
        self.steps.extend(steps);
        self
    }

    pub(crate) fn after(self, steps: Vec<Step>) -> Self {
        Self { steps, ..self }
    }
}

fn of(code: &str) -> Value {
    json!({ "stock_code": code })
}

/// Failures of the read tools.
pub(crate) fn read_tools() -> Vec<Case> {
    use super::world::{BARE, NO_TEXTS, UNPRICED};
    use Way::{Changed, Final, Instead, Named};
    let cursor = |tool, args: Value| {
        let mut args = args;
        args["cursor"] = json!("no-cursor");
        case(tool, InvalidCursor, args, Named)
    };
    let full = json!({ "stock_code": PLAIN, "days": 5, "detail": "full" });
    let mut out = vec![
        case("get_kline", SecurityDataUnavailable, json!({ "stock_code": PLAIN, "end_offset": 900 }), Final),
        case("get_kline", DataUnavailable, json!({ "stock_code": PLAIN, "adjustment": "split_only" }), Final).on(&BARE),
        cursor("get_kline", full),
        case("get_stock_price", SecurityDataUnavailable, of(UNPRICED), Final),
        case("screen_stocks", InvalidFilterRange, json!({ "price_min": 9, "price_max": 2 }), Named),
        case("screen_stocks", InvalidFilterRange, json!({ "change_pct_min": 1, "change_pct_max": -1 }), Named),
        case("screen_stocks", SectorNotFound, json!({ "industry": "Mettals" }), Named),
        case("screen_stocks", InvalidToolArguments, json!({ "max_results": 31 }), Named),
        case("get_news", InvalidToolArguments, json!({ "keyword": "$^" }), Changed(json!({ "keyword": "copper" }))),
        case("get_announcements", InvalidToolArguments, json!({ "stock_code": PLAIN, "keyword": "(.*)" }), Named),
    ];
    // Every tool with pages, with as little else as it takes.
    for definition in tools().filter(|d| d.input_schema["properties"].get("cursor").is_some()) {
        let needs = |field: &str| definition.input_schema["required"].as_array().is_some_and(|list| list.contains(&json!(field)));
        if !needs("sector") {
            let args = if needs("stock_code") {
                of(PLAIN)
            } else if needs("query") {
                json!({ "query": "tea" })
            } else {
                json!({})
            };
            out.push(cursor(definition.spec.name, args));
        }
    }
    for tool in ["get_sector_summary", "get_narrative_sector_summary"] {
        out.push(case(tool, SectorNotFound, json!({ "sector": "Mettals" }), Named));
        out.push(case(
            tool,
            InvalidCursor,
            json!({ "sector": "Mettals", "cursor": "no-cursor" }),
            Changed(json!({ "sector": "Metals", "cursor": null })),
        ));
        out.push(case(tool, DataUnavailable, json!({ "sector": "Metals" }), Final).on(&BARE));
    }
    for tool in ["get_market_overview", "get_narrative_market_overview", "screen_stocks"] {
        out.push(case(tool, DataUnavailable, json!({}), Final).at(0, PreMarket));
    }
    for tool in ["get_fundamentals", "get_business_segments", "get_valuation"] {
        out.push(case(tool, SecurityDataUnavailable, of(NO_TEXTS), Final));
        out.push(case(tool, DataUnavailable, of(PLAIN), Final).on(&BARE));
    }
    for tool in ["get_announcements", "get_announcement_evidence"] {
        out.push(case(tool, DataUnavailable, of(PLAIN), Final).on(&BARE));
    }
    for tool in ["get_news", "get_narrative_news"] {
        out.push(case(tool, DataUnavailable, json!({}), Final).on(&BARE));
    }
    let sectors = ["Metals", "Food"].map(|name| Step::Call("get_narrative_sector_summary", json!({ "sector": name })));
    out.push(
        case("get_narrative_sector_summary", DailyToolBudgetExhausted, json!({ "sector": "Software" }), Instead)
            .after(sectors.to_vec()),
    );
    let words = ["copper", "inventories"].map(|word| Step::Call("get_narrative_news", json!({ "keyword": word })));
    out.push(
        case("get_narrative_news", DailyToolBudgetExhausted, json!({ "days": 2, "market_relevant_only": true }), Instead)
            .after(words.to_vec()),
    );
    out
}
