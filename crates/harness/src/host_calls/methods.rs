//! The methods that code can call: names, arguments, the tools they stand for.

use super::{QUOTED, fault};
use crate::toolbox::BoundTool;
use serde_json::{Map, Value};
use traderharness_sandbox::HostFault;

/// What a method gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Kline,
    Kline5Min,
    StockList,
    AllDaily,
    Behavioral,
    StockPrice,
    Fundamentals,
    Overview,
    SectorSummary,
    SectorStocks,
    Screen,
    Positions,
    Cash,
    TotalValue,
    Exposure,
    Announcements,
    PolicyNews,
    News,
}

/// One method.
#[derive(Debug)]
pub(super) struct Method {
    /// As the worker sends it.
    pub(super) name: &'static str,
    pub(super) what: What,
    /// Arguments.
    accepts: &'static [&'static str],
    /// Tools that permit it, the preferred one first; empty for what every card may see.
    pub(super) tools: &'static [&'static str],
    /// What a refusal adds.
    pub(super) note: &'static str,
}

const fn method(name: &'static str, what: What, accepts: &'static [&'static str], tools: &'static [&'static str]) -> Method {
    Method { name, what, accepts, tools, note: "" }
}

/// Every method there is.
pub(super) const METHODS: [Method; 19] = [
    method("market.get_kline", What::Kline, &["code", "days"], &["get_kline"]),
    method("market.get_kline_5min", What::Kline5Min, &["code"], &["get_kline"]),
    method("market.get_stock_list", What::StockList, &[], &[]),
    method("market.get_all_stocks", What::StockList, &[], &[]),
    method("market.get_all_daily", What::AllDaily, &["days"], &["get_kline"]),
    method("market.get_behavioral_features", What::Behavioral, &[], &["screen_behavioral_cycle", "get_kline"]),
    method("market.get_stock_price", What::StockPrice, &["code"], &["get_stock_price"]),
    method("market.get_fundamentals", What::Fundamentals, &["code"], &["get_fundamentals"]),
    method("market.get_market_overview", What::Overview, &[], &["get_market_overview", "get_narrative_market_overview"]),
    method("market.get_sector_summary", What::SectorSummary, &["sector"], SECTOR),
    method("market.get_sector_stocks", What::SectorStocks, &["sector"], SECTOR),
    method("market.screen_stocks", What::Screen, FILTERS, &["screen_stocks"]),
    method("portfolio.get_positions", What::Positions, &[], PORTFOLIO),
    method("portfolio.get_cash", What::Cash, &[], PORTFOLIO),
    method("portfolio.get_total_value", What::TotalValue, &[], PORTFOLIO),
    method("portfolio.get_gross_exposure_pct", What::Exposure, &[], PORTFOLIO),
    method("news.get_announcements", What::Announcements, &["code", "days"], &["get_announcements", "get_announcement_evidence"]),
    Method {
        name: "news.get_policy_news",
        what: What::PolicyNews,
        accepts: &["days"],
        // Not get_narrative_news: this list would answer what its daily budget is there to limit.
        tools: &["get_news"],
        note: " get_narrative_news answers two searches a day and does not stand for it.",
    },
    method("news.get_news", What::News, &["days", "keyword"], &["get_news", "get_narrative_news"]),
];

const SECTOR: &[&str] = &["get_sector_summary", "get_narrative_sector_summary"];
const PORTFOLIO: &[&str] = &["get_portfolio"];
/// The method takes the arguments of its tool, see [`Method::accepted`].
const FILTERS: &[&str] = &["**filters"];

impl Method {
    /// Argument names; for a method that takes filters those of the tool, but no cursor: lists come whole.
    fn accepted<'t>(&self, tool: Option<&'t BoundTool>) -> Vec<&'t str> {
        if self.accepts != FILTERS {
            return self.accepts.to_vec();
        }
        let fields = tool.and_then(|tool| tool.definition.input_schema["properties"].as_object());
        fields.into_iter().flatten().map(|(name, _)| name.as_str()).filter(|name| *name != "cursor").collect()
    }

    /// Refuses arguments that the method does not have.
    pub(super) fn check(&self, tool: Option<&BoundTool>, args: &Map<String, Value>) -> Result<(), HostFault> {
        let accepted = self.accepted(tool);
        let Some(unknown) = args.keys().find(|name| !accepted.contains(&name.as_str())) else { return Ok(()) };
        let unknown: String = unknown.chars().take(QUOTED).collect();
        let takes = if accepted.is_empty() { "no arguments".to_owned() } else { accepted.join(", ") };
        Err(fault::value(format!("{} has no argument `{unknown}`; accepted: {takes}", self.name)))
    }
}
